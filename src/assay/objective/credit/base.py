"""What a credit term is: a pure transform of the `Credit` record, in three moves, ``local -> reduce -> apply``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.errors import PlanError
from assay.core.plan import Scope
from assay.core.protocols import State
from assay.core.util.renamed import RenamedMembers, refuse_renamed
from assay.objective.reducers import F, Partials

__all__ = ["Credit", "CreditTerm", "check_behind", "check_one_handling"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Credit(RenamedMembers):
    """Where a chain stands: rewards and advantages of the ``R`` rollouts in a rollout batch.

    Attributes:
        batch: the columns, never changed.
        metric: ``[R]`` the task's own metric, never shaped; filters look at it.
        reward: ``[R]`` scalar reward, shaped: all that a rollout is paid.
        advantage: ``[R]`` equal to ``reward`` until a baseline is subtracted.
        steps: ``[N]`` what of the reward is paid at single tokens; the rest is paid at the rollout's last loss token. None while
            nothing is.
        tokens: ``[N]`` advantages per token once a term made them differ inside a rollout; None while they do not.
        keep: ``[R]`` weight of the rollout in every loss, 0 where a filter dropped it.
        counted: ``[R]`` rollouts that enter statistics: valid, of the right stream, not dropped.
        copies: ``[R]`` how often a rollout counts in a statistic; once each when None.
        columns: token columns ``[N]`` that terms made for others, such as ``returns`` for a critic.
        metrics: numbers for the report.
    """

    renamed_members: ClassVar[Mapping[str, str]] = {
        "moved": "with_advantage",
        "rewarded": "with_reward",
        "divided": "divide_by",
        "scaled": "scale_by",
        "centred": "center",
        "told": "with_metrics",
    }

    batch: Batch
    metric: F
    reward: F
    advantage: F
    steps: F | None = None
    tokens: F | None = None
    keep: F
    counted: NDArray[np.bool_]
    copies: F | None = None
    columns: Mapping[str, F] = field(default_factory=dict[str, F])
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def group(self) -> NDArray[np.int64]:
        """``[R]`` group of each rollout."""
        return self.batch.rollout("group")

    @property
    def groups(self) -> int:
        """One more than the largest group number."""
        return int(self.group.max()) + 1

    @property
    def owner(self) -> NDArray[np.int64]:
        """``[N]`` rollout of each token."""
        return np.repeat(self.batch.rows["rollout"], self.batch.lengths)

    def per_token(self) -> F:
        """``[N]`` advantages per token, 0 outside the loss mask: an outcome is credited to all tokens of its rollout alike."""
        values = self.advantage[self.owner] if self.tokens is None else self.tokens
        return np.where(self.batch.token("mask"), values, 0.0)

    def with_advantage(self, advantage: F) -> Credit:
        """The same with other advantages per rollout.

        Raises:
            PlanError: advantages differ per token already, so that this would change nothing.
        """
        if self.tokens is not None:
            raise PlanError(
                "a term gives other advantages per rollout after a term that made them differ per token, which would ignore "
                "them: put it first, or use Credit.centred, Credit.divided or Credit.scaled, which move both"
            )
        return replace(self, advantage=advantage)

    def center(self, advantage: F, spread: F | np.float64 | float = 0.0) -> Credit:
        """The same after a baseline: ``advantage [R]``, and what stands per token less the same number per rollout.

        What lies within rounding of ``spread`` (per rollout, or one number) is 0, so that the last bit of a mean decides nothing.
        """
        if self.tokens is None:
            return replace(self, advantage=advantage)
        gap = self.tokens - (self.advantage - advantage)[self.owner]
        near = np.broadcast_to(np.asarray(spread, np.float64), advantage.shape)[self.owner]
        return replace(self, advantage=advantage, tokens=np.where(np.abs(gap) <= 1e-12 * near, 0.0, gap))

    def divide_by(self, by: F | np.float64, eps: float) -> Credit:
        """Advantages over ``by + eps`` (per rollout, or one number), 0 where ``by`` is not positive."""
        by = np.broadcast_to(np.asarray(by, np.float64), self.advantage.shape)
        tokens = None if self.tokens is None else _divide_where(self.tokens, by[self.owner], eps)
        return replace(self, advantage=_divide_where(self.advantage, by, eps), tokens=tokens)

    def scale_by(self, factor: F) -> Credit:
        """Advantages times ``factor [R]``."""
        tokens = None if self.tokens is None else self.tokens * factor[self.owner]
        return replace(self, advantage=self.advantage * factor, tokens=tokens)

    def with_reward(self, reward: F, steps: F | None = None) -> Credit:
        """The same with another reward (``steps``: and another part of it paid at single tokens); the task's metric stays."""
        return replace(self, reward=reward, advantage=reward, steps=self.steps if steps is None else steps)

    def with_metrics(self, **metrics: float) -> Credit:
        """The same with more metrics; underscores of a name's first part become a slash: ``credit_lone`` is ``credit/lone``."""
        return replace(self, metrics={**self.metrics, **{k.replace("_", "/", 1): v for k, v in metrics.items()}})


def _divide_where(values: F, by: F, eps: float) -> F:
    return np.where(by > 0, values / np.where(by > 0, by + eps, 1.0), 0.0)


@dataclass(frozen=True, slots=True)
class CreditTerm(ABC):
    """Base of all credit terms; a subclass overrides what differs.

    A term is a frozen record of settings. It first computes partial statistics of the rows it sees (`local`), which are merged
    over ranks, and then transforms the record (`apply`). A stateful term declares its first state (`init`) and how a batch moves
    it (`advance`); `apply` reads the state from before the batch, so no rollout enters its own baseline through it.

    Attributes:
        kind: its place in the chain: ``shape`` (reward to reward), ``filter``, ``return`` (reward to values per token),
            ``baseline``, ``scale``, ``whiten`` or ``transform``.
    """

    kind: ClassVar[str] = "transform"

    def __init_subclass__(cls) -> None:
        super(CreditTerm, cls).__init_subclass__()
        refuse_renamed(cls, {"attempts": "rollout_columns"})

    @property
    def needs(self) -> tuple[str, ...]:
        """Token columns that it reads."""
        return ()

    @property
    def makes(self) -> tuple[str, ...]:
        """Token columns that it makes (`Credit.columns`)."""
        return ()

    @property
    def streams(self) -> tuple[str, ...]:
        """Streams whose rollouts it reads besides those that enter statistics."""
        return ()

    @property
    def weighs(self) -> bool:
        """Whether it gives rollouts other weights than 0 and 1."""
        return False

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """Columns of the rollouts that it reads: ``length``, ``truncated``, or a user's own."""
        return ()

    @property
    def scope(self) -> Scope:
        """How much must be visible to compute its statistics."""
        return Scope.SEQUENCE

    @property
    def min_group(self) -> int:
        """Rollouts that a group must have for the term to mean anything."""
        return 1

    @property
    def reduces(self) -> bool:
        """Whether it has statistics that cross ranks."""
        return type(self).local is not CreditTerm.local

    @property
    def handles_truncation(self) -> bool:
        """Whether it treats answers that were cut off at the length limit; one term does at most."""
        return False

    def check(self, before: Sequence[CreditTerm]) -> None:  # noqa: B027
        """Raises PlanError where the term cannot stand behind the terms that come before it in the chain."""

    def init(self) -> State:
        """The state of a new run."""
        return {}

    def local(self, credit: Credit) -> Partials:
        """Partial statistics of the rollouts on this rank."""
        return {}

    def advance(self, state: State, stats: Partials) -> State:
        """The state after a batch with these statistics."""
        return state

    @abstractmethod
    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """The transformed record."""


def check_behind(term: CreditTerm, before: Sequence[CreditTerm], kinds: Collection[str], why: str) -> None:
    """Raises PlanError when a term of one of the kinds comes before ``term``, and says why not: ``NAME behind OTHER: WHY``.

    >>> from assay.objective import Center
    >>> check_behind(Center(), (Center("batch"),), ("baseline",), "keep one")
    Traceback (most recent call last):
    assay.core.errors.PlanError: Center behind Center: keep one
    """
    for other in before:
        if other.kind in kinds:
            raise PlanError(f"{type(term).__name__} behind {type(other).__name__}: {why}")


def check_one_handling(term: CreditTerm, before: Sequence[CreditTerm]) -> None:
    """Raises PlanError when another term treats answers that were cut off: masked, paid less, or penalised by length."""
    for other in before:
        if other.handles_truncation:
            raise PlanError(
                f"{type(other).__name__} and {type(term).__name__} both treat answers cut off at the limit: mask them or "
                "penalise them, not both"
            )
