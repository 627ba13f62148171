"""The user's own data as a task family: rows, and a reward function or a verifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import numpy as np

from assay.core.canon import FrozenMap, digest
from assay.core.errors import ConfigError, DataError
from assay.core.fields import LATER
from assay.core.protocols import Environment, Verifier
from assay.core.rowfile import BESIDE, RowFile
from assay.core.seeds import generator
from assay.core.task import Message, Task, TaskView
from assay.core.util.garbage import pause_collection
from assay.core.util.jsonl import object_of
from assay.tasks.draws import SPLITS, TaskCoordinates, slip
from assay.tasks.gold_text import task_gold_text
from assay.tasks.rewards import Metric, Reward, check_fields, reward_verifier, weighted_rewards
from assay.tasks.row_splits import TEST_ROWS, Split, number_rows_apart, train_and_test
from assay.tasks.row_table import (
    RowTable,
    frozen_row,
    private_fields,
    public_fields,
    table_from_bytes,
    table_to_bytes,
    tabulate,
    with_prompts,
)
from assay.verify.exact import ExactMatch
from assay.verify.user_reward import UserReward

__all__ = ["Rows", "load_jsonl"]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows such as ``{"prompt": "2+2=", "answer": "4"}`` with a reward: the user's own task.

    A row has ``prompt`` (text, or a list of ``{"role", "content"}`` that the assistant is to answer) or ``messages`` (such a
    list), or without these one of ``question``, ``problem`` and ``instruction``, which is then its prompt too. It may have
    ``answer``, ``level`` (a whole number, 1 by default) and ``arm`` (text, the family's name by default).
    Everything but the prompt is private: only the reward sees it. A row that repeats another one is dropped and counted; one that
    has the prompt of another and says something else is a task of its own, and counted too.

    Train and test are told apart by a hash of the prompt, so no prompt is in both. Rows that come in splits keep them: a
    ``DatasetDict`` or another mapping from names to rows. Its ``train`` trains, its ``test`` or ``validation`` is held out
    (`assay.tasks.train_and_test` says which, and takes other names).

    ``task(arm, level, split, index)`` goes through the rows of a cell epoch by epoch, each epoch in an order of its own.

    Attributes:
        rows: the data, or a mapping from the names of splits to it.
        reward: ``fn(prompt, completion, row) -> float``, with fewer parameters as ``fn(completion, answer)``, asynchronous, or
            with TRL's, verl's or OpenRLHF's parameters; a `assay.verify.RewardFunction`; or several, by name, as
            ``{"right": f, "short": (g, 0.2)}``, or in a list. Several become a `assay.verify.WeightedRewards`.
        weights: of a list of rewards.
        metric: what accuracy is measured by, other than the reward: the name of one of several, or a function like a reward,
            which is then not learned from. None: the reward, of several the one called ``correct``, else the first.
        scorer: a verifier instead. With neither, ``answer`` must be matched, white space around it aside.
        name: name of the family.
        seed: chooses other orders.
        test_share: share of prompts held out. At 0 none is: good for one half of a source of your own; a run on it is refused,
            unless its `assay.train.Evaluation` takes the training rows.
        tests: how many rows at the end are held out, instead of a share of the prompts; None for a share.
        numbered: whether the rows are all that the user has, in the order of the file, so that `row_place` can name them.

    Raises:
        DataError: a row that is wrong; names its number (from 1), the field and a fix.
        ConfigError: both a reward and a scorer, a share outside [0, 1), a reward whose parameters do not say what it takes, or
            splits that have to be named.

    >>> source = Rows([{"prompt": f"{a}+{b}=", "answer": str(a + b)} for a in range(5) for b in range(5)])
    >>> source.arms(), source.size("rows", 1, "train") + source.size("rows", 1, "test")
    ({'rows': (1,)}, 25)
    >>> splits = Rows({"train": [{"prompt": "1+1=", "answer": "2"}], "test": [{"prompt": "2+2=", "answer": "4"}]})
    >>> splits.task("rows", 1, "test", 0).public["prompt"]
    '2+2='
    """

    rows: Sequence[Mapping[str, Any]] = field(repr=False, metadata={BESIDE: "_table_loader"})
    reward: Reward | None = field(default=None, kw_only=True)
    scorer: Verifier | None = field(default=None, kw_only=True)
    name: str = field(default="rows", kw_only=True)
    seed: int = field(default=0, kw_only=True)
    test_share: float = field(default=0.1, kw_only=True)
    tests: int | None = field(default=None, kw_only=True, metadata={LATER: True})
    weights: Sequence[float] = field(default=(), kw_only=True, metadata={LATER: True})
    metric: Metric | None = field(default=None, kw_only=True, metadata={LATER: True})
    numbered: bool = field(default=True, kw_only=True, metadata={LATER: True})
    _table: RowTable = field(init=False, repr=False, compare=False)
    _known: dict[str, Any] = field(init=False, repr=False, compare=False, default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        if self.reward is not None and self.scorer is not None:
            raise ConfigError("Rows has both a reward and a scorer; keep one")
        if not 0.0 <= self.test_share < 1.0:
            raise ConfigError(f"Rows.test_share must be in [0, 1), got {self.test_share}")
        parts: Sequence[tuple[str, Split]] = ()
        if isinstance(self.rows, Mapping):
            train, test = train_and_test(cast("Mapping[str, Any]", self.rows))
            parts = ("", train), (TEST_ROWS, test)
            object.__setattr__(self, "rows", (*train, *test))
            object.__setattr__(self, "tests", len(test) if test else None)
        if self.tests is not None and not 0 <= self.tests <= len(self.rows):
            raise ConfigError(f"Rows.tests={self.tests} of {len(self.rows)} rows; use a number of rows at the end")
        with number_rows_apart(parts, lambda rows: replace(self, rows=rows, tests=None, test_share=0.0)):
            self._read_and_check()

    def _read_and_check(self) -> None:
        with pause_collection():
            self._read_rows()
        several = weighted_rewards(self.reward, self.weights, self._columns, self.metric)
        if several is not None:
            object.__setattr__(self, "reward", several)
            object.__setattr__(self, "weights", ())
        object.__setattr__(self, "metric", None)  # it is the rewards' now
        verifier = self.verifier()  # says at once what is wrong with the reward
        if isinstance(verifier, UserReward) and not (isinstance(self.rows, RowFile) and self.rows.notes):
            check_fields(verifier, self.rows)

    @property
    def _columns(self) -> Sequence[str]:
        return list(dict.fromkeys(name for row in self.rows[:_LOOKED_AT] for name in row))

    def _read_rows(self) -> None:
        noted = table_from_bytes(self.rows.notes, self._kind) if isinstance(self.rows, RowFile) else None
        if isinstance(self.rows, RowFile):
            self._known["digest"] = self.rows.digest
        else:
            object.__setattr__(self, "rows", tuple(frozen_row(number, row) for number, row in enumerate(with_prompts(self.rows))))
        object.__setattr__(self, "_table", tabulate(self) if noted is None else noted)

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
        found = set(self._table.symbols)
        for row in self.rows:
            said = row["prompt"] if "prompt" in row else row["messages"]
            for text in (said,) if isinstance(said, str) else [turn["content"] for turn in said]:
                if not found.issuperset(text):
                    found.update(text)
        return "".join(sorted(found))

    def size(self, arm: str, level: int, split: str) -> int:
        """Different rows of a cell."""
        return len(self._table.numbers.get((arm, level, split), ()))

    def arms(self) -> Mapping[str, tuple[int, ...]]:
        """Each arm with its levels."""
        return self._table.arms

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        """Row number ``index`` of the cell's endless stream of epochs.

        Raises:
            UnknownNameError: arm, level or split.
            DataError: no row of the level is in the split.
        """
        TaskCoordinates(self.name, arm, level, split, index).check(self)
        rows = self._table.numbers.get((arm, level, split), _NONE)
        if not len(rows):
            raise DataError(f"{self.name}/{arm}: {self._why_empty(arm, level, split)}")
        return _task(self, self._number(rows, arm, level, split, index), arm, level, split, index)

    def row_place(self, task: Task) -> str:
        """Where in the user's rows a task of this source stands, counted from 1; "" where its rows are not `numbered`.

        >>> source = Rows({"train": [{"prompt": "1+1=", "answer": "2"}], "test": [{"prompt": "2+2=", "answer": "4"}]})
        >>> source.row_place(source.task("rows", 1, "train", 5)), source.row_place(source.task("rows", 1, "test", 0))
        ('row 1', 'test row 1')
        """
        rows = self._table.numbers.get((task.arm, task.level, task.split), _NONE)
        if not self.numbered or not len(rows):
            return ""
        number, first = self._number(rows, task.arm, task.level, task.split, task.index), len(self.rows) - (self.tests or 0)
        return f"row {number + 1}" if number < first else f"test row {number - first + 1}"

    def _number(self, rows: Sequence[int] | np.ndarray, arm: str, level: int, split: str, index: int) -> int:
        """Which of all rows stands at a place in the endless stream of a cell's ``rows``."""
        epoch, position = divmod(index, len(rows))
        return int(rows[_order(self.seed, f"{self.name}/{arm}/{level}/{split}", epoch, len(rows))[position]])

    def row_questions(self, arm: str, level: int, split: str) -> Iterator[tuple[str, str, str]] | None:
        """What ``task`` gives of each different row of a cell, in its order: id, text of the question, and content; without the
        tasks themselves, of which there may be many. None where they are made otherwise, or a question is more than a text.
        """
        rows = self._table.numbers.get((arm, level, split), _NONE)
        if type(self).task is not Rows.task or any(not isinstance(self.rows[int(number)].get("prompt"), str) for number in rows):
            return None
        order = _order(self.seed, f"{self.name}/{arm}/{level}/{split}", 0, len(rows))
        numbers = (int(rows[at]) for at in order)
        keyed = ((number, self._table.keys[number].decode()) for number in numbers)
        return ((f"{self.name}/{arm}/{level}/{key[:12]}", self.rows[number]["prompt"], key) for number, key in keyed)

    def verifier(self) -> Verifier:
        """The reward function, the scorer, or an exact match of ``answer``."""
        if self.scorer is not None:
            return self.scorer
        if self.reward is None:
            return ExactMatch(strip=True)
        return cast("Verifier", reward_verifier(self.reward, self._columns))

    def environment(self, world: TaskView) -> Environment | None:
        """None: one answer ends the task."""
        return None

    def trace(self, task: Task, noise: float, rng: np.random.Generator) -> tuple[Message, ...] | None:
        """The row's answer as text (`assay.tasks.gold_text.task_gold_text`), None without one; with probability ``noise`` a
        character is replaced by one of any answer.
        """
        text = task_gold_text(task)
        if text is None:
            return None
        return (Message("assistant", slip(text, noise, self._table.symbols, rng)),)

    def _why_empty(self, arm: str, level: int, split: str) -> str:
        if self.tests is not None:
            return (
                f"none of the rows of level {level} is in the {split} split that they came with; add some, or leave the level out"
            )
        if not self.test_share:
            return "no row falls in the test split, on which runs are evaluated: test_share is 0; give a share, such as 0.1"
        here = sum(self.size(arm, level, s) for s in SPLITS)
        return (
            f"none of the {here} rows of level {level} falls in the {split} split; "
            f"add rows, or change test_share ({self.test_share})"
        )

    @property
    def _kind(self) -> str:
        """Digest of everything but the rows that a table depends on."""
        known = [_FORMAT, self.name, self.test_share, self.reward is None and self.scorer is None]
        return digest(known if self.tests is None else [*known, self.tests])

    def _table_loader(self) -> tuple[dict[str, Any], Callable[[], bytes]]:
        """The digest of the rows, where it is known, and what their table says (`assay.core.rowfile`)."""
        return self._known, lambda: table_to_bytes(self._table, self._kind)


def load_jsonl(path: str | Path) -> list[dict[str, Any]]:
    """The rows of a JSON Lines file; empty lines are skipped.

    Raises:
        DataError: the file cannot be read, or a line is not a JSON object in UTF-8, says one key twice, or holds NaN or a number
            beyond 1e308; names file and line.
    """
    try:
        with Path(path).open("rb") as file, pause_collection():
            return [_line(line, f"{path}, line {number}") for number, line in enumerate(file, 1) if line.strip()]
    except OSError as error:
        raise DataError(f"cannot read rows from {path}: {error}") from error


def _line(line: bytes, place: str) -> dict[str, Any]:
    try:
        return object_of(line, finite=True)
    except DataError as error:
        raise DataError(f"{place}: {error}") from None


@lru_cache(maxsize=256)
def _order(seed: int, stream: str, epoch: int, n: int) -> tuple[int, ...]:
    return tuple(int(i) for i in generator("rows/epoch", seed, stream, epoch).permutation(n))


_NONE = np.empty(0, np.int64)
_LOOKED_AT = 256
"""Rows whose fields a reward may take by name."""
_FORMAT = 1
"""Of the notes that stand beside rows."""


def _task(source: Rows, number: int, arm: str, level: int, split: str, index: int) -> Task:
    row = source.rows[number]
    key = source._table.keys[number].decode()  # pyright: ignore[reportPrivateUsage]
    return Task(
        id=f"{source.name}/{arm}/{level}/{key[:12]}",
        domain=source.name,
        arm=arm,
        level=level,
        split=split,
        index=index,
        public=FrozenMap(public_fields(number, row)),
        private=FrozenMap(private_fields(row)),
    )
