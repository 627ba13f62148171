"""Ratios that are more than a quotient: clipped inside a mean, against a mixture, against an interpolated policy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.core.errors import ConfigError
from assay.objective.loss.base import View
from assay.objective.loss.ratio import Ratio
from assay.objective.loss.units import pool_detached

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["GeoMean", "Interpolated", "Mixture"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GeoMean(Ratio):
    """GMPO's ratio: the geometric mean of a rollout's token ratios, each clipped in log space on the side where the policy has
    already moved enough.

    ``z_t = min(l_t, high)`` where ``A_t > 0``, ``max(l_t, -low)`` where ``A_t < 0``, with ``l = logp_new - logp_ANCHOR``;
    ``s = exp(mean_t z_t)`` for all tokens, ``g_t = s`` where ``z_t = l_t``, else 0. It is its own trust region: ``trust=None``.

    Attributes:
        low, high: bounds of the log-ratio, in nats.

    >>> from assay.objective.loss.ratio_kinds import GeoMean
    >>> GeoMean(low=0.3).scope
    <Scope.SEQUENCE: 'sequence'>
    """

    level: str = field(default="sequence_mean", init=False, repr=False)
    low: float = 0.4
    high: float = 0.4

    def __post_init__(self) -> None:
        Ratio.__post_init__(self)
        if not self.low >= 0 or not self.high >= 0:
            raise ConfigError(f"GeoMean(low={self.low}, high={self.high}): bounds of a log-ratio around 0; use numbers >= 0")

    def of(self, view: View) -> Tensor:
        """``[n]`` the mean's value; the gradient of a token's own log-probability where that is not clipped."""
        logp = view.live("logp_new")
        own = (logp - logp.detach()) * (~self.outside(view)).to(logp.dtype)
        return pool_detached(view, self._clip_ratio, self.level).exp() * own.exp()

    def outside(self, view: View) -> Tensor:
        """``[n]`` tokens that are clipped."""
        return self._clip_ratio(view) != view.log_ratio(self.anchor)

    def _clip_ratio(self, view: View) -> Tensor:
        log_ratio, advantage = view.log_ratio(self.anchor), view.column("advantage")
        upper = log_ratio.clamp(max=self.high).where(advantage > 0, log_ratio)
        return log_ratio.clamp(min=-self.low).where(advantage < 0, upper)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture(Ratio):
    """RL-PLUS's ratio for tokens that another policy wrote: ``2 pi / (pi_ANCHOR + pi_hat)``, ``pi_hat = (1 - share) pi_ANCHOR +
    share * uniform``.

    ``pi_hat`` guesses at the unknown writer, so the ratio stays below ``2 / (share * uniform)`` however unlikely the token was.

    Attributes:
        uniform: probability that the uninformed part gives to every token: 1 as in the released code; one over the vocabulary's
            size as the paper reads.
        share: of the uninformed part.
    """

    level: str = field(default="token", init=False, repr=False)
    uniform: float = 1.0
    share: float = 0.5

    def __post_init__(self) -> None:
        Ratio.__post_init__(self)
        if not 0 < self.uniform <= 1 or not 0 < self.share <= 1:
            raise ConfigError(
                f"Mixture(uniform={self.uniform}, share={self.share}): a probability and a share, both in (0, 1]; without an "
                "uninformed part it is Ratio('token')"
            )

    def of(self, view: View) -> Tensor:
        """``[n]`` ratios."""
        theirs = (2 - self.share) * view.logp(self.anchor).exp() + self.share * self.uniform
        return 2 * view.live("logp_new").exp() / theirs


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpolated(Ratio):
    """Decoupled PPO without the pass for the recent policy (AReaL's log-linear approximation): that policy is taken to lie on the
    line from the sampler's log-probabilities to the current ones.

    ``log pi_prox = logp_engine + a (sg(logp_new) - logp_engine)``, ``a = (s - 1) / s`` for a token that ``s`` updates ago was
    sampled and 0 for ``s <= 1``. The ratio is ``pi / pi_prox``; with it comes the factor ``min(pi_prox / pi_engine, cap)``.

    Attributes:
        column: token column with ``s``, current version minus the sampler's; the rows bring it.
        cap: largest factor.
        mask: 0 instead of ``cap`` for tokens above it.
    """

    level: str = field(default="token", init=False, repr=False)
    anchor: str = field(default="engine", init=False, repr=False)
    column: str = "staleness"
    cap: float = 5.0
    mask: bool = False

    def __post_init__(self) -> None:
        Ratio.__post_init__(self)
        if not self.cap > 0:
            raise ConfigError(f"Interpolated.cap={self.cap}; use a positive number, e.g. 5.0")

    @property
    def needs(self) -> tuple[str, ...]:
        """How stale each token is."""
        return (self.column,)

    def of(self, view: View) -> Tensor:
        """``[n]`` ratios."""
        return (view.log_ratio(self.anchor) - self._move_ratio(view)).exp()

    def factor(self, view: View) -> Tensor:
        """``[n]`` ``pi_prox / pi_engine``, capped."""
        w = self._move_ratio(view).exp()
        return w * (w <= self.cap) if self.mask else w.clamp(max=self.cap)

    def _move_ratio(self, view: View) -> Tensor:
        stale = view.column(self.column)
        return ((stale - 1) / stale.clamp(min=1)).clamp(min=0) * view.log_ratio(self.anchor).detach()
