"""Runs a `Run` in a folder: builds its base, works through its stages, resumes, stops cleanly."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from assay.core.canon import digest
from assay.core.config import dumps_toml, from_dict, loads_toml, to_dict
from assay.core.errors import CheckpointError, ConfigError
from assay.core.protocols import Tracker
from assay.train import checkpoint, machine, models, storage
from assay.train.journal import Journal
from assay.train.run import Run
from assay.train.session import Session, open_session
from assay.train.stage import Desk
from assay.verify import ScoringPool

if TYPE_CHECKING:
    from assay.runtime.model import Model

__all__ = ["Outcome", "load_run", "resume", "train"]

Watch = Callable[[Run, Path], Sequence[Tracker]]
"""Makes the trackers of a run; called for the main run and for each base that must be built first."""


def nobody(run: Run, folder: Path) -> Sequence[Tracker]:
    """No trackers besides the journal."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a call of `train` or `resume` ended.

    Attributes:
        folder: the run folder.
        step: global steps finished.
        finished: False after a clean stop by Ctrl-C.
        digest: of weights, optimiser, sampled ids and all metrics outside ``time/``; empty unless finished.
    """

    folder: Path
    step: int
    finished: bool
    digest: str = ""


def train(run: Run, folder: str | Path, *, watch: Watch = nobody) -> Outcome:
    """Runs ``run`` in a new folder.

    Args:
        run: what to do.
        folder: created; must be absent or empty.
        watch: makes trackers besides the journal.

    Raises:
        ConfigError: the folder is in use, or the run contradicts itself.
        StorageError, NonFiniteError, WeightProofError, RewardError, GateError: as their names say; the run can be resumed from
            its last checkpoint.
    """
    path = Path(folder)
    if path.exists() and any(path.iterdir()):
        hint = f"assay resume {path}" if (path / "run.toml").exists() else "choose another folder"
        raise ConfigError(f"{path} is not empty: {hint}")
    return Driver(run, path, watch).begin()


def resume(
    folder: str | Path,
    *,
    run: Run | None = None,
    steps: int | None = None,
    allow_inexact: bool = False,
    watch: Watch = nobody,
) -> Outcome:
    """Goes on with a run that was stopped, killed, or has finished.

    Args:
        folder: the run folder.
        run: the run as a value, when its parts cannot be loaded by name (functions defined in a notebook); must equal the
            recorded one.
        steps: new number of steps of the last stage; at least what it has done.
        allow_inexact: go on although threads, instruction set or versions differ.
        watch: makes trackers besides the journal.

    Raises:
        CheckpointError: the folder holds no run, or its checkpoint is damaged.
        InexactResumeError: this machine differs and ``allow_inexact`` is False.
        ConfigError: ``steps`` is less than the stage has done.
    """
    path = Path(folder)
    recorded = load_run(path, run)
    if steps is not None:
        last = replace(recorded.stages[-1], steps=steps)
        recorded = replace(recorded, stages=(*recorded.stages[:-1], last))
    return Driver(recorded, path, watch).go_on(allow_inexact)


def load_run(folder: Path, run: Run | None = None) -> Run:
    """The run that a folder records.

    Args:
        folder: a run folder.
        run: the same run as a value; needed when the record names functions that cannot be imported.

    Raises:
        CheckpointError: no ``run.toml``, or ``run`` differs from it.
    """
    path = folder / "run.toml"
    if not path.exists():
        raise CheckpointError(f"{folder} is no run folder: it has no run.toml; 'assay runs list' shows those there are")
    text = path.read_text(encoding="utf-8")
    if run is None:
        return from_dict(Run, loads_toml(text))
    if dumps_toml(to_dict(run)) != text:
        raise CheckpointError(f"the run given differs from the one in {path}; pass the same recipe, or start a new run")
    return run


class Driver:
    """One run folder being worked on."""

    def __init__(self, run: Run, folder: Path, watch: Watch) -> None:
        self.run, self.folder, self.watch = run, folder, watch
        self.desk = Desk(run, folder, Journal(folder))

    def begin(self) -> Outcome:
        """A new run."""
        from assay.runtime.hf import save_model

        self.folder.mkdir(parents=True, exist_ok=True)
        self._threads()
        storage.write_text(self.folder / "run.toml", dumps_toml(to_dict(self.run)))
        machine.record(self.folder, self.run.threads)
        model = models.load(self.run.model, self._build)
        save_model(model, self.folder / "start")
        return self._drive(model, None)

    def go_on(self, allow_inexact: bool) -> Outcome:
        """A run that exists already; one killed before its first checkpoint starts again."""
        from assay.runtime.hf import load_model

        self._threads()
        changed = machine.check_same(self.folder, self.run.threads, allow_inexact)
        found = checkpoint.latest(self.folder)
        if found is None:
            self.desk.journal.cut(-1)
            return self.begin()
        state = checkpoint.load_state(found)["session"]
        self._check_steps(int(state["stage_step"]))
        self.desk.journal.cut(int(state["step"]))
        storage.write_text(self.folder / "run.toml", dumps_toml(to_dict(self.run)))
        if changed:
            self.desk.journal.event(int(state["step"]), "inexact", "resumed on a different machine: " + "; ".join(changed))
        return self._drive(load_model(self.folder / "start"), found)

    def _check_steps(self, done: int) -> None:
        if self.run.stages[-1].steps < done and len(self.run.stages) == 1:
            raise ConfigError(f"steps={self.run.stages[-1].steps}, but the stage has done {done} already; give more")

    def _build(self, run: Run, folder: Path) -> Path:
        """The base that this run starts from: made, or finished, in the cache."""
        if not (folder / "done.json").exists():
            inner = Driver(run, folder, self.watch)
            if not (inner.go_on(False) if (folder / "run.toml").exists() else inner.begin()).finished:
                raise KeyboardInterrupt
        return folder / "model"

    def _threads(self) -> None:
        from assay.runtime.machine import set_threads

        set_threads(self.run.threads)

    def _drive(self, model: Model, found: Path | None) -> Outcome:
        self.desk.trackers = self.watch(self.run, self.folder)
        pool = ScoringPool(self.run.tasks.verifier(), deadline=self.run.reward_deadline)
        try:
            with pool, self._clean_stop():
                return asyncio.run(self._stages(model, pool, found))
        finally:
            self.desk.journal.close()
            for tracker in self.desk.trackers:
                tracker.close()

    async def _stages(self, model: Model, pool: ScoringPool, found: Path | None) -> Outcome:
        state = checkpoint.load_state(found) if found else {"stage": 0, "evaluated": -1, "cpu": 0.0}
        first, step = int(state["stage"]), int(state["session"]["step"]) if found else 0
        self.desk.evaluated, self.desk.cpu = int(state["evaluated"]), float(state["cpu"])
        for index in range(first, len(self.run.stages)):
            session = open_session(self.run, self.run.stages[index], model, pool, step)
            if found and index == first:
                session.restore(found / "learner", state["session"])
                await session.engine.swap(session.learner.publish())
            await self.desk.stage(index, session)
            step, model = session.step, current_model(model, session)
            if self.desk.stop and step < self.run.steps:
                return Outcome(folder=self.folder, step=step, finished=False)
            if index == len(self.run.stages) - 1:
                return self._finish(model, session)
        raise CheckpointError(f"{self.folder}: its checkpoint is in stage {first}, the run has {len(self.run.stages)}")

    def _finish(self, model: Model, s: Session) -> Outcome:
        from assay.runtime.hf import save_model

        save_model(model, self.folder / "model")
        self.desk.journal.sync()
        found = run_digest(self.folder, s)
        storage.write_json(self.folder / "done.json", {"step": s.step, "digest": found})
        return Outcome(folder=self.folder, step=s.step, finished=True, digest=found)

    @contextmanager
    def _clean_stop(self) -> Iterator[None]:
        """The first Ctrl-C ends the run after the current step, with a checkpoint; the second at once."""

        def ask(number: int, frame: FrameType | None) -> None:
            if self.desk.stop:
                raise KeyboardInterrupt
            self.desk.stop = True

        try:
            before = signal.signal(signal.SIGINT, ask)
        except ValueError:  # not in the main thread: the caller keeps its own handling
            yield
            return
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


def current_model(model: Model, s: Session) -> Model:
    """``model`` with the learner's present weights."""
    from assay.runtime.model import with_arrays

    return with_arrays(model, s.learner.publish().payload or {})


def run_digest(folder: Path, s: Session) -> str:
    """Digest of a finished run: weights, optimiser, anchors, sampled ids, evaluation items, and all metrics outside ``time/``."""
    records: list[dict[str, Any]] = []
    for name in ("metrics", "evals", "rollouts"):
        path = folder / f"{name}.jsonl"
        records += [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    for record in records:
        if "metrics" in record:
            record["metrics"] = {k: v for k, v in record["metrics"].items() if not k.startswith("time/")}
    return digest([s.learner.state_digest(), s.ids, records])
