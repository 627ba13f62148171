"""Random graphs and names for their nodes, from Python's generator."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from random import Random

from assay.core.errors import DataError
from assay.tasks.draws import TRIES
from assay_tasks.graphs.net import Edge

__all__ = [
    "acyclic",
    "any_graph",
    "blocks",
    "both_ways",
    "connected_graph",
    "names",
    "no_graph",
    "pairs",
    "bipartite_graph",
    "some",
    "tree",
]

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def names(n: int, words: tuple[str, ...], rng: Random) -> tuple[str, ...]:
    """Names of ``n`` nodes in their natural order: the first letters or any, numbers from 0 or 1, any of two digits, or words."""
    kind = rng.randrange(5)
    if kind < 2 and n <= len(_LETTERS):
        return tuple(_LETTERS[:n] if kind else sorted(rng.sample(_LETTERS, n)))
    if kind == 2:
        first = rng.getrandbits(1)
        return tuple([str(i) for i in range(first, first + n)])
    if kind < 4 or n > len(words):
        return tuple([str(i) for i in sorted(rng.sample(range(10, 100), n))])
    return tuple(sorted(rng.sample(words, n)))


@lru_cache(maxsize=64)
def pairs(n: int) -> tuple[Edge, ...]:
    """All pairs of ``n`` nodes, smaller first."""
    return tuple(combinations(range(n), 2))


@lru_cache(maxsize=64)
def both_ways(n: int) -> tuple[Edge, ...]:
    """All pairs of ``n`` nodes in both orders."""
    return tuple((a, b) for a in range(n) for b in range(n) if a != b)


def some(low: float, high: float, n: int, rng: Random, least: int = 0, most: int | None = None) -> int:
    """A number of edges that gives ``n`` nodes a mean degree between two bounds, within ``least`` and ``most``; bounds beyond
    0.85 (n - 1) are that, so that few nodes do not always give the complete graph.
    """
    top = n * (n - 1) // 2 if most is None else most
    high = min(high, 0.85 * (n - 1))
    low = min(low, high)
    return min(top, max(least, round((low + (high - low) * rng.random()) * n / 2)))


def no_graph(what: str, n: int, degree: tuple[float, float]) -> DataError:
    """What to say when no graph of a kind was drawn."""
    return DataError(
        f"{TRIES} random graphs of {n} nodes with mean degree between {degree[0]} and {degree[1]} had none {what}; "
        "use another 'degree' or other 'levels'"
    )


def any_graph(n: int, m: int, rng: Random) -> list[Edge]:
    """Any ``m`` of the pairs."""
    return sorted(rng.sample(pairs(n), m))


def tree(n: int, rng: Random) -> list[Edge]:
    """A tree on nodes in random order, each tied to one before it."""
    order = list(range(n))
    rng.shuffle(order)
    out: list[Edge] = []
    for i in range(1, n):
        a, b = order[i], order[int(rng.random() * i)]
        out.append((a, b) if a < b else (b, a))
    out.sort()
    return out


def connected_graph(n: int, m: int, rng: Random) -> list[Edge]:
    """A connected graph of ``m`` edges: a tree and any others."""
    own = set(tree(n, rng))
    if m >= len(own):
        free = [pair for pair in pairs(n) if pair not in own]
        own.update(rng.sample(free, min(len(free), m - len(own))))
    return sorted(own)


def blocks(sizes: list[int], degree: tuple[float, float], rng: Random) -> list[Edge]:
    """One connected graph of each size side by side, their nodes mixed."""
    n = sum(sizes)
    order = list(range(n))
    rng.shuffle(order)
    out: list[Edge] = []
    start = 0
    for size in sizes:
        here = sorted(order[start : start + size])
        m = some(*degree, size, rng, least=size - 1)
        out += [(here[a], here[b]) for a, b in connected_graph(size, m, rng)]
        start += size
    out.sort()
    return out


def bipartite_graph(left: list[int], right: list[int], m: int, rng: Random) -> list[Edge]:
    """Any ``m`` edges between two sides."""
    across = [(a, b) if a < b else (b, a) for a in left for b in right]
    return sorted(rng.sample(across, min(m, len(across))))


def acyclic(n: int, m: int, rng: Random) -> list[Edge]:
    """Any ``m`` directed edges that lead forward in a random order of the nodes."""
    order = list(range(n))
    rng.shuffle(order)
    return sorted([(order[a], order[b]) for a, b in rng.sample(pairs(n), min(m, n * (n - 1) // 2))])
