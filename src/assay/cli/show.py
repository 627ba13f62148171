"""What commands print: tables and lines for people, or one JSON value for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from assay.core.canon import plain

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["busy", "lines", "note", "show", "table"]


def show(as_json: bool, value: Any, render: Callable[[], None]) -> int:
    """Prints ``value`` as JSON, or whatever ``render`` prints; returns exit code 0."""
    if as_json:
        print(json.dumps(plain(value), indent=1, ensure_ascii=False))
    else:
        render()
    return 0


def lines(rows: Mapping[str, object]) -> None:
    """Prints names and values in two columns."""
    width = max((len(name) for name in rows), default=0)
    for name, value in rows.items():
        first, *more = str(value).split("\n")
        print(f"{name:<{width}}  {first}".rstrip())
        for line in more:
            print(f"{'':<{width}}  {line}".rstrip())


def table(made: Table) -> None:
    """Prints a table; as wide as it needs where the output is no terminal."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=200)
    console.print(made)


def grid(columns: Sequence[str], rows: Sequence[Sequence[object]], right: Collection[int] = ()) -> None:
    """Prints rows under column names; ``right`` columns are right-aligned."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, name in enumerate(columns):
        made.add_column(name, justify="right" if index in right else "left", overflow="fold")
    for row in rows:
        made.add_row(*(Text(str(cell)) for cell in row))
    table(made)


def note(text: str) -> None:
    """A line for the person, beside the output."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def busy(text: str) -> Iterator[None]:
    """Shows on a terminal that work goes on; elsewhere nothing."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield
