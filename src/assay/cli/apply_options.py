"""Options put into a run, and all that is wrong with them: unknown names, unreadable values, values that a part refuses."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

from assay.cli.given_options import GivenOption, Mistakes, last_given
from assay.cli.leaf_options import Flag, flag_of
from assay.cli.option_names import unknown_option
from assay.cli.option_values import is_typed, read_value, typed_value, value_name
from assay.cli.part_tree import MISSING, Node, assemble, at, build, class_word, hints, put, take, values_of
from assay.core.errors import AssayError

__all__ = ["apply_options", "own_flag"]

O = TypeVar("O")  # noqa: E741
T = TypeVar("T")


class _Wrong:
    """Stands where a part could not be built."""


_WRONG = _Wrong()


def apply_options(
    options: type[O], value: T, given: Sequence[GivenOption], mistakes: Mistakes, modules: Sequence[str] = ()
) -> tuple[O, T]:
    """A command's own options, and the value with the changes.

    Args:
        options: the command's own, a dataclass.
        value: a tree of frozen dataclasses.
        given: in the order in which they count.
        mistakes: what was wrong before; takes what else is.
        modules: where bare names of parts are looked up besides the packages: the user's own.

    Raises:
        ConfigError: something is wrong; all of it, each with its place.
    """
    root = cast(Node, take(value))
    given = last_given(given, lambda path: _part_of(path, root))
    kinds = [o for o in given if _part_of(o.path, root)]
    refused = _put_parts(root, kinds, modules, mistakes)
    own: dict[str, list[GivenOption]] = {}
    leaves: dict[str, list[GivenOption]] = {}
    names = {f.name for f in dataclasses.fields(cast(Any, options)) if not f.metadata.get("positional")}
    for option in given:
        if option in kinds or any(option.path.startswith(f"{path}.") for path in refused):
            continue
        leaf = _leaf_of(option, root)
        if option.path in names and not option.file:
            own.setdefault(option.path, []).append(option)
        elif leaf:
            leaves.setdefault(leaf, []).append(option)
        elif option.path in names:
            mistakes.add([option], "it belongs to the command, not to a file of settings: give it on the command line")
        else:
            mistakes.add([option], unknown_option(option, names, root))
    for path, about in leaves.items():
        _set(root, path, about, mistakes)
    _find_missing(root, "", kinds, mistakes)
    made = _own(options, own, mistakes)
    changed = _build(root, given, mistakes)
    mistakes.raise_all()
    return cast(O, made), changed


def own_flag(options: type[Any], name: str) -> Flag:
    """How a command's own option is held."""
    found = next(f for f in dataclasses.fields(options) if f.name == name)
    return Flag(hints(options)[name], found.default, lambda new, place: new, found.metadata.get("arg", {}).get("metavar"))


# ---- which option is about what ---------------------------------------------------------------------------------------


def _part_of(path: str, root: Node) -> str:
    """The part that an option replaces by another; empty for one that sets a value.

    A part with a field of its own called ``kind`` is replaced by ``--PATH.class``.
    """
    head, _, word = path.rpartition(".")
    return head if head and word == class_word(at(root, head.split("."))) else ""


def _leaf_of(option: GivenOption, root: Node) -> str:
    """The leaf that an option sets, denies or adds an entry to; empty where there is none."""
    node, words = root, option.path.split(".")
    for depth, word in enumerate(words):
        last = depth + 1 == len(words)
        if last and word not in node.fields and word.startswith("no_"):
            word = word.removeprefix("no_")
            if node.fields.get(word) not in (True, False):
                return ""
        if word not in node.fields:
            return ""
        child = node.fields[word]
        if not isinstance(child, Node):
            declared = node.declared_at(word)
            flag = flag_of(child, declared)
            held = flag is not None or is_typed(declared, option.path, option)
            table = flag is not None and isinstance(flag.shown, Mapping)
            return ".".join((*words[:depth], word)) if held and (last or table) else ""
        node = child
    return ""


# ---- changes ----------------------------------------------------------------------------------------------------------


def _put_parts(root: Node, kinds: Sequence[GivenOption], modules: Sequence[str], mistakes: Mistakes) -> list[str]:
    """Puts other parts in their places, outer ones first; the places where that failed."""
    refused: list[str] = []
    for option in sorted(kinds, key=lambda o: _order(o.path)):
        path = option.path.rpartition(".")[0]
        try:
            if not option.words or not option.words[0]:
                mistakes.add(
                    [option], f"{option.typed} needs a value: module:Class, as in --stages.0.curriculum.kind assay.guide:Uniform"
                )
                refused.append(path)
                continue
            put(root, path.split("."), option.words[0], modules)
        except AssayError as error:
            mistakes.add([option], error)
            refused.append(path)
    return refused


def _order(path: str) -> tuple[int, list[int]]:
    """Outer parts first, and the entries of a tuple in their order, since each is put behind the last one."""
    words = path.split(".")
    return len(words), [int(word) if word.isdecimal() else 0 for word in words]


def _set(root: Node, path: str, about: Sequence[GivenOption], mistakes: Mistakes) -> None:
    """Sets a leaf."""
    head, _, name = path.rpartition(".")
    node = cast(Node, at(root, head.split(".")) if head else root)
    declared = node.declared_at(name)
    flag = flag_of(node.fields[name], declared)
    try:
        if flag is None or is_typed(declared, path, about[-1]):
            new = typed_value(declared, about[-1])
            if new != node.fields[name] or type(new) is not type(node.fields[name]):
                node.fields[name] = new
            return
        new = read_value(flag, path, about)
        if flag.shown is MISSING or new != flag.shown or type(new) is not type(flag.shown):
            node.fields[name] = flag.read(new, about[-1].typed)
    except AssayError as error:
        mistakes.add(about[-1:], error)
        if node.fields[name] is MISSING:
            node.fields[name] = _WRONG


def _find_missing(node: Node, path: str, kinds: Sequence[GivenOption], mistakes: Mistakes) -> None:
    """Notes values without which a part cannot be made."""
    for name, child in node.fields.items():
        if isinstance(child, Node):
            _find_missing(child, f"{path}{name}.", kinds, mistakes)
        elif child is MISSING and (flag := flag_of(child, node.declared_at(name))) is not None:
            about = [o for o in kinds if f"{path}".startswith(o.path.rpartition(".")[0] + ".")][-1:]
            flat = f"{path}{name}".replace("_", "-")
            mistakes.add(about, f"{node.kind.__name__} needs a value for {name!r}: --{flat} {value_name(flag)}")
            node.fields[name] = _WRONG


def _own(options: type[O], given: Mapping[str, Sequence[GivenOption]], mistakes: Mistakes) -> O | None:
    """The command's own options."""
    values: dict[str, Any] = {}
    for name, about in given.items():
        flag = own_flag(options, name)
        try:
            values[name] = read_value(flag, name, about)
        except AssayError as error:
            mistakes.add(about[-1:], error)
    try:
        return options(**values)
    except AssayError as error:
        mistakes.add([o for about in given.values() for o in about[-1:]] if len(given) == 1 else [], error)
        return None


# ---- building ---------------------------------------------------------------------------------------------------------


def _build(root: Node, given: Sequence[GivenOption], mistakes: Mistakes) -> Any:
    """The value; where a part refuses its settings, each change is tried by itself."""
    if not mistakes:
        try:
            return build(root)
        except AssayError:
            pass
    _find_refused(root, "", given, mistakes)
    return None


def _find_refused(node: Any, path: str, given: Sequence[GivenOption], mistakes: Mistakes) -> Any:
    """The value of a tree, from the leaves up. Where a part cannot be built, the one above it is tried with the one of before."""
    if not isinstance(node, Node):
        return node
    found = {name: _find_refused(child, f"{path}{name}.", given, mistakes) for name, child in node.fields.items()}
    wrong = [name for name, value in found.items() if value is _WRONG]
    before = {} if node.before is MISSING else values_of(node.before)
    if any(name not in before for name in wrong):
        return _WRONG
    values = {name: before[name] if name in wrong else value for name, value in found.items()}
    try:
        made = assemble(node, values, path)
    except AssayError as error:
        _blame(node, path, values, error, given, mistakes)
        return _WRONG
    return _WRONG if wrong else made


def _blame(
    node: Node, path: str, values: dict[str, Any], error: AssayError, given: Sequence[GivenOption], mistakes: Mistakes
) -> None:
    """Notes which changes a part refuses: those that are wrong alone, else all together."""

    def about(name: str) -> list[GivenOption]:
        return [o for o in given if f"{o.path}.".startswith(f"{path}{name}.")]

    base = values_of(node.before) if node.before is not MISSING else _defaults(node.kind, values)
    changed = [name for name in values if name not in base or values[name] is not base[name]]
    told = False
    for name in changed if len(changed) > 1 else []:
        try:
            assemble(Node(node.kind, {}, before=MISSING), {**base, name: values[name]}, path)
        except AssayError as alone:
            mistakes.add(about(name), alone)
            told = True
    if not told:
        mistakes.add([o for name in changed for o in about(name)], error)


def _defaults(kind: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Values that a part has by itself; those that must be given, as they were."""
    out: dict[str, Any] = {}
    for f in dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ():
        if f.init:
            made = f.default_factory() if f.default_factory is not dataclasses.MISSING else f.default
            out[f.name] = values[f.name] if made is dataclasses.MISSING else made
    return out
