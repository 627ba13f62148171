"""RoRecomp: which rollouts a batch learns from at once, and that all others come back, each once."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_compose import FAULT, group, same, task

from assay.core.batch import Batch
from assay.core.errors import ConfigError
from assay.core.group import Group
from assay.core.sample import STREAMS
from assay.core.score import Score
from assay.guide import Compose, DeferredReplay, Recompose
from assay.testing import graded_group


def of_lengths(key: str, *pairs: tuple[float, int]) -> Group:
    """A group of (success, length)."""
    return graded_group(task(), [value for value, _ in pairs], key=key, texts={i: "x" * n for i, (_, n) in enumerate(pairs)})


def learned(batch: Batch | None) -> list[str]:
    """Ids of the rollouts that have a row, in order."""
    assert batch is not None
    return [str(batch.rollouts["id"][i]) for i in batch.rows["rollout"]]


MIXED = of_lengths("g", (1.0, 5), (1.0, 3), (1.0, 9), (0.0, 4), (0.0, 8), (1.0, 3))


def test_the_shortest_right_and_the_longest_wrong_rollouts_have_priority() -> None:
    assert [r.length for r in MIXED.rollouts] == [5, 3, 9, 4, 8, 3]
    assert Recompose(share=0.5).priority(MIXED) == {1, 5, 4}  # 2 of 4 right ones, 1 of 2 wrong ones
    assert Recompose(share=0.25).priority(MIXED) == {1, 4}
    assert Recompose(share=0.75).priority(MIXED) == {1, 5, 0, 4, 3}  # 3 of 4, and 1.5 of 2 is 2
    assert Recompose(share=1.0).priority(MIXED) == frozenset(range(6))
    assert Recompose().priority(of_lengths("all", (1.0, 6), (1.0, 2))) == {1}  # only short ones where all are right


@given(st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.integers(1, 9)), min_size=1, max_size=8), st.floats(0.05, 1.0))
def test_no_right_rollout_put_off_is_shorter_and_no_wrong_one_longer(pairs: list[tuple[float, int]], share: float) -> None:
    given_ = of_lengths("g", *pairs)
    first = Recompose(share=share).priority(given_)
    assert first
    for value, better in ((1.0, min), (0.0, max)):
        lengths = {
            chosen: [n for i, (v, n) in enumerate(pairs) if v == value and (i in first) == chosen] for chosen in (True, False)
        }
        if lengths[False]:
            assert lengths[True], "of each kind at least one"
            assert all(better(a, b) == a for a in lengths[True] for b in lengths[False])


def test_each_rollout_is_learned_from_once_with_the_statistics_of_its_whole_group() -> None:
    composer, replay = Recompose(share=0.5), DeferredReplay(capacity=2, batch=2).build(0)
    seen: list[str] = []
    for step in range(4):
        groups = [of_lengths(f"s{step}/{i}", (1.0, 5), (1.0, 3), (0.0, 4), (0.0, 8)) for i in range(2)]
        batch = composer.compose(groups, replay, step)
        replay.put(groups, step)
        assert batch is not None
        seen += learned(batch)
        # rewards of all four rollouts of each group are there, for the mean that is subtracted
        assert batch.rollouts["components/correct"].reshape(-1, 4).tolist() == [[1.0, 1.0, 0.0, 0.0]] * (2 if step == 0 else 4)
        streams = [STREAMS[i] for i in batch.rows["stream"]]
        assert streams == ["on_policy"] * 4 + ["replay"] * (0 if step == 0 else 4)
        assert batch.counts.rollouts == len(streams) and batch.drawn.rollouts == (8 if step == 0 else 12)
    assert len(seen) == len(set(seen)) == 4 * 4 + 3 * 4
    assert len(replay) == 2


def test_what_was_put_off_comes_back_by_chance_and_is_let_go_otherwise() -> None:
    for chance, least, most in ((1.0, 50, 50), (0.5, 15, 35)):
        replay = DeferredReplay(capacity=2, batch=1, chance=chance).build(3)
        copy, came = DeferredReplay(capacity=2, batch=1, chance=chance).build(3), []
        for step in range(51):
            replay.put([of_lengths(f"s{step}", (1.0, 1))], step)
            copy.load_state_dict(json.loads(json.dumps(replay.state_dict())))
            came.append([g.key for g in replay.sample(1)])
            assert [g.key for g in copy.sample(1)] == came[-1] and len(replay) <= 1
        found = [key for keys in came for key in keys]
        assert least <= len(found) <= most and len(set(found)) == len(found)
    with pytest.raises(ConfigError, match="chance=0"):
        DeferredReplay(chance=0.0)


def test_with_all_at_once_it_is_plain_packing() -> None:
    groups = [MIXED, group("h", 0.0, 1.0)]
    one, two = Recompose(share=1.0).compose(groups, DeferredReplay().build(0), 0), Compose().compose(groups, None, 0)
    assert one is not None and two is not None and same(one, two)
    replay = DeferredReplay(capacity=2, batch=2).build(0)
    replay.put(groups, 0)
    late = Recompose(share=1.0).compose(groups, replay, 1)
    assert late is not None and same(late, two)  # of the groups that come back nothing is left to learn from


def test_rollouts_without_a_verdict_are_never_first_and_a_batch_of_nothing_is_none() -> None:
    assert Recompose().priority(group("f", FAULT, Score(components={"correct": 1.0}))) == {1}
    assert Recompose().compose([group("f", FAULT, FAULT)], DeferredReplay().build(0), 0) is None
    with pytest.raises(ConfigError, match=r"give replay=DeferredReplay\(\)"):
        Recompose().compose([MIXED], None, 0)


def test_the_groups_that_wait_go_on_from_a_checkpoint() -> None:
    replay = DeferredReplay(capacity=3, batch=2).build(0)
    replay.put([of_lengths(f"g{i}", (1.0, 5), (0.0, 3)) for i in range(3)], 0)
    other = DeferredReplay(capacity=3, batch=2).build(7)
    other.load_state_dict(json.loads(json.dumps(replay.state_dict())))
    assert [g.key for g in other.sample(1)] == [g.key for g in replay.sample(1)] == ["g0", "g1"]
    assert other.sample(1) == [] == replay.sample(1) and len(other) == 1


def test_settings_out_of_range_are_refused() -> None:
    for make, message in (
        (lambda: Recompose(share=0.0), "share=0.0"),
        (lambda: Recompose(by="words"), "'tokens' or 'calls'"),  # pyright: ignore
        (lambda: DeferredReplay(capacity=2), "batch=32 exceeds capacity=2"),
    ):
        with pytest.raises(ConfigError, match=message):
            make()
