"""Suites: families that belong together, by name, of all installed packages (`assay.tasks.packages`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from assay.core.errors import UnknownNameError
from assay.core.protocols import TaskSource
from assay.tasks.mixture import TaskMixture
from assay.tasks.packages import Suite, installed_packages

__all__ = ["suite", "suite_summary", "suites"]


def suites() -> tuple[str, ...]:
    """Names of the suites of all installed packages, sorted.

    >>> suites()
    ('assay-logic', 'assay-six', 'assay-small')
    """
    return tuple(sorted(installed_packages().suites))


def suite_summary(name: str) -> str:
    """What a suite is, in one line.

    Raises:
        UnknownNameError: no such suite; says the nearest.
    """
    return _find_suite(name).summary


def suite(name: str) -> TaskMixture:
    """The suite of that name; ``name/part`` is one of its parts alone.

    Where a suite has parts, they count alike, however many families and arms each has: `TaskMixture.balance_parts` gives the
    curriculum,
    and `in_turn` takes one task of each part after the other.

    Raises:
        UnknownNameError: no such suite, or no such part; says the nearest.

    Carries: SynLogic (arXiv 2505.19641), in part.

    >>> six = suite("assay-six")
    >>> list(six.members()), six.balance_parts().parts["logic"]
    (['math', 'code', 'science', 'logic', 'simulation', 'tabular'], ('graphs', 'grids', 'knaves', 'riddles', 'sat'))
    >>> list(suite("assay-six/code").members()["code"])
    ['coding', 'sql']
    """
    whole, slash, part = name.partition("/")
    found = _find_suite(whole)
    if slash and part not in (found.parts or {}):
        raise UnknownNameError(f"part of {whole}", part, found.parts or {})
    parts = {part: (found.parts or {})[part]} if slash else found.parts
    names = found.families if parts is None else tuple(name for of_part in parts.values() for name in of_part)
    return TaskMixture(name=name.replace("/", "-"), sources=tuple(_family(name, found.levels) for name in names), parts=parts)


def _find_suite(name: str) -> Suite:
    known = installed_packages().suites
    if name not in known:
        raise UnknownNameError("suite", name, known)
    installed_packages().warn_hidden(name)
    return known[name]


def _family(name: str, levels: Mapping[str, tuple[int, ...]]) -> TaskSource:
    made: Any = installed_packages().family(name)
    return replace(made, levels=levels[name]) if name in levels else made
