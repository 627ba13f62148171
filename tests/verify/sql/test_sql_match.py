"""The text-to-SQL verifier on cases whose verdict is known by hand."""

import pytest
from sql_tasks import DATABASE, ONE, SCHEMA, TWO, judged, sql_task, verdict

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError
from assay.core.rollout import Stop
from assay.core.score import Fault
from assay.core.task import Task
from assay.testing import check_verifier, rollout_of
from assay.verify import ScoringPool, Together, judge
from assay.verify.sql import QueryLimits, SqlMatch

NAMES = "SELECT name FROM city WHERE people > 100"
SUMS = "SELECT c.name, SUM(t.cost) FROM city c JOIN trip t ON t.city = c.id GROUP BY c.id"


@pytest.mark.parametrize(
    ("gold", "text"),
    [
        (NAMES, "select  c.name AS who\nfrom city c where 100 < c.people -- those"),
        (NAMES, "WITH big AS (SELECT * FROM city WHERE people >= 101) SELECT name FROM big;"),
        (NAMES, "SELECT name FROM city WHERE people > 100 ORDER BY name DESC"),  # an order that was not asked for is no error
        ("SELECT count(*) FROM trip", "SELECT count(*) * 1.0 FROM trip"),  # 5 == 5.0
        ("SELECT day FROM trip", "SELECT nullif(day, '') FROM trip"),  # NULL equals NULL
        (SUMS, "SELECT name, (SELECT SUM(cost) FROM trip WHERE city = id) FROM city WHERE id IN (SELECT city FROM trip)"),
        ("SELECT 0.3", "SELECT 0.1 + 0.2"),
        ("SELECT name FROM city ORDER BY people", "SELECT name FROM city ORDER BY people, id DESC"),  # Ulm and Kiel tie
        ("VALUES (1), (2)", "SELECT 2 UNION SELECT 1"),
    ],
)
def test_equal(gold: str, text: str) -> None:
    score = judged(gold, text)
    assert (score.info["verdict"], score.components["correct"], score.fault) == ("equal", 1.0, Fault.NONE)


@pytest.mark.parametrize(
    ("gold", "text"),
    [
        (NAMES, "SELECT name FROM city WHERE people >= 90"),  # right on the first instance by luck
        (NAMES, "SELECT name FROM city WHERE id < 4"),  # the same
        (NAMES, "SELECT 'Ulm' UNION ALL SELECT 'Bonn' UNION ALL SELECT 'Kiel'"),  # the first instance's result by heart
        ("SELECT people FROM city", "SELECT DISTINCT people FROM city"),  # duplicates count
        ("SELECT name, people FROM city", "SELECT people, name FROM city"),
        ("SELECT name FROM city", "SELECT name, id FROM city"),
        ("SELECT count(*) FROM trip", "SELECT '' || count(*) FROM trip"),  # text is no number
        ("SELECT day FROM trip", "SELECT ifnull(day, '') FROM trip"),  # NULL is no empty text
        ("SELECT name FROM city ORDER BY people", "SELECT name FROM city ORDER BY people DESC"),
        ("SELECT id FROM city ORDER BY id", "SELECT id FROM city"),  # comes in order by luck
        ("SELECT 1000000000000001", "SELECT 1000000000000000"),  # integers have no tolerance
        ("SELECT name FROM city WHERE 0", "SELECT name, id FROM city WHERE 0"),
    ],
)
def test_different(gold: str, text: str) -> None:
    score = judged(gold, text)
    assert (score.info["verdict"], score.components["correct"], score.components["syntax"]) == ("different", 0.0, 1.0)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("SELECT nme FROM city", "syntax"),
        ("SELECT name FROM", "syntax"),
        ("SELECT name FROM city WHERE id = ?", "syntax"),
        ("SELECT abs(-9223372036854775807 - 1)", "syntax"),  # fails while it runs
        ("SELECT '\0'", "syntax"),
        ("SELECT '\ud800'", "syntax"),
        ("SELECT 1; SELECT 2", "forbidden"),
        ("DELETE FROM city", "forbidden"),
        ("EXPLAIN SELECT 1", "forbidden"),
        ("WITH x AS (SELECT 1) INSERT INTO city SELECT * FROM x", "forbidden"),
        ("SELECT random()", "forbidden"),
        ("SELECT sql FROM sqlite_master", "forbidden"),
        ("SELECT * FROM pragma_table_info('city')", "forbidden"),
        ("SELECT count(*) FROM pragma_table_info('city')", "forbidden"),
        ("SELECT load_extension('x')", "forbidden"),
        ("I do not know.", "unparsed"),
        ("", "unparsed"),
        (";;", "unparsed"),
        ("-- SELECT 1", "unparsed"),
        ("'SELECT'", "unparsed"),
    ],
)
def test_no_result(text: str, word: str) -> None:
    score = judged(NAMES, text)
    assert (score.info["verdict"], score.primary, score.components["syntax"], score.fault) == (word, 0.0, 0.0, Fault.NONE)
    assert score.info["reason"]
    assert word == "syntax" or not any(score.components.values())


@pytest.mark.parametrize("stop", [Stop.LENGTH, Stop.PARTIAL])
def test_an_answer_that_was_cut_off_is_none(stop: Stop) -> None:
    score = judged(NAMES, NAMES, stop=stop)
    assert (score.info["verdict"], set(score.components.values())) == ("unparsed", {0.0})


def test_a_cell_that_is_no_text_is_compared_by_its_bytes() -> None:
    assert verdict("SELECT CAST(x'ff' AS TEXT)", "SELECT CAST(x'ff' AS TEXT)") == "equal"
    assert verdict("SELECT CAST(x'ff' AS TEXT)", "SELECT x'ff'") == "different"


@pytest.mark.parametrize(
    ("says", "is_"),
    [
        ("current_date", "'2024-02-29'"),
        ("current_time", "'13:14:15'"),
        ("current_timestamp", "'2024-02-29 13:14:15'"),
        ("datetime()", "'2024-02-29 13:14:15'"),
        ("date('NOW', '+1 day')", "'2024-03-01'"),
        ("time(x'6e6f77')", "'13:14:15'"),  # SQLite reads the bytes as text
        ("time('now' || char(0) || 'x')", "'13:14:15'"),
        ("date(' now')", "NULL"),
        ("strftime('%H')", "'13'"),
        ("strftime('%s', 'now') - strftime('%s', '2024-02-29')", "47655"),
        ("strftime('%Y', '1999-05-05')", "'1999'"),
        ("strftime()", "NULL"),
        ("julianday('now') - julianday('2024-02-29 12:14:15')", "1.0 / 24"),
        ("date(2451545)", "'2000-01-01'"),
    ],
)
def test_the_present_moment_stands_still(says: str, is_: str) -> None:
    close = SqlMatch(tolerance=1e-6)
    assert verdict(f"SELECT {is_}", f"SELECT {says}", {**DATABASE, "now": "2024-02-29 13:14:15"}, close) == "equal"


def test_the_present_moment_without_a_word_about_it() -> None:
    assert verdict("SELECT current_date, strftime('%Y', 'now')", "SELECT '2000-01-01', '2000'") == "equal"
    assert verdict("SELECT strftime('%d', day) FROM trip", "SELECT substr(day, 9) FROM trip") == "equal"


def test_a_reason_is_short() -> None:
    assert len(judged(NAMES, "SELECT " + "x" * 9_000).info["reason"]) == 300


def test_numbers_without_tolerance() -> None:
    exact = SqlMatch(tolerance=0.0)
    assert verdict("SELECT 0.3", "SELECT 0.1 + 0.2", verifier=exact) == "different"
    assert verdict("SELECT 1", "SELECT 1.0", verifier=exact) == "equal"
    assert verdict("SELECT 9007199254740993", "SELECT 9007199254740992.0", verifier=exact) == "different"  # above 2**53


def test_columns_in_any_order() -> None:
    free = SqlMatch(any_columns=True)
    assert verdict("SELECT name, people FROM city", "SELECT people, name FROM city", verifier=free) == "equal"
    assert verdict("SELECT name, people FROM city", "SELECT people, people FROM city", verifier=free) == "different"


def test_an_empty_result_everywhere_is_vacuous() -> None:
    score = judged("SELECT name FROM city WHERE people < 0", "SELECT name FROM city WHERE people > 10000")
    assert (score.info["verdict"], score.info["vacuous"]) == ("equal", True)
    assert "vacuous" not in judged(NAMES, "SELECT name FROM city WHERE people < 0").info
    assert "vacuous" not in judged("SELECT name FROM city WHERE people > 600", "SELECT name FROM city WHERE people > 650").info


def test_a_gold_that_does_not_settle_its_rows_is_ambiguous() -> None:
    gold = "SELECT name FROM city ORDER BY people DESC LIMIT 2"  # Ulm and Kiel tie for the second place
    for text in (gold, f"SELECT name FROM ({gold})", "SELECT name FROM city ORDER BY people DESC, id LIMIT 2"):
        assert judged(gold, text).info == {"verdict": "equal", "ambiguous": True}
    assert judged(gold, "SELECT name FROM city ORDER BY people LIMIT 2").info == {"verdict": "different", "ambiguous": True}


def test_parts_can_be_left_out() -> None:
    few = SqlMatch(parts=("correct", "syntax"))
    assert few.names == ("correct", "syntax")
    assert dict(judged(NAMES, NAMES, verifier=few).components) == {"correct": 1.0, "syntax": 1.0}
    assert dict(judged(NAMES, "SELECT", verifier=few).components) == {"correct": 0.0, "syntax": 0.0}
    assert not Together((few,)).trusted


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"parts": ("syntax",)}, "give 'correct' and any others"),
        ({"parts": ("correct", "speed")}, "give 'correct' and any others"),
        ({"parts": ("correct", "correct")}, "each once"),
        ({"tolerance": 0.5}, r"tolerance is 0.5; it must be in \[0, 0.01\)"),
        ({"gram": 0}, "gram is 0"),
    ],
)
def test_settings_are_checked(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SqlMatch(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("gold", "database", "message"),
    [
        ("SELECT 1; SELECT 2", DATABASE, "task 'q': the gold query .* is refused, forbidden: more than one"),
        ("SELECT x FROM city", DATABASE, "task 'q': the gold query fails on instance 0, syntax: no such column: x"),
        ("SELECT random()", DATABASE, "fails on instance 0, forbidden: calls random"),
        ("SELECT 1", {"schema": SCHEMA, "instances": [ONE]}, "task 'q': 1 instance; give two or more"),
        (
            "SELECT 1",
            {"schema": SCHEMA, "instances": [ONE, ["x"]]},
            "task 'q': instance 1 .* cannot be built: an instance is a tuple",
        ),
        ("SELECT 1", None, "task 'q': the database is None; give"),
        ({"query": "SELECT 1"}, DATABASE, r"task 'q': the answer has the keys \['query'\]; give 'query' and 'database'"),
        ({"query": "SELECT", "database": DATABASE}, None, "the gold query fails on instance 0, syntax"),
    ],
)
def test_a_bad_task_is_an_error_and_no_verdict(gold: object, database: object, message: str) -> None:
    task = sql_task(gold, database)
    with pytest.raises(DataError, match=message):
        SqlMatch()(task, rollout_of(task, "SELECT 1"))
    assert judge(SqlMatch(), task, rollout_of(task, "SELECT 1")).fault is Fault.VERIFIER


def test_a_task_without_a_gold_is_an_error() -> None:
    task = Task(
        id="q",
        domain="sql",
        arm="a",
        level=1,
        split="train",
        index=0,
        public=FrozenMap({"prompt": "?"}),
        private=FrozenMap({"database": DATABASE}),
    )
    with pytest.raises(DataError, match="'q' has no private 'answer'"):
        SqlMatch()(task, rollout_of(task, "SELECT 1"))


def test_the_contract_of_verifiers() -> None:
    task = sql_task(NAMES)
    cases = [
        (NAMES, 1.0),
        (f"```sql\n{NAMES}\n```", 1.0),
        ("SELECT 1", 0.0),
        ("?", 0.0),
        ("SELECT x", 0.0),
        ("DROP TABLE city", 0.0),
    ]
    check_verifier(SqlMatch(), [(task, rollout_of(task, text), value) for text, value in cases])


def test_query_and_database_may_stand_in_the_answer() -> None:
    task = sql_task({"query": NAMES, "database": DATABASE}, None)
    assert SqlMatch()(task, rollout_of(task, NAMES)).primary == 1.0
    assert SqlMatch()(task, rollout_of(task, "SELECT name FROM city")).primary == 0.0


def test_databases_as_scripts() -> None:
    database = {
        "schema": "CREATE TABLE t (a); CREATE VIEW v AS SELECT a + 1 AS b FROM t;",
        "instances": ["INSERT INTO t VALUES (1), (2)", {"t": [[5]]}],
    }
    score = judged("SELECT b FROM v", "SELECT a + 1 FROM t", database=database)
    assert score.primary == 1.0
    assert score.components["schema_linking"] == 0.5  # t, t.a of t, t.a, v, v.b


def test_in_the_pool_a_limit_is_the_answers_fault_and_scores_the_floor() -> None:
    task = sql_task(NAMES)
    bomb = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
    texts = {"good": f"```sql\n{NAMES}\n```", "bomb": bomb}
    with ScoringPool(SqlMatch(limits=QueryLimits(steps=100_000))) as pool:
        scores = pool.score([(task, rollout_of(task, text, id=name)) for name, text in texts.items()])
    assert scores["good"].primary == 1.0
    assert (scores["bomb"].fault, scores["bomb"].info["verdict"]) == (Fault.POLICY, "limit")
    assert set(scores["bomb"].components) == set(scores["good"].components) == set(SqlMatch().names)
    assert set(scores["bomb"].components.values()) == {0.0}


def test_both_instances_are_needed() -> None:
    lucky = "SELECT name FROM city WHERE people >= 90"
    assert judged(NAMES, lucky).primary == 0.0
    like_the_first = {"schema": SCHEMA, "instances": [ONE, {**ONE, "trip": []}]}
    assert judged(NAMES, lucky, database=like_the_first).primary == 1.0
    assert judged(NAMES, lucky, database={"schema": SCHEMA, "instances": [TWO, ONE]}).primary == 0.0
