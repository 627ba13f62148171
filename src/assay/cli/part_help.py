"""Help on a place where one of several parts may stand: their names, and the settings of each."""

from __future__ import annotations

import dataclasses
from typing import Any

from assay.cli.options import helps_of
from assay.cli.part_tree import Node, candidates, class_word

__all__ = ["part_rows"]

_MOST = 8
"""Parts whose settings are listed; where more fit, their names are enough."""


def part_rows(node: Node, word: str, above: str = "") -> dict[str, str]:
    """Options and their texts of each place that is called ``word``: what may stand there, and the settings of what does not now.

    Args:
        node: the tree that is searched.
        word: name of a field, as ``sampler``.
        above: path of the tree, with a point behind it.
    """
    rows: dict[str, str] = {}
    for name, child in node.fields.items():
        if not isinstance(child, Node):
            continue
        if name == word and child.kind not in (tuple, dict):
            rows |= _rows(child, node.declared_at(name), f"--{above}{name}.")
        rows |= part_rows(child, word, f"{above}{name}.")
    return rows


def _rows(now: Node, declared: Any, place: str) -> dict[str, str]:
    found = candidates(now, declared)
    rows = {f"{place}{class_word(now)} KIND": f"one of {', '.join(sorted(found))}, or module:Class (now {now.kind.__name__})"}
    kinds = [now.kind, *(k for k in found.values() if k is not now.kind)]
    for kind in kinds if len(kinds) <= _MOST else kinds[:1]:
        texts = helps_of(kind)
        for each in dataclasses.fields(kind):
            if each.init:
                option = f"{place}{each.name}".replace("_", "-")
                said = f"{kind.__name__}: {texts.get(each.name, '')}".strip()
                rows[option] = f"{rows[option]}; {said}" if option in rows else said
    return rows
