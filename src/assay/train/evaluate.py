"""Held-out evaluation: collect without update.

Items come from the ``test`` split, and their sampling noise from seeds named ``evaluate``: nothing is shared with training.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from assay.core.errors import DataError
from assay.core.protocols import Sampler, TaskSource
from assay.core.rollout import Sampling
from assay.core.task import Context, Task
from assay.measure.calibration import calibration_of
from assay.train.grade import ScoredRollouts, verify_rollouts
from assay.train.levels import Levels, arms_of
from assay.verify import ScoringPool
from assay.verify.confidence import CONFIDENCE

__all__ = [
    "by_arm",
    "calibration",
    "context_of",
    "evaluate",
    "greedy",
    "held_out",
    "items_of",
    "passed_ids",
    "select_by",
    "summary",
]


def held_out(source: TaskSource, levels: Levels, per_level: int, split: str = "test") -> list[Task]:
    """``per_level`` distinct tasks of each (arm, level) of a split.

    A level gives fewer where it has no more (32 re-draws without a new one), and none where no task falls in the split.

    Raises:
        DataError: no level has a task of the split.
    """
    out: list[Task] = []
    empty: list[DataError] = []
    for arm, of_arm in arms_of(source, levels).items():
        for level in of_arm:
            try:
                out += islice(_distinct(source, arm, level, split), per_level)
            except DataError as error:
                empty.append(error)
    if empty and not out:
        raise empty[0]
    return out


async def evaluate(player: Sampler, pool: ScoringPool, tasks: Sequence[Task], n: int) -> list[ScoredRollouts]:
    """``n`` rollouts of ``player`` at each task, in the order of ``tasks``, scored by their own verifier."""
    posed = [(task, context_of(task)) for task in tasks]
    rollouts = await player.collect([context for _, context in posed], n)
    return await verify_rollouts(pool, posed, rollouts)


async def select_by(pool: ScoringPool, found: Sequence[ScoredRollouts]) -> list[list[float | None]]:
    """Another verifier's value of each rollout that has a verdict, per task, in the order of the ``values`` of `items_of`; None
    where it failed.

    Raises:
        RewardError: it failed on all.
    """
    posed = [(a.task, a.context) for a in found]
    again = await verify_rollouts(pool, posed, [rollout for a in found for rollout in a.rollouts])
    return [
        [other.primary if other.valid else None for own, other in zip(a.scores, b.scores, strict=True) if own.valid]
        for a, b in zip(found, again, strict=True)
    ]


def greedy(sampling: Sampling) -> Sampling:
    """The same limits, always the most likely token."""
    return replace(sampling.whole, temperature=0.0)


def items_of(rollouts: Sequence[ScoredRollouts]) -> list[dict[str, Any]]:
    """Records for ``evals.jsonl``: per task the primary values of its valid rollouts, their answers, and the confidences
    that they state, where any does.
    """
    out: list[dict[str, Any]] = []
    for a in rollouts:
        valid = [(s, r.text) for r, s in zip(a.rollouts, a.scores, strict=True) if s.valid]
        item: dict[str, Any] = {
            "id": a.task.id,
            "arm": a.task.arm,
            "level": a.task.level,
            "values": [s.primary for s, _ in valid],
            "answers": [t for _, t in valid],
            "faults": len(a.scores) - len(valid),
        }
        if any(CONFIDENCE in s.columns for s, _ in valid):
            item["confidence"] = [s.columns.get(CONFIDENCE) for s, _ in valid]
        out.append(item)
    return out


def passed_ids(items: Sequence[Mapping[str, Any]], threshold: float) -> set[str]:
    """Ids of the items whose rollouts all reach ``threshold``; an item without a verdict is in no such set.

    >>> items = [{"id": "a", "values": [1.0]}, {"id": "b", "values": [0.0]}, {"id": "c", "values": []}]
    >>> passed_ids(items, 0.5)
    {'a'}
    """
    return {item["id"] for item in items if item["values"] and min(item["values"]) >= threshold}


def summary(mode: str, items: Sequence[Mapping[str, Any]], threshold: float) -> dict[str, float]:
    """``eval/MODE/all`` and ``eval/MODE/level_L``: mean over tasks of the share of rollouts that pass.

    Where the tasks are of several arms, ``eval/MODE/ARM/all`` and ``eval/MODE/ARM/level_L`` too. Tasks without a verdict are left
    out.
    """
    cells: dict[str, list[float]] = {}
    several = len({item["arm"] for item in items}) > 1
    for item in items:
        if not item["values"]:
            continue
        passed = sum(v >= threshold for v in item["values"]) / len(item["values"])
        for place in ("", f"{item['arm']}/") if several else ("",):
            cells.setdefault(f"{place}all", []).append(passed)
            cells.setdefault(f"{place}level_{item['level']}", []).append(passed)
    return {f"eval/{mode}/{name}": sum(v) / len(v) for name, v in cells.items()}


def calibration(mode: str, items: Sequence[Mapping[str, Any]], threshold: float) -> dict[str, float]:
    """``calibration/MODE/{ece,brier,auroc,confidence,stated}`` where answers state confidences; ``auroc`` where some are right
    and some are wrong.
    """
    found = calibration_of(items, threshold)
    if found is None:
        return {}
    values = {
        "ece": found.ece,
        "brier": found.brier,
        "auroc": found.auroc,
        "confidence": found.confidence,
        "stated": found.stated,
    }
    return {f"calibration/{mode}/{name}": value for name, value in values.items() if value is not None}


def by_arm(items: Sequence[Mapping[str, Any]], threshold: float) -> dict[str, float]:
    """Arm to the accuracy on its tasks; 0 where none of them has a verdict."""
    arms = dict.fromkeys(str(item["arm"]) for item in items)
    apart = {arm: summary("", [i for i in items if i["arm"] == arm], threshold) for arm in arms}
    return {arm: found.get("eval//all", 0.0) for arm, found in apart.items()}


def context_of(task: Task) -> Context:
    """A task as an evaluation poses it: its opening conversation."""
    world = task.public_view()
    key = f"evaluate/{task.split}/{task.arm}/{task.level}/{task.index}"
    return Context(key=key, group=task.id, task=world, messages=world.messages)


def _distinct(source: TaskSource, arm: str, level: int, split: str) -> Iterator[Task]:
    seen: set[str] = set()
    index = misses = 0
    while misses < 32:
        task = source.task(arm, level, split, index)
        index += 1
        if task.content in seen:
            misses += 1
            continue
        misses = 0
        seen.add(task.content)
        yield task
