"""What a design is driven with."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from assay.sandbox.verilog.design import Design, Port
from assay.sandbox.verilog.roles import Roles

__all__ = ["Stimulus", "stimulus"]

_T = TypeVar("_T")
_HELD = (0, 0, 1, 2, 3, 4, 5, 6)
"""For how long some inputs keep their values: a number of cycles with so many bits, and one."""


@dataclass(frozen=True, slots=True)
class Stimulus:
    """Inputs in time.

    Attributes:
        rows: one for each moment: ``1`` where outputs are read after it and ``0`` elsewhere, then the bits of all inputs.
        cycles: for each reading of the outputs, the cycle that it belongs to.
    """

    rows: tuple[str, ...]
    cycles: tuple[int, ...]


def stimulus(design: Design, roles: Roles, cycles: int, rng: Random) -> Stimulus:
    """Corner values, then drawn ones.

    From one row to the next at most one input changes, so no two implementations can differ by which of two changes they see
    first. With clocks each cycle changes inputs, then lets clocks rise and fall one by one; outputs are read after the inputs
    changed, and after each edge. It begins under reset, unread; then there is a long run without reset, two with few and
    with more resets, and one where resets are mostly on, so that a reset taken for its opposite is still tried. Without clocks
    all input values are tried where there are no more than ``cycles``; else all 0, all 1, one-hot and boundaries come first.

    Args:
        design: whose inputs are driven.
        roles: its clocks and resets.
        cycles: how many cycles, or values without a clock.
        rng: where drawn values come from.

    >>> from random import Random
    >>> ports = (Port("a", "input", 1), Port("y", "output", 1))
    >>> stimulus(Design(ports), Roles(), 4, Random(0)).cycles
    (0, 1, 2, 3)
    """
    played = _Played(design.inputs)
    if roles.clocks:
        _add_clock(played, roles, cycles, rng)
    else:
        _values(played, cycles, rng)
    return Stimulus(tuple(played.rows), tuple(played.cycles))


@dataclass(slots=True)
class _Played:
    ports: tuple[Port, ...]
    rows: list[str] = field(default_factory=list[str])
    cycles: list[int] = field(default_factory=list[int])
    now: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        self.now = {p.name: "x" * p.width for p in self.ports}

    def put(self, name: str, bits: str) -> None:
        """One input changes."""
        if self.now[name] != bits:
            self.now[name] = bits
            self._row("0")

    def read(self, cycle: int) -> None:
        """Outputs are read."""
        if not self.rows or self.rows[-1][0] == "1":
            self._row("1")
        else:
            self.rows[-1] = "1" + self.rows[-1][1:]
        self.cycles.append(cycle)

    def _row(self, mark: str) -> None:
        self.rows.append(mark + "".join(self.now.values()))


def _values(played: _Played, count: int, rng: Random) -> None:
    """Without a clock: sets of input values."""
    width = sum(p.width for p in played.ports)
    if width < 24 and 1 << width <= count:
        sets = list(range(1 << width))
        _shuffle(sets, rng)
        while len(sets) < min(count, 2 << width):
            sets.append(rng.getrandbits(width) if width else 0)
        for cycle, number in enumerate(sets):
            _spread(played, format(number, f"0{width}b") if width else "")
            played.read(cycle)
        return
    corners = _corners(played.ports, rng)
    for cycle in range(count):
        if cycle < min(len(corners), count // 2):
            _spread(played, corners[cycle])
        else:
            for port in played.ports:
                played.put(port.name, _random_value(port, played, rng))
        played.read(cycle)


def _spread(played: _Played, bits: str) -> None:
    """Gives each input its part of a row of bits, one after another."""
    at = 0
    for port in played.ports:
        played.put(port.name, bits[at : at + port.width])
        at += port.width


def _shuffle(rows: list[_T], rng: Random) -> None:
    for i in range(len(rows) - 1, 0, -1):
        j = rng.getrandbits(32) % (i + 1)
        rows[i], rows[j] = rows[j], rows[i]


def _corners(ports: tuple[Port, ...], rng: Random) -> list[str]:
    """All 0, all 1, the boundaries of all inputs at once; then, mixed, of each beside zeros and ones, and each bit alone."""
    width = sum(p.width for p in ports)
    kinds = len(_edges(1))
    first = ["0" * width, "1" * width, *("".join(_edges(p.width)[k] for p in ports) for k in range(kinds))]
    rows: list[str] = []
    for i, port in enumerate(ports):
        for k in range(kinds):
            for rest in "01":
                rows.append("".join(_edges(p.width)[k] if j == i else rest * p.width for j, p in enumerate(ports)))
        if port.width <= 16:  # of wide inputs single bits are drawn
            before = sum(p.width for p in ports[:i])
            rows += ["0" * (before + k) + "1" + "0" * (width - before - k - 1) for k in range(port.width)]
    _shuffle(rows, rng)
    return list(dict.fromkeys([*first, *rows]))


def _edges(width: int) -> list[str]:
    """Boundary values: 0, 1, greatest, next to it, the signed ones, and alternating bits."""
    top = (1 << width) - 1
    half = 1 << (width - 1)
    even = sum(1 << i for i in range(0, width, 2))
    return [format(n & top, f"0{width}b") for n in (0, 1, top, top - 1, half, half - 1, even, even << 1)]


def _random_value(port: Port, played: _Played, rng: Random) -> str:
    """The next value of an input: the same, a neighbour, a boundary, one bit, a small one, another input's, or any."""
    before, width = played.now[port.name], port.width
    known = 0 if "x" in before else int(before, 2)
    kind = rng.getrandbits(3)
    if kind == 0:
        number = known
    elif kind == 1:
        edges = _edges(width)
        number = int(edges[rng.getrandbits(16) % len(edges)], 2)
    elif kind == 2:
        number = 1 << (rng.getrandbits(32) % width)
    elif kind == 3:
        number = rng.getrandbits(2)
    elif kind == 4:
        other = played.ports[rng.getrandbits(16) % len(played.ports)]
        bits = played.now[other.name]
        number = (0 if "x" in bits else int(bits, 2)) + rng.getrandbits(2) - 1
    else:
        number = rng.getrandbits(width)
    return format(number & ((1 << width) - 1), f"0{width}b")


def _add_clock(played: _Played, roles: Roles, cycles: int, rng: Random) -> None:
    data = [p for p in played.ports if p.name not in roles.clocks and p.name not in roles.resets]
    for port in data:
        played.put(port.name, "0" * port.width)
    for name, level in roles.resets.items():
        played.put(name, str(1 - level))
    for name in roles.clocks:
        played.put(name, "0")
    for name, level in roles.resets.items():
        played.put(name, str(level))
    held: frozenset[str] = frozenset()
    until = 0
    for cycle in range(-2, cycles):
        if cycle >= until:
            held = frozenset(p.name for p in data if rng.getrandbits(1))
            until = cycle + 1 + rng.getrandbits(_HELD[rng.getrandbits(3)])
        for port in data:
            if port.name not in held:
                played.put(port.name, _random_value(port, played, rng))
        for name, level in roles.resets.items():
            played.put(name, str(level if _resets(cycle, cycles, rng) else 1 - level))
        rising = [name for name in roles.clocks if rng.getrandbits(1)] or [roles.clocks[rng.getrandbits(16) % len(roles.clocks)]]
        reads = cycle >= 0 or not roles.resets
        _tick(played, rising, max(cycle, 0), reads)


def _tick(played: _Played, rising: list[str], cycle: int, reads: bool) -> None:
    if reads:
        played.read(cycle)
    for level in "10":
        for name in rising:
            played.put(name, level)
            if reads:
                played.read(cycle)


def _resets(cycle: int, cycles: int, rng: Random) -> bool:
    """Whether a reset is on in a cycle."""
    if cycle < 0 or cycle < cycles // 2:
        return cycle < 0
    drawn = rng.getrandbits(5)
    if cycle < cycles * 9 // 10:
        return drawn < (1 if cycle < cycles * 7 // 10 else 4)
    return drawn >= 4
