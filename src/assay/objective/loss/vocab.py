"""Statistics of the next-token distribution: entropies, restricted and reweighted policies, means over the vocabulary.

Each is a number per position (`assay.core.vocab.VocabStat`). With gradient, a term names it in ``stats`` and reads its column
through `View.live`; without, a `Forward` fills a column with it. Divergences from another model stand in `loss.vocab_divergence`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from assay.core.errors import ConfigError
from assay.core.vocab import VocabStat

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "OUTSIDE",
    "ChoiceLogp",
    "Floor",
    "MaxLogp",
    "MeanLogp",
    "MinP",
    "PowerLogp",
    "SquaredMass",
    "Support",
    "SupportLogp",
    "TopKEntropy",
    "TopP",
    "standard",
]

OUTSIDE = -1e4
"""Stands for minus infinity: the log-probability of a token that a restricted policy does not have. Always test ``> OUTSIDE``."""

Tensors = Mapping[str, "Tensor"]

_CLOSE = 1e-6
"""A sum of probabilities that is so near to a mass has reached it: more than rounding in fp32."""

_NUCLEUS = 128
"""Most likely tokens among which a nucleus is looked for first: most are far smaller, and sorting a vocabulary is slow."""


def gather_ids(logp: Tensor, ids: Tensor) -> Tensor:
    """``[c]`` the entries of ``logp [c, V]`` at ``ids``."""
    return logp.gather(1, ids.unsqueeze(1)).squeeze(1)


# ---- of one distribution ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TopKEntropy(VocabStat):
    """``-sum p_v log p_v`` over the ``k`` most likely tokens: a lower bound of the entropy, exact with ``k`` the vocabulary.

    Attributes:
        k: tokens that are summed over.
    """

    k: int = field(default=20, kw_only=False)

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ConfigError(f"TopKEntropy.k={self.k}; sum over at least one token, e.g. 20")

    @property
    def kind(self) -> str:
        """``entropy_topK``."""
        return f"entropy_top{self.k}"

    def of(self, logp: Tensor, ids: Tensor, others: Tensors, columns: Tensors) -> Tensor:
        """``[c]`` truncated entropies."""
        most = logp.topk(min(self.k, logp.shape[1]), 1).values
        return -(most.exp() * most).sum(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanLogp(VocabStat):
    """``1/V sum_v log p_v``: the mean over the vocabulary (ROVER's value under the uniform policy)."""

    @property
    def kind(self) -> str:
        """``logp_mean``."""
        return "logp_mean"

    def of(self, logp: Tensor, ids: Tensor, others: Tensors, columns: Tensors) -> Tensor:
        """``[c]`` means."""
        return logp.mean(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxLogp(VocabStat):
    """``max_v log p_v``: the most likely token's log-probability."""

    @property
    def kind(self) -> str:
        """``logp_max``."""
        return "logp_max"

    def of(self, logp: Tensor, ids: Tensor, others: Tensors, columns: Tensors) -> Tensor:
        """``[c]`` largest log-probabilities."""
        return logp.amax(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceLogp(VocabStat):
    """``log p(argmax_v q_v)``: the log-probability of the token that another model likes best (B-Coder's conservative backup).

    Attributes:
        model: the other model.
    """

    model: str = field(default="ref", kw_only=False)

    @property
    def kind(self) -> str:
        """``logp_choice``."""
        return "logp_choice"

    @property
    def models(self) -> tuple[str, ...]:
        """The other model."""
        return (self.model,)

    def of(self, logp: Tensor, ids: Tensor, others: Tensors, columns: Tensors) -> Tensor:
        """``[c]`` log-probabilities."""
        return gather_ids(logp, others[self.model].argmax(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class SquaredMass(VocabStat):
    """``sum_v p_v^2``: the chance that two draws are alike, which the optimal token baseline weighs by."""

    @property
    def kind(self) -> str:
        """``sum_pi_squared``."""
        return "sum_pi_squared"

    def of(self, logp: Tensor, ids: Tensor, others: Tensors, columns: Tensors) -> Tensor:
        """``[c]`` sums."""
        return (2 * logp).exp().sum(1)


# ---- of a part of a distribution -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Support(ABC):
    """Base of the rules that keep a part of the vocabulary; the most likely token always stays."""

    @abstractmethod
    def mask(self, logp: Tensor) -> Tensor:
        """``[c, V]`` whether a token is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MinP(Support):
    """Keeps tokens with ``p >= kappa * max p``.

    Attributes:
        kappa: share of the largest probability; 0 keeps all.
    """

    kappa: float = field(default=0.02, kw_only=False)

    def __post_init__(self) -> None:
        if not 0 <= self.kappa <= 1:
            raise ConfigError(f"MinP.kappa={self.kappa} is a share of the largest probability; use a number in [0, 1]")

    def mask(self, logp: Tensor) -> Tensor:
        """``[c, V]`` whether a token is kept."""
        return logp.exp() >= self.kappa * logp.amax(1, keepdim=True).exp()


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor(Support):
    """Keeps tokens with ``p >= threshold``.

    Attributes:
        threshold: a probability.
    """

    threshold: float = field(default=0.01, kw_only=False)

    def __post_init__(self) -> None:
        if not 0 <= self.threshold < 1:
            raise ConfigError(f"Floor.threshold={self.threshold} is a probability; use a number in [0, 1)")

    def mask(self, logp: Tensor) -> Tensor:
        """``[c, V]`` whether a token is kept."""
        most = logp.amax(1, keepdim=True)
        return (logp.exp() >= self.threshold) | (logp == most)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopP(Support):
    """Keeps the smallest set of most likely tokens whose probabilities reach ``p`` (nucleus).

    Attributes:
        p: mass to reach; 1 keeps all.
        least: tokens that are kept at the least.
    """

    p: float = field(default=0.9, kw_only=False)
    least: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.p <= 1 or self.least < 1:
            raise ConfigError(f"TopP(p={self.p}, least={self.least}): use p in (0, 1] and least >= 1")

    def mask(self, logp: Tensor) -> Tensor:
        """``[c, V]`` whether a token is kept."""
        import torch

        if self.p == 1:
            return torch.ones_like(logp, dtype=torch.bool)
        size = logp.shape[1]
        some = min(size, max(self.least, _NUCLEUS))
        kept, rest = self._among(logp, some)
        if some < size and rest.any():
            kept[rest] = self._among(logp[rest], size)[0]
        return kept

    def _among(self, logp: Tensor, some: int) -> tuple[Tensor, Tensor]:
        """``[c, V]`` the set when the ``some`` most likely tokens hold it, and ``[c]`` whether they do not."""
        most, order = logp.topk(some, 1)
        reached = most.exp().cumsum(1)
        kept = reached - most.exp() < self.p - _CLOSE
        kept[:, : self.least] = True
        return kept.new_zeros(logp.shape).scatter(1, order, kept), reached[:, -1] < self.p - _CLOSE


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportLogp(VocabStat):
    """Log-probability of the drawn token under the policy restricted to a support and renormalised; `OUTSIDE` where the token is
    not in it.

    With the policy's own `MinP` support this is Lp-Reg's proxy; with another model's `TopP` support, NLPO's masked policy.

    Attributes:
        support: which tokens stay. The set carries no gradient.
        model: whose distribution decides; the policy's own when empty.
    """

    support: Support = field(default_factory=MinP)
    model: str = ""

    drawn: ClassVar[bool] = True

    @property
    def kind(self) -> str:
        """``logp_kept`` or ``logp_kept_MODEL``."""
        return f"logp_kept_{self.model}" if self.model else "logp_kept"

    @property
    def models(self) -> tuple[str, ...]:
        """The other model, if there is one."""
        return (self.model,) if self.model else ()

    def of(self, logp: Tensor, ids: Tensor, others: Tensors, columns: Tensors) -> Tensor:
        """``[c]`` log-probabilities."""
        kept = self.support.mask((others[self.model] if self.model else logp).detach())
        mass = logp.masked_fill(~kept, -math.inf).logsumexp(1)
        inside = kept.gather(1, ids.unsqueeze(1)).squeeze(1)
        return (gather_ids(logp, ids) - mass).where(inside, mass.new_tensor(OUTSIDE))


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerLogp(VocabStat):
    """Log-probability of the drawn token under ``q ~ a^phi``, renormalised over the vocabulary (RAPO's reweighted reference).

    Attributes:
        model: ``a``.
        power: token column of ``phi``.
    """

    model: str = field(default="ref", kw_only=False)
    power: str

    drawn: ClassVar[bool] = True

    @property
    def kind(self) -> str:
        """``logp_power_MODEL``."""
        return f"logp_power_{self.model}"

    @property
    def models(self) -> tuple[str, ...]:
        """``a``."""
        return (self.model,)

    @property
    def needs(self) -> tuple[str, ...]:
        """``phi``."""
        return (self.power,)

    def of(self, logp: Tensor, ids: Tensor, others: Tensors, columns: Tensors) -> Tensor:
        """``[c]`` log-probabilities, without gradient."""
        return gather_ids(power_distribution(others[self.model], columns[self.power]), ids)


def power_distribution(logp: Tensor, phi: Tensor) -> Tensor:
    """``[c, V]`` log-probabilities of the distribution that is proportional to ``exp(logp)^phi``, ``phi [c]``."""
    return (phi.unsqueeze(1) * logp).log_softmax(1)


_STANDARD: tuple[VocabStat, ...] = (MeanLogp(), MaxLogp(), ChoiceLogp(), SquaredMass())


def standard(name: str) -> VocabStat | None:
    """The statistic that a column's name alone stands for: ``logp_mean``, ``logp_max``, ``logp_choice``, ``sum_pi_squared``.

    >>> standard("logp_mean")
    MeanLogp(label='')
    >>> standard("logp_proxy") is None
    True
    """
    return next((s for s in _STANDARD if s.name == name), None)
