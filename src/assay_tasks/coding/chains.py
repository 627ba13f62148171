"""Functions of a list of whole numbers as chains of steps: in English, in Python twice, run, and with one mistake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from random import Random
from typing import Any

__all__ = [
    "Chain",
    "distinguishing_inputs",
    "describe_chain",
    "drawn_chain",
    "each_matters",
    "inputs",
    "lines",
    "write_loops",
    "mutants",
    "result",
]

Chain = list[list[Any]]
"""Steps ``[kind]`` or ``[kind, number]``; the last one says what is returned."""

_STEPS: dict[str, tuple[str, str, str]] = {
    "even": ("keeps only the even numbers", "[x for x in xs if x % 2 == 0]", "if x % 2 == 0: out.append(x)"),
    "odd": ("keeps only the odd numbers", "[x for x in xs if x % 2 != 0]", "if x % 2 != 0: out.append(x)"),
    "above": ("keeps only the numbers greater than {k}", "[x for x in xs if x > {k}]", "if x > {k}: out.append(x)"),
    "below": ("keeps only the numbers less than {k}", "[x for x in xs if x < {k}]", "if x < {k}: out.append(x)"),
    "multiples": ("keeps only the multiples of {k}", "[x for x in xs if x % {k} == 0]", "if x % {k} == 0: out.append(x)"),
    "add": ("adds {k} to each number", "[x + {k} for x in xs]", "out.append(x + {k})"),
    "times": ("multiplies each number by {k}", "[x * {k} for x in xs]", "out.append(x * {k})"),
    "square": ("replaces each number by its square", "[x * x for x in xs]", "out.append(x * x)"),
    "negate": ("changes the sign of each number", "[-x for x in xs]", "out.append(-x)"),
    "size": ("replaces each number by its absolute value", "[abs(x) for x in xs]", "out.append(x if x >= 0 else -x)"),
    "remainder": (
        "replaces each number by its remainder modulo {k}, which is never negative",
        "[x % {k} for x in xs]",
        "out.append(x % {k})",
    ),
    "cap": ("replaces each number greater than {k} by {k}", "[min(x, {k}) for x in xs]", "out.append({k} if x > {k} else x)"),
    "reverse": ("reverses the list", "xs[::-1]", "out.insert(0, x)"),
    "sort": ("sorts the list from small to large", "sorted(xs)", ""),
    "unique": (
        "keeps only the first of equal numbers",
        "list(dict.fromkeys(xs))",
        "if x not in out: out.append(x)",
    ),
    "sums": (
        "replaces each number by the sum of all numbers up to and with it",
        "[sum(xs[:i + 1]) for i in range(len(xs))]",
        "out.append(x + (out[-1] if out else 0))",
    ),
    "differences": (
        "replaces the list by the differences of neighbours, each number minus the one before it (one number fewer)",
        "[b - a for a, b in zip(xs, xs[1:])]",
        "",
    ),
    "take": ("keeps only the first {k} numbers", "xs[:{k}]", "if len(out) < {k}: out.append(x)"),
    "drop": ("leaves out the first {k} numbers", "xs[{k}:]", ""),
    "every": ("keeps only every second number, beginning with the first", "xs[::2]", ""),
}
_ENDS: dict[str, tuple[str, str]] = {
    "list": ("the list", "xs"),
    "sum": ("the sum of the numbers, 0 if there are none", "sum(xs)"),
    "count": ("how many numbers there are", "len(xs)"),
    "largest": ("the largest number, 0 if there are none", "max(xs, default=0)"),
    "smallest": ("the smallest number, 0 if there are none", "min(xs, default=0)"),
    "last": ("the last number, 0 if there are none", "xs[-1] if xs else 0"),
}
_NUMBERED = frozenset(kind for kind, (text, _, _) in _STEPS.items() if "{k}" in text)
_CONFUSED = {
    "even": "odd",
    "odd": "even",
    "above": "below",
    "below": "above",
    "add": "times",
    "times": "add",
    "square": "size",
    "size": "negate",
    "negate": "size",
    "reverse": "sort",
    "sort": "reverse",
    "unique": "sort",
    "sums": "differences",
    "differences": "sums",
    "take": "drop",
    "drop": "take",
    "every": "reverse",
    "multiples": "remainder",
    "remainder": "cap",
    "cap": "below",
    "sum": "largest",
    "largest": "smallest",
    "smallest": "largest",
    "count": "sum",
    "last": "largest",
    "list": "sum",
}


def drawn_chain(length: int, rng: Random) -> Chain:
    """A chain of so many steps, no two neighbours of one kind, and an end."""
    chain: Chain = []
    while len(chain) < length:
        kind = rng.choice(tuple(_STEPS))
        if not chain or chain[-1][0] != kind:
            chain.append([kind, rng.randint(2, 7)] if kind in _NUMBERED else [kind])
    return [*chain, [rng.choice(("list", "list", "sum", "count", "largest", "smallest", "last"))]]


def inputs(n: int, rng: Random) -> list[list[int]]:
    """Lists to try: the empty one, a short one, and random ones with equal numbers and negative ones."""
    found = [[], [rng.randint(-9, 9)]]
    while len(found) < n:
        found.append([rng.randint(-9, 15) for _ in range(rng.randint(2, 9))])
    return found[:n]


def result(chain: Chain, xs: Sequence[int]) -> Any:
    """What the function gives.

    >>> result([["even"], ["add", 3], ["sum"]], [1, 2, 4])
    12
    """
    found = list(xs)
    for kind, *rest in chain[:-1]:
        found = _step(kind, rest[0] if rest else 0, found)
    match chain[-1][0]:
        case "list":
            return found
        case "sum":
            return sum(found)
        case "count":
            return len(found)
        case "largest":
            return max(found, default=0)
        case "smallest":
            return min(found, default=0)
        case _:
            return found[-1] if found else 0


def _step(kind: str, k: int, xs: list[int]) -> list[int]:
    match kind:
        case "even" | "odd":
            return [x for x in xs if x % 2 == (kind == "odd")]
        case "above":
            return [x for x in xs if x > k]
        case "below":
            return [x for x in xs if x < k]
        case "multiples":
            return [x for x in xs if x % k == 0]
        case "add" | "times":
            return [x + k if kind == "add" else x * k for x in xs]
        case "square" | "negate" | "size":
            return [{"square": x * x, "negate": -x, "size": abs(x)}[kind] for x in xs]
        case "remainder":
            return [x % k for x in xs]
        case "cap":
            return [min(x, k) for x in xs]
        case "sums":
            return list(accumulate(xs))
        case "differences":
            return [b - a for a, b in pairwise(xs)]
        case _:
            return {
                "reverse": xs[::-1],
                "sort": sorted(xs),
                "unique": list(dict.fromkeys(xs)),
                "take": xs[:k],
                "drop": xs[k:],
                "every": xs[::2],
            }[kind]


def mutants(chain: Chain) -> Iterator[tuple[int, Chain]]:
    """Chains with one mistake, each with the number of the step that is wrong: another number, another step, an end of "
    "another kind.
    """
    for i, step in enumerate(chain):
        for other in _mistaken(step):
            yield i, [*chain[:i], other, *chain[i + 1 :]]


def _mistaken(step: list[Any]) -> Iterator[list[Any]]:
    kind, *rest = step
    if rest:
        yield [kind, rest[0] + 1]
        yield [kind, rest[0] - 1 if rest[0] > 2 else rest[0] + 2]
    other = _CONFUSED[kind]
    yield [other, *(rest or [2])] if other in _NUMBERED else [other]


def distinguishing_inputs(chain: Chain, other: Chain, tried: Sequence[Sequence[int]]) -> list[Sequence[int]]:
    """The inputs on which two chains differ."""
    return [xs for xs in tried if result(chain, xs) != result(other, xs)]


def each_matters(chain: Chain, tried: Sequence[Sequence[int]]) -> bool:
    """Whether some input tells the chain from each of its mutants, and from itself without any one of its steps."""
    right = [result(chain, xs) for xs in tried]
    shorter = ([*chain[:i], *chain[i + 1 :]] for i in range(len(chain) - 1))
    others = (*shorter, *(other for _, other in mutants(chain)))
    return all(any(result(other, xs) != wanted for xs, wanted in zip(tried, right, strict=True)) for other in others)


def describe_chain(chain: Chain) -> str:
    """What the function does, in English.

    >>> describe_chain([["even"], ["add", 3], ["sum"]])
    'It keeps only the even numbers, then adds 3 to each number, and returns the sum of the numbers, 0 if there are none.'
    """
    steps = [_STEPS[kind][0].format(k=rest[0] if rest else "") for kind, *rest in chain[:-1]]
    return f"It {', then '.join(steps)}, and returns {_ENDS[chain[-1][0]][0]}."


def lines(chain: Chain, name: str) -> list[str]:
    """The function in Python, one line for each step."""
    body = [f"    xs = {_STEPS[kind][1].format(k=rest[0] if rest else '')}" for kind, *rest in chain[:-1]]
    return [f"def {name}(xs):", *body, f"    return {_ENDS[chain[-1][0]][1]}"]


def write_loops(chain: Chain, name: str) -> str:
    """The same function written with loops."""
    found = [f"def {name}(xs):"]
    for kind, *rest in chain[:-1]:
        loop = _STEPS[kind][2].format(k=rest[0] if rest else "")
        if loop:
            found += ["    out = []", "    for x in xs:", f"        {loop}", "    xs = out"]
        else:
            found.append(f"    xs = {_STEPS[kind][1].format(k=rest[0] if rest else '')}")
    return "\n".join([*found, f"    return {_ENDS[chain[-1][0]][1]}"])
