"""What all questions to databases share: schema and rows, the prompt, and wrong queries that the rows must tell apart."""

from __future__ import annotations

import json
import sqlite3
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any, ClassVar

from assay.core.protocols import Verifier
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.verify.sql.match import SqlMatch
from assay_tasks.sql.query import Select, Sets, mutants
from assay_tasks.sql.themes import THEMES, Cell, Table, fill_tables, theme
from assay_tasks.sql.words import constants, joined_words

__all__ = ["Question"]

Rows = dict[str, list[list[Cell]]]

_RULES = (
    "Cells may be NULL (missing). A missing value fulfils no comparison and is left out of sums, means, smallest and largest "
    "values. Rows belong to the row that their reference names, if it names one. Give the columns in the order in which they are "
    "named, and nothing else. Keep equal rows, unless different values are asked for."
)
_SETS = 16
"""Sets of rows that are tried; every other one is larger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Problem):
    """Base of questions that one SQLite query answers.

    A theme gives a chain of tables, each row of which belongs to a row of the table before, or to none. The prompt shows the
    statements that create them and the first rows; the query is judged on two or more sets of rows (`SqlMatch`), of which the
    first is the one shown. Sets are added until each mutant of the query (a condition dropped or turned, another aggregate,
    another join, ...) gives another result on one of them, so that none of them is right by luck.

    Attributes:
        rows: of each table in the first set.
        shown: rows of each table in the prompt.
    """

    domain: str = "sql"
    rows: int = 9
    shown: int = 3

    spans: ClassVar[Mapping[int, tuple[int, int]]]
    """For each level the least number of tables that are asked about, and how many there may be."""

    @abstractmethod
    def plan(self, level: int, tables: Sequence[Table], rng: Random) -> dict[str, Any]:
        """What is asked, as plain JSON values, about the last table of the chain."""
        ...

    @abstractmethod
    def query(self, plan: Mapping[str, Any], tables: Sequence[Table]) -> Select | Sets:
        """The gold query."""
        ...

    @abstractmethod
    def ask(self, plan: Mapping[str, Any], tables: Sequence[Table]) -> Mapping[str, str]:
        """The fields of the templates."""
        ...

    def often(self, plan: Mapping[str, Any], tables: Sequence[Table]) -> Mapping[tuple[str, str], Sequence[Cell]]:
        """Values that cells of a column (table, column) shall often have, besides those that conditions compare with."""
        return {}

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A theme, a stretch of its chain, and what is asked about it."""
        name = rng.choice(THEMES)
        least, most = self.spans[level]
        length = rng.randint(least, most)
        start = rng.randint(0, 4 - length)
        tables = _chain(name, start, start + length)
        return {"theme": name, "start": start, "stop": start + length, "plan": self.plan(level, tables, rng)}

    def solve(self, facts: Facts) -> Solution:
        """The query of the plan, and sets of rows that tell it from its mutants."""
        tables = _chain(facts["theme"], facts["start"], facts["stop"])
        query = self.query(facts["plan"], tables)
        text = query.sql()
        database = {
            "schema": _created_date(facts["theme"], facts["start"], facts["stop"]),
            "instances": self._instances(facts, query)[0],
        }
        used = [t.name for t in tables if f"{t.name}." in text]
        steps = f"The query needs {'the table' if len(used) == 1 else 'the tables'} {joined_words(used)}."
        return Solution(answer=text, gold={"query": text, "database": database}, steps=steps, effort=len(text.split()))

    def survivors(self, facts: Facts) -> list[str]:
        """Mutants of the gold query that no set of rows tells from it: none, but for a few questions in a hundred."""
        query = self.query(facts["plan"], _chain(facts["theme"], facts["start"], facts["stop"]))
        return self._instances(facts, query)[1]

    def _instances(self, facts: Facts, query: Select | Sets) -> tuple[list[Rows], list[str]]:
        """Two or more sets of rows, the first of them that of the prompt, and the mutants that none of them tells."""
        tables = _chain(facts["theme"], facts["start"], facts["stop"])
        text, ordered = query.sql(), isinstance(query, Select) and bool(query.order)
        alive = list(dict.fromkeys(m.sql() for m in mutants(query)))
        kept: list[Rows] = []
        for number in range(_SETS):
            rows = self._fill_rows(facts, tables, number)
            with _open_database(tables, rows) as connection:
                right = _result(connection, text, ordered)
                left = [other for other in alive if _result(connection, other, ordered) == right]
            if len(kept) < 2 or len(left) < len(alive):
                kept.append(rows)
            alive = left
            if not alive and len(kept) >= 2:
                break
        return kept, alive

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Those of the plan."""
        return self.ask(facts["plan"], _chain(facts["theme"], facts["start"], facts["stop"]))

    def prompt(self, facts: Facts, variant: int, form: Form) -> str:
        """Tables and sample rows, the question, the rules; the query is asked for in a fence, whatever the form."""
        tables = _chain(facts["theme"], facts["start"], facts["stop"])
        rows = self._fill_rows(facts, tables, 0)
        blocks = ["A SQLite database has these tables; of each the first rows are shown."]
        for table in tables:
            lines = [" | ".join("NULL" if c is None else str(c) for c in row) for row in rows[table.name][: self.shown]]
            header = f"-- {' | '.join(table.header)}"
            blocks.append("\n".join([table.create_statement(), header, *(f"-- {line}" for line in lines)]))
        return "\n\n".join(
            [
                *blocks,
                self.word(facts, variant),
                f"{_RULES}\nWrite one SQLite query that answers this for any rows, in a block fenced with ```sql and ```.",
            ]
        )

    def format_solution(self, solution: Solution, form: Form) -> str:
        """The query in its fence."""
        fenced = f"```sql\n{solution.answer}\n```"
        return fenced if form is Form.PLAIN else f"{solution.steps}\n{fenced}"

    def verifier(self, form: Form) -> Verifier:
        """By results on both sets of rows."""
        return SqlMatch()

    def _fill_rows(self, facts: Mapping[str, Any], tables: Sequence[Table], instance: int) -> Rows:
        """A set of rows: a function of the facts and its number."""
        near = {place: list(values) for place, values in self.often(facts["plan"], tables).items()}
        for place, value in constants(facts["plan"], tables):
            near.setdefault(place, []).append(value)
        rng = Random(json.dumps([facts["theme"], instance, facts["plan"]], sort_keys=True))
        return fill_tables(tables, [self.rows + (instance % 2) * (2 + instance) + rng.randrange(2) for _ in tables], near, rng)


@cache
def _chain(name: str, start: int, stop: int) -> tuple[Table, ...]:
    tables = theme(name)[start:stop]
    return (replace(tables[0], parent=""), *tables[1:])


@cache
def _created_date(name: str, start: int, stop: int) -> str:
    return "\n".join(t.create_statement() for t in _chain(name, start, stop))


def _open_database(tables: Sequence[Table], rows: Rows) -> closing[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for table in tables:
        connection.execute(f"CREATE TABLE {table.name} ({', '.join(table.header)})")
        connection.executemany(f"INSERT INTO {table.name} VALUES ({','.join('?' * len(table.header))})", rows[table.name])
    return closing(connection)


def _result(connection: sqlite3.Connection, text: str, ordered: bool) -> list[Any]:
    rows = connection.execute(text).fetchall()
    return rows if ordered else sorted(rows, key=repr)
