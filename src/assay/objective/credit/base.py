"""What a credit term is: a pure transform of the `Credit` record, in three moves, ``local -> reduce -> apply``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.plan import Scope
from assay.core.protocols import State
from assay.objective.reduce import F, Partials

__all__ = ["Credit", "CreditTerm"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Credit:
    """Where a chain stands: rewards and advantages of the ``R`` attempts in a rollout batch.

    Attributes:
        batch: the columns, never changed.
        metric: ``[R]`` the task's own metric, never shaped; filters look at it.
        reward: ``[R]`` scalar reward, shaped.
        advantage: ``[R]`` equal to ``reward`` until a baseline is subtracted.
        tokens: ``[N]`` advantages per token once a term made them differ inside an attempt; None while they do not.
        keep: ``[R]`` weight of the attempt in every loss, 0 where a filter dropped it.
        counted: ``[R]`` attempts that enter statistics: valid, of the right stream, not dropped.
        metrics: numbers for the report.
    """

    batch: Batch
    metric: F
    reward: F
    advantage: F
    tokens: F | None = None
    keep: F
    counted: NDArray[np.bool_]
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def group(self) -> NDArray[np.int64]:
        """``[R]`` group of each attempt."""
        return self.batch.rollout("group")

    @property
    def groups(self) -> int:
        """One more than the largest group number."""
        return int(self.group.max()) + 1

    @property
    def owner(self) -> NDArray[np.int64]:
        """``[N]`` attempt of each token."""
        return np.repeat(self.batch.rows["rollout"], self.batch.lengths)

    def per_token(self) -> F:
        """``[N]`` advantages per token, 0 outside the loss mask: an outcome is credited to all tokens of its attempt alike."""
        values = self.advantage[self.owner] if self.tokens is None else self.tokens
        return np.where(self.batch.token("mask"), values, 0.0)

    def moved(self, advantage: F) -> Credit:
        """The same with other advantages per attempt."""
        return replace(self, advantage=advantage)

    def told(self, **metrics: float) -> Credit:
        """The same with more metrics; underscores of a name's first part become a slash: ``credit_lone`` is ``credit/lone``."""
        return replace(self, metrics={**self.metrics, **{k.replace("_", "/", 1): v for k, v in metrics.items()}})


@dataclass(frozen=True, slots=True)
class CreditTerm(ABC):
    """Base of all credit terms; a subclass overrides what differs.

    A term is a frozen record of settings. It first computes partial statistics of the rows it sees (`local`), which are merged
    over
    ranks, and then transforms the record (`apply`). A stateful term declares its first state (`init`) and how a batch moves it
    (`advance`); `apply` reads the state from before the batch, so no attempt enters its own baseline through it.
    """

    @property
    def kind(self) -> str:
        """Its place in the chain: ``shape`` (reward to reward), ``filter``, ``baseline``, ``scale`` or ``transform``."""
        return "transform"

    @property
    def needs(self) -> tuple[str, ...]:
        """Token columns that it reads."""
        return ()

    @property
    def scope(self) -> Scope:
        """How much must be visible to compute its statistics."""
        return Scope.SEQUENCE

    @property
    def min_group(self) -> int:
        """Attempts that a group must have for the term to mean anything."""
        return 1

    @property
    def reduces(self) -> bool:
        """Whether it has statistics that cross ranks."""
        return type(self).local is not CreditTerm.local

    def init(self) -> State:
        """The state of a new run."""
        return {}

    def local(self, credit: Credit) -> Partials:
        """Partial statistics of the attempts on this rank."""
        return {}

    def advance(self, state: State, stats: Partials) -> State:
        """The state after a batch with these statistics."""
        return state

    @abstractmethod
    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """The transformed record."""
