"""Expansion, shrinkage and preservation: the sheet's numbers, brute force over all choices of rollouts, and what chance gives."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from assay.core.errors import DataError
from assay.measure import boundary, boundary_of, boundary_set


def items(right: dict[str, list[float]]) -> list[dict[str, object]]:
    return [{"id": name, "values": values} for name, values in right.items()]


def test_the_papers_example() -> None:
    """Before solves {1, 2, 3}, after {2, 3, 4, 5}, of ten: two of the seven unsolved ones are solved now."""
    before, after = [1, 1, 1] + [0] * 7, [0, 1, 1, 1, 1] + [0] * 5
    found = boundary(1, before, after, k=1)
    assert found.expansion.value == pytest.approx(2 / 7)
    assert found.shrinkage.value == pytest.approx(1 / 3)
    assert found.preservation.value == pytest.approx(2 / 3)
    assert (found.before, found.after, found.problems, found.expansion.floor) == (3, 4, 10, None)
    low, high = found.expansion.low, found.expansion.high
    assert low is not None and high is not None and 0 <= low < 2 / 7 < high <= 1


def test_on_problems_that_none_solves_expansion_is_pass_at_k() -> None:
    found = boundary(8, [0, 0, 0, 0], [0, 2, 8, 1], k=2)
    assert found.expansion.value == pytest.approx(np.mean([0, 1 - 15 / 28, 1, 1 - 21 / 28]))
    assert found.shrinkage.value is None and found.expansion.floor == 0


def test_rates_are_expectations_over_all_choices_of_rollouts() -> None:
    n, k, before, after = 4, 2, (1, 2, 0), (3, 0, 1)

    def rows(right: int) -> list[int]:
        return [1] * right + [0] * (n - right)

    def solved(right: int, chosen: tuple[int, ...]) -> bool:
        return any(rows(right)[i] for i in chosen)

    sets = list(combinations(range(n), k))
    miss = [np.mean([not solved(c, s) for s in sets]) for c in before]
    hit = [np.mean([solved(c, s) for s in sets]) for c in after]
    disjoint = [(s, t) for s in sets for t in sets if not set(s) & set(t)]
    crossed = [np.mean([not solved(c, s) and solved(c, t) for s, t in disjoint]) for c in before]
    found = boundary(n, before, after, k)
    assert found.expansion.value == pytest.approx(np.dot(miss, hit) / sum(miss))
    assert found.expansion.floor == pytest.approx(sum(crossed) / sum(miss))
    assert found.shrinkage.floor == pytest.approx(sum(crossed) / (len(before) - sum(miss)))


@pytest.mark.slow
def test_a_model_that_learned_nothing_shows_the_floor() -> None:
    """Two draws of one model: the rates of the second lie at the floor that the first alone predicts."""
    rng = np.random.default_rng(0)
    rate = rng.beta(0.3, 3, 4000)
    one, two = rng.binomial(16, rate), rng.binomial(16, rate)
    found = boundary(16, one, two, k=8)
    for share in (found.expansion, found.shrinkage):
        assert share.value is not None and share.floor is not None and share.floor > 0.05
        assert share.value == pytest.approx(share.floor, abs=0.02)
    again = boundary(16, one, one, k=8, seed=1)
    assert again.expansion.floor == found.expansion.floor


def test_problems_that_are_all_alike_are_no_certainty() -> None:
    """Ten of ten newly solved: Wilson's interval, not a bootstrap without spread."""
    found = boundary(4, [0] * 10, [4] * 10, k=2).expansion
    assert (found.value, found.high) == (1.0, pytest.approx(1.0)) and found.low == pytest.approx(0.722, abs=1e-3)


def test_evaluations_are_paired_by_task() -> None:
    before = items({"a": [0, 0, 0, 0], "b": [1, 0, 1, 1], "c": [], "only": [1, 1, 1, 1]})
    after = items({"b": [1, 1, 1, 1], "a": [1, 1, 1], "c": [1]})
    found = boundary_of(before, after, k=3)
    assert (found.problems, found.k, found.expansion.value, found.preservation.value) == (2, 3, 1.0, 1.0)
    assert boundary_of(before, after).k == 1  # half of the three rollouts that all of them have
    assert boundary_set(before) == ("a",)
    assert boundary_set(items({"a": [0.4], "b": [0.6]}), threshold=0.5) == ("a",)


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(DataError, match="no problem in common"):
        boundary_of(items({"a": [1]}), items({"b": [1]}))
    with pytest.raises(DataError, match="3 problems before and 2 after"):
        boundary(4, [1, 1, 1], [1, 1], k=2)
    with pytest.raises(DataError, match="pass@5 needs at least 5 rollouts"):
        boundary(4, [1], [1], k=5)
