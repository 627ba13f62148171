"""The divergence from a reference as part of the reward, where k1 belongs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.plan import Scope
from assay.core.protocols import State
from assay.objective.credit.base import Credit, CreditTerm
from assay.objective.credit.stats import moments
from assay.objective.reducers import F, Moments, Partials, tally

__all__ = ["AdaptiveKlInReward", "KlInReward"]

_ESTIMATORS = ("k1", "k2", "k3", "abs")


@dataclass(frozen=True, slots=True, kw_only=True)
class KlInReward(CreditTerm):
    """``R' = R - coef * sum_t k_t``, with ``k_t = logp_old - logp_ANCHOR`` (k1) paid at each token (RLOO, PPO, REINFORCE++).

    Attributes:
        coef: weight of the penalty.
        anchor: the policy not to leave.
        estimator: ``k1``, unbiased also in its gradient here; ``k2``, ``k3`` and ``abs`` as some peers have them.
    """

    coef: float
    anchor: str = "ref"
    estimator: str = "k1"

    kind: ClassVar[str] = "shape"

    def __post_init__(self) -> None:
        if not self.coef > 0:
            raise ConfigError(
                f"{type(self).__name__}.coef={self.coef} does nothing or rewards divergence; use a positive number or leave the "
                "term out"
            )
        if self.estimator not in _ESTIMATORS:
            raise UnknownNameError("KL estimator", self.estimator, _ESTIMATORS)

    @property
    def needs(self) -> tuple[str, ...]:
        """Log-probabilities of both policies."""
        return ("logp_old", f"logp_{self.anchor}")

    @property
    def scope(self) -> Scope:
        """A rollout's own tokens."""
        return Scope.SEQUENCE

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Subtracts the estimate of each loss token."""
        paid = -self._factor(state) * self._estimates(credit)
        steps = paid if credit.steps is None else credit.steps + paid
        return credit.with_reward(credit.reward + tally(credit.owner, paid, len(credit.reward)), steps)

    def _factor(self, state: State) -> float:
        return self.coef

    def _estimates(self, credit: Credit) -> F:
        """``[N]`` estimates per token, of a log-ratio within +-20; 0 outside the loss mask."""
        batch = credit.batch
        gap = batch.token("logp_old").astype(np.float64) - batch.token(f"logp_{self.anchor}")
        d = np.clip(np.where(batch.token("mask"), gap, 0.0), -20.0, 20.0)
        if self.estimator == "k1":
            return d
        if self.estimator == "abs":
            return np.abs(d)
        return d**2 / 2 if self.estimator == "k2" else np.exp(-d) - 1 + d


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveKlInReward(KlInReward):
    """`KlInReward` whose coefficient follows a target: ``coef *= 1 + clip(KL / target - 1, +-0.2) * n / horizon`` after a batch.

    ``KL`` is the batch mean of a rollout's summed estimates, ``n`` the number of rollouts. A batch is judged by the coefficient
    from before it.

    Attributes:
        coef: the first coefficient.
        target: wanted divergence per rollout, in nats.
        horizon: rollouts over which the coefficient may change by a fifth.
    """

    target: float = 6.0
    horizon: float = 10000.0

    def __post_init__(self) -> None:
        KlInReward.__post_init__(self)
        if not self.target > 0 or not self.horizon > 0:
            raise ConfigError(f"AdaptiveKlInReward(target={self.target}, horizon={self.horizon}): both must be positive")

    def init(self) -> State:
        """The coefficient."""
        return {"coef": self.coef}

    def local(self, credit: Credit) -> Partials:
        """Moments of the rollouts' summed estimates."""
        summed = tally(credit.owner, self._estimates(credit), len(credit.reward))
        here = credit.counted & (np.asarray(credit.batch.rollout("tokens")) > 0)
        return {"kl": moments(summed[here])}

    def advance(self, state: State, stats: Partials) -> State:
        """Moves the coefficient."""
        m: Moments = stats["kl"]
        if not float(m.count[0]):
            return state
        error = float(np.clip(m.mean[0] / self.target - 1, -0.2, 0.2))
        return {"coef": state["coef"] * (1 + error * min(float(m.count[0]) / self.horizon, 1.0))}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """As `KlInReward`, and tells the coefficient in force."""
        return KlInReward.apply(self, credit, stats, state).with_metrics(credit_kl_coef=self._factor(state))

    def _factor(self, state: State) -> float:
        return float(state["coef"])
