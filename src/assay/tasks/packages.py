"""Packages that offer task families: anybody's, found through the entry point ``assay.tasks``.

A package says in its ``pyproject.toml`` where its catalog is::

    [project.entry-points."assay.tasks"]
    my_tasks = "my_tasks.catalog"

and that module has ``FAMILIES``, a mapping from names to ``module:what`` (a class or function that gives the family without
arguments), and where it likes ``SUITES``, a mapping from names to `Suite`, and ``READERS``, a mapping from the end of a file's
name (``.toml``) to a function that makes a family of such a file. assay's own families come in the same way, from
``assay_tasks``. Names are imported when they are asked for, so a package that is broken spoils no other.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import FunctionType
from typing import Any, cast

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, UnknownNameError, a_kind
from assay.core.protocols import TaskSource

__all__ = ["GROUP", "Installed", "Suite", "installed_packages"]

GROUP = "assay.tasks"
"""The group of entry points."""

UNNAMED = "rows"
"""Name of `assay.tasks.Rows` that were given none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """What all installed packages offer.

    Attributes:
        families: name to ``module:what``.
        suites: by name.
        readers: end of a file's name to ``module:function``.
        clashes: names that two packages offer, neither of them assay, and which.
        broken: packages whose catalog cannot be read, and why.
        packages: each name with the distribution that offers it; "" where its entry point says none.
        hidden: names of assay's own that another package offers too, and which: assay's own are used.
    """

    families: Mapping[str, str]
    suites: Mapping[str, Suite]
    readers: Mapping[str, str]
    clashes: Mapping[str, str]
    broken: Mapping[str, str]
    packages: Mapping[str, str] = field(default_factory=FrozenMap)
    hidden: Mapping[str, str] = field(default_factory=FrozenMap)

    def family(self, name: str) -> TaskSource:
        """The family of that name with its default settings; rows that have no name of their own take this one.

        Raises:
            UnknownNameError: no package offers it.
            ConfigError: two packages do, or what is there is no family.
        """
        if name in self.clashes:
            raise ConfigError(f"task family {name!r} is offered by {self.clashes[name]}; uninstall one of them")
        self.warn_hidden(name)
        if name not in self.families:
            self._say_broken(name)
            raise UnknownNameError("task family", name, [*self.families, *self.suites])
        module, _, what = self.families[name].partition(":")
        try:
            found: Any = getattr(import_module(module), what)()
        except Exception as error:
            raise ConfigError(f"task family {name!r}: cannot load {self.families[name]!r} ({error})") from error
        return _named_source(found, name)

    def summary(self, name: str) -> str:
        """What the function that gives a family says of it in one line; "" where a class does, or it says nothing."""
        module, _, what = self.families.get(name, "").partition(":")
        maker = getattr(sys.modules.get(module), what, None)
        return (maker.__doc__ or "").strip().partition("\n")[0] if isinstance(maker, FunctionType) else ""

    def read(self, file: str) -> TaskSource | None:
        """The family that a file describes; None where no package reads files of this kind.

        Raises:
            ConfigError, DataError: as its reader says.
        """
        what = next((target for end, target in self.readers.items() if file.endswith(end)), None)
        if what is None:
            return None
        module, _, name = what.partition(":")
        found: TaskSource = getattr(import_module(module), name)(file)
        return found

    def warn_hidden(self, name: str) -> None:
        """Says on standard error, once, which package offers a name of assay's own that is not used."""
        if name in self.hidden:
            _warn(f"warning: {self.hidden[name]} also offers {name!r}, a name of assay's own, which is used; rename it there")

    def _say_broken(self, name: str) -> None:
        if self.broken:
            reasons = "; ".join(f"{package}: {why}" for package, why in self.broken.items())
            raise ConfigError(f"no task family {name!r}, and packages of tasks that cannot be read: {reasons}")


@cache
def installed_packages() -> Installed:
    """The families and suites of all installed packages.

    Raises:
        ConfigError: no package offers any, not even assay's own: the installation is not whole.

    >>> installed_packages().families["sort"]
    'assay_tasks.sort:SortDigits'
    """
    return read_catalogs(tuple(entry_points(group=GROUP)))


installed = installed_packages
"""What packages import that `assay tasks export` wrote before the function had this name."""


def read_catalogs(points: tuple[EntryPoint, ...]) -> Installed:
    """What these entry points offer; a name of two packages is kept as a clash, or as hidden where assay's own is one of them; a
    catalog that cannot be read is kept as broken.

    Raises:
        ConfigError: there is no entry point.
    """
    if not points:
        raise ConfigError(
            f"no installed package has an entry point {GROUP!r}, and assay's own has one: install it again, 'pip install -e .' "
            "in a checkout, 'pip install assay-rl' elsewhere"
        )
    families: dict[str, str] = {}
    suites: dict[str, Suite] = {}
    readers: dict[str, str] = {}
    owners: dict[str, str] = {}
    clashes: dict[str, str] = {}
    broken: dict[str, str] = {}
    packages: dict[str, str] = {}
    hidden: dict[str, str] = {}
    own: set[str] = set()
    for point in sorted(
        set(points), key=lambda p: (not _is_own(p), p.name, p.value)
    ):  # assay's own first: a name's first is used
        package, owner = _package_and_owner(point)
        try:
            catalog = point.load()
            offered = [_check_mapping(catalog, *kind) for kind in (("FAMILIES", str), ("SUITES", Suite), ("READERS", str))]
            if not any(offered):
                raise ConfigError("offers nothing: give it FAMILIES, SUITES or READERS")
        except Exception as error:  # somebody else's module may fail in any way, and spoils no other
            broken[owner] = f"{type(error).__name__}: {error}"
            continue
        for name in (name for names in offered for name in names):
            if _is_own(point):
                own.add(name)
            elif name in own:
                hidden[name] = f"{hidden[name]} and {owner}" if name in hidden else owner
            elif name in owners:
                clashes[name] = f"{owners[name]} and {owner}"
            owners.setdefault(name, owner)
            packages.setdefault(name, package)
        families = {**offered[0], **families}
        suites = {**offered[1], **suites}
        readers = {**offered[2], **readers}
    return Installed(
        families=families, suites=suites, readers=readers, clashes=clashes, broken=broken, packages=packages, hidden=hidden
    )


def _named_source(source: TaskSource, name: str) -> TaskSource:
    """The family itself, or rows under the name that a catalog gives them."""
    if getattr(source, "name", name) != UNNAMED:
        return source
    from assay.tasks.rows import Rows

    return replace(source, name=name) if isinstance(source, Rows) else source


def _is_own(point: EntryPoint) -> bool:
    """Whether it names a catalog of assay's own."""
    return point.value.startswith("assay_tasks.")


@cache
def _warn(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _package_and_owner(point: EntryPoint) -> tuple[str, str]:
    """The package of an entry point, and how messages name it; to ask for the package's name parses all of its metadata."""
    package = point.dist.name if point.dist else ""
    return package, f"{package or 'a package'} ({point.value})"


def _check_mapping(catalog: Any, name: str, kind: type) -> dict[str, Any]:
    """The mapping of a catalog, empty where it has none.

    Raises:
        ConfigError: no mapping from names to ``kind``.
    """
    found: Any = getattr(catalog, name, {})
    if not isinstance(found, Mapping):
        raise ConfigError(f"{name} is {a_kind(found)}, not a mapping from names to {kind.__name__}")
    for key, value in cast("Mapping[Any, Any]", found).items():
        right = isinstance(key, str) and isinstance(value, kind) and (kind is not str or ":" in value)
        if not right:
            raise ConfigError(f"{name}[{key!r}] is {value!r}; give a name and {'module:what' if kind is str else kind.__name__}")
    return dict(cast("Mapping[str, Any]", found))
