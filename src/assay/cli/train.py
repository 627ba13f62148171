"""``assay train`` and ``assay resume``."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path

from assay.cli import ignore_interrupts
from assay.cli.gc_pause import Loading, loading
from assay.cli.given_options import split_options
from assay.cli.launched import check_ranks, with_mesh, with_ranks
from assay.cli.multi_run import Study, resume_all, train_many
from assay.cli.options import parse
from assay.cli.output import busy, note
from assay.cli.preflight import check, require_torch
from assay.cli.recipe import settle_all
from assay.cli.run_request import Record, made_again, named_run, run_folder
from assay.cli.tracker_options import choose_trackers, split_words
from assay.cli.train_options import ResumeOptions, TrainOptions, ViewOptions
from assay.cli.usage import asks_usage, usage
from assay.cli.user_objects import user_files
from assay.core.errors import AssayError, CallbackError, ConfigError, EngineError, MissingExtraError, RewardError
from assay.core.protocols import Tracker
from assay.measure.trackers.state import TrackerState, recorded_trackers
from assay.measure.trackers.tracker import TrackerSettings
from assay.runtime.distributed.launch import Launch
from assay.train.driver import RunOutcome, Watch, load_run, resume, train
from assay.train.progress_view import say, tell_settings, title_of, view
from assay.train.record import fresh_folder, refuse_used
from assay.train.run import Run
from assay.train.stopping import REQUEUE
from assay.train.tracking import open_trackers

__all__ = ["resume_command", "train_command"]


def train_command(args: list[str]) -> int:
    """``assay train RECIPE [options] [any field of the recipe]``."""
    if asks_usage(args):
        return usage("train", TrainOptions, args)
    return with_ranks(lambda launch: _train(args, launch))


def _train(args: list[str], launch: Launch | None) -> int:
    with loading() as loaded:
        asked = settle_all(TrainOptions, args, "assay train")
        own = asked.own
        if own.several:
            if launch is not None:
                raise ConfigError(f"--seeds and --vary start processes of their own; leave out {launch.by}")
            loaded()
            return train_many(asked.recipe, asked.words, own)
        run = with_mesh(own.apply_to(asked.run), launch)
        folder = own.folder or fresh_folder(Path("runs"), run.name)
        refuse_used(folder)
        check(run)
        require_torch()
        record = Record(recipe=asked.recipe, args=asked.words, files=user_files(), unchanged=asked.unchanged)
        trackers = choose_trackers(asked.trackers, own.tracker_flags)
        note(f"{run.name}: {run.steps} steps in {folder}")
        if asked.kept and not own.random_init:
            note(asked.kept)
        for w in asked.wires:
            note(f"{w.method}: {w.place} = {w.value}: {w.why}")
        return _work(
            lambda watch: train(run, folder, progress=False, watch=watch, profile=own.profile, prepare=record.write),
            folder,
            own,
            loaded,
            trackers,
        )


def resume_command(args: list[str]) -> int:
    """``assay resume RUN [--steps N] [--ranks N] [--allow-inexact]``."""
    return with_ranks(lambda launch: _resume(args, launch))


def _resume(args: list[str], launch: Launch | None) -> int:
    about, args = split_words(args)
    _refuse_settings(args)
    own = parse(ResumeOptions, args, "assay resume")
    own = replace(own, run=named_run(own.run))
    if study := Study.read(own.run):
        if launch is not None:
            raise ConfigError(f"{own.run} holds several runs, which start processes of their own; leave out {launch.by}")
        if own.steps or own.ranks:
            raise ConfigError(f"{own.run} holds several runs; --steps and --ranks are for one: assay resume RUN")
        return resume_all(own.run, study, own.allow_inexact)
    run_folder(own.run, ("run.toml",))
    with loading() as loaded:
        run = made_again(own.run)
        if launch is not None and own.ranks is None:
            check_ranks(load_run(own.run, run), launch)
        trackers = choose_trackers(about, own.tracker_flags, recorded_trackers(own.run))
        return _work(
            lambda watch: resume(
                own.run,
                run=run,
                steps=own.steps,
                ranks=own.ranks,
                allow_inexact=own.allow_inexact,
                progress=False,
                trackers=(),
                watch=watch,
                profile=own.profile,
            ),
            own.run,
            own,
            loaded,
            trackers,
        )


def _refuse_settings(args: Sequence[str]) -> None:
    """Refuses settings of a run behind a resume, which goes on as the run was.

    Raises:
        ConfigError: names the option, and how a new run begins from these weights.
    """
    known = {f.name for f in fields(ResumeOptions)} | {"help", "h", "n"}
    strays, given = split_options(args)
    for option in given:
        if option.path not in known and not option.path.startswith("no_"):
            run = strays[0] if strays else "RUN"
            raise ConfigError(
                f"{option.place}: a resume goes on with the settings that the run has, and changes its steps alone (--steps); "
                f"for others begin a new run from its weights: assay train RECIPE --model {run}/model {option.place}"
            )


# ---- working ----------------------------------------------------------------------------------------------------------


def _work(
    job: Callable[[Watch], RunOutcome],
    folder: Path,
    own: ViewOptions,
    loaded: Callable[[], None],
    trackers: Sequence[TrackerSettings] = (),
) -> int:
    """Runs a job with its trackers, then writes the report, whatever happened; says how to go on where there is a run."""
    begun: list[Path] = []

    def watch(run: Run, where: Path, first: int) -> Sequence[Tracker]:
        begun.append(where)
        loaded()
        if where == folder and not first:
            tell_settings(run, where)
        # the view last: what could fail has not, when it takes the screen
        return [Loading(loaded), view(run, title_of(run, where, where == folder), own.plain, first)]

    logging.getLogger("asyncio").addFilter(_no_interrupts)
    with open_trackers(folder, trackers, watch) as told:
        code = _work_off(lambda: job(told), folder, own, begun)
    for tracker in trackers:
        state = TrackerState.read(folder, tracker.tracker_name()) if begun else None
        if state is not None and not state.error and (where := tracker.where(folder, state.url)):
            say(f"{tracker.tracker_name()}: {where}")
    return code


def _work_off(job: Callable[[], RunOutcome], folder: Path, own: ViewOptions, begun: Sequence[Path]) -> int:
    """Runs a job and says what came of it; ``begun`` fills when the run has begun."""
    try:
        outcome = job()
    except (AssayError, OSError) as error:
        if not begun or not (folder / "run.toml").exists():  # refused: there is nothing to go on with
            raise
        note(f"assay: {error}")
        _report(folder, own)
        code = isinstance(error, (RewardError, CallbackError)) and not isinstance(error.__cause__, EngineError)
        what, how = ("your code is mended", " --allow-inexact") if code else ("mended", "")
        note(f"the run stopped with an error; once {what}, continue with: assay resume {folder}{how}")
        return 1
    except KeyboardInterrupt:
        ignore_interrupts()
        known = (folder / "run.toml").exists()
        note(f"stopped; continue with: assay resume {folder}" if known else "stopped before anything was done")
        return 130
    report = _report(folder, own)
    if outcome.finished:
        say(f"done: {outcome.step} steps in {folder}, digest {outcome.digest}")
    else:
        say(f"stopped after step {outcome.step}; continue with: assay resume {folder}")
    for line in (outcome.sentence, *map(str, outcome.findings)):
        say(line)
    if own.profile:
        say(_profile(folder))
    if report:
        say(f"report: {report}")
    if outcome.finished:
        say(f"ask it: assay eval {folder}   assay sample {folder} PROMPT")
    if outcome.signal == signal.SIGUSR1:
        return REQUEUE
    return 0 if outcome.finished else 130


def _no_interrupts(record: logging.LogRecord) -> bool:
    """False for asyncio's report of a task that a second Ctrl-C cut off, or of what failed because of it: the person knows."""
    error = record.exc_info[1] if record.exc_info else None
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is None


def _profile(folder: Path) -> str:
    """Where a mean step's time went, the largest parts first."""
    from assay.measure.panels import profile_of
    from assay.measure.runs import read_run

    steps, parts = profile_of(read_run(folder))
    whole = sum(p.wall for p in parts)
    shown = ", ".join(f"{p.name} {100 * p.wall / whole:.0f} %" for p in parts if p.wall >= 0.005 * whole)
    return f"a step of {1e3 * whole / steps:.0f} ms: {shown}" if steps else "no step was profiled"


def _report(folder: Path, own: ViewOptions) -> Path | None:
    """Writes the report when there is something to report; without matplotlib says how to get it."""
    if own.no_report or not (folder / "metrics.jsonl").exists():
        return None
    from assay.measure import write_report

    try:
        with busy("writing the report"):
            return write_report(folder)
    except MissingExtraError as error:
        note(f"no report: {error}")
    except (AssayError, OSError) as error:
        note(f"no report: {error}; try again with: assay report {folder}")
    return None
