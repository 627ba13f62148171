"""Tables as data: drawn, written in one of several layouts, filtered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from random import Random
from typing import Any

from assay_tasks.sql.themes import THEMES, Column, Table, theme
from assay_tasks.sql.words import verb

__all__ = ["LAYOUTS", "Condition", "Sheet", "chain", "drawn_condition", "holds", "conditions_text", "sheet_rows"]

LAYOUTS = ("markdown", "csv", "lines")
Condition = list[Any]
"""``[column, op, value]``."""

_OPS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
}
_WORDS = {"=": "{}", "<>": "not {}", ">": "more than {}", "<": "less than {}", ">=": "at least {}", "<=": "at most {}"}


@dataclass(frozen=True, slots=True)
class Sheet:
    """One table.

    Attributes:
        title: what its rows are, in the plural.
        columns: their names.
        rows: cells, as many as columns.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Sheet:
        """The table of some facts."""
        return cls(facts["title"], facts["columns"], facts["rows"])

    def to_text(self, layout: str) -> str:
        """The table as text.

        >>> print(Sheet("cities", ["name", "area"], [["Ulm", 3]]).to_text("markdown"))
        cities:
        | name | area |
        |---|---|
        | Ulm | 3 |
        >>> print(Sheet("cities", ["name", "area"], [["Ulm", 3]]).to_text("lines"))
        cities:
        Ulm has area 3.
        """
        lines = [f"{self.title}:"]
        match layout:
            case "markdown":
                lines += [f"| {' | '.join(self.columns)} |", "|" + "---|" * len(self.columns)]
                lines += [f"| {' | '.join(map(str, row))} |" for row in self.rows]
            case "csv":
                lines += [",".join(self.columns), *(",".join(map(str, row)) for row in self.rows)]
            case _:
                names = self.columns[1:]
                lines += [f"{row[0]} has {_list_cells(names, row[1:])}." for row in self.rows]
        return "\n".join(lines)

    def at(self, column: str) -> int:
        """Where a column stands."""
        return list(self.columns).index(column)

    def kept_rows(self, conditions: Sequence[Condition]) -> list[Sequence[Any]]:
        """The rows that fulfil all conditions."""
        tests = [(self.at(c), _OPS[op], value) for c, op, value in conditions]
        return [row for row in self.rows if all(test(row[i], value) for i, test, value in tests)]


def holds(op: str, cell: Any, value: Any) -> bool:
    """Whether a cell fulfils one comparison."""
    return _OPS[op](cell, value)


def conditions_text(conditions: Sequence[Condition]) -> str:
    """Conditions in English: "whose tier is gold and whose age is at least 30"; "" for none."""
    return " and ".join(f"whose {c} {verb(c)} {_WORDS[op].format(value)}" for c, op, value in conditions)


def chain(rng: Random, length: int) -> tuple[Table, ...]:
    """Neighbouring tables of a theme."""
    tables = theme(rng.choice(THEMES))
    start = rng.randint(0, 4 - length)
    return tables[start : start + length]


def drawn_condition(column: Column, rng: Random) -> Condition:
    """A condition that some rows fulfil."""
    if column.text:
        return [column.name, "=", rng.choice(column.values)]
    values = column.values
    edge = max(1, len(values) // 4)
    return [column.name, rng.choice((">", "<", ">=", "<=")), rng.choice(values[edge : len(values) - edge])]


def sheet_rows(columns: Sequence[Column], count: int, rng: Random) -> list[list[Any]]:
    """Rows whose first cells, text, are all different."""
    names = columns[0].values
    keys: Sequence[Any] = (
        rng.sample(names, count) if count <= len(names) // 2 else rng.sample(_pairs(tuple(map(str, names))), count)
    )
    cells = [rng.choices(c.values, k=count) for c in columns[1:]]
    return [list(row) for row in zip(keys, *cells, strict=True)]


@cache
def _pairs(names: tuple[str, ...]) -> tuple[str, ...]:
    """More names: each with an initial."""
    return tuple(f"{name} {letter}" for name, letter in product(names, "ABCDEFGH"))


def _list_cells(names: Sequence[str], cells: Sequence[Any]) -> str:
    parts = [f"{name} {cell}" for name, cell in zip(names, cells, strict=True)]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
