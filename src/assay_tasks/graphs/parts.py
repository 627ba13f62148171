"""What undirected graphs fall into: components, bridges, cycles, two sides."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.tasks.problem import Facts
from assay.verify.structure.graph import GraphAnswer
from assay.verify.structure.partitions import Bipartition, Components
from assay.verify.structure.routes import Cycle
from assay_tasks.graphs.base import NodesOf, NumberOf, Witness, YesNo
from assay_tasks.graphs.drawing import bipartite_graph, blocks, connected_graph, pairs, some, tree
from assay_tasks.graphs.net import Edge, Net
from assay_tasks.graphs.search import circle, cuts, girth, pieces, sides
from assay_tasks.graphs.wording import FRIENDS, Theme

__all__ = ["PARTS"]


def split(n: int, parts: int, rng: Random) -> list[int]:
    """Sizes of so many parts of ``n``, each at least 1."""
    marks = [0, *sorted(rng.sample(range(1, n), parts - 1)), n]
    return [b - a for a, b in itertools.pairwise(marks)]


def two_sided(n: int, degree: tuple[float, float], odd: bool, rng: Random) -> list[Edge]:
    """A connected graph with two sides; where ``odd``, with one edge inside a side."""
    own = tree(n, rng)
    half = sides(Net(n, own)) or []
    left = [i for i in range(n) if half[i]]
    right = [i for i in range(n) if not half[i]]
    extra = max(1, some(*degree, n, rng) - len(own)) - odd
    out = set(own)
    free = [e for e in bipartite_graph(left, right, n * n, rng) if e not in out]
    out.update(rng.sample(free, min(len(free), extra)))
    if odd:
        out.add(rng.choice([(a, b) for a, b in pairs(n) if half[a] == half[b]]))
    return sorted(out)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connected(YesNo):
    """Whether a graph is connected. The level is the number of nodes.

    >>> Connected().solve({"names": "A B C", "edges": [0, 1]}).answer
    'no'
    """

    name: str = "graphs/connected"
    degree: tuple[float, float] = (2.0, 3.0)
    connected: ClassVar[bool] = True
    asks: ClassVar[tuple[str, ...]] = (
        "Is this graph connected?",
        "Is there a path between every two nodes of this graph?",
    )
    tells: ClassVar[tuple[str, ...]] = ("Can one travel by road from every town to every other?",)

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """A connected graph, or two side by side."""
        return super(Connected, self).edges(n, rng) if rng.getrandbits(1) else blocks(split(n, 2, rng), self.degree, rng)

    def find(self, net: Net, facts: Facts) -> bool:
        """Breadth first."""
        return len(pieces(net)) == 1


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
        "Divide the nodes into the connected components of the graph.",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "Two towns belong to one region if one can travel by road from one to the other. What are the regions?",
    )
    how: ClassVar[str] = "Write each as a list of its {nodes} in brackets, a {node} that is alone too."

    def find(self, net: Net, facts: Facts) -> tuple[str, dict[str, Any]]:
        """Breadth first from each node that was not seen."""
        return ", ".join([f"[{net.join_names(group)}]" for group in pieces(net)]), {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentCount(NumberOf):
    """How many connected components there are, 1 to 5. The level is the number of nodes.

    >>> ComponentCount().solve({"names": "A B C", "edges": [0, 2]}).answer
    '2'
    """

    name: str = "graphs/component_count"
    degree: tuple[float, float] = (1.6, 2.6)
    asks: ClassVar[tuple[str, ...]] = (
        "How many connected components does this graph have? A node without edges is one too.",
        "Into how many connected components does the graph fall, counting nodes without edges?",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "Two towns belong to one region if one can travel by road from one to the other. How many regions are there?",
    )

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """Connected graphs side by side."""
        return blocks(split(n, rng.randint(1, min(5, n - 1)), rng), self.degree, rng)

    def find(self, net: Net, facts: Facts) -> int:
        """Breadth first."""
        return len(pieces(net))


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestComponent(NumberOf):
    """How many nodes the largest connected component has. The level is the number of nodes.

    >>> LargestComponent().solve({"names": "A B C", "edges": [0, 2]}).answer
    '2'
    """

    name: str = "graphs/largest_component"
    degree: tuple[float, float] = (1.6, 2.6)
    theme: ClassVar[Theme] = FRIENDS
    asks: ClassVar[tuple[str, ...]] = (
        "How many nodes does the largest connected component of this graph have?",
        "What is the size, in nodes, of the largest connected component?",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "News travels from friend to friend until it gets no further. It starts with a person from whom it reaches as many "
        "people as possible. How many people know it in the end, the first one counted?",
    )

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """Two to four connected graphs side by side."""
        return blocks(split(n, rng.randint(2, min(4, n - 1)), rng), self.degree, rng)

    def find(self, net: Net, facts: Facts) -> int:
        """Breadth first."""
        return max(map(len, pieces(net)))


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeCount(NumberOf):
    """How many edges are bridges: without one of them there are more components. The level is the number of nodes.

    >>> BridgeCount().solve({"names": "A B C D", "edges": [0, 1, 0, 2, 1, 2, 2, 3]}).answer
    '1'
    """

    name: str = "graphs/bridge_count"
    degree: tuple[float, float] = (2.0, 2.8)
    connected: ClassVar[bool] = True
    asks: ClassVar[tuple[str, ...]] = (
        "How many bridges does this graph have, edges whose removal leaves it disconnected?",
        "For how many edges is it true that the graph is no longer connected once that edge alone is removed?",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "How many roads are such that closing that road alone would cut off some town from another?",
    )

    def find(self, net: Net, facts: Facts) -> int:
        """Lowest links of a search depth first."""
        return len(cuts(net)[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class ArticulationPoints(NodesOf):
    """The nodes without which there are more components. The level is the number of nodes.

    >>> ArticulationPoints().solve({"names": "A B C D", "edges": [0, 1, 0, 2, 1, 2, 2, 3]}).answer
    'C'
    """

    name: str = "graphs/articulation_points"
    degree: tuple[float, float] = (2.0, 2.8)
    connected: ClassVar[bool] = True
    asks: ClassVar[tuple[str, ...]] = (
        "Which nodes are articulation points, nodes whose removal (with their edges) leaves the rest disconnected?",
        "List all cut vertices of this graph: nodes without which the other nodes are not all connected.",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "Which towns are such that, if that town alone could not be entered, some two other towns would be cut off from each "
        "other?",
    )

    def find(self, net: Net, facts: Facts) -> list[int]:
        """Lowest links of a search depth first."""
        return cuts(net)[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyCycle(Witness):
    """A cycle, or that there is none: each in half of the questions. The level is the number of nodes.

    Graphs with and without a cycle have the same numbers of edges.

    >>> facts = {"names": "A B C D", "edges": [0, 1, 0, 2, 1, 2, 2, 3]}
    >>> AnyCycle().solve(facts).answer, AnyCycle().solve({**facts, "edges": [0, 1, 0, 2, 2, 3]}).answer
    ('C -> A -> B', 'none')
    """

    name: str = "graphs/cycle"
    judge: ClassVar[type[GraphAnswer]] = Cycle
    asks: ClassVar[tuple[str, ...]] = (
        "Find a cycle in this graph, any one.",
        "Does this graph have a cycle? If so, give one.",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "Find a round trip that begins and ends in the same town, and on the way visits each town and takes each road at most "
        "once.",
    )
    how: ClassVar[str] = "Write its {nodes} in order with -> between, each once. If there is no cycle, write none."

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """One or two trees; or one more part, and as many edges, of which some close a cycle."""
        parts, round_trip = rng.randint(1, 2), rng.getrandbits(1)
        if not round_trip:
            return blocks(split(n, parts, rng), (0.0, 0.0), rng)
        sizes = split(n, min(parts + 1, n - 2), rng)
        while max(sizes) < 3:  # n - 2 parts have one of 3 nodes now and then
            sizes = split(n, min(parts + 1, n - 2), rng)
        order = list(range(n))
        rng.shuffle(order)
        large, rest = max(sizes), sorted(sizes)[:-1]
        inner, outer = sorted(order[:large]), sorted(order[large:])
        own = [(inner[a], inner[b]) for a, b in connected_graph(large, large, rng)]
        return sorted(own + [(outer[a], outer[b]) for a, b in blocks(rest, (0.0, 0.0), rng)])

    def find(self, net: Net, facts: Facts) -> tuple[str, dict[str, Any]] | None:
        """Depth first until an edge leads back."""
        found = circle(net)
        return None if found is None else (net.join_names(found, " -> "), {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Girth(NumberOf):
    """The number of edges of a shortest cycle. The level is the number of nodes.

    >>> Girth().solve({"names": "A B C D", "edges": [0, 1, 0, 3, 1, 2, 2, 3]}).answer
    '4'
    """

    name: str = "graphs/girth"
    asks: ClassVar[tuple[str, ...]] = (
        "How many edges does a shortest cycle of this graph have (its girth)?",
        "What is the length, in edges, of the shortest cycle in this graph?",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "A round trip begins and ends in the same town and otherwise visits no town twice and uses no road twice. How many roads "
        "does the round trip with the fewest roads take?",
    )

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """A cycle of any size up to 8, nodes that hang on it, and up to n / 6 edges more."""
        size, order = rng.randint(3, min(8, n)), list(range(n))
        rng.shuffle(order)
        ties = [(order[i], order[(i + 1) % size]) for i in range(size)]
        ties += [(order[i], order[rng.randrange(i)]) for i in range(size, n)]
        own = {(a, b) if a < b else (b, a) for a, b in ties}
        free = [pair for pair in pairs(n) if pair not in own]
        return sorted([*own, *rng.sample(free, min(len(free), rng.randrange(1 + n // 6)))])

    def find(self, net: Net, facts: Facts) -> int:
        """Breadth first from every node."""
        return girth(net)


@dataclass(frozen=True, slots=True, kw_only=True)
class IsBipartite(YesNo):
    """Whether the nodes have two sides such that all edges lead across. The level is the number of nodes.

    >>> IsBipartite().solve({"names": "A B C", "edges": [0, 1, 0, 2, 1, 2]}).answer
    'no'
    """

    name: str = "graphs/is_bipartite"
    degree: tuple[float, float] = (2.2, 3.2)
    theme: ClassVar[Theme] = FRIENDS
    asks: ClassVar[tuple[str, ...]] = (
        "Is this graph bipartite?",
        "Can the nodes be divided into two groups such that no edge joins two nodes of the same group?",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "Can these people be divided into two teams so that no two friends are in the same team?",
    )

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """A connected graph with two sides, and in half of the draws one edge inside a side."""
        return two_sided(n, self.degree, bool(rng.getrandbits(1)), rng)

    def find(self, net: Net, facts: Facts) -> bool:
        """Sides given breadth first."""
        return sides(net) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides(Witness):
    """Two sides such that all edges lead across, or that there are none: each in half of the questions. The level is the number
    of nodes.

    >>> facts = {"names": "A B C", "edges": [0, 1, 0, 2]}
    >>> Sides().solve(facts).answer, Sides().solve({**facts, "edges": [0, 1, 0, 2, 1, 2]}).answer
    ('[A], [B, C]', 'none')
    """

    name: str = "graphs/bipartition"
    degree: tuple[float, float] = (2.2, 3.2)
    theme: ClassVar[Theme] = FRIENDS
    judge: ClassVar[type[GraphAnswer]] = Bipartition
    asks: ClassVar[tuple[str, ...]] = (
        "Divide the nodes into two groups such that no edge joins two nodes of the same group.",
        "If this graph is bipartite, give its two sides.",
    )
    tells: ClassVar[tuple[str, ...]] = ("Divide these people into two teams so that no two friends are in the same team.",)
    how: ClassVar[str] = "Write each group as a list of its {nodes} in brackets. If it cannot be done, write none."

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """A connected graph with two sides, and in half of the draws one edge inside a side."""
        return two_sided(n, self.degree, bool(rng.getrandbits(1)), rng)

    def find(self, net: Net, facts: Facts) -> tuple[str, dict[str, Any]] | None:
        """Sides given breadth first."""
        side = sides(net)
        if side is None:
            return None
        groups = [[i for i in range(net.n) if side[i] == which] for which in (0, 1)]
        return ", ".join([f"[{net.join_names(group)}]" for group in groups]), {}


PARTS = (
    Connected(),
    ComponentList(),
    ComponentCount(),
    LargestComponent(),
    BridgeCount(),
    ArticulationPoints(),
    AnyCycle(),
    Girth(),
    IsBipartite(),
    Sides(),
)
