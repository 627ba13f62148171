"""Text that fits the terminal. Used by help, so it imports nothing of assay."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Mapping

__all__ = ["columns", "fill"]

_NARROWEST = 40  # a terminal that claims less is told as much as this needs


def fill(text: str) -> str:
    """``text`` in lines no longer than the terminal is wide; words stay whole."""
    return _wrapped(text, "", "")


def columns(rows: Mapping[str, str]) -> str:
    """Indented names, each with its text beside it; what does not fit goes on under the text."""
    width = max(map(len, rows))
    return "\n".join(_wrapped(text, f"  {name:<{width}}  ", " " * (width + 4)) for name, text in rows.items())


def _wrapped(text: str, first: str, more: str) -> str:
    width = max(_NARROWEST, shutil.get_terminal_size().columns)
    return textwrap.fill(
        text, width, initial_indent=first, subsequent_indent=more, break_long_words=False, break_on_hyphens=False
    )
