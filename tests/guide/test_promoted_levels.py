"""SATURN's curriculum: what promotes an arm and what does not, and exact resume."""

from __future__ import annotations

import json

import pytest
from test_box_curricula import groups

from assay.core.canon import canonical
from assay.core.errors import ConfigError, UnknownNameError
from assay.guide import Promoted
from assay.guide.promoted_levels import PromotedBook
from assay.testing import check_curriculum

ARMS = {"a": (5, 1, 3), "b": (2, 4)}


def drawn(book: PromotedBook) -> set[tuple[str, int]]:
    return {(draw.arm, draw.level) for draw in book.draw(32)}


def evaluated(**accuracies: float) -> dict[str, float]:
    """``a1=0.5`` is the accuracy of arm a at level 1."""
    return {f"eval/sampled/{name[0]}/level_{name[1:]}": value for name, value in accuracies.items()}


def test_it_keeps_the_laws_of_curricula() -> None:
    check_curriculum(Promoted(), ARMS, seed=1, draws=3_000)
    check_curriculum(Promoted(above=0.75, rounds=1, mode="greedy"), {"one": (1,)}, draws=500)


def test_an_evaluation_strictly_above_the_bound_promotes_and_nothing_else_does() -> None:
    book = Promoted().build(ARMS, seed=0)
    assert drawn(book) == {("a", 1), ("b", 2)} and {draw.propensity for draw in book.draw(4)} == {0.5}
    book.observe(groups([1, 1, 1], lambda level: 1.0))  # rollouts of training
    book.observe_metrics({"reward/mean": 1.0, "loss/total": 0.1})  # no evaluation
    book.observe_metrics(evaluated(a1=0.5, b2=0.0, a3=1.0))  # exactly at the bound
    assert drawn(book) == {("a", 1), ("b", 2)}
    book.observe_metrics(evaluated(a1=0.51, b2=0.5))
    assert drawn(book) == {("a", 3), ("b", 2)} and book.metrics()["curriculum/promotions/a"] == 1.0
    for _ in range(3):
        book.observe_metrics(evaluated(a3=0.9, a5=0.9, b2=0.9, b4=0.9))
    assert drawn(book) == {("a", 5), ("b", 4)}  # one level at a time, and never beyond the last
    book.observe_metrics(evaluated(a5=0.0, b4=0.0))
    assert drawn(book) == {("a", 5), ("b", 4)}  # and never back


def test_rounds_bound_the_promotions_and_a_level_without_an_item_is_refused() -> None:
    book = Promoted(rounds=1).build({"a": (1, 2, 3)}, seed=0)
    for level in (1, 2, 3):
        book.observe_metrics({f"eval/sampled/level_{level}": 1.0, "eval/sampled/level_2": 1.0})
    assert drawn(book) == {("a", 2)}
    with pytest.raises(ConfigError, match="no item of 'a' at level 2"):
        book.observe_metrics({"eval/sampled/level_1": 1.0})
    book.observe_metrics({"eval/greedy/level_1": 1.0})  # of another mode
    for make, error in ((lambda: Promoted(above=1.0), ConfigError), (lambda: Promoted(mode="best"), UnknownNameError)):  # type: ignore[arg-type]
        with pytest.raises(error):
            make()


def test_it_goes_on_exactly() -> None:
    book = Promoted().build(ARMS, seed=3)
    book.draw(5)
    book.observe_metrics(evaluated(a1=0.9, b2=0.1))
    copy = Promoted().build(ARMS, seed=3)
    copy.load_state_dict(json.loads(canonical(book.state_dict())))
    assert copy.draw(20) == book.draw(20) and copy.state_dict() == book.state_dict()
