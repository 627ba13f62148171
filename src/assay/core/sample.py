"""Training rows from a tree of calls.

A call whose prefix begins with its parent's prefix and completion *extends* it and shares its row. Of several extending
children the first keeps the row; the others start rows of their own in which the shared tokens are context. A call that does
not extend its parent (compaction, a sub-agent) starts a new row. So every sampled token is trained exactly once, and splitting a
rollout leaves the sum of its loss weights unchanged. A call that is `Call.shared` carries loss in the rollout that sampled it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from assay.core.columns import Array, TokenColumn, common_version
from assay.core.errors import ConfigError, DataError
from assay.core.rollout import Call, Completion, Ids, Rollout, ids_of

__all__ = [
    "STREAMS",
    "TEMPERATURE",
    "Sample",
    "Segment",
    "Stream",
    "check_annealed",
    "lay_out",
    "samples",
    "segments",
    "supervised_sample",
]

Stream = str
"""``on_policy``, ``expert``, ``replay``, ``offline`` or ``preference``."""

Segment = tuple[Ids, int, bool, Completion | None, Mapping[str, TokenColumn]]
"""Tokens, the call that sampled them (-1 for none), whether they carry loss, and what the engine said of them: as it sampled
them, and as they stood in a prompt.
"""

TEMPERATURE = "temperature"
"""The column that says at which temperature each token was sampled; learners score it there."""

_NOTHING: Mapping[str, TokenColumn] = {}

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
        Rows that hold each token that ``policy`` sampled in this rollout exactly once with loss; rows without any are left out.
        Engine columns have their fill on tokens that were not sampled, unless the engine told of the prompt, and where a call
        brought no such column.

    Raises:
        DataError: a policy that answered an empty prefix, or calls whose columns differ in type or shape.
    """
    return tuple(_sample(rollout.id, lay_out(row), stream) for row, _ in segments(rollout, policy))


def _sample(rollout: str, columns: dict[str, TokenColumn], stream: Stream) -> Sample:
    ids, mask = columns.pop("ids").values, columns.pop("mask").values
    ids.setflags(write=False)
    return Sample(rollout=rollout, ids=ids, mask=mask, columns=columns, stream=stream)


def supervised_sample(key: str, pieces: list[tuple[Ids, bool]], stream: Stream = "expert") -> Sample:
    """A row from written text: ``pieces`` of ids, each with whether it carries loss.

    Raises:
        DataError: no pieces, or the first token carries loss.

    >>> supervised_sample("trace/0", [(ids_of([5, 6]), False), (ids_of([7]), True)]).mask
    array([False, False,  True])
    """
    if not pieces:
        raise DataError(f"row {key!r} has no text")
    ids = ids_of(np.concatenate([p for p, _ in pieces]))
    mask = np.repeat([learn for _, learn in pieces], [len(p) for p, _ in pieces])
    return Sample(rollout=key, ids=ids, mask=mask, stream=stream)


def extends(call: Call, parent: Call) -> bool:
    """Whether ``call`` was posed on its parent's very tokens, and shows its pictures first."""
    cut = len(parent.prefix)
    end = cut + len(parent.completion.ids)
    head = call.prefix
    return (
        len(head) >= end
        and bool(np.array_equal(head[:cut], parent.prefix))
        and bool(np.array_equal(head[cut:end], parent.completion.ids))
        and call.media[: len(parent.media)] == parent.media
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


def segments(rollout: Rollout, policy: str = "policy") -> list[tuple[list[Segment], Call]]:
    """The rows of a rollout that hold a token with loss: the segments that follow one another in it, and its first call."""
    if len(rollout.calls) == 1:  # as most rollouts are
        (call,) = rollout.calls
        trains = _learns(call, policy) and len(call.completion.ids) > 0
        return [([_opening(call), (call.completion.ids, 0, True, call.completion, _NOTHING)], call)] if trains else []
    rows = _chains(rollout.calls)
    return [(_segments(chain, owned, policy), chain[0]) for chain, owned in rows if _trains(chain, owned, policy)]


def _trains(chain: list[Call], owned: set[int], policy: str) -> bool:
    return any(_learns(call, policy) and call.id in owned and len(call.completion.ids) for call in chain)


def _learns(call: Call, policy: str) -> bool:
    return call.policy == policy and not call.shared


def _segments(chain: list[Call], owned: set[int], policy: str) -> list[Segment]:
    root = chain[0]
    out = [_opening(root)]
    end = len(root.prefix)
    for call in chain:
        if len(call.prefix) > end:
            out.append((call.prefix[end:], -1, False, None, _prefix_columns(call, end)))
        out.append((call.completion.ids, call.id, call.id in owned and _learns(call, policy), call.completion, _NOTHING))
        end = len(call.prefix) + len(call.completion.ids)
    return out


def _opening(root: Call) -> Segment:
    """What stands before a row's first call."""
    if root.score_prefix is not None:
        return root.score_prefix, -1, False, None, _NOTHING
    return root.prefix, -1, False, None, _prefix_columns(root, 0)


def _prefix_columns(call: Call, start: int) -> Mapping[str, TokenColumn]:
    """What the engine said of a call's prefix from ``start`` on."""
    said = call.completion.prompt
    if not said:
        return _NOTHING
    for name, column in said.items():
        if len(column.values) != len(call.prefix):
            raise DataError(f"prompt column {name!r} has {len(column.values)} tokens, the prefix has {len(call.prefix)}")
    return {name: replace(column, values=column.values[start:]) for name, column in said.items()}


def check_annealed(completion: Completion, engine: str) -> None:
    """Raises ConfigError where an engine was asked to anneal and does not say at which temperature each token was drawn.

    Args:
        completion: what it returned.
        engine: its name.
    """
    if completion.sampling.annealing and TEMPERATURE not in completion.columns:
        raise ConfigError(
            f"{engine} was asked to anneal (Sampling.annealing), and does not tell the temperature of each token, at which a "
            "learner would score it; use an engine that does (engine=Auto()), or leave annealing out"
        )


def lay_out(parts: Sequence[Segment]) -> dict[str, TokenColumn]:
    """Segments behind one another as token columns: ``ids``, ``mask``, ``call`` and what the engines said of the sampled tokens.

    Engine columns have their fill on other tokens, unless the engine told of the prompt, and where a completion has no such
    column. Where a call was sampled at another temperature than 1, ``temperature`` says at which each token was, unless the
    engine gave that column itself; 0 stands where it is not known, and there a learner scores at 1.

    Raises:
        DataError: completions whose columns differ in type or shape.
    """
    lengths = [len(part[0]) for part in parts]
    call = np.repeat(np.array([part[1] for part in parts], np.int32), lengths)
    columns = {
        "ids": TokenColumn("ids", np.concatenate([part[0] for part in parts], dtype=np.int32), "rollout"),
        "mask": TokenColumn("mask", np.repeat(np.array([part[2] for part in parts]), lengths), "rollout"),
        "call": TokenColumn("call", call, "rollout"),
    }
    sampled = call >= 0
    done = [part[3] for part in parts if part[3] is not None and len(part[3].ids)]
    spans = [span for c in done for span in c.spans]
    said = {
        "logp_engine": np.concatenate([c.logp_engine for c in done], dtype=np.float32),
        "weight_version": np.repeat(np.array([s.version for s in spans], np.int32), [s.end - s.start for s in spans]),
    }
    for name, values in said.items():
        columns[name] = TokenColumn(name, values, "engine").spread(len(call), sampled)
    for name in sorted({n for c in done for n in c.columns}):
        columns[name] = _engine_column(name, done).spread(len(call), sampled)
    if TEMPERATURE not in columns and any(c.sampling.temperature not in (0.0, 1.0) for c in done):
        each = np.repeat(np.array([c.sampling.temperature for c in done], np.float32), [len(c.ids) for c in done])
        columns[TEMPERATURE] = TokenColumn(TEMPERATURE, each, "engine").spread(len(call), sampled)
    if any(part[4] for part in parts):
        starts = np.concatenate([[0], np.cumsum(lengths)])
        for (ids, _, _, _, told), start in zip(parts, starts.tolist(), strict=False):
            for name, column in told.items():
                columns[name].values[start : start + len(ids)] = column.values
    return columns


def _engine_column(name: str, done: Sequence[Completion]) -> TokenColumn:
    given = [c.columns[name] for c in done if name in c.columns]
    model = given[0]
    dtype, trailing = model.dtype, model.trailing
    for column in given:
        if column.values.dtype != dtype or column.values.shape[1:] != trailing:
            raise DataError(
                f"token column {name!r} is {column.dtype}{list(column.trailing)} in one call and "
                f"{dtype}{list(trailing)} in another; engines give one type and shape"
            )
    parts: list[Array] = [
        c.columns[name].values if name in c.columns else np.full((len(c.ids), *trailing), model.fill, dtype) for c in done
    ]
    return replace(model, values=np.concatenate(parts), version=common_version(given))
