"""Scores of groups that are sampled already, while others still are: what a judge on a server needs is time, not this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.core.optional_protocols import SamplerByContext
from assay.core.rollout import Rollout, Stop
from assay.core.score import Score
from assay.core.scoring import RolloutGroup, ScoreContext, Scorer
from assay.train.grade import Posed

if TYPE_CHECKING:
    from assay.train.reinforce_runner import ReinforceRunner

__all__ = ["EarlyScores"]


class EarlyScores:
    """Asks a scorer for each group's scores when its last rollout has ended.

    Args:
        scorer: scores each group by itself (`StatelessScorer.by_group`).
        ctx: what it may ask for.
        posed: the tasks, each in its context.
    """

    def __init__(self, scorer: Scorer, ctx: ScoreContext, posed: Posed) -> None:
        self._scorer, self._ctx = scorer, ctx
        self._posed = {context.key: (task, context) for task, context in posed}
        self._asked: dict[str, asyncio.Task[Sequence[Sequence[Score]]]] = {}

    @classmethod
    def of(cls, s: ReinforceRunner, ctx: ScoreContext, posed: Posed) -> EarlyScores | None:
        """None where the stage's scorer waits for all groups, or its sampler tells of none before the last has ended."""
        by_group = getattr(s.scorer, "by_group", False) and isinstance(s.sampler, SamplerByContext)
        return cls(s.scorer, ctx, posed) if by_group else None

    def ask(self, rollouts: Sequence[Rollout]) -> None:
        """Begins to score the rollouts of a context; those that ended in an error are not shown, as `grade` shows them not."""
        key = rollouts[0].context.key
        task, context = self._posed[key]
        shown = tuple([r for r in rollouts if r.stop is not Stop.ERROR])
        if shown:
            group = RolloutGroup(task=task, context=context, rollouts=shown)
            self._asked[key] = asyncio.ensure_future(self._scorer.score([group], self._ctx))

    async def score(self, groups: Sequence[RolloutGroup]) -> Sequence[Sequence[Score]]:
        """As of the scorer, in order: what was asked for before, and the rest now.

        Raises:
            AssayError: what the scorer raises.
        """
        rest = [g for g in groups if g.context.key not in self._asked]
        found = dict(zip([g.context.key for g in rest], await self._scorer.score(rest, self._ctx) if rest else [], strict=True))
        for key, asked in self._asked.items():
            found[key] = (await asked)[0]
        return [found[g.context.key] for g in groups]

    async def cancel(self) -> None:
        """Ends what was asked for and nobody waits for any more."""
        for asked in self._asked.values():
            asked.cancel()
        await asyncio.gather(*self._asked.values(), return_exceptions=True)
