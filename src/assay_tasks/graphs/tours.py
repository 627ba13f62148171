"""Walks over all edges or all nodes."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.tasks.draws import TRIES
from assay.tasks.problem import Facts
from assay.verify.structure import routes
from assay.verify.structure.graph import GraphAnswer
from assay_tasks.graphs.base import ARROWS, NumberOf, Witness
from assay_tasks.graphs.drawing import connected_graph, no_graph, pairs, some
from assay_tasks.graphs.exact import euler, hamilton
from assay_tasks.graphs.net import Edge, Net
from assay_tasks.graphs.search import pieces
from assay_tasks.graphs.weighed import tour
from assay_tasks.graphs.wording import FLIGHTS, ROADS, Theme

__all__ = ["TOURS"]


def even(n: int, degree: tuple[float, float], odd: int, rng: Random) -> list[Edge]:
    """A connected graph in which exactly ``odd`` nodes, an even number, have an odd degree."""
    for _ in range(TRIES):
        own = set(connected_graph(n, some(*degree, n, rng, least=n), rng))
        degrees = [0] * n
        for a, b in own:
            degrees[a] += 1
            degrees[b] += 1
        uneven = [i for i in range(n) if degrees[i] % 2]
        rng.shuffle(uneven)
        while len(uneven) > odd:  # an edge put in between two of them, or left out, makes both even
            a, b = sorted((uneven.pop(), uneven.pop()))
            own ^= {(a, b)}
        edges = sorted(own)
        if len(uneven) == odd and len(pieces(Net(n, edges))) == 1:
            return edges
    raise no_graph(f"with {odd} nodes of odd degree", n, degree)


@dataclass(frozen=True, slots=True, kw_only=True)
class EulerWalk(Witness):
    """A walk over every edge exactly once, or that there is none: each in half of the questions. The level is the number of
    nodes.

    >>> facts = {"names": "A B C D", "edges": [0, 1, 0, 2, 1, 2, 2, 3]}
    >>> EulerWalk().solve(facts).answer, EulerWalk().solve({**facts, "edges": [0, 1, 0, 2, 0, 3]}).answer
    ('D -> C -> A -> B -> C', 'none')
    """

    name: str = "graphs/euler_path"
    levels: tuple[int, ...] = (5, 6, 8, 10, 13, 16)
    degree: tuple[float, float] = (2.4, 3.2)
    judge: ClassVar[type[GraphAnswer]] = routes.EulerPath
    asks: ClassVar[tuple[str, ...]] = (
        "Find an Euler path: a walk that uses every edge exactly once. It may begin and end anywhere.",
        "Walk along the edges so that each edge is used exactly once.",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "A snow plough shall drive along every road exactly once. It may begin and end in any town. Which way can it take?",
    )
    how: ClassVar[str] = ARROWS + " A {node} is written each time that it is visited. If there is no such walk, write none."

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """A connected graph with 0 or 2 odd nodes, or with 4, as a coin says."""
        odd = rng.choice((0, 2)) if rng.getrandbits(1) else 4
        return even(n, self.degree, odd, rng)

    def find(self, net: Net, facts: Facts) -> tuple[str, dict[str, Any]] | None:
        """Walks joined where they meet."""
        found = euler(net, False)
        return None if found is None else (net.join_names(found, " -> "), {})


@dataclass(frozen=True, slots=True, kw_only=True)
class EulerCircuit(Witness):
    """A walk over every edge exactly once that ends where it began, or that there is none: each in half of the questions. The
    level is the number of nodes.

    >>> facts = {"names": "A B C D", "edges": [0, 1, 0, 2, 1, 2]}
    >>> EulerCircuit().solve(facts).answer, EulerCircuit().solve({**facts, "edges": [0, 1, 0, 2]}).answer
    ('A -> B -> C -> A', 'none')
    """

    name: str = "graphs/euler_circuit"
    levels: tuple[int, ...] = (5, 6, 8, 10, 13, 16)
    degree: tuple[float, float] = (2.4, 3.2)
    judge: ClassVar[type[GraphAnswer]] = routes.EulerPath
    asks: ClassVar[tuple[str, ...]] = (
        "Find an Euler circuit: a walk that uses every edge exactly once and ends where it began.",
        "Walk along the edges so that each edge is used exactly once and you return to the first node.",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "A snow plough shall drive along every road exactly once and come back to the town that it started from. Which way "
        "can it take?",
    )
    how: ClassVar[str] = (
        ARROWS
        + " A {node} is written each time that it is visited, the first one at the end again. If there is no such walk, write "
        "none."
    )

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """A connected graph without odd nodes, or with 2, as a coin says."""
        return even(n, self.degree, 2 * rng.getrandbits(1), rng)

    def find(self, net: Net, facts: Facts) -> tuple[str, dict[str, Any]] | None:
        """Walks joined where they meet."""
        found = euler(net, True)
        return None if found is None else (net.join_names(found, " -> "), {"closed": True})


def tour_graph(n: int, degree: tuple[float, float], closed: bool, wanted: int, rng: Random) -> list[Edge]:
    """A connected graph that has a path (a cycle) through all nodes, or none, as ``wanted`` says; no node has less than two edges
    where a cycle is asked for.
    """
    for _ in range(TRIES):
        m = some(*degree, n, rng, least=n if closed else n - 1)
        if wanted:
            order = list(range(n))
            rng.shuffle(order)
            own = {(min(a, b), max(a, b)) for a, b in zip(order, order[1:] + order[: int(closed)], strict=False)}
            free = [pair for pair in pairs(n) if pair not in own]
            return sorted([*own, *rng.sample(free, min(len(free), m - len(own)))])
        edges = connected_graph(n, m, rng)
        if closed:
            edges = _no_leaves(n, edges, rng)
        if hamilton(Net(n, edges), closed) is None:
            return edges
    raise no_graph("without a Hamilton cycle" if closed else "without a Hamilton path", n, degree)


def _no_leaves(n: int, edges: list[Edge], rng: Random) -> list[Edge]:
    own = set(edges)
    masks = Net(n, edges).masks
    for i in range(n):
        while masks[i].bit_count() < 2:
            j = rng.randrange(n)
            if i != j:
                own.add((min(i, j), max(i, j)))
                masks[i] |= 1 << j
                masks[j] |= 1 << i
    return sorted(own)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllNodes(Witness):
    """A path through every node once, or that there is none: each in half of the questions. The level is the number of nodes.

    >>> facts = {"names": "A B C D", "edges": [0, 1, 0, 2, 2, 3]}
    >>> AllNodes().solve(facts).answer, AllNodes().solve({**facts, "edges": [0, 1, 0, 2, 0, 3]}).answer
    ('B -> A -> C -> D', 'none')
    """

    name: str = "graphs/hamilton_path"
    levels: tuple[int, ...] = (5, 7, 9, 11, 13, 16)
    degree: tuple[float, float] = (1.8, 2.8)
    judge: ClassVar[type[GraphAnswer]] = routes.HamiltonPath
    asks: ClassVar[tuple[str, ...]] = (
        "Find a Hamilton path: a path along edges that visits every node exactly once. It may begin and end anywhere.",
        "Order all nodes so that each two neighbours in the order are joined by an edge.",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "Find a route by road that visits every town exactly once. It may begin and end in any town.",
    )
    how: ClassVar[str] = ARROWS + " If there is none, write none."

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """A connected graph that has such a path, or none, as a coin says."""
        return tour_graph(n, self.degree, False, rng.getrandbits(1), rng)

    def find(self, net: Net, facts: Facts) -> tuple[str, dict[str, Any]] | None:
        """Node by node, and back where some are cut off."""
        found = hamilton(net, False)
        return None if found is None else (net.join_names(found, " -> "), {})


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTrip(Witness):
    """A cycle through every node once, or that there is none: each in half of the questions. The level is the number of nodes.

    >>> facts = {"names": "A B C D", "edges": [0, 1, 0, 3, 1, 2, 2, 3]}
    >>> RoundTrip().solve(facts).answer, RoundTrip().solve({**facts, "edges": [0, 1, 0, 2, 1, 2, 2, 3]}).answer
    ('A -> B -> C -> D', 'none')
    """

    name: str = "graphs/hamilton_cycle"
    levels: tuple[int, ...] = (5, 7, 9, 11, 13, 16)
    degree: tuple[float, float] = (2.0, 3.0)
    judge: ClassVar[type[GraphAnswer]] = routes.HamiltonCycle
    asks: ClassVar[tuple[str, ...]] = (
        "Find a Hamilton cycle: a cycle along edges that visits every node exactly once.",
        "Order all nodes so that each two neighbours in the order, and the last and the first, are joined by an edge.",
    )
    tells: ClassVar[tuple[str, ...]] = ("Find a round trip by road that visits every town exactly once and ends where it began.",)
    how: ClassVar[str] = ARROWS + " Write each once. If there is none, write none."

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """A connected graph that has such a cycle, or none, as a coin says."""
        return tour_graph(n, self.degree, True, rng.getrandbits(1), rng)

    def find(self, net: Net, facts: Facts) -> tuple[str, dict[str, Any]] | None:
        """Node by node, and back where some are cut off."""
        found = hamilton(net, True)
        return None if found is None else (net.join_names(found, " -> "), {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Salesman(Witness):
    """A shortest round trip through all nodes of a complete graph. The level is the number of nodes.

    >>> facts = {"names": "A B C D", "edges": [0, 1, 0, 2, 0, 3, 1, 2, 1, 3, 2, 3], "weights": [1, 9, 1, 1, 9, 1]}
    >>> Salesman().solve(facts).answer
    'D -> A -> B -> C'
    """

    name: str = "graphs/travelling_salesman"
    levels: tuple[int, ...] = (4, 5, 6, 7, 8, 9)
    most: ClassVar[int] = 30
    theme: ClassVar[Theme] = FLIGHTS
    judge: ClassVar[type[GraphAnswer]] = routes.HamiltonCycle
    asks: ClassVar[tuple[str, ...]] = (
        "Find a cycle that visits every node exactly once and whose edges have the least total price.",
        "Solve the travelling salesman problem on this graph: visit all nodes once and return at the least total price.",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "Someone wants to visit every airport once and come back to the first. Which round trip is the cheapest?",
    )
    how: ClassVar[str] = ARROWS + " Write each once."

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """All pairs."""
        return list(pairs(n))

    def find(self, net: Net, facts: Facts) -> tuple[str, dict[str, Any]]:
        """The best way through every set of nodes (Held and Karp)."""
        length, way = tour(net)
        return net.join_names(way, " -> "), {"value": length}


@dataclass(frozen=True, slots=True, kw_only=True)
class TourLength(NumberOf):
    """The length of a shortest round trip through all nodes of a complete graph. The level is the number of nodes.

    >>> facts = {"names": "A B C D", "edges": [0, 1, 0, 2, 0, 3, 1, 2, 1, 3, 2, 3], "weights": [1, 9, 1, 1, 9, 1]}
    >>> TourLength().solve(facts).answer
    '4'
    """

    name: str = "graphs/tour_length"
    levels: tuple[int, ...] = (4, 5, 6, 7, 8, 9)
    most: ClassVar[int] = 30
    theme: ClassVar[Theme] = ROADS
    asks: ClassVar[tuple[str, ...]] = (
        "What is the least total length of a cycle that visits every node exactly once?",
        "How long is the shortest tour through all nodes that visits each once and returns to its first node?",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "A postman starts in one town, visits every other town exactly once and comes back. How many kilometres is his shortest "
        "tour?",
    )

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """All pairs."""
        return list(pairs(n))

    def find(self, net: Net, facts: Facts) -> int:
        """The best way through every set of nodes (Held and Karp)."""
        return tour(net)[0]


TOURS = (EulerWalk(), EulerCircuit(), AllNodes(), RoundTrip(), Salesman(), TourLength())
