"""Questions to several tables, and to series over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any, ClassVar

from assay.core.protocols import Verifier
from assay.tasks.problem import Facts, Form, Solution
from assay.verify.text.number import Numeric, Percent
from assay_tasks.tables.questions import ROUNDED, ROWS, TableQuestion, aggregate, decimal
from assay_tasks.tables.sheet import LAYOUTS, Sheet, chain, conditions_text, drawn_condition, holds, sheet_rows

__all__ = ["Hops", "Trend"]

_KINDS = {"sum": "sum", "mean": "mean", "max": "largest", "min": "smallest", "count": "number"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hops(TableQuestion):
    """An aggregate of rows whose parent, in another table, fulfils a condition. The level is rows; above 3 over three tables.

    The table that is summed up has 4 to 38 rows, those above it half as many.

    >>> cities = ["cities", ["name", "area"], [["Ulm", 3], ["Bonn", 4]]]
    >>> tables = [cities, ["shops", ["name", "size", "city"], [["A", 5, "Ulm"], ["B", 6, "Bonn"]]]]
    >>> facts = {"tables": tables, "where": ["area", ">", 3], "kind": "sum", "column": "size"}
    >>> Hops().solve(facts).answer
    '6'
    """

    name: str = "tables/hops"

    templates: ClassVar[tuple[str, ...]] = (
        f"What is the {{what}} the {{many}} that belong to {{way}}? {ROUNDED}",
        f"Find in the tables below the {{what}} those {{many}} that belong to {{way}}. {ROUNDED}",
        f"Take the {{many}} that belong to {{way}}. Give the {{what}} them. {ROUNDED}",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A chain of tables; each row names the row that it belongs to."""
        tables = chain(rng, 2 if level <= 3 else 3)
        counts = [max(3, ROWS[level] >> (len(tables) - 1 - i)) for i in range(len(tables))]
        found: list[list[Any]] = []
        for i, (table, count) in enumerate(zip(tables, counts, strict=True)):
            some = [table.columns[0], *rng.sample(table.columns[1:], 2 if level <= 2 else 3)]
            if i == len(tables) - 1 and all(c.text for c in some[1:]):
                some[-1] = rng.choice(table.numbers)
            rows = sheet_rows(some, count, rng)
            names = [c.name for c in some]
            if i:
                keys = [row[0] for row in found[-1][2]]
                rows = [[*row, rng.choice(keys)] for row in rows]
                names.append(tables[i - 1].name)
            found.append([table.plural, names, rows])
        facts: dict[str, Any] = {"layout": rng.choice(LAYOUTS), "tables": found, "kind": rng.choice(tuple(_KINDS))}
        numbers = [c.name for c in tables[-1].numbers if c.name in found[-1][1]]
        facts["column"] = rng.choice(numbers)
        top = [tables[0].column(name) for name in found[0][1][1:]]
        for _ in range(30):
            facts["where"] = drawn_condition(rng.choice(top), rng)
            if _kept_rows(facts)[0]:
                return facts
        facts["kind"] = "count"
        return facts

    def sheets(self, facts: Facts) -> Sequence[Sheet]:
        """All of the chain."""
        return [Sheet(*table) for table in facts["tables"]]

    def solve(self, facts: Facts) -> Solution:
        """From the condition downwards: which rows fit, and which belong to them."""
        rows, steps, effort = _kept_rows(facts)
        sheet = Sheet(*facts["tables"][-1])
        at = sheet.at(facts["column"])
        found = Fraction(len(rows)) if facts["kind"] == "count" else aggregate(facts["kind"], [row[at] for row in rows])
        if facts["kind"] != "count":
            steps.append(f"Their values of {facts['column']}: {', '.join(str(row[at]) for row in rows)}.")
        return Solution(answer=decimal(found), gold=str(found), steps="\n".join(steps), effort=effort)

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The way up the chain in words."""
        tables = facts["tables"]
        names = [table[0] for table in tables[:-1]]
        that = conditions_text([facts["where"]])
        way = f"{names[0]} {that}"
        for name in names[1:]:
            way = f"{name} that belong to {way}"
        kind, column = facts["kind"], facts["column"]
        what = {"count": "number of", "sum": f"sum of {column} over", "mean": f"mean of {column} over"}.get(
            kind, f"{_KINDS[kind]} value of {column} among"
        )
        return {"many": tables[-1][0], "what": what, "way": way}


def _kept_rows(facts: Facts) -> tuple[list[Any], list[str], int]:
    """Rows of the last table whose chain upwards fulfils the condition; the steps, and the rows looked at."""
    tables = [Sheet(*table) for table in facts["tables"]]
    column, op, value = facts["where"]
    at = tables[0].at(column)
    rows: list[Any] = [row for row in tables[0].rows if holds(op, row[at], value)]
    steps, effort = [f"These {tables[0].title} fit: {_names(rows)}."], len(tables[0].rows)
    for sheet in tables[1:]:
        keys = {row[0] for row in rows}
        rows = [row for row in sheet.rows if row[-1] in keys]
        steps.append(f"These {sheet.title} belong to them: {_names(rows)}.")
        effort += len(sheet.rows)
    return rows, steps, effort


def _names(rows: Sequence[Sequence[Any]]) -> str:
    return ", ".join(str(row[0]) for row in rows) or "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend(TableQuestion):
    """Changes of a series over time, in numbers or percent. The level is the number of periods, 4 to 38, and the kind of change.

    1 and 2 ask for a change between two periods, 3 and 4 for the largest rise from one to the next or the mean over a stretch, 5
    and 6 for the longest run of rises or the percentage between the means of two stretches.

    >>> facts = {"columns": ["week", "sales"], "rows": [[1, 50], [2, 60], [3, 55]], "column": "sales"}
    >>> Trend().solve({**facts, "kind": "percent", "spans": [[1, 2]]}).answer
    '20'
    """

    name: str = "tables/trend"

    templates: ClassVar[tuple[str, ...]] = (
        "The table shows {titles} by {period}. {question}",
        "{question} The numbers by {period} stand below.",
        "These are {titles} for each {period}. Look at them over time: {question}",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Random walks, and a question about one of them."""
        count, period = ROWS[level], rng.choice(("week", "month", "day", "quarter"))
        names = rng.sample(("sales", "visits", "orders", "calls", "repairs", "trips", "loans", "letters"), 1 + (level + 1) // 2)
        series = [_walk(count, rng) for _ in names]
        kind = rng.choice((("change", "percent"), ("rise", "mean"), ("run", "shift"))[(level - 1) // 2])
        spans = [sorted(rng.sample(range(1, count + 1), 2)) for _ in range(1)]
        if kind == "shift":
            a, b, c, d = sorted(rng.sample(range(1, count + 1), 4))
            spans = [[a, b], [c, d]]
        rows = [[i + 1, *(s[i] for s in series)] for i in range(count)]
        return {
            "layout": rng.choice(LAYOUTS[:2]),
            "title": "numbers",
            "columns": [period, *names],
            "rows": rows,
            "kind": kind,
            "column": rng.choice(names),
            "spans": spans if kind not in ("rise", "run") else [],
        }

    def sheets(self, facts: Facts) -> Sequence[Sheet]:
        """The one."""
        return [Sheet.of(facts)]

    def solve(self, facts: Facts) -> Solution:
        """As the kind of question says."""
        at = list(facts["columns"]).index(facts["column"])
        values = [row[at] for row in facts["rows"]]
        stretches = [values[a - 1 : b] for a, b in facts["spans"]]
        rises = [b - a for a, b in pairwise(values)]
        places, effort = 2, len(values)
        match facts["kind"]:
            case "change":
                found, steps = Fraction(stretches[0][-1] - stretches[0][0]), f"From {stretches[0][0]} to {stretches[0][-1]}."
                effort = facts["spans"][0][1]
            case "percent":
                first, last = stretches[0][0], stretches[0][-1]
                found, places, effort = Fraction(100 * (last - first), first), 1, facts["spans"][0][1]
                steps = f"From {first} to {last}: 100 × ({last} - {first}) / {first} = {decimal(found, 1)}."
            case "rise":
                found, steps = Fraction(max(rises)), f"The changes are {', '.join(map(str, rises))}."
            case "mean":
                found = aggregate("mean", stretches[0])
                steps = f"({' + '.join(map(str, stretches[0]))}) / {len(stretches[0])} = {decimal(found)}."
            case "run":
                lengths = [0]
                for rise in rises:
                    lengths.append(lengths[-1] + 1 if rise > 0 else 0)
                found, steps = Fraction(max(lengths)), f"Rises in a row so far: {', '.join(map(str, lengths))}."
                effort *= 2
            case _:
                before, after = (aggregate("mean", s) for s in stretches)
                found, places, effort = 100 * (after - before) / before, 1, effort * 2
                steps = f"The means are {decimal(before)} and {decimal(after)}; the change is {decimal(found, 1)} percent."
        return Solution(answer=decimal(found, places), gold=str(found), steps=steps, effort=effort)

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The question about the series."""
        period, *names = facts["columns"]
        column = facts["column"]
        spans = [f"{period} {a} to {period} {b}" for a, b in facts["spans"]]
        percent = "Give the percentage rounded to one decimal, negative for a fall."
        question = {
            "change": lambda: f"By how much did the {column} change from {spans[0]}? Give a negative number for a fall.",
            "percent": lambda: f"By how many percent did the {column} change from {spans[0]}? {percent}",
            "rise": lambda: (
                f"What is the largest change of the {column} from one {period} to the next? Rises count as positive and "
                "falls as negative."
            ),
            "mean": lambda: f"What is the mean of the {column} from {spans[0]}, both included? Round it to one decimal.",
            "run": lambda: f"How many times in a row, at most, were the {column} higher than in the {period} before?",
            "shift": lambda: (
                f"By how many percent does the mean of the {column} from {spans[1]} differ from the mean from {spans[0]} "
                f"(the ends included)? {percent}"
            ),
        }[facts["kind"]]()
        titles = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
        return {"period": period, "titles": titles, "question": question}

    def verifier(self, form: Form) -> Verifier:
        """A number, within half of the tenth to which percentages are rounded."""
        return Numeric(absolute=0.05, percent=Percent.NUMBER, where=form.place)


def _walk(count: int, rng: Random) -> list[int]:
    value, found = rng.randint(40, 160), list[int]()
    for _ in range(count):
        found.append(value)
        value = max(10, value + rng.choice((-1, 1, 1)) * rng.randint(1, 25))
    return found
