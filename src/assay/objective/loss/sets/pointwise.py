"""Losses that judge each rollout, or each step, by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from assay.core.errors import ConfigError, UnknownNameError
from assay.objective.loss.sets.base import Scored, SetLoss
from assay.objective.loss.sets.pairwise import PAIRS, pairs_of
from assay.objective.reducers import Partials, Sum

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Kto", "Likelihood", "ScoreSquare"]

_BASELINES = ("mean", "zero")
_OVER = ("tokens", "attempts")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSquare(SetLoss):
    """``(A / beta - s)^2 / 2``, averaged over rollouts or steps: the score is fitted to the advantage (Direct Advantage).

    The advantage is the credit chain's, of a step the mean over its tokens. Times beta it is ``-A s + beta s^2 / 2`` plus a
    constant: the policy gradient with a quadratic penalty on the score.

    Attributes:
        beta: at the optimum ``s = A / beta``.
    """

    beta: float = 0.01

    def __post_init__(self) -> None:
        if not self.beta > 0:
            raise ConfigError(f"ScoreSquare.beta={self.beta}; use a positive number")

    @property
    def grouped(self) -> bool:
        """What is compared, the credit chain compares."""
        return False

    @property
    def needs(self) -> tuple[str, ...]:
        """Advantages."""
        return ("advantage",)

    def total(self, scored: Scored) -> tuple[Tensor, float]:
        """Sum of the squares, and how many there are."""
        return (scored.advantage / self.beta - scored.score).square().sum() / 2, float(len(scored.score))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kto(SetLoss):
    """KTO: ``w+ sigmoid(-beta (s - z))`` of a desirable rollout, ``w- sigmoid(beta (s - z))`` of another; averaged over rollouts.

    ``z``, without gradient, estimates the divergence from the anchor: the mean score of the whole batch, at least 0. On rollouts
    of the current policy that is its unbiased estimate; KTO itself asks for mismatched answers, which a batch does not hold.

    Attributes:
        beta: factor of the scores.
        desirable, undesirable: weights ``w+`` and ``w-``.
        baseline: ``mean``, as above, or ``zero`` (APO-zero without pairs).
        threshold: reward from which a rollout is desirable.
    """

    beta: float = 0.1
    desirable: float = 1.0
    undesirable: float = 1.0
    baseline: str = "mean"
    threshold: float = 0.5

    def __post_init__(self) -> None:
        if not self.beta > 0:
            raise ConfigError(f"Kto.beta={self.beta}; use a positive number")
        if not self.desirable >= 0 or not self.undesirable >= 0 or not self.desirable + self.undesirable > 0:
            raise ConfigError(
                f"Kto(desirable={self.desirable}, undesirable={self.undesirable}): weights are not negative, and not both 0"
            )
        if self.baseline not in _BASELINES:
            raise UnknownNameError("baseline", self.baseline, _BASELINES)

    @property
    def grouped(self) -> bool:
        """Each rollout by itself."""
        return False

    @property
    def tells(self) -> tuple[str, ...]:
        """The baseline in force; the share of rollouts on their verdict's side of it, and how far they are on that side."""
        return ("baseline", "accuracy", "margin")

    def local(self, scored: Scored) -> Partials:
        """Sum and number of the scores."""
        return {"scores": Sum(np.array([float(scored.score.sum()), float(len(scored.score))]))}

    def total(self, scored: Scored) -> tuple[Tensor, float]:
        """Sum over the rollouts, and their number."""
        x = self.beta * (scored.score - self._baseline(scored))
        good = scored.reward >= self.threshold
        loss = (self.desirable * (-x).sigmoid()).where(good, self.undesirable * x.sigmoid())
        return loss.sum(), float(len(x))

    def numbers(self, scored: Scored) -> Mapping[str, float]:
        """``baseline``, ``accuracy``, ``margin``."""
        baseline = self._baseline(scored)
        above = scored.score - baseline
        margin = above.where(scored.reward >= self.threshold, -above)
        return {
            "baseline": baseline * len(margin),
            "accuracy": float((margin > 0).sum()),
            "margin": float(margin.sum()),
        }

    def _baseline(self, scored: Scored) -> float:
        total, count = scored.stats["scores"].values
        return max(float(total / count), 0.0) if self.baseline == "mean" else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Likelihood(SetLoss):
    """``-s`` of the rollouts that are the better one of a pair: supervised learning beside a pairwise loss (RPO, CPO, ORPO).

    Not a terminal: it says which rollouts to imitate, not which to prefer. Use it with an anchor of its own, mostly ``""``.

    Attributes:
        pairs: of which pairs, as in `assay.objective.loss.sets.pairwise.Pairwise`.
        over: ``tokens``: the mean over the tokens of these rollouts; ``attempts``: over the rollouts.
    """

    pairs: str = "all"
    over: str = "tokens"

    def __post_init__(self) -> None:
        if self.pairs not in PAIRS:
            raise UnknownNameError("pairs", self.pairs, PAIRS)
        if self.over not in _OVER:
            raise UnknownNameError("over", self.over, _OVER)

    @property
    def min_group(self) -> int:
        """A pair."""
        return 2

    @property
    def terminal(self) -> bool:
        """It is none."""
        return False

    @property
    def accepts(self) -> tuple[str, ...]:
        """Sums, when they are divided by the tokens."""
        return ("sum",) if self.over == "tokens" else ("sum", "mean")

    def total(self, scored: Scored) -> tuple[Tensor, float]:
        """Minus the sum of the scores, and the number of tokens or rollouts."""
        import torch

        chosen = scored.tokens.new_zeros(len(scored.tokens), dtype=torch.bool)
        chosen[pairs_of(scored, self.pairs).better] = True
        return -scored.score[chosen].sum(), float((scored.tokens[chosen] if self.over == "tokens" else chosen).sum())
