"""Losses that compare all rollouts of a group at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.core.errors import ConfigError, UnknownNameError
from assay.objective.loss.sets.base import Scored, SetLoss, group_mean, groups_of

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["BalancedBce", "GroupSoftmax", "RewardGaps"]

_PSI = ("leave_one_out", "raw", "group_norm")
_CLASSES = ("", "positive", "negative")
_FORMS = ("sum", "product")


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancedBce(SetLoss):
    """PACS: binary cross-entropy of ``psi(s)`` against the verifier's label, averaged over rollouts.

    ``psi`` is the score minus the mean score of the *others* in the group (``leave_one_out``), the score itself (``raw``), or
    the score minus the group's mean, over its standard deviation + ``eps`` (``group_norm``; both with gradient). With
    ``balance`` a rollout weighs ``n / (2 n_class)`` within its group; in a group of one class all weigh 1.

    Attributes:
        psi: how scores are compared.
        balance: class weights.
        threshold: reward from which the label is 1.
        only: ``positive`` or ``negative``: rollouts of the other class weigh 0 and stay in the divisor.
        mixed: groups of one class are left out of loss and divisor (the cross-entropy form of REAL).
        eps: of ``group_norm``. Where all scores of a group are equal, as before the first step, its slope is ``1 / eps``.
    """

    psi: str = "leave_one_out"
    balance: bool = True
    threshold: float = 0.5
    only: str = ""
    mixed: bool = False
    eps: float = 1e-6

    def __post_init__(self) -> None:
        if self.psi not in _PSI:
            raise UnknownNameError("psi", self.psi, _PSI)
        if self.only not in _CLASSES:
            raise UnknownNameError("class", self.only, _CLASSES)
        if self.only and self.balance:
            raise ConfigError(f"BalancedBce(only={self.only!r}) has one class, nothing is left to balance; set balance=False")
        if not self.eps > 0:
            raise ConfigError(f"BalancedBce.eps={self.eps}; use a positive number")

    @property
    def min_group(self) -> int:
        """Two, when others are needed."""
        return 1 if self.psi == "raw" and not self.mixed else 2

    @property
    def grouped(self) -> bool:
        """Unless each rollout is judged by itself."""
        return self.psi != "raw" or self.balance or self.mixed

    def total(self, scored: Scored) -> tuple[Tensor, float]:
        """Weighted sum of the cross-entropies, and the number of rollouts."""
        from torch.nn.functional import binary_cross_entropy_with_logits as bce

        label = (scored.reward >= self.threshold).to(scored.score.dtype)
        share, size = group_mean(label, scored.group)
        both = (share > 0) & (share < 1)
        weight = label.new_ones(len(label))
        if self.balance:
            of_class = (share * label + (1 - share) * (1 - label)) * size
            weight = (size / (2 * of_class)).where(both, weight)
        if self.only:
            weight = label if self.only == "positive" else 1 - label
        count = float(len(label))
        if self.mixed:
            weight, count = weight * both, float(both.sum())
        return bce(self._psi(scored), label, weight=weight, reduction="sum"), count

    def _psi(self, scored: Scored) -> Tensor:
        """``[k]`` compared scores."""
        if self.psi == "raw":
            return scored.score
        mean, size = group_mean(scored.score, scored.group)
        gap = scored.score - mean
        if self.psi == "leave_one_out":
            return size / (size - 1).clamp(min=1) * gap
        square, _ = group_mean(gap.square(), scored.group)
        variance = square * size / (size - 1).clamp(min=1)
        spread = variance.where(variance > 0, 1.0).sqrt() * (variance > 0)
        return gap / (spread + self.eps)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSoftmax(SetLoss):
    """REAL: per group ``log(1 + sum_+ exp(-s/tau)) + log(1 + sum_- exp(s/tau))``, averaged over groups.

    Groups of one class add nothing and stay in the divisor.

    Attributes:
        tau: temperature; ``1 / tau`` bounds a rollout's gradient weight.
        threshold: reward from which a rollout is positive.
        form: ``sum``, as above, or ``product``: ``log(1 + sum_+ exp(-s/tau) * sum_- exp(s/tau))``, which only compares the
            classes (circle loss).
    """

    tau: float = 0.5
    threshold: float = 0.5
    form: str = "sum"

    def __post_init__(self) -> None:
        if not self.tau > 0:
            raise ConfigError(f"GroupSoftmax.tau={self.tau}; use a positive temperature")
        if self.form not in _FORMS:
            raise UnknownNameError("form", self.form, _FORMS)

    @property
    def min_group(self) -> int:
        """A group needs both classes."""
        return 2

    def total(self, scored: Scored) -> tuple[Tensor, float]:
        """Sum over the mixed groups, and the number of all groups."""
        import torch
        from torch.nn.functional import softplus

        s, good = scored.score / self.tau, scored.reward >= self.threshold
        zero = s.new_zeros(1)
        parts = [s.sum() * 0]
        groups = groups_of(scored.group)
        for members in groups:
            up, down = s[members[good[members]]], s[members[~good[members]]]
            if not len(up) or not len(down):
                continue
            if self.form == "product":
                parts.append(softplus(torch.logsumexp(-up, 0) + torch.logsumexp(down, 0)))
            else:
                parts += [torch.logsumexp(torch.cat([zero, x]), 0) for x in (-up, down)]
        return torch.stack(parts).sum(), float(len(groups))


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardGaps(SetLoss):
    """CoPG: per group ``1/(k - 1) * sum_{i<j} ((R_i - R_j) - beta (s_i - s_j))^2``, averaged over the groups of two and more.

    Equal rewards count too: they pull the scores together. In closed form ``k`` times the sample variance of ``R - beta s``; at
    ``s = 0`` the implicit advantage is ``2 beta k/(k - 1) (R - mean)``.

    Attributes:
        beta: at the optimum ``beta (s_i - s_j) = R_i - R_j``.
    """

    beta: float = 0.1

    def __post_init__(self) -> None:
        if not self.beta > 0:
            raise ConfigError(f"RewardGaps.beta={self.beta}; use a positive number")

    @property
    def min_group(self) -> int:
        """A pair."""
        return 2

    def total(self, scored: Scored) -> tuple[Tensor, float]:
        """Sum over the groups, and the number of those with a pair."""
        left = scored.reward - self.beta * scored.score
        mean, size = group_mean(left, scored.group)
        some = size > 1
        parts = (left - mean).square() * size / (size - 1).clamp(min=1)
        return parts[some].sum(), float((some / size).sum())
