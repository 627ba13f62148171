"""``assay train`` and ``assay resume``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from assay.core.errors import AssayError, ConfigError
from assay.core.protocols import Tracker
from assay.train.run import Run

__all__ = ["resume_command", "train_command"]


def train_command(args: list[str]) -> int:
    """``assay train RECIPE [--folder DIR] [--plain] [--tensorboard] [--wandb] [any field of the recipe]``."""
    from assay.cli.recipe import settle
    from assay.recipes import RECIPES
    from assay.train import storage
    from assay.train.driver import train

    parser = _parser("assay train", "RECIPE", f"a recipe ({', '.join(RECIPES)}), or my_file.py:my_recipe")
    parser.add_argument("--folder", type=Path, help="the new run's folder (default: runs/NAME-1, -2, ...)")
    if not args or args[0] in ("-h", "--help"):
        parser.print_help()
        print("\nEvery field of the recipe is an option too: assay train RECIPE --help lists them.")
        return 0 if args else 2
    own, rest = parser.parse_known_args(args)
    run = settle(own.recipe, rest, "assay train")
    folder = own.folder or _fresh(Path("runs"), run.name)
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise ConfigError(f"{folder} is not empty: choose another --folder, or go on with it: assay resume {folder}")
    storage.write_json(folder / "recipe.json", {"recipe": own.recipe, "args": rest})
    return _work(lambda watch: train(run, folder, watch=watch), folder, own)


def resume_command(args: list[str]) -> int:
    """``assay resume RUN [--steps N] [--allow-inexact]``."""
    from assay.train.driver import resume

    parser = _parser("assay resume", "RUN", "a run folder")
    parser.add_argument("--steps", type=int, help="new number of steps of the last stage, more than it has done")
    parser.add_argument("--allow-inexact", action="store_true", help="go on although threads, instruction set or versions differ")
    own = parser.parse_args(args or ["--help"])
    folder = Path(own.recipe)
    run = _recorded(folder)
    return _work(
        lambda watch: resume(folder, run=run, steps=own.steps, allow_inexact=own.allow_inexact, watch=watch), folder, own
    )


def _parser(prog: str, what: str, text: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=prog, add_help=prog != "assay train", allow_abbrev=False)
    parser.add_argument("recipe", metavar=what, help=text)
    parser.add_argument("--plain", action="store_true", help="lines instead of the live view")
    parser.add_argument("--tensorboard", action="store_true", help="also write TensorBoard events (extra: tensorboard)")
    parser.add_argument("--wandb", action="store_true", help="also write an offline W&B run (extra: wandb)")
    parser.add_argument("--no-report", action="store_true", help="do not write report.html at the end")
    return parser


def _work(job: object, folder: Path, own: argparse.Namespace) -> int:
    """Runs a job with its trackers, then writes the report, whatever happened."""
    from typing import cast

    from assay.train.driver import Outcome, Watch

    def watch(run: Run, where: Path) -> Sequence[Tracker]:
        return _trackers(run, where, main=where == folder, own=own)

    try:
        outcome = cast("Outcome", cast("object", _call(job, cast("Watch", watch))))
    except AssayError:
        _report(folder, own)
        print(f"the run stopped; once mended: assay resume {folder}", file=sys.stderr)
        raise
    report = _report(folder, own)
    if outcome.finished:
        print(f"done: {outcome.step} steps, digest {outcome.digest}")
    else:
        print(f"stopped after step {outcome.step}; go on with: assay resume {folder}")
    if report:
        print(f"report: {report}")
    return 0 if outcome.finished else 130


def _call(job: object, watch: object) -> object:
    return job(watch)  # type: ignore[operator]


def _trackers(run: Run, where: Path, main: bool, own: argparse.Namespace) -> list[Tracker]:
    from assay.cli.live import view

    title = f"{run.name} · {where}" if main else f"building {run.name} (once)"
    out: list[Tracker] = [view(run, title, own.plain)]
    if main and own.tensorboard:
        from assay.measure.trackers import TensorBoardTracker

        out.append(TensorBoardTracker(where / "tensorboard"))
    if main and own.wandb:
        from assay.measure.trackers import WandbTracker

        out.append(WandbTracker(where / "wandb"))
    return out


def _report(folder: Path, own: argparse.Namespace) -> Path | None:
    """Writes the report when there is something to report; without matplotlib says how to get it."""
    if own.no_report or not (folder / "metrics.jsonl").exists():
        return None
    from assay.core.errors import MissingExtraError
    from assay.measure.report import write_report

    try:
        return write_report(folder)
    except MissingExtraError as error:
        print(f"no report: {error}", file=sys.stderr)
        return None


def _recorded(folder: Path) -> Run | None:
    """The run of a recipe in a user's file, made again: its functions cannot be found by name alone."""
    from assay.cli.recipe import settle
    from assay.train import storage

    path = folder / "recipe.json"
    if not path.exists():
        return None
    record = storage.read_json(path)
    return settle(record["recipe"], record["args"], "assay resume") if ".py:" in record["recipe"] else None


def _fresh(parent: Path, name: str) -> Path:
    taken = {p.name for p in parent.glob(f"{name}-*")} if parent.exists() else set[str]()
    return parent / next(f"{name}-{i}" for i in range(1, len(taken) + 2) if f"{name}-{i}" not in taken)
