"""Databases as data."""

import sqlite3
from typing import Any

import pytest
from sql_tasks import DATABASE, ONE, SCHEMA, TWO

from assay.core.errors import DataError
from assay.verify import sql
from assay.verify.sql import Database

ROWS = ({"t": [[1]]}, {"t": [[2]]})
PLAIN = {"t": [["a", "INTEGER"]]}


def test_rows_as_data() -> None:
    schema = {'a "b"': [["x y", "INTEGER PRIMARY KEY"], ["select", "DECIMAL(10, 2)"], ["z", ""]]}
    database = Database(schema, ({'a "b"': [[1, 0.5, b"\x00"], [2**63 - 1, None, "ü"]]}, {}))
    with database.open(0) as connection:
        assert connection.execute('SELECT "x y", "select", z FROM "a ""b"""').fetchall() == [
            (1, 0.5, b"\0"),
            (2**63 - 1, None, "ü"),
        ]
    with database.open(1) as connection:
        assert connection.execute('SELECT count(*) FROM "a ""b"""').fetchall() == [(0,)]


def test_an_open_database_is_a_copy_that_cannot_be_written_to() -> None:
    with Database.of(DATABASE).open(0) as connection, pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("DELETE FROM city")
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, r"the database is None; give \{'schema': ..., 'instances': \[..., ...\]\}"),
        ("t.db", "the database is 't.db'; give"),
        ({"schema": SCHEMA}, r"lacks \['instances'\] and has unknown \[\]"),
        ({"schema": SCHEMA, "instances": [ONE, TWO], "rows": 1}, r"lacks \[\] and has unknown \['rows'\]"),
        ({"schema": SCHEMA, "instances": "INSERT"}, "is a str; give a list of two or more"),
        ({"schema": SCHEMA, "instances": 2}, "is an int; give a list"),
        ({"schema": 5, "instances": [ONE, TWO]}, "schema is 5; give SQL"),
        ({"schema": SCHEMA, "instances": [ONE]}, "1 instance; give two or more"),
        ({"schema": SCHEMA, "instances": [ONE, ONE]}, "the instances are all the same"),
        ({"schema": SCHEMA, "instances": [ONE, TWO], "now": "today"}, "now is 'today'; write a time like"),
        ({"schema": SCHEMA, "instances": [ONE, TWO], "now": 5}, "now is 5; write"),
    ],
)
def test_what_is_no_database(given: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Database.of(given)


@pytest.mark.parametrize(
    ("schema", "instance", "message"),
    [
        (PLAIN, {"u": [[1]]}, "instance 0 of the database cannot be built: no such table: u"),
        (PLAIN, {"t": [[1, 2]]}, "table t has 1 columns but 2 values"),
        (PLAIN, {"t": [[True, 2]]}, "table t has 1 columns"),
        (PLAIN, {"t": [[2**63]]}, "a cell of table 't' is 9223372036854775808; give None, a number of 64 bits"),
        (PLAIN, {"t": [[float("nan")]]}, "a cell of table 't' is nan"),
        (PLAIN, {"t": [[[1]]]}, r"a cell of table 't' is \[1\]"),
        (PLAIN, {"t": [5]}, "cannot be built: object of type 'int' has no len"),
        (PLAIN, 7, "an instance is an int; give SQL, or"),
        (PLAIN, "INSERT INTO t VALUES (1", "cannot be built: incomplete input"),
        (PLAIN, {"t": [["\ud800"]]}, "cannot be built: .*surrogates"),
        ({"t": [["a", "INTEGER); DROP TABLE t; --"]]}, {}, "column .* of table 't' is no pair"),
        ({"t": ["ab"]}, {}, "column 'ab' of table 't' is no pair of a name and a type"),
        ({"t": [["a"]]}, {}, "is no pair"),
        ({"t": [[1, "TEXT"]]}, {}, "is no pair"),
        ("CREATE THING t (a)", {}, 'cannot be built: near "THING"'),
    ],
)
def test_what_cannot_be_built(schema: Any, instance: Any, message: str) -> None:
    with pytest.raises(DataError, match=message), Database(schema, (instance, ROWS[0])).open(0):
        pass


def test_the_names_of_the_package() -> None:
    assert set(sql.__all__) <= set(dir(sql))
    assert all(getattr(sql, name).__doc__ for name in sql.__all__)
    with pytest.raises(AttributeError, match=r"'assay.verify.sql' has no attribute 'Nothing'"):
        _ = sql.Nothing
