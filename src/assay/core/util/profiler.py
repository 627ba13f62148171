"""Where a step's time goes, part by part and without remainder: each moment counts for the innermost part that is at work."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

__all__ = ["REST", "Parts", "counting", "timed"]

REST = "framework"
"""What is no part's."""

_OFF = nullcontext()
_HERE: ContextVar[Parts | None] = ContextVar("assay_parts", default=None)


def timed(name: str) -> AbstractContextManager[None]:
    """The block as a part of the step that is profiled; where none is, nothing.

    Inside a block nothing may be awaited but what is a part of it: a task that runs meanwhile counts as it too.
    """
    here = _HERE.get()
    return _OFF if here is None else here.part(name)


def counting() -> Parts | None:
    """What counts here; None where nothing is profiled."""
    return _HERE.get()


class Parts:
    """Wall and CPU seconds of this process by part, from `start` on. They add up to all that passed.

    Args:
        wait: called where a part begins or ends: has a device finish what it was given, or it would count as the next part's.
        wall, cpu: clocks, in seconds; replaced in tests.

    >>> ticks = iter(range(100))
    >>> parts = Parts(wall=lambda: float(next(ticks)), cpu=lambda: 0.0)
    >>> with parts.here():
    ...     with timed("rollout"):
    ...         with timed("engine"):
    ...             pass
    >>> parts.seconds()[0]  # a tick from each begin or end to the next
    {'framework': 2.0, 'rollout': 2.0, 'engine': 1.0}
    """

    def __init__(
        self,
        wait: Callable[[], None] | None = None,
        wall: Callable[[], float] = time.perf_counter,
        cpu: Callable[[], float] = time.process_time,
    ) -> None:
        self._wait, self._wall, self._cpu = wait, wall, cpu
        self.start()

    def start(self) -> None:
        """Forgets what was; from here on time is counted."""
        self._spent: dict[str, list[float]] = {}
        self._open = [REST]
        self._since = self._wall(), self._cpu()

    @contextmanager
    def here(self) -> Generator[None]:
        """Inside, `timed` counts here."""
        token = _HERE.set(self)
        try:
            yield
        finally:
            _HERE.reset(token)

    @contextmanager
    def part(self, name: str) -> Generator[None]:
        """The block as a part."""
        self._turn()
        self._open.append(name)
        try:
            yield
        finally:
            self._turn()
            self._open.pop()

    def _turn(self) -> None:
        """Gives what has passed since the last turn to the innermost part."""
        if self._wait:
            self._wait()
        now = self._wall(), self._cpu()
        spent = self._spent.setdefault(self._open[-1], [0.0, 0.0])
        spent[0] += now[0] - self._since[0]
        spent[1] += now[1] - self._since[1]
        self._since = now

    def seconds(self) -> tuple[Mapping[str, float], Mapping[str, float]]:
        """Wall and CPU seconds by part so far."""
        self._turn()
        return {n: v[0] for n, v in self._spent.items()}, {n: v[1] for n, v in self._spent.items()}
