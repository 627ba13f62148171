"""What a selector takes among k answers, against hand counts and brute force over all subsets."""

from itertools import combinations

import numpy as np
import pytest

from assay.core.errors import DataError
from assay.measure import best_of_k, selected_accuracy, selected_of_k


def brute(values: list[float], scores: list[float], k: int) -> float:
    """Mean over all subsets of the mean value of those with the highest score."""
    found: list[float] = []
    for subset in combinations(range(len(values)), k):
        top = max(scores[i] for i in subset)
        found.append(float(np.mean([values[i] for i in subset if scores[i] == top])))
    return float(np.mean(found))


def test_by_hand() -> None:
    """Scores 1, 2, 2, 3 of values 1, 0, 1, 0: of the 6 pairs, 3 hold the last (0), {2, 2} gives .5, and {1, 2} 0 or 1."""
    assert selected_of_k([1, 0, 1, 0], [1, 2, 2, 3], 2) == pytest.approx((3 * 0 + 0.5 + 0 + 1) / 6)
    assert selected_of_k([1, 0, 1, 0], [1, 2, 2, 3], 4) == 0.0
    assert selected_of_k([1, 0, 1, 0], [7, 7, 7, 7], 3) == 0.5, "a selector that knows nothing is the mean"


@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_mean_over_all_subsets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, scores = rng.random(7).tolist(), rng.integers(0, 4, 7).astype(float).tolist()
    for k in range(1, 8):
        assert selected_of_k(values, scores, k) == pytest.approx(brute(values, scores, k), abs=1e-12)
        assert selected_of_k(values, values, k) == pytest.approx(best_of_k(values, k), abs=1e-12)
        assert selected_of_k(values, scores, k) <= best_of_k(values, k) + 1e-12
    assert selected_of_k(values, scores, 1) == pytest.approx(np.mean(values))


def test_a_share_of_a_larger_sample_is_unbiased() -> None:
    """The mean of the estimate from 6 of 12 answers is that from all 12, at k = 3."""
    rng = np.random.default_rng(0)
    values, scores = rng.integers(0, 2, 12).astype(float), rng.integers(0, 5, 12).astype(float)
    parts = [selected_of_k(values[list(s)].tolist(), scores[list(s)].tolist(), 3) for s in combinations(range(12), 6)]
    assert np.mean(parts) == pytest.approx(selected_of_k(values.tolist(), scores.tolist(), 3), abs=1e-12)


def test_a_selection_leaves_out_what_was_not_scored() -> None:
    items = [
        {"id": "a", "values": [1, 0, 0], "selector": [0.1, 0.9, None]},
        {"id": "b", "values": [0.5, 1, 1], "selector": [0.1, 0.2, 0.3]},
        {"id": "c", "values": [1], "selector": [None]},
        {"id": "d", "values": [], "selector": []},
    ]
    found = selected_accuracy(items, "mine")
    assert {k: v.value for k, v in found.metrics.items()} == {"selected@1": pytest.approx((1 / 2 + 2 / 3) / 2), "selected@2": 0.5}
    assert (found.tasks, found.unscored, found.selector) == (2, 2, "mine")


def test_bad_input_is_named() -> None:
    with pytest.raises(DataError, match="2 values but 1 scores"):
        selected_of_k([1, 0], [1], 1)
    with pytest.raises(DataError, match="a score is nan"):
        selected_of_k([1, 0], [1, float("nan")], 1)
    for k in (0, 3):
        with pytest.raises(DataError, match=f"selected@{k} needs k from 1 to the 2 answers"):
            selected_of_k([1, 0], [1, 2], k)
    with pytest.raises(DataError, match="'a': give 'selector'"):
        selected_accuracy([{"id": "a", "values": [1]}], "mine")
    with pytest.raises(DataError, match="mine gave no answer a score"):
        selected_accuracy([{"id": "a", "values": [1], "selector": [None]}], "mine")
