"""Whether two queries give the same result, and how much of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import isclose

from assay.sandbox.sql.guard import Cell, Result, Rows

__all__ = ["Runs", "agree", "cardinality", "level", "precision", "settled"]

_ARRANGEMENTS = 720
"""Arrangements of columns that are tried: all of six columns that look alike."""

Blocks = tuple[Counter[tuple[Cell, ...]], ...]


@dataclass(frozen=True, slots=True)
class Runs:
    """A query's results on one instance.

    Attributes:
        usual: as SQLite gives it.
        one, other: two results which differ in all that the query leaves open: with ties of its ``ORDER BY`` broken upwards and
            downwards, or without one, with tables visited forwards and backwards.
    """

    usual: Result
    one: Result
    other: Result

    @property
    def each(self) -> tuple[Result, Result, Result]:
        """The three."""
        return self.usual, self.one, self.other


def settled(runs: Runs) -> bool:
    """Whether the rows follow from the query, whatever it leaves open; their order need not."""
    return Counter(runs.one.rows) == Counter(runs.other.rows)


def level(wanted: Runs, given: Runs, tolerance: float) -> tuple[Runs, Runs]:
    """Both with numbers that count as one replaced by the least of them.

    A float counts as one with a number that is no further away than ``tolerance``, absolute or relative to the larger; two
    integers never do. With tolerance 0 numbers are equal if their values are, ``1`` and ``1.0`` too.
    """
    every = [row for runs in (wanted, given) for result in runs.each for row in result.rows]
    floats = {cell for row in every for cell in row if isinstance(cell, float)}
    if not floats or not tolerance:
        return wanted, given
    whole = {cell for row in every for cell in row if isinstance(cell, int)}
    least: dict[float, float] = {}
    anchor, anchored = 0.0, False  # the least of the present ones, and whether an integer is among them
    for number in sorted(floats | whole):
        exact = number in whole
        if least and isclose(number, anchor, rel_tol=tolerance, abs_tol=tolerance) and not (exact and anchored):
            anchored = anchored or exact
        else:
            anchor, anchored = number, exact
        least[number] = anchor
    return _level_runs(wanted, least), _level_runs(given, least)


def _level_runs(runs: Runs, least: dict[float, float]) -> Runs:
    def rows(result: Result) -> Rows:
        return tuple(tuple(least[c] if isinstance(c, int | float) else c for c in row) for row in result.rows)

    return Runs(*(replace(result, rows=rows(result)) for result in runs.each))


def agree(wanted: Sequence[Runs], given: Sequence[Runs], ordered: bool, any_columns: bool = False) -> bool:
    """Whether the given query's results are right on every instance.

    Rows are compared as multisets. When ``ordered`` they are compared in order, but rows that the gold query leaves tied may
    come in any order among themselves. Where the gold query does not settle its rows, each of the results that it was seen to
    give is right. The given query must be right whichever way its own open questions are decided.

    Args:
        wanted, given: results per instance.
        ordered: the gold query has an order.
        any_columns: columns may stand in another order, the same on every instance.
    """
    if any(w.usual.width != g.usual.width for w, g in zip(wanted, given, strict=True)):
        return False
    accepted = [_accepted_results(runs, ordered) for runs in wanted]
    width = wanted[0].usual.width
    arrangements = islice(_arrangements(wanted, given), _ARRANGEMENTS) if any_columns else iter([tuple(range(width))])
    return any(
        all(
            any(_fits(blocks, result.rows, arrangement) for blocks in alternatives)
            for alternatives, runs in zip(accepted, given, strict=True)
            for result in (runs.one, runs.other)
        )
        for arrangement in arrangements
    )


def _accepted_results(runs: Runs, ordered: bool) -> tuple[Blocks, ...]:
    """The results that are right, each as blocks in order; within a block any order is right."""
    if not ordered:
        return tuple((Counter(result.rows),) for result in (runs.each if not settled(runs) else [runs.one]))
    if not settled(runs):
        return tuple(tuple(Counter([row]) for row in result.rows) for result in runs.each)
    blocks: list[Counter[tuple[Cell, ...]]] = []
    block: Counter[tuple[Cell, ...]] = Counter()
    ahead: Counter[tuple[Cell, ...]] = Counter()  # how many more of a row one way has seen than the other
    for here, there in zip(runs.one.rows, runs.other.rows, strict=True):
        block[here] += 1
        for row, step in ((here, 1), (there, -1)):
            ahead[row] += step
            if not ahead[row]:
                del ahead[row]
        if not ahead:
            blocks.append(block)
            block = Counter()
    return (tuple(blocks),)


def _fits(blocks: Blocks, rows: Rows, arrangement: tuple[int, ...]) -> bool:
    if sum(block.total() for block in blocks) != len(rows):
        return False
    place = 0
    for block in blocks:
        size = block.total()
        if Counter(tuple(row[j] for j in arrangement) for row in rows[place : place + size]) != block:
            return False
        place += size
    return True


def _arrangements(wanted: Sequence[Runs], given: Sequence[Runs]) -> Iterator[tuple[int, ...]]:
    """Orders of the given columns in which each holds what the gold's column there holds."""
    width = wanted[0].usual.width
    theirs = [_column(given, j) for j in range(width)]
    choices = [[j for j in range(width) if theirs[j] == ours] for ours in (_column(wanted, i) for i in range(width))]
    yield from _pick_columns(choices, ())


def _column(runs: Sequence[Runs], place: int) -> tuple[Counter[Cell], ...]:
    return tuple(Counter(row[place] for row in r.usual.rows) for r in runs)


def _pick_columns(choices: Sequence[Sequence[int]], taken: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    if len(taken) == len(choices):
        yield taken
        return
    for choice in choices[len(taken)]:
        if choice not in taken:
            yield from _pick_columns(choices, (*taken, choice))


def precision(given: Rows, wanted: Rows) -> float:
    """The share of the given cells that occur among the wanted ones; 1 if both are empty, 0 if one is.

    QATCH's cell precision. Its cell recall is the same with the two exchanged. Which row or column a cell stands in does not
    matter, nor how often it occurs, as in QATCH's code.

    >>> precision(((1, "a"), (2, "b")), ((1, "a"),)), precision(((1, "a"),), ((1, "a"), (2, "b")))
    (0.5, 1.0)
    """
    cells, others = [c for row in given for c in row], {c for row in wanted for c in row}
    if not cells or not others:
        return float(not cells and not others)
    return sum(cell in others for cell in cells) / len(cells)


def cardinality(given: Rows, wanted: Rows) -> float:
    """QATCH's tuple cardinality: the smaller number of rows over the larger; 1 if both are empty.

    >>> cardinality(((1,),), ((1,), (2,)))
    0.5
    """
    few, many = sorted((len(given), len(wanted)))
    return few / many if many else 1.0
