"""The report of a run of control: returns, scores, what the critic expected, losses, an episode in pictures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from assay.measure import History, Interval, Series, bootstrap
from assay.measure.html import details, e, figure, page, section, table
from assay.measure.plots import Curve, lines
from assay.runs import RunRecord, read_record, write_text
from assay_control.evaluation import normalise_return, references
from assay_control.run_folders import load_session, read_run_settings

__all__ = ["write_control_report"]

RETURNS = "Episodes without noise, from starts that no collection has. The last evaluation counts, never the best."
VALUES = "What the critic expected of the first actions, less what then came: above 0 it is too hopeful."


def write_control_report(folder: Path) -> Path:
    """Writes ``report.html`` into the folder of a run of control.

    Args:
        folder: of the run.

    Raises:
        ConfigError, DataError: it is none, or damaged.
        MissingExtraError: matplotlib is not installed.
    """
    record = read_record(folder, also=("evals.jsonl",))
    path = folder / "report.html"
    write_text(path, render(record))
    return path


def render(record: RunRecord) -> str:
    """The page as text."""
    evals = _evaluations(record.folder)
    run = read_run_settings(record.folder)
    title = f"{type(run.method).__name__} in {type(run.acted_in).__name__}"
    body = [
        f'<header><p class="eyebrow">assay control run</p><h1>{e(title)}</h1>{_verdict(record, evals)}</header>',
        section("Returns", _returns(record, evals), _online(record, evals), _table(record, evals), lead=RETURNS),
        section(
            "Value and return", _lines(record, "values", (("eval/q", "expected"), ("eval/q_bias", "too hopeful by"))), lead=VALUES
        ),
        section("An episode", _episode(record.folder)),
        section("Learning", *_learning(record)),
        details("Settings", record.settings) + details("Versions", record.versions),
    ]
    return page(f"{record.name}: control run", "\n".join(b for b in body if b))


def _evaluations(folder: Path) -> list[tuple[int, Interval, Mapping[str, Any]]]:
    path = folder / "evals.jsonl"
    rows = (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.endswith("}")]
        if path.exists()
        else []
    )
    return [(int(row["step"]), bootstrap(row["returns"]), row) for row in rows]


def _verdict(record: RunRecord, evals: Sequence[tuple[int, Interval, Mapping[str, Any]]]) -> str:
    if not evals:
        return "<p>Not evaluated yet.</p>"
    step, last, _ = evals[-1]
    known = references(read_run_settings(record.folder).evaluated_in)
    score = (
        f", a score of {normalise_return(last.value, known):.1f} between random actions (0) and the scripted expert (100)"
        if known
        else ""
    )
    return f"<p>After {step} steps: return {e(last)} over {last.n} episodes{e(score)}.</p>"


def _online(record: RunRecord, evals: Sequence[tuple[int, Interval, Mapping[str, Any]]]) -> str:
    """What going on in the world did to a policy that had learned from data: nothing for runs of one kind alone."""
    run = read_run_settings(record.folder)
    schedule = run.method.compose().schedule
    switch = next((step for step in range(1, run.steps + 1) if schedule.phase(step).collect), 0)
    means = {step: mean.value for step, mean, _ in evals}
    before, after = ([v for s, v in means.items() if (s < switch) == early] for early in (True, False))
    if not before or not after or switch <= 1:
        return ""
    row = (f"{before[-1]:.2f}", f"{min(after):.2f}", f"{after[-1]:.2f}", f"{sum(after) / len(after):.2f}")
    return table(
        ("offline", "dip", "final", "area"), [row], f"returns around step {switch}, from which it acts; the area is their mean"
    )


def _returns(record: RunRecord, evals: Sequence[tuple[int, Interval, Mapping[str, Any]]]) -> str:
    if not evals:
        return ""
    steps = np.array([step for step, _, _ in evals], np.int64)
    curves = [
        Curve(label=label, series=Series(steps, np.array([getattr(i, side) for _, i, _ in evals], np.float64)))
        for side, label in (("value", "mean"), ("low", "95 % low"), ("high", "95 % high"))
    ]
    return figure("Return", lines("returns", [curves]), "Mean return of evaluations over steps with its interval")


def _table(record: RunRecord, evals: Sequence[tuple[int, Interval, Mapping[str, Any]]]) -> str:
    if not evals:
        return ""
    known = references(read_run_settings(record.folder).evaluated_in)
    rows: list[tuple[str, ...]] = []
    for step, mean, row in evals:
        score = f"{normalise_return(mean.value, known):.1f}" if known else "–"
        cost = f"{np.mean(row['costs']):.3f}" if any(row["costs"]) else "–"
        rows.append((str(step), str(mean), score, f"{np.mean(row['lengths']):.1f}", cost))
    return table(("step", "return", "score", "length", "cost"), rows, "evaluations")


def _lines(record: RunRecord, name: str, wanted: Iterable[tuple[str, str]]) -> str:
    history = History.of(record.metrics)
    curves = [Curve(label=label, series=history[key]) for key, label in wanted if len(history[key])]
    return figure(name, lines(name, [curves]), f"{name} over steps") if curves else ""


def _learning(record: RunRecord) -> list[str]:
    """A figure for each network or activity, with a panel for each of its metrics."""
    history = History.of(record.metrics)
    groups: dict[str, list[str]] = {}
    for name in sorted(history.series):
        head, _, tail = name.partition("/")
        if head != "eval":
            groups.setdefault(head if tail else "policy", []).append(name)
    return [
        figure(
            head,
            lines(f"learning {head}", [[Curve(label=n, series=history[n])] for n in names], labels=names),
            f"Metrics of {head} over steps",
        )
        for head, names in groups.items()
    ]


def _episode(folder: Path) -> str:
    """Frames of one episode, where the world can be drawn."""
    session = load_session(folder)
    world = session.run.evaluated_in
    picture = getattr(world, "picture", None)
    if picture is None:
        return ""
    running = world.open(1, lambda n: np.zeros(n, np.uint64) + np.uint64(session.run.seed))
    seen, player = [running.observation[0]], session.player(1)
    for _ in range(world.horizon):
        step = running.step(player(running.observation))
        player.observe(step)
        seen.append(step.observation[0])
        if step.done[0]:
            break
    svg: str = picture(np.stack(seen))
    return figure("From left to right", svg, "Frames of an episode of the last policy")
