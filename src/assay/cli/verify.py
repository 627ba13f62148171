"""``assay verify``: which verifiers there are, and answers judged by one."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from assay.cli.audit import audit_leaf
from assay.cli.mirror import parse
from assay.cli.recipe import scorer, source
from assay.cli.show import cell, choose, grid, note, show, unquoted
from assay.core.canon import FrozenMap, plain
from assay.core.errors import ConfigError, DataError
from assay.core.protocols import TaskSource, Verifier
from assay.core.score import Fault, Score
from assay.verify.cases import case_of, parsed, verdict_row

__all__ = ["gathered", "settings_of", "verify_command"]

_SHOWN = 400
"""Characters of an error in the summary; the row has all of it."""

_INVENTED = "task 'case': "
"""How errors call a task that a line gave no name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyListOptions:
    """Lists the verifiers: what each gives, and what its gold must be.

    Attributes:
        json: print JSON.
    """

    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRunOptions:
    """Judges answers: JSON lines in, a line of JSON out for each, in order.

    A line is {"gold": ..., "answer": "text"}, or {"task": {...}, "answer": "text"}; with --family, "task" may be the id of one
    of its tasks. Out come "value", "components", "fault", "verdict" and "seconds", and for a fault its "error". A line that
    cannot be read is a line out too, with the fault "verifier". Exit code 1 where a line has no value.

    Attributes:
        name: a verifier ('assay verify list' names them), or my_file.py:function or package.module:Class of your own.
        cases: a file of JSON lines; the standard input when not given.
        set: a setting of the verifier, KEY=VALUE, the value as JSON or plain text; may be given several times.
        family: a task family whose tasks the lines name by their ids.
        deadline: seconds for one verdict of a verifier that runs in a process of its own.
    """

    name: str = field(metadata={"positional": True, "arg": {"metavar": "NAME"}})
    cases: Path | None = field(default=None, metadata={"positional": True, "arg": {"metavar": "[FILE]"}})
    set: tuple[str, ...] = field(default=(), metadata={"arg": {"metavar": "KEY=VALUE"}})
    family: str | None = field(default=None, metadata={"arg": {"metavar": "FAMILY"}})
    deadline: float = field(default=5.0, metadata={"arg": {"metavar": "SECONDS"}})


def verify_command(args: list[str]) -> int:
    """``assay verify list | run NAME | audit NAME``."""
    return choose("verify", args, {
        "list": (_list, "the verifiers, their components and golds"),
        "run": (_run, "judge answers, JSON lines in and out; also with a function of your own"),
        "audit": (audit_leaf, "measure a verifier, or your own reward: what it refuses, accepts, runs"),
    })  # fmt: skip


def _list(args: list[str]) -> int:
    from assay.verify.named import about, verifiers

    own = parse(VerifyListOptions, args, "assay verify list")
    rows: list[dict[str, Any]] = [
        {
            "name": v.name, "components": list(v.components), "gold": v.gold, "trusted": v.trusted, "kind": v.kind,
            "settings": plain(dict(v.settings)), "summary": v.summary,
        }
        for v in map(about, verifiers())
    ]  # fmt: skip

    def text() -> None:
        grid(("name", "components", "gold", "trusted", ""), [
            [r["name"], ", ".join(r["components"]), r["gold"], cell(r["trusted"]), unquoted(r["summary"])] for r in rows
        ])  # fmt: skip

    return show(own.json, rows, text)


# ---- judging ----------------------------------------------------------------------------------------------------------


def _run(args: list[str]) -> int:
    own = parse(VerifyRunOptions, gathered(args), "assay verify run")
    if not own.deadline > 0:
        raise ConfigError(f"--deadline {own.deadline}: give seconds above 0")
    family = None if own.family is None else source(own.family)
    judge = scorer(own.name, settings_of(own.set))
    lost: list[str] = []
    with ExitStack() as stack:
        if own.cases is None:
            name, lines = "standard input", getattr(sys.stdin, "buffer", sys.stdin)
        elif own.cases.is_file():
            name, lines = str(own.cases), stack.enter_context(own.cases.open("rb"))
        else:
            raise ConfigError(f"{own.cases} is no file; give one with a JSON object on each line")
        judged = 0
        for row in _judged(judge, own.deadline, _numbered(name, lines), family, stack):
            print(json.dumps(row, allow_nan=False), flush=True)
            judged += 1
            if row["value"] is None:
                lost.append(str(row.get("error", f"fault {row['fault']}")))
    if lost:
        note(f"assay: {len(lost)} of {judged} lines have no verdict; the first: {lost[0][:_SHOWN]}")
    return 1 if lost else 0


def _numbered(name: str, lines: Iterable[str | bytes]) -> Iterator[tuple[str, str | bytes]]:
    """Each line that is not blank, and where it stands."""
    return ((f"{name}, line {number}", line) for number, line in enumerate(lines, 1) if line.strip())


def _judged(
    verifier: Verifier, deadline: float, lines: Iterable[tuple[str, str | bytes]], family: TaskSource | None, stack: ExitStack
) -> Iterator[dict[str, Any]]:
    """A row for each line, in order; one that cannot be read or judged is a row too."""
    from assay.verify import ScoringPool

    with suppress(Exception):  # a worker will meet the same failure, and say so
        getattr(verifier, "prepare", _nothing)()  # before the pool forks: what this takes is no answer's time
    pool = stack.enter_context(ScoringPool(verifier, deadline, workers=1, refuse=False))
    for place, line in lines:
        began = perf_counter()
        try:
            task, rollout = case_of(parsed(line, place), place, family=family)
            score = pool.score([(task, rollout)])[rollout.id]
        except DataError as error:
            score = _unread(str(error))
        yield verdict_row(_placed(score, place), perf_counter() - began)


def _placed(score: Score, place: str) -> Score:
    """The verdict, with the place in its error where that is about the row: `DataError` is about a gold, never an answer."""
    kind, _, told = str(score.info.get("error", "")).partition(": ")
    return _unread(f"{place}: {told.removeprefix(_INVENTED)}") if kind == "DataError" else score


def _unread(error: str) -> Score:
    return Score(components={}, fault=Fault.VERIFIER, info=FrozenMap({"error": error}))


def _nothing() -> None:
    pass


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


def gathered(args: Sequence[str]) -> list[str]:
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
