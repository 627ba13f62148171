"""Text that fits the terminal. Used by help, so it imports nothing of assay."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Mapping, Sequence

__all__ = ["columns", "fill", "table_rows"]

_NARROWEST = 40  # a terminal that claims less is told as much as this needs


def fill(text: str, hang: str = "") -> str:
    """``text`` in lines no longer than the terminal is wide, all but the first behind ``hang``; words stay whole."""
    return _wrap(text, "", hang)


def columns(rows: Mapping[str, str]) -> str:
    """Indented names, each with its text beside it; what does not fit goes on under the text. A name of more than half of the
    terminal's width stands on a line of its own, above its text.
    """
    most = _width() // 2
    width = max((len(name) for name in rows if len(name) <= most), default=2)
    more = " " * (width + 4)
    return "\n".join(
        _wrap(text, f"  {name:<{width}}  ", more) if len(name) <= width else f"  {name}\n{_wrap(text, more, more)}"
        for name, text in rows.items()
    )


def table_rows(rows: Sequence[tuple[str, str, str]]) -> str:
    """Indented names, values and texts; what does not fit goes on under the text."""
    first = max(len(name) for name, _, _ in rows)
    second = max(len(value) for _, value, _ in rows)
    heads = [f"  {name:<{first}}  " + (f"{value:<{second}}  " if second else "") for name, value, _ in rows]
    lines = [_wrap(text, head, " " * len(head)) for head, (_, _, text) in zip(heads, rows, strict=True)]
    return "\n".join(line.rstrip() for line in lines)


def _width() -> int:
    return max(_NARROWEST, shutil.get_terminal_size().columns)


def _wrap(text: str, first: str, more: str) -> str:
    return textwrap.fill(
        text, _width(), initial_indent=first, subsequent_indent=more, break_long_words=False, break_on_hyphens=False
    )
