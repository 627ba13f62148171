"""What an answer can be: a number or formula, a quantity, a collection, an interval, a relation, a choice, a text."""

from __future__ import annotations

from dataclasses import dataclass

from assay.verify.math.ratio import Ratio
from assay.verify.math.units import Unit

__all__ = [
    "DENIED",
    "Based",
    "Bound",
    "Choice",
    "Clock",
    "Formula",
    "Intervals",
    "Many",
    "Matrix",
    "Opaque",
    "Piece",
    "Relation",
    "Residue",
    "Text",
    "Value",
]


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """A number or an expression, perhaps with a unit; ``source`` is how it was written, without the unit."""

    ratio: Ratio
    source: str
    unit: Unit | None = None


DENIED = "an equation that is denied"
"""Why a text is not read that says of an equation that it does not hold: it is no answer, whatever stands in it."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """Something that exact arithmetic does not read; ``why`` in words."""

    source: str
    why: str


@dataclass(frozen=True, slots=True)
class Text:
    """Words, lower case."""

    words: str


@dataclass(frozen=True, slots=True)
class Choice:
    """A letter of a multiple choice, upper case; ``value`` is what stands behind the letter, as in ``(B) 12``."""

    letter: str
    value: str | None = None


@dataclass(frozen=True, slots=True)
class Based:
    """Digits with a base: ``101_2``."""

    digits: str
    base: int


@dataclass(frozen=True, slots=True)
class Clock:
    """``3:00``, which may be a time of day: minutes have two digits. ``half``: ``a`` or ``p`` where AM or PM stands behind."""

    hours: int
    minutes: int
    half: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Residue:
    r"""``5 \pmod 7``: a value up to multiples of a modulus."""

    value: Value
    modulus: Formula


@dataclass(frozen=True, slots=True, eq=False)
class Many:
    """Several values. ``kind``: ``set``, ``tuple``, ``list`` (no brackets: order is free), ``row`` (square brackets),
    ``ratio`` (``1:2:3``).
    """

    kind: str
    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """An end of an interval; ``at`` is None for infinity."""

    at: Ratio | None
    closed: bool


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """One interval."""

    low: Bound
    high: Bound


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """A union of intervals and points; ``variable`` where it was written as an inequality."""

    pieces: tuple[Piece, ...]
    variable: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """Rows of values."""

    rows: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """``left = right``, or another sign between them; ``middle`` is what stands between in ``x = 3 + 4 = 7``."""

    sign: str
    left: Value
    right: Value
    middle: tuple[Value, ...] = ()


Value = Residue | Formula | Opaque | Text | Choice | Based | Clock | Many | Intervals | Matrix | Relation
