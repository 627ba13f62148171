"""From per-token losses to one number: weights per token, always a share of a *global* count.

An aggregation never sees a loss. It says, before the gradient pass, with what weight each token's loss enters the sum; so any
split into
micro-batches or ranks adds up to the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.errors import ConfigError, DataError, PlanError, UnknownNameError
from assay.core.sample import STREAMS
from assay.objective.reducers import F, Reducer, Sum, tally

__all__ = ["Aggregation", "Constant", "Prompt", "Selection", "SeqMean", "SeqSum", "Token", "TurnMean", "of_streams", "select"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Selection:
    """The tokens that a term acts on, and the denominators that belong to them.

    Attributes:
        here: ``[N]`` weight of each token, 0 outside the loss mask, the term's streams, and what filters kept.
        owner: ``[N]`` rollout of each token.
        group: ``[R]`` group of each rollout.
        length: ``[R]`` loss tokens of each rollout, over all its rows.
        group_tokens: loss tokens of each group, over all ranks.
        tokens, rollouts, prompts: global counts of what is selected, as the denominator's name says.
        call: ``[N]`` the policy's call that each token is of; None in a batch without the column.
    """

    here: F
    owner: NDArray[np.int64]
    group: NDArray[np.int64]
    length: F
    group_tokens: F
    tokens: float
    rollouts: float
    prompts: float
    call: F | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregation(ABC):
    """Base of all aggregations.

    Attributes:
        denominator: ``kept``: counts after filters; ``drawn``: counts before filters, those of the batch composer included.
    """

    denominator: str = "kept"

    def __post_init__(self) -> None:
        if self.denominator not in ("kept", "drawn"):
            raise UnknownNameError("denominator", self.denominator, ("kept", "drawn"))

    @property
    def grouped(self) -> bool:
        """Whether it asks which rollouts belong to one prompt."""
        return False

    @property
    def needs(self) -> tuple[str, ...]:
        """Token columns that it reads."""
        return ()

    def check(self) -> None:  # noqa: B027
        """Raises PlanError when a setting that only a run can know is missing."""

    @abstractmethod
    def share(self, s: Selection) -> F:
        """``[N]`` weight of each token's loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token(Aggregation):
    """Mean over all loss tokens: long rollouts weigh more (DAPO)."""

    def share(self, s: Selection) -> F:
        """``1 / tokens``."""
        return _divide_nonzero(s.here, s.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeqMean(Aggregation):
    """Mean over the tokens of a rollout, then over rollouts (GRPO)."""

    def share(self, s: Selection) -> F:
        """``1 / (T_i * rollouts)``."""
        return _divide_nonzero(s.here, s.length[s.owner] * s.rollouts)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnMean(Aggregation):
    """Mean over the tokens of a turn, over a rollout's turns, then over rollouts (M-GRPO): a short turn weighs as a long one.

    A turn is one call of the policy, by the column ``call``. A rollout of one turn weighs as under `SeqMean`.

    Source: WebAgent-R1 (arXiv 2505.16421): ``1/G sum_i 1/|tau_i| sum_j 1/|a_ij| sum_t``.
    """

    @property
    def needs(self) -> tuple[str, ...]:
        """The calls."""
        return ("call",)

    def share(self, s: Selection) -> F:
        """``1 / (T_ij * turns_i * rollouts)``.

        Raises:
            DataError: the batch does not say which call a token is of.
        """
        if s.call is None:
            raise DataError(
                "TurnMean reads the token column 'call', which the batch lacks; take rows from rollouts, or SeqMean()"
            )
        used = s.here != 0
        pairs, turn, size = np.unique(np.stack([s.owner, s.call])[:, used], axis=1, return_inverse=True, return_counts=True)
        turns = np.bincount(pairs[0].astype(np.int64), minlength=len(s.length))
        divisor = np.ones_like(s.here)
        divisor[used] = size[turn.reshape(-1)] * turns[s.owner[used]]
        return _divide_nonzero(s.here, divisor * s.rollouts)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeqSum(Aggregation):
    """Sum over the tokens of a rollout, mean over rollouts (REINFORCE, RLOO)."""

    def share(self, s: Selection) -> F:
        """``1 / rollouts``."""
        return _divide_nonzero(s.here, s.rollouts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt(Aggregation):
    """Mean over the tokens of a prompt's rollouts, then over prompts (ScaleRL)."""

    @property
    def grouped(self) -> bool:
        """It does."""
        return True

    def share(self, s: Selection) -> F:
        """``1 / (tokens of the group * prompts)``."""
        return _divide_nonzero(s.here, s.group_tokens[s.group[s.owner]] * s.prompts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(Aggregation):
    """Sum over the tokens of a rollout, divided by a constant length, mean over rollouts (Dr.GRPO).

    Attributes:
        length: the generation budget in tokens, not the batch's longest row.
    """

    length: int | None = None

    def __post_init__(self) -> None:
        Aggregation.__post_init__(self)
        if self.length is not None and self.length < 1:
            raise ConfigError(f"Constant.length={self.length}; use the generation budget in tokens")

    def check(self) -> None:
        """Raises PlanError while the length is not known."""
        if self.length is None:
            raise PlanError(
                "Constant(length=None): a constant divisor needs its constant; give the generation budget, e.g. "
                "Constant(length=64)"
            )

    def share(self, s: Selection) -> F:
        """``1 / (length * rollouts)``."""
        self.check()
        return _divide_nonzero(s.here, s.rollouts * float(self.length or 1))


def select(batch: Batch, streams: tuple[str, ...], denominator: str, reducer: Reducer) -> Selection:
    """The tokens of ``streams`` (all when empty), weighted by what filters kept, with their global counts.

    Args:
        batch: the optimiser batch, or this rank's part of it.
        streams: stream names.
        denominator: ``kept`` or ``drawn``.
        reducer: adds counts over ranks.
    """
    mask, rows = np.asarray(batch.token("mask"), np.bool_), _rows_of(batch, streams)
    lengths, of_row = batch.lengths, np.asarray(batch.rows["rollout"], np.int64)
    owner, group = np.repeat(of_row, lengths), np.asarray(batch.rollout("group"), np.int64)
    keep = np.asarray(batch.rollouts.get("keep", np.ones(len(group))), np.float64)
    present = mask & np.repeat(rows, lengths)
    here = np.where(present, keep[owner], 0.0)
    weight = np.ones_like(keep) if denominator == "drawn" else keep
    attempts, groups = np.unique(of_row[rows]), int(group.max()) + 1
    local = {
        "counts": Sum(np.array([weight[owner][present].sum(), weight[attempts].sum()])),
        "group_tokens": Sum(tally(group[owner], here, groups)),
        "prompts": Sum((tally(group[attempts], weight[attempts], groups) > 0).astype(np.float64)),
    }
    merged = reducer.reduce(local)
    tokens, rollouts = (float(x) for x in merged["counts"].values)
    prompts = float((merged["prompts"].values > 0).sum())
    if denominator == "drawn":
        tokens += batch.drawn.tokens - batch.counts.tokens
        rollouts += batch.drawn.rollouts - batch.counts.rollouts
        prompts += batch.drawn.prompts - batch.counts.prompts
    return Selection(
        here=here,
        owner=owner,
        group=group,
        length=np.asarray(batch.rollout("tokens"), np.float64),
        group_tokens=merged["group_tokens"].values,
        tokens=tokens,
        rollouts=rollouts,
        prompts=prompts,
        call=np.asarray(batch.token("call"), np.float64) if "call" in batch.tokens else None,
    )


def of_streams(batch: Batch, streams: tuple[str, ...]) -> Batch:
    """The rows of ``streams`` (all when empty), with the counts of the whole; maybe none."""
    rows = _rows_of(batch, streams)
    return batch if rows.all() else batch.micro(rows)


def _rows_of(batch: Batch, streams: tuple[str, ...]) -> NDArray[np.bool_]:
    return np.array([not streams or s in streams for s in STREAMS])[batch.rows["stream"]]


def _divide_nonzero(here: F, divisor: F | float) -> F:
    """``here / divisor`` where ``here`` is not 0."""
    return np.divide(here, divisor, out=np.zeros_like(here), where=here != 0)
