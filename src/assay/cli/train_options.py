"""Options of ``assay train`` and ``assay resume``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from assay.cli.recipe import shrink_run
from assay.core.errors import ConfigError
from assay.train.run import Run

__all__ = ["ResumeOptions", "TrainOptions", "ViewOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewOptions:
    """What a person sees and keeps of a run.

    Attributes:
        plain: lines instead of the live view.
        tracker: where numbers, rollouts and report also go: tensorboard, wandb, trackio, mlflow, several of them, or
            my_file.py:MyTracker; settings as --tracker.project or --tracker.wandb.mode. A resume has those of before;
            none for none.
        tensorboard: short for --tracker tensorboard.
        wandb: short for --tracker wandb, which is offline.
        no_report: do not write report.html at the end.
        profile: record where the time of each step goes; in the journal and in the report.
    """

    plain: bool = False
    tracker: tuple[str, ...] = field(default=(), metadata={"arg": {"metavar": "[NAME ...]"}})
    tensorboard: bool = False
    wandb: bool = False
    no_report: bool = False
    profile: bool = False

    @property
    def tracker_flags(self) -> tuple[str, ...]:
        """Trackers that have an option of their own."""
        return tuple(name for name in ("tensorboard", "wandb") if getattr(self, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOptions(ViewOptions):
    """Trains a model as a recipe says. Refuses to begin if training prompts contain evaluation items.

    Attributes:
        folder: the new run's folder; runs/NAME-1, -2, ... when not given.
        seeds: runs of several seeds in parallel: how many, or which (1,4,7); one per core. The same command continues those that
            were stopped.
        vary: parallel runs for every combination of settings.
        at_once: how many runs at a time; one per available core when not given.
        allow_inexact: of several runs, keep those that your code made before it changed, and continue others.
        against: evaluation rows that must not be trained on: files or folders, as well as the run's own held-out tasks.
        allow_contamination: train although prompts contain evaluation items; the report says so.
        steps: number of steps of the last stage, in place of the recipe's.
        for_model: derive what follows from the model, as for rows: learning rate, LoRA, precision, answer length, memory. Other
            options win.
        random_init: try the recipe in a minute: with a small random model of its family, generated rows and small batches. The
            numbers mean nothing, and the run's name says so.
    """

    folder: Path | None = None
    seeds: str = field(default="", metadata={"arg": {"metavar": "N|SEED,SEED", "help_behavior_hint": ""}})
    vary: tuple[str, ...] = field(default=(), metadata={"arg": {"metavar": "[OPTION=A,B ...]"}})
    at_once: int = field(default=0, metadata={"arg": {"help_behavior_hint": ""}})
    allow_inexact: bool = False
    against: tuple[Path, ...] = field(default=(), metadata={"arg": {"metavar": "[FILE ...]"}})
    allow_contamination: bool = False
    steps: int | None = None
    for_model: bool = False
    random_init: bool = False

    def __post_init__(self) -> None:
        if self.steps is not None and self.steps < 1:
            raise ConfigError(f"--steps {self.steps}: give the number of steps of the last stage, at least 1")
        if self.at_once < 0:
            raise ConfigError(f"--at-once {self.at_once}: give how many runs at a time, at least 1")
        if self.at_once and not self.several:
            raise ConfigError("--at-once is about several runs side by side; give --seeds or --vary too, or leave it out")
        if self.allow_inexact and not self.several:
            raise ConfigError(
                "--allow-inexact is about several runs, or a resume; give --seeds or --vary too, or: assay resume RUN"
            )

    @property
    def several(self) -> bool:
        """Whether several runs are asked for."""
        return bool(self.seeds or self.vary)

    def apply_to(self, run: Run) -> Run:
        """``run`` with what these options say of it."""
        if self.steps is not None:
            run = replace(run, stages=(*run.stages[:-1], replace(run.stages[-1], steps=self.steps)))
        run = shrink_run(run) if self.random_init else run
        check = run.contamination
        mode = "report" if self.allow_contamination else check.mode
        changed = replace(check, against=(*check.against, *map(str, self.against)), mode=mode)
        return run if changed == check else replace(run, contamination=changed)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeOptions(ViewOptions):
    """Continues a run that was stopped, killed, or has finished, or the runs of a folder of parallel runs.

    Attributes:
        run: a run folder.
        steps: new number of steps of the last stage, at least what it has done.
        ranks: new number of processes that share the learner; with --allow-inexact.
        allow_inexact: continue although threads, instruction set, versions or your own code differ, so that the result cannot be
            bit-equal.
    """

    run: Path = field(metadata={"positional": True, "arg": {"metavar": "RUN"}})
    steps: int | None = None
    ranks: int | None = None
    allow_inexact: bool = False

    def __post_init__(self) -> None:
        if self.ranks is not None and self.ranks < 1:
            raise ConfigError(f"--ranks {self.ranks}: give the new number of processes, at least 1")
        if self.steps is not None and self.steps < 1:
            raise ConfigError(f"--steps {self.steps}: give the new number of steps, at least 1")
