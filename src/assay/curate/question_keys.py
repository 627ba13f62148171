"""Training texts in the forms in which evaluation items are looked for, and what many of them share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from assay.curate.phrase_frequency import AT_LEAST, Common, Frequency
from assay.curate.text import Texts, distinct

if TYPE_CHECKING:
    from assay.curate.evaluation import Matching

__all__ = ["Questions", "Templates"]


class Questions:
    """Training texts in the forms in which items are looked for.

    Args:
        normal: each as `normal` gives it.
        pieces: the pieces of each (`split_pieces`); None to compare texts as they are written, case and white space aside.
    """

    def __init__(self, normal: Sequence[str], pieces: Sequence[Sequence[str]] | None) -> None:
        self.normal, self._pieces = normal, pieces

    def __len__(self) -> int:
        return len(self.normal)

    @property
    def as_written(self) -> bool:
        """Whether they have no pieces."""
        return self._pieces is None

    @property
    def pieces(self) -> Sequence[Sequence[str]]:
        """The sentences and lines of each."""
        return [[text] if text else [] for text in self.normal] if self._pieces is None else self._pieces

    @cached_property
    def words(self) -> Texts:
        """The words of each, of all pieces together."""
        return Texts(self.normal if self._pieces is None else [" ".join(of) for of in self._pieces])

    @cached_property
    def lines(self) -> Texts:
        """The same, each piece as one word."""
        return Texts([" ".join([piece.replace(" ", "_") for piece in of]) for of in self.pieces])

    def part(self, which: Sequence[int]) -> Questions:
        """Some of them, by their numbers."""
        pieces = None if self._pieces is None else [self._pieces[at] for at in which]
        return Questions([self.normal[at] for at in which], pieces)

    def forget(self) -> None:
        """Lets go of what can be made again."""
        self.__dict__.pop("words", None)
        self.__dict__.pop("lines", None)


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
        if texts.as_written:
            return
        hashes, rows, _ = texts.lines.runs(1)
        self._lines.append((sign, distinct(rows, hashes)[1]))

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
        none = np.empty(0, np.uint64)
        lines, at = np.unique(np.concatenate([none, *(hashes for _, hashes in self._lines)]), return_inverse=True)
        counts = np.bincount(at, np.concatenate([np.empty(0), *(np.full(len(hashes), sign) for sign, hashes in self._lines)]))
        told = (counts >= AT_LEAST) & (counts > self.matching.template * self._shingles.texts)
        return Common(runs, shingles, lines[told])
