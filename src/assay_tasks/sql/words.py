"""Conditions of a question: drawn, in English and as part of a query."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from random import Random
from typing import Any, cast

from assay_tasks.sql.query import All, Any_, Col, Compare, Where
from assay_tasks.sql.themes import Column, Table, at

__all__ = ["clauses", "condition", "constants", "joined_words", "name_column", "path", "tree", "verb", "where"]

Tree = list[Any]
"""``["is", table, column, op, value]`` with the table's number in the chain, or ``["and" | "or", tree, ...]``."""

_WORDS = {
    "=": "{}",
    "<>": "not {}",
    ">": "more than {}",
    ">=": "at least {}",
    "<": "less than {}",
    "<=": "at most {}",
    "NULL": "missing",
    "KNOWN": "not missing",
}


def condition(table: int, column: Column, rng: Random, own: bool = True) -> Tree:
    """A condition on one column, which some cells fulfil and others do not; that they are missing only of a row's ``own``."""
    if own and column.missing and rng.random() < 0.25:
        return ["is", table, column.name, rng.choice(("NULL", "KNOWN")), None]
    if column.text:
        op = "=" if column.missing or rng.random() < 0.7 else "<>"
        return ["is", table, column.name, op, rng.choice(column.values)]
    inner = cast("range", column.values)
    edge = max(1, len(inner) // 5)
    inner = inner[edge : len(inner) - edge]
    if len(inner) > 6 and rng.random() < 0.2:
        low, high = sorted(rng.sample(inner, 2))
        return ["is", table, column.name, "BETWEEN", [low, high]]
    return ["is", table, column.name, rng.choice((">", ">=", "<", "<=")), rng.choice(inner)]


def tree(places: Sequence[tuple[int, Table]], shape: str, rng: Random, avoid: Collection[str | None] = ()) -> Tree:
    """Conditions on different columns, joined in a shape.

    Args:
        places: for each condition, which table it is about and its number.
        shape: ``a``, ``a&b``, ``a|b``, ``a&(b|c)``, ``(a|b)&(c|d)`` or ``a&(b|c)&(d|e)``.
        rng: draws them.
        avoid: columns of the last table that are asked for, which a condition would make trivial; taken where nothing else is
            left.
    """
    last = max(number for number, _ in places)
    used: set[tuple[int, str]] = set()
    found: list[Tree] = []
    for number, table in places:
        free = [c for c in table.columns if (number, c.name) not in used]
        column = rng.choice([c for c in free if number < last or c.name not in avoid] or free)
        used.add((number, column.name))
        found.append(condition(number, column, rng, number == last))
    match shape:
        case "a":
            return found[0]
        case "a&b":
            return ["and", *found]
        case "a|b":
            return ["or", *found]
        case "a&(b|c)":
            return ["and", found[0], ["or", *found[1:]]]
        case "(a|b)&(c|d)":
            return ["and", ["or", *found[:2]], ["or", *found[2:]]]
        case _:
            return ["and", found[0], ["or", *found[1:3]], ["or", *found[3:]]]


def where(found: Tree, tables: Sequence[Table]) -> Where:
    """The condition of a query."""
    if found[0] == "is":
        _, number, column, op, value = found
        return Compare(Col(at(tables, number).name, column), op, tuple(value) if isinstance(value, list) else value)  # pyright: ignore
    return (All if found[0] == "and" else Any_)(tuple(where(part, tables) for part in found[1:]))


def clauses(found: Tree, tables: Sequence[Table], base: int) -> str:
    """The condition in English, behind the plural of a table: "whose age is more than 3 and whose tier is gold"."""
    if found[0] == "is":
        _, number, column, op, value = found
        owner = path(tables, base, number)
        whose = f"whose {owner}'s {column}" if owner else f"whose {column}"
        if op == "BETWEEN":
            return f"{whose} {verb(column)} between {value[0]} and {value[1]} (both included)"
        return f"{whose} {verb(column)} {_WORDS[op].format(repr(value))}"
    parts = [clauses(part, tables, base) for part in found[1:]]
    parts = [f"({p})" if f[0] != "is" else p for p, f in zip(parts, found[1:], strict=True)]
    return f" {found[0]} ".join(parts)


def verb(column: str) -> str:
    """``are`` behind a plural, else ``is``."""
    return "are" if column.endswith("s") or column == "people" else "is"


def path(tables: Sequence[Table], base: int, number: int) -> str:
    """How a row speaks of the row that it belongs to: "customer's city"; "" of itself."""
    return "'s ".join(tables[i].name for i in range(base - 1, number - 1, -1))


def name_column(tables: Sequence[Table], base: int, number: int, column: str) -> str:
    """A column in English, as a row of the table ``base`` has it: "the age", "its customer's age"."""
    owner = path(tables, base, number)
    return f"its {owner}'s {column}" if owner else f"the {column}"


def joined_words(items: Sequence[str]) -> str:
    """A list in English.

    >>> joined_words(["a", "b", "c"])
    'a, b and c'
    """
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def constants(facts: Any, tables: Sequence[Table]) -> Iterator[tuple[tuple[str, str], Any]]:
    """The values that conditions compare with, by table and column; of trees anywhere in the facts."""
    if isinstance(facts, dict):
        for value in cast("dict[str, Any]", facts).values():
            yield from constants(value, tables)
    elif isinstance(facts, list) and facts:
        items = cast("list[Any]", facts)
        if items[0] != "is":
            for value in items:
                yield from constants(value, tables)
        elif items[4] is not None:
            _, number, column, _, value = items
            for one in cast("list[Any]", value if isinstance(value, list) else [value]):
                yield (at(tables, number).name, column), one
