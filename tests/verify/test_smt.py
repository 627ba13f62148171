"""Constraints in SMT-LIB 2: what their terms are worth, what is refused, and what answers solve them."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.core.errors import DataError
from assay.core.score import Fault
from assay.verify import task_and_rollout, verifier
from assay.verify.structure import smt_terms
from assay.verify.structure.smt_terms import Undefined, read_terms, value_of
from assay.verify.structure.smtlib import problem_of

SMT = verifier("smt")
PUZZLE = """
(set-logic QF_NIRA)
(declare-const x Int) (declare-fun |y y| () Real) (declare-const p Bool)
(define-fun twice ((a Int)) Int (* 2 a))
(define-const seven Int 7)
(assert (! (and (> x 2) (=> p (= (twice x) 6))) :named first))
(assert (= (* x |y y|) 1.5))
(assert (let ((z (+ x 1)) (x 0)) (distinct z x seven)))
(check-sat) (get-model)
"""


def judged(answer: str, gold: object = None) -> tuple[str, float, float]:
    score = SMT(*task_and_rollout({"smt": PUZZLE} if gold is None else gold, answer))
    assert score.fault is Fault.NONE
    return str(score.info["verdict"]), score.components["correct"], score.components["fraction"]


@pytest.mark.parametrize(
    ("term", "value"),
    [
        ("(- 3)", -3),
        ("(- 7 2 1)", 4),
        ("(/ 1 2 2)", Fraction(1, 4)),
        ("(+ 1 2.5)", Fraction(7, 2)),
        ("(* 2 3 4)", 24),
        ("(div 7 2)", 3),
        ("(div (- 7) 2)", -4),
        ("(div 7 (- 2))", -3),
        ("(div (- 7) (- 2))", 4),
        ("(mod 7 2)", 1),
        ("(mod (- 7) 2)", 1),
        ("(mod 7 (- 2))", 1),
        ("(mod (- 7) (- 2))", 1),
        ("(abs (- 2))", 2),
        ("(to_int (- 1.5))", -2),
        ("(to_real 2)", 2),
        ("(is_int 1.5)", False),
        ("(is_int 4.0)", True),
        ("(not true)", False),
        ("(=> true false)", False),
        ("(=> true false false)", True),
        ("(xor true true true)", True),
        ("(= 1 1 2)", False),
        ("(= true true)", True),
        ("(distinct 1 2 1)", False),
        ("(< 1 2 2)", False),
        ("(<= 1 2 2)", True),
        ("(>= 3 2 2)", True),
        ("(> 3 2 1)", True),
        ("(and)", True),
        ("(or)", False),
        ("(or false true)", True),
        ("(ite (> 1 2) 1 2)", 2),
        ("(let ((a 1)) (let ((a 2) (b a)) (+ a b)))", 3),
        ("(! 5 :named five)", 5),
        ("(or true (= (/ 1 0) 1))", True),
    ],
)
def test_terms_are_worth_what_the_standard_says(term, value):
    assert value_of(read_terms(term)[0]) == value
    assert isinstance(value_of(read_terms(term)[0]), bool) == isinstance(value, bool)


@given(st.integers(-50, 50), st.integers(-50, 50).filter(bool))
def test_division_is_euclids(a, b):
    (quotient, rest) = (
        value_of([name, *read_terms(f"{a} {b}" if a >= 0 <= b else f"{said(a)} {said(b)}")]) for name in ("div", "mod")
    )
    assert quotient * b + rest == a and 0 <= rest < abs(b)


def said(number: int) -> str:
    return str(number) if number >= 0 else f"(- {-number})"


@pytest.mark.parametrize(
    ("term", "error", "says"),
    [
        ("(/ 1 0)", Undefined, "divides by zero"),
        ("(mod 1 0)", Undefined, "divides by zero"),
        ("x", DataError, "'x' is declared nowhere"),
        ("(+ 1 true)", DataError, "wrong number or sort"),
        ("(not 1)", DataError, "wrong number or sort"),
        ("(not true false)", DataError, "wrong number or sort"),
        ("(and 1)", DataError, "a number where a formula must stand"),
        ("(bvadd 1 2)", DataError, "not covered"),
    ],
)
def test_what_has_no_value_says_so(term, error, says):
    with pytest.raises(error, match=says):
        value_of(read_terms(term)[0])


@pytest.mark.parametrize(
    "answer",
    [
        "x = 3, y y = 1/2, p = true",
        '{"x": 3, "y y": 0.5, "p": true}',
        "x: 3\ny y: 0.5\np: false",
        "<answer>X=3; Y Y=0.50; P=True</answer>",
        "((define-fun x () Int (- (- 3))) (define-fun |y y| () Real (/ 1.0 2.0)) (define-fun p () Bool true))",
        "(define-fun x () Int 3)\n(define-fun |y y| () Real (/ 1.0 2.0)) (define-fun p () Bool true)",
        "sat\n((x 3) (|y y| (/ 1 2)) (p true))",
        "((p false)\n (x 3) (|y y| 0.5))",
        "(x = 3, y y = 1/2, p = true)",
        "(model (define-fun x () Int 3) (define-fun |y y| () Real 0.5) (define-fun p () Bool false))",
        "x = 4, y y = 3/8, p = false",
        "x := 3, y y := 0.5, p := true",
    ],
)
def test_any_values_that_keep_all_constraints_are_right(answer):
    assert judged(answer) == ("equal", 1.0, 1.0)


@pytest.mark.parametrize(
    ("answer", "verdict", "fraction"),
    [
        ("x = 4, y y = 3/8, p = true", "invalid", 3 / 4),
        ("x = 6, y y = 1/4, p = false", "invalid", 3 / 4),  # seven is not distinct from seven
        ("x = 3, p = true", "invalid", 3 / 4),  # a variable without a value
        ("y y = 0.5", "invalid", 0.0),
        ("x = 3.5, y y = 1, p = true", "unparsed", 0.0),  # no integer
        ("x = -3, y y = - 1 / 2, p = true", "invalid", 1 / 2),
        ("x = -true", "unparsed", 0.0),
        ("x = true, y y = 1, p = true", "unparsed", 0.0),
        ("x = 3, y y = 1/0, p = true", "unparsed", 0.0),
        ("x = 3, q = 1", "unparsed", 0.0),
        ("x = 3, x = 4", "unparsed", 0.0),
        ("x = 3, X = 4", "unparsed", 0.0),
        ("x = y", "unparsed", 0.0),
        ("x = (/ 1 0)", "unparsed", 0.0),
        ("x = (", "unparsed", 0.0),
        ("x = ()", "unparsed", 0.0),
        ("x = 1/2/3", "unparsed", 0.0),
        ("x = true/2", "unparsed", 0.0),
        ("((define-fun x () Int 3) nonsense)", "unparsed", 0.0),
        ("define-fun", "unparsed", 0.0),
        ("(model)", "unparsed", 0.0),
        ("(x 3)", "invalid", 1 / 2),
        ("((x 3) (z 4))", "unparsed", 0.0),
        ("((x 3) (x 4))", "unparsed", 0.0),
        ("((define-fun x () Int 3)", "unparsed", 0.0),
        ("unsat", "different", 0.0),
        ("", "unparsed", 0.0),
        ("I do not know", "unparsed", 0.0),
    ],
)
def test_other_answers_are_not(answer, verdict, fraction):
    assert judged(answer) == (verdict, 0.0, fraction)


def test_what_has_no_solution_is_answered_so():
    gold = {"smt": "(declare-const x Int) (assert (> x x))", "satisfiable": False}
    assert judged("unsat", gold) == ("equal", 1.0, 1.0)
    assert judged("x = 3", gold) == ("different", 0.0, 0.0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "asserts nothing"),
        ("(assert (> x 1))", "'x' is declared nowhere"),
        ("(assert (> 1)", "leaves 1 brackets open"),
        ("(assert true))", "closes a bracket at 13"),
        ('(echo "a)', "no token; a quote may be open"),
        ("(declare-const x Int) (declare-const x Real) (assert true)", "'x' twice"),
        ("(declare-const and Bool) (assert true)", "'and' twice, or as something that there is already"),
        ("(declare-const x (_ BitVec 8)) (assert true)", "names the sort \\(_ BitVec 8\\); there are Bool, Int, Real"),
        ("(declare-fun f (Int) Int) (assert true)", "declare-fun without arguments"),
        ("(define-fun f (a) Int 1) (assert true)", "the parameter a; write \\(name sort\\)"),
        ("(define-fun f ((a Set)) Int 1) (assert true)", "names the sort Set"),
        ("(define-fun f ((a Int)) Int b) (assert true)", "'b' is declared nowhere"),
        ("(define-const c Int b) (assert true)", "'b' is declared nowhere"),
        ("(define-fun f ((a Int)) Int a) (assert (= 1 (f)))", "is not covered"),
        ("(define-fun f ((a Int)) Int a) (assert (= 1 (f 1 2)))", "2 arguments, the function 1"),
        ("(push 1) (assert true)", "\\(push 1\\) is not covered"),
        ("(assert (forall ((x Int)) (> x 1)))", "without quantifiers"),
        ("(assert (let (x) true))", "let binds x; write \\(name term\\)"),
        ("(assert (let ((a 1)) (> a b)))", "'b' is declared nowhere"),
        ("(assert (! (> b 1) :named n))", "'b' is declared nowhere"),
        ("(assert (! 5 :named n))", "is a number, not a formula"),
        ("(assert (+ 1 2))", "is a number, not a formula"),
        ("(assert (not 3))", "wrong number or sort"),
        ("(" * 121 + ")" * 121, "more than 120 brackets"),
        ("(assert " + "(and " * 3 + "true" + " 1" + ")" * 4, "a number, not a formula"),
    ],
)
def test_problems_beyond_what_is_covered_are_the_golds_fault(text, says):
    with pytest.raises(DataError, match=says):
        problem_of(text)
    with pytest.raises(DataError, match=says):
        SMT(*task_and_rollout({"smt": text}, "x = 1"))


def test_a_gold_without_a_problem_is_refused_and_one_that_never_ends_is_stopped(monkeypatch):
    for gold in ({}, {"smt": 3}, "x > 1", None):
        with pytest.raises(DataError, match="has no 'smt': a text in SMT-LIB 2"):
            SMT(*task_and_rollout(gold, "x = 1"))
    calls = " ".join(f"(define-fun f{i + 1} ((a Int)) Int (+ (f{i} a) (f{i} a)))" for i in range(25))
    assert smt_terms._STEPS == 1_000_000
    with monkeypatch.context() as fewer, pytest.raises(DataError, match="more than 50000 steps"):
        fewer.setattr(smt_terms, "_STEPS", 50_000)
        problem_of(f"(define-fun f0 ((a Int)) Int a) {calls} (declare-const x Int) (assert (= x (f25 1)))")
    deep = "(declare-const x Int) (assert (= x " + "(+ 1 " * 100 + "0" + ")" * 102
    assert judged("x = 100", {"smt": deep}) == ("equal", 1.0, 1.0)
