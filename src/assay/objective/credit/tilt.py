"""Learning to sample from a target distribution that is known up to its constant (DPG, GDC)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.plan import Scope
from assay.core.protocols import State
from assay.objective.credit.base import Credit, CreditTerm
from assay.objective.credit.shape import solved_rollouts
from assay.objective.reducers import F, Partials, tally

__all__ = ["LogMean", "Tilt"]


@dataclass(frozen=True, slots=True, eq=False)
class LogMean:
    """``log mean exp`` per key: ``total [k]`` the logarithm of the sum, ``count [k]`` how many.

    >>> both = LogMean.of(np.log([1.0, 3.0])).merge(LogMean.of(np.log([5.0])))
    >>> float(np.exp(both.mean[0]).round(12))
    3.0
    """

    total: F
    count: F

    @staticmethod
    def of(values: F, keys: NDArray[np.int64] | None = None, size: int = 1) -> LogMean:
        """Of ``values [n]`` (minus infinity is a zero) by ``keys [n]``; all under key 0 when None."""
        keys = np.zeros(len(values), np.int64) if keys is None else keys
        total = np.full(size, -np.inf)
        np.logaddexp.at(total, keys, values)
        return LogMean(total, tally(keys, np.ones(len(values)), size))

    def merge(self, other: LogMean) -> LogMean:
        """Of both."""
        size = max(len(self.total), len(other.total))
        total, count = np.full((2, size), -np.inf), np.zeros((2, size))
        for i, part in enumerate((self, other)):
            total[i, : len(part.total)], count[i, : len(part.count)] = part.total, part.count
        return LogMean(np.logaddexp(total[0], total[1]), count.sum(0))

    @property
    def mean(self) -> F:
        """``[k]`` logarithms of the means; minus infinity where there is nothing."""
        return self.total - np.log(np.maximum(self.count, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tilt(CreditTerm):
    """In place of the reward, the weight of a rollout under a target: ``P(y) / (Z q(y))``, ``P(y) = anchor(y) e^(R / beta)``.

    Behind it ``-w logp`` is the gradient of the *forward* divergence KL(p||pi) to ``p = P / Z``, the optimum of reward under a KL
    penalty with coefficient ``beta`` (GDC, DPG); ``q`` is who drew the rollouts. ``Center("constant", value=1.0)`` behind it is
    the on-policy baseline. Weights have mean 1 over everything that Z was estimated from.

    Attributes:
        beta: temperature of the reward; None: ``P(y) = anchor(y)`` where the task metric reaches ``threshold``, else 0.
        anchor: the policy that is tilted.
        behaviour: ``q``.
        over: whose ``Z``. ``run``: the mean of ``P / q`` over this and all earlier batches, which is saved with the state.
            ``group``: over the rollouts at the prompt (a target per prompt).
        cap: largest weight.
        threshold: task metric from which a rollout is correct; only without ``beta``.
    """

    beta: float | None = 1.0
    anchor: str = "ref"
    behaviour: str = "engine"
    over: str = "run"
    cap: float = math.inf
    threshold: float = 0.5

    kind: ClassVar[str] = "shape"

    def __post_init__(self) -> None:
        if self.beta is not None and not 0 < self.beta < math.inf:
            raise ConfigError(f"Tilt.beta={self.beta}; use a positive temperature, or None for the correct rollouts alone")
        if self.over not in ("run", "group"):
            raise UnknownNameError("scope of Z", self.over, ("run", "group"))
        if not self.cap > 0:
            raise ConfigError(f"Tilt.cap={self.cap} leaves nothing; use a positive number")

    @property
    def needs(self) -> tuple[str, ...]:
        """Both policies' log-probabilities; one where they are the same."""
        return tuple(dict.fromkeys((f"logp_{self.anchor}", f"logp_{self.behaviour}")))

    @property
    def scope(self) -> Scope:
        """What Z is a mean over."""
        return Scope.BATCH if self.over == "run" else Scope.GROUP

    def init(self) -> State:
        """Logarithm of Z, and from how many rollouts."""
        return {"log_z": 0.0, "count": 0.0} if self.over == "run" else {}

    def local(self, credit: Credit) -> Partials:
        """``log mean P / q`` of the rollouts that count."""
        here, log_w = credit.counted, self._log_weight(credit)
        if self.over == "group":
            return {"z": LogMean.of(log_w[here], credit.group[here], credit.groups)}
        return {"z": LogMean.of(log_w[here])}

    def advance(self, state: State, stats: Partials) -> State:
        """Z over one batch more."""
        if self.over == "group":
            return state
        z = self._run(state, stats)
        return {"log_z": max(float(z.mean[0]), -1e300), "count": float(z.count[0])}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Replaces the reward."""
        log_z = (
            stats["z"].mean[credit.group] if self.over == "group" else np.full(len(credit.reward), self._run(state, stats).mean)
        )
        log_w = self._log_weight(credit)
        known = np.isfinite(log_z) & (log_z > -1e299) & np.isfinite(log_w)
        gap = np.where(known, log_w, 0.0) - np.where(known, log_z, 0.0)
        weight = np.where(known, np.minimum(np.exp(np.minimum(gap, 300.0)), self.cap), 0.0)
        told = credit.with_metrics(credit_log_z=float(log_z[0])) if self.over == "run" else credit
        return replace(told, reward=weight, advantage=weight, steps=None, tokens=None)

    def _run(self, state: State, stats: Partials) -> LogMean:
        before = state["log_z"] + math.log(state["count"]) if state["count"] else -math.inf
        return LogMean(np.array([before]), np.array([float(state["count"])])).merge(stats["z"])

    def _log_weight(self, credit: Credit) -> F:
        """``[R]`` ``log P(y) - log q(y)``."""
        batch = credit.batch
        gap = batch.token(f"logp_{self.anchor}").astype(np.float64) - batch.token(f"logp_{self.behaviour}")
        summed = tally(credit.owner, np.where(batch.token("mask"), gap, 0.0), len(credit.reward))
        if self.beta is None:
            return np.where(solved_rollouts(credit, self.threshold), summed, -np.inf)
        return summed + credit.reward / self.beta
