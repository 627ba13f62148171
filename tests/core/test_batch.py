"""Packed rows: nothing moves, counts are global, and a split changes nothing but the rows."""

import numpy as np
import pytest
from core_records import call, group, one_call, rollout, trees
from hypothesis import assume, given
from hypothesis import strategies as st

from assay.core import Batch, Counts, Fault, Group, Sample, Score, TokenColumn, ids_of, pack, pack_rows, samples
from assay.core.errors import DataError
from assay.core.sample import STREAMS


def two_groups() -> list[Group]:
    broken = Score(components={}, fault=Fault.INFRA)
    scores = [Score(components={"correct": 1.0, "format": 0.5}), broken, Score(components={"correct": 0.0})]
    return [
        group(one_call(2), one_call(3), one_call(1), scores=scores, level=4),
        group(one_call(4, key="e"), one_call(2, prompt=3, key="e"), key="e", level=5),
    ]


def split_rollout() -> Group:
    compacted = rollout(call(0, None, [1, 2], [10, 11]), call(1, 0, [2, 50], [12]), name="c/1")
    return group(one_call(2), compacted)


def test_pack_lays_rows_behind_one_another() -> None:
    batch = pack(two_groups())
    assert len(batch) == 4
    assert batch.offsets.tolist() == [0, 4, 7, 13, 18]
    assert batch.lengths.tolist() == [4, 3, 6, 5]
    assert batch.token("ids").tolist() == [1, 2, 100, 101, 1, 2, 100, 1, 2, 100, 101, 102, 103, 1, 2, 3, 100, 101]
    assert batch.row_of_token.tolist() == [0] * 4 + [1] * 3 + [2] * 6 + [3] * 5
    assert batch.part_lengths().tolist() == [2, 1, 4, 2]


def test_the_table_keeps_faulty_attempts_which_have_no_rows() -> None:
    batch = pack(two_groups())
    assert batch.rows["rollout"].tolist() == [0, 2, 3, 4]
    assert batch.rollout("valid").tolist() == [True, False, True, True, True]
    assert batch.rollout("group").tolist() == [0, 0, 0, 1, 1]
    assert batch.rollout("tokens").tolist() == [2, 0, 1, 4, 2]
    assert batch.rollout("level").tolist() == [4, 4, 4, 5, 5]
    assert batch.rollout("length").tolist() == [2, 3, 1, 4, 2]
    assert batch.rollout("truncated").tolist() == [False] * 5
    np.testing.assert_equal(batch.rollout("components/correct"), [1, np.nan, 0, 0, 1])
    np.testing.assert_equal(batch.rollout("components/format"), [0.5, np.nan, np.nan, np.nan, np.nan])
    assert batch.per_row("level").tolist() == [4, 4, 5, 5]
    assert batch.counts == batch.drawn == Counts(tokens=9, rows=4, rollouts=4, prompts=2)


def test_counts_before_filtering_can_be_given() -> None:
    drawn = Counts(100, 10, 10, 3)
    assert pack(two_groups(), drawn).drawn == drawn
    assert pack(two_groups(), Counts(0, 0, 0, 0)).drawn == Counts(0, 0, 0, 0)


def test_a_split_rollout_has_two_rows_and_one_token_count() -> None:
    batch = pack([split_rollout()])
    assert batch.rows["rollout"].tolist() == [0, 1, 1]
    assert batch.rollout("tokens").tolist() == [2, 3]
    assert batch.counts == Counts(tokens=5, rows=3, rollouts=2, prompts=1)


def test_the_table_names_domain_and_arm() -> None:
    batch = pack([group(one_call(1)), group(one_call(2, name="d/0", key="d"), key="d")])
    task = group(one_call(1)).task
    assert batch.rollout("domain").tolist() == [task.domain] * 2
    assert batch.rollout("arm").tolist() == [task.arm] * 2


def test_privileged_prompts_stand_beside_the_rows() -> None:
    """Two rows of one rollout, the second after a compaction, and one of a rollout without."""
    told = rollout(
        call(0, None, [1, 2], [10], privileged_prefix=ids_of([7, 8, 9]), score_prefix=ids_of([6])),
        call(1, 0, [1, 2, 10, 3], [11]),
        call(2, 1, [3], [12, 13], privileged_prefix=ids_of([5])),
    )
    batch = pack([group(told), group(one_call(2, name="d/0", key="d"), key="d")])
    assert batch.rows["prompt"].tolist() == [1, 1, 2]  # a prompt is what the row is learned under
    assert batch.rows["privileged"].tolist() == [[7, 8, 9], [5, -1, -1], [-1, -1, -1]]
    assert batch.micro([1, 0]).rows["privileged"].tolist() == [[5, -1, -1], [7, 8, 9]]
    assert batch.mini([2]).rows["prompt"].tolist() == [2]
    assert not {"prompt", "privileged"} & set(pack([group(one_call(1))]).rows)


def test_micro_keeps_global_counts_and_the_table() -> None:
    batch = pack(two_groups())
    part = batch.micro([3, 0])
    assert part.offsets.tolist() == [0, 5, 9]
    assert part.token("ids").tolist() == [1, 2, 3, 100, 101, 1, 2, 100, 101]
    assert (part.counts, part.drawn) == (batch.counts, batch.drawn)
    assert part.rollouts is batch.rollouts
    assert part.per_row("tokens").tolist() == [2, 2]
    mask = np.array([True, False, False, True])
    assert batch.micro(mask).token("ids").tolist() == batch.micro([0, 3]).token("ids").tolist()
    assert len(batch.micro([])) == 0
    assert batch.micro([]).part_lengths().tolist() == []


def test_mini_counts_anew_and_shares_out_what_was_drawn() -> None:
    batch = pack(two_groups(), Counts(tokens=90, rows=8, rollouts=8, prompts=4))
    first, second = batch.mini([0, 1]), batch.mini([2, 3])
    assert first.counts == Counts(tokens=3, rows=2, rollouts=2, prompts=1)
    assert second.counts == Counts(tokens=6, rows=2, rollouts=2, prompts=1)
    assert first.drawn == Counts(tokens=30, rows=4, rollouts=4, prompts=2)
    assert second.drawn == Counts(tokens=60, rows=4, rollouts=4, prompts=2)
    plain = pack(two_groups()).mini([0, 1])
    assert plain.drawn == plain.counts
    half = pack([split_rollout()]).mini([1])
    assert half.rollout("tokens").tolist() == [0, 2]


def test_a_batch_without_loss_tokens_shares_out_nothing() -> None:
    row = Sample(rollout="r", ids=ids_of([1]), mask=np.array([False]))
    batch = pack_rows([(0, row)], {"group": np.zeros(1, np.int64)}, Counts(5, 1, 1, 1))
    assert batch.mini([0]).drawn == Counts(0, 1, 1, 1)


def test_rows_of_written_text_stand_beside_sampled_ones() -> None:
    expert = Sample(rollout="trace", ids=ids_of([7, 8, 9]), mask=np.array([False, True, True]), stream="expert")
    empty = Sample(rollout="trace", ids=ids_of([]), mask=np.array([], np.bool_), stream="expert")
    (own,) = samples(one_call(2, routing=np.ones((2, 2, 3), np.int8)))
    batch = pack_rows([(0, expert), (0, empty), (1, own)], {"group": np.array([0, 1])})
    assert batch.part_lengths().tolist() == [2, 0, 2]
    assert [STREAMS[s] for s in batch.rows["stream"]] == ["expert", "expert", "on_policy"]
    assert batch.token("routing").shape == (7, 2, 3)
    assert batch.token("routing").sum(axis=(1, 2)).tolist() == [0, 0, 0, 0, 0, 6, 6]
    assert batch.tokens["routing"].version == 0


def test_a_user_column_goes_from_the_completion_through_pack_and_micro() -> None:
    values = [np.arange(k * 8, dtype=np.int32).reshape(k, 4, 2) + 1 for k in (2, 3)]
    batch = pack([group(*(one_call(len(v), routing=v, name=f"c/{i}") for i, v in enumerate(values)))])
    assert batch.token("routing").shape == (9, 4, 2)
    np.testing.assert_array_equal(batch.micro([1]).token("routing")[2:], values[1])
    np.testing.assert_array_equal(batch.micro([1, 0]).token("routing")[7:], values[0])


def test_columns_of_one_name_have_one_type_in_all_rows() -> None:
    rollouts = [one_call(1, x=np.zeros((1, 2), np.int16)), one_call(1, x=np.zeros((1, 3), np.int16))]
    with pytest.raises(DataError, match=r"'x' is int16\[3\] in one call and int16\[2\] in another"):
        pack([group(*rollouts)])
    rows = [(i, samples(r)[0]) for i, r in enumerate(rollouts)]
    with pytest.raises(DataError, match=r"'x' is int16\[3, 3\] where int16\[3, 2\] is wanted"):
        pack_rows(rows, {"group": np.zeros(2, np.int64)})
    versions = [
        Sample(rollout="r", ids=ids_of([1]), mask=np.array([False]), columns={"x": TokenColumn("x", np.zeros(1), "e", v)})
        for v in (1, 2)
    ]
    assert pack_rows([(0, v) for v in versions], {"group": np.zeros(1, np.int64)}).tokens["x"].version == -1


def test_what_a_batch_refuses() -> None:
    batch = pack(two_groups())
    with pytest.raises(DataError, match="no token column 'logp_old'; it has"):
        batch.token("logp_old")
    with pytest.raises(DataError, match="no rollout column 'advantage'; it has"):
        batch.rollout("advantage")
    with pytest.raises(DataError, match="token column 'x' has 2 entries, the batch has 18 tokens"):
        batch.with_tokens(TokenColumn("x", np.zeros(2)))
    with pytest.raises(DataError, match="the first token of a row has no context"):
        batch.with_tokens(TokenColumn("mask", np.ones(18, np.bool_)))
    with pytest.raises(DataError, match="the first token of a row has no context"):
        pack([group(rollout(call(0, None, [], [10])))])
    with pytest.raises(DataError, match="row column 'stream' has 1 entries, the batch has 4 rows"):
        Batch(
            offsets=batch.offsets,
            tokens=batch.tokens,
            rows={"stream": np.zeros(1)},
            rollouts={},
            counts=batch.counts,
            drawn=batch.drawn,
        )
    with pytest.raises(DataError, match="every rollout was empty or faulty"):
        pack([group(one_call(0))])
    with pytest.raises(DataError, match="every rollout was empty or faulty"):
        pack([])
    with pytest.raises(DataError, match="every rollout was empty or faulty"):
        pack_rows([], {"group": np.zeros(1, np.int64)})


def test_columns_can_be_added_without_touching_the_batch() -> None:
    batch = pack(two_groups())
    more = batch.with_tokens(TokenColumn("x", np.arange(18))).with_rollouts(advantage=np.arange(5.0))
    assert (more.token("x")[3], more.rollout("advantage")[4]) == (3, 4.0)
    assert "x" not in batch.tokens
    assert "advantage" not in batch.rollouts


# ---- laws over random trees -------------------------------------------------------------------------------------------


@given(st.lists(trees(), min_size=1, max_size=4), st.data())
def test_packing_rollouts_is_packing_their_samples(made: list, data: st.DataObject) -> None:
    faulty = data.draw(st.lists(st.booleans(), min_size=len(made), max_size=len(made)))
    scores = [Score(components={} if bad else {"correct": 1.0}, fault=Fault.INFRA if bad else Fault.NONE) for bad in faulty]
    rows = [(i, row) for i, (r, bad) in enumerate(zip(made, faulty, strict=True)) if not bad for row in samples(r)]
    assume(rows)
    batch = pack([group(*made, scores=scores)])
    other = pack_rows(rows, batch.rollouts)
    assert (batch.counts, sorted(batch.tokens)) == (other.counts, sorted(other.tokens))
    for name, column in batch.tokens.items():
        np.testing.assert_array_equal(column.values, other.token(name))
        assert (column.dtype, column.producer, column.version) == (other.tokens[name].dtype, column.producer, column.version)
    for name in batch.rows:
        np.testing.assert_array_equal(batch.rows[name], other.rows[name])


@given(st.lists(trees(), min_size=1, max_size=4), st.data())
def test_a_partition_into_micro_batches_holds_every_row_once(made: list, data: st.DataObject) -> None:
    assume(any(samples(r) for r in made))
    batch = pack([group(*made)])
    order = data.draw(st.permutations(range(len(batch))))
    cut = data.draw(st.integers(0, len(batch)))
    parts = [batch.micro(order[:cut]), batch.micro(order[cut:])]
    assert sum(len(p) for p in parts) == len(batch)
    assert all(p.counts == batch.counts for p in parts)
    assert sum(int(p.token("mask").sum()) for p in parts) == batch.counts.tokens
    for name in batch.tokens:
        whole = np.concatenate([p.token(name) for p in parts])
        np.testing.assert_array_equal(whole, batch.micro(order).token(name))
    again = batch.micro(order).micro(np.argsort(order))
    assert all((again.token(n) == batch.token(n)).all() for n in batch.tokens)


@given(st.lists(trees(), min_size=1, max_size=4))
def test_tokens_of_a_rollout_do_not_depend_on_how_many_rows_it_has(made: list) -> None:
    assume(any(samples(r) for r in made))
    batch = pack([group(*made)])
    sampled = [sum(len(c.completion.ids) for c in r.calls if c.policy == "policy") for r in made]
    assert batch.rollout("tokens").tolist() == sampled
    assert batch.counts.tokens == sum(sampled) == int(batch.token("mask").sum())
    assert batch.counts.rollouts == sum(n > 0 for n in sampled)
    assert batch.counts.rows == len(batch) == sum(len(samples(r)) for r in made)


@given(st.lists(trees(), min_size=2, max_size=4), st.data())
def test_mini_batches_of_whole_rollouts_partition_the_counts(made: list, data: st.DataObject) -> None:
    assume(all(samples(r) for r in made))
    batch = pack([group(r) for r in made])
    chosen = np.array(data.draw(st.lists(st.booleans(), min_size=len(made), max_size=len(made))))
    parts = [batch.mini(chosen[batch.rows["rollout"]]), batch.mini(~chosen[batch.rows["rollout"]])]
    for name in ("tokens", "rows", "rollouts", "prompts"):
        assert sum(getattr(p.counts, name) for p in parts) == getattr(batch.counts, name)
    np.testing.assert_array_equal(parts[0].rollout("tokens") + parts[1].rollout("tokens"), batch.rollout("tokens"))
