"""Python's collector of cycles, which walks over every object again and again while hundreds of thousands are made."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["collect_rarely", "pause_collection"]

_YOUNG = 50_000
"""Objects that may be new before Python looks for cycles among them (700 by default). A step of training makes thousands of small
records, which go when the step ends; to look among them several times a step takes about a millisecond and finds nothing."""


@contextmanager
def pause_collection() -> Generator[None]:
    """No search for cycles inside the block, for code that makes many objects and no cycles; it goes on as it was behind it.

    >>> with pause_collection():
    ...     gc.isenabled()
    False
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@contextmanager
def collect_rarely() -> Generator[None]:
    """Inside the block the search for cycles begins after more new objects than by default; behind it all is as it was.

    >>> with collect_rarely():
    ...     gc.get_threshold()[0]
    50000
    """
    was = gc.get_threshold()
    if was[0]:  # 0: somebody has switched it off
        gc.set_threshold(max(_YOUNG, was[0]), *was[1:])
    try:
        yield
    finally:
        gc.set_threshold(*was)
