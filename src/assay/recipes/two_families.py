"""AceReason's order on two small families: one after the other, in stages of length, temperature and group size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from assay.core.protocols import ScheduleSpec
from assay.core.rollout import Sampling
from assay.guide import Piecewise, Ramp, Rounds
from assay.recipes.embedded_stages import grpo_stage, warm_up_stage
from assay.runtime.settings import AdamW, DecoderShape, LearnerSettings
from assay.tasks import TaskMixture
from assay.train.models import Built, Scratch
from assay.train.reinforce import Reinforce
from assay.train.run import Evaluation, Run
from assay_tasks import Reverse, SortDigits

__all__ = ["ace_reason", "ace_reason_base", "ace_reason_tasks"]

SHOWN = {"sort": (3, 4, 5), "reverse": (2, 3, 4, 5)}
"""What the base is shown of each family."""


def ace_reason_tasks() -> TaskMixture:
    """Digits to be sorted, in the place of mathematics, and words to be reversed, in that of code.

    >>> dict(ace_reason_tasks().arms())
    {'sort': (3, 4, 5, 6, 7, 8, 9, 10), 'reverse': (2, 3, 4, 5, 6, 7, 8)}
    """
    return TaskMixture(name="sort-reverse", sources=(SortDigits(), Reverse(levels=(2, 3, 4, 5, 6, 7, 8))))


def ace_reason_base(seed: int = 0) -> Run:
    """0.34M parameters, supervised on traces of both families' shortest tasks, in the place of the distilled model."""
    return Run(
        name="base-ace-reason",
        seed=seed,
        model=Scratch(shape=DecoderShape(rope_pairs=4), seed=seed),
        tasks=ace_reason_tasks(),
        stages=(replace(warm_up_stage(steps=700, demonstrations=0, levels=(), noise=0.15), levels=SHOWN),),
        sampling=Sampling(max_new_tokens=14),
        evaluation=Evaluation(every=0),
        checkpoint_every=200,
    )


def ace_reason(seed: int = 0) -> Run:
    """The stages of AceReason (arXiv 2505.16400): one update per batch, no KL and no entropy term, averaged over tokens.

    - Mathematics: answers of 8, then 11, then 14 tokens (there 8, 16 and 24 thousand), 8 rollouts of a prompt and 16 from the
      second stage on. From the third on prompts that the present policy solves more than 6 of 16 times are left out: rounds in
      which it tries all rows, then practises the others.
    - Code: answers of 11 tokens (24 thousand), temperature 0.6, 8 rollouts, of the shorter levels, which stand for the items that
      a strong model fails at most 5 of 8 times; then all levels with 14 tokens (32 thousand), temperature from 0.6 to 1, 8, then
      16 rollouts, and rounds that leave out what is solved always. Its learning rate is five times that of mathematics.
    - Mathematics once more with 14 tokens.

    Every evaluation is of both families, and the doctor's rule ``HeldOutDropped`` raises an alarm when one of them falls. UNSURE:
    the number of steps of each stage, and when a prompt of code counts as easy.
    """
    tasks = ace_reason_tasks()
    arms = tasks.arms()
    hard = Rounds(pool=16, batches=20, low=0.0, high=6 / 16)
    unsolved = Rounds(pool=16, batches=20, low=0.0, high=15 / 16)
    code = {"reverse": arms["reverse"]}
    sums = {"sort": arms["sort"]}
    warmer = Ramp(points=((0, 0.6), (40, 1.0)))
    return Run(
        name="ace-reason",
        seed=seed,
        model=Built(run=ace_reason_base(seed)),
        tasks=tasks,
        stages=(
            _stage(30, 8, levels=sums),
            _stage(30, 11, levels=sums, group_size=16),
            _stage(40, 14, levels=sums, group_size=16, curriculum=hard),
            _stage(30, 11, Piecewise(points=((0, 0.6),)), rate=5e-4, levels={"reverse": arms["reverse"][:5]}),
            _stage(
                40, 14, warmer, Piecewise(points=((0, 8), (20, 16))), rate=5e-4, levels=code, group_size=16, curriculum=unsolved
            ),
            _stage(30, 14, levels=sums, group_size=16, curriculum=hard),
        ),
        sampling=Sampling(max_new_tokens=14),
        evaluation=Evaluation(every=20),
    )


def _stage(
    steps: int,
    length: int,
    temperature: ScheduleSpec | None = None,
    sizes: ScheduleSpec | None = None,
    rate: float = 1e-4,
    **changes: Any,
) -> Reinforce:
    """A stage with answers of at most ``length`` tokens."""
    given = {"max_new_tokens": Piecewise(points=((0, length),)), "temperature": temperature, "group_size": sizes}
    return replace(
        grpo_stage(steps=steps, groups=16),
        learner=LearnerSettings(optimizer=AdamW(lr=rate)),
        schedules={name: spec for name, spec in given.items() if spec is not None},
        **changes,
    )
