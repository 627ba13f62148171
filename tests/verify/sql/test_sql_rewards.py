"""The partial rewards of Reasoning-SQL and Think2SQL, on their sheets' numbers."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from sql_tasks import judged, sql_task

from assay.core.errors import ConfigError
from assay.testing import rollout_of
from assay.verify.sql import SqlMatch, Think2Sql

GOLD = "SELECT name FROM city WHERE people > 100"
REASONING = {
    "correct": 3.0 + 2.0,
    "syntax": 1.0,
    "schema_linking": 1.0,
    "ngram": 1.0,
    "format": 1.0,
}  # the judge's 2 with execution


def total(components: dict[str, float], weights: dict[str, float]) -> float:
    return sum(weight * components[name] for name, weight in weights.items())


def components(text: str, gold: str = GOLD, verifier: SqlMatch | None = None) -> dict[str, float]:
    return dict(judged(gold, text, verifier=verifier).components)


def fenced(query: str) -> str:
    return f"<think>which column?</think>\n```sql\n{query}\n```"


@pytest.mark.parametrize("gold", [GOLD, "SELECT count(*) FROM trip", "SELECT 1", "SELECT * FROM city ORDER BY people LIMIT 2"])
def test_the_gold_query_has_all(gold: str) -> None:
    found = components(fenced(gold), gold)
    assert set(found.values()) == {1.0}
    assert total(found, REASONING) == 9.0


@pytest.mark.parametrize(
    "query",
    [
        "select   NAME from City\n where PEOPLE > 100",
        "SELECT c.name AS n FROM city AS c WHERE c.people > 100",
        'SELECT "name" FROM (SELECT name, people FROM city) WHERE people > 100',
        "WITH big(who, many) AS (SELECT name, people FROM city) SELECT who FROM big WHERE many > 100",
    ],
)
def test_another_form_keeps_execution_and_schema(query: str) -> None:
    found = components(query)
    assert (found["correct"], found["syntax"], found["schema_linking"], found["cell_precision"], found["format"]) == (
        1,
        1,
        1,
        1,
        0,
    )


def test_white_space_case_and_comments_keep_the_ngrams() -> None:
    assert components("select /* all */ NAME\nfrom\tcity -- of them\nwhere people>100;")["ngram"] == 1.0
    assert components("SELECT c.name FROM city c WHERE c.people > 100")["ngram"] < 1.0


@pytest.mark.parametrize(
    ("query", "linking"),
    [
        ("SELECT name FROM city", 2 / 3),  # city, city.name of city, city.name, city.people
        ("SELECT * FROM city", 3 / 4),
        ("SELECT count(*) FROM city", 1 / 3),
        ("SELECT cost FROM trip", 0.0),
        ("SELECT name FROM city, trip WHERE people > 100", 3 / 4),
        ("SELECT 1", 0.0),
        ("WITH trip AS (SELECT name FROM city WHERE people > 100) SELECT name FROM trip", 1.0),  # a name of the query's own
        ("SELECT nme FROM city", 0.0),  # it does not run
    ],
)
def test_schema_linking(query: str, linking: float) -> None:
    assert components(query)["schema_linking"] == pytest.approx(linking, abs=1e-12)


def test_ngrams() -> None:
    # 7 bigrams in the gold; the query shares select name, name from, from city and has 3
    assert components("SELECT name FROM city")["ngram"] == pytest.approx(3 / 7)
    assert components("SELECT name FROM city", verifier=SqlMatch(gram=1))["ngram"] == pytest.approx(4 / 8)
    assert components("SELECT name FROM", verifier=SqlMatch(gram=1))["ngram"] == pytest.approx(3 / 8)  # also if it does not run


QUERIES = [
    GOLD,
    "SELECT c.name FROM city c WHERE NOT c.people <= 100",
    "SELECT trim(n) FROM (SELECT name AS n, people AS p FROM city) WHERE p BETWEEN 101 AND 1e9",
    "SELECT name FROM city WHERE people > 89",
    "SELECT name FROM city WHERE people > 100 LIMIT 1",
    "SELECT people FROM city WHERE people > 100",
    "SELECT name FROM city WHERE people >",
    "DROP TABLE city",
    "no idea",
]


def test_no_wrong_query_outscores_a_right_one() -> None:
    found = [components(form(query)) for query, form in product(QUERIES, (fenced, str))]
    right = [total(c, REASONING) for c in found if c["correct"] == 1.0]
    wrong = [total(c, REASONING) for c in found if c["correct"] == 0.0]
    assert len(right) == 6
    assert min(right) > max(wrong)
    # Whatever the query: execution brings 5 and syntax 1, and a wrong query gets 1 for each of four.
    assert min(right) >= 6.0 > 4.0 >= max(wrong)


def test_qatch_of_half_a_result() -> None:
    # one of two rows on each instance: everything given is wanted, half of what is wanted is given
    gold = "SELECT id FROM city WHERE id < 3"
    found = components(fenced("SELECT id FROM city WHERE id < 2"), gold)
    parts = [found[name] for name in ("cell_precision", "cell_recall", "cardinality")]
    assert parts == [1.0, 0.5, 0.5]


def thought(query: str) -> str:
    return f"<think>which rows?</think><answer>{query}</answer>"


def test_think2sql_weighs_half_a_result_the_form_and_the_tags() -> None:
    """The sheet's number: QATCH (1, .5, .5), form and tags right, is .85 * 2/3 + .10 + .05 = .7167."""
    task = sql_task("SELECT id FROM city WHERE id < 3")
    found = Think2Sql()(task, rollout_of(task, thought("SELECT id FROM city WHERE id < 2"))).components
    assert dict(found) == pytest.approx({"reward": 0.85 * 2 / 3 + 0.15, "correct": 0, "result": 2 / 3, "format": 1, "tags": 1})
    right = Think2Sql()(task, rollout_of(task, thought("SELECT id FROM city WHERE id <= 2"))).components
    assert (right["reward"], right["correct"]) == pytest.approx((1.0, 1.0))


def test_think2sql_is_learned_from_its_weighted_sum() -> None:
    judge, task = Think2Sql(), sql_task("SELECT id FROM city WHERE id < 3")
    assert judge.weighted_sum and judge.floor == dict.fromkeys(judge.names, 0.0)
    assert tuple(judge(task, rollout_of(task, thought("SELECT id FROM city"))).components) == judge.names
    other = replace(SqlMatch(), parts=("correct", "cell_precision", "cell_recall", "cardinality", "syntax"))
    assert judge.with_members((other, *judge.members[1:])) == Think2Sql(sql=other)


@pytest.mark.parametrize(
    ("weights", "graded", "reward"),
    [((0.85, 0.10, 0.05), False, 0.15), ((0.85, 0.15, 0.0), False, 0.15), ((0.95, 0.05, 0.0), True, 0.95 * 2 / 3 + 0.05)],
)
def test_think2sql_has_the_released_settings(weights: tuple[float, float, float], graded: bool, reward: float) -> None:
    task = sql_task("SELECT id FROM city WHERE id < 3")
    judge = Think2Sql(weights=weights, graded=graded)
    assert judge(task, rollout_of(task, thought("SELECT id FROM city WHERE id < 2"))).components["reward"] == pytest.approx(
        reward
    )


def test_a_form_that_is_nearly_right_keeps_its_tags() -> None:
    task = sql_task(GOLD)
    found = Think2Sql()(task, rollout_of(task, f"<think>which rows?\n<answer>{GOLD}</answer>")).components
    assert (found["correct"], found["format"], found["tags"]) == (1.0, 0.0, 0.75)
    assert found["reward"] == pytest.approx(0.85 + 0.05 * 0.75)


@pytest.mark.parametrize(
    "wrong", [{"weights": (1.0, -0.1, 0.1)}, {"weights": (0.0, 0.0, 0.0)}, {"sql": SqlMatch(parts=("correct",))}, {"tags": ()}]
)
def test_think2sql_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"Think2Sql|tags"):
        Think2Sql(**wrong)


def test_qatch_is_a_mean_over_instances() -> None:
    # instance 0: 3 of 3 rows; instance 1: the gold has none, the answer one
    found = components("SELECT name FROM city WHERE people > 100", "SELECT name FROM city WHERE people BETWEEN 101 AND 600")
    assert [found[name] for name in ("correct", "cell_precision", "cell_recall", "cardinality")] == [0.0, 0.5, 0.5, 0.5]
