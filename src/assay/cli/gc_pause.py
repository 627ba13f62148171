"""When a program that loads much and then works long looks for garbage."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial

__all__ = ["Loading", "loading"]


@contextmanager
def loading() -> Generator[Callable[[], None]]:
    """Inside, nobody looks for garbage before the first call of what this gives, and from each call on not among what there was.

    Loading makes hundreds of thousands of objects and next to no garbage, and to look through them all takes as long as several
    steps of a small run. What is garbage at a call is freed by it: a base's learner, say. A program that calls a command and has
    frozen objects itself keeps them frozen; then no others are, since nobody could tell them apart afterwards.
    """
    before, frozen = gc.isenabled(), gc.get_freeze_count() > 0
    gc.disable()
    try:
        yield partial(_freeze_loaded, freeze=not frozen)
    finally:
        if not frozen:
            gc.unfreeze()
        (gc.enable if before else gc.disable)()


def _freeze_loaded(freeze: bool) -> None:
    gc.collect()
    if freeze:
        gc.freeze()
    gc.enable()


class Loading:
    """Says behind a run's first step that all is loaded that it needs (implements `assay.core.protocols.Tracker`).

    Args:
        loaded: of `loading`.
    """

    def __init__(self, loaded: Callable[[], None]) -> None:
        self._loaded: Callable[[], None] | None = loaded

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Nothing, from the second on."""
        if self._loaded is not None:
            self._loaded()
            self._loaded = None

    def close(self) -> None:
        """Nothing."""
