"""What the compiled decode path leaves of the tokens that it reads, so that a gradient pass need not compute it again."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Generator
from contextlib import contextmanager
from ctypes import c_int32, c_int64, c_void_p
from typing import Any, NamedTuple

from assay.runtime.compiled.calls import declare_functions

__all__ = ["ActivationCache", "CachedActivations"]

_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "assay_trail": (c_void_p, [c_void_p, c_int64]),
    "assay_trail_free": (None, [c_void_p]),
    "assay_trail_open": (None, [c_void_p, c_int32]),
    "assay_trail_size": (None, [c_void_p, c_void_p]),
}


_MOST = (1 << 63) - 1


class CachedActivations(NamedTuple):
    """What is in a cache.

    Attributes:
        paths: prompts with what was sampled behind them.
        tokens: of these, a prompt's counted for each.
        bytes: that were made for states; what is forgotten is used again.
    """

    paths: int
    tokens: int
    bytes: int


class ActivationCache:
    """States of sampled tokens, by the tokens that lead to them.

    A pass of `assay.runtime.compiled.training.CompiledPasses` that follows it takes a row's states from here where two things are
    so: the row's tokens are the beginning of what was sampled, and the sampler's weights are the learner's, bit by bit. Both
    sides add up in one order, so these are the bits that computing them would give; of some thousand tokens one row is computed
    as well, and a difference is an error. New weights in the engine forget what was left, and so does opening the cache again.

    Args:
        library: of `assay.runtime.compiled.build`.
        engine: the library's own record of the engine that leaves it, without states in bfloat16.
        most: bytes of states; what is sampled beyond is computed again.

    Raises:
        MemoryError: it does not suffice for the books.
    """

    def __init__(self, library: ctypes.CDLL, engine: int, most: int) -> None:
        self._functions = declare_functions(library, _SIGNATURES)
        self.pointer: int | None = self._functions.assay_trail(engine, min(most, _MOST))
        if self.pointer is None:
            raise MemoryError("no memory for what the compiled decode path leaves")
        weakref.finalize(self, self._functions.assay_trail_free, self.pointer)

    @contextmanager
    def open(self) -> Generator[None]:
        """Inside, what is sampled is left; what was there before is forgotten."""
        self._functions.assay_trail_open(self.pointer, True)
        try:
            yield
        finally:
            self._functions.assay_trail_open(self.pointer, False)

    def remaining(self) -> CachedActivations:
        """What is there now."""
        out = (c_int64 * 3)()
        self._functions.assay_trail_size(self.pointer, out)
        return CachedActivations(*out)
