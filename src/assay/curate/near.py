"""Questions that are nearly the same: MinHash bands propose pairs, their true Jaccard similarity decides."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError
from assay.curate.step import Chunk, Decision, Seen, SetStep
from assay.curate.text import bands_for, jaccard, numbers, shingles, sketch_library

__all__ = ["NearDuplicates"]

_HELD = 50_000
"""Sets of shingles that are kept in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NearDuplicates(SetStep):
    """Of rows that share most runs of words, the one whose content has the least digest is kept.

    Rows are taken in the order of their digests. One goes when a row kept before it has a Jaccard similarity of at least
    ``threshold``, of true sets of shingles; so the result does not depend on the order of the input, what is left has no such
    pair, and whatever goes names a row that stays. A pair is looked at when it shares a band of MinHash values: at the threshold
    with probability 0.999, above it more. The values of a text depend on nothing else, so a second curation finds no more.

    Questions made from one pattern share most words and differ in numbers; they are different questions.

    Attributes:
        threshold: least similarity of near-duplicates, in (0, 1].
        shingle: words in a run; a shorter question is one shingle.
        numbers: rows whose numbers differ are no near-duplicates.
        most: of the rows kept in one band, how many a row is compared with. Where more share a band, as with one long
            instruction in all rows, later ones are not compared; they stay.

    Raises:
        ConfigError: a threshold that is no share, or counts below 1.

    Source: Broder 1997 (shingles and MinHash); Leskovec et al., Mining of Massive Datasets, ch. 3 (bands).
    """

    threshold: float = 0.8
    shingle: int = 3
    numbers: bool = True
    most: int = 200

    def __post_init__(self) -> None:
        bands_for(self.threshold)
        if self.shingle < 1 or self.most < 1:
            raise ConfigError(f"NearDuplicates: shingle={self.shingle}, most={self.most}; use at least 1")

    def prepare(self, scratch: Path) -> None:
        """Sees that the library is there before any row is read."""
        sketch_library()

    def note(self, chunk: Chunk, ready: Any) -> Mapping[str, NDArray[Any]]:
        """Bands ``[bands, n]``, and the texts."""
        bands = np.ascontiguousarray(chunk.texts.bands(self.shingle, self.threshold).T)
        return {"bands": bands, **noted_texts(chunk.texts.normal)}

    def decide(self, seen: Seen, ready: Any) -> Sequence[Decision]:
        """Rows in the order of their digests, each against those kept before it that share a band."""
        groups = self._groups(seen)
        suspects = np.flatnonzero((groups >= 0).any(1))
        suspects = suspects[np.argsort(seen.rank[suspects])]
        texts, kept = SeenTexts(seen), dict[int, list[int]]()
        gone: list[tuple[int, int, float]] = []
        for at in suspects.tolist():
            mine = [g for g in groups[at].tolist() if g >= 0]
            found = self._alike(at, mine, kept, texts)
            if found is None:
                for group in mine:
                    kept.setdefault(group, []).append(at)
            else:
                gone.append((at, *found))
        rows = np.array([g[0] for g in gone], np.int64)
        of = np.array([g[1] for g in gone], np.int64)
        likeness = np.array([g[2] for g in gone], np.float64)
        return [Decision("near-duplicate", seen.positions[rows], seen.positions[of], {"similarity": likeness})]

    def _groups(self, seen: Seen) -> NDArray[np.int32]:
        """For each row and band a number that rows with the same hash there share; -1 where no other has it."""
        bands, parts = bands_for(self.threshold)[0], list(seen.parts("bands"))
        found = np.full((len(seen.alive), bands), -1, np.int32)
        alive, first = np.flatnonzero(seen.alive), 0
        for band in range(bands):
            hashes = np.concatenate([part[band] for part in parts])[alive]
            _, group, count = np.unique(hashes, return_inverse=True, return_counts=True)
            shared = count > 1
            number = np.where(shared, first + np.cumsum(shared) - 1, -1)
            found[alive, band] = number[group]
            first += int(shared.sum())
        return found

    def _alike(self, at: int, groups: list[int], kept: Mapping[int, list[int]], texts: SeenTexts) -> tuple[int, float] | None:
        """The first of the kept rows that this one nearly repeats, with their similarity."""
        looked: set[int] = set()
        for group in groups:
            for other in kept.get(group, ())[: self.most]:
                if other in looked:
                    continue
                looked.add(other)
                similarity = self._similar(texts, at, other)
                if similarity is not None:
                    return other, similarity
        return None

    def _similar(self, texts: SeenTexts, a: int, b: int) -> float | None:
        mine, its = texts.sets(a, self.shingle), texts.sets(b, self.shingle)
        if min(len(mine[0]), len(its[0])) < self.threshold * max(len(mine[0]), len(its[0])):
            return None  # no overlap of sets of such sizes is enough
        if self.numbers and mine[1] != its[1]:
            return None
        similarity = jaccard(mine[0], its[0])
        return similarity if similarity >= self.threshold else None


def noted_texts(normal: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Texts as arrays to note: their bytes, and where each ends."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in normal]
    return {"text": np.frombuffer(b"".join(encoded), np.uint8), "size": np.array([len(e) for e in encoded], np.int64)}


class SeenTexts:
    """The texts that a step noted, read when they are asked for."""

    def __init__(self, seen: Seen) -> None:
        self._parts = list(seen.parts("text"))
        sizes = list(seen.parts("size"))
        self._starts = [0, *accumulate(len(s) for s in sizes)]
        self._ends = [np.cumsum(s) for s in sizes]
        self._sets: OrderedDict[int, tuple[frozenset[str], tuple[str, ...]]] = OrderedDict()

    def text(self, at: int) -> str:
        """One text, by its place among the noted rows."""
        part = bisect_right(self._starts, at) - 1
        ends, inside = self._ends[part], at - self._starts[part]
        begin = int(ends[inside - 1]) if inside else 0
        return bytes(self._parts[part][begin : int(ends[inside])]).decode("utf-8", "surrogatepass")

    def sets(self, at: int, k: int) -> tuple[frozenset[str], tuple[str, ...]]:
        """Its shingles and its numbers, in order."""
        found = self._sets.get(at)
        if found is None:
            text = self.text(at)
            found = self._sets[at] = shingles(text, k), numbers(text)
            if len(self._sets) > _HELD:
                self._sets.popitem(last=False)
        return found
