"""ECE, Brier score and AUROC by hand-worked numbers; CoT-Pass@K never above pass@k."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from assay.core.errors import DataError, UnknownNameError
from assay.measure import VOTE_RULES, auroc, brier_score, calibration_error, calibration_of, cot_pass, reasoned_items
from assay.train.evaluate import calibration

Q, C = [0.95, 0.95, 0.15, 0.15], [1, 0, 0, 1]


def test_the_sheets_numbers() -> None:
    assert brier_score(Q, C) == pytest.approx(0.4125)
    assert calibration_error(Q, C) == pytest.approx(0.40)
    assert auroc(Q, C) == 0.5


def test_bins_hold_their_upper_end_and_a_perfect_forecast_has_no_error() -> None:
    assert calibration_error([0.7] * 10, [1] * 7 + [0] * 3) == pytest.approx(0.0, abs=1e-12)
    assert calibration_error([0.7, 0.65], [1, 0], bins=10) == pytest.approx(0.175), "both in (0.6, 0.7]"
    assert calibration_error([0.0, 1.0], [0, 1]) == 0.0 and calibration_error([0.2, 0.9], [1, 1], bins=1) == pytest.approx(0.45)
    assert auroc([0.1, 0.2], [1, 1]) is None and auroc([0.1, 0.9], [0, 1]) == 1.0


@pytest.mark.parametrize("q, c", [([], []), ([0.1], [1, 0]), ([1.1], [1]), ([0.1], [2])])
def test_what_cannot_be_measured_is_refused(q: list[float], c: list[float]) -> None:
    with pytest.raises(DataError):
        brier_score(q, c)


def test_other_refusals() -> None:
    with pytest.raises(DataError, match="bins=0"):
        calibration_error([0.1], [1], bins=0)
    with pytest.raises(DataError, match="threshold"):
        auroc([0.1], [0.5])


def test_items_of_an_evaluation() -> None:
    items = [
        {"values": [1.0, 0.5], "confidence": [0.9, 0.4]},
        {"values": [0.0, 1.0], "confidence": [None, 0.8]},
        {"values": [1.0]},
    ]
    found = calibration_of(items)
    assert found is not None and found.answers == 3 and found.stated == 0.6 and found.accuracy == pytest.approx(2 / 3)
    assert calibration_of([{"values": [1.0]}]) is None and calibration("greedy", [{"values": [1.0]}], 1.0) == {}
    named = calibration("sampled", [{"values": [1.0], "confidence": [0.9]}], 1.0)
    assert set(named) == {f"calibration/sampled/{n}" for n in ("ece", "brier", "confidence", "stated")}, "no AUROC of one kind"


# ---- reasoning


def test_cot_pass_is_never_above_pass_and_equal_where_the_judge_always_says_yes() -> None:
    rng = np.random.default_rng(0)
    for yes in (False, True):
        items: list[dict[str, Any]] = []
        for i in range(20):
            values = rng.integers(0, 2, 8).astype(float).tolist()
            votes = [[yes or bool(x) for x in rng.integers(0, 2, 3)] if v else None for v in values]
            items.append({"id": str(i), "arm": "a", "level": 1, "values": values, "reasoning": votes})
        found = cot_pass(items)
        from assay.measure import eval_items, tabulate

        whole = tabulate(eval_items(items)).total.metrics
        for rule in VOTE_RULES:
            for k in (1, 2, 4, 8):
                got, bound = found.tables[rule].total.metrics[f"pass@{k}"].value, whole[f"pass@{k}"].value
                assert got == bound if yes else got <= bound
        assert found.given_right["all"] <= found.given_right["majority"] <= found.given_right["any"]
        assert found.unjudged == 0


def test_right_answers_without_a_vote_are_left_out_and_counted() -> None:
    item = {"id": "a", "arm": "a", "level": 1, "values": [1.0, 1.0, 0.0], "reasoning": [[], [True], None]}
    found = cot_pass([item])
    assert found.unjudged == 1 and found.right == 1 and reasoned_items([item], "all")[0]["values"] == [1.0, 0.0]
    with pytest.raises(UnknownNameError, match="majority"):
        reasoned_items([item], "most")
    with pytest.raises(DataError, match="'reasoning'"):
        cot_pass([{"id": "a", "arm": "a", "level": 1, "values": [1.0]}])
