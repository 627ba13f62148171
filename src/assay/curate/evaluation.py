"""Evaluation items that training texts must not contain, and where they do.

An item is in a text when the two are the same, when it stands in the text whole, when they share a run of ``n`` words, or are
nearly the same. Texts are compared without markup and punctuation (`assay.curate.sentence_keys`). What many texts of one side
share is a
template's, and counts for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError, DataError
from assay.core.fields import later
from assay.curate.item_index import Whole
from assay.curate.phrase_frequency import AT_LEAST, Common
from assay.curate.question_keys import Questions, Templates
from assay.curate.rows import Fields, entries, parse_entry, read_rows
from assay.curate.sentence_keys import own_words, shared_words, split_pieces
from assay.curate.text import HashedTexts, among, bands_for, distinct, normal, own_similarity, shingles, sorted_unique, table_mask

__all__ = ["Contamination", "EvalIndex", "EvalItem", "Hit", "Matching", "find_contamination"]

_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class EvalItem:
    """A question of an evaluation.

    Attributes:
        file: the file that it stands in.
        line: its line there, from 1.
        text: the question, normalised.
        question: the question as it was written; where it is empty, ``text`` is taken for it.
    """

    file: str
    line: int
    text: str
    question: str = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """An evaluation item found in a text.

    Attributes:
        kind: the two are the ``"same"`` but for markup and punctuation, the item stands in the text ``"whole"``, they share a
            ``"run"`` of words, or are ``"near"``.
        item: the item.
        run: the first run of words that they share; empty for the other kinds.
        similarity: Jaccard similarity of their own shingles, for ``"near"``; else 1.
    """

    kind: Literal["same", "whole", "run", "near"]
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
            item's own; it is not looked for. 1 to look for all, those of templates too.
        template: a run or a shingle that more than this share of the items or of the texts have, and ten or more of them, is a
            template's, and counts for nothing.
        variants: numbers make no difference: an item also counts as found where only its numbers were changed.

    Raises:
        ConfigError: a number that is out of range.

    Source: the runs are those of the s1 and Open-R1 scripts, which use 8 words; others use 9, 10 or 13.
    """

    n: int = 8
    near: float = 0.8
    shingle: int = 3
    common: float = 0.5
    template: float = later(0.02)
    variants: bool = later(False)

    def __post_init__(self) -> None:
        if self.n < 0 or self.shingle < 1:
            raise ConfigError(f"Matching: n={self.n}, shingle={self.shingle}; n is 0 or more, shingle 1 or more")
        if self.near:
            bands_for(self.near)
        for name in ("common", "template"):
            if not 0 < getattr(self, name) <= 1:
                raise ConfigError(f"Matching.{name}={getattr(self, name)}; use a share in (0, 1]")


@dataclass(frozen=True)
class EvalIndex:
    """Evaluation items, ready to be looked for in many texts.

    Attributes:
        items: the items.
        matching: when one counts as found.
        as_written: markup and punctuation count, and an item is only found as the same text or a near one.

    >>> index = EvalIndex((EvalItem("aime.jsonl", 1, normal("Find the least prime above one hundred and ten.")),))
    >>> found = find_contamination(index, ["2+2?", "Please find the least prime above one hundred and ten. Thanks!"])
    >>> [(c.index, hit.kind, hit.run) for c in found for hit in c.hits]
    [(1, 'whole', '')]
    """

    items: tuple[EvalItem, ...]
    matching: Matching = field(default_factory=Matching)
    as_written: bool = False

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
        if not self.matching.n:
            return frozenset()
        hashes, rows, first = self._words.runs(self.matching.n)
        at = np.flatnonzero(among(self.common.runs, hashes)).tolist()
        return frozenset(_run(self._words.normal[int(rows[i])], int(first[i]), self.matching.n) for i in at)

    @cached_property
    def common(self) -> Common:
        """What so many items of a file share that it is no item's own; nothing of items that are compared as they are written."""
        found, of = Common.nothing(), self.matching
        if self.as_written:
            return found
        files = np.unique([item.file for item in self.items], return_inverse=True)[1]
        for file in range(int(files.max(initial=-1)) + 1):
            mine = np.flatnonzero(files == file).tolist()
            if len(mine) >= AT_LEAST:
                counted = self.templates()
                counted.add(Questions([self.items[at].text for at in mine], [self._pieces[at] for at in mine]))
                found |= counted.common(min(of.common, of.template))
        return found

    def questions(self, texts: Sequence[str]) -> Questions:
        """Texts, as they were written, in the forms in which they are compared."""
        pieces = None if self.as_written else [split_pieces(text, self.matching.variants) for text in texts]
        return Questions([normal(text) for text in texts], pieces)

    def hits(self, texts: Questions, common: Common | None = None) -> dict[int, tuple[Hit, ...]]:
        """What is found, by the number of the text.

        Args:
            texts: where to look.
            common: what the texts share with many others, besides what the items do.
        """
        told = self.common if common is None else self.common | common
        ways = [self._same(texts), self._near(texts, told.shingles)]
        if not self.as_written:
            ways[1:1] = self._whole(texts, told.pieces), self._runs(texts, told)
        found: dict[int, dict[int, Hit]] = {}
        for way in ways:
            for text, item, hit in way:
                found.setdefault(text, {}).setdefault(item, hit)
        return {text: tuple(hit for _, hit in sorted(hits.items())) for text, hits in sorted(found.items())}

    def templates(self) -> Templates:
        """What counts in how many texts the runs and shingles of items stand; it has seen none."""
        runs = self._words.runs(self.matching.n)[0] if self.matching.n else np.empty(0, np.uint64)
        return Templates(self.matching, runs, self._words.shingles(self.matching.shingle)[0])

    def likely(self, texts: Questions) -> list[int]:
        """Numbers of the texts that could be an item's, or near one: so many of their shingles stand in items."""
        same = [number for number, text in enumerate(texts.normal) if text in self._by_text]
        return sorted({*same, *self._likely(texts.words)}) if self.matching.near else same

    def _likely(self, texts: HashedTexts) -> list[int]:
        known, places = self._known
        hashes, rows, _ = texts.shingles(self.matching.shingle)
        maybe = np.flatnonzero(places[hashes & table_mask(len(known))])
        any_there = np.zeros(len(texts), np.bool_)
        any_there[rows[maybe[among(known, hashes[maybe])]]] = True
        of, mine = distinct(rows[any_there[rows]], hashes[any_there[rows]])
        there = np.bincount(of[among(known, mine)], minlength=len(texts))
        return np.flatnonzero(any_there & (there >= self.matching.near * np.bincount(of, minlength=len(texts)))).tolist()

    # ---- the four ways

    def _same(self, texts: Questions) -> Iterator[tuple[int, int, Hit]]:
        for number, text in enumerate(texts.normal):
            for item in self._by_text.get(text, ()):
                yield number, item, Hit("same", self.items[item])

    def _whole(self, texts: Questions, common: NDArray[np.uint64]) -> Iterator[tuple[int, int, Hit]]:
        template: list[bool] = among(common, texts.lines.runs(1)[0]).tolist() if any(texts.pieces) else []
        first = 0
        for number, pieces in enumerate(texts.pieces):
            for item in self._places.same(pieces):
                yield number, item, Hit("same", self.items[item])
            for item in self._places.inside(pieces, template[first : first + len(pieces)]):
                yield number, item, Hit("whole", self.items[item])
            first += max(len(pieces), 1)  # a text without any is one line without words

    def _runs(self, texts: Questions, common: Common) -> Iterator[tuple[int, int, Hit]]:
        hashes, items, positions, places = self._postings
        if not len(hashes):
            return
        n, told, template = self.matching.n, set[tuple[int, int]](), self._spell_common(common.shingles)
        asked, rows, first = texts.words.runs(n)
        maybe = np.flatnonzero(places[asked & table_mask(len(hashes))])
        maybe = maybe[~among(common.runs, asked[maybe])]
        low = np.searchsorted(hashes, asked[maybe], "left")
        high = np.searchsorted(hashes, asked[maybe], "right")
        for at, start, stop in zip(maybe[high > low].tolist(), low[high > low].tolist(), high[high > low].tolist(), strict=True):
            row = int(rows[at])
            fresh = [p for p in range(start, stop) if (row, int(items[p])) not in told]
            mine = texts.words.normal[row].split(" ") if fresh else []
            for item, position in ((int(items[p]), int(positions[p])) for p in fresh):
                its = self._words.normal[item].split(" ")
                shared = shared_words(mine, int(first[at]), its, position)
                if len(shared) >= n and own_words(shared, template, self.matching.shingle) >= n:
                    told.add((row, item))
                    yield row, item, Hit("run", self.items[item], " ".join(mine[int(first[at]) : int(first[at]) + n]))

    def _near(self, texts: Questions, common: NDArray[np.uint64]) -> Iterator[tuple[int, int, Hit]]:
        if not self.matching.near or not len(texts) or not self.items:
            return
        k, threshold = self.matching.shingle, self.matching.near
        told = self._spell_common(common)
        rows = self._likely(texts.words)
        if not rows:
            return
        mine = HashedTexts([texts.words.normal[row] for row in rows]).bands(k, threshold, common)
        pairs: set[tuple[int, int]] = set()
        for band, (hashes, items) in enumerate(self._bands(common)):
            low = np.searchsorted(hashes, mine[:, band], "left")
            high = np.searchsorted(hashes, mine[:, band], "right")
            for at in np.flatnonzero(high > low).tolist():
                pairs.update((rows[at], item) for item in items[low[at] : high[at]].tolist())
        for row, item in sorted(pairs):
            if texts.pieces[row]:
                similarity = own_similarity(shingles(texts.words.normal[row], k), self._shingles(item), told)
                if similarity >= threshold:
                    yield row, item, Hit("near", self.items[item], similarity=similarity)

    # ---- what they look up

    @cached_property
    def _known(self) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Hashes of the items' shingles, sorted, and which low bits of one occur at all."""
        hashes = sorted_unique(self._words.shingles(self.matching.shingle)[0])
        mask = table_mask(len(hashes))
        places = np.zeros(int(mask) + 1, np.bool_)
        places[hashes & mask] = True
        return hashes, places

    @cached_property
    def _pieces(self) -> list[list[str]]:
        if self.as_written:
            return [[item.text] for item in self.items]
        return [split_pieces(item.question or item.text, self.matching.variants) for item in self.items]

    @cached_property
    def _words(self) -> HashedTexts:
        return HashedTexts([" ".join(pieces) for pieces in self._pieces])

    @cached_property
    def _places(self) -> Whole:
        of = self.matching
        share = 1.0 if of.common == 1 else min(of.common, of.template)
        return Whole([item.file for item in self.items], self._pieces, share)

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
        hashes, items, positions = self._words.runs(self.matching.n)
        order = np.lexsort((positions, items, hashes))
        mask = table_mask(len(hashes))
        places = np.zeros(int(mask) + 1, np.bool_)
        places[hashes & mask] = True
        return hashes[order], items[order], positions[order], places

    def _spell_common(self, common: NDArray[np.uint64]) -> frozenset[str]:
        """Common shingles of items as text."""
        if "words" not in self._prepared or self._prepared["words"][0] != common.tobytes():
            hashes, rows, first = self._words.shingles(self.matching.shingle)
            at = np.flatnonzero(among(common, hashes))
            at = at[np.unique(hashes[at], return_index=True)[1]]
            found = (_run(self._words.normal[int(rows[i])], int(first[i]), self.matching.shingle) for i in at.tolist())
            self._prepared["words"] = common.tobytes(), frozenset(found)
        return self._prepared["words"][1]

    def _bands(self, common: NDArray[np.uint64]) -> list[tuple[NDArray[np.uint64], NDArray[np.int64]]]:
        """Of each band the items' hashes without common shingles, sorted, and the items."""
        if "bands" not in self._prepared or self._prepared["bands"][0] != common.tobytes():
            bands = self._words.bands(self.matching.shingle, self.matching.near, common)
            orders = [np.argsort(bands[:, band], kind="stable") for band in range(bands.shape[1])]
            found = [(bands[order, band], order.astype(np.int64)) for band, order in enumerate(orders)]
            self._prepared["bands"] = common.tobytes(), found
        return self._prepared["bands"][1]

    @cached_property
    def _prepared(self) -> dict[str, tuple[bytes, Any]]:
        """For the common shingles that were asked for last, since blocks of texts ask for the same."""
        return {}

    @cached_property
    def _sets(self) -> dict[int, frozenset[str]]:
        return {}

    def _shingles(self, item: int) -> frozenset[str]:
        if item not in self._sets:
            self._sets[item] = shingles(self._words.normal[item], self.matching.shingle)
        return self._sets[item]


def find_contamination(index: EvalIndex, texts: Iterable[str]) -> list[Contamination]:
    """Which training texts contain evaluation items, and which.

    Args:
        index: of the evaluation.
        texts: as they were written. They are held in memory until all have been seen: what many of them share counts for nothing.

    Returns:
        one entry for each text in which something was found, in order; empty where training may go on.
    """
    remaining = iter(texts)
    blocks: list[Questions] = []
    counted = index.templates()
    while block := list(islice(remaining, _AT_ONCE)):
        blocks.append(index.questions(block))
        counted.add(blocks[-1])
        blocks[-1].forget()
    common = counted.common(index.matching.template)
    found = (index.hits(block, common) for block in blocks)
    return [Contamination(at * _AT_ONCE + i, hits) for at, some in enumerate(found) for i, hits in some.items()]


def _items(path: Path, fields: Fields) -> Iterator[EvalItem]:
    line = 0
    for line, entry in read_rows(path):
        try:
            question = fields.question_of(parse_entry(entry))
            yield EvalItem(str(path), line, normal(question), question)
        except DataError as error:
            raise DataError(f"{path}, line {line}: {error}; mend or remove it, for what is not read cannot be found") from None
    if not line:
        raise DataError(f"{path} holds no rows, so that no evaluation item could be found; give the evaluation's own file")


def _run(text: str, first: int, n: int) -> str:
    return " ".join(text.split(" ")[first : first + n])
