"""Training rows from a tree of calls.

A call whose prefix begins with its parent's prefix and completion *extends* it and shares its row. Of several extending
children the first keeps the row; the others start rows of their own in which the shared tokens are context. A call that does
not extend its parent (compaction, a sub-agent) starts a new row. So every sampled token is trained exactly once, and splitting a
rollout leaves the sum of its loss weights unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from assay.core.columns import TokenColumn, common_version
from assay.core.errors import DataError
from assay.core.rollout import Call, Completion, Ids, Rollout, ids_of

__all__ = ["Sample", "Stream", "samples", "supervised"]

Stream = str
"""``on_policy``, ``expert``, ``replay``, ``offline`` or ``preference``."""

STREAMS: tuple[Stream, ...] = ("on_policy", "expert", "replay", "offline", "preference")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """One training row.

    Attributes:
        rollout: id of the rollout it came from.
        ids: ``[N]`` token ids.
        mask: ``[N]`` True on tokens that carry loss.
        columns: token columns of ``N`` tokens each: ``logp_engine``, ``weight_version``, ``call``, and what engines add.
        stream: which estimator the row belongs to.
    """

    rollout: str
    ids: Ids
    mask: NDArray[np.bool_]
    columns: Mapping[str, TokenColumn] = field(default_factory=dict[str, TokenColumn])
    stream: Stream = "on_policy"

    def __post_init__(self) -> None:
        if self.stream not in STREAMS:
            raise DataError(f"row of rollout {self.rollout!r}: unknown stream {self.stream!r}; one of {STREAMS}")
        if "ids" in self.columns or "mask" in self.columns:
            raise DataError(f"row of rollout {self.rollout!r}: ids and mask are fields, not columns")
        if len(self.mask) != len(self.ids):
            raise DataError(f"row of rollout {self.rollout!r}: {len(self.ids)} ids but {len(self.mask)} mask entries")
        if len(self.mask) and self.mask[0]:
            raise DataError(f"row of rollout {self.rollout!r}: the first token has no context and cannot carry loss")


def samples(rollout: Rollout, policy: str = "policy", stream: Stream = "on_policy") -> tuple[Sample, ...]:
    """The training rows of a rollout, in the order of their first call.

    Args:
        rollout: the tree.
        policy: only tokens sampled by this policy carry loss.
        stream: label of the rows.

    Returns:
        Rows that hold each sampled token of ``policy`` exactly once with loss; rows without any are left out. Engine columns
        are zero on tokens that were not sampled, and where a call brought no such column.

    Raises:
        DataError: a policy that answered an empty prefix, or calls whose columns differ in type or shape.
    """
    rows = (_row(rollout, chain, owned, policy, stream) for chain, owned in _chains(rollout.calls))
    return tuple(row for row in rows if row is not None)


def supervised(key: str, pieces: list[tuple[Ids, bool]], stream: Stream = "expert") -> Sample:
    """A row from written text: ``pieces`` of ids, each with whether it carries loss.

    Raises:
        DataError: no pieces, or the first token carries loss.

    >>> supervised("trace/0", [(ids_of([5, 6]), False), (ids_of([7]), True)]).mask
    array([False, False,  True])
    """
    if not pieces:
        raise DataError(f"row {key!r} has no text")
    ids = ids_of(np.concatenate([p for p, _ in pieces]))
    mask = np.repeat([learn for _, learn in pieces], [len(p) for p, _ in pieces])
    return Sample(rollout=key, ids=ids, mask=mask, stream=stream)


def extends(call: Call, parent: Call) -> bool:
    """Whether ``call`` was posed on its parent's very tokens."""
    cut = len(parent.prefix)
    end = cut + len(parent.completion.ids)
    head = call.prefix
    return (
        len(head) >= end
        and bool(np.array_equal(head[:cut], parent.prefix))
        and bool(np.array_equal(head[cut:end], parent.completion.ids))
    )


def _chains(calls: tuple[Call, ...]) -> list[tuple[list[Call], set[int]]]:
    """Rows as (calls from root to leaf, ids of the calls whose tokens carry loss there)."""
    chains: list[tuple[list[Call], set[int]]] = []
    open_at: dict[int, int] = {}  # id of a row's last call -> index of the row
    path: dict[int, list[Call]] = {}  # id of a call -> the calls its tokens extend, itself included
    for call in calls:
        parent = None if call.parent is None else calls[call.parent]
        if parent is None or not extends(call, parent):
            path[call.id] = [call]
            chains.append(([call], {call.id}))
            open_at[call.id] = len(chains) - 1
            continue
        path[call.id] = [*path[parent.id], call]
        row = open_at.pop(parent.id, None)
        if row is None:
            chains.append((path[call.id], {call.id}))
            row = len(chains) - 1
        else:
            chains[row] = (path[call.id], chains[row][1] | {call.id})
        open_at[call.id] = row
    return chains


def _row(rollout: Rollout, chain: list[Call], owned: set[int], policy: str, stream: Stream) -> Sample | None:
    if not any(c.id in owned and c.policy == policy and len(c.completion.ids) for c in chain):
        return None
    root, leaf = chain[0], chain[-1]
    head = root.prefix if root.score_prefix is None else root.score_prefix
    shift = len(head) - len(root.prefix)
    total = shift + len(leaf.prefix) + len(leaf.completion.ids)
    ids = np.concatenate([head, leaf.prefix[len(root.prefix) :], leaf.completion.ids], dtype=np.int32)
    ids.setflags(write=False)
    mask, call_of = np.zeros(total, np.bool_), np.empty(total, np.int32)
    call_of.fill(-1)
    places: list[tuple[slice, Completion]] = []
    for call in chain:
        start = len(call.prefix) + shift
        here = slice(start, start + len(call.completion.ids))
        call_of[here] = call.id
        mask[here] = call.id in owned and call.policy == policy
        places.append((here, call.completion))
    columns = {"call": TokenColumn("call", call_of, "rollout")} | _engine_columns(total, places)
    return Sample(rollout=rollout.id, ids=ids, mask=mask, columns=columns, stream=stream)


def _engine_columns(total: int, places: list[tuple[slice, Completion]]) -> dict[str, TokenColumn]:
    """What the engines said of the sampled tokens, zeros elsewhere."""
    logp, versions = np.zeros(total, np.float32), np.zeros(total, np.int32)
    extra: dict[str, TokenColumn] = {}
    for here, completion in places:
        logp[here] = completion.logp_engine
        for span in completion.spans:
            versions[here.start + span.start : here.start + span.end] = span.version
        for name, column in completion.columns.items():
            if name not in extra:
                version = common_version(c.columns[name] for _, c in places if name in c.columns)
                values = np.zeros((total, *column.trailing), column.dtype)
                extra[name] = TokenColumn(name, values, column.producer, version)
            _fill(extra[name], here, column)
    return {
        "logp_engine": TokenColumn("logp_engine", logp, "engine"),
        "weight_version": TokenColumn("weight_version", versions, "engine"),
        **extra,
    }


def _fill(into: TokenColumn, here: slice, column: TokenColumn) -> None:
    if (into.dtype, into.trailing) != (column.dtype, column.trailing):
        raise DataError(
            f"token column {into.name!r} is {column.dtype}{list(column.trailing)} in one call and "
            f"{into.dtype}{list(into.trailing)} in another; an engine gives one type and shape"
        )
    into.values[here] = column.values
