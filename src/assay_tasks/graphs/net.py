"""A graph as facts hold it, and as solvers see it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from assay.tasks.problem import Facts

__all__ = ["Edge", "Net", "at", "bits"]

Edge = tuple[int, int]


class Net:
    """Nodes 0 to n - 1 and edges between them, with tables that solvers build once.

    Facts hold it flat, since they are hashed for every task: ``names`` is the nodes' names in order between spaces, ``edges`` the
    ends of all edges in a row, and ``weights``, where there are any, one number for each edge.

    Attributes:
        n: how many nodes.
        edges: (from, to), ascending; undirected ones smaller end first.
        weights: of the edges in the same order; all 1 where none are given.
        names: of the nodes.
        directed: whether edges lead one way only.
        work: steps that solvers have taken on it; reading the edges counts first.

    >>> net = Net(3, [(0, 1), (1, 2)], names=("A", "B", "C"))
    >>> net.adjacent, net.masks, Net.of(net.facts()).edges
    ([[1], [0, 2], [1]], [2, 5, 2], [(0, 1), (1, 2)])
    """

    __slots__ = ("_adjacent", "_masks", "directed", "edges", "n", "names", "weights", "work")

    def __init__(
        self, n: int, edges: list[Edge], weights: list[int] | None = None, names: tuple[str, ...] = (), directed: bool = False
    ) -> None:
        self.n, self.edges, self.weights, self.names, self.directed = n, edges, weights, names, directed
        self.work = len(edges)
        self._adjacent: list[list[int]] | None = None
        self._masks: list[int] | None = None

    @classmethod
    def of(cls, facts: Facts, directed: bool = False) -> Net:
        """The graph of facts."""
        names = tuple(str(facts["names"]).split(" "))
        ends: list[int] = facts["edges"]
        return cls(len(names), list(zip(ends[::2], ends[1::2], strict=True)), facts.get("weights"), names, directed)

    def facts(self) -> dict[str, Any]:
        """The graph as facts."""
        out: dict[str, Any] = {"names": " ".join(self.names), "edges": [end for edge in self.edges for end in edge]}
        return out if self.weights is None else {**out, "weights": self.weights}

    @property
    def adjacent(self) -> list[list[int]]:
        """The nodes that an edge leads to, ascending, for each node."""
        if self._adjacent is None:
            out: list[list[int]] = [[] for _ in range(self.n)]
            for a, b in self.edges:
                out[a].append(b)
                if not self.directed:
                    out[b].append(a)
            for row in out:
                row.sort()
            self._adjacent = out
        return self._adjacent

    @property
    def masks(self) -> list[int]:
        """The same as bits: bit j of entry i is set where an edge leads from i to j."""
        if self._masks is None:
            out = [0] * self.n
            for a, b in self.edges:
                out[a] |= 1 << b
                if not self.directed:
                    out[b] |= 1 << a
            self._masks = out
        return self._masks

    def weighted_neighbours(self) -> list[list[tuple[int, int]]]:
        """(node, weight) of the edges that leave each node."""
        out: list[list[tuple[int, int]]] = [[] for _ in range(self.n)]
        for (a, b), weight in zip(self.edges, self.weights or [1] * len(self.edges), strict=True):
            out[a].append((b, weight))
            if not self.directed:
                out[b].append((a, weight))
        return out

    def reverse(self) -> Net:
        """The graph with every edge the other way round."""
        return Net(self.n, [(b, a) for a, b in self.edges], self.weights, self.names, self.directed)

    def to_undirected(self) -> Net:
        """The graph with edges that lead both ways."""
        return Net(self.n, self.edges, self.weights, self.names)

    def join_names(self, nodes: Iterable[int], between: str = ", ") -> str:
        """Names of nodes, in the order given."""
        names = self.names
        return between.join([names[i] for i in nodes])

    def gold(self, **more: object) -> dict[str, Any]:
        """The graph as the verifiers of `assay.verify.structure` read it, with what a problem names besides."""
        names = self.names
        if self.weights is None:
            edges: list[Any] = [[names[a], names[b]] for a, b in self.edges]
        else:
            edges = [[names[a], names[b], w] for (a, b), w in zip(self.edges, self.weights, strict=True)]
        return {"edges": edges, "nodes": list(names), "directed": self.directed, **more}


def at(facts: Facts, key: str) -> int:
    """The number of a node, or another number, that facts name."""
    found: int = facts[key]
    return found


def bits(mask: int) -> list[int]:
    """The places of the bits that are set, ascending.

    >>> bits(0b1011)
    [0, 1, 3]
    """
    out: list[int] = []
    while mask:
        low = mask & -mask
        out.append(low.bit_length() - 1)
        mask ^= low
    return out
