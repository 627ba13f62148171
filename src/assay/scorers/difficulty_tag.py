"""A tag that says how hard a question is, and shorter answers where it says easy (AdaCtrl)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError
from assay.core.rollout import Rollout
from assay.core.score import LEARNED, Score
from assay.core.scoring import RolloutGroup, ScoreContext, StatelessScorer

__all__ = ["DifficultyTag"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DifficultyTag(StatelessScorer):
    """AdaCtrl: ``R = outcome + length_weight * length + tag_weight * tag``; outcome is 1 for a right answer, -1 for a wrong one.

    ``tag``: an answer begins with ``easy`` or ``hard``; the label is easy where more than ``bar`` of the group is right. 1 for
    the label, 0 for the other, -1 for none. ``length``: ``(1 + cos(pi L / L_max)) / 2`` for right answers that begin with
    ``easy``, else 0; ``L`` tokens, ``L_max`` those of the group's longest. A budget is set at inference by writing the tag for
    the model. The penalty on overlong answers is `assay.objective.Overlong`.

    A stage learns from ``reward``; accuracy remains ``correct``.

    Attributes:
        easy, hard: the tags.
        bar: share of right answers above which a question is easy.
        tag_weight, length_weight: of the two bonuses.
        threshold: an answer is right when its ``correct`` reaches it.

    Raises:
        ConfigError: tags of which one begins with the other, or a share outside [0, 1].

    Source: AdaCtrl (arXiv 2505.18822).

    >>> DifficultyTag().easy
    '[Easy]'
    """

    easy: str = "[Easy]"
    hard: str = "[Hard]"
    bar: float = 0.625
    tag_weight: float = 0.5
    length_weight: float = 0.5
    threshold: float = 1.0

    weighted_sum: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.easy or not self.hard or self.easy.startswith(self.hard) or self.hard.startswith(self.easy):
            raise ConfigError(
                f"DifficultyTag: easy={self.easy!r}, hard={self.hard!r}; use tags that cannot be taken for each other"
            )
        if not 0.0 <= self.bar <= 1.0:
            raise ConfigError(f"DifficultyTag.bar={self.bar}; use a share in [0, 1]")

    async def score(self, groups: Sequence[RolloutGroup], ctx: ScoreContext) -> Sequence[Sequence[Score]]:
        """The verifier's verdicts with the two bonuses."""
        return [self._of_group(g, scores) for g, scores in zip(groups, await ctx.verify(groups), strict=True)]

    def floor(self, ctx: ScoreContext) -> Mapping[str, float]:
        """What the verifier declares, no tag, and -1."""
        floors = dict(ctx.task_floor)
        own = {"tag": -1.0, "length_bonus": 0.0, "reward": -1.0 - self.tag_weight}
        return {"correct": floors.get("correct", floors.get("reward", 0.0)), **floors, **own}

    def _of_group(self, group: RolloutGroup, scores: Sequence[Score]) -> list[Score]:
        valid = [s.primary >= self.threshold for s in scores if s.valid]
        easy = bool(valid) and sum(valid) / len(valid) > self.bar
        longest = max((r.length for r in group.rollouts), default=0)
        return [self._score(r, s, easy, longest) for r, s in zip(group.rollouts, scores, strict=True)]

    def _score(self, rollout: Rollout, score: Score, easy: bool, longest: int) -> Score:
        if not score.valid:
            return score
        right = score.primary >= self.threshold
        says_easy, says_hard = rollout.text.startswith(self.easy), rollout.text.startswith(self.hard)
        tag = -1.0 if not says_easy and not says_hard else float(says_easy == easy)
        length = 0.5 * (1.0 + math.cos(math.pi * rollout.length / longest)) if right and says_easy and longest else 0.0
        reward = (1.0 if right else -1.0) + self.length_weight * length + self.tag_weight * tag
        components = {"correct": score.primary, **score.components, "tag": tag, "length_bonus": length, "reward": reward}
        return replace(score, components=components, info=FrozenMap({**score.info, LEARNED: "reward"}))
