"""The user's own data as a task family: rows, and a reward function or a verifier."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import numpy as np

from assay.core.canon import FrozenMap, check_row_text, digest, plain
from assay.core.errors import ConfigError, DataError, a_kind, nearest
from assay.core.lines import object_of
from assay.core.protocols import Environment, Verifier
from assay.core.seeds import content_split, generator
from assay.core.task import Message, Task, World
from assay.tasks.draws import SPLITS, Place, slip
from assay.verify.exact import ExactMatch
from assay.verify.function import RewardFunction

__all__ = ["Rows", "load_jsonl"]

_ROLES = ("system", "user", "assistant", "tool")
_HIGHEST = 10**9
"""Largest level: batches hold levels as 64-bit numbers."""


@dataclass(frozen=True, slots=True)
class _Row:
    number: int
    key: str
    arm: str
    level: int
    split: str
    public: FrozenMap
    private: FrozenMap


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    cells: Mapping[tuple[str, int, str], tuple[_Row, ...]]
    arms: Mapping[str, tuple[int, ...]]
    repeated: int
    differing: int
    symbols: str


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows such as ``{"prompt": "2+2=", "answer": "4"}`` with a reward: the user's own task.

    A row has ``prompt`` (text) or ``messages`` (a list of ``{"role", "content"}`` that the assistant is to answer); it may have
    ``answer``, ``level`` (a whole number, 1 by default) and ``arm`` (text, the family's name by default). Everything but the
    prompt is
    private: only the reward sees it. Train and test are told apart by a hash of the prompt, so no prompt is in both. A row
    that repeats another one is dropped and counted; one that has the prompt of another and says something else is a task of its
    own, and counted too.

    ``task(arm, level, split, index)`` goes through the rows of a cell epoch by epoch, each epoch in an order of its own.

    Attributes:
        rows: the data.
        reward: ``fn(prompt, completion, row) -> float``, or a `assay.verify.RewardFunction`.
        scorer: a verifier instead. With neither, ``answer`` must be matched, white space around it aside.
        name: name of the family.
        seed: chooses other orders.
        test_share: share of prompts held out. At 0 none is: good for one half of a source of your own; a run on it is refused,
            because runs are evaluated on held-out rows.

    Raises:
        DataError: a row that is wrong; names its number (from 0), the field and a fix.
        ConfigError: both a reward and a scorer, or a share outside [0, 1).

    >>> source = Rows([{"prompt": f"{a}+{b}=", "answer": str(a + b)} for a in range(5) for b in range(5)])
    >>> source.arms(), source.size("rows", 1, "train") + source.size("rows", 1, "test")
    ({'rows': (1,)}, 25)
    """

    rows: Sequence[Mapping[str, Any]] = field(repr=False)
    reward: Callable[..., Any] | RewardFunction | None = field(default=None, kw_only=True)
    scorer: Verifier | None = field(default=None, kw_only=True)
    name: str = field(default="rows", kw_only=True)
    seed: int = field(default=0, kw_only=True)
    test_share: float = field(default=0.1, kw_only=True)
    _table: _Table = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.reward is not None and self.scorer is not None:
            raise ConfigError("Rows has both a reward and a scorer; keep one")
        if not 0.0 <= self.test_share < 1.0:
            raise ConfigError(f"Rows.test_share must be in [0, 1), got {self.test_share}")
        object.__setattr__(self, "_table", self._tabulate())
        object.__setattr__(self, "rows", tuple(FrozenMap(r) for r in self.rows))

    @property
    def repeated(self) -> int:
        """Rows dropped because another row says the same."""
        return self._table.repeated

    @property
    def differing(self) -> int:
        """Rows that have the prompt of a row before them, and another answer, or other fields."""
        return self._table.differing

    @property
    def alphabet(self) -> str:
        """Every character of prompts and answers, sorted."""
        turns = [m.content for of in self._table.cells.values() for row in of for m in _task(self, row, 0).exposed().messages]
        return "".join(sorted(set(self._table.symbols).union(*turns)))

    def size(self, arm: str, level: int, split: str) -> int:
        """Different rows of a cell."""
        return len(self._table.cells.get((arm, level, split), ()))

    def arms(self) -> Mapping[str, tuple[int, ...]]:
        """Each arm with its levels."""
        return self._table.arms

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        """Row number ``index`` of the cell's endless stream of epochs.

        Raises:
            UnknownNameError: arm, level or split.
            DataError: no row of the level is in the split.
        """
        Place(self.name, arm, level, split, index).check(self)
        rows = self._table.cells.get((arm, level, split), ())
        if not rows:
            raise DataError(f"{self.name}/{arm}: {self._why_empty(arm, level, split)}")
        epoch, position = divmod(index, len(rows))
        order = _order(self.seed, f"{self.name}/{arm}/{level}/{split}", epoch, len(rows))
        return _task(self, rows[order[position]], index)

    def verifier(self) -> Verifier:
        """The reward function, the scorer, or an exact match of ``answer``."""
        if self.scorer is not None:
            return self.scorer
        if self.reward is None:
            return ExactMatch(strip=True)
        return self.reward if isinstance(self.reward, RewardFunction) else RewardFunction(self.reward)

    def environment(self, world: World) -> Environment | None:
        """None: one answer ends the task."""
        return None

    def trace(self, task: Task, noise: float, rng: np.random.Generator) -> tuple[Message, ...] | None:
        """The row's answer as text, None without one; with probability ``noise`` a character is replaced by one of any answer."""
        if "answer" not in task.private:
            return None
        return (Message("assistant", slip(str(task.private["answer"]), noise, self._table.symbols, rng)),)

    def _why_empty(self, arm: str, level: int, split: str) -> str:
        if not self.test_share:
            return "no row falls in the test split, on which runs are evaluated: test_share is 0; give a share, such as 0.1"
        here = sum(self.size(arm, level, s) for s in SPLITS)
        return (
            f"none of the {here} rows of level {level} falls in the {split} split; "
            f"add rows, or change test_share ({self.test_share})"
        )

    def _tabulate(self) -> _Table:
        if not self.rows:
            raise DataError("Rows needs at least one row, got none")
        first: dict[str, _Row] = {}
        seen: dict[str, set[str]] = {}
        repeated = differing = 0
        for number, raw in enumerate(self.rows):
            row = _checked(self, number, raw)
            if first.setdefault(row.key, row) is row:
                continue
            said = digest([row.arm, row.level, row.private])
            others = seen.setdefault(row.key, {digest([first[row.key].arm, first[row.key].level, first[row.key].private])})
            if said in others:
                repeated += 1
                continue
            others.add(said)
            differing += 1
            key = digest([row.key, said])  # a task of its own, with a name of its own
            first[key] = replace(row, key=key)
        cells: dict[tuple[str, int, str], list[_Row]] = {}
        arms: dict[str, set[int]] = {}
        for row in first.values():
            cells.setdefault((row.arm, row.level, row.split), []).append(row)
            arms.setdefault(row.arm, set()).add(row.level)
        answers = (str(row.private["answer"]) for row in first.values() if "answer" in row.private)
        return _Table(
            cells={cell: tuple(rows) for cell, rows in cells.items()},
            arms={arm: tuple(sorted(levels)) for arm, levels in sorted(arms.items())},
            repeated=repeated,
            differing=differing,
            symbols="".join(sorted({c for answer in answers for c in answer})),
        )


def load_jsonl(path: str | Path) -> list[dict[str, Any]]:
    """The rows of a JSON Lines file; empty lines are skipped.

    Raises:
        DataError: the file cannot be read, or a line is not a JSON object in UTF-8, says one key twice, or holds NaN or a number
            beyond 1e308; names file and line.
    """
    try:
        lines = Path(path).read_bytes().split(b"\n")
    except OSError as error:
        raise DataError(f"cannot read rows from {path}: {error}") from error
    return [_line(line, f"{path}, line {number}") for number, line in enumerate(lines, 1) if line.strip()]


def _line(line: bytes, place: str) -> dict[str, Any]:
    try:
        return object_of(line, finite=True)
    except DataError as error:
        raise DataError(f"{place}: {error}") from None


@lru_cache(maxsize=256)
def _order(seed: int, stream: str, epoch: int, n: int) -> tuple[int, ...]:
    return tuple(int(i) for i in generator("rows/epoch", seed, stream, epoch).permutation(n))


def _task(source: Rows, row: _Row, index: int) -> Task:
    return Task(
        id=f"{source.name}/{row.arm}/{row.level}/{row.key[:12]}", domain=source.name, arm=row.arm, level=row.level,
        split=row.split, index=index, public=row.public, private=row.private,
    )  # fmt: skip


def _checked(source: Rows, number: int, raw: object) -> _Row:
    if not isinstance(raw, Mapping):
        raise DataError(f"row {number} is {a_kind(raw)}; make it a dict with 'prompt'")
    row = cast("Mapping[str, Any]", raw)
    for name, value in row.items():
        try:
            plain(value)
        except DataError as error:
            raise DataError(f"row {number}, field {name!r}: {error}") from None
    check_row_text(row, f"row {number}")
    public = FrozenMap(_posed(number, row))
    level, arm = row.get("level", 1), row.get("arm", source.name)
    if not isinstance(level, int) or isinstance(level, bool):
        raise DataError(f"row {number}, field 'level': {level!r} is not a whole number")
    if abs(level) > _HIGHEST:
        raise DataError(f"row {number}, field 'level': {level} is beyond {_HIGHEST:,}; number levels from 1 on")
    if not isinstance(arm, str) or not arm:
        raise DataError(f"row {number}, field 'arm': {arm!r} is not a name")
    if source.reward is None and source.scorer is None and not isinstance(row.get("answer"), str | int | float):
        raise DataError(
            f"row {number}, field 'answer': {row.get('answer')!r} cannot be matched; give text, or pass a reward function"
        )
    private = {"row": row} | {name: row[name] for name in ("answer", "solution") if name in row}
    split = content_split(public, source.test_share)
    return _Row(number, digest(public), arm, level, split, public, FrozenMap(private))


def _posed(number: int, row: Mapping[str, Any]) -> dict[str, Any]:
    if "prompt" in row and "messages" in row:
        raise DataError(f"row {number} has both 'prompt' and 'messages'; keep one")
    if "prompt" in row:
        if not isinstance(row["prompt"], str) or not row["prompt"]:
            raise DataError(f"row {number}, field 'prompt': {row['prompt']!r} is not text with at least one character")
        return {"prompt": row["prompt"]}
    if "messages" not in row:
        close = nearest("prompt", row) or nearest("messages", row)
        hint = f"rename {close!r}" if close else "add one"
        raise DataError(f"row {number} has no 'prompt' and no 'messages'; {hint}. It has {sorted(row)}")
    turns = row["messages"]
    if not isinstance(turns, list | tuple) or not turns:
        raise DataError(f"row {number}, field 'messages': {turns!r} is not a list of turns")
    for turn in cast("Sequence[Any]", turns):
        if not _is_turn(turn):
            raise DataError(f"row {number}, field 'messages': {turn!r} is not {{'role': one of {_ROLES}, 'content': text}}")
    if turns[-1]["role"] == "assistant":
        raise DataError(f"row {number}, field 'messages': the last turn is the assistant's; end with what it shall answer")
    return {"messages": [{"role": t["role"], "content": t["content"]} for t in cast("Sequence[Any]", turns)]}


def _is_turn(turn: object) -> bool:
    if not isinstance(turn, Mapping):
        return False
    fields = cast("Mapping[str, Any]", turn)
    return fields.get("role") in _ROLES and isinstance(fields.get("content"), str)
