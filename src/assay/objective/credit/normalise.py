"""Normalisers. Each rollout counts once, however many rows it has, unless tokens are what is counted; faulty ones never count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from assay.core.errors import ConfigError, PlanError, UnknownNameError
from assay.core.plan import Scope
from assay.core.protocols import State
from assay.objective.credit.base import Credit, CreditTerm
from assay.objective.credit.shape import ScaleByClass
from assay.objective.credit.stats import each, moments, peers
from assay.objective.reducers import F, Moments, Partials, Sum

__all__ = ["Scale", "ScaleByMean", "ScaleBySignal", "Whiten", "near_zero"]

_SCALES = ("group", "leave_one_out", "batch", "ema", "constant")
_GROUPED = ("group", "leave_one_out")


def near_zero(gap: F, sd: F | np.float64) -> F:
    """``gap``, 0 where only rounding tells it from 0: else the last bit of a mean decides which tokens act."""
    return np.where(np.abs(gap) <= 1e-12 * sd, 0.0, gap)


@dataclass(frozen=True, slots=True)
class Scale(CreditTerm):
    """Divides by a standard deviation: ``A / (sd + eps)``; exactly 0 where ``sd`` is 0.

    ``group``: ``sd_q``. ``leave_one_out``: that of the *others* in the group; a rollout whose others do not vary is not divided.
    ``batch``: ``sd_B``. ``ema``: a running one, the root of the mean variance of earlier batches (the first batch is divided by
    its own). ``constant``: ``value``, with ``eps`` added.

    Attributes:
        over: which one.
        ddof: 1 for the sample standard deviation, 0 for the population's; published code mixes both.
        eps: added to the standard deviation.
        of: ``reward``: spread of the rewards themselves; ``advantage``: of what the baseline left. The same inside a group.
        by: only for ``group`` and ``leave_one_out``: peers inside a group, as in `Center`.
        value: only for ``constant``.
        decay: only for ``ema``: weight of the past.
    """

    over: str = "group"
    ddof: int = 1
    eps: float = 1e-6
    of: str = "reward"
    by: str = ""
    value: float | None = None
    decay: float | None = None

    kind: ClassVar[str] = "scale"

    def __post_init__(self) -> None:
        if self.over not in _SCALES:
            raise UnknownNameError("scale", self.over, _SCALES)
        if self.of not in ("reward", "advantage"):
            raise UnknownNameError("scale statistic", self.of, ("reward", "advantage"))
        if self.ddof not in (0, 1):
            raise ConfigError(f"Scale.ddof={self.ddof}; use 0 (population) or 1 (sample)")
        if not self.eps >= 0:
            raise ConfigError(f"Scale.eps={self.eps}; use 0 or a small positive number")
        if self.by and self.over not in _GROUPED:
            raise ConfigError(f"Scale({self.over!r}, by={self.by!r}): peers belong to {_GROUPED}")
        if (self.over == "constant") != (self.value is not None):
            raise ConfigError(f"Scale({self.over!r}, value={self.value}): a value belongs to over='constant', and only there")
        if self.value is not None and not self.value > 0:
            raise ConfigError(f"Scale.value={self.value}; use a positive number")
        if (self.over == "ema") != (self.decay is not None):
            raise ConfigError(f"Scale({self.over!r}, decay={self.decay}): a decay belongs to over='ema', and only there")
        if self.decay is not None and not 0 <= self.decay < 1:
            raise ConfigError(f"Scale.decay={self.decay} is the weight of the past; use a number in [0, 1)")

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """What tells the peers apart."""
        return (self.by,) if self.by else ()

    @property
    def scope(self) -> Scope:
        """What the standard deviation runs over."""
        if self.over in _GROUPED:
            return Scope.GROUP
        return Scope.SEQUENCE if self.over == "constant" else Scope.BATCH

    @property
    def min_group(self) -> int:
        """A spread needs two values."""
        return {"group": 2, "leave_one_out": 3}.get(self.over, 1)

    @property
    def reduces(self) -> bool:
        """All but the constant are measured."""
        return self.over != "constant"

    def init(self) -> State:
        """Running variance and the weight it has gathered."""
        return {"variance": 0.0, "weight": 0.0} if self.over == "ema" else {}

    def check(self, before: Sequence[CreditTerm]) -> None:
        """Raises PlanError: a group's own spread cancels rewards by class."""
        shapes = [t for t in before if t.kind == "shape"]
        last = shapes[-1] if shapes else None
        if self.over in _GROUPED and isinstance(last, ScaleByClass) and (last.correct, last.wrong) != (1.0, -1.0):
            raise PlanError(
                f"Scale({self.over!r}) behind ScaleByClass(correct={last.correct}, wrong={last.wrong}): a group's standard "
                "deviation cancels both numbers exactly; leave Scale out, or use Scale('batch')"
            )

    def local(self, credit: Credit) -> Partials:
        """Moments per group or of the batch."""
        values = credit.reward if self.of == "reward" else credit.advantage
        if self.scope is Scope.GROUP:
            return {"moments": peers(credit, values, self.by)}
        if self.over == "constant":
            return {}
        weights = None if credit.copies is None else credit.copies[credit.counted]
        return {"moments": moments(values[credit.counted], weights=weights)}

    def advance(self, state: State, stats: Partials) -> State:
        """Moves the running variance."""
        if self.decay is None or not float(stats["moments"].count[0]):
            return state
        new = 1.0 - self.decay
        return {
            "variance": self.decay * state["variance"] + new * float(stats["moments"].std(self.ddof)[0]) ** 2,
            "weight": self.decay * state["weight"] + new,
        }

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Divides."""
        if self.value is not None:
            return credit.divide_by(np.float64(self.value), self.eps)
        if self.over == "ema":
            known = np.sqrt(state["variance"] / state["weight"]) if state["weight"] else stats["moments"].std(self.ddof)[0]
            return credit.divide_by(np.float64(known), self.eps)
        if self.over == "batch":
            return credit.divide_by(stats["moments"].std(self.ddof)[0], self.eps)
        m = each(credit, stats["moments"], self.by)
        if self.over == "group":
            return credit.divide_by(m.std(self.ddof), self.eps)
        sd = self._of_others(credit, m)
        return credit.divide_by(np.where(sd > 0, sd + self.eps, np.where(m.m2 > 0, 1.0, 0.0)), 0.0)

    def _of_others(self, credit: Credit, m: Moments) -> F:
        """``[R]`` standard deviations of each rollout's peers without itself, 0 where only rounding tells them from 0."""
        values = credit.reward if self.of == "reward" else credit.advantage
        own = np.where(credit.counted, m.count / np.maximum(m.count - 1, 1) * (values - m.mean) ** 2, 0.0)
        rest = np.where(m.m2 - own > 1e-12 * m.m2, m.m2 - own, 0.0)
        return Moments(m.count - credit.counted, m.mean, rest).std(self.ddof)


@dataclass(frozen=True, slots=True)
class Whiten(CreditTerm):
    """Mean 0 and variance 1 over the rollout batch (PPO, REINFORCE++): ``(A - mean) / (sd + eps)``.

    Attributes:
        unit: ``token``: every loss token counts, so long rollouts weigh more; ``rollout``: each rollout counts once.
        eps: added to the standard deviation.
        ddof: 0 for the population standard deviation, 1 for the sample's.
    """

    unit: str = "token"
    eps: float = 1e-8
    ddof: int = 0

    kind: ClassVar[str] = "whiten"

    def __post_init__(self) -> None:
        if self.unit not in ("token", "rollout"):
            raise UnknownNameError("whitening unit", self.unit, ("token", "rollout"))
        if not self.eps >= 0:
            raise ConfigError(f"Whiten.eps={self.eps}; use 0 or a small positive number")
        if self.ddof not in (0, 1):
            raise ConfigError(f"Whiten.ddof={self.ddof}; use 0 (population) or 1 (sample)")

    @property
    def scope(self) -> Scope:
        """The batch."""
        return Scope.BATCH

    def local(self, credit: Credit) -> Partials:
        """Moments of the advantages, by the chosen unit."""
        if self.unit == "rollout":
            weights = None if credit.copies is None else credit.copies[credit.counted]
            return {"moments": moments(credit.advantage[credit.counted], weights=weights)}
        here = credit.batch.token("mask") & credit.counted[credit.owner]
        weights = None if credit.copies is None else credit.copies[credit.owner][here]
        return {"moments": moments(credit.per_token()[here], weights=weights)}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Whitens rollouts, or tokens."""
        m: Moments = stats["moments"]
        mean, spread, sd = m.mean[0], m.std(0)[0], m.std(self.ddof)[0]
        if self.unit == "rollout":
            return credit.center(near_zero(credit.advantage - mean, spread), spread).divide_by(sd, self.eps)
        gap = near_zero(credit.per_token() - mean, spread)
        return replace(credit, tokens=np.where(sd > 0, gap / np.where(sd > 0, sd + self.eps, 1.0), 0.0))


@dataclass(frozen=True, slots=True)
class ScaleByMean(CreditTerm):
    """Divides by the group's mean reward (MaxRL): ``A / (mu_q + eps)``: hard prompts weigh about ``1 / p``; 0 if ``mu_q <= 0``.

    Attributes:
        eps: added to the mean.
    """

    eps: float = 1e-6

    kind: ClassVar[str] = "scale"

    def __post_init__(self) -> None:
        if not self.eps >= 0:
            raise ConfigError(f"ScaleByMean.eps={self.eps}; use 0 or a small positive number")

    @property
    def scope(self) -> Scope:
        """A group."""
        return Scope.GROUP

    @property
    def min_group(self) -> int:
        """Two, for the baseline before it."""
        return 2

    def local(self, credit: Credit) -> Partials:
        """Moments of the rewards per group."""
        return {"moments": peers(credit, credit.reward)}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Divides."""
        return credit.divide_by(each(credit, stats["moments"]).mean, self.eps)


@dataclass(frozen=True, slots=True)
class ScaleBySignal(CreditTerm):
    """Multiplies by ``n / n_signal`` (GPG): rollouts without a signal do not thin out the gradient of the others.

    Attributes:
        of: ``variance``: a rollout has a signal when its group's rewards vary; ``reward``: when its own reward is not 0, as in
            verl.
    """

    of: str = "variance"

    kind: ClassVar[str] = "scale"

    def __post_init__(self) -> None:
        if self.of not in ("variance", "reward"):
            raise UnknownNameError("signal", self.of, ("variance", "reward"))

    @property
    def scope(self) -> Scope:
        """The batch."""
        return Scope.BATCH

    def local(self, credit: Credit) -> Partials:
        """How many rollouts have a signal, or the moments that tell."""
        here = credit.counted
        if self.of == "variance":
            return {"moments": peers(credit, credit.reward)}
        return {"counts": Sum(np.array([float(here.sum()), float(np.count_nonzero(credit.reward[here]))]))}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Multiplies."""
        if self.of == "variance":
            m: Moments = stats["moments"]
            total, signal = float(m.count.sum()), float(m.count[m.m2 > 0].sum())
        else:
            total, signal = stats["counts"].values.tolist()
        return credit.scale_by(np.full(len(credit.reward), total / signal if signal else 1.0))
