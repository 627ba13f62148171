"""People and things for word problems, and what their texts share."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from random import Random

__all__ = ["ASIDES", "NAMES", "THINGS", "draw_aside", "cents", "list_parts", "people", "said_aside"]

NAMES = (
    "Ada",
    "Ben",
    "Cleo",
    "Dan",
    "Eva",
    "Finn",
    "Gita",
    "Hugo",
    "Iris",
    "Jon",
    "Kira",
    "Leo",
    "Mona",
    "Nils",
    "Olga",
    "Paul",
    "Rosa",
    "Sam",
    "Tara",
    "Umar",
    "Vera",
    "Will",
    "Xenia",
    "Yuri",
    "Zoe",
)
THINGS = (
    "apples",
    "books",
    "coins",
    "pencils",
    "marbles",
    "stamps",
    "shells",
    "cards",
    "badges",
    "stickers",
    "buttons",
    "candles",
    "postcards",
    "ribbons",
    "tickets",
    "spoons",
    "feathers",
    "keys",
)
ASIDES = (
    "The day before, it had rained for {n} hours.",
    "A neighbour of theirs is {n} years old.",
    "The nearest library has {n} shelves.",
    "Last year there were {n} sunny days in May.",
    "The bus stop is {n} metres away.",
    "On the wall hangs a calendar that cost {n} cents.",
    "There are {n} chairs in the next room.",
    "The radio plays song number {n} of its list.",
)
"""Sentences that change nothing."""


def people(count: int, rng: Random) -> list[str]:
    """Different names."""
    return rng.sample(NAMES, count)


def draw_aside(rng: Random) -> list[int] | None:
    """In every third question, which sentence stands there for nothing, and its number."""
    return [rng.randrange(len(ASIDES)), rng.randint(3, 60)] if rng.random() < 0.35 else None


def said_aside(what: Sequence[int] | None) -> str:
    """That sentence and a space; empty for none.

    >>> said_aside([2, 7]), said_aside(None)
    ('The nearest library has 7 shelves. ', '')
    """
    return f"{ASIDES[what[0]].format(n=what[1])} " if what else ""


def list_parts(parts: Sequence[str]) -> str:
    """Parts with commas and an ``and``.

    >>> list_parts(["a"]), list_parts(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]


def cents(amount: int | Fraction) -> str:
    """Cents as dollars.

    >>> cents(1205), cents(300)
    ('12.05', '3.00')
    """
    return f"{int(amount) // 100}.{int(amount) % 100:02d}"
