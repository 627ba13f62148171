"""The frontier: shares by hand, when it moves, that it never falls back, and that a resume goes on with it."""

import json
from typing import Any

import numpy as np
import pytest

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError
from assay.core.group import Group
from assay.core.task import Task
from assay.guide import CellBook, Frontier
from assay.testing import as_outcomes, check_curriculum, graded_group

ARMS = {"sort": (3, 4, 5, 6), "walk": (1, 2)}


def group(arm: str, level: int, *values: float) -> Group:
    task = Task(id=f"{arm}/{level}", domain="d", arm=arm, level=level, split="train", index=0, public=FrozenMap({"prompt": "?"}))
    return graded_group(task, values)


def shares(curriculum: CellBook) -> dict[tuple[str, int], float]:
    return dict(zip(curriculum.cells, curriculum.propensities.tolist(), strict=True))


def frontiers(curriculum: CellBook, rule: Frontier) -> dict[str, int]:
    return rule.frontiers(curriculum.standing)


@pytest.mark.parametrize("spec", [Frontier(), Frontier(start={"sort": 5}), Frontier(reserve=0.0, floor=1.0, settle=1)])
def test_it_keeps_the_laws_of_curricula(spec: Frontier) -> None:
    check_curriculum(spec, ARMS, seed=3)


def test_shares_by_hand() -> None:
    """Arms share evenly; levels 3 and 4 weigh 4 x .5 x .5 + .2 = 1.2 each."""
    curriculum = Frontier(start={"sort": 4}, floor=0.2, decay=0.5).build(ARMS, seed=0)
    assert shares(curriculum) == pytest.approx(
        {
            ("sort", 3): 0.25,
            ("sort", 4): 0.25,
            ("sort", 5): 0.0,
            ("sort", 6): 0.0,
            ("walk", 1): 0.5,
            ("walk", 2): 0.0,
        }
    )
    curriculum.observe(as_outcomes([group("sort", 3, 1.0), group("sort", 4, 0.0, 0.0, 0.0, 0.0)]))
    curriculum.observe(as_outcomes([group("sort", 4, 0.0)] * 3))
    # p of level 3 is .75, which weighs .95; that of level 4 is 1/32, which weighs .2 + 31/256 = .3211 and, as the frontier, .5
    assert shares(curriculum)["sort", 4] == pytest.approx(0.5 * 0.5 / 1.45)
    without = Frontier(start={"sort": 4}, floor=0.2, decay=0.5, reserve=0.0).build(ARMS, seed=0)
    without.load_state_dict(curriculum.state_dict())
    assert shares(without)["sort", 4] == pytest.approx(0.5 * (0.2 + 31 / 256) / (0.95 + 0.2 + 31 / 256))


def test_it_moves_up_after_enough_groups_and_never_down() -> None:
    rule = Frontier(start={"sort": 4}, settle=3, decay=0.5, unlock=0.7)
    curriculum = rule.build(ARMS, seed=0)
    assert frontiers(curriculum, rule) == {"sort": 4, "walk": 1}
    curriculum.observe(as_outcomes([group("sort", 4, 1.0), group("sort", 4, 1.0)]))  # .875, but only two groups
    assert frontiers(curriculum, rule)["sort"] == 4
    curriculum.observe(as_outcomes([group("sort", 4, 0.0)]))  # three groups, and .4375
    assert frontiers(curriculum, rule)["sort"] == 4
    curriculum.observe(as_outcomes([group("sort", 4, 1.0)]))  # .71875
    assert frontiers(curriculum, rule)["sort"] == 5
    curriculum.observe(as_outcomes([group("sort", 4, 0.0)] * 9))
    assert frontiers(curriculum, rule) == {"sort": 5, "walk": 1}
    for level in (5, 6):
        curriculum.observe(as_outcomes([group("sort", level, 1.0)] * 3))
    assert frontiers(curriculum, rule)["sort"] == 6  # the last one stays


def test_levels_below_the_start_need_not_succeed() -> None:
    rule = Frontier(start={"sort": 5})
    assert frontiers(rule.build(ARMS, seed=0), rule) == {"sort": 5, "walk": 1}


def test_an_arm_of_one_level_has_all_of_its_share() -> None:
    assert Frontier().build({"a": (1,), "b": (2,)}, seed=0).propensities.tolist() == [0.5, 0.5]


def test_a_resume_goes_on_at_the_frontier() -> None:
    rule = Frontier(settle=1, decay=0.0)
    one, two = rule.build(ARMS, seed=5), rule.build(ARMS, seed=5)
    one.observe(as_outcomes([group("sort", 3, 1.0)]))
    one.observe(as_outcomes([group("sort", 3, 0.0)]))
    two.load_state_dict(json.loads(json.dumps(one.state_dict())))
    assert frontiers(two, rule) == frontiers(one, rule) == {"sort": 4, "walk": 1}
    assert np.array_equal(one.propensities, two.propensities)
    assert one.draw(20) == two.draw(20)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"floor": 0.0}, "floor must be > 0"),
        ({"decay": 1.0}, "decay must be in"),
        ({"unlock": 0.0}, "unlock=0.0 must be in"),
        ({"reserve": -0.5}, "reserve=-0.5 at least 0"),
        ({"settle": 0}, "settle=0"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Frontier(**settings)


@pytest.mark.parametrize("start", [{"srot": 3}, {"sort": 9}])
def test_a_start_that_is_not_there_is_refused(start: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="has no level"):
        Frontier(start=start).build(ARMS, seed=0)
