"""The process that sends a run's steps to a tracker while the run goes on. `main` is started by `RunTrackers`.

It reads the journal, which the run writes anyway, so the run hands nothing over and waits for nothing: a library that is slow,
hangs or fails does so here. What it could not send is in the journal, and is sent by the next session.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay.core.config import from_dict
from assay.core.errors import AssayError, StorageError
from assay.measure.trackers.send import RunSender
from assay.measure.trackers.state import TrackerState, only_sender
from assay.measure.trackers.tracker import Ending, TrackerSettings

__all__ = ["RunPipe", "follow_run", "main"]

POLL = 0.5
"""Seconds between looks at the journal."""

LONGEST_PAUSE = 60.0
"""Seconds between two sessions, at most, where the first failed."""


class RunPipe:
    """What the run says to this process, through its standard input: one line at its end, or nothing where it was killed.

    Attributes:
        ending: how the run ended; None while it goes on.
        killed: whether it ended without a word.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._said, self._parent = descriptor, b"", os.getppid()
        self.ending: Ending | None = None
        self.killed = False

    def wait(self, seconds: float) -> bool:
        """Whether the run has ended, within a time."""
        if self.ending is None and select.select([self._descriptor], [], [], seconds)[0]:
            said = os.read(self._descriptor, 4096)
            self._said += said
            if not said:
                self.ending, self.killed = "failed", True
            elif self._said.endswith(b"\n"):
                self.ending = json.loads(self._said)["ending"]
        if self.ending is None and os.getppid() != self._parent:  # a process that it had forked may still hold the pipe
            self.ending, self.killed = "failed", True
        return self.ending is not None


def follow_run(folder: Path, tracker: TrackerSettings, run: RunPipe, warn: Callable[[str], None]) -> bool:
    """Sends what a run writes until the run has ended and all is sent. A session that fails is followed by another.

    Args:
        folder: of the run.
        tracker: where to.
        run: says when it has ended.
        warn: told what went wrong, at the first time.

    Returns:
        Whether all was sent.
    """
    failed = 0
    with only_sender(folder, tracker.tracker_name(), wait=True):
        while True:
            last = run.ending is not None
            try:
                _session(folder, tracker, run)
                return True
            except Exception as error:
                failed += 1
                traceback.print_exc()  # into the log
                text = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
                _note(folder, tracker, text)
                if failed == 1:
                    warn(text)
                if last or (isinstance(error, AssayError) and not isinstance(error, StorageError)):
                    return False  # what is wrong here is so the next time too
            run.wait(min(LONGEST_PAUSE, 2.0**failed))


def _session(folder: Path, tracker: TrackerSettings, run: RunPipe) -> None:
    sender = RunSender(folder, tracker)
    while True:
        ended = run.wait(POLL)
        if ended and run.killed:
            _end_within(tracker.wait)
        sender.send_new()
        if ended:
            sender.close(run.ending)
            return


def _note(folder: Path, tracker: TrackerSettings, text: str) -> None:
    """Keeps what went wrong with what the folder keeps of a tracker."""
    state = TrackerState.read(folder, tracker.tracker_name())
    if state is not None:
        replace(state, error=text).write(folder, tracker.tracker_name())


def _end_within(seconds: float) -> None:
    """Nobody waits for this process any more: it ends by itself."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, max(1.0, seconds))


def main() -> None:
    """Follows the run that the first line of the standard input names; warnings go to the standard output, a line each."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):  # they are for the run, which then says that it ends
        signal.signal(number, signal.SIG_IGN)
    os.nice(5)  # the run comes first
    news = os.dup(1)
    os.dup2(2, 1)  # what libraries print goes to the log
    orders: dict[str, Any] = json.loads(_first_line(0))
    sys.path[:] = orders["path"]

    def warn(text: str) -> None:
        os.write(news, f"{text}\n".encode())

    tracker: TrackerSettings = from_dict(Any, orders["tracker"])
    done = follow_run(Path(orders["folder"]), tracker, RunPipe(0), warn)
    sys.stdout.flush()
    sys.exit(0 if done else 1)


def _first_line(descriptor: int) -> bytes:
    """Up to the first newline, and nothing behind it."""
    out = b""
    while not out.endswith(b"\n"):
        byte = os.read(descriptor, 1)
        if not byte:
            os._exit(1)
        out += byte
    return out
