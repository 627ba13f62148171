"""How far a curation is: a bar on a terminal, plain lines elsewhere, nothing where nobody asked."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TextIO

__all__ = ["Bars", "CurationProgress", "PlainProgress", "Quiet", "progress_on"]

Tick = Callable[[int], None]
"""Called for each chunk with the number of its rows."""

_EVERY = 100_000
"""Rows between two plain lines."""


class CurationProgress(Protocol):
    """Is told of stages and what they have done."""

    def stage(self, name: str, chunks: int | None) -> AbstractContextManager[Tick]:
        """A stage begins; it ends with the block.

        Args:
            name: what is done.
            chunks: how many there will be, where that is known.
        """
        ...


class Quiet:
    """Says nothing."""

    @contextmanager
    def stage(self, name: str, chunks: int | None) -> Generator[Tick]:
        """Says nothing."""
        yield _nothing


class PlainProgress:
    """A line when a stage begins, and now and then how far it is.

    Args:
        out: where to.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out

    @contextmanager
    def stage(self, name: str, chunks: int | None) -> Generator[Tick]:
        """Writes as rows go by."""
        rows = said = 0

        def tick(count: int) -> None:
            nonlocal rows, said
            rows += count
            if rows - said >= _EVERY:
                said = rows
                self._say(f"{name}: {rows:,} rows")

        self._say(name)
        yield tick

    def _say(self, text: str) -> None:
        print(f"assay curate: {text}", file=self._out, flush=True)


class Bars:
    """A bar for each stage."""

    @contextmanager
    def stage(self, name: str, chunks: int | None) -> Generator[Tick]:
        """Shows a bar while rows go by."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        parts = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rows]:,} rows"))
        with Progress(*parts, TimeElapsedColumn(), console=Console(stderr=True)) as bars:
            task, rows = bars.add_task(name, total=chunks, rows=0), 0

            def tick(count: int) -> None:
                nonlocal rows
                rows += count
                bars.update(task, advance=1, rows=rows)

            yield tick
            bars.update(task, total=bars.tasks[0].completed)


def progress_on(out: TextIO | None = None) -> CurationProgress:
    """Bars where ``out`` (the standard error) is a terminal, else lines."""
    stream = sys.stderr if out is None else out
    return Bars() if stream.isatty() else PlainProgress(stream)


def _nothing(_: int) -> None:
    pass
