"""Balanced parts: shares by hand, members that are not practised, and the laws of every curriculum."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from assay.core.canon import FrozenMap
from assay.core.config import dumps_toml, from_dict, loads_toml, to_dict
from assay.core.errors import ConfigError, UnknownNameError
from assay.core.task import Task
from assay.guide import Balanced, CellBook, CellRule, Frontier, Standing, SuccessVariance, Uniform
from assay.testing import as_outcomes, check_curriculum, graded_group

PARTS = {"sums": ("add", "times"), "words": ("spell/short", "spell")}
ARMS = {"add/a": (1, 2), "add/b": (1,), "times": (1,), "spell/short": (1, 2, 3), "spell/long": (2,), "spell/odd": (1,)}


def shares(curriculum: CellBook) -> dict[tuple[str, int], float]:
    return dict(zip(curriculum.cells, curriculum.propensities.tolist(), strict=True))


@pytest.mark.parametrize(
    "spec", [Balanced(parts=PARTS), Balanced(parts=PARTS, rule=SuccessVariance()), Balanced(parts=PARTS, shares={"sums": 3.0})]
)
def test_it_keeps_the_laws_of_curricula(spec: Balanced) -> None:
    check_curriculum(spec, ARMS, seed=3)


def test_shares_by_hand() -> None:
    """Two parts of a half, in each two members of a quarter; an arm is its own member before its family's."""
    assert shares(Balanced(parts=PARTS, rule=Uniform()).build(ARMS, 0)) == pytest.approx(
        {
            ("add/a", 1): 1 / 12,
            ("add/a", 2): 1 / 12,
            ("add/b", 1): 1 / 12,
            ("times", 1): 1 / 4,
            ("spell/short", 1): 1 / 12,
            ("spell/short", 2): 1 / 12,
            ("spell/short", 3): 1 / 12,
            ("spell/long", 2): 1 / 8,
            ("spell/odd", 1): 1 / 8,
        }
    )
    weighed = shares(Balanced(parts=PARTS, rule=Uniform(), shares={"words": 3.0}).build(ARMS, 0))
    assert weighed["times", 1] == pytest.approx(1 / 8) and weighed["spell/odd", 1] == pytest.approx(3 / 16)


def test_the_rule_weighs_within_a_member() -> None:
    """Of add, each arm has a half of its quarter, and its frontier begins at level 1."""
    curriculum = Balanced(parts=PARTS, rule=Frontier(floor=0.2)).build(ARMS, 0)
    assert (shares(curriculum)["add/a", 1], shares(curriculum)["add/a", 2]) == pytest.approx((1 / 8, 0.0))
    task = Task(id="t", domain="d", arm="add/a", level=1, split="train", index=0, public=FrozenMap({"prompt": "?"}))
    curriculum.observe(as_outcomes([graded_group(task, [1.0, 1.0])] * 8))
    assert 0.0 < shares(curriculum)["add/a", 1] < shares(curriculum)["add/a", 2]
    assert sum(p for (arm, _), p in shares(curriculum).items() if arm.startswith("add/")) == pytest.approx(0.25)


def test_what_is_not_practised_leaves_its_share_to_others() -> None:
    spec = Balanced(parts=PARTS, rule=Uniform())
    assert shares(spec.build({"times": (1,), "spell/odd": (1,)}, 0)) == {("spell/odd", 1): 0.5, ("times", 1): 0.5}
    assert shares(spec.build({"add/a": (1,), "times": (1,)}, 0)) == {("add/a", 1): 0.5, ("times", 1): 0.5}


class Picky(CellRule):
    """Weighs one arm alone."""

    def weights(self, standing: Standing) -> NDArray[np.float64]:
        return np.array([float(arm == "times") for arm, _ in standing.cells])


def test_members_without_weight_are_left_out() -> None:
    assert shares(Balanced(parts=PARTS, rule=Picky()).build(ARMS, 0))["times", 1] == 1.0


@given(st.lists(st.floats(0.0, 1.0), min_size=9, max_size=9), st.floats(0.1, 10.0))
def test_each_part_has_its_share_whatever_succeeds(success: list[float], share: float) -> None:
    spec = Balanced(parts=PARTS, rule=SuccessVariance(), shares={"words": share})
    cells = tuple((arm, level) for arm in sorted(ARMS) for level in ARMS[arm])
    found, ones = np.array(success), np.ones(9, np.int64)
    standing = Standing(cells, found, found, ones, found, ones, ((),) * 9)
    sums: dict[str, float] = defaultdict(float)
    for (arm, _), weight in zip(cells, spec.weights(standing), strict=True):
        sums[spec.part(arm)[0]] += weight
    assert dict(sums) == pytest.approx({"sums": 1.0, "words": share})


def test_it_is_written_and_read() -> None:
    spec = Balanced(parts=PARTS, rule=Frontier(start={"times": 1}), shares={"sums": 2.0})
    assert from_dict(Balanced, loads_toml(dumps_toml(to_dict(spec)))) == spec and hash(spec)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"parts": {}}, "name at least one part"),
        ({"parts": {"a": ()}}, "members of each"),
        ({"parts": {"a": ("x",), "b": ("x", "y")}}, r"name \['x'\] twice"),
        ({"parts": {"a": ("x",)}, "shares": {"b": 1.0}}, "unknown part at Balanced.shares 'b'"),
        ({"parts": {"a": ("x",)}, "shares": {"a": 0.0}}, "a share is a positive number"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises((ConfigError, UnknownNameError), match=said):
        Balanced(**settings)


def test_arms_without_a_part_and_what_the_rule_refuses() -> None:
    with pytest.raises(ConfigError, match="neither the arm 'knots/a' nor its family; put it in one of"):
        Balanced(parts=PARTS).build({"knots/a": (1,)}, 0)
    with pytest.raises(ConfigError, match="has no level 9 here"):
        Balanced(parts=PARTS, rule=Frontier(start={"times": 9})).build(ARMS, 0)
