"""Rows that contain evaluation items go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.core.errors import ConfigError
from assay.curate.evaluation import EvalIndex, Hit, Matching
from assay.curate.rows import Fields
from assay.curate.step import Chunk, RowStep, Verdict, drop
from assay.curate.text import sketch_library

__all__ = ["Decontaminate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decontaminate(RowStep):
    """Drops rows whose question is an evaluation item, shares a run of words with one, or is nearly one.

    The evidence names every item that was hit: its file and line, how, and the run that is shared.

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

    def judge(self, chunk: Chunk, ready: Any) -> Sequence[Verdict | None]:
        """A verdict for each row that was hit."""
        found = ready.hits(chunk.texts)
        return [drop("evaluation item", hits=[_said(h) for h in found[i]]) if i in found else None for i in range(len(chunk))]


def _said(hit: Hit) -> dict[str, Any]:
    said: dict[str, Any] = {"kind": hit.kind, "file": hit.item.file, "line": hit.item.line, "item": hit.item.text}
    if hit.kind == "run":
        said["run"] = hit.run
    if hit.kind == "near":
        said["similarity"] = round(hit.similarity, 4)
    return said
