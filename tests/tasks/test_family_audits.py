"""Every built-in family and problem held to its contract: a few tasks of each always, hundreds in the proofs, and a thousand in
the evidence.

What a count of tasks means is said where it stands: of a problem, of an arm, or of a family, spread over its arms and levels.
"""

from __future__ import annotations

import math
import shutil
from collections import defaultdict
from dataclasses import dataclass, replace
from random import Random
from statistics import fmean
from typing import Any

import pytest

from assay.core.protocols import TaskSource
from assay.core.seeds import derive
from assay.core.task import Task
from assay.tasks import Facts, Form, Problem, Problems, Solution, families, family
from assay.tasks.draws import SPLITS
from assay.testing import ContractError, check_problem, check_task_source
from assay.train.evaluate import held_out

PROBLEMS = {p.name: p for name in families() if isinstance(source := family(name), Problems) for p in source.problems}


def cells(source: TaskSource) -> list[tuple[str, int]]:
    return [(arm, level) for arm, levels in source.arms().items() for level in levels]


RUN = ("coding", "hardware", "swe")
"""Families whose verdicts start processes: here their first and last levels, in the proofs all."""

MANY = ("swe/patch",)
"""Problems with verdicts of dozens of processes: here their first level."""

BESIDE = (
    "coding/examples",
    "coding/repair",
    "coding/tests",
    "coding/translate",
    "hardware/arithmetic",
    "hardware/fsm",
    "hardware/shift",
    "hardware/truth-table",
)
"""Problems that are judged as another of their family is that is looked at here, and would each start a sandbox of its own:
`test_coding_tasks.py` judges those that write programs, and the proofs hold all of them to the whole contract.
"""


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name not in BESIDE])
def test_problems_keep_the_contract(name: str) -> None:
    if name.startswith("hardware/") and shutil.which("vvp") is None:
        pytest.skip("needs iverilog")
    problem = PROBLEMS[name]
    if name.split("/")[0] in RUN:
        problem = replace(problem, levels=(problem.levels[0], *problem.levels[len(problem.levels) if name in MANY else -1 :]))
    assert "the solution scores 1 in every form" in check_problem(problem, n=1, growth=0.0).passed


@pytest.mark.prove
@pytest.mark.parametrize("name", PROBLEMS)
def test_levels_are_harder_for_the_solver(name: str) -> None:
    n = 15 if name.split("/")[0] in RUN else 40  # of an eighth the solutions are judged in each form
    assert "effort grows with the level" in check_problem(PROBLEMS[name], n=n, growth=1.0).passed


DEAR = (
    "code",
    "coding",
    "context",
    "countdown",
    "games",
    "graphs",
    "grids",
    "hardware",
    "mazes",
    "plans",
    "riddles",
    "search",
    "sql",
    "swe",
    "text",
)
"""Families of which a thousand tasks are looked at, spread over all arms, levels and both splits: their draws or verdicts are
dear, or their arms many. Of those in RUN it is 120, each with a verdict, and of all others a thousand, and at least 250 of every
arm. The proofs look at half as many, but at all 120."""

OVERLAPPING = {"chance/coins", "games/nim", "games/subtraction", "plans/jugs", "plans/slide"}
"""Arms with questions that are drawn at two levels."""

FEW = {"brackets", "cells", "gates", "heaps", "keyvalue", "knights", "octal", "plans", "strip"}
"""Families with a level of fewer training questions than are asked for."""

CLOSELY = {"coding": 56, "hardware": 50, "swe": 20}
"""About how many of these tasks are also made again, here and in another interpreter, judged twice, and met with wrong answers:
200 of all other families. Each verdict on a program starts several processes."""


@pytest.mark.parametrize(
    ("name", "share"),
    [
        pytest.param(name, share, marks=mark, id=f"{name}, {share:.0%}")
        for name in families()
        for share, mark in ((0.5, pytest.mark.prove), (1.0, pytest.mark.evidence))
        if name not in RUN or share < 1.0
    ],
)
def test_many_tasks_keep_the_contract(name: str, share: float) -> None:
    """Each of them is split by its content, hides what is private, and its solution scores 1."""
    if name == "hardware" and shutil.which("vvp") is None:
        pytest.skip("needs iverilog")
    source = family(name)
    wanted = 120 if name in RUN else math.ceil(share * (1000 if name in DEAR else max(1000, 250 * len(source.arms()))))
    report = check_task_source(source, n=-(-wanted // (2 * len(cells(source)))), closely=CLOSELY.get(name, 200))
    assert report.numbers["tasks"] >= wanted
    assert {"the oracle scores 1", "no content in both splits", "no constant answer is right too often"} <= set(report.passed)


SLOW = (*DEAR, "instructions", "knaves", "sat", "web")
"""Families of which a thousand tasks, half of them of the split with few, take more than a second."""


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.prove if n in SLOW else ()) for n in families()])
def test_no_question_twice_and_none_in_both_splits(name: str) -> None:
    """Four hundred tasks of a family, half of each split over all arms and levels, as an evaluation takes them: fewer only where
    a level has no more.
    """
    source = family(name)
    share = -(-200 // len(cells(source)))
    train, test = (held_out(source, (), share, split) for split in SPLITS)
    assert not {t.content for t in train} & {t.content for t in test}
    of_content: dict[str, list[Task]] = defaultdict(list)
    for task in (*train, *test):
        of_content[task.content].append(task)
    repeated = [tasks for tasks in of_content.values() if len(tasks) > 1]
    assert {t.arm for tasks in repeated for t in tasks} <= OVERLAPPING
    assert all(len({t.level for t in tasks}) == len(tasks) for tasks in repeated)
    assert len(train) == share * len(cells(source)) or name in FEW
    assert len(train) + len(test) >= 250


# ---- the check itself -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Fine(Problem):
    """Count the letters."""

    name: str = "fine/count"
    domain: str = "test"

    templates = ("How many letters has {word}?", "Letters in {word}?")

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        return {"word": "".join(rng.choices("ab", k=level + 10))}

    def solve(self, facts: Facts) -> Solution:
        return Solution(answer=str(len(facts["word"])), effort=len(facts["word"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Moody(Fine):
    """Draws from more than its generator."""

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        return {"word": "a" * Random().randrange(1, 10**6)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unequal(Fine):
    """Facts that are not equal to themselves."""

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        return {"word": float("nan")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Complex(Fine):
    """Facts that JSON cannot hold."""

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        return {"word": 1j}


@dataclass(frozen=True, slots=True, kw_only=True)
class Eater(Fine):
    """Changes the facts."""

    def solve(self, facts: Facts) -> Solution:
        dict.pop(facts, "word")  # pyright: ignore
        return Solution(answer="1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guesser(Fine):
    """Another answer each time."""

    def solve(self, facts: Facts) -> Solution:
        return Solution(answer=str(Random().random()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong(Fine):
    """Writes what its verifier refuses."""

    def format_solution(self, solution: Solution, form: Form) -> str:
        return "junk"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blank(Fine):
    """A wording without words."""

    templates = ("How many letters has {word}?", " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Twice(Fine):
    """The same wording twice."""

    templates = ("Letters of {word}?", "Letters of {word}?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Silent(Fine):
    """No wording."""

    templates = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Easier(Fine):
    """Higher levels are easier."""

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        return {"word": "a" * (30 - 3 * level)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Flat(Fine):
    """All levels are the same."""

    def solve(self, facts: Facts) -> Solution:
        return Solution(answer=str(len(facts["word"])), effort=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfair(Fine):
    """No question is worth asking."""

    def fair(self, facts: Facts) -> bool:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Uneven(Fine):
    """Level 2 is as hard as level 1, and its few questions happen to be easier: that is no fall."""

    levels: tuple[int, ...] = (1, 2, 3)

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        return {"word": "a" * (rng.choice((1, 40)) if level < 3 else 60)}


def test_a_sound_problem_passes() -> None:
    report = check_problem(Fine())
    assert report.numbers == {"effort at the first level": 11.0, "effort at the last level": 15.0} and not report.skipped
    assert check_problem(Flat(), growth=0.0).skipped == ("effort grows with the level: of too few questions",)
    assert "effort grows with the level" in check_problem(Fine(), growth=None).passed


def test_a_fall_within_the_error_of_a_sample_is_none() -> None:
    uneven = Uneven(name="fine/uneven4")
    assert _level_means(uneven) == [18.875, 12.375]  # by a third, of two levels that are one distribution
    assert "effort grows with the level" in check_problem(uneven).passed


def _level_means(problem: Problem) -> list[float]:
    """What `check_problem` draws, level by level."""
    seeds = [[derive("check/problem", 0, problem.name, f"{level}/{i}") for i in range(24)] for level in problem.levels[:2]]
    return [
        fmean(len(problem.draw(level, Random(seed))["word"]) for seed in of_level)
        for level, of_level in zip(problem.levels, seeds, strict=False)
    ]


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (Moody(), "from the same generator"),
        (Unequal(), "change when they are written"),
        (Complex(), "JSON cannot hold"),
        (Eater(), "changes the facts"),
        (Guesser(), "the solver gives"),
        (Wrong(), "the form 'tag' the solution 'junk' scores"),
        (Blank(), "is empty"),
        (Twice(), "are the same"),
        (Silent(), "has no wording"),
        (Easier(), "falls from level to level"),
        (Flat(), "is 7 at the last level and 7 at the first"),
        (Unfair(), "level 1: 0 of 2400 questions drawn are fair; 24 are wanted"),
    ],
)
def test_each_broken_promise_is_found(problem: Problem, said: str) -> None:
    with pytest.raises(ContractError, match=said):
        check_problem(problem)
