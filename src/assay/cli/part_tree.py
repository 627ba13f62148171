"""A tree of parts taken apart, so that a command line can change any field of it, or put another part in a place.

Parts are rebuilt once, from the leaves up, when all changes are known: settings that only agree together may be changed together.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from importlib import import_module
from inspect import isabstract
from pathlib import Path
from types import ModuleType, NoneType
from typing import Any, cast, get_args, get_origin

from assay.cli.part_types import fits, meant, missing_members
from assay.cli.user_files import module_of
from assay.core.errors import ConfigError, UnknownNameError, nearest
from assay.core.fields import hints_of, union_members
from assay.core.import_path import load_class
from assay.core.protocols import TaskSource

__all__ = ["GONE", "MISSING", "Node", "assemble", "at", "build", "candidates", "class_word", "hints", "put", "take", "values_of"]


class Unset(Enum):
    """Stands where a value must be given, and where an entry of a tuple was taken away."""

    MISSING = "missing"
    GONE = "gone"


MISSING, GONE, FIRST = Unset.MISSING, Unset.GONE, "first"  # "first" is the position in a tuple before all others
_PACKAGES = (
    "assay.guide",
    "assay.objective",
    "assay.tasks",
    "assay_tasks",
    "assay.verify",
    "assay.scorers",
    "assay.train",
    "assay.rollout",
    "assay.agents",
    "assay.core",
    "assay.runtime",
    "assay.clients",
    "assay.asynchronous",
)
_WITHOUT_TORCH = [f"assay.runtime.{part}" for part in ("settings", "anchors", "text.chat", "engine.settings", "vllm.settings")]
"""Where runtime's settings stand; its other names would load torch."""
_WITHOUT_HTTP = {"assay.clients": ["assay.clients.judge"], "assay.agents": ["assay.agents.program", "assay.agents.session"]}
"""Where the settings of clients and agents stand; their other names would load httpx or starlette, which need not be here."""
_SCALARS = (bool, int, float, str, bytes, NoneType)


@dataclass(slots=True)
class Node:
    """A part taken apart.

    Attributes:
        kind: its class; `tuple` or `dict` for a collection of parts.
        fields: name (or position, or key) to a `Node`, or to a leaf as it is; ``MISSING`` where a value must be given.
        declared: the declared type of the place where it stands.
        before: the value that it was taken from, which is kept when nothing changes; ``MISSING`` for a part put there anew.
    """

    kind: Any
    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    declared: Any = Any
    before: Any = MISSING

    def declared_at(self, name: str) -> Any:
        """The declared type of a field."""
        return _element(self.declared) if self.kind in (tuple, dict) else hints(self.kind).get(name, Any)


def take(value: Any, declared: Any = Any) -> Any:
    """``value`` as a `Node` where it is a part or a collection of parts; otherwise itself, a leaf."""
    if is_part(value):
        types = hints(cast(Any, type(value)))
        inner = {f.name: take(getattr(value, f.name), types[f.name]) for f in dataclasses.fields(value) if f.init}
        return Node(type(value), inner, declared, value)
    if isinstance(value, tuple) and _holds_parts(cast("tuple[Any, ...]", value), declared):
        items = cast("tuple[Any, ...]", value)
        return Node(tuple, {str(i): take(v, _element(declared)) for i, v in enumerate(items)}, declared, items)
    if isinstance(value, Mapping) and _maps_parts(cast("Mapping[Any, Any]", value), declared):
        table = cast("Mapping[Any, Any]", value)
        return Node(dict, {str(k): take(v, _element(declared)) for k, v in table.items()}, declared, table)
    return cast(Any, value)


def build(node: Any, path: str = "") -> Any:
    """The value of a tree; parts in which nothing changed are the very same objects.

    Raises:
        ConfigError: a part refuses its settings, or lacks a value; names the option.
    """
    if not isinstance(node, Node):
        return node
    return assemble(node, {name: build(child, f"{path}{name}.") for name, child in node.fields.items()}, path)


def assemble(node: Node, values: dict[str, Any], path: str = "") -> Any:
    """A part of the values of its fields, or the very same as before.

    Raises:
        ConfigError: as `build`.
    """
    for name, value in values.items():
        if value is MISSING:
            option = f"--{path}{name}"
            raise ConfigError(f"{option}: {node.kind.__name__} needs a part there, for example {option}.kind module:Class")
    if any(value is GONE for value in values.values()):
        values = {name: value for name, value in values.items() if value is not GONE}
    if node.before is not MISSING:
        old = values_of(node.before)
        if values.keys() == old.keys() and all(values[k] is old[k] for k in values):
            return node.before
    if node.kind is tuple:
        return tuple(values.values())
    return cast(Any, type(node.before))(values) if node.kind is dict else node.kind(**values)


def put(root: Node, path: Sequence[str], kind: str, extra: Sequence[str] = ()) -> None:
    """Puts another part, with its own defaults, in a place.

    Args:
        root: the tree, changed in place.
        path: names down to the place; in a tuple, the position behind the last one adds an entry and ``first`` one before all
            others, in a mapping any new name adds one.
        kind: ``module:Class``; or a bare name from the package or module of the part that stands there; or ``none``, which takes
            an entry out of a tuple too.
        extra: further modules in which a bare name is looked up.

    Raises:
        UnknownNameError: no such place; with the nearest.
        ConfigError: no such part, with the nearest; or it does not fit there, or its class cannot be loaded.
    """
    place = f"--{'.'.join(path)}.{class_word(at(root, path))}"
    parent = root
    for depth, name in enumerate(path):
        known = _places(parent)
        if name not in known and not (parent.kind is dict and depth + 1 == len(path)):
            if parent is root and (homes := _homes_of(name, root)):
                option = f"--{'.'.join([*homes[0], *path])}.{class_word(None)}"
                raise ConfigError(f"{place} {kind}: this part is not of the run itself; write {option} {kind}")
            raise UnknownNameError(f"part in {place}", ".".join(path[: depth + 1]), [".".join((*path[:depth], n)) for n in known])
        inner = parent.fields.get(name)
        if depth + 1 == len(path):
            break
        if not isinstance(inner, Node):
            raise ConfigError(f"{place}: nothing stands at {'.'.join(path[: depth + 1])} yet; put a part there first")
        parent = inner
    name = path[-1]
    declared, now = parent.declared_at(name), parent.fields.get(name)
    if kind in ("none", "None"):
        if parent.kind is tuple:  # behind the last entry stands one that another option would add
            parent.fields[name] = GONE
            return
        if NoneType not in union_members(declared) and declared is not Any:
            raise ConfigError(f"{place} none: a part must stand there")
        parent.fields[name] = None
        return
    names = _family_names(declared) if kind not in candidates(now, declared, extra) else ()
    made = _family(kind) if kind.partition("/")[0] in names else None
    if parent.kind is tuple and name == FIRST:
        parent.fields = {FIRST: None, **parent.fields}
    parent.fields[name] = _fresh(_class(kind, place, now, declared, extra), declared) if made is None else take(made, declared)


def at(node: Any, path: Sequence[str]) -> Any:
    """What stands in a place; None where nothing does."""
    for name in path:
        node = node.fields.get(name) if isinstance(node, Node) else None
    return node


def class_word(node: Any) -> str:
    """What the option that replaces a part is called: ``kind``, or ``class`` where the part has a field of its own called so."""
    if not isinstance(node, Node) or node.kind in (tuple, dict):
        return "kind"
    return "class" if any(f.name == "kind" for f in dataclasses.fields(node.kind)) else "kind"


def is_part(value: Any) -> bool:
    """Whether a value is an instance of a dataclass."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def hints(kind: Any) -> Mapping[str, Any]:
    """Declared type of each field of a dataclass; `typing.Any` where it can only be resolved by type checkers.

    A name that a module imports for type checkers alone is looked up in the packages.
    """
    return hints_of(kind, _find_exported)


def _find_exported(name: str) -> Any:
    """What a package offers under a name."""
    for package in (m for place in _PACKAGES for m in _modules(place)):
        if name in package.__all__:
            return getattr(package, name)
    raise KeyError(name)


def candidates(now: Any, declared: Any, extra: Sequence[str] = ()) -> dict[str, Any]:
    """Parts that may stand in a place, by bare name.

    Those of the user's modules and of the module and package of the part there now come first; all packages are searched where
    the declared type tells what fits.
    """
    modules = list(extra)
    if isinstance(now, Node) and now.kind not in (tuple, dict):
        modules += [now.kind.__module__, _package(now.kind)]
    if declared is not Any or not isinstance(now, Node):
        modules += _PACKAGES
    found = _parts_of(modules, declared)
    kinds = found.values()
    bases = {b for b in kinds if b in union_members(declared) and any(issubclass(k, b) and k is not b for k in kinds)}
    return {name: k for name, k in found.items() if k not in bases}


# ---- inside -----------------------------------------------------------------------------------------------------------


def _holds_parts(items: tuple[Any, ...], declared: Any) -> bool:
    if items:
        return all(is_part(v) for v in items)
    element = _element(declared)
    return element is not Any and _may_hold_part(element)


def _maps_parts(table: Mapping[Any, Any], declared: Any) -> bool:
    """Whether a mapping holds parts, or is empty and may hold nothing else."""
    if table:
        return any(is_part(v) for v in table.values())
    element = _element(declared)
    return element is not Any and _may_hold_part(element)


def _element(declared: Any) -> Any:
    """The type of the entries of a collection."""
    for option in union_members(declared):
        arguments = get_args(option)
        if arguments and get_origin(option) is tuple and arguments[-1] is Ellipsis:
            return arguments[0]
        if len(arguments) == 2 and isinstance(get_origin(option), type) and issubclass(cast(type, get_origin(option)), Mapping):
            return arguments[1]
    return Any


def values_of(before: Any) -> dict[str, Any]:
    """What stood in a part or a collection of parts, by name."""
    if isinstance(before, tuple):
        return {str(i): v for i, v in enumerate(cast("tuple[Any, ...]", before))}
    if isinstance(before, Mapping):
        return {str(k): v for k, v in cast("Mapping[Any, Any]", before).items()}
    return {f.name: getattr(before, f.name) for f in dataclasses.fields(before) if f.init}


def _fresh(kind: Any, declared: Any) -> Node:
    fields: dict[str, Any] = {}
    types = hints(kind)
    for f in dataclasses.fields(kind):
        if f.init:
            made = f.default_factory() if f.default_factory is not dataclasses.MISSING else f.default
            fields[f.name] = MISSING if made is dataclasses.MISSING else take(made, types[f.name])
    return Node(kind, fields, declared)


def _places(node: Node) -> list[str]:
    """Names of the fields that hold a part or may; in a tuple also the positions behind its last entry and before its first."""
    out = [name for name, child in node.fields.items() if isinstance(child, Node) or _may_hold_part(node.declared_at(name))]
    if node.kind is not tuple:
        return out
    return list(dict.fromkeys([*out, str(sum(name != FIRST for name in node.fields)), FIRST]))


def _homes_of(name: str, root: Node) -> list[list[str]]:
    """Paths of the entries of tuples at the root, such as a run's stages, that have a place of this name."""
    return [
        [field, at]
        for field, entries in root.fields.items()
        if isinstance(entries, Node) and entries.kind is tuple
        for at, entry in entries.fields.items()
        if isinstance(entry, Node) and name in _places(entry)
    ]


def _may_hold_part(declared: Any) -> bool:
    scalars = (*_SCALARS, Path)
    return any(
        o is Any or (isinstance(o, type) and o not in scalars and not issubclass(o, Enum)) for o in union_members(declared)
    )


def _family(word: str) -> Any:
    from assay.tasks import family

    return family(word)


def _family_names(declared: Any) -> tuple[str, ...]:
    """Names of the task families and suites of all installed packages, where a family may stand; () elsewhere."""
    if TaskSource not in union_members(declared):
        return ()
    from assay.tasks import families, suites

    return (*families(), *suites())


def _class(word: str, place: str, now: Any, declared: Any, extra: Sequence[str]) -> Any:
    if ":" in word:
        where, _, name = word.rpartition(":")
        kind = load_class(f"{module_of(where)}:{name}" if where.endswith(".py") else word, place)
        if not dataclasses.is_dataclass(kind):
            raise ConfigError(f"{place} {word}: {name} is no dataclass, so it is no part of a configuration")
        if not fits(kind, declared):
            known = _list_names(candidates(now, declared, extra))
            raise ConfigError(f"{place} {word}: a {name} does not fit there{missing_members(kind, declared)}; known: {known}")
        return kind
    known = candidates(now, declared, extra)
    if word not in known:
        known = {name: kind for name, kind in known.items() if meant(kind, declared)}
        close = _like(word, [*known, *_family_names(declared)])
        hint = f"did you mean {close!r}? " if close else ""
        named = ", or a name of 'assay tasks list'" if _family_names(declared) else ""
        raise ConfigError(f"{place} {word}: there is no such part; {hint}known: {_list_names(known, close)}{named}")
    return known[word]


def _like(word: str, known: Iterable[str]) -> str | None:
    """The name most like a word, one that begins or ends with it first, upper and lower case alike; None when none is close."""
    low, names = word.casefold(), sorted(known)
    whole = [name for name in names if len(low) > 2 and (name.casefold().startswith(low) or name.casefold().endswith(low))]
    return min(whole, key=len) if whole else nearest(word, names)


def _list_names(known: Iterable[str], first: str | None = None) -> str:
    """The names in alphabetical order, behind ``first`` where it is one of them."""
    return ", ".join(sorted(known, key=lambda name: (name != first, name))) or "none"


def _package(kind: Any) -> str:
    """``assay.guide`` of a class in ``assay.guide.curriculum``; the module itself elsewhere."""
    names = kind.__module__.split(".")
    if names[0] == "assay":
        return ".".join(names[:2])
    return names[0] if names[0] in _PACKAGES else kind.__module__


def _modules(name: str) -> list[ModuleType]:
    paths = {"assay.runtime": _WITHOUT_TORCH, **_WITHOUT_HTTP}.get(name, [name])
    return [sys.modules.get(path) or import_module(path) for path in paths]


def _parts_of(modules: Sequence[str], declared: Any) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name in dict.fromkeys(modules):
        look = _fitting if name in _PACKAGES and _hashable(declared) else _find_parts
        for word, found in look(name, declared).items():
            out.setdefault(word, found)
    return out


def _hashable(declared: Any) -> bool:
    """Whether a type can be a key: one annotated with a list or a table cannot."""
    try:
        hash(declared)
    except TypeError:
        return False
    return True


def _find_parts(name: str, declared: Any) -> Mapping[str, Any]:
    """The parts of a module that fit, by name."""
    kinds = _parts_of_package(name) if name in _PACKAGES else _parts_in(name)
    return {word: kind for word, kind in kinds.items() if fits(kind, declared)}


_fitting = cache(_find_parts)
"""The same of a package, whose names stay as they are; many places of a run are declared alike."""


def _parts_in(name: str) -> Mapping[str, type[Any]]:
    """The parts that a module names."""
    out: dict[str, type[Any]] = {}
    for module in _modules(name):
        for word in getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]:
            found = getattr(module, word)
            if isinstance(found, type) and dataclasses.is_dataclass(found) and not isabstract(found):
                out.setdefault(word, found)
    return out


_parts_of_package = cache(_parts_in)
