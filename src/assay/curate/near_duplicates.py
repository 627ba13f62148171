"""Questions that are nearly the same: MinHash bands propose pairs, their true Jaccard similarity decides."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError
from assay.curate.phrase_frequency import Frequency
from assay.curate.sentence_keys import mask_numbers
from assay.curate.step import Chunk, Decision, SetStep, StepNotes
from assay.curate.text import (
    HashedTexts,
    among,
    bands_for,
    numbers,
    own_similarity,
    shingles,
    sketch_library,
    sorted_unique,
    table_mask,
)

__all__ = ["NearDuplicates"]

_HELD = 50_000
"""Sets of shingles that are kept in memory."""
_LEAST = 20
"""What fewer rows than these share is no template."""
_AT_ONCE = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class NearDuplicates(SetStep):
    """Of rows that share most runs of words, the one whose content has the least digest is kept.

    Rows are taken in the order of their digests. One goes when a row kept before it has a Jaccard similarity of at least
    ``threshold``, of true sets of shingles; so the result does not depend on the order of the input, what is left has no such
    pair, and whatever goes names a row that stays. A pair is looked at when it shares a band of MinHash values: at the threshold
    with probability 0.998, above it more. The values of a text depend on nothing else, so a second curation finds no more.

    Shingles that many rows have are a template's, as an instruction: where two rows share them, they do not count. Questions made
    from one pattern share most words and differ in numbers; they are different questions.

    Attributes:
        threshold: least similarity of near-duplicates, in (0, 1].
        shingle: words in a run; a shorter question is one shingle.
        numbers: rows whose numbers differ are no near-duplicates. If False, every number is taken for the same one.
        most: of the rows kept in one band, how many a row is compared with. Where more share a band, they are told apart by bands
            of what is no template's; where more still share one, later ones are not compared and stay.
        common: a shingle that more than this share of the rows have, and 20 or more of them, is a template's. 1 if all count.

    Raises:
        ConfigError: a threshold or share that is no share, or counts below 1.

    Source: Broder 1997 (shingles and MinHash); Leskovec et al., Mining of Massive Datasets, ch. 3 (bands).
    """

    threshold: float = 0.8
    shingle: int = 3
    numbers: bool = True
    most: int = 200
    common: float = 0.05

    def __post_init__(self) -> None:
        bands_for(self.threshold)
        if self.shingle < 1 or self.most < 1:
            raise ConfigError(f"NearDuplicates: shingle={self.shingle}, most={self.most}; use at least 1")
        if not 0 < self.common <= 1:
            raise ConfigError(f"NearDuplicates.common={self.common}; use a share in (0, 1]")

    def prepare(self, scratch: Path) -> None:
        """Sees that the library is there before any row is read."""
        sketch_library()

    def note(self, chunk: Chunk, ready: Any) -> Mapping[str, NDArray[Any]]:
        """Bands ``[bands, n]``, and the texts."""
        texts = chunk.texts if self.numbers else HashedTexts([mask_numbers(text) for text in chunk.texts.normal])
        bands = np.ascontiguousarray(texts.bands(self.shingle, self.threshold).T)
        return {"bands": bands, **noted_texts(texts.normal)}

    def decide(self, seen: StepNotes, ready: Any) -> Sequence[Decision]:
        """Rows in the order of their digests, each against those kept before it that share a band; again, where what was taken
        for a template is none among the rows that are left.
        """
        texts = SeenTexts(seen)
        full = _groups(seen.alive, [np.asarray(part) for part in seen.parts("bands")])
        alike = (full >= 0).any(1)
        common = self._common(seen, texts, seen.alive) if alike.any() else {}
        while True:
            groups = self._band_groups(seen, texts, full, common)
            gone = self._find_repeats(seen, texts, groups, frozenset(common.values()))
            left = seen.alive.copy()
            left[[g[0] for g in gone]] = False
            still = self._common(seen, texts, left, common) if gone and common else common
            if len(still) == len(common):
                break
            common = still
        rows = np.array([g[0] for g in gone], np.int64)
        of = np.array([g[1] for g in gone], np.int64)
        likeness = np.array([g[2] for g in gone], np.float64)
        return [Decision("near-duplicate", seen.positions[rows], seen.positions[of], {"similarity": likeness})]

    def _find_repeats(
        self, seen: StepNotes, texts: SeenTexts, groups: NDArray[np.int64], common: frozenset[str]
    ) -> list[tuple[int, int, float]]:
        """Rows that repeat one kept before them: the row, the other one, and how alike they are."""
        suspects = np.flatnonzero((groups >= 0).any(1))
        suspects = suspects[np.argsort(seen.rank[suspects])]
        kept = dict[int, list[int]]()
        gone: list[tuple[int, int, float]] = []
        for at in suspects.tolist():
            mine = [g for g in groups[at].tolist() if g >= 0]
            found = self._alike(at, mine, kept, texts, common)
            if found is None:
                for group in mine:
                    kept.setdefault(group, []).append(at)
            else:
                gone.append((at, *found))
        return gone

    def _band_groups(
        self, seen: StepNotes, texts: SeenTexts, full: NDArray[np.int64], common: Mapping[int, str]
    ) -> NDArray[np.int64]:
        """Groups of bands ``[n, bands]``; rows of large ones are grouped by what is no template's instead, ``[n, 2 bands]``."""
        sizes = np.bincount(full[full >= 0]) if (full >= 0).any() else np.zeros(1, np.int64)
        large = (full >= 0) & (sizes[np.maximum(full, 0)] > self.most)
        if not common or not large.any():
            return full
        rows = np.flatnonzero(large.any(1))
        hashes = np.array(sorted(common), np.uint64)
        parts: list[NDArray[np.uint64]] = []
        for start in range(0, len(rows), _AT_ONCE):
            some = HashedTexts([texts.text(at) for at in rows[start : start + _AT_ONCE].tolist()])
            parts.append(some.bands(self.shingle, self.threshold, hashes).T)
        own = np.full_like(full, -1)
        own[rows] = _groups(np.ones(len(rows), np.bool_), parts)
        own[own >= 0] += len(sizes)
        return np.concatenate([np.where(large, -1, full), own], 1)

    def _common(
        self, seen: StepNotes, texts: SeenTexts, which: NDArray[np.bool_], known: Mapping[int, str] | None = None
    ) -> dict[int, str]:
        """A template's shingles, which many of some rows have, by their hashes; of known ones, where these are given."""
        least = max(_LEAST, int(self.common * which.sum()) + 1)
        if self.common == 1 or which.sum() < least:
            return {}
        if known is None:
            mask = table_mask(len(which) * 32)
            counts = np.zeros(int(mask) + 1, np.uint32)
            for _, hashes, _, _ in self._shingle_blocks(texts, which):
                np.add.at(counts, hashes & mask, np.uint32(1))
            if counts.max() < least:
                return {}
            parts = (hashes[counts[hashes & mask] >= least] for _, hashes, _, _ in self._shingle_blocks(texts, which))
            known_hashes = sorted_unique(np.concatenate([sorted_unique(part) for part in parts]))
        else:
            known_hashes = np.array(sorted(known), np.uint64)
        counted, spelled = Frequency(known_hashes), dict[int, str]()
        for block, hashes, rows, first in self._shingle_blocks(texts, which):
            counted.add(block, hashes, rows)
            for at in np.flatnonzero(among(known_hashes, hashes)).tolist():
                if int(hashes[at]) not in spelled:
                    words = block.normal[int(rows[at])].split(" ")
                    spelled[int(hashes[at])] = " ".join(words[int(first[at]) : int(first[at]) + self.shingle])
        return {h: spelled[h] for h in counted.common(0.0, least).tolist()}

    def _shingle_blocks(
        self, texts: SeenTexts, which: NDArray[np.bool_]
    ) -> Iterator[tuple[HashedTexts, NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]]:
        """Some rows, block by block: the texts, and the hash, row and first word of each shingle."""
        for _, some in texts.blocks(which):
            block = HashedTexts(some)
            yield block, *block.shingles(self.shingle)

    def _alike(
        self, at: int, groups: list[int], kept: Mapping[int, list[int]], texts: SeenTexts, common: frozenset[str]
    ) -> tuple[int, float] | None:
        """The first of the kept rows that this one nearly repeats, with their similarity."""
        looked: set[int] = set()
        for group in groups:
            for other in kept.get(group, ())[: self.most]:
                if other in looked:
                    continue
                looked.add(other)
                similarity = self._similar(texts, at, other, common)
                if similarity is not None:
                    return other, similarity
        return None

    def _similar(self, texts: SeenTexts, a: int, b: int, common: frozenset[str]) -> float | None:
        mine, its = texts.sets(a, self.shingle), texts.sets(b, self.shingle)
        if min(len(mine[0]), len(its[0])) < self.threshold * max(len(mine[0]), len(its[0])):
            return None  # no overlap of sets of such sizes is enough
        if self.numbers and mine[1] != its[1]:
            return None
        similarity = own_similarity(mine[0], its[0], common)
        return similarity if similarity >= self.threshold else None


def _groups(which: NDArray[np.bool_], parts: Sequence[NDArray[np.uint64]]) -> NDArray[np.int64]:
    """For each row and band ``[n, bands]`` a number that rows with the same hash there share; -1 where no other has it.

    Args:
        which: rows to group ``[n]``.
        parts: hashes ``[bands, some]`` of all rows, some after others.
    """
    bands = parts[0].shape[0] if parts else 0
    found = np.full((len(which), bands), -1, np.int64)
    some, first = np.flatnonzero(which), 0
    for band in range(bands):
        hashes = np.concatenate([part[band] for part in parts])[some]
        _, group, count = np.unique(hashes, return_inverse=True, return_counts=True)
        shared = count > 1
        number = np.where(shared, first + np.cumsum(shared) - 1, -1)
        found[some, band] = number[group]
        first += int(shared.sum())
    return found


def noted_texts(normal: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Texts as arrays to note: their bytes, and where each ends."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in normal]
    return {"text": np.frombuffer(b"".join(encoded), np.uint8), "size": np.array([len(e) for e in encoded], np.int64)}


class SeenTexts:
    """The texts that a step noted, read when they are asked for."""

    def __init__(self, seen: StepNotes) -> None:
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

    def blocks(self, which: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.int64], list[str]]]:
        """Some texts, a chunk at a time, with their places among the noted rows; not held in memory."""
        for first, part, ends in zip(self._starts, self._parts, self._ends, strict=False):
            mine, data = np.flatnonzero(which[first : first + len(ends)]), bytes(part)
            spans = zip((ends[mine] - np.diff(ends, prepend=0)[mine]).tolist(), ends[mine].tolist(), strict=True)
            yield first + mine, [data[begin:end].decode("utf-8", "surrogatepass") for begin, end in spans]

    def sets(self, at: int, k: int) -> tuple[frozenset[str], tuple[str, ...]]:
        """Its shingles and its numbers, in order."""
        found = self._sets.get(at)
        if found is None:
            text = self.text(at)
            found = self._sets[at] = shingles(text, k), numbers(text)
            if len(self._sets) > _HELD:
                self._sets.popitem(last=False)
        return found
