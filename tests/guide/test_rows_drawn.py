"""Curricula over single rows: LIMR's and 1-shot RLVR's scores, GAIN-RL's bell, laws, and rows without a verdict."""

from __future__ import annotations

import json

import numpy as np
import pytest

from assay.core import FrozenMap, Score, Task
from assay.core.canon import canonical
from assay.core.errors import CheckpointError, ConfigError
from assay.core.group import Group
from assay.core.score import Fault
from assay.guide import Bell, FirstTasks, HistoryRows, RowBook, RowRule
from assay.guide.row_curricula import impact_scores, spread_scores
from assay.testing import as_outcomes, check_curriculum, graded_group

ARMS = {"a": (1, 2)}


def group(level: int, index: int, *values: float | Score) -> Group:
    public = FrozenMap({"prompt": "?"})
    return graded_group(Task(id="t", domain="d", arm="a", level=level, split="train", index=index, public=public), values)


@pytest.mark.parametrize(
    "spec", [HistoryRows(pool=3), HistoryRows(pool=2, keep=1, epochs=2, score="impact"), Bell(pool=5, sigma=2.0)]
)
def test_they_keep_the_laws_of_curricula(spec: RowRule) -> None:
    check_curriculum(spec, ARMS, seed=1)


def test_gaps_of_a_history_take_the_next_epoch_and_rows_that_end_in_one_are_left_out() -> None:
    gap = float("nan")
    whole = impact_scores(np.array([[gap, 0.5, 1.0], [1.0, 1.0, 1.0], [0.0, 0.0, gap]]))
    filled = impact_scores(np.array([[0.5, 0.5, 1.0], [1.0, 1.0, 1.0]]))
    assert np.isnan(whole[2])
    np.testing.assert_allclose(whole[:2], filled)
    assert impact_scores(np.ones((2, 3))).tolist() == [0.0, 0.0]
    assert np.isnan(impact_scores(np.full((2, 2), gap))).all()
    assert np.isnan(spread_scores(np.array([[gap, gap]])))[0]
    assert spread_scores(np.array([[gap, 0.0, 1.0]]))[0] == 0.5


def test_every_row_is_met_before_the_choice_and_the_chosen_ones_alone_behind_it() -> None:
    book = HistoryRows(pool=2, epochs=2, keep=1).build(ARMS, seed=0)
    for success in (0.0, 1.0):
        draws = book.draw(4)
        assert sorted((d.level, d.index) for d in draws) == [(1, 0), (1, 1), (2, 0), (2, 1)]
        assert [round(d.propensity, 3) for d in draws] == [0.25, 0.333, 0.5, 1.0]
        swinging = success if draws else 0.0
        book.observe(as_outcomes([group(1, 0, 1.0), group(1, 1, 0.0), group(2, 0, 0.5), group(2, 1, swinging)]))
    assert {(d.level, d.index, d.propensity) for d in book.draw(8)} == {(2, 1, 1.0)}
    assert book.metrics()["curriculum/rows"] == 1.0
    assert book.metrics()["curriculum/share/a/level_2"] == 1.0


def test_a_row_whose_verifier_always_fails_does_not_hold_up_the_rest() -> None:
    book = HistoryRows(pool=1, epochs=2, keep=1).build(ARMS, seed=0)
    fault = Score(components={}, fault=Fault.VERIFIER)
    for success in (0.0, 1.0):
        book.observe(as_outcomes([group(1, 0, fault, fault), group(2, 0, success)]))
    assert {(d.level, d.index) for d in book.draw(3)} == {(2, 0)}
    copy = HistoryRows(pool=1, epochs=2, keep=1).build(ARMS, seed=0)
    copy.load_state_dict(json.loads(canonical(book.state_dict())))
    assert copy.draw(3) == book.draw(3)


def test_the_bell_moves_by_accuracy_and_never_back() -> None:
    """tanh(2 (1 - .5)) of 500 rows is 380.80; below the target it rests."""
    assert Bell(stride=500.0).step(1.0) == pytest.approx(380.80, abs=5e-3)
    assert Bell(stride=500.0).step(0.0) == 0.0
    assert Bell(stride=5000.0).step(1.0) == 1000.0
    assert Bell(stride=500.0).step(0.5, 0.1) == pytest.approx(98.69, abs=5e-3)  # the angle alone
    assert Bell(stride=500.0).step(0.0, 0.1) == 0.0  # -380.80 + 98.69: it never moves back
    book = Bell(pool=4, sigma=1.0, stride=4.0).build(ARMS, seed=0)
    assert int(np.argmax(book.propensities())) == 0
    book.observe(as_outcomes([group(1, 0, 1.0)]))
    assert book.centre == pytest.approx(4.0 * np.tanh(1.0))
    assert book.rows[int(np.argmax(book.propensities()))][1:] == (1, 3)
    for _ in range(9):
        book.observe(as_outcomes([group(2, 0, 1.0)]))
    assert int(np.argmax(book.propensities())) == 7  # it comes to rest at the last row


def test_a_narrow_bell_draws_each_row_once_before_any_twice() -> None:
    book = Bell(pool=32, sigma=1.0).build({"a": (1,)}, seed=0)
    draws = book.draw(32)
    assert sorted(d.index or 0 for d in draws) == list(range(32))
    assert all(0.0 < d.propensity <= 1.0 for d in draws) and draws[-1].propensity == 1.0


def test_a_bell_between_two_rows_draws_these_however_narrow_it_is() -> None:
    book = Bell(pool=8, sigma=0.01).build({"a": (1,)}, seed=0)
    book.centre = 3.5
    np.testing.assert_allclose(book.propensities(), [0, 0, 0, 0.5, 0.5, 0, 0, 0], atol=1e-9)


def test_the_order_of_groups_without_a_verdict_does_not_matter() -> None:
    found = [group(1, 0, 0.5), group(1, 0, Score(components={}, fault=Fault.INFRA)), group(1, 0, 0.0)]
    states: set[str] = set()
    for order in ((0, 1, 2), (1, 2, 0), (2, 1, 0)):
        book = HistoryRows(pool=1).build({"a": (1,)}, seed=0)
        book.observe(as_outcomes([found[i] for i in order]))
        states.add(json.dumps(book.state_dict()))
    assert len(states) == 1


@pytest.mark.parametrize(("arms", "said"), [({}, "needs arms"), ({"a": (), "b": (1,)}, "empty"), ({"a": (1, 1)}, "twice")])
def test_arms_without_levels_or_with_one_twice_are_refused(arms: dict[str, tuple[int, ...]], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Bell().build(arms, seed=0)


def test_states_of_other_rows_and_settings_out_of_range_are_refused() -> None:
    book = Bell(pool=2).build(ARMS, seed=0)
    book.observe(as_outcomes([group(2, 1, 1.0), group(2, 7, 1.0)]))
    with pytest.raises(CheckpointError, match=r"a row \('a', 2, 1\)"):
        Bell(pool=1).build(ARMS, seed=0).load_state_dict(book.state_dict())
    for make, message in (
        (lambda: Bell(pool=0), "pool=0"),
        (lambda: Bell(sigma=0.0), "sigma=0"),
        (lambda: Bell(target=1.0), "target=1"),
        (lambda: HistoryRows(epochs=1), "epochs=1"),
        (lambda: FirstTasks(n=0), "n=0"),
        (lambda: book.draw(0), "n=0"),
        (lambda: Bell().build({}, seed=0), "needs arms"),
        (lambda: RowBook(_Wrong(), ARMS, 0).draw(1), "finite weight"),
    ):
        with pytest.raises(ConfigError, match=message):
            make()


class _Wrong(RowRule):
    pool = 1

    def weights(self, book: RowBook) -> np.ndarray:
        return np.array([1.0, float("inf")])
