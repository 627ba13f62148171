"""Replays an asynchronous run from its log: the same groups, in the same steps, without any sampling."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.asynchronous import LogEndError
from assay.core.errors import ConfigError
from assay.core.util.threads import with_torch
from assay.runs import lock, storage
from assay.runs.journal import Journal
from assay.runs.metric_names import current_names
from assay.train import record
from assay.train.driver import begin
from assay.train.run import Run
from assay.train.run_driver import RunDriver

__all__ = ["Replay", "replay_run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What a replay came to.

    Attributes:
        steps: that were replayed.
        of: steps that the run has.
        digest: of the whole run; empty for one that has not finished.
        expected: the digest that it wrote itself; empty for one that has not finished.
        differing: step and name of the first number that came out otherwise; empty where none did.
    """

    steps: int
    of: int
    digest: str
    expected: str
    differing: str

    @property
    def equal(self) -> bool:
        """Whether all came out as it had, and anything did."""
        return self.steps > 0 and not self.differing and self.digest == self.expected


def replay_run(folder: str | Path, into: str | Path | None = None, *, run: Run | None = None) -> Replay:
    """Learns again from what a run has accepted and taken, and compares every number of every step outside ``time/``.

    Args:
        folder: of the run, which sampled beside learning and kept its log (`assay.asynchronous.Asynchronous.keep_log`). Nothing
            is written there.
        into: a new folder for the replay's own run; None for a temporary one.
        run: the run as a value, when its parts cannot be loaded by name.

    Raises:
        KeyboardInterrupt: the replay was stopped.
        ConfigError: the run kept no log, or sampled within its own process alone; or ``into`` is in use.
        CheckpointError: the folder holds no run, or a line of its log is damaged.
    """
    source = Path(folder)
    found = record.load_run(source, run)
    _check(source, found)
    with_torch("assay.runtime.machine")
    with tempfile.TemporaryDirectory(prefix="assay-replay-") as scratch:
        place = Path(into) if into is not None else Path(scratch) / "run"
        record.refuse_used(place)
        with lock.worker(place):
            for name in ("start", "anchors", "samplers/accepted"):
                if (source / name).is_dir():
                    shutil.copytree(source / name, place / name)
            driver = RunDriver(found, place)
            driver.replays = True
            digest = ""
            with suppress(LogEndError):
                outcome = begin(driver)
                if not outcome.finished:  # a signal: nothing is proved
                    raise KeyboardInterrupt
                digest = outcome.digest
        return _compare_digest(source, place, digest)


def _check(folder: Path, run: Run) -> None:
    stages = [s.asynchronous for s in run.stages]
    if not any(stages):
        raise ConfigError(f"{folder} sampled in its own process, so its settings and seed say all: run it again to compare")
    for settings in stages:
        if settings and not settings.keep_log:
            raise ConfigError(
                f"{folder} kept no log of all that it accepted (Asynchronous.keep_log=False), so it cannot be replayed; train "
                "with --keep-log"
            )


def _compare_digest(source: Path, place: Path, digest: str) -> Replay:
    done = source / "done.json"
    expected = str(storage.read_json(done)["digest"]) if done.exists() else ""
    theirs, ours = _numbers(source), _numbers(place)
    both = theirs if digest else {step: numbers for step, numbers in theirs.items() if step in ours}
    differing = next((line for step, numbers in both.items() if (line := _difference(step, numbers, ours.get(step, {})))), "")
    return Replay(steps=max(ours, default=0), of=max(theirs, default=0), digest=digest, expected=expected, differing=differing)


def _numbers(folder: Path) -> dict[int, dict[str, Any]]:
    """What came out of each step."""
    lines = {int(r["step"]): current_names(r["metrics"]) for r in Journal(folder).records("metrics")}
    return {step: {n: v for n, v in line.items() if not n.startswith(record.NOT_DIGESTED)} for step, line in lines.items()}


def _difference(step: int, wanted: dict[str, Any], got: dict[str, Any]) -> str:
    for name in {**wanted, **got}:
        if wanted.get(name) != got.get(name):
            return f"step {step}: {name} was {wanted.get(name)}, and is {got.get(name)} in the replay"
    return ""
