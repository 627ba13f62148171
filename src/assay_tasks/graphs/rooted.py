"""Trees: spanning ones, rooted ones, and orders in which nodes are visited."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.tasks.problem import Facts
from assay.verify.structure import subsets
from assay.verify.structure.graph import GraphAnswer
from assay_tasks.graphs.base import NodeOf, NumberOf, OrderOf, Witness, evenly
from assay_tasks.graphs.drawing import tree
from assay_tasks.graphs.net import Edge, Net, at
from assay_tasks.graphs.search import broad, deep, distances, parents
from assay_tasks.graphs.weighed import spanning, trees
from assay_tasks.graphs.wording import CABLES, ROADS, Theme

__all__ = ["TREES"]

_PAIRS = "Write each as (one, other), with commas between."
_ORDER = "Names come in alphabetical order, numbers by size."


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyTree(Witness):
    """Edges that join all nodes without a cycle. The level is the number of nodes.

    >>> AnyTree().solve({"names": "A B C", "edges": [0, 1, 0, 2, 1, 2]}).answer
    '(A, B), (A, C)'
    """

    name: str = "graphs/spanning_tree"
    degree: tuple[float, float] = (2.4, 4.0)
    connected: ClassVar[bool] = True
    theme: ClassVar[Theme] = CABLES
    judge: ClassVar[type[GraphAnswer]] = subsets.SpanningTree
    asks: ClassVar[tuple[str, ...]] = (
        "Find a spanning tree of this graph, any one.",
        "Choose edges that connect all nodes and form no cycle.",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "Choose cables that connect all houses with each other and of which none could be left out. Which ones? Any such "
        "choice will do.",
    )
    how: ClassVar[str] = _PAIRS

    def find(self, net: Net, facts: Facts) -> tuple[str, dict[str, Any]]:
        """Each edge that closes no cycle."""
        return _pairs(net, spanning(net)), {}


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastTree(Witness):
    """Edges of the least total weight that join all nodes. The level is the number of nodes.

    >>> LeastTree().solve({"names": "A B C", "edges": [0, 1, 0, 2, 1, 2], "weights": [5, 2, 3]}).answer
    '(A, C), (B, C)'
    """

    name: str = "graphs/minimum_spanning_tree"
    degree: tuple[float, float] = (2.4, 4.0)
    connected: ClassVar[bool] = True
    most: ClassVar[int] = 20
    theme: ClassVar[Theme] = CABLES
    judge: ClassVar[type[GraphAnswer]] = subsets.SpanningTree
    asks: ClassVar[tuple[str, ...]] = (
        "Find a minimum spanning tree of this graph.",
        "Choose edges that connect all nodes, form no cycle and have the least total cost.",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "Choose cables that connect all houses with each other, directly or through other houses, at the least total cost. "
        "Which ones?",
    )
    how: ClassVar[str] = _PAIRS

    def find(self, net: Net, facts: Facts) -> tuple[str, dict[str, Any]]:
        """Each edge that closes no cycle, the cheapest first (Kruskal)."""
        found = spanning(net)
        return _pairs(net, found), {"value": _weight(net, found)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeWeight(NumberOf):
    """The least total weight of edges that join all nodes. The level is the number of nodes.

    >>> TreeWeight().solve({"names": "A B C", "edges": [0, 1, 0, 2, 1, 2], "weights": [5, 2, 3]}).answer
    '5'
    """

    name: str = "graphs/spanning_tree_weight"
    degree: tuple[float, float] = (2.4, 4.0)
    connected: ClassVar[bool] = True
    most: ClassVar[int] = 20
    theme: ClassVar[Theme] = CABLES
    asks: ClassVar[tuple[str, ...]] = (
        "What is the total cost of a minimum spanning tree of this graph?",
        "What is the least total cost of edges that connect all nodes?",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "Cables shall connect all houses with each other, directly or through other houses. How many coins does that cost at "
        "least?",
    )

    def find(self, net: Net, facts: Facts) -> int:
        """Each edge that closes no cycle, the cheapest first (Kruskal)."""
        return _weight(net, spanning(net))


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeCount(NumberOf):
    """How many spanning trees there are. The level is the number of nodes.

    >>> TreeCount().solve({"names": "A B C", "edges": [0, 1, 0, 2, 1, 2]}).answer
    '3'
    """

    name: str = "graphs/spanning_tree_count"
    levels: tuple[int, ...] = (5, 6, 7, 8, 9, 11)
    degree: tuple[float, float] = (2.2, 3.2)
    connected: ClassVar[bool] = True
    theme: ClassVar[Theme] = CABLES
    asks: ClassVar[tuple[str, ...]] = (
        "How many different spanning trees does this graph have?",
        "In how many ways can one choose edges that connect all nodes and form no cycle?",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "In how many ways can one choose cables that connect all houses with each other and of which none could be left out?",
    )

    def find(self, net: Net, facts: Facts) -> int:
        """A determinant (Kirchhoff)."""
        return trees(net)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ancestor(NodeOf):
    """The lowest common ancestor of two nodes of a rooted tree. The level is the number of nodes.

    >>> facts = {"names": "A B C D", "edges": [0, 1, 1, 2, 1, 3], "source": 0, "node": 2, "other": 3}
    >>> Ancestor().solve(facts).answer
    'B'
    """

    name: str = "graphs/lowest_common_ancestor"
    asks: ClassVar[tuple[str, ...]] = (
        "This graph is a tree. Rooted at {source}, what is the lowest common ancestor of {node} and {other}? A node counts as an "
        "ancestor of itself.",
        "The graph is a tree with root {source}. Which node is on the path from {source} to {node} and on the one from "
        "{source} to {other}, and is as far from {source} as possible?",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "There is only one way between any two towns. One bus drives from {source} to {node}, another from {source} to "
        "{other}. Which is the last town that both pass, begin and end counted?",
    )

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """A tree."""
        return tree(n, rng)

    def ask(self, net: Net, rng: Random) -> dict[str, Any]:
        """A root that is a leaf, and two others."""
        leaves = [i for i, row in enumerate(net.adjacent) if len(row) == 1]
        source = rng.choice(leaves)
        node, other = rng.sample([i for i in range(net.n) if i != source], 2)
        return {"source": source, "node": node, "other": other}

    def find(self, net: Net, facts: Facts) -> int:
        """Up from both until they meet."""
        before, _ = parents(net, at(facts, "source"))
        above, here = set[int](), at(facts, "node")
        while here >= 0:
            above.add(here)
            here = before[here]
        there: int = at(facts, "other")
        while there not in above:
            net.work += 1
            there = before[there]
        return there


@dataclass(frozen=True, slots=True, kw_only=True)
class Height(NumberOf):
    """The height of a rooted tree. The level is the number of nodes.

    >>> Height().solve({"names": "A B C D", "edges": [0, 1, 1, 2, 1, 3], "source": 0}).answer
    '2'
    """

    name: str = "graphs/tree_height"
    asks: ClassVar[tuple[str, ...]] = (
        "This graph is a tree. Rooted at {source}, what is its height, the number of edges on the longest path down from the "
        "root?",
        "The graph is a tree with root {source}. How many edges are between {source} and the deepest node?",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "There is only one way between any two towns. How many roads are on the way from {source} to the town that is the most "
        "roads away?",
    )

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """A tree."""
        return tree(n, rng)

    def ask(self, net: Net, rng: Random) -> dict[str, Any]:
        """A root such that each height is equally likely."""
        return {"source": evenly([max(distances(net, i)) for i in range(net.n)], rng)}

    def find(self, net: Net, facts: Facts) -> int:
        """Breadth first."""
        return max(distances(net, at(facts, "source")))


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeDiameter(NumberOf):
    """The number of edges of a longest path in a tree. The level is the number of nodes.

    >>> TreeDiameter().solve({"names": "A B C D", "edges": [0, 1, 1, 2, 1, 3]}).answer
    '2'
    """

    name: str = "graphs/tree_diameter"
    asks: ClassVar[tuple[str, ...]] = (
        "This graph is a tree. How many edges does a longest path in it have?",
        "The graph is a tree. What is its diameter, counted in edges?",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "There is only one way between any two towns. How many roads are on the longest of these ways, counted in roads?",
    )

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """A tree."""
        return tree(n, rng)

    def find(self, net: Net, facts: Facts) -> int:
        """The farthest node from one end, and the farthest from that."""
        far = distances(net, 0)
        return max(distances(net, far.index(max(far))))


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtreeSize(NumberOf):
    """How many nodes of a rooted tree are a node or below it. The level is the number of nodes.

    >>> SubtreeSize().solve({"names": "A B C D", "edges": [0, 1, 1, 2, 1, 3], "source": 0, "node": 1}).answer
    '3'
    """

    name: str = "graphs/subtree_size"
    asks: ClassVar[tuple[str, ...]] = (
        "This graph is a tree. Rooted at {source}, how many nodes does the subtree of {node} have, {node} counted?",
        "The graph is a tree with root {source}. For how many nodes, {node} among them, does the path from the root lead through "
        "{node}?",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "There is only one way between any two towns. If {node} cannot be entered, how many towns, {node} counted, cannot be "
        "reached from {source}?",
    )

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """A tree."""
        return tree(n, rng)

    def ask(self, net: Net, rng: Random) -> dict[str, Any]:
        """A root, and a node such that each size is equally likely."""
        source = rng.randrange(net.n)
        sizes = _sizes(net, source)
        sizes[source] = 0
        return {"source": source, "node": evenly(sizes, rng)}

    def find(self, net: Net, facts: Facts) -> int:
        """Sizes added up from the leaves."""
        return _sizes(net, at(facts, "source"))[at(facts, "node")]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrueferCode(OrderOf):
    """The Prüfer code of a tree. The level is the number of nodes.

    >>> PrueferCode().solve({"names": "A B C D", "edges": [0, 1, 1, 2, 2, 3]}).answer
    'B, C'
    """

    name: str = "graphs/pruefer_code"
    asks: ClassVar[tuple[str, ...]] = (
        "This graph is a tree. What is its Prüfer code? Until two nodes are left, remove the leaf that comes first "
        "and write down its neighbour. " + _ORDER,
        "The graph is a tree. Again and again take away the node with a single edge whose name comes first, and "
        "note the node at the other end, until two nodes are left. What is the list of notes? " + _ORDER,
    )
    tells: ClassVar[tuple[str, ...]] = (
        "There is only one way between any two towns. Year after year the town whose name comes first among those with a "
        "single road is given up with its road, until two towns are left. At which towns did the roads end that were given "
        "up, year by year? " + _ORDER,
    )

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """A tree."""
        return tree(n, rng)

    def find(self, net: Net, facts: Facts) -> list[str]:
        """As it is defined."""
        left = [set(row) for row in net.adjacent]
        out: list[str] = []
        for _ in range(net.n - 2):
            leaf = next(i for i, row in enumerate(left) if len(row) == 1)
            net.work += leaf + 1
            (other,) = left[leaf]
            left[leaf].clear()
            left[other].remove(leaf)
            out.append(net.names[other])
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class PostOrder(OrderOf):
    """The nodes of a rooted tree in post-order. The level is the number of nodes.

    >>> PostOrder().solve({"names": "A B C D", "edges": [0, 1, 1, 2, 1, 3], "source": 1}).answer
    'A, C, D, B'
    """

    name: str = "graphs/postorder"
    asks: ClassVar[tuple[str, ...]] = (
        "This graph is a tree. Rooted at {source}, in which order does a post-order traversal visit the nodes, if "
        "the children of each node are taken in ascending order? " + _ORDER,
        "The graph is a tree with root {source}. List its nodes so that each comes right after the subtrees of its "
        "children, which are taken in ascending order. " + _ORDER,
    )
    tells: ClassVar[tuple[str, ...]] = (
        "There is only one way between any two towns. A message sets out from {source}. Each town passes it on to "
        "its other neighbours, one after the other in ascending order; when the last of them has reported back, or "
        "if there are none, the town reports. In which order do the towns report, {source} last? " + _ORDER,
    )

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """A tree."""
        return tree(n, rng)

    def ask(self, net: Net, rng: Random) -> dict[str, Any]:
        """A root."""
        return {"source": rng.randrange(net.n)}

    def find(self, net: Net, facts: Facts) -> list[str]:
        """Each node behind its subtrees."""
        before, _ = parents(net, at(facts, "source"))
        out: list[str] = []
        stack = [(at(facts, "source"), False)]
        while stack:
            here, closed = stack.pop()
            net.work += 1
            if closed:
                out.append(net.names[here])
            else:
                stack.append((here, True))
                stack += [(there, False) for there in reversed(net.adjacent[here]) if there != before[here]]
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class BreadthFirst(OrderOf):
    """The order in which a search breadth first reaches the nodes. The level is the number of nodes.

    >>> BreadthFirst().solve({"names": "A B C D", "edges": [0, 1, 0, 3, 1, 2], "source": 0}).answer
    'A, B, D, C'
    """

    name: str = "graphs/bfs_order"
    degree: tuple[float, float] = (2.2, 3.2)
    connected: ClassVar[bool] = True
    theme: ClassVar[Theme] = ROADS
    asks: ClassVar[tuple[str, ...]] = (
        "In which order does a breadth-first search from {source} reach the nodes, if neighbours are taken in ascending order? "
        + _ORDER,
        "Start a queue with {source}. Take the first node of the queue and put its neighbours that were never in "
        "the queue at its end in ascending order; repeat until the queue is empty. In which order do the nodes "
        "leave the queue? " + _ORDER,
    )
    tells: ClassVar[tuple[str, ...]] = (
        "A club opens its first house in {source}. Then each town with a house, in the order in which they got theirs, opens "
        "one in every neighbouring town that has none, in ascending order. In which order do the towns get their houses, "
        "{source} first? " + _ORDER,
    )

    def ask(self, net: Net, rng: Random) -> dict[str, Any]:
        """A node to start from."""
        return {"source": rng.randrange(net.n)}

    def find(self, net: Net, facts: Facts) -> list[str]:
        """As it is defined."""
        return [net.names[i] for i in broad(net, at(facts, "source"))]


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthFirst(OrderOf):
    """The order in which a search depth first reaches the nodes. The level is the number of nodes.

    >>> DepthFirst().solve({"names": "A B C D", "edges": [0, 1, 0, 3, 1, 2], "source": 0}).answer
    'A, B, C, D'
    """

    name: str = "graphs/dfs_order"
    degree: tuple[float, float] = (2.2, 3.2)
    connected: ClassVar[bool] = True
    asks: ClassVar[tuple[str, ...]] = (
        "In which order does a recursive depth-first search from {source} enter the nodes, if it takes neighbours in "
        "ascending order? " + _ORDER,
        "Begin in {source}. From each node go on to its first neighbour, in ascending order, that was not visited; "
        "where there is none, step back. In which order are the nodes visited for the first time? " + _ORDER,
    )
    tells: ClassVar[tuple[str, ...]] = (
        "A traveller starts in {source}. From each town she goes on to the first neighbouring town, in ascending "
        "order, that she has not seen; where there is none, she goes back to the town from which she first came "
        "there, and so on. In which order does she see the towns for the first time, {source} first? " + _ORDER,
    )

    def ask(self, net: Net, rng: Random) -> dict[str, Any]:
        """A node to start from."""
        return {"source": rng.randrange(net.n)}

    def find(self, net: Net, facts: Facts) -> list[str]:
        """As it is defined."""
        return [net.names[i] for i in deep(net, at(facts, "source"))]


def _pairs(net: Net, places: list[int]) -> str:
    names, edges = net.names, net.edges
    return ", ".join([f"({names[edges[i][0]]}, {names[edges[i][1]]})" for i in places])


def _weight(net: Net, places: list[int]) -> int:
    weights = net.weights or []
    return sum(weights[i] for i in places)


def _sizes(net: Net, root: int) -> list[int]:
    """Nodes in the subtree of each node."""
    before, queue = parents(net, root)
    out = [1] * net.n
    for here in reversed(queue):
        if before[here] >= 0:
            out[before[here]] += out[here]
    return out


TREES = (
    AnyTree(),
    LeastTree(),
    TreeWeight(),
    TreeCount(),
    Ancestor(),
    Height(),
    TreeDiameter(),
    SubtreeSize(),
    PrueferCode(),
    PostOrder(),
    BreadthFirst(),
    DepthFirst(),
)
