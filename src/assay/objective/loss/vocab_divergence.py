"""Divergences between the policy and another model, summed over the whole vocabulary.

A sampled estimate (`assay.objective.Kl`) knows the drawn token alone; these know both distributions, so their gradient is that of
the divergence itself at every position, without ratio and without variance.
"""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.vocab import VocabStat
from assay.objective.loss.vocab import Tensors, power_distribution

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["AlphaDivergence", "FDivergence", "FullKl", "Jsd", "ModelStat", "PowerKl"]

_UNDER = ("policy", "model")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStat(VocabStat, ABC):
    """Base of statistics of the policy and one other model.

    Attributes:
        model: the other model: ``ref``, ``teacher``, ...
    """

    model: str = field(default="ref", kw_only=False)

    @property
    def models(self) -> tuple[str, ...]:
        """The other model."""
        return (self.model,)


@dataclass(frozen=True, slots=True, kw_only=True)
class FullKl(ModelStat):
    """``KL(pi || a) = sum_v pi_v log(pi_v / a_v)``, or ``KL(a || pi)``.

    Attributes:
        under: whose expectation it is: ``policy`` for KL(pi || a), ``model`` for KL(a || pi).
    """

    under: str = "policy"

    def __post_init__(self) -> None:
        if self.under not in _UNDER:
            raise UnknownNameError("side of the divergence", self.under, _UNDER)

    @property
    def kind(self) -> str:
        """``kl_pi_MODEL`` or ``kl_MODEL_pi``."""
        return f"kl_pi_{self.model}" if self.under == "policy" else f"kl_{self.model}_pi"

    def of(self, logp: Tensor, ids: Tensor, others: Tensors, columns: Tensors) -> Tensor:
        """``[c]`` divergences."""
        other = others[self.model]
        return _kl(logp, other) if self.under == "policy" else _kl(other, logp)


@dataclass(frozen=True, slots=True, kw_only=True)
class Jsd(ModelStat):
    """Generalised Jensen-Shannon divergence ``beta KL(a || m) + (1 - beta) KL(pi || m)``, ``m = beta a + (1 - beta) pi`` (GKD).

    ``beta = 1/2`` is the Jensen-Shannon divergence. At the ends the formula is 0; as in GKD, 0 stands for KL(a || pi) and 1 for
    KL(pi || a), the limits of the divergence over ``beta`` and over ``1 - beta``.

    Attributes:
        beta: weight of the other model, in [0, 1].
    """

    beta: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.beta <= 1:
            raise ConfigError(f"Jsd.beta={self.beta} is a weight; use a number in [0, 1]")

    @property
    def kind(self) -> str:
        """``jsd_MODEL``."""
        return f"jsd_{self.model}"

    def of(self, logp: Tensor, ids: Tensor, others: Tensors, columns: Tensors) -> Tensor:
        """``[c]`` divergences."""
        other = others[self.model]
        if self.beta in (0, 1):
            return _kl(logp, other) if self.beta else _kl(other, logp)
        mixed = (other + math.log(self.beta)).logaddexp(logp + math.log1p(-self.beta))
        return self.beta * _kl(other, mixed) + (1 - self.beta) * _kl(logp, mixed)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlphaDivergence(ModelStat):
    """``(sum_v pi_v^(1 - alpha) a_v^alpha - 1) / (alpha (alpha - 1))`` (DPH-RL).

    KL(pi || a) as alpha goes to 0, KL(a || pi) as it goes to 1.

    Attributes:
        alpha: in (0, 1).
    """

    alpha: float = 0.2

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise ConfigError(f"AlphaDivergence.alpha={self.alpha}; use a number in (0, 1), or FullKl for the limits")

    @property
    def kind(self) -> str:
        """``alpha_MODEL``."""
        return f"alpha_{self.model}"

    def of(self, logp: Tensor, ids: Tensor, others: Tensors, columns: Tensors) -> Tensor:
        """``[c]`` divergences."""
        a = self.alpha
        return (((1 - a) * logp + a * others[self.model]).exp().sum(1) - 1) / (a * (a - 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class FDivergence(ModelStat):
    """``sum_v a_v f(u_v)`` with ``u = pi / a``, for a named generator ``f``.

    ========================  =======================================  ==================================
    generator                 ``f(u)``                                 the divergence
    ========================  =======================================  ==================================
    ``kl``                    ``u log u``                              KL(pi || a)
    ``reverse_kl``            ``-log u``                               KL(a || pi)
    ``js``                    ``u log u - (u + 1) log((u + 1) / 2)``   twice the Jensen-Shannon divergence
    ``hellinger``             ``(sqrt u - 1)^2``                       squared Hellinger distance, up to 2
    ``total_variation``       ``|u - 1| / 2``                          up to 1; subgradient 0 at equality
    ``chi2``                  ``(u - 1)^2``                            Pearson's
    ========================  =======================================  ==================================

    Attributes:
        generator: which.
    """

    generator: str = "js"

    def __post_init__(self) -> None:
        if self.generator not in _GENERATORS:
            raise UnknownNameError("generator of an f-divergence", self.generator, _GENERATORS)

    @property
    def kind(self) -> str:
        """``f_GENERATOR_MODEL``."""
        return f"f_{self.generator}_{self.model}"

    def of(self, logp: Tensor, ids: Tensor, others: Tensors, columns: Tensors) -> Tensor:
        """``[c]`` divergences."""
        return _GENERATORS[self.generator](logp, others[self.model])


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerKl(ModelStat):
    """``KL(q || pi)`` with ``q ~ a^phi``, renormalised over the vocabulary (RAPO, without sampling).

    Attributes:
        power: token column of ``phi``.
    """

    power: str

    @property
    def kind(self) -> str:
        """``kl_power_MODEL_pi``."""
        return f"kl_power_{self.model}_pi"

    @property
    def needs(self) -> tuple[str, ...]:
        """``phi``."""
        return (self.power,)

    def of(self, logp: Tensor, ids: Tensor, others: Tensors, columns: Tensors) -> Tensor:
        """``[c]`` divergences."""
        return _kl(power_distribution(others[self.model], columns[self.power]), logp)


def _kl(p: Tensor, q: Tensor) -> Tensor:
    """``[c]`` ``sum_v p (log p - log q)`` of log-probabilities ``[c, V]``."""
    return (p.exp() * (p - q)).sum(1)


def _js(p: Tensor, q: Tensor) -> Tensor:
    middle = p.logaddexp(q) - math.log(2)
    return _kl(p, middle) + _kl(q, middle)


def _hellinger(p: Tensor, q: Tensor) -> Tensor:
    return ((p / 2).exp() - (q / 2).exp()).square().sum(1)


def _total_variation(p: Tensor, q: Tensor) -> Tensor:
    return (p.exp() - q.exp()).abs().sum(1) / 2


def _chi2(p: Tensor, q: Tensor) -> Tensor:
    return (2 * p - q).exp().sum(1) - 1


def _reverse_kl(p: Tensor, q: Tensor) -> Tensor:
    return _kl(q, p)


_GENERATORS: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "kl": _kl,
    "reverse_kl": _reverse_kl,
    "js": _js,
    "hellinger": _hellinger,
    "total_variation": _total_variation,
    "chi2": _chi2,
}
