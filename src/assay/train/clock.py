"""Where a step's time went."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager

from assay.core.util.profiler import counting, timed

__all__ = ["Clock"]


PARTS = {"generate": "rollout", "supply": "rollout", "score": "verify", "check": "verify"}
"""What a profile calls a block; any other it calls by the block's own name."""


class Clock:
    """Adds up wall seconds by name, from its construction on, also as parts of a step that is profiled.

    >>> clock = Clock()
    >>> with clock("score"):
    ...     pass
    >>> sorted(clock.seconds())
    ['time/score', 'time/step']
    """

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._spent: dict[str, float] = {}
        self._parts = counting()
        if self._parts:
            self._parts.start()

    @contextmanager
    def __call__(self, name: str) -> Generator[None]:
        begin = time.perf_counter()
        try:
            with timed(PARTS.get(name, name)):
                yield
        finally:
            self._spent[name] = self._spent.get(name, 0.0) + time.perf_counter() - begin

    def seconds(self) -> Mapping[str, float]:
        """``time/NAME`` of each block, and ``time/step`` since construction; with a profile `profile_metrics` of it too."""
        told = profile_metrics(*self._parts.seconds()) if self._parts else {}
        return {f"time/{k}": v for k, v in self._spent.items()} | {"time/step": time.perf_counter() - self._start} | told


def profile_metrics(wall: Mapping[str, float], cpu: Mapping[str, float]) -> dict[str, float]:
    """``time/profile/PART`` in wall and ``time/profile_cpu/PART`` in CPU seconds.

    An engine that is not of this process is only waited for: that wait is then its part.

    >>> profile_metrics({"rollout": 2.0, "framework": 1.0}, {"rollout": 0.5, "framework": 1.0})["time/profile/engine"]
    2.0
    """
    elsewhere = "rollout" in wall and "engine" not in wall
    return {
        f"time/{kind}/{'engine' if elsewhere and name == 'rollout' else name}": seconds
        for kind, of in (("profile", wall), ("profile_cpu", cpu))
        for name, seconds in of.items()
    }
