"""What a run or model that is asked says of how it is asked: its sampling, its tasks, its limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from assay.cli.run_request import missing, recorded_run
from assay.core.config import from_dict, loads_toml
from assay.core.errors import ConfigError, DataError
from assay.core.protocols import TaskSource
from assay.core.rollout import Sampling
from assay.runs import checkpoint
from assay.runs.storage import read_json
from assay.train.checkpoint_weights import checkpoint_place
from assay.train.models import model_folder

if TYPE_CHECKING:
    from assay.train.run import Evaluation

__all__ = ["RecordedRun", "SamplingOptions", "check_model", "sampling_of"]


class SamplingOptions(Protocol):
    """Options of a command that draws: None where the person says nothing."""

    @property
    def temperature(self) -> float | None: ...

    @property
    def top_p(self) -> float | None: ...

    @property
    def top_k(self) -> int | None: ...

    @property
    def min_p(self) -> float | None: ...

    @property
    def max_new_tokens(self) -> int | None: ...


def check_model(path: Path) -> None:
    """Refuses what is neither a model nor a run with one, nor a run at a checkpoint, before anything slow is loaded."""
    if (named := checkpoint_place(path)) is not None:
        folder, step = named
        done = folder / "done.json"
        if not (done.exists() and int(read_json(done)["step"]) == step):
            checkpoint.checkpoint_at(folder, step)
        return
    missing(path)
    model_folder(path)


_LIMITS = {
    "max_turns": "max_turns",
    "reward_deadline": "deadline",
    "environment_deadline": "environment_deadline",
    "pictures": "pictures",
}
"""Field of a run to its name in `Policy.evaluate`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """What a run folder says about how its model is asked.

    Attributes:
        sampling, evaluation: its own.
        limits: turns, deadlines and what plays, by their names in `Policy.evaluate`; those that are not the default.
        tasks: its family.
        trouble: why its tasks cannot be loaded, if they cannot.
    """

    sampling: Sampling
    evaluation: Evaluation
    limits: Mapping[str, Any]
    tasks: TaskSource | None
    trouble: str = ""

    @classmethod
    def of(cls, path: Path) -> RecordedRun | None:
        """Of a run folder, of a run at a checkpoint, or of a model folder inside one; None for a model from elsewhere."""
        named = checkpoint_place(path)
        folder = named[0] if named else next((f for f in (path, path.parent) if (f / "run.toml").exists()), None)
        if folder is None:
            return None
        try:
            run = recorded_run(folder)
        except ConfigError as error:  # a reward from a script or notebook: the model can be asked all the same
            from assay.train.run import Evaluation

            table = loads_toml((folder / "run.toml").read_text(encoding="utf-8"))
            sampling = from_dict(Sampling, table.get("sampling", {}))
            evaluation = from_dict(Evaluation, table.get("evaluation", {}))
            limits = {name: table[field] for field, name in _LIMITS.items() if field in table}
            return cls(sampling=sampling, evaluation=evaluation, limits=limits, tasks=None, trouble=str(error))
        limits: dict[str, Any] = {name: getattr(run, field) for field, name in _LIMITS.items()}
        samplers = [stage.sampler for stage in run.stages if stage.samples]
        limits |= {"player": samplers[-1].player} if samplers else {}
        return cls(sampling=run.sampling, evaluation=run.evaluation, limits=limits, tasks=run.tasks)


def sampling_of(run: RecordedRun | None, own: SamplingOptions, base: Sampling | None = None) -> Sampling | None:
    """How to draw: the run's way with what the person changed; ``base`` where there is neither.

    Without a run, what is changed is changed in ``base``, or in the defaults where that is None.
    """
    names = ("temperature", "top_p", "top_k", "min_p", "max_new_tokens")
    changed = {name: getattr(own, name) for name in names if getattr(own, name) is not None}
    if run is None and not changed:
        return base
    try:
        return replace(run.sampling if run else base or Sampling(), **changed)
    except DataError as error:
        raise ConfigError(str(error)) from None
