"""SCALER: difficulties by hand, levels of a batch, what is replaced, and the laws of every curriculum."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.core.canon import FrozenMap
from assay.core.errors import CheckpointError, ConfigError
from assay.core.group import Group
from assay.core.task import Task
from assay.guide import Scaler, ScalerCurriculum
from assay.testing import as_outcomes, check_curriculum, graded_group

LEVELS = (1, 2, 3, 4, 5)


def group(arm: str, *values: float) -> Group:
    task = Task(id="t", domain="d", arm=arm, level=1, split="train", index=0, public=FrozenMap({"prompt": "?"}))
    return graded_group(task, list(values))


def right(arm: str, share: float) -> Group:
    """A group of 8 of which ``share`` are right."""
    return group(arm, *(float(i < 8 * share) for i in range(8)))


@pytest.mark.parametrize(
    "spec", [Scaler(start=1.3), Scaler(active=2, start=0.5), Scaler(active=1, patience=1), Scaler(start=9.0, window=2)]
)
def test_it_keeps_the_laws_of_curricula(spec: Scaler) -> None:
    check_curriculum(spec, {"a": (1, 2, 3), "b": (2, 4), "c": (7,)}, seed=3)


@pytest.mark.parametrize(("share", "after"), [(0.75, 2.9), (1.0, 3.4), (0.0, 1.4), (0.5, 2.4)])
def test_difficulty_follows_accuracy(share: float, after: float) -> None:
    curriculum = Scaler(start=2.4).build({"a": LEVELS}, 0)
    curriculum.observe(as_outcomes([right("a", share)]))
    assert curriculum.difficulty("a") == pytest.approx(after)


def test_one_step_is_at_most_one_level_and_stays_within_the_levels() -> None:
    curriculum = Scaler(step=9.0, start=3.5).build({"a": LEVELS, "b": LEVELS}, 0)
    curriculum.observe(as_outcomes([right("a", 1.0), right("b", 0.0)]))
    assert (curriculum.difficulty("a"), curriculum.difficulty("b")) == (4.0, 2.5)
    curriculum.observe(as_outcomes([right("b", 0.0)] * 3))  # one batch, however many groups
    assert (curriculum.difficulty("a"), curriculum.difficulty("b")) == (4.0, 1.5)
    for _ in range(3):
        curriculum.observe(as_outcomes([right("b", 0.0)]))
    assert curriculum.difficulty("b") == 0.0


def test_a_batch_is_the_mean_over_its_groups_and_says_nothing_of_what_is_not_graded_or_not_there() -> None:
    curriculum = Scaler(start=2.0).build({"a": LEVELS, "b": LEVELS}, 0)
    curriculum.observe(as_outcomes([right("a", 1.0), right("a", 0.25), right("x", 1.0)]))  # .625 in the mean
    assert (curriculum.difficulty("a"), curriculum.difficulty("b")) == (2.25, 2.0)
    assert curriculum.metrics()["curriculum/groups"] == 2.0


def test_levels_of_a_batch_have_the_difficulty_for_their_mean() -> None:
    """Of 8 at 2.4, 3 or 4 are of the upper level, 3.2 in the mean."""
    curriculum = Scaler(start=2.4).build({"a": LEVELS}, 0)
    found = [Counter(d.level for d in curriculum.draw(8)) for _ in range(400)]
    assert {(c[3], c[4]) for c in found} == {(5, 3), (4, 4)}
    assert sum(c[4] for c in found) / 400 == pytest.approx(3.2, abs=0.07)
    assert sorted({d.propensity for d in curriculum.draw(50)}) == pytest.approx([0.4, 0.6])


def test_one_prompt_for_each_environment_still_reaches_both_levels() -> None:
    curriculum = Scaler(start=2.4).build({"a": LEVELS, "b": LEVELS}, 0)
    turns = [curriculum.draw(2) for _ in range(200)]
    assert all({d.arm for d in turn} == {"a", "b"} for turn in turns)
    assert sum(d.level == 4 for turn in turns for d in turn) / 400 == pytest.approx(0.4, abs=0.08)


@given(st.integers(1, 5), st.integers(1, 23))
def test_active_arms_are_drawn_in_rounds(active: int, n: int) -> None:
    curriculum = Scaler(active=active).build(dict.fromkeys("abcd", LEVELS), n)
    counts = Counter(d.arm for d in curriculum.draw(n))
    width = min(active, 4)
    assert counts.keys() <= set(curriculum.active) and len(curriculum.active) == width
    assert all(counts[arm] in (n // width, -(-n // width)) for arm in curriculum.active)


def replaced_after(curriculum: ScalerCurriculum, share: float, most: int = 40) -> int | None:
    """Batches of this accuracy until the first active arm is replaced."""
    (arm,) = curriculum.active
    for n in range(1, most):
        curriculum.observe(as_outcomes([right(arm, share)]))
        if curriculum.active != [arm]:
            return n
    return None


@pytest.mark.parametrize(
    ("start", "share", "after"),
    [
        (2.0, 0.0, 5),  # all wrong five times in a row
        (4.0, 1.0, 5),  # at the highest level from the first batch on
        (0.0, 1.0, 8),  # there after four batches, and four more
        (2.0, 0.5, 8),  # nowhere: when the window is full
        (2.0, 0.375, 8),  # a quarter down at each batch
        (2.0, 0.625, 8 + 4),  # a quarter up at each: at the highest level at the eighth, and four more
    ],
)
def test_an_arm_that_teaches_nothing_is_replaced(start: float, share: float, after: int) -> None:
    curriculum = Scaler(active=1, window=8, start=start).build({"a": LEVELS, "b": LEVELS}, 0)
    assert replaced_after(curriculum, share) == after
    assert curriculum.metrics()["curriculum/replaced"] == 1.0


def test_what_breaks_a_row_begins_it_anew() -> None:
    curriculum = Scaler(active=1, window=30, start=2.0).build({"a": LEVELS, "b": LEVELS}, 0)
    (arm,) = curriculum.active
    for _ in range(3):
        for share in (0.0, 0.0, 0.0, 0.0, 0.125):
            curriculum.observe(as_outcomes([right(arm, share)]))
    assert curriculum.active == [arm]


def test_where_none_waits_it_stays() -> None:
    curriculum = Scaler(active=2).build({"a": LEVELS, "b": LEVELS}, 0)
    for _ in range(20):
        curriculum.observe(as_outcomes([right("a", 0.0), right("b", 1.0)]))
    assert sorted(curriculum.active) == ["a", "b"]


def test_none_comes_back_at_once_none_stands_twice_and_none_waits_for_ever() -> None:
    curriculum = Scaler(active=3, patience=1).build({f"a{i}": LEVELS for i in range(8)}, 5)
    seen: set[str] = set()
    for _ in range(60):
        before = list(curriculum.active)
        seen |= set(before)
        curriculum.observe(as_outcomes([right(arm, 0.0) for arm in before]))
        assert len(set(curriculum.active)) == 3 and not set(curriculum.active) & set(before)
    assert len(seen) == 8


def test_a_replaced_arm_keeps_its_difficulty_and_forgets_its_failures() -> None:
    curriculum = Scaler(active=1, patience=3, start=4.0, window=30).build({"a": LEVELS, "b": LEVELS}, 0)
    (first,) = curriculum.active
    assert replaced_after(curriculum, 0.0) == 3
    (second,) = curriculum.active
    assert (curriculum.difficulty(first), curriculum.difficulty(second)) == (1.0, 4.0)
    assert replaced_after(curriculum, 0.0) == 3
    assert curriculum.active == [first] and replaced_after(curriculum, 0.0) == 3


def test_one_in_its_window_that_grows_stays() -> None:
    curriculum = Scaler(active=1, window=3, step=0.5).build({"a": tuple(range(40)), "b": LEVELS}, 0)
    curriculum.active = ["a"]
    assert replaced_after(curriculum, 1.0, most=30) is None


def test_its_state_goes_through_json_and_belongs_to_its_arms() -> None:
    arms = {"a": LEVELS, "b": LEVELS, "c": LEVELS}
    spec = Scaler(active=2, patience=2)
    one, other = spec.build(arms, 1), spec.build(arms, 1)
    for _ in range(7):
        one.observe(as_outcomes([right(arm, 0.25) for arm in one.active]))
        one.draw(3)
    other.load_state_dict(json.loads(json.dumps(one.state_dict())))
    for _ in range(9):
        assert one.draw(5) == other.draw(5) and one.metrics() == other.metrics()
        for curriculum in (one, other):
            curriculum.observe(as_outcomes([right(arm, 0.0) for arm in curriculum.active]))
    with pytest.raises(CheckpointError, match="this run has"):
        spec.build({"a": LEVELS}, 1).load_state_dict(one.state_dict())


def test_shares_sum_to_one() -> None:
    metrics = Scaler(active=2, start=0.25).build({"a": LEVELS, "b": (3,), "c": LEVELS}, 0).metrics()
    assert sum(value for name, value in metrics.items() if "/share/" in name) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"active": 0}, "at least 1"),
        ({"patience": 0}, "at least 1"),
        ({"window": 1}, "at least 2"),
        ({"step": 0.0}, "> 0"),
        ({"target": 1.0}, r"in \(0, 1\)"),
        ({"start": -1.0}, "at least 0"),
        ({"start": float("nan")}, "at least 0"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, float], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Scaler(**settings)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("arms", [{}, {"a": ()}, {"a": (1, 1)}])
def test_arms_without_levels_are_refused(arms: dict[str, tuple[int, ...]]) -> None:
    with pytest.raises(ConfigError, match="each named once"):
        Scaler().build(arms, 0)
    with pytest.raises(ConfigError, match="n=0"):
        Scaler().build({"a": (1,)}, 0).draw(0)
