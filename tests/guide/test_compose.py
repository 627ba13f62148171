"""Guidance, replay and composition: what a batch is made of (laws L3, L5, L6)."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.core.batch import Batch, pack
from assay.core.canon import FrozenMap, canonical
from assay.core.errors import ConfigError, DataError
from assay.core.group import Group
from assay.core.protocols import Moment
from assay.core.sample import STREAMS
from assay.core.score import Fault, Score
from assay.core.task import Prefill, Task
from assay.guide import Compose, Plain, Prefix, Recent
from assay.testing import graded_group

FAULT = Score(components={}, fault=Fault.VERIFIER)


def task(**private: object) -> Task:
    return Task(
        id="t",
        domain="d",
        arm="a",
        level=1,
        split="train",
        index=0,
        public=FrozenMap({"prompt": "abc"}),
        private=FrozenMap(private),
    )


def group(key: str, *values: float | Score) -> Group:
    return graded_group(task(), values, key=key, texts={i: "xyz"[: 1 + i % 3] for i in range(len(values))})


def same(a: Batch, b: Batch) -> bool:
    arrays = [
        (a.offsets, b.offsets),
        *((a.tokens[n].values, b.tokens[n].values) for n in a.tokens),
        *((a.rows[n], b.rows[n]) for n in a.rows),
        *((a.rollouts[n], b.rollouts[n]) for n in a.rollouts),
    ]
    names = [set(a.tokens) == set(b.tokens), set(a.rows) == set(b.rows), set(a.rollouts) == set(b.rollouts)]
    equal = all(np.array_equal(x, y, equal_nan=x.dtype.kind == "f") for x, y in arrays)
    return all(names) and (a.counts, a.drawn) == (b.counts, b.drawn) and equal


# ---- composition


@given(st.lists(st.lists(st.sampled_from([0.0, 1.0, 0.5]), min_size=1, max_size=4), min_size=1, max_size=5))
def test_null_composition_is_packing(values: list[list[float]]) -> None:
    groups = [group(f"g{i}", *v) for i, v in enumerate(values)]
    batch = Compose().compose(groups, None, 0)
    assert batch is not None
    assert same(batch, pack(groups))


def test_groups_without_signal_are_dropped_and_still_counted_as_drawn() -> None:
    groups = [group("g0", 1.0, 1.0), group("g1", 0.0, 1.0, 0.0), group("g2", 0.0)]
    batch = Compose(drop_zero_signal=True).compose(groups, None, 0)
    assert batch is not None
    # g1 said x, xy, xyz; all together x, xy, x, xy, xyz, x
    assert (batch.counts.tokens, batch.counts.rollouts, batch.counts.prompts) == (6, 3, 1)
    assert (batch.drawn.tokens, batch.drawn.rollouts, batch.drawn.prompts) == (10, 6, 3)
    kept = Compose(drop_zero_signal=True).compose([groups[1]], None, 0)
    assert kept is not None
    assert kept.drawn == kept.counts


@pytest.mark.parametrize(
    "groups",
    [[], [group("g0", 1.0, 1.0)], [group("g0", FAULT, FAULT)], [group("g0", FAULT, 1.0), group("g1", FAULT)]],
)
def test_nothing_to_learn_from_is_none(groups: list[Group]) -> None:
    assert Compose(drop_zero_signal=True).compose(groups, None, 0) is None


def test_a_batch_of_faults_or_silence_is_none() -> None:
    silent = graded_group(task(), [0.0, 1.0], texts={0: "", 1: ""})
    assert Compose().compose([group("g0", FAULT)], None, 0) is None
    assert Compose().compose([silent], None, 0) is None


def test_group_purity() -> None:
    """Another group key changes which rollouts share a baseline, and nothing else."""
    groups = [group("g0", 0.0, 1.0), group("g1", 1.0, 0.0)]
    renamed = [
        Group(
            key="h",
            task=g.task,
            draw=g.draw,
            scores=g.scores,
            rollouts=tuple(replace(r, context=replace(r.context, group="h")) for r in g.rollouts),
        )
        for g in groups
    ]
    one, two = Compose().compose(groups, None, 0), Compose().compose(renamed, None, 0)
    assert one is not None
    assert two is not None
    assert same(one, two)
    split = [group("g0", 0.0), group("g1", 1.0), group("g2", 1.0, 0.0)]
    three = Compose().compose(split, None, 0)
    assert three is not None
    assert three.rollouts["group"].tolist() == [0, 1, 2, 2]
    assert one.rollouts["group"].tolist() == [0, 0, 1, 1]


def test_replayed_groups_are_a_share_of_the_batch_in_their_own_stream() -> None:
    replay = Recent().build(0)
    replay.put([group(f"old{i}", 0.0, 1.0) for i in range(6)], 0)
    fresh = [group(f"new{i}", 0.0, 1.0, 1.0) for i in range(3)]
    batch = Compose(replay_share=0.25).compose(fresh, replay, 1)
    assert batch is not None
    assert batch.rollouts["group"].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3]
    streams = [STREAMS[i] for i in batch.rows["stream"]]
    assert streams == ["on_policy"] * 9 + ["replay"] * 2
    assert batch.drawn == batch.counts
    dropping = Compose(replay_share=0.5, drop_zero_signal=True).compose([*fresh, group("new3", 1.0)], replay, 1)
    assert dropping is not None
    assert (dropping.counts.prompts, dropping.drawn.prompts) == (6, 7)


def test_a_step_does_not_replay_itself() -> None:
    replay = Recent().build(0)
    fresh = [group(f"new{i}", 0.0, 1.0) for i in range(4)]
    replay.put(fresh, 0)
    batch = Compose(replay_share=0.5).compose(fresh, replay, 0)
    assert batch is not None
    assert batch.counts.prompts == 4
    replay.put([group("old", 0.0, 1.0)], 0)
    more = Compose(replay_share=0.5).compose(fresh, replay, 0)
    assert more is not None
    assert more.counts.prompts == 5


def test_replay_without_a_replay_is_refused() -> None:
    with pytest.raises(ConfigError, match="give it one, as Recent"):
        Compose(replay_share=0.5).compose([group("g0", 0.0, 1.0)], None, 0)
    with pytest.raises(ConfigError, match=r"in \[0, 1\), got 1\.0"):
        Compose(replay_share=1.0)


# ---- replay


def test_recent_keeps_the_newest_informative_groups() -> None:
    buffer = Recent(capacity=3, max_age=2).build(0)
    buffer.put([group("a", 0.0, 1.0), group("b", 1.0, 1.0), group("c", 0.0, 1.0)], 0)
    assert len(buffer) == 2
    buffer.put([group("d", 0.0, 1.0), group("e", 0.0, 1.0)], 1)
    assert sorted(g.key for g in buffer.sample(9)) == ["c", "d", "e"]
    buffer.put([], 2)
    assert sorted(g.key for g in buffer.sample(9)) == ["d", "e"]
    buffer.put([], 3)
    assert buffer.sample(1) == []
    everything = Recent(informative=False).build(0)
    everything.put([group("b", 1.0, 1.0)], 0)
    assert len(everything) == 1


@pytest.mark.parametrize("max_age", [1, 3])
def test_nothing_is_replayed_later_than_its_greatest_age(max_age: int) -> None:
    buffer, ages = Recent(max_age=max_age).build(0), set[int]()
    for step in range(8):  # as the loop does: compose, then put
        ages |= {step - int(g.key) for g in buffer.sample(99)}
        buffer.put([group(str(step), 0.0, 1.0)], step)
    assert ages == set(range(1, max_age + 1))


def test_samples_are_different_groups_evenly_drawn() -> None:
    buffer = Recent().build(5)
    buffer.put([group(f"g{i}", 0.0, 1.0) for i in range(5)], 0)
    counts = dict.fromkeys([f"g{i}" for i in range(5)], 0)
    for _ in range(2000):
        drawn = [g.key for g in buffer.sample(2)]
        assert len(set(drawn)) == 2
        for key in drawn:
            counts[key] += 1
    # 800 each expected, standard deviation 22
    assert all(abs(n - 800) < 110 for n in counts.values()), counts


def test_replay_resumes_bit_for_bit_through_json() -> None:
    buffer = Recent(capacity=4).build(7)
    buffer.put([group(f"g{i}", 0.0, 1.0, FAULT) for i in range(6)], 3)
    buffer.sample(2)
    copy = Recent(capacity=4).build(7)
    copy.load_state_dict(json.loads(canonical(buffer.state_dict())))
    assert copy.state_dict() == buffer.state_dict()
    one, two = buffer.sample(3), copy.sample(3)
    assert [g.key for g in one] == [g.key for g in two]
    assert same(pack(one), pack(two))


@pytest.mark.parametrize("settings", [{"capacity": 0}, {"max_age": 0}])
def test_wrong_replay_settings(settings: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=">= 1"):
        Recent(**settings)


# ---- guidance


def test_plain_poses_the_prompt_once() -> None:
    (posed,) = Plain().next(task(answer="x"), [], Moment(key="s0/1"))
    context = posed.context
    assert (context.key, context.group, context.prefill, context.tag) == ("s0/1", "s0/1", None, "plain")
    assert [m.content for m in context.messages] == ["abc"]
    assert not hasattr(context.task, "private")
    assert Plain().next(task(), [group("s0/1", 1.0)], Moment(key="s0/1")) == ()


def test_prefix_gives_a_share_of_the_solution() -> None:
    (posed,) = Prefix(share=(0.5, 0.5), probability=1.0).next(task(answer="x", solution="because x"), [], Moment(key="k"))
    context = posed.context
    assert (context.prefill, context.tag) == (Prefill("because x", 0.5), "prefix")
    (posed,) = Prefix(share=(1.0, 1.0), probability=1.0).next(task(answer="x"), [], Moment(key="k"))
    context = posed.context
    assert context.prefill == Prefill("x", 1.0)
    assert Prefix().next(task(answer="x"), [group("k", 1.0)], Moment(key="k")) == ()
    assert Prefix(probability=0.0).next(task(), [], Moment(key="k")) == Plain().next(task(), [], Moment(key="k"))


def test_prefix_draws_evenly_and_purely() -> None:
    drawn = [
        Prefix(share=(0.2, 0.8), probability=0.75).next(task(answer="x"), [], Moment(key=f"k{i}"))[0].context.prefill
        for i in range(4000)
    ]
    shares = [p.share for p in drawn if p is not None]
    assert abs(len(shares) / 4000 - 0.75) < 0.035
    assert min(shares) >= 0.2
    assert max(shares) <= 0.8
    assert abs(np.mean(shares) - 0.5) < 0.015
    again = [
        Prefix(share=(0.2, 0.8), probability=0.75).next(task(answer="x"), [], Moment(key=f"k{i}"))[0].context.prefill
        for i in range(50)
    ]
    assert again == drawn[:50]
    assert [
        Prefix(share=(0.2, 0.8), seed=1).next(task(answer="x"), [], Moment(key=f"k{i}"))[0].context.prefill for i in range(50)
    ] != again


@pytest.mark.parametrize("private", [{}, {"answer": 3}])
def test_prefix_needs_text(private: dict[str, object]) -> None:
    with pytest.raises(DataError, match="needs text in private"):
        Prefix(probability=1.0).next(task(**private), [], Moment(key="k"))


@pytest.mark.parametrize("settings", [{"share": (0.5, 0.2)}, {"share": (-0.1, 0.2)}, {"share": (0.0, 1.1)}, {"probability": 1.5}])
def test_wrong_prefix_settings(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="Prefix"):
        Prefix(**settings)  # pyright: ignore
