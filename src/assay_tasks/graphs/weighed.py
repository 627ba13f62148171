"""What weights decide: shortest and widest paths, trees, flows, tours. Each adds its steps to ``net.work``."""

from __future__ import annotations

import itertools
from heapq import heappop, heappush

from assay_tasks.graphs.net import Net
from assay_tasks.graphs.search import order

__all__ = ["flow", "lengths", "longest", "shortest", "spanning", "tour", "trees", "widest"]


def lengths(net: Net, source: int) -> tuple[list[int], list[int]]:
    """Length of a shortest path to each node, -1 where there is none, and the node before it (Dijkstra)."""
    table = net.weighted_neighbours()
    out, before = [-1] * net.n, [-1] * net.n
    heap = [(0, source, source)]
    while heap:
        far, here, last = heappop(heap)
        if out[here] >= 0:
            continue
        out[here], before[here] = far, last
        net.work += len(table[here])
        for there, weight in table[here]:
            if out[there] < 0:
                heappush(heap, (far + weight, there, here))
    return out, before


def shortest(net: Net, source: int, target: int) -> tuple[int, list[int]]:
    """Length of a shortest path between two nodes that are joined, and its nodes."""
    far, before = lengths(net, source)
    way = [target]
    while way[-1] != source:
        way.append(before[way[-1]])
    return far[target], way[::-1]


def widest(net: Net, source: int, target: int) -> int:
    """The greatest weight such that some path between two nodes has no edge of less; 0 where there is no path."""
    table = net.weighted_neighbours()
    out = [0] * net.n
    heap = [(-(max(net.weights or [0]) + 1), source)]
    while heap:
        wide, here = heappop(heap)
        if here == target:
            return -wide
        if out[here]:
            continue
        out[here] = 1
        net.work += len(table[here])
        for there, weight in table[here]:
            if not out[there]:
                heappush(heap, (max(wide, -weight), there))
    return 0


def spanning(net: Net) -> list[int]:
    """Places of the edges of a spanning tree of least weight of a connected graph (Kruskal)."""
    weights = net.weights or [1] * len(net.edges)
    home = list(range(net.n))
    out: list[int] = []
    for i in sorted(range(len(weights)), key=weights.__getitem__):
        a, b = net.edges[i]
        while home[a] != a:
            home[a] = home[home[a]]
            a = home[a]
            net.work += 1
        while home[b] != b:
            home[b] = home[home[b]]
            b = home[b]
            net.work += 1
        net.work += 1
        if a != b:
            home[a] = b
            out.append(i)
    return out


def longest(net: Net) -> int:
    """Length of a longest path of a graph without cycles."""
    table = net.weighted_neighbours()
    best = [0] * net.n
    for here in order(net) or ():
        for there, weight in table[here]:
            net.work += 1
            best[there] = max(best[there], best[here] + weight)
    return max(best)


def flow(net: Net, source: int, target: int) -> int:
    """The greatest flow from one node to another, weights being capacities (augmenting paths, breadth first)."""
    left = [[0] * net.n for _ in range(net.n)]
    for (a, b), weight in zip(net.edges, net.weights or [1] * len(net.edges), strict=True):
        left[a][b] += weight
        if not net.directed:
            left[b][a] += weight
    near = [[j for j in range(net.n) if left[i][j] or left[j][i]] for i in range(net.n)]
    total = 0
    while True:
        before = [-1] * net.n
        before[source] = source
        queue = [source]
        for here in queue:
            net.work += len(near[here])
            for there in near[here]:
                if before[there] < 0 and left[here][there]:
                    before[there] = here
                    queue.append(there)
            if before[target] >= 0:
                break
        if before[target] < 0:
            return total
        way = [target]
        while way[-1] != source:
            way.append(before[way[-1]])
        most = min(left[b][a] for a, b in itertools.pairwise(way))
        for a, b in itertools.pairwise(way):
            left[b][a] -= most
            left[a][b] += most
        total += most


def tour(net: Net) -> tuple[int, list[int]]:
    """Length of a shortest tour of a complete graph, and its nodes (Held and Karp)."""
    n = net.n - 1  # the last node begins and ends
    far = [[0] * net.n for _ in range(net.n)]
    for (a, b), weight in zip(net.edges, net.weights or [1] * len(net.edges), strict=True):
        far[a][b] = far[b][a] = weight
    best: list[dict[int, tuple[int, int]]] = [{} for _ in range(1 << n)]
    for i in range(n):
        best[1 << i][i] = (far[n][i], n)
    for mask in range(1, 1 << n):
        for last, (length, _) in best[mask].items():
            row = far[last]
            for there in range(n):
                if not mask >> there & 1:
                    net.work += 1
                    found = length + row[there]
                    held = best[mask | 1 << there].get(there)
                    if held is None or found < held[0]:
                        best[mask | 1 << there][there] = (found, last)
    whole = (1 << n) - 1
    length, last = min((length + far[n][i], i) for i, (length, _) in best[whole].items())
    way, mask = [n], whole
    while last != n:
        way.append(last)
        mask, last = mask ^ 1 << last, best[mask][last][1]
    return length, way


def trees(net: Net) -> int:
    """How many spanning trees an undirected graph has: a determinant (Kirchhoff), without fractions (Bareiss)."""
    n = net.n - 1
    rows = [[0] * n for _ in range(n)]
    for a, b in net.edges:
        for i, j in ((a, b), (b, a)):
            if i < n:
                rows[i][i] += 1
                if j < n:
                    rows[i][j] -= 1
    last = 1
    for k in range(n - 1):
        swap = next((i for i in range(k, n) if rows[i][k]), None)
        if swap is None:
            return 0
        if swap != k:
            rows[k], rows[swap] = [-x for x in rows[swap]], rows[k]
        pivot = rows[k][k]
        for i in range(k + 1, n):
            head = rows[i][k]
            net.work += n - k - 1
            rows[i][k + 1 :] = [(rows[i][j] * pivot - head * rows[k][j]) // last for j in range(k + 1, n)]
        last = pivot
    return rows[-1][-1]
