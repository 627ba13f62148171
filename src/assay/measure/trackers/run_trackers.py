"""The trackers of a run, each in a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from assay.core.config import to_dict
from assay.measure.trackers.send import last_step
from assay.measure.trackers.state import FOLDER, TrackerState, check_names, record_tracker
from assay.measure.trackers.tracker import Ending, TrackerSettings
from assay.runs.folder import SETTINGS

__all__ = ["RunTrackers"]

FOLDERS = (FOLDER, "tensorboard", "wandb")
"""What trackers put into a run folder."""

START = "from assay.measure.trackers.process import main; main()"


class RunTrackers:
    """Starts a process per tracker that reads the run's journal; implements `assay.core.protocols.Tracker`.

    Args:
        folder: of the run.
        trackers: each of another name.

    Raises:
        ConfigError: two of one name.
        MissingExtraError: a library is not installed.
    """

    def __init__(self, folder: Path, trackers: Sequence[TrackerSettings]) -> None:
        check_names(trackers)
        for tracker in trackers:
            tracker.check_installed()
        self._folder, self._trackers = folder, tuple(trackers)
        self._senders: list[_Sender] = []

    def start(self) -> None:
        """Begins to follow the run; the folder has its journal as the run goes on from it.

        Raises:
            ConfigError: settings of a tracker cannot be written down.
            StorageError: the folder cannot be written.
        """
        for tracker in self._trackers:
            record_tracker(self._folder, tracker)
        self._senders = [_Sender(self._folder, tracker) for tracker in self._trackers]

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """The journal has the step already: says only what went wrong meanwhile, once per tracker."""
        for sender in self._senders:
            sender.tell()

    def close(self) -> None:
        """The run's steps are over; `finish` ends the trackers, when its report is written."""

    def finish(self, ending: Ending) -> None:
        """Waits until each tracker has all, as long as it may take; warns of what is missing then, and how it is sent.

        A folder that is no run's any more, since the run was refused, loses what trackers had put there.
        """
        if self._senders and not (self._folder / SETTINGS).exists():
            for sender in self._senders:
                sender.kill()
            for name in FOLDERS:
                shutil.rmtree(self._folder / name, ignore_errors=True)
            self._senders = []
        for sender in self._senders:
            sender.end(ending)
        begun = time.monotonic()
        for sender in self._senders:
            sender.wait(begun)
        self._senders = []


class _Sender:
    def __init__(self, folder: Path, tracker: TrackerSettings) -> None:
        self._folder, self._tracker, self._told = folder, tracker, False
        log = folder / FOLDER / f"{tracker.tracker_name()}.log"
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-c", START],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                start_new_session=True,  # Ctrl-C is for the run; and what the library starts can be ended with it
            )
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        orders = {"path": sys.path, "folder": str(folder.absolute()), "tracker": to_dict(tracker)}
        self._write(json.dumps(orders))

    def tell(self) -> None:
        """Says what went wrong, at the first time."""
        if not self._told and (said := self._first_message()):
            self._told = True
            self._warn(f"{said}; the run goes on; what is missing at its end is sent by")

    def _first_message(self) -> str:
        """What it told first, empty where nothing went wrong."""
        assert self._process.stdout is not None
        said = self._process.stdout.read()
        return said.decode("utf-8", "replace").splitlines()[0] if said else ""

    def end(self, ending: Ending) -> None:
        """Says that the run has ended."""
        self._write(json.dumps({"ending": ending}))

    def wait(self, begun: float) -> None:
        """Until it has ended, or its time is over."""
        left = self._tracker.wait - (time.monotonic() - begun)
        try:
            code = self._process.wait(max(0.1, left))
        except subprocess.TimeoutExpired:
            code = None
        if code != 0:
            why = f"was not done after {self._tracker.wait:g} s" if code is None else "could not send all"
            cause = "" if self._told else self._first_message()
            said = f"{cause}; it {why}" if cause else why
            self._warn(f"{said}{self._missing()}; everything is in metrics.jsonl and is sent by")
        if code is None:
            self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def kill(self) -> None:
        """Ends it, and what the library had started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _missing(self) -> str:
        """How far it came, in words."""
        state = TrackerState.read(self._folder, self._tracker.tracker_name())
        sent, last = state.sent if state else -1, last_step(self._folder)
        if sent >= last:
            return " (the last steps may not have arrived)"
        return f" (it has none of {last} steps)" if sent < 0 else f" (it has the steps up to {sent} of {last})"

    def _warn(self, text: str) -> None:
        name = self._tracker.tracker_name()
        print(f"tracker {name}: {text}: assay runs sync {self._folder} --tracker {name}", file=sys.stderr, flush=True)

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # it has ended, which is told at the end
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
