"""Pairs of mathematical answers whose verdict is known because of how they were made.

A value is drawn, and written in two ways: a rewriting keeps it, a perturbation changes it. Nothing here reads mathematics, so it
judges a verifier without sharing its mistakes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from assay.testing.math_pairs.algebra import (
    assigned_letter,
    complex_number,
    exponential,
    identity,
    known_value,
    line,
    pi,
    polynomial,
    power,
    radical,
    rational,
)
from assay.testing.math_pairs.base import Made, Rng
from assay.testing.math_pairs.numbers import decimal, degrees, fraction, integer, money, repeating, scientific, signs
from assay.testing.math_pairs.several import interval, matrix, point, ray, set_of, tuple_of, union
from assay.testing.math_pairs.worded import choice, quantity, spell_number, words

__all__ = ["FAMILIES", "MathPair", "math_pairs"]


@dataclass(frozen=True, slots=True)
class MathPair:
    """Two answers, and whether they are equal.

    Attributes:
        family: what kind of value it is.
        gold, answer: the two.
        equal: whether they are the same.
    """

    family: str
    gold: str
    answer: str
    equal: bool


def math_pairs(n: int, seed: int = 0, families: tuple[str, ...] = ()) -> Iterator[MathPair]:
    """``n`` pairs from all families in turn, about as many equal as different.

    Args:
        n: how many.
        seed: decides all draws.
        families: names of `FAMILIES`; () for all.

    >>> [pair.equal for pair in math_pairs(4, seed=1, families=("tuple",))]
    [True, False, True, False]
    """
    rng = Rng(f"math_pairs/{seed}")
    names = families or tuple(FAMILIES)
    for index in range(n):
        name = names[(index // 2) % len(names)]
        gold, same, other = FAMILIES[name](rng)
        equal = index % 2 == 0
        yield MathPair(name, gold, _dress_text(rng, rng.choice(same if equal else other)), equal)


def _dress_text(rng: Rng, text: str) -> str:
    """The text in wrappers that mean nothing."""
    if rng.random() < 0.3:
        before = rng.choice(["First I had \\boxed{17}, but then ", ""])
        text = f"Let me see. {before}the answer is \\boxed{{{text}}}."
    elif rng.random() < 0.3:
        text = rng.choice([f"${text}$", f"\\({text}\\)", f" {text} ", f"\\[ {text} \\]", f"$ {text} $"])
    return text


FAMILIES: dict[str, Callable[[Rng], Made]] = {
    "integer": integer,
    "fraction": fraction,
    "decimal": decimal,
    "repeating": repeating,
    "scientific": scientific,
    "radical": radical,
    "pi": pi,
    "polynomial": polynomial,
    "rational": rational,
    "complex": complex_number,
    "set": set_of,
    "tuple": tuple_of,
    "point": point,
    "interval": interval,
    "ray": ray,
    "union": union,
    "matrix": matrix,
    "assigned": assigned_letter,
    "line": line,
    "quantity": quantity,
    "degrees": degrees,
    "money": money,
    "choice": choice,
    "words": words,
    "spelled": spell_number,
    "signs": signs,
    "power": power,
    "known": known_value,
    "exponential": exponential,
    "identity": identity,
}
"""Kinds of values by name; all but ``identity`` can be decided exactly."""
