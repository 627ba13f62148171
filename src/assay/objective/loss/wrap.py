"""Any loss term on some of its tokens only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from assay.core.batch import Batch
from assay.core.columns import TokenColumn
from assay.core.errors import ConfigError, UnknownNameError
from assay.core.plan import Forward, Scope
from assay.core.protocols import State
from assay.core.vocab import VocabStat
from assay.objective.loss.aggregate import Aggregation, select
from assay.objective.loss.base import LossTerm, View
from assay.objective.loss.select import Selector
from assay.objective.reducers import F, Partials, Reducer, tally

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Where", "Wrapped", "title", "unwrap"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapped(LossTerm):
    """Base of the wrappers: coefficient, streams, aggregation and name are those of the term inside.

    Attributes:
        term: the term inside.
    """

    term: LossTerm = field(kw_only=False)
    coef: float = field(default=1.0, init=False, repr=False)
    streams: tuple[str, ...] = field(default=(), init=False, repr=False)
    aggregate: Aggregation | None = field(default=None, init=False, repr=False)
    label: str = field(default="", init=False, repr=False)

    def __post_init__(self) -> None:
        inside = {"coef": self.term.coef, "streams": self.term.streams, "aggregate": self.term.aggregate, "label": self.term.name}
        for name, value in inside.items():
            object.__setattr__(self, name, value)

    @property
    def scope(self) -> Scope:
        """The term's."""
        return self.term.scope

    @property
    def terminal(self) -> bool:
        """The term's."""
        return self.term.terminal

    @property
    def sparse(self) -> bool:
        """The term's."""
        return self.term.sparse

    @property
    def needs(self) -> tuple[str, ...]:
        """The term's."""
        return self.term.needs

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """The term's."""
        return getattr(self.term, "rollout_columns", ())

    @property
    def anchors(self) -> tuple[str, ...]:
        """The term's."""
        return self.term.anchors

    @property
    def live(self) -> tuple[str, ...]:
        """The term's."""
        return self.term.live

    @property
    def stats(self) -> tuple[VocabStat, ...]:
        """The term's."""
        return self.term.stats

    @property
    def forwards(self) -> tuple[Forward, ...]:
        """The term's."""
        return self.term.forwards

    @property
    def heads(self) -> Mapping[str, tuple[str, int, float, float]]:
        """The term's."""
        return self.term.heads

    @property
    def reward(self) -> bool:
        """The term's."""
        return self.term.reward

    @property
    def min_group(self) -> int:
        """The term's."""
        return self.term.min_group

    @property
    def averages(self) -> bool:
        """The term's."""
        return self.term.averages

    @property
    def grouped(self) -> bool:
        """The term's."""
        return self.term.grouped

    @property
    def reduces(self) -> bool:
        """The term's."""
        return self.term.reduces

    @property
    def reports(self) -> bool:
        """The term's."""
        return self.term.reports

    def check(self) -> None:
        """The term's."""
        self.term.check()

    def init(self) -> State:
        """The term's."""
        return self.term.init()

    def local(self, batch: Batch) -> Partials:
        """The term's."""
        return self.term.local(batch)

    def advance(self, state: State, stats: Partials) -> State:
        """The term's."""
        return self.term.advance(state, stats)

    def factor(self, state: State) -> float:
        """The term's."""
        return self.term.factor(state)

    def prepare(self, batch: Batch, share: F, reducer: Reducer) -> Mapping[str, F]:
        """The term's."""
        return self.term.prepare(batch, share, reducer)

    def apply(self, view: View) -> Tensor:
        """The term's."""
        return self.term.apply(view)

    def total(self, view: View) -> Tensor:
        """The term's."""
        return self.term.total(view)

    def report(self, view: View) -> Mapping[str, Tensor]:
        """The term's."""
        return self.term.report(view)


@dataclass(frozen=True, slots=True, kw_only=True)
class Where(Wrapped):
    """A term on the tokens that every selector chooses; the others have neither loss nor gradient in it.

    ``Where(Kl("k2", anchor="teacher"), (Incorrect(),))`` is KDRL's mask. A state that the term measures (`AdaptiveKl`) is
    measured on all rows of its streams.

    Attributes:
        select: the selectors.
        per: what denominators count. ``streams``: all tokens of the term's streams. ``selected``: the chosen ones alone, under
            the term's own ``aggregate``, so that few chosen tokens weigh as much as many.
    """

    select: tuple[Selector, ...] = field(kw_only=False)
    per: str = "streams"

    def __post_init__(self) -> None:
        Wrapped.__post_init__(self)
        if not self.select:
            raise ConfigError(
                f"Where({type(self.term).__name__}, select=()) chooses nothing; name a selector or drop the wrapper"
            )
        if self.per not in ("streams", "selected"):
            raise UnknownNameError("count of Where", self.per, ("streams", "selected"))
        way = self.term.aggregate
        if self.per == "selected" and (way is None or way.denominator != "kept"):
            raise ConfigError(
                f"Where(per='selected') counts anew, so the term must say how: {type(self.term).__name__}(aggregate=Token()), "
                "with denominator='kept'"
            )

    @property
    def sparse(self) -> bool:
        """It leaves rows out."""
        return True

    @property
    def needs(self) -> tuple[str, ...]:
        """The term's and the selectors'."""
        return (*self.term.needs, *(n for s in self.select for n in s.needs))

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """The term's and the selectors'."""
        return (*getattr(self.term, "rollout_columns", ()), *(n for s in self.select for n in s.rollout_columns))

    @property
    def reward(self) -> bool:
        """Where any of them reads rewards."""
        return self.term.reward or any(s.reward for s in self.select)

    @property
    def grouped(self) -> bool:
        """Where any of them compares the rollouts of a group."""
        return self.term.grouped or any(s.scope is Scope.GROUP for s in self.select)

    @property
    def reduces(self) -> bool:
        """Where any of them does, or counts are taken anew."""
        return self.term.reduces or self.per == "selected" or any(s.reduces for s in self.select)

    def prepare(self, batch: Batch, share: F, reducer: Reducer) -> Mapping[str, F]:
        """The term's columns, from weights that are 0 outside the selection."""
        partials = {f"select{i}_{name}": v for i, s in enumerate(self.select) for name, v in s.local(batch).items()}
        merged = reducer.reduce(partials)
        chosen = np.ones(len(share), np.bool_)
        for i, selector in enumerate(self.select):
            mine = f"select{i}_"
            chosen &= selector.choose(batch, {n.removeprefix(mine): v for n, v in merged.items() if n.startswith(mine)})
        if self.per == "streams" or self.term.aggregate is None:
            return self.term.prepare(batch, np.where(chosen, share, 0.0), reducer)
        mask = np.asarray(batch.token("mask"), np.bool_) & chosen
        owner = np.repeat(np.asarray(batch.rows["rollout"], np.int64), batch.lengths)
        tokens = tally(owner, mask.astype(np.float64), len(batch.rollout("group")))
        keep = np.asarray(batch.rollouts.get("keep", np.ones(len(tokens))), np.float64) * (tokens > 0)
        part = batch.with_tokens(TokenColumn("mask", mask, "objective")).with_rollouts(tokens=tokens, keep=keep)
        return self.term.prepare(batch, self.term.aggregate.share(select(part, self.streams, "kept", reducer)), reducer)


def unwrap(term: LossTerm) -> LossTerm:
    """The term inside all wrappers.

    >>> from assay.objective.loss.select import Correct
    >>> from assay.objective import Nll
    >>> unwrap(Where(Nll(), (Correct(),))) == Nll()
    True
    """
    while isinstance(term, Wrapped):
        term = term.term
    return term


def title(part: object) -> str:
    """A part's kind for an error, with what it wraps.

    >>> from assay.objective.loss.select import Correct
    >>> from assay.objective import Nll
    >>> title(Where(Nll(), (Correct(),)))
    'Where(Nll)'
    """
    name = type(part).__name__
    return f"{name}({title(part.term)})" if isinstance(part, Wrapped) else name
