"""Walks over a graph: breadth and depth first, and what follows from them. Each adds its steps to ``net.work``."""

from __future__ import annotations

from assay_tasks.graphs.net import Edge, Net

__all__ = [
    "broad",
    "circle",
    "cuts",
    "deep",
    "distances",
    "girth",
    "order",
    "parents",
    "pieces",
    "reach",
    "route",
    "shortest_count",
    "sides",
    "strong",
    "walks",
]


def distances(net: Net, source: int) -> list[int]:
    """Least number of edges from a node to each; -1 where there is no path."""
    out = [-1] * net.n
    out[source] = 0
    adjacent, queue = net.adjacent, [source]
    for here in queue:
        row = adjacent[here]
        net.work += len(row)
        far = out[here] + 1
        for there in row:
            if out[there] < 0:
                out[there] = far
                queue.append(there)
    return out


def route(net: Net, source: int, target: int) -> list[int] | None:
    """A path with the fewest edges; None where there is none."""
    before = [-1] * net.n
    before[source] = source
    adjacent, queue = net.adjacent, [source]
    for here in queue:
        if here == target:
            break
        row = adjacent[here]
        net.work += len(row)
        for there in row:
            if before[there] < 0:
                before[there] = here
                queue.append(there)
    if before[target] < 0:
        return None
    out = [target]
    while out[-1] != source:
        out.append(before[out[-1]])
    return out[::-1]


def pieces(net: Net) -> list[list[int]]:
    """The connected components, each ascending, in order of their smallest node."""
    seen, adjacent = [False] * net.n, net.adjacent
    out: list[list[int]] = []
    for start in range(net.n):
        if seen[start]:
            continue
        seen[start] = True
        queue = [start]
        for here in queue:
            row = adjacent[here]
            net.work += len(row)
            for there in row:
                if not seen[there]:
                    seen[there] = True
                    queue.append(there)
        out.append(sorted(queue))
    return out


def shortest_count(net: Net, source: int) -> list[int]:
    """How many paths with the fewest edges lead from a node to each."""
    far = [-1] * net.n
    ways = [0] * net.n
    far[source], ways[source] = 0, 1
    adjacent, queue = net.adjacent, [source]
    for here in queue:
        row = adjacent[here]
        net.work += len(row)
        for there in row:
            if far[there] < 0:
                far[there] = far[here] + 1
                queue.append(there)
            if far[there] == far[here] + 1:
                ways[there] += ways[here]
    return ways


def walks(net: Net, source: int, steps: int) -> list[int]:
    """How many walks of so many edges lead from a node to each."""
    ways = [0] * net.n
    ways[source] = 1
    adjacent = net.adjacent
    for _ in range(steps):
        after = [0] * net.n
        for here, count in enumerate(ways):
            if count:
                net.work += len(adjacent[here])
                for there in adjacent[here]:
                    after[there] += count
        ways = after
    return ways


def girth(net: Net) -> int:
    """Edges of a shortest cycle of an undirected graph; 0 where it has none."""
    best, adjacent = 0, net.adjacent
    for source in range(net.n):
        far, before = [-1] * net.n, [-1] * net.n
        far[source] = 0
        queue = [source]
        for here in queue:
            net.work += len(adjacent[here])
            for there in adjacent[here]:
                if far[there] < 0:
                    far[there], before[there] = far[here] + 1, here
                    queue.append(there)
                elif before[here] != there and (not best or far[here] + far[there] + 1 < best):
                    best = far[here] + far[there] + 1
    return best


def circle(net: Net) -> list[int] | None:
    """A cycle of an undirected graph, its nodes in order; None where it has none."""
    before, adjacent = [-1] * net.n, net.adjacent
    for root in range(net.n):
        if before[root] >= 0:
            continue
        before[root] = root
        stack = [root]
        while stack:
            here = stack.pop()
            net.work += len(adjacent[here])
            for there in adjacent[here]:
                if before[there] < 0:
                    before[there] = here
                    stack.append(there)
                elif there != before[here]:
                    return _path_between(before, here, there)
    return None


def _path_between(before: list[int], a: int, b: int) -> list[int]:
    """The way from one node to another in a search tree."""
    up = [a]
    while before[up[-1]] != up[-1]:
        up.append(before[up[-1]])
    place = {node: i for i, node in enumerate(up)}
    down = [b]
    while down[-1] not in place:
        down.append(before[down[-1]])
    return up[: place[down[-1]] + 1] + down[-2::-1]


def cuts(net: Net) -> tuple[list[Edge], list[int]]:
    """Edges and nodes of an undirected graph whose removal parts a component (Tarjan's lowest links)."""
    place, low = [-1] * net.n, [0] * net.n
    adjacent = net.adjacent
    bridges: list[Edge] = []
    joints: set[int] = set()
    count = 0

    def visit(here: int, parent: int) -> None:
        nonlocal count
        place[here] = low[here] = count
        count += 1
        children = 0
        net.work += len(adjacent[here])
        for there in adjacent[here]:
            if place[there] < 0:
                children += 1
                visit(there, here)
                low[here] = min(low[here], low[there])
                if low[there] > place[here]:
                    bridges.append((here, there))
                if parent >= 0 and low[there] >= place[here]:
                    joints.add(here)
            elif there != parent:
                low[here] = min(low[here], place[there])
        if parent < 0 and children > 1:
            joints.add(here)

    for root in range(net.n):
        if place[root] < 0:
            visit(root, -1)
    return bridges, sorted(joints)


def sides(net: Net) -> list[int] | None:
    """A side, 0 or 1, for each node, so that all edges lead across; None where there is none."""
    out, adjacent = [-1] * net.n, net.adjacent
    for root in range(net.n):
        if out[root] >= 0:
            continue
        out[root] = 0
        queue = [root]
        for here in queue:
            net.work += len(adjacent[here])
            for there in adjacent[here]:
                if out[there] < 0:
                    out[there] = 1 - out[here]
                    queue.append(there)
                elif out[there] == out[here]:
                    return None
    return out


def reach(net: Net) -> list[int]:
    """For each node the nodes that a path leads to, itself among them, as bits."""
    out: list[int] = []
    masks = net.masks
    for source in range(net.n):
        seen = new = 1 << source
        while new:
            low = new & -new
            new ^= low
            found = masks[low.bit_length() - 1] & ~seen
            net.work += 1 + found.bit_count()
            seen |= found
            new |= found
        out.append(seen)
    return out


def strong(net: Net) -> list[int]:
    """For each node those that lead to it and that it leads to, itself among them, as bits."""
    there, back = reach(net), reach(turned := net.reverse())
    net.work += turned.work
    return [a & b for a, b in zip(there, back, strict=True)]


def order(net: Net) -> list[int] | None:
    """The nodes in an order in which edges lead forward; None where there is a cycle."""
    waits, adjacent = [0] * net.n, net.adjacent
    for _, b in net.edges:
        waits[b] += 1
    queue = [i for i, count in enumerate(waits) if not count]
    for here in queue:
        net.work += 1 + len(adjacent[here])
        for there in adjacent[here]:
            waits[there] -= 1
            if not waits[there]:
                queue.append(there)
    return queue if len(queue) == net.n else None


def deep(net: Net, root: int) -> list[int]:
    """Nodes as a search depth first enters them, neighbours ascending."""
    out: list[int] = []
    seen, adjacent, stack = [False] * net.n, net.adjacent, [root]
    while stack:
        here = stack.pop()
        if not seen[here]:
            seen[here] = True
            out.append(here)
            net.work += len(adjacent[here])
            stack += [there for there in reversed(adjacent[here]) if not seen[there]]
    return out


def broad(net: Net, root: int) -> list[int]:
    """Nodes as a search breadth first reaches them, neighbours ascending."""
    seen, adjacent, queue = [False] * net.n, net.adjacent, [root]
    seen[root] = True
    for here in queue:
        net.work += len(adjacent[here])
        for there in adjacent[here]:
            if not seen[there]:
                seen[there] = True
                queue.append(there)
    return queue


def parents(net: Net, root: int) -> tuple[list[int], list[int]]:
    """The node before each on the way from the root of a tree, the root's own -1, and all nodes with parents first."""
    before, adjacent, queue = [-1] * net.n, net.adjacent, [root]
    for here in queue:
        net.work += len(adjacent[here])
        for there in adjacent[here]:
            if there != before[here]:
                before[there] = here
                queue.append(there)
    return before, queue
