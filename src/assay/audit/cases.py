"""What an audit asks about: problems whose right answers are known."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from assay.core.canon import FrozenMap, plain
from assay.core.errors import DataError, a_kind
from assay.core.import_path import filed_as
from assay.core.task import Task
from assay.core.wire import task_from_wire
from assay.curate.rows import Fields, parse_entry, read_rows
from assay.verify.reward_function import prompt_of, row_of

__all__ = ["AuditCase", "answer_text", "case_of", "columns_of", "read_cases"]


_GOLD = ("gold", "answer", "reward_model.ground_truth")


@filed_as("assay.verify.audit.cases:Case")
@dataclass(frozen=True, slots=True, kw_only=True)
class AuditCase:
    """A problem with its gold.

    Attributes:
        task: the problem; ``private["answer"]`` is the gold.
        solutions: answers that are right, as a model would write them; the first is the gold as given.
        wrong: answers that are wrong, as its author knows.
        unique: no other answer is right. Otherwise near misses and other items' answers prove nothing, and are not tried.
        template: how its answers must be written, with ``{answer}`` in it; empty for the audit's.
    """

    task: Task
    solutions: tuple[str, ...]
    wrong: tuple[str, ...] = ()
    unique: bool = True
    template: str = ""

    @property
    def gold(self) -> str:
        """The gold as given."""
        return self.solutions[0]

    @property
    def prompt(self) -> str:
        """The problem's text."""
        return prompt_of(self.task)

    def without_gold(self) -> Task:
        """The same problem, whose row has lost its answer."""
        row = {n: v for n, v in cast("Mapping[str, Any]", self.task.private.get("row", {})).items() if n in ("prompt", "id")}
        return Task(
            id=f"{self.task.id} without gold",
            domain=self.task.domain,
            arm=self.task.arm,
            level=self.task.level,
            split=self.task.split,
            index=self.task.index,
            public=self.task.public,
            private=FrozenMap({"row": row}),
        )


def answer_text(gold: Any) -> str:
    """A gold as a model would write it: text as it is, anything else as JSON.

    >>> answer_text("4"), answer_text([1, 2])
    ('4', '[1, 2]')
    """
    return gold if isinstance(gold, str) else json.dumps(plain(gold), ensure_ascii=False)


def case_of(row: Mapping[str, Any], index: int = 0) -> AuditCase:
    """A case from a row: ``{"gold": ...}`` or ``{"task": ...}``, and if wanted ``prompt``, ``solutions``, ``wrong``, ``unique``.
    The gold may be called ``answer``, or stand where verl has it, in ``reward_model.ground_truth``.

    Further columns reach the verifier with the row. A task is written as `task_to_wire` writes it.

    Raises:
        DataError: neither gold nor task, or a field of the wrong type; names the row and the field.

    >>> case_of({"gold": "4", "prompt": "2+2="}).gold
    '4'
    """
    if "task" in row:
        if not isinstance(row["task"], Mapping):
            raise DataError(f"row {index + 1}: 'task' is {a_kind(row['task'])}; give an object as task_to_wire writes it")
        try:
            task = task_from_wire(cast("Mapping[str, Any]", row["task"]))
        except DataError as error:
            raise DataError(f"row {index + 1}: 'task': {error}") from None
        if "answer" not in task.private and "solutions" not in row:
            raise DataError(f"row {index + 1}: the task has no private 'answer', and the row no 'solutions'; give one of them")
        gold = task.private.get("answer")
    else:
        gold = Fields(gold=_GOLD).gold_of(row)
        if gold is None:
            raise DataError(f"row {index + 1} has neither 'gold' nor 'task'; it has {sorted(row)}")
        own = {n: v for n, v in row.items() if n not in ("solutions", "wrong", "unique")}
        asked = cast("object", row.get("prompt", row.get("messages", "")))
        turns = cast("list[Any]", asked) if isinstance(asked, list) else None
        try:
            prompt = f"{asked}" if turns is None else "\n".join(str(turn["content"]) for turn in turns)
        except (TypeError, KeyError):
            raise DataError(f"row {index + 1}: 'prompt' is {asked!r}; give text, or turns with 'role' and 'content'") from None
        task = Task(
            id=str(row.get("id", f"case {index + 1}")),
            domain=str(row.get("data_source", "audit")),
            arm="audit",
            level=0,
            split="test",
            index=index,
            public=FrozenMap({"prompt": prompt}),
            private=FrozenMap({"answer": gold, "row": {**own, "prompt": prompt, "answer": gold}}),
        )
    unique: object = row.get("unique", True)
    if not isinstance(unique, bool):
        raise DataError(f"row {index + 1}: 'unique' is {a_kind(unique)}; give true or false")
    solutions, wrong = _texts(row, "solutions", index), _texts(row, "wrong", index)
    return AuditCase(task=task, solutions=solutions or (answer_text(gold),), wrong=wrong, unique=unique)


def columns_of(cases: Iterable[AuditCase]) -> tuple[str, ...]:
    """Fields that a reward function finds in the rows of cases.

    >>> columns_of([case_of({"gold": "4", "unit": "m"})])
    ('gold', 'unit', 'prompt', 'answer')
    """
    return tuple(dict.fromkeys(name for case in cases for name in row_of(case.task)))


def read_cases(path: Path) -> tuple[AuditCase, ...]:
    """Cases from a file of rows: JSON lines, CSV, Parquet or Arrow; see `case_of`.

    Raises:
        DataError: the file cannot be read, has no rows, or a row is wrong; names file and line.
    """
    found: list[AuditCase] = []
    try:
        for number, entry in read_rows(path):
            try:
                row = parse_entry(entry)
            except DataError as error:
                raise DataError(f"{path}, {'line' if isinstance(entry, bytes) else 'row'} {number}: {error}") from None
            try:
                found.append(case_of(row, number - 1))
            except DataError as error:
                raise DataError(f"{path}: {error}") from None
    except OSError as error:
        raise DataError(f"cannot read cases from {path}: {error}") from None
    if not found:
        raise DataError(f"{path} has no cases; give rows, each with 'gold', 'answer' or verl's 'reward_model.ground_truth'")
    return _named_apart(found, path)


def _named_apart(cases: Iterable[AuditCase], path: Path) -> tuple[AuditCase, ...]:
    out = tuple(cases)
    if len({case.task.id for case in out}) < len(out):
        raise DataError(f"{path}: two cases have one id; results are keyed by it")
    return out


def _texts(row: Mapping[str, Any], name: str, index: int) -> tuple[str, ...]:
    value: object = row.get(name, [])
    if not isinstance(value, list | tuple):
        raise DataError(f"row {index + 1}: {name!r} is {a_kind(value)}; give a list of answers")
    return tuple(answer_text(v) for v in cast("list[Any]", value))
