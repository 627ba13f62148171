"""``assay train`` and ``assay resume``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from assay.cli.mirror import parse
from assay.cli.recipe import first_line, settle, user_files
from assay.cli.records import Record, made_again
from assay.cli.show import busy, lines, note
from assay.core.errors import AssayError, ConfigError, MissingExtraError
from assay.core.protocols import Tracker
from assay.train.driver import Outcome, Watch, resume, train
from assay.train.run import Run

__all__ = ["resume_command", "train_command"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewOptions:
    """What a person sees and keeps of a run.

    Attributes:
        plain: lines instead of the live view.
        tensorboard: also write TensorBoard events (extra: tensorboard).
        wandb: also write an offline W&B run (extra: wandb).
        no_report: do not write report.html at the end.
    """

    plain: bool = False
    tensorboard: bool = False
    wandb: bool = False
    no_report: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOptions(ViewOptions):
    """Improves a model by reinforcement learning.

    Attributes:
        folder: the new run's folder; runs/NAME-1, -2, ... when not given.
    """

    folder: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeOptions(ViewOptions):
    """Goes on with a run that was stopped, killed, or has finished.

    Attributes:
        run: a run folder.
        steps: new number of steps of the last stage, more than it has done.
        allow_inexact: go on although threads, instruction set or versions differ, so that the result cannot be bit-equal.
    """

    run: Path = field(metadata={"positional": True, "arg": {"metavar": "RUN"}})
    steps: int | None = None
    allow_inexact: bool = False

    def __post_init__(self) -> None:
        if self.steps is not None and self.steps < 1:
            raise ConfigError(f"--steps {self.steps}: give the new number of steps, at least 1")


def train_command(args: list[str]) -> int:
    """``assay train RECIPE [options] [any field of the recipe]``."""
    if not args or args[0].startswith("-"):
        return usage("train", args)
    own, run = settle(TrainOptions, args[0], args[1:], "assay train")
    folder = own.folder or fresh_folder(Path("runs"), run.name)
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"{folder} is not empty: choose another --folder, or go on with it: assay resume {folder}")
    record = Record(recipe=args[0], args=tuple(args[1:]), files=user_files())
    note(f"{run.name}: {run.steps} steps in {folder}")
    return _work(lambda watch: train(run, folder, watch=watch), folder, own, record)


def resume_command(args: list[str]) -> int:
    """``assay resume RUN [--steps N] [--allow-inexact]``."""
    own = parse(ResumeOptions, args, "assay resume")
    record = Record.read(own.run)
    run = made_again(own.run)
    return _work(
        lambda watch: resume(own.run, run=run, steps=own.steps, allow_inexact=own.allow_inexact, watch=watch),
        own.run,
        own,
        record,
    )


def usage(command: str, args: Sequence[str]) -> int:
    """Help of a command that takes a recipe first, whose fields are options too."""
    from assay.cli.recipe import find
    from assay.recipes import RECIPES

    if args and args[0] not in ("-h", "--help"):
        raise ConfigError(f"give the recipe first: assay {command} RECIPE {' '.join(args)}")
    print(f"usage: assay {command} RECIPE [OPTIONS]\n\nrecipes:")
    lines({f"  {name}": first_line(find(name)).replace("`", "") for name in RECIPES})
    print("  my_file.py:my_recipe, my_package.module:my_recipe: any function that returns an assay Run\n")
    print(f"Every field of a recipe is an option: 'assay {command} RECIPE --help' lists them, as in")
    print(f"  assay {command} quickstart --seed 1 --stages.0.steps 100 --stages.0.curriculum.kind Uniform")
    return 0 if args else 2


def fresh_folder(parent: Path, name: str) -> Path:
    """``parent/NAME-1``, or the first number above those taken."""
    taken = [p.name.rpartition("-")[2] for p in parent.glob(f"{name}-*")]
    return parent / f"{name}-{max((int(t) for t in taken if t.isdecimal()), default=0) + 1}"


# ---- working ----------------------------------------------------------------------------------------------------------


def _work(job: Callable[[Watch], Outcome], folder: Path, own: ViewOptions, record: Record | None) -> int:
    """Runs a job with its trackers, then writes the report, whatever happened."""
    for name in [n for n in ("tensorboard", "wandb") if getattr(own, n)]:
        if find_spec(name) is None:  # said now, not when the base has been built
            raise MissingExtraError(name, name)
    begun: list[Path] = []

    def watch(run: Run, where: Path) -> Sequence[Tracker]:
        begun.append(where)
        if record:
            record.keep(folder)
        return _trackers(run, where, where == folder, own)

    logging.getLogger("asyncio").addFilter(_no_interrupts)
    try:
        outcome = job(watch)
    except AssayError:
        if begun:
            _report(folder, own)
            note(f"the run stopped with an error; once mended, go on with: assay resume {folder}")
        raise
    except KeyboardInterrupt:
        known = (folder / "run.toml").exists()
        note(f"stopped; go on with: assay resume {folder}" if known else "stopped before anything was done")
        return 130
    report = _report(folder, own)
    if outcome.finished:
        print(f"done: {outcome.step} steps in {folder}, digest {outcome.digest}")
    else:
        print(f"stopped after step {outcome.step}; go on with: assay resume {folder}")
    if report:
        print(f"report: {report}")
    if outcome.finished:
        print(f"ask it: assay eval {folder}   assay sample {folder} PROMPT")
    return 0 if outcome.finished else 130


def _no_interrupts(record: logging.LogRecord) -> bool:
    """False for asyncio's report of a task that a second Ctrl-C cut off: the person knows."""
    return not (record.exc_info and isinstance(record.exc_info[1], KeyboardInterrupt))


def _trackers(run: Run, where: Path, main: bool, own: ViewOptions) -> list[Tracker]:
    from assay.cli.live import view

    title = f"{run.name} · {where}" if main else f"building the base {run.name!r}, once"
    out: list[Tracker] = []
    if main and own.tensorboard:
        from assay.measure import TensorBoardTracker

        out.append(TensorBoardTracker(where / "tensorboard"))
    if main and own.wandb:
        from assay.measure import WandbTracker

        out.append(WandbTracker(where / "wandb"))
    return [*out, view(run, title, own.plain)]  # the view last: what could fail has not, when it takes the screen


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
