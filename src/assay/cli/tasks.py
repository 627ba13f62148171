"""``assay tasks``: what there is to practise on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from assay.cli.listing_cache import kept_rows, task_packages
from assay.cli.options import parse
from assay.cli.output import busy, cell, choose, grid, lines, show, strip_marks
from assay.cli.task_listing import task_rows
from assay.core.errors import ConfigError, UnknownNameError

if TYPE_CHECKING:
    from assay.core.protocols import TaskSource

__all__ = ["tasks_command"]

_FAMILY = {"positional": True, "arg": {"metavar": "FAMILY"}}
_ARM, _N = {"arg": {"metavar": "ARM"}}, {"arg": {"metavar": "N"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksListOptions:
    """Lists the task families, and the suites that are made of them.

    Attributes:
        arms: a line for each arm, not for each family.
        json: print JSON.
    """

    arms: bool = False
    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksShowOptions:
    """Shows a task family: arms, levels, verifier, an example with its answer.

    Attributes:
        name: a task family, one of its arms, or a suite ('assay tasks list' names them), rows.jsonl, puzzle.toml, or
            my_file.py:my_source.
        arm: the example's arm; the first when not given.
        level: the example's level; the lowest when not given.
        index: number of the example in the training stream.
        json: print JSON.
    """

    name: str = field(metadata=_FAMILY)
    arm: str | None = field(default=None, metadata=_ARM)
    level: int | None = field(default=None, metadata=_N)
    index: int = field(default=0, metadata=_N)
    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksCheckOptions:
    """Holds a task family to its contract: gold scores 1, junk scores the floor, splits never overlap, tasks are pure functions.

    Attributes:
        name: a task family, one of its arms, or a suite ('assay tasks list' names them), rows.jsonl, puzzle.toml, or
            my_file.py:my_source.
        n: tasks of each arm, level and split.
        deadline: seconds that a verifier of your own may take for one verdict.
        json: print JSON.
    """

    name: str = field(metadata=_FAMILY)
    n: int = field(default=16, metadata={"arg": {"metavar": "N", "aliases": ["-n"]}})
    deadline: float = field(default=5.0, metadata={"arg": {"metavar": "SECONDS"}})
    json: bool = False


def tasks_command(args: list[str]) -> int:
    """``assay tasks list | show NAME | sample NAME | import SOURCE OUT | export NAME FOLDER | admit MODEL NAME | check NAME``."""
    return choose(
        "tasks",
        args,
        {
            "list": (_list, "the task families"),
            "show": (_show, "arms, levels, verifier and an example of a family"),
            "sample": ("assay.cli.tasks_sample:sample", "tasks of a family as JSON Lines, with or without their answers"),
            "import": (
                "assay.cli.tasks_exchange:import_rows",
                "rows of files, reasoning-gym or verifiers, each with its verifier, tried before they are taken",
            ),
            "export": (
                "assay.cli.tasks_exchange:export_family",
                "a family as an installable environment of the library verifiers",
            ),
            "admit": ("assay.cli.tasks_admit:admit", "which arms of a suite a model may practise, and which are only evaluated"),
            "check": (_check, "hold a family to its contract, also one of your own: my_file.py:my_source"),
        },
    )


def _list(args: list[str]) -> int:
    own = parse(TasksListOptions, args, "assay tasks list")
    with busy("reading the families"):
        every = kept_rows("tasks", task_rows, task_packages())
    rows, whole = [r for r in every if r["parts"] is None], [r for r in every if r["parts"] is not None]

    def text() -> None:
        if own.arms:
            arms = [(a, _span(r["arms"][a]), x) for r in rows for a, x in r["problems"].items()]
            grid(("arm", "domain", "levels", ""), [[a, x["domain"], ls, strip_marks(x["summary"])] for a, ls, x in arms])
            return
        grid(
            ("name", "domain", "arms", "levels", "oracle", "tools", ""),
            [
                [
                    r["name"],
                    ", ".join(r["domains"]),
                    len(r["arms"]),
                    _reach([n for ls in r["arms"].values() for n in ls]),
                    cell(r["oracle"]),
                    cell(r["tools"]),
                    strip_marks(r["summary"]),
                ]
                for r in rows
            ],
            right=(2,),
        )
        grid(
            ("suite", "parts", "families", "arms", ""),
            [
                [
                    r["name"],
                    len(r["parts"]),
                    sum(map(len, r["parts"].values())),
                    len(r["arms"]),
                    r["summary"],
                ]
                for r in whole
            ],
            right=(1, 2, 3),
        )

    return show(own.json, rows + whole, text)


def _json(value: Any) -> str:
    from assay.core.canon import plain

    return json.dumps(plain(value), ensure_ascii=False)


def _show(args: list[str]) -> int:
    from assay.cli.sources import own_code, source
    from assay.tasks import TaskMixture, card
    from assay.tasks.judged import judge_of, spec_of
    from assay.train.levels import check_levels

    own = parse(TasksShowOptions, args, "assay tasks show")
    family = source(own.name)
    with own_code(own.name):
        known = card(family)
    arm = known.example.arm if own.arm is None else own.arm
    if arm not in known.arms:
        raise UnknownNameError(f"arm of {family.name}", arm, known.arms)
    if own.level is not None:
        check_levels(family, (own.level,), "--level")
    level = known.arms[arm][0] if own.level is None else own.level
    with own_code(own.name):
        task = family.task(arm, level, "train", own.index)
    messages = [[m.role, m.content] for m in task.public_view().messages]
    example = {"id": task.id, "arm": arm, "level": level, "messages": messages, "private": dict(task.private)}
    value = {
        "name": known.name,
        "summary": known.summary,
        "arms": {a: list(ls) for a, ls in known.arms.items()},
        "verifier": known.verifier,
        "oracle": known.has_trace,
        "tools": known.has_tools,
        "example": example,
    }

    spec = None if isinstance(family, TaskMixture) else spec_of(judge_of(family.verifier(), task))
    judge = known.verifier if spec is None else _json(spec) + (" on this arm" if len(known.arms) > 1 else "")

    def text() -> None:
        lines(
            {
                "name": known.name,
                "": strip_marks(known.summary),
                **_offered_arms(family, known.arms),
                "verifier": judge,
                "oracle": cell(known.has_trace),
                "tools": cell(known.has_tools),
                "example": f"{task.id} (level {level})",
                **{f"  {role}": content for role, content in messages},
                **{f"  {k} (private)": v if isinstance(v, str) else _json(v) for k, v in task.private.items()},
            }
        )

    return show(own.json, value, text)


def _offered_arms(family: TaskSource, arms: Mapping[str, Sequence[int]]) -> dict[str, str]:
    """The arms with their levels; of a suite its parts, with the families of each."""
    from assay.tasks import TaskMixture

    if not isinstance(family, TaskMixture):
        return {"levels": ", ".join(_span(ls) if len(arms) == 1 else f"{a} {_span(ls)}" for a, ls in arms.items())}
    return {
        "families" if family.parts is None else part: ", ".join(
            f"{name} {_reach([n for a in of for n in arms[a]])}" + (f" ({len(of)} arms)" if len(of) > 1 else "")
            for name, of in families.items()
        )
        for part, families in family.members().items()
    }


def _check(args: list[str]) -> int:
    from assay.cli.sources import source
    from assay.cli.tasks_check import check_family

    own = parse(TasksCheckOptions, args, "assay tasks check")
    if own.n < 1:
        raise ConfigError(f"-n {own.n}: check at least one task of each cell")
    if not own.deadline > 0:
        raise ConfigError(f"--deadline {own.deadline}: give the seconds that one verdict may take")
    family = source(own.name)
    return check_family(family, own.name, own.n, own.deadline, own.json)


def _reach(levels: Sequence[int]) -> str:
    """The lowest and the highest of the levels of several arms."""
    return _span(range(min(levels), max(levels) + 1))


def _span(levels: Sequence[int]) -> str:
    """Levels in short: ``3-10``, or the one that there is; one by one where some between are missing."""
    known = sorted(set(levels))
    if len(known) < known[-1] - known[0] + 1:
        return " ".join(map(str, known))
    return f"{known[0]}-{known[-1]}" if len(known) > 1 else str(known[0])
