"""Drives a run in its folder: scoring processes and judges around its stages, the weights between them, and its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.core.protocols import Tracker
from assay.core.timing import span
from assay.core.util.event_loop import run_async
from assay.core.util.garbage import collect_rarely
from assay.core.util.stop_request import clear_stop_request
from assay.runs import storage
from assay.runs.journal import Journal
from assay.train import models, record
from assay.train.callbacks import Callback, Callbacks
from assay.train.data import data_digests
from assay.train.independent_check import IndependentChecker
from assay.train.judgements import RunJudges
from assay.train.opening import open_stage
from assay.train.out_of_memory import add_advice
from assay.train.outcome import RunOutcome
from assay.train.record import run_id
from assay.train.run import Run
from assay.train.run_log import RunLog
from assay.train.run_progress import Progress
from assay.train.session import Parts
from assay.train.stage_driver import StageDriver
from assay.train.stopping import when_stopped
from assay.verify import ScoringPool

if TYPE_CHECKING:
    from assay.runtime.models.any_model import AnyModel

__all__ = ["RunDriver", "Watch", "nobody"]

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
        identity, data: of the run and of the files that it learns from, in its checkpoints.
        replays: rollouts of asynchronous stages come from the log of accepted groups in the folder.
    """

    def __init__(
        self, run: Run, folder: Path, watch: Watch = nobody, profile: bool = False, callbacks: Sequence[Callback] = ()
    ) -> None:
        self.run, self.folder, self.watch, self.profile = run, folder, watch, profile
        self.journal, self.replays = Journal(folder), False
        self.identity, self.data = run_id(run), data_digests(run)
        self._callbacks = Callbacks(callbacks)

    def drive(self, model: AnyModel, found: Path | None = None, state: Any = None) -> RunOutcome:
        """Works through the stages, from a checkpoint where there is one.

        Args:
            model: that the run starts from.
            found, state: the checkpoint's folder and what it says.
        """
        run, step = self.run, int(state["session"]["step"]) if found else 0
        log = RunLog(self.journal)
        log.write_isolation(run, step)
        if not found:
            log.write_gold_check(run)
        log.trackers = self.watch(run, self.folder, step + 1 if found else 0)
        progress = Progress(**state["progress"]) if found else Progress()
        saved = {"run": self.identity, "data": self.data}
        steps = StageDriver(run, self.folder, log, self._callbacks, progress, profile=self.profile, saved=saved)
        pool, checker = _scoring(run)

        async def make_outcome() -> RunOutcome:
            async with RunJudges(run.judges, self.folder) as judges:
                return await self._stages(steps, model, (pool, checker, judges), found, state)

        try:
            with (
                pool,
                checker.pool if checker else nullcontext(),
                when_stopped(steps.request_stop) as came,
                collect_rarely(),
            ):
                try:
                    outcome = run_async(make_outcome())
                except KeyboardInterrupt:
                    if steps.abandoned is None:
                        raise
                    outcome = RunOutcome(folder=self.folder, step=steps.abandoned, finished=False)
                return outcome if outcome.finished or not came else replace(outcome, signal=came[0])
        except Exception as error:
            log.write_error(error)
            raise
        finally:
            clear_stop_request()
            log.close()

    async def _stages(
        self,
        steps: StageDriver,
        model: AnyModel,
        scoring: tuple[ScoringPool, IndependentChecker | None, RunJudges],
        found: Path | None,
        state: Any,
    ) -> RunOutcome:
        first, step, last = 0, 0, len(self.run.stages) - 1
        pool, checker, judges = scoring
        if found:
            first, step = int(state["stage"]), int(state["session"]["step"]) - int(state["session"]["stage_step"])
        before: Parts | None = None
        for index in range(first, last + 1):
            stage, again = self.run.stages[index], found if index == first else None
            model = self._beneath(index, model, again is not None)
            with add_advice(self.run, stage, model.shape, self.folder):
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
                        ended = await steps.drive(index, runner)
                    step, model = parts.step, parts.learner.model()
                    if ended and index == last:
                        return self._finish(model, parts)
            if steps.stop:
                break
        return RunOutcome(folder=self.folder, step=step, finished=False)

    def _other(self, path: str) -> AnyModel:
        """The run's own copy of a model that an anchor names."""
        from assay.runtime.models.hf import load_model

        return load_model(models.held_path(self.folder, path))

    def _beneath(self, index: int, model: AnyModel, again: bool) -> AnyModel:
        """The weights that a stage begins with. Those beneath an adapter are in no checkpoint, so a later stage keeps them."""
        from assay.runtime.models.hf import load_model

        if getattr(self.run.stages[index], "start", "last") == "first":  # anew from what the run began with
            model = load_model(self.folder / "start")
        if index == 0 or self.run.stages[index].learner.adapter is None:
            return model
        place = self.folder / "bases" / f"stage_{index}"
        if again:
            return load_model(place)
        place.parent.mkdir(exist_ok=True)
        models.keep_model(model, place)
        return model

    def _finish(self, model: AnyModel, parts: Parts) -> RunOutcome:
        models.keep_model(model, self.folder / "model")
        self.journal.sync()
        found = record.run_digest(self.folder, parts)
        storage.write_json(self.folder / "done.json", {"step": parts.step, "digest": found})
        return RunOutcome(folder=self.folder, step=parts.step, finished=True, digest=found)


def _scoring(run: Run) -> tuple[ScoringPool, IndependentChecker | None]:
    """The processes that score rollouts, and those of the second judge."""
    deadline = run.reward_deadline
    pool = ScoringPool(
        run.tasks.verifier(),
        deadline,
        workers=run.reward_workers,
        memory=run.reward_memory,
        in_flight=run.reward_in_flight,
        attempts=run.reward_attempts,
    )
    checker = IndependentChecker(run.check, run.seed, deadline, run.reward_workers, run.reward_memory) if run.check else None
    return pool, checker
