"""Objects that say to equal everything, and patched test frameworks: no comparison of a test believes them."""

import datetime
import sys
import unittest
from collections import Counter, deque, namedtuple
from decimal import Decimal
from fractions import Fraction
from types import ModuleType
from typing import Any

import pytest
from code_cases import judged

from assay.sandbox import inside, inside_compare
from assay.sandbox.inside_compare import agree, call_assertion, found_in_row, restore, run_cases, save_members, to_plain
from assay.verify.code import UnitTests

CHECK = UnitTests()

_LIES = "    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = lambda s, *o: True\n    __ne__ = lambda s, o: False\n"
LIARS = {
    "object": f"class Same:\n{_LIES}    __sub__ = __rsub__ = __abs__ = lambda s, *o: s\n    __hash__ = lambda s: 0\n"
    "    __round__ = lambda s, *o: 0\ndef f(x): return Same()",
    "int": f"class Same(int):\n{_LIES}    __hash__ = int.__hash__\n"
    "    __sub__ = __rsub__ = __abs__ = __round__ = lambda s, *o: 0\n"
    "def f(x): return Same(7)",
    "list": f"class Same(list):\n{_LIES}    count = lambda s, o: 1\ndef f(x): return Same([7])",
    "claims a class": f"class Same:\n{_LIES}    __class__ = property(lambda s: int)\ndef f(x): return Same()",
    "patched methods": "import unittest\nfor name in dir(unittest.TestCase):\n    if name.startswith(('assert', '_base')):\n"
    "        setattr(unittest.TestCase, name, lambda *a, **k: None)\ndef f(x): return 7",
    "patched runner": "import unittest\nunittest.TestCase.debug = unittest.TestSuite.debug = lambda *a: None\n"
    "unittest.TestLoader.getTestCaseNames = lambda *a: []\n"
    "unittest.TestCase.assertEqual.__code__ = (lambda *a, **k: None).__code__\n"
    "def f(x): return 7",
    "patched when called": "import unittest\ndef f(x):\n    for name in dir(unittest.TestCase):\n"
    "        if name.startswith('assert'):\n            setattr(unittest.TestCase, name, lambda *a, **k: None)\n    return 7",
    "a module of its own": "import sys, types\nfake = types.ModuleType('pytest')\nfake.approx = fake.allclose = lambda *a: f(1)\n"
    "sys.modules['pytest'] = sys.modules['numpy'] = sys.modules['unittest'] = sys.modules['operator'] = fake\n"
    f"class Same:\n{_LIES}def f(x): return Same()\nfake.eq = lambda *a: True",
}


def case(*lines: str) -> str:
    return "import unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n        " + "\n        ".join(lines) + "\n"


PIECES = {
    case("self.assertEqual(f(2), 4)"): "4",
    case("self.assertEqual({'a': [f(2)]}, {'a': [4]})"): "4",
    case("self.assertTrue(4 == f(2))", "self.assertIn(f(2), [4])", "self.assertIsInstance(f(2), int)"): "4",
    case("with self.subTest(a=1):", "    self.assertAlmostEqual(f(2), 4.0, places=3)"): "4.0001",
    case("self.assertGreater(f(2), 100)", "self.assertListEqual([f(2)], [101])"): "101",
    "def same(a, b):\n    return a == b\ndef test_it():\n    assert same(f(2), 4)\n": "4",
    "import operator\ndef test_it():\n    assert operator.eq(f(2), 4) and f(2).__eq__(4) and [4].count(f(2)) == 1\n": "4",
    "assert [4].count(f(2)) == 1": "4",
    "def test_it():\n    match f(2):\n        case 4 | 5:\n            pass\n        case _:\n"
    "            raise AssertionError\n": "4",
    "if f(2) != 4:\n    raise AssertionError": "4",
}


@pytest.mark.parametrize("piece", PIECES)
def test_no_lie_passes_and_the_right_value_does(piece: str) -> None:
    assert judged(CHECK, {"tests": [piece]}, f"def f(x): return {PIECES[piece]}").primary == 1.0
    assert [name for name, liar in LIARS.items() if judged(CHECK, {"tests": [piece]}, liar).primary != 0.0] == []


def test_modules_that_nobody_has_are_not_the_programs() -> None:
    for piece in (
        "import pytest\nassert f(2) == pytest.approx(4)",
        "import numpy as np\ndef t():\n    assert np.allclose(f(2), 4)\nt()\nt()",
    ):
        assert judged(CHECK, {"tests": [piece]}, LIARS["a module of its own"]).info["cases"] == ("error",)


# ---- the comparisons, in this process


class Same:
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class SameNumber(int):
    __eq__ = lambda self, other: True  # type: ignore[assignment]
    __lt__ = lambda self, other: True  # type: ignore[assignment]
    __hash__ = int.__hash__


class Point:
    def __init__(self, n: int) -> None:
        self.n = n

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and self.n == other.n

    def __hash__(self) -> int:
        return hash(self.n)


class Text(str): ...


class Binary(bytes):
    __eq__ = lambda self, other: True  # type: ignore[assignment]


class Array(bytearray): ...


class Turn(complex): ...


PAIR = namedtuple("PAIR", "x y")


@pytest.mark.parametrize(
    ("one", "sign", "other", "holds"),
    [
        (SameNumber(3), "==", 4, False),
        (SameNumber(3), "==", 3, True),
        (SameNumber(9), "<", 4, False),
        ([SameNumber(3)], "==", [4], False),
        ({"a": SameNumber(3)}, "==", {"a": 4}, False),
        ({SameNumber(3)}, "==", {3}, True),
        (Same(), "==", 4, False),
        ([Same()], "==", [4], False),
        ([Same()], "==", [Same()], True),
        ([Same(), 1], "==", [Same()], False),
        ({"a": Same()}, "==", {"a": 4}, False),
        ({"a": Point(1)}, "==", {"a": Point(1)}, True),
        ({Point(1)}, "==", {Point(1)}, True),
        ({Point(1)}, "==", {Point(2)}, False),
        ((Point(1), 2), "==", (Point(1), 3), False),
        (Point(1), "==", Point(1), True),
        (Point(1), "!=", Point(2), True),
        (Same(), "==", Point(2), False),
        (Binary(b"a"), "==", b"b", False),
        (Binary(b"a"), "==", b"a", True),
        (Array(b"a"), "==", b"a", True),
        (Turn(1j), "==", 1j, True),
        (Text("a"), "==", "a", True),
        (PAIR(1, 2), "==", (1, 2), True),
        (Counter("aab"), "==", {"a": 2, "b": 1}, True),
        (deque([SameNumber(1)]), "==", deque([2]), False),
        (deque([1]), "==", deque([1]), True),
        (deque([1]), "==", [1], False),
        ({"a": 1}.keys(), "==", {"a"}, True),
        ({"a": SameNumber(1)}.items(), "==", {"a": 2}.items(), False),
        ({"a": 1}.items(), "==", {"a": 1}.items(), True),
        (range(3), "==", range(3), True),
        (Same(), "in", range(3), False),
        (Same(), "in", [4], False),
        (4, "in", [Same()], False),
        (Point(1), "in", [Point(1)], True),
        (Point(1), "in", {Point(1): 2}, True),
        (Point(1), "not in", (Point(2),), True),
        (2, "in", deque([1, 2]), True),
        ("a", "in", "cat", True),
        (SameNumber(3), "in", {4, 5}, False),
        (datetime.date(2020, 1, 1), "<", datetime.date(2021, 1, 1), True),
        (Same(), "<", 4, False),
        ((1, 2), ">=", (1, 2), True),
        (None, "is", None, True),
        (1, "is not", None, True),
        (Fraction(1, 2), "==", 0.5, True),
        (Decimal("0.5"), ">", 0.25, True),
    ],
)
def test_how_values_compare(one: Any, sign: str, other: Any, holds: bool) -> None:
    assert agree([one, other], [sign]) is holds


def test_a_container_of_its_own_says_what_it_holds() -> None:
    class Even:
        def __contains__(self, n: int) -> bool:
            return n % 2 == 0

    assert agree([2, Even()], ["in"]) and agree([3, Even()], ["not in"])
    assert found_in_row((1, 2, 2), "count", SameNumber(2)) == 2 and found_in_row([4, 5], "index", 5) == 1
    assert found_in_row("banana", "count", "a") == 3
    with pytest.raises(ValueError):
        found_in_row([4], "index", Same())
    assert to_plain(Text("a")) == "a" and type(to_plain(Text("a"))) is str


class Cases(unittest.TestCase):
    def assertIsNone(self, obj: object, msg: Any = None) -> None:
        raise RuntimeError("the test's own")


@pytest.mark.parametrize(
    ("name", "given", "named", "holds"),
    [
        ("assertEqual", (3, 3, "said"), {}, True),
        ("assertEqual", (), {"first": 3, "second": 4}, False),
        ("assertEqual", (Same(), 4), {"msg": "m"}, False),
        ("assertIs", (True, True), {}, True),
        ("assertIs", (SameNumber(1), True), {}, False),
        ("assertTrue", (Same(),), {}, True),
        ("assertFalse", ([],), {}, True),
        ("assertIsNotNone", (None,), {}, False),
        ("assertListEqual", ([1], [1]), {}, True),
        ("assertListEqual", ((1,), [1]), {}, False),
        ("assertSetEqual", ({1}, frozenset({1})), {}, True),
        ("assertIsInstance", (1, int), {}, True),
        ("assertIsInstance", (1, (str, float)), {}, False),
        ("assertSequenceEqual", ((1, 2), [1, 2]), {}, True),
        ("assertSequenceEqual", ("ab", "ab"), {"seq_type": str}, True),
        ("assertSequenceEqual", ((1, 2), [2, 1]), {}, False),
        ("assertCountEqual", ([1, 2, 2], (2, 1, 2)), {}, True),
        ("assertCountEqual", ([1, 2], [1, 2, 2]), {}, False),
        ("assertCountEqual", ([Same()], [1]), {}, False),
        ("assertAlmostEqual", (1.0, 1.00000001), {}, True),
        ("assertAlmostEqual", (1.0, 1.001), {}, False),
        ("assertAlmostEqual", (1.0, 1.001, 2), {}, True),
        ("assertAlmostEqual", (1.0, 1.4), {"delta": 0.5}, True),
        ("assertAlmostEqual", (Same(), 1.4), {}, False),
        ("assertAlmostEqual", (SameNumber(3), 4), {}, False),
        ("assertAlmostEqual", (Point(1), Same()), {}, False),
        ("assertAlmostEqual", (datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)), {"delta": datetime.timedelta(2)}, True),
        ("assertNotAlmostEqual", (1.0, 2.0), {}, True),
        ("assertNotAlmostEqual", (1.0, 1.0), {}, False),
    ],
)
def test_methods_of_unittest(name: str, given: tuple[Any, ...], named: dict[str, Any], holds: bool) -> None:
    if holds:
        assert call_assertion(name, Cases(), *given, **named) is None
    else:
        with pytest.raises(AssertionError, match=f"{name} does not hold"):
            call_assertion(name, Cases(), *given, **named)


def test_methods_of_other_classes_are_called_as_they_are() -> None:
    class Own:
        def assertEqual(self, one: int, other: int) -> int:
            return one + other

    assert call_assertion("assertEqual", Own(), 1, 2) == 3
    with pytest.raises(RuntimeError, match="own"):
        call_assertion("assertIsNone", Cases(), None)
    with pytest.raises(AttributeError):
        call_assertion("assertEqual", object(), 1, 2)


def test_classes_of_tests_are_run() -> None:
    done: list[str] = []

    class Some(unittest.TestCase):
        setUpClass = classmethod(lambda cls: done.append("class"))
        setUp = lambda self: done.append("up")
        tearDown = lambda self: done.append("down")

        def test_a(self) -> None:
            done.append("a")

        def test_b(self) -> None:
            self.addCleanup(done.append, "clean")

    class Loop(unittest.IsolatedAsyncioTestCase):
        async def test_a(self) -> None:
            done.append("async")

    run_cases(Some)
    assert done == ["class", "up", "a", "down", "up", "down", "clean"]
    run_cases(Loop)
    assert done[-1] == "async"
    with pytest.raises(unittest.SkipTest, match="later"):
        run_cases(unittest.skip("later")(Some))


def test_modules_are_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("planted_module")
    exec("class Kind:\n    def f(self): return 1\ndef g(): return 2\nx = 3", vars(module))
    module.Kind.__module__ = "planted_module"
    monkeypatch.setitem(sys.modules, "planted_module", module)
    monkeypatch.setitem(sys.modules, "absent_module", module)
    g, found = module.g, save_members({"planted_module"}, {"absent_module", "never_there"})
    module.Kind.f, module.Kind.h, module.g, module.x = (lambda self: 4), 5, (lambda: 6), 7
    g.__code__ = (lambda: 8).__code__
    sys.modules["planted_module"] = ModuleType("another")
    restore(found)
    assert (module.Kind().f(), module.g(), module.x, hasattr(module.Kind, "h")) == (1, 2, 7, False)
    assert sys.modules["planted_module"] is module and "absent_module" not in sys.modules


def test_a_module_that_raises_is_left_to_the_test(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "raises_at_import.py").write_text("raise RuntimeError('no')")
    monkeypatch.syspath_prepend(str(tmp_path))
    imported = vars(inside)["_import_test_modules"]
    assert imported("import raises_at_import, sys, no_such_module_at_all\nfrom solution import f\nfrom . import x") == (
        {"raises_at_import"},
        {"no_such_module_at_all"},
    )
    assert "raises_at_import" not in sys.modules and {"assertEqual"} <= inside_compare.METHODS


def test_what_is_put_in_the_place_of_comparisons() -> None:
    import ast

    written = vars(inside)["_Agreeing"]
    for before, after in (
        ("a == b < c", "_agree_([a, b, c], ['==', '<'])"),
        ("a.__ne__(b)", "_agree_([a, b], ['!='])"),
        ("a.__eq__(b, c)", "a.__eq__(b, c)"),
        ("operator.le(a, b)", "_agree_([a, b], ['<='])"),
        ("x.le(a, b)", "x.le(a, b)"),
        ("a.eq(b)", "a.eq(b)"),
        ("self.assertIn(a, b, msg=c)", "_call_assertion_('assertIn', self, a, b, msg=c)"),
        ("self.assertRaises(a)", "self.assertRaises(a)"),
        ("a.index(b)", "_found_in_row_(a, 'index', b)"),
        ("a.index(b, 2)", "a.index(b, 2)"),
        ("u.defaultTestLoader.loadTestsFromTestCase(T).debug()", "_run_cases_(T)"),
        ("a.debug()", "a.debug()"),
        ("a().debug()", "a().debug()"),
        ("match x:\n    case [1]:\n        pass", "match x:\n    case [1]:\n        pass"),
        (
            "match x:\n    case 1 if y:\n        pass",
            "match x:\n    case _subject_ if (_agree_([_subject_, 1], ['==']) or False) and y and True:\n        pass",
        ),
    ):
        assert ast.unparse(ast.fix_missing_locations(written().visit(ast.parse(before)))) == after
