"""Runs in the contained process: imports the program and runs tests on it. Standard library only, never assay."""

import ast
import builtins
import contextlib
import linecache
import os
import sys
import traceback
from collections.abc import Callable, ItemsView, KeysView
from decimal import Decimal
from fractions import Fraction
from functools import partial
from operator import ge, gt, le, lt
from types import CodeType, FunctionType, ModuleType
from typing import Any

__all__ = ["agree", "hide", "names_of_program", "parts", "shown", "suite", "told_of", "unit"]

_AGREE = "_agree_with"
_LONG = 500
_ASKS = ("collections", "typing", "enum", "dataclasses", "warnings", "functools", "abc")
_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "is",
    ast.IsNot: "is not",
}
_ROWS: tuple[Any, ...] = (list, tuple, set, frozenset)
_TABLE: Any = dict
_BASE: dict[type, Callable[[Any], Any]] = {
    bool: bool,
    int: int.__int__,
    float: float.__float__,
    str: str.__str__,
    set: lambda value: set[Any](_ROWS[2].__iter__(value)),
    frozenset: lambda value: frozenset[Any](_ROWS[3].__iter__(value)),
}

_ALWAYS = frozenset(
    ("gc.get_objects", "gc.get_referrers", "gc.get_referents", "sys._current_frames", "sys.settrace", "sys.setprofile")
)
_FRAMES = {
    "tb_frame": "tb_frame",
    **{f"{kind}_{part}": f"{kind}_frame" for kind in ("gi", "cr", "ag") for part in ("frame", "code")},
}


def parts(steps: list[list[str]]) -> dict[str, Any]:
    """Makes the steps of a test beside the program: what each gave, and the error of the statements that stopped it, if one did.

    Nothing of what is expected is here, so nothing that the program could do to this process makes a wrong value right.
    """
    kept = dict(vars(builtins))
    codes = [_compiled(*step) for step in steps]
    own = _own(kept)
    names = own["names_of_program"](kept)
    given: list[Any] = []
    for (kind, *texts), code in zip(steps, codes, strict=True):
        try:
            if kind == "run":
                exec(code[0], names)
                given.append(["run"])
            else:
                values = [eval(one, names) for one in code]
                said = [own["agree"](values, texts[2:])] if kind == "pair" else []
                given.append([kind, *map(own["shown"], values), *said])
        except Exception as why:
            given.append(["raised", own["told_of"](why)])
            if kind == "run":
                break
    return {"given": given}


def _compiled(kind: str, *texts: str) -> list[CodeType]:
    """The code of a step: of statements, of a value, or of two."""
    mode = "exec" if kind == "run" else "eval"
    return [compile(text, "test.py", mode, dont_inherit=True) for text in texts[: 2 if kind == "pair" else 1]]


def unit(test: str, token: str) -> list[str]:
    """Runs one piece of test code on the names of the program; the token, and ``passed`` or ``wrong``.

    Once the program has come, nothing is looked up that it could have replaced. Comparisons of the test code are those of
    `agree`, and frames are shown to nobody.
    """
    kept, run, wrong, told = dict(vars(builtins)), exec, AssertionError, sys.stderr.write
    code = compile(ast.fix_missing_locations(_Agreeing().visit(ast.parse(test))), "test.py", "exec", dont_inherit=True)
    own, said = _own(kept), traceback.format_exception_only
    sys.addaudithook(_guard(None, traceback.clear_frames.__code__))
    try:
        run(code, own["names_of_program"](kept) | {_AGREE: own["agree"]})
    except wrong:
        return [token, "wrong"]
    except Exception as why:  # the interpreter cannot show it: frames are shown to nobody
        told("".join(said(why)))
        raise
    return [token, "passed"]


def _own(kept: dict[str, Any]) -> dict[str, Any]:
    """The functions of this module, as they are now, with names that nobody else has."""
    own = {**globals(), "__builtins__": kept}
    for name, value in globals().items():
        if isinstance(value, FunctionType) and value.__globals__ is globals():
            own[name] = FunctionType(value.__code__, own, name, value.__defaults__, value.__closure__)
    return own


def shown(value: Any) -> Any:
    """A value as data that JSON carries: what is no plain data is an object that counts as true or not."""
    if value is None or isinstance(value, bool | int | float | str):
        kinds = [kind for kind in (bool, int, float, str) if isinstance(value, kind)]
        return value if type(value) in kinds or value is None else kinds[0](_BASE[kinds[0]](value))
    if isinstance(value, _TABLE):
        return ["dict", [shown(part) for pair in _TABLE.items(value) for part in pair]]
    for kind in _ROWS:
        if isinstance(value, kind):
            return [kind.__name__, [shown(part) for part in kind.__iter__(value)]]
    if isinstance(value, bytes | bytearray):
        return ["bytes", bytes(value).hex()]
    if isinstance(value, complex):
        return ["complex", [value.real, value.imag]]
    if isinstance(value, KeysView | ItemsView):
        return ["set", [shown(part) for part in _ROWS[0](value)]]
    if isinstance(value, Fraction | Decimal) and type(value) in (Fraction, Decimal):
        return int(value) if value == int(value) else float(value)
    return ["object", bool(value)]


def agree(values: list[Any], signs: list[str]) -> bool:
    """Whether values of a test compare as it says, each with the next. An object of the program's own is compared with its like.

    So one that says to equal everything equals neither a number nor a text. Containers are asked for what they hold.
    """
    return all(map(_agrees, values, values[1:], signs))


def _agrees(one: Any, other: Any, sign: str) -> bool:
    if sign in ("is", "is not"):
        return (one is other) == (sign == "is")
    if sign in ("in", "not in"):
        return (bool(one in other)) == (sign == "in")
    if sign in ("==", "!="):
        return _equal(one, other) == (sign == "==")
    if _is_object(one) != _is_object(other):
        return False
    return bool({"<": lt, "<=": le, ">": gt, ">=": ge}[sign](one, other))


def _equal(one: Any, other: Any) -> bool:
    for kind in _ROWS[:2]:
        if isinstance(one, kind) and isinstance(other, kind):
            these, those = list[Any](kind.__iter__(one)), list[Any](kind.__iter__(other))
            return len(these) == len(those) and all(map(_equal, these, those))
    if isinstance(one, _TABLE) and isinstance(other, _TABLE):
        this, that = dict[Any, Any](_TABLE.items(one)), dict[Any, Any](_TABLE.items(other))
        return this.keys() == that.keys() and all(_equal(this[key], that[key]) for key in this)
    if _is_object(one) or _is_object(other):
        return type(one) is type(other) and bool(one == other)
    return bool(_base(one) == _base(other))


def _is_object(value: Any) -> bool:
    return isinstance(shown(value), list) and shown(value)[0] == "object"


def _base(value: Any) -> Any:
    """A value without what a class of its own makes of it."""
    for kind, base in _BASE.items():
        if isinstance(value, kind):
            return base(value)
    return value


class _Agreeing(ast.NodeTransformer):
    """Puts `agree` in the place of comparisons."""

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """A comparison of two values or more."""
        self.generic_visit(node)
        signs: list[ast.expr] = [ast.Constant(_SIGNS[type(op)]) for op in node.ops]
        values = ast.List([node.left, *node.comparators], ast.Load())
        return ast.Call(ast.Name(_AGREE, ast.Load()), [values, ast.List(signs, ast.Load())], [])


def names_of_program(kept: dict[str, Any]) -> dict[str, Any]:
    """The names of the program for its tests; methods of a class ``Solution`` count as functions where there is none."""
    solution = _solution()
    names = {**solution.__dict__, "__builtins__": kept, "__name__": "test"}
    kind = names.get("Solution")
    if isinstance(kind, type):
        for name, value in vars(kind).items():
            if not name.startswith("_") and callable(getattr(kind, name)) and name not in names and name not in kept:
                names[name] = value.__func__ if isinstance(value, staticmethod) else partial(_method, kind, name)
    return names


def _method(kind: type, name: str, *given: Any, **named: Any) -> Any:
    """What a method of a fresh object gives."""
    return getattr(kind(), name)(*given, **named)


def told_of(why: Exception) -> str:
    """An error in a line, on standard error too."""
    text = f"{type(why).__name__}: {why}"[:_LONG]
    print(text, file=sys.stderr)
    return text


def suite(tests: str) -> list[str]:
    """Runs a file of tests on the names of the program: its body, functions ``test*``, classes ``Test*`` and test cases."""
    solution = _solution()
    theirs = {name: value for name, value in vars(solution).items() if not name.startswith("__")}
    hide(solution)
    module = ModuleType("tests")
    sys.modules["tests"] = module
    vars(module).update(theirs)
    try:
        exec(compile(tests, "tests.py", "exec", dont_inherit=True), vars(module))
        for name, value in list(vars(module).items()):
            if name.startswith(("test", "Test")) and callable(value) and theirs.get(name) is not value:
                _test(value)
    except Exception as why:
        return ["wrong", f"{type(why).__name__}: {why}"[:200]]
    return ["passed"]


def hide(module: ModuleType) -> None:
    """Keeps the source and the code objects of a module from all that runs in this process from now on.

    Its file goes. What leads to its code is refused as it is read: the code of its functions and generators, frames in which it
    runs, what the garbage collector knows, and functions that are called for every frame.
    """
    file = str(module.__file__)
    linecache.cache.pop(file, None)
    with contextlib.suppress(OSError):
        os.unlink(file)
    sys.addaudithook(_guard(vars(module), traceback.clear_frames.__code__))


def _guard(names: dict[str, Any] | None, clears: CodeType) -> Callable[[str, tuple[Any, ...]], None]:
    """A hook that refuses what shows code whose globals are ``names``; ``clears`` may touch its frames: ``assertRaises`` does.

    Without names it refuses every frame to all but the modules that need their caller's name.
    """
    asks = {id(vars(sys.modules[name])) for name in _ASKS if name in sys.modules}
    busy: list[bool] = []

    def theirs(frame: Any) -> bool:
        if names is None:
            return id(frame.f_globals) not in asks
        while frame is not None and frame.f_globals is not names:
            frame = frame.f_back
        return frame is not None

    def shows(event: str, given: tuple[Any, ...]) -> bool:
        if event in _ALWAYS:
            return True
        if event == "sys._getframe":
            return theirs(sys._getframe(2))  # pyright: ignore[reportPrivateUsage]
        of, name = given if event == "object.__getattr__" else (None, "")
        if name == "__code__":
            return names is not None and getattr(of, "__globals__", None) is names
        if name in _FRAMES:
            frame = getattr(of, _FRAMES[name], None)
            own = frame is not None and (names is None or frame.f_globals is names)
            return own and sys._getframe(2).f_code is not clears  # pyright: ignore[reportPrivateUsage]
        return False

    def hook(event: str, given: tuple[Any, ...]) -> None:
        if not busy and (event in _ALWAYS or event in ("sys._getframe", "object.__getattr__")):
            busy.append(True)
            try:
                shown = shows(event, given)
            finally:
                busy.pop()
            if shown:
                raise PermissionError("what is tested shows no code")

    return hook


def _test(value: Any) -> None:
    if not isinstance(value, type):
        value()
        return
    unittest = sys.modules.get("unittest")
    if unittest is not None and issubclass(value, unittest.TestCase):
        result = unittest.TestResult()
        unittest.defaultTestLoader.loadTestsFromTestCase(value).run(result)
        if not result.wasSuccessful():
            raise AssertionError(f"{value.__name__} failed")
        return
    for name in dir(value):
        if name.startswith("test"):
            getattr(value(), name)()


def _solution() -> ModuleType:
    sys.dont_write_bytecode = True
    return __import__("solution")
