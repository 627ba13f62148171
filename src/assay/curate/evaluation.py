"""Evaluation items that training texts must not contain, and where they do.

An item is in a text when the two are the same, share a run of ``n`` words, or are nearly the same. The first and the third close
the hole that the second has: an item of fewer than ``n`` words shares no run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError, DataError
from assay.curate.rows import Fields, entries, parsed, read_rows
from assay.curate.text import Texts, bands_for, jaccard, normal, runs, shingles, table_mask

__all__ = ["Contamination", "EvalIndex", "EvalItem", "Hit", "Matching", "contaminated"]

_AT_ONCE = 4096
_COMMON_AT_LEAST = 10
"""An instruction is what at least so many items of a file share."""


@dataclass(frozen=True, slots=True)
class EvalItem:
    """A question of an evaluation.

    Attributes:
        file: the file that it stands in.
        line: its line there, from 1.
        text: the question, normalised.
    """

    file: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Hit:
    """An evaluation item found in a text.

    Attributes:
        kind: the two are the ``"same"``, share a ``"run"`` of words, or are ``"near"``.
        item: the item.
        run: the first run of words that they share; empty for the other kinds.
        similarity: Jaccard similarity of their shingles, for ``"near"``; else 1.
    """

    kind: Literal["same", "run", "near"]
    item: EvalItem
    run: str = ""
    similarity: float = 1.0


@dataclass(frozen=True, slots=True)
class Contamination:
    """A text in which evaluation items were found.

    Attributes:
        index: number of the text.
        hits: what was found, the strongest kind for each item.
    """

    index: int
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """When an evaluation item counts as found in a text.

    Attributes:
        n: words in a run that the two share; 0 to look for no runs.
        near: least Jaccard similarity of their shingles; 0 to look for no near-duplicates.
        shingle: words in a shingle.
        common: a run that stands in more than this share of a file's items, and in ten or more of them, is an instruction and no
            item's own; it is not looked for. 1 to look for all.

    Raises:
        ConfigError: a number that is out of range.

    Source: the runs are those of the s1 and Open-R1 scripts, which use 8 words; others use 9, 10 or 13.
    """

    n: int = 8
    near: float = 0.8
    shingle: int = 3
    common: float = 0.5

    def __post_init__(self) -> None:
        if self.n < 0 or self.shingle < 1:
            raise ConfigError(f"Matching: n={self.n}, shingle={self.shingle}; n is 0 or more, shingle 1 or more")
        if self.near:
            bands_for(self.near)
        if not 0 < self.common <= 1:
            raise ConfigError(f"Matching.common={self.common}; use a share in (0, 1]")


@dataclass(frozen=True)
class EvalIndex:
    """Evaluation items, ready to be looked for in many texts.

    Attributes:
        items: the items.
        matching: when one counts as found.

    >>> index = EvalIndex((EvalItem("aime.jsonl", 1, normal("Find the least prime above one hundred and ten.")),))
    >>> found = contaminated(index, ["2+2?", "Please find the least prime above one hundred and ten. Thanks!"])
    >>> [(c.index, hit.kind, hit.run) for c in found for hit in c.hits]
    [(1, 'run', 'find the least prime above one hundred and')]
    """

    items: tuple[EvalItem, ...]
    matching: Matching = field(default_factory=Matching)

    @classmethod
    def read(cls, files: Sequence[Path | str], matching: Matching | None = None, fields: Fields | None = None) -> EvalIndex:
        """An index of the questions in files.

        Args:
            files: files or folders of rows.
            matching: as in the class.
            fields: where the rows hold their questions.

        Raises:
            ConfigError: a file does not exist.
            DataError: a row has no question, or a file no rows: what is not read could not be found.
        """
        where = fields or Fields()
        items = [item for place in files for path in entries(place) for item in _items(path, where)]
        return cls(tuple(items), matching or Matching())

    @cached_property
    def instructions(self) -> frozenset[str]:
        """Runs that are not looked for, since so many items of a file share them."""
        if not self.matching.n or self.matching.common == 1:
            return frozenset()
        found: set[str] = set()
        by_file: dict[str, list[str]] = {}
        for item in self.items:
            by_file.setdefault(item.file, []).append(item.text)
        for texts in by_file.values():
            if len(texts) >= _COMMON_AT_LEAST:
                count = Counter(run for text in texts for run in set(runs(text, self.matching.n)))
                share = self.matching.common * len(texts)
                found |= {run for run, times in count.items() if times >= _COMMON_AT_LEAST and times > share}
        return frozenset(found)

    def hits(self, texts: Texts) -> dict[int, tuple[Hit, ...]]:
        """What is found, by the number of the text."""
        found: dict[int, dict[int, Hit]] = {}
        for text, item, hit in (*self._same(texts), *self._runs(texts), *self._near(texts)):
            found.setdefault(text, {}).setdefault(item, hit)
        return {text: tuple(hit for _, hit in sorted(hits.items())) for text, hits in sorted(found.items())}

    # ---- the three ways

    def _same(self, texts: Texts) -> Iterator[tuple[int, int, Hit]]:
        for number, text in enumerate(texts.normal):
            for item in self._by_text.get(text, ()):
                yield number, item, Hit("same", self.items[item])

    def _runs(self, texts: Texts) -> Iterator[tuple[int, int, Hit]]:
        hashes, items, positions, places = self._postings
        if not len(hashes):
            return
        asked, rows, first = texts.runs(self.matching.n)
        maybe = np.flatnonzero(places[asked & table_mask(len(hashes))])
        low = np.searchsorted(hashes, asked[maybe], "left")
        high = np.searchsorted(hashes, asked[maybe], "right")
        n, told = self.matching.n, set[tuple[int, int]]()
        for at, start, stop in zip(maybe[high > low].tolist(), low[high > low].tolist(), high[high > low].tolist(), strict=True):
            row = int(rows[at])
            fresh = [p for p in range(start, stop) if (row, int(items[p])) not in told]
            run = _run(texts.normal[row], int(first[at]), n) if fresh else ""
            if not fresh or run in self.instructions:
                continue
            for item, position in ((int(items[p]), int(positions[p])) for p in fresh):
                if _run(self.items[item].text, position, n) == run:
                    told.add((row, item))
                    yield row, item, Hit("run", self.items[item], run)

    def _near(self, texts: Texts) -> Iterator[tuple[int, int, Hit]]:
        if not self.matching.near or not len(texts):
            return
        shingle, threshold = self.matching.shingle, self.matching.near
        mine = texts.bands(shingle, threshold)
        pairs: set[tuple[int, int]] = set()
        for band, (hashes, items) in enumerate(self._bands):
            low = np.searchsorted(hashes, mine[:, band], "left")
            high = np.searchsorted(hashes, mine[:, band], "right")
            for row in np.flatnonzero(high > low).tolist():
                pairs.update((row, item) for item in items[low[row] : high[row]].tolist())
        for row, item in sorted(pairs):
            similarity = jaccard(shingles(texts.normal[row], shingle), self._shingles(item))
            if similarity >= threshold:
                yield row, item, Hit("near", self.items[item], similarity=similarity)

    # ---- what they look up

    @cached_property
    def _texts(self) -> Texts:
        return Texts([item.text for item in self.items])

    @cached_property
    def _by_text(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for number, item in enumerate(self.items):
            found.setdefault(item.text, []).append(number)
        return found

    @cached_property
    def _postings(self) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Hashes of runs, sorted; the item and the first word of each; and which low bits of a hash occur at all."""
        if not self.matching.n:
            return np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_)
        hashes, items, positions = self._texts.runs(self.matching.n)
        order = np.lexsort((positions, items, hashes))
        mask = table_mask(len(hashes))
        places = np.zeros(int(mask) + 1, np.bool_)
        places[hashes & mask] = True
        return hashes[order], items[order], positions[order], places

    @cached_property
    def _bands(self) -> list[tuple[NDArray[np.uint64], NDArray[np.int64]]]:
        """Of each band the items' hashes, sorted, and the items."""
        bands = self._texts.bands(self.matching.shingle, self.matching.near)
        orders = [np.argsort(bands[:, band], kind="stable") for band in range(bands.shape[1])]
        return [(bands[order, band], order.astype(np.int64)) for band, order in enumerate(orders)]

    @cached_property
    def _sets(self) -> dict[int, frozenset[str]]:
        return {}

    def _shingles(self, item: int) -> frozenset[str]:
        if item not in self._sets:
            self._sets[item] = shingles(self.items[item].text, self.matching.shingle)
        return self._sets[item]


def contaminated(index: EvalIndex, texts: Iterable[str]) -> list[Contamination]:
    """Which training texts contain evaluation items, and which.

    Args:
        index: of the evaluation.
        texts: as they were written; they may come one by one.

    Returns:
        one entry for each text in which something was found, in order; empty where training may go on.
    """
    found: list[Contamination] = []
    remaining, first = iter(texts), 0
    while block := [normal(text) for text in islice(remaining, _AT_ONCE)]:
        found += [Contamination(first + number, hits) for number, hits in index.hits(Texts(block)).items()]
        first += len(block)
    return found


def _items(path: Path, fields: Fields) -> Iterator[EvalItem]:
    line = 0
    for line, entry in read_rows(path):
        try:
            yield EvalItem(str(path), line, normal(fields.question_of(parsed(entry))))
        except DataError as error:
            raise DataError(f"{path}, line {line}: {error}; mend or remove it, for what is not read cannot be found") from None
    if not line:
        raise DataError(f"{path} holds no rows, so that no evaluation item could be found; give the evaluation's own file")


def _run(text: str, first: int, n: int) -> str:
    return " ".join(text.split(" ")[first : first + n])
