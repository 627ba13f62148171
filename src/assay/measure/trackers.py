"""Where named numbers go: JSON lines always; TensorBoard and Weights & Biases where they are installed.

Each implements `assay.core.protocols.Tracker`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from assay.core.canon import plain
from assay.core.errors import ConfigError, DataError, MissingExtraError
from assay.core.protocols import Tracker

__all__ = ["JsonlTracker", "MultiTracker", "TensorBoardTracker", "WandbTracker"]


class JsonlTracker:
    """Appends one JSON object per step, ``{"step", "stage", "metrics"}``, and flushes it.

    A line that a kill tore apart is dropped on opening.

    Args:
        path: file to append to; its folder is made.
        stage: name written into each line; may be set anew between lines.
        fsync: force each line to the disk.

    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "metrics.jsonl"
    >>> tracker = JsonlTracker(file); tracker.log(1, {"reward/mean": 0.5}); tracker.log(2, {"reward/mean": 0.75})
    >>> tracker.truncate_after(1); tracker.close(); print(file.read_text(encoding="utf-8"), end="")
    {"metrics": {"reward/mean": 0.5}, "stage": "rl", "step": 1}
    """

    def __init__(self, path: Path, stage: str = "rl", fsync: bool = False) -> None:
        self.path, self.stage, self.fsync = path, stage, fsync
        path.parent.mkdir(parents=True, exist_ok=True)
        _drop_torn_line(path)
        self._file = path.open("a", encoding="utf-8")

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """One line, flushed to the operating system."""
        record = {"step": step, "stage": self.stage, "metrics": plain(metrics)}
        self._file.write(json.dumps(record, sort_keys=True, ensure_ascii=False) + "\n")
        self._file.flush()
        if self.fsync:
            os.fsync(self._file.fileno())

    def truncate_after(self, step: int) -> None:
        """Drops the lines later than ``step`` and a torn last line, so that a resumed run continues as if never interrupted.

        The file is replaced whole: a kill leaves the old or the new one.

        Raises:
            DataError: a line other than the last is not a record; names file and line.
        """
        self._file.close()
        lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        kept = [x for n, x in enumerate(lines, 1) if _step(x, self.path, n, last=n == len(lines)) <= step]
        beside = self.path.with_name(f".{self.path.name}.tmp")
        with beside.open("w", encoding="utf-8") as file:
            file.write("".join(x + "\n" for x in kept))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.path)
        self._file = self.path.open("a", encoding="utf-8")

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def _drop_torn_line(path: Path) -> None:
    """A kill may have left a line without its end; what follows must not be glued to it."""
    if path.exists():
        with path.open("rb+") as file:
            data = file.read()
            if not data.endswith(b"\n"):
                file.truncate(data.rfind(b"\n") + 1)


def _step(line: str, path: Path, number: int, last: bool) -> float:
    try:
        return float(json.loads(line)["step"])
    except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        if last:
            return float("inf")  # torn by a kill: later than any step
        raise DataError(f"{path}, line {number}: not a metrics record ({error}); remove the line or the file") from None


class TensorBoardTracker:
    """Scalars as TensorBoard event files, written by the ``tensorboard`` package alone.

    Args:
        folder: log directory.
        start_step: first step of a resumed run: TensorBoard then hides what an earlier process logged from there on.

    Raises:
        MissingExtraError: ``tensorboard`` is not installed.
    """

    def __init__(self, folder: Path, start_step: int | None = None) -> None:
        writer = _load("tensorboard.summary.writer.event_file_writer", "tensorboard")
        self._event: Any = _load("tensorboard.compat.proto.event_pb2", "tensorboard")
        self._summary: Any = _load("tensorboard.compat.proto.summary_pb2", "tensorboard")
        self._writer: Any = writer.EventFileWriter(str(folder))
        if start_step is not None:
            session = self._event.SessionLog(status=self._event.SessionLog.START)
            self._add(start_step, session_log=session)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """All numbers of a step as one event."""
        values = [self._summary.Summary.Value(tag=name, simple_value=float(v)) for name, v in sorted(metrics.items())]
        self._add(step, summary=self._summary.Summary(value=values))
        self._writer.flush()

    def close(self) -> None:
        """Flushes and closes the event file."""
        self._writer.close()

    def _add(self, step: int, **content: Any) -> None:
        self._writer.add_event(self._event.Event(wall_time=time.time(), step=step, **content))


class WandbTracker:
    """Scalars to Weights & Biases; offline unless asked otherwise, so nothing leaves the machine.

    Args:
        folder: where the run's files go.
        project, name: as W&B shows them; W&B invents a name when it is empty.
        config: resolved settings to store with the run.
        mode: ``offline`` (sync later with ``wandb sync``), ``online`` or ``disabled``.

    Raises:
        MissingExtraError: ``wandb`` is not installed.
        ConfigError: unknown mode.
    """

    def __init__(
        self,
        folder: Path,
        project: str = "assay",
        name: str = "",
        config: Mapping[str, Any] | None = None,
        mode: str = "offline",
    ) -> None:
        if mode not in ("offline", "online", "disabled"):
            raise ConfigError(f"WandbTracker mode {mode!r}: use 'offline', 'online' or 'disabled'")
        wandb = _load("wandb", "wandb")
        folder.mkdir(parents=True, exist_ok=True)
        self._run: Any = wandb.init(
            project=project, name=name or None, dir=str(folder), mode=mode, config=plain(dict(config or {})),
            settings=wandb.Settings(silent=True, console="off"),
        )  # fmt: skip

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """All numbers of a step; W&B wants steps that grow."""
        self._run.log({name: float(v) for name, v in metrics.items()}, step=step)

    def close(self) -> None:
        """Ends the W&B run."""
        self._run.finish()


class MultiTracker:
    """Tells several trackers the same; one that fails does not keep the others from hearing.

    Args:
        trackers: in order.
    """

    def __init__(self, trackers: Sequence[Tracker]) -> None:
        self.trackers = tuple(trackers)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Logs to each; then raises the first error, if any."""
        self._each("log", step, metrics)

    def close(self) -> None:
        """Closes each; then raises the first error, if any."""
        self._each("close")

    def _each(self, method: str, *args: Any) -> None:
        errors: list[Exception] = []
        for tracker in self.trackers:
            try:
                getattr(tracker, method)(*args)
            except Exception as error:  # any of them may be a user's own
                errors.append(error)
        if errors:
            raise errors[0]


def _load(module: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(extra, extra) from error
