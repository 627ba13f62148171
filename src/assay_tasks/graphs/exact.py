"""Exact answers to problems that are hard in general: search with bounds over bits. Each adds its steps to ``net.work``."""

from __future__ import annotations

from assay_tasks.graphs.net import Edge, Net, bits
from assay_tasks.graphs.search import sides

__all__ = [
    "maximum_matching",
    "chromatic",
    "clique",
    "coloring",
    "dominating",
    "euler",
    "hamilton",
    "independent",
    "mapping",
    "matching",
]


def independent(net: Net) -> int:
    """A largest set of nodes without an edge between two of them, as bits."""
    return _independent(net.masks, net)


def clique(net: Net) -> int:
    """A largest set of nodes with an edge between every two of them, as bits."""
    whole = (1 << net.n) - 1
    return _independent([whole & ~(mask | 1 << i) for i, mask in enumerate(net.masks)], net)


def _independent(masks: list[int], net: Net) -> int:
    best = 0

    def grow(free: int, chosen: int) -> None:
        nonlocal best
        net.work += 1
        if (chosen.bit_count() + free.bit_count()) <= best.bit_count():
            return
        if not free:
            best = chosen
            return
        most, pick = -1, 0
        for i in bits(free):
            degree = (masks[i] & free).bit_count()
            if degree <= 1:  # such a node belongs to some largest set
                grow(free & ~(masks[i] | 1 << i), chosen | 1 << i)
                return
            if degree > most:
                most, pick = degree, i
        grow(free & ~(masks[pick] | 1 << pick), chosen | 1 << pick)
        grow(free & ~(1 << pick), chosen)

    grow((1 << net.n) - 1, 0)
    return best


def coloring(net: Net, colors: int) -> list[int] | None:
    """A colour from 0 for each node, different on every edge; None where so many colours do not suffice (DSATUR)."""
    adjacent = net.adjacent
    out = [-1] * net.n
    taken = [0] * net.n

    def fill(left: int, used: int) -> bool:
        net.work += 1
        if not left:
            return True
        here = max((i for i in range(net.n) if out[i] < 0), key=lambda i: (taken[i].bit_count(), len(adjacent[i])))
        for color in range(min(colors, used + 1)):
            if taken[here] >> color & 1:
                continue
            out[here] = color
            changed = [j for j in adjacent[here] if not taken[j] >> color & 1]
            for j in changed:
                taken[j] |= 1 << color
            if fill(left - 1, max(used, color + 1)):
                return True
            out[here] = -1
            for j in changed:
                taken[j] &= ~(1 << color)
        return False

    return out if fill(net.n, 0) else None


def chromatic(net: Net) -> int:
    """The least number of colours."""
    colors = 1
    while coloring(net, colors) is None:
        colors += 1
    return colors


def dominating(net: Net) -> int:
    """A smallest set of nodes that every other node has an edge with, as bits."""
    near = [mask | 1 << i for i, mask in enumerate(net.masks)]

    def cover(left: int, chosen: int, size: int) -> int | None:
        net.work += 1
        if not left:
            return chosen
        if not size:
            return None
        here = min(bits(left), key=lambda i: near[i].bit_count())
        for i in sorted(bits(near[here]), key=lambda i: -(near[i] & left).bit_count()):
            found = cover(left & ~near[i], chosen | 1 << i, size - 1)
            if found is not None:
                return found
        return None

    size = 1
    while (found := cover((1 << net.n) - 1, 0, size)) is None:
        size += 1
    return found


def matching(net: Net) -> list[Edge]:
    """Edges of which no two share a node, as many as there can be: node by node, with a table of what is left."""
    masks = net.masks
    known: dict[int, tuple[int, int]] = {0: (0, -1)}

    def best(free: int) -> int:
        if free in known:
            return known[free][0]
        net.work += 1
        low = free & -free
        here, rest = low.bit_length() - 1, free ^ low
        found = (best(rest), -1)
        for other in bits(masks[here] & rest):
            if found[0] >= rest.bit_count() + 1 >> 1:
                break
            size = 1 + best(rest & ~(1 << other))
            if size > found[0]:
                found = (size, other)
        known[free] = found
        return found[0]

    free, out = (1 << net.n) - 1, list[Edge]()
    best(free)
    while free:
        here = (free & -free).bit_length() - 1
        other = known[free][1]
        free &= ~(1 << here)
        if other >= 0:
            out.append((here, other))
            free &= ~(1 << other)
    return out


def maximum_matching(net: Net) -> list[Edge]:
    """A largest matching of a graph whose nodes have two sides, from the first to the second (Kuhn)."""
    adjacent, side = net.adjacent, sides(net) or []
    partner = [-1] * net.n

    def push(here: int, seen: set[int]) -> bool:
        for there in adjacent[here]:
            net.work += 1
            if there in seen:
                continue
            seen.add(there)
            if partner[there] < 0 or push(partner[there], seen):
                partner[there] = here
                return True
        return False

    for node in range(net.n):
        if not side[node]:
            push(node, set())
    return [(partner[i], i) for i in range(net.n) if partner[i] >= 0]


def euler(net: Net, closed: bool) -> list[int] | None:
    """A walk over every edge exactly once, as nodes; None where there is none (Hierholzer)."""
    left = [list(row) for row in net.adjacent]
    odd = [i for i, row in enumerate(left) if len(row) % 2]
    if len(odd) > (0 if closed else 2):
        return None
    stack = [odd[0] if odd else next(i for i, row in enumerate(left) if row)]
    out: list[int] = []
    while stack:
        here = stack[-1]
        net.work += 1
        if left[here]:
            there = left[here].pop()
            left[there].remove(here)
            stack.append(there)
        else:
            out.append(stack.pop())
    return out if len(out) == len(net.edges) + 1 else None


def hamilton(net: Net, closed: bool) -> list[int] | None:
    """A path, or a cycle, through every node exactly once; None where there is none."""
    masks, whole = net.masks, (1 << net.n) - 1
    way: list[int] = []

    def extend(here: int, free: int) -> bool:
        net.work += 1
        way.append(here)
        if not free:
            if not closed or masks[here] >> way[0] & 1:
                return True
        elif _hopeful(masks, here, free, way[0] if closed else -1):
            for there in sorted(bits(masks[here] & free), key=lambda i: (masks[i] & free).bit_count()):
                if extend(there, free & ~(1 << there)):
                    return True
        way.pop()
        return False

    starts = [0] if closed else sorted(range(net.n), key=lambda i: masks[i].bit_count())
    return way if any(extend(start, whole & ~(1 << start)) for start in starts) else None


def _hopeful(masks: list[int], here: int, free: int, home: int) -> bool:
    """Whether the nodes left can all be reached, and at most one of them (none on the way home) is a dead end."""
    seen = new = masks[here] & free
    while new:
        low = new & -new
        new ^= low
        found = masks[low.bit_length() - 1] & free & ~seen
        seen |= found
        new |= found
    if seen != free:
        return False
    near = free | 1 << here | (1 << home if home >= 0 else 0)
    ends = sum((masks[i] & near).bit_count() < 2 for i in bits(free))
    return ends <= (home < 0)


def mapping(net: Net, other: Net) -> list[int] | None:
    """For each node of a graph one of another such that edges go to edges; None where the two differ."""
    if net.n != other.n or len(net.edges) != len(other.edges):
        return None
    ours, theirs = _kinds(net), _kinds(other)
    if sorted(ours) != sorted(theirs):
        return None
    rare = {kind: ours.count(kind) for kind in ours}
    queue = sorted(range(net.n), key=lambda i: (rare[ours[i]], -len(net.adjacent[i])))
    out = [-1] * net.n

    def place(at: int, free: int) -> bool:
        net.work += 1
        if at == net.n:
            return True
        here = queue[at]
        for there in bits(free):
            if ours[here] == theirs[there] and all(
                (net.masks[here] >> i & 1) == (other.masks[there] >> out[i] & 1) for i in queue[:at]
            ):
                out[here] = there
                if place(at + 1, free & ~(1 << there)):
                    return True
        return False

    return out if place(0, (1 << other.n) - 1) else None


def _kinds(net: Net) -> list[tuple[int, ...]]:
    """What a node and its neighbours look like: their degrees."""
    rows = net.adjacent
    net.work += 2 * len(net.edges)
    return [(len(row), *sorted(len(rows[j]) for j in row)) for row in rows]
