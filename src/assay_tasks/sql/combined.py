"""Questions that combine whole results: sets of values, and windows over rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay_tasks.sql.base import Question
from assay_tasks.sql.query import Col, Compare, Select, Sets, Sub, Win
from assay_tasks.sql.themes import Cell, Table
from assay_tasks.sql.words import clauses, tree, where

__all__ = ["Combined", "Window"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Combined(Question):
    """Values that occur among some rows and, or, but not among others. The level adds conditions and a third set.

    >>> from assay_tasks.sql.themes import theme
    >>> plan = {"column": "name", "parts": [["is", 0, "area", ">", 9], ["is", 0, "year", "<", 1950]], "kinds": ["EXCEPT"]}
    >>> Combined().query(plan, theme("shop")[:1]).sql()
    'SELECT city.name FROM city WHERE city.area > 9 EXCEPT SELECT city.name FROM city WHERE city.year < 1950'
    """

    name: str = "sql/sets"
    levels: tuple[int, ...] = (1, 2, 3)

    spans: ClassVar[Mapping[int, tuple[int, int]]] = {1: (1, 1), 2: (1, 2), 3: (1, 2)}
    templates: ClassVar[tuple[str, ...]] = (
        "Start from the different values of {column} among the {many} {first}. {rest} Give the values of the end, each once.",
        "Collect all values of {column} of {many} {first}. {rest} List what you then have, each value once.",
        "Take the values that {column} has among the {many} {first}. {rest} Give the result without repeating any value.",
    )

    def plan(self, level: int, tables: Sequence[Table], rng: Random) -> dict[str, Any]:
        """A column, conditions for each set, and how they are combined."""
        last = len(tables) - 1
        shape, count = (("a", 2), ("a&b", 2), ("a", 3))[level - 1]
        column = rng.choice([c for c in tables[last].columns if c.text and not c.label])
        parts: list[Any] = []
        used: list[str | None] = [column.name]
        for _ in range(count):  # on different columns, or one set could hold the other
            parts.append(tree([(last, tables[last])] * len(shape.split("&")), shape, rng, used))
            used += [part[2] for part in (parts[-1][1:] if shape == "a&b" else parts[-1:])]
        return {"column": column.name, "parts": parts, "kinds": [rng.choice(("UNION", "INTERSECT", "EXCEPT")) for _ in parts[1:]]}

    def often(self, plan: Mapping[str, Any], tables: Sequence[Table]) -> Mapping[tuple[str, str], Sequence[Cell]]:
        """A few values of the column, so that some occur in several sets."""
        values = tables[-1].column(plan["column"]).values
        return {(tables[-1].name, plan["column"]): values[:8]}

    def query(self, plan: Mapping[str, Any], tables: Sequence[Table]) -> Sets:
        """Selects joined from the left."""
        table = tables[-1]
        pick = (Col(table.name, plan["column"]),)
        return Sets(
            tuple(Select(pick=pick, table=table.name, where=where(p, tables)) for p in plan["parts"]), tuple(plan["kinds"])
        )

    def ask(self, plan: Mapping[str, Any], tables: Sequence[Table]) -> Mapping[str, str]:
        """What is added, kept and taken away, in turn."""
        last, many = len(tables) - 1, tables[-1].plural
        said = [clauses(part, tables, last) for part in plan["parts"]]
        verbs = {
            "UNION": "add the values among the {} {}",
            "INTERSECT": "keep only values that also occur among the {} {}",
            "EXCEPT": "take away the values that occur among the {} {}",
        }
        rest = [verbs[kind].format(many, text) for kind, text in zip(plan["kinds"], said[1:], strict=True)]
        return {"column": plan["column"], "many": many, "first": said[0], "rest": f"Then {'; then '.join(rest)}."}


@dataclass(frozen=True, slots=True, kw_only=True)
class Window(Question):
    """Places, running sums and differences within groups. The level is the kind of window and its conditions.

    1 places all rows, 2 sums up row by row within groups, 3 ranks within groups, 4 takes the difference to the row before in a
    group, 5 keeps the first rows of each group.

    >>> from assay_tasks.sql.themes import theme
    >>> plan = {"kind": 2, "where": None, "by": "region", "number": "year", "down": False, "most": 1}
    >>> Window().query(plan, theme("shop")[:1]).sql()
    'SELECT city.id, SUM(city.year) OVER (PARTITION BY city.region ORDER BY city.id) FROM city'
    """

    name: str = "sql/window"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)

    spans: ClassVar[Mapping[int, tuple[int, int]]] = {1: (1, 1), 2: (1, 2), 3: (1, 2), 4: (1, 3), 5: (1, 3)}
    templates: ClassVar[tuple[str, ...]] = (
        "For every {one}{that}, give its id and {what}.",
        "List the id of each of the {many}{that}, with {what}.",
        "Take the {many}{that}. One row for each: its id and {what}.",
    )

    def plan(self, level: int, tables: Sequence[Table], rng: Random) -> dict[str, Any]:
        """Groups, order and conditions of a window."""
        last = len(tables) - 1
        table = tables[last]
        by, number = rng.choice(table.labels).name, rng.choice([c.name for c in table.numbers if not c.missing])
        return {
            "kind": level,
            "where": tree([(last, table)], "a", rng, (by, number)),
            "by": by,
            "number": number,
            "down": rng.random() < 0.5,
            "most": rng.randint(1, 2),
        }

    def query(self, plan: Mapping[str, Any], tables: Sequence[Table]) -> Select:
        """One window function; in a subquery where its value is a condition."""
        name, kind = tables[-1].name, plan["kind"]
        key, number = Col(name, "id"), Col(name, plan["number"])
        by = None if kind == 1 else Col(name, plan["by"])
        order = ((number, plan["down"]), (key, False))
        match kind:
            case 2:
                window = Win(f"SUM({number.sql()})", by, ((key, False),))
            case 4:
                window = Win(f"LAG({number.sql()})", by, ((key, False),), minus=number)
            case 3:
                window = Win("RANK()", by, ((number, plan["down"]),))
            case _:
                window = Win("ROW_NUMBER()", by, order)
        rows = Select(pick=(key, window), table=name, where=where(plan["where"], tables) if plan["where"] else None)
        if kind < 5:
            return rows
        outer = (Col("placed", "a"), Col("placed", "b"))
        return Select(pick=outer, table=Sub(rows, "placed"), where=Compare(outer[1], "<=", plan["most"]))

    def ask(self, plan: Mapping[str, Any], tables: Sequence[Table]) -> Mapping[str, str]:
        """The window in English."""
        last, number, by = len(tables) - 1, plan["number"], plan["by"]
        many = tables[last].plural
        way = "from large to small" if plan["down"] else "from small to large"
        these = f"these {many}" if plan["where"] else f"all {many}"
        within = f"{these} with the same {by}"
        most = "place 1" if plan["most"] == 1 else f"places 1 to {plan['most']}"
        what = {
            1: f"its place (1, 2, ...) when {these} are sorted by {number} {way}, where equal by id from small to large",
            3: f"its rank by {number} {way} among {within}; equal ones share a rank, and the ranks behind are skipped (1, 1, 3)",
            2: f"the sum of {number} of it and of all with a smaller id among {within}",
            4: f"its {number} minus the {number} of the one with the next smaller id among {within} (NULL for the first)",
            5: f"its place (1, 2, ...) among {within}, sorted by {number} {way}, where equal by id from small to large; "
            f"leave out all but {most} of each {by}",
        }[plan["kind"]]
        return {
            "one": tables[last].name,
            "many": many,
            "what": what,
            "that": f" {clauses(plan['where'], tables, last)}" if plan["where"] else "",
        }
