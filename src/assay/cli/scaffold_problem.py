"""Module and test of a family of questions in words that ``assay init problem`` writes."""

from __future__ import annotations

from assay.cli.scaffold_recipe import IMPORTS, RUN

__all__ = ["PROBLEM", "PROBLEM_TEST"]

_RUN = RUN.replace("max_positions=64", "max_positions=256").replace("max_new_tokens=8", "max_new_tokens=48")

PROBLEM = (
    '''"""@about@"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.core.protocols import Verifier
'''
    + IMPORTS.replace("from assay.train", "from assay.tasks import Facts, Form, Problem, Problems, Solution\nfrom assay.train")
    + '''from assay.verify import Numeric

FAMILIES = {"@name@": "@module@:family"}  # what assay finds by the entry point of pyproject.toml

THINGS = ("pens", "apples", "cups", "lamps", "books", "ropes")


@dataclass(frozen=True, slots=True, kw_only=True)
class @Class@(Problem):
    """@about@

    The level is how many kinds of things are bought.
    """

    name: str = "@name@/cost"
    domain: str = "math"
    levels: tuple[int, ...] = (1, 2, 3)
    unique: ClassVar[bool] = True  # no other answer than that of solve is right, so checks try others beside it

    templates: ClassVar[tuple[str, ...]] = (
        "Ann buys {bought}. How much does she pay in all?",
        "What do {bought} cost together?",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        things = rng.sample(THINGS, level)
        return {"bought": [[rng.randint(2, 20), thing, rng.randint(2, 20)] for thing in things]}

    def fields(self, facts: Facts) -> dict[str, str]:
        return {"bought": ", ".join(f"{n} {thing} at {price} each" for n, thing, price in facts["bought"])}

    def solve(self, facts: Facts) -> Solution:
        costs = [n * price for n, _, price in facts["bought"]]
        steps = " + ".join(map(str, costs))
        return Solution(answer=str(sum(costs)), steps=steps, effort=len(costs))

    def verifier(self, form: Form) -> Verifier:
        return Numeric(where=form.place)  # the number that stands alone in the answer's place: "28 or 21" is none


def family() -> Problems:
    return Problems(name="@name@", summary=@described@, problems=(@Class@(),))
'''
    + _RUN.replace("@tasks@", "family()").replace("@levels@", "(1,)")
)

PROBLEM_TEST = '''"""The problem and its family keep their contracts, and the recipe is a run."""

from @module@ import @Class@, family, recipe

from assay.testing import check_problem, check_task_source


def test_the_problem_keeps_its_contract() -> None:
    assert check_problem(@Class@()).passed


def test_the_family_keeps_its_contract() -> None:
    report = check_task_source(family())
    assert report.passed and not report.skipped


def test_an_example() -> None:
    assert @Class@().solve({"bought": [[3, "pens", 4], [2, "cups", 5]]}).answer == "22"


def test_the_recipe_trains_on_it() -> None:
    assert recipe().tasks == family()
'''
