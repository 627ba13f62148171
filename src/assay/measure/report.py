"""``report.html``: one page that says what a run did, whether to believe it, and what to do next.

Self-contained: no script, no font, no image from elsewhere. A run that was killed early still gets one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from assay.core.errors import DataError
from assay.measure.cost_of_judges import judge_costs
from assay.measure.doctor import diagnose
from assay.measure.findings import Finding
from assay.measure.glossary import words_in
from assay.measure.history import PREFERENCES, REINFORCE
from assay.measure.html import details, e, glossary, page, section, table
from assay.measure.intervals import Interval, paired_difference
from assay.measure.panels import ProfiledPart, accuracy_figures, profile_figure, profile_of, training_figures
from assay.measure.practice import practice_section
from assay.measure.rollout_line import RolloutLine
from assay.measure.rollouts_page import write_rollouts_page
from assay.measure.runs import EvalLine, RunView, read_run

__all__ = ["write_report"]

HELD_OUT = "On items that training never saw. Bands are 95 % intervals over items."
NOT_HELD_OUT = "On items that training used: nothing was held out, so this may be memory. Bands are 95 % intervals over items."
PROFILED = (
    "Each moment counts for the innermost part that was at work, so the parts add up to the step. CPU seconds are those of the "
    "run's own process: below the clock's it waited, for other processes or for a core."
)
SIGNIFICANT = 0.05
"""Below this p-value of the paired test a change of accuracy is called one."""

STAGES = {"warm-up": "warm-up", "sft": "imitation", "texts": "language modelling", PREFERENCES: "learning from preferences"}
"""Words for the stages that come before reinforcement learning, by their names in the journal."""

TRAINING = "Faint lines are single steps, strong lines a moving average."


def write_report(run_folder: Path | str) -> Path:
    """Writes ``report.html`` into a run folder and returns its path; beside it ``rollouts.html``, where rollouts were recorded.

    The text is a pure function of the folder's files.

    Args:
        run_folder: a run folder, complete or not; what is missing is said on the page.

    Raises:
        DataError: not a run folder, or a damaged file; names the file and the line.
        MissingExtraError: matplotlib is not installed.
    """
    folder = Path(run_folder)
    run = read_run(folder)
    path = folder / "report.html"
    beside = folder / ".report.html.tmp"
    try:
        rollouts = write_rollouts_page(run)
    except DataError as error:  # a file of rollouts that a power failure tore is no reason to go without the report
        rollouts, run = None, replace(run, problems=(*run.problems, str(error)))
    beside.write_text(render(run, rollouts), encoding="utf-8")
    beside.replace(path)
    return path


def render(run: RunView, rollouts: Path | None = None) -> str:
    """The page as text, with a link to the page of rollouts beside it."""
    body = [
        _header(run),
        _doctor(run),
        _accuracy(run),
        section("Training", _grid(training_figures(run)), lead=TRAINING),
        practice_section(run),
        _profile(run),
        _rollouts(run, rollouts),
        _record(run),
    ]
    shown = "\n".join(b for b in body if b)
    return page(f"{run.name}: run report", f"{shown}\n{glossary(words_in(re.sub('<[^>]*>', ' ', shown)))}")


def _accuracy(run: RunView) -> str:
    """The section on evaluations; of training tasks where nothing is held out."""
    title, lead = ("Held-out accuracy", HELD_OUT) if run.held_out else ("Accuracy on training tasks", NOT_HELD_OUT)
    return section(title, _grid(accuracy_figures(run)), _levels(run), lead=lead)


def _grid(figures: Iterable[str]) -> str:
    inside = "\n".join(figures)
    return f'<div class="grid">{inside}</div>' if inside else ""


# ---- header -----------------------------------------------------------------------------------------------------------


def _header(run: RunView) -> str:
    facts = "".join(f"<div><dt>{e(n)}</dt><dd>{e(v)}<small>{e(s)}</small></dd></div>" for n, v, s in _facts(run))
    return (
        f'<header><p class="eyebrow">assay run report</p><h1>{e(run.settings.get("name", run.name))}</h1>'
        f'{_unsafe(run)}{_contamination_banner(run)}<p class="verdict">{e(verdict(run))}</p>'
        f'<dl class="facts">{facts}</dl></header>'
    )


def _unsafe(run: RunView) -> str:
    """A red banner where programs that the policy wrote were run with nothing around them."""
    return "".join(
        f'<p class="unsafe">UNSAFE: the {e(name)} ran programs at {e(str(said["tag"]))}, which contains nothing: they could read '
        "and write files, use the network and change their own scores.</p>"
        for name, said in run.isolation.items()
        if "UNSAFE" in said.get("tag", "")
    )


def _contamination_banner(run: RunView) -> str:
    """A red banner where training prompts contain evaluation items."""
    if not run.contamination.get("contaminated"):
        return ""
    return f'<p class="unsafe">CONTAMINATED: {e(run.overlap)}. Held-out accuracies may be memory; see the record.</p>'


def verdict(run: RunView) -> str:
    """What was trained, and from which to which held-out accuracy, in a few sentences."""
    steps, kind = _learning(run)
    what = f"{_steps(steps)} of {kind} on {_tasks(run)}"
    unfinished = f" {run.ending}" if run.ending else ""
    for mode in ("greedy", "sampled"):
        base, now = run.base(mode), run.final(mode)
        if base and now and base.step < now.step:
            return f"{what} {_change(run, mode, base, now)}{_stages_before(run, mode, base)}{unfinished}"
    if only := run.final("greedy") or run.final("sampled"):
        return (
            f"{what}; {_whose(only)} {only.mode} accuracy was {_share(only.accuracy(run.threshold))} at step {only.step}, not "
            f"evaluated since.{unfinished}"
        )
    return f"{what}, without a held-out evaluation.{unfinished}"


def _steps(count: int) -> str:
    return f"{count:,} step{'' if count == 1 else 's'}"


def _learning(run: RunView) -> tuple[int, str]:
    """How many steps of what the verdict is about: of RL where there is any, else of preferences, else of the warm-up."""
    if steps := sum(1 for x in run.metrics if "reward/mean" in x.metrics):
        return steps, "reinforcement learning"
    if silent := [x.step for x in run.metrics if x.stage == REINFORCE]:  # none was done, or no rollout got a verdict
        return sum(step > 0 for step in silent), "reinforcement learning"
    if steps := sum(1 for x in run.metrics if x.stage == PREFERENCES and "loss/total" in x.metrics):
        return steps, "learning from preferences, evaluated"
    return run.last_step, "supervised warm-up"


def _change(run: RunView, mode: str, base: EvalLine, now: EvalLine) -> str:
    """From which to which accuracy, on the items of both; "raised" only where interval and exact test agree that it changed."""
    paired_items = bool(base.scores(run.threshold).keys() & now.scores(run.threshold).keys())
    base, now = base.shared_with(now), now.shared_with(base)
    whose = _whose(now)
    ends = f"from {_share(base.accuracy(run.threshold))} to {_share(now.accuracy(run.threshold))} over {len(now.items)} items"
    if not paired_items:
        return f"took {whose} {mode} accuracy {ends} (other items than before, so not paired)."
    p = paired_difference(base.scores(run.threshold), now.scores(run.threshold))
    if p.p_value < SIGNIFICANT and p.difference.low > 0:
        return f"raised {whose} {mode} accuracy {ends}."
    if p.p_value < SIGNIFICANT and p.difference.high < 0:
        return f"lowered {whose} {mode} accuracy {ends}."
    return f"showed no change of {whose} {mode} accuracy: {ends} (p = {p.p_value:.3f})."


def _stages_before(run: RunView, mode: str, base: EvalLine) -> str:
    """What the stages before did to the accuracy, where it was evaluated before the first of them; else nothing."""
    first = run.evaluations(mode)[0]
    if first.step or first.step == base.step:
        return ""
    before = [x.stage for x in run.metrics if x.step <= base.step and "loss/total" in x.metrics]
    done = " and ".join(f"{_steps(before.count(name))} of {STAGES.get(name, name)}" for name in dict.fromkeys(before))
    change = _change(run, mode, first, base)
    return f" Before that, {done} {change}" if done else ""


def _whose(line: EvalLine) -> str:
    """Whose accuracy an evaluation says: a run without held-out tasks evaluates on those that it trains on."""
    return "held-out" if line.split == "test" else "training tasks'"


def _facts(run: RunView) -> list[tuple[str, str, str]]:
    out: list[tuple[str, str, str]] = []
    for mode in ("greedy", "sampled"):
        base, now = run.base(mode), run.final(mode)
        if base and now and base.step < now.step:
            base, now = base.shared_with(now), now.shared_with(base)
            values = (x.accuracy(run.threshold).value for x in (base, now))
            out.append(
                (
                    f"{'Held out' if now.split == 'test' else 'Training tasks'}, {mode}",
                    " → ".join(f"{100 * v:.1f}" for v in values) + "\u00a0%",
                    f"step {base.step} to {now.step}",
                )
            )
    history = run.history()
    tokens = history["tokens/sampled"].finite().values.sum()
    out.append(("Steps", f"{run.last_step:,}", f"of {run.planned_steps:,} planned" if run.planned_steps else ""))
    if tokens:
        out.append(("Tokens sampled", _short(float(tokens)), "in training"))
    cpu, wall = history["time/cpu"].finite(), history["time/step"].finite()
    if len(cpu):
        spent = float(cpu.values.max())
        out.append(("CPU time", _duration(spent), f"{_duration(float(wall.values.sum()))} by the clock, evaluation apart"))
    elif len(wall):
        out.append(("Time in steps", _duration(float(wall.values.sum())), "by the clock"))
    out += [(f"Judge {name}", f"{cost.asked:,} questions", cost.line) for name, cost in judge_costs(history).items()]
    machine = [str(run.versions[k]) for k in ("machine", "isa") if k in run.versions]
    threads = "threads: " + str(run.versions["threads"]) if "threads" in run.versions else ""
    out.append(("Seed", "unknown" if run.seed is None else str(run.seed), ", ".join(x for x in (*machine, threads) if x)))
    proof = history["proof/state"].finite()
    if len(proof):
        proved = int((proof.values == 1).sum())
        out.append(("Weights proved", f"{proved} of {len(proof)}", "after each update, in the sampler"))
    else:
        out.append(("Weights proved", "unproven", "no proof was recorded"))
    looked = run.contamination
    hits = f"{looked['contaminated']:,} of {looked['prompts']:,} prompts" if "prompts" in looked else "not looked for"
    out.append(("Evaluation items in training", hits, run.overlap))
    return out


def _tasks(run: RunView) -> str:
    """What was practised: the arms that the journals name, else the kind of the settings' tasks."""
    arms = sorted({i.arm for x in run.evals for i in x.items} | {r.arm for r in run.rollouts})
    if 0 < len(arms) <= 4:
        return ", ".join(arms)
    tasks = run.settings.get("tasks")
    kind = str(cast("Mapping[str, Any]", tasks).get("kind", "")) if isinstance(tasks, Mapping) else ""
    return kind.rpartition(":")[2] or "unknown tasks"


def _format_signed(share: float) -> str:
    """Percent with its sign; none on zero."""
    text = f"{100 * share:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")


def _share(i: Interval) -> str:
    return f"{100 * i.value:.1f}\u00a0% [{100 * i.low:.1f},\u00a0{100 * i.high:.1f}]"


def _short(x: float) -> str:
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if x >= size:
            return f"{x / size:.3g}{unit}"
    return f"{x:.0f}"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.1f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


# ---- the doctor -------------------------------------------------------------------------------------------------------


def _doctor(run: RunView) -> str:
    found = diagnose(run.history())
    items = "".join(_finding(f) for f in found)
    if not found:
        said = "Nothing in this run's curves looks wrong." if run.metrics else "There are no metrics to look at."
        items = f'<li class="{"good" if run.metrics else "note"}"><p>{said}</p></li>'
    return section("What the doctor says", f'<ul class="findings">{items}</ul>')


def _finding(f: Finding) -> str:
    kind = f.severity.value
    told = f"{f.action} More: {f.page}"
    return f'<li class="{kind}"><p><b>{kind.capitalize()}</b>{e(f.sentence)}</p><p class="action">{e(told)}</p></li>'


# ---- tables and rollouts ----------------------------------------------------------------------------------------------


def _levels(run: RunView) -> str:
    base, now = run.base("greedy"), run.final("greedy")
    if not (base and now and base.step < now.step):
        return ""
    base, now = base.shared_with(now), now.shared_with(base)
    several = len(now.arms) > 1
    rows = [
        _level_row(run, f"{arm} {level}" if several else f"level {level}", base.only(level, arm), now.only(level, arm))
        for arm, level in now.cells
    ]
    rows.append(_level_row(run, "all", base, now))
    head = ("", "items", f"base (step {base.step})", f"now (step {now.step})", "difference, paired", "p")
    return table(
        head,
        rows,
        "Greedy accuracy in percent, 95 % intervals over items; differences on the items that both have.",
    )


def _level_row(run: RunView, name: str, base: EvalLine, now: EvalLine) -> tuple[str, ...]:
    before, after = base.scores(run.threshold), now.scores(run.threshold)
    old = _share(base.accuracy(run.threshold)).replace("\u00a0%", "") if before else "–"
    new = _share(now.accuracy(run.threshold)).replace("\u00a0%", "")
    if not before.keys() & after.keys():
        return name, str(len(after)), old, new, "–", "–"
    p = paired_difference(before, after)
    d = p.difference
    difference = f"{_format_signed(d.value)} [{_format_signed(d.low)}, {_format_signed(d.high)}]"
    return name, str(len(after)), old, new, difference, "<0.001" if p.p_value < 0.001 else f"{p.p_value:.3f}"


def _profile(run: RunView) -> str:
    """Where the time of steps went, where that was asked for."""
    steps, parts = profile_of(run)
    whole = sum(p.wall for p in parts)
    if not whole:
        return ""
    rows = [
        (p.name, f"{1e3 * p.wall / steps:.2f}", f"{100 * p.wall / whole:.1f}", f"{1e3 * p.cpu / steps:.2f}")
        for p in (*parts, ProfiledPart(name="step", wall=whole, cpu=sum(p.cpu for p in parts)))
    ]
    head = ("part", "ms by the clock", "% of the step", "CPU ms")
    return section(
        "Where a step goes",
        _grid([profile_figure(steps, parts)]),
        table(head, rows, f"Means over {steps:,} profiled steps."),
        lead=PROFILED,
    )


def _rollouts(run: RunView, page: Path | None) -> str:
    steps = sorted({r.step for r in run.rollouts})
    chosen = sorted({steps[0], steps[len(steps) // 2], steps[-1]}) if steps else []
    parts: list[str] = []
    for name, step in zip(("Early", "In the middle", "Late") if len(chosen) == 3 else ("Early", "Late"), chosen, strict=False):
        shown = sample_of([r for r in run.rollouts if r.step == step])
        parts.append(f'<p class="when">{name}, step {step}</p>' + _grid(_rollout(r) for r in shown))
    link = f'<p><a href="{e(page.name)}">All recorded rollouts, with filters</a></p>' if page else ""
    return section(
        "Sampled rollouts",
        *parts,
        link,
        lead="Prompt, then answer, as the model wrote it. Right and wrong ones, where both were recorded.",
    )


def sample_of(rollouts: Sequence[RolloutLine], most: int = 4) -> list[RolloutLine]:
    """Up to ``most`` attempts: faulty and failed ones up to half, solved ones the rest; either kind gives room to the other."""

    def solved(r: RolloutLine) -> bool:
        return r.fault == "none" and (r.primary or 0.0) >= 1.0

    good = [r for r in rollouts if solved(r)]
    bad = sorted((r for r in rollouts if not solved(r)), key=lambda r: r.fault == "none")
    share = max(most - len(good), most // 2)
    chosen = [*bad[:share], *good[: most - min(share, len(bad))]]
    return [r for r in rollouts if any(r is c for c in chosen)]


def _rollout(r: RolloutLine) -> str:
    right = r.primary is not None and r.primary >= 1.0
    chips = "".join(
        f'<span class="chip {"good" if v >= 1 else "warning"}">{e(n)} {v:g}</span>' for n, v in sorted(r.components.items())
    )
    if r.fault != "none":
        chips += f'<span class="chip alarm">{e(r.fault)} fault</span>'
    if r.stop != "done":
        chips += f'<span class="chip warning">stop: {e(r.stop)}</span>'
    label = "right" if right else "no verdict" if r.primary is None else "not right"
    head = f"<header><span>{e(r.arm)}, level {r.level}, {r.length} tokens</span>{chips}</header>"
    return (
        f'<article class="rollout" aria-label="{label}">{head}'
        f'<pre class="prompt">{e(_cut(r.prompt))}</pre><pre>{e(_cut(r.text)) or "(empty)"}</pre></article>'
    )


def _cut(text: str, most: int = 4000) -> str:
    return text if len(text) <= most else f"{text[: most // 2]}\n… {len(text) - most} characters left out …\n{text[-most // 2 :]}"


# ---- the record -------------------------------------------------------------------------------------------------------


def _record(run: RunView) -> str:
    told = {f"step {x.step}, {x.kind} ({i})": x.message for i, x in enumerate(run.events, 1)}
    missing = "".join(f"<li>{e(p)}</li>" for p in run.problems)
    return section(
        "The record",
        f'<ul class="missing">{missing}</ul>' if missing else "",
        details("Resolved settings", run.settings),
        details("Versions and machine", run.versions),
        details("Isolation of programs", run.isolation) if run.isolation else "",
        details("Evaluation items among training prompts", run.contamination) if run.contamination else "",
        details(f"Events ({len(run.events)})", told),
        f'<p class="lead">Folder: {e(run.folder.resolve().name)}</p>',
    )
