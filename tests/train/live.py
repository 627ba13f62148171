"""A stage of a run, alive and walked by hand, for tests that look inside."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from assay.core.batch import Batch
from assay.core.rollout import Rollout
from assay.lab.controls import RandomReward, Rewarded
from assay.rollout import Player
from assay.runtime.learner.learner import TorchLearner
from assay.train import models
from assay.train.loop import StepResult, step
from assay.train.opening import open_stage
from assay.train.reinforce_runner import ReinforceRunner
from assay.train.run import Run
from assay.verify import ScoringPool


def session(run: Run, wrap: Callable[[Any], Any] = lambda engine: engine, **player: Any) -> ReinforceRunner:
    model = models.load_source(run.model, lambda run, folder: folder)
    s = open_stage(run, run.stages[0], model, ScoringPool(run.tasks.verifier()))
    assert isinstance(s, ReinforceRunner)
    s.parts.engine = wrap(s.parts.engine)
    assert isinstance(s.sampler, Player)
    s.sampler = replace(s.sampler, engine=s.parts.engine, **player)
    return s


def spied(monkeypatch: pytest.MonkeyPatch) -> list[Batch]:
    """From now on the batches that a learner is given."""
    seen: list[Batch] = []
    learn = TorchLearner.step

    def spy(self: TorchLearner, batch: Batch, *rest: Any) -> Any:
        seen.append(batch)
        return learn(self, batch, *rest)

    monkeypatch.setattr(TorchLearner, "step", spy)
    return seen


def coin_toss(run: Run) -> Run:
    """Every group has a signal, whatever is answered."""
    return replace(run, tasks=Rewarded(source=run.tasks, scorer=RandomReward()))


def walk(s: ReinforceRunner, steps: int = 1) -> list[StepResult]:
    async def work() -> list[StepResult]:
        if s.parts.proof:
            await s.parts.proof.calibrate(s.parts.publish_weights(), s.parts.engine, s.parts.learner)
        out: list[StepResult] = []
        for _ in range(steps):
            out.append(await step(s))
            s.parts.step, s.parts.stage_step = s.parts.step + 1, s.parts.stage_step + 1
        return out

    return asyncio.run(work())


def rollouts(result: StepResult) -> list[Rollout]:
    return [r for g in result.groups for r in g.rollouts]
