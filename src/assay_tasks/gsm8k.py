"""GSM8K and what is written like it: word problems with worked answers that end in ``#### N``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from assay.core.errors import DataError
from assay.core.protocols import Environment, Verifier
from assay.core.task import Message, Task, TaskView
from assay.curate.rows import entries, parse_entry, read_rows
from assay.tasks.draws import slip
from assay.tasks.rows import Rows
from assay.verify.math.verifier import MathAnswer

__all__ = ["Gsm8k", "worked_rows"]

_CALCULATION = re.compile(r"<<[^<>]*>>")
_MARK = "####"
_HUB = "hub:openai/gsm8k"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gsm8k:
    r"""Grade-school word problems, in the rows of GSM8K (Cobbe et al. 2021, https://arxiv.org/abs/2110.14168): ``question``, and
    ``answer`` with the working and, behind ``####``, the number.

    Rows are read on first use, so that a run can be made and looked at without them.

    Attributes:
        train: a file or folder of rows (JSON lines or Parquet), or the name of a data set on the hub.
        test: the same of held-out rows; empty: a tenth of ``train``, chosen by the questions' hash.
        request: text behind every question.

    >>> Gsm8k().arms()
    {'gsm8k': (1,)}
    """

    train: str = f"{_HUB}:main/train*"
    test: str = f"{_HUB}:main/test*"
    request: str = "\nReason step by step, and put the final answer in \\boxed{}."

    @property
    def name(self) -> str:
        """``gsm8k``."""
        return "gsm8k"

    def arms(self) -> Mapping[str, tuple[int, ...]]:
        """One arm of one level: the rows say nothing of their difficulty."""
        return {self.name: (1,)}

    def size(self, arm: str, level: int, split: str) -> int:
        """Rows of a split."""
        return self._rows(split).size(arm, level, split if not self.test else "train")

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        """The ``index``-th row of a split's endless stream of epochs.

        Raises:
            UnknownNameError: arm, level or split.
            ConfigError: the rows are not there.
            DataError: a row that is not of this form; names its file and number.
        """
        if not self.test or split not in ("train", "test"):  # another split is refused by name
            return self._rows("train").task(arm, level, split, index)
        return replace(self._rows(split).task(arm, level, "train", index), split=split)

    def verifier(self) -> Verifier:
        """The number in the last box, however it is written."""
        return MathAnswer(look=("box",), symbolic=False)

    def environment(self, world: TaskView) -> Environment | None:
        """None: one answer ends the task."""
        return None

    def trace(self, task: Task, noise: float, rng: np.random.Generator) -> tuple[Message, ...]:
        """The row's working, without its notes for a calculator, and the number in a box."""
        text = f"{task.private['solution']}\n\\boxed{{{task.private['answer']}}}"
        return (Message("assistant", slip(text, noise, "0123456789", rng)),)

    def stand_in(self, folder: Path) -> Gsm8k:
        """The same on generated rows in the same form, written to a folder; the files are made anew.

        Args:
            folder: gets ``train.jsonl`` and ``test.jsonl``.
        """
        folder.mkdir(parents=True, exist_ok=True)
        rows = [json.dumps(row) for row in worked_rows(240)]
        for name, part in (("train", rows[:200]), ("test", rows[200:])):
            (folder / f"{name}.jsonl").write_text("\n".join(part) + "\n", encoding="utf-8")
        return replace(self, train=str(folder / "train.jsonl"), test=str(folder / "test.jsonl"))

    def _rows(self, split: str) -> Rows:
        held_out = split == "test" and self.test
        return _read(self.test if held_out else self.train, self.request, 0.0 if self.test else 0.1)


def worked_rows(n: int, seed: int = 0) -> list[dict[str, str]]:
    """Generated rows in GSM8K's form, each with another question: for trying a recipe, not for learning mathematics.

    Args:
        n: how many, up to 10,000.
        seed: chooses others.

    >>> worked_rows(1)[0]["answer"].splitlines()[-1][:5]
    '#### '
    """
    rng = Random(seed)
    names, things = ("Ada", "Ben", "Chi", "Dora", "Eli"), ("apples", "books", "cards", "drums", "eggs")
    found: dict[str, str] = {}
    while len(found) < n:
        who, what, boxes, each, given = rng.choice(names), rng.choice(things), *(rng.randint(2, 20) for _ in range(3))
        total = boxes * each
        question = f"{who} has {boxes} boxes of {each} {what} and gets {given} {what} more. How many {what} does {who} have?"
        working = f"The boxes hold {boxes} * {each} = <<{boxes}*{each}={total}>>{total} {what}."
        more = f"With the others there are {total} + {given} = <<{total}+{given}={total + given}>>{total + given} {what}."
        found[question] = f"{working}\n{more}\n{_MARK} {total + given}"
    return [{"question": question, "answer": answer} for question, answer in found.items()]


@lru_cache(maxsize=8)
def _read(path: str, request: str, test_share: float) -> Rows:
    rows = [_row(row, place, request) for place, row in _find_rows(path)]
    return Rows(rows, scorer=MathAnswer(look=("box",), symbolic=False), name="gsm8k", test_share=test_share)


def _find_rows(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for file in entries(path):
        for number, entry in read_rows(file):
            yield f"{file}, row {number}", parse_entry(entry)


def _row(row: Mapping[str, Any], place: str, request: str) -> dict[str, Any]:
    question, answer = row.get("question"), row.get("answer")
    if not isinstance(question, str) or not isinstance(answer, str) or _MARK not in answer:
        raise DataError(
            f"{place} is no row of GSM8K: it needs a text 'question', and a text 'answer' that ends in '{_MARK} 42'; "
            f"it has {sorted(row)}"
        )
    working, _, number = answer.rpartition(_MARK)
    solution = _CALCULATION.sub("", working).strip()
    return {"prompt": question.strip() + request, "answer": number.strip().replace(",", ""), "solution": solution}
