"""``assay report``, ``runs``, ``tasks`` and ``recipes``: looking at what is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.cli.mirror import parse
from assay.cli.show import grid, lines, show, table
from assay.core.errors import AssayError, ConfigError, DataError, UnknownNameError

if TYPE_CHECKING:
    from assay.measure import RunView

__all__ = ["recipes_command", "report_command", "runs_command", "tasks_command"]


# ---- report -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """Writes a run's report.html anew, from its journals; the run may have been killed at any moment.

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
    """Lists the runs of a folder.

    Attributes:
        root: the folder that holds run folders.
        json: print JSON.
    """

    root: Path = Path("runs")
    json: bool = False


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
    """Compares the last held-out evaluations of runs, paired where their items coincide.

    Attributes:
        runs: two or more run folders; the first is the one that the others are compared with.
        mode: greedy or sampled answers.
        json: print JSON.
    """

    runs: tuple[Path, ...] = field(metadata={"positional": True, "arg": {"metavar": "RUN"}})
    mode: str = "greedy"
    json: bool = False


def runs_command(args: list[str]) -> int:
    """``assay runs list | show RUN | compare RUN RUN ...``."""
    return _choose("runs", args, {
        "list": (_runs_list, "the runs of a folder"),
        "show": (_runs_show, "one run: progress, accuracy by level, the doctor's findings"),
        "compare": (_runs_compare, "several runs side by side, paired"),
    })  # fmt: skip


def run_folder(path: Path) -> Path:
    """``path`` if it is a run folder.

    Raises:
        DataError: it is not; names the nearest run beside it.
    """
    if (path / "run.toml").exists() or (path / "metrics.jsonl").exists():
        return path
    beside = sorted(p.parent.name for p in path.parent.glob("*/run.toml")) if path.parent.is_dir() else []
    if not path.exists() and beside:
        raise UnknownNameError(f"run in {path.parent}", path.name, beside)
    what = "does not exist" if not path.exists() else "is no run folder: it has no run.toml"
    raise DataError(f"{path} {what}; 'assay runs list' shows the runs that there are")


def _runs_list(args: list[str]) -> int:
    from assay.measure import read_run

    own = parse(RunsListOptions, args, "assay runs list")
    if not own.root.is_dir() and own.root != RunsListOptions.__dataclass_fields__["root"].default:
        raise DataError(f"{own.root} does not exist; start a run with 'assay train quickstart', or name another --root")
    rows: list[dict[str, Any]] = []
    for folder in sorted({p.parent for p in own.root.glob("*/run.toml")}, key=lambda p: p.name):
        try:
            rows.append(_row(read_run(folder)))
        except AssayError as error:
            rows.append({"run": folder.name, "state": f"unreadable: {error}"})

    def text() -> None:
        if not rows:
            print(f"no runs in {own.root}; start one: assay train quickstart")
            return
        columns = ("run", "tasks", "seed", "step", "state", "base", "now")
        grid(columns, [[_cell(r.get(c)) for c in columns] for r in rows], right=(2, 3, 5, 6))

    return show(own.json, rows, text)


def _runs_show(args: list[str]) -> int:
    from assay.measure import diagnose, read_run

    own = parse(RunsShowOptions, args, "assay runs show")
    view = read_run(run_folder(own.run))
    findings = diagnose(view.history())
    row = {**_row(view), "folder": str(own.run), "levels": _levels(view), "newest": dict(view.metrics[-1].metrics) if view.metrics else {}}
    value = {**row, "doctor": list(findings), "problems": list(view.problems)}

    def text() -> None:
        lines({k: _cell(row[k]) for k in ("run", "tasks", "seed", "step", "state", "base", "now")})
        if row["levels"]:
            grid(("level", "base", "now", "tasks"), [[x["level"], _cell(x["base"]), _cell(x["now"]), x["tasks"]] for x in row["levels"]], (0, 1, 2, 3))
        for f in findings:
            print(f"{f.severity}: {f.sentence} {f.action}")
        for problem in view.problems:
            print(f"note: {problem}")

    return show(own.json, value, text)


def _runs_compare(args: list[str]) -> int:
    from assay.measure import compare, comparison_json, comparison_table, read_run

    own = parse(RunsCompareOptions, args, "assay runs compare")
    if own.mode not in ("greedy", "sampled"):
        raise UnknownNameError("mode of answers (--mode)", own.mode, ("greedy", "sampled"))
    if len(own.runs) < 2:
        raise ConfigError("a comparison needs two runs or more: assay runs compare RUN RUN ...")
    found = compare([read_run(run_folder(p)) for p in own.runs], own.mode)
    return show(own.json, comparison_json(found), lambda: table(comparison_table(found, f"held-out accuracy, {own.mode}, 95 % intervals over tasks")))


def _row(view: RunView) -> dict[str, Any]:
    base, now = view.base("greedy"), view.final("greedy")
    tasks = view.settings.get("tasks")
    kind = str(tasks.get("kind", "")) if isinstance(tasks, Mapping) else ""
    planned = view.planned_steps
    finished = (view.folder / "done.json").exists()
    return {
        "run": view.name,
        "tasks": kind.rpartition(":")[2] or None,
        "seed": view.seed,
        "step": f"{view.last_step}/{planned}" if planned else str(view.last_step),
        "state": "finished" if finished else "not finished",
        "base": base.accuracy(view.threshold).value if base else None,
        "now": now.accuracy(view.threshold).value if now else None,
    }


def _levels(view: RunView) -> list[dict[str, Any]]:
    base, now = view.base("greedy"), view.final("greedy")
    if base is None or now is None:
        return []
    return [
        {
            "level": level,
            "base": base.only(level).accuracy(view.threshold).value if level in base.levels else None,
            "now": now.only(level).accuracy(view.threshold).value,
            "tasks": len(now.only(level).items),
        }
        for level in now.levels
    ]


# ---- tasks ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksListOptions:
    """Lists the task families.

    Attributes:
        json: print JSON.
    """

    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksShowOptions:
    """Shows a task family: arms, levels, verifier, an example with its answer.

    Attributes:
        name: a family, or my_file.py:my_source.
        arm: the example's arm; the first when empty.
        level: the example's level; the lowest when not given.
        index: number of the example in the training stream.
        json: print JSON.
    """

    name: str = field(metadata={"positional": True, "arg": {"metavar": "NAME"}})
    arm: str = ""
    level: int | None = None
    index: int = 0
    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksCheckOptions:
    """Holds a task family to its contract: gold scores 1, junk scores the floor, splits never overlap, tasks are pure functions.

    Attributes:
        name: a family, or my_file.py:my_source.
        json: print JSON.
    """

    name: str = field(metadata={"positional": True, "arg": {"metavar": "NAME"}})
    json: bool = False


def tasks_command(args: list[str]) -> int:
    """``assay tasks list | show NAME | check NAME``."""
    return _choose("tasks", args, {
        "list": (_tasks_list, "the task families"),
        "show": (_tasks_show, "arms, levels, verifier and an example of a family"),
        "check": (_tasks_check, "hold a family to its contract, also one of your own: my_file.py:my_source"),
    })  # fmt: skip


def _tasks_list(args: list[str]) -> int:
    from assay.tasks import card, families, family

    own = parse(TasksListOptions, args, "assay tasks list")
    cards = [(name, card(family(name))) for name in families()]
    rows = [
        {"name": name, "arms": {a: list(ls) for a, ls in c.arms.items()}, "oracle": c.has_trace, "tools": c.has_tools, "summary": c.summary}
        for name, c in cards
    ]

    def text() -> None:
        grid(("name", "levels", "oracle", "tools", ""), [
            [r["name"], _span(r["arms"]), _cell(r["oracle"]), _cell(r["tools"]), _unquoted(r["summary"])] for r in rows
        ])  # fmt: skip

    return show(own.json, rows, text)


def _tasks_show(args: list[str]) -> int:
    from assay.cli.recipe import source
    from assay.tasks import card

    own = parse(TasksShowOptions, args, "assay tasks show")
    family = source(own.name)
    known = card(family)
    arm = own.arm or known.example.arm
    if arm not in known.arms:
        raise UnknownNameError(f"arm of {family.name}", arm, known.arms)
    level = known.arms[arm][0] if own.level is None else own.level
    task = family.task(arm, level, "train", own.index)
    value = {
        "name": known.name, "summary": known.summary, "arms": {a: list(ls) for a, ls in known.arms.items()}, "verifier": known.verifier,
        "oracle": known.has_trace, "tools": known.has_tools,
        "example": {"id": task.id, "arm": arm, "level": level, "messages": [[m.role, m.content] for m in task.exposed().messages], "private": dict(task.private)},
    }  # fmt: skip

    def text() -> None:
        example: dict[str, Any] = value["example"]  # type: ignore[assignment]
        lines({
            "name": known.name, "": _unquoted(known.summary), "levels": _span(known.arms), "verifier": known.verifier,
            "oracle": _cell(known.has_trace), "tools": _cell(known.has_tools), "example": f"{task.id} (level {level})",
            **{f"  {role}": content for role, content in example["messages"]},
            **{f"  {k} (private)": v for k, v in example["private"].items()},
        })  # fmt: skip

    return show(own.json, value, text)


def _tasks_check(args: list[str]) -> int:
    from assay.cli.recipe import source
    from assay.cli.show import busy
    from assay.testing import check_task_source

    own = parse(TasksCheckOptions, args, "assay tasks check")
    family = source(own.name)
    with busy(f"checking {family.name}"):
        found = check_task_source(family)
    value = {"subject": found.subject, "passed": list(found.passed), "skipped": list(found.skipped), "numbers": dict(found.numbers)}
    return show(own.json, value, lambda: print("\n".join((found.subject, *found.lines()))))


# ---- recipes ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipesOptions:
    """Lists the recipes: complete runs by name.

    Attributes:
        json: print JSON.
    """

    json: bool = False


def recipes_command(args: list[str]) -> int:
    """``assay recipes``."""
    from assay.cli.recipe import find, first_line
    from assay.recipes import RECIPES

    own = parse(RecipesOptions, args, "assay recipes")
    rows = [{"name": name, "function": where, "summary": first_line(find(name))} for name, where in RECIPES.items()]
    return show(own.json, rows, lambda: lines({r["name"]: _unquoted(r["summary"]) for r in rows}))


# ---- helpers ----------------------------------------------------------------------------------------------------------


def _choose(command: str, args: list[str], known: Mapping[str, tuple[Callable[[list[str]], int], str]]) -> int:
    """Runs a sub-command."""
    if not args or args[0] in ("-h", "--help"):
        print(f"usage: assay {command} COMMAND ...\n\ncommands:")
        lines({f"  {name}": text for name, (_, text) in known.items()})
        print(f"\n'assay {command} COMMAND --help' says more.")
        return 0 if args else 2
    if args[0] not in known:
        raise UnknownNameError(f"command of 'assay {command}'", args[0], known)
    return known[args[0]][0](args[1:])


def _span(arms: Mapping[str, Any]) -> str:
    """Levels by arm: ``3-10``, or ``arm 1-3, other 5`` where there are several arms."""
    parts = [f"{min(ls)}-{max(ls)}" if len(ls) > 1 else str(ls[0]) for ls in arms.values()]
    return parts[0] if len(parts) == 1 else ", ".join(f"{a} {p}" for a, p in zip(arms, parts, strict=True))


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _unquoted(text: str) -> str:
    return text.replace("`", "")
