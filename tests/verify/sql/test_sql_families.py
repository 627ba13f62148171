"""Generated queries: forms of the gold agree, near misses do not, and a second judge says the same."""

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from typing import Any

import pytest
from sql_families import FAMILIES, Case
from sql_tasks import verdict

SEEDS = range(8)


def results(case: Case, query: str) -> Iterator[list[list[object]]]:
    """What plain SQLite gives on each instance, numbers as exact fractions."""
    for instance in case.database["instances"]:
        with closing(sqlite3.connect(":memory:")) as connection:
            for table, columns in case.database["schema"].items():
                connection.execute(
                    f'CREATE TABLE "{table}" ({", ".join(f"{chr(34)}{c}{chr(34)} {kind}" for c, kind in columns)})'
                )
                connection.executemany(f'INSERT INTO "{table}" VALUES ({",".join("?" * len(columns))})', instance[table])
            yield [[exact(cell) for cell in row] for row in connection.execute(query)]


def exact(cell: Any) -> object:
    return Fraction(cell) if isinstance(cell, int | float) else cell


def second_judge(case: Case, query: str) -> bool:
    """Equal as sorted lists, or as lists where the gold sorts; by the text of the gold, without a look at ties."""
    for wanted, given in zip(results(case, case.gold), results(case, query), strict=True):
        if "ORDER BY" not in case.gold:
            wanted, given = sorted(wanted, key=repr), sorted(given, key=repr)
        if wanted != given:
            return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_forms_agree_and_near_misses_do_not(family: str) -> None:
    caught = near = 0
    for seed in SEEDS:
        case = FAMILIES[family](random.Random(f"{family}/{seed}"))
        for query in (case.gold, *case.same):
            assert verdict(case.gold, query, case.database) == "equal", (seed, query)
            assert second_judge(case, query), (seed, query)
        for query in case.near:
            same = second_judge(case, query)
            assert verdict(case.gold, query, case.database) == ("equal" if same else "different"), (seed, query)
            near += 1
            caught += not same
    assert caught / near > 0.9  # by three instances; the others mean the same on all of them


def test_an_order_by_luck_is_told_from_one_that_the_query_asks_for() -> None:
    found: list[str] = []
    for seed in SEEDS:
        case = FAMILIES["sorted"](random.Random(f"sorted/{seed}"))
        for query in case.lucky:
            assert second_judge(case, query), (seed, query)  # SQLite happens to break ties as the gold says
            found.append(verdict(case.gold, query, case.database))
    assert found.count("different") > 0.9 * len(found)  # the others have no ties


@pytest.mark.parametrize("family", FAMILIES)
def test_more_instances_catch_more(family: str) -> None:
    missed = {1: 0, 3: 0}
    for seed in SEEDS:
        case = FAMILIES[family](random.Random(f"{family}/{seed}"))
        for query in case.near:
            right = [a == b for a, b in zip(results(case, case.gold), results(case, query), strict=True)]
            for count in missed:
                missed[count] += all(right[:count])
    assert missed[3] <= missed[1]
