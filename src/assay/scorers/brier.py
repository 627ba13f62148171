"""Reward for a right answer whose stated confidence is calibrated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from assay.core.canon import FrozenMap
from assay.core.errors import RewardError, UnknownNameError
from assay.core.score import LEARNED, Score
from assay.core.scoring import RolloutGroup, ScoreContext, StatelessScorer
from assay.verify.confidence import CONFIDENCE

__all__ = ["BrierReward", "brier_reward"]

_FORMS = {"paper": -1.0, "code": 0.0}
"""Form to its reward of an answer that states no confidence: the lowest there is."""


def brier_reward(correct: float, confidence: float | None, form: str = "paper") -> float:
    """RLCR (Damani et al. 2025, arXiv 2507.16806): correctness minus the Brier score of the stated confidence.

    ``paper``: ``c - (q - c)^2``; -1, its lowest value, where no confidence is stated, which the paper leaves open. ``code``, as
    released: ``0.5 f + 0.5 c + 0.5 (1 - (q - c)^2)`` with ``f = 1``, and 0 without a confidence.

    Args:
        correct: ``c`` in [0, 1].
        confidence: ``q`` in [0, 1]; None where none was stated.
        form: one of these two.

    Raises:
        UnknownNameError: another form.

    >>> [round(brier_reward(c, q), 2) for c, q in ((1, 0.9), (0, 0.9), (0, 0.0))]
    [0.99, -0.81, 0.0]
    """
    if form not in _FORMS:
        raise UnknownNameError("form of the Brier reward", form, _FORMS)
    if confidence is None:
        return _FORMS[form]
    brier = (confidence - correct) ** 2
    return correct - brier if form == "paper" else 0.5 + 0.5 * correct + 0.5 * (1.0 - brier)


@dataclass(frozen=True, slots=True)
class BrierReward(StatelessScorer):
    """RLCR's reward (arXiv 2507.16806): ``c - (q - c)^2``, for a right answer and for a confidence near the true rate of them.

    The expected reward of an answer that is right with probability ``p`` is largest at ``q = p``, where it is ``p^2``: so the
    policy gains by being right and by knowing how often it is. Learn from it without a division by the standard deviation
    (``dr_grpo``), as the paper does: groups whose answers are all right weigh as much as others.

    The tasks are `assay.tasks.WithConfidence`, whose verifier reads the confidence. A stage learns from the component
    ``reward``; accuracy remains what the tasks' verifier measures, ``correct``.

    Attributes:
        form: ``paper`` or ``code`` (`brier_reward`).

    Raises:
        UnknownNameError: another form.

    >>> BrierReward().form
    'paper'
    """

    form: str = "paper"

    weighted_sum: ClassVar[bool] = True

    def __post_init__(self) -> None:
        brier_reward(0.0, None, self.form)

    async def score(self, groups: Sequence[RolloutGroup], ctx: ScoreContext) -> Sequence[Sequence[Score]]:
        """The verifier's verdicts with the reward.

        Raises:
            RewardError: the tasks' verifier reads no confidence.
        """
        return [[self._reward_score(score) for score in of_group] for of_group in await ctx.verify(groups)]

    def floor(self, ctx: ScoreContext) -> Mapping[str, float]:
        """What the verifier declares, and the lowest reward."""
        floors = dict(ctx.task_floor)
        return {"correct": floors.get("correct", floors.get("reward", 0.0)), **floors, "reward": _FORMS[self.form]}

    def _reward_score(self, score: Score) -> Score:
        if not score.valid:
            return score
        if "stated" not in score.components and CONFIDENCE not in score.columns:
            raise RewardError(
                f"BrierReward: the tasks' verifier gave {sorted(score.components)} and read no confidence; wrap the tasks in "
                "assay.tasks.WithConfidence"
            )
        c = min(1.0, max(0.0, score.primary))
        reward = brier_reward(c, score.columns.get(CONFIDENCE), self.form)
        components = {"correct": c, **score.components, "reward": reward}
        return replace(score, components=components, info=FrozenMap({**score.info, LEARNED: "reward"}))
