"""AceReason's recipe: the order of its stages, what each practises, and how."""

from __future__ import annotations

from typing import cast

from assay.guide import Rounds
from assay.recipes import ace_reason
from assay.train import Reinforce

STAGES = tuple(cast(Reinforce, stage) for stage in ace_reason().stages)


def test_mathematics_stands_before_code_and_behind_it() -> None:
    assert [next(iter(stage.levels)) for stage in STAGES] == ["sort", "sort", "sort", "reverse", "reverse", "sort"]
    assert [stage.schedules["max_new_tokens"].values for stage in STAGES] == [(n,) for n in (8.0, 11.0, 14.0, 11.0, 14.0, 14.0)]
    assert [stage.group_size for stage in STAGES] == [8, 16, 16, 8, 16, 16]
    assert all(stage.updates == 1 for stage in STAGES)  # strictly on policy


def test_prompts_solved_more_than_six_of_sixteen_times_are_left_out() -> None:
    rounds = [stage.curriculum for stage in STAGES if isinstance(stage.curriculum, Rounds)]
    assert [(r.low, r.high) for r in rounds] == [(0.0, 6 / 16), (0.0, 15 / 16), (0.0, 6 / 16)]
    book = rounds[0].build({"sort": (3,)}, seed=0)
    for row in range(16):
        book._rated[row], book._right[row], book.visits[row] = 1, row / 16, 1  # row k is solved k of 16 times
    rounds[0].advance(book)
    assert book.active.tolist() == [row <= 6 for row in range(16)]


def test_code_has_a_temperature_that_rises_and_five_times_the_rate() -> None:
    first, second = STAGES[3].schedules, STAGES[4].schedules
    assert first["temperature"].at(9, {}) == 0.6
    assert [second["temperature"].at(step, {}) for step in (0, 20, 40)] == [0.6, 0.8, 1.0]
    assert [second["group_size"].at(step, {}) for step in (0, 19, 20)] == [8.0, 8.0, 16.0]
    assert not any("temperature" in stage.schedules for stage in STAGES if "sort" in stage.levels)
    rates = [stage.learner.optimizer.lr for stage in STAGES]
    assert rates == [1e-4] * 3 + [5e-4] * 2 + [1e-4]
