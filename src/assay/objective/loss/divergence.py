"""f-divergences measured on the anchor's own samples (DPH-RL): mass-covering where a policy must not forget what it could do."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.core.errors import ConfigError, PlanError, UnknownNameError
from assay.core.sample import STREAMS
from assay.objective.loss.base import LossTerm, View

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["AnchorDivergence"]

_OWN = ("on_policy", "replay")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorDivergence(LossTerm):
    """``f(u)`` with ``u = pi / anchor`` per token, on samples that the *anchor* drew: its mean is an f-divergence, its gradient
    that of the divergence, with no ratio before it.

    =====================  =============================================  ==================================
    generator              ``f(u)``                                       the divergence
    =====================  =============================================  ==================================
    ``forward_kl``         ``u - 1 - log u``                              KL(anchor||pi)
    ``reverse_kl``         ``u log u - u + 1``                            KL(pi||anchor)
    ``js``                 ``u log u - (u + 1) log((u + 1) / 2)``         twice the Jensen-Shannon divergence
    ``alpha``              ``(u^(1-a) - (1-a) u - a) / (a (a - 1))``      alpha-divergence
    ``hellinger``          ``(sqrt u - 1)^2``                             squared Hellinger distance, up to 2
    ``chi2``               ``(u - 1)^2``                                  Pearson's
    ``total_variation``    ``|u - 1| / 2``                                up to 1; subgradient 0 at equality
    =====================  =============================================  ==================================

    Every one is 0 at ``u = 1`` and positive elsewhere, for each token. On the policy's own samples it would be another quantity:
    those streams are refused, use `Kl`.

    Attributes:
        generator: which.
        anchor: who drew the samples, with a column ``logp_ANCHOR``; stored with them or from a pass.
        alpha: only for ``alpha``: in (0, 1); towards 0 it is KL(pi||anchor), towards 1 KL(anchor||pi).
        clamp: bound on ``|log u|``; beyond it there is no gradient.
    """

    generator: str = field(default="forward_kl", kw_only=False)
    anchor: str = "ref"
    alpha: float | None = None
    clamp: float = 20.0
    streams: tuple[str, ...] = ("offline",)
    label: str = "divergence"

    def __post_init__(self) -> None:
        LossTerm.__post_init__(self)
        if self.generator != "alpha" and self.generator not in _GENERATORS:
            raise UnknownNameError("generator of an f-divergence", self.generator, [*_GENERATORS, "alpha"])
        if (self.generator == "alpha") != (self.alpha is not None):
            raise ConfigError(
                f"AnchorDivergence({self.generator!r}, alpha={self.alpha}): alpha belongs to generator='alpha' (DPH-RL: 0.2), "
                "and only there"
            )
        if self.alpha is not None and not 0 < self.alpha < 1:
            raise ConfigError(f"AnchorDivergence.alpha={self.alpha}; use a number in (0, 1), or a KL for the limits")
        if not self.clamp > 0:
            raise ConfigError(f"AnchorDivergence.clamp={self.clamp} leaves nothing; use a positive bound")
        own = [s for s in self.streams or STREAMS if s in _OWN]
        if own:
            raise PlanError(
                f"AnchorDivergence({self.generator!r}) is a divergence on samples of {self.anchor!r}, but the rows of {own} are "
                "the policy's own: name the anchor's streams, or use Kl"
            )

    @property
    def anchors(self) -> tuple[str, ...]:
        """The anchor."""
        return (self.anchor,)

    def apply(self, view: View) -> Tensor:
        """``[n]`` ``f(u)``."""
        x = self._log_u(view)
        if self.alpha is None:
            return _GENERATORS[self.generator](x)
        a = self.alpha
        return (((1 - a) * x).exp() - (1 - a) * x.exp() - a) / (a * (a - 1))

    def report(self, view: View) -> Mapping[str, Tensor]:
        """``kl_from_ANCHOR``: the estimate of KL(anchor||pi), whatever the generator."""
        return {f"kl_from_{self.anchor}": _forward_kl(self._log_u(view))}

    def _log_u(self, view: View) -> Tensor:
        return (view.live("logp_new") - view.logp(self.anchor)).clamp(-self.clamp, self.clamp)


def _forward_kl(x: Tensor) -> Tensor:
    return x.exp() - 1 - x


def _reverse_kl(x: Tensor) -> Tensor:
    u = x.exp()
    return u * x - u + 1


def _js(x: Tensor) -> Tensor:
    from torch.nn.functional import softplus

    u = x.exp()
    return u * x - (u + 1) * (softplus(x) - math.log(2))


def _hellinger(x: Tensor) -> Tensor:
    return ((x / 2).exp() - 1).square()


def _chi2(x: Tensor) -> Tensor:
    return (x.exp() - 1).square()


def _total_variation(x: Tensor) -> Tensor:
    return (x.exp() - 1).abs() / 2


_GENERATORS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "forward_kl": _forward_kl,
    "reverse_kl": _reverse_kl,
    "js": _js,
    "hellinger": _hellinger,
    "chi2": _chi2,
    "total_variation": _total_variation,
}
