"""Calculus: each solver against sympy."""

from __future__ import annotations

from typing import Any

import pytest
import sympy
from test_algebra import read

from assay.core.canon import plain
from assay.tasks import Form, Problem
from assay.testing import check_problem
from assay.verify.rollouts import task_and_rollout
from assay_tasks.math.calculus import Extremum, Limit, Taylor, calculus

SOURCE = calculus()
X = sympy.Symbol("x", real=True)


@pytest.mark.parametrize("problem", SOURCE.problems, ids=lambda p: p.name)
def test_problems_keep_their_contract(problem: Problem) -> None:
    check_problem(problem, n=30, growth=2.0)


def poly(coefficients: list[int]) -> Any:
    return sympy.Poly(coefficients, X).as_expr()


def by_sympy(arm: str, f: dict[str, Any]) -> Any:
    match arm:
        case "derivative":
            return sympy.expand(sympy.diff(sympy.prod(map(poly, f["factors"])), X, f["order"]))
        case "integral":
            return sympy.integrate(poly(f["coefficients"]), (X, f["low"], f["high"]))
        case "limit":
            return sympy.limit(poly(f["above"]) / poly(f["below"]), X, sympy.oo if f["at"] is None else f["at"])
        case "extremum":
            find = sympy.maximum if f["what"] == "largest" else sympy.minimum
            return find(poly(f["coefficients"]), X, sympy.Interval(f["low"], f["high"]))
        case _:
            y = f["a"] * X
            series = {
                "exp": sympy.exp(y),
                "sin": sympy.sin(y),
                "cos": sympy.cos(y),
                "log": sympy.log(1 + y),
                "geometric": 1 / (1 - y),
            }
            expanded = sympy.series(poly(f["times"]) * series.get(f["kind"], 1 / (1 - y)), X, 0, f["power"] + 1).removeO()
            return sympy.expand(expanded).coeff(X, f["power"])


@pytest.mark.slow
@pytest.mark.parametrize("arm", SOURCE.arms())
def test_agrees_with_sympy(arm: str) -> None:
    for level in SOURCE.arms()[arm]:
        for index in range(2):
            task = SOURCE.task(arm, level, "train", index)
            said = read(SOURCE.solution(task).answer)
            assert said - by_sympy(arm.removeprefix("calculus/"), plain(task.public["facts"])) == 0, task.public["facts"]


def test_by_hand() -> None:
    assert Limit().solve({"above": [1, 0, -9], "below": [1, -3], "at": 3}).answer == "6"
    assert Limit().fields({"above": [1, 0], "below": [2, 1], "at": None})["at"] == "∞"
    assert "not 0 in between" in Extremum().solve({"coefficients": [1, 0, 0], "low": 1, "high": 2, "what": "largest"}).steps
    assert Taylor().solve({"kind": "cos", "a": 2, "times": [1], "power": 4}).answer == "2/3"
    assert Taylor().fields({"kind": "geometric", "a": -3, "times": [-2], "power": 1})["function"] == "-2 · 1/(1 + 3x)"
    assert Taylor().fields({"kind": "exp", "a": -1, "times": [1, 2], "power": 1})["function"] == "(x + 2) · e^(-x)"


@pytest.mark.parametrize(
    ("arm", "facts", "right", "wrong"),
    [
        ("derivative", {"factors": [[1, 1], [1, -1]], "order": 1}, ("2x", "2*x"), ("2", "(x+1)+(x-1)", "x^2 - 1")),
        (
            "integral",
            {"coefficients": [1, 0, 0], "low": 0, "high": 1},
            ("1/3", "\\frac{1}{3}"),
            ("1^3/3 - 0^3/3", "0.333", "\\int_0^1 x^2 dx"),
        ),
        ("limit", {"above": [1, 0, -9], "below": [1, -3], "at": 3}, ("6", "6.0"), ("3 + 3", "\\infty", "x + 3")),
    ],
)
def test_what_answers_count(arm: str, facts: dict[str, Any], right: tuple[str, ...], wrong: tuple[str, ...]) -> None:
    problem = SOURCE.problem(f"calculus/{arm}")
    gold = problem.solve(facts).answer
    for said, value in [*((r, 1.0) for r in right), *((w, 0.0) for w in wrong)]:
        assert problem.verifier(Form.TAG)(*task_and_rollout(gold, f"<answer>{said}</answer>")).primary == value, said
