"""Runs on what users pass as a reward: several with weights, asynchronous ones, objects."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import only_rl, reinforce

from assay.core.errors import ConfigError, UnknownNameError
from assay.objective import Scalarise
from assay.objective.methods import reinforce as reinforce_method
from assay.scorers import ReferenceProbability
from assay.tasks import Rows
from assay.train.driver import train
from assay.train.run import Evaluation, Run
from assay.train.scoring import weigh_rewards

ROWS = [{"prompt": f"S{a}{b}>", "answer": "".join(sorted(f"{a}{b}"))} for a in range(10) for b in range(10)]


def right(completion: str, answer: str) -> float:
    return sum(a == b for a, b in zip(completion, answer, strict=False)) / len(answer)


async def odd(completion: str) -> float | None:
    return None if len(completion) % 2 else float(len(completion))


class Short:
    """An object that is called."""

    def __init__(self, most: int) -> None:
        self.most = most

    def __call__(self, prompt: str, completion: str, row: dict[str, Any]) -> float:
        return float(len(completion) < self.most)


def run_on(reward: Any, **changes: Any) -> Run:
    run = only_rl(steps=2, objective=reinforce_method(), group_size=2)
    return replace(run, tasks=Rows(ROWS, reward=reward), **{"evaluation": Evaluation(every=0, final_per_level=2), **changes})


def test_a_run_learns_from_the_weighted_sum_and_reports_each_reward_by_name(tmp_path: Path) -> None:
    run = run_on({"correct": right, "odd": (odd, 0.25), "short": (Short(3), 0.5)})
    assert train(run, tmp_path / "run").finished
    lines = [json.loads(line)["metrics"] for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    steps = [m for m in lines if "reward/component/reward" in m]
    assert len(steps) == 2
    assert all({"reward/component/correct", "reward/component/short"} <= set(m) for m in steps)
    shown = [json.loads(line) for line in (tmp_path / "run" / "rollouts.jsonl").read_text().splitlines()]
    for rollout in shown:
        c = rollout["components"]
        assert c["reward"] == pytest.approx(c["correct"] + 0.25 * c.get("odd", 0.0) + 0.5 * c["short"])
        assert ("odd" in c) == (len(rollout["text"]) % 2 == 0)


def test_whose_objective_learns_from_the_sum() -> None:
    summed = run_on({"correct": right, "odd": (odd, 0.25)})
    stage = summed.stages[0]
    assert weigh_rewards(summed, stage).objective.scalarise.weights == (("reward", 1.0),)
    assert weigh_rewards(run_on(right), stage) is stage
    own = reinforce(objective=replace(stage.objective, scalarise=Scalarise(weights=(("odd", 1.0),))))
    assert weigh_rewards(summed, own) is own
    other = reinforce(reward=ReferenceProbability())
    assert weigh_rewards(summed, other) is other


def test_settings_of_rewards_that_cannot_stand() -> None:
    changes: list[dict[str, Any]] = [{"reward_in_flight": 0}, {"reward_attempts": 0}]
    for wrong in changes:
        with pytest.raises(ConfigError, match="use a whole number, at least 1"):
            run_on(right, **wrong)
    silent: Any = "silence"
    with pytest.raises(UnknownNameError, match=r"Run.reward_errors"):
        run_on(right, reward_errors=silent)
