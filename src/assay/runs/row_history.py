"""What a run saw of each row: which tasks a step practised, how often each was answered, how well, and at what length.

A run writes a line per step of reinforcement learning into ``row_history.jsonl``, all graded groups of the step in their order,
learned from or not. It is cut back with the other journals on a resume, so a run that was killed has the lines of one that was
not. A row is known by its task's id: one row of a source that goes epoch by epoch has a new index in each epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import DataError
from assay.core.group import Outcome
from assay.runs.reader import read_lines

__all__ = ["FILE", "RowCurves", "RowHistory", "RowRecord", "row_columns"]

FILE = "row_history.jsonl"

_UNHELPED = ("plain", "privileged")
"""Tags of contexts in which the policy reads the task as it is."""


def row_columns(outcomes: Sequence[Outcome]) -> dict[str, list[Any]]:
    """The graded groups of a step as columns, one entry per group.

    Returns:
        ``id``, ``arm``, ``level``, ``index`` of the task; ``rollouts`` with a verdict; ``reward``, the mean of their main
        component within [0, 1], None without one; ``length``, their mean number of sampled tokens; ``kept``, 1 where the group
        was learned from; ``tag`` of the context, where it is not plain.
    """
    groups = [outcome.group for outcome in outcomes]
    tags = [next((r.context.tag for r in g.rollouts if r.context.tag not in _UNHELPED), "plain") for g in groups]
    found = {
        "id": [g.task.id for g in groups],
        "arm": [g.task.arm for g in groups],
        "level": [g.task.level for g in groups],
        "index": [g.task.index for g in groups],
        "rollouts": [len(g.values) for g in groups],
        "reward": [None if g.success is None else round(g.success, 6) for g in groups],
        "length": [round(sum(r.length for r in g.rollouts) / max(1, len(g.rollouts)), 2) for g in groups],
        "kept": [int(outcome.kept) for outcome in outcomes],
    }
    return found | ({"tag": tags} if any(tag != "plain" for tag in tags) else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A line: the step, and the columns of its groups."""

    step: int
    columns: Mapping[str, list[Any]]


def _line(record: Mapping[str, Any]) -> _Line:
    columns = {name: list(record[name]) for name in ("id", "arm", "level", "index", "rollouts", "reward", "length", "kept")}
    columns["tag"] = list(record.get("tag", ["plain"] * len(columns["id"])))
    sizes = {name: len(values) for name, values in columns.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"columns of different lengths: {sizes}")
    return _Line(step=int(record["step"]), columns=columns)


@dataclass(frozen=True, slots=True, eq=False)
class RowCurves:
    """Learning curves of the rows of a run.

    Attributes:
        places: arm, level and an index of each row, by which its source gives the task.
        history: ``[rows, epochs]`` mean reward of a row in an epoch; NaN where it was not met, or had no verdict.
        passed, rollouts: ``[rows]`` rollouts that were right, of how many, in the last epoch that met the row.
        steps: ``[epochs]`` last step of each epoch.
    """

    places: tuple[tuple[str, int, int], ...]
    history: NDArray[np.float64]
    passed: NDArray[np.int64]
    rollouts: NDArray[np.int64]
    steps: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRecord:
    """What a run did with a row.

    Attributes:
        id, arm, level: of the task.
        groups, rollouts: how many had a verdict.
        last: step of the newest of them.
    """

    id: str
    arm: str
    level: int
    groups: int
    rollouts: int
    last: int


@dataclass(frozen=True, slots=True, eq=False)
class RowHistory:
    """Every graded group of a run, in order.

    Attributes:
        step, level, index, rollouts: ``[groups]``.
        arm, id, tag: ``[groups]`` text.
        reward: ``[groups]`` mean success, NaN without a verdict.
        length: ``[groups]`` mean sampled tokens.
        kept: ``[groups]`` whether the group was learned from.
    """

    step: NDArray[np.int64]
    arm: NDArray[np.str_]
    level: NDArray[np.int64]
    index: NDArray[np.int64]
    id: NDArray[np.str_]
    rollouts: NDArray[np.int64]
    reward: NDArray[np.float64]
    length: NDArray[np.float64]
    kept: NDArray[np.bool_]
    tag: NDArray[np.str_]

    @classmethod
    def read(cls, folder: Path) -> RowHistory | None:
        """What a run folder says; None where it has no such file or no line in it.

        Raises:
            DataError: a line is damaged; names it.
        """
        lines = read_lines(folder / FILE, _line, [], needed=False)
        if not any(line.columns["id"] for line in lines):
            return None
        every: dict[str, list[Any]] = {name: [x for line in lines for x in line.columns[name]] for name in lines[0].columns}
        steps = [line.step for line in lines for _ in line.columns["id"]]
        rewards = [float("nan") if x is None else float(x) for x in every["reward"]]
        return cls(
            step=np.array(steps, np.int64),
            arm=np.array(every["arm"], np.str_),
            level=np.array(every["level"], np.int64),
            index=np.array(every["index"], np.int64),
            id=np.array(every["id"], np.str_),
            rollouts=np.array(every["rollouts"], np.int64),
            reward=np.array(rewards, np.float64),
            length=np.array(every["length"], np.float64),
            kept=np.array(every["kept"], np.bool_),
            tag=np.array(every["tag"], np.str_),
        )

    @property
    def unhelped(self) -> NDArray[np.bool_]:
        """``[groups]`` whether the task was read as it is: success behind a hint says little of the row."""
        return np.isin(self.tag, _UNHELPED)

    @property
    def signal(self) -> NDArray[np.bool_]:
        """``[groups]`` whether success of the rollouts differed, as far as their mean tells: it lies between 0 and 1."""
        return (self.reward > 0.0) & (self.reward < 1.0)

    def never_solved(self) -> list[RowRecord]:
        """The rows with verdicts of which none was more than 0, with help or without, those with the most rollouts first."""
        graded = np.flatnonzero(~np.isnan(self.reward))
        ids, first, row = np.unique(self.id[graded], return_index=True, return_inverse=True)
        solved = np.bincount(row, self.reward[graded] > 0.0, len(ids)) > 0
        groups, rollouts = np.bincount(row, minlength=len(ids)), np.bincount(row, self.rollouts[graded], len(ids))
        last = np.zeros(len(ids), np.int64)
        np.maximum.at(last, row, self.step[graded])
        found = [
            RowRecord(
                id=str(ids[k]),
                arm=str(self.arm[graded[first[k]]]),
                level=int(self.level[graded[first[k]]]),
                groups=int(groups[k]),
                rollouts=int(rollouts[k]),
                last=int(last[k]),
            )
            for k in np.flatnonzero(~solved)
        ]
        return sorted(found, key=lambda r: (-r.rollouts, r.id))

    def curves(self, epochs: int = 0) -> RowCurves:
        """Learning curves of the rows, over the groups that were posed without help.

        An epoch is as many groups in a row as there are rows, so where a source goes through its rows in order it is the
        source's own; groups behind the last whole epoch are left out. Given a number, the run is cut into as many parts instead.

        Args:
            epochs: number of parts; 0 for epochs.

        Raises:
            DataError: no group without help, or fewer than two epochs.
        """
        mine = np.flatnonzero(self.unhelped)
        if not len(mine):
            raise DataError("every group of this run was posed with a hint or a prefix: no row has a curve of its own")
        first, row = cast(
            "tuple[NDArray[np.int64], NDArray[np.int64]]", np.unique(self.id[mine], return_index=True, return_inverse=True)[1:]
        )
        size = len(mine) / epochs if epochs else float(len(first))
        epoch = (np.arange(len(mine)) / size).astype(np.int64)
        count = epochs or len(mine) // len(first)
        if count < 2:
            raise DataError(
                f"{len(mine)} groups on {len(first)} rows are {len(mine) / len(first):.1f} epochs, and a learning curve needs 2 "
                "or more: train longer, or on fewer rows (--stages.0.index.kind FirstTasks), or give a number of parts"
            )
        whole = epoch < count
        mine, row, epoch = mine[whole], row[whole], epoch[whole]
        shape = len(first), count
        right, rated = np.zeros(shape), np.zeros(shape, np.int64)
        graded = ~np.isnan(self.reward[mine])
        at = row[graded], epoch[graded]
        np.add.at(right, at, (self.reward[mine] * self.rollouts[mine])[graded])
        np.add.at(rated, at, self.rollouts[mine][graded])
        with np.errstate(invalid="ignore"):
            history = np.where(rated > 0, right / rated, np.nan)
        last = count - 1 - np.argmax(rated[:, ::-1] > 0, axis=1)
        rows = np.arange(len(first))
        every = np.flatnonzero(self.unhelped)[first]
        places = zip(self.arm[every].tolist(), self.level[every].tolist(), self.index[every].tolist(), strict=True)
        ends = np.array([self.step[mine[epoch == k]].max() for k in range(count)], np.int64)
        passed = np.rint(right[rows, last]).astype(np.int64)
        return RowCurves(places=tuple(places), history=history, passed=passed, rollouts=rated[rows, last], steps=ends)
