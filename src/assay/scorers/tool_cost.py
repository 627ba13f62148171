"""What calls of tools cost, as a component of the reward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError
from assay.core.rollout import Rollout
from assay.core.score import LEARNED, Score
from assay.core.scoring import RolloutGroup, ScoreContext, StatelessScorer

__all__ = ["ToolCost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCost(StatelessScorer):
    """The verifier's verdict less what the rollout's calls of tools cost: ``reward = correct - min(weight * cost, most)``.

    ``cost`` is the sum of `ToolResult.cost`, which tools declare (`assay.rollout.tool`) or tell of each call. A wrong rollout
    pays nothing where ``only_right``: else a policy that is mostly wrong learns not to call at all.

    A stage learns from ``reward``; accuracy remains the task's metric, and ``tool_cost`` is a component of its own.

    Attributes:
        weight: of a unit of cost.
        most: that is taken off, so that a right rollout is always worth more than a wrong one.
        only_right: rollouts below ``threshold`` pay nothing.
        threshold: a rollout is right when its primary component reaches it.

    Raises:
        ConfigError: a weight that is not positive, or ``most`` outside (0, 1).

    >>> ToolCost(weight=0.1).most
    0.5
    """

    weight: float = 1.0
    most: float = 0.5
    only_right: bool = True
    threshold: float = 1.0

    weighted_sum: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.weight > 0 or not 0.0 < self.most < 1.0:
            raise ConfigError(f"ToolCost(weight={self.weight}, most={self.most}); use a weight above 0, and most between 0 and 1")

    async def score(self, groups: Sequence[RolloutGroup], ctx: ScoreContext) -> Sequence[Sequence[Score]]:
        """The verifier's verdicts with the cost."""
        verdicts = await ctx.verify(groups)
        return [
            [self._score(r, s) for r, s in zip(g.rollouts, scores, strict=True)]
            for g, scores in zip(groups, verdicts, strict=True)
        ]

    def floor(self, ctx: ScoreContext) -> Mapping[str, float]:
        """What the verifier declares, and all of the cost."""
        floors = dict(ctx.task_floor)
        worst = floors.get("correct", floors.get("reward", 0.0))
        return {"correct": worst, **floors, "tool_cost": -self.most, "reward": worst - self.most}

    def _score(self, rollout: Rollout, score: Score) -> Score:
        if not score.valid:
            return score
        cost = sum(result.cost for call in rollout.own for result in call.results)
        paid = 0.0 if self.only_right and score.primary < self.threshold else min(self.weight * cost, self.most)
        more = {"tool_cost": -paid, "reward": score.primary - paid}
        components = {"correct": score.primary, **score.components, **more}
        return replace(score, components=components, info=FrozenMap({**score.info, LEARNED: "reward"}))
