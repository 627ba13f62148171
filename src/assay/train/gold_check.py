"""Before the first step: does a reward of the user's own give the rows' own answers their full value?"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice

import numpy as np

from assay.core.errors import AssayError, DataError
from assay.core.rollout import Rollout
from assay.core.task import Task
from assay.scorers import FromTasks
from assay.train.levels import arms_of
from assay.train.run import Run
from assay.verify import ScoringPool
from assay.verify.reward_function import row_of
from assay.verify.rollouts import rollout_of
from assay.verify.user_reward import UserReward

__all__ = ["describe_gold_rewards"]

_ROWS = 20
"""Rows looked at."""
_SECONDS = 1.0
"""Most that the first verdict may take: a reward that is slower is not asked about the others."""


def describe_gold_rewards(run: Run) -> str:
    """A warning where a reward function gives rows' own answers less than accuracy asks for; "" where all is well or unknown.

    Only a plain function of the user's is asked, in processes of its own: what is asynchronous asks a service, which may cost
    money. An answer is the row's ``answer``, and where that is not enough its ``solution``.

    Args:
        run: settings; its first stage of reinforcement learning learns from the tasks' reward.
    """
    stage = next((stage for stage in run.stages if stage.practises), None)
    verifier: object = run.tasks.verifier()
    if stage is None or not isinstance(getattr(stage, "reward", None), FromTasks):
        return ""
    if not isinstance(verifier, UserReward) or verifier.concurrent:
        return ""
    items = list(islice(_answers(run, stage.levels), _ROWS))
    try:
        found = _values(run, items)
    except AssayError:  # the first step will meet it, and say so
        return ""
    low = [(task, forms[at], value) for (task, forms), (at, value) in zip(items, found, strict=False) if value < _full(run)]
    if not low:
        return ""
    task, text, value = low[0]
    return (
        f"warning: your reward gives the gold answer less than {_full(run):g} on {len(low)} of {len(found)} rows; e.g. "
        f"{task.id}, answer {text[:60]!r}, reward {value:g}. If an answer must have more than the gold, "
        "such as tags, that may be right; if not, nothing that the model says can earn it"
    )


def _full(run: Run) -> float:
    return run.evaluation.threshold


def _answers(run: Run, levels: object) -> Iterator[tuple[Task, tuple[str, ...]]]:
    """The first training tasks that have an answer, with the forms in which it stands there."""
    rng = np.random.default_rng(0)  # a trace without noise draws nothing from it
    for arm, of_arm in arms_of(run.tasks, levels).items():  # pyright: ignore[reportArgumentType]
        for level in of_arm:
            seen: set[str] = set()
            for index in range(_ROWS):
                try:
                    task = run.tasks.task(arm, level, "train", index)
                    turns = run.tasks.trace(task, 0.0, rng)
                except DataError:  # a level without training rows
                    break
                if task.content in seen:
                    break
                seen.add(task.content)
                solution = row_of(task).get("solution")
                forms = [turns[-1].content] if turns else []
                forms += [solution] if isinstance(solution, str) else []
                if forms:
                    yield task, tuple(forms)


def _values(run: Run, items: list[tuple[Task, tuple[str, ...]]]) -> list[tuple[int, float]]:
    """Of each item the form that earns most, and what it earns; of the first alone where that took long."""
    if not items:
        return []
    asked: list[tuple[Task, Rollout]] = [
        (task, rollout_of(task, text, id=f"gold/{number}/{form}", group=f"gold/{number}"))
        for number, (task, forms) in enumerate(items)
        for form, text in enumerate(forms)
    ]
    deadline = run.reward_deadline
    with ScoringPool(run.tasks.verifier(), deadline, workers=1, refuse=False, memory=run.reward_memory) as pool:
        began = time.monotonic()
        scores = dict(pool.score(asked[:1]))
        if time.monotonic() - began <= _SECONDS:
            scores |= pool.score(asked[1:])
    out: list[tuple[int, float]] = []
    for number, (_, forms) in enumerate(items):
        named = [(form, scores.get(f"gold/{number}/{form}")) for form in range(len(forms))]
        values = [(score.primary, -form) for form, score in named if score is not None and score.valid]
        if not values:  # no verdict, or not asked
            break
        value, form = max(values)
        out.append((-form, value))
    return out
