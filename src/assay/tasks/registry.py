"""Families by name, and what there is to know about one.

A family of your own gets a name by one line in ``_FAMILIES``: its name, and ``module:what``, a class or function that gives it
without arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

import numpy as np

from assay.core.errors import UnknownNameError
from assay.core.protocols import TaskSource
from assay.core.task import Task
from assay.tasks.problems import Problems

__all__ = ["Card", "card", "families", "family"]

_FAMILIES = {
    "arithmetic": "assay.tasks.math.arithmetic:arithmetic",
    "keyvalue": "assay.tasks.keyvalue:KeyValue",
    "reverse": "assay.tasks.reverse:Reverse",
    "sort": "assay.tasks.sort:SortDigits",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A family in words and one example, for listings.

    Attributes:
        name: of the family.
        summary: first line of its docstring.
        arms: each arm with its levels.
        example: the first training task of its lowest level.
        verifier: how answers are judged.
        has_trace: whether an oracle can demonstrate it.
        has_tools: whether it is played in an environment.
        trace: the oracle's turns for the example as (role, text); () without an oracle.
    """

    name: str
    summary: str
    arms: Mapping[str, tuple[int, ...]]
    example: Task
    verifier: str
    has_trace: bool
    has_tools: bool
    trace: tuple[tuple[str, str], ...]


def families() -> tuple[str, ...]:
    """Names of the built-in families, sorted.

    >>> "sort" in families()
    True
    """
    return tuple(sorted(_FAMILIES))


def family(name: str) -> TaskSource:
    """The built-in family of that name with its default settings; ``family/problem`` gives one of its arms alone.

    Raises:
        UnknownNameError: no such family or arm; says the nearest name.

    >>> family("sort").arms()["sort"][0], list(family("arithmetic/expression").arms())
    (3, ['arithmetic/expression'])
    """
    head, slash, _ = name.partition("/")
    if head not in _FAMILIES:
        raise UnknownNameError("task family", head, _FAMILIES)
    module, kind = _FAMILIES[head].split(":")
    found: TaskSource = getattr(import_module(module), kind)()
    if not slash:
        return found
    if not isinstance(found, Problems):
        raise UnknownNameError(f"arm of {head}", name, found.arms())
    return found.only(name)


def card(source: TaskSource) -> Card:
    """What there is to know about a family.

    >>> card(family("keyvalue")).has_tools
    True
    """
    arms = source.arms()
    arm = next(iter(arms))
    example = source.task(arm, arms[arm][0], "train", 0)
    trace = source.trace(example, 0.0, np.random.default_rng(0))
    return Card(
        name=source.name,
        summary=_summary(source, arm),
        arms=arms,
        example=example,
        verifier=repr(source.verifier()),
        has_trace=trace is not None,
        has_tools=source.environment(example.exposed()) is not None,
        trace=tuple((m.role, m.content) for m in trace or ()),
    )


def _summary(source: TaskSource, arm: str) -> str:
    """The first line of the docstring of what makes the tasks."""
    kind = type(source.problem(arm) if isinstance(source, Problems) and len(source.problems) == 1 else source)
    return (kind.__doc__ or "").strip().split("\n")[0]
