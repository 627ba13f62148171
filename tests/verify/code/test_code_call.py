"""Programs judged by what one of their functions returns."""

import math
from typing import Any

import pytest
from code_cases import DOUBLE, HACKS, RIGHT, WRONG, judged, words

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError
from assay.core.task import Task
from assay.sandbox import Limits
from assay.verify import rollout_of
from assay.verify.code import CodeCall, same_value

CHECK = CodeCall()


def test_right_wrong_and_partly_right() -> None:
    score = judged(CHECK, DOUBLE, RIGHT)
    assert dict(score.components) == {"correct": 1.0, "fraction": 1.0, "ran": 1.0} and score.info["verdict"] == "passed"
    score = judged(CHECK, DOUBLE, WRONG)
    assert dict(score.components) == {"correct": 0.0, "fraction": 0.5, "ran": 1.0}
    assert score.info["cases"] == ("passed", "wrong")


@pytest.mark.parametrize("name", HACKS)
def test_no_hack_passes_a_case(name: str) -> None:
    limits = Limits(cpu=5.0, wall=20.0, output=1 << 16)
    score = judged(CodeCall(limits=limits, stop_at_first_timeout=False), DOUBLE, HACKS[name])
    assert score.components["fraction"] == 0.0 and score.valid


def test_the_tests_may_be_fields_of_their_own() -> None:
    task = Task(
        id="t", domain="d", arm="a", level=1, split="train", index=0, public=FrozenMap({"prompt": "?"}), private=FrozenMap(DOUBLE)
    )
    assert CHECK(task, rollout_of(task, RIGHT)).primary == 1.0


@pytest.mark.parametrize(
    ("value", "expected", "word"),
    [
        ("(1, 2)", [1, 2], "passed"),
        ("[(1, 2), 'a', None]", [[1, 2], "a", None], "passed"),
        ("{'a': 1, 2: []}", {"a": 1, "2": []}, "passed"),
        ("1.0", 1, "passed"),
        ("True", 1, "wrong"),
        ("1", True, "wrong"),
        ("0", False, "wrong"),
        ("None", False, "wrong"),
        ("'1'", 1, "wrong"),
        ("float('nan')", 1.5, "wrong"),
        ("[float('nan')]", [None], "wrong"),
        ("float('inf')", math.inf, "passed"),
        ("10 ** 400", 1e300, "wrong"),
        ("{1, 2}", [1, 2], "error"),
        ("object()", 1, "error"),
        ("f", 1, "error"),
        ("print('4')", None, "passed"),
    ],
)
def test_values(value: str, expected: Any, word: str) -> None:
    gold = {"entry": "f", "tests": [{"args": [], "expected": expected}]}
    assert words(CHECK, gold, f"def f():\n    return {value}") == (word,)


def test_comparing() -> None:
    assert same_value({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}) and not same_value({"a": 1}, {"b": 1})
    assert not same_value([1], [1, 2]) and not same_value([1], {"0": 1}) and not same_value("a", ["a"])
    assert same_value(1, 1.0) and not same_value(1, 1.0, typed=True) and same_value(1.0, 1.0, typed=True)
    assert same_value(1.0, 1.0 + 1e-9, 1e-6) and same_value(1e9, 1e9 + 1, 1e-6) and not same_value(1.0, 1.1, 1e-6)
    assert not same_value(100, 101, 0.5) and same_value(1.0, 1, 0.5), "the tolerance is of floats"
    assert not same_value(1.0, 10**400, 0.5) and not same_value(math.inf, 1.0, 0.5) and same_value(math.inf, math.inf, 0.5)
    assert not same_value(1.0, math.nan, 0.5) and not same_value(1.0, math.inf, 0.5) and not same_value(math.nan, math.nan)
    assert not same_value(None, 0) and not same_value(0, None) and not same_value(1.0, True, 0.5) and not same_value("1", 1)
    assert judged(
        CodeCall(tolerance=1e-6), {"entry": "f", "tests": [{"args": [], "expected": 0.3}]}, "f = lambda: .1 + .2"
    ).primary


def test_methods_and_what_is_not_there() -> None:
    gold = {"entry": "Solution.twice", "tests": [{"args": [[1]], "expected": [1, 1]}]}
    text = "class Solution:\n    def twice(self, x: 'List[int]'):\n        return x * 2"
    assert words(CHECK, gold, text) == ("passed",)
    score = judged(CHECK, gold, "class Other: pass")
    assert score.info["cases"] == ("error",) and "no attribute 'Solution'" in score.info["why"]


def test_each_call_has_a_process_of_its_own() -> None:
    gold = {"entry": "f", "tests": [{"args": [], "expected": 1}] * 3}
    text = "import os\nn = 0\ndef f():\n    global n\n    n += 1\n    open(f'left{n}', 'x')\n    return n"
    assert words(CHECK, gold, text) == ("passed",) * 3


@pytest.mark.parametrize("text", ["def f(:", "I think it is 4.", "x = '\ud800'"])
def test_what_is_no_program(text: str) -> None:
    score = judged(CodeCall(workers=1), DOUBLE, text)
    assert score.info["cases"] == ("syntax", "skipped") and set(score.components.values()) == {0.0}


def test_a_null_byte_is_never_right() -> None:
    assert set(judged(CHECK, DOUBLE, RIGHT + "\x00").components.values()) == {0.0}


def test_an_error_when_called_is_no_syntax() -> None:
    assert words(CHECK, DOUBLE, "def f(x):\n    return eval('1 +')") == ("error", "error")
    assert words(CHECK, DOUBLE, "def f(x):\n    return missing") == ("error", "error")


@pytest.mark.parametrize(
    ("gold", "said"),
    [
        ({"entry": "f"}, "private\\['tests'\\] is missing"),
        ({"tests": [{"args": [], "expected": 1}]}, "private\\['entry'\\] is missing; give a text"),
        ({**DOUBLE, "entry": "a.b.c"}, "'a.b.c'; name a function, or Class.method"),
        ({**DOUBLE, "entry": "__import__('os')"}, "name a function"),
        ({"entry": "f", "tests": [{"args": [1]}]}, "'tests'\\]\\[0\\] is .*; give {'args': list"),
        ({"entry": "f", "tests": [{"args": 1, "expected": 1}]}, "'tests'\\]\\[0\\]"),
        ({"entry": "f", "tests": [3]}, "'tests'\\]\\[0\\]"),
        ({"entry": "f", "tests": [{"args": [], "expected": [math.nan]}]}, "expects NaN, which equals nothing"),
    ],
)
def test_a_gold_of_the_wrong_form(gold: object, said: str) -> None:
    with pytest.raises(DataError, match=f"task 'case': .*{said}"):
        judged(CHECK, gold, "x")


def test_settings() -> None:
    with pytest.raises(ConfigError, match=r"CodeCall.tolerance is 1.0; it must be in \[0, 1\)"):
        CodeCall(tolerance=1.0)


@pytest.mark.parametrize(
    ("program", "right"),
    [
        ("class Solution:\n    def f(self, x: List[int]) -> Optional[int]: return x * 2", 1.0),
        ("def f(x: List[int]): return x * 2", 1.0),
        ("class Solution:\n    def f(self, x): return x + 2", 0.0),
        ("class Solution:\n    def g(self, x): return x * 2", 0.0),
        ("class Solution:\n    def f(self, x): return x * 2\ndef f(x): return 0", 0.0),
    ],
)
def test_a_bare_solution_and_a_prelude(program: str, right: float) -> None:
    assert judged(CodeCall(), DOUBLE, program).primary == right


def test_a_prelude_is_a_setting() -> None:
    assert judged(CodeCall(prelude=""), DOUBLE, "def f(x: List[int]): return x * 2").primary == 0.0
    assert judged(CodeCall(prelude="import math"), DOUBLE, "def f(x): return math.floor(x * 2)").primary == 1.0
    with pytest.raises(ConfigError, match=r"CodeCall.prelude is no Python: .*; give import statements, or '' for none"):
        CodeCall(prelude="import")
