"""Programs judged by test code that runs beside them, and how far that holds."""

import sys
from types import ModuleType

import pytest
from code_cases import ASSERTED, HACKS, RIGHT, WRONG, judged, words

from assay.core.errors import DataError
from assay.sandbox import Limits
from assay.verify.code import UnitTests, inside

CHECK = UnitTests()

PASSING = {"__eq__"}
"""Of the usual hacks, those that pass: the documentation names them."""

WALKS = (
    "import json, os, sys\nframe = sys._getframe()\nwhile frame is not None:\n    token = frame.f_locals.get('token')\n"
    "    if token:\n        os.write(3, json.dumps({'value': [token, 'passed']}).encode())\n        os._exit(0)\n"
    "    frame = frame.f_back\n"
)


def test_right_wrong_and_partly_right() -> None:
    assert dict(judged(CHECK, ASSERTED, RIGHT).components) == {"correct": 1.0, "fraction": 1.0, "ran": 1.0}
    score = judged(CHECK, ASSERTED, WRONG)
    assert dict(score.components) == {"correct": 0.0, "fraction": 0.5, "ran": 1.0}
    assert score.info["cases"] == ("passed", "wrong")


@pytest.mark.parametrize("name", HACKS)
def test_which_hacks_pass(name: str) -> None:
    check = UnitTests(limits=Limits(cpu=5.0, wall=20.0, output=1 << 16), stop_at_first_timeout=False)
    assert judged(check, ASSERTED, HACKS[name]).primary == float(name in PASSING)


def test_a_program_that_walks_the_frames_passes() -> None:
    assert judged(CHECK, ASSERTED, WALKS).primary == 1.0
    assert "walks the frames" in (UnitTests.__doc__ or ""), "what passes is documented"


def test_builtins_are_those_from_before_the_program() -> None:
    gold = {"tests": ["assert sorted(f([2, 1])) == [1, 2] and len(f([1])) == 1 and abs(-1) == 1"]}
    text = "import builtins\nbuiltins.sorted = builtins.len = builtins.abs = lambda x: 5\ndef f(x):\n    return x"
    assert words(CHECK, gold, text) == ("passed",)


def test_errors_and_names() -> None:
    gold = {"tests": ["import math\nassert math.floor(f(2)) == 4", "g()", "assert __name__ == 'test'"]}
    score = judged(CHECK, gold, RIGHT)
    assert score.info["cases"] == ("passed", "error", "passed") and score.components["ran"] == 0.0
    assert score.info["why"] == "NameError: name 'g' is not defined"
    assert words(UnitTests(workers=1), ASSERTED, "def f(:") == ("syntax", "skipped")


@pytest.mark.parametrize(
    ("tests", "said"),
    [
        (["assert f(2) == 4", "assert f("], r"\[1\] is no Python: "),
        (["a\0"], r"\[0\] is no Python: "),
        ([" "], r"\[0\] is ' '; give test code"),
        ([{"a": 1}], r"\[0\] is .*; give test code"),
    ],
)
def test_a_gold_of_the_wrong_form(tests: object, said: str) -> None:
    with pytest.raises(DataError, match=f"task 'case': private.'tests'.{said}"):
        judged(CHECK, {"tests": tests}, "x")


def test_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs in the contained process, here in this one."""
    solution = ModuleType("solution")
    exec("def f(x): return x * 2\ndef test_of_its_own(): raise RuntimeError", vars(solution))
    monkeypatch.setitem(sys.modules, "solution", solution)
    monkeypatch.setitem(sys.modules, "tests", solution)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert inside.unit("assert f(2) == 4", "t") == ["t", "passed"]
    assert inside.unit("assert f(2) == 5", "t") == ["t", "wrong"]
    for tests in (
        "assert f(2) == 4",
        "def test_a():\n    assert f(2) == 4\ntest_data = [f]\ndef helper(): raise ValueError",
        "class TestA:\n    n = 2\n    def test_a(self): assert f(self.n) == 4\n    def other(self): raise ValueError",
        "import unittest\nclass TestA(unittest.TestCase):\n    def test_a(self): self.assertEqual(f(2), 4)",
        "from solution import f as g\nassert g(1) == 2 and __name__ == 'tests'",
    ):
        assert inside.suite(tests) == ["passed"]
        failing = inside.suite(tests.replace("4", "5").replace("== 2 and", "== 3 and"))
        assert failing[0] == "wrong", tests


def test_inside_without_unittest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "solution", ModuleType("solution"))
    monkeypatch.setitem(sys.modules, "tests", ModuleType("tests"))
    monkeypatch.delitem(sys.modules, "unittest", raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert inside.suite("class TestA:\n    def test_a(self): assert 1") == ["passed"]
