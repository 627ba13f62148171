"""``assay train`` and ``assay resume``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from assay.cli import ignore_interrupts
from assay.cli.gc_pause import Loading, loading
from assay.cli.multi_run import Study, resume_all, train_many
from assay.cli.options import parse
from assay.cli.output import busy, note
from assay.cli.preflight import check, require_torch
from assay.cli.recipe import settle_all
from assay.cli.run_request import Record, made_again, run_folder
from assay.cli.train_options import ResumeOptions, TrainOptions, ViewOptions
from assay.cli.usage import asks_usage, usage
from assay.cli.user_objects import user_files
from assay.core.errors import AssayError, ConfigError, MissingExtraError
from assay.core.protocols import Tracker
from assay.train.driver import RunOutcome, Watch, resume, train
from assay.train.progress_view import say, tell_settings
from assay.train.record import fresh_folder, refuse_used
from assay.train.run import Run

__all__ = ["resume_command", "train_command"]


def train_command(args: list[str]) -> int:
    """``assay train RECIPE [options] [any field of the recipe]``."""
    if asks_usage(args):
        return usage("train", TrainOptions, args)
    with loading() as loaded:
        asked = settle_all(TrainOptions, args, "assay train")
        own = asked.own
        if own.several:
            loaded()
            return train_many(asked.recipe, asked.words, own)
        run = own.settled(asked.run)
        folder = own.folder or fresh_folder(Path("runs"), run.name)
        refuse_used(folder)
        check(run)
        require_torch()
        record = Record(recipe=asked.recipe, args=asked.words, files=user_files())
        note(f"{run.name}: {run.steps} steps in {folder}")
        for w in asked.wires:
            note(f"{w.method}: {w.place} = {w.value}: {w.why}")
        return _work(
            lambda watch: train(run, folder, progress=False, watch=watch, profile=own.profile), folder, own, record, loaded
        )


def resume_command(args: list[str]) -> int:
    """``assay resume RUN [--steps N] [--ranks N] [--allow-inexact]``."""
    own = parse(ResumeOptions, args, "assay resume")
    if study := Study.read(own.run):
        if own.steps or own.ranks or own.allow_inexact:
            raise ConfigError(f"{own.run} holds several runs; --steps, --ranks and --allow-inexact are for one: assay resume RUN")
        return resume_all(own.run, study)
    run_folder(own.run, ("run.toml",))
    with loading() as loaded:
        record = Record.read(own.run)
        run = made_again(own.run)
        return _work(
            lambda watch: resume(
                own.run,
                run=run,
                steps=own.steps,
                ranks=own.ranks,
                allow_inexact=own.allow_inexact,
                progress=False,
                watch=watch,
                profile=own.profile,
            ),
            own.run,
            own,
            record,
            loaded,
        )


# ---- working ----------------------------------------------------------------------------------------------------------


def _work(
    job: Callable[[Watch], RunOutcome], folder: Path, own: ViewOptions, record: Record | None, loaded: Callable[[], None]
) -> int:
    """Runs a job with its trackers, then writes the report, whatever happened; says how to go on where there is a run."""
    for name in [n for n in ("tensorboard", "wandb") if getattr(own, n)]:
        if find_spec(name) is None:  # said now, not when the base has been built
            raise MissingExtraError(name, name)
    begun: list[Path] = []

    def watch(run: Run, where: Path, first: int) -> Sequence[Tracker]:
        begun.append(where)
        if record:
            record.keep(folder)
        loaded()
        if where == folder and not first:
            tell_settings(run, where)
        return [Loading(loaded), *_trackers(run, where, first, where == folder, own)]

    logging.getLogger("asyncio").addFilter(_no_interrupts)
    try:
        outcome = job(watch)
    except (AssayError, OSError) as error:
        if not begun or not (folder / "run.toml").exists():  # refused: there is nothing to go on with
            raise
        note(f"assay: {error}")
        _report(folder, own)
        note(f"the run stopped with an error; once mended, continue with: assay resume {folder}")
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
    return 0 if outcome.finished else 130


def _no_interrupts(record: logging.LogRecord) -> bool:
    """False for asyncio's report of a task that a second Ctrl-C cut off, or of what failed because of it: the person knows."""
    error = record.exc_info[1] if record.exc_info else None
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is None


def _trackers(run: Run, where: Path, first: int, main: bool, own: ViewOptions) -> list[Tracker]:
    """Those asked for, and the view.

    ``first`` is the first step that they will hear of. TensorBoard voids what an earlier process told it from there on, even one
    killed before its first checkpoint; W&B's tracker finds out for itself which steps it has.
    """
    from assay.train.progress_view import title_of, view

    out: list[Tracker] = []
    if main and own.tensorboard:
        from assay.measure import TensorBoardTracker

        out.append(TensorBoardTracker(where / "tensorboard", start_step=first - 1))
    if main and own.wandb:
        from assay.measure import WandbTracker

        out.append(WandbTracker(where / "wandb"))
    return [
        *out,
        view(run, title_of(run, where, main), own.plain, first),
    ]  # the view last: what could fail has not, when it takes the screen


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
