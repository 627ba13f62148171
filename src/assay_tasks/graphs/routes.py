"""Paths and distances."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.tasks.problem import Facts
from assay.verify.structure.graph import GraphAnswer
from assay.verify.structure.routes import Path, ShortestPath
from assay_tasks.graphs.base import ARROWS, NodesOf, NumberOf, Witness, evenly
from assay_tasks.graphs.net import Net, at
from assay_tasks.graphs.search import distances, pieces, route, shortest_count, walks
from assay_tasks.graphs.weighed import lengths, shortest, widest
from assay_tasks.graphs.wording import FRIENDS, ROADS, TRUCKS, Theme

__all__ = ["ROUTES"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyPath(Witness):
    """A path between two nodes, or that there is none: each in half of the questions. The level is the number of nodes.

    >>> facts = {"names": "A B C D", "edges": [0, 1, 1, 2], "source": 0, "target": 2}
    >>> AnyPath().solve(facts).answer, AnyPath().solve({**facts, "target": 3}).answer
    ('A -> B -> C', 'none')
    """

    name: str = "graphs/path"
    degree: tuple[float, float] = (1.2, 1.7)
    judge: ClassVar[type[GraphAnswer]] = Path
    asks: ClassVar[tuple[str, ...]] = (
        "Find a path from {source} to {target} that visits no node twice.",
        "Give any path along the edges that leads from {source} to {target} without repeating a node.",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "How can one travel by road from {source} to {target} without passing through a town twice?",
    )
    how: ClassVar[str] = ARROWS + " If there is no such path, write none."

    def ask(self, net: Net, rng: Random) -> dict[str, Any] | None:
        """Two nodes, joined or not as a coin says; where they are, by no edge if that can be."""
        apart = rng.getrandbits(1)
        groups = [group for group in pieces(net) if len(group) > 2]
        if not groups:
            return None
        group = rng.choice(groups)
        source = rng.choice(group)
        if apart:
            others = [i for i in range(net.n) if i not in group]
        else:
            others = [i for i in group if i != source and i not in net.adjacent[source]]
        return {"source": source, "target": rng.choice(others)} if others else None

    def find(self, net: Net, facts: Facts) -> tuple[str, dict[str, Any]] | None:
        """The one with the fewest edges."""
        source, target = at(facts, "source"), at(facts, "target")
        found = route(net, source, target)
        if found is None:
            return None
        return net.join_names(found, " -> "), {"source": net.names[source], "target": net.names[target]}


@dataclass(frozen=True, slots=True, kw_only=True)
class FewestEdges(Witness):
    """A path with the fewest edges between two nodes. The level is the number of nodes.

    >>> facts = {"names": "A B C D", "edges": [0, 1, 0, 2, 1, 2, 2, 3], "source": 0, "target": 3}
    >>> FewestEdges().solve(facts).answer
    'A -> C -> D'
    """

    name: str = "graphs/shortest_path"
    degree: tuple[float, float] = (2.0, 3.0)
    connected: ClassVar[bool] = True
    judge: ClassVar[type[GraphAnswer]] = ShortestPath
    asks: ClassVar[tuple[str, ...]] = (
        "Find a shortest path from {source} to {target}, one with as few edges as possible.",
        "Which path from {source} to {target} has the fewest edges? Any of the shortest ones will do.",
    )
    tells: ClassVar[tuple[str, ...]] = ("Which route from {source} to {target} takes the fewest roads? Any of the best will do.",)
    how: ClassVar[str] = ARROWS

    def ask(self, net: Net, rng: Random) -> dict[str, Any]:
        """A node, and one of any distance of 2 or more if there is one, each distance as likely as the other."""
        source = rng.randrange(net.n)
        far = distances(net, source)
        return {"source": source, "target": evenly(far, rng, min(2, max(far)))}

    def find(self, net: Net, facts: Facts) -> tuple[str, dict[str, Any]]:
        """Breadth first."""
        source, target = at(facts, "source"), at(facts, "target")
        found = route(net, source, target) or []
        return net.join_names(found, " -> "), {
            "source": net.names[source],
            "target": net.names[target],
            "value": len(found) - 1,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedPath(Witness):
    """A path of the least length between two nodes of a graph with lengths. The level is the number of nodes.

    >>> facts = {"names": "A B C", "edges": [0, 1, 0, 2, 1, 2], "weights": [2, 9, 3], "source": 0, "target": 2}
    >>> WeightedPath().solve(facts).answer
    'A -> B -> C'
    """

    name: str = "graphs/weighted_path"
    degree: tuple[float, float] = (2.5, 4.0)
    connected: ClassVar[bool] = True
    most: ClassVar[int] = 12
    judge: ClassVar[type[GraphAnswer]] = ShortestPath
    asks: ClassVar[tuple[str, ...]] = (
        "Find a path from {source} to {target} whose edges have the least total length.",
        "The length of a path is the sum of the lengths of its edges. Give a shortest path from {source} to {target}.",
    )
    tells: ClassVar[tuple[str, ...]] = ("Which route from {source} to {target} is the shortest in kilometres?",)
    how: ClassVar[str] = ARROWS

    def ask(self, net: Net, rng: Random) -> dict[str, Any]:
        """Any two nodes."""
        source, target = rng.sample(range(net.n), 2)
        return {"source": source, "target": target}

    def find(self, net: Net, facts: Facts) -> tuple[str, dict[str, Any]]:
        """Dijkstra's algorithm."""
        source, target = at(facts, "source"), at(facts, "target")
        length, way = shortest(net, source, target)
        return net.join_names(way, " -> "), {"source": net.names[source], "target": net.names[target], "value": length}


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance(NumberOf):
    """The number of edges of a shortest path between two nodes. The level is the number of nodes.

    >>> Distance().solve({"names": "A B C", "edges": [0, 1, 1, 2], "source": 0, "target": 2}).answer
    '2'
    """

    name: str = "graphs/distance"
    degree: tuple[float, float] = (2.0, 3.0)
    connected: ClassVar[bool] = True
    theme: ClassVar[Theme] = FRIENDS
    asks: ClassVar[tuple[str, ...]] = (
        "How many edges does a shortest path from {source} to {target} have?",
        "What is the distance, in edges, between {source} and {target}?",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "Friends are one step apart, friends of friends two, and so on. How many steps are {source} and {target} apart?",
        "A secret is passed on from friend to friend. How many times must it be passed at least to get from {source} to "
        "{target}?",
    )

    def ask(self, net: Net, rng: Random) -> dict[str, Any]:
        """A node, and one of any distance that there is, each distance as likely as the other."""
        source = rng.randrange(net.n)
        return {"source": source, "target": evenly(distances(net, source), rng)}

    def find(self, net: Net, facts: Facts) -> int:
        """Breadth first."""
        return distances(net, at(facts, "source"))[at(facts, "target")]


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedDistance(NumberOf):
    """The length of a shortest path between two nodes of a graph with lengths. The level is the number of nodes.

    >>> facts = {"names": "A B C", "edges": [0, 1, 0, 2, 1, 2], "weights": [2, 9, 3], "source": 0, "target": 2}
    >>> WeightedDistance().solve(facts).answer
    '5'
    """

    name: str = "graphs/weighted_distance"
    degree: tuple[float, float] = (2.5, 4.0)
    connected: ClassVar[bool] = True
    most: ClassVar[int] = 12
    asks: ClassVar[tuple[str, ...]] = (
        "What is the least total length of a path from {source} to {target}?",
        "How long is a shortest path from {source} to {target}, if the lengths of its edges are added up?",
    )
    tells: ClassVar[tuple[str, ...]] = ("How many kilometres is the shortest way by road from {source} to {target}?",)

    def ask(self, net: Net, rng: Random) -> dict[str, Any]:
        """Any two nodes."""
        source, target = rng.sample(range(net.n), 2)
        return {"source": source, "target": target}

    def find(self, net: Net, facts: Facts) -> int:
        """Dijkstra's algorithm."""
        return lengths(net, at(facts, "source"))[0][at(facts, "target")]


@dataclass(frozen=True, slots=True, kw_only=True)
class PathCount(NumberOf):
    """How many shortest paths there are between two nodes. The level is the number of nodes.

    >>> PathCount().solve({"names": "A B C D", "edges": [0, 1, 0, 2, 1, 3, 2, 3], "source": 0, "target": 3}).answer
    '2'
    """

    name: str = "graphs/path_count"
    degree: tuple[float, float] = (2.4, 4.0)
    connected: ClassVar[bool] = True
    asks: ClassVar[tuple[str, ...]] = (
        "How many different shortest paths (paths with the fewest edges) lead from {source} to {target}?",
        "Count the paths from {source} to {target} that have as few edges as possible.",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "Someone wants to go from {source} to {target} on as few roads as possible. Among how many such routes can she choose?",
    )

    def ask(self, net: Net, rng: Random) -> dict[str, Any]:
        """A node, and one that is no neighbour, if there is one, such that each count that there is is equally likely."""
        source = rng.randrange(net.n)
        counts = shortest_count(net, source)
        counts[source] = 0
        near = net.adjacent[source]
        if len(near) < net.n - 1:
            for there in near:
                counts[there] = 0
        return {"source": source, "target": evenly(counts, rng)}

    def find(self, net: Net, facts: Facts) -> int:
        """Breadth first, adding up the ways."""
        return shortest_count(net, at(facts, "source"))[at(facts, "target")]


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkCount(NumberOf):
    """How many walks of k edges lead from one node to another, k from 2 to 4. The level is the number of nodes.

    >>> WalkCount().solve({"names": "A B C", "edges": [0, 1, 0, 2, 1, 2], "source": 0, "target": 1, "k": 3}).answer
    '3'
    """

    name: str = "graphs/walk_count"
    degree: tuple[float, float] = (2.5, 4.0)
    connected: ClassVar[bool] = True
    asks: ClassVar[tuple[str, ...]] = (
        "How many walks of exactly {k} edges lead from {source} to {target}? A walk may use nodes and edges again.",
        "Count the walks of length {k} from {source} to {target}; nodes and edges may be repeated.",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "A bus drives along exactly {k} roads, from {source} to {target}. It may turn back and use a road again. "
        "How many routes are possible?",
    )

    def ask(self, net: Net, rng: Random) -> dict[str, Any]:
        """A node, a number of steps, and a node that can be reached so, each count as likely as the other."""
        source, steps = rng.randrange(net.n), rng.randint(2, 4)
        return {"source": source, "target": evenly(walks(net, source, steps), rng), "k": steps}

    def find(self, net: Net, facts: Facts) -> int:
        """Step by step, adding up the ways."""
        return walks(net, at(facts, "source"), at(facts, "k"))[at(facts, "target")]


@dataclass(frozen=True, slots=True, kw_only=True)
class AtDistance(NodesOf):
    """The nodes at one distance from a node. The level is the number of nodes.

    >>> AtDistance().solve({"names": "A B C D", "edges": [0, 1, 1, 2, 1, 3], "source": 0, "k": 2}).answer
    'C, D'
    """

    name: str = "graphs/at_distance"
    degree: tuple[float, float] = (2.0, 3.0)
    connected: ClassVar[bool] = True
    theme: ClassVar[Theme] = FRIENDS
    asks: ClassVar[tuple[str, ...]] = (
        "Which nodes are at distance exactly {k} from {source}, counted in edges of a shortest path?",
        "List all nodes to which a shortest path from {source} has exactly {k} edges.",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "Friends are one step apart, friends of friends who are not friends two, and so on. Who is exactly {k} steps from "
        "{source}?",
    )

    def ask(self, net: Net, rng: Random) -> dict[str, Any]:
        """A node and a distance of 2 or more, if there is one."""
        source = rng.randrange(net.n)
        most = max(distances(net, source))
        return {"source": source, "k": rng.randint(min(2, most), most)}

    def find(self, net: Net, facts: Facts) -> list[int]:
        """Breadth first."""
        return [i for i, far in enumerate(distances(net, at(facts, "source"))) if far == at(facts, "k")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Within(NumberOf):
    """How many other nodes are within a length of a node. The level is the number of nodes.

    >>> facts = {"names": "A B C", "edges": [0, 1, 0, 2, 1, 2], "weights": [2, 9, 3], "source": 0, "k": 4}
    >>> Within().solve(facts).answer
    '1'
    """

    name: str = "graphs/within"
    degree: tuple[float, float] = (2.5, 4.0)
    connected: ClassVar[bool] = True
    most: ClassVar[int] = 12
    asks: ClassVar[tuple[str, ...]] = (
        "How many other nodes can be reached from {source} by a path of total length {k} or less?",
        "Count the nodes, not counting {source} itself, whose distance from {source} is at most {k}.",
    )
    tells: ClassVar[tuple[str, ...]] = ("How many other towns are at most {k} km by road from {source}?",)

    def ask(self, net: Net, rng: Random) -> dict[str, Any]:
        """A node and the distance of another, or a little more."""
        source = rng.randrange(net.n)
        far = sorted(lengths(net, source)[0])[1:]
        return {"source": source, "k": rng.choice(far) + rng.randrange(2)}

    def find(self, net: Net, facts: Facts) -> int:
        """Dijkstra's algorithm."""
        return sum(far <= at(facts, "k") for far in lengths(net, at(facts, "source"))[0]) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Widest(NumberOf):
    """The greatest load that can go from one node to another when each edge has a limit. The level is the number of nodes.

    >>> facts = {"names": "A B C", "edges": [0, 1, 0, 2, 1, 2], "weights": [7, 2, 5], "source": 0, "target": 2}
    >>> Widest().solve(facts).answer
    '5'
    """

    name: str = "graphs/widest_path"
    degree: tuple[float, float] = (2.5, 4.0)
    connected: ClassVar[bool] = True
    most: ClassVar[int] = 30
    theme: ClassVar[Theme] = TRUCKS
    asks: ClassVar[tuple[str, ...]] = (
        "The strength of a path is the least load limit among its edges. What is the greatest strength of a path from "
        "{source} to {target}?",
        "Over all paths from {source} to {target}, how large can the smallest load limit on the path be?",
    )
    tells: ClassVar[tuple[str, ...]] = ("How many tonnes can the heaviest truck weigh that can get from {source} to {target}?",)

    def ask(self, net: Net, rng: Random) -> dict[str, Any]:
        """Any two nodes."""
        source, target = rng.sample(range(net.n), 2)
        return {"source": source, "target": target}

    def find(self, net: Net, facts: Facts) -> int:
        """Dijkstra's algorithm on least limits."""
        return widest(net, at(facts, "source"), at(facts, "target"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Eccentricity(NumberOf):
    """The greatest distance from a node. The level is the number of nodes.

    >>> Eccentricity().solve({"names": "A B C", "edges": [0, 1, 1, 2], "source": 1}).answer
    '1'
    """

    name: str = "graphs/eccentricity"
    degree: tuple[float, float] = (1.6, 2.6)
    connected: ClassVar[bool] = True
    asks: ClassVar[tuple[str, ...]] = (
        "What is the eccentricity of {source}, the greatest distance in edges from it to any node?",
        "How many edges away is the node that is farthest from {source}, by shortest paths?",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "How many roads must one take at least to get from {source} to the town that is farthest off by that count?",
    )

    def ask(self, net: Net, rng: Random) -> dict[str, Any]:
        """A node such that each value that there is is equally likely."""
        return {"source": evenly([max(distances(net, i)) for i in range(net.n)], rng)}

    def find(self, net: Net, facts: Facts) -> int:
        """Breadth first."""
        return max(distances(net, at(facts, "source")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Diameter(NumberOf):
    """The greatest distance between two nodes. The level is the number of nodes.

    >>> Diameter().solve({"names": "A B C D", "edges": [0, 1, 1, 2, 1, 3]}).answer
    '2'
    """

    name: str = "graphs/diameter"
    degree: tuple[float, float] = (1.6, 3.0)
    connected: ClassVar[bool] = True
    asks: ClassVar[tuple[str, ...]] = (
        "What is the diameter of this graph, the greatest distance in edges between two nodes?",
        "Take the distance (edges of a shortest path) of every two nodes. What is the largest of these distances?",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "For any two towns, one can count how many roads the route with the fewest roads takes. What is the largest such count?",
    )

    def find(self, net: Net, facts: Facts) -> int:
        """Breadth first from every node."""
        return max(max(distances(net, i)) for i in range(net.n))


@dataclass(frozen=True, slots=True, kw_only=True)
class Center(NodesOf):
    """The nodes of least eccentricity. The level is the number of nodes.

    >>> Center().solve({"names": "A B C D", "edges": [0, 1, 1, 2, 2, 3]}).answer
    'B, C'
    """

    name: str = "graphs/center"
    degree: tuple[float, float] = (1.6, 3.0)
    connected: ClassVar[bool] = True
    asks: ClassVar[tuple[str, ...]] = (
        "Which nodes form the center of this graph, that is, have the least eccentricity (greatest distance to any node)?",
        "For each node take its distance in edges to the node farthest from it. List all nodes where this is smallest.",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "A depot shall stand where the town farthest from it, counted in roads, is as near as possible. Which towns are best "
        "for it? There may be several.",
    )
    how: ClassVar[str] = "List the {nodes} with commas between."

    def find(self, net: Net, facts: Facts) -> list[int]:
        """Breadth first from every node."""
        far = [max(distances(net, i)) for i in range(net.n)]
        return [i for i, most in enumerate(far) if most == min(far)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceSum(NumberOf):
    """The sum of the distances of all pairs of nodes (Wiener index). The level is the number of nodes.

    >>> DistanceSum().solve({"names": "A B C", "edges": [0, 1, 1, 2]}).answer
    '4'
    """

    name: str = "graphs/distance_sum"
    levels: tuple[int, ...] = (4, 5, 6, 8, 10, 13)
    degree: tuple[float, float] = (1.6, 3.0)
    connected: ClassVar[bool] = True
    theme: ClassVar[Theme] = ROADS
    asks: ClassVar[tuple[str, ...]] = (
        "What is the sum of the distances, in edges, of all pairs of different nodes? Count each pair once.",
        "Add up the numbers of edges of shortest paths over all unordered pairs of nodes. What is the sum (the Wiener index)?",
    )
    tells: ClassVar[tuple[str, ...]] = (
        "For every two towns, count the roads of the route with the fewest roads. What is the sum over all pairs, each "
        "counted once?",
    )

    def find(self, net: Net, facts: Facts) -> int:
        """Breadth first from every node."""
        return sum(sum(distances(net, i)) for i in range(net.n)) // 2


ROUTES = (
    AnyPath(),
    FewestEdges(),
    WeightedPath(),
    Distance(),
    WeightedDistance(),
    PathCount(),
    WalkCount(),
    AtDistance(),
    Within(),
    Widest(),
    Eccentricity(),
    Diameter(),
    Center(),
    DistanceSum(),
)
