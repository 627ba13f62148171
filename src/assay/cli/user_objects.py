"""Functions and objects of a person's own files and modules, by the word that names them."""

from __future__ import annotations

import importlib
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from assay.cli.user_files import USER_FILES, module_of
from assay.core.errors import ConfigError, UnknownNameError

__all__ = ["default_parameters", "error_text", "first_line", "named_object", "user_files", "user_modules"]


def user_modules() -> tuple[str, ...]:
    """Names of the modules that were loaded from a person's own files."""
    return tuple(USER_FILES)


def user_files() -> tuple[str, ...]:
    """Absolute paths of the same."""
    return tuple(str(p) for p in USER_FILES.values())


def first_line(value: object) -> str:
    """First line of a docstring."""
    return inspect.cleandoc(value.__doc__ or "").split("\n")[0]


def error_text(error: BaseException) -> str:
    """An error of a person's own code: its type, its text, and where it was raised, if possible in their own file."""
    places = traceback.extract_tb(error.__traceback__)
    place = next((p for p in reversed(places) if p.filename in user_files()), places[-1])
    return f"{type(error).__name__}: {error} ({Path(place.filename).name}, line {place.lineno})"


def default_parameters(function: Callable[..., Any], what: str) -> Mapping[str, inspect.Parameter]:
    """The parameters of a function that is about to be called without any.

    Raises:
        ConfigError: one has no default.
    """
    found = inspect.signature(function).parameters
    for p in found.values():
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise ConfigError(f"{what} needs a value for {p.name!r}; give the parameter a default")
    return found


def named_object(word: str, what: str) -> object:
    """The object that ``my_file.py:name`` or ``package.module:name`` names.

    Raises:
        ConfigError, UnknownNameError: there is none.
    """
    where, _, name = word.rpartition(":")
    if not where or not name:
        raise ConfigError(f"{what} {word!r}: {_what_lacks(word, where, name)}")
    module = sys.modules[module_of(where)] if where.endswith(".py") else _module(where)
    if not hasattr(module, name):
        offered = getattr(module, "__all__", None) or [n for n, v in vars(module).items() if _own(n, v, module)]
        if what == "recipe":  # called without arguments: neither rows nor rewards
            offered = [n for n in offered if _is_recipe(getattr(module, n, None))]
        raise UnknownNameError(f"{what} in {where}", name, offered)
    return getattr(module, name)


def _what_lacks(word: str, where: str, name: str) -> str:
    """Which half of ``my_file.py:name`` a word lacks, and how to write it."""
    if name.endswith(".py"):
        return f"that is a file only; say which function: {name}:my_function"
    if where:
        return f"no name stands behind the colon; give {where}:my_function"
    return f"it names no file or module; give my_file.py:{name or 'my_function'} or package.module:{name or 'my_function'}"


def _is_recipe(value: object) -> bool:
    """Whether something may be a recipe: a function that can be called without arguments."""
    if not isinstance(value, FunctionType):
        return False
    parameters = inspect.signature(value).parameters.values()
    return all(p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)


def _own(name: str, value: object, module: ModuleType) -> bool:
    """Whether a module's name is its own: public, no module, no class or function from elsewhere."""
    if name.startswith("_") or isinstance(value, ModuleType):
        return False
    return not isinstance(value, type | FunctionType) or value.__module__ == module.__name__


def _module(where: str) -> ModuleType:
    try:
        return importlib.import_module(where)
    except ImportError as error:
        raise ConfigError(f"cannot import {where}: {error}") from error
    except (Exception, SystemExit) as error:  # of its own code, or of a name that begins with a dot
        raise ConfigError(f"cannot import {where}: {type(error).__name__}: {error}") from error
