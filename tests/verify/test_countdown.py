"""Expressions over given numbers: by hand, hostile, and against Python's own reading."""

import ast
import operator
import random
import time
from collections import Counter
from fractions import Fraction

import pytest

from assay.core.errors import DataError, UnknownNameError
from assay.verify import Countdown, task_and_rollout

GOLD = {"numbers": [3, 3, 8, 8], "target": 24}


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("8/(3-8/3)", "equal"),
        ("8 ÷ (3 − 8 ÷ 3)", "equal"),
        ("8 / (3 - 8 / 3) = 24", "equal"),
        ("$8 \\times 3$", "equal"),
        ("((3)*(8))", "equal"),
        ("[3 + 3 - 3] × 8", "invalid"),
        ("8 \\cdot 3.", "equal"),
        ("\\left(3 \\cdot 8\\right)", "equal"),
        ("3*8", "equal"),
        ("3*8+8-8", "invalid"),
        ("3 * 8 = 25", "invalid"),
        ("3 * 3 = 9", "different"),
        ("3", "different"),
        ("24", "invalid"),
        ("10+10+3+1", "invalid"),
        ("8/(3-3)", "invalid"),
        ("8 - 3 - 3 = 2", "different"),
        ("**3*8**", "equal"),
        ("3**3-3", "unparsed"),
        ("38", "invalid"),
        ("3 8", "unparsed"),
        ("3(8)", "unparsed"),
        ("(3)(8)", "unparsed"),
        ("-3+8", "unparsed"),
        ("3*-8", "unparsed"),
        ("3^3", "unparsed"),
        ("3//8", "unparsed"),
        ("3.0*8", "unparsed"),
        ("3*8*", "unparsed"),
        ("3*8-", "unparsed"),
        ("(3*8", "unparsed"),
        ("3*8)", "unparsed"),
        ("()", "unparsed"),
        ("", "unparsed"),
        ("3*8=", "unparsed"),
        ("3*8=8*3", "unparsed"),
        ("3*8=24=24", "unparsed"),
        ("= 24", "unparsed"),
        ("３*8", "unparsed"),
        ("3*8 or 8*3", "unparsed"),
        ("not 3*8", "unparsed"),
        ("sqrt(8)*3", "unparsed"),
        ("int('3')*8", "unparsed"),
        ("<answer>1</answer> <answer>8*3</answer>", "equal"),
        ("\\boxed{8*3}", "equal"),
        ("Answer: 8*3", "equal"),
    ],
)
def test_by_hand(said: str, verdict: str) -> None:
    score = Countdown()(*task_and_rollout(GOLD, said))
    assert score.info["verdict"] == verdict
    assert dict(score.components) == {"correct": float(verdict == "equal"), "valid": float(verdict in ("equal", "different"))}


def test_settings_and_golds() -> None:
    judge = Countdown(every=True)
    assert judge(*task_and_rollout(GOLD, "3*8")).info["why"] == "not used: 3, 8"
    assert [judge(*task_and_rollout(GOLD, s)).primary for s in ("8/(3-8/3)", "8*3+8-3", "8*3+(8-8)*3")] == [1.0, 0.0, 0.0]
    assert Countdown(whole=True)(*task_and_rollout(GOLD, "8/(3-8/3)")).info["why"] == "a step is no whole number"
    assert Countdown(whole=True)(*task_and_rollout({"numbers": [2, 3, 6], "target": 4}, "6/3*2")).primary == 1.0
    near = {"numbers": [7, 7], "target": 16, "distance": 2}
    assert [Countdown()(*task_and_rollout(near, s)).primary for s in ("7+7", "7", "7*7")] == [1.0, 0.0, 0.0]
    assert Countdown()(*task_and_rollout({"numbers": [2, 5], "target": -3}, "2 - 5 = -3")).primary == 1.0
    for gold in (
        3,
        {},
        {"numbers": [], "target": 1},
        {"numbers": [1.5], "target": 1},
        {"numbers": [True], "target": 1},
        {"numbers": [1], "target": "1"},
        {"numbers": [-1], "target": 1},
        {"numbers": [1], "target": 1, "distance": -1},
    ):
        with pytest.raises(DataError, match="needs 'numbers'"):
            Countdown()(*task_and_rollout(gold, "1"))
    with pytest.raises(UnknownNameError, match=r"Countdown.where"):
        Countdown(where="x")


@pytest.mark.parametrize(
    "text",
    [
        "9**9**9**9",
        "9^9^9^9",
        "(" * 100_000 + "3" + ")" * 100_000,
        "3+" * 100_000 + "3",
        "3*" * 100_000,
        "9" * 100_000,
        "-" * 100_000,
        "__import__('os').system('true')",
        "().__class__",
        "(lambda: 24)()",
        "[24 for _ in [3, 3, 8, 8]]",
        "'a'*10**9",
        "3*8 if 1 else 0",
        "3*8 # 3",
        "3*8;3",
        "\x003*8",
        "3*8\ud800",
        "1e1000",
        "0x18",
        "1_0",
        "(" * 90 + "3*8" + ")" * 91,
    ],
)
def test_hostile_texts_are_read_and_never_run(text: str) -> None:
    began = time.process_time()
    assert Countdown()(*task_and_rollout(GOLD, text)).primary == 0.0
    assert time.process_time() - began < 0.5


def test_large_numbers_stay_small() -> None:
    numbers = [999_999_999] * 40
    score = Countdown()(*task_and_rollout({"numbers": numbers, "target": 1}, " * ".join(map(str, numbers))))
    assert score.info["verdict"] == "different" and score.components["valid"] == 1.0


def test_agrees_with_python() -> None:
    """3000 texts of few signs, most of them broken: Python's parser and exact fractions say the same."""
    rng, right = random.Random(0), Counter()
    for _ in range(3000):
        numbers = [rng.randint(1, 9) for _ in range(rng.randint(2, 4))]
        signs = [rng.choice(["+", "-", "*", "/"]) for _ in numbers[1:]]
        text = "".join(f"{n}{s}" for n, s in zip(numbers, [*signs, ""], strict=True))
        if len(numbers) > 2 and rng.random() < 0.7:
            text = f"({text[:3]}){text[3:]}"
        if rng.random() < 0.2:
            at = rng.randrange(len(text))
            text = text[:at] + rng.choice("()+-*/ 12") + text[at + 1 :]
        target = rng.randint(0, 20)
        value = _by_python(text, numbers)
        score = Countdown()(*task_and_rollout({"numbers": numbers, "target": target}, text))
        assert (value is not None, value == target) == (bool(score.components["valid"]), bool(score.primary)), text
        right[bool(score.primary)] += 1
    assert right[True] > 30


_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def _by_python(text: str, numbers: list[int]) -> Fraction | None:
    """What Python's parser makes of it; None for anything but these four operations on these numbers."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return None
    used: list[int] = []

    def value(node: ast.AST) -> Fraction:
        match node:
            case ast.Constant(value=int() as n):
                used.append(n)
                return Fraction(n)
            case ast.BinOp(left=a, op=sign, right=b):
                return _OPERATORS[type(sign)](value(a), value(b))
        raise KeyError

    try:
        found = value(tree)
    except (KeyError, ZeroDivisionError):
        return None
    return None if Counter(used) - Counter(numbers) else found
