"""Options from a tree of parts: every field of every part becomes an option with its own type, default and help.

tyro derives options from types, but a field declared as a protocol has no useful type. So the tree is mirrored: a dataclass per part, its
fields typed by what is declared and what stands there. This module alone talks to tyro.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin

from assay.cli.tree import MISSING, Node, build, candidates, hints, options_of, put, take
from assay.core.errors import ConfigError
from assay.core.kinds import Function, load_function, name_of

__all__ = ["parse", "parse_with"]

T = TypeVar("T")
O = TypeVar("O")  # noqa: E741
_SIMPLE = (bool, int, float, str, Path)
_NONE = "none"
_LISTED = 8  # so many parts are named in the help of a place


def parse(options: type[O], args: Sequence[str], prog: str, description: str = "") -> O:
    """The options of a command.

    Args:
        options: a dataclass; its docstring's ``Attributes`` are the help.
        args: arguments without the program.
        prog, description: for the help text.

    Raises:
        SystemExit: 2 after a usage error, 0 after ``--help``.
    """
    import tyro

    text = description or inspect.cleandoc(options.__doc__ or "").split("\nAttributes:")[0]
    return _settled(options, tyro.cli(_explained(options), args=list(args), prog=prog, description=text))


def parse_with(
    options: type[O], value: T, args: Sequence[str], prog: str, description: str, modules: Sequence[str] = ()
) -> tuple[O, T]:
    """The options of a command that also lets every field of ``value`` be changed.

    Args:
        options: the command's own, a dataclass.
        value: a tree of frozen dataclasses.
        args: arguments without the program.
        prog, description: for the help text.
        modules: where bare names of parts are looked up besides the rooms: the user's own.

    Raises:
        ConfigError: a part refuses its new settings, or a part named by ``--PATH.kind`` cannot be put there.
        SystemExit: 2 after a usage error, 0 after ``--help``.
    """
    import tyro

    root = cast(Node, take(value))
    rest, kinds = _split_kinds(args, root)
    for path, kind in sorted(kinds, key=lambda k: len(k[0])):
        put(root, path, kind, modules)
    own = _explained(options)
    mirror = _mirror(root, "")
    both = dataclasses.make_dataclass(
        "Options",
        [("own", Annotated[own, tyro.conf.arg(name="")]), ("tree", Annotated[mirror, tyro.conf.arg(name="")])],
    )
    both.__doc__ = " "
    parsed: Any = tyro.cli(both, args=rest, prog=prog, description=description)
    _apply(root, parsed.tree, "")
    return _settled(options, parsed.own), build(root)


# ---- kinds ------------------------------------------------------------------------------------------------------------


def _split_kinds(args: Sequence[str], root: Node) -> tuple[list[str], list[tuple[list[str], str]]]:
    """The other arguments, and (path, class) of each ``--PATH.kind CLASS``; later ones win.

    A part with a field of its own called ``kind`` is replaced by ``--PATH.class`` instead.
    """
    rest: list[str] = []
    kinds: list[tuple[list[str], str]] = []
    words = iter(args)
    for word in words:
        flag, equals, given = word.partition("=")
        path = flag[2:].replace("-", "_").split(".")
        if not flag.startswith("--") or len(path) < 2 or path[-1] != _class_word(_at(root, path[:-1])):
            rest.append(word)
            continue
        kind = given if equals else next(words, "")
        if not kind or kind.startswith("--"):
            raise ConfigError(f"{flag} needs a value: module:Class, as in --stages.0.curriculum.kind assay.guide:Uniform")
        kinds.append((path[:-1], kind))
    return rest, kinds


def _at(node: Any, path: Sequence[str]) -> Any:
    for name in path:
        node = node.fields.get(name) if isinstance(node, Node) else None
    return node


def _class_word(node: Any) -> str:
    own = isinstance(node, Node) and node.kind not in (tuple, dict) and any(f.name == "kind" for f in dataclasses.fields(node.kind))
    return "class" if own else "kind"


# ---- the mirror -------------------------------------------------------------------------------------------------------


def _mirror(node: Node, path: str) -> type[Any]:
    """A dataclass with one field per field of ``node`` that a command line can hold; small parts first."""
    import tyro

    fields: list[Any] = []
    helps = _helps(node.kind)
    for name, child in sorted(node.fields.items(), key=lambda item: _depth(item[1])):
        if isinstance(child, Node):
            inner = _mirror(child, f"{path}{name}.")
            fields.append((_safe(name), Annotated[inner, tyro.conf.arg(name=name)]))
        elif (flag := _flag(child, node.declared_at(name))) is not None:
            text = helps.get(name, "")
            made = Annotated[flag.type, tyro.conf.arg(name=name, help=text, metavar=flag.metavar, help_behavior_hint=_hint(flag))]
            fields.append((_safe(name), made) if flag.shown is MISSING else (_safe(name), made, _default(flag.shown)))
        elif child is None or child is MISSING:
            fields.append(_class_option(f"{name}.kind", helps.get(name, ""), _NONE, candidates(child, node.declared_at(name))))
    if _is_open(node):
        known = candidates(node, node.declared)
        fields.insert(0, _class_option(_class_word(node), "which part stands here", node.kind.__name__, known))
    if node.kind is tuple and not node.fields:
        fields.append(_class_option("0.kind", "a first entry", _NONE, candidates(None, node.declared_at("0"))))
    mirror = dataclasses.make_dataclass(f"{getattr(node.kind, '__name__', '')}Options", fields, frozen=True, kw_only=True)
    mirror.__doc__ = _summary(node.kind) or " "
    return mirror


def _class_option(name: str, text: str, shown: str, known: Mapping[str, Any]) -> Any:
    """Help for ``--PATH.kind``, which is taken out of the arguments before tyro reads them."""
    import tyro

    which = f"{', '.join(sorted(known))} or " if len(known) <= _LISTED else ""
    hint = f"({which}module:Class; default: {shown})"
    made = Annotated[str, tyro.conf.arg(name=name, help=text, metavar="CLASS", help_behavior_hint=hint)]
    return _safe(name), made, _default(shown)


def _apply(node: Node, mirror: Any, path: str) -> None:
    """Writes what was parsed into the tree."""
    for name, child in node.fields.items():
        if not hasattr(mirror, _safe(name)):
            continue
        new = getattr(mirror, _safe(name))
        if isinstance(child, Node):
            _apply(child, new, f"{path}{name}.")
        elif (flag := _flag(child, node.declared_at(name))) is not None and (flag.shown is MISSING or new != flag.shown):
            node.fields[name] = flag.read(new, f"--{path}{name}")


def _is_open(node: Node) -> bool:
    """Whether the declared type of a place leaves the class open."""
    return node.kind not in (tuple, dict) and bool(node.declared is not Any) and node.declared is not node.kind


def _depth(child: Any) -> int:
    return 1 + max((_depth(c) for c in child.fields.values()), default=0) if isinstance(child, Node) else 0


def _safe(name: str) -> str:
    return "item_" + re.sub(r"\W", "_", name)


def _hint(flag: _Flag) -> str | None:
    return "(default: none)" if flag.shown in ((), {}) else None


def _default(value: Any) -> Any:
    return dataclasses.field(default_factory=lambda: value)


# ---- leaves -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Flag:
    """How the command line holds a leaf: tyro's type, the default shown, and the way back."""

    type: Any
    shown: Any
    read: Callable[[Any, str], Any]
    metavar: str | None = None


def _flag(value: Any, declared: Any) -> _Flag | None:
    """None where the command line cannot hold the leaf: data, and places without a part."""
    if isinstance(value, Function) or (value is None and any(_is_callable(o) for o in options_of(declared))):
        return _Flag(str, name_of(value) if value else _NONE, _read_function, "MODULE:FUNCTION")
    kinds = [declared] if _parsable(declared) else [_type_of(value)]
    for kind in kinds:
        if kind is not None and (value is MISSING or _holds(kind, value)):
            return _Flag(_spelled(kind), _plain(value), lambda new, place: _restored(new, kind, value, place))
    return None


def _is_callable(option: Any) -> bool:
    return get_origin(option) is Callable or option is Callable


def _parsable(declared: Any) -> bool:
    """Whether tyro can read a value of this type."""
    if declared in _SIMPLE or get_origin(declared) is Literal or (isinstance(declared, type) and issubclass(declared, Enum)):
        return True
    origin, arguments = get_origin(declared), get_args(declared)
    if origin is tuple:
        return bool(arguments) and all(a is Ellipsis or _parsable(a) for a in arguments)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return all(_parsable(a) for a in arguments)
    options = options_of(declared)
    return len(options) > 1 and all(o is NoneType or _parsable(o) for o in options)


def _type_of(value: Any) -> Any:
    """A type to read a leaf by when what is declared does not say."""
    if isinstance(value, Enum) or type(value) in _SIMPLE:
        return type(value)
    if isinstance(value, tuple) and value:
        kinds = {_type_of(v) for v in cast("tuple[Any, ...]", value)}
        return tuple[kinds.pop(), ...] if len(kinds) == 1 and None not in kinds else None
    return None


def _holds(kind: Any, value: Any) -> bool:
    """Whether a value that stands there is one that the option could have given; an int may stand for a float."""
    for option in options_of(kind):
        origin = get_origin(option)
        if (option is NoneType and value is None) or (origin is Literal and value in get_args(option)):
            return True
        if (origin is tuple and isinstance(value, tuple)) or (origin not in (None, Literal) and isinstance(value, Mapping)):
            return True
        if isinstance(option, type) and (isinstance(value, option) or (option is float and isinstance(value, int))):
            return True
    return False


def _spelled(kind: Any) -> Any:
    """The type as tyro is told it: enums by their values."""
    if isinstance(kind, type) and issubclass(kind, Enum):
        return Literal[tuple(m.value for m in kind)]
    if get_origin(kind) is tuple:
        return tuple[tuple(a if a is Ellipsis else _spelled(a) for a in get_args(kind))]
    if len(options := options_of(kind)) > 1:
        out: Any = _spelled(options[0])
        for option in options[1:]:
            out = out | (None if option is NoneType else _spelled(option))
        return out
    if isinstance(origin := get_origin(kind), type) and issubclass(origin, Mapping):
        return dict[get_args(kind)]
    return kind


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return tuple(_plain(v) for v in cast("tuple[Any, ...]", value))
    return dict(cast("Mapping[Any, Any]", value)) if isinstance(value, Mapping) else value


def _restored(new: Any, kind: Any, before: Any, place: str) -> Any:
    """What tyro read, as the part wants it."""
    for option in options_of(kind):
        if isinstance(option, type) and issubclass(option, Enum) and new is not None:
            return option(new)
        if get_origin(option) is tuple and isinstance(new, tuple):
            entry = get_args(option)[0]
            return tuple(_restored(v, entry, MISSING, place) for v in cast("tuple[Any, ...]", new))
    if isinstance(before, Mapping) and not isinstance(before, dict):
        return cast(Any, type(before))(new)
    return new


def _read_function(word: str, place: str) -> Any:
    from assay.cli.recipe import module_of

    if word in (_NONE, "None"):
        return None
    where, _, name = word.rpartition(":")
    return load_function(f"{module_of(where)}:{name}" if where.endswith(".py") else word, place)


# ---- help -------------------------------------------------------------------------------------------------------------


def _explained(options: type[Any]) -> type[Any]:
    """The mirror of a command's options: help from the docstring, positions and names of values from the fields' metadata."""
    import tyro

    fields: list[Any] = []
    types, helps = hints(options), _helps(options)
    for f in dataclasses.fields(options):
        extra = {"metavar": _metavar(types[f.name]), "help_behavior_hint": "" if f.default in (None, False, ()) else None}
        extra |= f.metadata.get("arg", {})
        made: Any = Annotated[types[f.name], tyro.conf.arg(help=helps.get(f.name, ""), **extra)]
        made = tyro.conf.Positional[made] if f.metadata.get("positional") else tyro.conf.FlagCreatePairsOff[made]
        fields.append((f.name, made) if f.default is dataclasses.MISSING else (f.name, made, _default(f.default)))
    mirror = dataclasses.make_dataclass(options.__name__, fields, frozen=True, kw_only=True)
    mirror.__doc__ = " "
    return mirror


def _metavar(kind: Any) -> str | None:
    """``INT`` for an option that may also be left out; None leaves it to tyro."""
    given = [o for o in options_of(kind) if o is not NoneType]
    return given[0].__name__.upper() if len(given) == 1 and given != [kind] else None


def _settled(options: type[O], parsed: Any) -> O:
    return options(**{f.name: getattr(parsed, f.name) for f in dataclasses.fields(cast(Any, options))})


@cache
def _helps(kind: Any) -> Mapping[str, str]:
    """Field to its text in the ``Attributes`` of the class or of its bases; one entry may name several fields."""
    out: dict[str, str] = {}
    for owner in reversed(kind.__mro__):
        for names, text in _entries(inspect.cleandoc(owner.__dict__.get("__doc__") or "")):
            out |= {name.strip(): text for name in names.split(",")}
    return out


def _entries(doc: str) -> Iterator[tuple[str, str]]:
    """(names, text) of each entry of an ``Attributes`` section; a line that names nothing goes on with the entry before."""
    match = re.search(r"^Attributes:\n((?:[ \t]+.*\n?|\n)+)", doc, re.MULTILINE)
    found: list[tuple[str, str]] = []
    for line in match.group(1).splitlines() if match else ():
        head = re.match(r"    (\w+(?:, \w+)*):(.*)", line)
        if head:
            found.append((head.group(1), head.group(2)))
        elif found and line.strip():
            found[-1] = found[-1][0], f"{found[-1][1]} {line}"
    for names, text in found:
        yield names, " ".join(text.split()).replace("`", "")


def _summary(kind: Any) -> str:
    """First paragraph of a part's docstring, as plain text."""
    if kind in (tuple, dict):
        return ""
    first = inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0]
    return " ".join(first.split()).replace("`", "")
