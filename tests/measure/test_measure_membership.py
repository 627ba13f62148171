"""Scores of membership, and how well they tell members from others."""

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.core.errors import ConfigError, DataError
from assay.measure import auc, gap, mean_auc, mean_log_prob, min_k_prob, self_critique, zlib_ratio

ENTROPIES = st.lists(st.floats(0, 10), max_size=8)


@pytest.mark.parametrize(
    ("first", "second", "score"),
    [
        ([0.3, 2.0, 1.1], [0.3, 2.0, 1.1], 1.0),
        ([1, 2, 2], [1, 2], 0.4969),  # cosine 5 / (3 sqrt 5), times 2/3
        ([1, 2], [1, 2, 2], 0.4969),
        ([1, 0], [0, 1], 0.0),
        ([], [1, 2], 0.0),
        ([], [], 0.0),
        ([0, 0], [1, 2], 0.0),
        ([0, 0], [0, 0], 1.0),
        ([0], [0, 0], 0.5),
    ],
)
def test_self_critique_by_hand(first, second, score):
    assert self_critique(first, second) == pytest.approx(score, abs=5e-5)


@given(ENTROPIES, ENTROPIES)
def test_self_critique_is_a_share_the_same_either_way(first, second):
    score = self_critique(first, second)
    assert 0.0 <= score <= 1.0 and score == self_critique(second, first)


@given(st.lists(st.floats(0.01, 10), min_size=1, max_size=8), st.floats(0.1, 10))
def test_self_critique_of_an_answer_with_itself_is_one_whatever_the_unit(entropies, unit):
    assert self_critique(entropies, entropies) == pytest.approx(1.0)
    assert self_critique(entropies, [unit * e for e in entropies]) == pytest.approx(1.0)


def test_likelihoods_by_hand():
    logp = [-1.0, -5.0, -0.5, -2.0, -1.5]
    assert mean_log_prob(logp) == -2.0
    assert min_k_prob(logp) == -5.0  # a fifth of five
    assert min_k_prob(logp, 0.59) == -3.5  # two whole tokens
    assert min_k_prob(logp, 1.0) == mean_log_prob(logp)
    assert min_k_prob([-3.0], 0.01) == -3.0
    assert zlib_ratio(logp, "a" * 100) == -10.0 / len(zlib.compress(b"a" * 100)) < zlib_ratio(logp, "unlike all that was")


def test_areas_by_hand():
    found = auc([3, 4, 5, 6], [1, 2, 3, 4])  # 14 of 16 pairs, ties by half
    assert found.value == 0.875 and found.n == 8
    # placements 5/8 7/8 1 1 on both sides: variance 1/32 each, over 4 and 4
    assert found.low == pytest.approx(0.875 - 1.959964 * (1 / 64) ** 0.5) and found.high == 1.0
    assert auc([1, 1], [1, 1]).value == 0.5
    down = auc([1, 2, 1, 2], [3, 4, 5, 6])
    assert (down.value, down.low) == (0.0, 0.0) and down.high == pytest.approx(1 - auc([3, 4, 5, 6], [1, 2, 1, 2]).low)


def test_the_ends_of_a_scale_depend_on_the_numbers_of_items():
    lows = [auc(np.arange(n) + 1000.0, np.arange(n)).low for n in (4, 16, 64, 256)]
    assert lows == sorted(lows) and lows[0] < 0.6 and lows[-1] > 0.98
    low, m = auc(np.arange(10) + 100.0, np.arange(10)).low, 10
    variance = low * (1 - low) * (1 + (m - 1) * ((1 - low) / (2 - low) + low / (1 + low))) / m**2
    assert 1 - low == pytest.approx(1.959964 * variance**0.5, abs=1e-6)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=12), st.lists(st.integers(0, 5), min_size=2, max_size=12))
def test_an_area_is_a_count_of_pairs(members, others):
    won = np.mean([1.0 if m > o else 0.5 if m == o else 0.0 for m in members for o in others])
    found = auc(members, others)
    assert found.value == pytest.approx(won)
    assert 0.0 <= found.low <= found.value + 1e-12 and found.value <= found.high + 1e-12 and found.high <= 1.0
    assert auc(others, members).value == pytest.approx(1 - won)


def test_intervals_cover_what_they_claim():
    rng, hits = np.random.default_rng(0), 0
    for _ in range(300):
        found = auc(rng.normal(1.0, 1.0, 60), rng.normal(0.0, 1.0, 60))
        hits += found.low <= 0.7602499 <= found.high  # the normal's distribution at 1 / sqrt 2
    assert 0.91 <= hits / 300 <= 0.98


def test_means_over_models():
    a, b = (np.array([3.0, 4, 5, 6]), np.array([1.0, 2, 3, 4])), (np.array([1.0, 5]), np.array([2.0, 4]))
    both = mean_auc([a, b])
    assert both.value == pytest.approx((0.875 + 0.5) / 2) and both.n == 12
    same = mean_auc([a] * 4)
    assert same.value - same.low == pytest.approx((0.875 - auc(*a).low) / 2)


def test_gaps_by_hand():
    found = gap([1.0] * 20, [1.0] * 10 + [0.0] * 10)
    assert (found.value, found.n) == (0.5, 40) and 0.2 < found.low < 0.3 and 0.65 < found.high < 0.75
    flipped = gap([1.0] * 10 + [0.0] * 10, [1.0] * 20)
    assert (flipped.value, flipped.low, flipped.high) == pytest.approx((-0.5, -found.high, -found.low))
    none = gap([0.0] * 30, [0.0] * 30)
    assert none.value == 0.0 and none.low == -none.high < -0.1


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: self_critique([-1.0], [1.0]), DataError, "not negative"),
        (lambda: self_critique([float("nan")], [1.0]), DataError, "finite"),
        (lambda: mean_log_prob([]), DataError, "at least one token"),
        (lambda: min_k_prob([-1.0], 0.0), ConfigError, "share=0.0"),
        (lambda: zlib_ratio([float("inf")], "a"), DataError, "all finite"),
        (lambda: auc([1.0], [1.0, 2.0]), DataError, "two members, got 1"),
        (lambda: auc([1.0, 2.0], [float("nan"), 2.0]), DataError, "1 of the 2 others"),
        (lambda: mean_auc([]), DataError, "at least one model"),
        (lambda: auc([1, 2], [1, 2], confidence=1.0), ConfigError, "confidence=1.0"),
        (lambda: gap([], [1.0]), DataError, "at least one value"),
    ],
)
def test_what_is_refused(call, error, says):
    with pytest.raises(error, match=says):
        call()
