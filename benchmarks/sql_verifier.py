"""How fast the text-to-SQL verifier judges an honest answer, and how soon it stops a runaway query.

    python benchmarks/sql_verifier.py

Prints JSON: milliseconds of processor time per honest answer, and for each runaway query its verdict and seconds.
"""

import json
from time import process_time

from assay.core import FrozenMap, Task
from assay.testing import rollout_of
from assay.verify.sql import SqlMatch

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
GOLD = "SELECT c.name, SUM(t.cost) FROM city c JOIN trip t ON t.city = c.id GROUP BY c.id"
HONEST = "SELECT name, (SELECT SUM(cost) FROM trip WHERE city = id) FROM city WHERE id IN (SELECT city FROM trip)"
DATABASE = {
    "schema": {
        "city": [["id", "INTEGER"], ["name", "TEXT"], ["people", "INTEGER"]],
        "trip": [["city", "INTEGER"], ["cost", "REAL"]],
    },
    "instances": [
        {"city": [[1, "Ulm", 120], [2, "Bonn", 330]], "trip": [[1, 0.1], [1, 0.2], [2, 0.3]]},
        {"city": [[1, "Bonn", 90], [4, None, 700]], "trip": [[4, 0.7], [4, 0.1]]},
    ],
}


def doubling(more: str, last: str) -> str:
    """A chain of common table expressions, each made of the one before."""
    links = ["c0 AS (SELECT id AS v FROM city)", *(f"c{i} AS ({more.replace('$', f'c{i - 1}')})" for i in range(1, 40))]
    return f"WITH {', '.join(links)} {last}"


RUNAWAY = {
    "endless recursion": f"{ENDLESS} SELECT count(*) FROM c",
    "endless recursion, sorted": f"{ENDLESS} SELECT x FROM c ORDER BY x DESC",
    "cross join of 16 tables": "SELECT count(*) FROM " + ", ".join(f"trip t{i}" for i in range(16)),
    "endless recursion over a date function": f"{ENDLESS} SELECT count(strftime('%Y', x)) FROM c",
    "doubling rows": doubling("SELECT 1 AS v FROM $ p, $ q", "SELECT count(*) FROM c39"),
    "doubling columns": doubling("SELECT v * v AS v FROM $", "SELECT v FROM c39"),
    "zeroblob": "SELECT zeroblob(1000000000)",
    "replace": "SELECT replace(hex(zeroblob(5000)), '0', hex(zeroblob(5000)))",
    "concatenation": "WITH RECURSIVE c(x) AS (SELECT 'a' UNION ALL SELECT x || x FROM c) SELECT max(length(x)) FROM c",
}


def main(answers: int = 300) -> dict[str, object]:
    """The measurements."""
    task = Task(
        id="q",
        domain="sql",
        arm="a",
        level=1,
        split="train",
        index=0,
        public=FrozenMap({"prompt": "?"}),
        private=FrozenMap({"answer": GOLD, "database": DATABASE}),
    )
    verifier, honest = SqlMatch(), rollout_of(task, HONEST)
    assert verifier(task, honest).primary == 1.0
    began = process_time()
    for _ in range(answers):
        verifier(task, honest)
    found: dict[str, object] = {"honest answer, ms": round((process_time() - began) / answers * 1e3, 2)}
    for name, query in RUNAWAY.items():
        began = process_time()
        score = verifier(task, rollout_of(task, query))
        found[name] = [score.info["verdict"], score.info["reason"], round(process_time() - began, 3)]
    return found


if __name__ == "__main__":
    print(json.dumps(main(), indent=1))
