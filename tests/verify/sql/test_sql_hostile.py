"""A thousand hostile answers: whatever the text, a verdict and no exception."""

import random

import pytest
from sql_tasks import judged
from test_sql_limits import RUNAWAY

from assay.core.score import Fault
from assay.sandbox.sql.statement import StatementVerdict
from assay.verify.sql import QueryLimits, SqlMatch

GOLD = "SELECT name, people FROM city WHERE people > 100 ORDER BY people"
PIECES = [
    "SELECT",
    "WITH",
    "RECURSIVE",
    "VALUES",
    "FROM",
    "WHERE",
    "GROUP BY",
    "ORDER BY",
    "LIMIT",
    "HAVING",
    "UNION ALL",
    "EXCEPT",
    "JOIN",
    "NATURAL",
    "ON",
    "USING",
    "OVER",
    "PARTITION BY",
    "CASE",
    "WHEN",
    "END",
    "IN",
    "EXISTS",
    "LIKE",
    "ESCAPE",
    "COLLATE",
    "AS",
    "NOT",
    "NULL",
    "DISTINCT",
    "BETWEEN",
    "CAST",
    "RAISE",
    "INSERT INTO",
    "DELETE FROM",
    "DROP TABLE",
    "ATTACH",
    "PRAGMA",
    "city",
    "trip",
    "name",
    "people",
    "cost",
    "c",
    "*",
    "sqlite_master",
    "pragma_table_list",
    "json_each",
    "dbstat",
    "sqlite_stmt",
    "random()",
    "load_extension('x')",
    "readfile('/etc/passwd')",
    "writefile('x', 1)",
    "fts3_tokenizer('a')",
    "printf('%*d', 9, 1)",
    "zeroblob(1e9)",
    "hex(zeroblob(9999))",
    "date('now')",
    "strftime(x'00', NULL)",
    "json('{')",
    "abs(-9223372036854775808)",
    "1e999",
    "-1",
    "0x7fffffffffffffff",
    "9223372036854775808",
    "1/0",
    "x'00'",
    "x'0",
    "'",
    "''",
    '"',
    "`",
    "[",
    "]",
    "(",
    ")",
    ",",
    ";",
    "--",
    "/*",
    "*/",
    "||",
    "->>",
    "->",
    "<<",
    "?",
    "?1",
    ":a",
    "@b",
    "$c",
    "\0",
    "\ud800",
    "\u2028",
    "\ufeff",
    "é",
    "😀",
    "\\",
    "\n",
    "\t",
    "```",
    "```sql\n",
    "\n```",
    "<answer>",
    "</answer>",
    "<think>",
    "</think>",
]


def hostile(rng: random.Random) -> str:
    kind = rng.randrange(6)
    if kind == 0:
        return " ".join(rng.choices(PIECES, k=rng.randint(1, 25)))
    if kind == 1:
        return "SELECT " + " ".join(rng.choices(PIECES, k=rng.randint(1, 12)))
    if kind == 2:  # a query with one piece too many, or one part cut out
        text = rng.choice([GOLD, *RUNAWAY.values()])[:4000]
        start = rng.randrange(len(text))
        return text[:start] + rng.choice(PIECES) + text[start + rng.randrange(8) :]
    if kind == 3:
        return "".join(map(chr, rng.choices(range(256), k=rng.randint(0, 60))))
    if kind == 4:  # the gold query between junk
        return f"{' '.join(rng.choices(PIECES, k=3))}\n```sql\n/* {rng.choice(PIECES)} */ {GOLD}\n``` {rng.choice(PIECES)}"
    return rng.choice(PIECES) * rng.choice([1, 10, 1000, 20_000])


@pytest.mark.slow
def test_whatever_the_text_there_is_a_verdict() -> None:
    rng = random.Random("sql/hostile")
    small = SqlMatch(limits=QueryLimits(steps=20_000, rows=100, size=10_000, cell=5_000))
    seen: dict[str, int] = {}
    for _ in range(1_000):
        text = hostile(rng)
        score = judged(GOLD, text, verifier=small)
        word = score.info["verdict"]
        seen[word] = seen.get(word, 0) + 1
        assert tuple(score.components) == small.names, text
        assert all(0.0 <= value <= 1.0 for value in score.components.values()), text
        assert (score.fault is Fault.POLICY) is (word == "limit"), text
        assert score.fault in (Fault.POLICY, Fault.NONE), text
        assert score.components["correct"] == float(word == "equal"), text
    assert set(seen) == set(StatementVerdict)  # the texts reach every verdict
