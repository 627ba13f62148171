"""What commands print: tables and lines for people, or one JSON value for programs."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from assay.cli.text_wrap import columns
from assay.core.errors import UnknownNameError

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["busy", "cell", "choose", "grid", "lines", "note", "show", "table", "strip_marks"]


def show(as_json: bool, value: Any, render: Callable[[], None]) -> int:
    """Prints ``value`` as JSON, or whatever ``render`` prints; returns exit code 0."""
    if as_json:
        from assay.core.canon import plain

        print(json.dumps(_finite(plain(value)), indent=1, ensure_ascii=False, allow_nan=False))
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


def choose(command: str, args: list[str], known: Mapping[str, tuple[Callable[[list[str]], int] | str, str]]) -> int:
    """Runs a sub-command, or prints which there are.

    Args:
        command: whose they are.
        args: its arguments.
        known: name to what runs it and its help; a function, or ``module:function``, imported where it is asked for.

    Raises:
        UnknownNameError: no such sub-command; says the nearest.
    """
    if not args or args[0] in ("-h", "--help"):
        print(f"usage: assay {command} COMMAND ...\n\ncommands:")
        print(columns({name: text for name, (_, text) in known.items()}))
        print(f"\n'assay {command} COMMAND --help' says more.")
        return 0 if args else 2
    if args[0] not in known:
        raise UnknownNameError(f"command of 'assay {command}'", args[0], known)
    runs = known[args[0]][0]
    if isinstance(runs, str):
        module, _, name = runs.partition(":")
        runs = cast("Callable[[list[str]], int]", getattr(import_module(module), name))
    return runs(args[1:])


def note(text: str) -> None:
    """A line for the person, beside the output."""
    with suppress(OSError):  # a terminal that was closed
        print(text, file=sys.stderr, flush=True)


@contextmanager
def busy(text: str) -> Generator[None]:
    """Shows on a terminal that work goes on; elsewhere, and of an empty text, nothing."""
    if not text or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield


def cell(value: Any) -> str:
    """A value as a table shows it: numbers with three decimals, a dash for None."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def strip_marks(text: str) -> str:
    """Docstring text without its marks."""
    return text.replace("`", "")


def _finite(value: Any) -> Any:
    """JSON has no infinity and no NaN: they become their names."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return [_finite(v) for v in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]
