"""A kind of module: its source, what a user may do with it, and names that it may go by."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from random import Random

__all__ = ["PACKAGE", "Example", "Kind", "Plant", "rename_identifiers"]

PACKAGE = "pkg"
"""The package's name before it is renamed."""

Example = tuple[list[str], str]
"""Statements, one to a line, and the expression whose value is looked at."""


@dataclass(frozen=True, slots=True)
class Plant:
    """A bug put in by hand, of a sort that no change of a single token makes.

    Attributes:
        sort: as `assay_tasks.swe.bugs.SORTS` names it.
        module: where.
        old: a text that stands there once.
        new: what stands there with the bug.
    """

    sort: str
    module: str
    old: str
    new: str


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """Modules that belong together: the first is the core, later ones use it.

    Attributes:
        name: of the kind.
        modules: name to source; they import each other relatively.
        names: identifiers with the names that they may go by, their own among them; several with blanks between them are
            renamed together.
        examples: each draws what a user may do with the first module, or with a later one, and look at.
        plants: bugs put in by hand.
    """

    name: str
    modules: Mapping[str, str]
    names: Mapping[str, tuple[str, ...]]
    examples: tuple[Callable[[Random], Example], ...]
    plants: tuple[Plant, ...] = ()

    @property
    def core(self) -> str:
        """The module that needs no other."""
        return next(iter(self.modules))

    def path(self, module: str) -> str:
        """Where a module stands before anything is renamed."""
        return f"{PACKAGE}/{module}.py"

    def draw_names(self, rng: Random) -> dict[str, str]:
        """A name for each identifier that may have another."""
        chosen = ((key.split(), rng.choice(others).split()) for key, others in self.names.items())
        return {old: new for olds, news in chosen for old, new in zip(olds, news, strict=True) if old != new}

    def imports(self, example: Example) -> list[str]:
        """The import lines that an example needs."""
        homes = _homes(self)
        used = sorted({word for text in (*example[0], example[1]) for word in _NAME.findall(text) if word in homes})
        return [
            f"from {PACKAGE}.{module} import {', '.join(names)}"
            for module in self.modules
            if (names := [word for word in used if homes[word] == module])
        ]


_NAME = re.compile(r"[A-Za-z_]\w*")
_TOP = re.compile(r"^(?:def|class) (\w+)", re.MULTILINE)


@lru_cache(maxsize=64)
def _homes(kind: Kind) -> dict[str, str]:
    """Names that the modules define at their top levels, each with its module."""
    return {name: module for module, source in kind.modules.items() for name in _TOP.findall(source)}


_WORD = re.compile(r'"{3}.*?"{3}|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#[^\n]*|[A-Za-z_]\w*', re.DOTALL)


def rename_identifiers(text: str, names: Mapping[str, str]) -> str:
    """Source in which identifiers have other names; strings and comments stay as they are.

    >>> rename_identifiers("stock.add('stock', stocks)", {"stock": "depot"})
    "depot.add('stock', stocks)"
    """
    return _WORD.sub(lambda found: names.get(found[0], found[0]), text)
