"""What `benchmarks.judged` measures: by programs, on held-out tasks, never by a judge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.core import Sampling, Task
from assay.train import Policy
from benchmarks.judged_tasks import first_flaw

if TYPE_CHECKING:
    from benchmarks.judged_arms import Part
    from benchmarks.judged_forms import Judgements

__all__ = ["held_out", "judge_agreement", "task_of"]

TASKS, EACH = 100, 4


def task_of(source: Any, item: dict[str, Any]) -> Task:
    """The task of an evaluation's item."""
    arm, level, split, index = item["id"].split("/")[-4:]
    return source.task(arm, int(level), split, int(index))


def answers(items: list[dict[str, Any]], source: Any) -> Iterator[tuple[Task, bool, str]]:
    """Task, verdict and answer, one by one."""
    for item in items:
        task = task_of(source, item)
        for value, text in zip(item["values"], item["answers"], strict=True):
            yield task, value >= 1.0, text


def held_out(policy: Policy, part: Part) -> dict[str, float]:
    """Shares of all sampled answers: ``right``; ``sound``, right behind right working; ``tag``, begun with the label of their
    group; and ``length`` in characters, of right answers with the one tag and the other ``easy`` and ``hard``.
    """
    items = policy.evaluate(part.tasks, n=EACH, per_level=TASKS // len(part.tasks.levels))
    rows = list(answers(items, part.tasks))
    found = {"right": float(np.mean([right for _, right, _ in rows])), "length": float(np.mean([len(t) for *_, t in rows]))}
    if part.measures == "sound":
        found["sound"] = float(np.mean([r and first_flaw(task.public["prompt"], text) is None for task, r, text in rows]))
    if part.measures == "tag":
        easy = {item["id"]: np.mean([v >= 1.0 for v in item["values"]]) > 0.625 for item in items}
        found["tag"] = float(np.mean([text[:1] == ("E" if easy[task.id] else "H") for task, _, text in rows]))
        for name, tag in (("easy", "E"), ("hard", "H")):
            said = [(right, len(text)) for _, right, text in rows if text[:1] == tag]
            found[name] = len(said) / len(rows)
            found[f"{name}_right"], found[f"{name}_length"] = map(float, np.mean(said, axis=0)) if said else (0.0, 0.0)
    return {key: round(value, 4) for key, value in found.items()}


def judge_agreement(policy: Policy, questions: Judgements) -> dict[str, float]:
    """A judge beside the program: mean reward by its rule, and the share of judgements with the full one, greedy and sampled."""
    found: dict[str, float] = {}
    for name, n in (("greedy", 0), ("sampled", 1)):
        items = policy.evaluate(questions, n=n, per_level=200, sampling=Sampling(max_new_tokens=54))
        values = [float(item["values"][0]) for item in items]
        right = sum(value == 1.0 for value in values) / len(values)
        found |= {f"{name}_right": round(right, 4), f"{name}_reward": round(sum(values) / len(values), 4)}
    return found
