"""Where named numbers go besides the run's own journal: TensorBoard and Weights & Biases, where they are installed.

Each implements `assay.core.protocols.Tracker`. A run that is resumed does some steps again; neither shows a step twice.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from assay.core.canon import plain
from assay.core.errors import ConfigError, MissingExtraError

__all__ = ["TensorBoardTracker", "WandbTracker"]


class TensorBoardTracker:
    """Scalars as TensorBoard event files, written by the ``tensorboard`` package alone.

    Args:
        folder: log directory.
        start_step: step of the checkpoint that a run goes on from: TensorBoard then hides what an earlier process logged beyond
            it. None for a run that begins.

    Raises:
        MissingExtraError: ``tensorboard`` is not installed.
    """

    def __init__(self, folder: Path, start_step: int | None = None) -> None:
        writer = _load("tensorboard.summary.writer.event_file_writer", "tensorboard")
        self._event: Any = _load("tensorboard.compat.proto.event_pb2", "tensorboard")
        self._summary: Any = _load("tensorboard.compat.proto.summary_pb2", "tensorboard")
        self._writer: Any = writer.EventFileWriter(str(folder))
        if start_step is not None:  # a session that starts hides its own step too, so it starts one step later
            session = self._event.SessionLog(status=self._event.SessionLog.START)
            self._add(start_step + 1, session_log=session)

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

    Opened again on a folder, it goes on with the W&B run that is there, under the same id, and leaves out every number of a step
    that W&B's own files hold already; ``wandb sync`` then makes one run of all of them. W&B writes a step's row when it hears of
    the next one, and a moment later: what a killed process had not written, and no later process does again, is missing there.
    The run's journal has it.

    Args:
        folder: where the run's files go; one folder, one W&B run.
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
        run_id, self._logged_names = _logged_names(folder)
        settings: dict[str, Any] = {"silent": True, "console": "off"}
        if _FLUSH in getattr(wandb.Settings, "model_fields", ()):
            settings[_FLUSH] = 0.1  # seconds; W&B's own 15 lose much of a small run to a kill
        self._run: Any = wandb.init(
            project=project,
            name=name or None,
            dir=str(folder),
            mode=mode,
            config=plain(dict(config or {})),
            id=run_id,
            resume="allow",
            settings=wandb.Settings(**settings),
        )

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """The numbers of a step that W&B does not have yet."""
        known = self._logged_names.get(step, frozenset())
        if known.issuperset(metrics):
            return
        self._run.log({name: float(v) for name, v in metrics.items() if name not in known}, step=step)

    def close(self) -> None:
        """Ends the W&B run."""
        self._run.finish()


_FLUSH = "x_transaction_log_flush_interval"


def _logged_names(folder: Path) -> tuple[str | None, dict[int, frozenset[str]]]:
    """Id of the newest W&B run in a folder, None where there is none, and the names that its files hold per step."""
    files = sorted(folder.rglob("run-*.wandb"), key=lambda p: p.stat().st_mtime)
    if not files:
        return None, {}
    names: dict[int, frozenset[str]] = {}
    same: dict[frozenset[str], frozenset[str]] = {}  # most steps have the same names: one set serves them all
    for file in (f for f in files if f.name == files[-1].name):
        for step, found in _rows(file):
            both = found | names.get(step, frozenset())
            names[step] = same.setdefault(both, both)
    return files[-1].stem.removeprefix("run-"), names


def _rows(file: Path) -> Iterator[tuple[int, frozenset[str]]]:
    """Step and names of each row of a ``.wandb`` file, up to its end or to what is damaged."""
    record: Any = _load("wandb.proto.wandb_internal_pb2", "wandb").Record
    damaged: Any = _load("google.protobuf.message", "wandb").DecodeError
    with suppress(damaged):
        for message in _messages(file.read_bytes()):
            history = record.FromString(message).history
            if history.item:
                yield history.step.num, frozenset(i.key or "/".join(i.nested_key) for i in history.item)


def _messages(data: bytes) -> Iterator[bytes]:
    """The whole messages of a ``.wandb`` file: LevelDB's log format after a header of 7 bytes. One torn by a kill is left out."""
    block, head, at, message = 32768, 7, 7, b""
    while at + head <= len(data):
        if block - at % block < head:
            at += block - at % block  # no head fits into what is left of the block
            continue
        size, kind = struct.unpack("<HB", data[at + 4 : at + head])
        part = data[at + head : at + head + size]
        if kind not in (1, 2, 3, 4) or len(part) < size:
            return
        message, at = (message + part if kind in (3, 4) else part), at + head + size
        if kind in (1, 4):  # the whole, or its last part
            yield message


def _load(module: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(extra, extra) from error
