"""Graph answers that divide the nodes: colours, components, two sides."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from assay.core.errors import DataError
from assay.verify.structure.graph import Bad, Graph, GraphAnswer
from assay.verify.structure.reading import groups_in, table_in

__all__ = ["Bipartition", "Coloring", "Components"]


@dataclass(frozen=True, slots=True)
class Coloring(GraphAnswer):
    """A colour for every node such that no edge joins two of one colour: ``a: red, b: blue``, or a JSON object.

    Where the gold has ``colors``, a list or a number of them, no more may be used, and no other ones than listed; with a
    ``value``, no more than that.

    >>> from assay.verify.rollouts import task_and_rollout
    >>> gold = {"edges": [["a", "b"], ["b", "c"]], "colors": 2}
    >>> answers = ("a: 1, b: 2, c: 1", "a: 1, b: 2, c: 3", "a: 1, b: 1, c: 2")
    >>> [Coloring()(*task_and_rollout(gold, answer)).primary for answer in answers]
    [1.0, 0.0, 0.0]
    """

    sense: ClassVar[int] = -1

    def value(self, graph: Graph, text: str) -> Fraction:
        """How many colours."""
        allowed = graph.gold.get("colors")
        if not isinstance(allowed, int | list | None) or isinstance(allowed, bool):
            raise DataError(f"the gold's 'colors' are {allowed!r}; give a list or a number of them")
        colors = table_in(text, set(graph.nodes))
        if colors is None:
            raise Bad("unparsed")
        if colors.keys() != set(graph.nodes):
            raise Bad("invalid", "it does not colour every node, or colours something else")
        for a, b, _ in graph.edges:
            if colors[a] == colors[b]:
                raise Bad("invalid", f"{a} and {b} share an edge and a colour")
        used = set(colors.values())
        if isinstance(allowed, list) and not used <= {str(c) for c in allowed}:  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            raise Bad("invalid", "it uses another colour")
        if isinstance(allowed, int) and len(used) > allowed:
            raise Bad("invalid", f"it uses {len(used)} colours")
        return Fraction(len(used))


@dataclass(frozen=True, slots=True)
class Components(GraphAnswer):
    """The connected components, each as a group of nodes: ``[[1, 2], [3]]``, or one to a line; direction does not matter."""

    def value(self, graph: Graph, text: str) -> Fraction:
        """How many components."""
        groups = _groups(graph, text)
        if sorted(map(sorted, groups)) != sorted(map(sorted, graph.pieces())):
            raise Bad("invalid", "these are not the components")
        return Fraction(len(groups))


@dataclass(frozen=True, slots=True)
class Bipartition(GraphAnswer):
    """Two groups of nodes, all nodes between them, such that every edge leads from one to the other."""

    def value(self, graph: Graph, text: str) -> Fraction:
        """2."""
        groups = _groups(graph, text)
        if len(groups) != 2:
            raise Bad("invalid", f"there are {len(groups)} groups")
        side = {n: i for i, group in enumerate(groups) for n in group}
        if any(side[a] == side[b] for a, b, _ in graph.edges):
            raise Bad("invalid", "an edge stays on one side")
        return Fraction(2)


def _groups(graph: Graph, text: str) -> list[list[str]]:
    """Groups that have every node once."""
    groups = groups_in(text, set(graph.nodes))
    if groups is None:
        raise Bad("unparsed")
    if sorted(n for group in groups for n in group) != sorted(graph.nodes):
        raise Bad("invalid", "not every node stands in one group")
    return groups
