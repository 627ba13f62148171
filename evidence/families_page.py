"""The page of task families: how fast they are, what they ask, and how many different questions they have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median

from assay.core import TaskSource, cache_folder
from assay.lab import describe_machine, load_average
from assay.runs import write_json, write_text
from assay.tasks import families, family
from assay.testing import example_levels
from evidence.arms import Measured, Sizes, measure_or_load

__all__ = ["BARS", "failures", "make_page", "page"]

BARS: Mapping[str, float] = {"median": 5000.0, "slowest": 50.0, "constant": 0.6, "small": 1000.0}
"""Tasks per CPU-second of the median arm at its lowest level and of the slowest arm at any; the largest share of tasks that one
answer may be right on; different questions below which a lowest level counts as small."""

Found = Mapping[str, Sequence[Measured]]
"""Family to its arms."""


def make_page(folder: Path) -> list[str]:
    """Measures the arms that are not measured yet, one after the other, and writes ``tasks.md`` and ``tasks.json``.

    Returns:
        What is under a bar, in words.
    """
    work, before = cache_folder() / "studies" / "tasks", load_average()
    found = {name: _arms(family(name), work / name) for name in families()}
    folder.mkdir(parents=True, exist_ok=True)
    write_json(
        folder / "tasks.json",
        {
            "machine": describe_machine(),
            "load": [before, load_average()],
            "families": {name: [asdict(arm) for arm in arms] for name, arms in found.items()},
        },
    )
    write_text(folder / "tasks.md", page(found, (before, load_average())))
    return failures(found)


def _arms(source: TaskSource, folder: Path) -> list[Measured]:
    folder.mkdir(parents=True, exist_ok=True)
    made: list[Measured] = []
    for arm in source.arms():
        made.append(measure_or_load(source, arm, folder, Sizes()))
        print(f"{arm}: {made[-1].cpu_seconds + made[-1].drawn.cpu_seconds:.2f} CPU-s", flush=True)
    return made


def failures(found: Found) -> list[str]:
    """The bars that are not met, in words."""
    arms = [arm for of in found.values() for arm in of]
    typical = median(arm.rate[arm.levels[0]] for arm in arms)
    out = [f"the median arm makes {typical:,.0f} tasks per CPU-second"] if typical < BARS["median"] else []
    for arm in arms:
        slowest = min(arm.rate, key=lambda level: arm.rate[level])
        if arm.rate[slowest] < BARS["slowest"]:
            out.append(f"`{arm.arm}` makes {arm.rate[slowest]:,.1f} tasks per CPU-second at level {slowest}")
        out += [
            f"one gold is that of {share:.1%} of `{arm.arm}` at level {level}"
            for level, share in arm.commonest.items()
            if share > BARS["constant"]
        ]
        if arm.effort and len(arm.levels) > 1 and arm.effort[arm.levels[-1]] <= arm.effort[arm.levels[0]]:
            out.append(f"`{arm.arm}` asks no more effort at its last level than at its first")
        if arm.drawn.both:
            out.append(f"`{arm.arm}` has {arm.drawn.both} questions in both splits")
        if arm.drawn.repeats:
            out.append(f"`{arm.arm}` has {arm.drawn.repeats} questions that read like another one")
    return out


def page(found: Found, loads: Sequence[float]) -> str:
    """The text of the page."""
    arms = [arm for of in found.values() for arm in of]
    missed = failures(found)
    verdict = "None.\n" if not missed else "".join(f"- {line}\n" for line in missed)
    machine, sizes, total = describe_machine(), arms[0].sizes, sum(arm.cpu_seconds + arm.drawn.cpu_seconds for arm in arms)
    return f"""# Task families: how fast, how hard, how many

All {len(arms)} arms of the {len(found)} built-in families, one after the other in one process.

    python -m evidence tasks        # {total / 60:.0f} CPU-minutes; arms that are done are read, not measured

- **tasks/s**: tasks per CPU-second at the lowest, middle and highest level: a whole task, drawn, solved and worded, of the
  training split; {sizes.tasks} tasks and {sizes.timed:g} s at least, or what fits in {sizes.seconds:g} s.
- **effort**: mean steps of the arm's own solver, level by level, over {sizes.tasks} tasks or what fits. To be compared within an
  arm only.
- **commonest**: share of tasks with the commonest gold, at the lowest and the middle level, over {sizes.answers} tasks: what
  one constant answer would earn.
- **questions**: different ones at the lowest level, of as many drawn in both splits: {sizes.draws:,}, or what fits in
  {sizes.draw_seconds:g} s. *All* where none came only once: then the level has no others.
- **alike**: questions among them that read, to the letter, like another one.

Machine: {machine}; load average while this page was put together {min(loads):.1f} to {max(loads):.1f}. Arms that were read
had been measured before, beside whatever else ran. Numbers of each arm: `tasks.json`.

{_speeds(arms)}

{_questions(arms)}

## Under a bar

Asked: a median arm of {BARS["median"]:,.0f} tasks per CPU-second at its lowest level, none below {BARS["slowest"]:.0f} at any;
no gold on more than {BARS["constant"]:.0%} of the tasks; more effort at the last level than at the first; no question in both
splits, none that reads like another.

{verdict}
## Lowest levels with few questions

Levels of less than {BARS["small"]:,.0f} questions in all. Runs on them see the same ones again, and their test split is small.

{_small(arms)}
## By family

Medians over a family's arms; the slowest is that of any level.

{_families(found)}

## By arm

{chr(10).join(_section(name, of) for name, of in found.items())}"""


def _speeds(arms: Sequence[Measured]) -> str:
    """Median and slowest over arms, at three levels."""
    rows: list[str] = []
    for at, word in ((0, "lowest"), (None, "middle"), (-1, "highest")):
        rates = {arm.arm: arm.rate[example_levels(arm.levels)[len(arm.rate) // 2 if at is None else at]] for arm in arms}
        least = min(rates, key=lambda name: rates[name])
        rows.append(f"| {word} | {median(rates.values()):,.0f} | {rates[least]:,.0f} | `{least}` |")
    return "| level | median tasks/s | slowest | arm |\n|---|---|---|---|\n" + "\n".join(rows)


def _questions(arms: Sequence[Measured]) -> str:
    whole = [arm for arm in arms if arm.drawn.whole]
    other = [arm for arm in arms if not arm.drawn.whole]
    new = median(arm.drawn.distinct / arm.drawn.tasks for arm in other) if other else 1.0
    total = sum(arm.drawn.tasks for arm in arms)
    return (
        f"{total:,} tasks were drawn at the lowest levels, {median(arm.drawn.tasks for arm in arms):,.0f} of the median arm. "
        f"{sum(arm.drawn.both for arm in arms)} questions were in both splits.\n{len(whole)} lowest levels were drawn out: "
        f"all their questions came. Of the other {len(other)}, the median share of different questions is {new:.1%}."
    )


def _small(arms: Sequence[Measured]) -> str:
    few = sorted((a for a in arms if a.drawn.whole and a.drawn.distinct < BARS["small"]), key=lambda a: a.drawn.distinct)
    return ", ".join(f"`{a.arm}` {a.drawn.distinct:,}" for a in few) + ".\n" if few else "None.\n"


def _families(found: Found) -> str:
    columns = ("family", "arms", "tasks/s, lowest", "highest", "slowest", "commonest, at most", "questions, at least")
    head = f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}\n"
    rows: list[str] = []
    for name, arms in found.items():
        low, high = median(a.rate[a.levels[0]] for a in arms), median(a.rate[a.levels[-1]] for a in arms)
        least, common = min(min(a.rate.values()) for a in arms), max(max(a.commonest.values()) for a in arms)
        few = min(arms, key=lambda a: a.drawn.distinct)
        rows.append(f"| `{name}` | {len(arms)} | {low:,.0f} | {high:,.0f} | {least:,.0f} | {common:.2f} | {_distinct(few)} |")
    return head + "\n".join(rows)


def _section(name: str, arms: Sequence[Measured]) -> str:
    alike = any(arm.drawn.repeats for arm in arms)
    columns = ["arm", "levels", "tasks/s", "effort", "commonest", "questions", *(["alike"] if alike else [])]
    rows = [_row(name, arm, alike) for arm in arms]
    table = f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}\n" + "\n".join(rows)
    return f"<details><summary>{name}, {len(arms)} {'arm' if len(arms) == 1 else 'arms'}</summary>\n\n{table}\n\n</details>\n"


def _row(name: str, arm: Measured, alike: bool) -> str:
    rates = " · ".join(f"{rate:,.0f}" for rate in arm.rate.values())
    effort = " · ".join(f"{x:,.0f}" if x >= 10 else f"{x:.1f}" for x in arm.effort.values()) or "–"
    common = " · ".join(f"{share:.2f}" for share in arm.commonest.values())
    short = arm.arm.removeprefix(f"{name}/")
    cells = [f"`{short}`", f"{arm.levels[0]}–{arm.levels[-1]}", rates, effort, common, _distinct(arm)]
    return f"| {' | '.join([*cells, *([str(arm.drawn.repeats or 0)] if alike else [])])} |"


def _distinct(arm: Measured) -> str:
    found = arm.drawn
    return f"all {found.distinct:,}" if found.whole else f"{found.distinct:,} of {found.tasks:,}"
