"""``assay tasks`` and ``assay recipes``: what there is to practise on, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.cli.mirror import parse
from assay.cli.recipe import find, first_line, source
from assay.cli.show import busy, cell, choose, grid, lines, show, unquoted
from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.train.run import check_levels

__all__ = ["recipes_command", "tasks_command"]


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
        name: a task family ('assay tasks list' names them), or my_file.py:my_source.
        arm: the example's arm; the first when not given.
        level: the example's level; the lowest when not given.
        index: number of the example in the training stream.
        json: print JSON.
    """

    name: str = field(metadata={"positional": True, "arg": {"metavar": "FAMILY"}})
    arm: str | None = field(default=None, metadata={"arg": {"metavar": "ARM"}})
    level: int | None = field(default=None, metadata={"arg": {"metavar": "N"}})
    index: int = field(default=0, metadata={"arg": {"metavar": "N"}})
    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksCheckOptions:
    """Holds a task family to its contract: gold scores 1, junk scores the floor, splits never overlap, tasks are pure functions.

    Attributes:
        name: a task family ('assay tasks list' names them), or my_file.py:my_source.
        json: print JSON.
    """

    name: str = field(metadata={"positional": True, "arg": {"metavar": "FAMILY"}})
    json: bool = False


def tasks_command(args: list[str]) -> int:
    """``assay tasks list | show NAME | check NAME``."""
    return choose("tasks", args, {
        "list": (_tasks_list, "the task families"),
        "show": (_tasks_show, "arms, levels, verifier and an example of a family"),
        "check": (_tasks_check, "hold a family to its contract, also one of your own: my_file.py:my_source"),
    })  # fmt: skip


def _tasks_list(args: list[str]) -> int:
    from assay.tasks import card, families, family

    own = parse(TasksListOptions, args, "assay tasks list")
    cards = [(name, card(family(name))) for name in families()]
    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "arms": {a: list(ls) for a, ls in c.arms.items()},
            "oracle": c.has_trace,
            "tools": c.has_tools,
            "summary": c.summary,
        }
        for name, c in cards
    ]

    def text() -> None:
        grid(("name", "levels", "oracle", "tools", ""), [
            [r["name"], _span(r["arms"]), cell(r["oracle"]), cell(r["tools"]), unquoted(r["summary"])] for r in rows
        ])  # fmt: skip

    return show(own.json, rows, text)


def _tasks_show(args: list[str]) -> int:
    from assay.tasks import card

    own = parse(TasksShowOptions, args, "assay tasks show")
    family = source(own.name)
    known = card(family)
    arm = known.example.arm if own.arm is None else own.arm
    if arm not in known.arms:
        raise UnknownNameError(f"arm of {family.name}", arm, known.arms)
    if own.level is not None:
        check_levels(family, (own.level,), "--level")
    level = known.arms[arm][0] if own.level is None else own.level
    task = family.task(arm, level, "train", own.index)
    messages = [[m.role, m.content] for m in task.exposed().messages]
    example = {"id": task.id, "arm": arm, "level": level, "messages": messages, "private": dict(task.private)}
    value = {
        "name": known.name, "summary": known.summary, "arms": {a: list(ls) for a, ls in known.arms.items()},
        "verifier": known.verifier, "oracle": known.has_trace, "tools": known.has_tools, "example": example,
    }  # fmt: skip

    def text() -> None:
        lines({
            "name": known.name, "": unquoted(known.summary), "levels": _span(known.arms), "verifier": known.verifier,
            "oracle": cell(known.has_trace), "tools": cell(known.has_tools), "example": f"{task.id} (level {level})",
            **{f"  {role}": content for role, content in messages},
            **{f"  {k} (private)": v for k, v in task.private.items()},
        })  # fmt: skip

    return show(own.json, value, text)


def _tasks_check(args: list[str]) -> int:
    from assay.testing import ContractError, check_task_source

    own = parse(TasksCheckOptions, args, "assay tasks check")
    family = source(own.name)
    with busy(f"checking {family.name}"):
        try:
            found = check_task_source(family)
        except (ConfigError, DataError) as error:  # the check's own finding, not a wrong argument
            raise ContractError(f"task family {family.name}: {error}") from error
    value = {
        "subject": found.subject,
        "passed": list(found.passed),
        "skipped": list(found.skipped),
        "numbers": dict(found.numbers),
    }
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
    from assay.recipes import RECIPES

    own = parse(RecipesOptions, args, "assay recipes")
    rows = [{"name": name, "function": where, "summary": first_line(find(name))} for name, where in RECIPES.items()]
    return show(own.json, rows, lambda: lines({r["name"]: unquoted(r["summary"]) for r in rows}))


def _span(arms: Mapping[str, Any]) -> str:
    """Levels by arm: ``3-10``, or ``arm 1-3, other 5`` where there are several arms."""
    parts = [f"{min(ls)}-{max(ls)}" if len(ls) > 1 else str(ls[0]) for ls in arms.values()]
    return parts[0] if len(parts) == 1 else ", ".join(f"{a} {p}" for a, p in zip(arms, parts, strict=True))
