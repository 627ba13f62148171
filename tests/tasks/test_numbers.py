"""Problems with whole numbers: by hand, and against brute force, Python and sympy."""

from __future__ import annotations

from fractions import Fraction
from math import factorial, gcd, lcm
from typing import Any

import pytest
import sympy

from assay.core.canon import plain
from assay.tasks import Form, Problem, family
from assay.testing import check_problem
from assay.verify.rollouts import task_and_rollout
from assay_tasks.math.numbers import Multiples, PowerMod, numbers

SOURCE = numbers()


@pytest.mark.parametrize("problem", SOURCE.problems, ids=lambda p: p.name)
def test_problems_keep_their_contract(problem: Problem) -> None:
    check_problem(problem, n=40, growth=1.5)


def brute(arm: str, f: dict[str, Any]) -> Any:
    """The answer in another way: by search, or by somebody else's code."""
    match arm:
        case "gcd":
            return gcd(f["a"], f["b"])
        case "lcm":
            return lcm(*f["of"])
        case "factors":
            return ", ".join(str(p) for p, k in sorted(sympy.factorint(f["n"]).items()) for _ in range(k))
        case "power_mod":
            return pow(f["base"], f["exponent"], f["modulus"])
        case "inverse":
            return pow(f["a"], -1, f["modulus"])
        case "remainders":
            return sympy.ntheory.modular.crt(f["moduli"], f["remainders"])[0]
        case "divisors":
            return sympy.divisor_sigma(f["n"], 1) if f["what"] == "sum" else sympy.divisor_count(f["n"])
        case "totient":
            return sympy.totient(f["n"])
        case "multiples":
            return sum(any(n % d == 0 for d in f["of"]) == f["any"] for n in range(f["low"], f["high"] + 1))
        case "root":
            return sympy.integer_nthroot(f["n"], f["degree"])[0]
        case "factorial_power":
            return sympy.multiplicity(f["d"], factorial(f["n"]))
        case "base":
            digits = sympy.ntheory.digits(int(f["digits"], f["base"]), f["to"])[1:]
            return "".join("0123456789ABCDEF"[d] for d in digits)
        case "digit_sums":
            return sum(sum(map(int, str(n))) == f["total"] for n in range(1, f["n"] + 1))
        case _:
            return ", ".join(map(str, sympy.continued_fraction(sympy.Rational(f["above"], f["below"]))))


@pytest.mark.parametrize("arm", SOURCE.arms())
def test_agrees_with_another_way(arm: str) -> None:
    short = arm.removeprefix("numbers/")
    for level in SOURCE.arms()[arm][:3]:
        for index in range(10):
            task = SOURCE.task(arm, level, "train", index)
            said = SOURCE.solution(task).answer
            assert said == str(brute(short, plain(task.public["facts"]))), (arm, task.public["facts"])


def test_by_hand() -> None:
    assert Multiples().solve({"low": 10, "high": 20, "of": [7], "any": False}).answer == "10"
    assert PowerMod().solve({"base": 3, "exponent": 4, "modulus": 7}).steps == "3^1 ≡ 3\n3^2 ≡ 2\n3^4 ≡ 4"
    wording = Multiples().fields({"low": 1, "high": 9, "of": [2, 3], "any": False})
    assert wording["which"] == "divisible by neither 2 nor 3"


@pytest.mark.parametrize(
    ("arm", "facts", "right", "wrong"),
    [
        ("factors", {"n": 12}, ("2,2,3", "2, 3, 2", "[2, 2, 3]"), ("12", "2^2 * 3", "2, 3", "2 * 2 * 3", "1, 2, 2, 3")),
        ("base", {"digits": "255", "base": 10, "to": 16}, ("FF", "ff"), ("255", "0xFF", "F F")),
        ("continued_fraction", {"above": 30, "below": 13}, ("2, 3, 4", "[2, 3, 4]"), ("2, 3, 3, 1", "30/13", "2, 4, 3")),
        ("gcd", {"a": 84, "b": 60}, ("12", "12.0", "$12$"), ("6", "gcd(84, 60)", "12 or 6", "84/7 + 1")),
    ],
)
def test_what_answers_count(arm: str, facts: dict[str, Any], right: tuple[str, ...], wrong: tuple[str, ...]) -> None:
    problem = family(f"numbers/{arm}").problems[0]
    found = problem.solve(facts)
    verifier = problem.verifier(Form.TAG)
    gold = found.answer if found.gold is None else found.gold
    for said, value in [*((r, 1.0) for r in right), *((w, 0.0) for w in wrong)]:
        assert verifier(*task_and_rollout(gold, f"<answer>{said}</answer>")).primary == value, said


def test_continued_fractions_are_the_fraction() -> None:
    for index in range(20):
        task = SOURCE.task("numbers/continued_fraction", 4, "test", index)
        value = Fraction(task.private["answer"][-1])
        for term in reversed(task.private["answer"][:-1]):
            value = term + 1 / value
        assert value == Fraction(task.public["facts"]["above"], task.public["facts"]["below"])
