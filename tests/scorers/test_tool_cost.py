"""What calls of tools cost, as a component of the reward."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError
from assay.core.rollout import ToolResult
from assay.core.score import LEARNED, Fault, Score
from assay.core.scoring import RolloutGroup
from assay.scorers import ToolCost
from assay.verify.rollouts import rollout_of
from assay_tasks import SortDigits

TASK = SortDigits(levels=(3,)).task("sort", 3, "train", 0)


class Verdicts:
    """A context whose verifier says what it was given."""

    task_floor: Mapping[str, float] = FrozenMap({"correct": 0.0})

    def __init__(self, *scores: Score) -> None:
        self.scores = scores

    async def verify(self, groups: Any) -> Any:
        return [list(self.scores) for _ in groups]


def scored(scorer: ToolCost, costs: list[float], score: Score) -> Score:
    rollout = rollout_of(TASK, "1")
    results = tuple(ToolResult(content="", cost=cost) for cost in costs)
    rollout = replace(rollout, calls=(replace(rollout.calls[0], results=results),))
    group = RolloutGroup(task=TASK, context=rollout.context, rollouts=(rollout,))
    ((found,),) = asyncio.run(scorer.score([group], Verdicts(score)))  # type: ignore[arg-type]
    return found


def test_a_right_rollout_pays_for_its_calls() -> None:
    found = scored(ToolCost(weight=0.5), [0.2, 0.4], Score(components={"correct": 1.0}))
    assert found.components == {"correct": 1.0, "tool_cost": pytest.approx(-0.3), "reward": pytest.approx(0.7)}
    assert found.info[LEARNED] == "reward"
    dear = scored(ToolCost(weight=0.5), [9.0], Score(components={"correct": 1.0}))
    assert dear.components["reward"] == 0.5


def test_a_wrong_one_pays_nothing_unless_told() -> None:
    wrong = Score(components={"correct": 0.0})
    assert scored(ToolCost(), [0.2], wrong).components["reward"] == 0.0
    assert scored(ToolCost(only_right=False), [0.2], wrong).components["reward"] == -0.2


def test_no_verdict_stays_none() -> None:
    fault = Score(components={}, fault=Fault.INFRA)
    assert scored(ToolCost(), [0.2], fault) is fault


def test_its_floor_has_all_of_the_cost() -> None:
    assert ToolCost().floor(Verdicts()) == {"correct": 0.0, "tool_cost": -0.5, "reward": -0.5}  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [{"weight": 0.0}, {"most": 1.0}, {"most": 0.0}])
def test_settings_that_cannot_be_are_refused(given: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=r"ToolCost\(weight="):
        ToolCost(**given)
