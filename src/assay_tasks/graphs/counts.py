"""Numbers and neighbourhoods: degrees, triangles, cores."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any, ClassVar

from assay.tasks.problem import Facts
from assay_tasks.graphs.base import NodesOf, NumberOf, OrderOf, evenly
from assay_tasks.graphs.drawing import pairs
from assay_tasks.graphs.net import Net, at, bits
from assay_tasks.graphs.wording import FRIENDS, Theme

__all__ = ["COUNTS"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Degree(NumberOf):
    """How many edges a node has. The level is the number of nodes.

    >>> Degree().solve({"names": "A B C", "edges": [0, 1, 1, 2], "source": 1}).answer
    '2'
    """

    name: str = "graphs/degree"
    theme: ClassVar[Theme] = FRIENDS
    asks: ClassVar[tuple[str, ...]] = ("What is the degree of {source}?", "How many neighbours does {source} have?")
    tells: ClassVar[tuple[str, ...]] = ("How many friends does {source} have?",)

    def ask(self, net: Net, rng: Random) -> dict[str, Any]:
        """A node such that each degree is equally likely."""
        return {"source": evenly([len(row) for row in net.adjacent], rng, 0)}

    def find(self, net: Net, facts: Facts) -> int:
        """Count."""
        return len(net.adjacent[at(facts, "source")])


@dataclass(frozen=True, slots=True, kw_only=True)
class GreatestDegree(NumberOf):
    """The greatest degree. The level is the number of nodes.

    >>> GreatestDegree().solve({"names": "A B C", "edges": [0, 1, 1, 2]}).answer
    '2'
    """

    name: str = "graphs/max_degree"
    degree: tuple[float, float] = (1.0, 3.6)
    theme: ClassVar[Theme] = FRIENDS
    asks: ClassVar[tuple[str, ...]] = (
        "What is the maximum degree of a node in this graph?",
        "How many neighbours does the node with the most neighbours have?",
    )
    tells: ClassVar[tuple[str, ...]] = ("How many friends does the person with the most friends have?",)

    def find(self, net: Net, facts: Facts) -> int:
        """Count for each node."""
        return max(len(row) for row in net.adjacent)


@dataclass(frozen=True, slots=True, kw_only=True)
class DegreeSequence(OrderOf):
    """All degrees, the greatest first. The level is the number of nodes.

    >>> DegreeSequence().solve({"names": "A B C", "edges": [0, 1, 1, 2]}).answer
    '2, 1, 1'
    """

    name: str = "graphs/degree_sequence"
    theme: ClassVar[Theme] = FRIENDS
    asks: ClassVar[tuple[str, ...]] = (
        "What is the degree sequence of this graph? Give the degrees of all nodes from the greatest to the smallest.",
        "List the degrees of all nodes in descending order.",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "How many friends does each person have? Give only the numbers, from the greatest to the smallest.",
    )
    how: ClassVar[str] = "Write the numbers with commas between."

    def find(self, net: Net, facts: Facts) -> list[str]:
        """Count for each node, and sort."""
        return [str(degree) for degree in sorted((len(row) for row in net.adjacent), reverse=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours(NodesOf):
    """The neighbours of a node. The level is the number of nodes.

    >>> Neighbours().solve({"names": "A B C", "edges": [0, 1, 1, 2], "source": 1}).answer
    'A, C'
    """

    name: str = "graphs/neighbours"
    theme: ClassVar[Theme] = FRIENDS
    asks: ClassVar[tuple[str, ...]] = (
        "Which nodes are neighbours of {source}?",
        "List all nodes that share an edge with {source}.",
    )
    tells: ClassVar[tuple[str, ...]] = ("Who are the friends of {source}?",)

    def ask(self, net: Net, rng: Random) -> dict[str, Any]:
        """A node such that each degree is equally likely."""
        return {"source": evenly([len(row) for row in net.adjacent], rng, 0)}

    def find(self, net: Net, facts: Facts) -> list[int]:
        """Look them up."""
        return net.adjacent[at(facts, "source")]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonNeighbours(NodesOf):
    """The nodes that are neighbours of two nodes. The level is the number of nodes.

    >>> CommonNeighbours().solve({"names": "A B C", "edges": [0, 1, 1, 2], "source": 0, "target": 2}).answer
    'B'
    """

    name: str = "graphs/common_neighbours"
    degree: tuple[float, float] = (3.0, 5.0)
    theme: ClassVar[Theme] = FRIENDS
    asks: ClassVar[tuple[str, ...]] = (
        "Which nodes are neighbours of both {source} and {target}?",
        "List the common neighbours of {source} and {target}.",
    )
    tells: ClassVar[tuple[str, ...]] = ("Who is a friend of both {source} and {target}?",)

    def ask(self, net: Net, rng: Random) -> dict[str, Any]:
        """Two nodes such that each number of common neighbours is equally likely."""
        masks, all_pairs = net.masks, pairs(net.n)
        source, target = all_pairs[evenly([(masks[a] & masks[b]).bit_count() for a, b in all_pairs], rng, 0)]
        return {"source": source, "target": target}

    def find(self, net: Net, facts: Facts) -> list[int]:
        """What both lists have."""
        net.work += net.n
        return bits(net.masks[at(facts, "source")] & net.masks[at(facts, "target")])


@dataclass(frozen=True, slots=True, kw_only=True)
class Triangles(NumberOf):
    """How many triangles there are. The level is the number of nodes.

    >>> Triangles().solve({"names": "A B C D", "edges": [0, 1, 0, 2, 1, 2, 2, 3]}).answer
    '1'
    """

    name: str = "graphs/triangle_count"
    levels: tuple[int, ...] = (5, 6, 8, 10, 13, 16)
    degree: tuple[float, float] = (2.5, 6.0)
    theme: ClassVar[Theme] = FRIENDS
    asks: ClassVar[tuple[str, ...]] = (
        "How many triangles does this graph have, sets of three nodes of which every two share an edge?",
        "Count the sets of three nodes that are all joined to each other.",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "How many groups of three people are there in which all three are friends of each other?",
    )

    def find(self, net: Net, facts: Facts) -> int:
        """Common neighbours of the ends of every edge."""
        masks = net.masks
        net.work += sum(len(row) for row in net.adjacent)
        return sum((masks[a] & masks[b]).bit_count() for a, b in net.edges) // 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Squares(NumberOf):
    """How many cycles of four nodes there are. The level is the number of nodes.

    >>> Squares().solve({"names": "A B C D", "edges": [0, 1, 0, 3, 1, 2, 2, 3]}).answer
    '1'
    """

    name: str = "graphs/square_count"
    levels: tuple[int, ...] = (5, 6, 8, 10, 13, 16)
    degree: tuple[float, float] = (2.5, 5.0)
    asks: ClassVar[tuple[str, ...]] = (
        "How many cycles of exactly four nodes does this graph have? Edges across such a cycle do not matter.",
        "Count the cycles of length 4; where one begins and which way it runs makes no difference.",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "A round trip leads along roads through four different towns and back to the first. How many such round trips are "
        "there, if it makes no difference where one begins and which way it runs?",
    )

    def find(self, net: Net, facts: Facts) -> int:
        """Pairs of common neighbours of every two nodes; each cycle has two such pairs of nodes."""
        masks, found = net.masks, 0
        for a, b in pairs(net.n):
            shared = (masks[a] & masks[b]).bit_count()
            net.work += 1
            found += shared * (shared - 1) // 2
        return found // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreNumber(NumberOf):
    """The core number of a node: the largest k such that it is in a part of the graph in which all have k neighbours in it. The
    level is the number of nodes.

    >>> CoreNumber().solve({"names": "A B C D", "edges": [0, 1, 0, 2, 1, 2, 2, 3], "source": 2}).answer
    '2'
    """

    name: str = "graphs/core_number"
    degree: tuple[float, float] = (2.0, 4.5)
    theme: ClassVar[Theme] = FRIENDS
    asks: ClassVar[tuple[str, ...]] = (
        "What is the core number of {source}: the largest k such that {source} belongs to a subgraph in which every node has "
        "at least k neighbours within the subgraph?",
        "For a number k, remove nodes with fewer than k edges again and again until none is left to remove. What is the "
        "largest k for which {source} remains?",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "A party needs everyone at it to have at least k friends at it. What is the largest k for which such a party with "
        "{source} can be held?",
    )

    def ask(self, net: Net, rng: Random) -> dict[str, Any]:
        """A node such that each core number is equally likely."""
        return {"source": evenly(cores(net), rng, 0)}

    def find(self, net: Net, facts: Facts) -> int:
        """The node with the fewest edges goes first, again and again."""
        return cores(net)[at(facts, "source")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clustering(NumberOf):
    """The share of the pairs of a node's neighbours that share an edge. The level is the number of nodes.

    >>> Clustering().solve({"names": "A B C D", "edges": [0, 1, 0, 2, 0, 3, 1, 2], "source": 0}).answer
    '1/3'
    """

    name: str = "graphs/clustering"
    levels: tuple[int, ...] = (6, 8, 10, 13, 16, 20)
    degree: tuple[float, float] = (3.0, 6.0)
    theme: ClassVar[Theme] = FRIENDS
    asks: ClassVar[tuple[str, ...]] = (
        "What is the local clustering coefficient of {source}: the share of the pairs of its neighbours that are joined by "
        "an edge?",
        "Take all pairs of neighbours of {source}. What fraction of these pairs share an edge?",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "Take all pairs of friends of {source}. In what fraction of these pairs are the two friends of each other?",
    )
    how: ClassVar[str] = "Give an exact fraction or a whole number."

    def ask(self, net: Net, rng: Random) -> dict[str, Any] | None:
        """A node with two neighbours or more, such that each share is equally likely."""
        shares = [
            _count_links(net, i) * 10**6 // (len(row) * (len(row) - 1) // 2) if len(row) > 1 else -1
            for i, row in enumerate(net.adjacent)
        ]
        return {"source": evenly(shares, rng, 0)} if max(shares) >= 0 else None

    def find(self, net: Net, facts: Facts) -> Fraction:
        """Count the edges between them."""
        k = len(net.adjacent[at(facts, "source")])
        return Fraction(2 * _count_links(net, at(facts, "source")), k * (k - 1))


def cores(net: Net) -> list[int]:
    """The core number of each node."""
    left = [len(row) for row in net.adjacent]
    out, best, open_nodes = [0] * net.n, 0, set(range(net.n))
    while open_nodes:
        here = min(open_nodes, key=left.__getitem__)
        net.work += len(open_nodes)
        best = max(best, left[here])
        out[here] = best
        open_nodes.remove(here)
        for there in net.adjacent[here]:
            left[there] -= 1
    return out


def _count_links(net: Net, node: int) -> int:
    """How many edges there are between neighbours of a node."""
    net.work += len(net.adjacent[node])
    return sum((net.masks[i] & net.masks[node]).bit_count() for i in net.adjacent[node]) // 2


COUNTS = (
    Degree(),
    GreatestDegree(),
    DegreeSequence(),
    Neighbours(),
    CommonNeighbours(),
    Triangles(),
    Squares(),
    CoreNumber(),
    Clustering(),
)
