"""Tasks for the tests of the text-to-SQL verifier, written by hand."""

from assay.core.canon import FrozenMap
from assay.core.rollout import Stop
from assay.core.score import Score
from assay.core.task import Task
from assay.testing import rollout_of
from assay.verify.sql import SqlMatch

SCHEMA = {
    "city": [["id", "INTEGER"], ["name", "TEXT"], ["people", "INTEGER"]],
    "trip": [["city", "INTEGER"], ["cost", "REAL"], ["day", "TEXT"]],
}
ONE = {
    "city": [[1, "Ulm", 120], [2, "Bonn", 330], [3, "Kiel", 120]],
    "trip": [[1, 0.1, "2024-01-01"], [1, 0.2, "2024-01-02"], [2, 0.3, None], [3, 5.0, "2024-02-01"], [3, 5.0, "2024-02-01"]],
}
TWO = {
    "city": [[1, "Bonn", 90], [2, "Ulm", 40], [4, None, 700]],
    "trip": [[2, 7.5, "2023-12-31"], [4, 0.7, None], [4, 0.1, "2024-01-05"]],
}
DATABASE = {"schema": SCHEMA, "instances": [ONE, TWO]}


def sql_task(gold: object, database: object = DATABASE) -> Task:
    return Task(
        id="q",
        domain="sql",
        arm="a",
        level=1,
        split="train",
        index=0,
        public=FrozenMap({"prompt": "?"}),
        private=FrozenMap({"answer": gold, "database": database}),
    )


def judged(
    gold: str, text: str, *, database: object = DATABASE, stop: Stop = Stop.DONE, verifier: SqlMatch | None = None
) -> Score:
    task = sql_task(gold, database)
    return (verifier or SqlMatch())(task, rollout_of(task, text, stop=stop))


def verdict(gold: str, text: str, database: object = DATABASE, verifier: SqlMatch | None = None) -> str:
    return judged(gold, text, database=database, verifier=verifier).info["verdict"]
