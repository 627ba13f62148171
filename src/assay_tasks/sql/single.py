"""Questions to one table, or to one and the rows that its own belong to: filters, aggregates, groups, order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay_tasks.sql.base import Question
from assay_tasks.sql.query import Agg, Col, Compare, Join, Select
from assay_tasks.sql.themes import Table, at
from assay_tasks.sql.words import clauses, joined_words, name_column, tree, where

__all__ = ["Aggregate", "Filter", "Group", "Order", "count_phrase", "drawn_aggregates", "upward"]

_SHAPES = {1: ("a",), 2: ("a&b", "a|b"), 3: ("a&(b|c)",), 4: ("(a|b)&(c|d)",), 5: ("a&(b|c)&(d|e)",)}
_SIZES = {"a": 1, "a&b": 2, "a|b": 2, "a&(b|c)": 3, "(a|b)&(c|d)": 4, "a&(b|c)&(d|e)": 5}
_DIFFERENT = (
    "Which values of {column} occur among the {many} {that}? Give each value once.",
    "List the different values of {column} of all {many} {that}.",
    "Take the {many} {that}: give the values of their {column}, each only once.",
    "I need the different values that {column} has among the {many} {that}.",
)
_SAID = {
    "sum": "the sum of {}",
    "avg": "the mean of {}",
    "min": "the smallest value of {}",
    "max": "the largest value of {}",
    "distinct": "the number of different values of {}",
}


def upward(tables: Sequence[Table], base: int, stop: int, kind: str = "JOIN", told: bool = True) -> tuple[Join, ...]:
    """Joins from a table to the rows that its own belong to, down to number ``stop`` of the chain."""
    return tuple(
        Join(tables[i - 1].name, (Col(tables[i].name, tables[i].reference), Col(tables[i - 1].name, "id")), kind, told=told)
        for i in range(base, stop, -1)
    )


def drawn_aggregates(table: Table, n: int, rng: Random, but: str = "") -> list[list[str | None]]:
    """Different aggregates, as pairs of kind and column, of any column ``but`` one."""
    found: list[list[str | None]] = []
    while len(found) < n:
        kind = rng.choice(("count", "sum", "avg", "min", "max", "distinct"))
        column = None if kind == "count" else rng.choice(table.labels if kind == "distinct" else table.numbers).name
        if [kind, column] not in found and column != but:
            found.append([kind, column])
    return found


def count_phrase(pair: Sequence[str | None], their: str = "their number") -> str:
    """An aggregate in English."""
    kind, column = pair
    return their if column is None else _SAID[str(kind)].format(column)


def _agg(pair: Sequence[str | None], table: Table) -> Agg:
    return Agg(str(pair[0]), None if pair[1] is None else Col(table.name, pair[1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter(Question):
    """Which rows fulfil some conditions. The level counts them, joined by and and or.

    >>> from assay.tasks import family
    >>> task = family("sql/filter").task("sql/filter", 1, "train", 0)
    >>> task.private["answer"]["query"].split()[0]
    'SELECT'
    """

    name: str = "sql/filter"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)

    spans: ClassVar[Mapping[int, tuple[int, int]]] = {1: (1, 1), 2: (1, 2), 3: (1, 2), 4: (1, 3), 5: (2, 3)}
    templates: ClassVar[tuple[str, ...]] = (
        "List {what} of all {many} {that}.",
        "For every {one} {that}, give {what}.",
        "Which {many} are there {that}? Give {what} of each.",
        "I need {what} of the {many} {that}.",
    )

    def plan(self, level: int, tables: Sequence[Table], rng: Random) -> dict[str, Any]:
        """Columns and conditions."""
        last = len(tables) - 1
        shape = rng.choice(_SHAPES[level])
        places = [(last, tables[last])] * _SIZES[shape]
        if level <= 2 and rng.random() < 0.2:
            label = rng.choice(tables[last].labels).name
            return {"where": tree(places, shape, rng, [label]), "pick": [label], "distinct": True}
        found = tree(places, shape, rng)
        columns = ["id", *(c.name for c in tables[last].columns)]
        return {"where": found, "pick": rng.sample(columns, rng.randint(1, 3)), "distinct": False}

    def query(self, plan: Mapping[str, Any], tables: Sequence[Table]) -> Select:
        """One SELECT with WHERE."""
        name = tables[-1].name
        return Select(
            pick=tuple(Col(name, c) for c in plan["pick"]),
            table=name,
            where=where(plan["where"], tables),
            distinct=plan["distinct"],
        )

    def ask(self, plan: Mapping[str, Any], tables: Sequence[Table]) -> Mapping[str, str]:
        """Columns and conditions in English."""
        what = joined_words([f"the {c}" for c in plan["pick"]])
        return {
            "what": what,
            "column": plan["pick"][0],
            "many": tables[-1].plural,
            "one": tables[-1].name,
            "that": clauses(plan["where"], tables, len(tables) - 1),
        }

    def word(self, facts: Mapping[str, Any], variant: int) -> str:
        """Different values are asked of all rows together, never of each."""
        text = _DIFFERENT[variant] if facts["plan"]["distinct"] else self.templates[variant]
        return text.format_map(self.fields(facts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate(Question):
    """Counts, sums, means and extremes of rows. The level adds aggregates, conditions, and those of the rows above.

    >>> from assay_tasks.sql.themes import theme
    >>> plan = {"where": ["is", 0, "area", ">", 9], "aggregates": [["count", None], ["max", "area"]]}
    >>> Aggregate().query(plan, theme("shop")[:1]).sql()
    'SELECT COUNT(*), MAX(city.area) FROM city WHERE city.area > 9'
    """

    name: str = "sql/aggregate"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)

    spans: ClassVar[Mapping[int, tuple[int, int]]] = {1: (1, 1), 2: (1, 2), 3: (1, 2), 4: (1, 3), 5: (2, 4)}
    templates: ClassVar[tuple[str, ...]] = (
        "For the {many} {that}, give {what}, as one row.",
        "Look at all {many} {that}: give {what} in one row.",
        "Take the {many} {that}. Give one row with {what}.",
    )

    def plan(self, level: int, tables: Sequence[Table], rng: Random) -> dict[str, Any]:
        """Aggregates and conditions, from level 5 on one of them of the row above."""
        last = len(tables) - 1
        shape, count = ("a", "a", "a&b", "a&(b|c)", "a&b")[level - 1], (1, 2, 2, 3, 3)[level - 1]
        places = [(last, tables[last])] * _SIZES[shape]
        if level == 5:
            places[1] = (last - 1, tables[last - 1])
        aggregates = drawn_aggregates(tables[last], count, rng)
        return {"where": tree(places, shape, rng, [column for _, column in aggregates]), "aggregates": aggregates}

    def query(self, plan: Mapping[str, Any], tables: Sequence[Table]) -> Select:
        """One SELECT without groups."""
        last, found = len(tables) - 1, where(plan["where"], tables)
        joins = upward(tables, last, last - 1, told=False) if _numbers(plan["where"]) - {last} else ()
        pick = tuple(_agg(pair, tables[last]) for pair in plan["aggregates"])
        return Select(pick=pick, table=tables[last].name, joins=joins, where=found)

    def ask(self, plan: Mapping[str, Any], tables: Sequence[Table]) -> Mapping[str, str]:
        """Aggregates and conditions in English."""
        return {
            "what": joined_words([count_phrase(pair) for pair in plan["aggregates"]]),
            "many": tables[-1].plural,
            "that": clauses(plan["where"], tables, len(tables) - 1),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Group(Question):
    """Aggregates of groups, with conditions on rows and on groups. The level adds WHERE, HAVING, and labels of rows above.

    The lowest level has only a few hundred questions.

    >>> from assay_tasks.sql.themes import theme
    >>> plan = {"where": None, "aggregates": [["count", None]], "by": [0, "region"]}
    >>> plan["having"] = ["count", ["is", 0, None, ">=", 2]]
    >>> Group().query(plan, theme("shop")[:1]).sql()
    'SELECT city.region, COUNT(*) FROM city GROUP BY city.region HAVING COUNT(*) >= 2'
    """

    name: str = "sql/group"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)

    spans: ClassVar[Mapping[int, tuple[int, int]]] = {1: (1, 1), 2: (1, 2), 3: (1, 2), 4: (2, 3), 5: (2, 4)}
    templates: ClassVar[tuple[str, ...]] = (
        "Group the {many}{that} by {by}. For each group give {row}.{having}",
        "Among the {many}{that}, for each value of {by}, give {row}.{having}",
        "Give one row for each value of {by} of the {many}{that}, with {row}.{having}",
    )

    def plan(self, level: int, tables: Sequence[Table], rng: Random) -> dict[str, Any]:
        """Group label, aggregates, conditions."""
        last = len(tables) - 1
        number = last if level < 5 else last - 1
        shape = {1: None, 2: "a", 3: None, 4: "a", 5: "a&b"}[level]
        label = rng.choice(at(tables, number).labels).name
        aggregates = drawn_aggregates(tables[last], (1, 1, 2, 2, 2)[level - 1], rng, but=label if number == last else "")
        having: list[Any] | None = None
        if level in (3, 4):
            numeric = rng.choice(tables[last].numbers)
            inner = numeric.values[len(numeric.values) // 3 : len(numeric.values) * 2 // 3]
            having = rng.choice(
                (
                    ["count", ["is", last, None, rng.choice((">=", "<=")), 2]],
                    [rng.choice(("max", "min")), ["is", last, numeric.name, rng.choice((">", "<")), rng.choice(inner)]],
                )
            )
        avoid = [label if number == last else None, having[1][2] if having else None, *(column for _, column in aggregates)]
        found = tree([(last, tables[last])] * _SIZES[shape], shape, rng, avoid) if shape else None
        return {"where": found, "by": [number, label], "aggregates": aggregates, "having": having}

    def query(self, plan: Mapping[str, Any], tables: Sequence[Table]) -> Select:
        """GROUP BY a label, HAVING as planned."""
        last, (number, label) = len(tables) - 1, plan["by"]
        by, having = Col(at(tables, number).name, label), plan["having"]
        return Select(
            pick=(by, *(_agg(pair, tables[last]) for pair in plan["aggregates"])),
            table=tables[last].name,
            joins=upward(tables, last, number),
            where=where(plan["where"], tables) if plan["where"] else None,
            group=(by,),
            having=Compare(_agg((having[0], having[1][2]), tables[last]), *having[1][3:]) if having else None,
        )

    def ask(self, plan: Mapping[str, Any], tables: Sequence[Table]) -> Mapping[str, str]:
        """Groups and conditions in English."""
        last, (number, label) = len(tables) - 1, plan["by"]
        having, also = plan["having"], ""
        by = label if number == last else name_column(tables, last, number, label).replace("its", "their", 1)
        if having:
            (kind, (_, _, column, op, value)) = having
            bound = f"{ {'>=': 'at least', '<=': 'at most', '>': 'more than', '<': 'less than'}[op] } {value}"
            these = (
                f"with {bound} of these {tables[last].plural}"
                if kind == "count"
                else f"in which {count_phrase((kind, column))} is {bound}"
            )
            also = f" Leave out all groups but those {these}."
        if number < last:
            also += f" Leave out {tables[last].plural} that belong to no {at(tables, number).name}."
        return {
            "many": tables[last].plural,
            "that": f" {clauses(plan['where'], tables, last)}" if plan["where"] else "",
            "by": by,
            "row": joined_words([by, *(count_phrase(pair, "the number of rows") for pair in plan["aggregates"])]),
            "having": also,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Order(Question):
    """The first rows in an order. The level adds conditions, a second key, rows to skip, and keys of the rows above.

    >>> from assay_tasks.sql.themes import theme
    >>> plan = {"where": None, "pick": ["name"], "keys": [[0, "area", True]], "limit": 2, "offset": 0}
    >>> Order().query(plan, theme("shop")[:1]).sql()
    'SELECT city.name FROM city ORDER BY city.area DESC, city.id LIMIT 2'
    """

    name: str = "sql/order"
    rows: int = 14
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)

    spans: ClassVar[Mapping[int, tuple[int, int]]] = {1: (1, 1), 2: (1, 2), 3: (1, 2), 4: (1, 3), 5: (2, 3)}
    templates: ClassVar[tuple[str, ...]] = (
        "Sort the {many}{that} {keys}. Give {what} of {part}, in this order.{also}",
        "Give {what} of {part} when the {many}{that} are sorted {keys}. The order matters.{also}",
        "List {what} of {part} among the {many}{that}, sorted {keys}.{also}",
    )

    def plan(self, level: int, tables: Sequence[Table], rng: Random) -> dict[str, Any]:
        """Keys, conditions, and which of the rows are wanted."""
        last = len(tables) - 1
        numbers = [c.name for c in tables[last].numbers if not c.missing]
        keys: list[Any] = [[last, rng.choice(numbers), rng.random() < 0.5]]
        if level >= 3:
            label = rng.choice(tables[last].labels if level < 5 else tables[last - 1].labels)
            keys.insert(0, [last if level < 5 else last - 1, label.name, rng.random() < 0.5])
        shape = {1: None, 2: "a", 3: "a", 4: "a&b", 5: "a&b"}[level]
        found = tree([(last, tables[last])] * _SIZES[shape], shape, rng, [key[1] for key in keys]) if shape else None
        return {
            "where": found,
            "keys": keys,
            "pick": rng.sample([c.name for c in tables[last].columns], rng.randint(1, 2)),
            "limit": rng.randint(1, 3) if level < 3 else rng.randint(2, 4),
            "offset": rng.randint(1, 2) if level >= 4 else 0,
        }

    def query(self, plan: Mapping[str, Any], tables: Sequence[Table]) -> Select:
        """ORDER BY the keys and then id, so that nothing is tied."""
        last = len(tables) - 1
        order = tuple((Col(at(tables, n).name, c), down) for n, c, down in plan["keys"])
        return Select(
            pick=tuple(Col(tables[last].name, c) for c in plan["pick"]),
            table=tables[last].name,
            joins=upward(tables, last, plan["keys"][0][0], told=not plan["keys"][0][2]),  # NULL comes last in descending order
            where=where(plan["where"], tables) if plan["where"] else None,
            order=(*order, (Col(tables[last].name, "id"), False)),
            limit=plan["limit"],
            offset=plan["offset"],
        )

    def ask(self, plan: Mapping[str, Any], tables: Sequence[Table]) -> Mapping[str, str]:
        """Keys and conditions in English."""
        last, limit, offset = len(tables) - 1, plan["limit"], plan["offset"]
        said = [self._key(tables, last, key) for key in plan["keys"]]
        above = plan["keys"][0][0] < last
        return {
            "many": tables[last].plural,
            "that": f" {clauses(plan['where'], tables, last)}" if plan["where"] else "",
            "keys": f"{', then '.join(said)}, and where these are equal by id from small to large",
            "what": joined_words([f"the {c}" for c in plan["pick"]]),
            "part": (f"rows {offset + 1} to {offset + limit}" if limit > 1 else f"row {offset + 1}")
            if offset
            else (f"the first {limit}" if limit > 1 else "the first"),
            "also": f" Leave out {tables[last].plural} that belong to no {tables[last - 1].name}." if above else "",
        }

    def _key(self, tables: Sequence[Table], last: int, key: Sequence[Any]) -> str:
        number, column, down = key
        owner = column if number == last else name_column(tables, last, number, column).replace("its", "their", 1)
        text = at(tables, number).column(column).text
        ways = ("from Z to A", "from A to Z") if text else ("from large to small", "from small to large")
        return f"by {owner} {ways[0] if down else ways[1]}"


def _numbers(found: Sequence[Any]) -> set[int]:
    """The tables that a condition is about."""
    return {found[1]} if found[0] == "is" else set[int]().union(*map(_numbers, found[1:]))
