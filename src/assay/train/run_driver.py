"""Works through the stages of a run: steps, evaluations, journal, checkpoints, gates, and a clean stop."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.core.errors import AssayError, MismatchError, RewardError, StorageError
from assay.core.protocols import Tracker
from assay.core.timing import Profile, span
from assay.core.util.event_loop import run_async
from assay.core.util.folder_digest import seal_folder
from assay.core.util.garbage import collect_rarely
from assay.runs import checkpoint, storage
from assay.runs.best_model import offer_best_model, settle_best_models
from assay.runs.journal import Journal
from assay.runs.rollout_files import RolloutFiles
from assay.train import models, record
from assay.train.callbacks import Callback, Callbacks
from assay.train.data import data_digests
from assay.train.evaluator import Evaluator
from assay.train.gold_check import describe_rewards
from assay.train.independent_check import IndependentChecker
from assay.train.judgements import RunJudges
from assay.train.metrics import pool_metrics
from assay.train.opening import open_stage
from assay.train.out_of_memory import advised
from assay.train.outcome import RunOutcome
from assay.train.progress_view import ObservesEvaluations
from assay.train.record import run_id
from assay.train.rollout_recorder import RolloutRecorder
from assay.train.run import Run
from assay.train.run_progress import Progress
from assay.train.runner import StageRunner, StepResult
from assay.train.session import Parts
from assay.train.stopping import when_stopped
from assay.verify import ScoringPool

if TYPE_CHECKING:
    from assay.runtime.models.any_model import AnyModel

__all__ = ["RunDriver", "Watch", "keep_model", "nobody"]

Watch = Callable[[Run, Path, int], Sequence[Tracker]]
"""Makes the trackers of a run; called for the main run and for each base that must be built first.

Its arguments are the run, its folder, and the first step that the trackers will hear of: 0 in a run that begins, ``k + 1`` in
one that goes on from its checkpoint at step ``k``. What an earlier process told them from that step on is void.
"""


def nobody(run: Run, folder: Path, first: int) -> Sequence[Tracker]:
    """No trackers besides the journal."""
    return ()


class RunDriver:
    """Drives a run in its folder, by the holder of the folder's lock.

    Args:
        run: settings.
        folder: of the run.
        watch: makes trackers besides the journal.
        profile: whether each step tells where its time went.
        callbacks: hear of steps, evaluations and checkpoints.

    Attributes:
        journal: where everything is written down.
        progress: what is saved beside a stage's state.
        identity, data: of the run and of the files that it learns from, in its checkpoints.
        replays: rollouts of asynchronous stages come from the log of accepted groups in the folder.
        stop: set by the first Ctrl-C; the stage ends after its current step, with a checkpoint.
    """

    def __init__(
        self, run: Run, folder: Path, watch: Watch = nobody, profile: bool = False, callbacks: Sequence[Callback] = ()
    ) -> None:
        self.run, self.folder, self.watch, self.profile = run, folder, watch, profile
        self._callbacks = Callbacks(callbacks)
        self.journal, self.progress, self.stop = Journal(folder), Progress(), False
        self.replays = self._abandoned = False
        self.identity, self.data = run_id(run), data_digests(run)
        self._trackers: Sequence[Tracker] = ()
        files = RolloutFiles(folder)
        self._rollouts = RolloutRecorder(run, self.journal, files)
        self._evaluator = Evaluator(run, self.journal, files)
        self._step = 0
        self._counted: Mapping[str, int] = {}

    def drive(self, model: AnyModel, found: Path | None = None, state: Any = None) -> RunOutcome:
        """Works through the stages, from a checkpoint where there is one.

        Args:
            model: that the run starts from.
            found, state: the checkpoint's folder and what it says.
        """
        step = int(state["session"]["step"]) if found else 0
        self._evaluator.run = self._rollouts.run = self.run
        self._tell_isolation(step)
        if not found:
            self._tell_gold()
        self._trackers = self.watch(self.run, self.folder, step + 1 if found else 0)
        run, deadline = self.run, self.run.reward_deadline
        pool = ScoringPool(
            run.tasks.verifier(),
            deadline,
            workers=run.reward_workers,
            memory=run.reward_memory,
            in_flight=run.reward_in_flight,
            attempts=run.reward_attempts,
        )
        checker = IndependentChecker(run.check, run.seed, deadline, run.reward_workers, run.reward_memory) if run.check else None

        async def judged() -> RunOutcome:
            async with RunJudges(run.judges, self.folder) as judges:
                return await self._stages(model, (pool, checker, judges), found, state)

        try:
            with (
                pool,
                checker.pool if checker else nullcontext(),
                when_stopped(self._stop) as came,
                collect_rarely(),
            ):
                try:
                    outcome = run_async(judged())
                except KeyboardInterrupt:
                    if not self._abandoned:
                        raise
                    outcome = RunOutcome(folder=self.folder, step=self._step, finished=False)
                return outcome if outcome.finished or not came else replace(outcome, signal=came[0])
        except Exception as error:
            with suppress(StorageError):  # the first error is the one to tell
                self.journal.event(self._step, "error", f"{type(error).__name__}: {error}")
            raise
        finally:
            self.journal.close()
            for tracker in self._trackers:
                tracker.close()

    def _tell_isolation(self, step: int) -> None:
        """Says what contains the programs that judges start, before any is started."""
        judges = {"reward": self.run.tasks.verifier()} | ({"check": self.run.check.verifier} if self.run.check else {})
        for line in record.isolation(self.folder, judges):
            print(line, file=sys.stderr, flush=True)
            self.journal.event(step, "isolation", line)

    def _tell_gold(self) -> None:
        """Warns of a reward that cannot be earned by the rows' own answers, or is not always the same, before the first step."""
        for line in describe_rewards(self.run):
            print(line, file=sys.stderr, flush=True)
            self.journal.event(0, "gold", line)

    def _stop(self) -> None:
        """The first signal ends the run after the current step, with a checkpoint; the second, or one before a step, at once."""
        evaluator, before, self.stop = self._evaluator, self.stop, True
        self._abandoned = self._abandoned or (not before and evaluator.at_work == "before")
        if before or self._abandoned:
            raise KeyboardInterrupt
        what = f"this step and its evaluation of {evaluator.items} items" if evaluator.at_work else "this step"
        with suppress(OSError):  # a terminal that hung up
            print(f"\nstopping after {what}, with a checkpoint; once more stops at once", file=sys.stderr, flush=True)

    # ---- stages

    async def _stages(
        self, model: AnyModel, scoring: tuple[ScoringPool, IndependentChecker | None, RunJudges], found: Path | None, state: Any
    ) -> RunOutcome:
        first, step, last = 0, 0, len(self.run.stages) - 1
        pool, checker, judges = scoring
        if found:
            first, step = int(state["stage"]), int(state["session"]["step"]) - int(state["session"]["stage_step"])
            self.progress = Progress(**state["progress"])
        before: Parts | None = None
        for index in range(first, last + 1):
            stage, again = self.run.stages[index], found if index == first else None
            model = self._beneath(index, model, again is not None)
            with advised(self.run, stage, model.shape, self.folder):
                with span("build"):
                    runner = open_stage(
                        self.run, stage, model, pool, step, before, self._other, checker, judges, self.folder, self.replays
                    )
                before = parts = runner.parts
                with closing(parts):
                    with span("build"):
                        if again is not None:
                            parts.load(again / "learner")
                            parts.load_state_dict(state["session"])
                            runner.load_state_dict(state["session"])
                        await parts.serve()
                    with span("step"):  # and before: the proof's rows, rows that are given
                        ended = await self.stage(index, runner)
                    step, model = parts.step, parts.learner.model()
                    if ended and index == last:
                        return self._finish(model, parts)
            if self.stop:
                break
        return RunOutcome(folder=self.folder, step=step, finished=False)

    def _other(self, path: str) -> AnyModel:
        """The run's own copy of a model that an anchor names."""
        from assay.runtime.models.hf import load_model

        return load_model(models.held(self.folder, path))

    def _beneath(self, index: int, model: AnyModel, again: bool) -> AnyModel:
        """The weights that a stage begins with. Those beneath an adapter are in no checkpoint, so a later stage keeps them."""
        from assay.runtime.models.hf import load_model

        if index == 0 or self.run.stages[index].learner.adapter is None:
            return model
        place = self.folder / "bases" / f"stage_{index}"
        if again:
            return load_model(place)
        place.parent.mkdir(exist_ok=True)
        keep_model(model, place)
        return model

    def _finish(self, model: AnyModel, parts: Parts) -> RunOutcome:
        keep_model(model, self.folder / "model")
        self.journal.sync()
        found = record.run_digest(self.folder, parts)
        storage.write_json(self.folder / "done.json", {"step": parts.step, "digest": found})
        return RunOutcome(folder=self.folder, step=parts.step, finished=True, digest=found)

    # ---- one stage

    async def stage(self, index: int, runner: StageRunner) -> bool:
        """Runs stage ``index`` from where it stands to its end (True), or to a stop (False).

        Raises:
            GateError: it ended below its gate.
            MismatchError: engine and learner disagree by more than the run allows.
        """
        p = runner.parts
        self._step, self._counted = p.step, p.counts()
        await p.calibrate()
        for what, line in p.notes():
            self.journal.event(p.step, what, line)
        if p.stage_step == 0:
            self.progress.ended, self.progress.gate, self.progress.untrained = 0, None, []
            self.progress.best, self.progress.stale = None, 0
            if p.stage.evaluates_first and self.progress.evaluated != p.step:
                self._log(p, found := await self._evaluate(runner, full=True))
                self._callbacks.evaluation(p.step, found)
            self._checkpoint(index, runner)
            if (error := p.reward_error()) is not None:
                raise error
        elif self.progress.ended not in (0, p.stage.steps):  # a stage that had ended was lengthened: its patience begins anew
            self.progress.ended, self.progress.stale = 0, 0
        while p.stage_step < p.stage.steps and self.progress.ended != p.stage.steps:
            if self.stop:
                return False
            await self._advance(index, runner)
        p.stage.check_gate(self.progress.gate)
        return True

    async def _advance(self, index: int, runner: StageRunner) -> None:
        """One step, with the evaluation and the checkpoint that are due behind it."""
        p = runner.parts
        try:
            metrics, result = await self._one_step(runner)
        except RewardError:  # the stage stands as before the step
            if int((checkpoint.latest_name(self.folder) or "-1").removeprefix("step_")) != p.step:
                self._checkpoint(index, runner)
            raise
        refused: AssayError | None = self._judge_agreement(p, metrics)
        self._tell_untrained(p)
        last = p.stage_step >= p.stage.steps
        if last or runner.evaluate_at(p.stage_step):
            metrics |= await self._evaluate(runner, full=last)
        if self._ends(p, metrics) and not last:
            metrics |= await self._evaluate(runner, full=True)
            last = True
        if last:
            self.progress.ended = p.stage.steps
            if p.stage.gate:
                self.progress.gate = await self._evaluator.gate(p)
        refused = refused or p.reward_error()  # of the evaluation, which is whole
        runner.observe_metrics(metrics)
        self._log(p, metrics)
        self._callbacks.step(p.step, metrics)
        self.stop = self.stop or self._callbacks.stop
        if (last or self.stop) and not self._rollouts.due(p.stage_step):
            self._rollouts.keep(p, result)
        failed = refused or self._callbacks.error
        if last or self.stop or failed or _due(p.stage_step, self.run.checkpoint_every):
            self._checkpoint(index, runner)
        if failed:
            raise failed

    def _ends(self, p: Parts, metrics: Mapping[str, float]) -> bool:
        """Whether an evaluation ends the stage early: at its bound, or because there was no better one for too long."""
        until = p.stage.until
        value = metrics.get(until.metric) if until else None
        if until is None or value is None:
            return False
        best, ranked = self.progress.best, self._evaluator.comparable.get(until.metric, value)
        if best is None or ranked > best + until.gain:
            self.progress.best, self.progress.stale = ranked, 0
        else:
            self.progress.stale += 1
        return value >= until.at_least or 0 < until.patience <= self.progress.stale

    async def _one_step(self, runner: StageRunner) -> tuple[dict[str, float], StepResult]:
        p, begin = runner.parts, time.process_time()
        with self._profiled(p):
            result = await runner.step()
        p.step, p.stage_step = p.step + 1, p.stage_step + 1
        self._rollouts.step(p, result)
        self._step = p.step
        self.progress.cpu += time.process_time() - begin
        return {**result.metrics, "time/cpu": self.progress.cpu}, result

    def _profiled(self, p: Parts) -> AbstractContextManager[None]:
        """Inside, parts of a step are counted, where that is wanted."""
        return Profile(p.learner.synchronize).here() if self.profile else nullcontext()

    async def _evaluate(self, runner: StageRunner, full: bool) -> dict[str, float]:
        found = await self._evaluator.evaluate(runner, full)
        if full:
            self.progress.evaluated = runner.parts.step
        if self.run.keep_best:
            ranked = self._evaluator.comparable
            offer_best_model(self.folder, runner.parts.step, ranked, partial(models.save_from, runner.parts.learner))
        for tracker in self._trackers:
            if isinstance(tracker, ObservesEvaluations):
                tracker.observe_evaluation(self._evaluator.items, self._evaluator.part)
        return found

    def _judge_agreement(self, p: Parts, metrics: Mapping[str, float]) -> MismatchError | None:
        """Says where engine and learner begin to disagree too much; the error by which the run is to end, if it is to."""
        found = p.agreement.judged(metrics, p.step)
        if found.compared:
            if found.alarm and not self.progress.apart:
                self.journal.event(p.step, "mismatch", found.alarm)
            self.progress.apart = bool(found.alarm)
        return found.error

    def _tell_untrained(self, p: Parts) -> None:
        """Says which tensors have had no gradient although others learn."""
        new = [name for name in p.untrained if name not in self.progress.untrained]
        if new:
            shown = ", ".join(new[:4]) + (f" and {len(new) - 4} more" if len(new) > 4 else "")
            self.journal.event(
                p.step,
                "untrained",
                f"the gradient of {len(new)} trained tensor{'s' if len(new) > 1 else ''} has been exactly 0 at every step that "
                f"moved others: {shown}; nothing that the loss reads depends on them",
            )
            self.progress.untrained += new

    # ---- written down

    def _log(self, p: Parts, metrics: Mapping[str, float]) -> None:
        counts = p.counts()
        metrics = {**metrics, **pool_metrics(counts, self._counted)}
        self._counted = counts
        for line in p.pool.news():
            self.journal.event(p.step, "reward", line)
        while p.news:
            self.journal.event(p.step, *p.news.pop(0))
        self.journal.append("metrics", {"step": p.step, "stage": p.stage.name, "metrics": metrics})
        for tracker in self._trackers:
            tracker.log(p.step, metrics)

    def _checkpoint(self, index: int, runner: StageRunner) -> None:
        self.journal.sync()
        p = runner.parts
        state = {
            "run": self.identity,
            "data": self.data,
            "stage": index,
            "progress": asdict(self.progress),
            "session": {**p.state_dict(), **runner.state_dict()},
        }
        place = checkpoint.save(self.folder, p.step, state, p.save)
        runner.saved()
        settle_best_models(self.folder, p.step)
        self._callbacks.checkpoint(p.step, place)
        self._callbacks.check()


def keep_model(model: AnyModel, place: Path) -> None:
    """Writes a model into a new folder of a run, whole or not at all."""
    from assay.runtime.models.hf import save_model

    with storage.fresh_folder(place) as beside:
        save_model(model, beside)
        seal_folder(beside)


def _due(step: int, every: int) -> bool:
    return every > 0 and step % every == 0
