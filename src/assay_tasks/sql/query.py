"""Queries as trees: their SQL, and the nearby wrong ones that a database has to tell from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

__all__ = ["Agg", "All", "Any_", "Col", "Compare", "Expr", "Has", "Join", "Select", "Sets", "Sub", "Where", "Win", "mutants"]


@dataclass(frozen=True, slots=True)
class Col:
    """A column of a table, or of an alias."""

    table: str
    name: str

    def sql(self) -> str:
        """Its qualified name."""
        return f"{self.table}.{self.name}"


@dataclass(frozen=True, slots=True)
class Agg:
    """An aggregate: ``count``, ``sum``, ``avg``, ``min``, ``max`` or ``distinct`` (the number of different values).

    Attributes:
        kind: which.
        of: the column; None counts rows.
    """

    kind: str
    of: Col | None = None

    def sql(self) -> str:
        """As a call."""
        if self.of is None:
            return "COUNT(*)"
        return f"COUNT(DISTINCT {self.of.sql()})" if self.kind == "distinct" else f"{self.kind.upper()}({self.of.sql()})"

    def others(self) -> Iterator[Agg]:
        """What it could be mistaken for."""
        if self.of is not None and self.of.name != "id":
            for kind in {"count": ("distinct",), "distinct": ("count",), "sum": ("avg",), "avg": ("sum", "max")}.get(
                self.kind, ("avg", "min" if self.kind == "max" else "max")
            ):
                yield Agg(kind, self.of)


@dataclass(frozen=True, slots=True)
class Win:
    """A function over a window.

    Attributes:
        call: as ``RANK()`` or ``SUM(item.price)``.
        by: the column whose values are the groups; None for one window.
        order: columns, each with whether it descends.
        minus: a column from which the value is subtracted.
    """

    call: str
    by: Col | None
    order: tuple[tuple[Col, bool], ...] = ()
    minus: Col | None = None

    def sql(self) -> str:
        """As a call with its window."""
        parts = [f"PARTITION BY {self.by.sql()}"] if self.by else []
        if self.order:
            parts.append("ORDER BY " + ", ".join(f"{c.sql()}{' DESC' if down else ''}" for c, down in self.order))
        over = f"{self.call} OVER ({' '.join(parts)})"
        return f"{self.minus.sql()} - {over}" if self.minus else over

    def others(self) -> Iterator[Win]:
        """Without its groups, or in the opposite order."""
        if self.by:
            yield replace(self, by=None)
        if self.order:
            yield replace(self, order=((self.order[0][0], not self.order[0][1]), *self.order[1:]))


@dataclass(frozen=True, slots=True)
class Compare:
    """``left op right``: ``op`` is a comparison, ``BETWEEN`` (right is a pair), ``NULL`` or ``KNOWN``."""

    left: Expr
    op: str
    right: Right = None

    def sql(self) -> str:
        """As a condition."""
        left = self.left.sql()
        if self.op in ("NULL", "KNOWN"):
            return f"{left} IS {'NOT ' if self.op == 'KNOWN' else ''}NULL"
        if isinstance(self.right, tuple):
            return f"{left} BETWEEN {_value(self.right[0])} AND {_value(self.right[1])}"
        if isinstance(self.right, Select):
            return f"{left} {self.op} ({self.right.sql()})"
        return f"{left} {self.op} {self.right.sql() if isinstance(self.right, Col) else _value(self.right)}"

    def others(self) -> Iterator[Compare]:
        """With another comparison, or a mutant of its subquery."""
        for op in _MISTAKEN.get(self.op, ()):
            if not isinstance(self.right, Select) or "=" not in op:  # a mean is hardly ever equal to anything
                yield replace(self, op=op)
        if isinstance(self.right, tuple):
            yield replace(self, op=">=", right=self.right[0])
            yield replace(self, op="<=", right=self.right[1])
        elif isinstance(self.right, Select):
            yield from (replace(self, right=other) for other in mutants(self.right))
        if isinstance(self.left, Agg):
            yield from (replace(self, left=other) for other in self.left.others())


_MISTAKEN = {
    ">": (">=", "<"),
    ">=": (">", "<="),
    "<": ("<=", ">"),
    "<=": ("<", ">="),
    "=": ("<>",),
    "<>": ("=",),
    "NULL": ("KNOWN",),
    "KNOWN": ("NULL",),
}


@dataclass(frozen=True, slots=True)
class Has:
    """Whether a correlated subquery has rows."""

    rows: Select
    none: bool = False

    def sql(self) -> str:
        """As a condition."""
        return f"{'NOT ' if self.none else ''}EXISTS ({self.rows.sql()})"

    def others(self) -> Iterator[Has]:
        """The opposite, and mutants of the subquery."""
        yield replace(self, none=not self.none)
        yield from (replace(self, rows=other) for other in mutants(self.rows))


@dataclass(frozen=True, slots=True)
class All:
    """Conditions that must all hold."""

    parts: tuple[Where, ...]

    def sql(self) -> str:
        """Joined by AND."""
        return " AND ".join(_add_brackets(p) for p in self.parts)

    def others(self) -> Iterator[Where]:
        """One left out, one changed, or any of them."""
        return _vary_conditions(self.parts, All, Any_)


@dataclass(frozen=True, slots=True)
class Any_:
    """Conditions of which one must hold."""

    parts: tuple[Where, ...]

    def sql(self) -> str:
        """Joined by OR."""
        return " OR ".join(_add_brackets(p) for p in self.parts)

    def others(self) -> Iterator[Where]:
        """One left out, one changed, or all of them."""
        return _vary_conditions(self.parts, Any_, All)


Expr = Col | Agg | Win
Where = Compare | Has | All | Any_


@dataclass(frozen=True, slots=True)
class Join:
    """A table joined.

    Attributes:
        table: its name.
        on: the two columns that are equal.
        kind: ``JOIN`` or ``LEFT JOIN``.
        also: a further condition of the join.
        told: whether the other kind means something else; not where a later condition refuses rows without a partner.
    """

    table: str
    on: tuple[Col, Col]
    kind: str = "JOIN"
    also: Where | None = None
    told: bool = True

    def sql(self) -> str:
        """The clause."""
        also = f" AND {_add_brackets(self.also)}" if self.also else ""
        return f"{self.kind} {self.table} ON {self.on[0].sql()} = {self.on[1].sql()}{also}"

    def others(self) -> Iterator[Join]:
        """Of the other kind, or with another condition."""
        if self.told:
            yield replace(self, kind="JOIN" if self.kind == "LEFT JOIN" else "LEFT JOIN")
        if self.also:
            yield from (replace(self, also=other) for other in (None, *self.also.others()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Select:
    """One SELECT.

    Attributes:
        pick: what it gives; empty for the constant 1.
        table: read first, a name or a subquery with an alias.
        alias: of the table.
        joins: further tables.
        tie: what ties it to a query outside; a query without it would be another, so it has no mutants.
        where: its condition.
        group, having: of groups.
        order: expressions, each with whether it descends.
        limit, offset: of rows.
        distinct: each row once.
    """

    pick: tuple[Expr, ...]
    table: str | Sub
    alias: str = ""
    joins: tuple[Join, ...] = ()
    tie: Compare | None = None
    where: Where | None = None
    group: tuple[Col, ...] = ()
    having: Where | None = None
    order: tuple[tuple[Expr, bool], ...] = ()
    limit: int = 0
    offset: int = 0
    distinct: bool = False

    def sql(self) -> str:
        """On one line."""
        source = self.table.sql() if isinstance(self.table, Sub) else self.table
        parts = [f"SELECT {'DISTINCT ' if self.distinct else ''}{', '.join(e.sql() for e in self.pick) or '1'} FROM {source}"]
        if self.alias:
            parts.append(f"AS {self.alias}")
        parts += [join.sql() for join in self.joins]
        if self.tie or self.where:
            parts.append("WHERE " + " AND ".join(_add_brackets(w) if self.tie else w.sql() for w in (self.tie, self.where) if w))
        if self.group:
            parts.append(f"GROUP BY {', '.join(c.sql() for c in self.group)}")
        if self.having:
            parts.append(f"HAVING {self.having.sql()}")
        if self.order:
            parts.append("ORDER BY " + ", ".join(f"{e.sql()}{' DESC' if down else ''}" for e, down in self.order))
        if self.limit:
            parts.append(f"LIMIT {self.limit}" + (f" OFFSET {self.offset}" if self.offset else ""))
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class Sub:
    """A subquery that stands for a table; its expressions are called ``a``, ``b``, ..."""

    select: Select
    alias: str

    def sql(self) -> str:
        """In brackets, with its alias."""
        inner = self.select
        named = ", ".join(f"{e.sql()} AS {letter}" for e, letter in zip(inner.pick, "abcdefgh", strict=False))
        text = inner.sql()
        listed = ", ".join(e.sql() for e in inner.pick)
        return f"({text.replace(listed, named, 1)}) AS {self.alias}"


@dataclass(frozen=True, slots=True)
class Sets:
    """Selects joined by ``UNION``, ``INTERSECT`` or ``EXCEPT``, from the left."""

    parts: tuple[Select, ...]
    kinds: tuple[str, ...]

    def sql(self) -> str:
        """On one line."""
        text = self.parts[0].sql()
        for kind, part in zip(self.kinds, self.parts[1:], strict=True):
            text += f" {kind} {part.sql()}"
        return text


Right = int | str | tuple[int, int] | Select | Col | None


def mutants(query: Select | Sets) -> Iterator[Select | Sets]:
    """Queries that differ from this one by one mistake: a condition dropped or turned, another aggregate, another join."""
    if isinstance(query, Sets):
        yield from _of_sets(query)
        return
    yield from _of_picks(query)
    if isinstance(query.table, Sub):
        yield from (
            replace(query, table=replace(query.table, select=m)) for m in mutants(query.table.select) if isinstance(m, Select)
        )
    for i, join in enumerate(query.joins):
        yield from (replace(query, joins=(*query.joins[:i], other, *query.joins[i + 1 :])) for other in join.others())
    if query.where:
        yield from (replace(query, where=other) for other in (None, *query.where.others()))
    if query.having:
        yield from (replace(query, having=other) for other in (None, *query.having.others()))
    if query.order:
        (first, down), rest = query.order[0], query.order[1:]
        yield replace(query, order=((first, not down), *rest))
        if rest:
            yield replace(query, order=rest)
    if query.limit:
        yield replace(query, limit=query.limit + 1)
    if query.offset:
        yield replace(query, offset=query.offset - 1)


def _of_picks(query: Select) -> Iterator[Select]:
    if query.distinct:
        yield replace(query, distinct=False)
    for i, picked in enumerate(query.pick):
        if isinstance(picked, Agg | Win):
            for other in picked.others():
                yield replace(query, pick=(*query.pick[:i], other, *query.pick[i + 1 :]))


def _of_sets(query: Sets) -> Iterator[Sets]:
    for i, part in enumerate(query.parts):
        for other in mutants(part):
            if isinstance(other, Select):
                yield replace(query, parts=(*query.parts[:i], other, *query.parts[i + 1 :]))
    for i, kind in enumerate(query.kinds):
        for other in ("UNION", "INTERSECT", "EXCEPT"):
            if other != kind:
                yield replace(query, kinds=(*query.kinds[:i], other, *query.kinds[i + 1 :]))


def _vary_conditions(parts: tuple[Where, ...], same: type[All | Any_], opposite: type[All | Any_]) -> Iterator[Where]:
    yield opposite(parts)
    for i, part in enumerate(parts):
        rest = (*parts[:i], *parts[i + 1 :])
        yield rest[0] if len(rest) == 1 else same(rest)
        yield from (same((*parts[:i], other, *parts[i + 1 :])) for other in part.others())


def _add_brackets(part: Where) -> str:
    return f"({part.sql()})" if isinstance(part, All | Any_) else part.sql()


def _value(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'" if isinstance(value, str) else str(value)
