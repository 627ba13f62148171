"""Typed token columns: an open set of names, each with its producer and version."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["RESERVED", "Array", "TokenColumn", "common_version"]

Array = NDArray[Any]

RESERVED = frozenset({"ids", "mask", "call", "logp_engine", "weight_version"})
"""Columns that every row has of its own; an engine's further columns have other names."""


@dataclass(frozen=True, slots=True, eq=False)
class TokenColumn:
    """One value (or a small tensor) per token.

    Attributes:
        name: ``ids``, ``mask``, ``logp_engine``, ``logp_old``, ``logp_ref``, ``entropy``, ``advantage``, or the user's own.
        values: ``[N, *trailing]``; the entry at a token belongs to *that* token, so ``logp[n]`` is the log-probability of token
            ``n`` given those before it, and the first token of a row holds the column's fill.
        producer: who computed it (``engine``, ``learner``, ``credit``, ...).
        version: weight version that it was computed under, -1 where that has no meaning.
        fill: what stands at tokens that nobody gave a value.

    >>> TokenColumn("routing", np.zeros((5, 2, 4), np.int16), "engine", 3).trailing
    (2, 4)
    """

    name: str
    values: Array
    producer: str = "user"
    version: int = -1
    fill: int = 0

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""
        return self.values.dtype

    @property
    def trailing(self) -> tuple[int, ...]:
        """Shape behind the token axis."""
        return tuple(self.values.shape[1:])

    def spread(self, total: int, where: NDArray[np.bool_]) -> TokenColumn:
        """The column laid out over ``total`` tokens: its values at ``where``, its fill elsewhere."""
        shape = (total, *self.trailing)
        out = np.full(shape, self.fill, self.dtype) if self.fill else np.zeros(shape, self.dtype)
        out[where] = self.values
        return replace(self, values=out)


def common_version(columns: Iterable[TokenColumn]) -> int:
    """The weight version that all columns share, -1 when they differ."""
    versions = {c.version for c in columns}
    return versions.pop() if len(versions) == 1 else -1
