"""A stage that learns from rows of a user's own beside what it samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from assay.core.protocols import Tokenizer
from assay.train.row_sources import RowSource, check_source_rows
from assay.train.stage import Stage

if TYPE_CHECKING:
    from assay.train.run import Run

__all__ = ["SourceStage"]


class SourceStage(Stage):
    """Base of stages with `RowSource`s: their files, questions and lengths are looked at before the run."""

    @property
    def row_sources(self) -> tuple[RowSource, ...]:
        """Rows of a user's own, whatever they are for."""
        return ()

    @property
    def files(self) -> tuple[str, ...]:
        """Those of the sources."""
        return tuple(name for source in self.row_sources for name in source.files)

    def training_texts(self) -> Iterator[tuple[str, str]]:
        """The questions of the sources' rows."""
        for source in self.row_sources:
            yield from source.texts()

    def check_rows(self, run: Run, tokenizer: Tokenizer, context: int) -> None:
        """Looks at the text and the length of the sources' rows."""
        check_source_rows(self.row_sources, tokenizer, context)
