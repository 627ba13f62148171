"""How models and people write answers: kinds of pairs, many of which must stay wrong, and the parts that read them."""

import json
from collections import defaultdict
from pathlib import Path

import pytest

from assay.verify import task_and_rollout
from assay.verify.math import MathAnswer, compare, symbolic
from assay.verify.math.clean import clean
from assay.verify.math.digits import MOST, digits_for, size
from assay.verify.math.equality import exact
from assay.verify.math.extract import final_answer, locate_answer
from assay.verify.math.formula import decimal
from assay.verify.math.large import same, zero
from assay.verify.math.poly import Undecidable
from assay.verify.math.read import read
from assay.verify.math.values import Choice, Opaque

SLOW = MathAnswer(deadline=60.0)
PAIRS = [json.loads(line) for line in Path(__file__).with_name("math_field.jsonl").read_text(encoding="utf-8").splitlines()]
KINDS: dict[str, list[dict[str, object]]] = defaultdict(list)
for _pair in PAIRS:
    KINDS[str(_pair["kind"])].append(_pair)


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_of_a_kind(kind: str) -> None:
    wrong = [p for p in KINDS[kind] if (compare(str(p["gold"]), str(p["answer"]), SLOW) == "equal") is not p["equal"]]
    assert wrong == []
    assert {p["equal"] for p in KINDS[kind]} == {True, False}


def test_pairs_written_without_a_look_at_the_code() -> None:
    """By a reader who knew the kinds alone: an independent sample, of which nothing that is wrong may be paid."""
    text = Path(__file__).with_name("math_unseen.jsonl").read_text(encoding="utf-8")
    pairs = [json.loads(line) for line in text.splitlines()]
    wrong = [p for p in pairs if (compare(p["gold"], p["answer"], SLOW) == "equal") is not p["equal"]]
    assert wrong == [] and len(pairs) > 180 and sum(not p["equal"] for p in pairs) > 80


def test_equal_pairs_are_equal_to_themselves_boxed() -> None:
    for pair in PAIRS:
        gold = str(pair["gold"])
        assert compare(gold, f"It is $\\boxed{{{gold}}}$.", SLOW) == "equal", gold


# ---- numbers that are not written out


def test_large_numbers_are_settled_without_the_library() -> None:
    judge = MathAnswer(symbolic=False)
    for gold, answer, verdict in (
        ("\\frac{1}{7^{2023}}", "\\frac{1}{7^{2022}}", "different"),
        ("3^{5000}+3^{5001}", "4\\cdot 3^{5000}", "equal"),
        ("10^{10^{10}}", "10^{10^{10}}+1", "different"),
        ("\\frac{5000!}{4999!}", "5000", "equal"),
        ("\\binom{3000}{1500}", "\\binom{3000}{1499}", "different"),
        ("7^{2023}x", "7\\cdot 7^{2022}y", "different"),
        ("7^{2023}\\sin x", "7\\cdot 7^{2022}\\sin x", "equal"),
        ("7^{2023}\\sin x", "7^{2022}\\sin x", "unparsed"),
        ("(999983\\cdot 999979)^{400}", "1", "unparsed"),
        ("3^{10^{12}}", "3^{10^{12}-1}", "different"),
        ("3^{10^{12}}+3^{10^{11}}", "3^{10^{11}}(3^{9\\cdot 10^{11}}+1)", "equal"),
        ("3^{10^{11}+1}+5^{10^{11}+1}", "3\\cdot 3^{10^{11}}+5\\cdot 5^{10^{11}}", "unparsed"),
        ("\\frac{7^{2023}}{3}+\\frac12", "\\frac{2\\cdot 7^{2023}+3}{6}", "equal"),
        ("|-7^{2023}|", "7^{2023}", "equal"),
        ("x^{7^{2023}}", "1", "unparsed"),
        ("(7^{2023})^n", "1", "unparsed"),
        ("\\sqrt[3]{7^{2023}}", "1", "unparsed"),
        ("10001!", "1", "unparsed"),
    ):
        assert compare(gold, answer, judge) == verdict, gold


def test_parts_of_the_comparison_of_large_numbers() -> None:
    assert same("7 ^ {", "7") is None and same("7", "7 ^ {") is None
    assert same("x ^ { 4000 }", "x ^ { 9 }") is False
    huge = " + ".join(f"x_{n}" for n in range(15))
    assert same(f"( {huge} ) / ( {huge} + 1 )", f"( {huge} ) / ( {huge} + 3 )") is None
    assert same("10000 !", "10000 \\cdot 9999 !") is True
    assert zero({}) is True
    assert zero({(("pi", 1),): 1, (("e", 1),): 1}) is None


def test_the_digits_that_must_agree_grow_with_the_numbers() -> None:
    sympy = pytest.importorskip("sympy")
    assert digits_for(MOST) == (MOST + 1, MOST)
    assert 35 < size(sympy.Rational(1, 10**40)) < 45
    assert size(sympy.tanh(1000)) > 1000
    assert size(sympy.exp(-500)) > 200
    assert size(sympy.Integer(10) ** sympy.Symbol("x")) == float("inf")
    assert size(sympy.exp(sympy.exp(sympy.exp(100)))) == float("inf")
    assert size(sympy.sin(3) + sympy.pi) < 10
    assert size(sympy.sqrt(2) * sympy.GoldenRatio) < 5
    assert size(sympy.exp(sympy.zoo, evaluate=False)) == float("inf")


def test_what_needs_too_many_digits_is_left_open() -> None:
    pytest.importorskip("math_verify")
    assert symbolic.same("\\tanh ( 10 ^ { 5 } )", "1") is None
    assert symbolic.same("\\tanh ( 100 )", "1") is False
    assert symbolic.same("\\ln ( 0 )", "\\sin ( 1 )") is None
    assert symbolic.same("\\frac { \\sin ( 2 x ) } { 7 ^ { 2023 } }", "\\frac { 2 \\sin x \\cos x } { 7 ^ { 2023 } }") is True


# ---- what is read, and what is not


def test_unicode_subscripts() -> None:
    assert exact("\\log_2 8", "log₂8") is True
    assert exact("x_1", "x₁") is True
    assert exact("x_1", "x₂") is False
    assert exact("101_2", "101₂") is True
    assert clean("x₁₂") == "x_{12}"


def test_nothing_but_punctuation_behind_a_box_when_asked() -> None:
    assert final_answer("\\boxed{7}8", strict_tail=True) is None
    assert final_answer("\\boxed{7}8") == "7"
    assert final_answer("<answer>7</answer>8", strict_tail=True) is None
    assert final_answer("\\boxed{7}.", strict_tail=True) == "7"


def test_numbers_have_a_thousand_digits_and_no_more() -> None:
    assert decimal("1" * 1000).value == int("1" * 1000)
    with pytest.raises(Undecidable, match="too many digits"):
        decimal("1" * 1001)
    assert decimal("1e1000").value == 10**1000
    with pytest.raises(Undecidable, match="too many digits"):
        decimal("1e1001")
    assert not isinstance(read("1" * 1000 + "\\frac{1}{2}"), Opaque)
    assert isinstance(read("1" * 1001 + "\\frac{1}{2}"), Opaque)


def test_a_sentence_that_is_no_answer_is_unparsed() -> None:
    judge = MathAnswer(symbolic=False)
    told = judge(*task_and_rollout("42", "There is nothing more to say of that"))
    assert (told.primary, told.info["verdict"]) == (0.0, "unparsed") and "does not say" in str(told.info["note"])
    assert compare("42", "nobody knows that", judge) == "unparsed"
    assert compare("42", "minus eighty", judge) == "different"
    assert compare("42", "\\boxed{no idea}", judge) == "different"
    assert compare("\\text{an even number}", "an odd number", judge) == "different"
    assert compare("42", "41 or 43", judge) == "different"
    assert compare("42", "nothing", judge) == "different"


def test_where_answers_stand() -> None:
    assert locate_answer("  ") is None
    assert locate_answer("Answer: 7") == ("7", "phrase")
    assert locate_answer("\\boxed 7") == ("\\boxed 7", "box")
    assert locate_answer("\\boxed") == ("\\boxed", "line")
    assert locate_answer("$$\n7\n$$") == ("7", "line")
    assert locate_answer("$$") == ("$$", "line")
    assert locate_answer("The answer is correct.\n8") == ("8", "line")
    assert locate_answer("answer\n8") == ("8", "phrase")
    assert locate_answer("I give the answer\nas 8") == ("as 8", "line")
    assert locate_answer("The answer is as follows:\n8") == ("8", "phrase")
    assert locate_answer("Answer:") == ("", "phrase")
    assert locate_answer("The answer is 7. The answer was hard to find.") == ("7", "phrase")
    assert locate_answer("So it is 8") == ("it is 8", "line")
    assert locate_answer("答案") == ("答案", "line")


def test_what_is_not_read() -> None:
    for text in (
        "\\begin{vmatrix}1&2\\end{vmatrix}",
        "\\begin{vmatrix}1\\text{ cm}\\end{vmatrix}",
        "\\begin{cases}\\end{cases}",
        "\\begin{nothing}1\\end{nothing}",
        "(x+1)^T",
        "5 \\pmod",
        "\\pmod 5",
        "5 \\pmod 7 \\pmod 8",
        "\\gcd(x,2)",
        "\\gcd(1.5,2)",
        "\\gcd 5",
        "\\max(x,2)",
        "{1\\over}",
        "2^{10}\\equiv x\\pmod 7",
    ):
        assert isinstance(read(text), Opaque), text
    assert read("E") == Choice("E") == read("(E)")
    assert read("option") == read("\\text{option}")
    assert exact("\\begin{vmatrix}a&b\\\\c&d\\end{vmatrix}", "ad-bc") is True
    assert exact("2,3\\pmod 7", "3,9\\pmod 7") is True
    assert exact("x\\pmod 7", "x\\pmod 7") is True
    assert exact("x\\equiv 2\\pmod n", "2\\pmod n") is True
    assert exact("\\lcm(4,6)", "12") is True and exact("\\min(0.5,2)", "\\frac12") is True
    assert exact("12_8", "129_8") is None and exact("ab_2", "1") is False
    assert exact("12_{40}", "1") is None


def test_the_form_of_a_chain_is_that_of_its_last_member() -> None:
    number = MathAnswer(form="number", symbolic=False)
    assert compare("7", "3+4=7", number) == "equal"
    assert compare("7", "7=3+4", number) == "different"


@pytest.mark.parametrize(
    ("gold", "answer", "equal"),
    [
        ("(1,2)", "5=(1,2)", False),
        ("5", "f(1)+f(2)=5", None),
        ("5", "uv=5", True),
        ("5", "u-v=5", True),
        ("0.5", "\\cos B=0.5", True),
        ("0.84", "\\sin 1\\approx 0.84", None),
        ("1", "e^{4000}\\approx 1", None),
        ("0.69", "\\ln 2\\approx 0.69", True),
        ("0.69", "\\ln 3\\approx 0.69", False),
        ("42", "*42*", True),
        ("x=5", "x\\approx 2+3=5", True),
        ("6\\cdot 7=41", "x=6\\cdot 7=41", None),
    ],
)
def test_members_of_equations(gold: str, answer: str, equal: bool | None) -> None:
    assert exact(gold, answer) is equal


def test_a_number_that_is_said_twice() -> None:
    assert locate_answer("The answer is 42 (forty-two).") == ("42", "phrase")
    assert locate_answer("The answer is 42 (forty-one).") == ("42 (forty-one)", "phrase")
