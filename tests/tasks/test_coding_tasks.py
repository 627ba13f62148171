"""Programs to write: chains by hand, oracles run here, and the verifiers in the sandbox."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from assay.core.canon import canonical, plain
from assay.tasks import Problem, Problems
from assay.testing import check_problem
from assay.verify.rollouts import rollout_of
from assay_tasks.coding.chains import (
    describe_chain,
    distinguishing_inputs,
    drawn_chain,
    inputs,
    lines,
    mutants,
    result,
    write_loops,
)
from assay_tasks.coding.family import coding
from assay_tasks.coding.problems import Bug, ChainProblem, Repair, Translate

CODING: Problems = coding()
CHAINS = [p for p in CODING.problems if isinstance(p, ChainProblem)]


def _function(text: str, name: str) -> Any:
    space: dict[str, Any] = {}
    exec(text, space)
    return space[name]


def test_chains_by_hand() -> None:
    chain: list[list[Any]] = [["differences"], ["size"], ["unique"], ["take", 2], ["sum"]]
    assert result(chain, [1, 4, 2, 5, 5]) == 5  # 3 -2 3 0, 3 2 3 0, 3 2 0, 3 2
    assert result([["sums"], ["above", 2], ["every"], ["reverse"], ["list"]], [1, 2, 3, 4]) == [10, 3]
    assert [result([["drop", 9], [end]], [4]) for end in ("sum", "count", "largest", "smallest", "last")] == [0] * 5
    assert describe_chain([["cap", 3], ["count"]]) == (
        "It replaces each number greater than 3 by 3, and returns how many numbers there are."
    )
    assert [other for at, other in mutants([["take", 2], ["sum"]]) if at == 0] == [
        [["take", 3], ["sum"]],
        [["take", 4], ["sum"]],
        [["drop", 2], ["sum"]],
    ]


def test_both_ways_of_writing_agree_with_the_chain() -> None:
    for i in range(150):
        rng = Random(i)
        chain = drawn_chain(1 + i % 6, rng)
        functions = [_function("\n".join(lines(chain, "f")), "f"), _function(write_loops(chain, "f"), "f")]
        for xs in inputs(6, rng):
            assert [f(list(xs)) for f in functions] == [result(chain, xs)] * 2


@pytest.mark.parametrize("problem", [p for p in CHAINS if p.name not in ("coding/tests", "coding/bug")], ids=lambda p: p.name)
def test_oracles_pass_and_near_misses_fail(problem: ChainProblem) -> None:
    for level in problem.levels:
        for i in range(4):
            facts = plain(problem.draw(level, Random(f"{level}/{i}")))
            found = problem.solve(facts)
            for case in found.gold["tests"]:
                assert _function(found.answer, facts["name"])(*plain(case["args"])) == case["expected"]
            tried = [case["args"][0] for case in found.gold["tests"]]
            missed = [other for _, other in mutants(facts["chain"]) if not distinguishing_inputs(facts["chain"], other, tried)]
            assert len(missed) <= 2
            if problem.name == "coding/examples":
                assert all(
                    distinguishing_inputs(facts["chain"], other, facts["examples"]) for _, other in mutants(facts["chain"])
                )


def test_repairs_and_bugs_name_the_same_line() -> None:
    check_problem(Bug(), n=8, growth=1.3)
    facts = Repair().draw(4, Random(3))
    number = int(Bug().solve(facts).answer)
    right, wrong = (lines(facts[key], facts["name"]) for key in ("chain", "wrong"))
    assert [i for i, (a, b) in enumerate(zip(right, wrong, strict=True), 1) if a != b] == [number]
    assert f"{number}: {wrong[number - 1]}" in Bug().word(facts, 0)


def test_translations_agree_with_python() -> None:
    for level in (1, 3, 5):
        for i in range(8):
            facts = Translate().draw(level, Random(f"{level}/{i}"))
            found = Translate().solve(facts)
            function = _function(found.answer, facts["function"][0])
            assert all(function(*case["args"]) == case["expected"] for case in found.gold["tests"])
    perl = Translate().fields(facts | {"language": "perl"})["code"]  # pyright: ignore
    assert "my ($u, $v) = @_;" in perl and perl.endswith("}\n```")


def test_the_same_function_has_the_same_tests() -> None:
    """They are not in the question: two that differ in them alone would be the same question in both splits."""
    seen: dict[str, list[list[int]]] = {}
    drawn = [Translate(tests=4).draw(1, Random(i)) for i in range(400)]
    for facts in drawn:
        assert seen.setdefault(canonical(facts["function"]), facts["tests"]) == facts["tests"]
    assert len(seen) < len(drawn)


@pytest.mark.prove
@pytest.mark.parametrize("problem", CODING.problems, ids=lambda p: p.name)
def test_verifiers_take_the_oracle_and_refuse_mistakes(problem: Problem) -> None:
    verifier = problem.verifier(CODING.form)
    for level in (problem.levels[0], problem.levels[-1]):
        task = CODING.task(problem.name, level, "train", 0)
        facts = plain(task.public["facts"])
        assert verifier(task, rollout_of(task, task.private["solution"])).primary == 1.0
        assert verifier(task, rollout_of(task, task.public["prompt"])).primary == 0.0
        if isinstance(problem, ChainProblem) and problem.name != "coding/bug":
            wrong = "\n".join(lines(next(iter(mutants(facts["chain"])))[1], facts["name"]))
            if problem.name == "coding/tests":
                wrong = f"def test_nothing():\n    assert {facts['name']}([]) is not None"
            assert verifier(task, rollout_of(task, f"```python\n{wrong}\n```")).primary == 0.0
