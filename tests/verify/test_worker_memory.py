"""Rewards that fill the machine's memory: their worker has a limit, is replaced, and that is told."""

import os
from collections import Counter
from typing import Any

import pytest
from foreign_code import LONG, items

from assay.core.errors import ConfigError
from assay.core.rollout import Rollout
from assay.core.score import Fault, Score
from assay.core.task import Task
from assay.verify import RewardFunction, ScoringPool
from assay.verify.workers.cpu import memory

MIB = 1 << 20


def leaks(kept: list[bytearray], completion: str) -> float:
    kept.append(bytearray((40 if completion == "yes" else 400) * MIB))
    return float(completion == "yes")


def test_a_reward_that_keeps_something_of_each_answer_loses_no_verdict() -> None:
    kept: list[bytearray] = []
    with ScoringPool(RewardFunction(lambda p, c, r: leaks(kept, c)), LONG, memory=0.25, workers=1) as pool:
        verdicts = pool.score(items(*["yes"] * 16))
        assert [s.components["reward"] for s in verdicts.values()] == [1.0] * 16
        assert pool.counts["died"] == pool.counts["out_of_memory"] == pool.counts["retried"] >= 1
        (line,) = pool.news()
        assert "asked for more memory than it may have" in line and "Run.reward_memory" in line
        assert pool.news() == []


@pytest.mark.parametrize("batched", [False, True])
def test_an_answer_that_takes_more_than_the_limit_scores_the_floor(batched: bool) -> None:
    def batch(prompts: list[str], completions: list[str], rows: list[dict[str, Any]]) -> list[float]:
        return [leaks([], c) for c in completions]

    function = (
        RewardFunction(batch, batched=True, floor=-1.0) if batched else RewardFunction(lambda p, c, r: leaks([], c), floor=-1.0)
    )
    with ScoringPool(function, LONG, memory=0.25) as pool:
        verdicts = pool.score(items("yes", "no", "yes"))
    assert [s.components["reward"] for s in verdicts.values()] == [1.0, -1.0, 1.0]
    assert verdicts["r1"].fault is Fault.POLICY
    assert "it asked for more than the 0.25 GiB of memory that a worker may have" in verdicts["r1"].info["error"]


def test_any_verifier_has_the_limit() -> None:
    class Greedy:
        def __call__(self, task: Task, rollout: Rollout) -> Score:
            return Score(components={"correct": leaks([], rollout.text)})

    with ScoringPool(Greedy(), LONG, memory=0.25) as pool:
        verdicts = pool.score(items("yes", "no", "yes"))
        assert [s.components["correct"] for s in verdicts.values()] == [1.0, 0.0, 1.0]
        assert pool.counts == Counter(died=2, out_of_memory=2, retried=1)


def test_the_limit_is_a_share_of_the_machine_unless_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.verify.workers.cpu.cores", lambda: 3)
    for workers, share in ((1, 2), (8, 4)):
        with ScoringPool(RewardFunction(lambda p, c, r: 1.0), workers=workers) as pool:
            assert pool._dispatcher.supervisor._memory == memory() // share  # pyright: ignore
    with pytest.raises(ConfigError, match="memory is in GiB and must be > 0"):
        ScoringPool(RewardFunction(lambda p, c, r: 1.0), memory=0.0)
    assert 0 < memory() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
