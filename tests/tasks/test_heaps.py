"""Heaps: two roles, an opponent that never errs, and a verdict by the moves."""

import asyncio
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError
from assay.core.protocols import Snapshots
from assay.core.task import Task
from assay.testing import check_environment, check_task_source, rollout_of
from assay_tasks import Heaps
from assay_tasks.heaps import ROLES, HeapsVerdict, apply_move, best


def table(prompt: str, split: str = "train") -> Task:
    return Task(id="t", domain="games", arm="heaps", level=3, split=split, index=0, public=FrozenMap({"prompt": prompt}))


@cache
def wins(heaps: tuple[int, ...]) -> bool:
    """Whether who is to move can take the last stone: by looking at all that can happen."""
    left = [(*heaps[:i], h - k, *heaps[i + 1 :]) for i, h in enumerate(heaps) for k in range(1, h + 1)]
    return any(not wins(tuple(sorted(one))) for one in left)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=4).filter(any))
def test_the_best_move_leaves_nothing_to_win_wherever_there_is_one(heaps: list[int]) -> None:
    left = apply_move(tuple(heaps), best(tuple(heaps)))
    assert left is not None
    assert sum(left) < sum(heaps)
    if wins(tuple(sorted(heaps))):
        assert not wins(tuple(sorted(left)))


@pytest.mark.parametrize("move", ["", "a", "a0", "a4", "d1", "a1 ", "b22", "z1", "A1"])
def test_what_is_no_move(move: str) -> None:
    assert apply_move((3, 5, 2), move) is None


def test_moves() -> None:
    assert apply_move((3, 5, 2), "b2") == (3, 3, 2)
    assert Heaps().solve("H352>") == "b4"


def verdict(role: str, *moves: str, prompt: str = "H21>", split: str = "train") -> tuple[float, float]:
    made = rollout_of(table(prompt, split), *moves)
    calls = tuple(replace(c, role=ROLES[i % 2] if role else "assistant") for i, c in enumerate(made.calls))
    score = HeapsVerdict()(table(prompt, split), replace(made, calls=calls, role=role))
    return score.components["correct"], score.components["legal"]


def test_who_takes_the_last_stone_has_won() -> None:
    assert (verdict("first", "a1", "a1", "b1"), verdict("second", "a1", "a1", "b1")) == ((1, 1), (0, 1))
    assert (verdict("first", "a2", "b1"), verdict("second", "a2", "b1")) == ((0, 1), (1, 1))


def test_a_move_that_is_none_loses() -> None:
    assert (verdict("first", "a1", "c1"), verdict("second", "a1", "c1")) == ((1, 1), (0, 0))
    assert (verdict("first", "x"), verdict("second", "x")) == ((0, 0), (1, 1))


def test_what_is_not_finished_is_won_by_nobody() -> None:
    assert (verdict("first", "a1"), verdict("second", "a1")) == ((0, 1), (0, 1))


def test_alone_against_an_opponent_that_never_errs() -> None:
    assert verdict("", "a1", "b1", prompt="H21>", split="test") == (1, 1)  # 1 1, the opponent leaves 0 1
    assert verdict("", "b1", prompt="H21>", split="test") == (0, 1)  # 2 0: the opponent takes both
    assert verdict("", "c1", prompt="H21>", split="test") == (0, 0)


def test_a_verdict_goes_on_from_a_snapshot() -> None:
    made = rollout_of(table("H55>"), "a1", "b1")
    made = replace(
        made,
        context=replace(made.context, snapshot={"heaps": [1, 1], "turn": 3}),
        role="second",
        calls=tuple(replace(c, role=role) for c, role in zip(made.calls, ROLES[::-1], strict=True)),
    )
    assert HeapsVerdict()(table("H55>"), made).components["correct"] == 0.0
    assert HeapsVerdict()(table("H55>"), replace(made, role="first")).components["correct"] == 1.0


def test_the_family_keeps_the_contract() -> None:
    passed = check_task_source(Heaps(), n=6).passed
    assert {"environment: snapshots restore", "environment: names an actor each time"} <= set(passed)
    found = check_environment(Heaps(), Heaps().task("heaps", 3, "test", 0)).passed
    assert "snapshots restore" in found
    assert "names an actor each time" not in found


def test_a_snapshot_says_whose_turn_it_is() -> None:
    async def play() -> list[str]:
        table_ = Heaps().environment(table("H35>").public_view())
        assert isinstance(table_, Snapshots)
        actors = [(await table_.start()).actor, (await table_.step("a1")).obs.actor]
        other = Heaps().environment(table("H35>").public_view())
        assert isinstance(other, Snapshots)
        shown = await other.restore(await table_.snapshot())
        assert shown.messages[0].content == "=25>"
        return [*actors, shown.actor, (await other.step("b1")).obs.actor]

    assert asyncio.run(play()) == ["first", "second", "second", "first"]


def test_what_is_refused() -> None:
    with pytest.raises(ConfigError, match="levels"):
        Heaps(levels=(6,))
    with pytest.raises(DataError, match="is no table of Heaps"):
        Heaps().environment(table("S35>").public_view())
