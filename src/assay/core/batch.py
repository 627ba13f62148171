"""Rows in typed columns, with global counts.

Tokens of all rows stand behind one another (no padding). Values that belong to a rollout as a whole (reward, group) stand in
``rollouts``; a row points to its rollout. Denominators come from ``counts``, which a split into micro-batches never changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from assay.core.columns import Array, TokenColumn, common_version
from assay.core.errors import DataError
from assay.core.group import Group
from assay.core.rollout import Ids
from assay.core.sample import STREAMS, Sample, Segment, Stream, lay_out, segments
from assay.core.spans import span_columns
from assay.core.util.renamed import RenamedMembers

_NOTHING = "an optimiser batch needs at least one row with a loss token; every rollout was empty or faulty"

__all__ = ["Batch", "Counts", "counts_of", "pack", "pack_rows"]


@dataclass(frozen=True, slots=True)
class Counts:
    """Global counts of an optimiser batch, over all ranks and micro-batches: loss tokens, rows, rollouts, prompts (groups)."""

    tokens: int
    rows: int
    rollouts: int
    prompts: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch(RenamedMembers):
    """An optimiser batch, or a part of one.

    Attributes:
        offsets: ``[B + 1]`` int64; tokens of row b are ``offsets[b]:offsets[b + 1]``.
        tokens: name to token column, each over all ``N`` tokens; always ``ids`` and ``mask``.
        rows: name to array with a first axis of length ``B``; always ``rollout`` (index into ``rollouts``) and ``stream`` (index
            into `STREAMS`). Where rollouts have privileged prompts: ``prompt``, tokens of a row's prompt, and ``privileged [B,
            P]``, the ids that a privileged teacher reads instead, -1 behind their end. Where rollouts are learned from behind
            another prompt than they were sampled behind: ``reposed``, which rows are.
        rollouts: name to ``[R]`` array; ``group``, ``tokens`` (loss tokens of the rollout in the optimiser batch), and, for
            graded rollouts, ``id``, ``valid``, ``domain``, ``arm``, ``level``, ``length``, ``truncated``, ``components/NAME`` and
            the columns that verdicts name (NaN for a rollout whose verdict lacks it).
        counts: of the whole optimiser batch, after filtering.
        drawn: the same before filtering.
    """

    renamed_members: ClassVar[Mapping[str, str]] = {"regrouped": "merge_groups"}

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
        if self.tokens["mask"].values[self.offsets[:-1][self.lengths > 0]].any():
            raise DataError("the first token of a row has no context and cannot carry loss")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """``[B]`` tokens per row."""
        return self.offsets[1:] - self.offsets[:-1]

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

    def merge_groups(self, owner: Sequence[int], streams: Sequence[Stream]) -> Batch:
        """The batch with its groups merged and labelled: ``g`` becomes ``owner[g]``, its rows get ``streams[g]``."""
        number = np.array([STREAMS.index(s) for s in streams], np.int8)
        batch = replace(self, rows={**self.rows, "stream": number[self.per_row("group")]})
        batch = batch.with_rollouts(group=np.array(owner, np.int64)[self.rollout("group")])
        counts = counts_of(batch)
        return replace(batch, counts=counts, drawn=counts if self.drawn == self.counts else self.drawn)

    def micro(self, rows: Sequence[int] | NDArray[Any]) -> Batch:
        """Some rows, in the given order, with the counts of the whole: a micro-batch.

        Args:
            rows: row indices, or a boolean per row.
        """
        given = np.asarray(rows)
        index = np.flatnonzero(given) if given.dtype == np.bool_ else given.astype(np.int64)
        lengths = self.lengths[index]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        shift: NDArray[np.int64] = np.repeat(self.offsets[index] - offsets[:-1], lengths)
        gather = shift + np.arange(int(offsets[-1]), dtype=np.int64)
        return replace(
            self,
            offsets=offsets,
            tokens={n: replace(c, values=c.values[gather]) for n, c in self.tokens.items()},
            rows={n: a[index] for n, a in self.rows.items()},
        )

    def mini(self, rows: Sequence[int] | NDArray[Any]) -> Batch:
        """Some rows as an optimiser batch of their own: counts and each rollout's ``tokens`` are taken anew.

        The counts before filtering are shared out in proportion to the rows' own, so that filtering weighs alike in every part.
        """
        part = self.micro(rows)
        tokens = _rollout_tokens(part.rows["rollout"], part.part_lengths(), len(self.rollouts["group"]))
        part = part.with_rollouts(tokens=tokens)
        counts = counts_of(part)
        return replace(part, counts=counts, drawn=_share(self.drawn, counts, self.counts))

    def part_lengths(self) -> NDArray[np.int64]:
        """``[B]`` loss tokens per row."""
        before = np.concatenate([[0], np.cumsum(self.token("mask"), dtype=np.int64)])
        return before[self.offsets[1:]] - before[self.offsets[:-1]]


def pack(groups: Sequence[Group], drawn: Counts | None = None, policy: str = "policy") -> Batch:
    """Rows of graded groups as one optimiser batch.

    Faulty rollouts (`Score.valid` false) stay in the table with ``valid`` False and contribute no rows.

    Args:
        groups: the groups kept.
        drawn: counts before filtering; the batch's own when None.
        policy: whose tokens carry loss.

    Raises:
        DataError: no group, no valid rollout with a sampled token, or a rollout whose policy saw pictures.
    """
    parts: list[Segment] = []
    lengths: list[int] = []
    owners: list[int] = []
    prompts: list[tuple[int, Ids | None]] = []
    reposed: list[bool] = []
    rollouts = [(r, s) for g in groups for r, s in zip(g.rollouts, g.scores, strict=True)]
    for index, (rollout, score) in enumerate(rollouts):
        if score.valid and any(call.media and not call.placeholders for call in rollout.calls):
            raise DataError(f"rollout {rollout.id} shows pictures, which a batch cannot carry: no learner here sees them yet")
        for row, first in segments(rollout, policy) if score.valid else ():
            parts += row
            lengths.append(sum([len(part[0]) for part in row]))
            owners.append(index)
            prompts.append((len(row[0][0]), first.privileged_prefix))
            reposed.append(first.score_prefix is not None)
    if not lengths:
        raise DataError(_NOTHING)
    columns = lay_out(parts)
    sampled = np.where(columns["mask"].values, columns["call"].values, -1)
    columns |= span_columns(rollouts, np.repeat(owners, lengths), sampled)
    batch = _batch(columns, lengths, owners, np.zeros(len(owners), np.int8), _rollout_table(groups), drawn)
    other = {"reposed": np.array(reposed)} if any(reposed) else {}
    return replace(batch, rows={**batch.rows, **_privileged_columns(prompts), **other})


def _privileged_columns(prompts: Sequence[tuple[int, Ids | None]]) -> dict[str, Array]:
    """The row columns ``prompt`` and ``privileged``; none where no row has a privileged prompt."""
    longest = max(0 if ids is None else len(ids) for _, ids in prompts)
    if not longest:
        return {}
    table = np.full((len(prompts), longest), -1, np.int32)
    for row, (_, ids) in enumerate(prompts):
        if ids is not None:
            table[row, : len(ids)] = ids
    return {"prompt": np.array([length for length, _ in prompts], np.int64), "privileged": table}


def pack_rows(rows: Sequence[tuple[int, Sample]], table: Mapping[str, Array], drawn: Counts | None = None) -> Batch:
    """Rows, each with the index of its rollout in ``table`` (which has at least ``group``), as one optimiser batch.

    Token columns that only some rows carry are filled in the others (`TokenColumn.fill`).

    Raises:
        DataError: no rows, or rows whose columns differ in type or shape.
    """
    if not rows:
        raise DataError(_NOTHING)
    samples_ = [s for _, s in rows]
    columns = {
        "ids": TokenColumn("ids", np.concatenate([s.ids for s in samples_]), "rollout"),
        "mask": TokenColumn("mask", np.concatenate([s.mask for s in samples_]), "rollout"),
    }
    for name in sorted({n for s in samples_ for n in s.columns}):
        columns[name] = _join_column(name, samples_)
    streams = np.array([STREAMS.index(s.stream) for s in samples_], np.int8)
    return _batch(columns, [len(s.ids) for s in samples_], [i for i, _ in rows], streams, table, drawn)


def _batch(
    columns: dict[str, TokenColumn],
    lengths: list[int],
    owners: list[int],
    streams: NDArray[np.int8],
    table: Mapping[str, Array],
    drawn: Counts | None,
) -> Batch:
    """Columns, tokens per row and the rollout that each row is of, as a batch that is counted."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rows: dict[str, Array] = {"rollout": np.array(owners, np.int64), "stream": streams}
    nothing = Counts(0, 0, 0, 0)
    batch = Batch(offsets=offsets, tokens=columns, rows=rows, rollouts=table, counts=nothing, drawn=nothing)
    batch = batch.with_rollouts(tokens=_rollout_tokens(rows["rollout"], batch.part_lengths(), len(table["group"])))
    counts = counts_of(batch)
    return replace(batch, counts=counts, drawn=counts if drawn is None else drawn)


def _join_column(name: str, rows: Sequence[Sample]) -> TokenColumn:
    model = next(s.columns[name] for s in rows if name in s.columns)
    parts: list[Array] = []
    for row in rows:
        column = row.columns.get(name)
        if column is None:
            parts.append(np.full((len(row.ids), *model.trailing), model.fill, model.dtype))
            continue
        if column.dtype != model.dtype or column.values.shape != (len(row.ids), *model.trailing):
            raise DataError(
                f"row of rollout {row.rollout!r}: token column {name!r} is {column.dtype}{list(column.values.shape)} where "
                f"{model.dtype}{[len(row.ids), *model.trailing]} is wanted; all rows give one type and shape"
            )
        parts.append(column.values)
    version = common_version(s.columns[name] for s in rows if name in s.columns)
    return replace(model, values=np.concatenate(parts), version=version)


def _rollout_table(groups: Sequence[Group]) -> dict[str, Array]:
    scores = [s for g in groups for s in g.scores]
    names = sorted({n for s in scores for n in s.components})
    table: dict[str, Array] = {
        "group": np.repeat(np.arange(len(groups)), [len(g.rollouts) for g in groups]).astype(np.int64),
        "id": np.array([r.id for g in groups for r in g.rollouts], np.str_),
        "valid": np.array([s.valid for s in scores], np.bool_),
        "domain": np.array([g.task.domain for g in groups for _ in g.rollouts], np.str_),
        "arm": np.array([g.task.arm for g in groups for _ in g.rollouts], np.str_),
        "level": np.array([g.task.level for g in groups for _ in g.rollouts], np.int64),
        "length": np.array([r.length for g in groups for r in g.rollouts], np.int64),
        "truncated": np.array([r.stop == "length" for g in groups for r in g.rollouts], np.bool_),
    }
    for name in names:
        table[f"components/{name}"] = np.array([s.components.get(name, np.nan) for s in scores], np.float64)
    for name in sorted({n for s in scores for n in s.columns}):
        table[name] = np.array([s.columns.get(name, np.nan) for s in scores], np.float64)
    return table


def _rollout_tokens(rollout: Array, per_row: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    tokens = np.zeros(total, np.int64)
    np.add.at(tokens, rollout, per_row)
    return tokens


def _share(drawn: Counts, part: Counts, whole: Counts) -> Counts:
    """``drawn * part / whole``, each count rounded; never below ``part``."""
    pairs = zip(astuple(drawn), astuple(part), astuple(whole), strict=True)
    return Counts(*(p if d == w or not w else max(p, round(d * p / w)) for d, p, w in pairs))


def counts_of(batch: Batch) -> Counts:
    """Loss tokens, rows, rollouts and groups of a batch that is whole; rollouts without a row do not count."""
    present = np.unique(batch.rows["rollout"])
    groups = np.unique(batch.rollouts["group"][present])
    return Counts(int(batch.token("mask").sum()), len(batch), len(present), len(groups))
