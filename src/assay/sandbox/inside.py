"""Runs in the contained process: imports the program and runs tests on it. Standard library only, never assay."""

import ast
import builtins
import contextlib
import linecache
import os
import sys
import traceback
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from types import CodeType, FunctionType, ModuleType
from typing import Any

from assay.sandbox.inside_compare import METHODS, agree, call_assertion, found_in_row, restore, run_cases, save_members, to_plain

__all__ = ["agree", "hide", "names_of_program", "parts", "suite", "to_plain", "told_of", "unit"]

_HELPERS = {f"_{helper.__name__}_": helper.__name__ for helper in (agree, call_assertion, found_in_row, run_cases)}
"""What test code calls in the place of its own comparisons, and the function that it is."""
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
_WRITTEN = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}

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
    codes = [_compile_step(*step) for step in steps]
    imported = save_members(*_import_test_modules("\n".join(text for kind, text, *_ in steps if kind == "run")))
    own = _own(kept)
    names = own["names_of_program"](kept) | {helper: own[name] for helper, name in _HELPERS.items()}
    own[restore.__name__](imported)
    given: list[Any] = []
    for (kind, *texts), code in zip(steps, codes, strict=True):
        try:
            if kind == "run":
                exec(code[0], names)
                given.append(["run"])
            else:
                values = [eval(one, names) for one in code]
                said = [own["agree"](values, texts[2:])] if kind == "pair" else []
                given.append([kind, *map(own["to_plain"], values), *said])
        except Exception as why:
            given.append(["raised", own["told_of"](why)])
            if kind == "run":
                break
    return {"given": given}


def _compile_step(kind: str, *texts: str) -> list[CodeType]:
    """The code of a step: of statements, of a value, or of two."""
    mode = "exec" if kind == "run" else "eval"
    return [_code(text, mode) for text in texts[: 2 if kind == "pair" else 1]]


def _code(text: str, mode: str) -> CodeType:
    """The code of a piece of test code, with comparisons that hold."""
    return compile(ast.fix_missing_locations(_Agreeing().visit(ast.parse(text, mode=mode))), "test.py", mode, dont_inherit=True)


def unit(test: str, token: str) -> list[str]:
    """Runs one piece of test code on the names of the program; the token, and ``passed`` or ``wrong``.

    Once the program has come, nothing is looked up that it could have replaced. Comparisons of the test code are those of
    `agree`, modules that it imports are as they were before the program came, and frames are shown to nobody.
    """
    kept, run, wrong, told = dict(vars(builtins)), exec, AssertionError, sys.stderr.write
    code, imported = _code(test, "exec"), save_members(*_import_test_modules(test))
    own, said = _own(kept), traceback.format_exception_only
    helpers = {helper: own[name] for helper, name in _HELPERS.items()}
    sys.addaudithook(_guard(None, traceback.clear_frames.__code__))
    try:
        names = own["names_of_program"](kept)
        own[restore.__name__](imported)
        run(code, names | helpers)
    except wrong:
        return [token, "wrong"]
    except Exception as why:  # the interpreter cannot show it: frames are shown to nobody
        told("".join(said(why)))
        raise
    return [token, "passed"]


def _import_test_modules(test: str) -> tuple[set[str], set[str]]:
    """The modules that test code imports, with them imported, and those that nobody can import; neither is the program's own."""
    nodes = list(ast.walk(ast.parse(test)))
    named = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    named |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level}
    roots = {name.partition(".")[0] for name in named} - {"solution", "sys", "builtins"}
    absent = {name for name in roots if find_spec(name) is None}
    for name in sorted(name for name in named if name.partition(".")[0] in roots - absent):
        with contextlib.suppress(Exception):  # the test raises it too
            import_module(name)
    return roots - absent, absent


def _own(kept: dict[str, Any]) -> dict[str, Any]:
    """The functions of this module, as they are now, with names that nobody else has."""
    own = {**globals(), "__builtins__": kept}
    for name, value in globals().items():
        if isinstance(value, FunctionType) and value.__globals__ is globals():
            own[name] = FunctionType(value.__code__, own, name, value.__defaults__, value.__closure__)
    return own


class _Agreeing(ast.NodeTransformer):
    """Puts `agree` in the place of comparisons, of methods that compare, and of what runs the classes of unittest."""

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """A comparison of two values or more."""
        self.generic_visit(node)
        return _agree_expression([node.left, *node.comparators], [_SIGNS[type(op)] for op in node.ops])

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """``a.__eq__(b)``, ``operator.eq(a, b)``, ``self.assertEqual(a, b)``, ``row.count(a)``, a class of tests that is run."""
        self.generic_visit(node)
        if not isinstance(node.func, ast.Attribute):
            return node
        of, name, count = node.func.value, node.func.attr, len(node.args)
        sign = _WRITTEN.get(name.strip("_"))
        if sign and count == 1 and name.startswith("__"):
            return _agree_expression([of, *node.args], [sign])
        if sign and count == 2 and isinstance(of, ast.Name) and of.id == "operator":
            return _agree_expression(node.args, [sign])
        if name in METHODS:
            return ast.Call(ast.Name("_call_assertion_", ast.Load()), [ast.Constant(name), of, *node.args], node.keywords)
        if name in ("count", "index") and count == 1:
            return ast.Call(ast.Name("_found_in_row_", ast.Load()), [of, ast.Constant(name), *node.args], [])
        if name == "debug" and isinstance(of, ast.Call) and ast.unparse(of.func).endswith("loadTestsFromTestCase"):
            return ast.Call(ast.Name("_run_cases_", ast.Load()), of.args, [])
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.match_case:
        """``case 4:``, which compares as ``==`` does."""
        self.generic_visit(node)
        values = node.pattern.patterns if isinstance(node.pattern, ast.MatchOr) else [node.pattern]
        written = [value.value for value in values if isinstance(value, ast.MatchValue)]
        if len(written) < len(values):
            return node
        same = [_agree_expression([ast.Name("_subject_", ast.Load()), value], ["=="]) for value in written]
        guards: list[ast.expr] = [ast.BoolOp(ast.Or(), [*same, ast.Constant(False)]), *([node.guard] if node.guard else [])]
        return ast.match_case(ast.MatchAs(None, "_subject_"), ast.BoolOp(ast.And(), [*guards, ast.Constant(True)]), node.body)


def _agree_expression(values: list[ast.expr], signs: list[str]) -> ast.expr:
    return ast.Call(
        ast.Name("_agree_", ast.Load()), [ast.List(values, ast.Load()), ast.List([*map(ast.Constant, signs)], ast.Load())], []
    )


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
