"""A first look at drawn tasks, before any rollout of them is sampled: the policy's greedy answer, not learned from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from assay.core.task import Task
from assay.core.timing import span
from assay.guide import plain_context
from assay.train.evaluate import greedy as most_likely
from assay.train.scoring import grade_rollouts

if TYPE_CHECKING:
    from assay.train.reinforce_runner import ReinforceRunner

__all__ = ["screen_tasks"]


async def screen_tasks(s: ReinforceRunner, tasks: Sequence[Task], first: int) -> list[int]:
    """Which of the tasks are rolled out, by the stage's screen; all of them without one.

    Args:
        s: the stage at work.
        tasks: as they were drawn.
        first: number of the first task in its step.
    """
    screen = s.stage.screen
    if screen is None:
        return list(range(len(tasks)))
    keys = [f"s{s.parts.step}/{first + i}/greedy" for i in range(len(tasks))]
    posed = [(task, plain_context(task, key)) for task, key in zip(tasks, keys, strict=True)]
    with span("generate"):
        player = s.parts.player(replace(most_likely(s.parts.run.sampling), max_new_tokens=s.sampling.max_new_tokens))
        rollouts = await player.collect([context for _, context in posed], 1)
    with span("score"):
        graded = await grade_rollouts(s, posed, rollouts)
    kept = [i for i, (task, found) in enumerate(zip(tasks, graded, strict=True)) if screen.keep_task(task, found.scores[0])]
    s.screened += len(tasks) - len(kept)
    return kept
