"""The report on the curriculum at work: draws and success by cell and time, waste, rows by success."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from assay.measure.practice import MOST_CELLS, MOST_SPANS, Practice, practice_section
from assay.measure.runs import read_run
from assay.runs import RowHistory
from assay.runs.row_history import FILE


def written(folder: Path, steps: list[list[tuple[Any, ...]]]) -> RowHistory:
    """Steps of groups: id, arm, level, reward, kept, tag."""
    lines = []
    for n, groups in enumerate(steps, 1):
        ids, arms, levels, rewards, kept, tags = (list(column) for column in zip(*groups, strict=True))
        many = [4] * len(groups)
        lines.append({"step": n, "id": ids, "arm": arms, "level": levels, "index": many, "rollouts": many, "length": many})
        lines[-1] |= {"reward": rewards, "kept": kept, "tag": tags}
    (folder / FILE).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    found = RowHistory.read(folder)
    assert found is not None
    return found


GROUPS = [
    [
        ("x", "a", 1, 0.5, 1, "plain"),
        ("y", "a", 1, 1.0, 0, "plain"),
        ("z", "b", 2, None, 0, "plain"),
        ("x", "a", 1, 0.25, 0, "plain"),
    ],
    [
        ("x", "a", 1, 1.0, 1, "plain"),
        ("z", "b", 2, 0.0, 0, "plain"),
        ("z", "b", 2, 1.0, 1, "hint"),
        ("z", "b", 2, 0.0, 1, "plain"),
    ],
]


def test_draws_and_success_by_cell_and_span(tmp_path: Path) -> None:
    found = Practice.of(written(tmp_path, GROUPS))
    assert found.cells == ("a 1", "b 2") and found.ends == (1, 2) and found.left_out == 0
    np.testing.assert_allclose(found.draws, [[0.75, 0.25], [0.25, 0.75]])
    np.testing.assert_allclose(found.success, [[(0.5 + 1.0 + 0.25) / 3, 1.0], [np.nan, 1 / 3]])


def test_many_steps_and_cells_are_shown_in_spans_and_by_arm(tmp_path: Path) -> None:
    steps = [[(f"r{n}", f"arm{k:02}", 1 + n % 2, 0.5, 1, "plain") for k in range(MOST_CELLS + 4)] for n in range(50)]
    found = Practice.of(written(tmp_path, steps))
    assert len(found.cells) == MOST_CELLS and found.left_out == 4 and found.cells[0] == "arm00"
    assert len(found.ends) == MOST_SPANS and found.ends[-1] == 50
    levels = Practice.of(written(tmp_path, [[("x", "a", lv, 0.5, 1, "plain") for lv in range(3)]]))
    assert levels.cells == ("level 0", "level 1", "level 2")  # of one arm its name says nothing


def test_the_section_says_what_was_thrown_away_and_which_rows_have_a_signal(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text("seed = 1\n")
    (tmp_path / "metrics.jsonl").write_text(json.dumps({"step": 1, "stage": "rl", "metrics": {}}) + "\n")
    run = read_run(tmp_path)
    assert practice_section(run) == ""
    written(tmp_path, GROUPS)
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", practice_section(run)))
    for said in (
        "graded 8 100 %",
        "learned from, with a signal 1 12 %",
        "learned from, without a signal 3 38 %",
        "thrown away, although with a signal 1 12 %",
        "thrown away, without a signal 2 25 %",
        "thrown away, without a verdict 1 12 %",
        "posed with a hint or a prefix 1 12 %",
        "never 1 2 0 %",  # z: two groups without help, none right
        "20 to 80 % 1 3 67 %",  # x
        "always 1 1 0 %",  # y
        "The 3 rows that were practised, each 2.7 times on average",
    ):
        assert said in text, (said, text)


def test_a_run_whose_groups_were_all_helped_has_no_rows_to_show(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text("seed = 1\n")
    written(tmp_path, [[("x", "a", 1, 0.5, 1, "hint")]])
    assert "posed with a hint" in practice_section(read_run(tmp_path))
