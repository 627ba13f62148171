"""Whether a class may stand where a type is declared: by inheritance, or by the members of a protocol."""

from __future__ import annotations

import dataclasses
from functools import cache
from inspect import get_annotations, isfunction, signature
from typing import Any

from assay.core.fields import union_members

__all__ = ["fits", "meant", "missing_members"]


def fits(kind: type[Any], declared: Any) -> bool:
    """Whether an instance may stand where ``declared`` is: a subclass of a class, or what has the members of a protocol."""
    return any(_fits_one(kind, option) for option in union_members(declared))


def _fits_one(kind: type[Any], option: Any) -> bool:
    if option is Any or option is object:
        return True
    if not isinstance(option, type):
        return False
    if not getattr(option, "_is_protocol", False):
        return issubclass(kind, option)
    names = {f.name for f in dataclasses.fields(kind)}
    methods = _members(option) - names
    alike = all(hasattr(kind, m) and _called_alike(getattr(kind, m), getattr(option, m, None)) for m in methods)
    return alike and (methods != {"build"} or _builds_alike(kind, option))


def _builds_alike(kind: type[Any], option: type[Any]) -> bool:
    """Whether what ``build`` gives has the methods of what the protocol's gives: settings that only ``build`` all look alike.

    True where an annotation names no class that can be found here, such as one that only type checkers import.
    """
    made, wanted = _result_class(getattr(kind, "build", None)), _result_class(getattr(option, "build", None))
    if made is None or wanted is None or not getattr(wanted, "_is_protocol", False):
        return True
    return all(hasattr(made, m) for m in _members(wanted) if callable(getattr(wanted, m, None)))


def _result_class(build: Any) -> type[Any] | None:
    """The class that the annotation of a method's result names; None where that is not to be found."""
    named = getattr(build, "__annotations__", {}).get("return")
    found = getattr(build, "__globals__", {}).get(named) if isinstance(named, str) else named
    return found if isinstance(found, type) else None


def meant(kind: type[Any], declared: Any) -> bool:
    """Whether a part that `fits` is also written for the place: ``build`` takes what the protocol's takes, by name.

    Settings whose ``build`` gives a class that only type checkers import fit wherever something is built. They are taken where
    they are asked for, and not listed among what is known.
    """
    options = [o for o in union_members(declared) if getattr(o, "_is_protocol", False) and _members(o) - {"build"} == set()]
    return not options or any(list(signature(kind.build).parameters) == list(signature(o.build).parameters) for o in options)


def missing_members(kind: type[Any], declared: Any) -> str:
    """What a class would need besides to fit, where one protocol is declared."""
    options = [o for o in union_members(declared) if getattr(o, "_is_protocol", False)]
    if len(options) != 1:
        return ""
    names = {f.name for f in dataclasses.fields(kind)}
    missing = sorted(m for m in _members(options[0]) - names if not hasattr(kind, m))
    others = sorted(
        m for m in _members(options[0]) - names - {*missing} if not _called_alike(getattr(kind, m), getattr(options[0], m, None))
    )
    lacks = [f"it has no {', '.join(missing)}"] * bool(missing)
    lacks += [f"{', '.join(others)} cannot be called with the arguments of the protocol"] * bool(others)
    return f": {' and '.join(lacks)}, which {options[0].__name__} asks for" if lacks else ""


@cache
def _members(protocol: type[Any]) -> set[str]:
    bases = [b for b in protocol.__mro__ if getattr(b, "_is_protocol", False)]
    named = {n for b in bases for n in (*vars(b), *get_annotations(b))}
    return {n for n in named if not n.startswith("_") or n == "__call__"}


def _called_alike(method: Any, promised: Any) -> bool:
    """Whether a method can be called with as many arguments as its protocol says; True for what is no method."""
    if not (isfunction(method) and isfunction(promised)):
        return True
    count = len(signature(promised).parameters)
    own = signature(method).parameters.values()
    needed = sum(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in own)
    return needed <= count and (len(own) >= count or any(p.kind is p.VAR_POSITIONAL for p in own))
