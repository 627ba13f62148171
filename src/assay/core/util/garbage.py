"""Python's collector of cycles, which walks over every object again and again while hundreds of thousands are made."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["pause_collection"]


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
