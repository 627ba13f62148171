"""Composers by the names of earlier studies do what they did, and their folders read as they were written."""

from __future__ import annotations

import numpy as np
import pytest

from assay.core import from_dict, to_dict
from assay.core.errors import ConfigError, UnknownNameError
from assay.core.group import Group
from assay.core.sample import STREAMS
from assay.core.score import Fault, Score
from assay.guide import Compose
from assay.lab import stored_composers
from assay.lab.stored_composers import WithColumns
from assay.testing import graded_group
from assay.train.streams import AsStream, WithStored
from assay_tasks import SortDigits

SORT = SortDigits()
LOST = Score(components={}, fault=Fault.VERIFIER)


def group(index: int, *verdicts: float | Score, level: int = 3) -> Group:
    return graded_group(SORT.task("sort", level, "train", index), verdicts, key=f"g{index}")


def test_rows_take_the_name_of_another_stream() -> None:
    batch = AsStream(stream="offline").compose([group(0, 0.0, 1.0)], None, 0)
    assert batch is not None
    assert {STREAMS[i] for i in batch.rows["stream"]} == {"offline"}
    with pytest.raises(UnknownNameError, match="stream 'ofline'"):
        AsStream(stream="ofline")


def test_a_right_answer_to_what_the_base_masters_stands_beside_the_rollouts() -> None:
    groups = [group(0, 0.0, 1.0, 1.0), group(1, 0.0, 0.0), group(2, 1.0, 1.0, level=5)]

    def streams(composer: WithStored) -> list[str]:
        batch = composer.compose(groups, None, 0)
        assert batch is not None
        return [STREAMS[i] for i in batch.rows["stream"]]

    assert streams(WithStored(levels=(3, 4))) == ["on_policy"] * 7 + ["offline"]
    assert streams(WithStored()) == ["on_policy"] * 7 + ["offline"] * 2
    assert streams(WithStored(least=0.75)) == ["on_policy"] * 7 + ["offline"], "two of three are right at the first prompt"
    with pytest.raises(ConfigError, match=r"leave Reinforce\.experts at False"):
        WithStored(levels=(3,)).compose(groups, None, 0, [group(0, 1.0)])
    with pytest.raises(ConfigError, match=r"WithStored\.least=1\.5"):
        WithStored(least=1.5)


def test_columns_as_earlier_studies_had_them() -> None:
    names = ("difficulty", "hardness", "responsiveness", "peers", "role", "win", "loss", "value_ref", "optimal_value")
    groups = [group(0, 0.0, 1.0, 1.0, 1.0), group(1, 0.0, 0.0, level=5)]
    batch = WithColumns(names=names, solved=((3, 0.5), (5, 0.0))).compose(groups, None, 0)
    assert batch is not None
    got = {name: np.round(batch.rollouts[name], 4).tolist() for name in names}
    assert got["role"] == got["difficulty"] == [3.0] * 4 + [5.0] * 2
    assert got["peers"] == [0.0, 0.0, 1.0, 1.0, 0.0, 1.0]
    assert got["value_ref"] == [0.5] * 4 + [0.0] * 2
    both = WithColumns(names=("process_reward", "segment")).compose(groups, None, 0)
    assert both is not None
    assert {"process_reward", "segment"} <= {*both.tokens}


def test_what_cannot_be_brought_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="column 'wins'"):
        WithColumns(names=("wins",))
    with pytest.raises(ConfigError, match="give solved"):
        WithColumns(names=("value_ref",))
    with pytest.raises(ConfigError, match=r"leave Reinforce\.experts at False"):
        WithColumns(names=("role",)).compose([group(0, 0.0, 1.0)], None, 0, [group(0, 1.0)])


@pytest.mark.parametrize("composer", [AsStream(stream="offline"), WithColumns(names=("role",)), WithStored(levels=(3,))])
def test_nothing_to_learn_from_gives_no_batch(composer: AsStream | WithColumns | WithStored) -> None:
    assert composer.compose([group(0, LOST, LOST)], None, 0) is None


@pytest.mark.parametrize(
    "composer",
    [
        stored_composers.AsStream(stream="offline", inner=WithColumns(names=("value_ref",), solved=((3, 0.5),))),
        stored_composers.AsStream(stream="offline"),
        stored_composers.WithStored(levels=(3, 4)),
    ],
)
def test_folders_of_before_read_as_they_were_written(composer: object) -> None:
    table = to_dict(composer)
    assert table["kind"] == f"assay.lab.brought:{type(composer).__name__}"
    assert sorted(table) == (["inner", "kind", "stream"] if "stream" in table else ["kind", "levels"])
    again = from_dict(object, table)
    assert (again, to_dict(again)) == (composer, table)
    assert isinstance(again, AsStream | WithStored)
    inner = getattr(composer, "inner", Compose())
    assert isinstance(inner, Compose | WithColumns)
