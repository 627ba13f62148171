"""Held-out evaluation: collect without update.

Items come from the ``test`` split, and their sampling noise from seeds named ``evaluate``: nothing is shared with training.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from assay.core.errors import DataError
from assay.core.protocols import Engine, Sampler, TaskSource, Tokenizer
from assay.core.rollout import Rollout, Sampling
from assay.core.score import Score
from assay.core.task import Context, Task
from assay.rollout import Player
from assay.train.run import arms_of
from assay.verify import ScoringPool

__all__ = ["Attempts", "evaluate", "held_out", "items_of", "summary"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """All attempts at one held-out task, with their scores."""

    task: Task
    rollouts: tuple[Rollout, ...]
    scores: tuple[Score, ...]


def held_out(source: TaskSource, levels: tuple[int, ...], per_level: int, split: str = "test") -> list[Task]:
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


async def evaluate(
    engine: Engine, tokenizer: Tokenizer, source: TaskSource, pool: ScoringPool, tasks: Sequence[Task], sampling: Sampling,
    *, n: int, seed: int, max_turns: int = 8,
) -> list[Attempts]:  # fmt: skip
    """``n`` attempts at each task, scored.

    Args:
        engine, tokenizer: the policy.
        source: gives environments.
        pool: scores.
        tasks: what to attempt.
        sampling: temperature 0 for greedy.
        n: attempts per task.
        seed: of the sampling noise.
        max_turns: model calls per attempt.
    """
    player: Sampler = Player(engine=engine, tokenizer=tokenizer, source=source, sampling=sampling, seed=seed, max_turns=max_turns)
    contexts = [_posed(t) for t in tasks]
    rollouts = await player.collect(contexts, n)
    by_context: dict[str, list[Rollout]] = {c.key: [] for c in contexts}
    for rollout in rollouts:
        by_context[rollout.context.key].append(rollout)
    pairs = [(t, r) for t, c in zip(tasks, contexts, strict=True) for r in by_context[c.key]]
    scores = pool.score(pairs)
    return [
        Attempts(task=t, rollouts=tuple(by_context[c.key]), scores=tuple(scores[r.id] for r in by_context[c.key]))
        for t, c in zip(tasks, contexts, strict=True)
    ]


def greedy(sampling: Sampling) -> Sampling:
    """The same limits, always the most likely token."""
    return replace(sampling, temperature=0.0, top_p=1.0, top_k=0)


def items_of(attempts: Sequence[Attempts]) -> list[dict[str, Any]]:
    """Records for ``evals.jsonl``: per task the primary values of its valid attempts, and their answers."""
    out: list[dict[str, Any]] = []
    for a in attempts:
        valid = [(s.primary, r.text) for r, s in zip(a.rollouts, a.scores, strict=True) if s.valid]
        out.append(
            {
                "id": a.task.id, "arm": a.task.arm, "level": a.task.level,
                "values": [v for v, _ in valid], "answers": [t for _, t in valid], "faults": len(a.scores) - len(valid),
            }
        )  # fmt: skip
    return out


def summary(mode: str, items: Sequence[Mapping[str, Any]], threshold: float) -> dict[str, float]:
    """``eval/MODE/all`` and ``eval/MODE/level_L``: mean over tasks of the share of attempts that pass.

    Tasks without a verdict are left out.
    """
    cells: dict[str, list[float]] = {}
    for item in items:
        if item["values"]:
            passed = sum(v >= threshold for v in item["values"]) / len(item["values"])
            cells.setdefault("all", []).append(passed)
            cells.setdefault(f"level_{item['level']}", []).append(passed)
    return {f"eval/{mode}/{name}": sum(v) / len(v) for name, v in cells.items()}


def _posed(task: Task) -> Context:
    world = task.exposed()
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
