"""Graph answers that are a sequence of nodes: paths, cycles, tours, orders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

from assay.verify.structure.graph import Bad, Graph, GraphAnswer
from assay.verify.structure.reading import names_in

__all__ = ["Cycle", "EulerPath", "HamiltonCycle", "HamiltonPath", "Path", "ShortestPath", "TopologicalOrder"]


@dataclass(frozen=True, slots=True)
class Path(GraphAnswer):
    """A path from ``source`` to ``target`` along edges, no node twice: ``A -> B -> C``.

    >>> from assay.verify.rollouts import task_and_rollout
    >>> gold = {"edges": [["A", "B"], ["B", "C"], ["A", "D"], ["D", "C"]], "source": "A", "target": "C"}
    >>> [Path()(*task_and_rollout(gold, said)).primary for said in ("A -> B -> C", "A,D,C", "A, C")]
    [1.0, 1.0, 0.0]
    """

    def value(self, graph: Graph, text: str) -> Fraction:
        """The length of the path: the sum of its weights."""
        route = _route(graph, text)
        if route[0] != graph.end("source") or route[-1] != graph.end("target"):
            raise Bad("invalid", "it does not lead from source to target")
        _once(route)
        return _route_length(graph, route)


@dataclass(frozen=True, slots=True)
class ShortestPath(Path):
    """A path from ``source`` to ``target`` whose length, the sum of weights (1 each where none are given), is the gold's
    ``value``.
    """

    sense: ClassVar[int] = -1


@dataclass(frozen=True, slots=True)
class Cycle(GraphAnswer):
    """A cycle: nodes along edges and back to the first, which may be said again; no other twice. At least 3, or 2 where
    directed.
    """

    def value(self, graph: Graph, text: str) -> Fraction:
        """The sum of its weights."""
        return _round(graph, _route(graph, text))


@dataclass(frozen=True, slots=True)
class HamiltonPath(GraphAnswer):
    """A path along edges through every node, each once; from ``source`` where the gold names one."""

    sense: ClassVar[int] = -1

    def value(self, graph: Graph, text: str) -> Fraction:
        """The sum of its weights."""
        route = _route(graph, text)
        _once(route)
        if len(route) != len(graph.nodes):
            raise Bad("invalid", "it does not visit every node")
        if "source" in graph.gold and route[0] != graph.end("source"):
            raise Bad("invalid", "it does not begin at the source")
        return _route_length(graph, route)


@dataclass(frozen=True, slots=True)
class HamiltonCycle(GraphAnswer):
    """A cycle through every node, each once; with a ``value``, the tour of a travelling salesman."""

    sense: ClassVar[int] = -1

    def value(self, graph: Graph, text: str) -> Fraction:
        """The sum of its weights."""
        route = _route(graph, text)
        if len(set(route)) != len(graph.nodes):
            raise Bad("invalid", "it does not visit every node")
        return _round(graph, route)


@dataclass(frozen=True, slots=True)
class EulerPath(GraphAnswer):
    """A walk that uses every edge exactly once, said as the nodes that it visits; closed where the gold says ``"closed":
    true``.
    """

    def value(self, graph: Graph, text: str) -> Fraction:
        """How many edges it uses."""
        route = _route(graph, text)
        used = Counter(graph.pair(a, b) for a, b in pairwise(route))
        if used != graph.counts():
            raise Bad("invalid", "it does not use every edge exactly once")
        if graph.gold.get("closed") and route[0] != route[-1]:
            raise Bad("invalid", "it does not end where it began")
        return Fraction(len(route) - 1)


@dataclass(frozen=True, slots=True)
class TopologicalOrder(GraphAnswer):
    """All nodes in an order in which every edge leads forward, whether or not the gold says that it is directed."""

    def value(self, graph: Graph, text: str) -> Fraction:
        """How many nodes there are."""
        route = _route(graph, text)
        _once(route)
        if len(route) != len(graph.nodes):
            raise Bad("invalid", "it does not name every node")
        place = {name: i for i, name in enumerate(route)}
        for a, b, _ in graph.edges:
            if place[a] >= place[b]:
                raise Bad("invalid", f"{b} stands before {a}")
        return Fraction(len(route))


def _route(graph: Graph, text: str) -> list[str]:
    found = names_in(text, set(graph.nodes))
    if found is None:
        raise Bad("unparsed")
    return found


def _once(route: Sequence[str]) -> None:
    if len(set(route)) < len(route):
        raise Bad("invalid", "a node occurs twice")


def _route_length(graph: Graph, route: Sequence[str]) -> Fraction:
    weights, total = graph.weights(), Fraction(0)
    for pair in pairwise(route):
        if pair not in weights:
            raise Bad("invalid", f"there is no edge from {pair[0]} to {pair[1]}")
        total += weights[pair]
    return total


def _round(graph: Graph, route: list[str]) -> Fraction:
    if len(route) > 1 and route[0] == route[-1]:
        route = route[:-1]
    _once(route)
    if len(route) < (2 if graph.directed else 3):
        raise Bad("invalid", "it is too short for a cycle")
    return _route_length(graph, [*route, route[0]])
