"""The user's own data and reward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from assay.core.rollout import Sampling
from assay.objective.loss.aggregate import Token
from assay.objective.methods import grpo
from assay.recipes.sorting import base
from assay.runtime.settings import AdamW, LearnerSettings, LearningRateSchedule
from assay.tasks import Rows
from assay.tasks.rewards import Reward
from assay.train.models import Built, Folder
from assay.train.reinforce import Reinforce
from assay.train.run import Evaluation, Run

__all__ = ["on_rows"]


def on_rows(
    rows: Sequence[Mapping[str, Any]],
    reward: Reward | None = None,
    *,
    model: str = "base",
    steps: int = 100,
    max_new_tokens: int = 16,
    seed: int = 0,
) -> Run:
    """GRPO on rows ``{"prompt": ..., "answer": ...}``.

    Args:
        rows: the data; see `assay.tasks.Rows` for the fields.
        reward: ``reward(prompt, completion, row) -> float``, or what else `assay.tasks.Rows` takes, also several by name; without
            one, the answer must match exactly.
        model: a model folder in Hugging Face format, a finished run's folder, or ``"base"``, the embedded base.
        steps: rollout batches of 16 prompts x 8 attempts.
        max_new_tokens: cut-off of an answer.
        seed: all randomness derives from it.

    Raises:
        DataError: a row is wrong; names its number and field.

    >>> run = on_rows([{"prompt": "S21>", "answer": "12"}, {"prompt": "S31>", "answer": "13"}], steps=3)
    >>> run.steps, run.stages[0].group_size
    (3, 8)
    """
    schedule = LearningRateSchedule(kind="linear", start=0.5, floor=0.1)
    return Run(
        name="rows",
        seed=seed,
        model=Built(run=base(seed)) if model == "base" else Folder(model),
        tasks=Rows(rows, reward=reward),
        stages=(
            Reinforce(
                steps=steps,
                groups=16,
                group_size=8,
                objective=replace(grpo(kl=0.0), aggregate=Token()),
                learner=LearnerSettings(optimizer=AdamW(lr=5e-4), schedule=schedule),
            ),
        ),
        sampling=Sampling(max_new_tokens=max_new_tokens),
        evaluation=Evaluation(every=20, final_per_level=128),
    )
