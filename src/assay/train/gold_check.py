"""Before the first step: does a reward of the user's own give the rows' own answers their full value, and twice the same?"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from itertools import islice

import numpy as np

from assay.core.errors import AssayError, DataError
from assay.core.rollout import Rollout
from assay.core.score import Score
from assay.core.task import Task
from assay.scorers import FromTasks
from assay.train.levels import arms_of
from assay.train.run import Run
from assay.verify import ScoringPool
from assay.verify.answer_templates import PLACE, TEMPLATES
from assay.verify.reward_function import row_of
from assay.verify.rollouts import rollout_of
from assay.verify.user_reward import UserReward

__all__ = ["describe_rewards"]

_ROWS = 20
"""Rows looked at."""
_TWICE = 8
"""Of these, rows whose answer is judged twice: most rewards that are drawn at random differ at one of them."""
_Item = tuple[Task, tuple[str, ...]]
"""A task, and the forms of its answer."""

_SECONDS = 1.0
"""Most that the first verdict may take: a reward that is slower is not asked about the others."""


def describe_rewards(run: Run) -> tuple[str, ...]:
    """Warnings of a reward function that gives rows' own answers less than accuracy asks for, or the same answer to the same row
    two rewards; none where all is well or unknown. Where these answers earn it in a usual form, as ``Answer: 15``, that form is
    named instead.

    Only a plain function of the user's is asked, in processes of its own: what is asynchronous asks a service, which may cost
    money. An answer is the row's ``answer``, and where that is not enough its ``solution``.

    Args:
        run: settings; its first stage of reinforcement learning learns from the tasks' reward.
    """
    stage = next((stage for stage in run.stages if stage.uses_tasks), None)
    verifier: object = run.tasks.verifier()
    if stage is None or not isinstance(getattr(stage, "reward", None), FromTasks):
        return ()
    if not isinstance(verifier, UserReward) or verifier.concurrent:
        return ()
    items = list(islice(_answers(run, stage.levels), _ROWS))
    try:
        scores = _scores(run, items)
    except AssayError:  # the first step will meet it, and say so
        return ()
    return tuple(line for line in (_low_gold(run, items, scores), _unsteady(items, scores)) if line)


def _low_gold(run: Run, items: list[_Item], scores: Mapping[str, Score]) -> str:
    """What is told where gold answers earn too little."""
    found = _values(items, scores)
    low = [at for at, (_, value) in enumerate(found) if value < _full(run)]
    if not low:
        return ""
    for written in TEMPLATES[1:]:
        named = [scores.get(f"gold/{at}/{written}") for at in low]
        if all(score is not None and score.valid and score.primary >= _full(run) for score in named):
            return (
                f"your reward gives the gold answer {_full(run):g} where it is written as {written!r}: let the prompts ask for "
                "that form"
            )
    (task, forms), (form, value) = items[low[0]], found[low[0]]
    text = forms[form]
    return (
        f"warning: your reward gives the gold answer less than {_full(run):g} on {len(low)} of {len(found)} rows; e.g. "
        f"{task.id}, answer {text[:60]!r}, reward {value:g}. If an answer must have more than the gold, "
        "such as tags, that may be right: a field 'solution' of the rows, an answer as the model should write it, is tried too; "
        "if not, nothing that the model says can earn it"
    )


def _unsteady(items: list[_Item], scores: Mapping[str, Score]) -> str:
    """What is told where an answer that was judged twice has two rewards."""
    for number, (task, forms) in enumerate(items):
        first, again = (scores.get(f"gold/{number}/{form}") for form in ("0", "again"))
        if first and again and first.valid and again.valid and first.primary != again.primary:
            return (
                f"warning: your reward gave the same answer to the same row {first.primary:g}, then {again.primary:g}; e.g. "
                f"{task.id}, answer {forms[0][:60]!r}. A reward that depends on anything else, such as chance, the clock or "
                "calls before, teaches noise, and the run cannot be repeated"
            )
    return ""


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


def _scores(run: Run, items: list[_Item]) -> Mapping[str, Score]:
    """Of each form of an answer, and of the first form once more; of the first item alone where that took long."""
    if not items:
        return {}
    asked: list[tuple[Task, Rollout]] = [
        (task, rollout_of(task, text, id=f"gold/{number}/{form}", group=f"gold/{number}"))
        for number, (task, forms) in enumerate(items)
        for form, text in (*enumerate(forms), *([("again", forms[0])] if number < _TWICE else []))
    ]
    deadline = run.reward_deadline
    with ScoringPool(run.tasks.verifier(), deadline, workers=1, refuse=False, memory=run.reward_memory) as pool:
        began = time.monotonic()
        scores = dict(pool.score(asked[:1]))
        if time.monotonic() - began <= _SECONDS:
            scores |= pool.score(asked[1:])
            low = [at for at, (_, value) in enumerate(_values(items, scores)) if value < _full(run)]
            scores |= pool.score([_write_gold(items[at], at, form) for at in low for form in TEMPLATES[1:]])
    return scores


def _write_gold(item: _Item, number: int, form: str) -> tuple[Task, Rollout]:
    """The answer of an item in a form that rewards often ask for."""
    task, forms = item
    return task, rollout_of(task, form.replace(PLACE, forms[0]), id=f"gold/{number}/{form}", group=f"gold/{number}")


def _values(items: list[_Item], scores: Mapping[str, Score]) -> list[tuple[int, float]]:
    """Of each item that was asked about the form that earns most, and what it earns."""
    out: list[tuple[int, float]] = []
    for number, (_, forms) in enumerate(items):
        named = [(form, scores.get(f"gold/{number}/{form}")) for form in range(len(forms))]
        values = [(score.primary, -form) for form, score in named if score is not None and score.valid]
        if not values:  # no verdict, or not asked
            break
        value, form = max(values)
        out.append((-form, value))
    return out
