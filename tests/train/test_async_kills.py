"""Up to two hundred kills of asynchronous runs at random places; every run ends with the digest of its replay."""

from __future__ import annotations

import os
import random
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_async_runs import asynchronously, spawner  # noqa: F401  the fixture makes samplers threads
from tiny_runs import at_point, in_child, only_rl, resumed

from assay.asynchronous import AcceptedLog
from assay.train.driver import resume, train
from assay.train.replay import replay_run

pytestmark = pytest.mark.evidence

KILLS = 200
AT_A_TIME = 5


def dies(place: str, at: int, run: Any, folder: Path) -> None:
    """Dies at a line of the log, or at a write point of the run folder."""
    if place == "log":
        write, left = AcceptedLog._write, at

        def dying(self: AcceptedLog, record: Any) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                if self._file is not None:
                    self._file.write(b"deadbeef {")
                    self._file.flush()
                os.kill(os.getpid(), signal.SIGKILL)
            write(self, record)

        AcceptedLog._write = dying  # type: ignore[method-assign]
    else:
        at_point(at, lambda: os.kill(os.getpid(), signal.SIGKILL))
    resume(folder, progress=False) if (folder / "run.toml").exists() else train(run, folder, progress=False)


@pytest.mark.parametrize("seed", range(KILLS // AT_A_TIME))
def test_killed_runs_replay_to_their_digest(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    eta, policy = rng.randint(0, 3), rng.choice(["wait", "continue", "drop"])
    run = asynchronously(replace(only_rl(steps=12), checkpoint_every=rng.choice([2, 3, 5])), eta=eta, policy=policy)
    folder, killed = tmp_path / "run", 0
    while killed < AT_A_TIME:
        place, at = rng.choice(["log", "folder"]), rng.randint(1, 40)
        status = in_child(lambda place=place, at=at: dies(place, at, run, folder))
        assert status in (0, -signal.SIGKILL)
        if status == 0:
            break
        killed += 1
    print(f"{killed} kills, eta={eta}, {policy}")
    digest = resumed(folder, run)
    found = replay_run(folder)
    assert found.equal and found.digest == digest, (eta, policy, found)
