"""Problems that a law of science answers: quantities with units in, one quantity out, exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any, ClassVar

from assay.core.protocols import Verifier
from assay.tasks.problem import Facts, Form, Solution
from assay.verify.math.units import unit_of
from assay.verify.text.choice import Choice
from assay_tasks.math.exact import ExactProblem

__all__ = ["Kind", "LawProblem", "OptionProblem", "decimal"]

Values = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Kind:
    """One situation.

    Attributes:
        level: at which it is asked.
        text: of the question; ``{name}`` stands for a quantity.
        sizes: for each quantity the least, the largest and the step between values.
        unit: of the answer.
        work: the exact answer, and how it is calculated.
    """

    level: int
    text: str
    sizes: Mapping[str, tuple[int, int, int]]
    unit: str
    work: Callable[[Values], tuple[Fraction, str]]


def decimal(value: Fraction) -> str:
    """A number as a decimal where it has a short one, otherwise as a fraction.

    >>> decimal(Fraction(5, 4)), decimal(Fraction(6, 2)), decimal(Fraction(-1, 3)), decimal(Fraction(-1, 20))
    ('1.25', '3', '-1/3', '-0.05')
    """
    if value.denominator == 1:
        return str(value.numerator)
    for places in range(1, 7):
        scaled = value * 10**places
        if scaled.denominator == 1:
            whole, part = divmod(abs(scaled.numerator), 10**places)
            return f"{'-' if value < 0 else ''}{whole}.{part:0{places}d}"
    return str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class LawProblem(ExactProblem):
    """Base of problems with several situations, harder ones at higher levels."""

    domain: str = "science"

    kinds: ClassVar[Mapping[str, Kind]] = {}
    """Situations by name."""

    templates: ClassVar[tuple[str, ...]] = (
        "{text} Give the exact number in {unit}, as a decimal or a fraction.",
        "{text} The answer is asked for in {unit}; do not round.",
        "Answer with an exact number, in {unit}. {text}",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A situation of the level, and its quantities."""
        name = rng.choice([name for name, kind in self.kinds.items() if kind.level == level])
        sizes = self.kinds[name].sizes
        return {"kind": name, **{key: rng.randrange(low, high + 1, step) for key, (low, high, step) in sizes.items()}}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The situation with its quantities."""
        kind = self.kinds[facts["kind"]]
        return {"text": kind.text.format_map(facts), "unit": kind.unit}

    def solve(self, facts: Facts) -> Solution:
        """The law, with the numbers put in."""
        kind = self.kinds[facts["kind"]]
        answer, steps = kind.work({key: facts[key] for key in kind.sizes})
        text = decimal(answer)
        # a unit behind the answer is read where it is one of measure, and must be right then; the number alone is right too
        gold = text if unit_of(kind.unit) is None else f"{text} {kind.unit}"
        return Solution(
            answer=text,
            gold=gold,
            steps=f"{steps} = {text} {kind.unit}",
            effort=3 * kind.level + len(kind.sizes),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionProblem(LawProblem):
    """Base of problems with four options: the answer, and what usual mistakes make of it."""

    templates: ClassVar[tuple[str, ...]] = (
        "{text}\n{options}\nWhich option is right? Answer with its letter.",
        "{text} Choose one of these values.\n{options}\nGive the letter.",
        "Multiple choice: {text}\n{options}\nAnswer with A, B, C or D.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A situation, and the places of answer and mistakes."""
        facts = LawProblem.draw(self, level, rng)
        return {**facts, "mistakes": rng.sample(range(len(_MISTAKES)), 3), "place": rng.randrange(4)}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The situation and its options."""
        lines = [f"{letter}) {text}" for letter, text in zip("ABCD", self._options(facts), strict=True)]
        return {**LawProblem.fields(self, facts), "options": "\n".join(lines)}

    def verifier(self, form: Form) -> Verifier:
        """The letter."""
        return Choice(where=form.place)

    def solve(self, facts: Facts) -> Solution:
        """The law, and the option that agrees."""
        found = LawProblem.solve(self, facts)
        options = self._options(facts)
        letter = "ABCD"[options.index(f"{found.answer} {self.kinds[facts['kind']].unit}")]
        return Solution(answer=letter, steps=found.steps, effort=found.effort)

    def _options(self, facts: Facts) -> list[str]:
        kind = self.kinds[facts["kind"]]
        answer, _ = kind.work({key: facts[key] for key in kind.sizes})
        mistakes: list[int] = facts["mistakes"]
        values = [answer * _MISTAKES[m] for m in mistakes]
        values.insert(facts["place"], answer)
        return [f"{decimal(v)} {kind.unit}" for v in values]


_MISTAKES = tuple(Fraction(a, b) for a, b in ((2, 1), (1, 2), (10, 1), (1, 10), (4, 1), (1, 4), (3, 2), (3, 1)))
"""Factors by which answers go wrong: a half or a square forgotten, a power of ten lost."""
