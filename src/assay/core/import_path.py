"""Names of classes and functions, ``module:Name``, and the way back."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import is_dataclass
from enum import Enum
from importlib import import_module
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, TypeVar, cast

from assay.core.errors import ConfigError, UnknownNameError, a_kind
from assay.core.moved_modules import filed_module, module_of_filed

__all__ = ["Function", "filed_as", "load_class", "load_function", "load_part", "name_of", "name_of_callable"]

Function = FunctionType | BuiltinFunctionType
Class = TypeVar("Class", bound=type)

_FILED: dict[object, str] = {}
_CALLED: dict[str, object] = {}


def filed_as(name: str) -> Callable[[Class], Class]:
    """Class decorator: the name by which files know a class that lives in another module than the name says.

    Files outlive modules: what they call a part, and every digest over such files, stays when the part moves. The module that
    the name says must import the one that has the class, so that the way back is found.

    Args:
        name: ``module:Name``.

    >>> from assay.train import WarmUp
    >>> WarmUp.__module__, name_of(WarmUp)
    ('assay.train.warmup', 'assay.train.run:WarmUp')
    """

    def decorate(cls: Class) -> Class:
        _FILED[cls], _CALLED[name] = name, cls
        return cls

    return decorate


def name_of(value: type | Callable[..., Any]) -> str:
    """``module:Name`` of a class or function, or ``FILE.py:Name`` of one that no import can find again; or what `filed_as` says.

    Lambdas, functions inside functions, and what a script or notebook defines (module ``__main__``) have no import path; their
    name says where they stood, and loading it is an error.

    >>> name_of(ConfigError)
    'assay.core.errors:ConfigError'
    """
    if value in _FILED:
        return _FILED[value]
    module, qualified = value.__module__, value.__qualname__
    if module != "__main__" and _walk(sys.modules.get(module), qualified) is value:
        return f"{filed_module(module)}:{qualified}"
    return _in_file(value)


def name_of_callable(value: Any) -> str:
    """What files call an object that can be called and is no function: a bound method, or an instance of a class.

    A method of a class is found again by this name; an instance is not: its name says its class, and loading it is an error.

    >>> from fractions import Fraction
    >>> name_of_callable(Fraction.from_float)
    'fractions:Fraction.from_float'
    """
    owner: Any = getattr(value, "__self__", None)
    if isinstance(owner, type):
        return f"{name_of(cast('type[Any]', owner))}.{value.__name__}"
    if isinstance(value, MethodType):
        return f"{_in_file(type(owner))}().{value.__name__}"
    return f"{_in_file(cast('type[Any]', type(value)))}()"


def _in_file(value: Any) -> str:
    """``FILE.py:Name``."""
    try:
        file = inspect.getsourcefile(value) or "unknown.py"
    except (TypeError, OSError):  # a class of __main__ without a file, as in an interactive session
        file = "interactive.py"
    return f"{file if file.endswith('.py') else file + '.py'}:{value.__qualname__}"


def load_class(name: str, place: str) -> type[Any]:
    """The dataclass or enum called ``module:Name``; nothing else is ever called.

    Raises:
        ConfigError: not importable, or neither a dataclass nor an enum; names ``place``.
        UnknownNameError: the module has no such class.
    """
    found = _load(name, place)
    if isinstance(found, type) and (is_dataclass(found) or issubclass(found, Enum)):
        return found
    raise ConfigError(f"{place}: kind {name!r} is neither a dataclass nor an enum, so it is no part of a configuration")


def load_function(name: str, place: str) -> Callable[..., Any]:
    """The function called ``module:name``.

    Raises:
        ConfigError: not importable, or no function; names ``place``.
        UnknownNameError: the module has no such name.
    """
    found = _load(name, place)
    if isinstance(found, Function | MethodType):
        return found
    raise ConfigError(f"{place}: {name!r} is {a_kind(found)}, not a function")


def load_part(name: str, place: str) -> Any:
    """The function, the class or the dataclass's instance called ``module:name``, for places where each means something.

    Raises:
        ConfigError: not importable, or none of these; names ``place``.
        UnknownNameError: the module has no such name.

    >>> load_part("fractions:Fraction", "here").__name__
    'Fraction'
    """
    found = _load(name, place)
    return cast("Any", found) if isinstance(found, type) or is_dataclass(found) else load_function(name, place)


def _load(name: str, place: str) -> object:
    module_name, colon, qualified = name.rpartition(":")
    if not colon or not module_name or not qualified:
        raise ConfigError(f"{place}: {name!r} is no import path; write 'module:Name'")
    if module_name.endswith(".py"):
        raise ConfigError(
            f"{place}: {qualified} was defined in {module_name} where no import can find it (a script, notebook, lambda, inner "
            "function, or an object that is no dataclass); move it to the top of a module on the Python path and name it "
            "'module:name'"
        )
    try:
        module = import_module(module_of_filed(module_name))
    except ImportError as failure:
        raise ConfigError(
            f"{place}: cannot import {module_name!r} of {name!r} ({failure}); is its folder on PYTHONPATH?"
        ) from failure
    try:
        found = _CALLED.get(name) or _walk(module, qualified)
    except ImportError as moved:  # a name that its package had once says where it is now
        raise ConfigError(f"{place}: {moved}") from moved
    if found is None:
        known = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
        raise UnknownNameError(f"name in module {module_name!r} ({place})", qualified, known)
    return found


def _walk(found: object, qualified: str) -> object:
    for part in qualified.split("."):
        found = getattr(found, part, None)
    return found
