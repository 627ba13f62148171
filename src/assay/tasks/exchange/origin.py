"""Where a family comes from: the distribution that has it, with its licence and authors, or a file and what that imports."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution, entry_points, packages_distributions
from pathlib import Path

import assay
from assay.core.errors import ConfigError
from assay.tasks.packages import GROUP, installed_packages

__all__ = ["FamilyOrigin", "check_license", "origin_of"]

OWN = "assay-rl"
"""assay's own distribution."""
_EXPRESSION = re.compile(r"\(*[A-Za-z0-9][A-Za-z0-9.+-]*\)*( (AND|OR|WITH) \(*[A-Za-z0-9][A-Za-z0-9.+-]*\)*)*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyOrigin:
    """Where a family comes from.

    Attributes:
        package: the distribution that offers it; "" for a file.
        version: of that distribution; "" for a file.
        license: its SPDX expression; "" where its metadata have none.
        authors: ``{"name": ..., "email": ...}`` each, as its metadata name them.
        dependencies: requirements that the family needs besides assay, each with the version that is installed here.
        modules: importable names that belong to it, which an export may not take.
    """

    package: str = ""
    version: str = ""
    license: str = ""
    authors: tuple[Mapping[str, str], ...] = ()
    dependencies: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()


def origin_of(name: str) -> FamilyOrigin:
    """Where the family comes from that a name names.

    Args:
        name: a family, an arm or a suite of an installed package, ``package.module:thing``, or a file (``FILE.py:thing``,
            ``rows.jsonl``, ``puzzle.toml``).

    Raises:
        ConfigError: no installed package has the module; or a file imports what no installed package has.
    """
    where, colon, _ = name.rpartition(":")
    if colon and where.endswith(".py"):
        return FamilyOrigin(dependencies=_imported_packages(Path(where)), modules=(Path(where).stem,))
    if not colon and name.endswith((".jsonl", ".toml")):
        return FamilyOrigin()
    known = installed_packages()
    members = [] if colon else _members(name)
    modules = [where] if colon else [known.families[member].partition(":")[0] for member in members]
    offers = [known.packages.get(word, "") for word in ([] if colon else [name.partition("/")[0], *members])]
    found = [distribution(package) for package in dict.fromkeys(offers) if package] or [_of_module(modules[0])]
    whole = {package.name: package for package in found}
    first = next((p for p in whole.values() if p.name != OWN), found[0])
    return FamilyOrigin(
        package=first.name,
        version=first.version,
        license=_license(first),
        authors=_authors(first),
        dependencies=tuple(_requirement(p) for p in whole.values() if p.name != OWN),
        modules=tuple(sorted({module.partition(".")[0] for module in modules})),
    )


def check_license(expression: str) -> str:
    """The expression as SPDX writes it, where the library packaging is here to know all names; else as it is.

    Raises:
        ConfigError: no SPDX expression.

    >>> check_license("MIT OR Apache-2.0")
    'MIT OR Apache-2.0'
    """
    fix = "give an SPDX identifier, such as MIT, Apache-2.0 or LicenseRef-Mine"
    if not _EXPRESSION.fullmatch(expression):
        raise ConfigError(f"license {expression!r} is no SPDX expression; {fix}")
    if importlib.util.find_spec("packaging") is None:
        return expression
    try:
        from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
    except ImportError:  # older than 24.2
        return expression
    try:
        return canonicalize_license_expression(expression)
    except InvalidLicenseExpression as error:
        raise ConfigError(f"license {expression!r} is no SPDX expression ({error}); {fix}") from None


def _members(name: str) -> list[str]:
    """The families that a name of a catalog stands for: itself, or those of a suite."""
    known, (head, _, part) = installed_packages(), name.partition("/")
    suite = known.suites.get(head)
    if suite is None:
        found: Iterable[str] = (head,)
    elif suite.parts is None:
        found = suite.families
    else:
        found = [m for key, of_part in suite.parts.items() if part in ("", key) for m in of_part]
    return [member for member in found if member in known.families]


def _of_module(module: str) -> Distribution:
    top = module.partition(".")[0]
    names = _distributions().get(top)
    if names:
        return distribution(names[0])
    # an editable install has no list of its files, but its entry points say what its module is
    points = (*entry_points(group=GROUP), *entry_points(group="console_scripts"))
    point = next((p for p in points if p.dist and p.module.partition(".")[0] == top), None)
    if point is None or point.dist is None:
        raise ConfigError(
            f"{module!r} belongs to no installed package, so an export could not name what to install; install its package "
            "(pip install FOLDER), or export the file itself: path/to/file.py:thing"
        )
    return point.dist


@cache
def _distributions() -> Mapping[str, list[str]]:
    return packages_distributions()


def _requirement(package: Distribution) -> str:
    return f"{package.name}>={package.version.partition('+')[0]}"


def _field(package: Distribution, name: str) -> str:
    return package.metadata[name] if name in package.metadata else ""  # noqa: SIM401 -- it has no get in Python 3.11


def _license(package: Distribution) -> str:
    for field in ("License-Expression", "License"):
        found = _field(package, field)
        if found and len(found) < 60 and _EXPRESSION.fullmatch(found):
            try:
                return check_license(found)
            except ConfigError:
                continue
    return ""


def _authors(package: Distribution) -> tuple[Mapping[str, str], ...]:
    both = [name for field in ("Author", "Author-email") if (name := _field(package, field))]
    found = [author for text in both for author in read_authors(text)]
    named = [a for a in found if "name" in a]
    return tuple(named or found)


def read_authors(text: str) -> tuple[Mapping[str, str], ...]:
    """Authors out of ``Name <mail>, Other <mail>``.

    >>> read_authors("Ann Lee <ann@example.org>, Bo")
    ({'name': 'Ann Lee', 'email': 'ann@example.org'}, {'name': 'Bo'})
    """
    out: list[Mapping[str, str]] = []
    for one in filter(None, map(str.strip, text.split(","))):
        name, mark, mail = one.partition("<")
        mail = mail.rstrip("> ") if mark else one if "@" in one else ""
        name = name.strip(' "') if mark or not mail else ""
        out.append({key: value for key, value in (("name", name), ("email", mail)) if value})
    return tuple(out)


def _imported_packages(file: Path) -> tuple[str, ...]:
    """What a file imports besides the standard library and assay, as requirements."""
    tree = ast.parse(file.read_text(encoding="utf-8"), str(file))
    tops = {alias.name.partition(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names}
    tops |= {(n.module or "").partition(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    found: dict[str, str] = {}
    for top in sorted(tops - sys.stdlib_module_names - {"assay", "assay_tasks", "__future__", ""}):
        if (file.parent / f"{top}.py").exists() or (file.parent / top).is_dir():
            raise ConfigError(
                f"{file} imports {top!r}, which lies beside it; an export copies one file: put the two into a package, install "
                "it, and export package.module:thing"
            )
        names = _distributions().get(top)
        if names:
            found[names[0]] = _requirement(distribution(names[0]))
        elif importlib.util.find_spec(top) is not None:
            raise ConfigError(f"{file} imports {top!r}, which no installed package has; install it as a package first")
    return tuple(found.values())


def own_version() -> str:
    """The version of assay that an export needs."""
    try:
        return distribution(OWN).version.partition("+")[0]
    except PackageNotFoundError:
        return assay.__version__
