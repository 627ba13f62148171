"""Weights & Biases, online or offline, by its public calls."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from assay.core.canon import plain
from assay.core.errors import UnknownNameError
from assay.measure.trackers.tracker import Ending, RolloutTable, TrackedRun, TrackerSettings, load_library

__all__ = ["WandbTracker"]

MODES = ("offline", "online", "disabled")


@dataclass(frozen=True, kw_only=True)
class WandbTracker(TrackerSettings):
    """Weights & Biases: scalars, tables of rollouts, the settings as config, the report as an artifact.

    Offline, the default, nothing leaves the machine: ``wandb sync RUN/wandb/offline-run-*`` sends it later. One run folder is one
    W&B run, however often it is resumed: its id is kept. Online the server says which steps it has, and gets the others. Offline
    files cannot be read back by public calls, so a session writes all steps again, in place of the files that were there.

    Attributes:
        project, entity, group, tags, notes: as W&B has them; the key comes from ``wandb login`` or ``WANDB_API_KEY``.
        name: as W&B shows it; the run folder's when empty.
        mode: ``offline``, ``online`` or ``disabled``.
        rollouts, report, wait: as of `TrackerSettings`.

    Raises:
        UnknownNameError: unknown mode.

    >>> WandbTracker(project="sums", tags=("first",)).mode
    'offline'
    """

    title: ClassVar[str] = "wandb"
    needs: ClassVar[tuple[str, str]] = ("wandb", "wandb")

    project: str = "assay"
    name: str = ""
    entity: str = ""
    group: str = ""
    tags: tuple[str, ...] = ()
    notes: str = ""
    mode: str = "offline"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mode not in MODES:
            raise UnknownNameError("WandbTracker.mode", self.mode, MODES)

    def where(self, folder: Path, url: str) -> str:
        """The address; offline the command that sends it."""
        return url or (f"offline; send it by: wandb sync {folder}/wandb/offline-run-*" if self.mode == "offline" else "")

    def open(self, run: TrackedRun) -> _Session:
        """Goes on with the W&B run of the last session, or begins one."""
        return _Session(self, run)


class _Session:
    def __init__(self, own: WandbTracker, run: TrackedRun) -> None:
        self._wandb: Any = load_library("wandb", "wandb")
        if own.mode == "offline":
            for old in (run.folder / "wandb").glob("offline-run-*"):  # this session writes all that is in them
                shutil.rmtree(old, ignore_errors=True)
        self.id = run.id or secrets.token_hex(4)
        self._run: Any = self._wandb.init(
            project=own.project,
            entity=own.entity or None,
            name=own.name or run.name,
            group=own.group or None,
            tags=list(own.tags) or None,
            notes=own.notes or None,
            dir=str(run.folder),
            mode=own.mode,
            config=plain(dict(run.settings)),
            id=self.id,
            resume="allow",
            settings=self._wandb.Settings(silent=True, console="off", init_timeout=30),
        )
        self.url = str(self._run.url or "") if own.mode == "online" else ""
        # The first step that a resumed run does not have on the server; 0 for one that is new there, or offline.
        self.sent = int(self._run.starting_step) - 1 if own.mode == "online" and self._run.resumed else -1

    def log(self, step: int, metrics: Mapping[str, float], rollouts: RolloutTable | None) -> None:
        row: dict[str, Any] = {name: float(v) for name, v in metrics.items()}
        if rollouts is not None:
            row["rollouts"] = self._wandb.Table(columns=list(rollouts.columns), data=[list(r) for r in rollouts.rows])
        self._run.log(row, step=step, commit=True)

    def flush(self) -> None:
        """W&B writes and sends by itself."""

    def log_report(self, path: Path) -> None:
        artifact = self._wandb.Artifact(f"report-{self.id}", type="report")
        artifact.add_file(str(path), name="report.html")
        self._run.log_artifact(artifact)

    def close(self, ending: Ending) -> None:
        self._run.finish(exit_code=0 if ending == "finished" else 1)
