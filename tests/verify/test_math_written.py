"""How an answer is written: numbers that are written out, and sums without brackets."""

import random
import time

import pytest

from assay.core.errors import ConfigError
from assay.testing.slips import HOSTILE_TEXTS, slip
from assay.verify import task_and_rollout
from assay.verify.math import MathAnswer, compare
from assay.verify.math.written import written

NUMBERS = (
    "7",
    "-7",
    "+7",
    "7.",
    "0.5",
    ".5",
    "1,234",
    "1{,}234",
    "1/2",
    "-1/2",
    "(-1/2)",
    "-(1/2)",
    "1 1/2",
    "1\\frac12",
    "\\frac{1}{2}",
    "-\\dfrac{1}{2}",
    "\\frac{-1}{2}",
    "50%",
    "50\\%",
    "$5",
    "\\$5",
    "5 euros",
    "£5",
    "3e8",
    "3.0\\times 10^{8}",
    "3 × 10^-8",
    "0.\\overline{3}",
    "3 m/s^2",
    "3 m/s2",
    "3 \\text{ kg}",
    "90^\\circ",
    "90°",
    "3 kg m^2/s",
    "12 apples",
    "seven",
    "Forty-two",
    "x = 3",
    "f(x) = 3",
    "x = 3, y = -4",
    "x=1 or x=2",
    "x = 1 and y = 2",
    "(1, 2)",
    "[1, 2]",
    "\\{1, 2\\}",
    "1; 2",
    "\\pm 3",
    "±3",
    "\\begin{pmatrix} 1 & -2 \\\\ 3 & 4 \\end{pmatrix}",
    "[[1, 2], [3, 4]]",
    "\\left(1, \\frac{1}{2}\\right)",
    "3 per s",
)
OTHERS = (
    "3 + 4",
    "10 - 3",
    "7 * 1",
    "7 \\cdot 1",
    "7 \\times 1",
    "2^3",
    "14/2/1",
    "(14/2)/1",
    "\\sqrt{49}",
    "sqrt(49)",
    "7!",
    "1 + 1/2",
    "\\frac{3+4}{1}",
    "\\frac{14}{2}+0",
    "log(10)",
    "7 sin(0)",
    "7 mod 9",
    "7pi/pi",
    "3 + 4, 2",
    "x = 3 + 4",
    "",
    "x",
    "(",
    "-",
    "one + six",
    "7 - 0 apples",
    "7 10^0",
    "7 choose 1",
    "|7|",
    "\\lfloor 7 \\rfloor",
    "gcd(7, 14)",
    "7 + x - x",
)


@pytest.mark.parametrize("text", NUMBERS)
def test_written_out(text: str) -> None:
    assert written(text, "number") and written(text, "any")


@pytest.mark.parametrize("text", OTHERS)
def test_left_to_be_calculated(text: str) -> None:
    assert not written(text, "number") and written(text, "any")


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("x^2 + 2x + 1", True),
        ("(1/2)x + (-3)", True),
        ("f(x) = x + 1", True),
        ("y = 2", True),
        ("\\frac{1}{2}x", True),
        ("(x+1)^2", False),
        ("x(x+1)", False),
        ("2[x+1]", False),
        ("\\left(x+1\\right)x", False),
        ("(x)", False),
    ],
)
def test_expanded(text: str, expanded: bool) -> None:
    assert written(text, "expanded") == expanded


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("(1, 2)", True),
        ("[1, \\infty)", True),
        ("(-∞, -1/2] ∪ (3, 4)", True),
        ("(-\\infty, \\frac{1}{2}) \\cup (3, \\infty)", True),
        ("x < 3", True),
        ("-1 \\le x < 2.5", True),
        ("x <= -1 or x > 3", True),
        ("x \\in (0, infinity)", True),
        ("(1,2)U(3,4)", True),
        ("2x > 6", False),
        ("x^2 > 4", False),
        ("x + 1 > 3", False),
        ("(1, 1 + 1)", False),
        ("", False),
        ("(x-1)(x-2) < 0", False),
        ("x > 3 apples", False),
        ("1, 2", False),
        ("3", False),
    ],
)
def test_intervals(text: str, plain: bool) -> None:
    assert written(text, "interval") == plain


@pytest.mark.parametrize(
    ("text", "simple"),
    [
        ("12\\pi", True),
        ("2*sqrt(3)", True),
        ("18 + 2\\sqrt{5}", True),
        ("(32/3)*pi", True),
        ("1.5 \\times 10^{3}", True),
        ("7", True),
        ("2*3*pi", False),
        ("3^2 \\pi", False),
        ("10 × 16", False),
        ("\\sqrt{32^2 - 15^2}", False),
        ("2 \\cdot (3)", False),
    ],
)
def test_simple(text: str, simple: bool) -> None:
    assert written(text, "simple") == simple


def test_right_values_in_the_wrong_form() -> None:
    number = MathAnswer(form="number", symbolic=False)
    score = number(*task_and_rollout("7", "\\boxed{3+4}"))
    assert (score.primary, score.info["verdict"]) == (0.0, "different") and "form 'number'" in score.info["note"]
    assert (
        number(*task_and_rollout("7", "\\boxed{7}")).primary == 1.0
        and number(*task_and_rollout("7", "\\boxed{8}")).info.get("note") is None
    )
    assert compare("x^2 + x", "x(x+1)").value == "equal"
    assert compare("x^2 + x", "x(x+1)", MathAnswer(form="expanded")).value == "different"
    assert compare("x^2 + x", "x + x^2", MathAnswer(form="expanded")).value == "equal"
    with pytest.raises(ConfigError, match=r"MathAnswer.form='numbr'; it is one of any, number, simple, expanded, interval"):
        MathAnswer(form="numbr")


@pytest.mark.parametrize("form", ["number", "simple", "expanded", "interval"])
def test_no_text_takes_long(form: str) -> None:
    rng = random.Random(0)
    texts = [*HOSTILE_TEXTS, *(slip(rng, NUMBERS[i % len(NUMBERS)]) for i in range(2000))]
    texts += [
        p * 2000 + end
        for p in ("a", "1", "a1", "a ", "1 ", "(", "1/", "\\frac", "\\frac{1}", "a/", "-", "a^", ",", "$", "\\text{")
        for end in ("", "!", "{", "1")
    ]
    for text in texts:
        began = time.process_time()
        written(text, form)
        assert time.process_time() - began < 0.3, text[:40]
