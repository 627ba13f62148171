"""The golden designs of `designs.v`, their rewrites, and mutants of them."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

__all__ = ["DESIGNS", "mutants", "needs_iverilog"]

needs_iverilog = pytest.mark.skipif(shutil.which("vvp") is None, reason="vvp is not installed (Debian package iverilog)")


def _read() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for part in (Path(__file__).parent / "designs.v").read_text().split("//== ")[1:]:
        name, _, body = part.partition("\n")
        found[name] = tuple(body.split("//-- same\n"))
    return found


DESIGNS = _read()
"""Name to the golden source and what behaves the same."""

_SWAPS = (
    (r"\+(?!:)", "-"),
    (r"(?<![-+*])-(?!1:)", "+"),
    (r"(?<![&])&(?!&)", "|"),
    (r"&&", "||"),
    (r"(?<!\|)\|(?!\|)", "&"),
    (r"\^", "&"),
    ("==", "!="),
    ("!=", "=="),
    (r"(?<![<])<(?![<=])", ">"),
    (r">=", "<"),
    ("posedge", "negedge"),
    ("negedge", "posedge"),
    (r"!(?!=)", ""),
    ("~", ""),
    (r"\bif \(", "if (!"),
    (r"(?<=[=?:] )(\d+)(?=[;, ])", r"~\1"),
    (r"(?<=<= )(\w+)(?=;)", r"~\1"),
    (r"\?([^:?;]*):([^:?;]*)(?=[;:])", r"?\2:\1"),
    (r"(put \w*\s?)\[(\w+)-1:0\]", r"\1[\2:0]"),
    (r"(put \w*\s?)\[(\d+):0\]", r"\1[\2+1:0]"),
)


def mutants(source: str) -> Iterator[str]:
    """The source with one operator, edge, condition or width changed; comments have none."""
    for pattern, other in _SWAPS:
        for found in re.finditer(pattern, source):
            changed = source[: found.start()] + found.expand(other) + source[found.end() :]
            if changed != source:
                yield changed
