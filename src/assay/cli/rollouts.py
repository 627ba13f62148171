"""``assay rollouts``: looking at what a run sampled, and at what changed between two evaluations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from assay.cli.options import parse
from assay.cli.output import choose, note, show
from assay.cli.run_request import run_folder
from assay.core.errors import ConfigError, UnknownNameError

if TYPE_CHECKING:
    from rich.console import Console

    from assay.measure import ItemChange, RolloutLine, Rollouts

__all__ = ["rollouts_command"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutsShowOptions:
    """Shows rollouts of a run's recorded steps: prompt, answer, gold answer, reward components, advantage, fault.

    Without --right, --wrong or --faulty all kinds are shown, the newest step first.

    Attributes:
        run: a run folder.
        right: those with the full primary value.
        wrong: those with a verdict and less.
        faulty: those without a verdict: the verifier or the infrastructure failed.
        never_solved: not rollouts but the training rows of which no rollout was right, those tried most often first.
        level: of the task.
        step: a recorded step, or last.
        task: part of the task's id, of its arm, or of the prompt.
        row: of your rows, by its number from 1; of rows that came as a test split, "test 3".
        raw: the tokens as the model read and wrote them: chat template, special tokens, tool results.
        n: how many at most; 0 for all.
        json: print JSON.
    """

    run: Path = field(metadata={"positional": True, "arg": {"metavar": "RUN"}})
    right: bool = False
    wrong: bool = False
    faulty: bool = False
    never_solved: bool = False
    level: int | None = None
    step: str = field(default="", metadata={"arg": {"metavar": "STEP|last", "help_behavior_hint": ""}})
    task: str = ""
    row: str = field(default="", metadata={"arg": {"metavar": "N", "help_behavior_hint": ""}})
    raw: bool = False
    n: int = field(default=10, metadata={"arg": {"aliases": ["-n"]}})
    json: bool = False

    def __post_init__(self) -> None:
        if self.n < 0:
            raise ConfigError(f"--n {self.n}: give how many rollouts to show, or 0 for all")
        if self.step not in ("", "last") and not self.step.isdecimal():
            raise ConfigError(f"--step {self.step}: give the number of a recorded step, or last")
        if self.row and not re.fullmatch(r"(test )?[1-9][0-9]*", self.row):
            raise ConfigError(f"--row {self.row}: give the number of a row, from 1, or 'test N' for one of a test split")

    @property
    def at(self) -> int | Literal["last"] | None:
        """The step that is asked for; None for all."""
        return int(self.step) if self.step.isdecimal() else "last" if self.step else None

    @property
    def place(self) -> str:
        """The row that is asked for, as rollouts name it; "" for all."""
        return f"test row {self.row[5:]}" if self.row.startswith("test ") else f"row {self.row}" if self.row else ""

    @property
    def verdicts(self) -> tuple[str, ...]:
        """Those asked for; all when empty."""
        asked = {"right": self.right, "wrong": self.wrong, "faulty": self.faulty}
        return tuple(name for name, wanted in asked.items() if wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutsDiffOptions:
    """Shows which held-out items changed between two evaluations: RUN RUN, RUN@STEP RUN@STEP, or one RUN from base to end.

    Attributes:
        runs: one or two run folders, each with @STEP for the evaluation at a step; without it, the last.
        mode: which answers: greedy or sampled; of several samples, right means at least half.
        all: also show the items that did not change.
        n: how many items at most; 0 for all.
        json: print JSON.
    """

    runs: tuple[str, ...] = field(
        metadata={"positional": True, "arg": {"metavar": "RUN[@STEP] [RUN[@STEP]]", "help_behavior_hint": "(required)"}}
    )
    mode: str = field(default="greedy", metadata={"arg": {"metavar": "MODE"}})
    all: bool = False
    n: int = field(default=20, metadata={"arg": {"aliases": ["-n"]}})
    json: bool = False

    def __post_init__(self) -> None:
        if self.n < 0:
            raise ConfigError(f"--n {self.n}: give how many items to show, or 0 for all")
        if self.mode not in ("greedy", "sampled"):
            raise UnknownNameError("mode of answers (--mode)", self.mode, ("greedy", "sampled"))
        if not 1 <= len(self.runs) <= 2:
            raise ConfigError(f"{len(self.runs)} runs: give one, or two to compare: assay rollouts diff RUN_A RUN_B")


def rollouts_command(args: list[str]) -> int:
    """``assay rollouts show RUN | diff RUN [RUN]``."""
    return choose(
        "rollouts",
        args,
        {
            "show": (_show, "recorded rollouts of a run, with filters"),
            "diff": (_diff, "held-out items that became right or wrong between two evaluations"),
        },
    )


# ---- show -------------------------------------------------------------------------------------------------------------


def _show(args: list[str]) -> int:
    from assay.measure import RolloutFilter, read_rollouts

    own = parse(RolloutsShowOptions, args, "assay rollouts show")
    rollouts = read_rollouts(run_folder(own.run), own.at)
    if own.never_solved:
        return _show_never_solved(own, rollouts)
    found = rollouts.select(RolloutFilter(verdicts=own.verdicts, level=own.level, task=own.task, row=own.place))
    newest = sorted(found, key=lambda r: -r.step)
    shown = newest[: own.n or None]
    told = {"recorded": len(rollouts.lines), "sampled": rollouts.sampled, "steps": rollouts.steps, "matching": len(found)}

    def text() -> None:
        console = _console()
        for r in shown:
            prompt, said = (r.raw[0], [("", r.raw[1])]) if own.raw and r.raw else (r.prompt, r.answers)
            answers = [(label.removesuffix(": ") or "answer", text) for label, text in said]
            _print(console, _head(r), _texts(prompt, (*answers, ("gold", r.gold), ("reason", r.reason))))

    code = show(own.json, {**told, "rollouts": [asdict(r) | {"verdict": r.verdict} for r in shown]}, text)
    if own.raw and shown and not any(r.raw for r in shown):
        note(f"{own.run} was recorded without its tokens, by an earlier version: prompts and answers are shown without --raw")
    if not own.json:
        of = f"of {rollouts.sampled} sampled in them" if rollouts.whole else "a few of each: this run kept no more"
        note(
            f"{len(shown)} of {len(found)} that match; {len(rollouts.lines)} rollouts are kept of {_steps(rollouts.steps)}, {of}"
        )
    return code


def _show_never_solved(own: RolloutsShowOptions, rollouts: Rollouts) -> int:
    from assay.cli.never_solved import unsolved_rows

    every = unsolved_rows(run_folder(own.run), rollouts)
    found = [row for row in every if own.level in (None, row.record.level)]
    shown = found[: own.n or None]

    def text() -> None:
        console = _console()
        for row in shown:
            _print(console, row.head, _texts(row.prompt, (*(("answer", said) for said in row.answers[:3]), ("gold", row.gold))))

    code = show(own.json, {"never_solved": len(found), "rows": [row.json() for row in shown]}, text)
    if not own.json:
        note(f"{len(shown)} of {len(found)} rows that no rollout solved; look whether their golds are right")
    return code


def _steps(steps: Sequence[int]) -> str:
    return f"{len(steps)} recorded steps ({steps[0]} to {steps[-1]})" if steps else "no step"


def _head(r: RolloutLine) -> str:
    place = _place_of(r.arm, r.level, r.task, r.row)
    parts = [f"{r.verdict.upper():<6} step {r.step}", *place, f"{r.length} tokens"]
    parts += [" ".join(f"{name} {value:g}" for name, value in sorted(r.components.items()))] if r.components else []
    parts += [f"advantage {r.advantage:+.3f}"] if r.advantage is not None else []
    parts += [f"fault {r.fault}"] if r.fault != "none" else []
    parts += [f"stop {r.stop}"] if r.stop != "done" else []
    return "  ".join(parts)


def _place_of(arm: str, level: int, task: str, row: str) -> list[str]:
    """Where a task is from: arm and level unless its id says that already, and the row, or the id where there are no rows."""
    plain = level == 1 and task.startswith(f"{arm}/{arm}/1/")
    return [*([] if plain else [f"{arm} level {level}"]), row or task]


# ---- diff -------------------------------------------------------------------------------------------------------------


def _diff(args: list[str]) -> int:
    from assay.measure import diff_items, read_run

    own = parse(RolloutsDiffOptions, args, "assay rollouts diff")
    places = [_place(text) for text in own.runs]
    views = [read_run(run_folder(path)) for path, _ in places]
    if len(views) == 1:  # from the base, or the step named, to the end
        base, step = views[0].base(own.mode), places[0][1]
        found = diff_items(views[0], views[0], own.mode, (base.step if step is None and base else step, None))
    else:
        found = diff_items(views[0], views[1], own.mode, (places[0][1], places[1][1]))
    counts = {kind: len(found.of_kind(kind)) for kind in ("fixed", "broken", "right", "wrong")}
    wanted = found.changes if own.all else found.of_kind("broken", "fixed")
    shown = wanted[: own.n or None]
    value = {
        "before": found.before,
        "after": found.after,
        **counts,
        "only_before": found.only_before,
        "only_after": found.only_after,
        "items": [asdict(c) | {"kind": c.kind} for c in shown],
    }

    def text() -> None:
        console = _console()
        for c in shown:
            _print(console, _item_head(c), _texts(c.prompt, (("before", c.before), ("now", c.after), ("gold", c.gold))))
        fixed, broken, right, wrong = counts.values()
        changed = f"{fixed} items became right, {broken} became wrong, {right} stayed right, {wrong} stayed wrong"
        print(f"{found.before} to {found.after}, {own.mode}: {changed}")
        if found.only_before or found.only_after:
            print(f"only in {found.before}: {found.only_before} items; only in {found.after}: {found.only_after}")

    code = show(own.json, value, text)
    if not own.json and len(shown) < len(wanted):
        note(f"{len(shown)} of {len(wanted)} items are shown; --n 0 shows all")
    return code


def _place(text: str) -> tuple[Path, int | None]:
    """``RUN`` or ``RUN@STEP``; a folder whose own name ends that way is meant itself."""
    path, at, step = text.rpartition("@")
    if at and step.isdecimal() and not Path(text).exists():
        return Path(path), int(step)
    return Path(text), None


def _item_head(c: ItemChange) -> str:
    word = {"broken": "BECAME WRONG", "fixed": "BECAME RIGHT", "right": "STAYED RIGHT", "wrong": "STAYED WRONG"}[c.kind]
    several = f"  {c.was:.2f} to {c.now:.2f} of the answers" if {c.was, c.now} - {0.0, 1.0} else ""
    return "  ".join([word, *_place_of(c.arm, c.level, c.id, c.row)]) + several


# ---- printing ---------------------------------------------------------------------------------------------------------


def _texts(prompt: str, answers: Sequence[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """Label, text and style of each text that there is."""
    return [("prompt", prompt, "dim")] * bool(prompt) + [(label, text, "") for label, text in answers if text]


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True)


def _print(console: Console, head: str, texts: Sequence[tuple[str, str, str]]) -> None:
    from rich.text import Text

    console.print(Text(head, style="bold"))
    width = max(len(label) for label, _, _ in texts) if texts else 0
    for label, text, style in texts:
        first, *more = text.split("\n")
        lines: Any = [f"  {label:<{width}}  {first}", *(f"  {'':<{width}}  {line}".rstrip() for line in more)]
        console.print(Text("\n".join(lines), style=style))
    console.print()
