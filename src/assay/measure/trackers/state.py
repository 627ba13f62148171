"""What a run folder keeps of each tracker: ``RUN/trackers/NAME.json``."""

from __future__ import annotations

import errno
import fcntl
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from assay.core.config import from_dict, to_dict
from assay.core.errors import CheckpointError, ConfigError
from assay.measure.trackers.mlflow_tracker import MlflowTracker
from assay.measure.trackers.tensorboard_tracker import TensorBoardTracker
from assay.measure.trackers.tracker import TrackerSettings
from assay.measure.trackers.trackio_tracker import TrackioTracker
from assay.measure.trackers.wandb_tracker import WandbTracker
from assay.runs.storage import read_json, storage_errors, write_json

__all__ = ["FOLDER", "TRACKERS", "TrackerState", "only_sender", "recorded_trackers"]

FOLDER = "trackers"

TRACKERS: Mapping[str, type[TrackerSettings]] = {
    kind.tracker_name(): kind for kind in (TensorBoardTracker, WandbTracker, TrackioTracker, MlflowTracker)
}
"""Trackers by their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerState:
    """A tracker of a run, as its last session left it.

    Attributes:
        tracker: its settings, as `assay.core.to_dict` writes them.
        id, url: of the tracker's own run.
        sent: the last step that was handed over; -1 for none.
        report: digest of the report that was sent; empty for none.
        error: what went wrong last; empty where nothing did.
    """

    tracker: Mapping[str, Any]
    id: str = ""
    url: str = ""
    sent: int = -1
    report: str = ""
    error: str = field(default="")

    @classmethod
    def read(cls, folder: Path, name: str) -> TrackerState | None:
        """That of a tracker of the run in ``folder``; None where it has none.

        Raises:
            CheckpointError: the file is damaged.
        """
        path = folder / FOLDER / f"{name}.json"
        if not path.exists():
            return None
        found: Any = read_json(path)
        try:
            return cls(
                tracker=dict(found["tracker"]),
                id=str(found["id"]),
                url=str(found["url"]),
                sent=int(found["sent"]),
                report=str(found["report"]),
                error=str(found["error"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"{path} is damaged ({error!r}); remove it: all steps are then sent to a new run") from None

    def write(self, folder: Path, name: str) -> None:
        """Replaces it.

        Raises:
            StorageError: the disk is full or the folder not writable.
        """
        with storage_errors(folder / FOLDER):
            (folder / FOLDER).mkdir(exist_ok=True)
        write_json(folder / FOLDER / f"{name}.json", asdict(self))


def record_tracker(folder: Path, tracker: TrackerSettings) -> None:
    """Notes that a run has this tracker, so that a resume has it too.

    Raises:
        ConfigError: its settings cannot be written down.
        StorageError: the folder cannot be written.
    """
    if TrackerState.read(folder, tracker.tracker_name()) is None:
        TrackerState(tracker=to_dict(tracker)).write(folder, tracker.tracker_name())


def recorded_trackers(folder: Path) -> tuple[TrackerSettings, ...]:
    """The trackers that a run had before, by name.

    Raises:
        CheckpointError: a file is damaged.
        ConfigError: a class of the user's own cannot be loaded.
    """
    names = sorted(path.stem for path in (folder / FOLDER).glob("*.json"))
    states = [state for name in names if (state := TrackerState.read(folder, name))]
    return tuple(from_dict(Any, state.tracker) for state in states)


def check_names(trackers: Sequence[TrackerSettings]) -> None:
    """Raises ConfigError where two have one name: each keeps its state under it."""
    names = [tracker.tracker_name() for tracker in trackers]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(f"two trackers are called {twice[0]!r}; give each once")


@contextmanager
def only_sender(folder: Path, name: str, wait: bool) -> Generator[None]:
    """The right to send a run's steps to a tracker; it ends with the process.

    Args:
        folder: of the run.
        name: of the tracker.
        wait: for another process that sends, such as that of a run that was killed.

    Raises:
        ConfigError: another process sends, and ``wait`` is False.
    """
    path = folder / FOLDER / f".{name}.lock"
    with storage_errors(path):
        path.parent.mkdir(exist_ok=True)
        file = path.open("a")
    with file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                raise
            raise ConfigError(f"another process sends {folder} to {name} now; try again when it is done") from None
        yield
