"""``assay report`` and ``assay runs``: looking at runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.cli.options import parse
from assay.cli.output import cell, choose, grid, lines, show, table
from assay.cli.run_differences import differing, print_differences
from assay.cli.run_request import RUNS, named_run, run_folder, runs_in
from assay.cli.run_rows import run_row
from assay.core.errors import AssayError, ConfigError, DataError, UnknownNameError

if TYPE_CHECKING:
    from assay.measure import RunView

__all__ = ["report_command", "runs_command"]


# ---- report -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """Writes a run's report.html again from its journals; the run may have been killed at any moment.

    Attributes:
        run: a run folder.
        json: print the path as JSON.
    """

    run: Path = field(metadata={"positional": True, "arg": {"metavar": "RUN"}})
    json: bool = False


def report_command(args: list[str]) -> int:
    """``assay report RUN``."""
    from assay.measure import write_report

    own = parse(ReportOptions, args, "assay report")
    path = write_report(run_folder(own.run))
    return show(own.json, {"report": str(path)}, lambda: print(path))


# ---- runs -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsListOptions:
    """Lists the runs of a folder: recipe, objective, model, progress, held-out accuracy, and what differs from the recipe.

    Attributes:
        folder: the folder that holds run folders; runs when not given.
        root: the same as an option.
        json: print JSON.
    """

    folder: Path | None = field(default=None, metadata={"positional": True, "arg": {"metavar": "[FOLDER]"}})
    root: Path | None = None
    json: bool = False

    def __post_init__(self) -> None:
        if self.folder is not None and self.root is not None:
            raise ConfigError(f"{self.folder} and --root {self.root} both name the folder of runs; give one of them")

    @property
    def where(self) -> Path:
        """The folder."""
        return self.folder or self.root or RUNS


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsShowOptions:
    """Shows one run: how far it is, held-out accuracy by level, what the doctor finds.

    Attributes:
        run: a run folder.
        json: print JSON.
    """

    run: Path = field(metadata={"positional": True, "arg": {"metavar": "RUN"}})
    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsCompareOptions:
    """Compares runs: settings and versions that differ, and the last held-out evaluations, paired by item.

    Attributes:
        runs: two or more run folders, or one that holds several (--seeds); the first is what the others are compared with.
        mode: which answers: greedy or sampled.
        json: print JSON.
    """

    runs: tuple[Path, ...] = field(
        metadata={"positional": True, "arg": {"metavar": "RUN RUN [RUN ...]", "help_behavior_hint": "(required)"}}
    )
    mode: str = field(default="greedy", metadata={"arg": {"metavar": "MODE"}})
    json: bool = False


def runs_command(args: list[str]) -> int:
    """``assay runs list | show RUN | compare RUN RUN ... | sync RUN | samplers RUN COUNT | replay RUN``."""
    from assay.cli.run_replay import runs_replay
    from assay.cli.run_samplers import runs_samplers
    from assay.cli.run_sync import runs_sync

    return choose(
        "runs",
        args,
        {
            "list": (_runs_list, "the runs of a folder"),
            "show": (_runs_show, "one run: progress, accuracy by level, the doctor's findings"),
            "compare": (_runs_compare, "several runs side by side, paired"),
            "sync": (runs_sync, "send a run to Weights & Biases, TensorBoard, trackio or MLflow, or what is missing there"),
            "samplers": (runs_samplers, "change how many processes sample for a run that is at work"),
            "replay": (runs_replay, "learn again from what an asynchronous run accepted, and compare"),
        },
    )


def _runs_list(args: list[str]) -> int:
    from assay.measure import read_run

    own = parse(RunsListOptions, args, "assay runs list")
    root = own.where
    if not root.is_dir() and root != RUNS:
        what = "is no folder" if root.exists() else "does not exist"
        raise DataError(
            f"{root} {what}; start a run with 'assay train quickstart', or name another folder: assay runs list FOLDER"
        )
    if (root / "run.toml").exists():
        raise DataError(f"{root} is a run, not a folder of runs; 'assay runs show {root}' shows it")
    rows: list[dict[str, Any]] = []
    beside = [run for study in root.glob("*/study.json") for run in study.parent.glob("*/run.toml")]
    for folder in sorted({p.parent for p in (*root.glob("*/run.toml"), *beside)}):
        name = str(folder.relative_to(root))
        try:
            rows.append({**run_row(read_run(folder)), "run": name})
        except AssayError as error:
            rows.append({"run": name, "state": f"unreadable: {error}"})

    def text() -> None:
        if not rows:
            print(f"no runs in {root}; start one: assay train quickstart")
            return
        columns = ("run", "recipe", "objective", "model", "seed", "step", "state", "base", "now", "changed")
        grid(columns, [[cell(r.get(c)) for c in columns] for r in rows], right=(4, 5, 7, 8))

    return show(own.json, rows, text)


def _runs_show(args: list[str]) -> int:
    from assay.measure import diagnose, read_run

    own = parse(RunsShowOptions, args, "assay runs show")
    view = read_run(run_folder(own.run))
    findings = diagnose(view.history())
    row, levels = run_row(view), _levels(view)
    newest = dict(view.metrics[-1].metrics) if view.metrics else {}
    value = {**row, "folder": str(own.run), "levels": levels, "newest": newest, "doctor": findings, "problems": view.problems}
    value["contamination"], value["ended_early"] = view.contamination, view.ended_early

    def text() -> None:
        early = {"ended early": "; ".join(view.ended_early)} if view.ended_early else {}
        lines({k: cell(v) for k, v in row.items()} | early | {"overlap": view.overlap})
        if levels:
            several = len({x["arm"] for x in levels}) > 1
            grid(
                ("arm and level" if several else "level", "base", "now", "tasks"),
                [
                    [f"{x['arm']} {x['level']}" if several else x["level"], cell(x["base"]), cell(x["now"]), x["tasks"]]
                    for x in levels
                ],
                (1, 2, 3) if several else (0, 1, 2, 3),
            )
        for f in findings:
            print(f)
        for problem in view.problems:
            print(f"note: {problem}")

    return show(own.json, value, text)


def _runs_compare(args: list[str]) -> int:
    from assay.measure import compare, comparison_json, comparison_table, read_run

    own = parse(RunsCompareOptions, args, "assay runs compare")
    if own.mode not in ("greedy", "sampled"):
        raise UnknownNameError("mode of answers (--mode)", own.mode, ("greedy", "sampled"))
    folders = [folder for path in own.runs for folder in runs_in(named_run(path)) or [path]]
    if len(folders) < 2:
        raise ConfigError("a comparison needs two runs or more: assay runs compare RUN RUN ...")
    views = [read_run(run_folder(p)) for p in folders]
    found = compare(views, own.mode)
    settings, versions = differing([v.settings for v in views]), differing([v.versions for v in views])
    value = [{**row, "settings": settings[i], "versions": versions[i]} for i, row in enumerate(comparison_json(found))]

    def text() -> None:
        print_differences(views)
        table(comparison_table(found, f"held-out accuracy, {own.mode}, 95 % intervals over tasks"))

    return show(own.json, value, text)


def _levels(view: RunView) -> list[dict[str, Any]]:
    base, now = view.base("greedy"), view.final("greedy")
    if base is None or now is None:
        return []
    base, now = base.shared_with(now), now.shared_with(base)
    return [
        {
            "arm": arm,
            "level": level,
            "base": base.only(level, arm).accuracy(view.threshold).value if (arm, level) in base.cells else None,
            "now": now.only(level, arm).accuracy(view.threshold).value,
            "tasks": len(now.only(level, arm).items),
        }
        for arm, level in now.cells
    ]
