"""Every kind of puzzle: one solution, which its verifier takes; levels that grow harder; a second solver that agrees."""

from __future__ import annotations

from itertools import pairwise, product
from random import Random
from statistics import mean

import pytest

from assay.core.canon import plain
from assay.core.errors import ConfigError, DataError
from assay.tasks import family
from assay.tasks.problem import Problem
from assay.tasks.problems import Problems
from assay.testing import check_task_source, rollout_of
from assay_tasks.puzzles.dates import Calendar
from assay_tasks.puzzles.logic import Syllogism
from assay_tasks.puzzles.orders import Schedule
from assay_tasks.puzzles.plans import Jugs, PlanPuzzle
from assay_tasks.puzzles.puzzle import Puzzle, list_words
from assay_tasks.puzzles.squares import Sudoku

FAMILIES = {name: family(name) for name in ("grids", "riddles", "plans")}
ALL = [problem for source in FAMILIES.values() if isinstance(source, Problems) for problem in source.problems]
PLANS = [problem for problem in ALL if isinstance(problem, PlanPuzzle)]
KINDS = [problem for problem in ALL if problem not in PLANS]
NAMED = pytest.mark.parametrize("problem", KINDS, ids=lambda p: p.name)


EVERY = pytest.mark.parametrize("problem", ALL, ids=lambda p: p.name)


def test_there_are_thirty_kinds() -> None:
    assert len(KINDS) >= 30 and all(len(p.templates) >= 3 for p in ALL)


@NAMED
def test_a_varied_puzzle_is_as_good(problem: Problem) -> None:
    """Renamed, turned or in another order it has one solution too, and is of the same level."""
    level, rng = problem.levels[1], Random(problem.name)
    facts = problem.draw(level, rng)
    for _ in range(4):
        other = problem.redraw(facts, level, rng)
        assert other.keys() == facts.keys() and problem.solve(other).answer
    if isinstance(problem, Puzzle):
        twin = problem.vary(facts, rng)
        assert twin is None or problem.solve(twin).answer


@EVERY
def test_levels_that_there_are_not_are_refused(problem: Problem) -> None:
    most = max(problem.levels)
    with pytest.raises(ConfigError, match=rf"{problem.name}.levels must be different whole numbers .* from 1 to {most}"):
        type(problem)(levels=(1, most + 1))


@pytest.mark.parametrize("problem", PLANS, ids=lambda p: p.name)
def test_plans_have_the_length_of_their_level(problem: PlanPuzzle) -> None:
    for level in problem.levels:
        facts = problem.draw(level, Random(f"{problem.name} {level}"))
        low, high = problem.shapes[level - 1][-1]
        plan = problem.solve(facts).answer.split(", ")
        assert low <= len(plan) <= high and facts["most"] == len(plan) + 2
        other = {**facts, **(problem.vary(facts, Random(level)) or {})}
        assert len(problem.solve(other).answer.split(", ")) == len(plan)


def test_plans_that_there_are_not() -> None:
    with pytest.raises(DataError, match="plans/jugs: these facts have no plan"):
        Jugs().solve({"world": "jugs", "sizes": [2, 4], "target": 3, "most": 9})

    class Never(Jugs):
        def make(self, shape: object, rng: Random) -> None:
            return None

    with pytest.raises(DataError, match="plans/jugs: 500 draws of level 1 gave no plan of 2 to 4 actions"):
        Never().draw(1, Random(0))


def test_facts_with_no_or_two_solutions_are_refused() -> None:
    with pytest.raises(DataError, match="found 2"):
        Sudoku().solve({"size": 4, "box": [2, 2], "cells": ["."] * 16})
    with pytest.raises(DataError, match="found 0"):
        Sudoku().solve({"size": 4, "box": [2, 2], "cells": ["1", "1"] + ["."] * 14})


def test_a_kind_that_never_succeeds_says_so() -> None:
    class Never(Sudoku):
        def make(self, level: int, rng: Random) -> None:
            return None

    with pytest.raises(DataError, match="grids/sudoku: 400 draws of level 1 gave no puzzle with exactly one solution"):
        Never().draw(1, Random(0))


def test_words_in_a_row() -> None:
    assert (list_words([]), list_words(["a"]), list_words(["a", "b", "c"])) == ("", "a", "a, b and c")


def test_verdicts_about_classes_against_all_worlds() -> None:
    """Brute force over which of the eight kinds of creatures of three classes exist."""
    rng, problem = Random(0), Syllogism()
    seen: set[str] = set()
    for _ in range(60):
        facts = problem.draw(1, rng)

        def holds(kind: str, a: int, b: int, world: tuple[int, ...]) -> bool:
            both = any(w and k >> a & 1 and k >> b & 1 for k, w in enumerate(world))
            only = any(w and k >> a & 1 and not k >> b & 1 for k, w in enumerate(world))
            return {"all": not only, "no": not both, "some": both, "some not": only}[kind]

        worlds = [w for w in product((0, 1), repeat=8) if all(any(w[k] and k >> c & 1 for k in range(8)) for c in range(3))]
        worlds = [w for w in worlds if all(holds(*clue, w) for clue in facts["premises"])]
        found = {holds(*facts["claim"], w) for w in worlds}
        wanted = "unknown" if len(found) == 2 else "yes" if found == {True} else "no"
        assert problem.solve(facts).answer == wanted
        seen.add(wanted)
    assert seen == {"yes", "no", "unknown"}


@pytest.mark.parametrize("problem", [Schedule(), Syllogism()], ids=lambda p: p.name)
def test_facts_hold_nothing_that_the_question_does_not_tell(problem: Schedule | Syllogism) -> None:
    """Names in an order that no wording shows, or one that no sentence names, would make one question several."""
    for level in problem.levels:
        for i in range(15):
            facts = problem.draw(level, Random(i))
            for one in (facts, problem.redraw(facts, level, Random(i))):
                words = problem.word(one, 0).lower()
                assert one["names"] == sorted(one["names"]) and all(name in words for name in one["names"])


def test_dates_by_hand() -> None:
    """The only Friday the 13th of 2026 in a month with 30 days is 13 November."""
    facts = {"names": ["year", "2026"], "year": 2026}
    clues = [["weekday", 4], ["days", 30], ["over", 12], ["under", 14]]
    assert Calendar().solve({**facts, "clues": clues}).answer == "11-13"
    more = [
        ["month", 2],
        ["third", 2],
        ["half", 0],
        ["sum", 30],
        ["odd", 0],
        ["week", 1],
        ["not weekday", 0],
        ["by", 7],
        ["letter", "b"],
    ]
    assert Calendar().solve({**facts, "clues": more}).answer == "02-28"
    said = Calendar().fields({**facts, "clues": more})["clues"]
    assert "The day of the month is 21 or later." in said and "A week later it is already the next month." in said


@pytest.mark.prove
@pytest.mark.parametrize("name", FAMILIES)
def test_the_contract_on_more_tasks(name: str) -> None:
    report = check_task_source(FAMILIES[name], n=3)
    assert report.skipped == () and report.numbers["share of tasks solved by the best constant answer"] < 0.05


@pytest.mark.prove
@EVERY
def test_levels_grow_harder_and_answers_vary(problem: Problem) -> None:
    source = Problems(name=problem.name.split("/")[0], problems=(problem,))
    means: list[float] = []
    for level in problem.levels:
        tasks = [source.task(problem.name, level, "train", i) for i in range(30)]
        means.append(mean(task.private["effort"] for task in tasks))
        verifier = source.verifier()
        golds = [task.private["solution"] for task in tasks]
        right = [sum(verifier(task, rollout_of(task, said)).primary for task in tasks) for said in golds]
        assert min(right) >= 1 and max(right) <= 18
    assert all(b > 0.97 * a for a, b in pairwise(means)), means
    assert means[-1] > 1.8 * means[0], means


@pytest.mark.prove
@NAMED
def test_another_solver_finds_the_same_and_no_other(problem: Problem) -> None:
    z3 = pytest.importorskip("z3")

    def check(text: str) -> object:
        solver = z3.Solver()
        solver.set("timeout", 30_000)
        solver.from_string(text)
        return solver if solver.check() == z3.sat else solver.check()

    source = Problems(name=problem.name.split("/")[0], problems=(problem,))
    for level in problem.levels:
        for index in range(2):
            facts = plain(source.task(problem.name, level, "train", index).public["facts"])
            if isinstance(problem, Syllogism):
                can, cannot = (check(model.smt()) != z3.unsat for model in problem.models(facts))
                assert problem.solve(facts).answer == ("unknown" if can and cannot else "yes" if can else "no")
                continue
            assert isinstance(problem, Puzzle)
            model = problem.model(facts)
            values, _ = model.only()
            found = check(model.smt()).model()  # pyright: ignore
            assert tuple(found.eval(z3.Int(n), model_completion=True).as_long() for n in model.names) == values
            assert check(model.smt(but=values)) == z3.unsat
