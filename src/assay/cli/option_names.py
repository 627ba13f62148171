"""Which option a wrong one was meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator
from typing import Any

from assay.cli.aliases import ALIASES, OWN_ALIASES
from assay.cli.given_options import GivenOption
from assay.cli.leaf_options import flag_of
from assay.cli.part_tree import Node
from assay.cli.peer_hints import hint_of, setting_of_method
from assay.core.errors import nearest
from assay.recipes.setting_names import peer_names

__all__ = ["leaf_paths", "unknown_option"]


def unknown_option(option: GivenOption, own: Collection[str], root: Node) -> str:
    """What to say of an option that is not there.

    Args:
        option: as it was given.
        own: options of the command, with underscores.
        root: the run, taken apart.
    """
    name = option.path.lower()
    short = [n.replace("-", "_") for group in ALIASES.values() for alias in group for n in alias.names]
    if here := hint_of(name, option.words, root, set(own) - set(short) if option.file else None):
        return f"{option.typed} is another library's; in assay this is {here}"
    if method := setting_of_method(option, root):
        return f"{option.typed}: {method}"
    top = [name for name, child in root.fields.items() if not isinstance(child, Node)]
    known = [*top, *short] if option.file else [*own, *top, *short, *OWN_ALIASES, "config", "help", "help_all"]
    found = _match_case(name, known) or _in_tree(name, root) or _short_of(name, known, root) or _at_end(name, root)
    if found is None:
        more = "'assay explain RECIPE' shows the fields" if option.file else "--help-all lists all, --help WORD some"
        return f"{option.typed}: there is no such option; {more}"
    if found.startswith("in assay"):
        return f"{option.typed}: there is no such option; {found}"
    return f"{option.typed}: there is no such option; did you mean {option.spell(found)}?"


def leaf_paths(root: Node) -> dict[str, Any]:
    """Every field that an option can set, and what stands there."""
    return dict(_leaves(root, ""))


def _leaves(node: Node, above: str) -> Iterator[tuple[str, Any]]:
    for name, child in node.fields.items():
        if isinstance(child, Node):
            yield from _leaves(child, f"{above}{name}.")
        elif flag_of(child, node.declared_at(name)) is not None:
            yield f"{above}{name}", child


def _match_case(name: str, known: Collection[str]) -> str | None:
    """The same name in another case."""
    return next((k for k in known if k == name), None)


def _in_tree(name: str, root: Node) -> str | None:
    """The path whose every part is nearest to that of the name, from the run down."""
    node: Any = root
    out: list[str] = []
    words = name.split(".")
    if len(words) == 1:
        return None
    for word in words:
        if not isinstance(node, Node):
            return None
        begins = [name for name in node.fields if len(word) > 2 and name.startswith(word)]
        found = word if word in node.fields else begins[0] if len(begins) == 1 else nearest(word, node.fields)
        if found is None:
            return None
        out.append(found)
        node = node.fields[found]
    return None if isinstance(node, Node) else ".".join(out)


def _short_of(name: str, known: Collection[str], root: Node) -> str | None:
    """The short option, or the name in another library, that is nearest."""
    if "." in name:
        return None
    peers = [n.replace("-", "_") for n in peer_names() if "." not in n]
    found = nearest(name, known)
    other = nearest(name, peers)
    if found is None or (other is not None and _likeness(name, other) > _likeness(name, found) + 0.1):
        return f"in assay {other.replace('_', '-')} is {hint_of(other, (), root)}" if other else None
    return found


def _likeness(a: str, b: str) -> float:
    return difflib.SequenceMatcher(None, a, b).ratio()


def _at_end(name: str, root: Node) -> str | None:
    """A field of this name somewhere in the tree, the one whose path has most in common; that of the run before its base's."""
    paths = list(leaf_paths(root))
    word = name.rpartition(".")[2]
    ends = {p.rpartition(".")[2] for p in paths}
    last = word if word in ends else nearest(word, ends) if "." in name else None
    if last is None:
        return None
    parts = set(name.split("."))
    found = [p for p in paths if p.rpartition(".")[2] == last]
    return max(found, key=lambda p: (len(parts & set(p.split("."))), not p.startswith("model.run."), -len(p)))
