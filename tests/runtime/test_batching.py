from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from learner_cases import random_batch

from assay.core.plan import Scope
from assay.runtime.learner.batching import micro_batches


def test_rows_are_sorted_by_length_and_cut_by_tokens():
    batch = random_batch(rollouts=9, seed=1)
    parts = micro_batches(batch, 40)
    lengths = [batch.lengths[p] for p in parts]
    assert np.concatenate(lengths).tolist() == sorted(batch.lengths.tolist())
    assert all(part.sum() <= 40 for part in lengths)
    assert all(a.sum() + b[0] > 40 for a, b in pairwise(lengths))


def test_a_row_longer_than_the_limit_stands_alone():
    batch = random_batch(rollouts=4)
    assert [len(p) for p in micro_batches(batch, 1)] == [1, 1, 1, 1]


def test_nothing_to_compute_gives_no_micro_batch():
    assert micro_batches(random_batch(), 10, Scope.TOKEN, np.zeros(0, np.int64)) == []


@given(st.integers(0, 9), st.integers(1, 200), st.sampled_from(list(Scope)), st.floats(0.0, 1.0))
def test_every_row_once_and_no_unit_split(seed, limit, split, share):
    batch = random_batch(rollouts=9, rows_each=2, seed=seed)
    rows = np.flatnonzero(np.random.default_rng(seed).random(len(batch)) < share)
    parts = micro_batches(batch, limit, split, rows)
    assert sorted(np.concatenate([*parts, np.zeros(0, np.int64)]).tolist()) == rows.tolist()
    unit = {
        Scope.TOKEN: np.arange(len(batch)),
        Scope.SEQUENCE: batch.rows["rollout"],
        Scope.GROUP: batch.per_row("group"),
        Scope.BATCH: np.zeros(len(batch)),
    }[split]
    owners = [set(unit[p].tolist()) for p in parts]
    assert sum(map(len, owners)) == len(set().union(*owners)) if owners else True
    for part, owner in zip(parts, owners, strict=True):
        assert (np.diff(batch.lengths[part]) >= 0).all()
        assert batch.lengths[part].sum() <= limit or len(owner) == 1
    again = micro_batches(batch, limit, split, rows)
    assert all(np.array_equal(a, b) for a, b in zip(parts, again, strict=True))


@pytest.mark.parametrize("split", list(Scope))
def test_the_order_of_equal_lengths_is_the_batch_order(split):
    batch = random_batch(rollouts=6)
    (part,) = micro_batches(batch, 10**9, split)
    key = list(zip(batch.lengths[part].tolist(), part.tolist(), strict=True))
    assert key == sorted(key)
