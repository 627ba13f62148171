"""Algebra: each solver against sympy, which reads the question as it is printed."""

from __future__ import annotations

import re
from typing import Any

import pytest
import sympy
from sympy.parsing.sympy_parser import implicit_multiplication_application, parse_expr, standard_transformations

from assay.core.canon import plain
from assay.tasks import Form, Problem
from assay.testing import check_problem
from assay.verify.rollouts import task_and_rollout
from assay_tasks.math.equations import LinearEquation, LinearSystem, Logarithms, algebra
from assay_tasks.math.polynomials import Inequality, Quadratic

SOURCE = algebra()
X = sympy.Symbol("x", real=True)


@pytest.mark.parametrize("problem", SOURCE.problems, ids=lambda p: p.name)
def test_problems_keep_their_contract(problem: Problem) -> None:
    check_problem(problem, n=30, growth=1.8)


def read(text: str) -> Any:
    """A formula as sympy reads it."""
    text = text.replace("^", "**").replace("×", "*").replace("÷", "/")
    names = {c: sympy.Symbol(c, real=True) for c in "xyzw"}
    return parse_expr(text, local_dict=names, transformations=(*standard_transformations, implicit_multiplication_application))


def set_of(text: str) -> Any:
    """A union of intervals."""
    out = sympy.EmptySet
    for a, low, high, b in re.findall(r"([(\[])([^,]+), ([^)\]]+)([)\]])", text):
        ends = [{"-∞": -sympy.oo, "∞": sympy.oo}.get(e) or sympy.Rational(e) for e in (low, high)]
        out |= sympy.Interval(*ends, a == "(", b == ")")
    return out


def agrees(arm: str, f: dict[str, Any], said: str) -> bool:
    """Whether sympy finds the same."""
    problem = SOURCE.problem(f"algebra/{arm}")
    told = dict(problem.fields(f))
    match arm:
        case "linear":
            left, right = told["equation"].split(" = ")
            return sympy.solve(read(left) - read(right), X) == [read(said)]
        case "system":
            sides = [line.split(" = ") for line in told["equations"].split("\n")]
            found = sympy.solve([read(a) - read(b) for a, b in sides])
            return all(found[read(a)] == read(b) for a, b in (part.split(" = ") for part in said.split(", ")))
        case "quadratic":
            return sympy.solveset(read(told["equation"]), X, sympy.S.Reals) == sympy.FiniteSet(*map(read, said.split(", ")))
        case "inequality":
            sign = {"≤": "<=", "≥": ">="}.get(told["sign"], told["sign"])
            relation = sympy.Rel(read(told["left"].replace(")(", ")*(")), 0, sign)
            return sympy.solve_univariate_inequality(relation, X, relational=False) == set_of(said)
        case "evaluate":
            return read(told["polynomial"]).subs(X, f["at"]) == int(said)
        case "expand":
            return sympy.expand(read(told["product"].replace(")(", ")*("))) == read(said)
        case "divide":
            quotient, rest = sympy.div(read(told["dividend"]), read(told["divisor"]), X)
            return sympy.expand((quotient if f["what"] == "quotient" else rest) - read(said)) == 0
        case "exponents":
            return read(told["product"]) == sympy.Integer(f["base"]) ** int(said)
        case "logarithms":
            value = sum(k * sympy.log(sympy.Rational(p) ** a, p**b) for k, p, b, a in f["terms"])
            return sympy.simplify(value - sympy.Rational(said)) == 0
        case "progression":
            first, step = sympy.Rational(f["first"]), sympy.Rational(f["step"])
            terms = [first + k * step if f["kind"] == "arithmetic" else first * step**k for k in range(f["n"])]
            return sympy.Rational(said) == (terms[-1] if f["what"] == "term" else sum(terms))
        case "recurrence":
            terms = list(f["start"])
            while len(terms) < f["n"]:
                terms.append(f["factors"][0] * terms[-1] + f["factors"][1] * terms[-2] + f["plus"])
            return terms[-1] == int(said)
        case "composition":
            value = sympy.Integer(f["at"])
            for name in reversed(f["order"]):
                value = sympy.Poly(f["functions"][name], X).eval(value)
            return value == int(said)
        case "determinant":
            return sympy.Matrix(f["matrix"]).det() == int(said)
        case "matrix_product":
            return sympy.Matrix(f["left"]) * sympy.Matrix(f["right"]) == sympy.Matrix(eval(said))
        case _:
            return sympy.Matrix(f["matrix"]).inv() == sympy.Matrix(eval(said))


@pytest.mark.parametrize("arm", SOURCE.arms())
def test_agrees_with_sympy(arm: str) -> None:
    for level in SOURCE.arms()[arm][:4]:
        for index in range(2):
            task = SOURCE.task(arm, level, "train", index)
            facts = plain(task.public["facts"])
            assert agrees(arm.removeprefix("algebra/"), facts, SOURCE.solution(task).answer), (facts, SOURCE.solution(task))


def test_by_hand() -> None:
    assert Quadratic().solve({"coefficients": [1, -6, 9]}).answer == "3"
    assert Quadratic().solve({"coefficients": [2, 3, -2]}).answer == "-2, 1/2"
    assert Quadratic().solve({"coefficients": [1, 0, -3]}).answer == "-sqrt(3), sqrt(3)"
    assert Inequality().solve({"roots": [0], "below": [2], "sign": "<="}).answer == "[0, 2)"
    assert LinearSystem().solve({"rows": [[0, 2, 4], [3, 1, 5]]}).steps.startswith("exchange equations 1 and 2")
    assert Logarithms().fields({"terms": [[1, 2, 1, 3], [-2, 10, 1, -1]]})["expression"] == "log_2(8) - 2log_10(1/10)"
    told = LinearEquation().fields({"left": [[-2, 1, 3]], "right": [[1, 0, 0]]})
    assert told["equation"] == "-2(x + 3) = 0"


@pytest.mark.parametrize(
    ("arm", "facts", "right", "wrong"),
    [
        (
            "quadratic",
            {"coefficients": [1, -2, -4]},
            ("1 \\pm \\sqrt{5}", "1+\\sqrt5, 1-\\sqrt5", "x = 1 - \\sqrt{5}, x = 1 + \\sqrt{5}"),
            ("1 + sqrt(5)", "x^2 - 2x - 4 = 0", "-1 + sqrt(5), -1 - sqrt(5)"),
        ),
        (
            "inequality",
            {"roots": [-1, 2], "below": [], "sign": "<"},
            ("(-1, 2)", "-1 < x < 2", "x \\in (-1, 2)"),
            ("(x + 1)(x - 2) < 0", "[-1, 2]", "(-1, 2]", "-1, 2", "(2, -1)"),
        ),
        ("expand", {"factors": [[1, 1], [1, 1]]}, ("x^2 + 2x + 1", "1+x^2+2*x"), ("(x + 1)(x + 1)", "(x+1)^2", "x(x+2)+1")),
        ("system", {"rows": [[1, 1, 5], [1, -1, 1]]}, ("x = 3, y = 2", "y=2, x=3", "(3, 2)"), ("x = 2, y = 3", "3", "(2, 3)")),
        ("matrix_product", {"left": [[1, 2]], "right": [[3], [4]]}, ("[[11]]",), ("11", "[11]", "[[12]]")),
        (
            "linear",
            {"left": [[2, 3, 1]], "right": [[1, 1, 6]]},
            ("4/5", "x = 0.8", "\\frac{4}{5}"),
            ("x", "2(3x + 1) = x + 6", "(6-2)/5"),
        ),
    ],
)
def test_what_answers_count(arm: str, facts: dict[str, Any], right: tuple[str, ...], wrong: tuple[str, ...]) -> None:
    problem = SOURCE.problem(f"algebra/{arm}")
    found = problem.solve(facts)
    gold = found.answer if found.gold is None else found.gold
    for said, value in [*((r, 1.0) for r in right), *((w, 0.0) for w in wrong)]:
        assert problem.verifier(Form.TAG)(*task_and_rollout(gold, f"<answer>{said}</answer>")).primary == value, said
