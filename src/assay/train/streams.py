"""Composers that say which stream the rows of a batch are of: own rollouts taken for stored answers, or stored ones beside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from assay.core.batch import Batch
from assay.core.errors import ConfigError, UnknownNameError
from assay.core.fields import later
from assay.core.group import Group
from assay.core.protocols import BatchComposer, Replay
from assay.core.sample import STREAMS
from assay.guide import Compose

__all__ = ["AsStream", "WithStored"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AsStream:
    """A composer's rows under the name of another stream.

    Attributes:
        stream: for example ``offline``: the step's own rollouts, taken for stored ones.
        inner: makes the batch.

    Raises:
        UnknownNameError: no such stream.
    """

    stream: str
    inner: BatchComposer = field(default_factory=Compose)

    def __post_init__(self) -> None:
        if self.stream not in STREAMS:
            raise UnknownNameError("stream", self.stream, STREAMS)

    def compose(self, groups: Sequence[Group], replay: Replay | None, step: int, experts: Sequence[Group] = ()) -> Batch | None:
        """The batch of a step, or None when no rollout has a token to learn from."""
        batch = self.inner.compose(groups, replay, step, experts)
        if batch is None:
            return None
        stream = np.full(len(batch), STREAMS.index(self.stream), np.int8)
        return replace(batch, rows={**batch.rows, "stream": stream})


@dataclass(frozen=True, slots=True, kw_only=True)
class WithStored:
    """Each group's rollouts and, in the stream ``offline``, one right answer to each prompt that the base masters.

    Where a task has one right answer, as digit sorting has, any right rollout is what the base would have written.

    Attributes:
        levels: that the base masters; all when empty.
        least: share of a group's rollouts that must be right for its prompt to count as mastered, in [0, 1].

    Raises:
        ConfigError: a share out of range.
    """

    levels: tuple[int, ...] = ()
    least: float = later(0.0)

    def __post_init__(self) -> None:
        if not 0.0 <= self.least <= 1.0:
            raise ConfigError(f"WithStored.least={self.least}; use a share in [0, 1]")

    def compose(self, groups: Sequence[Group], replay: Replay | None, step: int, experts: Sequence[Group] = ()) -> Batch | None:
        """The batch of a step, or None when no rollout has a token to learn from.

        Raises:
            ConfigError: there are expert rollouts.
        """
        if experts:
            raise ConfigError("WithStored brings answers of its own beside the rollouts; leave Reinforce.experts at False")
        stored = [g for group in groups if self._mastered(group) for g in _right_one(group)]
        batch = Compose().compose(groups, replay, step, stored)
        if batch is None:
            return None
        stream = batch.rows["stream"]
        return replace(batch, rows={**batch.rows, "stream": np.where(stream == _EXPERT, _OFFLINE, stream).astype(stream.dtype)})

    def _mastered(self, group: Group) -> bool:
        return (not self.levels or group.task.level in self.levels) and (group.success or 0.0) >= self.least


_EXPERT, _OFFLINE = STREAMS.index("expert"), STREAMS.index("offline")


def _right_one(group: Group) -> list[Group]:
    """The first right rollout of a group once more, alone; nothing where none is right."""
    right = [i for i, s in enumerate(group.scores) if s.valid and s.primary == 1.0]
    return [
        replace(group, rollouts=(replace(group.rollouts[i], id=f"{group.rollouts[i].id}-stored"),), scores=(group.scores[i],))
        for i in right[:1]
    ]
