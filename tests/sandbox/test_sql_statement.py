"""Reading a query out of an answer."""

import pytest

from assay.sandbox.sql.statement import Refusal, StatementVerdict, extract, read


@pytest.mark.parametrize(
    ("text", "query", "marked"),
    [
        ("```sql\nSELECT 1\n```", "SELECT 1", True),
        ("so\n```SQLite \n SELECT 1;\n```\nis it", "SELECT 1;", True),
        ("```sql\nSELECT 1\n```\nno:\n```sql\nSELECT 2\n```", "SELECT 2", False),  # the last one counts
        ("<answer>\nSELECT 1</answer>", "SELECT 1", True),
        ("<answer>SELECT 1</answer> <answer>SELECT 2</answer>", "SELECT 2", False),
        ("<answer>SELECT 1</answer></answer>", "SELECT 1</answer>", False),
        ("<answer>```sql\nSELECT 1\n```</answer>", "SELECT 1", True),
        ("<answer>\n```\nSELECT 1\n```\n</answer>", "SELECT 1", True),
        ("```\nSELECT 0\n```\n<answer>SELECT 1</answer>", "SELECT 1", True),
        ("```\nSELECT 1\n```", "SELECT 1", True),
        ("```python\nprint(1)\n```", "```python\nprint(1)\n```", False),
        ("```sql SELECT 1```", "```sql SELECT 1```", False),
        ("```sql\nSELECT 1", "```sql\nSELECT 1", False),  # never closed
        ("</answer>SELECT 1<answer>", "</answer>SELECT 1<answer>", False),
        ("<think>```sql\nSELECT 0\n```</think> SELECT 1", "SELECT 1", False),  # a draft is no answer
        ("  SELECT 1 ", "SELECT 1", False),
        ("", "", False),
    ],
)
def test_extract(text: str, query: str, marked: bool) -> None:
    assert extract(text) == (query, marked)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ('SELECT "A b", [C], `d` FROM T', ("select", "a b", ",", "c", ",", "d", "from", "t")),
        ("SELECT 'It''s' || x'0A' -- note", ("select", "'It''s'", "||", "x", "'0A'")),
        ("/* a; b */ SELECT/**/1.5e3,.5<>2;;", ("select", "1.5e3", ",", ".5", "<>", "2")),
        ("SELECT a->>'$.b' FROM t WHERE ü!=1", ("select", "a", "->>", "'$.b'", "from", "t", "where", "ü", "!=", "1")),
        ("SELECT 'open", ("select", "'open")),
        ("SELECT 1 /* open", ("select", "1")),
        ("SELECT \";\", '(', [)]", ("select", ";", ",", "'('", ",", ")")),
    ],
)
def test_tokens(text: str, tokens: tuple[str, ...]) -> None:
    assert read(text, 100).tokens == tokens


@pytest.mark.parametrize(
    ("text", "ordered"),
    [
        ("SELECT a FROM t ORDER BY a", True),
        ("SELECT a FROM t UNION SELECT b FROM u order\nby 1 LIMIT 2", True),
        ("WITH x AS (SELECT a FROM t ORDER BY a) SELECT * FROM x", False),
        ("SELECT * FROM (SELECT a FROM t ORDER BY a LIMIT 3)", False),
        ("SELECT rank() OVER (ORDER BY a) FROM t LIMIT 2", False),
        ("SELECT 'ORDER BY a' FROM t -- ORDER BY a", False),
        ('SELECT "order" by FROM t', False),
        ("SELECT a", False),
    ],
)
def test_ordered(text: str, ordered: bool) -> None:
    assert read(text, 100).ordered is ordered


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("SELECT a FROM t ORDER BY a", "SELECT a FROM t ORDER BY a, 1 ASC, 2 ASC"),
        ("SELECT a FROM t ORDER BY a -- up\nLIMIT 1;", "SELECT a FROM t ORDER BY a, 1 ASC, 2 ASC -- up\nLIMIT 1"),
        (
            "SELECT a FROM t ORDER BY (SELECT 1 LIMIT 1) LIMIT 2",
            "SELECT a FROM t ORDER BY (SELECT 1 LIMIT 1), 1 ASC, 2 ASC LIMIT 2",
        ),
        ("SELECT a FROM t LIMIT 2", "SELECT a FROM t LIMIT 2"),
    ],
)
def test_ties_are_broken_where_the_order_is(text: str, broken: str) -> None:
    assert read(text, 100).breaking_ties(2, "ASC") == broken


def test_ties_of_many_columns() -> None:
    assert read("SELECT 1 ORDER BY 1", 100).breaking_ties(200, "DESC").endswith(", 64 DESC")


@pytest.mark.parametrize(
    ("text", "verdict", "reason"),
    [
        ("SELECT 1" + " " * 93, StatementVerdict.LIMIT, "a query of 101 characters; at most 100"),
        ("SELECT 1; ; SELECT 2", StatementVerdict.FORBIDDEN, "more than one statement"),
        ("vacuum into 'x'", StatementVerdict.FORBIDDEN, "begins with VACUUM"),
        ("(SELECT 1)", StatementVerdict.UNPARSED, "begins with none of SELECT"),
        ('"select" 1', StatementVerdict.UNPARSED, "begins with none of SELECT"),
        (" ; ", StatementVerdict.UNPARSED, "begins with none of SELECT"),
    ],
)
def test_refused(text: str, verdict: StatementVerdict, reason: str) -> None:
    with pytest.raises(Refusal, match=reason) as caught:
        read(text, 100)
    assert caught.value.verdict is verdict


def test_grams() -> None:
    statement = read("SELECT a, a", 100)
    assert statement.grams(2) == {("select", "a"), ("a", ","), (",", "a")}
    assert statement.grams(9) == {("select", "a", ",", "a")}


def nested(depth: int) -> str:
    """Selects in one another."""
    return "SELECT 1" if depth == 0 else f"SELECT v FROM ({nested(depth - 1)})"


def linked(links: int, more: str = "SELECT 1 FROM $ p, $ q") -> str:
    """Table expressions, each made of the one before."""
    made = ", ".join(f"c{i} AS ({more.replace('$', f'c{i - 1}')})" for i in range(1, links))
    return f"WITH c0 AS (SELECT 1), {made} SELECT * FROM c{links - 1}"


RECURSIVE = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c"
FORMS = (
    linked(8)
    .replace("c3 AS (", "c3(a, b) AS MATERIALIZED (")
    .replace("c4 AS (", "C4 AS NOT MATERIALIZED (")
    .replace("c5 ", '"c5" ')
)


@pytest.mark.parametrize(
    "text",
    [
        linked(8),
        FORMS,
        linked(15, "SELECT count(v) AS v FROM $"),
        nested(15),
        " UNION ALL ".join(["SELECT 1"] * 400),
        f"{RECURSIVE} WHERE x IN (WITH d AS (SELECT 1) SELECT * FROM d)",
        "SELECT 1) )",
    ],
)
def test_table_expressions_that_a_person_writes(text: str) -> None:
    assert read(text, 10_000).text == text


@pytest.mark.parametrize(
    "text",
    [linked(9), linked(40), linked(18, "SELECT v * v FROM $"), nested(17), FORMS.replace("SELECT *", "SELECT * FROM c6, c7,")],
)
def test_table_expressions_that_unfold_are_refused(text: str) -> None:
    with pytest.raises(Refusal, match="table expressions in one another: more than 500 selects, or 16 deep") as caught:
        read(text, 10_000)
    assert caught.value.verdict is StatementVerdict.LIMIT
