"""Formulas, knights and knaves: numbers by hand, and other solvers beside the families' own."""

from __future__ import annotations

from collections import Counter
from itertools import product
from random import Random
from typing import Any

import pytest

from assay.core.canon import plain
from assay.core.errors import ConfigError, DataError
from assay.tasks import family
from assay.testing.problems import check_problem
from assay.verify.rollouts import rollout_of
from assay_tasks.logic.knights import Knights
from assay_tasks.logic.saturn import Planted, Satisfiable, Solvable, clauses_of
from assay_tasks.logic.solver import Solver, difficulty


def test_the_sheets_numbers_of_difficulty() -> None:
    stages = [(3, 5, 5), (3, 5, 6), (3, 5, 13), (3, 5, 15), (5, 8, 40)]
    assert [round(difficulty(*stage), 3) for stage in stages] == [5.632, 6.159, 8.389, 8.802, 10.244]
    assert all(difficulty(3, 5, n) < difficulty(3, 5, n + 1) for n in range(1, 60))
    with pytest.raises(ConfigError, match="at least one literal"):
        difficulty(3, 5, 0)


def test_planted_stages_ascend() -> None:
    found = [difficulty(*stage) for stage in Planted().stages]
    assert found == sorted(found) and len(set(found)) == len(found)


@pytest.mark.prove
@pytest.mark.parametrize("name", ["sat", "knaves"])
def test_each_problem_keeps_the_contract(name: str) -> None:
    for problem in family(name).problems:  # pyright: ignore
        check_problem(problem, growth=5.0)


def test_the_solver_agrees_with_all_assignments() -> None:
    rng, seen = Random(0), Counter[bool]()
    for _ in range(200):
        variables = rng.randint(1, 7)
        clauses = [[rng.choice((-1, 1)) * rng.randint(1, variables) for _ in range(3)] for _ in range(rng.randint(1, 30))]
        models = [
            values
            for values in product((False, True), repeat=variables)
            if all(any(values[abs(x) - 1] == (x > 0) for x in clause) for clause in clauses)
        ]
        found = Solver(variables, clauses).model()
        assert tuple(found) in models if found else not models
        seen[bool(models)] += 1
    assert min(seen.values()) > 20


def test_drawn_formulas() -> None:
    for level, (width, variables, clauses) in enumerate(Planted().stages, 1):
        facts = Planted().draw(level, Random(level))
        rows = clauses_of(facts)
        assert len(facts["names"].split(" ")) == variables and len({tuple(row) for row in rows}) == clauses
        assert all(len({abs(x) for x in row}) == width and max(map(abs, row)) <= variables for row in rows)
        assert Solver(variables, rows).model() is not None


def test_half_of_the_formulas_at_the_edge_have_a_solution() -> None:
    for level in (1, 4, 7):
        rng = Random(level)
        share = sum(Satisfiable().solve(Satisfiable().draw(level, rng)).answer == "yes" for _ in range(200)) / 200
        assert abs(share - 0.5) < 0.12, level


def test_a_formula_in_words() -> None:
    facts = {"names": "jam pie", "clauses": [1, -2, -1, 2], "width": 2}
    said = [Solvable().word(facts, variant) for variant in range(4)]
    assert "(jam ∨ ¬pie) ∧ (¬jam ∨ pie)" in said[0] and "jam or not pie; not jam or pie." in said[1]
    assert "\njam or not pie\nnot jam or pie\n" in said[2] and "(jam or no pie), (no jam or pie)" in said[3]
    assert all("jam=true, pie=false" in text and "write unsat" in text for text in said)
    assert "left out. Is" not in Satisfiable().word(facts, 3) and Satisfiable().word(facts, 3).endswith("Answer yes or no.")


def test_any_satisfying_assignment_is_right() -> None:
    source = family("sat")
    task = source.task("sat/assignment", 2, "train", 0)
    gold = plain(task.private["answer"])
    verdicts: list[float] = []
    for values in product((False, True), repeat=5):
        said = ", ".join(f"{n}={str(v).lower()}" for n, v in zip(gold["names"], values, strict=True))
        right = all(any(values[abs(x) - 1] == (x > 0) for x in clause) for clause in gold["clauses"])
        verdicts.append(source.verifier()(task, rollout_of(task, f"<answer>{said}</answer>")).primary)
        assert verdicts[-1] == float(right)
    assert 1 <= sum(verdicts) < 32


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"levels": (11,)}, "there are 10 stages"),
        ({"stages": ((3, 2, 1),), "levels": (1,)}, "must be literals in a clause"),
        ({"stages": ((2, 2, 4),), "levels": (1,)}, "have not 4 different clauses"),
    ],
)
def test_impossible_stages_are_refused(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Planted(**settings)


def test_a_stage_without_unsatisfiable_formulas() -> None:
    easy = Solvable(stages=((3, 5, 1),), levels=(1,))
    with pytest.raises(DataError, match="use a stage with fewer or more clauses"):
        for i in range(20):
            easy.draw(1, Random(i))


# ---- knights and knaves


def _holds(said: list[Any], knights: tuple[bool, ...]) -> bool:
    """A statement in one world, by its definition."""
    match said:
        case ["is", a]:
            return knights[a]
        case ["count", k]:
            return sum(knights) == k
        case ["same", a, b]:
            return knights[a] == knights[b]
        case ["not", s]:
            return not _holds(s, knights)
        case ["says", a, s]:
            return knights[a] == _holds(s, knights)
        case [kind, s, t]:
            a, b = _holds(s, knights), _holds(t, knights)
            return {"and": a and b, "or": a or b, "if": not a or b, "iff": a == b, "xor": a != b}[kind]
        case _:
            raise AssertionError(said)


@pytest.mark.parametrize("level", [1, 3, 5, 7])
def test_one_answer_fits_and_it_is_the_solvers(level: int) -> None:
    for index in range(15):
        facts = Knights().draw(level, Random(index))
        names = facts["names"].split(" ")
        fits = [
            world
            for world in product((False, True), repeat=len(names))
            if all(_holds(said, world) == world[i] for i, said in enumerate(facts["says"]))
        ]
        true, false = (("knight", "knave"), ("angel", "demon"), ("saint", "rogue"))[facts["kinds"]]
        (world,) = fits
        assert Knights().solve(facts).gold == {n: true if w else false for n, w in zip(names, world, strict=True)}


def test_statements_in_words() -> None:
    says = [
        ["says", 1, ["or", ["is", 2], ["not", ["is", 0]]]],
        ["if", ["not", ["same", 0, 2]], ["count", 1]],
        ["iff", ["xor", ["is", 0], ["count", 0]], ["and", ["not", ["not", ["is", 1]]], ["count", 2]]],
    ]
    text = Knights().word({"names": "Abe Bea Cal", "kinds": 1, "says": says}, 0)
    assert "either an angel or a demon" in text and "You meet Abe, Bea and Cal." in text
    assert "Abe says: Bea would say that (Cal is an angel, or Abe is a demon, or both)." in text
    assert "Bea says: if (it is not true that Abe and Cal are of the same kind), then exactly one of the three is an" in text
    assert (
        "Cal says: (either Abe is an angel or none of the three is an angel, but not both) if and only if "
        "((it is not true that Bea is a demon) and exactly two of the three are angels)." in text
    )


def test_roles_are_spread() -> None:
    golds = [Knights().solve(Knights().draw(3, Random(i))).gold for i in range(200)]
    share = sum(role in ("knight", "angel", "saint") for gold in golds for role in gold.values()) / 600
    assert 0.3 < share < 0.7


@pytest.mark.parametrize(
    "settings",
    [
        {"levels": (11,)},
        {"stages": ((1, 1),), "levels": (1,)},
        {"stages": ((2, 7),), "levels": (1,)},
    ],
)
def test_impossible_puzzles_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"knaves/roles\.(levels|stages)"):
        Knights(**settings)


def test_puzzles_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def boast(people: int, depth: int, rng: Random, speaker: int) -> list[Any]:
        return ["is", speaker]

    monkeypatch.setattr("assay_tasks.logic.knights._statement", boast)
    with pytest.raises(DataError, match="has one answer"):
        Knights().draw(1, Random(0))
