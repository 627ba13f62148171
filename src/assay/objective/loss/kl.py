"""Sampled estimates of the divergence between the policy and another one, as losses.

A loss is learned from by its gradient, so what an estimator is unbiased *for* is not what it teaches. With ``d = logp_new -
logp_ANCHOR``, ``u = exp(-d)`` and samples of the policy itself, the expected gradients are:

==========  =======================  ===================  =======================================================
estimator   value                    mean value           expected gradient on the policy's own samples
==========  =======================  ===================  =======================================================
``k1``      ``d``                    KL(pi||anchor)       0: refused there
``k2``      ``d^2 / 2``              neither              KL(pi||anchor)
``k3``      ``u - 1 + d``            KL(pi||anchor)       KL(anchor||pi), the *forward* divergence
``abs``     ``|d|``                  neither              neither; pushes by the sign of ``d``
``rk3``     ``r (u - 1 + d)``        KL(pi||anchor)       KL(pi||anchor), also off-policy
``fk3``     ``r (u log u - u + 1)``  KL(anchor||pi)       KL(anchor||pi), also off-policy
``k1+``     that of ``k1``           KL(pi||anchor)       KL(pi||anchor): the gradient of ``k2``
``k3+``     that of ``k3``           KL(pi||anchor)       KL(pi||anchor): the gradient of ``k2``
``abs+``    that of ``abs``          neither              KL(pi||anchor): the gradient of ``k2``
==========  =======================  ===================  =======================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from assay.core.batch import Batch
from assay.core.errors import ConfigError, PlanError, UnknownNameError
from assay.core.protocols import State
from assay.core.sample import STREAMS
from assay.objective.loss.base import LossTerm, View
from assay.objective.reducers import Moments, Partials, tally

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["AdaptiveKl", "Kl"]

_RATIO = ("rk3", "fk3")
_STRAIGHT = ("k1+", "k3+", "abs+")
_ESTIMATORS = ("k1", "k2", "k3", "abs", *_RATIO, *_STRAIGHT)
_OWN = ("on_policy", "replay")
_INF = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kl(LossTerm):
    """Divergence from an anchor policy, per token, with ``d = logp_new - logp_ANCHOR`` and ``u = exp(-d)``.

    ``k2``: ``d^2 / 2``; its on-policy gradient is that of KL(pi||anchor). ``k3``: ``u - 1 + d``; as a loss it pulls along the
    *forward* divergence KL(anchor||pi). ``abs``: ``|d|``. ``rk3``: ``r k3`` with the live ratio ``r = pi / pi_old``: the unbiased
    gradient of KL(pi||anchor). ``fk3``: ``r (u log u - u + 1)``: that of KL(anchor||pi). ``k1+``, ``k3+``, ``abs+``: the value of
    the one and the gradient of k2 (straight through).

    ``k1 = d`` is refused on the policy's own samples: as a loss its gradient is zero in expectation there (use `KlInReward`). On
    samples of others (``offline``, ``expert``, ``preference``) it lowers their likelihood, which is what A-LoL's penalty does.

    Attributes:
        estimator: which.
        anchor: the policy not to leave: ``ref``, ``teacher``, ``old``, ``engine``, or any other with a column ``logp_ANCHOR``.
        clamp: bound on ``|d|``; beyond it there is no gradient, neither of the estimate nor of a ratio before it.
        cap: bound on an estimate's size; beyond it there is no gradient (10 in verl, NeMo-RL and OpenRLHF).
        ratio: whose samples they are, for ``r = pi / pi_RATIO``: ``old``, ``engine``, or ``self`` for a ratio of 1 that brings
            nothing but its gradient (NeMo-RL). ``old`` when None, where the estimator has a live ratio. The gradient of ``k1+``,
            ``k3+`` and ``abs+`` is multiplied by it, detached, where it is named (OpenRLHF).
        ratio_cap: bound on the ratio (10 in OpenRLHF).
    """

    estimator: str = field(default="k3", kw_only=False)
    anchor: str = "ref"
    clamp: float = 20.0
    cap: float = _INF
    ratio: str | None = None
    ratio_cap: float = _INF
    label: str = "kl"

    def __post_init__(self) -> None:
        LossTerm.__post_init__(self)
        if self.estimator not in _ESTIMATORS:
            raise UnknownNameError("KL estimator", self.estimator, _ESTIMATORS)
        if self.estimator == "k1" and set(self.streams or STREAMS) & set(_OWN):
            raise PlanError(
                "Kl('k1') as a loss has zero expected gradient on-policy: use 'k2', 'rk3' or 'k1+' here, or KlInReward in the "
                "credit chain; on samples of others name their streams"
            )
        for name, value in (("clamp", self.clamp), ("cap", self.cap), ("ratio_cap", self.ratio_cap)):
            if not value > 0:
                raise ConfigError(f"Kl.{name}={value} leaves nothing; use a positive bound, or infinity for none")
        if self.estimator not in (*_RATIO, *_STRAIGHT) and (self.ratio is not None or self.ratio_cap < _INF):
            raise ConfigError(
                f"Kl({self.estimator!r}, ratio={self.ratio!r}, ratio_cap={self.ratio_cap}): it has no ratio; use 'rk3' or 'k3+', "
                "or leave both out"
            )
        if self.estimator in _STRAIGHT and self.ratio_cap < _INF and self.ratio is None:
            raise ConfigError(f"Kl({self.estimator!r}, ratio_cap={self.ratio_cap}) bounds no ratio: name one, ratio='old'")
        if self.against == self.anchor:
            raise ConfigError(
                f"Kl({self.estimator!r}, anchor={self.anchor!r}): the ratio's own anchor; use 'k2' or another anchor"
            )

    @property
    def against(self) -> str | None:
        """The policy under the ratio; None where there is no ratio."""
        return (self.ratio or "old") if self.estimator in _RATIO else self.ratio

    @property
    def anchors(self) -> tuple[str, ...]:
        """The anchor, and the policy under the ratio."""
        return (self.anchor,) if self.against in (None, "self") else (self.anchor, str(self.against))

    def other(self, view: View) -> Tensor:
        """``[n]`` log-probabilities of the anchor."""
        return view.logp(self.anchor)

    def apply(self, view: View) -> Tensor:
        """``[n]`` estimates."""
        gap = view.live("logp_new") - self.other(view)
        d = gap.clamp(-self.clamp, self.clamp)
        if self.estimator in _STRAIGHT:
            value = _value(self.estimator[:-1], d.detach()).clamp(-self.cap, self.cap)
            slope = d.square() / 2
            if self.against is not None:
                slope = slope * self._ratio(view).detach()
            return value + (slope - slope.detach())
        value = _value(self.estimator.lstrip("r"), d)
        if self.estimator in _RATIO:
            ratio = self._ratio(view)
            value = ratio.where(gap == d, ratio.detach()) * value
        return value.clamp(-self.cap, self.cap)

    def _ratio(self, view: View) -> Tensor:
        if self.against == "self":
            logp = view.live("logp_new")
            return (logp - logp.detach()).exp()
        return view.log_ratio(str(self.against)).exp().clamp(max=self.ratio_cap)

    def report(self, view: View) -> Mapping[str, Tensor]:
        """``kl_ANCHOR``: the k3 estimate, whatever the loss uses."""
        d = (view.live("logp_new") - self.other(view)).clamp(-self.clamp, self.clamp)
        return {f"kl_{self.anchor}": _value("k3", d)}


def _value(estimator: str, d: Tensor) -> Tensor:
    """``[n]`` an estimate from ``d``, without ratio."""
    if estimator == "k1":
        return d
    if estimator == "k2":
        return d.square() / 2
    if estimator == "abs":
        return d.abs()
    u = (-d).exp()
    return u - 1 + d if estimator == "k3" else 1 - u * (1 + d)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveKl(Kl):
    """`Kl` whose coefficient follows a target: ``coef *= 1 + clip(KL / target - 1, +-0.2) * n / horizon`` after each rollout
    batch.

    ``KL`` is the batch mean of the summed k1 of a rollout, at the start of the batch; ``n`` the number of rollouts; both over
    the rows of ``streams`` alone. A batch is learned from with the coefficient from before it; its measurement counts from the
    next batch on.

    Attributes:
        coef: the first coefficient.
        target: wanted KL per rollout, in nats.
        horizon: rollouts over which the coefficient may change by a fifth; one batch never changes it by more.
    """

    target: float = 6.0
    horizon: float = 10000.0

    def __post_init__(self) -> None:
        Kl.__post_init__(self)
        if not self.target > 0 or not self.horizon > 0:
            raise ConfigError(f"AdaptiveKl(target={self.target}, horizon={self.horizon}): both must be positive")

    @property
    def needs(self) -> tuple[str, ...]:
        """Both policies' log-probabilities at the start of the batch."""
        return ("logp_old", f"logp_{self.anchor}")

    def init(self) -> State:
        """The coefficient."""
        return {"coef": self.coef}

    def local(self, batch: Batch) -> Partials:
        """Moments of the rollouts' summed k1."""
        mask = batch.token("mask")
        owner = np.repeat(np.asarray(batch.rows["rollout"], np.int64), batch.lengths)[mask]
        k1 = (batch.token("logp_old").astype(np.float64) - batch.token(f"logp_{self.anchor}"))[mask]
        return {"kl": Moments.of(tally(owner, k1)[np.unique(owner)])}

    def advance(self, state: State, stats: Partials) -> State:
        """Moves the coefficient."""
        m: Moments = stats["kl"]
        error = float(np.clip(m.mean[0] / self.target - 1, -0.2, 0.2))
        return {"coef": state["coef"] * (1 + error * min(float(m.count[0]) / self.horizon, 1.0))}

    def factor(self, state: State) -> float:
        """The coefficient in force."""
        return float(state["coef"])
