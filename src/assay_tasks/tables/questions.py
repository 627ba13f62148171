"""Questions to one table: look-ups, counts, aggregates, comparisons, order, pivots."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any, ClassVar

from assay.core.protocols import Verifier
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.verify.exact import ExactMatch
from assay.verify.text.number import Numeric, Percent
from assay_tasks.sql.themes import Table
from assay_tasks.tables.sheet import LAYOUTS, Sheet, chain, conditions_text, drawn_condition, sheet_rows

__all__ = ["Aggregate", "Compare", "Count", "Lookup", "Nth", "OneTable", "Pivot", "TableQuestion", "aggregate", "decimal"]

ROWS = {1: 4, 2: 7, 3: 11, 4: 17, 5: 26, 6: 38}
"""Rows of the table that is asked about, by level."""

_AGGREGATES = {"sum": "sum", "mean": "mean", "max": "largest", "min": "smallest"}
ROUNDED = "If the answer is no whole number, round it to two decimals."


def decimal(value: Fraction, places: int = 2) -> str:
    """A number as it is written: whole, or rounded.

    >>> decimal(Fraction(10, 3)), decimal(Fraction(-4)), decimal(Fraction(1, 2))
    ('3.33', '-4', '0.50')
    """
    return str(value.numerator) if value.denominator == 1 else f"{round(value * 10**places) / 10**places:.{places}f}"


def aggregate(kind: str, values: Sequence[int]) -> Fraction:
    """The sum, mean, max or min of numbers; 0 for the sum of none.

    >>> aggregate("mean", [1, 2])
    Fraction(3, 2)
    """
    if kind == "mean":
        return Fraction(sum(values), len(values))
    return Fraction({"sum": sum, "max": max, "min": min}[kind](values))


@dataclass(frozen=True, slots=True, kw_only=True)
class TableQuestion(Problem):
    """Base of questions to tables that are written out above them, as markdown, CSV or sentences."""

    domain: str = "tables"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5, 6)

    @abstractmethod
    def sheets(self, facts: Facts) -> Sequence[Sheet]:
        """The tables to write out."""
        ...

    def word(self, facts: Facts, variant: int) -> str:
        """Tables and question; every other wording asks first."""
        tables = "\n\n".join(sheet.to_text(facts["layout"]) for sheet in self.sheets(facts))
        question = self.templates[variant].format_map(self.fields(facts))
        return f"{question}\n\n{tables}\n" if variant % 2 else f"{tables}\n\n{question}"

    def verifier(self, form: Form) -> Verifier:
        """A number, within half a hundredth."""
        return Numeric(absolute=0.005, percent=Percent.NUMBER, where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneTable(TableQuestion):
    """Base of questions to one table."""

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A table with as many rows as the level says, and what is asked about it."""
        (table,) = chain(rng, 1)
        columns = [table.columns[0], *rng.sample(table.columns[1:], len(table.columns) - 1)]
        rows = sheet_rows(columns, ROWS[level], rng)
        facts = {
            "layout": rng.choice(LAYOUTS),
            "title": table.plural,
            "one": table.name,
            "columns": [c.name for c in columns],
            "rows": rows,
        }
        return facts | self.ask(level, table, Sheet.of(facts), rng)

    @abstractmethod
    def ask(self, level: int, table: Table, sheet: Sheet, rng: Random) -> dict[str, Any]:
        """What is asked about a drawn table."""
        ...

    def sheets(self, facts: Facts) -> Sequence[Sheet]:
        """The one."""
        return [Sheet.of(facts)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup(OneTable):
    """One cell of a table, by its row and column. The level is the number of rows, 4 to 38.

    Above level 3 the row is named by two cells.

    >>> facts = {"title": "cities", "columns": ["name", "area"], "rows": [["Ulm", 3], ["Bonn", 4]]}
    >>> Lookup().solve({**facts, "key": {"name": "Bonn"}, "column": "area"}).answer
    '4'
    """

    name: str = "tables/lookup"

    templates: ClassVar[tuple[str, ...]] = (
        "What is the {column} of the {one} whose {key}?",
        "Find the {one} whose {key} in the table below. What is its {column}?",
        "Give the {column} of the {one} whose {key}.",
    )

    def ask(self, level: int, table: Table, sheet: Sheet, rng: Random) -> dict[str, Any]:
        """A row that its first cell names, or two other cells."""
        places = range(len(sheet.columns))
        for _ in range(20 if level > 3 else 0):
            row = rng.choice(sheet.rows)
            first, second, wanted = rng.sample(places[1:], 3)
            if sum(r[first] == row[first] and r[second] == row[second] for r in sheet.rows) == 1:
                key = {sheet.columns[first]: row[first], sheet.columns[second]: row[second]}
                return {"key": key, "column": sheet.columns[wanted]}
        return {"key": {sheet.columns[0]: rng.choice(sheet.rows)[0]}, "column": sheet.columns[rng.choice(places[1:])]}

    def solve(self, facts: Facts) -> Solution:
        """Row by row."""
        sheet = Sheet.of(facts)
        key = [(sheet.at(c), value) for c, value in facts["key"].items()]
        number = next(i for i, row in enumerate(sheet.rows) if all(row[at] == value for at, value in key))
        row = sheet.rows[number]
        found = row[sheet.at(facts["column"])]
        cells = ", ".join(f"{c} {value}" for c, value in zip(sheet.columns, row, strict=True))
        return Solution(answer=str(found), steps=f"Row {number + 1} fits: {cells}.", effort=(number + 1) * len(key))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The key in words."""
        return {
            "one": facts["one"],
            "column": facts["column"],
            "key": conditions_text([[c, "=", v] for c, v in facts["key"].items()])[6:],
        }

    def verifier(self, form: Form) -> Verifier:
        """The cell, case forgiven."""
        return ExactMatch(strip=True, casefold=True, where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Count(OneTable):
    """How many rows fulfil some conditions. The level is the number of rows, 4 to 38, and of conditions, 1 to 3.

    >>> facts = {"title": "cities", "columns": ["name", "area"], "rows": [["Ulm", 3], ["Bonn", 4]], "where": [["area", ">", 3]]}
    >>> Count().solve(facts).answer
    '1'
    """

    name: str = "tables/count"

    templates: ClassVar[tuple[str, ...]] = (
        "How many {many} are there {that}?",
        "Count the {many} in the table below {that}.",
        "What is the number of {many} {that}?",
    )

    def ask(self, level: int, table: Table, sheet: Sheet, rng: Random) -> dict[str, Any]:
        """Conditions on different columns."""
        columns = rng.sample(table.columns[1:], (1, 1, 2, 2, 3, 3)[level - 1])
        return {"where": [drawn_condition(c, rng) for c in columns]}

    def solve(self, facts: Facts) -> Solution:
        """All rows, one condition after another."""
        sheet = Sheet.of(facts)
        kept = sheet.kept_rows(facts["where"])
        steps = f"These fit: {', '.join(str(row[0]) for row in kept) or 'none'}."
        return Solution(answer=str(len(kept)), steps=steps, effort=len(sheet.rows) * len(facts["where"]))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Conditions in words."""
        return {"many": facts["title"], "that": conditions_text(facts["where"])}


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate(OneTable):
    """The sum, mean, largest or smallest of a column of rows that fulfil conditions. The level is the number of rows, 4 to 38.

    There are two conditions above level 3. Where no row fulfils them others are drawn.

    >>> facts = {"title": "cities", "columns": ["name", "area"], "rows": [["Ulm", 3], ["Bonn", 4]], "where": [], "kind": "mean"}
    >>> Aggregate().solve({**facts, "column": "area"}).answer
    '3.50'
    """

    name: str = "tables/aggregate"

    templates: ClassVar[tuple[str, ...]] = (
        f"What is the {{kind}} of the values of {{column}} over the {{many}} {{that}}? {ROUNDED}",
        f"Look at the {{many}} {{that}} in the table below and give the {{kind}} of their values of {{column}}. {ROUNDED}",
        f"Consider the {{many}} {{that}}. Give the {{kind}} of the values in their column {{column}}. {ROUNDED}",
    )

    def ask(self, level: int, table: Table, sheet: Sheet, rng: Random) -> dict[str, Any]:
        """Conditions that some rows fulfil, and a column of numbers."""
        column = rng.choice(table.numbers)
        others = [c for c in table.columns[1:] if c.name != column.name]
        where: list[Any] = []
        for _ in range(30):
            where = [drawn_condition(c, rng) for c in rng.sample(others, 1 if level <= 3 else 2)]
            if len(sheet.kept_rows(where)) >= min(level, 3):
                break
        else:
            where = []
        return {"where": where, "kind": rng.choice(tuple(_AGGREGATES)), "column": column.name}

    def solve(self, facts: Facts) -> Solution:
        """Rows that fit, then their values."""
        sheet = Sheet.of(facts)
        at = sheet.at(facts["column"])
        kept = sheet.kept_rows(facts["where"])
        found = aggregate(facts["kind"], [row[at] for row in kept])
        listed = ", ".join(f"{row[0]} {row[at]}" for row in kept)
        steps = f"These fit: {listed}. The {_AGGREGATES[facts['kind']]} of {len(kept)} values is {decimal(found)}."
        return Solution(answer=decimal(found), gold=str(found), steps=steps, effort=len(sheet.rows) + len(kept))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Conditions in words."""
        return {
            "many": facts["title"],
            "column": facts["column"],
            "kind": _AGGREGATES[facts["kind"]],
            "that": conditions_text(facts["where"]) or "in the table",
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare(OneTable):
    """By how much an aggregate of one group exceeds that of another. The level is the number of rows, 4 to 38.

    >>> facts = {"title": "cities", "columns": ["name", "kind", "area"], "rows": [["Ulm", "a", 3], ["Bonn", "b", 4]]}
    >>> Compare().solve({**facts, "kind": "sum", "column": "area", "by": "kind", "groups": ["a", "b"]}).answer
    '-1'
    """

    name: str = "tables/compare"

    templates: ClassVar[tuple[str, ...]] = (
        "By how much is the {kind} of {column} larger among the {many} whose {by} is {one} than among those whose {by} is "
        f"{{other}}? Give a negative number if it is smaller. {ROUNDED}",
        "Take the {kind} of {column} over all {many} below whose {by} is {one}, and subtract from it the {kind} of {column} over "
        f"those whose {{by}} is {{other}}. What is the result? {ROUNDED}",
        "What is the {kind} of {column} of the {many} with {by} {one}, minus the {kind} of {column} of those with {by} {other}? "
        f"{ROUNDED}",
    )

    def ask(self, level: int, table: Table, sheet: Sheet, rng: Random) -> dict[str, Any]:
        """Two groups that have rows."""
        label = rng.choice(table.labels)
        at = sheet.at(label.name)
        groups = list(dict.fromkeys(row[at] for row in sheet.rows))
        if len(groups) < 2:  # all in one group: move the first row to another
            other = next(v for v in label.values if v != groups[0])
            sheet.rows[0][at] = other  # pyright: ignore[reportIndexIssue]
            groups = [groups[0], other]
        kind = rng.choice(("sum", "max", "min") if level == 1 else ("sum", "mean", "max", "min"))
        return {"kind": kind, "column": rng.choice(table.numbers).name, "by": label.name, "groups": rng.sample(groups, 2)}

    def solve(self, facts: Facts) -> Solution:
        """Each group by itself, then the difference."""
        sheet = Sheet.of(facts)
        at, kind = sheet.at(facts["column"]), facts["kind"]
        found: list[Fraction] = []
        steps: list[str] = []
        for group in facts["groups"]:
            values = [row[at] for row in sheet.kept_rows([[facts["by"], "=", group]])]
            found.append(aggregate(kind, values))
            steps.append(f"{group}: {', '.join(map(str, values))}; {_AGGREGATES[kind]} {decimal(found[-1])}.")
        difference = found[0] - found[1]
        steps.append(f"The difference is {decimal(difference)}.")
        return Solution(answer=decimal(difference), gold=str(difference), steps="\n".join(steps), effort=2 * len(sheet.rows))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The groups."""
        one, other = facts["groups"]
        kind = _AGGREGATES[facts["kind"]] + ("" if facts["kind"] in ("sum", "mean") else " value")
        return {
            "many": facts["title"],
            "column": facts["column"],
            "kind": kind,
            "by": facts["by"],
            "one": one,
            "other": other,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Nth(OneTable):
    """Which row is the n-th in an order. The level is the number of rows, 4 to 38; above 3 rows of one label are left out.

    >>> facts = {"title": "cities", "columns": ["name", "area"], "rows": [["Ulm", 3], ["Bonn", 4]], "where": []}
    >>> Nth().solve({**facts, "column": "area", "down": True, "place": 2}).answer
    'Ulm'
    """

    name: str = "tables/nth"

    templates: ClassVar[tuple[str, ...]] = (
        "Sort the {many}{that} by {column}, {way}, and those with equal values by {key} from A to Z. What is the {key} of number "
        "{place} in this order?",
        "In the table below, take the {many}{that} in order of {column}, {way}; those with equal values in order of {key} from "
        "A to Z. Which {key} is at place {place}?",
        "Which {key} comes at place {place} if the {many}{that} are ordered by {column} ({way}), and where that is equal by "
        "{key} from A to Z?",
    )

    def ask(self, level: int, table: Table, sheet: Sheet, rng: Random) -> dict[str, Any]:
        """An order, and a place in it."""
        where: list[Any] = []
        if level > 3:
            label = rng.choice(table.labels)
            groups = [row[sheet.at(label.name)] for row in sheet.rows]
            where = [[label.name, "<>", rng.choice(groups)]] if len(set(groups)) > 1 else []
        place = rng.randint(1, len(sheet.kept_rows(where)))
        return {"where": where, "column": rng.choice(table.numbers).name, "down": rng.random() < 0.5, "place": place}

    def solve(self, facts: Facts) -> Solution:
        """By sorting."""
        sheet = Sheet.of(facts)
        at, sign = sheet.at(facts["column"]), -1 if facts["down"] else 1
        rows = sorted(sheet.kept_rows(facts["where"]), key=lambda row: (sign * row[at], row[0]))
        listed = ", ".join(f"{row[0]} {row[at]}" for row in rows[: facts["place"]])
        effort = len(sheet.rows) * (1 + len(facts["where"])) + len(rows) * len(rows).bit_length()
        return Solution(answer=str(rows[facts["place"] - 1][0]), steps=f"In order: {listed}.", effort=effort)

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The order in words."""
        that = conditions_text(facts["where"])
        return {
            "many": facts["title"],
            "column": facts["column"],
            "key": facts["columns"][0],
            "place": str(facts["place"]),
            "way": "from large to small" if facts["down"] else "from small to large",
            "that": f" {that}" if that else "",
        }

    def verifier(self, form: Form) -> Verifier:
        """The name, case forgiven."""
        return ExactMatch(strip=True, casefold=True, where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pivot(TableQuestion):
    """One cell of the pivot table of a long table. The level is the number of rows, 4 to 38; above 3 the difference of two cells.

    >>> facts = {"columns": ["name", "kind", "soil", "area"], "rows": [["Ulm", "a", "x", 3], ["Bonn", "a", "y", 4]]}
    >>> Pivot().solve({**facts, "row": "a", "columns_of": ["x", "y"], "kind": "sum"}).answer
    '-1'
    """

    name: str = "tables/pivot"

    templates: ClassVar[tuple[str, ...]] = (
        "Make a pivot table of these {many} with one row for each {rows}, one column for each {columns}, and in each cell {cell} "
        "(0 where there are none). {request}",
        "Imagine a pivot table of the {many} below: its rows are the values of {rows}, its columns the values of {columns}, its "
        "cells hold {cell}, or 0 where there are none. {request}",
        "A pivot table groups the {many} by {rows} (rows) and {columns} (columns) and shows {cell} in each cell, 0 for none. "
        "{request}",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A table with two labels and a number."""
        above, table = chain(rng, 2)
        labels = (rng.choice(table.labels), rng.choice(above.labels))
        if rng.random() < 0.5:
            labels = labels[::-1]
        number = rng.choice(table.numbers)
        columns = [table.columns[0], *labels, number]
        names = [c.name if c in table.columns else f"{above.name} {c.name}" for c in columns]
        rows = sheet_rows(columns, ROWS[level], rng)
        chosen = rng.choice(rows)
        others = [v for v in labels[1].values if v != chosen[2]]
        return {
            "layout": rng.choice(LAYOUTS),
            "title": table.plural,
            "columns": names,
            "rows": rows,
            "row": chosen[1],
            "columns_of": [chosen[2]] if level <= 3 else [chosen[2], rng.choice(others)],
            "kind": rng.choice(("sum", "count", "max")),
        }

    def sheets(self, facts: Facts) -> Sequence[Sheet]:
        """The long one."""
        return [Sheet.of(facts)]

    def solve(self, facts: Facts) -> Solution:
        """Cell by cell."""
        values = [[row[3] for row in facts["rows"] if row[1] == facts["row"] and row[2] == c] for c in facts["columns_of"]]
        cells = [len(v) if facts["kind"] == "count" else {"sum": sum, "max": max}[facts["kind"]](v or [0]) for v in values]
        found = cells[0] - cells[1] if len(cells) > 1 else cells[0]
        steps = [
            f"{facts['row']} and {c}: {', '.join(map(str, v)) or 'none'}; {cell}."
            for c, v, cell in zip(facts["columns_of"], values, cells, strict=True)
        ]
        return Solution(answer=str(found), steps="\n".join(steps), effort=len(facts["rows"]) * len(cells))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The cells in words."""
        _, rows, columns, number = facts["columns"]
        cell = {
            "sum": f"the sum of {number}",
            "max": f"the largest value of {number}",
            "count": f"the number of {facts['title']}",
        }
        one, *other = facts["columns_of"]
        request = f"What stands in row {facts['row']}, column {one}?"
        if other:
            request = f"In row {facts['row']}, what is the cell of column {one} minus the cell of column {other[0]}?"
        return {
            "many": facts["title"],
            "rows": rows,
            "columns": columns,
            "cell": cell[facts["kind"]],
            "request": request,
        }
