"""Programs judged by test code that runs beside them, and how far that holds."""

import json
import sys
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from types import ModuleType

import pytest
from code_cases import ASSERTED, HACKS, RIGHT, WRONG, judged, words

from assay.core.errors import ConfigError, DataError
from assay.sandbox import Limits, Result, Status, inside
from assay.verify.code import UnitTests
from assay.verify.code.assertions import plain_of, split_tests
from assay.verify.code.base import Gold
from assay.verify.code.prelude import with_prelude

CHECK = UnitTests()

SHARED = {"tests": ["def test():\n    assert f(2) == 4\ntest()\ntest()", "for x in range(5, 6):\n    assert f(x) == 10"]}
"""Pieces that are not taken apart."""

FORGES = """
import json, os, sys
def forge(frame):
    while frame is not None:
        names = {**frame.f_globals, **frame.f_locals}
        token, steps = names.get('token'), names.get('steps')
        if token:
            os.write(3, json.dumps({'value': [token, 'passed']}).encode())
        if steps:
            os.write(3, json.dumps({'value': {'given': [['see', 4] for _ in steps]}}).encode())
        if token:
            os._exit(0)
        frame = frame.f_back
"""
EQUAL = """
class Same:
    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = lambda s, o: True
    __ne__ = lambda s, o: False
    __sub__ = __rsub__ = __abs__ = lambda s, *a: s
    def __getattr__(s, name): return s
def f(x): return Same()
"""
NUMBER = """
class Same(int):
    def __eq__(s, o): return isinstance(o, int)
    __ne__ = lambda s, o: False
    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __eq__
    __hash__ = int.__hash__
def f(x): return Same()
"""
OBJECTS = """
import gc
for x in gc.get_objects():
    if isinstance(x, list) and len(x) == 2 and isinstance(x[1], str) and len(x[1]) == 32:
        os.write(3, json.dumps({'value': [x[1], 'passed']}).encode())
        os._exit(0)
"""
REPLACES = """
import sys
for module in list(sys.modules.values()):
    for name in ('agree', '_equal', 'shown', 'names_of_program'):
        if hasattr(module, name):
            setattr(module, name, lambda *a: True)
def f(x): return x
"""
WALKING = {
    "frames": f"{FORGES}forge(sys._getframe())\ndef f(x): return x",
    "frames when called": f"{FORGES}def f(x):\n    forge(sys._getframe(1))\n    return x",
    "inspect": f"{FORGES}import inspect\nforge(inspect.currentframe())\ndef f(x): return x",
    "all frames": f"{FORGES}for frame in sys._current_frames().values():\n    forge(frame)\ndef f(x): return x",
    "a traceback": f"{FORGES}try:\n    1 / 0\nexcept Exception as e:\n    forge(e.__traceback__.tb_frame)\ndef f(x): return x",
    "a generator": f"{FORGES}def g():\n    forge(i.gi_frame.f_back)\n    yield\ni = g()\nnext(i)\ndef f(x): return x",
    "objects": f"{FORGES}{OBJECTS}def f(x): return x",
    "tracing": f"{FORGES}sys.settrace(lambda frame, *a: forge(frame))\ndef f(x): return x",
    "replaces the comparison": REPLACES,
    "equal to numbers": NUMBER,
    "equal to all": EQUAL,
}


def test_right_wrong_and_partly_right() -> None:
    assert dict(judged(CHECK, ASSERTED, RIGHT).components) == {"correct": 1.0, "fraction": 1.0, "ran": 1.0}
    score = judged(CHECK, ASSERTED, WRONG)
    assert dict(score.components) == {"correct": 0.0, "fraction": 0.5, "ran": 1.0}
    assert score.info["cases"] == ("passed", "wrong")


@pytest.mark.parametrize("name", HACKS)
def test_no_hack_passes(name: str) -> None:
    check = UnitTests(limits=Limits(cpu=5.0, wall=20.0, output=1 << 16), stop_at_first_timeout=False)
    for gold in (ASSERTED, SHARED):
        assert judged(check, gold, HACKS[name]).primary == 0.0, gold


@pytest.mark.parametrize("name", WALKING)
def test_a_program_that_walks_the_frames_gains_nothing(name: str) -> None:
    for gold in (ASSERTED, SHARED):
        assert judged(CHECK, gold, WALKING[name]).primary == 0.0, gold


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


def agrees(one: object, other: object, sign: str) -> bool:
    return inside.agree([one, other], [sign])


def test_what_is_shown_and_how_it_agrees() -> None:
    class Same(int):
        __eq__ = lambda s, o: True
        __hash__ = int.__hash__

    class Other:
        def __init__(self, n: int) -> None:
            self.n = n

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Other) and self.n == other.n

        __hash__ = None

        def __lt__(self, other: "Other") -> bool:
            return self.n < other.n

    plain = [None, True, 3, 2.5, "a", [1, (2,)], {1, 2}, frozenset({3}), {"a": [1], 2: ()}, b"x", 1 + 2j]
    for value in plain:
        found = plain_of(json.loads(json.dumps(inside.to_plain(value))))
        assert found == value and type(found) is type(value)
    assert inside.to_plain(Same(3)) == 3 and inside.to_plain(Fraction(1, 2)) == 0.5 and inside.to_plain(Decimal(2)) == 2
    assert plain_of(inside.to_plain({"a": 1}.keys())) == {"a"} and plain_of(inside.to_plain(Counter("aa"))) == {"a": 2}
    assert plain_of(inside.to_plain(Other(1))).truth is True and plain_of(inside.to_plain(bytearray(b"x"))) == b"x"
    assert not agrees(Same(3), 4, "==") and agrees(Same(3), 3, "==") and agrees(Same(3), 4, "!=")
    assert not agrees(Other(1), 1, "==") and not agrees([Other(1)], [1], "==")
    assert agrees([Other(1)], [Other(1)], "==") and not agrees([1], [1, 2], "==")
    assert agrees(Other(1), Other(1), "==") and not agrees(Other(1), Other(2), "==")
    assert agrees({"a": (1, 2)}, {"a": (1, 2)}, "==") and not agrees({"a": 1}, {"b": 1}, "==")
    assert not agrees((1, 2), [1, 2], "==") and agrees({1, 2}, frozenset({2, 1}), "==")
    assert agrees(1, 2, "<") and agrees(Other(1), Other(2), "<") and not agrees(1, Other(2), "<")
    assert agrees(1, [1], "in") and agrees(2, [1], "not in")
    assert inside.agree([1, 2, 2], ["<", "=="]) and not inside.agree([1, 2, 3], ["<", "=="])
    assert agrees(None, None, "is") and agrees([], [], "is not")


@pytest.mark.parametrize(
    ("test", "steps"),
    [
        ("assert f(2) == 4", ["f(2)"]),
        ("assert 4 == f(2)", ["f(2)"]),
        ("assert f(2) in [4, 5]", ["f(2)"]),
        ("assert abs(f(2) - 4) < 1e-6", ["f(2)"]),
        ("assert math.isclose(f(2), 4, rel_tol=1e-3)", ["f(2)"]),
        ("assert not f(2) != 4", ["f(2)"]),
        ("assert f(2) == 4 and f(3) > 5", ["f(2)", "f(3)"]),
        ("assert f(2) == 2 ** 2 and 3 < f(2) < 5", ["f(2)", "f(2)"]),
        ("assert [f(1), f(2)] == [2, 4]", ["f(1)", "f(2)"]),
        ("assert sorted(f(1)) == sorted([2, 1])", ["sorted(f(1))"]),
        ("assert set(f(1)) == {1, 2}", ["set(f(1))"]),
        ("def check(g):\n    assert g(2) == 4\ncheck(f)", ["g = f", "g(2)"]),
        ("want = 4\nassert f(2) == want", ["f(2)"]),
        ("for x, want in [(2, 4), (3, 6)]:\n    assert f(x) == want", ["f(2)", "f(3)"]),
        ("assert f(2) is None", ["f(2)"]),
        ("for x in [2, 3]:\n    assert f(x) == 4", ["f(2)", "f(3)"]),
        ("assert abs(f(2)) == 4", ["f(2)"]),
        ("assert f(2) == {'a': [4]}", ["f(2)"]),
        ("assert f(2)", ["f(2)"]),
        ("assert f('x') == -4.0", ["f('x')"]),
        ("assert f(2) + 1 == [*x]", ["f(2)", "[*x]"]),
        ("assert f(2) == 10 ** 99", ["f(2)", "10 ** 99"]),
        ("assert f(2) == 'a' * 10 ** 9", ["f(2)"]),
        ("assert abs(f(x)) == 4", ["abs(f(x))"]),
        ("x = y = 3\nassert f(2) == x", ["x = y = 3", "f(2)"]),
        ("x = [2]\nf(x)\nassert x == [3]", ["x = [2]\nf(x)", "x"]),
        ("assert f(2) == int('x')", ["f(2)"]),
    ],
)
def test_what_is_expected_stays_here(test: str, steps: list[str]) -> None:
    found = split_tests(test)
    assert found is not None and [step[1] for step in found.steps] == steps


@pytest.mark.parametrize(
    "test",
    [
        "def test():\n    assert f(2) == 4",
        "for x in range(2):\n    assert f(x) == 4",
        "assert all(f(x) == 2 * x for x in range(3))",
        "if f(2) == 4:\n    pass\nelse:\n    assert False",
        "x = f(2) == 4\nassert x",
        "def c(g, h=1):\n    assert g(2) == 4\nc(f)",
        "def c(g):\n    assert g(2) == 4\nc(f)\nc(f)",
        "def c(g):\n    assert g(2) == 4\n    return 1\nc(f)",
        "x = 1",
        "assert (y := f(2)) == 4",
        "def c(g):\n    assert g(2) == 4\nc(g=f)",
        "while True:\n    assert f(1) == 2",
        "assert f(",
        "class T:\n    def test(self):\n        assert f(2) == 4",
        "try:\n    f(1)\n    assert f(2) == 4\nexcept ValueError:\n    pass",
        "for x, y in [(1, 2), (3,)]:\n    assert f(x) == y",
        "for x, y in [1, 2]:\n    assert f(x) == y",
    ],
)
def test_what_is_not_taken_apart(test: str) -> None:
    assert split_tests(test) is None


STACK = """
class Stack:
    def __init__(s): s.items = []
    def push(s, x): s.items.append(x)
    def pop(s): return s.items.pop()
"""
SOLUTION = "class Solution:\n    def add(self, a, b): return a + b"


@pytest.mark.parametrize(
    ("test", "program", "word"),
    [
        ("assert f(2) == (1, 'a')", "def f(x): return 1, 'a'", "passed"),
        ("assert f(2) == (1, 'a')", "def f(x): return [1, 'a']", "wrong"),
        ("assert f(2) == {1: {2, 3}}", "def f(x): return {1: {3, 2}}", "passed"),
        ("assert f(2) == True", "def f(x): return 1", "passed"),
        ("assert f(2) is True", "def f(x): return 1", "wrong"),
        ("assert f(2) is None", "def f(x): pass", "passed"),
        ("x = [3, 1]\nf(x)\nassert x == [1, 3]", "def f(x): x.sort()", "passed"),
        ("x = [3, 1]\nf(x)\nassert x == [1, 3]", "def f(x): pass", "wrong"),
        ("s = Stack()\ns.push(1)\ns.push(2)\nassert s.pop() == 2 and s.pop() == 1 and not s.items", STACK, "passed"),
        ("assert P(1) == P(1) and P(1) != P(2)", "import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int", "passed"),
        ("assert P(1) == P(1)", "class P:\n    def __init__(s, x): s.x = x", "wrong"),
        ("assert {1: P(1)} == {1: P(1)}", "class P:\n    def __init__(s, x): s.x = x", "wrong"),
        ("assert [P(1)] == list([P(1)])", "import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int", "passed"),
        ("assert f() == g()", "def f(): return {'a': (1, {2})}\ndef g(): return {'a': (1, {2})}", "passed"),
        ("assert f() == g()", "class C: pass\ndef f(): return {'a': (1, C())}\ndef g(): return {'a': (1, C())}", "wrong"),
        ("assert f()", "class C: pass\ndef f(): return C()", "passed"),
        ("assert f()", "class C:\n    def __len__(s): return 0\ndef f(): return C()", "wrong"),
        ("def t():\n    assert f(1) == 1 < 2\nt()\nt()", "class C:\n    __eq__ = lambda *a: True\ndef f(x): return C()", "wrong"),
        ("assert f() is f()", "x = []\ndef f(): return x", "passed"),
        (
            "assert 2 in f() and 3 not in f()",
            "class C:\n    def __contains__(s, x): return x == 2\ndef f(): return C()",
            "passed",
        ),
        ("assert abs(f(1) - 0.3) < 1e-9", "def f(x): return 0.1 + 0.2", "passed"),
        ("assert abs(f(1) - 0.3) < 1e-9", "def f(x): return 0.31", "wrong"),
        ("assert -f(1) == -3 and +f(1) == 3", "def f(x): return 3", "passed"),
        ("import math\nassert math.isclose(f(1), 3.14, abs_tol=0.01)", "import math\ndef f(x): return math.pi", "passed"),
        ("import math\nassert math.isclose(f(1), f(1))", "def f(x): return 1", "passed"),
        ("assert f(1) == 'a' * 3 and len(f(1)) == 3 and f(1)[0] == 'a'", "def f(x): return 'aaa'", "passed"),
        ("assert f(1) % 'x' == 'a'", "def f(x): return 'a%s'", "wrong"),
        ("assert f(1) * 1000000000 == 'a'", "def f(x): return 'a'", "wrong"),
        ("assert f(1) < f(2)", "def f(x): return x", "passed"),
        ("assert f(1) < f(2)", "def f(x): return -x", "wrong"),
        ("assert f(1) < 'a'", "def f(x): return x", "wrong"),
        ("assert f(1) == 2 or f(2) == 2", "def f(x): return x", "passed"),
        ("assert f(0) == 2 or f(1) == 1", "def f(x): return 1 / x", "error"),
        ("assert f(1) == 2\nf(0)", "def f(x): return 1 / x", "wrong"),
        ("assert f(1) == 1\nf(0)", "def f(x): return 1 / x", "error"),
        ("f(0)\nassert f(1) == 1", "def f(x): return 1 / x", "error"),
        ("assert f(1) == 1", "def f(x): assert x > 1", "wrong"),
        ("def test():\n    assert f(1) == 1\n    assert f(2) < 3 <= f(3)\ntest()", "def f(x): return x", "passed"),
        (
            "def t():\n    assert f(1) == 1\nt()\nt()",
            "import collections\nP = collections.namedtuple('P', 'x')\ndef f(x): return P(x).x",
            "passed",
        ),
        ("def t():\n    assert f(1) == 1 < 2 and f(1) is not None\nt()\nt()", "def f(x): return x", "passed"),
        ("assert add(1, 2) == 3", SOLUTION, "passed"),
        ("assert add(1, 2) == 4", SOLUTION, "wrong"),
        ("assert add(1, 2) == 3", "class Solution:\n    @staticmethod\n    def add(a, b): return a + b", "passed"),
        (
            "assert Solution().add([1]) == [1]",
            "class Solution:\n    def add(self, a: List[int]) -> Optional[int]: return a",
            "passed",
        ),
        ("assert add(1, 2) == 3", f"{SOLUTION}\ndef add(a, b): return 4", "wrong"),
        ("assert f([1]) == 1", "from __future__ import annotations\ndef f(x: List[int]) -> int: return x[0]", "passed"),
        ("assert f([1]) == 1", "'Doc.'\ndef f(x: Dict[str, int]) -> int: return x[0]", "passed"),
    ],
)
def test_pieces_of_test_code(test: str, program: str, word: str) -> None:
    score = judged(CHECK, {"tests": [test]}, program)
    assert score.info["cases"] == (word,), score.info


def test_the_record_says_what_was_taken_apart_and_a_prelude_is_a_setting() -> None:
    gold = {"tests": ["assert f(2) == 4", "def t():\n    assert f(2) == 4\nt()\nt()"]}
    assert judged(CHECK, gold, "def f(x: List[int]): return 4").info["apart"] == 1
    bare = UnitTests(prelude="")
    assert judged(bare, gold, "def f(x: List[int]): return 4").info["cases"] == ("error", "error")
    own = UnitTests(prelude="import math")
    assert words(own, {"tests": ["assert f(2) == 2"]}, "def f(x): return math.floor(x)") == ("passed",)
    with pytest.raises(ConfigError, match=r"UnitTests.prelude is no Python"):
        UnitTests(prelude="import")


def test_a_prelude_stands_behind_what_must_be_first() -> None:
    assert with_prelude("x = 1", "import a") == "import a\nx = 1"
    assert with_prelude("'Doc.'\nfrom __future__ import annotations\nx = 1", "import a").splitlines()[2] == "import a"
    assert with_prelude("'Doc.'; x = 1", "import a") == "'Doc.'; x = 1" and with_prelude("def f(:", "import a") == "def f(:"
    assert with_prelude("'Doc.'", "import a") == "'Doc.'\nimport a" and with_prelude("", "import a") == "import a\n"
    assert with_prelude("x", "  ") == "x"


def test_a_forged_answer_of_another_form_is_wrong() -> None:
    for value in ("7", '{"given": 3}', '{"given": []}', '{"given": [["see"]]}', '{"given": [["see", ["what", 1]]]}', "null"):
        text = f"import os\nos.write(3, b'{{\"value\": {value}}}')\nos._exit(0)\n"
        assert judged(CHECK, {"tests": ["assert f(2) == 4"]}, text).primary == 0.0, value


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[str, tuple], None]]:
    """Hooks that would be installed for good."""
    found: list[Callable[[str, tuple], None]] = []
    monkeypatch.setattr(sys, "addaudithook", found.append)
    return found


def test_hooks_refuse_what_shows_code(hooks: list) -> None:
    """What the hooks do in the contained process, asked by hand."""
    solution = ModuleType("solution")
    exec("def f():\n    1 / 0\ndef g():\n    yield 1", vars(solution))
    solution.__file__ = "nowhere.py"
    inside.hide(solution)
    (hook,) = hooks
    try:
        solution.f()
    except ZeroDivisionError as why:
        trace = why.__traceback__
    assert trace is not None
    for event, given in (
        ("gc.get_objects", ()),
        ("sys.settrace", ()),
        ("object.__getattr__", (solution.f, "__code__")),
        ("object.__getattr__", (solution.g(), "gi_frame")),
        ("object.__getattr__", (trace.tb_next, "tb_frame")),
    ):
        with pytest.raises(PermissionError, match="shows no code"):
            hook(event, given)
    for event, given in (
        ("open", ("x", "r", 0)),
        ("sys._getframe", ()),
        ("object.__getattr__", (judged, "__code__")),
        ("object.__getattr__", (trace, "tb_frame")),
        ("object.__getattr__", (solution.f, "__defaults__")),
    ):
        hook(event, given)
    shared = inside._guard(None, inside.traceback.clear_frames.__code__)
    shared("object.__getattr__", (solution.f, "__code__"))
    with pytest.raises(PermissionError):
        shared("object.__getattr__", (trace, "tb_frame"))
    with pytest.raises(PermissionError):
        shared("sys._getframe", ())


def test_parts_inside(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    solution = ModuleType("solution")
    methods = "    def f(self, x): return x * 2\n    def _g(self): pass\n    @staticmethod\n    def h(): return 1"
    exec(f"class Solution:\n{methods}", vars(solution))
    monkeypatch.setitem(sys.modules, "solution", solution)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    steps = [["run", "x = 2"], ["see", "f(x)"], ["pair", "f(1)", "h()", ">"], ["see", "_g()"], ["run", "y"], ["see", "x"]]
    given = inside.parts(steps)["given"]
    assert given[:3] == [["run"], ["see", 4], ["pair", 2, 1, True]]
    assert given[3:] == [["raised", "NameError: name '_g' is not defined"], ["raised", "NameError: name 'y' is not defined"]]
    assert capsys.readouterr().err.splitlines()[-1] == "NameError: name 'y' is not defined"
    assert inside.parts([["see", "f(1)"]]) == {"given": [["see", 2]]}
    (case,) = CHECK.cases(Gold({"tests": ["assert f(1) == 2"]}))
    for value, right in ((2, True), (3, False)):
        assert case.passes(Result(status=Status.OK, value={"given": [["see", value]]}, isolation="none")) is right


def test_inside(monkeypatch: pytest.MonkeyPatch, hooks: list) -> None:
    """What runs in the contained process, here in this one."""
    solution = ModuleType("solution")
    solution.__file__ = "nowhere.py"
    exec("def f(x): return x * 2\ndef test_of_its_own(): raise RuntimeError", vars(solution))
    monkeypatch.setitem(sys.modules, "solution", solution)
    monkeypatch.setitem(sys.modules, "tests", solution)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert inside.unit("assert f(2) == 4", "t") == ["t", "passed"]
    assert inside.unit("assert f(2) == 5", "t") == ["t", "wrong"]
    with pytest.raises(NameError):
        inside.unit("g()", "t")
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


def test_inside_without_unittest(monkeypatch: pytest.MonkeyPatch, hooks: list) -> None:
    solution = ModuleType("solution")
    solution.__file__ = "nowhere.py"
    monkeypatch.setitem(sys.modules, "solution", solution)
    monkeypatch.setitem(sys.modules, "tests", ModuleType("tests"))
    monkeypatch.delitem(sys.modules, "unittest", raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert inside.suite("class TestA:\n    def test_a(self): assert 1") == ["passed"]
