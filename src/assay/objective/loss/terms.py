"""Additive terms: divergence, entropy, likelihood."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from assay.core.batch import Batch
from assay.core.errors import ConfigError, PlanError, UnknownNameError
from assay.core.protocols import State
from assay.objective.loss.base import LossTerm, View
from assay.objective.reduce import Moments, Partials, tally

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["AdaptiveKl", "Entropy", "Kl", "Nll"]

_ESTIMATORS = ("k2", "k3", "rk3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kl(LossTerm):
    """Divergence from an anchor policy, per token, with ``d = logp_new - logp_ANCHOR``.

    ``k2``: ``d^2 / 2``; its on-policy gradient is that of KL(pi||anchor). ``k3``: ``exp(-d) - 1 + d``; as a loss it pulls
    along the *forward*
    divergence KL(anchor||pi). ``rk3``: ``r * k3`` with the live ratio ``r = pi / pi_old``: the unbiased gradient of
    KL(pi||anchor).
    ``k1 = d`` is refused: as a loss its on-policy gradient is zero in expectation (use `KlInReward`).

    Attributes:
        estimator: ``k2``, ``k3`` or ``rk3``.
        anchor: the policy not to leave.
    """

    estimator: str = field(default="k3", kw_only=False)
    anchor: str = "ref"
    label: str = "kl"

    def __post_init__(self) -> None:
        LossTerm.__post_init__(self)
        if self.estimator == "k1":
            raise PlanError(
                "Kl('k1') as a loss has zero expected gradient on-policy: use 'k2' or 'rk3' here, or KlInReward in the "
                "credit chain"
            )
        if self.estimator not in _ESTIMATORS:
            raise UnknownNameError("KL estimator", self.estimator, _ESTIMATORS)
        if self.estimator == "rk3" and self.anchor == "old":
            raise ConfigError("Kl('rk3', anchor='old'): the ratio's own anchor; use 'k2' or another anchor")

    @property
    def anchors(self) -> tuple[str, ...]:
        """The anchor, and ``old`` for the ratio."""
        return (self.anchor, "old") if self.estimator == "rk3" else (self.anchor,)

    def apply(self, view: View) -> Tensor:
        """``[n]`` estimates."""
        d = view.log_ratio(self.anchor)
        if self.estimator == "k2":
            return d.square() / 2
        k3 = (-d).exp() - 1 + d
        return view.log_ratio("old").exp() * k3 if self.estimator == "rk3" else k3

    def report(self, view: View) -> Mapping[str, Tensor]:
        """``kl_ANCHOR``: the k3 estimate, whatever the loss uses."""
        d = view.log_ratio(self.anchor)
        return {f"kl_{self.anchor}": (-d).exp() - 1 + d}


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveKl(Kl):
    """`Kl` whose coefficient follows a target: ``coef *= 1 + clip(KL / target - 1, +-0.2) * n / horizon`` after each rollout
    batch.

    ``KL`` is the batch mean of the summed k1 of an attempt, at the start of the batch; ``n`` the number of attempts; both over
    the rows of ``streams`` alone. A batch is learned from with the coefficient from before it; its measurement counts from the
    next batch on.

    Attributes:
        coef: the first coefficient.
        target: wanted KL per attempt, in nats.
        horizon: attempts over which the coefficient may change by a fifth; one batch never changes it by more.
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
        """Moments of the attempts' summed k1."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Entropy(LossTerm):
    """Entropy bonus: minus the entropy of the current next-token distribution, over the whole vocabulary.

    ``coef`` is the weight of the bonus: positive coefficients raise the entropy.
    """

    @property
    def live(self) -> tuple[str, ...]:
        """The entropy with gradient."""
        return ("logp_new", "entropy")

    def apply(self, view: View) -> Tensor:
        """``[n]`` ``-H_t``."""
        return -view.live("entropy")

    def report(self, view: View) -> Mapping[str, Tensor]:
        """``entropy_live``: mean entropy in nats."""
        return {"entropy_live": view.live("entropy")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Nll(LossTerm):
    """Negative log-likelihood ``-logp_new``: supervised learning, on all streams unless some are named."""

    streams: tuple[str, ...] = ()

    def apply(self, view: View) -> Tensor:
        """``[n]`` ``-logp_new``."""
        return -view.live("logp_new")
