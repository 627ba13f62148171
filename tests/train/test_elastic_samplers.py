"""Samplers that join and leave while a run is at work."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from test_async_runs import asynchronously, events_of, spawner, steps_of  # noqa: F401  the fixture makes samplers threads
from thread_samplers import ThreadSpawner
from tiny_runs import digest_of, only_rl

from assay.asynchronous import want_samplers
from assay.cli.run_samplers import runs_samplers
from assay.core.errors import ConfigError
from assay.train.callbacks import Callback
from assay.train.driver import train
from assay.train.replay import replay_run


class Wants(Callback):
    """Another number of samplers after some steps, which are then given the time to begin or end."""

    def __init__(self, folder: Path, counts: dict[int, int]) -> None:
        self.folder, self.counts = folder, counts

    def on_step(self, step: int, metrics: Any) -> None:
        if step in self.counts:
            assert runs_samplers([str(self.folder), str(self.counts[step])]) == 0
            time.sleep(1.2)


@pytest.mark.slow
@pytest.mark.parametrize(("eta", "policy"), [(0, "wait"), (2, "continue"), (2, "drop")])
def test_samplers_join_and_leave_and_no_group_is_lost(
    eta: int,
    policy: str,
    spawner: ThreadSpawner,  # noqa: F811
    tmp_path: Path,
) -> None:
    run, folder = only_rl(steps=12), tmp_path / "run"
    wants = Wants(folder, {2: 3, 5: 1, 8: 2})
    train(asynchronously(run, eta=eta, policy=policy), folder, progress=False, callbacks=[wants])
    said = events_of(folder, "sampler")
    assert {"sampler-2 joins", "sampler-2 leaves", "sampler-1 leaves"} <= set(said)
    assert {name for name, _ in spawner.spawned} == {"sampler-0", "sampler-1", "sampler-2"}
    assert max(step["async/age_max"] for step in steps_of(folder)) <= eta
    assert replay_run(folder).equal
    if not eta:
        train(run, tmp_path / "one", progress=False)
        assert digest_of(folder) == digest_of(tmp_path / "one")


def test_what_cannot_change_is_refused(tmp_path: Path) -> None:
    train(only_rl(steps=1), tmp_path / "one", progress=False)
    with pytest.raises(ConfigError, match="samples in its own process; train with --samplers"):
        runs_samplers([str(tmp_path / "one"), "3"])
    train(asynchronously(only_rl(steps=1)), tmp_path / "more", progress=False)
    with pytest.raises(ConfigError, match="0 samplers would sample nothing"):
        runs_samplers([str(tmp_path / "more"), "0"])
    want_samplers(tmp_path / "more" / "samplers", 4)
    assert (tmp_path / "more" / "samplers" / "count").read_text() == "4\n"
