"""``assay verify``: which verifiers there are, and answers judged by one."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.cli.listing_cache import kept_rows
from assay.cli.options import parse
from assay.cli.output import cell, choose, grid, note, show, strip_marks
from assay.core.errors import ConfigError

__all__ = ["gather_settings", "settings_of", "verify_command"]

_SHOWN = 400
"""Characters of an error in the summary; the row has all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyListOptions:
    """Lists the verifiers with their components and the form of their gold.

    Attributes:
        json: print JSON.
    """

    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRunOptions:
    """Scores answers: JSON lines in, a line of JSON out for each, in order.

    A line is {"gold": ..., "answer": "text"}, or {"task": {...}, "answer": "text"}; with --family, "task" may be the id of one
    of its tasks. Out come "value", "components", "fault", "verdict" and "seconds", and for a fault its "error". A line that
    cannot be read is a line out too, with the fault "verifier". Exit code 1 where a line has no value.

    Attributes:
        name: a verifier ('assay verify list' names them), or my_file.py:function or package.module:Class of your own.
        cases: a file of JSON lines; the standard input when not given.
        set: a setting of the verifier, KEY=VALUE, the value as JSON or plain text; may be given several times.
        family: a task family whose tasks the lines name by their ids.
        deadline: seconds for one verdict of a verifier that runs in a process of its own.
        workers: lines judged at once; every core where the answers are programs, 1 elsewhere.
    """

    name: str = field(metadata={"positional": True, "arg": {"metavar": "NAME"}})
    cases: Path | None = field(default=None, metadata={"positional": True, "arg": {"metavar": "[FILE]"}})
    set: tuple[str, ...] = field(default=(), metadata={"arg": {"metavar": "KEY=VALUE"}})
    family: str | None = field(default=None, metadata={"arg": {"metavar": "FAMILY"}})
    deadline: float = field(default=5.0, metadata={"arg": {"metavar": "SECONDS"}})
    workers: int | None = field(default=None, metadata={"arg": {"metavar": "N"}})


def verify_command(args: list[str]) -> int:
    """``assay verify list | run NAME | audit NAME``."""
    return choose(
        "verify",
        args,
        {
            "list": (_list, "the verifiers, their components and golds"),
            "run": (_run, "score answers, JSON lines in and out; also with a function of your own"),
            "audit": (
                "assay.cli.audit:audit_leaf",
                "audit a verifier, or your own reward: what it refuses, accepts and executes",
            ),
        },
    )


def _list(args: list[str]) -> int:
    own = parse(VerifyListOptions, args, "assay verify list")
    rows = kept_rows("verifiers", _rows)

    def text() -> None:
        grid(
            ("name", "components", "gold", "trusted", ""),
            [[r["name"], ", ".join(r["components"]), r["gold"], cell(r["trusted"]), strip_marks(r["summary"])] for r in rows],
        )

    return show(own.json, rows, text)


def _rows() -> list[dict[str, Any]]:
    from assay.core.canon import plain
    from assay.verify.catalog import about, verifiers

    return [
        {
            "name": v.name,
            "components": list(v.components),
            "gold": v.gold,
            "trusted": v.trusted,
            "kind": v.kind,
            "settings": plain(dict(v.settings)),
            "summary": v.summary,
        }
        for v in map(about, verifiers())
    ]


# ---- judging ----------------------------------------------------------------------------------------------------------


def _run(args: list[str]) -> int:
    from assay.cli.sources import scorer, source

    own = parse(VerifyRunOptions, gather_settings(args), "assay verify run")
    if not own.deadline > 0:
        raise ConfigError(f"--deadline {own.deadline}: give seconds above 0")
    if own.workers is not None and own.workers < 1:
        raise ConfigError(f"--workers {own.workers}: give 1 or more")
    family = None if own.family is None else source(own.family)
    judge = scorer(own.name, settings_of(own.set))
    from assay.cli.verify_lines import Judges, judge_lines

    if ":" in own.name:
        from assay.tasks.named_rewards import describe_call

        if called := describe_call(judge):
            note(f"assay: calls {called}")

    lost: list[str] = []
    judged = 0

    def give(row: dict[str, Any]) -> None:
        nonlocal judged
        print(json.dumps(row, allow_nan=False), flush=True)
        judged += 1
        if row["value"] is None:
            lost.append(row["error"])

    with ExitStack() as stack:
        if own.cases is None:
            name, lines = "standard input", getattr(sys.stdin, "buffer", sys.stdin)
        elif own.cases.exists() and not own.cases.is_dir():  # a pipe will do
            name, lines = str(own.cases), stack.enter_context(own.cases.open("rb"))
        else:
            raise ConfigError(f"{own.cases} is no file; give one with a JSON object on each line")
        judges = stack.enter_context(Judges(judge, own.deadline, own.workers, family))
        judge_lines(judges, lines, name, give)
    if lost:
        note(f"assay: {len(lost)} of {judged} lines have no verdict; the first: {lost[0][:_SHOWN]}")
    return 1 if lost else 0


def settings_of(given: Sequence[str]) -> dict[str, Any]:
    """What several ``--set KEY=VALUE`` say.

    Raises:
        ConfigError: one without a key or an equals sign.
    """
    out: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise ConfigError(f"--set {text!r}: write KEY=VALUE")
        try:
            out[key] = json.loads(value)
        except ValueError:
            out[key] = value
    return out


def gather_settings(args: Sequence[str]) -> list[str]:
    """Arguments in which one ``--set`` holds what all of them said."""
    rest: list[str] = []
    said: list[str] = []
    words = iter(args)
    for word in words:
        if word.startswith("--set="):
            said.append(word.removeprefix("--set="))
        elif word == "--set":
            said.append(next(words, ""))
        else:
            rest.append(word)
    return [*rest, "--set", *said] if said else rest
