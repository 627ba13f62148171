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

from assay.core.columns import Array, TokenColumn
from assay.core.errors import DataError
from assay.core.rollout import Call, Ids, Rollout, ids_of

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
        Rows that hold each sampled token of ``policy`` exactly once with loss; rows without any are left out.
    """
    rows = [_row(rollout, chain, owned, policy, stream) for chain, owned in _chains(rollout.calls)]
    return tuple(row for row in rows if row.mask.any())


def supervised(key: str, pieces: list[tuple[Ids, bool]], stream: Stream = "expert") -> Sample:
    """A row from written text: ``pieces`` of ids, each with whether it carries loss."""
    ids = ids_of(np.concatenate([p for p, _ in pieces]))
    mask = np.concatenate([np.full(len(p), learn) for p, learn in pieces])
    return Sample(rollout=key, ids=ids, mask=mask, stream=stream)


def extends(call: Call, parent: Call) -> bool:
    """Whether ``call`` was posed on its parent's very tokens."""
    head = parent.tokens
    return len(call.prefix) >= len(head) and bool(np.array_equal(call.prefix[: len(head)], head))


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


def _row(rollout: Rollout, chain: list[Call], owned: set[int], policy: str, stream: Stream) -> Sample:
    root, leaf = chain[0], chain[-1]
    head = root.prefix if root.score_prefix is None else root.score_prefix
    shift = len(head) - len(root.prefix)
    ids = ids_of(np.concatenate([head, leaf.tokens[len(root.prefix) :]]))
    sampled = np.zeros(len(ids), np.bool_)
    mask = np.zeros(len(ids), np.bool_)
    call_of = np.full(len(ids), -1, np.int32)
    for call in chain:
        here = slice(len(call.prefix) + shift, len(call.prefix) + shift + len(call.completion.ids))
        sampled[here] = True
        call_of[here] = call.id
        mask[here] = call.id in owned and call.policy == policy
    columns = {"call": TokenColumn("call", call_of, "rollout")} | _engine_columns(chain, sampled)
    return Sample(rollout=rollout.id, ids=ids, mask=mask, columns=columns, stream=stream)


def _engine_columns(chain: list[Call], sampled: NDArray[np.bool_]) -> dict[str, TokenColumn]:
    total = len(sampled)
    parts = [c.completion for c in chain]
    out: dict[str, Array] = {
        "logp_engine": np.concatenate([p.logp_engine for p in parts]),
        "weight_version": np.concatenate([p.versions() for p in parts]),
    }
    shared = set(parts[0].columns).intersection(*(p.columns for p in parts))
    for name in sorted(shared):
        out[name] = np.concatenate([p.columns[name].values for p in parts])
    return {name: TokenColumn(name, values, "engine").spread(total, sampled) for name, values in out.items()}
