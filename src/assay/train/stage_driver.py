"""Drives one stage of a run at a time: steps, the evaluations and checkpoints behind them, its early end, and a clean stop."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path

from assay.core.errors import AssayError, RewardError
from assay.core.timing import Profile
from assay.core.util.stop_request import StopRequestError, request_stop
from assay.runs import checkpoint
from assay.runs.best_model import offer_best_model, settle_best_models
from assay.runs.rollout_files import RolloutFiles
from assay.train import models
from assay.train.callbacks import Callbacks
from assay.train.evaluator import Evaluator
from assay.train.rollout_recorder import RolloutRecorder
from assay.train.run import Run
from assay.train.run_log import RunLog
from assay.train.run_progress import Progress
from assay.train.runner import StageRunner, StepResult
from assay.train.session import Parts

__all__ = ["StageDriver"]


class StageDriver:
    """Drives the stages of a run, one after the other, from where each stands.

    Args:
        run, folder: the run and its folder.
        log: where all is written down.
        callbacks: hear of steps, evaluations and checkpoints.
        progress: what is saved beside a stage's state.
        profile: whether each step tells where its time went.
        saved: what each checkpoint says of the run, besides where it stands.

    Attributes:
        stop: set by the first Ctrl-C; the stage ends after its current step, with a checkpoint.
        abandoned: global step at which a Ctrl-C ended the evaluation before a stage's first step; None where none did.
    """

    def __init__(
        self,
        run: Run,
        folder: Path,
        log: RunLog,
        callbacks: Callbacks,
        progress: Progress,
        *,
        profile: bool = False,
        saved: Mapping[str, object],
    ) -> None:
        self.run, self.folder, self.log, self.callbacks, self.progress = run, folder, log, callbacks, progress
        self.profile, self.saved, self.stop = profile, saved, False
        self.abandoned: int | None = None
        self._begun = 0
        files = RolloutFiles(folder)
        self._rollouts = RolloutRecorder(run, log.journal, files)
        self._evaluator = Evaluator(run, log.journal, files)

    def request_stop(self) -> None:
        """The first signal ends the run after the current step, with a checkpoint; the second, or one before a step, at once."""
        evaluator, before, self.stop = self._evaluator, self.stop, True
        if not before and evaluator.at_work == "before":
            self.abandoned = self._begun
        if before or self.abandoned is not None:
            raise KeyboardInterrupt
        if not evaluator.at_work:  # a step can be given up, and an evaluation is to be whole
            request_stop()
        what = f"this step and its evaluation of {evaluator.items} items" if evaluator.at_work else "this step"
        with suppress(OSError):  # a terminal that hung up
            print(f"\nstopping after {what}, with a checkpoint; once more stops at once", file=sys.stderr, flush=True)

    async def drive(self, index: int, runner: StageRunner) -> bool:
        """Runs stage ``index`` from where it stands to its end (True), or to a stop (False).

        Raises:
            GateError: it ended below its gate.
            MismatchError: engine and learner disagree by more than the run allows.
        """
        p, self._begun = runner.parts, runner.parts.step
        self.log.open_stage(p)
        await p.calibrate()
        self.log.write_notes(p)
        if p.stage_step == 0:
            await self._begin(index, runner)
        elif self.progress.ended not in (0, p.stage.steps):  # a stage that had ended was lengthened: its patience begins anew
            self.progress.ended, self.progress.stale = 0, 0
        while p.stage_step < p.stage.steps and self.progress.ended != p.stage.steps:
            if self.stop:
                return False
            await self._advance(index, runner)
        p.stage.check_gate(self.progress.gate)
        return True

    async def _begin(self, index: int, runner: StageRunner) -> None:
        """Before a stage's first step: an evaluation, where there is none yet, and a checkpoint."""
        p = runner.parts
        self.progress.begin_stage()
        if p.stage.evaluates_first and self.progress.evaluated != p.step:
            self.log.write_metrics(p, found := await self._evaluate(runner, full=True))
            self.callbacks.evaluation(p.step, found)
        self._checkpoint(index, runner)
        if (error := p.reward_error()) is not None:
            raise error

    async def _advance(self, index: int, runner: StageRunner) -> None:
        """One step, with the evaluation and the checkpoint that are due behind it."""
        p = runner.parts
        try:
            metrics, result = await self._one_step(runner)
        except RewardError as error:  # the stage stands as before the step
            if int((checkpoint.latest_name(self.folder) or "-1").removeprefix("step_")) != p.step:
                self._checkpoint(index, runner)
            if isinstance(error, StopRequestError):
                return
            raise
        refused: AssayError | None = self.log.write_mismatch(p, metrics, self.progress)
        self.log.write_untrained(p, self.progress)
        metrics |= self.log.write_silent(p, self.run.tasks, result.groups, self.progress)
        last = p.stage_step >= p.stage.steps
        if last or runner.evaluate_at(p.stage_step):
            metrics |= await self._evaluate(runner, full=last)
        if (why := self._ends(p, metrics)) and not last:
            metrics |= await self._evaluate(runner, full=True)
            self.log.journal.event(p.step, "until", f"{p.stage.name} ended at its step {p.stage_step} of {p.stage.steps}: {why}")
            last = True
        if last:
            self.progress.ended = p.stage.steps
            if p.stage.gate:
                self.progress.gate = await self._evaluator.gate(p)
        refused = refused or p.reward_error()  # of the evaluation, which is whole
        runner.observe_metrics(metrics)
        self.log.write_metrics(p, metrics)
        self.callbacks.step(p.step, metrics)
        self.stop = self.stop or self.callbacks.stop
        if (last or self.stop) and not self._rollouts.due(p.stage_step):
            self._rollouts.keep(p, result)
        failed, every = refused or self.callbacks.error, self.run.checkpoint_every
        if last or self.stop or failed or (every > 0 and p.stage_step % every == 0):
            self._checkpoint(index, runner)
        if failed:
            raise failed

    async def _one_step(self, runner: StageRunner) -> tuple[dict[str, float], StepResult]:
        p, begin = runner.parts, time.process_time()
        with self._profile_step(p):
            result = await runner.step()
        p.step, p.stage_step = p.step + 1, p.stage_step + 1
        self._rollouts.step(p, result)
        self.log.step = p.step
        self.progress.cpu += time.process_time() - begin
        return {**result.metrics, "time/cpu": self.progress.cpu}, result

    def _profile_step(self, p: Parts) -> AbstractContextManager[None]:
        """Inside, parts of a step are counted, where that is wanted."""
        return Profile(p.learner.synchronize).here() if self.profile else nullcontext()

    async def _evaluate(self, runner: StageRunner, full: bool) -> dict[str, float]:
        found = await self._evaluator.evaluate(runner, full)
        if full:
            self.progress.evaluated = runner.parts.step
        if self.run.keep_best:
            ranked = self._evaluator.comparable
            offer_best_model(self.folder, runner.parts.step, ranked, partial(models.save_from, runner.parts.learner))
        self.log.send_evaluation(self._evaluator.items, self._evaluator.part)
        return found

    def _ends(self, p: Parts, metrics: Mapping[str, float]) -> str:
        """Why an evaluation ends the stage early: at its bound, or because there was no better one for too long; else empty."""
        until = p.stage.until
        value = metrics.get(until.metric) if until else None
        if until is None or value is None:
            return ""
        best, ranked = self.progress.best, self._evaluator.comparable.get(until.metric, value)
        better = best is None or ranked > best + until.gain
        self.progress.best, self.progress.stale = (ranked, 0) if better else (best, self.progress.stale + 1)
        return until.reason(value, self.progress.stale)

    def _checkpoint(self, index: int, runner: StageRunner) -> None:
        self.log.journal.sync()
        p = runner.parts
        state = {
            **self.saved,
            "stage": index,
            "progress": asdict(self.progress),
            "session": {**p.state_dict(), **runner.state_dict()},
        }
        place = checkpoint.save(self.folder, p.step, state, p.save, self.run.keep_checkpoints)
        runner.on_checkpoint()
        settle_best_models(self.folder, p.step)
        self.callbacks.checkpoint(p.step, place)
        self.callbacks.check()
