"""Digests of the user's own code in a run: rewards, verifiers, tools, environments, task families, and what they call by name.

A function's digest is that of what Python compiled of it (so comments and layout do not count, docstrings do: tools show them),
of the functions, classes and constants of the same project that it names, of what it closes over, and of its defaults. Code of
assay itself and of installed libraries is told by versions; a function of such a library that a run names itself is digested
within its package.
"""

from __future__ import annotations

import ast
import functools
import re
import site
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

import numpy as np

from assay.core.canon import digest
from assay.core.errors import InexactResumeError
from assay.core.import_path import name_of
from assay.runs import storage

__all__ = ["FILE", "changed_code", "check_code", "code_digests", "write_code"]

FILE = "code.json"

_MANY = 256
"""So many entries of a list are looked at: rows are data, and there may be millions."""

_PLAIN = (str, bytes, int, float, complex, bool, type(None), type(Ellipsis), range)
_PLACES = [sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
_LIBRARIES = tuple({Path(p).resolve() for p in (*_PLACES, *site.getsitepackages(), site.getusersitepackages())})


def write_code(folder: Path, parts: Sequence[object]) -> None:
    """Writes ``code.json``: the digest of each function and class of the user's in ``parts`` by name; nothing where none is."""
    found = code_digests(parts)
    if found or (folder / FILE).exists():
        storage.write_json(folder / FILE, found)


def check_code(folder: Path, parts: Sequence[object], allow_inexact: bool) -> list[str]:
    """As `changed_code`, of a folder that is gone on with.

    Raises:
        InexactResumeError: there are some and ``allow_inexact`` is False.
    """
    found = changed_code(folder, parts)
    if found and not allow_inexact:
        raise InexactResumeError(
            f"the code that {folder} was made with has changed ({'; '.join(found)}): what follows would be another experiment; "
            "restore it, or pass --allow-inexact to go on all the same"
        )
    return found


def changed_code(folder: Path, parts: Sequence[object]) -> list[str]:
    """What is other code now than when the folder was written, by name; nothing where the folder does not say."""
    if not (folder / FILE).exists():
        return []
    before, now = storage.read_json(folder / FILE), code_digests(parts)
    return [
        f"{name}: {_change(before.get(name), now.get(name))}"
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]


def code_digests(parts: Sequence[object]) -> dict[str, str]:
    """Name to digest of every function and class of the user's in ``parts``: settings, and what else a run calls.

    >>> code_digests([len, {"rate": 0.1}])  # Python's own, and data
    {}
    """
    found = {name_of(part): part for part in _parts(parts, set())}
    return {name: _Reader(part).digest() for name, part in sorted(found.items())}


def _change(before: str | None, now: str | None) -> str:
    return "edited" if before and now else "not there then" if now else "not there now"


def _parts(values: Sequence[Any], seen: set[int]) -> Iterator[Any]:
    """The user's functions, and the classes of the user's parts, in a tree of settings."""
    for value in values[:_MANY]:
        if isinstance(value, (*_PLAIN, Enum, Path, np.ndarray)) or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Mapping):
            yield from _parts(list(cast("Mapping[Any, Any]", value).values()), seen)
        elif isinstance(value, list | tuple | set | frozenset):
            yield from _parts(list(cast("Sequence[Any]", value)), seen)
        elif isinstance(value, functools.partial):
            yield from _parts([value.func, value.args, value.keywords], seen)
        elif isinstance(value, MethodType):
            yield from _parts([value.__func__, value.__self__], seen)
        elif isinstance(value, FunctionType):
            if not _is_own(value):
                yield value
        elif not isinstance(value, type | ModuleType):
            kind = cast("type[Any]", type(value))
            if not _is_own(kind) and kind.__module__ != "builtins":
                yield kind
            names = [f.name for f in fields(value)] if is_dataclass(value) else list(getattr(value, "__dict__", ()))
            yield from _parts([getattr(value, name, None) for name in names], seen)


class _Reader:
    """What one function or class consists of, as plain values, each thing it reaches once."""

    def __init__(self, part: Any) -> None:
        self._part, self._package = part, str(part.__module__).partition(".")[0]
        self._seen: set[int] = set()

    def digest(self) -> str:
        """Of all that is reached."""
        return digest(self._of(self._part))

    def _of(self, value: Any) -> Any:
        plain = _immutable(value)
        if plain is not None or value is None:
            return plain
        if id(value) in self._seen:
            return "above"
        self._seen.add(id(value))
        if isinstance(value, staticmethod | classmethod | MethodType):
            return self._of(cast("Any", value).__func__)
        if isinstance(value, property):
            return [self._of(f) for f in (value.fget, value.fset)]
        if isinstance(value, functools.partial):
            return [self._of(value.func), self._of(value.args), {str(k): self._of(v) for k, v in sorted(value.keywords.items())}]
        if isinstance(value, tuple | list):
            return [self._of(v) for v in cast("Sequence[Any]", value)]
        if hasattr(value, "__wrapped__") and not isinstance(value, FunctionType):
            return self._of(value.__wrapped__)
        if isinstance(value, FunctionType):
            return self._function(value) if self._follows(value) else name_of(value)
        if isinstance(value, type):
            return self._class(value) if self._follows(value) else name_of(value)
        kind = cast("type[Any]", type(value))
        return self._of(kind) if self._follows(kind) else name_of(kind)

    def _function(self, function: FunctionType) -> Any:
        cells = [self._of(_cell_content(cell)) for cell in function.__closure__ or ()]
        defaults = [self._of(v) for v in (function.__defaults__ or (), *(function.__kwdefaults__ or {}).values())]
        return [_code_constants(function.__code__), defaults, cells, self._named_parts(function.__code__, function.__globals__)]

    def _class(self, cls: type) -> Any:
        own = {name: self._of(v) for name, v in sorted(vars(cls).items()) if _is_code(v)}
        bases = [self._of(base) for base in cls.__bases__ if base is not object]
        return [own, bases, _assigned_names(cls.__module__, cls.__qualname__.split("."))]

    def _named_parts(self, code: CodeType, scope: Mapping[str, Any]) -> dict[str, Any]:
        """What a piece of code names in its module: functions, classes, parts of modules; data as it is assigned there."""
        out: dict[str, Any] = {}
        names = sorted(_names(code))
        constants = _assigned_names(str(scope.get("__name__")), [])
        for name in names:
            value = scope.get(name)
            if name in scope and (
                _is_code(value) or isinstance(value, type | functools.partial) or hasattr(value, "__wrapped__")
            ):
                out[name] = self._of(value)
            elif isinstance(value, ModuleType) and self._follows(value):
                inside = vars(value)
                out[name] = {n: self._of(inside[n]) for n in names if _is_code(inside.get(n)) or isinstance(inside.get(n), type)}
                out[name] |= {f"={n}": v for n, v in _assigned_names(value.__name__, []).items() if n in names}
            elif name in constants:
                out[name] = constants[name]
            elif name in scope and (plain := _immutable(value)) is not None:
                out[name] = plain
        return out

    def _follows(self, value: Any) -> bool:
        """Whether it is code of the user's: of no library, or of the package that the run names."""
        module = value.__name__ if isinstance(value, ModuleType) else str(value.__module__)
        return module.partition(".")[0] == self._package or not (_is_own(value) or _is_library(module))


def _is_own(value: Any) -> bool:
    """Whether it is assay's."""
    module = value.__name__ if isinstance(value, ModuleType) else str(value.__module__)
    return module.partition(".")[0] in ("assay", "assay_control", "assay_tasks")


def _is_library(module: str) -> bool:
    """Whether a module is one of Python's or an installed one, or has no file."""
    if module == "__main__":
        return False
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is None or any(Path(file).resolve().is_relative_to(place) for place in _LIBRARIES)


def _is_code(value: Any) -> bool:
    return isinstance(value, FunctionType | staticmethod | classmethod | property | MethodType)


def _names(code: CodeType) -> set[str]:
    """What a piece of code, and those inside it, name outside of themselves."""
    return {*code.co_names, *(n for c in code.co_consts if isinstance(c, CodeType) for n in _names(c))}


def _code_constants(code: CodeType) -> Any:
    """Instructions, constants and names, without places in a file."""
    consts = [_code_constants(c) if isinstance(c, CodeType) else _immutable(c) for c in code.co_consts]
    return [code.co_code.hex(), consts, list(code.co_names), list(code.co_varnames), code.co_flags & 0x2F]


def _immutable(value: Any) -> Any:
    """A text that says the value; None for what can change or is no plain value."""
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, re.Pattern):
        return repr((cast("re.Pattern[Any]", value).pattern, value.flags))
    if isinstance(value, Enum):
        return str(value)
    if isinstance(value, tuple | frozenset):
        parts = [_immutable(v) for v in cast("Sequence[Any]", value)]
        return None if any(p is None for p in parts) else repr(sorted(parts) if isinstance(value, frozenset) else parts)
    return None


def _cell_content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not yet filled
        return None


def _assigned_names(module: str, path: Sequence[str]) -> dict[str, str]:
    """What a module, or a class in it, assigns to names, as syntax; nothing where its source cannot be read."""
    file = getattr(sys.modules.get(module), "__file__", None)
    body: list[ast.stmt] = list(_tree(file).body) if file else []
    for name in path:
        body = next((node.body for node in body if isinstance(node, ast.ClassDef) and node.name == name), list[ast.stmt]())
    out: dict[str, str] = {}
    for node in body:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            out |= {t.id: ast.dump(node.value) for t in targets if isinstance(t, ast.Name)}
    return out


def _tree(file: str) -> ast.Module:
    try:
        text = Path(file).read_bytes()
        return ast.parse(text)
    except (OSError, SyntaxError, ValueError):
        return ast.Module(body=[], type_ignores=[])
