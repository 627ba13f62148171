"""Directed graphs: what is reached, orders, longest paths, flows."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.tasks.draws import TRIES
from assay.tasks.problem import Facts
from assay.verify.structure.graph import GraphAnswer
from assay.verify.structure.routes import TopologicalOrder
from assay_tasks.graphs.base import NodesOf, NumberOf, Witness, YesNo, evenly
from assay_tasks.graphs.drawing import acyclic, both_ways, no_graph, some
from assay_tasks.graphs.net import Edge, Net, at, bits
from assay_tasks.graphs.search import distances, order, reach, strong
from assay_tasks.graphs.weighed import flow, longest
from assay_tasks.graphs.wording import COURSES, FOLLOWERS, LINKS, PIPES, PROJECT, Theme

__all__ = ["ARROWED"]


def any_arrows(n: int, degree: tuple[float, float], rng: Random) -> list[Edge]:
    """Any directed edges, also both ways between two nodes."""
    return sorted(rng.sample(both_ways(n), some(*degree, n, rng, most=n * (n - 1))))


def turned_once(n: int, degree: tuple[float, float], cyclic: bool, rng: Random) -> list[Edge]:
    """Directed edges without a cycle; where ``cyclic``, one of them in place of an edge that closes one."""
    for _ in range(TRIES):
        own = acyclic(n, some(*degree, n, rng, least=3), rng)
        if not cyclic:
            return own
        own.pop(rng.randrange(len(own)))
        reached = reach(Net(n, own, directed=True))
        present = set(own)
        back = [(b, a) for a in range(n) for b in bits(reached[a]) if a != b and (a, b) not in present]
        if back:
            return sorted([*own, rng.choice(back)])
    raise no_graph("in which a path of two edges could be closed", n, degree)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reachable(YesNo):
    """Whether a directed path leads from one node to another. The level is the number of nodes.

    >>> Reachable().solve({"names": "A B C", "edges": [0, 1, 2, 1], "source": 0, "target": 2}).answer
    'no'
    """

    name: str = "graphs/reachable"
    degree: tuple[float, float] = (2.0, 3.0)
    directed: ClassVar[bool] = True
    theme: ClassVar[Theme] = LINKS
    asks: ClassVar[tuple[str, ...]] = (
        "Is there a directed path from {source} to {target}?",
        "Can {target} be reached from {source} along the edges, each in its direction?",
    )
    tells: ClassVar[tuple[str, ...]] = ("Can a reader who is on {source} get to {target} by following links?",)

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """Any directed edges."""
        return any_arrows(n, self.degree, rng)

    def ask(self, net: Net, rng: Random) -> dict[str, Any] | None:
        """Two nodes without an edge from the first, as a coin says reachable or not."""
        wanted = rng.getrandbits(1)
        for source in rng.sample(range(net.n), net.n):
            far = distances(net, source)
            others = [i for i, d in enumerate(far) if (d > 1 if wanted else d < 0)]
            if others and net.adjacent[source]:
                return {"source": source, "target": rng.choice(others)}
        return None

    def find(self, net: Net, facts: Facts) -> bool:
        """Breadth first."""
        return distances(net, at(facts, "source"))[at(facts, "target")] >= 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachCount(NumberOf):
    """How many other nodes can be reached from a node. The level is the number of nodes.

    >>> ReachCount().solve({"names": "A B C D", "edges": [0, 1, 1, 2, 3, 0], "source": 0}).answer
    '2'
    """

    name: str = "graphs/reach_count"
    degree: tuple[float, float] = (1.6, 3.0)
    directed: ClassVar[bool] = True
    theme: ClassVar[Theme] = LINKS
    asks: ClassVar[tuple[str, ...]] = (
        "How many other nodes can be reached from {source} along directed edges?",
        "Count the nodes, not counting {source}, to which a directed path from {source} leads.",
    )
    tells: ClassVar[tuple[str, ...]] = ("A reader is on {source}. How many other pages can she get to by following links?",)

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """Any directed edges."""
        return any_arrows(n, self.degree, rng)

    def ask(self, net: Net, rng: Random) -> dict[str, Any] | None:
        """A node such that each count that there is is equally likely."""
        counts = [seen.bit_count() - 1 for seen in reach(net)]
        return {"source": evenly(counts, rng)} if any(counts) else None

    def find(self, net: Net, facts: Facts) -> int:
        """Breadth first."""
        return sum(far > 0 for far in distances(net, at(facts, "source")))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosureCount(NumberOf):
    """How many ordered pairs of nodes are joined by a directed path. The level is the number of nodes.

    >>> ClosureCount().solve({"names": "A B C", "edges": [0, 1, 1, 2]}).answer
    '3'
    """

    name: str = "graphs/closure_count"
    degree: tuple[float, float] = (1.4, 2.6)
    directed: ClassVar[bool] = True
    theme: ClassVar[Theme] = LINKS
    levels: tuple[int, ...] = (4, 5, 7, 9, 12, 15)
    asks: ClassVar[tuple[str, ...]] = (
        "For how many ordered pairs (u, v) of different nodes does a directed path lead from u to v?",
        "How many edges does the transitive closure of this graph have, not counting edges from a node to itself?",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "Count the ordered pairs of different pages such that a reader on the first can get to the second by following links.",
    )

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """Any directed edges."""
        return any_arrows(n, self.degree, rng)

    def find(self, net: Net, facts: Facts) -> int:
        """A search from every node."""
        return sum(seen.bit_count() - 1 for seen in reach(net))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered(Witness):
    """An order of the nodes in which every edge leads forward, or that there is none: each in half of the questions. The level
    is the number of nodes.

    >>> facts = {"names": "A B C", "edges": [1, 0, 2, 1]}
    >>> Ordered().solve(facts).answer, Ordered().solve({**facts, "edges": [0, 2, 1, 0, 2, 1]}).answer
    ('C -> B -> A', 'none')
    """

    name: str = "graphs/topological_order"
    degree: tuple[float, float] = (2.2, 3.2)
    directed: ClassVar[bool] = True
    theme: ClassVar[Theme] = COURSES
    judge: ClassVar[type[GraphAnswer]] = TopologicalOrder
    asks: ClassVar[tuple[str, ...]] = (
        "Give a topological order of the nodes: every edge leads from an earlier node to a later one.",
        "Put all nodes in a row so that each edge goes from left to right.",
    )
    tells: ClassVar[tuple[str, ...]] = ("A student takes all courses, one after the other. In which order can she take them?",)
    how: ClassVar[str] = "Write all {nodes} in order with -> between. If there is no such order, write none."

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """Edges without a cycle, and in half of the draws one turned so that there is one."""
        return turned_once(n, self.degree, bool(rng.getrandbits(1)), rng)

    def find(self, net: Net, facts: Facts) -> tuple[str, dict[str, Any]] | None:
        """Nodes that wait for none, one after the other (Kahn)."""
        found = order(net)
        return None if found is None else (net.join_names(found, " -> "), {})


@dataclass(frozen=True, slots=True, kw_only=True)
class IsAcyclic(YesNo):
    """Whether a directed graph is without cycles. The level is the number of nodes.

    >>> IsAcyclic().solve({"names": "A B C", "edges": [0, 1, 1, 2, 2, 0]}).answer
    'no'
    """

    name: str = "graphs/is_dag"
    degree: tuple[float, float] = (2.2, 3.2)
    directed: ClassVar[bool] = True
    theme: ClassVar[Theme] = COURSES
    asks: ClassVar[tuple[str, ...]] = (
        "Is this directed graph acyclic?",
        "Is it true that no directed path in this graph leads from a node back to itself?",
    )
    tells: ClassVar[tuple[str, ...]] = ("Is there an order in which one student can take all of these courses?",)

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """Edges without a cycle, and in half of the draws one turned so that there is one."""
        return turned_once(n, self.degree, bool(rng.getrandbits(1)), rng)

    def find(self, net: Net, facts: Facts) -> bool:
        """Nodes that wait for none, one after the other (Kahn)."""
        return order(net) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class LongestPath(NumberOf):
    """The number of edges of a longest path in a graph without cycles. The level is the number of nodes.

    >>> LongestPath().solve({"names": "A B C", "edges": [0, 1, 0, 2, 1, 2]}).answer
    '2'
    """

    name: str = "graphs/longest_path"
    degree: tuple[float, float] = (1.4, 3.6)
    directed: ClassVar[bool] = True
    theme: ClassVar[Theme] = COURSES
    asks: ClassVar[tuple[str, ...]] = (
        "This graph has no directed cycle. How many edges does its longest directed path have?",
        "The graph is acyclic. What is the length, in edges, of a longest directed path in it?",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "Think of chains of courses in which a rule says of each course that it must be taken before the next one. How many "
        "rules does the longest chain use?",
    )

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """Edges without a cycle."""
        return acyclic(n, some(*self.degree, n, rng, least=1), rng)

    def find(self, net: Net, facts: Facts) -> int:
        """The best way into each node, in topological order."""
        return longest(net)


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticalPath(NumberOf):
    """The length of a longest path in a weighted graph without cycles. The level is the number of nodes.

    >>> CriticalPath().solve({"names": "A B C", "edges": [0, 1, 0, 2, 1, 2], "weights": [2, 9, 3]}).answer
    '9'
    """

    name: str = "graphs/critical_path"
    degree: tuple[float, float] = (2.0, 3.6)
    directed: ClassVar[bool] = True
    most: ClassVar[int] = 12
    theme: ClassVar[Theme] = PROJECT
    asks: ClassVar[tuple[str, ...]] = (
        "This graph has no directed cycle. What is the greatest total duration of the edges on a directed path?",
        "The graph is acyclic. How long is its critical path, the path with the greatest sum of durations?",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "A stage is reached when all jobs that lead to it are done, and only then can jobs that leave it begin. Stages to "
        "which no job leads are reached at the start. Any number of jobs can be done at a time. How many days does the "
        "project take at least?",
    )

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """Edges without a cycle."""
        return acyclic(n, some(*self.degree, n, rng, least=1), rng)

    def find(self, net: Net, facts: Facts) -> int:
        """The best way into each node, in topological order."""
        return longest(net)


@dataclass(frozen=True, slots=True, kw_only=True)
class StrongCount(NumberOf):
    """How many strongly connected components there are. The level is the number of nodes.

    >>> StrongCount().solve({"names": "A B C", "edges": [0, 1, 1, 0, 1, 2]}).answer
    '2'
    """

    name: str = "graphs/strong_components"
    degree: tuple[float, float] = (2.0, 4.0)
    directed: ClassVar[bool] = True
    theme: ClassVar[Theme] = FOLLOWERS
    asks: ClassVar[tuple[str, ...]] = (
        "How many strongly connected components does this graph have? A single node can be one.",
        "Two nodes belong together if directed paths lead both ways between them. Into how many groups does this divide the "
        "nodes?",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "Whoever posts something is read by those who follow them, who pass it on to those who follow them, and so on. Two "
        "people are in one circle if what either posts gets to the other. How many circles are there, people who are alone "
        "in theirs counted?",
    )

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """Any directed edges."""
        return any_arrows(n, self.degree, rng)

    def find(self, net: Net, facts: Facts) -> int:
        """Searches in both directions."""
        return len(set(strong(net)))


@dataclass(frozen=True, slots=True, kw_only=True)
class StrongOf(NodesOf):
    """The nodes that paths join with a node both ways. The level is the number of nodes.

    >>> StrongOf().solve({"names": "A B C", "edges": [0, 1, 1, 0, 1, 2], "source": 0}).answer
    'A, B'
    """

    name: str = "graphs/strong_component_of"
    degree: tuple[float, float] = (2.0, 4.0)
    directed: ClassVar[bool] = True
    theme: ClassVar[Theme] = LINKS
    asks: ClassVar[tuple[str, ...]] = (
        "Which nodes are in the strongly connected component of {source}? Include {source} itself.",
        "List {source} and all nodes that can be reached from {source} and from which {source} can be reached.",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "From which pages can a reader get to {source} and from {source} back to that page, by following links? Include "
        "{source}.",
    )
    how: ClassVar[str] = "List the {nodes} with commas between."

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """Any directed edges."""
        return any_arrows(n, self.degree, rng)

    def ask(self, net: Net, rng: Random) -> dict[str, Any] | None:
        """A node that is not alone, each size of a component as likely as the other."""
        sizes = [mask.bit_count() for mask in strong(net)]
        return {"source": evenly(sizes, rng, 2)} if max(sizes) > 1 else None

    def find(self, net: Net, facts: Facts) -> list[int]:
        """Searches in both directions."""
        return bits(strong(net)[at(facts, "source")])


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxFlow(NumberOf):
    """The greatest flow from one node to another. The level is the number of nodes.

    >>> facts = {"names": "A B C", "edges": [0, 1, 0, 2, 1, 2], "weights": [2, 4, 3], "source": 0, "target": 2}
    >>> MaxFlow().solve(facts).answer
    '6'
    """

    name: str = "graphs/max_flow"
    levels: tuple[int, ...] = (4, 5, 6, 8, 10, 13)
    degree: tuple[float, float] = (3.0, 4.5)
    directed: ClassVar[bool] = True
    most: ClassVar[int] = 12
    theme: ClassVar[Theme] = PIPES
    asks: ClassVar[tuple[str, ...]] = (
        "What is the value of a maximum flow from {source} to {target}?",
        "How much can flow from {source} to {target} at most, if no edge carries more than its capacity and all other nodes "
        "pass on what they get?",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "How many litres per second can flow from {source} to {target} at most, if the other stations neither add nor hold "
        "water?",
    )

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """Any directed edges."""
        return any_arrows(n, self.degree, rng)

    def ask(self, net: Net, rng: Random) -> dict[str, Any] | None:
        """Two nodes of which the second can be reached from the first, by two edges or more if that can be."""
        source = rng.randrange(net.n)
        far = distances(net, source)
        return {"source": source, "target": evenly(far, rng, min(2, max(far)))} if max(far) > 0 else None

    def find(self, net: Net, facts: Facts) -> int:
        """Augmenting paths."""
        return flow(net, at(facts, "source"), at(facts, "target"))


ARROWED = (
    Reachable(),
    ReachCount(),
    ClosureCount(),
    Ordered(),
    IsAcyclic(),
    LongestPath(),
    CriticalPath(),
    StrongCount(),
    StrongOf(),
    MaxFlow(),
)
