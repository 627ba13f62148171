"""Rewards of which none ever gives a verdict: the others are learned from, and a weight that was given counts for nothing."""

from __future__ import annotations

from collections.abc import Sequence

from assay.core.group import Group
from assay.core.protocols import TaskSource
from assay.train.run_progress import Progress
from assay.verify.weighted_rewards import WeightedRewards

__all__ = ["ENOUGH", "count_verdicts", "silent_rewards"]

ENOUGH = 64
"""Judged rollouts from which on a reward without a verdict counts as one that gives none."""


def count_verdicts(tasks: TaskSource, groups: Sequence[Group], progress: Progress) -> None:
    """Adds the rollouts that several rewards have judged, and which of these rewards had a verdict on any.

    Args:
        tasks: with the verifier; nothing is counted where it is not several rewards.
        groups: of a step.
        progress: counts.
    """
    names = _names(tasks)
    if not names:
        return
    for group in groups:
        for score in group.scores:
            here = [name for name in names if score.valid and name in score.components]
            progress.judged += bool(here)
            progress.heard += [name for name in here if name not in progress.heard]


def silent_rewards(tasks: TaskSource, progress: Progress) -> tuple[str, ...]:
    """Names of the rewards that gave None for each of at least `ENOUGH` rollouts that another one judged.

    >>> from assay.tasks import Rows
    >>> two = {"right": lambda completion, answer: completion == answer, "style": lambda completion, answer: None}
    >>> rows = Rows([{"prompt": "1+1=", "answer": "2"}], reward=two)
    >>> silent_rewards(rows, Progress(judged=64, heard=["right"])), silent_rewards(rows, Progress(judged=63, heard=["right"]))
    (('style',), ())
    """
    return tuple(name for name in _names(tasks) if progress.judged >= ENOUGH and name not in progress.heard)


def _names(tasks: TaskSource) -> tuple[str, ...]:
    """Of all rewards, where several judge the tasks, or one half of a mixture of them."""
    sources: Sequence[TaskSource] = getattr(tasks, "sources", (tasks,))
    judges = [source.verifier() for source in sources]
    return tuple(part.name for judge in judges if isinstance(judge, WeightedRewards) for part in judge.parts)
