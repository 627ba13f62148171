"""Boxes that are a part of a larger expression, or one of two."""

import pytest

from assay.verify.math import MathAnswer, compare
from assay.verify.math.extract import final_answer

EXACT = MathAnswer(symbolic=False)
PARTS = (
    "$-\\boxed{17}$",
    "The answer is $-\\boxed{17}$.",
    "x = -\\boxed{17}",
    "5 - \\boxed{17}",
    "5 + \\boxed{17}",
    "2\\boxed{17}",
    "0.\\boxed{17}",
    "x\\boxed{17}",
    "2 \\cdot \\boxed{17}",
    "1/\\boxed{17}",
    "\\boxed{17}^2",
    "\\boxed{17}^{2}",
    "\\left(\\boxed{17}\\right)^2",
    "\\frac{\\boxed{17}}{2}",
    "\\frac{2}{\\boxed{17}}",
    "\\frac{2 + {3}}{\\boxed{17}}",
    "\\sqrt{\\boxed{17}}",
    "2^{\\boxed{17}}",
    "\\boxed{17}\\%",
    "\\boxed{17} %",
    "\\boxed{17}/3",
    "\\boxed{17} + 3",
    "\\boxed{17} - 3",
    "\\boxed{17}x",
    "\\boxed{17}\\pi",
    "-\\boxed 17",
    "Either $\\boxed{16}$ or $\\boxed{17}$.",
    "Entweder $\\boxed{16}$ oder $\\boxed{17}$.",
    "The answer is 17.\n$2\\boxed{17}$",
)


@pytest.mark.parametrize("text", PARTS)
def test_a_part_of_an_expression_is_no_answer(text: str) -> None:
    assert compare("17", text, EXACT) == "unparsed"
    assert compare("17", text) == "unparsed"


@pytest.mark.parametrize(
    "text",
    [
        "$\\boxed{17}$",
        "x=\\boxed{17}",
        "= \\boxed{17}.",
        "- \\boxed{17}",
        "Answer - \\boxed{17}",
        "**\\boxed{17}**",
        "\\boxed{17}^\\circ",
        "\\boxed{17}^{\\circ}",
        "\\boxed{17}\\text{ cm}",
        "\\boxed{17} - which is prime",
        "\\text{so \\boxed{17}}",
        "{\n\\boxed{17}",
        "It is 16 or so, no: $\\boxed{17}$",
        "Step 2: \\boxed{17}",
        "x^{2} is \\boxed{17}",
        "\\boxed{16} is wrong. \\boxed{17}",
        "\\fbox{17}",
    ],
)
def test_a_box_by_itself_is_one(text: str) -> None:
    assert compare("17", text, EXACT) == "equal"


def test_two_boxes_alone_are_two_values() -> None:
    text = "$\\boxed{16}$ or $\\boxed{17}$"
    assert compare("17", text, EXACT) == "different"
    assert compare("16 or 17", text, EXACT) == "equal"


def test_the_gold_of_a_data_set_is_what_its_box_holds() -> None:
    assert compare("So about $\\boxed{17}\\%$", "17", EXACT) == "equal"


def test_time_grows_with_the_length_and_not_faster() -> None:
    assert final_answer("{" * 50_000 + "\\boxed{17}") == "17"
    assert final_answer("}" * 50_000 + "\\boxed{17}") == "17"


def test_an_inequality_that_is_not_solved_is_left_open() -> None:
    assert compare("|x-1|<2", "-1<x<3", EXACT) == "unparsed"
    assert compare("x>-1", "|x|<2", EXACT) == "unparsed"
    assert compare("x<3", "x<4", EXACT) == "different"
