"""The terminal for regression of values per token: critics, and policies that are value functions (ROVER)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from assay.core.batch import Batch
from assay.core.errors import ConfigError, UnknownNameError
from assay.objective.loss.base import LossTerm, View
from assay.objective.reduce import F, Reducer

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ColumnTarget", "HeadValue", "LogRatioValue", "OutcomeTarget", "Target", "TdLoss", "Value"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Value(ABC):
    """Base of what is regressed."""

    @property
    def live(self) -> tuple[str, ...]:
        """Columns that the gradient pass must compute."""
        return ("logp_new",)

    @property
    def anchors(self) -> tuple[str, ...]:
        """Policies whose log-probabilities it reads."""
        return ()

    @property
    def policy(self) -> bool:
        """Whether fitting it teaches the policy itself."""
        return False

    @abstractmethod
    def of(self, view: View) -> Tensor:
        """``[n]`` predictions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadValue(Value):
    """The output of a value head that the learner computes.

    Attributes:
        name: its live column; its values at the start of the batch stand in ``NAME_old``.
    """

    name: str = "values"

    @property
    def live(self) -> tuple[str, ...]:
        """The head's column."""
        return ("logp_new", self.name)

    def of(self, view: View) -> Tensor:
        """``[n]`` values."""
        return view.live(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRatioValue(Value):
    """``rho * (logp_new - logp_ANCHOR)``: the policy's own log-ratio as action value.

    Attributes:
        rho: temperature.
        anchor: the policy that it is relative to.
    """

    rho: float = 1.0
    anchor: str = "old"

    @property
    def anchors(self) -> tuple[str, ...]:
        """Its anchor."""
        return (self.anchor,)

    @property
    def policy(self) -> bool:
        """It is the policy."""
        return True

    def of(self, view: View) -> Tensor:
        """``[n]`` scaled log-ratios."""
        return self.rho * view.log_ratio(self.anchor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target(ABC):
    """Base of regression targets: numpy, without gradient, recomputed before each optimiser step."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Token columns that it reads."""
        return ()

    @property
    def reward(self) -> bool:
        """Whether it reads rewards or advantages."""
        return False

    @abstractmethod
    def of(self, batch: Batch) -> F:
        """``[N]`` targets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeTarget(Target):
    """The attempt's outcome at each of its tokens.

    Attributes:
        column: ``reward`` or ``advantage``.
    """

    column: str = "reward"

    def __post_init__(self) -> None:
        if self.column not in ("reward", "advantage"):
            raise UnknownNameError("outcome", self.column, ("reward", "advantage"))

    @property
    def reward(self) -> bool:
        """It does."""
        return True

    def of(self, batch: Batch) -> F:
        """``[N]`` outcomes."""
        return np.repeat(np.asarray(batch.per_row(self.column), np.float64), batch.lengths)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnTarget(Target):
    """A token column that rows, sampler or credit chain bring.

    Attributes:
        column: its name.
    """

    column: str

    @property
    def needs(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    def of(self, batch: Batch) -> F:
        """``[N]`` its values."""
        return np.asarray(batch.token(self.column), np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class TdLoss(LossTerm):
    """``coef * (value - sg(target))^2`` per token; with ``clip`` the larger of it and that of the value clipped around its old
    one.

    Attributes:
        value: what is regressed.
        target: what it should be.
        clip: largest change from the old value that still lowers the loss (PPO's value clipping); None for none.
    """

    value: Value = field(default_factory=HeadValue)
    target: Target = field(default_factory=OutcomeTarget)
    clip: float | None = None
    label: str = "td"

    def __post_init__(self) -> None:
        LossTerm.__post_init__(self)
        if self.clip is not None and not self.clip > 0:
            raise ConfigError(f"TdLoss.clip={self.clip}; use a positive distance, or None for no clipping")
        if self.clip is not None and not isinstance(self.value, HeadValue):
            raise ConfigError(f"TdLoss.clip={self.clip} needs a value head with old values; {type(self.value).__name__} has none")

    @property
    def terminal(self) -> bool:
        """When the value is the policy."""
        return self.value.policy

    @property
    def needs(self) -> tuple[str, ...]:
        """The target's columns, and the old values when clipping."""
        old = (f"{self.value.name}_old",) if self.clip is not None and isinstance(self.value, HeadValue) else ()
        return (*self.target.needs, *old)

    @property
    def anchors(self) -> tuple[str, ...]:
        """The value's."""
        return self.value.anchors

    @property
    def live(self) -> tuple[str, ...]:
        """The value's."""
        return self.value.live

    @property
    def reward(self) -> bool:
        """When the target comes from rewards."""
        return self.target.reward or "advantage" in self.target.needs

    def prepare(self, batch: Batch, share: F, reducer: Reducer) -> Mapping[str, F]:
        """The aggregation's weights and the targets."""
        return {"weight": share, "target": self.target.of(batch)}

    def apply(self, view: View) -> Tensor:
        """``[n]`` squared errors."""
        value, target = self.value.of(view), view.own("target")
        error = (value - target).square()
        if self.clip is None or not isinstance(self.value, HeadValue):
            return error
        old = view.column(f"{self.value.name}_old")
        clipped = old + (value - old).clamp(-self.clip, self.clip)
        return error.maximum((clipped - target).square())

    def report(self, view: View) -> Mapping[str, Tensor]:
        """``error``: mean squared error."""
        return {"error": (self.value.of(view) - view.own("target")).square()}
