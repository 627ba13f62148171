"""Baselines and normalisers. Each attempt counts once, however many rows it has; faulty attempts never count."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.plan import Scope
from assay.core.protocols import State
from assay.objective.credit.base import Credit, CreditTerm
from assay.objective.reduce import F, Moments, Partials

__all__ = ["Center", "Scale", "Whiten"]

_BASELINES = ("group", "leave_one_out", "batch", "constant", "ema")


@dataclass(frozen=True, slots=True)
class Center(CreditTerm):
    """Subtracts a baseline.

    ``group``: the group's mean ``mu_q``. ``leave_one_out``: the mean of the *others* in the group, ``n / (n - 1) (R - mu_q)``.
    ``batch``: the mean over the rollout batch. ``constant``: ``value``. ``ema``: a running mean of earlier batches' rewards (0
    before the
    first), with weight ``decay`` on the past and its start corrected.

    A group without variance gets exactly 0. A group left with one attempt gets 0 under both group baselines, and is counted as
    ``credit/lone``.

    Attributes:
        baseline: which one.
        value: only for ``constant``.
        decay: only for ``ema``.
    """

    baseline: str = "group"
    value: float | None = None
    decay: float | None = None

    def __post_init__(self) -> None:
        if self.baseline not in _BASELINES:
            raise UnknownNameError("baseline", self.baseline, _BASELINES)
        if (self.baseline == "constant") != (self.value is not None):
            raise ConfigError(
                f"Center({self.baseline!r}, value={self.value}): a value belongs to baseline='constant', and only there"
            )
        if (self.baseline == "ema") != (self.decay is not None):
            raise ConfigError(f"Center({self.baseline!r}, decay={self.decay}): a decay belongs to baseline='ema', and only there")
        if self.decay is not None and not 0 <= self.decay < 1:
            raise ConfigError(f"Center.decay={self.decay} is the weight of the past; use a number in [0, 1)")

    @property
    def kind(self) -> str:
        """A baseline."""
        return "baseline"

    @property
    def scope(self) -> Scope:
        """What the mean runs over."""
        return {"group": Scope.GROUP, "leave_one_out": Scope.GROUP, "constant": Scope.SEQUENCE}.get(self.baseline, Scope.BATCH)

    @property
    def min_group(self) -> int:
        """Two for the group baselines."""
        return 2 if self.scope is Scope.GROUP else 1

    @property
    def reduces(self) -> bool:
        """All but the constant are means."""
        return self.baseline != "constant"

    def init(self) -> State:
        """Running mean and the weight it has gathered."""
        return {"mean": 0.0, "weight": 0.0} if self.baseline == "ema" else {}

    def local(self, credit: Credit) -> Partials:
        """Moments of the advantages."""
        values = credit.advantage[credit.counted]
        if self.scope is Scope.GROUP:
            return {"moments": Moments.of(values, credit.group[credit.counted], credit.groups)}
        return {} if self.baseline == "constant" else {"moments": Moments.of(values)}

    def advance(self, state: State, stats: Partials) -> State:
        """Moves the running mean."""
        if self.decay is None or not float(stats["moments"].count[0]):
            return state
        new = 1.0 - self.decay
        return {
            "mean": self.decay * state["mean"] + new * float(stats["moments"].mean[0]),
            "weight": self.decay * state["weight"] + new,
        }

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Subtracts the baseline."""
        if self.baseline == "batch":
            of_batch: Moments = stats["moments"]
            return credit.moved(_centred(credit.advantage, of_batch.mean[0], of_batch.std(0)[0]))
        if self.scope is not Scope.GROUP:
            return credit.moved(credit.advantage - self._common(state))
        m: Moments = stats["moments"]
        deviation = _centred(credit.advantage, m.mean[credit.group], m.std(0)[credit.group])
        if self.baseline == "leave_one_out":
            # An attempt outside the statistics has all n counted ones as its others.
            others = np.where(credit.counted, np.maximum(m.count - 1, 1)[credit.group], m.count[credit.group])
            deviation = deviation * m.count[credit.group] / np.maximum(others, 1)
        lone = m.count <= 1
        told = credit.told(credit_lone=float(np.sum(m.count == 1)))
        return told.moved(np.where(lone[credit.group], 0.0, deviation))

    def _common(self, state: State) -> float:
        if self.value is not None:
            return self.value
        return state["mean"] / state["weight"] if state["weight"] else 0.0


@dataclass(frozen=True, slots=True)
class Scale(CreditTerm):
    """Divides by a standard deviation: ``A / (sd + eps)``; exactly 0 where ``sd`` is 0.

    Attributes:
        over: ``group`` (``sd_q``) or ``batch`` (``sd_B``).
        ddof: 1 for the sample standard deviation, 0 for the population's; published code mixes both.
        eps: added to the standard deviation.
        of: ``reward``: spread of the rewards themselves; ``advantage``: of what the baseline left. The same inside a group.
    """

    over: str = "group"
    ddof: int = 1
    eps: float = 1e-6
    of: str = "reward"

    def __post_init__(self) -> None:
        if self.over not in ("group", "batch"):
            raise UnknownNameError("scale", self.over, ("group", "batch"))
        if self.of not in ("reward", "advantage"):
            raise UnknownNameError("scale statistic", self.of, ("reward", "advantage"))
        if self.ddof not in (0, 1):
            raise ConfigError(f"Scale.ddof={self.ddof}; use 0 (population) or 1 (sample)")
        if not self.eps >= 0:
            raise ConfigError(f"Scale.eps={self.eps}; use 0 or a small positive number")

    @property
    def kind(self) -> str:
        """A normaliser."""
        return "scale"

    @property
    def scope(self) -> Scope:
        """What the standard deviation runs over."""
        return Scope(self.over)

    @property
    def min_group(self) -> int:
        """A spread needs two values."""
        return 2 if self.over == "group" else 1

    def local(self, credit: Credit) -> Partials:
        """Moments per group or of the batch."""
        values = (credit.reward if self.of == "reward" else credit.advantage)[credit.counted]
        if self.over == "group":
            return {"moments": Moments.of(values, credit.group[credit.counted], credit.groups)}
        return {"moments": Moments.of(values)}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Divides."""
        std: F = stats["moments"].std(self.ddof)
        sd = std[credit.group] if self.over == "group" else std[0]
        return credit.moved(_divided(credit.advantage, sd, self.eps))


@dataclass(frozen=True, slots=True)
class Whiten(CreditTerm):
    """Mean 0 and variance 1 over the rollout batch (PPO, REINFORCE++): ``(A - mean) / (sd + eps)``.

    Attributes:
        unit: ``token``: every loss token counts, so long attempts weigh more; ``rollout``: each attempt counts once.
        eps: added to the (population) standard deviation.
    """

    unit: str = "token"
    eps: float = 1e-8

    def __post_init__(self) -> None:
        if self.unit not in ("token", "rollout"):
            raise UnknownNameError("whitening unit", self.unit, ("token", "rollout"))
        if not self.eps >= 0:
            raise ConfigError(f"Whiten.eps={self.eps}; use 0 or a small positive number")

    @property
    def kind(self) -> str:
        """A normaliser that brings its own baseline."""
        return "whiten"

    @property
    def scope(self) -> Scope:
        """The whole rollout batch."""
        return Scope.BATCH

    def local(self, credit: Credit) -> Partials:
        """Moments of the advantages, by the chosen unit."""
        if self.unit == "rollout":
            return {"moments": Moments.of(credit.advantage[credit.counted])}
        here = credit.batch.token("mask") & credit.counted[credit.owner]
        return {"moments": Moments.of(credit.per_token()[here])}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Whitens attempts, or tokens."""
        m: Moments = stats["moments"]
        if self.unit == "rollout":
            return credit.moved(_divided(_centred(credit.advantage, m.mean[0], m.std(0)[0]), m.std(0)[0], self.eps))
        return replace(credit, tokens=_divided(_centred(credit.per_token(), m.mean[0], m.std(0)[0]), m.std(0)[0], self.eps))


def _centred(values: F, mean: F | np.float64, sd: F | np.float64) -> F:
    """``values - mean``, 0 where only rounding tells them apart: else the last bit of a mean decides which tokens act."""
    gap = values - mean
    return np.where(np.abs(gap) <= 1e-12 * sd, 0.0, gap)


def _divided(values: F, sd: F | np.float64, eps: float) -> F:
    """``values / (sd + eps)``, 0 where there is no spread."""
    return np.where(sd > 0, values / np.where(sd > 0, sd + eps, 1.0), 0.0)
