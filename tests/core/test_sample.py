"""Rows from trees: every token the policy sampled is trained exactly once, under the context in which it was sampled."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from core_records import call, one_call, rollout, trees
from hypothesis import given
from hypothesis import strategies as st

from assay.core import Rollout, Sample, TokenColumn, ids_of, samples, supervised_sample
from assay.core.errors import DataError
from assay.core.sample import STREAMS
from assay.core.wire import rollout_from_wire, rollout_to_wire


def trained(rollout: Rollout, policy: str = "policy") -> Counter[int]:
    return Counter(int(i) for row in samples(rollout, policy) for i in row.ids[row.mask])


def test_one_call_is_one_row() -> None:
    (row,) = samples(one_call(3))
    assert row.ids.tolist() == [1, 2, 100, 101, 102]
    assert row.mask.tolist() == [False, False, True, True, True]
    assert row.columns["call"].values.tolist() == [-1, -1, 0, 0, 0]
    np.testing.assert_array_equal(row.columns["logp_engine"].values, np.array([0, 0, -0.1, -0.101, -0.102], np.float32))
    assert (row.rollout, row.stream, row.ids.dtype, row.ids.flags.writeable) == ("c/0", "on_policy", np.int32, False)


def test_tool_turns_share_a_row_and_what_the_tool_said_is_masked() -> None:
    (row,) = samples(rollout(call(0, None, [1], [10, 11]), call(1, 0, [1, 10, 11, 50, 51], [12])))
    assert row.ids.tolist() == [1, 10, 11, 50, 51, 12]
    assert row.mask.tolist() == [False, True, True, False, False, True]
    assert row.columns["call"].values.tolist() == [-1, 0, 0, -1, -1, 1]


def test_of_two_branches_the_first_keeps_the_row_and_the_other_shows_the_shared_tokens() -> None:
    made = rollout(
        call(0, None, [1], [10]), call(1, 0, [1, 10, 50], [11]), call(2, 0, [1, 10, 51], [12]), call(3, 2, [1, 10, 51, 12], [13])
    )
    first, second = samples(made)
    assert (first.ids.tolist(), first.mask.tolist()) == ([1, 10, 50, 11], [False, True, False, True])
    assert (second.ids.tolist(), second.mask.tolist()) == ([1, 10, 51, 12, 13], [False, False, False, True, True])
    assert second.columns["logp_engine"].values[1] == np.float32(-0.01)  # known, though not trained here


def test_a_compacted_conversation_is_two_rows() -> None:
    made = rollout(call(0, None, [1, 2], [10]), call(1, 0, [1, 2, 10, 50], [11]), call(2, 1, [1, 50, 11, 51], [12]))
    first, second = samples(made)
    assert first.ids[first.mask].tolist() == [10, 11]
    assert (second.ids.tolist(), second.mask.tolist()) == ([1, 50, 11, 51, 12], [False, False, False, False, True])


def test_a_sub_agent_of_another_policy_is_left_out_and_has_its_own_rows() -> None:
    made = rollout(call(0, None, [1], [10]), call(1, 0, [3], [20], policy="helper"), call(2, 0, [1, 10, 20], [11]))
    assert [r.ids[r.mask].tolist() for r in samples(made)] == [[10, 11]]
    assert [r.ids[r.mask].tolist() for r in samples(made, "helper")] == [[20]]


def test_a_continued_call_spans_two_weight_versions_in_one_row() -> None:
    made = rollout(
        call(0, None, [1], [10, 11], spans=[(4, 0, 2)]), call(1, 0, [1, 10, 11], [12, 13], spans=[(4, 0, 1), (5, 1, 2)])
    )
    (row,) = samples(made)
    assert row.mask.tolist() == [False, True, True, True, True]
    assert row.columns["weight_version"].values.tolist() == [0, 4, 4, 4, 5]


def test_learning_under_another_prefix_than_sampled() -> None:
    made = rollout(call(0, None, [1, 2, 3], [10], score_prefix=ids_of([9])), call(1, 0, [1, 2, 3, 10, 50], [11]))
    (row,) = samples(made)
    assert row.ids.tolist() == [9, 10, 50, 11]
    assert row.mask.tolist() == [False, True, False, True]
    longer = rollout(call(0, None, [1], [10], score_prefix=ids_of([7, 8, 9])))
    assert samples(longer)[0].ids.tolist() == [7, 8, 9, 10]


def test_a_user_column_travels_and_is_zero_where_no_engine_gave_it() -> None:
    routing = np.arange(12, dtype=np.int16).reshape(2, 2, 3)
    made = rollout(call(0, None, [1], [10, 11], columns={"routing": routing}), call(1, 0, [1, 10, 11, 50], [12]))
    column = samples(made)[0].columns["routing"]
    assert (column.dtype, column.trailing, column.producer, column.version) == (np.int16, (2, 3), "engine", 0)
    np.testing.assert_array_equal(column.values[1:3], routing)
    assert not column.values[[0, 3, 4]].any()


def test_an_empty_call_takes_no_column_away() -> None:
    made = rollout(call(0, None, [1], [10], columns={"entropy": np.array([0.5])}), call(1, 0, [1, 10], []))
    assert samples(made)[0].columns["entropy"].values.tolist() == [0, 0.5]


def test_columns_of_one_name_have_one_type() -> None:
    made = rollout(
        call(0, None, [1], [10], columns={"x": np.zeros((1, 2), np.int16)}),
        call(1, 0, [1, 10], [11], columns={"x": np.zeros((1, 3), np.int16)}),
    )
    with pytest.raises(DataError, match=r"'x' is int16\[3\] in one call and int16\[2\] in another"):
        samples(made)


def test_an_answer_to_nothing_cannot_be_trained() -> None:
    with pytest.raises(DataError, match="the first token has no context"):
        samples(rollout(call(0, None, [], [10])))
    assert samples(rollout(call(0, None, [], []))) == ()
    assert samples(rollout()) == ()


def test_supervised_rows() -> None:
    row = supervised_sample("trace", [(ids_of([1, 2]), False), (ids_of([3]), True), (ids_of([4]), False)])
    assert (row.ids.tolist(), row.mask.tolist(), row.stream) == ([1, 2, 3, 4], [False, False, True, False], "expert")
    with pytest.raises(DataError, match="'trace' has no text"):
        supervised_sample("trace", [])


def test_samples_refuse() -> None:
    ids, mask = ids_of([1, 2]), np.array([False, True])
    with pytest.raises(DataError, match="unknown stream 'online'"):
        Sample(rollout="r", ids=ids, mask=mask, stream="online")
    with pytest.raises(DataError, match="2 ids but 1 mask entries"):
        Sample(rollout="r", ids=ids, mask=mask[:1])
    with pytest.raises(DataError, match="ids and mask are fields"):
        Sample(rollout="r", ids=ids, mask=mask, columns={"ids": TokenColumn("ids", ids)})
    assert len(set(STREAMS)) == 5


# ---- laws over random trees -------------------------------------------------------------------------------------------


@given(trees())
def test_every_token_of_the_policy_is_trained_exactly_once(made: Rollout) -> None:
    for policy in ("policy", "helper"):
        sampled = Counter(int(i) for c in made.calls if c.policy == policy for i in c.completion.ids)
        assert trained(made, policy) == sampled
        assert set(sampled.values()) <= {1}


@given(trees())
def test_a_token_is_trained_under_the_very_tokens_it_was_sampled_from(made: Rollout) -> None:
    home = {int(t): (c, i) for c in made.calls for i, t in enumerate(c.completion.ids)}
    for row in samples(made):
        for position in np.flatnonzero(row.mask):
            call, offset = home[int(row.ids[position])]
            assert row.ids[:position].tolist() == [*call.prefix, *call.completion.ids[:offset]]


@given(trees())
def test_columns_belong_to_their_tokens(made: Rollout) -> None:
    home = {int(t): (c, i) for c in made.calls for i, t in enumerate(c.completion.ids)}
    for row in samples(made):
        assert {len(c.values) for c in row.columns.values()} == {len(row.ids)}
        for position in np.flatnonzero(row.columns["call"].values >= 0):
            call, offset = home[int(row.ids[position])]
            assert row.columns["call"].values[position] == call.id
            assert row.columns["logp_engine"].values[position] == call.completion.logp_engine[offset]
            assert row.columns["weight_version"].values[position] == call.completion.versions()[offset]
            if "routing" in call.completion.columns:
                expected = call.completion.columns["routing"].values[offset]
                np.testing.assert_array_equal(row.columns["routing"].values[position], expected)
        outside = row.columns["call"].values < 0
        assert not row.mask[outside].any()
        assert not row.columns["logp_engine"].values[outside].any()


@given(trees(), st.integers(0, 6))
def test_learning_under_another_prefix_moves_no_token(made: Rollout, length: int) -> None:
    first = made.calls[0]
    moved = call(
        0, None, first.prefix.tolist(), first.completion.ids.tolist(), policy=first.policy, score_prefix=ids_of(range(length + 1))
    )
    before, after = trained(rollout(first, *made.calls[1:])), trained(rollout(moved, *made.calls[1:]))
    assert before == after


def routed(values: list[int], prompt: list[int] | None = None) -> dict[str, object]:
    """Columns of a completion that tells a number of each token, -1 where it does not, and of the prompt's tokens."""
    column = TokenColumn("route", np.array(values, np.int16), "engine", fill=-1)
    said = {} if prompt is None else {"route": replace(column, values=np.array(prompt, np.int16))}
    return {"columns": {"route": column}, "prompt": said}


def test_what_an_engine_tells_of_prompts_fills_what_was_not_sampled() -> None:
    """The second call tells of the tool's tokens 50 and 51; of what the first one sampled, its own word counts."""
    first, second = call(0, None, [1, 2], [10, 11]), call(1, 0, [1, 2, 10, 11, 50, 51], [12])
    first = replace(first, completion=replace(first.completion, **routed([3, 4], [-1, 2])))
    second = replace(second, completion=replace(second.completion, **routed([9], [-1, 2, 7, 7, 5, 6])))
    (row,) = samples(rollout(first, second))
    assert row.columns["route"].values.tolist() == [-1, 2, 3, 4, 5, 6, 9] and row.columns["route"].fill == -1
    silent = replace(second, completion=replace(second.completion, columns={}, prompt={}))
    (row,) = samples(rollout(first, silent))
    assert row.columns["route"].values.tolist() == [-1, 2, 3, 4, -1, -1, -1]
    (row,) = samples(rollout(replace(first, score_prefix=ids_of([7, 8, 9]))))
    assert row.columns["route"].values.tolist() == [-1, -1, -1, 3, 4], "the engine never read this prompt"
    short = replace(first, completion=replace(first.completion, **routed([3, 4], [2])))
    with pytest.raises(DataError, match="prompt column 'route' has 1 tokens, the prefix has 2"):
        samples(rollout(short))


def test_a_prompt_has_only_columns_that_its_completion_has() -> None:
    made = call(0, None, [1, 2], [10, 11]).completion
    other = {**routed([3, 4]), "prompt": {"route": TokenColumn("route", np.zeros((2, 3), np.int16))}}
    with pytest.raises(DataError, match=r"'route' of int16\[3\], and the completion has none of that kind"):
        replace(made, **other)


def test_prompt_columns_and_fills_travel() -> None:
    made = call(0, None, [1, 2], [10, 11])
    made = replace(made, completion=replace(made.completion, **routed([3, 4], [-1, 2])))
    again = rollout_from_wire(rollout_to_wire(rollout(made)))
    (row,) = samples(again)
    assert row.columns["route"].values.tolist() == [-1, 2, 3, 4] and row.columns["route"].fill == -1
    plain = rollout_to_wire(rollout(call(0, None, [1, 2], [10])))
    assert "prompt" not in plain["calls"][0]["completion"], "what engines without it write is as before"
