"""Which task of a stream comes next, where the curriculum leaves it open."""

from __future__ import annotations

from dataclasses import dataclass

from assay.core.errors import ConfigError
from assay.core.protocols import State

__all__ = ["FirstTasks", "InOrder", "InOrderIndex"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InOrder:
    """Each (arm, level) stream from its first task on: 0, 1, 2, ... A source of rows goes through them epoch by epoch.

    >>> index = InOrder().build(seed=0)
    >>> index.next("sort", 3), index.next("sort", 3), index.next("sort", 4)
    (0, 1, 0)
    """

    def build(self, seed: int) -> InOrderIndex:
        """The counters."""
        return InOrderIndex()


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstTasks:
    """Only the first ``n`` tasks of each stream, over and over: RL on one prompt, or on a handful.

    Each draw is a group of its own with its own baseline, also where a step holds one task many times. Source: 1-shot RLVR (arXiv
    2504.20571) for ``n=1``; which task to take is a question of its history (`assay.guide.HistoryRows`).

    Attributes:
        n: tasks per stream, at least 1.

    Raises:
        ConfigError: ``n`` below 1.

    >>> index = FirstTasks(n=2).build(seed=0)
    >>> [index.next("sort", 3) for _ in range(4)]
    [0, 1, 0, 1]
    """

    n: int = 1

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ConfigError(f"FirstTasks.n={self.n}; use at least 1 task per stream")

    def build(self, seed: int) -> InOrderIndex:
        """The counters."""
        return InOrderIndex(self.n)


class InOrderIndex:
    """A counter per stream; implements `assay.core.protocols.IndexPolicy`.

    Args:
        n: after so many tasks a stream begins again; 0 for never.
    """

    def __init__(self, n: int = 0) -> None:
        self.n = n
        self._next: dict[str, int] = {}

    def next(self, arm: str, level: int) -> int:
        """The next index of the stream."""
        key = f"{arm}/{level}"
        index = self._next.get(key, 0)
        self._next[key] = index + 1
        return index % self.n if self.n else index

    def state_dict(self) -> State:
        """How many were taken, by stream."""
        return dict(self._next)

    def load_state_dict(self, state: State) -> None:
        """Restores `state_dict`."""
        self._next = {k: int(v) for k, v in state.items()}
