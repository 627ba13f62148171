"""GSM8K's rows: read, held apart, judged by the number in the box, refused with their place."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.testing import check_task_source, rollout_of
from assay_tasks import Gsm8k, worked_rows

ROWS = [
    {"question": "Two and two?", "answer": "2 + 2 = <<2+2=4>>4\n#### 4"},
    {"question": " A thousand and one? ", "answer": "It is 1,001.\n#### 1,001"},
]


def written(path: Path, rows: list[dict[str, object]]) -> str:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


@pytest.fixture
def source(tmp_path: Path) -> Gsm8k:
    return Gsm8k(train=written(tmp_path / "train.jsonl", ROWS), test="")


def tasks_of(source: Gsm8k, split: str = "train") -> dict[str, object]:
    return {t.private["answer"]: t for t in (source.task("gsm8k", 1, split, i) for i in range(source.size("gsm8k", 1, split)))}


def test_questions_answers_and_traces(tmp_path: Path) -> None:
    path = written(tmp_path / "both.jsonl", ROWS)
    source = Gsm8k(train=path, test=path)
    found = tasks_of(source)
    assert set(found) == {"4", "1001"} and source.size("gsm8k", 1, "test") == 2
    assert found["4"].public["prompt"] == "Two and two?\nReason step by step, and put the final answer in \\boxed{}."
    (said,) = source.trace(found["4"], 0.0, np.random.default_rng(0))
    assert said.content == "2 + 2 = 4\n\\boxed{4}"
    verifier = source.verifier()
    for task, text, right in (
        (found["4"], said.content, 1.0),
        (found["4"], "#### 4", 0.0),
        (found["4"], "\\boxed{5}", 0.0),
        (found["1001"], "so \\boxed{1{,}001}", 1.0),
        (found["1001"], "\\boxed{1001.0}", 1.0),
    ):
        assert verifier(task, rollout_of(task, text)).primary == right, text
    assert {t.split for t in tasks_of(source, "test").values()} == {"test"}


def test_without_test_rows_a_tenth_is_held_out(tmp_path: Path) -> None:
    source = Gsm8k(train=written(tmp_path / "all.jsonl", worked_rows(400)), test="")
    train, test = (source.size("gsm8k", 1, split) for split in ("train", "test"))
    assert train + test == 400 and 20 <= test <= 65
    check_task_source(source, n=20)


def test_generated_rows_stand_in(tmp_path: Path) -> None:
    source = Gsm8k().stand_in(tmp_path / "rows")
    assert (source.size("gsm8k", 1, "train"), source.size("gsm8k", 1, "test")) == (200, 40)
    assert source.request == Gsm8k().request
    for i in range(30):
        task = source.task("gsm8k", 1, ("train", "test")[i % 2], i)
        boxes, each, given = (int(w) for w in task.public["prompt"].split() if w.isdigit())
        assert int(task.private["answer"]) == boxes * each + given
        (said,) = source.trace(task, 0.0, np.random.default_rng(0))
        assert source.verifier()(task, rollout_of(task, said.content)).primary == 1.0
    asked = [row["question"] for row in worked_rows(240)]
    assert len(set(asked)) == 240 and worked_rows(3) == worked_rows(3) != worked_rows(3, seed=1)


@pytest.mark.parametrize("row", [{"question": "2?", "answer": "4"}, {"question": "2?"}, {"question": 2, "answer": "#### 4"}])
def test_other_rows_are_refused_with_their_place(tmp_path: Path, row: dict[str, object]) -> None:
    path = written(tmp_path / "rows.jsonl", [ROWS[0], row])
    with pytest.raises(DataError, match=r"rows\.jsonl, row 2 is no row of GSM8K"):
        Gsm8k(train=path, test="").task("gsm8k", 1, "train", 0)


def test_rows_that_are_not_there_and_names_that_are_not_known(source: Gsm8k, tmp_path: Path) -> None:
    missing = Gsm8k(train=str(tmp_path / "none.jsonl"))
    assert missing.arms() == {"gsm8k": (1,)}, "nothing is read until a task is asked for"
    with pytest.raises(ConfigError, match=r"none\.jsonl does not exist"):
        missing.task("gsm8k", 1, "train", 0)
    with pytest.raises(UnknownNameError, match="split"):
        source.task("gsm8k", 1, "dev", 0)
    both = Gsm8k(train=source.train, test=source.train)
    with pytest.raises(UnknownNameError, match="split"):
        both.task("gsm8k", 1, "dev", 0)
    assert source.environment(source.task("gsm8k", 1, "train", 0).public_view()) is None
