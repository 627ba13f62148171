"""Problems whose right answers a program checks by their property: drawn around a planted solution."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations, pairwise
from typing import Any

import numpy as np

__all__ = ["GRAPHS", "assignment", "countdown", "grid", "maze", "plan", "sat", "smt"]

Row = dict[str, Any]
Edges = list[list[str]]
_NODES = tuple(f"n{i}" for i in range(1, 8))


def _row(gold: Any, solution: str, *wrong: str) -> Row:
    return {"gold": gold, "solutions": [solution], "wrong": list(wrong), "unique": False, "prompt": f"The problem: {gold}"}


def _order(rng: np.random.Generator) -> list[str]:
    return [_NODES[int(i)] for i in rng.permutation(len(_NODES))]


def _more(rng: np.random.Generator, edges: Edges, n: int = 3, allowed: Callable[[str, str], bool] = lambda a, b: True) -> Edges:
    """The edges and a few others, no pair twice."""
    seen = {frozenset(e) for e in edges}
    free = [(a, b) for a, b in combinations(_NODES, 2) if frozenset((a, b)) not in seen and allowed(a, b)]
    return edges + [list(free[int(i)]) for i in rng.permutation(len(free))[:n]]


def _path_edges(nodes: list[str]) -> Edges:
    return [[a, b] for a, b in pairwise(nodes)]


def _arrows(nodes: Iterable[str]) -> str:
    return " -> ".join(nodes)


def _path(rng: np.random.Generator, shortest: bool = False) -> Row:
    nodes = _order(rng)
    edges = _more(rng, _path_edges(nodes))
    source, target = nodes[0], nodes[-1]
    gold: Row = {"edges": edges, "source": source, "target": target}
    short = _shortest(edges, source, target)
    if shortest:
        gold["value"] = len(short) - 1
    gap = next(b for b in _NODES if [source, b] not in edges and [b, source] not in edges and b not in (source, target))
    return _row(
        gold, _arrows(short), _arrows((source, gap, target)), source, _arrows(short[:-1]), _arrows((source, target, "n9"))
    )


def _shortest(edges: Edges, source: str, target: str) -> list[str]:
    ways = [[source]]
    while ways[0][-1] != target:
        way = ways.pop(0)
        ends = [b if a == way[-1] else a for a, b in edges if way[-1] in (a, b)]
        ways += [[*way, end] for end in ends if end not in way]
    return ways[0]


def _round(rng: np.random.Generator, size: int = 4) -> Row:
    nodes = _order(rng)[:size]
    edges = _path_edges([*nodes, nodes[0]])
    gold: Row = {"edges": edges if size == len(_NODES) else _more(rng, edges, 2), "nodes": list(_NODES)}
    return _row(gold, _arrows([*nodes, nodes[0]]), _arrows(nodes[:2]), nodes[0], _arrows([*nodes[::2], *nodes[1::2]]) + " -> n9")


def _hamilton_path(rng: np.random.Generator) -> Row:
    nodes = _order(rng)
    return _row({"edges": _more(rng, _path_edges(nodes), 2)}, _arrows(nodes), _arrows(nodes[:-1]), _arrows([*nodes, nodes[0]]))


def _euler(rng: np.random.Generator) -> Row:
    nodes = _order(rng)
    walk = [*nodes[:4], nodes[0], *nodes[4:], nodes[0]]
    return _row({"edges": _path_edges(walk), "closed": True}, _arrows(walk), _arrows(walk[:-1]), _arrows(nodes))


def _topological(rng: np.random.Generator) -> Row:
    nodes = _order(rng)
    edges = _path_edges(nodes)
    return _row({"edges": edges, "directed": True}, _arrows(nodes), _arrows(nodes[::-1]), _arrows(nodes[1:]))


def _coloring(rng: np.random.Generator, colors: int = 3) -> Row:
    color = {n: i % colors + 1 for i, n in enumerate(_order(rng))}
    edges = _more(rng, [], 8, lambda a, b: color[a] != color[b])
    table = ", ".join(f"{n}: {color[n]}" for n in _NODES)
    bad = ", ".join(f"{n}: 1" for n in _NODES)
    return _row({"edges": edges, "nodes": list(_NODES), "colors": colors}, table, bad, table.split(", ")[0])


def _components(rng: np.random.Generator) -> Row:
    nodes = _order(rng)
    groups = [nodes[:3], nodes[3:5], nodes[5:]]
    edges = [e for g in groups for e in _path_edges(g)]
    return _row({"edges": edges}, "; ".join(" ".join(g) for g in groups), " ".join(nodes), "; ".join(nodes))


def _bipartition(rng: np.random.Generator) -> Row:
    nodes = _order(rng)
    left, right = nodes[:3], nodes[3:]
    edges = [[a, b] for a in left for b in right if a == left[0] or b == right[0]]
    return _row({"edges": edges}, f"{' '.join(left)}; {' '.join(right)}", f"{' '.join(nodes[:4])}; {' '.join(nodes[4:])}")


def _tree(rng: np.random.Generator) -> Row:
    nodes = _order(rng)
    tree = [[nodes[int(rng.integers(i))], nodes[i]] for i in range(1, len(nodes))]
    said = [f"({a}, {b})" for a, b in tree]
    return _row({"edges": _more(rng, tree, 3)}, ", ".join(said), ", ".join(said[:-1]), f"{', '.join(said)}, (n1, n9)")


def _matching(rng: np.random.Generator) -> Row:
    nodes = _order(rng)
    pairs = [nodes[0:2], nodes[2:4], nodes[4:6]]
    said = [f"({a}, {b})" for a, b in pairs]
    clash = f"({nodes[0]}, {nodes[1]}), ({nodes[1]}, {nodes[0]})"
    return _row({"edges": _more(rng, pairs, 2), "nodes": list(_NODES), "value": 3}, ", ".join(said), said[0], clash)


def _subset(good: Callable[[set[str], Edges], bool], largest: bool) -> Callable[[np.random.Generator], Row]:
    """A problem of a best set of nodes, solved by trying all."""

    def draw(rng: np.random.Generator) -> Row:
        nodes = _order(rng)
        edges = _more(rng, _path_edges(nodes[:4]), 5)
        sizes = range(len(_NODES), 0, -1) if largest else range(1, len(_NODES) + 1)
        best = next(c for k in sizes for c in combinations(_NODES, k) if good(set(c), edges))
        bad = next(c for k in range(1, 8) for c in combinations(_NODES, k) if k != len(best) or not good(set(c), edges))
        gold: Row = {"edges": edges, "nodes": list(_NODES), "value": len(best)}
        return _row(gold, ", ".join(best), ", ".join(bad), f"{', '.join(best)}, n9")

    return draw


def _independent(chosen: set[str], edges: Edges) -> bool:
    return not any(a in chosen and b in chosen for a, b in edges)


def _clique(chosen: set[str], edges: Edges) -> bool:
    return all([a, b] in edges or [b, a] in edges for a, b in combinations(sorted(chosen), 2))


def _cover(chosen: set[str], edges: Edges) -> bool:
    return all(a in chosen or b in chosen for a, b in edges)


def _dominating(chosen: set[str], edges: Edges) -> bool:
    near = chosen | {b for a, b in edges if a in chosen} | {a for a, b in edges if b in chosen}
    return near == set(_NODES)


GRAPHS: dict[str, Callable[[np.random.Generator], Row]] = {
    "path": _path,
    "shortest_path": lambda rng: _path(rng, shortest=True),
    "cycle": _round,
    "hamilton_path": _hamilton_path,
    "hamilton_cycle": lambda rng: _round(rng, len(_NODES)),
    "euler_path": _euler,
    "topological_order": _topological,
    "coloring": _coloring,
    "components": _components,
    "bipartition": _bipartition,
    "spanning_tree": _tree,
    "matching": _matching,
    "independent_set": _subset(_independent, True),
    "clique": _subset(_clique, True),
    "vertex_cover": _subset(_cover, False),
    "dominating_set": _subset(_dominating, False),
}
"""Name behind ``graph_`` to what draws a problem."""


def grid(rng: np.random.Generator) -> Row:
    """A square of numbers, and others with one cell wrong, a row too few, or turned."""
    cells = [[str(int(v)) for v in row] for row in rng.permutation(9).reshape(3, 3)]
    gold: Any = cells
    said = "\n".join(" ".join(row) for row in cells)
    other = "\n".join(" ".join(column) for column in zip(*cells, strict=True))
    return _row(gold, said, said[:-1] + "9", said.rpartition("\n")[0], other, said + "\n1 2 3", cells[0][0])


def maze(rng: np.random.Generator) -> Row:
    """A walk of random moves right and down through walls."""
    moves = ["R"] * 3 + ["D"] * 3
    said = "".join(moves[int(i)] for i in rng.permutation(6))
    cells = [["#"] * 4 for _ in range(4)]
    x = y = 0
    for move in ("", *said):
        x, y = x + (move == "R"), y + (move == "D")
        cells[y][x] = "."
    cells[0][0], cells[3][3] = "S", "G"
    gold: Row = {"maze": ["".join(line) for line in cells], "value": 6}
    return _row(gold, said, said[:-1], "RRRRRR", said + "R", said[1:])


def plan(rng: np.random.Generator) -> Row:
    """A tower of two discs between pegs that are drawn, and plans with a step that is not possible, missing, or too many."""
    a, b, c = ("ABC"[int(i)] for i in rng.permutation(3))
    pegs: list[list[int]] = [[], [], []]
    goal: list[list[int]] = [[], [], []]
    pegs["ABC".index(a)] = goal["ABC".index(c)] = [2, 1]
    said = f"{a} {b}, {a} {c}, {b} {c}"
    gold: Row = {"world": "hanoi", "pegs": pegs, "goal": goal, "most": 3}
    slow = f"{a} {c}, {c} {b}, {a} {c}, {b} {c}"
    return _row(gold, said, f"{a} {b}, {a} {b}", f"{a} {b}, {a} {c}", slow, f"{a} {c}")


def sat(rng: np.random.Generator) -> Row:
    """Clauses that a planted assignment makes true."""
    signs = [1 if rng.random() < 0.5 else -1 for _ in range(4)]
    clauses = [[(i + 1) * signs[i], ((i + 1) % 4 + 1) * (1 if rng.random() < 0.5 else -1)] for i in range(4)]
    values = ", ".join(f"x{i + 1}={'true' if sign > 0 else 'false'}" for i, sign in enumerate(signs))
    first = -signs[0], -clauses[0][1] // abs(clauses[0][1]) * (abs(clauses[0][1]))
    return _row({"clauses": clauses}, values, f"{first[0]} {first[1]} 0", "unsat", "x9=true", "x1=true, x1=false")


def smt(rng: np.random.Generator) -> Row:
    """Constraints that planted numbers keep."""
    x, y = (int(rng.integers(2, 30)) for _ in range(2))
    text = (
        f"(declare-const x Int) (declare-const y Int) (assert (= (+ x y) {x + y})) (assert (>= x {x})) (assert (>= y {y - 1}))"
        f" (assert (= (mod x 2) {x % 2}))"
    )
    return _row({"smt": text}, f"x = {x}, y = {y}", f"x = {x}, y = {y + 1}", f"x = {x - 1}, y = {y + 1}", f"x = {x}", "unsat")


def assignment(rng: np.random.Generator) -> Row:
    """Names and roles."""
    names = ("Ann", "Bob", "Cid")
    roles = {name: ("knight", "knave")[int(rng.integers(2))] for name in names}
    turned = {name: "knave" if role == "knight" else "knight" for name, role in roles.items()}
    said = [", ".join(f"{name} is a {role}" for name, role in table.items()) for table in (roles, turned)]
    return _row(dict(roles), said[0], said[1], said[0].split(",")[0])


def countdown(rng: np.random.Generator) -> Row:
    """Four numbers, and the target that one bracketing of them has."""
    a, b, c, d = (int(n) for n in rng.integers(2, 40, 4))
    right, target = f"({a} + {b}) * {c} - {d}", (a + b) * c - d
    row = _row(
        {"numbers": [a, b, c, d], "target": target}, right, f"{a} + {b} * {c} - {d} - {d}", str(target), f"{target + d} - {d}"
    )
    return row | {"solutions": [right, f"{c} × ({b} + {a}) - {d} = {target}"]}
