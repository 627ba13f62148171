"""DRIVE on digit sorting: supervised with hard prompts doubled, all lengths evenly, then the hardest rows, in phases."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from assay.core.rollout import Sampling
from assay.guide import HardFocus, Piecewise, Uniform
from assay.recipes.embedded_stages import grpo_stage
from assay.recipes.sorting import base
from assay.runtime.settings import AdamW, LearnerSettings, LearningRateSchedule
from assay.train.imitate import Imitate
from assay.train.models import Built
from assay.train.run import Evaluation, Run
from assay_tasks import SortDigits

__all__ = ["double_hard", "drive"]

TAUGHT, HARD = (4, 5, 6), (6,)
"""Lengths that the supervised stage shows, and those of them that it shows twice."""


def double_hard(rows: Sequence[Mapping[str, Any]], hard: Collection[Any], field: str = "level") -> tuple[Mapping[str, Any], ...]:
    """The rows, and those once more whose ``field`` is one of ``hard``: DRIVE's supervised stage sees hard prompts twice.

    >>> [row["level"] for row in double_hard([{"level": 1}, {"level": 2}], hard={2})]
    [1, 2, 2]
    """
    return (*rows, *(row for row in rows if row[field] in hard))


def drive(seed: int = 0) -> Run:
    """The recipe of DRIVE (arXiv 2511.06307) on a model of a third of a million weights; about 20 CPU-seconds behind its base.

    1. Supervised on right answers of 4 to 6 digits, those of 6 twice.
    2. Entropy expansion: 32 steps on all lengths evenly, 8 rollouts a prompt, answers of at most 11 tokens.
    3. Hard focus: answers of up to 14 tokens and 64 rollouts a prompt on 176 rows, 22 of each length; when each was met, the 72
       of lowest success for 64 steps, of these 50 for 32, of these 25 for 32, ranked anew each time (`assay.guide.HardFocus`):
       ``max p`` of the rows that stay is at most ``min p`` of those that go, ``p <= q``, and ``S_1 > S_2 > S_3`` are nested.

    UNSURE: the rollouts of the last stage (its text says 64 and 80), and what counts as a hard prompt in the first.
    """
    family = SortDigits()
    tasks = [family.task("sort", level, "train", i) for level in TAUGHT for i in range(60)]
    rows = [{"prompt": t.public["prompt"], "completion": t.private["answer"], "level": t.level} for t in tasks]
    gentle = LearnerSettings(optimizer=AdamW(lr=5e-4), schedule=LearningRateSchedule(kind="linear", start=0.5, floor=0.1))
    taught = Imitate(data=double_hard(rows, HARD), steps=40, learner=gentle)
    expansion = replace(
        grpo_stage(steps=32, groups=32), curriculum=Uniform(), schedules={"max_new_tokens": Piecewise(points=((0, 11),))}
    )
    focus = replace(
        grpo_stage(steps=172, groups=4),
        group_size=64,
        curriculum=HardFocus(pool=22, warm=1, sizes=(72, 50, 25), batches=(64, 32, 32)),
    )
    return Run(
        name="drive",
        seed=seed,
        model=Built(run=base(seed)),
        tasks=family,
        stages=(taught, expansion, focus),
        sampling=Sampling(max_new_tokens=14),
        evaluation=Evaluation(every=50),
    )
