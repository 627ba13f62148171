"""SEC, DUMP, RuleReasoner and Exp3: the numbers of their sheets, and their laws."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

import numpy as np
import pytest

from assay.core import Draw, FrozenMap, Group, Outcome, Task
from assay.core.canon import canonical
from assay.core.errors import ConfigError, UnknownNameError
from assay.guide import CellRule, Dump, Exp3, RuleReasoner, Sec
from assay.guide.bandits import faded_means
from assay.guide.cell_curricula import CellBook, Standing
from assay.testing import check_curriculum, graded_group

ARMS = {"a": (1,), "b": (1,), "c": (1,)}


def group(arm: str, *values: float) -> Group:
    public = FrozenMap({"prompt": "?"})
    return graded_group(Task(id=arm, domain="d", arm=arm, level=1, split="train", index=0, public=public), values)


def learned(arm: str, advantages: Sequence[float]) -> Outcome:
    """A group whose rollouts got these advantages."""
    values = [float(i % 2) for i in range(len(advantages))]
    return Outcome(group=group(arm, *values), advantages=np.array(advantages, np.float64), kept=True)


def standing(value: Sequence[float], count: Sequence[int], recent: Sequence[tuple[float, ...]] = ()) -> Standing:
    n = len(value)
    values, zeros = np.array(value, np.float64), np.zeros(n)
    cells = tuple((arm, 1) for arm in "abcdef"[:n])
    return Standing(cells, values, zeros, zeros.astype(np.int64), values, np.array(count), tuple(recent) or ((),) * n)


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec",
    [
        Sec(),
        Sec(alpha=1.0, temperature=0.1),
        Dump(),
        Dump(window=3),
        RuleReasoner(),
        RuleReasoner(decay=0.0),
        RuleReasoner(queue=3, fading="geometric"),
        Exp3(),
        Exp3(gamma=1.0),
    ],
)
@pytest.mark.parametrize("arms", [ARMS, {"one": (1,)}, {"a": tuple(range(1, 6)), "b": (1, 2)}])
def test_they_keep_the_laws_of_curricula(spec: CellRule, arms: dict[str, tuple[int, ...]]) -> None:
    check_curriculum(spec, arms, seed=5)


def test_dump_by_its_sheet() -> None:
    """|A| = (.8, .2, 0) with n = (100, 100, 10): upper bounds (1.1255, .5255, .9864), shares (.7992, .0020, .1989)."""
    found = standing([0.0] * 3, [100, 100, 10], [(0.8,), (0.2,), (0.0,)])
    weights = Dump().weights(found)
    np.testing.assert_allclose(weights / weights.sum(), [0.7992, 0.0020, 0.1989], atol=5e-5)
    more = standing([0.0] * 3, [1000, 1000, 10], [(0.8,), (0.2,), (0.0,)])
    assert Dump().weights(more)[2] > weights[2]  # an arm that is not drawn gains as others are


def test_dump_remembers_the_last_advantages_and_counts_all() -> None:
    book = Dump(window=3).build(ARMS, seed=0)
    book.observe([learned("a", [0.5, -1.0, 0.25, -0.75])])
    assert book.standing.recent[0] == (1.0, 0.25, 0.75)
    assert book.standing.count.tolist() == [4, 0, 0]
    assert book.metrics()["curriculum/advantage/a/level_1"] > 0


def test_a_solved_group_that_was_left_out_counts_as_advantages_of_zero() -> None:
    book = Dump().build(ARMS, seed=0)
    book.observe([Outcome(group=group("a", 1.0, 1.0)), Outcome(group=group("b", 0.0, 1.0))])
    assert book.standing.recent == ((0.0, 0.0), (), ())  # of b nobody knows what its advantages would have been


def test_sec_is_one_move_per_batch_towards_the_mean_absolute_advantage() -> None:
    book = Sec(alpha=0.25).build(ARMS, seed=0)
    book.observe([learned("a", [1.0, -1.0]), learned("a", [0.5, -0.5]), learned("b", [0.0, 0.0])])
    np.testing.assert_allclose(book.standing.value, [0.25 * 0.75, 0.0, 0.0])
    newest = Sec(alpha=1.0).build(ARMS, seed=0)
    for size in (0.3, 0.9):
        newest.observe([learned("a", [size, -size])])
    assert newest.standing.value[0] == pytest.approx(0.9)  # with alpha 1, Q is the last u


def test_sec_finds_the_frontier() -> None:
    """Two arms with p = .5 and p = 1 go to Q = (1, 0) under advantages normalised by their deviation."""
    book = Sec(alpha=0.5).build({"a": (1,), "b": (1,)}, seed=0)
    for _ in range(20):
        book.observe([learned("a", [1.0, -1.0]), Outcome(group=group("b", 1.0, 1.0))])
    np.testing.assert_allclose(book.standing.value, [1.0, 0.0], atol=1e-5)
    unmoved = Sec().build({"a": (1,), "b": (1,)}, seed=0)
    before = unmoved.propensities.tolist()
    unmoved.observe([learned("a", [0.0, 0.0]), learned("b", [0.0, 0.0])])
    assert unmoved.propensities.tolist() == before


def test_rule_reasoner_by_its_sheet() -> None:
    """r = (.9, .5, .1) gives (.1284, .2739, .5977) in the paper's form."""
    weights = RuleReasoner().weights(standing([0.9, 0.5, 0.1], [1, 1, 1]))
    np.testing.assert_allclose(weights / weights.sum(), [0.1284, 0.2739, 0.5977], atol=5e-5)
    solved = RuleReasoner().weights(standing([1.0, 1.0, 1.0], [1, 1, 1]))
    assert len(set(solved.tolist())) == 1


def test_rule_reasoner_takes_the_first_batch_whole_and_keeps_unseen_domains() -> None:
    book = RuleReasoner(decay=0.5).build(ARMS, seed=0)
    book.observe([Outcome(group=group("a", 1.0, 0.0)), Outcome(group=group("a", 1.0, 1.0))])
    assert book.standing.success[0] == pytest.approx(0.75)
    book.observe([Outcome(group=group("a", 0.0, 0.0))])
    assert book.standing.success[0] == pytest.approx(0.375)
    assert (book.propensities > 0).all()
    assert book.propensities[1] == book.propensities[2] > book.propensities[0]


def test_rule_reasoner_draws_the_worst_cell_at_any_low_temperature() -> None:
    book = RuleReasoner(temperature=1e-3).build({"a": (1, 2)}, seed=0)
    book.load_state_dict({"turn": 0, "cells": [["a", 1, 0.0, 1, 0.0, 0.0, 1, []], ["a", 2, 0.5, 1, 0.5, 0.5, 1, []]]})
    np.testing.assert_allclose(book.propensities, [1.0, 0.0], atol=1e-12)


def drawn(book: CellBook, success: Mapping[str, float], n: int) -> list[Outcome]:
    """Outcomes of the next ``n`` draws, each group of 4 with its arm's share of right answers."""
    out: list[Outcome] = []
    for draw in book.draw(n):
        right = round(4 * success[draw.arm])
        made = group(draw.arm, *[1.0] * right, *[0.0] * (4 - right))
        out.append(Outcome(group=replace(made, draw=draw)))
    return out


def test_exp3_divides_by_the_probability_of_the_draw() -> None:
    """Gains of .75 (3 of 4 right): drawn with probability .25 one counts 3, with .75 it counts 1; G = (3, 1, 0)."""
    book = Exp3(gamma=0.5).build(ARMS, seed=0)
    for arm, propensity in (("a", 0.25), ("b", 0.75)):
        made = replace(group(arm, 1.0, 1.0, 1.0, 0.0), draw=Draw(arm, 1, propensity))
        book.observe([Outcome(group=made)])
    np.testing.assert_allclose(book.standing.value, [3.0, 1.0, 0.0])
    powers = np.exp(0.5 * np.array([3.0, 1.0, 0.0]) / 3)
    np.testing.assert_allclose(book.propensities, 0.5 * powers / powers.sum() + 0.5 / 3)
    assert book.metrics()["curriculum/gain/a/level_1"] == pytest.approx(3.0)
    assert book.standing.success[0] == pytest.approx(0.075)  # success is averaged as ever


@pytest.mark.slow
def test_exp3_estimates_all_cells_alike_however_the_draws_lean() -> None:
    """Cells of equal gain, one drawn nine times as often: per draw both gain as much, where the plain sums differ ninefold."""
    book = Exp3(gamma=0.2).build({"a": (1,), "b": (1,)}, seed=3)
    leaning = {"turn": 0, "cells": [["a", 1, 0.5, 1, 0.5, 21.972, 1, []], ["b", 1, 0.5, 1, 0.5, 0.0, 1, []]]}
    book.load_state_dict(leaning)
    before = book.standing.value.copy()
    assert book.propensities[0] == pytest.approx(0.82, abs=0.01)
    book.observe(drawn(book, {"a": 0.5, "b": 0.5}, 4000))
    gained = (book.standing.value - before) / 4000
    np.testing.assert_allclose(gained, [1.0, 1.0], atol=0.12)


def test_exp3_finds_the_frontier_and_comes_back_to_it() -> None:
    book = Exp3(gamma=0.2).build({"easy": (1,), "hard": (1,)}, seed=0)
    for _ in range(30):
        book.observe(drawn(book, {"easy": 0.5, "hard": 0.0}, 8))
    assert book.propensities[0] > 0.85 and book.propensities[1] >= 0.1
    for _ in range(150):
        book.observe(drawn(book, {"easy": 1.0, "hard": 0.5}, 8))
    assert book.propensities[1] > 0.85


def test_a_state_of_before_signals_loads() -> None:
    book: CellBook = Sec().build({"a": (1, 2)}, seed=0)
    book.load_state_dict({"turn": 3, "cells": [["a", 1, 0.5, 2, 0.25], ["a", 2, 0.75, 4, 0.75]]})
    assert book.standing.value.tolist() == [0.5, 0.75]
    assert book.standing.count.tolist() == [2, 4]
    again = Sec().build({"a": (1, 2)}, seed=0)
    again.load_state_dict(json.loads(canonical(book.state_dict())))
    assert again.state_dict() == book.state_dict()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Sec(alpha=0.0), "Sec.alpha=0.0"),
        (lambda: Sec(temperature=float("nan")), "Sec.temperature=nan"),
        (lambda: Dump(window=0), "Dump.window=0"),
        (lambda: RuleReasoner(decay=1.0), "RuleReasoner.decay=1.0"),
        (lambda: Exp3(gamma=0.0), "Exp3.gamma=0.0"),
        (lambda: Exp3(gamma=1.5), "Exp3.gamma=1.5"),
        (lambda: RuleReasoner(target=1.5), "RuleReasoner.target=1.5"),
    ],
)
def test_settings_out_of_range_are_refused(make: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()  # pyright: ignore[reportCallIssue]


def test_a_rule_without_weights_is_none() -> None:
    with pytest.raises(TypeError, match="abstract method weights"):
        CellRule()  # pyright: ignore[reportAbstractUsage]


def test_rule_reasoner_over_a_queue_weighs_the_last_batches_by_age() -> None:
    """Batches of mean .5, 0 and 1, newest last: harmonic (1 + 0/2 + .5/3) / (11/6) = 7/11, geometric (1 + .5/4) / 1.75 = 9/14."""
    cases: tuple[tuple[Literal["harmonic", "geometric"], float], ...] = (("harmonic", 7 / 11), ("geometric", 9 / 14))
    for fading, expected in cases:
        rule = RuleReasoner(queue=3, fading=fading)
        book = rule.build(ARMS, seed=0)
        for mean in (1.0, 0.5, 0.0, 1.0):  # the first leaves the queue
            values = (1.0,) * round(2 * mean) + (0.0,) * round(2 - 2 * mean)
            book.observe([Outcome(group=group("a", *values)), Outcome(group=group("a", *values))])
        np.testing.assert_allclose(faded_means(book.standing.recent, rule.fading), [expected, 0.0, 0.0])
        gaps = np.exp(np.array([1.0 - expected, 1.0, 1.0]) / 0.5) + 0.1  # one never seen has the whole gap
        np.testing.assert_allclose(book.propensities, gaps / gaps.sum())
        again = rule.build(ARMS, seed=0)
        again.load_state_dict(json.loads(json.dumps(book.state_dict())))
        np.testing.assert_array_equal(again.propensities, book.propensities)


def test_a_queue_needs_a_size_and_a_known_fading() -> None:
    with pytest.raises(ConfigError, match="queue=-1"):
        RuleReasoner(queue=-1)
    with pytest.raises(UnknownNameError, match="linear"):
        RuleReasoner(fading=cast("Any", "linear"))
