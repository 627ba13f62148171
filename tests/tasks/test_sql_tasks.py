"""Text to SQL: questions by hand, an evaluator that is not SQLite, and mutants that must fail."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from assay.core.canon import plain
from assay.core.errors import UnknownNameError
from assay.tasks import Problems
from assay.testing import check_problem
from assay.verify.rollouts import rollout_of
from assay_tasks.sql.base import Question
from assay_tasks.sql.family import sql
from assay_tasks.sql.query import Any_, Col, Compare, Join, Select, Sets, mutants
from assay_tasks.sql.single import Aggregate, Filter
from assay_tasks.sql.themes import THEMES, theme
from assay_tasks.sql.words import clauses

SQL: Problems = sql()


def _drawn(problem: Question, level: int, n: int) -> list[dict[str, Any]]:
    return [plain({"problem": problem.name, **problem.draw(level, Random(f"{problem.name}/{level}/{i}"))}) for i in range(n)]


def test_a_question_by_hand() -> None:
    tables = theme("shop")[:2]
    tree = ["and", ["is", 1, "age", ">=", 30], ["or", ["is", 1, "tier", "<>", "gold"], ["is", 0, "region", "=", "north"]]]
    said = clauses(tree, tables, 1)
    assert said == "whose age is at least 30 and (whose tier is not 'gold' or whose city's region is 'north')"
    plan = {"where": tree, "aggregates": [["sum", "points"]]}
    assert Aggregate().query(plan, tables).sql() == (
        "SELECT SUM(customer.points) FROM customer JOIN city ON customer.city_id = city.id "
        "WHERE customer.age >= 30 AND (customer.tier <> 'gold' OR city.region = 'north')"
    )
    assert Aggregate().ask(plan, tables)["what"] == "the sum of points"


def test_the_mutants_of_a_small_query() -> None:
    t = "t"
    join = Join("u", (Col(t, "u"), Col("u", "id")))
    low = Compare(Col(t, "a"), ">", 1)
    query = Select(pick=(Col(t, "a"),), table=t, joins=(join,), where=Any_((low, Compare(Col(t, "b"), "=", "x"))), limit=2)
    found = {m.sql().removeprefix("SELECT t.a FROM t ") for m in mutants(query)}
    assert found == {
        "LEFT JOIN u ON t.u = u.id WHERE t.a > 1 OR t.b = 'x' LIMIT 2",
        "JOIN u ON t.u = u.id LIMIT 2",
        "JOIN u ON t.u = u.id WHERE t.a > 1 AND t.b = 'x' LIMIT 2",
        "JOIN u ON t.u = u.id WHERE t.b = 'x' LIMIT 2",
        "JOIN u ON t.u = u.id WHERE t.a >= 1 OR t.b = 'x' LIMIT 2",
        "JOIN u ON t.u = u.id WHERE t.a < 1 OR t.b = 'x' LIMIT 2",
        "JOIN u ON t.u = u.id WHERE t.a > 1 LIMIT 2",
        "JOIN u ON t.u = u.id WHERE t.a > 1 OR t.b <> 'x' LIMIT 2",
        "JOIN u ON t.u = u.id WHERE t.a > 1 OR t.b = 'x' LIMIT 3",
    }
    both = Sets((Select(pick=(Col(t, "a"),), table=t), Select(pick=(Col(t, "b"),), table=t)), ("UNION",))
    assert {m.sql().split(" t ")[1].split()[0] for m in mutants(both)} == {"INTERSECT", "EXCEPT"}


@pytest.mark.slow
@pytest.mark.parametrize("problem", SQL.problems, ids=lambda p: p.name)
def test_wrong_queries_are_told(problem: Question) -> None:
    """Few questions keep a mutant that no set of rows tells; of the others each mutant scores 0."""
    verifier = SQL.verifier()
    for level in problem.levels:
        survivors = [problem.survivors(facts) for facts in _drawn(problem, level, 6)]
        assert sum(map(bool, survivors)) <= 2
        task = next(
            t for i in range(9) if not problem.survivors(plain((t := SQL.task(problem.name, level, "train", i)).public["facts"]))
        )
        facts = plain(task.public["facts"])
        tables = theme(facts["theme"])[facts["start"] : facts["stop"]]
        wrong = [m.sql() for m in mutants(problem.query(facts["plan"], tables))]
        for text in Random(level).sample(wrong, min(3, len(wrong))):
            assert verifier(task, rollout_of(task, f"```sql\n{text}\n```")).primary == 0.0
        score = verifier(task, rollout_of(task, task.private["solution"]))
        assert score.primary == 1.0 and "ambiguous" not in score.info and "vacuous" not in score.info


@pytest.mark.prove
@pytest.mark.parametrize("problem", SQL.problems, ids=lambda p: p.name)
def test_problems_keep_their_contract(problem: Question) -> None:
    check_problem(problem, n=8, growth=1.5)


def _holds(tree: Sequence[Any], row: dict[str, Any]) -> bool | None:
    """A condition by the three-valued logic of SQL, in Python."""
    if tree[0] != "is":
        parts = [_holds(t, row) for t in tree[1:]]
        decisive = tree[0] == "or"
        return decisive if decisive in parts else None if None in parts else not decisive
    _, _, column, op, value = tree
    cell = row[column]
    if op in ("NULL", "KNOWN"):
        return (cell is None) == (op == "NULL")
    if cell is None:
        return None
    if op == "BETWEEN":
        return value[0] <= cell <= value[1]
    return {
        "=": cell == value,
        "<>": cell != value,
        ">": cell > value,
        ">=": cell >= value,
        "<": cell < value,
        "<=": cell <= value,
    }[op]


def test_filters_and_counts_agree_with_an_evaluator_in_python() -> None:
    import sqlite3

    checked = 0
    for problem in (Filter(), Aggregate()):
        for level in problem.levels[:4]:
            for facts in _drawn(problem, level, 10):
                gold = problem.solve(facts).gold
                table = theme(facts["theme"])[facts["start"] : facts["stop"]][-1]
                plan = facts["plan"]
                for rows in gold["database"]["instances"]:
                    header = ["id", *(c.name for c in table.columns)]
                    cells = [dict(zip(header, row, strict=False)) for row in rows[table.name]]
                    kept = [row for row in cells if _holds(plan["where"], row)]
                    with sqlite3.connect(":memory:") as connection:
                        connection.executescript(gold["database"]["schema"])
                        for name, lines in rows.items():
                            connection.executemany(f"INSERT INTO {name} VALUES ({','.join('?' * len(lines[0]))})", lines)
                        found = connection.execute(gold["query"]).fetchall()
                    connection.close()
                    if isinstance(problem, Filter):
                        wanted = [tuple(row[c] for c in plan["pick"]) for row in kept]
                        wanted = list(set(wanted)) if plan["distinct"] else wanted
                        assert sorted(found, key=repr) == sorted(wanted, key=repr)
                    else:
                        assert [_aggregated(pair, kept) for pair in plan["aggregates"]] == pytest.approx(list(found[0]))
                    checked += 1
    assert checked > 160


def _aggregated(pair: tuple[str, str | None], rows: list[dict[str, Any]]) -> Any:
    kind, column = pair
    if column is None:
        return len(rows)
    known = [row[column] for row in rows if row[column] is not None]
    if kind == "distinct":
        return len(set(known))
    if not known:
        return None
    return {"sum": sum, "min": min, "max": max, "avg": lambda xs: sum(xs) / len(xs)}[kind](known)


def test_every_column_has_a_statement() -> None:
    assert len(THEMES) >= 10
    for name in THEMES:
        for table in theme(name):
            assert table.create_statement().count(",") == len(table.header) - 1 and table.numbers and table.labels
    with pytest.raises(UnknownNameError, match="theme 'shp': did you mean 'shop'"):
        theme("shp")
    with pytest.raises(UnknownNameError, match="column of city 'people'"):
        theme("shop")[0].column("people")


def _may_hold(tree: Sequence[Any], lowest: int) -> bool:
    """Whether a condition may be true of a row whose partners end at the table ``lowest``."""
    if tree[0] == "is":
        return tree[1] >= lowest or tree[3] == "NULL"
    return (all if tree[0] == "and" else any)(_may_hold(part, lowest) for part in tree[1:])


def test_rows_without_a_partner_are_kept_only_where_the_conditions_let_them_through() -> None:
    """ "Keep flights that belong to no airline" beside "whose airline's alliance is Star" would contradict itself."""
    problem: Any = SQL.problem("sql/join")
    kept = dict.fromkeys(range(1, 6), 0)
    for level in kept:
        for facts in _drawn(problem, level, 40):
            tables, plan = theme(facts["theme"])[facts["start"] : facts["stop"]], facts["plan"]
            rest = problem.ask(plan, tables)["rest"]
            last, stop = len(tables) - 1, min(n for n, _ in plan["pick"])
            lost = [n for n in range(last - 1, stop - 1, -1) if plan["kind"] == "JOIN" or _may_hold(plan["where"], n + 1)]
            assert [n for n in range(last - 1, stop - 1, -1) if f"to no {tables[n].name}" in rest] == lost != []
            assert rest.startswith(" Keep" if plan["kind"] == "LEFT JOIN" else " Leave out") and "that whose" not in rest
            kept[level] += plan["kind"] == "LEFT JOIN"
    assert min(kept[level] for level in (1, 3, 5)) > 5
