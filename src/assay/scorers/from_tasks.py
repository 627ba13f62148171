"""The reward that every task family brings: the verdicts of its own verifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay.core.score import Score
from assay.core.scoring import RolloutGroup, ScoreContext, StatelessScorer

__all__ = ["FromTasks"]


@dataclass(frozen=True, slots=True)
class FromTasks(StatelessScorer):
    """Rewards by the tasks' verifier, in a pool whose workers can be killed: the default.

    >>> FromTasks().build()
    FromTasks()
    """

    async def score(self, groups: Sequence[RolloutGroup], ctx: ScoreContext) -> Sequence[Sequence[Score]]:
        """The verifier's verdicts."""
        return await ctx.verify(groups)

    def floor(self, ctx: ScoreContext) -> Mapping[str, float]:
        """What the verifier declares."""
        return ctx.task_floor
