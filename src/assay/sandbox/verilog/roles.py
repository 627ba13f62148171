"""Which inputs are clocks and resets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from assay.core.canon import FrozenMap
from assay.sandbox.verilog.design import CLOCK, Design
from assay.sandbox.verilog.source import bare

__all__ = ["Roles", "roles_of"]

_RESET = re.compile(r"(?<!fi)(?<!bu)(?<!wo)(?<!thi)rst|reset|clr|clear", re.IGNORECASE)  # no first, burst, worst
_LOW = re.compile(r"^n_?(?:a|s)?(?:rst|reset|clr|clear)|(?:rst|reset|clr|clear)_?(?:a|s|i)?_?(?:n|b|l|ni)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Roles:
    """What drives a design.

    Attributes:
        clocks: inputs that processes wait for, and that are no reset.
        resets: inputs that put it into its first state, each with the level at which it does.
        asynchronous: the resets that act without a clock.
    """

    clocks: tuple[str, ...] = ()
    resets: Mapping[str, int] = FrozenMap()
    asynchronous: frozenset[str] = frozenset()


def roles_of(design: Design, source: str) -> Roles:
    """Finds clocks and resets of a design.

    An input whose edge a process waits for is a clock. Where a process waits for several, those that are clocks elsewhere or
    look like it are clocks, and the others resets, active at the level that their edge leads to. In a design with a clock an
    input of one bit that is named like a reset is one; its level is told by how the source tests it, or else by its name.

    Wrong roles make a comparison weaker, never wrong: inputs change one at a time, whatever they are.

    Args:
        design: as compiled.
        source: its text.

    >>> from assay.sandbox.verilog.design import Port
    >>> ports = (Port("clk", "input", 1), Port("rst_n", "input", 1))
    >>> dict(roles_of(Design(ports, (frozenset({("posedge", "clk")}),)), "if (!rst_n)").resets)
    {'rst_n': 0}
    """
    code = bare(source)
    names = [p.name for p in design.inputs if p.width == 1]
    clocks = {name for wait in design.waits if len({n for _, n in wait}) == 1 for _, name in wait}
    levels: dict[str, int] = {}
    for wait in design.waits:
        several = {name for _, name in wait}
        if len(several) > 1:
            found = several & clocks or _clocks_among(several, code)
            clocks |= found
            levels |= {name: int(edge == "posedge") for edge, name in sorted(wait) if name not in found}
    asynchronous = frozenset(levels) - clocks
    if clocks:
        levels |= {name: _level(name, code) for name in names if _RESET.search(name) and name not in levels}
    return Roles(
        tuple(n for n in names if n in clocks),
        FrozenMap({n: levels[n] for n in names if n in levels and n not in clocks}),
        asynchronous,
    )


def _clocks_among(names: set[str], code: str) -> set[str]:
    """Of inputs whose edges one process waits for, those that it does not test; resets are tested."""
    for found in (
        {name for name in names if CLOCK.search(name)},
        {name for name in names if not _RESET.search(name)},
        {name for name in names if not re.search(rf"\bif\s*\(\s*[!~]?\s*{re.escape(name)}\b", code)},
    ):
        if found and found != names:
            return found
    return names


def _level(name: str, code: str) -> int:
    """The level at which a reset acts."""
    word = re.escape(name)
    if re.search(rf"[!~]\s*{word}\b|\b{word}\s*===?\s*(?:1?'[bdh])?0\b", code):
        return 0
    if re.search(rf"\bif\s*\(\s*{word}\b", code):
        return 1
    return 0 if _LOW.search(name) else 1
