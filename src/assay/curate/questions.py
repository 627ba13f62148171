"""Training texts in the forms in which evaluation items are looked for, and what many of them share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from assay.curate.frequency import AT_LEAST, Common, Frequency
from assay.curate.pieces import split_pieces
from assay.curate.text import Texts, normal

if TYPE_CHECKING:
    from assay.curate.evaluation import Matching

__all__ = ["Questions", "Templates"]


class Questions:
    """Training texts in the forms in which items are looked for.

    Args:
        normal: each as `normal` gives it.
        pieces: the pieces of each (`split_pieces`).

    Attributes:
        words: their words, of all pieces together.
        lines: the same, each piece as one word.
    """

    def __init__(self, normal: Sequence[str], pieces: Sequence[Sequence[str]]) -> None:
        self.normal, self.pieces = normal, pieces
        self.words = Texts([" ".join(of) for of in pieces])
        self.lines = Texts([" ".join([piece.replace(" ", "_") for piece in of]) for of in pieces])

    @classmethod
    def of(cls, texts: Sequence[str], matching: Matching) -> Questions:
        """Of texts as they were written."""
        return cls([normal(text) for text in texts], [split_pieces(text, matching.variants) for text in texts])

    def __len__(self) -> int:
        return len(self.normal)

    def part(self, which: Sequence[int]) -> Questions:
        """Some of them, by their numbers."""
        return Questions([self.normal[at] for at in which], [self.pieces[at] for at in which])


class Templates:
    """Counts in how many texts the runs and shingles of items stand, and every sentence.

    Args:
        matching: when so many are a template's.
        runs: hashes of the runs to count.
        shingles: hashes of the shingles.
    """

    def __init__(self, matching: Matching, runs: NDArray[np.uint64], shingles: NDArray[np.uint64]) -> None:
        self.matching = matching
        self._runs, self._shingles = Frequency(runs), Frequency(shingles)
        self._lines: list[tuple[int, NDArray[np.uint64]]] = []

    def add(self, texts: Questions, sign: int = 1) -> None:
        """Counts texts; -1 takes such out again."""
        if not len(texts):
            return
        if self.matching.n:
            self._runs.add(texts.words, *texts.words.runs(self.matching.n)[:2], sign)
        self._shingles.add(texts.words, *texts.words.shingles(self.matching.shingle)[:2], sign)
        hashes, rows, _ = texts.lines.runs(1)
        self._lines.append((sign, np.unique(np.stack([hashes, rows.astype(np.uint64)]), axis=1)[0]))

    def copy(self) -> Templates:
        """The same counts, to go on with."""
        found = Templates(self.matching, self._runs.hashes, self._shingles.hashes)
        found._runs, found._shingles, found._lines = self._runs.copy(), self._shingles.copy(), list(self._lines)
        return found

    def common(self, share: float, least: int = AT_LEAST) -> Common:
        """What ``least`` texts or more, and more than a share of them, have; of sentences what `Matching` calls a template's."""
        if self.matching.common == 1 or not self._shingles.texts:
            return Common.nothing()
        runs, shingles = self._runs.common(share, least), self._shingles.common(share, least)
        lines, at = np.unique(np.concatenate([hashes for _, hashes in self._lines]), return_inverse=True)
        counts = np.bincount(at, np.concatenate([np.full(len(hashes), sign) for sign, hashes in self._lines]))
        told = (counts >= AT_LEAST) & (counts > self.matching.template * self._shingles.texts)
        return Common(runs, shingles, lines[told])
