"""Verdicts that are given while others are sampled: the same ones, and none where a batch has to be judged as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_async_runs import asynchronously, spawner, steps_of  # noqa: F401  the fixture makes samplers threads
from tiny_runs import digest_of, only_rl, tiny

from assay.core.errors import RewardError
from assay.core.rollout import Rollout
from assay.core.score import Fault, Score
from assay.core.task import Task
from assay.recipes import on_rows
from assay.train.driver import train
from assay.train.score_ahead import ScoreAhead


class Pool:
    """Judges by the name of a rollout."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def score(self, items: Sequence[tuple[Any, Any]]) -> dict[str, Score]:
        names = [rollout for _, rollout in items]
        self.asked.append(names)
        if "raises" in names:
            raise RewardError("no verdict")
        fault = {n: Fault.INFRA for n in names if n == "fails"}
        return {n: Score(components={} if n in fault else {"correct": 1.0}, fault=fault.get(n, Fault.NONE)) for n in names}


class Named(str):
    """Stands for a rollout."""

    @property
    def id(self) -> str:
        return str(self)


def items(*names: str) -> list[tuple[Task, Rollout]]:
    return [(None, Named(name)) for name in names]  # type: ignore[misc]


def test_verdicts_come_once_and_only_where_a_whole_batch_has_them() -> None:
    pool = Pool()
    ahead = ScoreAhead(pool)  # type: ignore[arg-type]
    for key, group in {"g": ("g1", "g2"), "h": ("h1",), "bad": ("b1", "fails"), "raising": ("raises",)}.items():
        ahead.add(key, items(*group))
    assert sorted(ahead.take(["g", "h"])) == ["g1", "g2", "h1"]
    assert ahead.take(["g", "h"]) == {}, "given once"
    assert ahead.take(["bad"]) == {} and ahead.take(["raising"]) == {} and ahead.take(["never heard of"]) == {}
    ahead.add("late", items("l1"))
    ahead.take([])
    ahead.close()
    ahead.forget(["late"])
    assert ahead.take(["late"]) == {} and pool.asked[-1] == ["l1"]


def rewarded(reward: Any) -> Any:
    rows = [{"prompt": f"{a}+{a}=", "answer": str(2 * a)} for a in range(8)]
    return on_rows(rows, reward, model=tiny().model, steps=4, groups=4, group_size=4)


def by_length(prompt: str, completion: str, row: Any) -> float:
    return len(completion) / 10


def sometimes(prompt: str, completion: str, row: Any) -> float:
    if completion.startswith(("1", "2", "3")):
        raise ValueError("an odd answer")
    return len(completion) / 10


@pytest.mark.parametrize(
    "reward", [pytest.param(by_length, id="always"), pytest.param(sometimes, id="sometimes none", marks=pytest.mark.prove)]
)
def test_a_run_ends_as_where_rewards_are_computed_by_the_step(reward: Any, tmp_path: Path) -> None:
    run = replace(rewarded(reward), reward_errors="count")
    train(run, tmp_path / "one", progress=False)
    train(asynchronously(run, eta=0), tmp_path / "more", progress=False)
    assert digest_of(tmp_path / "more") == digest_of(tmp_path / "one")
    shares = [step["async/scored_ahead"] for step in steps_of(tmp_path / "more")]
    assert (min(shares) == 1.0) if reward is by_length else (min(shares) == 0.0)


def test_generated_tasks_are_judged_ahead_too(tmp_path: Path) -> None:
    train(asynchronously(only_rl(steps=3)), tmp_path / "run", progress=False)
    assert all(step["async/scored_ahead"] == 1.0 for step in steps_of(tmp_path / "run"))
