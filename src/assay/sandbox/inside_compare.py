"""Runs in the contained process, in front of `inside`: how what a program gives compares with what a test says.

A program may return objects that say to equal everything. So none of its classes has a word where a builtin value stands on the
other side: a value of a class that derives from a builtin one counts as the builtin value, and any other object equals its like
alone. Standard library only, never assay.
"""

import operator
import sys
from collections import deque
from collections.abc import Callable, ItemsView, KeysView
from decimal import Decimal
from fractions import Fraction
from types import FunctionType
from typing import Any

__all__ = ["agree", "call_assertion", "found_in_row", "restore", "run_cases", "save_members", "to_plain"]

_ROWS: tuple[Any, ...] = (list, tuple, set, frozenset)
_TABLE: Any = dict
_KIND: Any = type
_EMPTY: dict[str, str] = {}
_KEYS: Any = type(_EMPTY.keys())
_ITEMS: Any = type(_EMPTY.items())
_EXACT = frozenset((type(None), bool, int, float, complex, str, bytes, bytearray, range, Fraction, Decimal))
_ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}

_SIGN_OF = {
    "assertEqual": "==",
    "assertNotEqual": "!=",
    "assertIs": "is",
    "assertIsNot": "is not",
    "assertIn": "in",
    "assertNotIn": "not in",
    "assertLess": "<",
    "assertLessEqual": "<=",
    "assertGreater": ">",
    "assertGreaterEqual": ">=",
}
_KIND_OF: dict[str, Any] = {
    "assertListEqual": list,
    "assertTupleEqual": tuple,
    "assertSetEqual": (set, frozenset),
    "assertDictEqual": dict,
    "assertMultiLineEqual": str,
}
_OF_ONE: dict[str, Callable[[Any], bool]] = {
    "assertTrue": bool,
    "assertFalse": operator.not_,
    "assertIsNone": lambda value: value is None,
    "assertIsNotNone": lambda value: value is not None,
}


# ---- values -----------------------------------------------------------------------------------------------------------


def to_plain(value: Any) -> Any:
    """A value as data that JSON carries: what is no plain data is an object that counts as true or not."""
    if value is None or isinstance(value, bool | int | float | str):
        return _base(value)
    if isinstance(value, _TABLE):
        return ["dict", [to_plain(part) for pair in _TABLE.items(value) for part in pair]]
    for kind in _ROWS:
        if isinstance(value, kind):
            return [kind.__name__, [to_plain(part) for part in kind.__iter__(value)]]
    if isinstance(value, bytes | bytearray):
        return ["bytes", bytes(value).hex()]
    if isinstance(value, complex):
        return ["complex", [value.real, value.imag]]
    if isinstance(value, KeysView | ItemsView):
        return ["set", [to_plain(part) for part in _ROWS[0](value)]]
    if isinstance(value, Fraction | Decimal) and type(value) in (Fraction, Decimal):
        return int(value) if value == int(value) else float(value)
    return ["object", bool(value)]


def _base(value: Any) -> Any:
    """A value without what classes of its own make of it, and of what it holds."""
    kind = _KIND(value)
    if kind in _EXACT or (kind in _ROWS and _EXACT.issuperset(map(type, value))):
        return value
    for builtin, read in ((int, int.__int__), (float, float.__float__), (str, str.__str__)):
        if issubclass(kind, builtin):
            return read(value)
    for row in _ROWS:
        if issubclass(kind, row):
            return row(map(_base, row.__iter__(value)))
    if issubclass(kind, _TABLE):
        return {_base(key): _base(part) for key, part in _TABLE.items(value)}
    if issubclass(kind, deque):
        return ("deque", *map(_base, deque[Any].__iter__(value)))
    if issubclass(kind, bytes | bytearray):
        of: Any = bytes if issubclass(kind, bytes) else bytearray
        return of.__getitem__(value, slice(None))
    if kind in (_KEYS, _ITEMS):
        return set(map(_base, value)) if kind is _KEYS else _base(_TABLE(value))
    return complex.__add__(value, 0j) if issubclass(kind, complex) else value


def _exact(value: Any) -> bool:
    """Whether a value, as `_base` gives it, is builtin through and through."""
    kind = _KIND(value)
    if kind is _TABLE:
        return _exact([*value]) and _exact([*value.values()])
    return kind in _EXACT or (kind in _ROWS and (_EXACT.issuperset(map(type, value)) or all(map(_exact, value))))


# ---- comparisons ------------------------------------------------------------------------------------------------------


def agree(values: list[Any], signs: list[str]) -> bool:
    """Whether values of a test compare as it says, each with the next. An object of the program's own is compared with its like.

    So one that says to equal everything equals neither a number nor a text. Containers are asked for what they hold.
    """
    return all(map(_agrees, values, values[1:], signs))


def _agrees(one: Any, other: Any, sign: str) -> bool:
    if sign in ("is", "is not"):
        return (one is other) == (sign == "is")
    if sign in ("in", "not in"):
        return _holds(other, one) == (sign == "in")
    if sign in ("==", "!="):
        return _equal(one, other) == (sign == "==")
    one, other = _base(one), _base(other)
    return _exact(one) == _exact(other) and bool(_ORDER[sign](one, other))


def _equal(one: Any, other: Any) -> bool:
    one, other = _base(one), _base(other)
    if _exact(one) and _exact(other):
        return bool(one == other)
    if type(one) is not type(other):
        return False
    if type(one) not in (*_ROWS, _TABLE):
        return bool(one == other)
    if len(one) != len(other):
        return False
    if type(one) in _ROWS[:2]:
        return all(map(_equal, one, other))
    pairs: list[list[Any]] = [list(value.items() if type(value) is _TABLE else value) for value in (one, other)]
    return all(any(_equal(this, that) for that in pairs[1]) for this in pairs[0])


def _holds(row: Any, value: Any) -> bool:
    """Whether a container holds a value; a builtin one by `_equal`, another by its own word."""
    row = _base([*row] if isinstance(row, deque) else row)
    if _exact(row):
        value = _base(value)
        return _exact(value) and bool(value in row)
    if type(row) in (*_ROWS, _TABLE):
        return any(value is part or _equal(value, part) for part in row)
    return bool(value in row)


def found_in_row(row: Any, method: str, value: Any) -> Any:
    """``row.count(value)`` or ``row.index(value)``, by `_equal` in a list or tuple."""
    if not isinstance(row, _ROWS[:2]):
        return getattr(row, method)(value)
    equal = [_equal(value, part) for part in _base(row)]
    return sum(equal) if method == "count" else equal.index(True)


# ---- unittest ---------------------------------------------------------------------------------------------------------


def call_assertion(name: str, case: Any, *given: Any, **named: Any) -> Any:
    """A call of ``case.assert*``: where the method is unittest's own, it compares as `agree` does.

    Raises:
        AssertionError: it does not hold.
    """
    owner = next((kind for kind in type(case).__mro__ if name in vars(kind)), None)
    if owner is None or (owner.__module__, owner.__name__) != ("unittest.case", "TestCase"):
        return getattr(case, name)(*given, **named)
    named.pop("msg", None)
    settings = {key: named.pop(key) for key in ("places", "delta", "seq_type") if key in named}
    values = [*given, *named.values()]
    if not (_OF_ONE[name](values[0]) if name in _OF_ONE else _two(name, values, settings)):
        raise AssertionError(f"{name} does not hold")
    return None


def _two(name: str, values: list[Any], settings: dict[str, Any]) -> bool:
    one, other, *more = values
    if name in _SIGN_OF:
        return agree([one, other], [_SIGN_OF[name]])
    if name in _KIND_OF:
        return issubclass(type(one), _KIND_OF[name]) and issubclass(type(other), _KIND_OF[name]) and _equal(one, other)
    if name == "assertIsInstance":
        return issubclass(type(one), other)
    if name == "assertSequenceEqual":
        rows = [list(value) if type(value) in _ROWS[:2] else value for value in map(_base, (one, other))]
        return _equal(*rows)
    if name == "assertCountEqual":
        return _same_items(list(_base(one)), list(_base(other)))
    places = settings.get("places", more[0] if more else None)
    return _near(one, other, 7 if places is None else places, settings.get("delta")) == (name == "assertAlmostEqual")


def _same_items(these: list[Any], those: list[Any]) -> bool:
    for this in these:
        at = next((n for n, that in enumerate(those) if _equal(this, that)), None)
        if at is None:
            return False
        del those[at]
    return not those


def _near(one: Any, other: Any, places: int, delta: Any) -> bool:
    if _equal(one, other):
        return True
    one, other = _base(one), _base(other)
    if _exact(one) != _exact(other) or (not _exact(one) and type(one) is not type(other)):
        return False
    apart = abs(one - other)
    return bool(apart <= delta) if delta is not None else bool(round(apart, places) == 0)


_OTHERS = ("assertIsInstance", "assertSequenceEqual", "assertCountEqual", "assertAlmostEqual", "assertNotAlmostEqual")
METHODS = frozenset([*_SIGN_OF, *_KIND_OF, *_OF_ONE, *_OTHERS])
"""Methods of unittest's test cases that `call_assertion` knows."""


def run_cases(kind: Any) -> None:
    """Runs the tests of a class of unittest's. What is called is settled before the first one, so that no program changes it."""
    if getattr(kind, "__unittest_skip__", False):
        raise sys.modules["unittest"].SkipTest(str(kind.__unittest_skip_why__))
    loader = sys.modules["unittest"].defaultTestLoader
    if hasattr(kind, "_callAsync"):  # with an event loop of its own
        loader.loadTestsFromTestCase(kind).debug()
        return
    calls: list[list[Callable[[], Any]]] = []
    for name in loader.getTestCaseNames(kind):
        case = kind(name)
        calls.append([case.setUp, getattr(case, name), case.tearDown, case.doCleanups])
    behind = [kind.tearDownClass, kind.doClassCleanups]
    kind.setUpClass()
    for call in [one for each in calls for one in each] + behind:
        call()


# ---- modules that tests import ----------------------------------------------------------------------------------------


def save_members(names: set[str], absent: set[str]) -> list[tuple[Any, dict[str, Any]]]:
    """The functions and classes of modules and their parts, and the members of these classes, as they are now.

    ``absent`` are modules that there are none of: a program that puts one there does not get it imported.
    """
    found: list[tuple[Any, dict[str, Any]]] = [(name, {}) for name in absent]
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in names:
            calls = {key: value for key, value in vars(module).items() if callable(value)}
            kinds = [value for value in calls.values() if isinstance(value, type) and value.__module__ == name]
            owners = [(module, calls), *((kind, dict(vars(kind))) for kind in kinds)]
            functions = [value for _, members in owners for value in members.values() if isinstance(value, FunctionType)]
            found += [(name, {"": module}), *owners]
            found += [(value, {"__code__": value.__code__, "__defaults__": value.__defaults__}) for value in functions]
    return found


def restore(found: list[tuple[Any, dict[str, Any]]]) -> None:
    """Makes modules and classes again what `save_members` found: a program may have changed what tests call."""
    for owner, members in found:
        if isinstance(owner, str):
            if members:
                sys.modules[owner] = members[""]
            else:
                sys.modules.pop(owner, None)
        elif isinstance(owner, type):
            for key in [key for key in vars(owner) if key not in members]:
                type.__delattr__(owner, key)
            for key in [key for key, value in members.items() if vars(owner).get(key) is not value]:
                type.__setattr__(owner, key, members[key])
        else:
            for key in [key for key, value in members.items() if getattr(owner, key, None) is not value]:
                setattr(owner, key, members[key])
