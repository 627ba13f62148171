"""Sets of nodes and edges: cliques, covers, matchings, colours."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.tasks.draws import TRIES
from assay.tasks.problem import Facts
from assay.verify.structure import partitions, subsets
from assay.verify.structure.graph import GraphAnswer
from assay_tasks.graphs.base import NumberOf, Witness
from assay_tasks.graphs.drawing import any_graph, bipartite_graph, no_graph, some
from assay_tasks.graphs.exact import chromatic, clique, coloring, dominating, independent, matching, maximum_matching
from assay_tasks.graphs.net import Edge, Net, at, bits
from assay_tasks.graphs.weighed import flow
from assay_tasks.graphs.wording import FRIENDS, ROADS, Theme

__all__ = ["SETS"]

_COMMAS = "List the {nodes} with commas between."
_PAIRS = "Write each as (one, other), with commas between."


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestClique(Witness):
    """A largest set of nodes of which every two share an edge. The level is the number of nodes.

    >>> LargestClique().solve({"names": "A B C D", "edges": [0, 1, 0, 2, 1, 2, 2, 3]}).answer
    'A, B, C'
    """

    name: str = "graphs/clique"
    levels: tuple[int, ...] = (5, 6, 8, 10, 13, 16)
    degree: tuple[float, float] = (3.0, 6.0)
    theme: ClassVar[Theme] = FRIENDS
    judge: ClassVar[type[GraphAnswer]] = subsets.Clique
    asks: ClassVar[tuple[str, ...]] = (
        "Find a largest clique: as many nodes as possible of which every two share an edge.",
        "Choose as many nodes as possible such that each two of them are joined by an edge.",
    )
    tells: ClassVar[tuple[str, ...]] = ("Name a largest group of people in which everyone is a friend of everyone else.",)
    how: ClassVar[str] = _COMMAS

    def find(self, net: Net, facts: Facts) -> tuple[str, dict[str, Any]]:
        """Branch and bound."""
        found = clique(net)
        return net.join_names(bits(found)), {"value": found.bit_count()}


@dataclass(frozen=True, slots=True, kw_only=True)
class CliqueNumber(NumberOf):
    """The size of a largest clique. The level is the number of nodes.

    >>> CliqueNumber().solve({"names": "A B C D", "edges": [0, 1, 0, 2, 1, 2, 2, 3]}).answer
    '3'
    """

    name: str = "graphs/clique_number"
    levels: tuple[int, ...] = (5, 6, 8, 10, 13, 16)
    degree: tuple[float, float] = (1.0, 7.5)
    theme: ClassVar[Theme] = FRIENDS
    asks: ClassVar[tuple[str, ...]] = (
        "What is the clique number of this graph, the largest number of nodes of which every two share an edge?",
        "How many nodes does a largest clique have?",
    )
    tells: ClassVar[tuple[str, ...]] = ("How many people are in a largest group in which everyone is a friend of everyone else?",)

    def find(self, net: Net, facts: Facts) -> int:
        """Branch and bound."""
        return clique(net).bit_count()


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestIndependent(Witness):
    """A largest set of nodes of which no two share an edge. The level is the number of nodes.

    >>> LargestIndependent().solve({"names": "A B C", "edges": [0, 1, 1, 2]}).answer
    'A, C'
    """

    name: str = "graphs/independent_set"
    levels: tuple[int, ...] = (5, 7, 9, 12, 15, 18)
    degree: tuple[float, float] = (2.0, 4.0)
    theme: ClassVar[Theme] = FRIENDS
    judge: ClassVar[type[GraphAnswer]] = subsets.IndependentSet
    asks: ClassVar[tuple[str, ...]] = (
        "Find a largest independent set: as many nodes as possible of which no two share an edge.",
        "Choose as many nodes as possible such that no edge joins two of them.",
    )
    tells: ClassVar[tuple[str, ...]] = ("Name a largest group of people of whom no two are friends.",)
    how: ClassVar[str] = _COMMAS

    def find(self, net: Net, facts: Facts) -> tuple[str, dict[str, Any]]:
        """Branch and bound."""
        found = independent(net)
        return net.join_names(bits(found)), {"value": found.bit_count()}


@dataclass(frozen=True, slots=True, kw_only=True)
class IndependenceNumber(NumberOf):
    """The size of a largest independent set. The level is the number of nodes.

    >>> IndependenceNumber().solve({"names": "A B C", "edges": [0, 1, 1, 2]}).answer
    '2'
    """

    name: str = "graphs/independence_number"
    levels: tuple[int, ...] = (5, 7, 9, 12, 15, 18)
    degree: tuple[float, float] = (1.5, 5.0)
    theme: ClassVar[Theme] = FRIENDS
    asks: ClassVar[tuple[str, ...]] = (
        "What is the independence number of this graph, the largest number of nodes of which no two share an edge?",
        "At most how many nodes can be chosen such that no edge joins two of them?",
    )
    tells: ClassVar[tuple[str, ...]] = ("How many people are in a largest group in which no two are friends?",)

    def find(self, net: Net, facts: Facts) -> int:
        """Branch and bound."""
        return independent(net).bit_count()


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallestCover(Witness):
    """A smallest set of nodes that has an end of every edge. The level is the number of nodes.

    >>> SmallestCover().solve({"names": "A B C", "edges": [0, 1, 1, 2]}).answer
    'B'
    """

    name: str = "graphs/vertex_cover"
    levels: tuple[int, ...] = (5, 7, 9, 12, 15, 18)
    degree: tuple[float, float] = (2.0, 4.0)
    judge: ClassVar[type[GraphAnswer]] = subsets.VertexCover
    asks: ClassVar[tuple[str, ...]] = (
        "Find a smallest vertex cover: as few nodes as possible such that every edge has an end among them.",
        "Choose as few nodes as possible such that each edge touches a chosen node.",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "A guard in a town watches all roads that end there. In which towns must guards stand so that every road is watched "
        "by as few guards as possible?",
    )
    how: ClassVar[str] = _COMMAS

    def find(self, net: Net, facts: Facts) -> tuple[str, dict[str, Any]]:
        """What a largest independent set leaves."""
        found = (1 << net.n) - 1 & ~independent(net)
        return net.join_names(bits(found)), {"value": found.bit_count()}


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallestDominating(Witness):
    """A smallest set of nodes that every other node has an edge with. The level is the number of nodes.

    >>> SmallestDominating().solve({"names": "A B C", "edges": [0, 1, 1, 2]}).answer
    'B'
    """

    name: str = "graphs/dominating_set"
    levels: tuple[int, ...] = (5, 7, 9, 12, 15, 18)
    degree: tuple[float, float] = (2.0, 3.0)
    judge: ClassVar[type[GraphAnswer]] = subsets.DominatingSet
    asks: ClassVar[tuple[str, ...]] = (
        "Find a smallest dominating set: as few nodes as possible such that every other node shares an edge with one of them.",
        "Choose as few nodes as possible such that each node is chosen or is a neighbour of a chosen one.",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "Every town shall have a hospital, or a road to a town that has one. Where can hospitals be built so that they are "
        "as few as possible?",
    )
    how: ClassVar[str] = _COMMAS

    def find(self, net: Net, facts: Facts) -> tuple[str, dict[str, Any]]:
        """Sets of one more node until one suffices."""
        found = dominating(net)
        return net.join_names(bits(found)), {"value": found.bit_count()}


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestMatching(Witness):
    """As many edges as possible of which no two share a node. The level is the number of nodes.

    >>> LargestMatching().solve({"names": "A B C D", "edges": [0, 1, 1, 2, 2, 3]}).answer
    '(A, B), (C, D)'
    """

    name: str = "graphs/matching"
    levels: tuple[int, ...] = (5, 7, 9, 12, 15, 18)
    degree: tuple[float, float] = (1.6, 2.6)
    theme: ClassVar[Theme] = FRIENDS
    judge: ClassVar[type[GraphAnswer]] = subsets.Matching
    asks: ClassVar[tuple[str, ...]] = (
        "Find a maximum matching: as many edges as possible of which no two share a node.",
        "Choose as many edges as possible such that each node is an end of at most one of them.",
    )
    tells: ClassVar[tuple[str, ...]] = ("Form as many pairs of friends as possible; nobody can be in two pairs. Which pairs?",)
    how: ClassVar[str] = _PAIRS

    def find(self, net: Net, facts: Facts) -> tuple[str, dict[str, Any]]:
        """Node by node, with a table of what is left."""
        found = matching(net)
        return _pairs(net, found), {"value": len(found)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoSidedMatching(Witness):
    """As many edges as possible of which no two share a node, where the nodes have two sides. The level is the number of nodes.

    >>> TwoSidedMatching().solve({"names": "A B C D", "edges": [0, 2, 0, 3, 1, 2]}).answer
    '(B, C), (A, D)'
    """

    name: str = "graphs/bipartite_matching"
    levels: tuple[int, ...] = (6, 8, 11, 14, 18, 24)
    degree: tuple[float, float] = (2.0, 3.0)
    theme: ClassVar[Theme] = FRIENDS
    judge: ClassVar[type[GraphAnswer]] = subsets.Matching
    asks: ClassVar[tuple[str, ...]] = (
        "This graph is bipartite. Find a maximum matching: as many edges as possible of which no two share a node.",
        "The graph is bipartite. Choose as many edges as possible such that each node is an end of at most one of them.",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "These people belong to two families, and all friendships are between the families. Form as many pairs of friends as "
        "possible; nobody can be in two pairs. Which pairs?",
    )
    how: ClassVar[str] = _PAIRS

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """Any edges between two halves."""
        order = list(range(n))
        rng.shuffle(order)
        return bipartite_graph(order[: n // 2], order[n // 2 :], some(*self.degree, n, rng), rng)

    def find(self, net: Net, facts: Facts) -> tuple[str, dict[str, Any]]:
        """Augmenting paths."""
        found = maximum_matching(net)
        return _pairs(net, found), {"value": len(found)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreeColoring(Witness):
    """A colour out of three for each node, or that three do not suffice: each in half of the questions. The level is the number
    of nodes.

    >>> ThreeColoring().solve({"names": "A B C D", "edges": [0, 1, 0, 2, 1, 2, 2, 3]}).answer
    'A: 2, B: 3, C: 1, D: 2'
    """

    name: str = "graphs/coloring"
    levels: tuple[int, ...] = (5, 6, 8, 10, 13, 16)
    degree: tuple[float, float] = (3.6, 5.0)
    judge: ClassVar[type[GraphAnswer]] = partitions.Coloring
    asks: ClassVar[tuple[str, ...]] = (
        "Give each node one of the colors 1, 2 and 3 such that no edge joins two nodes of the same color.",
        "Color the nodes with the colors 1, 2 and 3 so that neighbours have different colors.",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "Each town gets one of the radio channels 1, 2 and 3, and two towns joined by a road need different ones. Which town "
        "gets which?",
    )
    how: ClassVar[str] = "Write each {node}, a colon and its number, with commas between. If it cannot be done, write none."

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """A graph that has such colours, or has not, as a coin says; as many edges in both cases, if that can be."""
        wanted = rng.getrandbits(1)
        for _ in range(TRIES):
            m = some(*self.degree, n, rng, least=6)
            if wanted:
                side = [rng.randrange(3) for _ in range(n)]
                across = [(a, b) for a in range(n) for b in range(a + 1, n) if side[a] != side[b]]
                if len(across) >= min(m, n * n // 3):
                    return sorted(rng.sample(across, min(m, len(across))))
            else:
                edges = any_graph(n, m, rng)
                if coloring(Net(n, edges), 3) is None:
                    return edges
        raise no_graph("that three colors suffice for, or do not", n, self.degree)

    def find(self, net: Net, facts: Facts) -> tuple[str, dict[str, Any]] | None:
        """Node by node, the most constrained first, and back where that fails."""
        found = coloring(net, 3)
        if found is None:
            return None
        said = ", ".join([f"{name}: {color + 1}" for name, color in zip(net.names, found, strict=True)])
        return said, {"colors": ["1", "2", "3"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChromaticNumber(NumberOf):
    """The least number of colours such that no edge joins two nodes of one colour. The level is the number of nodes.

    >>> ChromaticNumber().solve({"names": "A B C D", "edges": [0, 1, 0, 2, 1, 2, 2, 3]}).answer
    '3'
    """

    name: str = "graphs/chromatic_number"
    levels: tuple[int, ...] = (5, 6, 8, 10, 13, 16)
    degree: tuple[float, float] = (1.0, 7.0)
    asks: ClassVar[tuple[str, ...]] = (
        "What is the chromatic number of this graph, the least number of colors such that no edge joins two nodes of the "
        "same color?",
        "How many colors are needed at least to color the nodes so that neighbours have different colors?",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "Two towns joined by a road need different radio channels. How many channels are needed at least?",
    )

    def find(self, net: Net, facts: Facts) -> int:
        """One colour more until they suffice."""
        return chromatic(net)


@dataclass(frozen=True, slots=True, kw_only=True)
class MinCut(NumberOf):
    """How many edges must go so that no path is left between two nodes. The level is the number of nodes.

    >>> MinCut().solve({"names": "A B C", "edges": [0, 1, 0, 2, 1, 2], "source": 0, "target": 2}).answer
    '2'
    """

    name: str = "graphs/min_cut"
    levels: tuple[int, ...] = (5, 6, 8, 11, 15, 20)
    degree: tuple[float, float] = (2.2, 5.0)
    connected: ClassVar[bool] = True
    theme: ClassVar[Theme] = ROADS
    asks: ClassVar[tuple[str, ...]] = (
        "How many edges must be removed at least so that there is no path from {source} to {target}?",
        "What is the size of a smallest set of edges that separates {source} from {target}?",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "How many roads must be closed at least so that one can no longer travel by road from {source} to {target}?",
    )

    def ask(self, net: Net, rng: Random) -> dict[str, Any]:
        """Two nodes; the cut is at most the smaller of their degrees, and each such degree is as likely as the other."""
        degrees = [len(row) for row in net.adjacent]
        first = rng.choice(sorted(set(degrees)))
        nodes = [i for i in range(net.n) if degrees[i] >= first]
        if len(nodes) < 2:
            nodes = list(range(net.n))
        source, target = rng.sample(nodes, 2)
        return {"source": source, "target": target}

    def find(self, net: Net, facts: Facts) -> int:
        """A greatest flow, each edge carrying one."""
        return flow(net, at(facts, "source"), at(facts, "target"))


def _pairs(net: Net, edges: list[Edge]) -> str:
    names = net.names
    return ", ".join([f"({names[a]}, {names[b]})" for a, b in edges])


SETS = (
    LargestClique(),
    CliqueNumber(),
    LargestIndependent(),
    IndependenceNumber(),
    SmallestCover(),
    SmallestDominating(),
    LargestMatching(),
    TwoSidedMatching(),
    ThreeColoring(),
    ChromaticNumber(),
    MinCut(),
)
