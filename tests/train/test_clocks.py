"""A clock that is set while a run is under way changes nothing: deadlines and times are taken from one that cannot be set."""

import itertools
import re
import time
from pathlib import Path

import pytest
from tiny_runs import digest_of, tiny

from assay.train import train

SOURCES = Path(__file__).parents[2] / "src" / "assay"
STAMPS = {
    "agents/messages.py",
    "measure/trackers/mlflow_tracker.py",
    "measure/trackers/tensorboard_tracker.py",
    "publish/service/completion_response.py",
    "sandbox/wasm/files.py",
}
"""Where a time is written down for people or files to read, and nothing is decided by it."""
YEAR = 365 * 86400.0


def test_no_deadline_reads_the_clock_of_the_wall():
    found = {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        if re.search(r"\btime\.time(_ns)?\(\)|from time import .*\btime\b|CLOCK_REALTIME", path.read_text(encoding="utf-8"))
    }
    assert found - STAMPS == set()


@pytest.mark.parametrize(
    "jumps",
    [
        pytest.param([YEAR, -YEAR], id="both"),
        pytest.param([YEAR], id="forwards", marks=pytest.mark.prove),
        pytest.param([-YEAR], id="backwards", marks=pytest.mark.prove),
    ],
)
def test_a_run_whose_clock_jumps_ends_with_the_same_digest(tmp_path, monkeypatch, jumps):
    train(tiny(), tmp_path / "steady")
    now, turns = time.time, itertools.cycle(jumps)
    monkeypatch.setattr(time, "time", lambda: now() + next(turns))
    train(tiny(), tmp_path / "jumping")
    assert digest_of(tmp_path / "jumping") == digest_of(tmp_path / "steady")
