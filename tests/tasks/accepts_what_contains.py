"""A family whose verifier accepts every answer that contains the right one."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.core.protocols import Verifier
from assay.core.score import Score
from assay.tasks import Facts, Form, Problem, Problems, Solution
from assay.verify import AnswerVerifier
from assay.verify.answer_verifier import verdict_score

__all__ = ["Contains", "Dozens", "eggs"]


@dataclass(frozen=True, slots=True)
class Contains(AnswerVerifier):
    """``correct`` is 1 wherever the gold stands."""

    def rule(self, gold: Any, text: str) -> Score:
        return verdict_score("in it" if gold in text else "not in it", {"correct": float(gold in text)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Dozens(Problem):
    """How many eggs some dozens are; the level is the number of digits, less 1."""

    name: str = "units/dozens"
    domain: str = "math"
    templates: ClassVar[tuple[str, ...]] = ("How many eggs are {n} dozen?",)

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        return {"n": rng.randrange(10**level, 10 ** (level + 1))}

    def solve(self, facts: Facts) -> Solution:
        return Solution(answer=f"{12 * facts['n']} eggs", effort=len(str(facts["n"])))

    def verifier(self, form: Form) -> Verifier:
        return Contains()


def eggs() -> Problems:
    """The family."""
    return Problems(name="eggs", summary="Eggs.", problems=(Dozens(),))
