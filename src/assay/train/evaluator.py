"""Held-out evaluations of a run: which tasks, how they are played, and what the journal keeps of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from assay.core.optional_protocols import row_places
from assay.core.rollout import Sampling
from assay.core.task import Task
from assay.core.timing import span
from assay.runs.journal import Journal
from assay.runs.rollout_files import RolloutFiles
from assay.train.evaluate import by_arm, calibration, evaluate, greedy, held_out, items_of, passed_ids, summary
from assay.train.grade import ScoredRollouts
from assay.train.metrics import gold_text, shorten, show_messages
from assay.train.run import Run
from assay.train.runner import StageRunner
from assay.train.session import Parts
from assay.train.stage import Stage

__all__ = ["Evaluator", "kl_to_base"]


class Evaluator:
    """Evaluates a run's stages on held-out tasks, which are drawn once.

    Args:
        run: settings.
        journal: gets every item, and the accuracies of a gate.
        files: get what each item asks, where rollouts are kept.

    Attributes:
        comparable: accuracies of the newest evaluation on the items that every evaluation of the run has. Evaluations during a
            stage are of fewer items than those at its ends, so their accuracies themselves cannot be ranked.
        items: how many items the newest evaluation had.
        part: whether others of the run have more.
        at_work: whether an evaluation is going on: ``before`` the first step of a stage, or ``behind`` a step; None otherwise.
    """

    def __init__(self, run: Run, journal: Journal, files: RolloutFiles) -> None:
        self.run, self._journal, self._files = run, journal, files
        self._tasks: dict[int, Sequence[Task]] = {}
        self.comparable: dict[str, float] = {}
        self.items, self.part = 0, False
        self._passed: set[str] | None = None
        self.at_work: Literal["before", "behind"] | None = None

    async def evaluate(self, runner: StageRunner, full: bool) -> dict[str, float]:
        """Greedy and sampled rollouts of held-out tasks: journals the items, returns the summary.

        Args:
            runner: the stage at work.
            full: on as many tasks as at the ends of a run.
        """
        begin, plan = time.perf_counter(), self.run.evaluation
        await runner.prepare_evaluation()
        per_level = plan.final_per_level if full else plan.per_level
        if per_level not in self._tasks:
            self._tasks[per_level] = held_out(self.run.tasks, plan.levels, per_level, plan.split)
            self._record_tasks()
        self.items = len(self._tasks[per_level])
        whole = self._tasks.get(plan.final_per_level)
        self.part = per_level < plan.final_per_level and (whole is None or self.items < len(whole))
        self.comparable = {}
        metrics: dict[str, float] = {}
        self.at_work = "behind" if runner.parts.stage_step else "before"
        try:
            async with runner.parts.present():
                for mode in ("greedy", "sampled"):
                    metrics |= await self._mode(runner.parts, self._tasks[per_level], mode, full)
        finally:
            self.at_work = None
        return metrics | {"time/evaluate": time.perf_counter() - begin}

    def _record_tasks(self) -> None:
        """What the held-out tasks ask, for readers of the evaluations, which name them only."""
        if self.run.rollouts_kept:
            where = row_places(self.run.tasks)
            tasks = {task.id: task for drawn in self._tasks.values() for task in drawn}
            self._files.write_items([_item(task, where(task)) for task in tasks.values()])

    async def gate(self, parts: Parts) -> float:
        """The temperature-1 accuracy on the levels that a stage's gate looks at, of the arm where it is lowest."""
        stage: Stage = parts.stage
        tasks = held_out(
            self.run.tasks, stage.gate_levels(self.run), self.run.evaluation.final_per_level, self.run.evaluation.split
        )
        rollouts = await self._rollouts(parts, tasks, replace(self.run.sampling.whole, temperature=1.0), 1)
        found = by_arm(items_of(rollouts), self.run.evaluation.threshold)
        arms = ", ".join(f"{arm} {value:.3f}" for arm, value in found.items())
        text = f"temperature-1 accuracy on the demonstrated levels: {arms}; gate {stage.gate:.3f}"
        self._journal.event(parts.step, "gate", text)
        return min(found.values())

    async def _mode(self, parts: Parts, tasks: Sequence[Task], mode: str, full: bool) -> dict[str, float]:
        """One mode of an evaluation: journals its items, returns its metrics."""
        plan = self.run.evaluation
        drawn, n = (greedy(self.run.sampling), 1) if mode == "greedy" else (self.run.sampling, plan.n)
        rollouts = await self._rollouts(parts, tasks, drawn, n)
        items = items_of(rollouts)
        self._journal.append(
            "evals",
            {"step": parts.step, "stage": parts.stage.name, "split": plan.split, "mode": mode, "full": full, "items": items},
        )
        found = summary(mode, items, plan.threshold) | calibration(mode, items, plan.threshold)
        found |= self._forgetting(items, parts.step) if mode == "greedy" else {}
        least = min(plan.per_level, plan.final_per_level)
        self.comparable |= summary(mode, _first_of_each_cell(items, least), plan.threshold)
        # The divergence is of the model's own distribution, so rollouts drawn from another one cannot tell it.
        own = drawn.temperature == 1.0 and not drawn.truncated and drawn.annealing is None
        return found | ({"kl/base": kl_to_base(parts, rollouts)} if mode == "sampled" and plan.kl_to_base and own else {})

    def _forgetting(self, items: Sequence[Mapping[str, Any]], step: int) -> dict[str, float]:
        """``forgetting/greedy``: of the items that an earlier greedy evaluation of the run passed, the share that fail now.

        Nothing where none was passed before. A resumed run reads what was passed from its journal.
        """
        if self._passed is None:
            records = [r for r in self._journal.records("evals") if r["mode"] == "greedy" and r["step"] < step]
            self._passed = {name for r in records for name in passed_ids(r["items"], self.run.evaluation.threshold)}
        now = passed_ids(items, self.run.evaluation.threshold)
        judged = [item["id"] for item in items if item["values"] and item["id"] in self._passed]
        self._passed |= now
        return {"forgetting/greedy": sum(name not in now for name in judged) / len(judged)} if judged else {}

    async def _rollouts(self, parts: Parts, tasks: Sequence[Task], sampling: Sampling, n: int) -> list[ScoredRollouts]:
        with span("evaluate"):
            return await evaluate(parts.evaluation_player(sampling), parts.pool, tasks, n)


def _first_of_each_cell(items: Sequence[Mapping[str, Any]], count: int) -> list[Mapping[str, Any]]:
    """The first ``count`` items of each (arm, level): held-out tasks are drawn in one order, however many."""
    seen: Counter[tuple[str, int]] = Counter()
    out: list[Mapping[str, Any]] = []
    for item in items:
        cell = item["arm"], item["level"]
        seen[cell] += 1
        out += [item] if seen[cell] <= count else []
    return out


def _item(task: Task, row: str) -> dict[str, Any]:
    prompt = shorten(show_messages(task.public_view().messages))
    found = {"id": task.id, "arm": task.arm, "level": task.level, "prompt": prompt, "gold": gold_text(task)}
    return {**found, "row": row} if row else found


def kl_to_base(parts: Parts, rollouts: Sequence[ScoredRollouts]) -> float:
    """Mean over sampled tokens of log p(token) - log p_base(token), by the learner: k1 on held-out rollouts, nats per token.

    The base is what the stage started from, whatever becomes of its reference.
    """
    start = next(a.name for a in parts.settings.anchors if a.is_start)
    calls = [c for a in rollouts for r in a.rollouts for c in r.calls]
    rows, starts = [c.tokens for c in calls], [len(c.prefix) for c in calls]
    now, base = parts.learner.score(rows), parts.learner.score(rows, start)
    total = sum(float((x[k:] - y[k:]).sum()) for x, y, k in zip(now, base, starts, strict=True))
    return total / max(1, sum(len(x) - k for x, k in zip(now, starts, strict=True)))
