"""What people should know about reasoning-gym's scorers, each sentence with an answer that shows it: tried anew for each page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assay.verify import rollout_of
from evidence.audits.gym import GymScorer, gym_cases

__all__ = ["CLAIMS", "Claim"]


@dataclass(frozen=True, slots=True)
class Claim:
    """A finding that anybody can try: ``create_dataset(name, size=24, seed=0)``, then ``score_answer(answer, data[index])``.

    Attributes:
        name: the data set.
        index: of its entry.
        answer: what is said.
        value: the score that it gets, at least.
        says: why.
    """

    name: str
    index: int
    answer: str
    value: float
    says: str

    def try_claim(self) -> tuple[str, float]:
        """The entry's gold, and what the answer is worth now."""
        case = gym_cases(self.name)[self.index]
        said = self.answer.replace("{gold}", case.gold)
        return case.gold, GymScorer(self.name)(case.task, rollout_of(case.task, said)).primary

    def row(self) -> dict[str, Any]:
        """As data."""
        gold, value = self.try_claim()
        return {"name": self.name, "index": self.index, "gold": gold, "answer": self.answer, "value": value, "says": self.says}


CLAIMS = (
    Claim(
        "game_of_life_halting", 1, "banana", 1.0, "any text is right: `bool(answer) == bool(gold)` of texts that are not empty"
    ),
    Claim("coin_flip", 1, "0", 1.0, "the share of leading digits that agree, of the shorter number: `0` begins `0.3125`"),
    Claim("complex_arithmetic", 0, "nan", 1.0, "`min(1.0, exp(-distance))` of NaN is 1.0"),
    Claim("puzzle24", 0, "4*6*1*1", 1.0, "any four numbers that make 24; whether they are the puzzle's is not compared"),
    Claim("gsm_symbolic", 0, "28080 was my first thought, but it is 5", 1.0, "the first number counts, whatever follows"),
    Claim("gsm_symbolic", 0, "-28080", 1.0, "a minus sign at the beginning is not read"),
    Claim("knights_knaves", 0, "not {gold}", 1.0, "names and roles are looked for, so a denial is not seen"),
    Claim("number_sorting", 1, "['53.2', '30.0', '14.5', '-49.0', '-81.9']", 1.0, "each number may be off by 1"),
    Claim("fraction_simplification", 0, "{gold} or $\\frac{1}{2}$", 1.0, "the first fraction counts, so several may be named"),
    Claim("spell_backward", 0, "{gold}!", 0.8, "what stands behind the right letters costs a fifth, or nothing by rounding"),
    Claim("chain_sum", 0, "not {gold}", 0.5, "a text that holds the gold gets its share of the length"),
)
"""``{gold}`` stands for the entry's gold."""
