"""Queries that cost too much are stopped, and each limit says so by itself."""

import pytest
from sql_tasks import DATABASE, judged, sql_task

from assay.core.errors import ConfigError
from assay.core.score import Fault
from assay.testing import rollout_of
from assay.verify import ScoringPool
from assay.verify.sql import QueryLimits, SqlMatch

GOLD = "SELECT name FROM city"
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
SMALL = QueryLimits(steps=200_000, rows=1_000, size=100_000, cell=20_000, characters=100_000)


def chain(length: int, first: str, more: str, last: str) -> str:
    """A chain of common table expressions, each made of the one before."""
    links = [f"c0 AS ({first})", *(f"c{i} AS ({more.replace('$', f'c{i - 1}')})" for i in range(1, length))]
    return f"WITH {', '.join(links)} {last.replace('$', f'c{length - 1}')}"


RUNAWAY = {
    "recursion": f"{ENDLESS} SELECT count(*) FROM c",
    "recursion into a result": f"{ENDLESS} SELECT x FROM c",
    "recursion that sorts": f"{ENDLESS} SELECT x FROM c ORDER BY x DESC",
    "recursion under a limit": f"{ENDLESS} SELECT x FROM c LIMIT 1000000000",
    "cross join": "SELECT count(*) FROM " + ", ".join(f"trip t{i}" for i in range(16)),
    "cross join into a result": "SELECT * FROM trip a, trip b, trip c, trip d, trip e, trip f, trip g",
    "zeroblob": "SELECT zeroblob(1000000000)",
    "zeroblob in a filter": "SELECT name FROM city WHERE length(zeroblob(1000000000)) > 1",
    "replace": "SELECT replace(hex(zeroblob(5000)), '0', hex(zeroblob(5000)))",
    "group_concat": f"{ENDLESS}, d AS (SELECT x FROM c LIMIT 30000) SELECT length(group_concat(x)) FROM d",
    "doubling": "WITH RECURSIVE c(x) AS (SELECT 'a' UNION ALL SELECT x || x FROM c) SELECT max(length(x)) FROM c",
    "wide result": f"{ENDLESS} SELECT hex(zeroblob(5000)) FROM c LIMIT 100",
    "wide field": "SELECT printf('%1000000000d', 1)",
    "wide field of a character": "SELECT printf('%.*c', 1000000000, 'x')",
    "wide field in bytes": "SELECT printf(CAST('%.*c' AS BLOB), 1000000000, 'x')",
    "wide field of another name": "SELECT format('%-09999s', name) FROM city",
    "many terms": "SELECT 1" + " UNION ALL SELECT 1" * 60,
    "deep expression": "SELECT " + "+".join("1" for _ in range(500)),
    "deep brackets": "SELECT " + "abs(" * 500 + "1" + ")" * 500,
    "wide table": "SELECT " + ", ".join("1" for _ in range(300)),
    "long pattern": "SELECT 'a' LIKE '" + "%a" * 100 + "'",
    "long pattern of columns": "SELECT name FROM city WHERE name GLOB '" + "*[a-z]" * 40 + "'",
    "many tables": "SELECT 1 FROM " + ", ".join(f"city t{i}" for i in range(70)),
    "many arguments": "SELECT max(" + ", ".join("1" for _ in range(200)) + ")",
    "long text": "SELECT 1 --" + "x" * 100_000,
    "many references": chain(18, "SELECT id AS v FROM city", "SELECT 1 AS v FROM $ p, $ q", "SELECT count(*) FROM $"),
    "large program": "SELECT " + ", ".join(["max(id" + ", 1" * 120 + ")"] * 190) + " FROM city",
}


@pytest.mark.parametrize("name", RUNAWAY)
def test_a_runaway_query_is_stopped(name: str) -> None:
    score = judged(GOLD, RUNAWAY[name], verifier=SqlMatch(limits=SMALL))
    assert (score.info["verdict"], score.fault) == ("limit", Fault.POLICY), score.info
    assert set(score.components.values()) == {0.0}
    assert score.info["reason"]


def test_printf_is_otherwise_as_it_is() -> None:
    says = "SELECT printf('%05.1f|%-4s|%d%%', cost, day, city), format('%2d', 7), printf(), printf(NULL), format(5) FROM trip"
    assert (
        judged(
            says,
            "SELECT substr('00000', 1, 5 - length(round(cost, 1))) || round(cost, 1) || '|' || "
            "coalesce(day, '    ') || '|' || city || '%', ' 7', NULL, NULL, '5' FROM trip",
        ).primary
        == 1.0
    )


@pytest.mark.parametrize("text", ["SELECT randomblob(1000000000)", "SELECT hex(randomblob(9)) FROM city"])
def test_chance_is_forbidden(text: str) -> None:
    assert judged(GOLD, text).info["verdict"] == "forbidden"


@pytest.mark.parametrize(
    ("limits", "text", "reason"),
    [
        (QueryLimits(steps=1_000), "SELECT count(*) FROM trip a, trip b, trip c, trip d", "more than 1000 steps"),
        (QueryLimits(seconds=1e-9), "SELECT count(*) FROM trip a, trip b, trip c, trip d", "s of processor time"),
        (QueryLimits(rows=3), "SELECT 1 FROM trip", "more than 3 rows"),
        (QueryLimits(size=30), "SELECT 1, 'abcd' FROM trip", "a result of more than 30 bytes"),
        (QueryLimits(cell=500), "SELECT hex(zeroblob(300))", "string or blob too big"),
        (QueryLimits(characters=25), "SELECT 1, 2, 3, 4, 5, 6, 7", "a query of 26 characters"),
    ],
)
def test_each_limit_by_itself(limits: QueryLimits, text: str, reason: str) -> None:
    score = judged(GOLD, text, verifier=SqlMatch(limits=limits))
    assert score.fault is Fault.POLICY
    assert reason in score.info["reason"]


def test_what_grows_while_it_is_compiled_meets_the_limit_of_memory() -> None:
    # In a process of its own: SQLite keeps the limit for the whole process.
    texts = {
        "substitution": chain(12, "SELECT people AS v FROM city", "SELECT v * v * v * v AS v FROM $", "SELECT v FROM $"),
        "kept rows": f"{ENDLESS} SELECT count(*) FROM (SELECT DISTINCT hex(zeroblob(8000)) || x FROM c)",
        **{f"honest {i}": GOLD for i in range(3)},
    }
    task = sql_task(GOLD)
    with ScoringPool(SqlMatch(limits=QueryLimits(memory=16_000_000, seconds=60.0)), deadline=120.0, workers=1) as pool:
        scores = pool.score([(task, rollout_of(task, text, id=name)) for name, text in texts.items()])
    for name in ("substitution", "kept rows"):
        assert (scores[name].info["verdict"], scores[name].fault) == ("limit", Fault.POLICY)
        assert scores[name].info["reason"].startswith("memory")
    assert scores["honest 2"].primary == 1.0


def test_an_answer_may_take_many_times_the_gold_querys_steps_and_no_more() -> None:
    slow = "SELECT count(*) FROM trip a, trip b, trip c, trip d, trip e"
    wide = slow + ", trip f, trip g, trip h, trip i"
    score = judged(GOLD, wide)
    assert (score.fault, score.info["reason"]) == (Fault.POLICY, "more than 200000 steps")
    assert judged(GOLD, wide, verifier=SqlMatch(limits=QueryLimits(steps=150_000))).info["reason"] == "more than 150000 steps"
    assert judged(slow, f"SELECT * FROM ({wide})").info["reason"] != "more than 200000 steps"  # this gold takes longer itself


@pytest.mark.parametrize("name", ["steps", "times", "seconds", "rows", "size", "cell", "memory", "characters"])
def test_limits_are_positive(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"QueryLimits.{name} is 0; a limit is positive"):
        QueryLimits(**{name: 0})


def test_a_query_within_the_limits_is_not_disturbed() -> None:
    heavy = "SELECT count(*) FROM trip a, trip b, trip c, trip d, trip e WHERE a.cost < b.cost"
    assert judged(heavy, heavy, database=DATABASE).primary == 1.0
