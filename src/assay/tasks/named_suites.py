"""Suites: families that belong together, by name.

A suite of your own gets a name by one entry in ``_SUITES``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from assay.core.canon import FrozenMap
from assay.core.errors import UnknownNameError
from assay.core.protocols import TaskSource
from assay.tasks.mixture import Mixture

__all__ = ["suite", "suite_summary", "suites"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Suite:
    """What a suite consists of.

    Attributes:
        summary: in one line.
        families: in the order of its arms; () for those of ``parts``.
        parts: its domains, each with its families; None where all arms count alike.
        levels: of families that do not have their default ones.
    """

    summary: str
    families: tuple[str, ...] = ()
    parts: Mapping[str, tuple[str, ...]] | None = None
    levels: Mapping[str, tuple[int, ...]] = field(default_factory=FrozenMap)


_SUITES: Mapping[str, _Suite] = {
    "assay-logic": _Suite(
        summary="Logic and puzzles: formulas, liars, grids, riddles, mazes, plans, numbers to make; each kind counts alike.",
        parts={name: (name,) for name in ("countdown", "grids", "knaves", "mazes", "plans", "riddles", "sat")},
    ),
    "assay-six": _Suite(
        summary="The six domains of Guru: mathematics, code, science, logic, simulation and tables; each counts alike.",
        parts={
            "math": ("algebra", "arithmetic", "calculus", "chance", "geometry", "numbers", "words"),
            "code": ("coding", "sql"),
            "science": ("science",),
            "logic": ("graphs", "grids", "knaves", "riddles", "sat"),
            "simulation": ("code", "simulation"),
            "tabular": ("tables",),
        },
    ),
    "assay-small": _Suite(
        summary="Eight families in a few characters, for models of a third of a million weights.",
        families=("sort", "reverse", "dedup", "gates", "knights", "largest", "octal", "strip"),
        levels={"reverse": (2, 3, 4, 5, 6, 7, 8, 9, 10)},
    ),
}


def suites() -> tuple[str, ...]:
    """Names of the built-in suites, sorted.

    >>> suites()
    ('assay-logic', 'assay-six', 'assay-small')
    """
    return tuple(sorted(_SUITES))


def suite_summary(name: str) -> str:
    """What a suite is, in one line.

    Raises:
        UnknownNameError: no such suite; says the nearest.
    """
    return _found(name).summary


def suite(name: str) -> Mixture:
    """The suite of that name; ``name/part`` is one of its parts alone.

    Where a suite has parts, they count alike, however many families and arms each has: `Mixture.balanced` gives the curriculum,
    and `in_turn` takes one task of each part after the other.

    Raises:
        UnknownNameError: no such suite, or no such part; says the nearest.

    >>> six = suite("assay-six")
    >>> list(six.members()), six.balanced().parts["logic"]
    (['math', 'code', 'science', 'logic', 'simulation', 'tabular'], ('graphs', 'grids', 'knaves', 'riddles', 'sat'))
    >>> list(suite("assay-six/code").members()["code"])
    ['coding', 'sql']
    """
    whole, slash, part = name.partition("/")
    found = _found(whole)
    if slash and part not in (found.parts or {}):
        raise UnknownNameError(f"part of {whole}", part, found.parts or {})
    parts = {part: (found.parts or {})[part]} if slash else found.parts
    names = found.families if parts is None else tuple(name for of_part in parts.values() for name in of_part)
    return Mixture(name=name.replace("/", "-"), sources=tuple(_family(name, found.levels) for name in names), parts=parts)


def _found(name: str) -> _Suite:
    if name not in _SUITES:
        raise UnknownNameError("suite", name, _SUITES)
    return _SUITES[name]


def _family(name: str, levels: Mapping[str, tuple[int, ...]]) -> TaskSource:
    from assay.tasks.registry import family  # which finds suites by name, too

    made: Any = family(name)
    return replace(made, levels=levels[name]) if name in levels else made
