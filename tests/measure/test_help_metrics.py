"""How many rollouts had help, and how they and the others succeeded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.core import FrozenMap, Group, Score, Task
from assay.core.protocols import Moment
from assay.core.score import Fault
from assay.core.task import Context, Prefill
from assay.guide import GuideHint, Pope, Privileged, ShuffledEvents, plain_context
from assay.measure.help_metrics import had_help, help_metrics
from assay.measure.metrics import group_metrics
from assay.testing import graded_group


def task(level: int) -> Task:
    public, private = FrozenMap({"prompt": "- a\n- b\n?"}), FrozenMap({"solution": "12"})
    return Task(id=f"t{level}", domain="d", arm="x", level=level, split="train", index=0, public=public, private=private)


def group(context: Context, level: int, *values: float | Score) -> Group:
    made = graded_group(task(level), list(values), key=context.key)
    return replace(made, rollouts=tuple(replace(r, context=context) for r in made.rollouts))


def test_a_hint_a_prefix_and_a_state_are_help_and_nothing_else_is() -> None:
    plain = plain_context(task(1), "k")
    (hinted,) = GuideHint().next(task(1), [group(plain, 1, 0.0)], Moment(key="k"))
    (taught,) = Privileged().next(task(1), [], Moment(key="k"))
    _, shuffled = ShuffledEvents().next(task(1), [], Moment(key="k"))
    assert had_help(hinted.context) and had_help(replace(plain, prefill=Prefill("1"))) and had_help(replace(plain, snapshot={}))
    assert not any(map(had_help, (plain, taught.context, shuffled.context, replace(plain, prefill=Prefill("1", 0.0)))))


def test_success_with_and_without_help_by_level() -> None:
    plain, begun = plain_context(task(1), "k"), plain_context(task(1), "p", Prefill("12", 0.5))
    fault = Score(components={}, fault=Fault.INFRA)
    found = help_metrics(
        [group(plain, 1, 0.0, 0.0), group(begun, 1, 1.0, 0.0, fault), group(plain_context(task(2), "l"), 2, 1.0)]
    )
    assert found["help/share"] == pytest.approx(3 / 6)
    assert (found["help/success"], found["help/success_without"]) == pytest.approx((0.5, 1 / 3))
    assert (found["help/share/x/level_1"], found["help/success_without/x/level_1"]) == pytest.approx((0.6, 0.0))
    assert found["help/share/x/level_2"] == 0.0 and found["help/prefix"] == 0.5
    assert found["help/success/x/level_2"] != found["help/success/x/level_2"]  # nothing there had help
    assert "help/success/x/level_2" not in group_metrics([group(begun, 1, 1.0), group(plain_context(task(2), "l"), 2, 1.0)])


def test_without_guidance_there_are_no_such_numbers() -> None:
    assert help_metrics([group(plain_context(task(1), "k"), 1, 1.0)]) == {}
    assert not any(name.startswith("help/") for name in group_metrics([group(plain_context(task(1), "k"), 1, 1.0)]))


def test_a_prefix_is_a_share_of_the_solution_however_it_was_cut() -> None:
    (half,) = (p for p in Pope(shares=(0.5,), text="").build(0).next(task(1), [], Moment(key="k")) if p.context.prefill)
    assert half.context.prefill == Prefill("1"), "cut by characters before, all of it given"
    assert help_metrics([group(half.context, 1, 1.0)])["help/prefix"] == 0.5
    stored = plain_context(task(1), "s", Prefill("other", 0.25))
    assert help_metrics([group(stored, 1, 1.0)])["help/prefix"] == 0.25
