"""Rubicon's offline filter in `benchmarks.judged`: a critic's score of what a base model answers to each prompt."""

from __future__ import annotations

import asyncio
import math

import numpy as np

from assay.clients import Judge, JudgeClient, MemoryStore
from assay.core import EngineError
from assay.curate import central_rows
from assay.scorers import Rubric
from assay.train import Policy
from benchmarks.judged_measures import task_of
from benchmarks.judged_tasks import Shifts

__all__ = ["central_tasks"]


def central_tasks(policy: Policy, rubric: Rubric, judge: Judge, tasks: int = 200, answers: int = 4) -> tuple[int, ...]:
    """Indices of the first training tasks whose mean score by the critic lies between the quartiles.

    Args:
        policy: the base model.
        rubric: each criterion is asked for alone.
        judge: the critic.
        tasks: looked at.
        answers: of each.
    """
    source = Shifts()
    items = policy.evaluate(source, n=answers, per_level=tasks, split="train")
    asked = [(str(task_of(source, item).public["prompt"]), text) for item in items for text in item["answers"]]
    scores = np.array(asyncio.run(_scores(asked, rubric, judge))).reshape(len(items), answers)
    means = np.array([np.nan if np.isnan(row).all() else np.nanmean(row) for row in scores])
    kept = np.flatnonzero(central_rows(means))
    return tuple(task_of(source, items[n]).index for n in kept)


async def _scores(asked: list[tuple[str, str]], rubric: Rubric, judge: Judge) -> list[float]:
    client = JudgeClient(judge, MemoryStore())
    alone = [Rubric(criteria=(criterion,)) for criterion in rubric.criteria]

    async def one(prompt: str, text: str) -> float:
        try:
            found = [await client.ask(r.question(prompt, text), r.scores) for r in alone]
        except EngineError:
            return math.nan
        return rubric.reward({name: score for scores in found for name, score in scores.items()})

    try:
        return await asyncio.gather(*(one(prompt, text) for prompt, text in asked))
    finally:
        await client.close()
