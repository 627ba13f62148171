"""A graph as a gold gives it, and the base of verifiers that accept any answer with the right property."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, cast

from assay.core.errors import DataError
from assay.core.score import Score
from assay.verify.answer_verifier import AnswerPlace, AnswerVerifier, answer_in, option, verdict_score

__all__ = ["Bad", "Graph", "GraphAnswer"]

_NONE = frozenset({"none", "no", "impossible", "there is none", "no solution", "not possible"})


class Bad(Exception):
    """An answer without the property: ``unparsed``, or ``invalid`` with the reason in words."""

    def __init__(self, verdict: str, why: str = "") -> None:
        super().__init__(verdict, why)
        self.verdict, self.why = verdict, why


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Nodes by name, and the weights of the edges between them.

    Attributes:
        nodes: names in order.
        edges: (from, to, weight) as given.
        directed: whether an edge leads one way only.
        gold: the table that it was read from.
    """

    nodes: tuple[str, ...]
    edges: tuple[tuple[str, str, Fraction], ...]
    directed: bool
    gold: dict[str, Any]

    @classmethod
    def of(cls, gold: Any) -> Graph:
        """The graph of a gold: ``{"edges": [["a", "b"], ["b", "c", 2.5]], "nodes": [...], "directed": false, ...}``.

        ``nodes`` may be left out where every node has an edge, or be a number n for nodes 0 to n - 1.

        Raises:
            DataError: another form, an edge to an unknown node, or a negative weight.
        """
        table = cast("dict[str, Any]", gold) if isinstance(gold, dict) else {}
        rows: Any = table.get("edges")
        if not isinstance(rows, list) or not all(
            isinstance(e, list) and len(cast("list[Any]", e)) in (2, 3) for e in cast("list[Any]", rows)
        ):
            raise DataError(f"the gold {gold!r} has no 'edges': a list of [from, to] or [from, to, weight]")
        edges = tuple((str(e[0]), str(e[1]), _weight(e)) for e in cast("list[list[Any]]", rows))
        given: Any = table.get("nodes")
        if isinstance(given, int) and not isinstance(given, bool):
            given = list(range(given))
        named: Any = [n for a, b, _ in edges for n in (a, b)] if given is None else given
        if not isinstance(named, list):
            raise DataError(f"the gold's 'nodes' are {given!r}; give a list of names, or how many there are")
        nodes = tuple(dict.fromkeys(str(n) for n in cast("list[Any]", named)))
        lost = sorted({n for a, b, _ in edges for n in (a, b)} - set(nodes))
        if lost or not nodes:
            raise DataError(f"the gold's edges name nodes {lost} that its 'nodes' lack; it has {len(nodes)} nodes")
        return cls(nodes=nodes, edges=edges, directed=bool(table.get("directed", False)), gold=table)

    def weights(self) -> dict[tuple[str, str], Fraction]:
        """The least weight of an edge from one node to another, both ways where it is not directed."""
        out: dict[tuple[str, str], Fraction] = {}
        for a, b, weight in self.edges:
            for pair in ((a, b),) if self.directed else ((a, b), (b, a)):
                out[pair] = min(weight, out.get(pair, weight))
        return out

    def counts(self) -> Counter[tuple[str, str]]:
        """How many edges lead from one node to another; undirected ones under their names in order."""
        return Counter(self.pair(a, b) for a, b, _ in self.edges)

    def pair(self, a: str, b: str) -> tuple[str, str]:
        """The name of an edge between two nodes."""
        return (a, b) if self.directed or a <= b else (b, a)

    def end(self, name: str) -> str:
        """The node that the gold names as ``source`` or ``target``.

        Raises:
            DataError: it names none.
        """
        found = str(self.gold.get(name))
        if found not in self.nodes:
            raise DataError(f"the gold's {name!r} is {self.gold.get(name)!r}; give one of its nodes")
        return found

    def pieces(self, edges: list[tuple[str, str]] | None = None) -> list[set[str]]:
        """The connected components of these edges, or of all; direction does not matter."""
        home = {n: {n} for n in self.nodes}
        for a, b in [(a, b) for a, b, _ in self.edges] if edges is None else edges:
            if home[a] is not home[b]:
                small, large = sorted((home[a], home[b]), key=len)
                large |= small
                home.update(dict.fromkeys(small, large))
        return list({id(piece): piece for piece in home.values()}.values())


def _weight(edge: list[Any]) -> Fraction:
    try:
        weight = Fraction(str(edge[2])) if len(edge) == 3 else Fraction(1)
    except ValueError:
        weight = Fraction(-1)
    if weight < 0:
        raise DataError(f"the gold's edge {edge!r} needs a weight that is a number and not negative")
    return weight


@dataclass(frozen=True, slots=True)
class GraphAnswer(AnswerVerifier):
    """Base of verifiers of graph problems: ``valid`` is 1 when the answer has the property, ``correct`` when it is also as
    good as the gold.

    The gold is a graph (`Graph.of`) with what the problem names besides. Where it has a ``value``, an answer must be as
    small or as large as that (one that is better still is right too, and the gold is wrong: ``info["beats_gold"]``).
    Where it says ``"possible": false``, the only right answer is ``none``.

    Attributes:
        where: in which part of the text the answer stands (`assay.verify.AnswerPlace`).

    Raises:
        UnknownNameError: ``where`` is no place.
        DataError: the gold is no graph, or lacks what the problem needs.
    """

    where: AnswerPlace = AnswerPlace.AUTO
    sense: ClassVar[int] = 0
    """-1 where a small value is good, 1 where a large one is, 0 where there is none."""

    def __post_init__(self) -> None:
        option(AnswerPlace, self.where, f"{type(self).__name__}.where")

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("correct", "valid")

    @abstractmethod
    def value(self, graph: Graph, text: str) -> Fraction:
        """How large an answer is, which has the property.

        Raises:
            Bad: it has not.
            DataError: the gold lacks something.
        """
        ...

    def rule(self, gold: Any, text: str) -> Score:
        """Check the property, then the value."""
        graph = Graph.of(gold)
        wanted: Any = graph.gold.get("value") if self.sense else None
        if wanted is not None and (isinstance(wanted, bool) or not isinstance(wanted, int | float)):
            raise DataError(f"the gold's 'value' is {wanted!r}; give a number, or leave it out where any valid answer is right")
        place = answer_in(text, self.where)
        if not place:
            return self.nothing("unparsed")
        none = place.casefold().strip(" .*_`") in _NONE and place not in graph.nodes
        if not graph.gold.get("possible", True):
            return verdict_score("equal", dict.fromkeys(self.names, 1.0)) if none else self.nothing("different")
        if none:
            return self.nothing("different")
        try:
            found = self.value(graph, place)
        except Bad as bad:
            return self.nothing(bad.verdict, **({"why": bad.why} if bad.why else {}))
        lead = 0 if wanted is None else self.sense * (found - Fraction(str(wanted)))
        if lead < 0:
            return verdict_score("suboptimal", {"correct": 0.0, "valid": 1.0}, value=str(found))
        more = {"beats_gold": True} if lead > 0 else {}
        return verdict_score("equal", {"correct": 1.0, "valid": 1.0}, **more)
