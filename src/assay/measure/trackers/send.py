"""Sends what a run's folder holds to a tracker: while the run goes on, or afterwards."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import IO

from assay.core.config import to_dict
from assay.core.errors import DataError
from assay.measure.rollout_line import rollout_line
from assay.measure.trackers.state import TrackerState, only_sender
from assay.measure.trackers.tracker import (
    Ending,
    RolloutTable,
    TrackedRun,
    TrackerSession,
    TrackerSettings,
    rollout_table,
    shorten_lists,
)
from assay.runs.reader import MetricLine, metric_line, read_document
from assay.runs.rollout_files import RolloutFiles

__all__ = ["RunSender", "last_step", "send_run"]


def send_run(folder: Path, tracker: TrackerSettings) -> TrackerState:
    """Sends a run's steps to a tracker that does not have them yet, and waits until they are there.

    Args:
        folder: a run folder; the run may have been killed, or go on.
        tracker: where to. If the run had it before, the same run of the tracker goes on.

    Returns:
        What the folder then keeps of the tracker.

    Raises:
        ConfigError: another process sends the same now.
        MissingExtraError: the tracker's library is not installed.
        DataError: a line of the journal is damaged.
        Exception: whatever the library raises.

    >>> from assay.measure import TensorBoardTracker, send_run
    >>> send_run(Path("runs/sums-1"), TensorBoardTracker()).sent  # doctest: +SKIP
    400
    """
    with only_sender(folder, tracker.tracker_name(), wait=False):
        sender = RunSender(folder, tracker)
        sender.send_new()
        return sender.close()


class RunSender:
    """An open session of a tracker, and how far in the run's journal it is.

    Args:
        folder: of the run.
        tracker: its settings.

    Attributes:
        state: what the folder keeps of the tracker.
    """

    def __init__(self, folder: Path, tracker: TrackerSettings) -> None:
        self._folder, self._tracker, self._name = folder, tracker, tracker.tracker_name()
        known = TrackerState.read(folder, self._name)
        before = known or TrackerState(tracker=to_dict(tracker))
        self._journal, self._files = _Lines(folder / "metrics.jsonl"), RolloutFiles(folder)
        settings = read_document(folder / "run.toml", tomllib.loads, [])
        self._session: TrackerSession = tracker.open(
            TrackedRun(
                folder=folder,
                name=folder.resolve().name,
                settings=shorten_lists(settings),
                id=before.id,
                sent=before.sent,
                finished=(folder / "done.json").exists(),
            )
        )
        self.state = replace(
            before, tracker=to_dict(tracker), id=self._session.id, url=self._session.url, sent=self._session.sent, error=""
        )
        self._keep()

    def send_new(self) -> int:
        """Sends the lines that the journal has and the tracker has not; how many.

        Raises:
            DataError: a line is damaged.
            Exception: whatever the library raises.
        """
        count = 0
        for line in self._journal.read():
            if line.step <= self.state.sent:
                continue
            self._session.log(line.step, line.metrics, self._rollouts(line.step))
            self.state, count = replace(self.state, sent=line.step), count + 1
        if count:
            self._session.flush()
            self._keep()
        return count

    def close(self, ending: Ending | None = None) -> TrackerState:
        """Sends the report if there is one that was not sent, and ends the session.

        Args:
            ending: of the run; as its folder says when None.

        Raises:
            Exception: whatever the library raises.
        """
        report = self._folder / "report.html"
        found = hashlib.blake2b(report.read_bytes(), digest_size=16).hexdigest() if report.exists() else ""
        if self._tracker.report and found and (found != self.state.report or self._session.sent < 0):
            self._session.log_report(report)
        self._journal.close()
        self._session.close(ending or ("finished" if (self._folder / "done.json").exists() else "stopped"))
        self.state = replace(self.state, report=found)
        self._keep()
        return self.state

    def _keep(self) -> None:
        self.state.write(self._folder, self._name)

    def _rollouts(self, step: int) -> RolloutTable | None:
        """The table of a recorded step; None of others, and where its file is damaged: the numbers are worth more."""
        if not self._tracker.rollouts or step not in self._files.steps():
            return None
        try:
            lines = [rollout_line(record) for record in self._files.read(step)[1]]
        except (DataError, KeyError, TypeError, ValueError):
            return None
        return rollout_table(lines, self._tracker.rollouts)


def last_step(folder: Path) -> int:
    """The last step in a run's journal; -1 where there is none."""
    with closing(_Lines(folder / "metrics.jsonl")) as lines:
        return max((line.step for line in lines.read()), default=-1)


class _Lines:
    """The lines of a journal, as far as they are whole, each once.

    The file stays open: a resume that cuts the journal back writes a new one, and whoever reads the old one reads it to its end.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._number, self._rest = path, 0, b""
        self._file: IO[bytes] | None = None

    def read(self) -> Iterator[MetricLine]:
        """Those that have come since the last call.

        Raises:
            DataError: one is no record; names it.
        """
        if self._file is None:
            if not self._path.exists():
                return
            self._file = self._path.open("rb")
        *whole, self._rest = (self._rest + self._file.read()).split(b"\n")
        for line in whole:
            self._number += 1
            try:
                yield metric_line(json.loads(line))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise DataError(
                    f"{self._path}, line {self._number}, is damaged ({error}); a resume of the run mends it, or remove the line"
                ) from None

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()
