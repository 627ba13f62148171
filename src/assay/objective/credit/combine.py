"""Several reward components to one advantage, by how they vary: DVAO, log-tamed sums, scales by reward type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.plan import Scope
from assay.core.protocols import State
from assay.objective.credit.base import Credit, CreditTerm, check_behind
from assay.objective.credit.components import components_of
from assay.objective.credit.normalise import near_zero
from assay.objective.credit.stats import Keyed, each, identity, moments, peers
from assay.objective.reducers import F, Moments, Partials

__all__ = ["LogTamed", "ScaleByType", "VarianceAdaptive"]

_LOST = "it reads the components themselves, so that this would be lost: leave one of the two out"


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceAdaptive(CreditTerm):
    """DVAO: ``A_i = sum_k b_k (r_ik - mu_qk) / sum_k b_k sd_qk``: each component weighs as much as it varies in the group.

    That is ``sum_k v_k (r_ik - mu_qk) / sd_qk`` with ``v_k = b_k sd_qk / sum_l b_l sd_ql``, population deviations. It is never
    larger than the advantage of the summed reward over its deviation, and its mean square is at most 1. 0 where nothing varies.

    Attributes:
        weights: pairs of component and base weight ``b``; all components of the batch, with weight 1, when empty.
        eps: least ``sum_k b_k sd_qk`` that is divided by.

    Raises:
        ConfigError: a negative weight or eps.

    Source: DVAO (arXiv 2605.25604), Eq. 9; the abstract weighs by variances, the equation by deviations.
    """

    weights: tuple[tuple[str, float], ...] = ()
    eps: float = 1e-8

    kind: ClassVar[str] = "baseline"

    def __post_init__(self) -> None:
        if not self.eps >= 0 or any(weight < 0 for _, weight in self.weights):
            raise ConfigError(f"VarianceAdaptive(weights={self.weights}, eps={self.eps}): use no negative numbers")

    @property
    def scope(self) -> Scope:
        """A group."""
        return Scope.GROUP

    @property
    def min_group(self) -> int:
        """A spread needs two values."""
        return 2

    def check(self, before: Sequence[CreditTerm]) -> None:
        """Raises PlanError: it reads the components themselves."""
        check_behind(self, before, ("shape", "return"), _LOST)

    def local(self, credit: Credit) -> Partials:
        """Moments of each component per group."""
        return {name: peers(credit, values) for name, _, values in components_of(credit, self.weights, "VarianceAdaptive")}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """The weighted gaps over the weighted deviations."""
        gaps, spread = np.zeros(len(credit.reward)), np.zeros(len(credit.reward))
        for name, weight, values in components_of(credit, self.weights, "VarianceAdaptive"):
            m = each(credit, stats[name])
            sd = m.std(0)
            gaps += weight * near_zero(values - m.mean, sd)
            spread += weight * sd
        return credit.with_advantage(np.where(spread > self.eps, gaps / np.where(spread > self.eps, spread, 1.0), 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTamed(CreditTerm):
    """PaCo-RL's sum: a component that varies much for its size is replaced by ``log(1 + r)``: ``R = sum_k w_k f_k(r_k)``.

    ``f_k`` is ``log(1 + r)`` where ``sd_k / (mean_k + 1e-6)`` over the batch is above ``bar``, else ``r`` itself. Rewards
    must be 0 or more.

    Attributes:
        weights: pairs of component and weight; all components of the batch, with weight 1, when empty.
        bar: ``mean`` or ``median`` of the components' ratios, or ``constant``.
        value: only for ``constant``: the ratio itself.
        ddof: of the standard deviation; 1 as PyTorch's default, which the released code uses.

    Raises:
        UnknownNameError: another bar.
        ConfigError: a value without ``constant``, or the other way round.

    Source: PaCo-RL (row log-tamed aggregation), the released code.
    """

    weights: tuple[tuple[str, float], ...] = ()
    bar: str = "mean"
    value: float | None = None
    ddof: int = 1

    kind: ClassVar[str] = "shape"

    def __post_init__(self) -> None:
        if self.bar not in ("mean", "median", "constant"):
            raise UnknownNameError("bar of LogTamed", self.bar, ("mean", "median", "constant"))
        if (self.bar == "constant") != (self.value is not None) or self.ddof not in (0, 1):
            raise ConfigError(
                f"LogTamed(bar={self.bar!r}, value={self.value}, ddof={self.ddof}): a value belongs to bar='constant', and only "
                "there; ddof is 0 or 1"
            )

    @property
    def scope(self) -> Scope:
        """The batch."""
        return Scope.BATCH

    def check(self, before: Sequence[CreditTerm]) -> None:
        """Raises PlanError: it reads the components themselves."""
        check_behind(self, before, ("shape", "return", "baseline"), _LOST)

    def local(self, credit: Credit) -> Partials:
        """Moments of each component over the batch."""
        weights = None if credit.copies is None else credit.copies[credit.counted]
        return {
            name: moments(values[credit.counted], weights=weights)
            for name, _, values in components_of(credit, self.weights, "LogTamed")
        }

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """The sum, some of its components tamed.

        Raises:
            DataError: a reward below 0.
        """
        ratios = {name: float(m.std(self.ddof)[0] / (m.mean[0] + 1e-6)) for name, m in stats.items()}
        found = list(ratios.values())
        bar = self.value if self.value is not None else float(np.mean(found) if self.bar == "mean" else np.median(found))
        total = np.zeros(len(credit.reward))
        for name, weight, values in components_of(credit, self.weights, "LogTamed"):
            if (values[credit.counted] < 0).any():
                raise DataError(
                    f"LogTamed: the reward component {name!r} is {values[credit.counted].min()}; rewards must be >= 0"
                )
            total += weight * (np.log1p(np.maximum(values, 0.0)) if ratios[name] > bar else values)
        tamed = sum(ratio > bar for ratio in found)
        return credit.with_reward(total).with_metrics(credit_tamed=float(tamed))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleByType(CreditTerm):
    """TMN-Reweight: ``A_i = w_i (r_i - mu_q) / (sigma_m + eps)``: one scale per reward type, and a weight by difficulty.

    ``sigma_m`` is the root of the mean sample variance over the groups of type ``m``; so a group's own small spread is not blown
    up, as a group's deviation does. With ``mu'_q = alpha mu_q + (1 - alpha) mean_m mu`` and ``s_q`` the share of the group's
    rollouts above it, ``w_i = exp(gamma (1/2 - s_q))`` for rollouts above, ``exp(gamma (s_q - 1/2))`` for the others: rare
    successes and rare failures weigh more.

    Attributes:
        by: column of the rollouts that tells the type: ``arm``, ``domain``, or one of yours.
        alpha: share of the group's own mean in ``mu'``.
        gamma: strength of the weight by difficulty; 0 for none.
        eps: added to the scale.

    Raises:
        ConfigError: a number out of range.

    Source: GoLongRL (arXiv 2605.19577).
    """

    by: str = "arm"
    alpha: float = 0.8
    gamma: float = 1.0
    eps: float = 1e-6

    kind: ClassVar[str] = "baseline"

    def __post_init__(self) -> None:
        if not 0.0 <= self.alpha <= 1.0 or not self.eps >= 0 or not self.by:
            raise ConfigError(
                f"ScaleByType(by={self.by!r}, alpha={self.alpha}, eps={self.eps}): name a column; use alpha in [0, 1], eps >= 0"
            )

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """What tells the types apart."""
        return (self.by,)

    @property
    def scope(self) -> Scope:
        """The batch: the groups of a type."""
        return Scope.BATCH

    def local(self, credit: Credit) -> Partials:
        """Moments of the rewards per type and group."""
        here = credit.counted
        weights = None if credit.copies is None else credit.copies[here]
        return {"moments": Keyed.of(credit.reward[here], self._keys(credit)[here], weights)}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Scales and weighs."""
        found: Keyed = stats["moments"]
        m, types = found.moments, found.keys[:, 0]
        # a lone rollout has mean 0 and variance 1, as the source has it
        lone = m.count == 1
        mean, variance = np.where(lone, 0.0, m.mean), np.where(lone, 1.0, m.std(1) ** 2)
        own = found.at(self._keys(credit))
        keys = identity(np.asarray(credit.batch.rollout(self.by)))
        sigma, middle = (_by_type(keys, types, values) for values in (variance, mean))
        alone = own.count <= 1
        centre = np.where(alone, 0.0, own.mean)
        scale = np.sqrt(sigma)
        gap = near_zero(credit.reward - centre, scale)
        advantage = np.where(scale > 0, gap / np.where(scale > 0, scale + self.eps, 1.0), 0.0)
        above = credit.reward > self.alpha * centre + (1.0 - self.alpha) * middle
        share = each(credit, peers(credit, above.astype(np.float64))).mean
        weight = np.exp(self.gamma * np.where(above, 0.5 - share, share - 0.5))
        return credit.with_advantage(advantage * weight)

    def _keys(self, credit: Credit) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        return np.stack([identity(np.asarray(credit.batch.rollout(self.by))), credit.group], axis=1)


def _by_type(keys: np.ndarray[tuple[int], np.dtype[np.int64]], types: np.ndarray[tuple[int], np.dtype[np.int64]], values: F) -> F:
    """``[R]`` mean over the groups of each rollout's type; 0 where the type has no group that counts."""
    names, place = np.unique(types, return_inverse=True)
    means = Moments.of(values, place.astype(np.int64), len(names)).mean
    at = np.searchsorted(names, keys)
    known = (at < len(names)) & (names[np.minimum(at, len(names) - 1)] == keys) if len(names) else np.zeros(len(keys), np.bool_)
    return np.where(known, means[np.minimum(at, max(0, len(names) - 1))], 0.0) if len(names) else np.zeros(len(keys))
