"""Composers that bring what some methods ask for beside their own attempts: columns, another stream, stored answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.columns import TokenColumn
from assay.core.errors import ConfigError, UnknownNameError
from assay.core.group import Group
from assay.core.protocols import Replay
from assay.core.sample import STREAMS
from assay.guide import Compose

__all__ = ["COLUMNS", "AsStream", "WithColumns", "WithStored"]

F = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class AsStream:
    """A composer's rows under the name of another stream.

    Attributes:
        stream: for example ``offline``: the step's own attempts, taken for stored ones.
        inner: makes the batch.
    """

    stream: str
    inner: WithColumns | Compose = field(default_factory=Compose)

    def __post_init__(self) -> None:
        if self.stream not in STREAMS:
            raise UnknownNameError("stream", self.stream, STREAMS)

    def compose(self, groups: Sequence[Group], replay: Replay | None, step: int, experts: Sequence[Group] = ()) -> Batch | None:
        """The batch of a step, or None when no attempt has a token to learn from."""
        batch = self.inner.compose(groups, replay, step, experts)
        if batch is None:
            return None
        stream = np.full(len(batch), STREAMS.index(self.stream), np.int8)
        return replace(batch, rows={**batch.rows, "stream": stream})


@dataclass(frozen=True, slots=True, kw_only=True)
class WithColumns:
    """Each group's attempts, with columns that a user's sampler would bring.

    Attributes:
        names: of `COLUMNS`.
        solved: pairs of level and the base's sampled accuracy there, for ``value_ref`` and ``optimal_value``.
    """

    names: tuple[str, ...]
    solved: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        for name in self.names:
            if name not in COLUMNS:
                raise UnknownNameError("column", name, COLUMNS)
        if {"value_ref", "optimal_value"} & {*self.names} and not self.solved:
            raise ConfigError(f"WithColumns(names={self.names}): give solved=((level, accuracy of the base), ...) with them")

    def compose(self, groups: Sequence[Group], replay: Replay | None, step: int, experts: Sequence[Group] = ()) -> Batch | None:
        """The batch of a step, or None when no attempt has a token to learn from.

        Raises:
            ConfigError: there are expert attempts.
        """
        if experts:
            raise ConfigError("WithColumns makes columns for the policy's own attempts only; leave Reinforce.experts at False")
        batch = Compose().compose(groups, replay, step)
        if batch is None:
            return None
        for name in self.names:
            values = COLUMNS[name](groups, dict(self.solved))
            if name in TOKENS:
                batch = batch.with_tokens(TokenColumn(name, _spread(batch, values), "rollout"))
            else:
                batch = batch.with_rollouts(**{name: np.concatenate(values)})
        return batch


def _spread(batch: Batch, values: Sequence[F]) -> F:
    """``[N]`` numbers of each attempt's sampled tokens, in order, at those tokens; attempts without rows are left out."""
    out = np.zeros(int(batch.offsets[-1]))
    owners = [int(i) for i in batch.rows["rollout"]]
    out[np.flatnonzero(batch.token("mask"))] = np.concatenate([values[i] for i in owners])
    return out


@dataclass(frozen=True, slots=True, kw_only=True)
class WithStored:
    """Each group's attempts and, in the stream ``offline``, one right answer to each prompt of the levels that the base masters.

    Where a task has one right answer, as digit sorting has, any right attempt is what the base would have written.

    Attributes:
        levels: that the base masters.
    """

    levels: tuple[int, ...]

    def compose(self, groups: Sequence[Group], replay: Replay | None, step: int, experts: Sequence[Group] = ()) -> Batch | None:
        """The batch of a step, or None when no attempt has a token to learn from.

        Raises:
            ConfigError: there are expert attempts.
        """
        if experts:
            raise ConfigError("WithStored brings answers of its own beside the attempts; leave Reinforce.experts at False")
        stored = [g for group in groups if group.task.level in self.levels for g in _right_one(group)]
        batch = Compose().compose(groups, replay, step, stored)
        if batch is None:
            return None
        stream = batch.rows["stream"]
        return replace(batch, rows={**batch.rows, "stream": np.where(stream == _EXPERT, _OFFLINE, stream).astype(stream.dtype)})


_EXPERT, _OFFLINE = STREAMS.index("expert"), STREAMS.index("offline")


def _right_one(group: Group) -> list[Group]:
    """The first right attempt of a group once more, alone; nothing where none is right."""
    right = [i for i, s in enumerate(group.scores) if s.valid and s.primary == 1.0]
    return [
        replace(group, rollouts=(replace(group.rollouts[i], id=f"{group.rollouts[i].id}-stored"),), scores=(group.scores[i],))
        for i in right[:1]
    ]


Made = Callable[[Sequence[Group], Mapping[int, float]], Sequence[F]]
"""From groups, and the base's accuracy by level, to numbers: an array per group, or, of `TOKENS`, one per attempt."""


def _peers(groups: Sequence[Group], solved: Mapping[int, float]) -> Sequence[F]:
    return [np.floor(np.arange(len(g.rollouts), dtype=np.float64) * 2 / len(g.rollouts)) for g in groups]


def _level(groups: Sequence[Group], solved: Mapping[int, float]) -> Sequence[F]:
    return [np.full(len(g.rollouts), float(g.task.level)) for g in groups]


def _failed(groups: Sequence[Group], solved: Mapping[int, float]) -> Sequence[F]:
    return [np.full(len(g.rollouts), 1.0 - (g.success or 0.0)) for g in groups]


def _zeros(groups: Sequence[Group], solved: Mapping[int, float]) -> Sequence[F]:
    return [np.zeros(len(g.rollouts)) for g in groups]


def _win(groups: Sequence[Group], solved: Mapping[int, float]) -> Sequence[F]:
    return [np.array([s.primary / 2 if s.valid else 0.0 for s in g.scores]) for g in groups]


def _loss(groups: Sequence[Group], solved: Mapping[int, float]) -> Sequence[F]:
    return [1.0 - x for x in _win(groups, solved)]


def _value(groups: Sequence[Group], solved: Mapping[int, float]) -> Sequence[F]:
    return [np.full(len(g.rollouts), solved[g.task.level]) for g in groups]


def _optimal(groups: Sequence[Group], solved: Mapping[int, float]) -> Sequence[F]:
    """``b log E exp(R / b)`` with ``b = 1/2`` and a reward of 0 or 1."""
    return [0.5 * np.log1p(x * np.expm1(2.0)) for x in _value(groups, solved)]


def _tokens(group: Group) -> list[int]:
    return [sum(len(c.completion.ids) for c in r.calls) for r in group.rollouts]


def _segment(groups: Sequence[Group], solved: Mapping[int, float]) -> Sequence[F]:
    return [np.arange(n, dtype=np.float64) for g in groups for n in _tokens(g)]


def _right(groups: Sequence[Group], solved: Mapping[int, float]) -> Sequence[F]:
    """A share of 1 for each character that is right at its place, and for ending where the answer ends."""
    return [
        np.array([float(a == b) for a, b in zip(_padded(r.text, n), _padded(g.task.private["answer"], n), strict=True)])
        / (len(g.task.private["answer"]) + 1)
        for g in groups
        for r, n in zip(g.rollouts, _tokens(g), strict=True)
    ]


def _padded(text: str, n: int) -> list[str]:
    return [*text, *[""] * n][:n]


COLUMNS: Mapping[str, Made] = {
    "difficulty": _level,
    "hardness": _failed,
    "loss": _loss,
    "optimal_value": _optimal,
    "peers": _peers,
    "process_reward": _right,
    "responsiveness": _zeros,
    "role": _level,
    "segment": _segment,
    "value_ref": _value,
    "win": _win,
}
"""What can be brought: of attempts, and of tokens those in `TOKENS`."""

TOKENS = ("process_reward", "segment")
