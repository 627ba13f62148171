"""Each promise of a scorer, broken once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from assay.core.errors import EngineError, UnknownNameError
from assay.core.score import Score
from assay.core.scoring import RolloutGroup, ScoreContext, StatelessScorer, unanswered_score
from assay.core.task import Message
from assay.testing import ContractError, ScriptedScoring, check_scorer
from assay.verify import rollout_of, task_and_rollout


@dataclass(frozen=True)
class Sound(StatelessScorer):
    """1 where the judge says yes."""

    judges: tuple[str, ...] = ("critic",)  # pyright: ignore[reportIncompatibleMethodOverride]

    async def score(self, groups: Sequence[RolloutGroup], ctx: ScoreContext) -> Sequence[Sequence[Score]]:
        return [[await self.one(ctx, r.text) for r in g.rollouts] for g in groups]

    async def one(self, ctx: ScoreContext, text: str) -> Score:
        try:
            value = await ctx.judge("critic").ask((Message("user", text),), float)
        except EngineError as error:
            return self.failed(error)
        return Score(components={"reward": value})

    def failed(self, error: EngineError) -> Score:
        return unanswered_score(error)

    def floor(self, ctx: ScoreContext) -> Mapping[str, float]:
        return {"reward": 0.0}


class Zero(Sound):
    def failed(self, error: EngineError) -> Score:
        return Score(components={"reward": 0.0})


class Raises(Sound):
    def failed(self, error: EngineError) -> Score:
        raise error


class Short(Sound):
    async def score(self, groups: Sequence[RolloutGroup], ctx: ScoreContext) -> Sequence[Sequence[Score]]:
        return [x[:1] for x in await super().score(groups, ctx)]


class Flat(Sound):
    async def score(self, groups: Sequence[RolloutGroup], ctx: ScoreContext) -> Any:
        return [x for row in await super().score(groups, ctx) for x in row]


class Silent(Sound):
    async def score(self, groups: Sequence[RolloutGroup], ctx: ScoreContext) -> Any:
        return [[None for _ in row] for row in await super().score(groups, ctx)]


class Both(Sound):
    async def score(self, groups: Sequence[RolloutGroup], ctx: ScoreContext) -> Sequence[Sequence[Score]]:
        found = await super().score(groups, ctx)
        return [[Score(components={"correct": x.primary, "reward": 0.5}) if x.valid else x for x in row] for row in found]


class ByPlace(Sound):
    async def score(self, groups: Sequence[RolloutGroup], ctx: ScoreContext) -> Sequence[Sequence[Score]]:
        found = await super().score(groups, ctx)
        return [[Score(components={**x.components, "place": float(i)}) for i, x in enumerate(row)] for row in found]


class Low(Sound):
    def floor(self, ctx: ScoreContext) -> Mapping[str, float]:
        return {"reward": 0.5}


class Unnamed(Sound):
    def floor(self, ctx: ScoreContext) -> Mapping[str, float]:
        return {}


class Unplain(Sound):
    def state_dict(self) -> dict[str, Any]:
        return {"x": object()}


@dataclass(frozen=True)
class Forgetful(Sound):
    """Gives more from the second call on, and forgets in its state that there was a first."""

    calls: list[int] = field(default_factory=list[int])

    def build(self) -> Forgetful:
        return Forgetful()

    async def score(self, groups: Sequence[RolloutGroup], ctx: ScoreContext) -> Sequence[Sequence[Score]]:
        self.calls.append(ctx.step)
        found = await super().score(groups, ctx)
        return [[Score(components={"reward": x.primary + len(self.calls) - 1}) for x in row] for row in found]


GROUP_TASK = task_and_rollout("4", "4")[0]
GROUP = RolloutGroup(
    task=GROUP_TASK,
    context=task_and_rollout("4", "4")[1].context,
    rollouts=tuple(rollout_of(GROUP_TASK, x, id=x) for x in ("1", "0")),
)


def context() -> ScriptedScoring:
    return ScriptedScoring(replies={"critic": lambda messages: messages[-1].content})


def test_a_sound_scorer_passes() -> None:
    assert check_scorer(Sound(), [(GROUP, [1.0, 0.0])], context()).numbers == {"rollouts": 2}


@pytest.mark.parametrize(
    ("kind", "wanted", "said"),
    [
        (Sound, [1.0, 1.0], "gave 0.0 for task 'case', answer '0'; 1.0 is right"),
        (Sound, [None, 0.0], "gave 1.0 for task 'case', answer '1'; None is right"),
        (Zero, [1.0, 0.0], "where its judges gave no answer; give a fault"),
        (Raises, [1.0, 0.0], "raises where a judge gives no answer"),
        (Short, [1.0, 0.0], r"gave \[1\] scores for groups of \[2\] rollouts"),
        (Flat, [1.0, 0.0], r"gave single scores; give a list of scores for each group"),
        (Silent, [1.0, 0.0], r"gave \[None\] where a Score of a rollout is due"),
        (Both, [1.0, 0.0], r"both 'correct' and 'reward': a policy learns from 'correct' alone"),
        (ByPlace, [1.0, 0.0], "scores depend on order"),
        (Low, [1.0, 0.0], "gave 0.0 as 'reward', below its floor 0.5"),
        (Unnamed, [1.0, 0.0], "gives the component 'reward', of which its floor"),
        (Unplain, [1.0, 0.0], "its state is not plain"),
    ],
)
def test_a_broken_promise_is_found(kind: Any, wanted: list[float | None], said: str) -> None:
    with pytest.raises(ContractError, match=said):
        check_scorer(kind(), [(GROUP, wanted)], context())


def test_what_is_not_declared_may_not_be_asked() -> None:
    with pytest.raises(ContractError, match=r"asked \['judge:critic'\], which its settings do not declare"):
        check_scorer(Sound(judges=()), [(GROUP, [1.0, 0.0])], context())
    with pytest.raises(ContractError, match="no case"):
        check_scorer(Sound(), [], context())


def test_a_state_that_is_not_saved_is_found() -> None:
    with pytest.raises(ContractError, match="after state_dict and load_state_dict the scores differ"):
        check_scorer(Forgetful(), [(GROUP, [1.0, 0.0])], context())


def test_the_scripted_context_answers_by_its_script() -> None:
    ctx = context()
    assert [x.tolist() for x in asyncio.run(ctx.logprob([np.zeros(2, np.int32)], "base"))] == [[-1.0, -1.0]]
    assert ctx.asked == ["base"] and ctx.task_floor == {"correct": 0.0}
    with pytest.raises(UnknownNameError, match="unknown judge 'nobody'"):
        ctx.judge("nobody")
    with pytest.raises(EngineError, match="judge 'critic': could not convert"):
        asyncio.run(ctx.judge("critic").ask((Message("user", "x"),), float))
