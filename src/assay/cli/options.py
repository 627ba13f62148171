"""Options from a tree of parts: every field of every part becomes an option with its own type, default and help.

tyro derives options from types, but a field declared as a protocol has no useful type. So the tree is mirrored: a dataclass per
part, its fields typed by what is declared and what stands there, and tyro prints the help of that.

What reads and names parts is imported where an option is given or help is asked for: most listings are asked for without any.
"""

from __future__ import annotations

import dataclasses
import inspect
import io
import re
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from itertools import takewhile
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TextIO, TypeVar, cast

from assay.cli.text_wrap import fill
from assay.core.errors import ConfigError

if TYPE_CHECKING:
    from assay.cli.leaf_options import Flag
    from assay.cli.part_tree import Node

__all__ = ["helps_of", "option_rows", "parse", "parse_with", "print_all"]

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
        ConfigError: a value that an option does not take.
        SystemExit: 2 after another usage error, 0 after ``--help``.
    """
    if not args and _is_complete(options):
        return options()
    text = description or inspect.cleandoc(options.__doc__ or "").split("\nAttributes:")[0]
    with _one_line(options, args):
        return _settle_options(options, _read(_with_help(options), args, _with_given(options, args, prog), text))


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
        ConfigError: options that are not there, values that cannot be read or that a part refuses: all of them.
        SystemExit: 0 after ``--help``.
    """
    from assay.cli.apply_options import apply_options
    from assay.cli.given_options import Mistakes, split_options
    from assay.cli.part_tree import put, take

    strays, given = split_options(args)
    if asked := [o for o in given if o.path in ("h", "help")]:
        root = cast("Node", take(value))
        for option in given:
            if option not in asked and option.path.endswith((".kind", ".class")) and option.words:
                put(root, option.path.split(".")[:-1], option.words[0], modules)
        print_all(options, root, prog, description)
    mistakes = Mistakes()
    for word in strays:
        mistakes.add([], f"{word} belongs to no option")
    return apply_options(options, value, given, mistakes, modules)


def print_all(options: type[Any], root: Node, prog: str, description: str) -> NoReturn:
    """Prints the help of every option, and ends the command."""
    _read(_both(options, root), ["--help"], prog, description)
    raise SystemExit(0)


def _with_given(options: type[Any], args: Sequence[str], prog: str) -> str:
    """The program for the usage line of a help that is asked for behind positions: tyro shows those alone that are left."""
    if not {"-h", "--help"} & set(args):
        return prog
    count = sum(1 for f in dataclasses.fields(options) if f.metadata.get("positional"))
    return " ".join((prog, *takewhile(lambda word: not word.startswith("-"), args[:count])))


def _is_complete(options: type[Any]) -> bool:
    """Whether a command's options all have defaults, so that tyro need not be loaded where none is given."""
    missing = dataclasses.MISSING
    return all(f.default is not missing or f.default_factory is not missing for f in dataclasses.fields(options))


def _both(options: type[Any], root: Node) -> type[Any]:
    """A command's own options and those of the tree."""
    import tyro

    tree = _mirror(root)
    both = dataclasses.make_dataclass(
        "Options",
        [("own", Annotated[_with_help(options), tyro.conf.arg(name="")]), ("tree", Annotated[tree, tyro.conf.arg(name="")])],
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
def _one_line(options: type[Any], args: Sequence[str]) -> Generator[None]:
    """Raises ConfigError with one line where tyro refuses a value in a box; its other boxes are printed as they are."""
    err, held = sys.stderr, _Held(sys.stderr)
    try:
        with redirect_stderr(held):
            yield
    except SystemExit as stop:
        from assay.cli.wrong_values import explain_wrong_value

        if stop.code and (said := explain_wrong_value(held.getvalue().replace(_COMMA, ","), options, args)) is not None:
            raise ConfigError(said) from None
        err.write(held.getvalue().replace(_COMMA, ","))
        raise


@contextmanager
def _fitting() -> Generator[None]:
    """Help that fits the terminal: tyro fits its boxes, not the usage and the description above them."""
    out, held = sys.stdout, _Held(sys.stdout)
    try:
        with redirect_stdout(held):
            yield
    finally:
        parts = held.getvalue().replace(_COMMA, ",").split("\n\n")
        boxes = next((i for i, text in enumerate(parts) if i and _is_box(text)), len(parts))
        out.write("\n\n".join([*(fill(text, hang="       " * (i == 0)) for i, text in enumerate(parts[:boxes])), *parts[boxes:]]))


_COMMA = "\ue000"
"""Stands for a comma inside a word in what tyro is given, which would break the line behind it."""


def _whole_words(text: str) -> str:
    return re.sub(r",(?=\S)", _COMMA, text)


def _is_box(text: str) -> bool:
    return text.lstrip("\n").startswith(("╭", "┌", "+", "-"))


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


# ---- the mirror -------------------------------------------------------------------------------------------------------


def _mirror(node: Node) -> type[Any]:
    """A dataclass with one field per field of ``node`` that a command line can hold; small parts first."""
    import tyro

    from assay.cli.leaf_options import NONE, flag_of
    from assay.cli.part_tree import MISSING, Node, candidates, class_word

    fields: list[Any] = []
    helps = helps_of(node.kind)
    for name, child in sorted(node.fields.items(), key=lambda item: _depth(item[1])):
        if isinstance(child, Node):
            inner = _mirror(child)  # with its help: else tyro looks for one in the sources
            fields.append((_safe(name), Annotated[inner, tyro.conf.arg(name=name, help=_whole_words(_summary(child.kind)))]))
        elif (flag := flag_of(child, node.declared_at(name))) is not None:
            text = _whole_words(helps.get(name, ""))
            made = Annotated[flag.type, tyro.conf.arg(name=name, help=text, metavar=flag.metavar, help_behavior_hint=_hint(flag))]
            fields.append((_safe(name), made) if flag.shown is MISSING else (_safe(name), made, _default(flag.shown)))
        elif child is None or child is MISSING:
            fields.append(_class_option(f"{name}.kind", helps.get(name, ""), NONE, candidates(child, node.declared_at(name))))
    if _is_open(node):
        known = candidates(node, node.declared)
        fields.insert(0, _class_option(class_word(node), "which class to use here", node.kind.__name__, known))
    elif named_by := getattr(node.kind, "named_by", ""):
        fields.insert(0, _class_option(class_word(node), named_by, node.kind.__name__, {"a method's name": node.kind}))
    if node.kind is tuple and not node.fields:
        fields.append(_class_option("0.kind", "class of a first entry", NONE, candidates(None, node.declared_at("0"))))
    if node.kind is dict and not node.fields:
        known = candidates(None, node.declared_at("NAME"))
        fields.append(_class_option("NAME.kind", "class of an entry with this name", NONE, known))
    mirror = dataclasses.make_dataclass(f"{getattr(node.kind, '__name__', '')}Options", fields, frozen=True, kw_only=True)
    mirror.__doc__ = _summary(node.kind) or " "
    return mirror


def _class_option(name: str, text: str, shown: str, known: Mapping[str, Any]) -> Any:
    """Help for ``--PATH.kind``."""
    import tyro

    which = f"{', '.join(sorted(known))} or " if len(known) <= _LISTED else ""
    hint = f"({which}module:Class; default: {shown})"
    made = Annotated[str, tyro.conf.arg(name=name, help=_whole_words(text), metavar="CLASS", help_behavior_hint=hint)]
    return _safe(name), made, _default(shown)


def _is_open(node: Node) -> bool:
    """Whether the declared type of a place leaves the class open."""
    return node.kind not in (tuple, dict) and bool(node.declared is not Any) and node.declared is not node.kind


def _depth(child: Any) -> int:
    from assay.cli.part_tree import Node

    return 1 + max((_depth(c) for c in child.fields.values()), default=0) if isinstance(child, Node) else 0


def _safe(name: str) -> str:
    return "item_" + re.sub(r"\W", "_", name)


def _hint(flag: Flag) -> str | None:
    return "(default: none)" if flag.shown in ((), {}) else None


def _default(value: Any) -> Any:
    return dataclasses.field(default_factory=lambda: value)


# ---- help -------------------------------------------------------------------------------------------------------------


def _with_help(options: type[Any]) -> type[Any]:
    """The mirror of a command's options: help from the docstring, positions and names of values from the fields' metadata."""
    import tyro

    from assay.cli.part_tree import hints

    fields: list[Any] = []
    types, helps = hints(options), helps_of(options)
    for f in dataclasses.fields(options):
        nothing = any(f.default is x for x in (None, False)) or f.default == ()
        extra = {"metavar": _metavar(types[f.name]), "help_behavior_hint": "" if nothing else None}
        extra |= f.metadata.get("arg", {})
        made: Any = Annotated[types[f.name], tyro.conf.arg(help=_whole_words(helps.get(f.name, "")), **extra)]
        made = tyro.conf.Positional[made] if f.metadata.get("positional") else tyro.conf.FlagCreatePairsOff[made]
        fields.append((f.name, made) if f.default is dataclasses.MISSING else (f.name, made, _default(f.default)))
    mirror = dataclasses.make_dataclass(options.__name__, fields, frozen=True, kw_only=True)
    mirror.__doc__ = " "
    return mirror


def option_rows(options: type[Any]) -> dict[str, str]:
    """A command's options with their help, for a list without boxes."""
    from assay.cli.part_tree import hints

    types, helps = hints(options), helps_of(options)
    out: dict[str, str] = {}
    for f in dataclasses.fields(options):
        named = f.metadata.get("arg", {}).get("metavar") or _metavar(types[f.name])
        value = "" if types[f.name] is bool else f" {named or types[f.name].__name__.upper()}"
        out[f"--{f.name.replace('_', '-')}{value}"] = helps.get(f.name, "")
    return out


def _metavar(kind: Any) -> str | None:
    """``INT`` for an option that may also be left out; None leaves it to tyro."""
    from assay.core.fields import union_members

    given = [o for o in union_members(kind) if o is not NoneType]
    return given[0].__name__.upper() if len(given) == 1 and given != [kind] else None


def _settle_options(options: type[O], parsed: Any) -> O:
    return options(**{f.name: getattr(parsed, f.name) for f in dataclasses.fields(cast(Any, options))})


@cache
def helps_of(kind: Any) -> Mapping[str, str]:
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
