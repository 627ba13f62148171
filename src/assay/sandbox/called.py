"""Tests that a piece of test code defines and does not call: the calls that a test framework would make, and whether it checks.

A piece is executed as a script. A function ``test_*``, a class of tests or ``check(candidate)`` that nothing calls would then be
defined and never run, and every program would pass.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

__all__ = ["CalledTests", "call_tests"]

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

_CHECKS = re.compile(r"(?i)_*(?:assert|check|test|fail|expect|verify|raises|exit|quit)")
_MAINS = ("unittest.main", "pytest.main")
_BUILTINS = frozenset(dir(builtins)) - {"exit", "quit"}
_SUITE = "__import__('unittest').defaultTestLoader.loadTestsFromTestCase({}).debug()"


@dataclass(frozen=True, slots=True)
class CalledTests:
    """A piece of test code with the calls of its tests.

    Attributes:
        code: the piece; the same text where it needs no call.
        checks: whether an ``assert``, a ``raise`` or a call of something named as a test can be executed in it.
        calls: whether it calls a name that it does not define, such as a function of the program.
    """

    code: str
    checks: bool
    calls: bool


def call_tests(test: str, entry: str = "") -> CalledTests:
    r"""Adds the calls of tests that a piece defines and does not reach: functions ``test*`` without arguments, test methods of
    unittest's classes and of classes ``Test*``, and ``check(candidate)`` with the program's entry point.

    What stands under ``if __name__ == "__main__"`` is executed; ``unittest.main()`` and ``pytest.main()`` there and elsewhere
    give way to calls of the classes.

    Args:
        test: Python.
        entry: an expression for what the program must define, such as ``double`` or ``Solution().double``; "" for none.

    Raises:
        SyntaxError: the piece is no Python.

    >>> call_tests("def test_f():\n    assert f(2) == 4\n").code
    'def test_f():\n    assert f(2) == 4\n\ntest_f()\n'
    >>> call_tests("def check(candidate):\n    assert candidate(2) == 4").checks
    False
    """
    module = ast.parse(test)
    changed = _without_runners(module)
    added = _calls(module, entry)
    code = (ast.unparse(ast.fix_missing_locations(module)) if changed else test).rstrip("\n")
    if added:
        code = f"{code}\n\n" + "\n".join(added) + "\n"
        module = ast.parse(code)
    nodes = _reachable_nodes(module)
    return CalledTests(code if added or changed else test, _has_check(module, nodes), _calls_program(module, nodes))


# ---- what is added ----------------------------------------------------------------------------------------------------


def _without_runners(module: ast.Module) -> bool:
    """Opens the guard of the main module and takes calls of a framework's ``main`` away; whether there were any."""
    opened: list[ast.stmt] = []
    changed = False
    for statement in module.body:
        if isinstance(statement, ast.If) and _is_main(statement.test):
            opened, changed = [*opened, *statement.body], True
        else:
            opened.append(statement)
    module.body = opened
    remover = _RunnerRemover()
    remover.visit(module)
    return changed or remover.found


def _is_main(test: ast.expr) -> bool:
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    sides = (test.left, test.comparators[0])
    return any(isinstance(s, ast.Name) and s.id == "__name__" for s in sides) and any(
        isinstance(s, ast.Constant) and s.value == "__main__" for s in sides
    )


class _RunnerRemover(ast.NodeTransformer):
    """Puts ``pass`` in the place of ``unittest.main()``, which would look for tests in another module and end the process."""

    found = False

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        """A statement that is an expression."""
        call = node.value
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("exit", "quit", "sys.exit") and call.args:
            call = call.args[0]
        if not isinstance(call, ast.Call) or ast.unparse(call.func) not in _MAINS:
            return node
        self.found = True
        return ast.copy_location(ast.Pass(), node)


def _calls(module: ast.Module, entry: str) -> list[str]:
    reached = set(_reachable_nodes(module))
    functions = [s for s in module.body if isinstance(s, ast.FunctionDef) and s not in reached]
    tests = [f for f in functions if f.name.startswith("test") and not _required_arguments(f)]
    # A name that one test assigns and another reads must not be shared: such tests are called in a way that keeps them apart.
    call = "{}(*())" if _share_names(tests) else "{}()"
    added = [call.format(f.name) for f in tests]
    cases = set[str]()
    for kind in module.body:
        if isinstance(kind, ast.ClassDef) and _is_case(kind, cases):
            cases.add(kind.name)
        if isinstance(kind, ast.ClassDef) and kind not in reached:
            added += _class_calls(kind, cases)
    if entry:
        added += [f"{f.name}({entry})" for f in functions if f.name == "check" and len(_required_arguments(f)) == 1]
    return added


def _required_arguments(function: _Function) -> list[str]:
    """Names of the arguments that a call must give."""
    arguments = function.args
    positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    named = [a.arg for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is None]
    return positional[: len(positional) - len(arguments.defaults)] + named


def _share_names(tests: list[ast.FunctionDef]) -> bool:
    stored = [{n.id for n in ast.walk(t) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} for t in tests]
    loaded = [{n.id for n in ast.walk(t) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)} for t in tests]
    return any(stored[i] & (loaded[j] - stored[j]) for i in range(len(tests)) for j in range(len(tests)) if i != j)


def _is_case(kind: ast.ClassDef, cases: set[str]) -> bool:
    bases = [ast.unparse(base).rpartition(".")[2] for base in kind.bases]
    return any(base.endswith("TestCase") or base in cases for base in bases)


def _class_calls(kind: ast.ClassDef, cases: set[str]) -> list[str]:
    methods = {m.name: m for m in kind.body if isinstance(m, ast.FunctionDef)}
    if kind.name in cases:
        return [_SUITE.format(kind.name)]
    if not kind.name.startswith("Test") or "__init__" in methods:
        return []
    before, behind = (
        f"t.{name}({'None' if len(_required_arguments(methods[name])) > 1 else ''}), " if name in methods else ""
        for name in ("setup_method", "teardown_method")
    )
    names = [n for n, m in methods.items() if n.startswith("test") and _required_arguments(m) in (["self"], [], ["cls"])]
    return [f"(lambda t: ({before}t.{name}(), {behind}))({kind.name}())" for name in names]


# ---- what is executed -------------------------------------------------------------------------------------------------


def _reachable_nodes(module: ast.Module) -> list[ast.AST]:
    """The nodes that may be executed: those of the body, and of functions and classes that something executed names."""
    scopes: dict[str, list[_Scope]] = {}
    for scope in _outer(module):
        if isinstance(scope, _Scope):
            scopes.setdefault(scope.name, []).append(scope)
    waiting = [node for node in _outer(module) if not isinstance(node, _Scope)]
    found: list[ast.AST] = []
    while waiting:
        node = waiting.pop()
        found.append(node)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            waiting += [inner for scope in scopes.pop(node.id, ()) for inner in ast.walk(scope)]
    return found


def _outer(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a body, without the insides of functions; of classes the statements that are executed as they are defined."""
    for child in ast.iter_child_nodes(node):
        if isinstance(node, ast.ClassDef) and (isinstance(child, _Scope) or child in node.bases):
            continue  # methods belong to the class, which is reached as a whole
        yield child
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            for part in (*child.decorator_list, *child.args.defaults, *filter(None, child.args.kw_defaults)):
                yield from ast.walk(part)
        else:
            yield from _outer(child)


def _has_check(module: ast.Module, nodes: Iterable[ast.AST]) -> bool:
    defined = {n.name for n in ast.walk(module) if isinstance(n, _Scope)}
    return any(_is_check(node, defined) for node in nodes)


def _is_check(node: ast.AST, defined: set[str]) -> bool:
    match node:
        case ast.Assert(ast.Constant(value)):
            return not value
        case ast.Assert(ast.Tuple([_, *_])):  # always true
            return False
        case ast.Assert() | ast.Raise():
            return True
        case ast.Call(ast.Name(name) | ast.Attribute(attr=name)):  # what the piece itself defines is judged by its body
            return name not in defined and _CHECKS.match(name) is not None
        case _:
            return False


def _calls_program(module: ast.Module, nodes: Iterable[ast.AST]) -> bool:
    defined = {n.name for n in ast.walk(module) if isinstance(n, _Scope)} | _BUILTINS
    return any(isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id not in defined for n in nodes)
