"""A run that tells where its steps' time goes is the same run."""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path

import pytest
from tiny_runs import tiny

from assay.core.timing import Profile, StepTimer, profile_metrics
from assay.measure.panels import profile_of
from assay.measure.report import write_report
from assay.measure.runs import read_run
from assay.train.driver import resume, train

RL = {"engine", "rollout", "verify", "credit", "forward", "backward", "optimizer", "publish", "proof", "framework"}


def steps(folder: Path) -> list[dict[str, float]]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line["metrics"] for line in lines if "time/step" in line["metrics"]]


def parts(metrics: dict[str, float], kind: str) -> dict[str, float]:
    head = f"time/{kind}/"
    return {name.removeprefix(head): value for name, value in metrics.items() if name.startswith(head)}


TICK = 1e-3
SOME = 5 * TICK  # looks at a clock between the end of one count and that of another


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A millisecond passes whenever somebody looks at a clock, and at no other time: numbers then depend on the program alone."""
    count = itertools.count()

    def tick() -> float:
        return next(count) * TICK

    monkeypatch.setattr(time, "perf_counter", tick)
    monkeypatch.setattr(Profile.__init__, "__defaults__", (None, tick, tick))


@pytest.mark.slow
@pytest.mark.usefixtures("ticks")
def test_a_profiled_run_has_the_digest_of_another_and_its_parts_add_up(tmp_path: Path) -> None:
    plain = train(tiny(warm=2, rl=3), tmp_path / "plain")
    told = train(tiny(warm=2, rl=3), tmp_path / "told", profile=True)
    assert told.digest == plain.digest
    assert not any(parts(m, "profile") for m in steps(tmp_path / "plain"))
    found = steps(tmp_path / "told")
    assert len(found) == 5
    for i, metrics in enumerate(found):
        wall, cpu = parts(metrics, "profile"), parts(metrics, "profile_cpu")
        assert wall.keys() == cpu.keys() == (RL if i >= 2 else {"credit", "forward", "backward", "optimizer", "framework"})
        assert sum(wall.values()) == pytest.approx(metrics["time/step"], rel=0.0, abs=SOME)
        assert all(v > 0 for v in wall.values()) and all(v >= 0 for v in cpu.values())
        # the older numbers hold the same blocks, with what is framework inside them
        if i >= 2:
            assert wall["engine"] + wall["rollout"] == pytest.approx(metrics["time/generate"], rel=0.0, abs=SOME)
        assert wall["backward"] < metrics["time/forward_backward"]

    page = write_report(tmp_path / "told").read_text()
    assert "Where a step goes" in page and "Means over 3 profiled steps." in page
    assert "Where a step goes" not in write_report(tmp_path / "plain").read_text()
    count, rows = profile_of(read_run(tmp_path / "told"))
    assert count == 3 and {r.name for r in rows} == RL
    assert [r.wall for r in rows] == sorted((r.wall for r in rows), reverse=True)
    assert sum(r.wall for r in rows) == pytest.approx(sum(sum(parts(m, "profile").values()) for m in found[2:]))

    resume(tmp_path / "plain", steps=4, profile=True)
    assert [bool(parts(m, "profile")) for m in steps(tmp_path / "plain")] == [False] * 5 + [True]


def test_an_engine_elsewhere_is_the_wait_for_it() -> None:
    assert profile_metrics({"rollout": 2.0, "framework": 1.0}, {"rollout": 0.5, "framework": 1.0}) == {
        "time/profile/engine": 2.0,
        "time/profile/framework": 1.0,
        "time/profile_cpu/engine": 0.5,
        "time/profile_cpu/framework": 1.0,
    }
    with StepTimer() as timer:
        assert timer.seconds().keys() == {"time/step"}
