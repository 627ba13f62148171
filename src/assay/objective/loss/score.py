"""The terminal for losses on sets of sequence scores, by a two-pass vector-Jacobian product.

For any ``Phi(s_1 .. s_n)`` on sequence scores, ``grad Phi = sum_i dPhi/ds_i * sum_t grad logp_it``. So the first pass (without
gradient)
gives the scores, ``dPhi/ds`` is taken on plain numbers, and the second pass sums ``dPhi/ds_i * logp_it`` in any micro-batches:
no group
needs to fit into one. ``-dPhi/ds_i`` is the attempt's implicit advantage.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.errors import ConfigError, PlanError, UnknownNameError
from assay.objective.loss.base import LossTerm, View
from assay.objective.reduce import F, Reducer, Sum, tally

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["BalancedBce", "GroupSoftmax", "ScoreLoss", "SetLoss", "group_mean"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetLoss(ABC):
    """Base of losses on the scores of whole groups."""

    @property
    def min_group(self) -> int:
        """Attempts that a group must have."""
        return 1

    @abstractmethod
    def total(self, scores: Tensor, reward: Tensor, group: Tensor) -> tuple[Tensor, float]:
        """The loss, summed over this rank's attempts, groups or pairs, and how many there were.

        Args:
            scores: ``[k]`` float64 with gradient.
            reward: ``[k]`` rewards.
            group: ``[k]`` group numbers, ``0 .. groups - 1``.

        Returns:
            The sum and the count that it is to be divided by (after adding both over ranks).
        """


def group_mean(values: Tensor, group: Tensor) -> tuple[Tensor, Tensor]:
    """``[k]`` each value's group mean, and the group's size."""
    groups = int(group.max()) + 1
    size = values.new_zeros(groups).index_add(0, group, values.new_ones(len(values)))
    total = values.new_zeros(groups).index_add(0, group, values)
    return (total / size)[group], size[group]


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancedBce(SetLoss):
    """PACS: binary cross-entropy of ``psi(s)`` against the verifier's label, averaged over attempts.

    ``psi`` is the score minus the mean score of the *others* in the group (``leave_one_out``), or the score itself (``raw``).
    With
    ``balance`` an attempt weighs ``n / (2 n_class)`` within its group; in a group of one class all weigh 1.

    Attributes:
        psi: how scores are compared.
        balance: class weights.
        threshold: reward from which the label is 1.
    """

    psi: str = "leave_one_out"
    balance: bool = True
    threshold: float = 0.5

    def __post_init__(self) -> None:
        if self.psi not in ("leave_one_out", "raw"):
            raise UnknownNameError("psi", self.psi, ("leave_one_out", "raw"))

    @property
    def min_group(self) -> int:
        """Two, when others are needed."""
        return 2 if self.psi == "leave_one_out" else 1

    def total(self, scores: Tensor, reward: Tensor, group: Tensor) -> tuple[Tensor, float]:
        """Weighted sum of the cross-entropies, and the number of attempts."""
        from torch.nn.functional import binary_cross_entropy_with_logits as bce

        label = (reward >= self.threshold).to(scores.dtype)
        mean, size = group_mean(scores, group)
        psi = scores if self.psi == "raw" else size / (size - 1).clamp(min=1) * (scores - mean)
        share, _ = group_mean(label, group)
        of_class = (share * label + (1 - share) * (1 - label)) * size
        mixed = (share > 0) & (share < 1)
        weight = (size / (2 * of_class)).where(mixed, scores.new_ones(())) if self.balance else None
        return bce(psi, label, weight=weight, reduction="sum"), float(len(scores))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSoftmax(SetLoss):
    """REAL: per group ``log(1 + sum_+ exp(-s/tau)) + log(1 + sum_- exp(s/tau))``, averaged over groups.

    Groups of one class add nothing and stay in the divisor.

    Attributes:
        tau: temperature; ``1 / tau`` bounds an attempt's gradient weight.
        threshold: reward from which an attempt is positive.
    """

    tau: float = 0.5
    threshold: float = 0.5

    def __post_init__(self) -> None:
        if not self.tau > 0:
            raise ConfigError(f"GroupSoftmax.tau={self.tau}; use a positive temperature")

    @property
    def min_group(self) -> int:
        """A group needs both classes."""
        return 2

    def total(self, scores: Tensor, reward: Tensor, group: Tensor) -> tuple[Tensor, float]:
        """Sum over the mixed groups, and the number of all groups."""
        import torch

        good = reward >= self.threshold
        parts: list[Tensor] = [scores.sum() * 0]
        groups = int(group.max()) + 1
        for g in range(groups):
            up, down = scores[(group == g) & good], scores[(group == g) & ~good]
            if len(up) and len(down):
                zero = scores.new_zeros(1)
                parts += [torch.logsumexp(torch.cat([zero, x]), 0) for x in (-up / self.tau, down / self.tau)]
        return torch.stack(parts).sum(), float(groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreLoss(LossTerm):
    """``coef * Phi(s)`` with ``s_i = scale * (sum or mean)_t (logp_now - logp_ANCHOR)``, by two passes.

    Attributes:
        phi: loss on the scores; brings its own denominator.
        score: ``sum`` or ``mean`` over the attempt's tokens.
        anchor: policy that scores are relative to; empty for the log-probabilities themselves.
        scale: factor of the score (PACS calls it beta).
    """

    phi: SetLoss = field(default_factory=BalancedBce)
    score: str = "sum"
    anchor: str = "old"
    scale: float = 1.0
    label: str = "score"

    def __post_init__(self) -> None:
        LossTerm.__post_init__(self)
        if self.score not in ("sum", "mean"):
            raise UnknownNameError("score", self.score, ("sum", "mean"))
        if not self.scale > 0:
            raise ConfigError(f"ScoreLoss.scale={self.scale}; use a positive number")
        if self.aggregate is not None:
            raise PlanError(
                f"ScoreLoss(aggregate={self.aggregate}): {type(self.phi).__name__} brings its own denominator, an "
                f"aggregation would do nothing"
            )

    @property
    def terminal(self) -> bool:
        """It is one."""
        return True

    @property
    def sparse(self) -> bool:
        """Rows whose groups add neither loss nor gradient have no weight."""
        return True

    @property
    def needs(self) -> tuple[str, ...]:
        """The anchor's log-probabilities."""
        return (f"logp_{self.anchor}",) if self.anchor else ()

    @property
    def reward(self) -> bool:
        """Labels come from the reward."""
        return True

    @property
    def passes(self) -> int:
        """Scores first."""
        return 2

    @property
    def reduces(self) -> bool:
        """Phi's count."""
        return True

    @property
    def min_group(self) -> int:
        """The loss's own."""
        return self.phi.min_group

    def prepare(self, batch: Batch, share: F, reducer: Reducer) -> Mapping[str, F]:
        """Scores, ``dPhi/ds``, and from it the weight of each token; ``value`` spreads Phi over the tokens."""
        here = np.flatnonzero(share)
        if not len(here):
            reducer.reduce({"count": Sum(np.zeros(1))})
            return {"weight": np.zeros_like(share), "value": np.zeros_like(share)}
        owner = np.repeat(np.asarray(batch.rows["rollout"], np.int64), batch.lengths)[here]
        members, of_token = np.unique(owner, return_inverse=True)
        jacobian = np.full(len(members), self.scale)
        if self.score == "mean":
            jacobian = self.scale / np.asarray(batch.rollout("tokens"), np.float64)[members]
        gap = np.asarray(batch.token("logp_now"), np.float64)[here]
        if self.anchor:
            gap = gap - np.asarray(batch.token(f"logp_{self.anchor}"), np.float64)[here]
        scores = tally(of_token, gap) * jacobian
        phi, slope, count = self._differentiate(scores, batch, members)
        divisor = max(float(reducer.reduce({"count": Sum(np.array([count]))})["count"].values[0]), 1.0)
        weight, value = np.zeros_like(share), np.zeros_like(share)
        weight[here] = (slope * jacobian)[of_token] / divisor
        value[here] = phi / divisor / len(here)
        return {"weight": weight, "value": value}

    def _differentiate(self, scores: F, batch: Batch, members: NDArray[np.int64]) -> tuple[float, F, float]:
        """Phi, its gradient at the scores, and its count."""
        import torch

        s = torch.tensor(scores, dtype=torch.float64, requires_grad=True)
        reward = torch.tensor(np.asarray(batch.rollout("reward"), np.float64)[members])
        group = torch.tensor(np.unique(batch.rollout("group")[members], return_inverse=True)[1])
        total, count = self.phi.total(s, reward, group)
        (slope,) = torch.autograd.grad(total, s)
        return float(total.detach()), slope.numpy(), count

    def apply(self, view: View) -> Tensor:
        """``[n]`` zeros with the gradient of the log-probabilities."""
        logp = view.live("logp_new")
        return logp - logp.detach()

    def total(self, view: View) -> Tensor:
        """The share of Phi that stands on these tokens, with the gradient of their weights."""
        return (view.own("weight") * self.apply(view)).sum() + view.own("value").sum()
