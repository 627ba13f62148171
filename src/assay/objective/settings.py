"""Settings of methods and parts, read strictly: each of its declared kind, none NaN, infinite only where no bound is meant."""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache, wraps
from types import NoneType
from typing import Any, Literal, ParamSpec, TypeVar, cast, get_args, get_origin

from assay.core.errors import ConfigError, a_kind
from assay.core.fields import hints_of, resolve_annotation, spell, union_members

__all__ = ["BOUNDS", "check_parts", "check_setting", "with_checks"]

P = ParamSpec("P")
R = TypeVar("R")

BOUNDS: Mapping[str, float] = {
    "cap": math.inf,
    "high": math.inf,
    "bound": math.inf,
    "most": math.inf,
    "free_high": math.inf,
    "low": -math.inf,
    "least": -math.inf,
    "floor": -math.inf,
}
"""Settings that bound something, each with the infinity that stands for no bound."""


def with_checks(make: Callable[P, R]) -> Callable[P, R]:
    """A method's constructor that refuses settings of the wrong kind before it is run.

    Raises:
        ConfigError: from the constructor: a setting is not what its annotation says, is NaN, or is infinite and no bound.

    >>> @with_checks
    ... def scaled(beta: float = 0.1) -> float:
    ...     return beta
    >>> scaled(2), scaled(beta=0.5)
    (2, 0.5)
    >>> scaled(float("inf"))
    Traceback (most recent call last):
    assay.core.errors.ConfigError: scaled(beta=inf): use a finite number
    """
    declared = inspect.signature(make)

    @wraps(make)
    def call_checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name, value in declared.bind_partial(*args, **kwargs).arguments.items():
            parameter = declared.parameters[name]
            if value is not parameter.default:
                where = f"{make.__name__}({name}={value!r:.60})"
                check_setting(
                    where, value, _kind(make, name), parameter.default if _is_inf(parameter.default) else BOUNDS.get(name)
                )
        return make(*args, **kwargs)

    return call_checked


def check_setting(where: str, value: Any, declared: Any, infinity: float | None = None) -> None:
    """Raises ConfigError when a value is not what is declared, is NaN, or is infinite and not ``infinity``.

    Args:
        where: the place and the value, for the message.
        value: what was given; containers are looked through.
        declared: a type; what it leaves open is not judged.
        infinity: the infinity that means something here.
    """
    kinds = union_members(declared)
    if not any(_is_kind(value, kind) for kind in kinds):
        raise ConfigError(f"{where}: {a_kind(value)}, where {spell(declared)} is declared")
    if isinstance(value, tuple | list):
        for i, item in enumerate(cast("Sequence[Any]", value)):
            check_setting(f"{where}, entry {i}", item, _entry(kinds, i), infinity)
    elif isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
        if math.isnan(value):
            raise ConfigError(f"{where}: use a number")
        if math.isinf(value) and float(value) != infinity:
            raise ConfigError(f"{where}: use a finite number")


def check_parts(part: Any) -> None:
    """Raises ConfigError when a setting of a part, or of a part in it, is not what its class declares, or is NaN.

    What an infinity means is each part's own affair.

    >>> from assay.objective import MinClip
    >>> check_parts(MinClip(low=0.1))
    """
    if isinstance(part, tuple | list):
        for item in cast("Sequence[Any]", part):
            check_parts(item)
    elif is_dataclass(part) and not isinstance(part, type):
        hints = hints_of(type(part))
        for name in [f.name for f in fields(part) if f.init]:
            value: Any = getattr(part, name)
            infinity = float(value) if isinstance(value, numbers.Real) and _is_inf(value) else math.inf
            check_setting(f"{type(part).__name__}.{name}={value!r:.60}", value, hints[name], infinity)
            check_parts(value)


@cache
def _kind(make: Any, name: str) -> Any:
    """What a constructor declares of a setting; Any where only type checkers can resolve it."""
    return resolve_annotation(inspect.get_annotations(make).get(name, Any), make.__module__)


def _is_kind(value: Any, kind: Any) -> bool:
    """Whether a value can be of a kind; True where that cannot be told."""
    origin = get_origin(kind) or kind
    if origin is Literal:
        return value in get_args(kind)
    if origin is bool or origin is str:
        return isinstance(value, origin)
    if origin is int or origin is float:
        return not isinstance(value, bool) and isinstance(value, numbers.Integral if origin is int else numbers.Real)
    if origin is NoneType or origin is None:
        return value is None
    if origin is tuple:
        return isinstance(value, tuple) and _fits(len(cast("tuple[Any, ...]", value)), get_args(kind))
    if origin is Any or not isinstance(origin, type) or getattr(origin, "_is_protocol", False):
        return True
    return isinstance(value, origin)


def _fits(size: int, entries: tuple[Any, ...]) -> bool:
    """Whether a tuple may be so long."""
    return not entries or entries[-1] is Ellipsis or len(entries) == size


def _entry(kinds: tuple[Any, ...], i: int) -> Any:
    """What is declared of an entry of a tuple."""
    for kind in kinds:
        entries = get_args(kind)
        if get_origin(kind) is tuple and entries:
            return entries[0] if entries[-1] is Ellipsis else entries[min(i, len(entries) - 1)]
    return Any


def _is_inf(value: Any) -> bool:
    return isinstance(value, float) and math.isinf(value)
