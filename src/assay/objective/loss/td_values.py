"""What a regression fits: the output of a value head, or the policy itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.core.errors import ConfigError
from assay.core.vocab import VocabStat
from assay.objective.loss.base import View
from assay.objective.loss.vocab import MaxLogp

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["DuelingValue", "HeadValue", "LogRatioValue", "Value"]


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

    @property
    def heads(self) -> tuple[str, ...]:
        """Value heads that it reads."""
        return ()

    @property
    def stats(self) -> tuple[VocabStat, ...]:
        """Statistics over the vocabulary that the gradient pass must compute; their names stand in `live`."""
        return ()

    @abstractmethod
    def of(self, view: View) -> Tensor:
        """``[n]`` predictions, or ``[n, k]`` outputs of a head for a fit that reads ``k``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadValue(Value):
    """The output of a value head that the learner computes (`assay.runtime.ValueHead`).

    Attributes:
        name: its live column; its values at the start of the batch stand in ``NAME_old``.
    """

    name: str = "values"

    @property
    def live(self) -> tuple[str, ...]:
        """The head's column."""
        return ("logp_new", self.name)

    @property
    def heads(self) -> tuple[str, ...]:
        """Itself."""
        return (self.name,)

    def of(self, view: View) -> Tensor:
        """``[n]`` or ``[n, k]`` outputs."""
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

    def __post_init__(self) -> None:
        if not self.rho > 0:
            raise ConfigError(f"LogRatioValue.rho={self.rho}; use a positive temperature")

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
class DuelingValue(Value):
    """``Q = alpha * (logp_new - logp_max) + V``: the policy's logits as advantages, 0 for its most likely token (B-Coder).

    ``logp_max`` is the largest log-probability at the same place; the policy that Q stands for is the model at temperature 1.

    Attributes:
        alpha: value of a nat.
        head: live column of ``V``.
    """

    alpha: float = 1.0
    head: str = "values"

    def __post_init__(self) -> None:
        if not self.alpha > 0:
            raise ConfigError(f"DuelingValue.alpha={self.alpha}; use a positive scale")

    @property
    def live(self) -> tuple[str, ...]:
        """The chosen token's and the largest log-probability, and the head's column."""
        return ("logp_new", "logp_max", self.head)

    @property
    def policy(self) -> bool:
        """It is the policy."""
        return True

    @property
    def heads(self) -> tuple[str, ...]:
        """That of ``V``."""
        return (self.head,)

    @property
    def stats(self) -> tuple[VocabStat, ...]:
        """The largest log-probability."""
        return (MaxLogp(),)

    def of(self, view: View) -> Tensor:
        """``[n]`` action values."""
        return self.alpha * (view.live("logp_new") - view.live("logp_max")) + view.live(self.head)
