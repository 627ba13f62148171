"""Values of schedules, computed by hand, and what they refuse."""

from __future__ import annotations

import json
from typing import Any

import pytest

from assay.core import ScheduleSpec
from assay.core.config import dumps_toml, from_dict, loads_toml, to_dict
from assay.core.errors import ConfigError
from assay.guide import Piecewise, Ramp, WhenFlat, WhenReached


def test_a_piecewise_schedule_holds_each_value_until_the_next_point() -> None:
    spec = Piecewise(points=((0, 4), (3, 8), (7, 2)))
    assert [spec.at(step, {}) for step in range(9)] == [4, 4, 4, 8, 8, 8, 8, 2, 2]
    assert spec.values == (4.0, 8.0, 2.0) and spec.reads == () and spec.init() == {}
    assert spec.advance({}, {"reward/mean": 1.0}) == {}
    assert spec.describe() == "4 from step 0, 8 from step 3, 2 from step 7"


def test_a_ramp_is_linear_between_its_points_and_constant_behind_them() -> None:
    spec = Ramp(points=((0, 1.0), (4, 2.0), (6, 0.5)))
    assert [spec.at(step, {}) for step in range(8)] == [1.0, 1.25, 1.5, 1.75, 2.0, 1.25, 0.5, 0.5]
    assert spec.describe() == "1 at step 0, to 2 at step 4, to 0.5 at step 6"
    assert Ramp(points=((0, 0.7),)).at(99, {}) == 0.7


def test_the_next_value_comes_when_a_metric_has_satisfied_its_bound_often_enough() -> None:
    spec = WhenReached(metric="reward/mean", at_least=0.5, values=(4, 8, 16), patience=2)
    state, seen = spec.init(), list[float]()
    #                 met 1, lost,  met 1, met 2, absent, met 1, met 2, met 1, met 2
    for value in (0.5, 0.4, 0.6, 0.5, None, 0.9, 0.9, 1.0, 1.0):
        seen.append(spec.at(0, state))
        state = spec.advance(json.loads(json.dumps(state)), {} if value is None else {"reward/mean": value})
    assert seen == [4, 4, 4, 4, 8, 8, 8, 16, 16]
    assert spec.at(0, state) == 16  # behind the last value it stays
    assert spec.describe() == "4, then 8, then 16: the next when reward/mean is at least 0.5 2 times in a row"


def test_a_step_without_the_metric_counts_neither_for_nor_against() -> None:
    spec = WhenReached(metric="a", at_most=0.0, values=(1, 2), patience=2)
    state = spec.advance(spec.init(), {"a": -1.0})
    assert spec.advance(state, {"b": 5.0}) == state == {"index": 0, "met": 1}
    assert spec.at(0, spec.advance(state, {"a": 0.0})) == 2


def test_two_bounds_are_a_range() -> None:
    spec = WhenReached(metric="a", at_least=1.0, at_most=2.0, values=(1, 2, 3))
    state = spec.init()
    for value in (0.9, 2.1, 1.0, 2.0):
        state = spec.advance(state, {"a": value})
    assert spec.at(0, state) == 3
    assert spec.describe() == "1, then 2, then 3: the next when a is at least 1 and at most 2"


def test_the_next_value_comes_when_a_metric_no_longer_grows() -> None:
    spec = WhenFlat(metric="length/mean", values=(8, 16, 24), window=2, tolerance=0.05)
    state, seen = spec.init(), list[float]()
    # windows 100 200 | 300 320, 200 300 | 320 310 grow; 300 320 | 310 315 grows by 2.5 of 310, at most 15.5: flat
    for value in (100, 200, 300, None, 320, 310, 315, 400, 400, 410, 430, 100):
        seen.append(spec.at(0, state))
        state = spec.advance(json.loads(json.dumps(state)), {} if value is None else {"length/mean": value})
    # counted anew: 400 400 | 410 430 grows by exactly 20 of 400, which is no more than 5 in a hundred
    assert seen == [8, 8, 8, 8, 8, 8, 8, 16, 16, 16, 16, 24]
    assert state == {"index": 2, "seen": []} and spec.at(0, state) == 24  # behind the last value it stays
    assert spec.describe() == "8, then 16, then 24: the next when length/mean has grown by at most 0.05 of itself over 2 steps"


def test_growth_is_measured_by_the_size_of_the_level_and_a_fall_is_no_growth() -> None:
    spec = WhenFlat(metric="reward/mean", values=(1, 2), window=1, tolerance=0.5)
    grown = spec.advance(spec.advance(spec.init(), {"reward/mean": -2.0}), {"reward/mean": -0.9})
    assert spec.at(0, grown) == 1  # by 1.1, more than half of 2
    fallen = spec.advance(spec.advance(spec.init(), {"reward/mean": 2.0}), {"reward/mean": 1.0})
    assert spec.at(0, fallen) == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"values": ()}, r"WhenFlat.values=\(\) is empty"),
        ({"window": 0}, "WhenFlat.window=0"),
        ({"tolerance": -0.1}, "WhenFlat.tolerance=-0.1"),
        ({"metric": "time/step"}, "WhenFlat.metric='time/step'"),
    ],
)
def test_a_schedule_by_growth_refuses_what_it_cannot_do(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        WhenFlat(**({"metric": "length/mean", "values": (1, 2)} | changes))


@pytest.mark.parametrize("spec", [Piecewise(points=((0, 1), (2, 3))), WhenReached(metric="a", at_most=1.0, values=(1, 2))])
def test_schedules_come_back_from_a_file(spec: Any) -> None:
    assert isinstance(spec, ScheduleSpec)
    assert from_dict(Any, loads_toml(dumps_toml(to_dict(spec)))) == spec
    assert Piecewise(points=((0, 1), (2, 3))) == Piecewise(points=[[0, 1.0], [2, 3.0]])  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [Piecewise, Ramp])
@pytest.mark.parametrize(
    ("points", "text"),
    [
        ((), r"points=\(\) is empty; give at least one value"),
        ((5, 1.0), r"a point is a pair of a step and a value, as in \w+\(points"),
        (((0, 1.0, 2.0),), "a point is a pair"),
        (((1, 1.0),), "no value is said for the steps before 1; begin with step 0"),
        (((0, 1.0), (5, 2.0), (3, 1.0)), r"the steps \[0, 5, 3\] do not ascend; sort them"),
        (((0, 1.0), (0, 2.0)), "do not ascend"),
        (((0, 1.0), (2.5, 2.0)), "steps are whole numbers"),
        (((0, float("nan")),), "nan is no finite number"),
        (((0, "hot"),), "'hot' is no finite number"),
    ],
)
def test_points_that_say_no_schedule_are_refused(kind: Any, points: Any, text: str) -> None:
    with pytest.raises(ConfigError, match=f"{kind.__name__}.*{text}"):
        kind(points=points)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"values": ()}, r"WhenReached.values=\(\) is empty"),
        ({"values": (1, float("inf"))}, "inf is no finite number"),
        ({"at_least": None}, "has no bound; give at_least, at_most, or both"),
        ({"at_least": 2.0, "at_most": 1.0}, "no metric satisfies both; swap them"),
        ({"patience": 0}, "WhenReached.patience=0"),
        ({"metric": "time/step"}, "'time/step': seconds and counts of the pool differ"),
        ({"metric": "verify/hung"}, "use another metric"),
        ({"metric": ""}, "use another metric"),
    ],
)
def test_what_could_never_move_on_is_refused(changes: Any, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        WhenReached(**({"metric": "reward/mean", "at_least": 0.5, "values": (1, 2)} | changes))
