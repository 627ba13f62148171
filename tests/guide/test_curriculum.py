"""Curricula: weights by hand, true propensities by simulation, exact resume (laws L4, L5, L7)."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.core.canon import FrozenMap, canonical
from assay.core.errors import CheckpointError, ConfigError
from assay.core.group import Draw, Group
from assay.core.score import Fault, Score
from assay.core.task import Task
from assay.guide import CellBook, CellRule, SuccessVariance, Uniform
from assay.testing import as_outcomes, check_curriculum, graded_group

ARMS = {"sort": (3, 4, 5), "kv": (1,)}


def task(arm: str, level: int) -> Task:
    public = FrozenMap({"prompt": "?"})
    return Task(id=f"{arm}/{level}", domain="d", arm=arm, level=level, split="train", index=0, public=public)


def group(arm: str, level: int, *values: float | Score) -> Group:
    return graded_group(task(arm, level), values)


@pytest.mark.slow
@pytest.mark.parametrize("spec", [Uniform(), SuccessVariance(), SuccessVariance(floor=0.01, decay=0.0, prior=1.0)])
@pytest.mark.parametrize("arms", [ARMS, {"one": (1,)}, {"a": tuple(range(1, 9)), "b": (1, 2)}])
def test_curricula_keep_their_laws(spec: Uniform | SuccessVariance, arms: dict[str, tuple[int, ...]]) -> None:
    check_curriculum(spec, arms, seed=3)


def test_weights_by_hand() -> None:
    """Four cells at the prior .5 weigh .25 + .05 each; then one moves to .5 * .9^2 + 1 * (1 - .9^2) = .595."""
    curriculum = SuccessVariance(floor=0.05, decay=0.9, prior=0.5).build(ARMS, seed=0)
    assert curriculum.cells == [("kv", 1), ("sort", 3), ("sort", 4), ("sort", 5)]
    assert curriculum.propensities.tolist() == [0.25] * 4
    curriculum.observe(as_outcomes([group("sort", 4, 1.0, 1.0), group("sort", 4, 1.0, 1.0)]))
    moved = 0.595 * 0.405 + 0.05
    np.testing.assert_allclose(curriculum.propensities, np.array([0.3, 0.3, moved, 0.3]) / (0.9 + moved), rtol=1e-12)
    assert curriculum.metrics()["curriculum/success/sort/level_4"] == pytest.approx(0.595)
    assert curriculum.metrics()["curriculum/share/sort/level_4"] == pytest.approx(moved / (0.9 + moved))
    assert curriculum.metrics()["curriculum/groups"] == 2.0


def test_uniform_stays_uniform_and_still_measures() -> None:
    curriculum = Uniform().build(ARMS, seed=0)
    curriculum.observe(as_outcomes([group("sort", 3, 0.0, 0.0)]))
    assert curriculum.propensities.tolist() == [0.25] * 4
    assert curriculum.metrics()["curriculum/success/sort/level_3"] == pytest.approx(0.45)


def test_mastered_and_hopeless_cells_keep_the_floor() -> None:
    curriculum = SuccessVariance(floor=0.1, decay=0.0).build({"a": (1, 2, 3)}, seed=0)
    curriculum.observe(as_outcomes([group("a", 1, 1.0), group("a", 2, 0.0), group("a", 3, 0.0, 1.0)]))
    np.testing.assert_allclose(curriculum.propensities, np.array([0.1, 0.1, 0.35]) / 0.55)


def test_every_graded_group_counts_once_and_faults_say_nothing() -> None:
    fault = Score(components={}, fault=Fault.VERIFIER)
    curriculum = SuccessVariance().build({"a": (1, 2)}, seed=0)
    before = curriculum.state_dict()
    curriculum.observe(as_outcomes([group("a", 1, fault, fault), group("b", 1, 1.0), group("a", 9, 1.0)]))
    assert curriculum.state_dict() == before
    # without signal, partly faulty: both count
    curriculum.observe(as_outcomes([group("a", 1, 1.0, 1.0), group("a", 2, fault, 0.0)]))
    high, low = pytest.approx(0.55), pytest.approx(0.45)
    assert curriculum.state_dict()["cells"] == [["a", 1, high, 1, high, high, 1, []], ["a", 2, low, 1, low, low, 1, []]]


@given(
    st.lists(st.tuples(st.sampled_from([3, 4, 5]), st.lists(st.floats(0, 1), min_size=1, max_size=4)), max_size=12), st.randoms()
)
def test_the_order_of_groups_does_not_matter(results: list[tuple[int, list[float]]], order) -> None:
    groups = [group("sort", level, *values) for level, values in results]
    one, two = SuccessVariance().build(ARMS, 0), SuccessVariance().build(ARMS, 0)
    one.observe(as_outcomes(groups))
    order.shuffle(groups)
    two.observe(as_outcomes(groups))
    assert one.state_dict() == two.state_dict()


@given(st.integers(0, 2**32), st.integers(0, 5), st.integers(1, 40))
def test_draws_are_a_pure_function_of_seed_and_turn(seed: int, turns: int, n: int) -> None:
    one, two = SuccessVariance().build(ARMS, seed), SuccessVariance().build(ARMS, seed)
    for _ in range(turns):
        one.draw(7)
        two.draw(n)  # how many were drawn before does not matter, only how often
    assert one.draw(n) == two.draw(n)
    more = SuccessVariance().build(ARMS, seed)
    more.load_state_dict(one.state_dict() | {"turn": turns})
    assert more.draw(n + 5)[:n] == fresh_draw(seed, turns, n)


def fresh_draw(seed: int, turn: int, n: int) -> list[Draw]:
    fresh = SuccessVariance().build(ARMS, seed)
    fresh.load_state_dict(fresh.state_dict() | {"turn": turn})
    return fresh.draw(n)


def test_other_seeds_draw_otherwise() -> None:
    assert Uniform().build(ARMS, 0).draw(20) != Uniform().build(ARMS, 1).draw(20)


@given(st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_propensities_are_probabilities(success: list[float]) -> None:
    curriculum = SuccessVariance().build(ARMS, 0)
    cells = [[arm, level, p, 1, p] for (arm, level), p in zip(curriculum.cells, success, strict=True)]
    curriculum.load_state_dict(json.loads(canonical({"turn": 0, "cells": cells})))
    assert math.isclose(curriculum.propensities.sum(), 1.0)
    assert curriculum.propensities.min() >= 0.1 / (0.35 * 4)


def test_a_foreign_state_is_refused() -> None:
    with pytest.raises(CheckpointError, match=r"of cells \[\('a', 1\)\], this run has"):
        Uniform().build(ARMS, 0).load_state_dict(Uniform().build({"a": (1,)}, 0).state_dict())


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: SuccessVariance(floor=0.0), "floor must be > 0"),
        (lambda: SuccessVariance(floor=math.inf), "floor"),
        (lambda: SuccessVariance(decay=1.0), "decay"),
        (lambda: SuccessVariance(prior=1.1), "prior"),
        (lambda: Uniform().build({}, 0), "needs arms"),
        (lambda: Uniform().build({"a": ()}, 0), r"empty: \['a'\]"),
        (lambda: Uniform().build({"a": (1, 2, 1), "b": (1,)}, 0), r"twice: \[\('a', 1\)\]"),
        (lambda: Uniform().build(ARMS, 0).draw(0), "n=0"),
    ],
)
def test_wrong_settings_are_refused(make, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        make()


def test_a_rule_of_ones_own() -> None:
    class Hardest(CellRule):
        def weights(self, standing):
            return np.arange(1.0, len(standing.cells) + 1.0)

    check_curriculum(Hardest(), ARMS)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([0.0, 0.0, 0.0, 0.0], r"\[0.0, 0.0, 0.0, 0.0\]"),
        ([1.0, -0.5, 1.0, 1.0], "-0.5"),
        ([1.0, math.nan, 1.0, 1.0], "nan"),
        ([1.0, math.inf, 1.0, 1.0], "inf"),
        ([1.0, 1.0], r"\[1.0, 1.0\] for 4 cells"),
    ],
)
def test_weights_that_are_no_chances_are_refused(values: list[float], told: str) -> None:
    class Broken(CellRule):
        def weights(self, standing):
            return np.array(values)

    with pytest.raises(ConfigError, match=rf"Broken.weights gave .*{told}"):
        CellBook(Broken(), ARMS, 0).draw(3)
