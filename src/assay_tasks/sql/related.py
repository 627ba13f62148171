"""Questions to several tables: joins, rows that belong to a row, and conditions on what others there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay_tasks.sql.base import Question
from assay_tasks.sql.query import Agg, All, Col, Compare, Has, Join, Select, Where
from assay_tasks.sql.single import upward
from assay_tasks.sql.themes import Table, at
from assay_tasks.sql.words import clauses, joined_words, name_column, tree, verb, where

__all__ = ["Children", "Joined", "Nested"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined(Question):
    """Columns of rows and of the rows that these belong to. The level is about joins: 1 to 3, with and without conditions.

    Rows without a partner are left out or kept, as the question says (JOIN or LEFT JOIN). Where a condition needs the partner,
    they are left out.

    >>> from assay_tasks.sql.themes import theme
    >>> plan = {"where": ["is", 1, "age", "<", 30], "pick": [[1, "name"], [0, "name"]], "kind": "LEFT JOIN"}
    >>> Joined().query(plan, theme("shop")[:2]).sql()
    'SELECT customer.name, city.name FROM customer LEFT JOIN city ON customer.city_id = city.id WHERE customer.age < 30'
    """

    name: str = "sql/join"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)

    spans: ClassVar[Mapping[int, tuple[int, int]]] = {1: (2, 2), 2: (2, 3), 3: (3, 3), 4: (3, 4), 5: (4, 4)}
    templates: ClassVar[tuple[str, ...]] = (
        "For every {one} {that}, give {what}.{rest}",
        "List all {many} {that}, each with {what}.{rest}",
        "Take the {many} {that}. One row for each, with {what}.{rest}",
    )

    def plan(self, level: int, tables: Sequence[Table], rng: Random) -> dict[str, Any]:
        """Columns at both ends of the joins, conditions, and what becomes of rows without a partner."""
        last = len(tables) - 1
        stop = last - (1, 1, 2, 2, 3)[level - 1]
        places = [(last, tables[last])]
        if level in (2, 4):
            places.append((last - 1, tables[last - 1]))
        if level == 5:
            places += [(last - 1, tables[last - 1]), (last - 2, tables[last - 2])]
        pick = [
            [last, rng.choice(["id", *(c.name for c in tables[last].columns)])],
            [stop, rng.choice(tables[stop].columns).name],
        ]
        if last - stop > 1:
            pick.insert(1, [last - 1, rng.choice(tables[last - 1].columns).name])
        found = tree(places, {1: "a", 2: "a&b", 3: "a&(b|c)"}[len(places)], rng)
        kind = rng.choice(("JOIN", "LEFT JOIN"))
        return {"where": found, "pick": pick, "kind": kind if _deepest(found, last) > stop else "JOIN"}

    def query(self, plan: Mapping[str, Any], tables: Sequence[Table]) -> Select:
        """As many joins as the picked columns need."""
        last = len(tables) - 1
        stop = min(n for n, _ in plan["pick"])
        return Select(
            pick=tuple(Col(at(tables, n).name, c) for n, c in plan["pick"]),
            table=tables[last].name,
            joins=self._joins(plan, tables, last, stop),
            where=where(plan["where"], tables),
        )

    def ask(self, plan: Mapping[str, Any], tables: Sequence[Table]) -> Mapping[str, str]:
        """Columns, conditions, and what becomes of rows without a partner, those that no condition refuses."""
        last, stop = len(tables) - 1, min(n for n, _ in plan["pick"])
        most = last if plan["kind"] == "JOIN" else _deepest(plan["where"], last)
        lacks = [f"that belong to no {tables[last - 1].name}"] if most == last else []
        lacks += [
            f"whose {name_column(tables, last, i, '').split('its ')[1].removesuffix(chr(39) + 's ')} "
            f"belongs to no {tables[i - 1].name}"
            for i in range(min(last - 1, most), stop, -1)
        ]
        lacking = f"{tables[last].plural} " + " or ".join(lacks)
        rest = f"Leave out {lacking}." if plan["kind"] == "JOIN" else f"Keep {lacking}, with NULL for what is not there."
        return {
            "one": tables[last].name,
            "many": tables[last].plural,
            "that": clauses(plan["where"], tables, last),
            "what": joined_words([name_column(tables, last, n, c) for n, c in plan["pick"]]),
            "rest": f" {rest}",
        }

    def _joins(self, plan: Mapping[str, Any], tables: Sequence[Table], last: int, stop: int) -> tuple[Join, ...]:
        """Each join is told from its other kind, unless a condition or a later join refuses rows without that partner."""
        needed = _deepest(plan["where"], last)
        found: list[Join] = []
        for i, join in zip(range(last - 1, stop - 1, -1), upward(tables, last, stop, plan["kind"]), strict=True):
            found.append(Join(join.table, join.on, join.kind, told=i < needed and (plan["kind"] != "JOIN" or i == stop)))
        return tuple(found)


def _deepest(found: Sequence[Any], last: int) -> int:
    """The number of the highest table that every right row must have a partner in."""
    if found[0] == "is":
        return found[1] if found[3] != "NULL" else last
    parts = [_deepest(part, last) for part in found[1:]]
    return min(parts) if found[0] == "and" else max(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Children(Question):
    """For every row, what belongs to it: how many, their sum, 0 where there is nothing. The level adds conditions and joins.

    The lowest level has only a few hundred questions.

    >>> from assay_tasks.sql.themes import theme
    >>> plan = {"where": None, "also": None, "aggregate": ["count", "id"], "deep": 1, "least": 0}
    >>> Children().query(plan, theme("shop")[:2]).sql()
    'SELECT city.id, COUNT(customer.id) FROM city LEFT JOIN customer ON customer.city_id = city.id GROUP BY city.id'
    """

    name: str = "sql/children"
    rows: int = 12
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)

    spans: ClassVar[Mapping[int, tuple[int, int]]] = {1: (2, 2), 2: (2, 3), 3: (2, 3), 4: (2, 3), 5: (3, 4)}
    templates: ClassVar[tuple[str, ...]] = (
        "For every {one}{that}, give its id and {what}. {empty}{least}",
        "List the id of each of the {many}{that}, with {what}. {empty}{least}",
        "One row for each {one}{that}: its id and {what}. {empty}{least}",
    )

    def plan(self, level: int, tables: Sequence[Table], rng: Random) -> dict[str, Any]:
        """An aggregate of what belongs to a row, with conditions on either."""
        last, deep = len(tables) - 1, 2 if level == 5 else 1
        top = last - deep
        shown = rng.choice([c for c in tables[last].numbers if not c.missing])
        aggregate = rng.choice((["count", "id"], ["distinct", rng.choice(tables[last].labels).name], ["max", shown.name]))
        if level < 5 and rng.random() < 0.4:
            aggregate = ["sum", shown.name]
        return {
            "where": tree([(top, tables[top])], "a", rng) if level == 2 or level >= 4 or rng.random() < 0.3 else None,
            "also": tree([(last, tables[last])], "a", rng, aggregate[1:]) if level >= 3 else None,
            "aggregate": aggregate,
            "deep": deep,
            "least": rng.randint(1, 2) if level == 4 else 0,
        }

    def query(self, plan: Mapping[str, Any], tables: Sequence[Table]) -> Select:
        """LEFT JOIN downwards, conditions on what is joined in ON."""
        last = len(tables) - 1
        top = last - int(plan["deep"])
        also = where(plan["also"], tables) if plan["also"] else None
        joins = tuple(
            Join(
                tables[i].name,
                (Col(tables[i].name, tables[i].reference), Col(tables[i - 1].name, "id")),
                "LEFT JOIN",
                also if i == last else None,
                told=not plan["least"],
            )
            for i in range(top + 1, last + 1)
        )
        kind, column = plan["aggregate"]
        own, key = Col(tables[last].name, column), Col(tables[top].name, "id")
        least = Compare(Agg("count", Col(tables[last].name, "id")), ">=", plan["least"]) if plan["least"] else None
        return Select(
            pick=(key, _OrNothing(kind, own)),
            table=tables[top].name,
            joins=joins,
            where=where(plan["where"], tables) if plan["where"] else None,
            group=(key,),
            having=least,
        )

    def ask(self, plan: Mapping[str, Any], tables: Sequence[Table]) -> Mapping[str, str]:
        """What is asked of what belongs to a row."""
        last = len(tables) - 1
        top = last - int(plan["deep"])
        that = f" {clauses(plan['also'], tables, last)}" if plan["also"] else ""
        own = f"its {tables[last].plural}{that}"
        if plan["deep"] == 2:
            own = f"the {tables[last].plural}{that} that belong to its {tables[top + 1].plural}"
        kind, column = plan["aggregate"]
        what = {
            "count": f"the number of {own}",
            "distinct": f"the number of different values of {column} among {own}",
            "max": f"the largest value of {column} among {own}",
            "sum": f"the sum of {column} over {own}",
        }[kind]
        return {
            "one": tables[top].name,
            "many": tables[top].plural,
            "what": what,
            "that": f" {clauses(plan['where'], tables, top)}" if plan["where"] else "",
            "empty": f"Where there are none, give {'NULL' if kind == 'max' else '0'}." if not plan["least"] else "",
            "least": f"Leave out {tables[top].plural} with fewer than {plan['least']} such {tables[last].plural}."
            if plan["least"]
            else "",
        }


@dataclass(frozen=True, slots=True)
class _OrNothing(Agg):
    """An aggregate of which the sum of nothing is 0."""

    def sql(self) -> str:
        text = Agg.sql(self)
        return f"COALESCE({text}, 0)" if self.kind == "sum" else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Nested(Question):
    """Conditions that need a query of their own: above the mean, has some, has none. The level adds depth and correlation.

    1 compares with an aggregate of other rows, 2 asks for a row below, 3 for none, 4 for a row below without one below itself, 5
    compares with the mean of the row's own group and asks for a row below.

    >>> from assay_tasks.sql.themes import theme
    >>> plan = {"kind": 3, "where": None, "inner": ["is", 1, "age", "<", 30], "pick": ["name"]}
    >>> Nested().query(plan, theme("shop")[:2]).sql()  # doctest: +NORMALIZE_WHITESPACE
    'SELECT city.name FROM city WHERE NOT EXISTS (SELECT 1 FROM customer WHERE customer.city_id = city.id AND customer.age < 30)'
    """

    name: str = "sql/nested"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)

    spans: ClassVar[Mapping[int, tuple[int, int]]] = {1: (1, 2), 2: (2, 2), 3: (2, 3), 4: (3, 3), 5: (2, 3)}
    templates: ClassVar[tuple[str, ...]] = (
        "List {what} of all {many} {that}.",
        "For every {one} {that}, give {what}.",
        "Which {many} are there {that}? Give {what} of each.",
    )

    def plan(self, level: int, tables: Sequence[Table], rng: Random) -> dict[str, Any]:
        """What is compared with what, and the conditions inside."""
        last = len(tables) - 1
        top = last - (0, 1, 1, 2, 1)[level - 1]
        plan: dict[str, Any] = {
            "kind": level,
            "where": tree([(top, tables[top])], "a", rng) if level == 3 else None,
            "pick": rng.sample(["id", *(c.name for c in tables[top].columns)], rng.randint(1, 2)),
        }
        if level in (1, 5):
            plan["number"], plan["by"] = rng.choice(tables[top].numbers).name, rng.choice(tables[top].labels).name
            plan["above"] = rng.random() < 0.5
            plan["aggregate"] = "avg" if level == 5 else rng.choice(("avg", "avg", "min", "max"))
        plan["inner"] = tree([(last, tables[last])], "a", rng, [plan.get("number")] if level == 1 else ())
        return plan

    def query(self, plan: Mapping[str, Any], tables: Sequence[Table]) -> Select:
        """Subqueries as the level says."""
        kind: int = plan["kind"]
        last = len(tables) - 1
        top = last - (0, 1, 1, 2, 1)[kind - 1]
        parts: list[Where] = [where(plan["where"], tables)] if plan["where"] else []
        if kind in (1, 5):
            parts.append(self._compare_nested(plan, tables, top))
        if kind >= 2:
            inner: Where = where(plan["inner"], tables)
            for i in range(last, top, -1):
                own = Compare(Col(tables[i].name, tables[i].reference), "=", Col(tables[i - 1].name, "id"))
                inner = Has(
                    Select(pick=(), table=tables[i].name, tie=own, where=inner), none=kind == 3 or (kind == 4 and i == last)
                )
            parts.append(inner)
        found = parts[0] if len(parts) == 1 else All(tuple(parts))
        return Select(pick=tuple(Col(tables[top].name, c) for c in plan["pick"]), table=tables[top].name, where=found)

    def ask(self, plan: Mapping[str, Any], tables: Sequence[Table]) -> Mapping[str, str]:
        """The nested conditions in English."""
        kind: int = plan["kind"]
        last = len(tables) - 1
        top = last - (0, 1, 1, 2, 1)[kind - 1]
        many, parts = tables[top].plural, [clauses(plan["where"], tables, top)] if plan["where"] else []
        if kind in (1, 5):
            side = "more" if plan["above"] else "less"
            fit = {"avg": "the mean", "min": "the smallest value", "max": "the largest value"}[plan["aggregate"]]
            rows = f"all {many} {clauses(plan['inner'], tables, top)}" if kind == 1 else f"all {many} with the same {plan['by']}"
            parts.append(f"whose {plan['number']} {verb(plan['number'])} {side} than {fit} of {plan['number']} of {rows}")
        if kind >= 2:
            below = f"{tables[last].name} {clauses(plan['inner'], tables, last)}"
            some = {3: f"no {below}", 4: f"at least one {tables[last - 1].name} that has no {below}"}
            parts.append(f"with {some.get(kind, f'at least one {below}')}")
        return {
            "many": many,
            "one": tables[top].name,
            "that": parts[0] if len(parts) == 1 else f"(1) {parts[0]} and (2) {parts[1]}",
            "what": joined_words([f"the {c}" for c in plan["pick"]]),
        }

    def _compare_nested(self, plan: Mapping[str, Any], tables: Sequence[Table], top: int) -> Compare:
        name = tables[top].name
        if plan["kind"] == 1:
            rows = Select(
                pick=(Agg(plan["aggregate"], Col(name, plan["number"])),), table=name, where=where(plan["inner"], tables)
            )
        else:
            same = Compare(Col("other", plan["by"]), "=", Col(name, plan["by"]))
            rows = Select(pick=(Agg("avg", Col("other", plan["number"])),), table=name, alias="other", where=same)
        return Compare(Col(name, plan["number"]), ">" if plan["above"] else "<", rows)
