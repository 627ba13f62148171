"""Values with words: units, letters, names."""

from __future__ import annotations

from assay.testing.math_pairs.base import Made, Rng

__all__ = ["choice", "quantity", "spell_number", "words"]


_UNITS = (
    ("cm", "m", 100),
    ("m", "km", 1000),
    ("g", "kg", 1000),
    ("mm", "cm", 10),
    ("minutes", "hours", 60),
    ("seconds", "minutes", 60),
)


def quantity(rng: Rng) -> Made:
    """A number with its unit."""
    n = rng.randint(2, 90)
    small, large, size = rng.choice(_UNITS)
    gold = f"{n}\\text{{ {large}}}"
    same = [
        f"{n}\\,\\mathrm{{{large}}}",
        f"{n} \\text{{{large}}}",
        f"{n * size} \\text{{ {small}}}",
        str(n),
        f"{2 * n}/2\\text{{ {large}}}",
    ]
    return (
        gold,
        same,
        [
            f"{n}\\text{{ {small}}}",
            f"{n + 1}\\text{{ {large}}}",
            f"{n}\\text{{ {large}}}^2",
            f"{n}\\text{{ liters}}",
            str(n * size),
            f"{n}^\\circ",
        ],
    )


def choice(rng: Rng) -> Made:
    """A letter of a choice."""
    letter, wrong = rng.sample("ABCDE", 2)
    n = rng.randint(2, 99)
    return (
        rng.choice([letter, f"\\text{{({letter})}}"]),
        [letter, f"({letter})", f"\\text{{{letter}}}", f"\\text{{({letter})}}", f"({letter}) {n}"],
        [wrong, f"({wrong})", f"\\text{{{wrong}}}", f"{letter}{wrong}", str(n)],
    )


def words(rng: Rng) -> Made:
    """A word."""
    first, second = rng.sample(["even", "odd", "Paris", "Monday", "increasing", "never", "isosceles", "yes", "no"], 2)
    return (
        f"\\text{{{first}}}",
        [first, first.upper(), f"\\textbf{{{first}}}", f"\\mathrm{{{first}}}"],
        [second, f"\\text{{not {first}}}", f"{first} {second}", "1"],
    )


def spell_number(rng: Rng) -> Made:
    """A number in words."""
    ones = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    tens = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
    a, b = rng.randrange(8), rng.randrange(9)
    n = 10 * (a + 2) + b + 1
    return (
        str(n),
        [f"{tens[a]}-{ones[b]}", f"{tens[a]} {ones[b]}".capitalize(), f"\\text{{{tens[a]}-{ones[b]}}}"],
        [tens[a], ones[b], f"{tens[a]}-{ones[(b + 1) % 9]}", f"minus {tens[a]}"],
    )
