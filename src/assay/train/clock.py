"""Where a step's time went."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager

__all__ = ["Clock"]


class Clock:
    """Adds up wall seconds by name, from its construction on.

    >>> clock = Clock()
    >>> with clock("score"):
    ...     pass
    >>> sorted(clock.seconds())
    ['time/score', 'time/step']
    """

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._spent: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Generator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self._spent[name] = self._spent.get(name, 0.0) + time.perf_counter() - begin

    def seconds(self) -> Mapping[str, float]:
        """``time/NAME`` of each block, and ``time/step`` since construction."""
        return {f"time/{k}": v for k, v in self._spent.items()} | {"time/step": time.perf_counter() - self._start}
