"""Rows that were collected: a ring of fixed capacity."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from assay.core import ConfigError
from assay_control.records import Array, Choices, Space

__all__ = ["Buffer"]


class Buffer:
    """The newest ``capacity`` rows of what was collected, in their order.

    Args:
        capacity: rows.
        observation: numbers in an observation.
        space: of actions.
        extra: further columns, one number a row.

    >>> from assay_control.records import Box
    >>> buffer = Buffer(3, 2, Box(1))
    >>> for i in range(4):
    ...     buffer.put(observation=np.full((1, 2), i), action=np.zeros((1, 1)), reward=np.zeros(1),
    ...                next_observation=np.zeros((1, 2)), terminal=np.zeros(1, bool), done=np.zeros(1, bool))
    >>> len(buffer), buffer.total, buffer.arrays["observation"][:, 0].tolist()
    (3, 4, [3.0, 1.0, 2.0])
    """

    def __init__(self, capacity: int, observation: int, space: Space, extra: tuple[str, ...] = ()) -> None:
        action, kind = ((), np.int64) if isinstance(space, Choices) else ((space.size,), np.float32)
        self.capacity, self.total = capacity, 0
        self.arrays: dict[str, Array] = {
            "observation": np.zeros((capacity, observation), np.float32),
            "action": np.zeros((capacity, *action), kind),
            "reward": np.zeros(capacity, np.float32),
            "next_observation": np.zeros((capacity, observation), np.float32),
            "terminal": np.zeros(capacity, np.bool_),
            "done": np.zeros(capacity, np.bool_),
            **{name: np.zeros(capacity, np.float32) for name in extra},
        }

    def __len__(self) -> int:
        return min(self.total, self.capacity)

    def put(self, **rows: Array) -> None:
        """Appends ``n`` rows, over the oldest where the ring is full.

        Raises:
            ConfigError: more rows at once than there is room for, or a column that is missing.
        """
        n = len(rows["reward"])
        if n > self.capacity or rows.keys() != self.arrays.keys():
            raise ConfigError(f"a buffer of {self.capacity} rows with {sorted(self.arrays)} cannot take {n} with {sorted(rows)}")
        at = (self.total + np.arange(n)) % self.capacity
        for name, values in rows.items():
            self.arrays[name][at] = values
        self.total += n

    def clear(self) -> None:
        """Forgets all rows."""
        self.total = 0

    def state(self) -> dict[str, Array]:
        """All that a resume needs: the rows that are there."""
        return {"total": np.array(self.total), **{name: values[: len(self)].copy() for name, values in self.arrays.items()}}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Goes on from a `state`."""
        self.total = int(state["total"])
        for name, values in self.arrays.items():
            values[: len(self)] = state[name]
