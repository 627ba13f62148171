"""Rows that contain evaluation items go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError
from assay.curate.evaluation import EvalIndex, Hit, Matching
from assay.curate.near_duplicates import SeenTexts, noted_texts
from assay.curate.phrase_frequency import AT_LEAST
from assay.curate.question_keys import Questions
from assay.curate.rows import Fields
from assay.curate.sentence_keys import split_pieces
from assay.curate.step import Chunk, Decision, SetStep, StepNotes
from assay.curate.text import sketch_library

__all__ = ["Decontaminate"]

_SURER = 2
"""So many times the share and the rows that a template needs in `Matching`: in what is left, and in a part of that as its
training split, it may be rarer."""

_PIECES = "\0"
"""Stands between a text and its pieces, which never hold it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decontaminate(SetStep):
    """Drops rows whose question is an evaluation item, holds one whole, shares a run of words with one, or is nearly one.

    The evidence names every item that was hit: its file and line, how, and the run that is shared. What many rows or many items
    share is a template's, and counts for nothing; so all rows are seen before one goes. What stays has no
    items, looked for in all of it.

    Attributes:
        against: files or folders of evaluation rows.
        matching: when an item counts as found.
        fields: where the evaluation rows hold their questions.

    Raises:
        ConfigError: nothing to compare with.

    Source: the scripts of s1 and Open-R1, with exact and near-duplicates for items shorter than a run.
    """

    against: tuple[Path, ...]
    matching: Matching = field(default_factory=Matching)
    fields: Fields = field(default_factory=Fields)

    def __post_init__(self) -> None:
        if not self.against:
            raise ConfigError("Decontaminate.against names no file; give the evaluation's rows")

    @property
    def files(self) -> tuple[Path, ...]:
        """The evaluation's."""
        return self.against

    def prepare(self, scratch: Path) -> EvalIndex:
        """Reads and indexes the evaluation."""
        if self.matching.near:
            sketch_library()
        return EvalIndex.read(self.against, self.matching, self.fields)

    def note(self, chunk: Chunk, ready: Any) -> Mapping[str, NDArray[Any]]:
        """The texts, each with its pieces behind it."""
        pieces = ("\n".join(split_pieces(row.question, self.matching.variants)) for row in chunk.rows)
        return noted_texts([f"{text}{_PIECES}{of}" for text, of in zip(chunk.texts.normal, pieces, strict=True)])

    def decide(self, seen: StepNotes, ready: Any) -> Sequence[Decision]:
        """Every row with an item; again, where what was taken for a template is none among the rows that are left."""
        index: EvalIndex = ready
        every = index.templates()
        for _, block in _blocks(seen):
            every.add(block)
        common = every.common(min(1.0, _SURER * self.matching.template), _SURER * AT_LEAST)
        while True:
            hits, left = dict[int, tuple[Hit, ...]](), every.copy()
            for places, block in _blocks(seen):
                found = index.hits(block, common)
                left.add(block.part(list(found)), -1)
                hits |= {int(places[at]): of for at, of in found.items()}
            still = common.stricter(left.common(self.matching.template))
            if still.same(common):
                break
            common = still
        rows = seen.positions[np.array(sorted(hits), np.int64)]
        said = tuple({"hits": [_hit_row(hit) for hit in hits[at]]} for at in sorted(hits))
        return [Decision("evaluation item", rows, details=said)]


def _blocks(seen: StepNotes) -> Iterator[tuple[NDArray[np.int64], Questions]]:
    """The rows that are still there, chunk by chunk: their places among the noted, and their questions."""
    for places, texts in SeenTexts(seen).blocks(seen.alive):
        pairs = [text.rpartition(_PIECES) for text in texts]
        yield places, Questions([text for text, _, _ in pairs], [of.split("\n") if of else [] for _, _, of in pairs])


def _hit_row(hit: Hit) -> dict[str, Any]:
    said: dict[str, Any] = {"kind": hit.kind, "file": hit.item.file, "line": hit.item.line, "item": hit.item.text}
    if hit.kind == "run":
        said["run"] = hit.run
    if hit.kind == "near":
        said["similarity"] = round(hit.similarity, 4)
    return said
