"""Options from a tree of parts: every field of every part becomes an option with its own type, default and help.

tyro derives options from types, but a field declared as a protocol has no useful type. So the tree is mirrored: a dataclass per
part, its fields typed by what is declared and what stands there. This module alone talks to tyro.
"""

from __future__ import annotations

import dataclasses
import inspect
import io
import re
import sys
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from types import NoneType
from typing import Annotated, Any, TextIO, TypeVar, cast

from assay.cli.leaf_options import NONE, Flag, flag_of
from assay.cli.part_tree import MISSING, Node, at, build, candidates, class_word, hints, put, take
from assay.cli.text_wrap import fill
from assay.core.errors import ConfigError
from assay.core.fields import union_members

__all__ = ["option_rows", "parse", "parse_with"]

T = TypeVar("T")
O = TypeVar("O")  # noqa: E741
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
    if not args and _is_complete(options):
        return options()
    text = description or inspect.cleandoc(options.__doc__ or "").split("\nAttributes:")[0]
    return _settled(options, _read(_explained(options), args, prog, text))


def parse_with(
    options: type[O], value: T, args: Sequence[str], prog: str, description: str, modules: Sequence[str] = ()
) -> tuple[O, T]:
    """The options of a command that also lets every field of ``value`` be changed.

    Args:
        options: the command's own, a dataclass.
        value: a tree of frozen dataclasses.
        args: arguments without the program.
        prog, description: for the help text.
        modules: where bare names of parts are looked up besides the packages: the user's own.

    Raises:
        ConfigError: a part refuses its new settings, or a part named by ``--PATH.kind`` cannot be put there.
        SystemExit: 2 after a usage error, 0 after ``--help``.
    """
    root = cast(Node, take(value))
    rest, kinds = _split_kinds(args, root)
    for path, kind in sorted(kinds, key=lambda k: len(k[0])):
        put(root, path, kind, modules)
    if not rest and not kinds and _is_complete(options):
        return options(), build(root)
    parsed = _read_named(options, root, rest, prog)
    if parsed is None:  # help, or a wrong word: told with all options in view
        parsed = _read(_both(options, root, None), rest, prog, description)
    _apply(root, parsed.tree, "")
    return _settled(options, parsed.own), build(root)


def _is_complete(options: type[Any]) -> bool:
    """Whether a command's options all have defaults, so that tyro need not be loaded where none is given."""
    missing = dataclasses.MISSING
    return all(f.default is not missing or f.default_factory is not missing for f in dataclasses.fields(options))


def _read_named(options: type[Any], root: Node, args: Sequence[str], prog: str) -> Any:
    """What tyro makes of the arguments when it knows the options that they name alone, which is much quicker; None where it
    refuses them, or was asked for help.
    """
    words = {w.partition("=")[0].removeprefix("--").replace("-", "_") for w in args if w.startswith("--")}
    if "-h" in args or "help" in words:
        return None
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            return _read(_both(options, root, words), args, prog, "")
    except SystemExit:
        return None


def _both(options: type[Any], root: Node, words: Collection[str] | None) -> type[Any]:
    """A command's own options and those of the tree: all, or the ``words`` alone."""
    import tyro

    tree = _mirror(root, "", words)
    both = dataclasses.make_dataclass(
        "Options",
        [("own", Annotated[_explained(options), tyro.conf.arg(name="")]), ("tree", Annotated[tree, tyro.conf.arg(name="")])],
    )
    both.__doc__ = " "
    return both


def _read(kind: type[Any], args: Sequence[str], prog: str, description: str) -> Any:
    """What tyro makes of the arguments."""
    import tyro

    # help comes from docstrings alone: tyro need not search sources for comments
    config = (tyro.conf.HelptextFromCommentsOff,)
    with _fitting():
        return cast(Any, tyro).cli(kind, args=list(args), prog=prog, description=description, config=config)


@contextmanager
def _fitting() -> Generator[None]:
    """Help that fits the terminal: tyro fits its boxes, not the description above them."""
    out, held = sys.stdout, _Held(sys.stdout)
    try:
        with redirect_stdout(held):
            yield
    finally:
        parts = held.getvalue().split("\n\n", 2)  # usage, description, boxes
        out.write("\n\n".join(fill(text) if i == 1 else text for i, text in enumerate(parts)))


class _Held(io.StringIO):
    """Keeps what is printed, and passes for the stream that it is meant for: tyro asks that for colours and boxes."""

    def __init__(self, out: TextIO) -> None:
        super().__init__()
        self._out = out

    def isatty(self) -> bool:
        return self._out.isatty()

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._out.encoding


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
        if not flag.startswith("--") or len(path) < 2 or path[-1] != class_word(at(root, path[:-1])):
            rest.append(word)
            continue
        kind = given if equals else next(words, "")
        if not kind or kind.startswith("--"):
            raise ConfigError(f"{flag} needs a value: module:Class, as in --stages.0.curriculum.kind assay.guide:Uniform")
        kinds.append((path[:-1], kind))
    return rest, kinds


# ---- the mirror -------------------------------------------------------------------------------------------------------


def _mirror(node: Node, path: str, words: Collection[str] | None) -> type[Any]:
    """A dataclass with one field per field of ``node`` that a command line can hold; small parts first.

    Of ``words``, options without their dashes, only these fields, and those that lack a value; all when None.
    """
    import tyro

    fields: list[Any] = []
    helps = _helps(node.kind)
    for name, child in sorted(node.fields.items(), key=lambda item: _depth(item[1])):
        if isinstance(child, Node):
            inner = _mirror(child, f"{path}{name}.", words)  # with its help: else tyro looks for one in the sources
            if words is not None and not dataclasses.fields(inner):
                continue
            fields.append((_safe(name), Annotated[inner, tyro.conf.arg(name=name, help=_summary(child.kind))]))
        elif words is not None and child is not MISSING and not _is_named(path, name, words):
            continue
        elif (flag := flag_of(child, node.declared_at(name))) is not None:
            text = helps.get(name, "")
            made = Annotated[flag.type, tyro.conf.arg(name=name, help=text, metavar=flag.metavar, help_behavior_hint=_hint(flag))]
            fields.append((_safe(name), made) if flag.shown is MISSING else (_safe(name), made, _default(flag.shown)))
        elif words is None and (child is None or child is MISSING):
            fields.append(_class_option(f"{name}.kind", helps.get(name, ""), NONE, candidates(child, node.declared_at(name))))
    if words is not None:
        pass  # parts that were put elsewhere are no words for tyro
    elif _is_open(node):
        known = candidates(node, node.declared)
        fields.insert(0, _class_option(class_word(node), "which class to use here", node.kind.__name__, known))
    elif named_by := getattr(node.kind, "named_by", ""):
        fields.insert(0, _class_option(class_word(node), named_by, node.kind.__name__, {"a method's name": node.kind}))
    if words is None and node.kind is tuple and not node.fields:
        fields.append(_class_option("0.kind", "class of a first entry", NONE, candidates(None, node.declared_at("0"))))
    if words is None and node.kind is dict and not node.fields:
        known = candidates(None, node.declared_at("NAME"))
        fields.append(_class_option("NAME.kind", "class of an entry with this name", NONE, known))
    mirror = dataclasses.make_dataclass(f"{getattr(node.kind, '__name__', '')}Options", fields, frozen=True, kw_only=True)
    mirror.__doc__ = _summary(node.kind) or " "
    return mirror


def _is_named(path: str, name: str, words: Collection[str]) -> bool:
    """Whether an option, or the one that denies it, is among the words."""
    return any(f"{path}{word}{name}".replace("-", "_") in words for word in ("", "no_"))


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
        elif (flag := flag_of(child, node.declared_at(name))) is not None and (flag.shown is MISSING or new != flag.shown):
            node.fields[name] = flag.read(new, f"--{path}{name}")


def _is_open(node: Node) -> bool:
    """Whether the declared type of a place leaves the class open."""
    return node.kind not in (tuple, dict) and bool(node.declared is not Any) and node.declared is not node.kind


def _depth(child: Any) -> int:
    return 1 + max((_depth(c) for c in child.fields.values()), default=0) if isinstance(child, Node) else 0


def _safe(name: str) -> str:
    return "item_" + re.sub(r"\W", "_", name)


def _hint(flag: Flag) -> str | None:
    return "(default: none)" if flag.shown in ((), {}) else None


def _default(value: Any) -> Any:
    return dataclasses.field(default_factory=lambda: value)


# ---- help -------------------------------------------------------------------------------------------------------------


def _explained(options: type[Any]) -> type[Any]:
    """The mirror of a command's options: help from the docstring, positions and names of values from the fields' metadata."""
    import tyro

    fields: list[Any] = []
    types, helps = hints(options), _helps(options)
    for f in dataclasses.fields(options):
        nothing = any(f.default is x for x in (None, False)) or f.default == ()
        extra = {"metavar": _metavar(types[f.name]), "help_behavior_hint": "" if nothing else None}
        extra |= f.metadata.get("arg", {})
        made: Any = Annotated[types[f.name], tyro.conf.arg(help=helps.get(f.name, ""), **extra)]
        made = tyro.conf.Positional[made] if f.metadata.get("positional") else tyro.conf.FlagCreatePairsOff[made]
        fields.append((f.name, made) if f.default is dataclasses.MISSING else (f.name, made, _default(f.default)))
    mirror = dataclasses.make_dataclass(options.__name__, fields, frozen=True, kw_only=True)
    mirror.__doc__ = " "
    return mirror


def option_rows(options: type[Any]) -> dict[str, str]:
    """A command's options with their help, for a list without boxes."""
    types, helps = hints(options), _helps(options)
    out: dict[str, str] = {}
    for f in dataclasses.fields(options):
        value = "" if types[f.name] is bool else f" {_metavar(types[f.name]) or types[f.name].__name__.upper()}"
        out[f"--{f.name.replace('_', '-')}{value}"] = helps.get(f.name, "")
    return out


def _metavar(kind: Any) -> str | None:
    """``INT`` for an option that may also be left out; None leaves it to tyro."""
    given = [o for o in union_members(kind) if o is not NoneType]
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
