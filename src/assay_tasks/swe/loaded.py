"""Repositories of our own making, run in this process: what their functions give, within bounded steps."""

from __future__ import annotations

import ast
import builtins
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import CodeType, ModuleType
from typing import Any

__all__ = ["Endless", "Loaded"]

_STEPS = 3000
_TICK, _VALUE = "__tick__", "__value__"


class Endless(BaseException):
    """More steps than any example of a right program takes. No `Exception`, so that no program catches it."""


def _count_block(block: Sequence[ast.stmt], path: str) -> None:
    """Let each turn of a loop and each call of a function count, under the path and the line where it begins."""
    for statement in block:
        for name in ("body", "orelse", "finalbody"):
            _count_block(getattr(statement, name, ()), path)
        for handler in getattr(statement, "handlers", ()):
            _count_block(handler.body, path)
        if isinstance(statement, ast.For | ast.While | ast.FunctionDef):
            at, place = (statement.lineno, statement.col_offset), ast.Constant(f"{path}:{statement.lineno}")
            call = ast.Call(ast.Name(_TICK, ast.Load()), [place], [])
            for node in (call, call.func, place, tick := ast.Expr(call)):
                node.lineno, node.col_offset = at
            statement.body.insert(0, tick)


@lru_cache(maxsize=1024)
def _compile_source(path: str, source: str) -> CodeType:
    tree = ast.parse(source)
    _count_block(tree.body, path)
    return compile(tree, path, "exec", dont_inherit=True)


@lru_cache(maxsize=4096)
def _example(text: str) -> CodeType:
    return compile(text, "example", "exec", dont_inherit=True)


class Loaded:
    r"""Files of a repository as modules. Only for sources that come from this library: nothing is contained.

    Args:
        files: path to source; paths end in ``.py``, folders are packages.

    Attributes:
        reached: functions and loops that the last run came to, each as ``path:line`` of where it begins.

    >>> Loaded({"a/b.py": "def f(x):\n    return x * 2\n"}).run(["from a.b import f"], "f(4)")
    {'value': 8}
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self._sources = {path.removesuffix(".py").replace("/", "."): (path, source) for path, source in files.items()}
        self._modules: dict[str, ModuleType] = {}
        self._left = 0
        self.reached: set[str] = set()
        self._builtins: dict[str, Any] = {**vars(builtins), "__import__": self._import, _TICK: self._tick}

    def run(self, lines: Sequence[str], ask: str) -> dict[str, Any]:
        """``{"value": ...}`` of an expression after some statements, as JSON carries it, or ``{"raises": name}`` of an exception.

        The modules are loaded anew each time. A value that JSON cannot say is ``{"strange": its type}``.

        Raises:
            Endless: it takes too many steps.
        """
        self._modules, self._left, self.reached = {}, _STEPS, set()
        names: dict[str, Any] = {"__name__": "test", "__builtins__": self._builtins}
        try:
            exec(_example("\n".join([*lines, f"{_VALUE} = {ask}"])), names)
            value = names[_VALUE]
        except Exception as error:
            return {"raises": type(error).__name__}
        try:
            return {"value": json.loads(json.dumps(value))}
        except (TypeError, ValueError):
            return {"strange": type(value).__name__}

    def call(self, source: str, entry: str, *arguments: Any) -> Any:
        """What a function of some source returns, when it is run beside the modules.

        Raises:
            Endless: it takes too many steps.
        """
        self._modules, self._left, self.reached = {}, _STEPS, set()
        names: dict[str, Any] = {"__name__": "runner", "__builtins__": self._builtins}
        exec(source, names)
        return names[entry](*arguments)

    def _tick(self, place: str) -> None:
        self.reached.add(place)
        self._left -= 1
        if self._left < 0:
            raise Endless

    def _import(
        self, name: str, names: Mapping[str, Any] | None = None, _: object = None, wanted: Sequence[str] = (), level: int = 0
    ) -> Any:
        package = (names or {}).get("__package__", "")
        whole = f"{package}.{name}" if level and name else package if level else name
        if whole in self._sources and wanted:
            return self._module(whole)
        return builtins.__import__(name, names, None, wanted, level)

    def _module(self, name: str) -> ModuleType:
        if name not in self._modules:
            path, source = self._sources[name]
            module = ModuleType(name)
            vars(module).update({"__builtins__": self._builtins, "__package__": name.rpartition(".")[0]})
            self._modules[name] = module
            exec(_compile_source(path, source), vars(module))
        return self._modules[name]
