"""Comparing results: tables by hand, and a second judge that is written another way."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.sandbox.sql.guard import Cell, Result, Rows
from assay.verify.sql.compare import Runs, agree, cardinality, level, precision, settled


def result(rows: Sequence[Sequence[Cell]], width: int = 0) -> Result:
    return Result(tuple(map(tuple, rows)), width or (len(rows[0]) if rows else 0), frozenset())


def runs(usual: Sequence[Sequence[Cell]], other: Sequence[Sequence[Cell]] | None = None) -> Runs:
    return Runs(result(usual), result(usual), result(usual if other is None else other))


def same(
    wanted: Sequence[Sequence[Cell]], given_: Sequence[Sequence[Cell]], ordered: bool = False, tolerance: float = 0.0
) -> bool:
    a, b = level(runs(wanted), runs(given_), tolerance)
    return agree([a], [b], ordered)


@pytest.mark.parametrize(
    ("wanted", "other", "tolerance", "equal"),
    [
        ([[1]], [[1.0]], 0.0, True),
        ([[0.1]], [[0.1 + 5e-18]], 0.0, True),  # the same float
        ([[0.3]], [[0.1 + 0.2]], 0.0, False),
        ([[0.3]], [[0.1 + 0.2]], 1e-12, True),
        ([[0]], [[1e-13]], 1e-12, True),
        ([[0]], [[1e-11]], 1e-12, False),
        ([[10**15]], [[10**15 + 1]], 1e-12, False),  # integers
        ([[10**15], [10**15 + 1]], [[10.0**15], [10.0**15 + 1]], 1e-12, True),
        ([[1], [2], [3.5]], [[1], [2], [3.5]], 1e-12, True),
        ([[float("inf")]], [[float("inf")]], 1e-12, True),
        ([[float("inf")]], [[1e308]], 1e-12, False),
        ([["1"]], [[1]], 1e-12, False),
        ([["1"]], [[b"1"]], 1e-12, False),
        ([[None]], [[None]], 1e-12, True),
        ([[None]], [[0]], 1e-12, False),
        ([["a", 0.3], ["b", 0.30000000000000004]], [["b", 0.3], ["a", 0.30000000000000004]], 1e-12, True),
    ],
)
def test_cells(wanted: list[list[Cell]], other: list[list[Cell]], tolerance: float, equal: bool) -> None:
    assert same(wanted, other, tolerance=tolerance) is equal
    assert same(other, wanted, tolerance=tolerance) is equal


def test_ties_may_come_in_any_order() -> None:
    wanted = runs([[1], [2], [3], [4]], [[1], [3], [2], [4]])  # 2 and 3 tie
    assert settled(wanted)
    assert agree([wanted], [runs([[1], [3], [2], [4]])], True)
    assert not agree([wanted], [runs([[2], [1], [3], [4]])], True)
    assert not agree([wanted], [runs([[1], [2], [3], [4]], [[4], [3], [2], [1]])], True)  # right one way only
    assert agree([wanted], [runs([[4], [3], [2], [1]])], False)


def test_a_gold_that_is_not_settled() -> None:
    wanted = Runs(result([[1], [2]]), result([[1], [2]]), result([[1], [3]]))
    assert not settled(wanted)
    for ordered in (True, False):
        assert agree([wanted], [runs([[1], [3]])], ordered)
        assert agree([wanted], [runs([[1], [2]], [[1], [3]])], ordered)
        assert not agree([wanted], [runs([[1], [4]])], ordered)
    assert not agree([wanted], [runs([[3], [1]])], True)
    assert agree([wanted], [runs([[3], [1]])], False)


def test_columns_in_any_order_are_the_same_order_on_every_instance() -> None:
    first, second = [[1, 2], [2, 1]], [[3, 4]]
    turned = [[4, 3]]
    assert agree([runs(first), runs(second)], [runs(first), runs(turned)], False, any_columns=True)
    assert not agree([runs(second), runs(second)], [runs(second), runs(turned)], False, any_columns=True)
    assert not agree([runs([[1, 1, 2]])], [runs([[1, 2, 2]])], False, any_columns=True)
    assert agree([runs([[1, 1, 2]])], [runs([[2, 1, 1]])], False, any_columns=True)
    assert not agree([runs([[1, 2], [2, 1]])], [runs([[1, 1], [2, 2]])], False, any_columns=True)  # alike column by column


@pytest.mark.parametrize("columns", [6, 7, 12])
def test_many_columns_that_look_alike_are_tried_only_so_long(columns: int) -> None:
    alike = [[(i + j) % columns for j in range(columns)] for i in range(columns)]
    other = [row[::-1] for row in alike[:-1]] + [alike[-1][1:] + alike[-1][:1]]
    assert not agree([runs(alike)], [runs(other)], False, any_columns=True)


def test_qatch() -> None:
    wanted: Rows = ((1, "a"), (2, "b"))
    assert (precision(((1, "a"),), wanted), precision(wanted, ((1, "a"),)), cardinality(((1, "a"),), wanted)) == (1.0, 0.5, 0.5)
    assert precision(((1, "a"), (2, "c")), wanted) == 0.75
    assert precision((("a",), (1,), ("b",), (2,)), wanted) == 1.0  # whatever row a cell stands in
    assert [precision((), ()), precision((), wanted), precision(wanted, ())] == [1.0, 0.0, 0.0]
    assert [cardinality((), ()), cardinality((), wanted), cardinality(wanted, ())] == [1.0, 0.0, 0.0]


CELLS = st.sampled_from([None, 0, 1, 2, 1.0, 0.5, "", "1", "a", b"a", 2**60, float(2**60), 2**60 + 1])
TABLES = st.integers(1, 3).flatmap(lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), max_size=4))


def key(cell: Cell) -> tuple[str, object]:
    if isinstance(cell, int | float):
        return "number", Fraction(cell)
    return type(cell).__name__, cell or 0 if cell is None else cell


def second_judge(wanted: list[list[Cell]], other: list[list[Cell]], ordered: bool) -> bool:
    """By trying every order of rows on exact fractions."""
    ours, theirs = ([[key(c) for c in row] for row in rows] for rows in (wanted, other))
    return theirs == ours if ordered else any(list(rows) == ours for rows in permutations(theirs))


@pytest.mark.slow
@settings(max_examples=400)
@given(TABLES, st.data())
def test_against_a_second_judge(wanted: list[list[Cell]], data: st.DataObject) -> None:
    other = data.draw(st.one_of(st.permutations(wanted), TABLES, st.just(wanted)))
    if data.draw(st.booleans()) and other:
        row = data.draw(st.integers(0, len(other) - 1))
        other = [list(r) for r in other]
        other[row][0] = data.draw(CELLS)
    if wanted and other and len(wanted[0]) != len(other[0]):
        assert not same(wanted, other)
        return
    for ordered in (True, False):
        width = len((wanted or other or [[1]])[0])
        pair = [Runs(*[result(rows, width)] * 3) for rows in (wanted, other)]
        assert agree([pair[0]], [pair[1]], ordered) is second_judge(wanted, other, ordered)
