"""Columns of lists: taken apart and put together, also of nothing."""

from __future__ import annotations

import numpy as np
import pytest

from assay.core.canon import FrozenMap
from assay.core.columns import TokenColumn
from assay.core.errors import DataError
from assay.core.ragged import flat_of, lists_of, ragged_array
from assay.core.rollout import Call, Completion, Rollout, Sampling, Span, Stop, ids_of
from assay.core.task import Context, Task
from assay.core.wire import rollout_from_wire, rollout_to_wire


def test_lists_come_back_as_they_were() -> None:
    values = ragged_array([ids_of([3, 5]), ids_of([]), ids_of([1])])
    spread = TokenColumn("support", values).spread(5, np.array([True, False, True, True, False])).values
    lengths, ids = flat_of(spread)
    assert (lengths.tolist(), ids.tolist()) == ([2, -1, 0, 1, -1], [3, 5, 1])
    back = lists_of(lengths, ids)
    assert [x.tolist() if isinstance(x, np.ndarray) else x for x in back] == [[3, 5], 0, [], [1], 0]


def test_no_tokens_and_no_lists() -> None:
    lengths, ids = flat_of(ragged_array([]))
    assert (len(lengths), len(ids), len(lists_of(lengths, ids))) == (0, 0, 0)
    assert flat_of(np.zeros(2, np.object_))[0].tolist() == [-1, -1]


def test_supports_are_kept_where_something_is_left_out() -> None:
    assert Sampling(top_k=2, keep_support=True).whole == Sampling()
    with pytest.raises(DataError, match="keep_support=True, and every token can be drawn: leave it out, or set top_p"):
        Sampling(keep_support=True)


def test_a_completion_with_lists_travels() -> None:
    task = Task(id="t", domain="d", arm="a", level=1, split="train", index=0, public=FrozenMap({"prompt": "?"})).public_view()
    sampling = Sampling(top_k=2, keep_support=True)
    column = TokenColumn("support", ragged_array([ids_of([3, 5])]), "engine")
    done = Completion(
        ids=ids_of([3]),
        logp_engine=np.zeros(1, np.float32),
        spans=(Span(0, 0, 1),),
        stop=Stop.DONE,
        sampling=sampling,
        columns={"support": column},
    )
    call = Call(id=0, parent=None, prefix=ids_of([1]), completion=done, text="")
    context = Context(key="c", group="c", task=task, messages=task.messages)
    back = rollout_from_wire(rollout_to_wire(Rollout(id="c/0", context=context, calls=(call,), stop=Stop.DONE, seed=1)))
    completion = back.calls[0].completion
    assert completion.columns["support"].values[0].tolist() == [3, 5]
    assert completion.sampling == sampling
