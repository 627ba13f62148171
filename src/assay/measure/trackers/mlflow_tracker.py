"""MLflow: a tracking server or a database, by `mlflow.MlflowClient`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from assay.measure.trackers.tracker import (
    Ending,
    RolloutTable,
    TrackedRun,
    TrackerSettings,
    flat,
    load_library,
    plain_name,
)

__all__ = ["MlflowTracker"]

T = TypeVar("T")
MARK = "assay/step"
"""The last metric of each step: a step that has it is there as a whole."""
MOST_METRICS, MOST_PARAMS, LONGEST = 1000, 100, 500
"""What one request may hold, and characters of a setting."""


@dataclass(frozen=True, kw_only=True)
class MlflowTracker(TrackerSettings):
    """MLflow: metrics, the settings as parameters, rollouts of recorded steps and the report as artifacts.

    A session that goes on asks MLflow which steps its run has, and sends the others.

    Attributes:
        uri: tracking server or database, as ``http://host:5000`` or ``sqlite:///mlflow.db`` (which needs the package ``mlflow``);
            what ``MLFLOW_TRACKING_URI`` says, or MLflow's own default, when empty.
        experiment: by name; made where there is none.
        name: of the run; the run folder's when empty.
        tags: ``NAME=VALUE`` each.
        rollouts, report, wait: as of `TrackerSettings`.

    >>> MlflowTracker(uri="http://localhost:5000").experiment
    'assay'
    """

    title: ClassVar[str] = "mlflow"
    needs: ClassVar[tuple[str, str]] = ("mlflow", "mlflow")

    uri: str = ""
    experiment: str = "assay"
    name: str = ""
    tags: tuple[str, ...] = ()

    def open(self, run: TrackedRun) -> _Session:
        """Goes on with the MLflow run of the last session, or begins one."""
        return _Session(self, run)


class _Session:
    def __init__(self, own: MlflowTracker, run: TrackedRun) -> None:
        self._entities: Any = load_library("mlflow.entities", "mlflow")
        self._client: Any = load_library("mlflow", "mlflow").MlflowClient(tracking_uri=own.uri or None)
        self.url = ""
        if run.id:
            self.id = run.id
            self._client.update_run(self.id, "RUNNING")
        else:
            self.id = self._begin(own, run)
        self.sent = max((int(m.step) for m in self._client.get_metric_history(self.id, MARK)), default=-1)

    def _begin(self, own: MlflowTracker, run: TrackedRun) -> str:
        found = self._client.get_experiment_by_name(own.experiment)
        place = found.experiment_id if found else self._client.create_experiment(own.experiment)
        tags = {name: value for name, _, value in (tag.partition("=") for tag in own.tags)}
        begun = str(self._client.create_run(place, run_name=own.name or run.name, tags=tags).info.run_id)
        params = [self._entities.Param(plain_name(k), v[:LONGEST]) for k, v in flat(run.settings).items()]
        for some in _parts(params, MOST_PARAMS):
            self._client.log_batch(begun, params=some)
        return begun

    def log(self, step: int, metrics: Mapping[str, float], rollouts: RolloutTable | None) -> None:
        if rollouts is not None:  # a file of its own per step, so that to send it again changes nothing
            table = {"columns": list(rollouts.columns), "data": [list(r) for r in rollouts.rows]}
            self._client.log_dict(self.id, table, f"rollouts/step_{step:08d}.json")
        now = int(time.time() * 1000)
        both = {**{plain_name(name): float(v) for name, v in metrics.items()}, MARK: float(step)}
        for some in _parts([self._entities.Metric(name, v, now, step) for name, v in both.items()], MOST_METRICS):
            self._client.log_batch(self.id, metrics=some)

    def flush(self) -> None:
        """Each request was answered."""

    def log_report(self, path: Path) -> None:
        self._client.log_artifact(self.id, str(path))

    def close(self, ending: Ending) -> None:
        self._client.set_terminated(self.id, {"finished": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}[ending])


def _parts(values: Sequence[T], most: int) -> Iterator[Sequence[T]]:
    for first in range(0, len(values), most):
        yield values[first : first + most]
