"""Families by name, and what there is to know about one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

import numpy as np

from assay.core.errors import UnknownNameError
from assay.core.protocols import TaskSource
from assay.core.task import Task

__all__ = ["Card", "card", "families", "family"]

_FAMILIES = {
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

    >>> families()
    ('keyvalue', 'reverse', 'sort')
    """
    return tuple(sorted(_FAMILIES))


def family(name: str) -> TaskSource:
    """The built-in family of that name, with its default settings.

    Raises:
        UnknownNameError: no such family; says the nearest name.

    >>> family("sort").arms()["sort"][0]
    3
    """
    if name not in _FAMILIES:
        raise UnknownNameError("task family", name, _FAMILIES)
    module, kind = _FAMILIES[name].split(":")
    return getattr(import_module(module), kind)()


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
        summary=(type(source).__doc__ or "").strip().split("\n")[0],
        arms=arms,
        example=example,
        verifier=repr(source.verifier()),
        has_trace=trace is not None,
        has_tools=source.environment(example.exposed()) is not None,
        trace=tuple((m.role, m.content) for m in trace or ()),
    )
