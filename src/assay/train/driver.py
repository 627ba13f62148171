"""Runs a `Run` in a folder: builds its base, begins or goes on, and resumes."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.core.errors import (
    CheckpointError,
    ConfigError,
    DataError,
    EngineError,
    MissingExtraError,
    OutOfMemoryError,
    RewardError,
    StorageError,
)
from assay.core.util.garbage import pause_collection
from assay.core.util.threads import with_torch
from assay.runs import checkpoint, lock, storage, user_code, versions
from assay.runs.folder import SETTINGS, failed_at_first, remove_leftovers
from assay.runtime.distributed.launch import check_first
from assay.train import contamination, models, record
from assay.train.callbacks import Callback
from assay.train.judgements import check_judges
from assay.train.outcome import RunOutcome
from assay.train.preflight import check_fits, check_run
from assay.train.progress_view import say, should_show, with_lines, with_view
from assay.train.record import load_run
from assay.train.run import Run, anchor_models
from assay.train.run_driver import RunDriver, Watch, nobody
from assay.train.stopping import when_stopped
from assay.train.tracking import open_trackers

if TYPE_CHECKING:
    from assay.measure.trackers.tracker import TrackerSettings
    from assay.runtime.models.any_model import AnyModel

__all__ = ["RunOutcome", "Watch", "begin", "load_run", "resume", "train", "when_stopped"]


def train(
    run: Run,
    folder: str | Path | None = None,
    *,
    progress: bool | None = None,
    callbacks: Sequence[Callback] = (),
    trackers: Sequence[TrackerSettings] = (),
    watch: Watch = nobody,
    profile: bool = False,
    prepare: Callable[[Path], None] | None = None,
) -> RunOutcome:
    """Runs ``run`` in a new folder.

    Args:
        run: what to do.
        folder: created; must be absent or empty. When None, ``runs/NAME-1``, ``-2``, ... of the run's name.
        progress: show the run while it works and sum it up at its end: a live panel on a terminal, lines elsewhere. None does so
            on a terminal and in a notebook, and prints lines to standard error elsewhere, without a summary. False: nothing.
        callbacks: hear of steps, evaluations and checkpoints, and may stop the run; see `Callback`.
        trackers: where the run's numbers, rollouts and report go besides its folder, as `assay.measure.WandbTracker`. One that
            fails neither stops nor slows the run.
        watch: makes trackers that hear of each step in this process; see `Watch`.
        profile: have each step tell where its time went, ``time/profile/PART`` and ``time/profile_cpu/PART`` in its metrics.
        prepare: called with the folder before the run writes ``run.toml`` there, as to put beside it what a resume needs.

    Raises:
        ConfigError: the folder is in use, or the run contradicts itself or does not fit its model.
        MissingExtraError: the library of a tracker is not installed.
        DataError: a level without tasks, a preference that is wrong, text that the tokenizer lacks, or a training prompt that
            contains an evaluation item.
        HubError: a model by its name on the hub that neither the cache nor the hub gives.
        OutOfMemoryError, StorageError, NonFiniteError, WeightProofError, RewardError, GateError, EngineError, MismatchError,
        CallbackError: as their names say; the run can be resumed from its last checkpoint.
    """
    check_first()
    path = Path(folder) if folder is not None else record.fresh_folder(Path("runs"), run.name)
    record.refuse_used(path)
    with_torch("assay.runtime.machine")
    run, show = models.pin_commits(run), should_show(progress)
    watch = with_view(watch, path) if show else with_lines(watch, path) if progress is None else watch
    made = [p for p in (path, *path.parents) if not p.exists()]
    with open_trackers(path, trackers, watch) as told:
        with lock.worker(path):
            record.refuse_used(path)
            if failed_at_first(path):
                record.release(path)
            try:
                check_judges(run.judges)
                if prepare is not None:
                    prepare(path)
                outcome = begin(RunDriver(run, path, told, profile, callbacks))
            except (ConfigError, DataError, EngineError, MissingExtraError, OutOfMemoryError):
                record.release(path, made)
                raise
            except RewardError as error:  # its message has the user's own lines: assay's frames before it would bury them
                raise error.with_traceback(None) from error.__cause__
            except StorageError:
                if not (path / SETTINGS).exists():  # else it can be resumed
                    record.release(path, made)
                raise
        return _summed_up(outcome) if show else outcome


def resume(
    folder: str | Path,
    *,
    run: Run | None = None,
    steps: int | None = None,
    ranks: int | None = None,
    allow_inexact: bool = False,
    progress: bool | None = None,
    callbacks: Sequence[Callback] = (),
    trackers: Sequence[TrackerSettings] | None = None,
    watch: Watch = nobody,
    profile: bool = False,
) -> RunOutcome:
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
        trackers: as of `train`; those that the run had before when None.
        progress, callbacks, watch, profile: as of `train`.

    Raises:
        CheckpointError: the folder holds no run, or its checkpoint is damaged or belongs to another run, or a file that it learns
            from has changed.
        InexactResumeError: this machine, or the user's own code, differs and ``allow_inexact`` is False.
        ConfigError: ``steps`` is less than the stage has done, or another process works on the run.
        DataError: a file of evaluation items has changed, and the training prompts contain one.
    """
    check_first()
    path = Path(folder)
    with_torch("assay.runtime.machine")
    load_run(path, run)  # says that there is no run before a lock is put there
    show = should_show(progress)
    watch = with_view(watch, path) if show else with_lines(watch, path) if progress is None else watch
    with open_trackers(path, trackers, watch) as told:
        with lock.worker(path):
            try:
                outcome = _go_on(RunDriver(load_run(path, run), path, told, profile, callbacks), steps, ranks, allow_inexact)
            except RewardError as error:
                raise error.with_traceback(None) from error.__cause__
        return _summed_up(outcome) if show else outcome


def _summed_up(outcome: RunOutcome) -> RunOutcome:
    """The same, after its summary was printed and its report written."""
    say(outcome.summary())
    return outcome


def begin(d: RunDriver) -> RunOutcome:
    """A new run, or one that was killed before its first checkpoint."""
    record.claim(d.folder, d.run)
    _set_threads(d)
    found = contamination.look(d.run, d.folder)
    try:
        model = _start(d)
    except _Stopped:
        return RunOutcome(folder=d.folder, step=0, finished=False)
    _tell_contamination(d, 0, found)
    return d.drive(model)


def _go_on(d: RunDriver, steps: int | None = None, ranks: int | None = None, allow_inexact: bool = False) -> RunOutcome:
    """A run that exists already; one killed before its first checkpoint starts again."""
    from assay.runtime.models.hf import load_model

    _set_threads(d)
    found = checkpoint.latest(d.folder)
    before = partial(record.run_id_of_before, d.run)
    state = checkpoint.load_state(found, d.identity, d.data, before) if found else None
    run = extend_run(d.run, state, steps)
    run = run if ranks is None else replace(run, mesh=replace(run.mesh, data=ranks, context=1))
    done = d.folder / "done.json"
    if run == d.run and done.exists():
        return RunOutcome(folder=d.folder, finished=True, **storage.read_json(done))
    changed = versions.check_versions(d.folder, record.versions_of(run), allow_inexact) if found else []
    edited = user_code.check_code(d.folder, record.code_of(run), allow_inexact) if found else []
    overlap: Mapping[str, Any] = {}
    if found:  # without a checkpoint it begins, and looks then
        overlap = contamination.look(run, d.folder)
    d.run = run
    storage.remove(done)
    remove_leftovers(d.folder, found)
    said = d.journal.newest("error")
    step = int(state["session"]["step"]) if state else -1
    gone = d.journal.missing(step)
    for line in [*d.journal.cut(step), *gone]:
        print(f"damaged: {line}", file=sys.stderr, flush=True)
    for line in gone:
        d.journal.event(step, "damaged", line)
    if found is None:
        return begin(d)
    record.write_run(d.folder, run)
    d.journal.event(step, "resumed", f"from step {step}" + (f", after {said}" if said else ""))
    if changed:
        d.journal.event(step, "inexact", "resumed on a different machine: " + "; ".join(changed))
        versions.write_versions(d.folder, record.versions_of(run))
    if edited:
        d.journal.event(step, "inexact", "resumed with other code: " + "; ".join(edited))
    user_code.write_code(d.folder, record.code_of(run))
    _tell_contamination(d, step, overlap)
    return d.drive(load_model(d.folder / "start"), found, state)


def _start(d: RunDriver) -> AnyModel:
    """The weights that the run starts from, kept in ``start``: what is there already is whole."""
    from assay.runtime.learner.anchor_models import check_buildable
    from assay.runtime.models.hf import load_model

    start = d.folder / "start"
    if start.exists():
        model = load_model(start)
        check_fits(d.run, model)  # no checkpoint yet: a file of preferences may have changed since
        return model
    check_run(d.run)
    model = models.load_source(d.run.model, partial(_build_base, d))
    others = {path: models.from_folder(path) for path in anchor_models(d.run)}
    with pause_collection():
        check_fits(d.run, model, others.__getitem__)
    for stage in d.run.stages:  # of later ones too, before the first has cost anything
        check_buildable(model, stage.learner)
    for path, other in others.items():  # a run that is gone on with must not depend on what became of other folders
        models.keep_model(other, models.held_path(d.folder, path))
    models.keep_model(model, start)
    return model


def _build_base(d: RunDriver, run: Run, folder: Path) -> Path:
    """The base that this run starts from: made, or finished, in the cache, by one process at a time."""
    with lock.builder(folder, f"the base {run.name!r}"):
        if not (folder / "done.json").exists():
            with lock.worker(folder):
                finished = _make_base(d, run, folder)
            if not finished:
                raise _Stopped
    return folder / "model"


def _make_base(d: RunDriver, run: Run, folder: Path) -> bool:
    if (folder / "run.toml").exists():
        try:
            return _go_on(RunDriver(run, folder, d.watch)).finished
        except CheckpointError:  # damaged, or begun under other versions: a base can always be made afresh
            for path in folder.iterdir():
                if path.name != lock.LOCK:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
    return begin(RunDriver(run, folder, d.watch)).finished


def _set_threads(d: RunDriver) -> None:
    from assay.runtime.machine import set_threads

    set_threads(d.run.threads)


def _tell_contamination(d: RunDriver, step: int, found: Mapping[str, Any]) -> None:
    """Says what evaluation items a run trains on, where it was told to, and what could not be looked for."""
    if (line := contamination.describe_unsearched(found)) and not contamination.told_before(d.folder):
        print(f"note: {line}", file=sys.stderr, flush=True)
    if line := contamination.sentence(found):
        print(f"contamination: {line}", file=sys.stderr, flush=True)
        d.journal.event(step, "contamination", line)


class _Stopped(Exception):
    """Ctrl-C while a base was built."""


def extend_run(run: Run, state: Any, steps: int | None) -> Run:
    """``run`` with ``steps`` in its last stage, or in the one that ended below its gate.

    Raises:
        ConfigError: the stage has done more.
    """
    if steps is None:
        return run
    at, last = (int(state["stage"]) if state else 0), len(run.stages) - 1
    stage, gate = run.stages[at], state["progress"]["gate"] if state else None
    index = at if gate is not None and gate < stage.gate else last
    done = int(state["session"]["stage_step"]) if state and at == index else 0
    if steps < max(1, done):
        raise ConfigError(f"steps={steps}, but stage {run.stages[index].name!r} has done {done} already; give at least that many")
    stages = [replace(s, steps=steps) if i == index else s for i, s in enumerate(run.stages)]
    return replace(run, stages=tuple(stages))
