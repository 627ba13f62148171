"""A bonus for answers that need the order of events (TimeHC-RL)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError
from assay.core.score import LEARNED, Score
from assay.core.scoring import RolloutGroup, ScoreContext, StatelessScorer

__all__ = ["TemporalBonus"]

_MODES = (
    r"\s*<answer>.*</answer>\s*",
    r"\s*<glance>.*</glance>\s*<answer>.*</answer>\s*",
    r"\s*<think>.*</think>\s*<answer>.*</answer>\s*",
)
_TWIN = "shuffled"


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporalBonus(StatelessScorer):
    """TimeHC-RL: ``R = format + accuracy + alpha 1[p > mu p~]`` for right answers, ``p`` and ``p~`` the shares that are right
    with the events in order and shuffled. Wrong answers, and answers to the twin, have no bonus.

    ``format`` is 1 where the answer has one of the three forms (at once, after a glance, after deliberation), which the policy
    chooses, else -1; ``accuracy`` 2 or -1.5. Twins are made by ``Reinforce(guidance=ShuffledEvents(), filter=Admitted())``, which
    leaves them out of what is learned (column ``admitted``); a task without one
    has no bonus. A stage learns from ``reward``; accuracy remains ``correct``.

    Attributes:
        alpha, mu: as above.
        right, wrong: accuracy's two values.
        modes: regular expressions of which the whole answer must match one; the paper's tags are not known here.
        threshold: an answer is right when its ``correct`` reaches it.

    Raises:
        ConfigError: a mode is no regular expression, or there is none.

    Source: TimeHC-RL (arXiv 2505.24500).

    >>> TemporalBonus().alpha
    0.4
    """

    alpha: float = 0.4
    mu: float = 0.9
    right: float = 2.0
    wrong: float = -1.5
    modes: tuple[str, ...] = _MODES
    threshold: float = 1.0

    weighted_sum: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "modes", tuple(self.modes))
        try:
            for mode in self.modes:
                re.compile(mode)
        except re.error as error:
            raise ConfigError(f"TemporalBonus.modes={self.modes}: {error}") from None
        if not self.modes:
            raise ConfigError("TemporalBonus.modes is empty; give a regular expression that answers must match")

    async def score(self, groups: Sequence[RolloutGroup], ctx: ScoreContext) -> Sequence[Sequence[Score]]:
        """The verifier's verdicts with the three parts."""
        found = await ctx.verify(groups)
        shares = {g.context.key: self._share(scores) for g, scores in zip(groups, found, strict=True)}
        out: list[list[Score]] = []
        for g, scores in zip(groups, found, strict=True):
            own, twin = shares[g.context.key], shares.get(f"{g.context.key}/{_TWIN}")
            bonus = self.alpha if own is not None and twin is not None and own > self.mu * twin else 0.0
            admitted = float(not g.context.key.endswith(f"/{_TWIN}"))
            out.append([self._score(r.text, s, bonus, admitted) for r, s in zip(g.rollouts, scores, strict=True)])
        return out

    def floor(self, ctx: ScoreContext) -> Mapping[str, float]:
        """What the verifier declares, and the lowest of each part."""
        floors = dict(ctx.task_floor)
        low = min(self.right, self.wrong)
        own = {"format": -1.0, "accuracy": low, "temporal": 0.0, "reward": low - 1.0}
        return {"correct": floors.get("correct", floors.get("reward", 0.0)), **floors, **own}

    def _share(self, scores: Sequence[Score]) -> float | None:
        valid = [s.primary >= self.threshold for s in scores if s.valid]
        return sum(valid) / len(valid) if valid else None

    def _score(self, text: str, score: Score, bonus: float, admitted: float) -> Score:
        if not score.valid:
            return score
        right = score.primary >= self.threshold
        form = 1.0 if any(re.fullmatch(mode, text, re.DOTALL) for mode in self.modes) else -1.0
        accuracy, temporal = self.right if right else self.wrong, bonus if right else 0.0
        parts = {"format": form, "accuracy": accuracy, "temporal": temporal, "reward": form + accuracy + temporal}
        components = {"correct": score.primary, **score.components, **parts}
        columns = {**score.columns, "admitted": admitted}
        return replace(score, components=components, columns=columns, info=FrozenMap({**score.info, LEARNED: "reward"}))
