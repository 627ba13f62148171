"""Two optimiser batches as one: places, fills and counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from assay.core.batch import Batch, Counts, pack
from assay.core.batch_join import join_batches
from assay.core.columns import TokenColumn
from assay.core.errors import DataError
from assay.testing import graded_group
from assay_tasks import SortDigits


def batch(*rewards: float, index: int = 0) -> Batch:
    return pack([graded_group(SortDigits().task("sort", 3, "train", index), list(rewards))])


def at(*numbers: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(numbers, np.int64)


def test_rows_share_a_group_or_have_one_of_their_own() -> None:
    first, second = batch(1.0, 0.0), batch(1.0, index=1)
    shared, own = join_batches(first, second, at(0)), join_batches(first, second, at(5))
    assert shared.rollout("group").tolist() == [0, 0, 0] and own.rollout("group").tolist() == [0, 0, 5]
    assert shared.counts.prompts == 1 and own.counts.prompts == 2
    assert shared.counts.tokens == first.counts.tokens + second.counts.tokens
    assert shared.rows["rollout"].tolist() == [0, 1, 2] and len(shared) == 3
    lengths = [*first.lengths.tolist(), *second.lengths.tolist()]
    assert shared.lengths.tolist() == lengths and shared.offsets[-1] == sum(lengths)
    assert shared.token("ids").tolist() == [*first.token("ids").tolist(), *second.token("ids").tolist()]


def test_what_was_filtered_out_before_stays_counted() -> None:
    first, second = batch(1.0, 0.0), batch(1.0, index=1)
    first = replace(first, drawn=Counts(*(n + 7 for n in (first.counts.tokens, 2, 2, 1))))
    joined = join_batches(first, second, at(1))
    assert joined.drawn == Counts(joined.counts.tokens + 7, 3 + 7, 3 + 7, 2 + 7)


def test_columns_that_one_of_them_lacks_are_filled() -> None:
    first, second = batch(1.0, 0.0), batch(1.0, index=1)
    first = first.with_tokens(TokenColumn("noise", np.ones(int(first.offsets[-1]), np.float32), fill=9))
    first = replace(first, rows={**first.rows, "reposed": np.array([True, False])})
    second = second.with_rollouts(hard=np.array([0.5]), words=np.array(["x"]))
    joined = join_batches(first, second, at(0))
    assert joined.token("noise")[-1] == 9 and joined.rows["reposed"].tolist() == [True, False, False]
    assert np.isnan(joined.rollout("hard")[:2]).all() and joined.rollout("words").tolist() == ["", "", "x"]


def test_prompts_of_privileged_teachers_are_as_wide_as_the_longest() -> None:
    first, second = batch(1.0), batch(1.0, index=1)
    wide, narrow = np.array([[1, 2, 3]], np.int32), np.array([[4]], np.int32)

    def rows(of: Batch, table: Any) -> Batch:
        return replace(of, rows={**of.rows, "privileged": table})

    for a, b, found in (
        (rows(first, wide), rows(second, narrow), [[1, 2, 3], [4, -1, -1]]),
        (rows(first, narrow), rows(second, wide), [[4, -1, -1], [1, 2, 3]]),
        (first, rows(second, narrow), [[-1], [4]]),
    ):
        assert join_batches(a, b, at(0)).rows["privileged"].tolist() == found


def test_columns_of_different_types_are_refused() -> None:
    first, second = batch(1.0), batch(1.0, index=1)

    def noisy(of: Batch, kind: Any) -> Batch:
        return of.with_tokens(TokenColumn("noise", np.zeros(int(of.offsets[-1]), kind)))

    with pytest.raises(DataError, match="token column 'noise' has another type or shape"):
        join_batches(noisy(first, np.float32), noisy(second, np.int8), at(0))
