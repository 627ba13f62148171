"""Paths between two nodes."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.tasks.graphs.base import NumberOf, Witness
from assay.tasks.graphs.drawing import joined, some
from assay.tasks.graphs.net import Edge, Net
from assay.tasks.graphs.search import distances, pieces, route
from assay.tasks.problem import Facts
from assay.verify.structure.graph import GraphAnswer
from assay.verify.structure.partitions import Components
from assay.verify.structure.routes import Path

__all__ = ["ROUTES", "AnyPath", "Distance", "ComponentList"]

_ARROWS = "Write the {nodes} in order with -> between."


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyPath(Witness):
    """A path between two nodes, or that there is none: each in half of the questions. The level is the number of nodes.

    >>> facts = {"names": "A B C D", "edges": [0, 1, 1, 2], "source": 0, "target": 2}
    >>> AnyPath().solve(facts).answer, AnyPath().solve({**facts, "target": 3}).answer
    ('A -> B -> C', 'none')
    """

    name: str = "graphs/path"
    degree: tuple[float, float] = (1.2, 2.0)
    judge: ClassVar[type[GraphAnswer]] = Path
    asks: ClassVar[tuple[str, ...]] = (
        "Find a path from {source} to {target} that visits no node twice.",
        "Give any path along the edges that leads from {source} to {target} without repeating a node.",
    )
    tells: ClassVar[tuple[str, ...]] = ("How can one travel from {source} to {target} by road without passing through a town twice?",)
    how: ClassVar[str] = _ARROWS + " If there is no such path, write none."

    def ask(self, net: Net, rng: Random) -> dict[str, Any] | None:
        """Two nodes that are joined, or not, as a coin says; where they are, by no edge if that can be."""
        groups = [group for group in pieces(net) if len(group) > 2]
        if not groups:
            return None
        group = rng.choice(groups)
        source = rng.choice(group)
        if rng.getrandbits(1):
            others = [i for i in range(net.n) if i not in group]
        else:
            others = [i for i in group if i != source and i not in net.adjacent[source]]
        return {"source": source, "target": rng.choice(others)} if others else None

    def find(self, net: Net, facts: Facts) -> tuple[str, dict[str, Any]] | None:
        """The one with the fewest edges."""
        source, target = facts["source"], facts["target"]
        found = route(net, source, target)
        if found is None:
            return None
        return net.said(found, " -> "), {"source": net.names[source], "target": net.names[target]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance(NumberOf):
    """The number of edges of a shortest path between two nodes. The level is the number of nodes.

    >>> Distance().solve({"names": "A B C", "edges": [0, 1, 1, 2], "source": 0, "target": 2}).answer
    '2'
    """

    name: str = "graphs/distance"
    degree: tuple[float, float] = (2.0, 3.0)
    asks: ClassVar[tuple[str, ...]] = (
        "How many edges does a shortest path from {source} to {target} have?",
        "What is the distance, in edges, between {source} and {target}?",
    )
    tells: ClassVar[tuple[str, ...]] = ("How many roads must one take at least to get from {source} to {target}?",)

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """A connected graph."""
        return joined(n, some(*self.degree, n, rng, least=n - 1), rng)

    def ask(self, net: Net, rng: Random) -> dict[str, Any] | None:
        """A node, and one of any distance that there is, each distance as likely as the other."""
        source = rng.randrange(net.n)
        far = distances(net, source)
        want = rng.randint(1, max(far))
        return {"source": source, "target": rng.choice([i for i, d in enumerate(far) if d == want])}

    def find(self, net: Net, facts: Facts) -> int:
        """Breadth first."""
        return distances(net, facts["source"])[facts["target"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentList(Witness):
    """The connected components. The level is the number of nodes.

    >>> ComponentList().solve({"names": "A B C", "edges": [0, 2]}).answer
    '[A, C], [B]'
    """

    name: str = "graphs/components"
    degree: tuple[float, float] = (0.8, 1.8)
    judge: ClassVar[type[GraphAnswer]] = Components
    asks: ClassVar[tuple[str, ...]] = (
        "What are the connected components of this graph?",
        "Divide the nodes into the graph's connected components.",
    )
    tells: ClassVar[tuple[str, ...]] = ("Two towns belong to one region if one can travel by road from one to the other. What are the regions?",)
    how: ClassVar[str] = "Write each as a list of its {nodes} in brackets, a {node} that is alone too."

    def find(self, net: Net, facts: Facts) -> tuple[str, dict[str, Any]]:
        """Breadth first from each node that was not seen."""
        return ", ".join([f"[{net.said(group)}]" for group in pieces(net)]), {}


ROUTES = (AnyPath(), Distance(), ComponentList())
