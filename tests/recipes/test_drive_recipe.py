"""DRIVE's recipe: which rows stand twice, and what each phase practises."""

from __future__ import annotations

from collections import Counter

from assay.guide import HardFocus, Uniform
from assay.recipes import double_hard, drive
from assay.train import Imitate, Reinforce


def test_hard_prompts_stand_twice_and_no_others() -> None:
    taught = drive().stages[0]
    assert isinstance(taught, Imitate) and isinstance(taught.data, tuple)
    times = Counter(row["prompt"] for row in taught.data)
    level = {row["prompt"]: row["level"] for row in taught.data}
    plain = Counter(level.values())
    assert set(level.values()) == {4, 5, 6} and plain[6] > 40
    # A prompt may be drawn twice by itself: counts by level are exact.
    rows = Counter(row["level"] for row in taught.data)
    assert (rows[4], rows[5], rows[6]) == (60, 60, 120)
    assert all(n % 2 == 0 for prompt, n in times.items() if level[prompt] == 6)
    assert double_hard([{"kind": "a"}, {"kind": "b"}], hard=("a",), field="kind") == ({"kind": "a"}, {"kind": "b"}, {"kind": "a"})


def test_the_phases_are_of_the_paper() -> None:
    _, wide, focus = drive(seed=3).stages
    assert isinstance(wide, Reinforce) and isinstance(focus, Reinforce)
    assert isinstance(wide.curriculum, Uniform) and (wide.steps, wide.group_size) == (32, 8)
    assert wide.schedules["max_new_tokens"].values == (11.0,) and not focus.schedules  # longer answers behind
    assert focus.group_size == 64 and isinstance(focus.curriculum, HardFocus)
    assert focus.curriculum.sizes == (72, 50, 25) and focus.curriculum.batches == (64, 32, 32)
    levels = len(drive().tasks.arms()["sort"])
    met = focus.curriculum.pool * levels // focus.groups
    assert focus.curriculum.pool * levels == 176 and focus.steps == met + 64 + 32 + 32
