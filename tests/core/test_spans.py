"""What verdicts say beside the reward reaches the batch: numbers of rollouts, and values of steps at their tokens."""

import numpy as np
import pytest
from core_records import call, group, one_call, rollout

from assay.core import Fault, Score, SpanScore, pack
from assay.core.errors import DataError


def right(*spans: SpanScore, **columns: float) -> Score:
    return Score(components={"correct": 1.0}, spans=spans, columns=columns)


def test_columns_of_verdicts_are_columns_of_attempts() -> None:
    lost = Score(components={}, fault=Fault.INFRA)
    batch = pack([group(one_call(2), one_call(3), one_call(1), scores=[right(hard=0.25), lost, right(hard=2.0, eager=1.0)])])
    np.testing.assert_equal(batch.rollout("hard"), [0.25, np.nan, 2.0])
    np.testing.assert_equal(batch.rollout("eager"), [np.nan, np.nan, 1.0])


@pytest.mark.parametrize("name", ["group", "valid", "length", "reward"])
def test_a_column_may_not_hide_one_that_every_attempt_has(name: str) -> None:
    with pytest.raises(DataError, match=f"may not name a column '{name}'"):
        right(**{name: 1.0})


def test_a_column_is_a_finite_number() -> None:
    with pytest.raises(DataError, match="score column 'hard' is nan"):
        right(hard=float("nan"))


def test_a_step_is_paid_at_its_last_token() -> None:
    spans = (
        SpanScore(0, 0, 2, "process_reward", 0.5),
        SpanScore(0, 2, 3, "process_reward", -1.0),
        SpanScore(0, 0, 3, "depth", 2.0),
    )
    batch = pack([group(one_call(4), one_call(2), scores=[right(*spans), right()])])
    assert batch.token("mask").tolist() == [False] * 2 + [True] * 4 + [False] * 2 + [True] * 2
    assert batch.token("process_reward").tolist() == [0, 0, 0, 0.5, -1, 0, 0, 0, 0, 0]
    assert batch.token("depth").tolist() == [0, 0, 0, 0, 2, 0, 0, 0, 0, 0]
    steps = batch.token("segment")[2:6].tolist()
    assert steps[0] == steps[1] != steps[2] != steps[3] != steps[0]
    assert len(set(batch.token("segment")[8:].tolist())) == 1


def test_two_values_at_one_token_add_up() -> None:
    spans = (SpanScore(0, 0, 2, "pay", 1.0), SpanScore(0, 1, 2, "pay", 2.0))
    assert pack([group(one_call(2), scores=[right(*spans)])]).token("pay").tolist() == [0, 0, 0, 3]


def test_steps_of_several_calls_and_rows_differ() -> None:
    compacted = rollout(call(0, None, [1, 2], [10, 11]), call(1, 0, [2, 50], [12]), name="c/1")
    spans = (SpanScore(0, 0, 2, "pay", 1.0), SpanScore(1, 0, 1, "pay", 2.0))
    batch = pack([group(compacted, key="c", scores=[right(*spans)])])
    loss = batch.token("mask")
    assert batch.token("pay")[loss].tolist() == [0, 1, 2]
    first, second, third = batch.token("segment")[loss].tolist()
    assert first == second != third


def test_tokens_in_two_rows_are_paid_once() -> None:
    branches = rollout(call(0, None, [1], [10, 11]), call(1, 0, [1, 10, 11], [12]), call(2, 0, [1, 10, 11], [13]))
    batch = pack([group(branches, scores=[right(SpanScore(0, 0, 2, "pay", 1.0))])])
    assert batch.token("ids").tolist().count(11) == 2
    assert batch.token("pay").sum() == 1
    assert batch.token("pay")[~batch.token("mask")].sum() == 0


def test_spans_of_another_policy_teach_nothing() -> None:
    other = rollout(call(0, None, [1], [10], policy="helper"), call(1, 0, [1, 10], [11]))
    batch = pack([group(other, scores=[right(SpanScore(0, 0, 1, "pay", 1.0))])])
    assert batch.token("pay").sum() == 0


def test_spans_of_a_lost_attempt_are_not_read() -> None:
    lost = Score(components={}, spans=(SpanScore(7, 0, 1, "pay", 1.0),), fault=Fault.VERIFIER)
    assert "pay" not in pack([group(one_call(2), one_call(2), scores=[lost, right()])]).tokens


@pytest.mark.parametrize("span", [SpanScore(0, 0, 3, "pay", 1.0), SpanScore(1, 0, 1, "pay", 1.0), SpanScore(0, 1, 1, "pay", 1.0)])
def test_a_span_outside_its_call_is_refused_by_name(span: SpanScore) -> None:
    with pytest.raises(DataError, match=r"span 'pay' covers tokens \[\d, \d\) of call \d, which has \d"):
        pack([group(one_call(2), scores=[right(span)])])


@pytest.mark.parametrize("name", ["ids", "segment", "logp_engine"])
def test_a_span_may_not_hide_a_column(name: str) -> None:
    with pytest.raises(DataError, match="call them something else"):
        pack([group(one_call(2), scores=[right(SpanScore(0, 0, 1, name, 1.0))])])
