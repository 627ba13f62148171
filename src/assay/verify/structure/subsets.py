"""Graph answers that are a set of nodes or of edges."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from assay.verify.structure.graph import Bad, Graph, GraphAnswer
from assay.verify.structure.reading import names_in, pairs_in

__all__ = ["Clique", "DominatingSet", "IndependentSet", "Matching", "SpanningTree", "VertexCover"]


@dataclass(frozen=True, slots=True)
class IndependentSet(GraphAnswer):
    """Nodes of which no two share an edge; as many as the gold's ``value``, where it has one.

    >>> from assay.verify.rollouts import task_and_rollout
    >>> gold = {"edges": [[0, 1], [1, 2]], "value": 2}
    >>> [IndependentSet()(*task_and_rollout(gold, said)).info["verdict"] for said in ("{0, 2}", "1", "0, 1")]
    ['equal', 'suboptimal', 'invalid']
    """

    sense: ClassVar[int] = 1

    def value(self, graph: Graph, text: str) -> Fraction:
        """How many nodes."""
        chosen = _nodes(graph, text)
        for a, b, _ in graph.edges:
            if a in chosen and b in chosen:
                raise Bad("invalid", f"{a} and {b} share an edge")
        return Fraction(len(chosen))


@dataclass(frozen=True, slots=True)
class Clique(GraphAnswer):
    """Nodes of which every two share an edge, either way where directed; as many as the gold's ``value``, where it has one."""

    sense: ClassVar[int] = 1

    def value(self, graph: Graph, text: str) -> Fraction:
        """How many nodes."""
        chosen = sorted(_nodes(graph, text))
        joined = {frozenset((a, b)) for a, b, _ in graph.edges}
        for i, a in enumerate(chosen):
            for b in chosen[i + 1 :]:
                if frozenset((a, b)) not in joined:
                    raise Bad("invalid", f"{a} and {b} share no edge")
        return Fraction(len(chosen))


@dataclass(frozen=True, slots=True)
class VertexCover(GraphAnswer):
    """Nodes such that every edge has an end among them; as few as the gold's ``value``, where it has one."""

    sense: ClassVar[int] = -1

    def value(self, graph: Graph, text: str) -> Fraction:
        """How many nodes."""
        chosen = _nodes(graph, text)
        for a, b, _ in graph.edges:
            if a not in chosen and b not in chosen:
                raise Bad("invalid", f"the edge of {a} and {b} is not covered")
        return Fraction(len(chosen))


@dataclass(frozen=True, slots=True)
class DominatingSet(GraphAnswer):
    """Nodes such that every other node has an edge with one of them; as few as the gold's ``value``, where it has one."""

    sense: ClassVar[int] = -1

    def value(self, graph: Graph, text: str) -> Fraction:
        """How many nodes."""
        chosen = _nodes(graph, text)
        reached = set(chosen)
        for a, b in graph.weights():
            if a in chosen:
                reached.add(b)
        if len(reached) < len(graph.nodes):
            raise Bad("invalid", f"{min(set(graph.nodes) - reached)} has no edge with a chosen node")
        return Fraction(len(chosen))


@dataclass(frozen=True, slots=True)
class Matching(GraphAnswer):
    """Edges of which no two share a node, ``(a, b), (c, d)``; as many as the gold's ``value``, where it has one."""

    sense: ClassVar[int] = 1

    def value(self, graph: Graph, text: str) -> Fraction:
        """How many edges."""
        chosen = _edges(graph, text)
        ends = [n for pair in chosen for n in pair]
        if len(set(ends)) < len(ends):
            raise Bad("invalid", "a node is matched twice")
        return Fraction(len(chosen))


@dataclass(frozen=True, slots=True)
class SpanningTree(GraphAnswer):
    """Edges that join all nodes without a cycle; their weights together the gold's ``value``, where it has one."""

    sense: ClassVar[int] = -1

    def value(self, graph: Graph, text: str) -> Fraction:
        """The sum of the weights."""
        chosen = _edges(graph, text)
        if len(chosen) != len(graph.nodes) - 1 or len(graph.pieces(chosen)) > 1:
            raise Bad("invalid", "it is no tree that joins all nodes")
        weights = graph.weights()
        return sum((weights[pair] for pair in chosen), Fraction(0))


def _nodes(graph: Graph, text: str) -> set[str]:
    found = names_in(text, set(graph.nodes))
    if found is None:
        raise Bad("unparsed")
    if len(set(found)) < len(found):
        raise Bad("invalid", "a node is named twice")
    return set(found)


def _edges(graph: Graph, text: str) -> list[tuple[str, str]]:
    found = pairs_in(text, set(graph.nodes))
    if found is None:
        raise Bad("unparsed")
    weights = graph.weights()
    for a, b in found:
        if (a, b) not in weights:
            raise Bad("invalid", f"there is no edge from {a} to {b}")
    if len({graph.pair(a, b) for a, b in found}) < len(found):
        raise Bad("invalid", "an edge is named twice")
    return found
