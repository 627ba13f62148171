"""Graphs in words: as a list of edges, as neighbours of each node, or as a story."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

from assay_tasks.graphs.net import Net

__all__ = [
    "CABLES",
    "COURSES",
    "FLIGHTS",
    "FOLLOWERS",
    "FRIENDS",
    "LINKS",
    "PIPES",
    "PROJECT",
    "ROADS",
    "STREETS",
    "TRUCKS",
    "Theme",
    "describe_graph",
]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_TOWNS = _words(
    "Abbey Alden Ashby Barrow Belton Brent Calder Corby Dalton Denby Elton Epsom Farley Fenton Garston Grimsby Harlow Hexham "
    "Keswick Ipswich Kelso Kirby Lanark Ludlow Malton Marlow Norwich Oakham Otley Penrith Preston Redcar Ripon Selby Skipton "
    "Tenby Truro Upton Walton Whitby"
)
_PEOPLE = _words(
    "Ada Ali Amy Ben Carla Chen Dan Dina Emil Eva Femi Finn Gita Hana Hugo Ida Ivan Jan June Kai Kofi Lena Leo Mara Mei Nils "
    "Noor Omar Olga Pia Paul Rosa Raj Sam Sofia Tara Tom Uma Vera Will"
)
_TOPICS = _words(
    "Algebra Anatomy Art Ballet Botany Chess Cinema Dance Drama Ecology Ethics Fencing French Genetics Geology Greek Harmony "
    "History Italian Jazz Korean Latin Law Logic Music Nursing Optics Opera Physics Poetry Piano Rhetoric Rowing Russian "
    "Sailing Spanish Theatre Topology Weaving Zoology"
)
_STARS = _words(
    "Acrux Adhara Alcor Altair Antares Atlas Bellatrix Canopus Capella Castor Deneb Electra Elnath Fomalhaut Gemma Hadar Izar "
    "Kochab Lesath Maia Markab Menkar Merak Mimosa Mira Mizar Nashira Phact Polaris Pollux Procyon Regulus Rigel Sadr Sirius "
    "Spica Tarazed Thuban Unuk Vega"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """Words for the nodes and edges of a story.

    Attributes:
        thing, things: what a node is.
        link, links: what an edge is.
        opening: the first sentence; ``{n}`` and ``{names}`` stand for the nodes.
        edge: a sentence on one edge, from ``{a}`` to ``{b}``, without its full stop.
        aside: what follows it where the edge has a weight, ``{w}``.
        weight: what a weight is.
        words: names of nodes, for those that are called by words.
    """

    thing: str
    things: str
    link: str
    links: str
    opening: str
    edge: str
    aside: str = ""
    weight: str = "weight"
    words: tuple[str, ...] = _TOWNS


ROADS = Theme(
    thing="town",
    things="towns",
    link="road",
    links="roads",
    weight="length",
    opening="There are {n} towns in a valley: {names}. All roads between them are two-way.",
    edge="A road joins {a} and {b}",
    aside=" and is {w} km long",
)
CABLES = Theme(
    thing="house",
    things="houses",
    link="cable",
    links="cables",
    weight="cost",
    opening="A village has {n} houses: {names}.",
    edge="A cable can be laid between {a} and {b}",
    aside=" for {w} coins",
)
TRUCKS = Theme(
    thing="town",
    things="towns",
    link="road",
    links="roads",
    weight="load limit",
    opening="There are {n} towns in a valley: {names}. All roads between them are two-way.",
    edge="The road between {a} and {b}",
    aside=" bears at most {w} tonnes",
)
FRIENDS = Theme(
    thing="person",
    things="people",
    link="friendship",
    links="friendships",
    words=_PEOPLE,
    opening="In a club there are {n} people: {names}. Friendship goes both ways.",
    edge="{a} and {b} are friends",
)
FOLLOWERS = Theme(
    thing="person",
    things="people",
    link="contact",
    links="contacts",
    words=_PEOPLE,
    opening="A network has {n} people: {names}. Following goes one way only.",
    edge="{a} follows {b}",
)
LINKS = Theme(
    thing="page",
    things="pages",
    link="link",
    links="links",
    words=_TOPICS,
    opening="A website has {n} pages: {names}. A link can be followed one way only.",
    edge="{a} links to {b}",
)
COURSES = Theme(
    thing="course",
    things="courses",
    link="rule",
    links="rules",
    words=_TOPICS,
    opening="A school offers {n} courses: {names}.",
    edge="{a} must be taken before {b}",
)
PROJECT = Theme(
    thing="stage",
    things="stages",
    link="job",
    links="jobs",
    weight="duration",
    words=_STARS,
    opening="A project has {n} stages: {names}. Each job leads from one stage to a later one.",
    edge="A job leads from {a} to {b}",
    aside=" and takes {w} days",
)
STREETS = Theme(
    thing="square",
    things="squares",
    link="street",
    links="streets",
    weight="length",
    opening="A town has {n} squares: {names}. All streets between them are one-way.",
    edge="A street leads from {a} to {b}",
    aside=" and takes {w} minutes",
)
FLIGHTS = Theme(
    thing="airport",
    things="airports",
    link="flight",
    links="flights",
    weight="price",
    opening="An airline serves {n} airports: {names}. Each flight goes both ways.",
    edge="There is a flight between {a} and {b}",
    aside=" for {w} coins",
)
PIPES = Theme(
    thing="station",
    things="stations",
    link="pipe",
    links="pipes",
    weight="capacity",
    words=_STARS,
    opening="A water network has {n} stations: {names}. Water flows through a pipe one way only.",
    edge="A pipe leads from {a} to {b}",
    aside=" and carries at most {w} litres per second",
)


def describe_graph(net: Net, theme: Theme, look: int) -> str:
    """The graph in words: ``look`` 0 lists its edges, 1 the neighbours of each node, 2 tells the theme's story.

    Edges of a list and a story stand in an order, and undirected ones in a direction, that depends on nothing but the graph.

    >>> net = Net(3, [(0, 1), (1, 2)], [4, 5], ("A", "B", "C"))
    >>> print(describe_graph(net, ROADS, 1))
    An undirected graph has 3 nodes. Each line names a node and its neighbours, with the length of the edge in brackets.
    A: B (4)
    B: A (4), C (5)
    C: B (5)
    """
    if look == 1:
        return _neighbours(net, theme)
    names = net.names
    weights: list[int] | list[None] = net.weights or [None] * len(net.edges)
    rows = [(names[a], names[b], w) for (a, b), w in zip(net.edges, weights, strict=True)]
    rng = Random(int.from_bytes(bytes([end for edge in net.edges for end in edge]), "big"))
    rng.shuffle(rows)
    if not net.directed:
        turns = rng.getrandbits(len(rows) + 1)
        rows = [(b, a, w) if turns >> i & 1 else (a, b, w) for i, (a, b, w) in enumerate(rows)]
    return _story(net, theme, rows) if look == 2 else _edges(net, theme, rows)


def _edges(net: Net, theme: Theme, rows: list[tuple[str, str, int | None]]) -> str:
    kind, tie = ("A directed", "->") if net.directed else ("An undirected", "-")
    opening = f"{kind} graph has {net.n} nodes: {', '.join(net.names)}."
    if not rows:
        return f"{opening}\nIt has no edges."
    if net.weights is None:
        return f"{opening}\nIts edges: {', '.join([f'{a}{tie}{b}' for a, b, _ in rows])}."
    said = ", ".join([f"{a}{tie}{b} ({w})" for a, b, w in rows])
    return f"{opening}\nIts edges, each with its {theme.weight} in brackets: {said}."


def _neighbours(net: Net, theme: Theme) -> str:
    names = net.names
    if net.weights is None:
        lines = [f"{name}: {', '.join([names[j] for j in row]) or '-'}" for name, row in zip(names, net.adjacent, strict=True)]
        aside = ""
    else:
        table = net.weighted_neighbours()
        lines = [
            f"{name}: {', '.join([f'{names[j]} ({w})' for j, w in sorted(row)]) or '-'}"
            for name, row in zip(names, table, strict=True)
        ]
        aside = f", with the {theme.weight} of the edge in brackets"
    what = "the nodes that its edges lead to" if net.directed else "its neighbours"
    kind = "A directed" if net.directed else "An undirected"
    rest = " A dash stands for none." if any(line.endswith("-") for line in lines) else ""
    return f"{kind} graph has {net.n} nodes. Each line names a node and {what}{aside}.{rest}\n" + "\n".join(lines)


def _story(net: Net, theme: Theme, rows: list[tuple[str, str, int | None]]) -> str:
    opening = theme.opening.format(n=net.n, names=", ".join(net.names))
    form = f"{theme.edge}{'' if net.weights is None else theme.aside}."
    one = re.sub(r"(\{w\} \w+)s\b", r"\1", form)  # "for 1 coin"
    said = [(one if w == 1 else form).format(a=a, b=b, w=w) for a, b, w in rows]
    return f"{opening} {' '.join(said)}" if said else f"{opening} There are no {theme.links}."
