"""Filled grids: by hand."""

import pytest

from assay.core.errors import DataError, UnknownNameError
from assay.verify import GridMatch, task_and_rollout

GOLD = [["1", "2", "3"], ["2", "3", "1"]]


@pytest.mark.parametrize(
    ("said", "verdict", "cells"),
    [
        ("1 2 3\n2 3 1", "equal", 1.0),
        ("[[1,2,3],[2,3,1]]", "equal", 1.0),
        ("123\n231", "equal", 1.0),
        ("| 1 | 2 | 3 |\n|---+---+---|\n| 2 | 3 | 1 |", "equal", 1.0),
        ("[1, 2, 3]\n[2, 3, 1]", "equal", 1.0),
        ("<answer>\n1,2,3\n\n2,3,1\n</answer>", "equal", 1.0),
        ("1 2 3\n2 3 2", "different", 5 / 6),
        ("1 2 3", "different", 0.0),
        ("1 2\n2 3", "different", 0.0),
        ("1 2 3 2 3 1", "different", 0.0),
        ("", "unparsed", 0.0),
        ("\n \n", "unparsed", 0.0),
        ("[[], 3]", "different", 0.0),
    ],
)
def test_grids(said: str, verdict: str, cells: float) -> None:
    score = GridMatch()(*task_and_rollout(GOLD, said))
    assert score.info["verdict"] == verdict
    assert dict(score.components) == {"correct": float(verdict == "equal"), "cells": cells}


def test_dashes_and_case() -> None:
    assert GridMatch()(*task_and_rollout([["-", "A"], ["-", "-"]], "- a\n- -")).primary == 1.0
    assert GridMatch()(*task_and_rollout([["-", "A"], ["-", "-"]], "- a\n-")).primary == 0.0
    assert GridMatch()(*task_and_rollout([["10", "2"]], "10 2")).primary == 1.0
    assert GridMatch()(*task_and_rollout([["10", "2"]], "102")).primary == 0.0


def test_golds() -> None:
    for gold in ("12", [], [1, 2], [[]], {"a": 1}):
        with pytest.raises(DataError, match="is no grid"):
            GridMatch()(*task_and_rollout(gold, "1 2"))
    with pytest.raises(UnknownNameError):
        GridMatch(where="x")  # pyright: ignore
