"""Runs a `Run` in a folder: builds its base, works through its stages, resumes, stops cleanly."""

from __future__ import annotations

import asyncio
import shutil
import signal
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from assay.core.errors import CheckpointError, ConfigError, DataError, EngineError, OutOfMemoryError, StorageError
from assay.core.protocols import Tracker
from assay.core.util.folder_digest import seal_folder
from assay.core.util.garbage import pause_collection
from assay.core.util.threads import with_torch
from assay.runs import checkpoint, lock, storage
from assay.runs.journal import Journal
from assay.train import code, contamination, machine, models, record
from assay.train.check import Checker
from assay.train.fits import check_fits, check_run
from assay.train.judgements import RunJudges
from assay.train.record import load_run
from assay.train.room import advised, asking
from assay.train.run import Run, anchor_models
from assay.train.session import Session, open_session
from assay.train.stage import Desk, Progress
from assay.train.stages import WarmUp
from assay.verify import ScoringPool

if TYPE_CHECKING:
    from assay.runtime.models.any_model import AnyModel

__all__ = ["Outcome", "load_run", "resume", "train", "when_stopped"]

Watch = Callable[[Run, Path, int], Sequence[Tracker]]
"""Makes the trackers of a run; called for the main run and for each base that must be built first.

Its arguments are the run, its folder, and the first step that the trackers will hear of: 0 in a run that begins, ``k + 1`` in
one that goes on from its checkpoint at step ``k``. What an earlier process told them from that step on is void.
"""


def nobody(run: Run, folder: Path, first: int) -> Sequence[Tracker]:
    """No trackers besides the journal."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a call of `train` or `resume` ended.

    Attributes:
        folder: the run folder.
        step: global steps finished.
        finished: False after a clean stop by Ctrl-C, SIGTERM or SIGHUP.
        digest: of weights, optimiser, sampled ids and all metrics outside ``time/`` and ``verify/``; empty unless finished.
    """

    folder: Path
    step: int
    finished: bool
    digest: str = ""


def train(run: Run, folder: str | Path, *, watch: Watch = nobody, profile: bool = False) -> Outcome:
    """Runs ``run`` in a new folder.

    Args:
        run: what to do.
        folder: created; must be absent or empty.
        watch: makes trackers besides the journal; see `Watch`.
        profile: have each step tell where its time went, ``time/profile/PART`` and ``time/profile_cpu/PART`` in its metrics.

    Raises:
        ConfigError: the folder is in use, or the run contradicts itself or does not fit its model.
        DataError: a level without tasks, a preference that is wrong, text that the tokenizer lacks, or a training prompt that
            contains an evaluation item.
        HubError: a model by its name on the hub that neither the cache nor the hub gives.
        OutOfMemoryError, StorageError, NonFiniteError, WeightProofError, RewardError, GateError, EngineError, MismatchError: as
            their names say; the run can be resumed from its last checkpoint.
    """
    path = Path(folder)
    record.refuse_used(path)
    with_torch("assay.runtime.machine")
    run = models.pinned(run)
    with lock.worker(path):
        record.refuse_used(path)
        try:
            return Driver(run, path, watch, profile).begin()
        except (ConfigError, DataError, EngineError, OutOfMemoryError):
            record.unclaim(path)
            raise


def resume(
    folder: str | Path,
    *,
    run: Run | None = None,
    steps: int | None = None,
    ranks: int | None = None,
    allow_inexact: bool = False,
    watch: Watch = nobody,
    profile: bool = False,
) -> Outcome:
    """Goes on with a run that was stopped, killed, or has finished.

    Args:
        folder: the run folder.
        run: the run as a value, when its parts cannot be loaded by name (functions defined in a notebook); must equal the
            recorded one.
        steps: new number of steps of the last stage, at least what it has done; of a warm-up that ended below its gate, the
            warm-up's.
        ranks: new number of processes that share the learner, ``Mesh(data=ranks)``; sums then go in another order, so it needs
            ``allow_inexact``.
        allow_inexact: go on although threads, ranks, instruction set, versions, or the code of a reward, verifier or tool differ.
        watch, profile: as of `train`.

    Raises:
        CheckpointError: the folder holds no run, or its checkpoint is damaged or belongs to another run, or a file that it learns
            from has changed.
        InexactResumeError: this machine, or the user's own code, differs and ``allow_inexact`` is False.
        ConfigError: ``steps`` is less than the stage has done, or another process works on the run.
        DataError: a file of evaluation items has changed, and the training prompts contain one.
    """
    path = Path(folder)
    with_torch("assay.runtime.machine")
    load_run(path, run)  # says that there is no run before a lock is put there
    with lock.worker(path):
        return Driver(load_run(path, run), path, watch, profile).go_on(steps, ranks, allow_inexact)


class Driver:
    """One run folder being worked on, by the holder of its lock."""

    def __init__(self, run: Run, folder: Path, watch: Watch, profile: bool = False) -> None:
        self.run, self.folder, self.watch = run, folder, watch
        self.desk = Desk(run, folder, Journal(folder), profile=profile)

    def begin(self) -> Outcome:
        """A new run, or one that was killed before its first checkpoint."""
        record.claim(self.folder, self.run)
        self._threads()
        found = contamination.look(self.run, self.folder)
        try:
            model = self._start()
        except _Stopped:
            return Outcome(folder=self.folder, step=0, finished=False)
        self._tell_contamination(0, found)
        return self._drive(model, None, None)

    def go_on(self, steps: int | None = None, ranks: int | None = None, allow_inexact: bool = False) -> Outcome:
        """A run that exists already; one killed before its first checkpoint starts again."""
        from assay.runtime.models.hf import load_model

        self._threads()
        found = checkpoint.latest(self.folder)
        before = partial(record.run_id_of_before, self.run)
        state = checkpoint.load_state(found, self.desk.identity, self.desk.data, before) if found else None
        run = extended(self.run, state, steps)
        run = run if ranks is None else replace(run, mesh=replace(run.mesh, data=ranks, context=1))
        done = self.folder / "done.json"
        if run == self.run and done.exists():
            return Outcome(folder=self.folder, finished=True, **storage.read_json(done))
        changed = machine.check_same(self.folder, run, allow_inexact) if found else []
        edited = code.check_same(self.folder, run, allow_inexact) if found else []
        overlap: Mapping[str, Any] = {}
        if found:  # without a checkpoint it begins, and looks then
            overlap = contamination.look(run, self.folder)
        self.run = self.desk.run = run
        storage.remove(done)
        record.tidy(self.folder, found)
        said = self.desk.journal.newest("error")
        step = int(state["session"]["step"]) if state else -1
        gone = self.desk.journal.missing(step)
        for line in [*self.desk.journal.cut(step), *gone]:
            print(f"damaged: {line}", file=sys.stderr, flush=True)
        for line in gone:
            self.desk.journal.event(step, "damaged", line)
        if found is None:
            return self.begin()
        record.write_run(self.folder, run)
        self.desk.journal.event(step, "resumed", f"from step {step}" + (f", after {said}" if said else ""))
        if changed:
            self.desk.journal.event(step, "inexact", "resumed on a different machine: " + "; ".join(changed))
            machine.record(self.folder, run)
        if edited:
            self.desk.journal.event(step, "inexact", "resumed with other code: " + "; ".join(edited))
        code.record(self.folder, run)
        self._tell_contamination(step, overlap)
        return self._drive(load_model(self.folder / "start"), found, state)

    def _start(self) -> AnyModel:
        """The weights that the run starts from, kept in ``start``: what is there already is whole."""
        from assay.runtime.learner.copies import check_buildable
        from assay.runtime.models.hf import load_model, save_model

        start = self.folder / "start"
        if start.exists():
            model = load_model(start)
            check_fits(self.run, model)  # no checkpoint yet: a file of preferences may have changed since
            return model
        check_run(self.run)
        model = models.load(self.run.model, self._build)
        others = {path: models.from_folder(path) for path in anchor_models(self.run)}
        with pause_collection():
            check_fits(self.run, model, others.__getitem__)
        for stage in self.run.stages:  # of later ones too, before the first has cost anything
            check_buildable(model, stage.learner)
        for path, other in others.items():  # a run that is gone on with must not depend on what became of other folders
            with storage.fresh_folder(models.held(self.folder, path)) as beside:
                save_model(other, beside)
                seal_folder(beside)
        with storage.fresh_folder(start) as beside:
            save_model(model, beside)
            seal_folder(beside)
        return model

    def _other(self, path: str) -> AnyModel:
        """The run's own copy of a model that an anchor names."""
        from assay.runtime.models.hf import load_model

        return load_model(models.held(self.folder, path))

    def _build(self, run: Run, folder: Path) -> Path:
        """The base that this run starts from: made, or finished, in the cache, by one process at a time."""
        with lock.builder(folder, f"the base {run.name!r}"):
            if not (folder / "done.json").exists():
                with lock.worker(folder):
                    finished = self._make(run, folder)
                if not finished:
                    raise _Stopped
        return folder / "model"

    def _make(self, run: Run, folder: Path) -> bool:
        if (folder / "run.toml").exists():
            try:
                return Driver(run, folder, self.watch).go_on().finished
            except CheckpointError:  # damaged, or begun under other versions: a base can always be made afresh
                for path in folder.iterdir():
                    if path.name != lock.LOCK:
                        shutil.rmtree(path) if path.is_dir() else path.unlink()
        return Driver(run, folder, self.watch).begin().finished

    def _threads(self) -> None:
        from assay.runtime.machine import set_threads

        set_threads(self.run.threads)

    def _drive(self, model: AnyModel, found: Path | None, state: Any) -> Outcome:
        self._tell_isolation(int(state["session"]["step"]) if found else 0)
        self.desk.trackers = self.watch(self.run, self.folder, int(state["session"]["step"]) + 1 if found else 0)
        run, deadline = self.run, self.run.reward_deadline
        pool = ScoringPool(run.tasks.verifier(), deadline, workers=run.reward_workers, memory=run.reward_memory)
        checker = Checker(run.check, run.seed, deadline, run.reward_workers, run.reward_memory) if run.check else None
        try:
            with pool, checker.pool if checker else nullcontext(), when_stopped(self._ask):
                return asyncio.run(self._judged(model, pool, checker, found, state))
        except Exception as error:
            with suppress(StorageError):  # the first error is the one to tell
                self.desk.journal.event(self.desk.step, "error", f"{type(error).__name__}: {error}")
            raise
        finally:
            self.desk.journal.close()
            for tracker in self.desk.trackers:
                tracker.close()

    def _tell_contamination(self, step: int, found: Mapping[str, Any]) -> None:
        """Says what evaluation items a run trains on, where it was told to."""
        if line := contamination.sentence(found):
            print(f"contamination: {line}", file=sys.stderr, flush=True)
            self.desk.journal.event(step, "contamination", line)

    def _tell_isolation(self, step: int) -> None:
        """Says what contains the programs that judges start, before any is started."""
        judges = {"reward": self.run.tasks.verifier()} | ({"check": self.run.check.verifier} if self.run.check else {})
        for line in record.isolation(self.folder, judges):
            print(line, file=sys.stderr, flush=True)
            self.desk.journal.event(step, "isolation", line)

    async def _judged(
        self, model: AnyModel, pool: ScoringPool, checker: Checker | None, found: Path | None, state: Any
    ) -> Outcome:
        async with RunJudges(self.run.judges, self.folder) as judges:
            return await self._stages(model, pool, checker, judges, found, state)

    async def _stages(
        self, model: AnyModel, pool: ScoringPool, checker: Checker | None, judges: RunJudges, found: Path | None, state: Any
    ) -> Outcome:
        first, step, last = 0, 0, len(self.run.stages) - 1
        if found:
            first, step = int(state["stage"]), int(state["session"]["step"]) - int(state["session"]["stage_step"])
            self.desk.progress = Progress(**state["progress"])
        session: Session | None = None
        for index in range(first, last + 1):
            model = self._beneath(index, model, bool(found) and index == first)
            with advised(self.run, self.run.stages[index], model.shape, self.folder):
                with asking("learner and engine, as they were built,"):
                    session = open_session(
                        self.run, self.run.stages[index], model, pool, step, session, self._other, checker, judges
                    )
                with closing(session):
                    with asking("learner and engine, as they were built,"):
                        if found and index == first:
                            session.restore(found / "learner", state["session"])
                        await session.serve()
                    with asking("a step, beside its passes,"):  # and before: the proof's rows, rows that are given
                        ended = await self.desk.stage(index, session)
                    step, model = session.step, session.learner.model()
                    if ended and index == last:
                        return self._finish(model, session)
            if self.desk.stop:
                break
        return Outcome(folder=self.folder, step=step, finished=False)

    def _beneath(self, index: int, model: AnyModel, again: bool) -> AnyModel:
        """The weights that a stage begins with. Those beneath an adapter are in no checkpoint, so a later stage keeps them."""
        from assay.runtime.models.hf import load_model, save_model

        if index == 0 or self.run.stages[index].learner.adapter is None:
            return model
        place = self.folder / "bases" / f"stage_{index}"
        if again:
            return load_model(place)
        place.parent.mkdir(exist_ok=True)
        with storage.fresh_folder(place) as beside:
            save_model(model, beside)
            seal_folder(beside)
        return model

    def _finish(self, model: AnyModel, s: Session) -> Outcome:
        from assay.runtime.models.hf import save_model

        with storage.fresh_folder(self.folder / "model") as beside:
            save_model(model, beside)
            seal_folder(beside)
        self.desk.journal.sync()
        found = record.run_digest(self.folder, s)
        storage.write_json(self.folder / "done.json", {"step": s.step, "digest": found})
        return Outcome(folder=self.folder, step=s.step, finished=True, digest=found)

    def _ask(self) -> None:
        """The first Ctrl-C, SIGTERM or SIGHUP ends the run after the current step, with a checkpoint; the second at once."""
        if self.desk.stop:
            raise KeyboardInterrupt
        self.desk.stop = True
        with suppress(OSError):  # a terminal that hung up
            print("\nstopping after this step, with a checkpoint; once more stops at once", file=sys.stderr, flush=True)


@contextmanager
def when_stopped(ask: Callable[[], None]) -> Generator[None]:
    """Ctrl-C, SIGTERM and SIGHUP call ``ask`` inside the block; in another thread than the main one the caller keeps its own
    handling.

    SIGHUP, which a terminal sends that is closed, stays ignored where it was, as under ``nohup``.
    """

    def told(number: int, frame: FrameType | None) -> None:
        ask()

    try:
        before = {number: signal.signal(number, told) for number in _asking_signals()}
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _asking_signals() -> list[signal.Signals]:
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([] if ignored else [signal.SIGHUP])]


class _Stopped(Exception):
    """Ctrl-C while a base was built."""


def extended(run: Run, state: Any, steps: int | None) -> Run:
    """``run`` with ``steps`` in its last stage, or in the warm-up that ended below its gate.

    Raises:
        ConfigError: the stage has done more.
    """
    if steps is None:
        return run
    at, last = (int(state["stage"]) if state else 0), len(run.stages) - 1
    stage, gate = run.stages[at], state["progress"]["gate"] if state else None
    index = at if isinstance(stage, WarmUp) and gate is not None and gate < stage.gate else last
    done = int(state["session"]["stage_step"]) if state and at == index else 0
    if steps < max(1, done):
        raise ConfigError(f"steps={steps}, but stage {run.stages[index].name!r} has done {done} already; give at least that many")
    stages = [replace(s, steps=steps) if i == index else s for i, s in enumerate(run.stages)]
    return replace(run, stages=tuple(stages))
