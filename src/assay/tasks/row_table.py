"""What is known of the rows of a task family without looking at them again, and the form that rows must have."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from assay.core.canon import FrozenMap, canonical, check_row_text, digest, hash_text, plain
from assay.core.errors import DataError, a_kind, nearest
from assay.core.seeds import text_split

if TYPE_CHECKING:
    from assay.tasks.rows import Rows

__all__ = [
    "QUESTIONS",
    "RowTable",
    "frozen_row",
    "private_fields",
    "public_fields",
    "table_from_bytes",
    "table_to_bytes",
    "tabulate",
    "with_prompts",
    "without_question",
]

_ROLES = ("system", "user", "assistant", "tool")
_HIGHEST = 10**9
"""Largest level: batches hold levels as 64-bit numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTable:
    """What is known of rows without looking at them.

    Attributes:
        numbers: of the rows of each (arm, level, split), in order ``[n]``.
        keys: digest of what each row asks ``[rows]``, as hex.
        arms: each arm with its levels.
        repeated: rows dropped because another row says the same.
        symbols: every character of an answer, sorted.
    """

    numbers: Mapping[tuple[str, int, str], NDArray[np.int64]]
    keys: NDArray[np.bytes_]
    arms: Mapping[str, tuple[int, ...]]
    repeated: int
    differing: int
    symbols: str


def tabulate(source: Rows) -> RowTable:
    """The table of rows, each of which is checked.

    Raises:
        DataError: a row that is wrong; names its number, the field and a fix.
    """
    if not source.rows:
        raise DataError("Rows needs at least one row, got none")
    first: dict[tuple[str, str], int] = {}  # of splits that rows came with, each for itself
    said: dict[tuple[str, str], set[str]] = {}
    places: list[tuple[str, int, str]] = []
    symbols: set[str] = set()
    differing = 0
    for number, row in enumerate(source.rows):
        asks, place = _check_row(source, number, row)
        key = (asks, "" if source.tests is None else place[2])
        seen = first.setdefault(key, number)
        places.append(place)
        if seen != number:
            mine = digest([place, private_fields(row)])
            others = said.setdefault(key, {digest([places[seen], private_fields(source.rows[seen])])})
            if mine in others:
                continue
            others.add(mine)
            differing += 1
            first[digest([asks, mine]), key[1]] = number  # a task of its own, with a name of its own
        if "answer" in row:
            symbols.update(str(row["answer"]))
    cells: dict[tuple[str, int, str], list[int]] = {}
    for number in first.values():
        cells.setdefault(places[number], []).append(number)
    keys = np.empty(len(places), "S32")
    keys[list(first.values())] = [asks for asks, _ in first]
    return RowTable(
        numbers={cell: np.array(rows, np.int64) for cell, rows in cells.items()},
        keys=keys,
        arms=_arms(cells),
        repeated=len(places) - len(first),
        differing=differing,
        symbols="".join(sorted(symbols)),
    )


def private_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """What only a reward sees of a row."""
    return {"row": row} | {name: row[name] for name in ("answer", "solution") if name in row}


def _arms(cells: Iterable[tuple[str, int, str]]) -> dict[str, tuple[int, ...]]:
    levels: dict[str, set[int]] = {}
    for arm, level, _ in cells:
        levels.setdefault(arm, set()).add(level)
    return {arm: tuple(sorted(of)) for arm, of in sorted(levels.items())}


def table_to_bytes(table: RowTable, kind: str) -> bytes:
    """A table as bytes, with a digest of what it depends on."""
    cells = list(table.numbers)
    told = json.dumps(
        {"kind": kind, "cells": cells, "repeated": table.repeated, "differing": table.differing, "symbols": table.symbols}
    )
    sizes = np.array([len(table.numbers[cell]) for cell in cells], np.int64)
    file = io.BytesIO()
    numbers = np.concatenate([table.numbers[cell] for cell in cells])
    np.savez(file, allow_pickle=False, told=np.array(told), sizes=sizes, numbers=numbers, keys=table.keys)
    return file.getvalue()


def table_from_bytes(notes: bytes, kind: str) -> RowTable | None:
    """The table that notes say; None where there are none, or of other settings."""
    if not notes:
        return None
    with np.load(io.BytesIO(notes), allow_pickle=False) as arrays:
        told: Any = json.loads(str(arrays["told"]))
        if told["kind"] != kind:
            return None
        parts = np.split(arrays["numbers"], np.cumsum(arrays["sizes"])[:-1])
        numbers = {(arm, level, split): part for (arm, level, split), part in zip(told["cells"], parts, strict=True)}
        return RowTable(
            numbers=numbers,
            keys=arrays["keys"],
            arms=_arms(numbers),
            repeated=told["repeated"],
            differing=told["differing"],
            symbols=told["symbols"],
        )


def frozen_row(number: int, row: object) -> FrozenMap:
    """A row as plain values that cannot change.

    Raises:
        DataError: no mapping, or a value that is no plain one; names the row and the field.
    """
    if not isinstance(row, Mapping):
        raise DataError(f"row {number + 1} is {a_kind(row)}; make it a dict with 'prompt'")
    for name, value in cast("Mapping[str, Any]", row).items():
        if value.__class__ not in _PLAIN:
            try:
                plain(value)
            except DataError as error:
                raise DataError(f"row {number + 1}, field {name!r}: {error}") from None
    return FrozenMap(cast("Mapping[str, Any]", row))


QUESTIONS = ("question", "problem", "instruction")
"""Fields that are a prompt where a row has no other."""
_PLAIN = frozenset({str, int, float, bool})


def with_prompts(rows: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Rows whose question goes by another usual name, with it as ``prompt`` too: ``question``, ``problem`` or ``instruction``.

    A row keeps all its fields. One that has a prompt, none of these names, or several, stays as it is; so do rows of which the
    first does.

    >>> with_prompts([{"question": "2+2?", "answer": "4"}])
    [{'question': '2+2?', 'answer': '4', 'prompt': '2+2?'}]
    """
    if not len(rows) or _question_field(next(iter(rows))) is None:
        return rows
    return [row if (name := _question_field(row)) is None else {**row, "prompt": row[name]} for row in rows]


def _question_field(row: object) -> str | None:
    """The field that is a row's question where it has no prompt; None where that is not clear."""
    fields: Mapping[str, Any] = cast("Mapping[str, Any]", row) if isinstance(row, Mapping) else {}
    names = [name for name in QUESTIONS if name in fields]
    clear = len(names) == 1 and not {"prompt", "messages"} & set(fields) and not (names[0] == "instruction" and "input" in fields)
    return names[0] if clear else None


def _check_row(source: Rows, number: int, row: Mapping[str, Any]) -> tuple[str, tuple[str, int, str]]:
    """Digest of what a row asks, and its arm, level and split."""
    check_row_text(row, f"row {number + 1}")
    public = canonical(public_fields(number, row))
    level, arm = row.get("level", 1), row.get("arm", source.name)
    if not isinstance(level, int) or isinstance(level, bool):
        raise DataError(f"row {number + 1}, field 'level': {level!r} is not a whole number")
    if abs(level) > _HIGHEST:
        raise DataError(f"row {number + 1}, field 'level': {level} is beyond {_HIGHEST:,}; number levels from 1 on")
    if not isinstance(arm, str) or not arm:
        raise DataError(f"row {number + 1}, field 'arm': {arm!r} is not a name")
    if source.reward is None and source.scorer is None and not isinstance(row.get("answer"), str | int | float):
        raise DataError(
            f"row {number + 1}, field 'answer': {row.get('answer')!r} cannot be matched; give text, or pass a reward function"
        )
    return hash_text(public), (arm, level, _split(source, number, public))


def _split(source: Rows, number: int, public: bytes) -> str:
    if source.tests is None:
        return text_split(public, source.test_share)
    return "test" if number >= len(source.rows) - source.tests else "train"


def without_question(row: Mapping[str, Any]) -> str:
    """What is to be done about a row without ``prompt`` and ``messages``, behind its number.

    >>> without_question({"query": "1+1="})
    "has no 'prompt' and no 'messages'; add one, or call the question 'question', 'problem' or 'instruction'. It has ['query']"
    """
    questions = [name for name in QUESTIONS if name in row]
    close = nearest("prompt", row) or nearest("messages", row)
    hint = (
        f"rename {close!r}"
        if close
        else f"add one, or call the question {', '.join(map(repr, QUESTIONS[:-1]))} or {QUESTIONS[-1]!r}"
    )
    if questions:
        hint = f"rename the one of {', '.join(map(repr, questions))} that is the question to 'prompt'"
    return f"has no 'prompt' and no 'messages'; {hint}. It has {sorted(row)}"


def public_fields(number: int, row: Mapping[str, Any]) -> dict[str, Any]:
    """What a row asks: its prompt, or its messages.

    Raises:
        DataError: it has none, both, or one of the wrong form; names the row and the field.
    """
    if "prompt" in row and "messages" in row:
        raise DataError(f"row {number + 1} has both 'prompt' and 'messages'; keep one")
    place = "prompt" if "prompt" in row else "messages"
    if "prompt" in row and not isinstance(row["prompt"], list | tuple):
        if not isinstance(row["prompt"], str) or not row["prompt"]:
            raise DataError(f"row {number + 1}, field 'prompt': {row['prompt']!r} is not text with at least one character")
        return {"prompt": row["prompt"]}
    if place not in row:
        raise DataError(f"row {number + 1} {without_question(row)}")
    turns = row[place]
    if not isinstance(turns, list | tuple) or not turns:
        raise DataError(f"row {number + 1}, field {place!r}: {turns!r} is not a list of turns")
    for turn in cast("Sequence[Any]", turns):
        if not _is_turn(turn):
            raise DataError(f"row {number + 1}, field {place!r}: {turn!r} is not {{'role': one of {_ROLES}, 'content': text}}")
    if turns[-1]["role"] == "assistant":
        raise DataError(f"row {number + 1}, field {place!r}: the last turn is the assistant's; end with what it shall answer")
    return {"messages": [{"role": t["role"], "content": t["content"]} for t in cast("Sequence[Any]", turns)]}


def _is_turn(turn: object) -> bool:
    if not isinstance(turn, Mapping):
        return False
    fields = cast("Mapping[str, Any]", turn)
    return fields.get("role") in _ROLES and isinstance(fields.get("content"), str)
