"""What a run saw of each row: epochs, gaps, hints, damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.core import FrozenMap, Score, Task
from assay.core.errors import DataError
from assay.core.group import Outcome
from assay.core.score import Fault
from assay.runs import RowHistory
from assay.runs.row_history import FILE, row_columns
from assay.testing import graded_group


def group(name: str, *values: float | Score) -> Outcome:
    task = Task(id=name, domain="d", arm="a", level=2, split="train", index=7, public=FrozenMap({"prompt": "?"}))
    return Outcome(group=graded_group(task, values), kept=len(set(map(str, values))) > 1)


def recorded(folder: Path, *steps: list[Outcome], **changes: Any) -> RowHistory:
    lines = [{"step": n, "stage": "rl", **row_columns(outcomes), **changes} for n, outcomes in enumerate(steps, 1)]
    (folder / FILE).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    found = RowHistory.read(folder)
    assert found is not None
    return found


def test_a_step_is_columns_with_one_entry_per_graded_group() -> None:
    fault = Score(components={}, fault=Fault.INFRA)
    found = row_columns([group("x", 1.0, 0.0, 0.0), group("y", fault, 1.0), group("z", fault)])
    assert found["id"] == ["x", "y", "z"] and found["level"] == [2, 2, 2] and found["index"] == [7, 7, 7]
    assert found["rollouts"] == [3, 1, 0]
    assert found["reward"] == [0.333333, 1.0, None]
    assert found["kept"] == [1, 1, 0]
    assert all(length > 0 for length in found["length"]) and "tag" not in found


def test_epochs_are_as_many_groups_in_a_row_as_there_are_rows(tmp_path: Path) -> None:
    x, y = group("x", 0.0, 1.0), group("y", 1.0, 1.0)
    history = recorded(tmp_path, [x, y, y], [group("x", 1.0, 1.0), x], [group("y", 0.0, 0.0)])
    curves = history.curves()
    assert curves.places == (("a", 2, 7), ("a", 2, 7))
    np.testing.assert_allclose(curves.history, [[0.5, 1.0, 0.5], [1.0, 1.0, 0.0]])
    assert (curves.passed.tolist(), curves.rollouts.tolist(), curves.steps.tolist()) == ([1, 0], [2, 2], [1, 2, 3])


def test_a_row_that_an_epoch_did_not_meet_has_a_gap_and_its_last_passes_are_older(tmp_path: Path) -> None:
    history = recorded(tmp_path, [group("x", 1.0, 0.0), group("y", 1.0, 1.0), group("y", 0.0, 0.0), group("y", 1.0, 0.0)])
    curves = history.curves()
    np.testing.assert_allclose(curves.history, [[0.5, np.nan], [1.0, 0.25]])
    assert (curves.passed.tolist(), curves.rollouts.tolist()) == ([1, 1], [2, 4])
    assert history.curves(epochs=4).history.shape == (2, 4)


def test_groups_behind_a_hint_are_no_part_of_a_curve(tmp_path: Path) -> None:
    plain = [group("x", 0.0), group("y", 1.0), group("x", 1.0), group("y", 1.0)]
    history = recorded(tmp_path, [*plain, group("x", 1.0)], tag=["plain"] * 4 + ["hint"])
    np.testing.assert_allclose(history.curves().history, [[0.0, 1.0], [1.0, 1.0]])
    with pytest.raises(DataError, match="with a hint or a prefix"):
        recorded(tmp_path, [group("x", 1.0)], tag=["hint"]).curves()


def test_a_run_without_two_epochs_has_no_curves_and_says_why(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"3 groups on 2 rows are 1\.5 epochs"):
        recorded(tmp_path, [group("x", 0.0), group("y", 0.0), group("x", 0.0)]).curves()


def test_a_missing_file_is_no_history_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    assert RowHistory.read(tmp_path) is None
    (tmp_path / FILE).write_text(json.dumps({"step": 1, **row_columns([])}) + "\n", encoding="utf-8")
    assert RowHistory.read(tmp_path) is None
    with pytest.raises(DataError, match=r"row_history.jsonl, line 1: columns of different lengths"):
        recorded(tmp_path, [group("x", 0.0)], kept=[1, 1])


def test_rows_that_were_never_solved_by_hand(tmp_path: Path) -> None:
    fault = Score(components={}, fault=Fault.INFRA)
    history = recorded(
        tmp_path,
        [group("x", 0.0, 0.0), group("y", 0.0, 1.0), group("z", fault)],
        [group("w", 0.0, 0.0, 0.0, 0.0, 0.0)],
        [group("x", 0.0, 0.0), group("y", 0.0, 0.0)],
    )
    found = history.never_solved()  # y was solved once, z has no verdict
    assert [(r.id, r.arm, r.level, r.groups, r.rollouts, r.last) for r in found] == [
        ("w", "a", 2, 1, 5, 2),
        ("x", "a", 2, 2, 4, 3),
    ]
