"""The functions that a query may call, and those among them that have to be tamed."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from typing import Any

__all__ = ["ALLOWED", "Tamed"]

_HARMLESS = """
-> ->> abs acos acosh asin asinh atan atan2 atanh avg ceil ceiling char coalesce concat concat_ws cos cosh count cume_dist
current_date current_time current_timestamp date datetime degrees dense_rank exp first_value floor format glob group_concat
hex ifnull instr json json_array json_array_length json_extract json_group_array json_group_object json_insert json_object
json_patch json_quote json_remove json_replace json_set json_type json_valid julianday lag last_value lead length like
likelihood likely ln log log10 log2 lower ltrim max min mod nth_value ntile nullif percent_rank pi pow power printf quote
radians rank replace round row_number rtrim sign sin sinh soundex sqrt strftime string_agg substr substring sum tan tanh time
total trim trunc typeof unhex unicode unixepoch unlikely upper zeroblob
"""
ALLOWED = frozenset([*_HARMLESS.split(), "iif"])  # codespell:ignore iif
"""Functions whose value follows from their arguments and that touch nothing else; ``random`` is not among them."""

_CLOCK = {"current_date": "date", "current_time": "time", "current_timestamp": "datetime"} | {
    name: name for name in ("date", "datetime", "julianday", "strftime", "time", "unixepoch")
}
_PRESENT = frozenset({"now", "subsec", "subsecond"})
_PRINTS = {"printf": "printf", "format": "printf"}
_WIDE = re.compile(r"%[^%A-Za-z]*(?:\*|\d{4})")


class Tamed:
    """Some of SQLite's functions, made harmless and otherwise as they are: a second connection computes them.

    For date functions the present moment stands still. ``printf`` refuses a width that a query computes or that has four digits:
    SQLite spends seconds on a wide one, within a single step.

    Args:
        connection: where they replace the originals.
        now: the present moment.
        cell: bytes that a value may have.
    """

    def __init__(self, connection: sqlite3.Connection, now: str, cell: int) -> None:
        self._originals = sqlite3.connect(":memory:", isolation_level=None)
        self._originals.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, cell)
        self._now = now
        self.exceeded = ""  # which limit a call ran into, in words
        self.calls = 0
        for name in (*_CLOCK, *_PRINTS):
            connection.create_function(name, -1, _Call(self, name), deterministic=True)

    def close(self) -> None:
        """End the second connection."""
        self._originals.close()

    def call(self, name: str, given: tuple[Any, ...]) -> Any:
        """The value of one call.

        Raises:
            ValueError: ``printf`` with a wide field; `exceeded` says so.
            sqlite3.Error: as the function itself.
        """
        self.calls += 1
        if name in _CLOCK:
            given = self._at(int(name == "strftime"), given)
        elif given and _WIDE.search(_text(given[0])):
            self.exceeded = "printf with a width of four digits, or one that is computed"
            raise ValueError(self.exceeded)
        return self._originals.execute(f"SELECT {(_CLOCK | _PRINTS)[name]}({','.join('?' * len(given))})", given).fetchone()[0]

    def _at(self, place: int, given: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(given) == place:
            return (*given, self._now)
        if len(given) > place and _text(given[place]).lower() in _PRESENT:
            return (*given[:place], self._now, *given[place + 1 :])
        return given


def _text(value: Any) -> str:
    """How SQLite reads a value as text, up to the first zero byte; nothing for a number."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return text.partition("\0")[0] if isinstance(text, str) else ""


@dataclass(frozen=True, slots=True)
class _Call:
    tamed: Tamed
    name: str

    def __call__(self, *given: Any) -> Any:
        return self.tamed.call(self.name, given)
