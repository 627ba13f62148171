"""What several values separated by commas, "and" or "or" are together."""

from __future__ import annotations

from collections.abc import Sequence

from assay.verify.math.intervals import intersect, unite
from assay.verify.math.values import Formula, Intervals, Many, Relation, Value

__all__ = ["together"]


def together(items: Sequence[Value], signs: set[str]) -> Value:
    """A list; ``x = 1, x = -1`` is the list of the values.

    Of inequalities, ``or`` makes the union and ``and`` what they have in common; so does a comma where they have anything.
    """
    if all(isinstance(item, Intervals) for item in items):
        if "\\or" in signs:
            return unite(items)
        common = intersect([item for item in items if isinstance(item, Intervals)])
        return common if common.pieces or "\\and" in signs else unite(items)
    names = {
        item.left.source for item in items if isinstance(item, Relation) and item.sign == "=" and isinstance(item.left, Formula)
    }
    if len(names) == 1 and all(isinstance(item, Relation) and item.sign == "=" for item in items):
        return Many("list", tuple(_flat([item.right for item in items if isinstance(item, Relation)])))
    if items and isinstance(items[0], Relation) and items[0].sign == "=" and not any(isinstance(i, Relation) for i in items[1:]):
        return Relation("=", items[0].left, Many("list", tuple(_flat([items[0].right, *items[1:]]))))
    return Many("list", tuple(_flat(items)))


def _flat(items: Sequence[Value]) -> list[Value]:
    out: list[Value] = []
    for item in items:
        out.extend(item.items if isinstance(item, Many) and item.kind == "list" else [item])
    return out
