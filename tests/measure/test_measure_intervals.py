"""Intervals against hand numbers, their coverage by simulation, and paired comparisons."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.core.errors import ConfigError, DataError
from assay.measure.intervals import bootstrap, mean_interval, paired_difference, student, wilson


def test_wilson_by_hand() -> None:
    found = wilson(8, 10, 0.95)  # Newcombe 1998's formula by hand with z = 1.959964
    assert (found.low, found.high) == (pytest.approx(0.4901625, abs=1e-6), pytest.approx(0.9433178, abs=1e-6))
    assert wilson(0, 10).low == 0.0
    assert wilson(10, 10).high == 1.0


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), st.floats(0.5, 0.99))
def test_wilson_holds_its_estimate_and_mirrors(case: tuple[int, int], confidence: float) -> None:
    n, k = case
    a, b = wilson(k, n, confidence), wilson(n - k, n, confidence)
    assert 0.0 <= a.low <= k / n <= a.high <= 1.0
    assert a.low == pytest.approx(1 - b.high, abs=1e-12)


@pytest.mark.parametrize(("k", "n"), [(1, 0), (-1, 4), (5, 4)])
def test_wilson_refuses(k: int, n: int) -> None:
    with pytest.raises(DataError):
        wilson(k, n)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0])
def test_confidence_is_a_share(confidence: float) -> None:
    with pytest.raises(ConfigError, match="between 0 and 1"):
        wilson(1, 2, confidence)


def test_bootstrap_is_seeded_and_near_the_normal_interval() -> None:
    x = np.random.default_rng(0).normal(3.0, 2.0, 400)
    a, b, c = bootstrap(x, seed=1), bootstrap(x, seed=1), bootstrap(x, seed=2)
    assert a == b != c
    half = 1.96 * x.std() / np.sqrt(len(x))
    for method in ("bca", "percentile"):
        found = bootstrap(x, method=method)
        assert found.value == pytest.approx(x.mean())
        assert found.low == pytest.approx(x.mean() - half, abs=0.15 * half)
        assert found.high == pytest.approx(x.mean() + half, abs=0.15 * half)


def test_bca_leans_to_the_long_tail() -> None:
    x = np.random.default_rng(3).exponential(1.0, 40)
    plain, bca = bootstrap(x, method="percentile"), bootstrap(x, method="bca")
    assert bca.low > plain.low
    assert bca.high > plain.high


def test_bca_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(7)
    hits = 0
    for trial in range(200):
        found = bootstrap((rng.random(60) < 0.3).astype(float), confidence=0.9, seed=trial, resamples=400)
        hits += found.low <= 0.3 <= found.high
    assert 0.83 <= hits / 200 <= 0.97


def test_a_slice_of_the_index_matrix_changes_nothing_but_memory() -> None:
    x = np.random.default_rng(1).random(3000)
    found = bootstrap(x, resamples=1500)  # 3000 x 1500 indices come in three slices
    assert found.low < found.value < found.high


def test_bootstrap_refuses() -> None:
    with pytest.raises(DataError, match="at least one value"):
        bootstrap([])
    with pytest.raises(DataError, match="1 of 2 are not"):
        bootstrap([1.0, float("nan")])
    with pytest.raises(ConfigError, match="'jackknife'"):
        bootstrap([1.0, 2.0], method="jackknife")


def test_equal_values_have_no_spread_but_proportions_at_the_edge_do() -> None:
    assert (bootstrap([0.5] * 9).low, bootstrap([0.5] * 9).high) == (0.5, 0.5)
    assert mean_interval([0.0] * 16).high == pytest.approx(wilson(0, 16).high)
    assert mean_interval([1.0] * 16).low == pytest.approx(wilson(16, 16).low)
    assert mean_interval([0.5] * 16).low == 0.5


def test_pairing_is_by_id_and_far_sharper_than_two_intervals() -> None:
    rng = np.random.default_rng(2)
    hard = rng.random(300)
    first = {f"t{i}": float(h) for i, h in enumerate(hard)}
    second = {f"t{i}": float(h) + 0.02 for i, h in reversed(list(enumerate(hard)))} | {"stranger": 0.0}
    found = paired_difference(first, second)
    assert found.difference.value == pytest.approx(0.02)
    assert found.difference.n == 300
    assert found.difference.low > 0
    assert found.p_value < 0.001
    assert (found.better, found.worse, found.same) == (300, 0, 0)


def test_sign_flip_counts_all_patterns_when_few_differ() -> None:
    first = {str(i): 0.0 for i in range(20)}
    three_up = first | {"0": 1.0, "1": 1.0, "2": 1.0}
    assert paired_difference(first, three_up).p_value == pytest.approx(2 / 8)
    two_one = first | {"0": 1.0, "1": 1.0, "2": -1.0}
    assert paired_difference(first, two_one).p_value == 1.0  # |sum| = 1 is the least that three signs can give
    assert paired_difference(first, first).p_value == 1.0


def test_sign_flip_by_sampling_agrees_with_the_binomial() -> None:
    first = {str(i): 0.0 for i in range(30)}
    second = {str(i): (1.0 if i < 21 else -1.0) for i in range(30)}
    exact = 0.04277  # two-sided binomial test of 21 of 30
    assert paired_difference(first, second).p_value == pytest.approx(exact, abs=0.008)


def test_null_differences_rarely_look_significant() -> None:
    rng = np.random.default_rng(11)
    small = 0
    for trial in range(200):
        a, b = rng.random((2, 25))
        table = [dict(zip(map(str, range(25)), x.tolist(), strict=True)) for x in (a, b)]
        small += paired_difference(*table, seed=trial, flips=400).p_value < 0.05
    assert small / 200 < 0.1


def test_no_difference_anywhere_still_leaves_doubt() -> None:
    same = {str(i): 1.0 for i in range(50)}
    found = paired_difference(same, same).difference
    assert found.value == 0.0
    assert found.high == -found.low == pytest.approx(wilson(0, 50).high)
    all_up = paired_difference({str(i): 0.0 for i in range(50)}, same).difference
    assert (all_up.value, all_up.high) == (1.0, 1.0)
    assert 0.8 < all_up.low < 0.9
    beyond = paired_difference({"a": 3.0, "b": 3.0}, {"a": 4.0, "b": 4.0}).difference  # not shares: only the spread can speak
    assert (beyond.low, beyond.high) == (1.0, 1.0)


def test_pairs_need_common_items() -> None:
    with pytest.raises(DataError, match="none in common"):
        paired_difference({"a": 1.0}, {"b": 1.0})


@pytest.mark.parametrize(("n", "confidence", "t"), [(2, 0.95, 12.7062), (3, 0.95, 4.3027), (5, 0.95, 2.7764), (11, 0.99, 3.1693)])
def test_student_has_the_quantiles_of_the_tables(n, confidence, t):
    values = np.arange(n, dtype=float)
    half = t * values.std(ddof=1) / np.sqrt(n)
    found = student(values, confidence)
    assert found.value == values.mean() and found.n == n
    assert found.high - found.value == pytest.approx(half, rel=1e-4) == found.value - found.low


def test_student_needs_two_values():
    with pytest.raises(DataError, match="two values or more"):
        student([1.0])
    assert (student([0.5, 0.5]).low, student([0.5, 0.5]).high) == (0.5, 0.5)
