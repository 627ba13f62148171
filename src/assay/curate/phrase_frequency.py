"""In how many texts a run of words stands: what many share is a template's, and says nothing of any of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assay.curate.text import Texts, among, sorted_unique, table_mask

__all__ = ["AT_LEAST", "Common", "Frequency"]

AT_LEAST = 10
"""What fewer texts than these share is no template."""

U64 = NDArray[np.uint64]


@dataclass(frozen=True)
class Common:
    """What many texts share.

    Attributes:
        runs: hashes of runs of words, sorted.
        shingles: hashes of shingles, sorted.
        pieces: hashes of sentences and lines, sorted.
    """

    runs: U64
    shingles: U64
    pieces: U64

    @classmethod
    def nothing(cls) -> Common:
        """Of texts that share nothing."""
        return cls(np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.uint64))

    def __or__(self, other: Common) -> Common:
        parts = ((self.runs, other.runs), (self.shingles, other.shingles), (self.pieces, other.pieces))
        return Common(*(np.union1d(mine, its) for mine, its in parts))

    def stricter(self, other: Common) -> Common:
        """With which no text has fewer items than with either: runs and shingles that both have, sentences that either has."""
        runs, shingles = np.intersect1d(self.runs, other.runs), np.intersect1d(self.shingles, other.shingles)
        return Common(runs, shingles, np.union1d(self.pieces, other.pieces))

    def same(self, other: Common) -> bool:
        """Whether both are of the same."""
        pairs = ((self.runs, other.runs), (self.shingles, other.shingles), (self.pieces, other.pieces))
        return all(np.array_equal(mine, its) for mine, its in pairs)


class Frequency:
    """Counts in how many texts each of some hashes stands.

    Args:
        hashes: what to count, in any order.

    >>> one, two = Texts(["a b c", "b c"]), Texts(["x b c"])
    >>> counted = Frequency(one.runs(2)[0])
    >>> counted.add(one, *one.runs(2)[:2]); counted.add(two, *two.runs(2)[:2])
    >>> counted.texts, sorted(counted.counts.tolist()), len(counted.common(0.5, least=3))
    (3, [1, 3], 1)
    """

    def __init__(self, hashes: U64) -> None:
        self.hashes = sorted_unique(hashes)
        self.counts = np.zeros(len(self.hashes), np.int64)
        self.texts = 0
        self._mask = table_mask(len(self.hashes))
        self._there = np.zeros(int(self._mask) + 1, np.bool_)
        self._there[self.hashes & self._mask] = True

    def add(self, texts: Texts, hashes: U64, rows: NDArray[np.int64], sign: int = 1) -> None:
        """Counts texts; what one has twice counts once.

        Args:
            texts: the texts.
            hashes: of everything that stands in them ``[m]``.
            rows: the text of each ``[m]``.
            sign: -1 takes texts out again that were counted before.
        """
        self.texts += sign * len(texts)
        maybe = self._there[hashes & self._mask]
        hashes, rows = hashes[maybe], rows[maybe]
        known = among(self.hashes, hashes)
        pairs = np.searchsorted(self.hashes, hashes[known]) * np.int64(max(len(texts), 1)) + rows[known]
        self.counts += sign * np.bincount(sorted_unique(pairs) // max(len(texts), 1), minlength=len(self.hashes))

    def copy(self) -> Frequency:
        """The same counts, to go on with."""
        found = Frequency(self.hashes)
        found.counts, found.texts = self.counts.copy(), self.texts
        return found

    def common(self, share: float, least: int = AT_LEAST) -> U64:
        """Hashes that stand in ``least`` texts or more, and in more than a share of all, sorted."""
        return self.hashes[(self.counts >= least) & (self.counts > share * self.texts)]
