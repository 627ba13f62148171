"""Rows in typed columns, with global counts.

Tokens of all rows stand behind one another (no padding). Values that belong to an attempt as a whole (reward, group) stand in
``rollouts``; a row points to its attempt. Denominators come from ``counts``, which a split into micro-batches never changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.columns import Array, TokenColumn
from assay.core.errors import DataError
from assay.core.group import Group
from assay.core.sample import STREAMS, Sample, samples

__all__ = ["Batch", "Counts", "pack", "pack_rows"]


@dataclass(frozen=True, slots=True)
class Counts:
    """Global counts of an optimiser batch, over all ranks and micro-batches: loss tokens, rows, rollouts, prompts (groups)."""

    tokens: int
    rows: int
    rollouts: int
    prompts: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """An optimiser batch, or a part of one.

    Attributes:
        offsets: ``[B + 1]`` int64; tokens of row b are ``offsets[b]:offsets[b + 1]``.
        tokens: name to token column, each over all ``N`` tokens; always ``ids`` and ``mask``.
        rows: name to ``[B]`` array; always ``rollout`` (index into ``rollouts``) and ``stream`` (index into `STREAMS`).
        rollouts: name to ``[R]`` array; ``group``, ``tokens`` (loss tokens of the attempt in the optimiser batch), and, for graded
            rollouts, ``valid``, ``level`` and ``components/NAME``.
        counts: of the whole optimiser batch, after filtering.
        drawn: the same before filtering.
    """

    offsets: NDArray[np.int64]
    tokens: Mapping[str, TokenColumn]
    rows: Mapping[str, Array]
    rollouts: Mapping[str, Array]
    counts: Counts
    drawn: Counts

    def __post_init__(self) -> None:
        total, b = int(self.offsets[-1]), len(self.offsets) - 1
        for name, column in self.tokens.items():
            if len(column.values) != total:
                raise DataError(f"token column {name!r} has {len(column.values)} entries, the batch has {total} tokens")
        for name, array in self.rows.items():
            if len(array) != b:
                raise DataError(f"row column {name!r} has {len(array)} entries, the batch has {b} rows")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """``[B]`` tokens per row."""
        return np.diff(self.offsets)

    @property
    def row_of_token(self) -> NDArray[np.int64]:
        """``[N]`` row index of each token."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def token(self, name: str) -> Array:
        """Values of a token column.

        Raises:
            DataError: the batch has no such column; names those it has.
        """
        if name not in self.tokens:
            raise DataError(f"the batch has no token column {name!r}; it has {sorted(self.tokens)}")
        return self.tokens[name].values

    def rollout(self, name: str) -> Array:
        """``[R]`` values of a rollout column; raises DataError when it is missing."""
        if name not in self.rollouts:
            raise DataError(f"the batch has no rollout column {name!r}; it has {sorted(self.rollouts)}")
        return self.rollouts[name]

    def per_row(self, name: str) -> Array:
        """``[B]`` a rollout column, read at each row's rollout."""
        return self.rollout(name)[self.rows["rollout"]]

    def with_tokens(self, *columns: TokenColumn) -> Batch:
        """The batch with token columns added or replaced."""
        return replace(self, tokens={**self.tokens, **{c.name: c for c in columns}})

    def with_rollouts(self, **columns: Array) -> Batch:
        """The batch with rollout columns added or replaced."""
        return replace(self, rollouts={**self.rollouts, **columns})

    def micro(self, rows: Sequence[int] | NDArray[Any]) -> Batch:
        """Some rows, in the given order, with the counts of the whole: a micro-batch."""
        index = np.asarray(rows, np.int64)
        lengths = self.lengths[index]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        gather = np.repeat(self.offsets[index] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return replace(
            self,
            offsets=offsets,
            tokens={n: replace(c, values=c.values[gather]) for n, c in self.tokens.items()},
            rows={n: a[index] for n, a in self.rows.items()},
        )

    def mini(self, rows: Sequence[int] | NDArray[Any]) -> Batch:
        """Some rows as an optimiser batch of their own: counts are taken anew."""
        part = self.micro(rows)
        counts = _count(part)
        return replace(part, counts=counts, drawn=counts)

    def part_lengths(self) -> NDArray[np.int64]:
        """``[B]`` loss tokens per row."""
        return np.add.reduceat(np.append(self.token("mask"), False).astype(np.int64), self.offsets[:-1])


def pack(groups: Sequence[Group], drawn: Counts | None = None, policy: str = "policy") -> Batch:
    """Rows of graded groups as one optimiser batch.

    Faulty rollouts (`Score.valid` false) stay in the table with ``valid`` False and contribute no rows.

    Args:
        groups: the groups kept.
        drawn: counts before filtering; the batch's own when None.
        policy: whose tokens carry loss.

    Raises:
        DataError: no group, or no valid rollout with a sampled token.
    """
    rows: list[tuple[int, Sample]] = []
    index = 0
    for group in groups:
        for rollout, score in zip(group.rollouts, group.scores, strict=True):
            if score.valid:
                rows += [(index, s) for s in samples(rollout, policy)]
            index += 1
    return pack_rows(rows, _rollout_table(groups), drawn)


def pack_rows(rows: Sequence[tuple[int, Sample]], table: Mapping[str, Array], drawn: Counts | None = None) -> Batch:
    """Rows, each with the index of its attempt in ``table`` (which has at least ``group``), as one optimiser batch.

    Token columns that only some rows carry are filled with zeros in the others.

    Raises:
        DataError: no rows.
    """
    if not rows:
        raise DataError("an optimiser batch needs at least one row with a loss token; every rollout was empty or faulty")
    samples_ = [s for _, s in rows]
    lengths = np.array([len(s.ids) for s in samples_], np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    columns = {
        "ids": TokenColumn("ids", np.concatenate([s.ids for s in samples_]), "rollout"),
        "mask": TokenColumn("mask", np.concatenate([s.mask for s in samples_]), "rollout"),
    }
    for name in sorted({n for s in samples_ for n in s.columns}):
        columns[name] = _joined(name, samples_)
    row_columns: dict[str, Array] = {
        "rollout": np.array([i for i, _ in rows], np.int64),
        "stream": np.array([STREAMS.index(s.stream) for s in samples_], np.int8),
    }
    per_row = np.add.reduceat(np.append(columns["mask"].values, False).astype(np.int64), offsets[:-1])
    tokens = np.zeros(len(table["group"]), np.int64)
    np.add.at(tokens, row_columns["rollout"], per_row)
    nothing = Counts(0, 0, 0, 0)
    batch = Batch(
        offsets=offsets, tokens=columns, rows=row_columns, rollouts={**table, "tokens": tokens},
        counts=nothing, drawn=nothing,
    )  # fmt: skip
    counts = _count(batch)
    return replace(batch, counts=counts, drawn=drawn or counts)


def _joined(name: str, rows: Sequence[Sample]) -> TokenColumn:
    model = next(s.columns[name] for s in rows if name in s.columns)
    parts = [
        s.columns[name].values if name in s.columns else np.zeros((len(s.ids), *model.trailing), model.dtype) for s in rows
    ]
    return TokenColumn(name, np.concatenate(parts), model.producer, model.version)


def _rollout_table(groups: Sequence[Group]) -> dict[str, Array]:
    scores = [s for g in groups for s in g.scores]
    names = sorted({n for s in scores for n in s.components})
    table: dict[str, Array] = {
        "group": np.repeat(np.arange(len(groups)), [len(g.rollouts) for g in groups]).astype(np.int64),
        "valid": np.array([s.valid for s in scores], np.bool_),
        "level": np.array([g.task.level for g in groups for _ in g.rollouts], np.int64),
        "length": np.array([r.length for g in groups for r in g.rollouts], np.int64),
        "truncated": np.array([r.stop == "length" for g in groups for r in g.rollouts], np.bool_),
    }
    for name in names:
        table[f"components/{name}"] = np.array([s.components.get(name, 0.0) for s in scores], np.float64)
    return table


def _count(batch: Batch) -> Counts:
    present = np.unique(batch.rows["rollout"])
    groups = np.unique(batch.rollouts["group"][present])
    return Counts(int(batch.token("mask").sum()), len(batch), len(present), len(groups))
