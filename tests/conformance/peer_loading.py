"""Other libraries' numeric files: imported where that works, else read from a folder of unpacked wheels or repositories.

A library's ``__init__`` often needs a cluster's worth of packages, while its formulas need torch alone. So a package may be
registered as an empty shell whose ``__init__`` does not run, what is missing or heavy may be replaced by a stand-in that takes
anything, and single functions may be taken out of a file. All of it happens in a process of its own (`run_peer`).
"""

import ast
import importlib
import importlib.abc
import importlib.machinery
import math
import os
import sys
import types
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

FOLDER = "ASSAY_PEERS"
"""Environment variable: a folder with an entry per library (verl, trl, ...), each an unpacked wheel or a repository."""


class Absent(Exception):
    """A library is neither installed nor in the folder."""


class Settings(SimpleNamespace):
    """A configuration: attributes, ``get``, ``in``."""

    def get(self, name: str, default: Any = None) -> Any:
        return getattr(self, name, default)

    def __contains__(self, name: str) -> bool:
        return hasattr(self, name)


class Anything:
    """Stands for whatever an import asked for: a base, a decorator, a type with parameters, a function."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return args[0] if len(args) == 1 and callable(args[0]) and not kwargs else self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, key: Any) -> Any:
        return self

    def __class_getitem__(cls, key: Any) -> Any:
        return cls


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers for some modules and all below them."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        mine = any(fullname == n or fullname.startswith(n + ".") for n in self.names)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True) if mine else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = types.ModuleType(spec.name)
        module.__getattr__ = lambda name: _anything(name)  # type: ignore[method-assign]
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def _anything(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (Anything,), {}) if name[:1].isupper() else Anything()


def root_of(library: str, file: str) -> Path:
    """The folder that ``file`` (``package/module.py``) is relative to."""
    folder = os.environ.get(FOLDER)
    if folder:
        place = (Path(folder) / library).resolve()
        depth = len(Path(file).parts)
        for found in sorted(place.rglob(Path(file).name)):
            if found.as_posix().endswith("/" + file):
                return found.parents[depth - 1]
    raise Absent(f"{library} is not installed, and ${FOLDER} has no {library}/.../{file}")


def version_of(library: str, root: Path | None, distribution: str) -> str:
    """What was read: a released version, or that it is a repository."""
    from importlib.metadata import version

    if root is None:
        return version(distribution)
    place = (Path(os.environ[FOLDER]) / library).resolve()
    found = sorted(i.name for i in place.rglob("*.dist-info"))
    return found[0].removesuffix(".dist-info").rpartition("-")[2] if found else "repository"


def missing(*names: str) -> list[str]:
    """Those of the top-level packages that cannot be imported."""
    out = []
    for name in names:
        try:
            importlib.import_module(name)
        except Exception:  # a broken package is as good as none
            sys.modules.pop(name, None)
            out.append(name)
    return out


def forget(package: str) -> None:
    """Removes what a failed import left behind."""
    for name in [n for n in sys.modules if n == package or n.startswith(package + ".")]:
        del sys.modules[name]


def stand_in(*names: str) -> None:
    """Registers stand-ins for modules."""
    sys.meta_path.insert(0, StandIns(names))


def shells(root: Path, *packages: str) -> None:
    """Registers packages without running their ``__init__``."""
    for name in packages:
        module = types.ModuleType(name)
        module.__path__ = [str(root / name.replace(".", "/"))]
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent in sys.modules:
            setattr(sys.modules[parent], child, module)


def module(name: str, **attributes: Any) -> types.ModuleType:
    """Registers a module with these attributes; whatever else is asked of it is a stand-in."""
    made = types.ModuleType(name)
    made.__dict__.update(attributes)
    made.__getattr__ = _anything  # type: ignore[method-assign]
    sys.modules[name] = made
    parent, _, child = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], child, made)
    return made


def taken(path: Path, names: Sequence[str], **given: Any) -> SimpleNamespace:
    """Single functions, classes and methods (``Class.method``) of a file, defined without running the rest of it.

    Annotations and decorators are dropped.
    """
    scope: dict[str, Any] = {
        "torch": torch,
        "np": np,
        "math": math,
        "F": torch.nn.functional,
        "defaultdict": defaultdict,
        **given,
    }
    wanted = set(names)
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        inner = node.body if isinstance(node, ast.ClassDef) else []
        found = [node] if getattr(node, "name", "") in wanted else []
        found += [n for n in inner if f"{getattr(node, 'name', '')}.{getattr(n, 'name', '')}" in wanted]
        for each in found:
            exec(compile(ast.Module([_bare(each)], []), str(path), "exec"), scope)
    return SimpleNamespace(**{n.rpartition(".")[2]: scope[n.rpartition(".")[2]] for n in names})


def _bare(node: Any) -> Any:
    for each in ast.walk(node):
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
            each.decorator_list, each.returns = [], None
            for argument in (*each.args.args, *each.args.kwonlyargs, *each.args.posonlyargs):
                argument.annotation = None
    return node


def uncompiled(load: Callable[[], Any]) -> Any:
    """Runs ``load`` while ``torch.compile`` changes nothing."""
    real = torch.compile

    def same(*args: Any, **kwargs: Any) -> Any:
        return args[0] if args and callable(args[0]) else lambda f: f

    torch.compile = same  # type: ignore[assignment]
    try:
        return load()
    finally:
        torch.compile = real
