"""Bases of graph problems: how facts are drawn and worded, by what kind of answer is asked for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any, ClassVar

from assay.core.errors import ConfigError
from assay.core.protocols import Verifier
from assay.tasks.draws import TRIES
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.verify.exact import ExactMatch
from assay.verify.structure.graph import GraphAnswer
from assay.verify.text.items import ListMatch, SetMatch
from assay.verify.text.number import Numeric
from assay_tasks.graphs.drawing import any_graph, connected_graph, names, no_graph, some
from assay_tasks.graphs.net import Edge, Net, at
from assay_tasks.graphs.wording import ROADS, Theme, describe_graph

__all__ = ["ARROWS", "GraphProblem", "NodeOf", "NodesOf", "NumberOf", "OrderOf", "Witness", "YesNo", "evenly"]

ARROWS = "Write the {nodes} in order with -> between."


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphProblem(Problem):
    """Base of problems on graphs. The level is the number of nodes.

    A subclass draws edges (`edges`), says what a question names besides (`ask`), and finds the answer (`find`). The same
    graph is asked about as a list of edges, as the neighbours of each node, and in a story. Edges stand in canonical order in the
    facts, so that one graph is one question however it is written.

    Attributes:
        degree: least and greatest mean degree (twice the edges over the nodes) that a graph is drawn with.

    Raises:
        ConfigError: degrees that are negative or not ascending, or a level of less than 3 nodes or more than 40.
    """

    domain: str = "graph"
    levels: tuple[int, ...] = (5, 7, 10, 14, 19, 25)
    degree: tuple[float, float] = (2.0, 4.0)

    theme: ClassVar[Theme] = ROADS
    directed: ClassVar[bool] = False
    connected: ClassVar[bool] = False
    """Whether graphs are drawn connected, unless `edges` says otherwise."""
    most: ClassVar[int] = 0
    """The greatest weight of an edge; 0 where edges have no weights."""
    asks: ClassVar[tuple[str, ...]] = ()
    """Questions about a graph of nodes and edges; ``{source}``, ``{target}``, ``{node}``, ``{other}`` and ``{k}`` stand for
    facts."""
    tells: ClassVar[tuple[str, ...]] = ()
    """Questions about the theme's story."""
    how: ClassVar[str] = ""
    """How the answer is written; ``{node}``, ``{nodes}`` and ``{edges}`` stand for what they are called."""

    def __post_init__(self) -> None:
        super(GraphProblem, self).__post_init__()
        low, high = self.degree
        if not 0.0 <= low <= high:
            raise ConfigError(f"{self.name}.degree must be two ascending mean degrees from 0, got {self.degree}")
        if self.levels[0] < 3 or self.levels[-1] > 40:
            raise ConfigError(f"{self.name}.levels are numbers of nodes from 3 to 40, got {self.levels}")

    def edges(self, n: int, rng: Random) -> list[Edge]:
        """The edges of a random graph, ascending."""
        if self.connected:
            return connected_graph(n, some(*self.degree, n, rng, least=n - 1), rng)
        return any_graph(n, some(*self.degree, n, rng), rng)

    def ask(self, net: Net, rng: Random) -> dict[str, Any] | None:
        """What the question names besides the graph, nodes by number; None where this graph gives no question."""
        return {}

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A graph, names for its nodes, weights for its edges, and what is asked of it."""
        for _ in range(TRIES):
            edges = self.edges(level, rng)
            weights = [1 + int(rng.random() * self.most) for _ in edges] if self.most else None
            net = Net(level, edges, weights, (), self.directed)
            asked = self.ask(net, rng)
            if asked is not None:
                net.names = names(level, self.theme.words, rng)
                return {**net.facts(), **asked}
        raise no_graph(f"that gives a question of {self.name}", level, self.degree)

    def net(self, facts: Facts) -> Net:
        """The graph of facts."""
        return Net.of(facts, self.directed)

    @property
    def variants(self) -> int:
        """Each question of ``asks`` on two looks of the graph, each of ``tells`` on its story."""
        return 2 * len(self.asks) + len(self.tells)

    def word(self, facts: Facts, variant: int) -> str:
        """The graph, the question and how the answer is written."""
        asks, net = len(self.asks), self.net(facts)
        look, ask = (variant % 2, self.asks[variant // 2]) if variant < 2 * asks else (2, self.tells[variant - 2 * asks])
        fields = self.fields(facts)
        theme = self.theme
        called = (
            {"node": theme.thing, "nodes": theme.things, "edges": theme.links}
            if look == 2
            else {"node": "node", "nodes": "nodes", "edges": "edges"}
        )
        tail = self.how.format_map(called)
        return f"{describe_graph(net, theme, look)}\n{ask.format_map(fields)}{' ' if tail else ''}{tail}"

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Nodes that the facts name by number, by name; other facts as text."""
        named = str(facts["names"]).split(" ")
        nodes = {key: named[at(facts, key)] for key in ("source", "target", "node", "other") if key in facts}
        return {**nodes, "k": str(facts.get("k", ""))}


def evenly(values: Sequence[int], rng: Random, least: int = 1) -> int:
    """A place in a list, such that each value from ``least`` on is as likely as any other.

    >>> {evenly([0, 1, 1, 1, 2], Random(i)) for i in range(50)}
    {1, 2, 3, 4}
    """
    kinds = sorted({value for value in values if value >= least})
    want = rng.choice(kinds)
    return rng.choice([i for i, value in enumerate(values) if value == want])


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberOf(GraphProblem):
    """Base of problems whose answer is a number."""

    @abstractmethod
    def find(self, net: Net, facts: Facts) -> int | Fraction:
        """The number."""
        ...

    def solve(self, facts: Facts) -> Solution:
        """Find it."""
        net = self.net(facts)
        found = self.find(net, facts)
        return Solution(answer=str(found), effort=net.work)

    def verifier(self, form: Form) -> Verifier:
        """Equality of numbers; nothing else may be said."""
        return Numeric(alone=True, where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class YesNo(GraphProblem):
    """Base of problems whose answer is yes or no; both are drawn equally often."""

    how: ClassVar[str] = "Answer yes or no."

    @abstractmethod
    def find(self, net: Net, facts: Facts) -> bool:
        """Whether it is so."""
        ...

    def solve(self, facts: Facts) -> Solution:
        """Find it."""
        net = self.net(facts)
        found = self.find(net, facts)
        return Solution(answer="yes" if found else "no", effort=net.work)

    def verifier(self, form: Form) -> Verifier:
        """The same word."""
        return ExactMatch(strip=True, casefold=True, where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOf(GraphProblem):
    """Base of problems whose answer is one node."""

    how: ClassVar[str] = "Give the name of the {node}."

    @abstractmethod
    def find(self, net: Net, facts: Facts) -> int:
        """The node."""
        ...

    def solve(self, facts: Facts) -> Solution:
        """Find it."""
        net = self.net(facts)
        found = self.find(net, facts)
        return Solution(answer=net.names[found], effort=net.work)

    def verifier(self, form: Form) -> Verifier:
        """The same name."""
        return ExactMatch(strip=True, casefold=True, where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesOf(GraphProblem):
    """Base of problems whose answer is a set of nodes."""

    how: ClassVar[str] = "List the {nodes} with commas between; write [] if there are none."

    @abstractmethod
    def find(self, net: Net, facts: Facts) -> list[int]:
        """The nodes."""
        ...

    def solve(self, facts: Facts) -> Solution:
        """Find them."""
        net = self.net(facts)
        found = self.find(net, facts)
        return Solution(answer=net.join_names(found) or "[]", gold=[net.names[i] for i in found], effort=net.work)

    def verifier(self, form: Form) -> Verifier:
        """The same names in any order."""
        return SetMatch(where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderOf(GraphProblem):
    """Base of problems whose answer is a list of which the order counts."""

    how: ClassVar[str] = "List the {nodes} in order with commas between."

    @abstractmethod
    def find(self, net: Net, facts: Facts) -> list[str]:
        """The list."""
        ...

    def solve(self, facts: Facts) -> Solution:
        """Find it."""
        net = self.net(facts)
        found = self.find(net, facts)
        return Solution(answer=", ".join(found), gold=found, effort=net.work)

    def verifier(self, form: Form) -> Verifier:
        """The same items in the same order."""
        return ListMatch(where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness(GraphProblem):
    """Base of problems that have many right answers, each of which has a property that is checked."""

    judge: ClassVar[type[GraphAnswer]]
    """What checks it."""

    @abstractmethod
    def find(self, net: Net, facts: Facts) -> tuple[str, dict[str, Any]] | None:
        """A right answer as text, and what the gold says besides the graph; None where there is no answer."""
        ...

    def solve(self, facts: Facts) -> Solution:
        """Find one."""
        net = self.net(facts)
        found = self.find(net, facts)
        if found is None:
            return Solution(answer="none", gold=net.gold(possible=False), effort=net.work)
        return Solution(answer=found[0], gold=net.gold(**found[1]), effort=net.work)

    def verifier(self, form: Form) -> Verifier:
        """Check the property."""
        return self.judge(where=form.place)
