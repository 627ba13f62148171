"""Which samplers are so slow that a step would wait for them: they get few groups, so that no group grows old with them."""

from __future__ import annotations

import statistics
from collections import deque

__all__ = ["SamplerSpeeds"]

_SLOWER = 5.0
"""Times as long as the others' groups take."""
_LEAST = 1.0
"""Seconds: of what takes less, the machine's other work says more than the sampler."""
_LAST = 3
"""Groups of a sampler that are looked at: the quickest of them counts, since any one may have a long answer."""
_REST = 20.0
"""Times as long as its group took that a slow sampler gets none; then it is tried again."""


class SamplerSpeeds:
    """Remembers how long the last groups of each sampler took.

    >>> speeds = SamplerSpeeds()
    >>> for name, seconds in {"a": 1.0, "b": 1.2, "c": 20.0}.items():
    ...     for _ in range(2):
    ...         speeds.note(name, seconds, now=100.0)
    >>> speeds.slow("c"), speeds.slow("a"), speeds.rests("c", now=101.0), speeds.rests("c", now=600.0)
    (True, False, True, False)
    """

    def __init__(self) -> None:
        self._took: dict[str, deque[float]] = {}
        self._ended: dict[str, float] = {}

    def note(self, name: str, seconds: float, now: float) -> None:
        """A sampler handed in a group ``seconds`` after it was leased, at second ``now``."""
        self._took.setdefault(name, deque(maxlen=_LAST)).append(seconds)
        self._ended[name] = now

    def forget(self, name: str) -> None:
        """Another begins under that name, perhaps elsewhere."""
        self._took.pop(name, None)

    def slow(self, name: str) -> bool:
        """Whether each of its last groups took several times as long as those of the others."""
        own = self._took.get(name, ())
        others = [min(took) for other, took in self._took.items() if other != name]
        return len(own) >= 2 and len(others) >= 2 and min(own) > max(_LEAST, _SLOWER * statistics.median(others))

    def rests(self, name: str, now: float) -> bool:
        """Whether a slow one is to get no group yet."""
        return now - self._ended[name] < _REST * min(self._took[name])
