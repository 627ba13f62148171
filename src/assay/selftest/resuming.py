"""Killed by SIGKILL at two moments and gone on with, a run must end with the digest of one that was never interrupted."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from assay.core.errors import AssayError
from assay.selftest.selftest_part import SelftestContext, SelftestFinding
from assay.selftest.small_models import two_stages
from assay.train.driver import resume, train

__all__ = ["killed_and_resumed"]

WARM, RL = 12, 12
MOMENTS = (7, 18)
"""Steps in the journal at which the run is killed: in the warm-up, and in RL."""
PATIENCE = 120.0
"""Seconds within which a run must come so far."""

_CHILD = "from assay.selftest.resuming import begin; begin({folder!r})"


def begin(folder: str) -> None:
    """The run that is killed."""
    train(two_stages(WARM, RL), folder, progress=False)


def killed_and_resumed(context: SelftestContext) -> SelftestFinding:
    """Compares digests of weights, optimiser, sampled ids and metrics."""
    context.say("a run that is left alone")
    whole = train(two_stages(WARM, RL), context.folder / "whole", progress=False).digest
    failures: list[str] = []
    reached: list[int] = []
    for moment in MOMENTS:
        context.say(f"one that is killed after step {moment}")
        folder = context.folder / f"killed-{moment}"
        reached.append(_kill_at(folder, moment))
        found = resume(folder, progress=False).digest
        if found != whole:
            failures.append(f"killed after step {reached[-1]}: the digest is {found}, not {whole}")
    return SelftestFinding(numbers={"steps": WARM + RL, "killed_after_steps": reached, "digest": whole}, failures=tuple(failures))


def _kill_at(folder: Path, moment: int) -> int:
    """Starts the run in a process of its own and kills it; the steps that its journal then has."""
    command = [sys.executable, "-c", _CHILD.format(folder=str(folder))]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        end = time.monotonic() + PATIENCE
        while _lines(folder) < moment and process.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
    finally:
        process.kill()  # SIGKILL
        said = process.communicate()[1].strip().splitlines()
    if process.returncode != -signal.SIGKILL or _lines(folder) < moment:
        last = said[-1] if said else "nothing was said"
        raise AssayError(f"the run was to be killed after step {moment}, but ended or hung before: {last}")
    return _lines(folder)


def _lines(folder: Path) -> int:
    journal = folder / "metrics.jsonl"
    return journal.read_bytes().count(b"\n") if journal.exists() else 0
