"""Composers that bring columns, or another stream."""

from __future__ import annotations

import numpy as np
import pytest

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.group import Group
from assay.core.sample import STREAMS
from assay.core.score import Fault, Score
from assay.lab.brought import COLUMNS, AsStream, WithColumns, WithStored
from assay.tasks import SortDigits
from assay.testing import graded

SORT = SortDigits()
LOST = Score(components={}, fault=Fault.VERIFIER)


def group(index: int, *verdicts: float | Score, level: int = 3, texts: dict[int, str] | None = None) -> Group:
    return graded(SORT.task("sort", level, "train", index), verdicts, key=f"g{index}", texts=texts)


def test_rows_take_the_name_of_another_stream() -> None:
    batch = AsStream(stream="offline").compose([group(0, 0.0, 1.0)], None, 0)
    assert batch is not None
    assert {STREAMS[i] for i in batch.rows["stream"]} == {"offline"}
    with pytest.raises(UnknownNameError, match="stream 'ofline'"):
        AsStream(stream="ofline")


def test_a_right_answer_to_what_the_base_masters_stands_beside_the_attempts() -> None:
    groups = [group(0, 0.0, 1.0, 1.0), group(1, 0.0, 0.0), group(2, 1.0, 1.0, level=5)]
    batch = WithStored(levels=(3, 4)).compose(groups, None, 0)
    assert batch is not None
    streams = [STREAMS[i] for i in batch.rows["stream"]]
    assert streams == ["on_policy"] * 7 + ["offline"]
    assert batch.rollouts["group"].tolist() == [0, 0, 0, 1, 1, 2, 2, 0]
    with pytest.raises(ConfigError, match=r"leave Reinforce\.experts at False"):
        WithStored(levels=(3,)).compose(groups, None, 0, [group(0, 1.0)])


def test_columns_of_attempts() -> None:
    names = ("difficulty", "hardness", "responsiveness", "peers", "role", "win", "loss", "value_ref", "optimal_value")
    groups = [group(0, 0.0, 1.0, 1.0, 1.0), group(1, 0.0, 0.0, level=5)]
    batch = WithColumns(names=names, solved=((3, 0.5), (5, 0.0))).compose(groups, None, 0)
    assert batch is not None
    got = {name: np.round(batch.rollouts[name], 4).tolist() for name in names}
    assert got["role"] == got["difficulty"] == [3.0] * 4 + [5.0] * 2
    assert got["hardness"] == [0.25] * 4 + [1.0] * 2
    assert got["responsiveness"] == [0.0] * 6
    assert got["peers"] == [0.0, 0.0, 1.0, 1.0, 0.0, 1.0]
    assert got["win"] == [0.0, 0.5, 0.5, 0.5, 0.0, 0.0]
    assert got["loss"] == [1.0, 0.5, 0.5, 0.5, 1.0, 1.0]
    assert got["value_ref"] == [0.5] * 4 + [0.0] * 2
    assert got["optimal_value"] == [round(0.5 * np.log(0.5 + 0.5 * np.exp(2.0)), 4)] * 4 + [0.0] * 2


def test_columns_of_tokens_stand_at_what_was_sampled() -> None:
    task = group(0, 0.0).task
    answer = task.private["answer"]
    wrong = answer[:-1] + ("0" if answer[-1] != "0" else "1")
    one = graded(task, [1.0, LOST, 0.0], texts={0: answer, 1: answer, 2: wrong})
    batch = WithColumns(names=("process_reward", "segment")).compose([one], None, 0)
    assert batch is not None
    here = batch.token("mask")
    assert batch.token("process_reward")[~here].tolist() == [0.0] * int((~here).sum())
    paid, n = batch.token("process_reward")[here], int(here.sum()) // 2
    assert paid[:3].tolist() == [0.25] * 3
    assert paid[n : n + 3].tolist() == [0.25, 0.25, 0.0]
    assert batch.token("segment")[here][:n].tolist() == list(range(n))


def test_what_cannot_be_brought_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="column 'wins'"):
        WithColumns(names=("wins",))
    with pytest.raises(ConfigError, match="give solved"):
        WithColumns(names=("value_ref",))
    assert "value_ref" in COLUMNS
    with pytest.raises(ConfigError, match=r"leave Reinforce\.experts at False"):
        WithColumns(names=("role",)).compose([group(0, 0.0, 1.0)], None, 0, [group(0, 1.0)])


@pytest.mark.parametrize("composer", [AsStream(stream="offline"), WithColumns(names=("role",)), WithStored(levels=(3,))])
def test_nothing_to_learn_from_gives_no_batch(composer: AsStream | WithColumns | WithStored) -> None:
    assert composer.compose([group(0, LOST, LOST)], None, 0) is None
