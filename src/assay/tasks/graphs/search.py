"""Walks over a graph: breadth and depth first, and what follows from them. Each adds its steps to ``net.work``."""

from __future__ import annotations

from assay.tasks.graphs.net import Edge, Net

__all__ = [
    "ball",
    "circle",
    "closure",
    "cuts",
    "distances",
    "girth",
    "layers",
    "order",
    "pieces",
    "route",
    "shortest_count",
    "sides",
    "strong",
]


def distances(net: Net, source: int) -> list[int]:
    """Least number of edges from a node to each; -1 where there is no path."""
    out = [-1] * net.n
    out[source] = 0
    queue = [source]
    for here in queue:
        row = net.adjacent[here]
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
    queue = [source]
    for here in queue:
        if here == target:
            break
        row = net.adjacent[here]
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
    seen = [False] * net.n
    out: list[list[int]] = []
    for start in range(net.n):
        if seen[start]:
            continue
        seen[start] = True
        queue = [start]
        for here in queue:
            row = net.adjacent[here]
            net.work += len(row)
            for there in row:
                if not seen[there]:
                    seen[there] = True
                    queue.append(there)
        out.append(sorted(queue))
    return out
