"""Names that a package offers and imports when they are first asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

from assay.core.util.renamed import RENAMED

__all__ = ["lazy_exports"]

Load = Callable[[str], object]


def lazy_exports(
    package: str,
    home: Mapping[str, str],
    *,
    moved: Mapping[str, str] | None = None,
    renamed: Mapping[str, Mapping[str, str]] = RENAMED,
    load: Load = import_module,
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a package (PEP 562).

    Args:
        package: ``__name__`` of the package.
        home: module below the package (or by its whole name, ``assay....``), and the names that it has, separated by spaces.
        moved: names that the package had once, and where each is now: asking for one says so.
        renamed: by package, names that it had once and what each is called now: asking for one says so.
        load: imports a module by its name.

    >>> find, names = lazy_exports("assay.core", {"seeds": "derive"}, moved={"old": "assay.verify"})
    >>> find("derive").__module__
    'assay.core.seeds'
    >>> find("old")
    Traceback (most recent call last):
    ImportError: assay.core has no 'old' any more; write: from assay.verify import old
    >>> find, names = lazy_exports("assay.core", {"seeds": "derive"}, renamed={"assay.core": {"Seed": "derive"}})
    >>> find("Seed")
    Traceback (most recent call last):
    ImportError: assay.core.Seed is called derive now; write: from assay.core import derive
    """
    called = renamed.get(package, {})
    where = {name: module for module, names in home.items() for name in names.split()}

    def find(name: str) -> object:
        if name in where:
            module = where[name]
            return getattr(load(module if module.startswith("assay.") else f"{package}.{module}"), name)
        if moved and name in moved:
            now = renamed.get(moved[name], {}).get(name, name)
            raise ImportError(f"{package} has no {name!r} any more; write: from {moved[name]} import {now}")  # kept by `from`
        if name in called:
            raise ImportError(f"{package}.{name} is called {called[name]} now; write: from {package} import {called[name]}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *where})

    return find, names
