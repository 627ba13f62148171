"""The terminal for losses on sets of sequence scores, by a two-pass vector-Jacobian product.

For any ``Phi(s_1 .. s_n)`` on sequence scores, ``grad Phi = sum_i dPhi/ds_i * sum_t ds_i/dlogp_it grad logp_it``. So the first
pass (without gradient) gives the scores, ``dPhi/ds`` is taken on plain numbers, and the second pass sums the tokens'
log-probabilities under these weights in any micro-batches: no group and no pair needs to fit into one. ``-dPhi/ds_i`` is the
implicit advantage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from assay.core.batch import Batch
from assay.core.errors import ConfigError, PlanError, UnknownNameError
from assay.core.plan import Forward
from assay.objective.loss.base import LossTerm, View
from assay.objective.loss.sets.base import Mix, Scored, SetLoss
from assay.objective.loss.sets.groupwise import BalancedBce
from assay.objective.loss.sets.reading import Reading, read_scores
from assay.objective.reducers import F, Partials, Reducer, Sum

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ScoreLoss"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreLoss(LossTerm):
    """``coef * Phi(s)`` with ``s_i = scale * (sum or mean)_t c_t (logp_now - logp_ANCHOR)``, by two passes.

    Attributes:
        phi: loss on the scores, or a `Mix` of several; brings its own denominator.
        score: ``sum`` or ``mean`` over the rollout's tokens.
        anchor: policy that scores are relative to; empty for the log-probabilities themselves; pairs of name and weight for a
            weighted sum of several.
        scale: factor of the score (PACS calls it beta).
        discount: factor of a token's part from one token to the next: ``c_t = discount^t``, t counted from 0.
        tail: factor of the parts of those tokens that lie beyond the length of the group's shortest rollout (LD-DPO).
        segment: token column of whole numbers that parts a rollout into steps, each with a score of its own; for losses that
            do not compare rollouts.
    """

    phi: SetLoss | Mix = field(default_factory=BalancedBce)
    score: str = "sum"
    anchor: str | tuple[tuple[str, float], ...] = "old"
    scale: float = 1.0
    discount: float = 1.0
    tail: float = 1.0
    segment: str = ""
    label: str = "score"

    def __post_init__(self) -> None:
        LossTerm.__post_init__(self)
        if self.score not in ("sum", "mean"):
            raise UnknownNameError("score", self.score, ("sum", "mean"))
        if not self.scale > 0:
            raise ConfigError(f"ScoreLoss.scale={self.scale}; use a positive number")
        if not 0 < self.discount <= 1:
            raise ConfigError(f"ScoreLoss.discount={self.discount}; use a number in (0, 1], 1 for none")
        if not 0 <= self.tail <= 1:
            raise ConfigError(f"ScoreLoss.tail={self.tail}; use a number in [0, 1], 1 for none")
        names = [name for name, _ in self.weights]
        if "" in names or len(set(names)) < len(names) or not all(w and abs(w) < float("inf") for _, w in self.weights):
            raise ConfigError(f"ScoreLoss.anchor={self.anchor}; give different policies, each with a finite weight other than 0")
        if self.segment and self.tail != 1:
            raise ConfigError(
                f"ScoreLoss(segment={self.segment!r}, tail={self.tail}): steps have no common length; leave one out"
            )
        for _, part in self.parts:
            who = type(part).__name__
            if self.score not in part.accepts:
                raise ConfigError(f"ScoreLoss(score={self.score!r}): {who} as it is set needs score={part.accepts[0]!r}")
            if self.segment and part.grouped:
                raise ConfigError(
                    f"ScoreLoss(segment={self.segment!r}) scores the steps of a rollout one by one, but {who} compares "
                    "rollouts; use a loss such as ScoreSquare, or leave the segment out"
                )
        if self.aggregate is not None:
            raise PlanError(
                f"ScoreLoss(aggregate={self.aggregate}): {type(self.phi).__name__} brings its own denominator, an "
                f"aggregation would do nothing"
            )

    @property
    def parts(self) -> tuple[tuple[float, SetLoss], ...]:
        """The losses that phi consists of, each with its weight and its own denominator."""
        return self.phi.of if isinstance(self.phi, Mix) else ((1.0, self.phi),)

    @property
    def weights(self) -> tuple[tuple[str, float], ...]:
        """The anchors, each with its weight."""
        if isinstance(self.anchor, str):
            return ((self.anchor, 1.0),) if self.anchor else ()
        return self.anchor

    @property
    def terminal(self) -> bool:
        """When a loss in it teaches the policy from rewards."""
        return any(part.terminal for _, part in self.parts)

    @property
    def sparse(self) -> bool:
        """Rows of rollouts that add no gradient have no weight."""
        return True

    @property
    def needs(self) -> tuple[str, ...]:
        """Current and anchors' log-probabilities, the segments, and what the losses read."""
        columns = ["logp_now"] + [f"logp_{name}" for name, _ in self.weights] + ([self.segment] if self.segment else [])
        read = [name for _, part in self.parts for name in part.needs]
        return tuple(dict.fromkeys([*columns, *read, *(f.column for f in self.forwards)]))

    @property
    def forwards(self) -> tuple[Forward, ...]:
        """The losses' own."""
        return tuple(dict.fromkeys(forward for _, part in self.parts for forward in part.forwards))

    @property
    def reward(self) -> bool:
        """Labels come from the reward."""
        return True

    @property
    def reduces(self) -> bool:
        """Phi's count."""
        return True

    @property
    def averages(self) -> bool:
        """The loss on scores has its own denominator."""
        return False

    @property
    def grouped(self) -> bool:
        """When a loss in it compares rollouts, or lengths are compared."""
        return self.tail != 1 or any(part.grouped for _, part in self.parts)

    @property
    def min_group(self) -> int:
        """The losses' own."""
        return max(part.min_group for _, part in self.parts)

    @property
    def reports(self) -> bool:
        """When the first loss has numbers."""
        return bool(self.parts[0][1].tells)

    def prepare(self, batch: Batch, share: F, reducer: Reducer) -> Mapping[str, F]:
        """Scores, ``dPhi/ds``, and from it the weight of each token; ``value`` spreads Phi over the tokens with a weight,
        ``implicit`` is the advantage ``-dPhi/ds``; and the numbers of the first loss, over the whole batch.

        Raises:
            DataError: a filter gave rollouts other weights than 0 and 1.
        """
        reading = read_scores(
            batch,
            np.flatnonzero(share),
            mean=self.score == "mean",
            anchors=self.weights,
            scale=self.scale,
            discount=self.discount,
            tail=self.tail,
            segment=self.segment,
            confident=bool(self.forwards),
        )
        losses = [part for _, part in self.parts]
        asked = {f"{i}.{name}": value for i, part in enumerate(losses) for name, value in part.local(reading.scored).items()}
        stats = reducer.reduce(asked)
        seen = [replace(reading.scored, stats=_of_part(stats, i)) for i in range(len(losses))]
        made = [_differentiate(part, scored) for part, scored in zip(losses, seen, strict=True)]
        told = losses[0].numbers(seen[0]) if len(reading.here) else dict[str, float]()
        sums = {"count": np.array([count for _, _, count in made])}
        sums |= {f"told.{name}": np.array([float(told.get(name, 0.0))]) for name in losses[0].tells}
        merged = {name: total.values for name, total in reducer.reduce({n: Sum(v) for n, v in sums.items()}).items()}
        divisors = np.maximum(merged["count"], 1.0)
        weights = np.array([weight for weight, _ in self.parts]) / divisors
        phi = float(sum(w * total for w, (total, _, _) in zip(weights, made, strict=True)))
        slope = np.sum([w * s for w, (_, s, _) in zip(weights, made, strict=True)], axis=0)
        columns = self._columns(reading, phi, slope, np.zeros_like(share))
        return columns | {name: np.where(share, merged[f"told.{name}"] / divisors[0], 0.0) for name in losses[0].tells}

    def _columns(self, reading: Reading, phi: float, slope: F, nothing: F) -> dict[str, F]:
        """``weight``, ``value`` and ``implicit`` over all tokens."""
        here, each = reading.here, slope[reading.element]
        weight, value, implicit = nothing.copy(), nothing.copy(), nothing.copy()
        weight[here] = each * reading.jacobian
        implicit[here] = -self.coef * each
        carriers = here[weight[here] != 0] if weight.any() else here[:1]
        value[carriers] = phi / max(len(carriers), 1)
        return {"weight": weight, "value": value, "implicit": implicit}

    def apply(self, view: View) -> Tensor:
        """``[n]`` zeros with the gradient of the log-probabilities."""
        logp = view.live("logp_new")
        return logp - logp.detach()

    def total(self, view: View) -> Tensor:
        """The share of Phi that stands on these tokens, with the gradient of their weights."""
        return (view.own("weight") * self.apply(view)).sum() + view.own("value").sum()

    def report(self, view: View) -> Mapping[str, Tensor]:
        """The first loss's numbers, alike on all tokens."""
        return {name: view.own(name) for name in self.parts[0][1].tells}


def _of_part(stats: Partials, i: int) -> Partials:
    return {name.removeprefix(f"{i}."): value for name, value in stats.items() if name.startswith(f"{i}.")}


def _differentiate(phi: SetLoss, scored: Scored) -> tuple[float, F, float]:
    """A loss, its gradient at the scores, and its count."""
    import torch

    if not len(scored.score):
        return 0.0, np.zeros(0), 0.0
    s = scored.score.detach().requires_grad_()
    total, count = phi.total(replace(scored, score=s))
    if not total.requires_grad:  # nothing to compare
        return float(total), np.zeros(len(s)), count
    (slope,) = torch.autograd.grad(total, s)
    return float(total.detach()), slope.numpy(), count
