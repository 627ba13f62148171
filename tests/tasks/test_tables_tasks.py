"""Questions to tables: by hand, by their contract, and against SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from assay.tasks import Form, Problem, Problems
from assay.testing import check_problem
from assay.verify.rollouts import task_and_rollout
from assay_tasks.tables.family import tables
from assay_tasks.tables.questions import Aggregate, Compare, Count, Lookup, Nth, Pivot, TableQuestion
from assay_tasks.tables.several import Hops, Trend
from assay_tasks.tables.sheet import Sheet, conditions_text

TABLES: Problems = tables()


@pytest.mark.parametrize("problem", TABLES.problems, ids=lambda p: p.name)
def test_problems_keep_their_contract(problem: Problem) -> None:
    check_problem(problem, n=16, growth=3.0)


def test_layouts_by_hand() -> None:
    sheet = Sheet("cities", ["name", "area", "year"], [["Ulm", 3, 1900], ["Bonn", 4, 1950]])
    assert sheet.to_text("csv") == "cities:\nname,area,year\nUlm,3,1900\nBonn,4,1950"
    assert sheet.to_text("lines") == "cities:\nUlm has area 3 and year 1900.\nBonn has area 4 and year 1950."
    assert sheet.to_text("markdown").split("\n")[2] == "|---|---|---|"
    assert conditions_text([["area", ">=", 4], ["prizes", "<", 2]]) == "whose area is at least 4 and whose prizes are less than 2"


def test_trends_by_hand() -> None:
    facts = {"columns": ["day", "calls"], "rows": [[1, 10], [2, 12], [3, 15], [4, 5], [5, 6]], "column": "calls"}
    cases = {
        "change": ([[1, 3]], "5"),
        "percent": ([[3, 4]], "-66.7"),
        "rise": ([], "3"),
        "mean": ([[1, 3]], "12.33"),
        "run": ([], "2"),
        "shift": ([[1, 2], [3, 4]], "-9.1"),
    }
    for kind, (spans, answer) in cases.items():
        assert Trend().solve({**facts, "kind": kind, "spans": spans}).answer == answer
    verifier = Trend().verifier(Form.PLAIN)
    said = [verifier(*task_and_rollout(str(Fraction(-200, 3)), text)).primary for text in ("-66.7", "-66.67%", "-66.6", "66.7")]
    assert said == [1.0, 1.0, 0.0, 0.0]


def _loaded(sheets: Sequence[Sheet]) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    for i, sheet in enumerate(sheets):
        names = ", ".join(f'"{c}"' for c in sheet.columns)
        connection.execute(f"CREATE TABLE t{i} ({names})")
        connection.executemany(f"INSERT INTO t{i} VALUES ({','.join('?' * len(sheet.columns))})", sheet.rows)
    return connection


def _where(conditions: Sequence[Sequence[Any]], table: str = "t0") -> str:
    parts = [f'{table}."{c}" {op} ' + (f"'{v}'" if isinstance(v, str) else str(v)) for c, op, v in conditions]
    return " AND ".join(parts) or "1"


def _query(problem: Problem, facts: dict[str, Any]) -> str:
    """The same question in SQL."""
    names = {"mean": "avg", "sum": "sum", "max": "max", "min": "min", "count": "count"}
    match problem:
        case Lookup():
            return f'SELECT "{facts["column"]}" FROM t0 WHERE {_where([[c, "=", v] for c, v in facts["key"].items()])}'
        case Count():
            return f"SELECT count(*) FROM t0 WHERE {_where(facts['where'])}"
        case Aggregate():
            return f'SELECT {names[facts["kind"]]}("{facts["column"]}") FROM t0 WHERE {_where(facts["where"])}'
        case Compare():
            one, other = (
                f'(SELECT {names[facts["kind"]]}("{facts["column"]}") FROM t0 WHERE "{facts["by"]}" = \'{group}\')'
                for group in facts["groups"]
            )
            return f"SELECT {one} - {other}"
        case Nth():
            key, way = facts["columns"][0], "DESC" if facts["down"] else "ASC"
            order = f'"{facts["column"]}" {way}, "{key}"'
            return f'SELECT "{key}" FROM t0 WHERE {_where(facts["where"])} ORDER BY {order} LIMIT 1 OFFSET {facts["place"] - 1}'
        case Pivot():
            _, rows, columns, number = facts["columns"]
            cells = [
                f'(SELECT ifnull({names[facts["kind"]]}("{number}"), 0) FROM t0 WHERE "{rows}" = \'{facts["row"]}\' AND '
                f"\"{columns}\" = '{c}')"
                for c in facts["columns_of"]
            ]
            return f"SELECT {' - '.join(cells)}"
        case _:
            last = len(facts["tables"]) - 1
            joins = "".join(
                f' JOIN t{i - 1} ON t{i}."{facts["tables"][i][1][-1]}" = t{i - 1}."{facts["tables"][i - 1][1][0]}"'
                for i in range(last, 0, -1)
            )
            what = f'{names[facts["kind"]]}(t{last}."{facts["column"]}")'
            return f"SELECT {what} FROM t{last}{joins} WHERE {_where([facts['where']])}"


@pytest.mark.parametrize("problem", [p for p in TABLES.problems if not isinstance(p, Trend)], ids=lambda p: p.name)
def test_answers_agree_with_sqlite(problem: TableQuestion) -> None:
    for level in problem.levels:
        for i in range(12):
            facts = problem.draw(level, Random(f"{level}/{i}"))
            found = problem.solve(facts)
            connection = _loaded(problem.sheets(facts))
            ((value,),) = connection.execute(_query(problem, facts)).fetchall()
            connection.close()
            if isinstance(value, str):
                assert value == found.answer
            else:
                assert float(Fraction(found.gold or found.answer)) == pytest.approx(value or 0)


def test_hops_name_every_table() -> None:
    facts = Hops().draw(6, Random(1))
    assert len(facts["tables"]) == 3 and [len(t[2]) for t in facts["tables"]] == [9, 19, 38]
    assert all(f"{t[0]}:" in Hops().word(facts, 0) for t in facts["tables"])
