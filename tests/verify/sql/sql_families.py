"""Seeded small databases with queries: a gold, forms of it that mean the same, and near misses."""

import random
from dataclasses import dataclass
from typing import Any

Rows = list[list[Any]]


@dataclass(frozen=True)
class Case:
    """A database, a gold query, forms that mean the same, near misses, and one that is right in the usual order of ties."""

    database: dict[str, Any]
    gold: str
    same: tuple[str, ...]
    near: tuple[str, ...]
    lucky: tuple[str, ...] = ()


@dataclass(frozen=True)
class Names:
    """Names drawn for two tables: things, and events of things."""

    a: str
    b: str
    name: str
    size: str
    of: str
    kind: str
    price: str


def names(rng: random.Random) -> Names:
    words = rng.sample(
        ["city", "pupil", "book", "visit", "loan", "sale", "title", "label", "rank", "weight", "sort", "fee", "Ort x"], 7
    )
    quoted = [f'"{w}"' if " " in w else w for w in words]
    return Names(*quoted)


def database(rng: random.Random, n: Names) -> dict[str, Any]:
    bare = {field: getattr(n, field).strip('"') for field in n.__dataclass_fields__}
    schema = {
        bare["a"]: [["id", "INTEGER PRIMARY KEY"], [bare["name"], "TEXT"], [bare["size"], "INTEGER"]],
        bare["b"]: [[bare["of"], "INTEGER"], [bare["kind"], "TEXT"], [bare["price"], "REAL"]],
    }
    return {"schema": schema, "instances": [{bare["a"]: things(rng), bare["b"]: events(rng)} for _ in range(3)]}


def things(rng: random.Random) -> Rows:
    """Twelve, with repeated names and sizes, and some that are not known."""
    return [[i, rng.choice(["ann", "bob", "cy", "Ann", None]), rng.choice([None, *range(8)])] for i in range(1, 13)]


def events(rng: random.Random) -> Rows:
    """Of things 1 to 14, of which two do not exist; prices are exact in binary."""
    return [
        [rng.randint(1, 14), rng.choice(["x", "y", "z", None]), rng.choice([None, *(k / 4 for k in range(16))])]
        for _ in range(24)
    ]


def filtered(rng: random.Random) -> Case:
    n, low, word = names(rng), rng.randint(1, 4), "ann"
    a, name, size = n.a, n.name, n.size
    cols = f"{name}, {size}"
    return Case(
        database(rng, n),
        f"SELECT {cols} FROM {a} WHERE {size} > {low} AND {name} <> '{word}'",
        (
            f"SELECT q.{name} AS one, q.{size} two FROM {a} AS q WHERE '{word}' != q.{name} AND {low} < q.{size};",
            f"WITH w AS (SELECT * FROM {a} WHERE {size} >= {low} + 1) SELECT {cols} FROM w WHERE NOT {name} = '{word}'",
            f"SELECT {cols} FROM (SELECT * FROM {a} WHERE {name} <> '{word}') WHERE {size} > {low} ORDER BY 2, 1",
            f"SELECT {cols} FROM {a} WHERE ({size}, 1) > ({low}, 1) AND {name} NOT IN ('{word}')",
        ),
        (
            f"SELECT {cols} FROM {a} WHERE {size} > {low}",
            f"SELECT {cols} FROM {a} WHERE {size} >= {low} AND {name} <> '{word}'",
            f"SELECT {cols} FROM {a} WHERE {size} > {low} AND ({name} <> '{word}' OR {name} IS NULL)",
            f"SELECT DISTINCT {cols} FROM {a} WHERE {size} > {low} AND {name} <> '{word}'",
            f"SELECT {cols} FROM {a} WHERE {size} > {low} AND lower({name}) <> '{word}'",
            f"SELECT {size}, {name} FROM {a} WHERE {size} > {low} AND {name} <> '{word}'",
        ),
    )


def summed(rng: random.Random) -> Case:
    n, how = names(rng), rng.choice(["SUM", "MIN", "MAX", "COUNT"])
    a, b, name, of, price = n.a, n.b, n.name, n.of, n.price
    return Case(
        database(rng, n),
        f"SELECT a.{name}, {how}(b.{price}) FROM {a} a JOIN {b} b ON b.{of} = a.id GROUP BY a.id",
        (
            f"SELECT x.{name}, {how}(y.{price}) FROM {b} y JOIN {a} x ON x.id = y.{of} GROUP BY x.id",
            f"SELECT x.{name}, {how}(y.{price}) FROM {a} x, {b} y WHERE x.id = y.{of} GROUP BY y.{of}",
            f"WITH s AS (SELECT {of} AS k, {how}({price}) AS v FROM {b} GROUP BY {of}) SELECT {name}, v FROM {a}, s ON k = id",
            f"SELECT {name}, (SELECT {how}({price}) FROM {b} WHERE {of} = id) FROM {a} WHERE id IN (SELECT {of} FROM {b})",
            f"SELECT n, v FROM (SELECT DISTINCT a.id, a.{name} AS n, {how}(b.{price}) OVER (PARTITION BY a.id) AS v FROM {a} a "
            f"JOIN {b} b ON b.{of} = a.id)",
        ),
        (
            f"SELECT a.{name}, {how}(b.{price}) FROM {a} a LEFT JOIN {b} b ON b.{of} = a.id GROUP BY a.id",
            f"SELECT a.{name}, {how}(b.{price}) FROM {a} a JOIN {b} b ON b.{of} = a.id GROUP BY a.{name}",
            f"SELECT a.{name}, AVG(b.{price}) FROM {a} a JOIN {b} b ON b.{of} = a.id GROUP BY a.id",
            f"SELECT a.{name}, {how}(b.{price}) FROM {a} a JOIN {b} b ON b.{of} = a.id WHERE a.{name} NOT NULL GROUP BY a.id",
            f"SELECT a.{name}, b.{price} FROM {a} a JOIN {b} b ON b.{of} = a.id",
        ),
    )


def related(rng: random.Random) -> Case:
    n, cost = names(rng), rng.randint(1, 3)
    a, b, name, size, of, price = n.a, n.b, n.name, n.size, n.of, n.price
    return Case(
        database(rng, n),
        f"SELECT {name} FROM {a} WHERE id IN (SELECT {of} FROM {b} WHERE {price} > {cost})",
        (
            f"SELECT {name} FROM {a} AS t WHERE EXISTS (SELECT 1 FROM {b} AS u WHERE u.{of} = t.id AND u.{price} > {cost})",
            f"SELECT w FROM (SELECT DISTINCT id, t.{name} AS w FROM {a} t JOIN {b} u ON u.{of} = id WHERE u.{price} > {cost})",
            f"SELECT t.{name} FROM {b} u JOIN {a} t ON t.id = u.{of} WHERE u.{price} > {cost}.0 GROUP BY t.id",
            f"WITH dear AS (SELECT DISTINCT {of} AS k FROM {b} WHERE {price} > {cost}) SELECT {name} FROM dear, {a} WHERE id = k",
        ),
        (
            f"SELECT t.{name} FROM {a} t JOIN {b} u ON u.{of} = t.id WHERE u.{price} > {cost}",
            f"SELECT {name} FROM {a} WHERE id NOT IN (SELECT {of} FROM {b} WHERE {price} > {cost})",
            f"SELECT DISTINCT {name} FROM {a} WHERE id IN (SELECT {of} FROM {b} WHERE {price} > {cost})",
            f"SELECT {name} FROM {a} WHERE id IN (SELECT {of} FROM {b} WHERE {price} < {cost})",
            f"SELECT {name} FROM {a} WHERE {size} IN (SELECT {of} FROM {b} WHERE {price} > {cost})",
        ),
    )


def sorted_by(rng: random.Random) -> Case:
    n, many = names(rng), rng.randint(3, 6)
    a, name, size = n.a, n.name, n.size
    return Case(
        database(rng, n),
        f"SELECT id, {name} FROM {a} WHERE {size} IS NOT NULL ORDER BY {size} DESC, id LIMIT {many}",
        (
            f"SELECT q.id AS k, q.{name} FROM {a} q WHERE q.{size} >= 0 ORDER BY -q.{size}, 1 LIMIT {many}",
            f"WITH w AS (SELECT *, row_number() OVER (ORDER BY {size} DESC, id) AS r FROM {a} WHERE {size} NOT NULL) "
            f"SELECT id, {name} FROM w WHERE r <= {many} ORDER BY r",
            f"SELECT id, {name} FROM (SELECT * FROM {a} WHERE {size} NOT NULL ORDER BY {size} DESC, id LIMIT {many}) "
            f"ORDER BY {size} DESC, id ASC -- again",
        ),
        (
            f"SELECT id, {name} FROM {a} WHERE {size} IS NOT NULL ORDER BY {size}, id LIMIT {many}",
            f"SELECT id, {name} FROM {a} WHERE {size} IS NOT NULL ORDER BY {size} DESC, id LIMIT {many + 1}",
            f"SELECT id, {name} FROM {a} ORDER BY {size}, id LIMIT {many}",
            f"SELECT id, {name} FROM {a} WHERE {size} IS NOT NULL ORDER BY id LIMIT {many}",
        ),
        (f"SELECT id, {name} FROM {a} WHERE {size} IS NOT NULL ORDER BY {size} DESC LIMIT {many}",),
    )


FAMILIES = {"filtered": filtered, "summed": summed, "related": related, "sorted": sorted_by}
