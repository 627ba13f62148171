"""Trackio: a dashboard on this machine, or in a Space of the Hugging Face hub."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from assay.core.canon import plain
from assay.measure.trackers.tracker import Ending, RolloutTable, TrackedRun, TrackerSettings, load_library

__all__ = ["TrackioTracker"]


@dataclass(frozen=True, kw_only=True)
class TrackioTracker(TrackerSettings):
    """Trackio: metrics, tables of rollouts, the settings as config, the report as an artifact; ``trackio show`` shows them.

    On this machine a session that goes on writes all steps again, in place of the run that was there, since trackio has no
    public call that says which it has. In a Space or on a server it goes on behind the last step that was handed over: a
    tracker that was itself killed may then have left out what it had not yet sent.

    Attributes:
        project, group: as trackio has them.
        name: of the run; the run folder's when empty. In a Space a run is known by it.
        space_id, server_url: a Space of the hub, or a trackio server; this machine when both are empty.
        rollouts, report, wait: as of `TrackerSettings`.

    >>> TrackioTracker(project="sums").tracker_name()
    'trackio'
    """

    title: ClassVar[str] = "trackio"
    needs: ClassVar[tuple[str, str]] = ("trackio", "trackio")

    project: str = "assay"
    name: str = ""
    group: str = ""
    space_id: str = ""
    server_url: str = ""

    def where(self, folder: Path, url: str) -> str:
        """The address; on this machine the command that shows it."""
        return url or f"trackio show --project {self.project}"

    def open(self, run: TrackedRun) -> _Session:
        """Begins a run in place of the last session's, or goes on with it where it is elsewhere."""
        return _Session(self, run)


class _Session:
    def __init__(self, own: TrackioTracker, run: TrackedRun) -> None:
        self._trackio: Any = load_library("trackio", "trackio")
        here = not own.space_id and not own.server_url
        if here and run.id:
            self._remove(own.project, run.id)
        self._run: Any = self._trackio.init(
            project=own.project,
            name=own.name or run.name,
            group=own.group or None,
            space_id=own.space_id or None,
            server_url=own.server_url or None,
            config=plain(dict(run.settings)),
            resume="never" if here else "allow",
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
        )
        self.id, self.url = str(self._run.id), own.server_url
        self.sent = -1 if here else run.sent
        if own.space_id:
            self.url = f"https://huggingface.co/spaces/{own.space_id}"

    def _remove(self, project: str, old: str) -> None:
        with suppress(ValueError):  # no such project
            for each in self._trackio.Api().runs(project):
                if each.id == old:
                    each.delete()

    def log(self, step: int, metrics: Mapping[str, float], rollouts: RolloutTable | None) -> None:
        row: dict[str, Any] = {name: float(v) for name, v in metrics.items()}
        if rollouts is not None:
            row["rollouts"] = self._trackio.Table(columns=list(rollouts.columns), data=[list(r) for r in rollouts.rows])
        self._run.log(row, step=step)

    def flush(self) -> None:
        """Trackio writes and sends by itself."""

    def log_report(self, path: Path) -> None:
        self._run.log_artifact(str(path), name=f"report-{self.id}", type="report")

    def close(self, ending: Ending) -> None:
        self._run.finish()
