"""TensorBoard: event files in the run folder, written by the ``tensorboard`` package alone."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from assay.measure.trackers.tracker import Ending, RolloutTable, TrackedRun, TrackerSettings, load_library

__all__ = ["TensorBoardTracker"]


@dataclass(frozen=True, kw_only=True)
class TensorBoardTracker(TrackerSettings):
    """TensorBoard event files in ``RUN/tensorboard``: scalars, rollouts and settings as text.

    A session that goes on has TensorBoard hide what an earlier one wrote from its first step on.

    Attributes:
        rollouts, report, wait: as of `TrackerSettings`.

    >>> TensorBoardTracker(rollouts=8).tracker_name()
    'tensorboard'
    """

    title: ClassVar[str] = "tensorboard"
    needs: ClassVar[tuple[str, str]] = ("tensorboard", "tensorboard")

    def where(self, folder: Path, url: str) -> str:
        """The command that shows it."""
        return f"tensorboard --logdir {folder}/tensorboard"

    def open(self, run: TrackedRun) -> _Session:
        """Begins an event file behind those that are there."""
        return _Session(run)


class _Session:
    def __init__(self, run: TrackedRun) -> None:
        writer = load_library("tensorboard.summary.writer.event_file_writer", "tensorboard")
        self._event: Any = load_library("tensorboard.compat.proto.event_pb2", "tensorboard")
        self._summary: Any = load_library("tensorboard.compat.proto.summary_pb2", "tensorboard")
        self._tensor: Any = load_library("tensorboard.compat.proto.tensor_pb2", "tensorboard")
        self._types: Any = load_library("tensorboard.compat.proto.types_pb2", "tensorboard")
        folder = run.folder / "tensorboard"
        going_on = folder.is_dir() and any(folder.iterdir())
        self.id, self.url, self.sent = run.name, "", run.sent if going_on else -1
        self._writer: Any = writer.EventFileWriter(str(folder))
        if going_on:  # a session that starts hides its own step and all later ones
            session = self._event.SessionLog(status=self._event.SessionLog.START)
            self._add(self.sent + 1, session_log=session)
        else:
            text = json.dumps(run.settings, indent=1, ensure_ascii=False, default=str)
            self._text(0, "settings", "\n".join(f"    {line}" for line in text.splitlines()))

    def log(self, step: int, metrics: Mapping[str, float], rollouts: RolloutTable | None) -> None:
        values = [self._summary.Summary.Value(tag=name, simple_value=float(v)) for name, v in sorted(metrics.items())]
        self._add(step, summary=self._summary.Summary(value=values))
        if rollouts is not None:
            self._text(step, "rollouts", _markdown(rollouts))

    def flush(self) -> None:
        self._writer.flush()

    def log_report(self, path: Path) -> None:
        self._text(max(0, self.sent), "report", f"`{path}`")

    def close(self, ending: Ending) -> None:
        self._writer.close()

    def _text(self, step: int, tag: str, text: str) -> None:
        """A value that TensorBoard's plug-in for text shows as Markdown."""
        tensor = self._tensor.TensorProto(dtype=self._types.DT_STRING, string_val=[text.encode("utf-8", "replace")])
        shape = tensor.tensor_shape.dim.add()
        shape.size = 1
        plugin = self._summary.SummaryMetadata.PluginData(plugin_name="text")
        metadata = self._summary.SummaryMetadata(plugin_data=plugin)
        value = self._summary.Summary.Value(tag=tag, metadata=metadata, tensor=tensor)
        self._add(step, summary=self._summary.Summary(value=[value]))

    def _add(self, step: int, **content: Any) -> None:
        self._writer.add_event(self._event.Event(wall_time=time.time(), step=step, **content))


def _markdown(table: RolloutTable) -> str:
    """A table in Markdown, each cell in one line."""
    lines = ["|" + "|".join(table.columns) + "|", "|" + "---|" * len(table.columns)]
    lines += ["|" + "|".join(_cell(v) for v in row) + "|" for row in table.rows]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    text = "" if value is None else format(value, ".4g") if isinstance(value, float) else str(value)
    return text.replace("|", "\\|").replace("\n", " ⏎ ")
