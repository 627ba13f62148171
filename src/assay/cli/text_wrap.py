"""Text that fits the terminal. Used by help, so it imports nothing of assay."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Mapping, Sequence

__all__ = ["columns", "fill", "table_rows"]

_NARROWEST = 40  # a terminal that claims less is told as much as this needs


def fill(text: str) -> str:
    """``text`` in lines no longer than the terminal is wide; words stay whole."""
    return _wrapped(text, "", "")


def columns(rows: Mapping[str, str]) -> str:
    """Indented names, each with its text beside it; what does not fit goes on under the text."""
    width = max(map(len, rows))
    return "\n".join(_wrapped(text, f"  {name:<{width}}  ", " " * (width + 4)) for name, text in rows.items())


def table_rows(rows: Sequence[tuple[str, str, str]]) -> str:
    """Indented names, values and texts, a line each: what does not fit is cut off at a word."""
    width = max(_NARROWEST, shutil.get_terminal_size().columns)
    first = max(len(name) for name, _, _ in rows)
    second = max(len(value) for _, value, _ in rows)
    out: list[str] = []
    for name, value, text in rows:
        head = f"  {name:<{first}}  " + (f"{value:<{second}}  " if second else "")
        out.append(head + textwrap.shorten(text, max(8, width - len(head)), placeholder=" ..."))
    return "\n".join(line.rstrip() for line in out)


def _wrapped(text: str, first: str, more: str) -> str:
    width = max(_NARROWEST, shutil.get_terminal_size().columns)
    return textwrap.fill(
        text, width, initial_indent=first, subsequent_indent=more, break_long_words=False, break_on_hyphens=False
    )
