"""``rollouts.html``, beside the report: the recorded rollouts and the answers to held-out items, with filters.

One file, whose script is its own: nothing is loaded from elsewhere. Without scripts the page says so; the report has samples.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assay.core.errors import DataError
from assay.measure.glossary import WORDS
from assay.measure.html import e, glossary, page
from assay.measure.rollout_line import RolloutLine
from assay.measure.rollouts import ItemChange, ItemDiff, Rollouts, diff_items, read_rollouts
from assay.measure.runs import RunView

__all__ = ["NAME", "render_rollouts", "write_rollouts_page"]

NAME = "rollouts.html"

MOST, MOST_TEXT = 1000, 2000
"""Rollouts and items on the page, each, and characters of each of their texts."""


def write_rollouts_page(run: RunView) -> Path | None:
    """Writes ``rollouts.html`` into the run's folder and returns its path; None where there is nothing to show.

    Raises:
        DataError: a damaged file of rollouts; names it.
    """
    rollouts, diff = read_rollouts(run.folder), _evaluations(run)
    path = run.folder / NAME
    if not rollouts.lines and diff is None:
        path.unlink(missing_ok=True)
        return None
    beside = run.folder / f".{NAME}.tmp"
    beside.write_text(render_rollouts(run.name, rollouts, diff), encoding="utf-8")
    beside.replace(path)
    return path


def _evaluations(run: RunView) -> ItemDiff | None:
    """The first and the last evaluation that `assay.measure.report` compares, where there are two."""
    base, now = run.base("greedy"), run.final("greedy")
    if base is None or now is None or base.step >= now.step:
        return None
    try:
        return diff_items(run, run, "greedy", (base.step, now.step))
    except DataError:  # other items than before
        return None


def render_rollouts(name: str, rollouts: Rollouts, diff: ItemDiff | None) -> str:
    """The page as text."""
    shown = evenly(rollouts.lines, MOST)
    parts = [
        f'<header><p class="eyebrow">assay rollouts</p><h1>{e(name)}</h1>'
        f'<p class="lead">{e(_count_text(rollouts, len(shown)))}</p></header>',
        '<noscript><p class="unsafe">Filtering needs scripts; report.html has samples without.</p></noscript>',
        _list("rollouts", "Rollouts", "Prompt, then answer, as the model wrote it; the gold answer where the task has one."),
    ]
    data: dict[str, Any] = {"rollouts": [_rollout(r) for r in shown], "items": []}
    if diff is not None:
        kept = diff.changes[:MOST]
        data["items"] = [_item(c) for c in kept]
        counts = {kind: len(diff.of_kind(kind)) for kind in ("broken", "fixed", "right", "wrong")}
        lead = (
            f"Greedy answers to {len(diff.changes):,} held-out items, {diff.before} and {diff.after}: "
            f"{counts['fixed']:,} became right, {counts['broken']:,} became wrong, {counts['right']:,} stayed right and "
            f"{counts['wrong']:,} wrong." + (f" {len(kept):,} of them are on this page." if len(kept) < len(diff.changes) else "")
        )
        parts.append(_list("items", "Held-out items, before and after", lead))
    used = ("advantage", "arm", "components", "fault", "gold", "greedy", "held-out", "level", "rollout", "step", "verdict")
    parts.append(glossary({word: WORDS[word] for word in used}))
    # "<" inside the data could end the script; in JSON it has another way to be written
    text = json.dumps(data, ensure_ascii=True).replace("<", "\\u003c")
    parts += [f'<script type="application/json" id="data">{text}</script>', f"<script>{SCRIPT}</script>"]
    return page(f"{name}: rollouts", "\n".join(parts), STYLE)


def _count_text(rollouts: Rollouts, shown: int) -> str:
    """How many of the sampled rollouts are kept, and how many of those are on the page."""
    if not rollouts.lines:
        return "No rollouts were recorded."
    kept, steps = len(rollouts.lines), len(rollouts.steps)
    of = f"{kept:,} of the {rollouts.sampled:,} rollouts" if rollouts.whole else f"{kept:,} rollouts"
    here = f" {shown:,} of them are on this page; the command 'assay rollouts show' has all." if shown < kept else ""
    return f"{of} of {steps:,} recorded steps (Run.rollouts_every) are kept.{here}"


def evenly(lines: Sequence[RolloutLine], most: int) -> list[RolloutLine]:
    """At most ``most`` of them, spread evenly."""
    n = len(lines)
    return [lines[i * n // most] for i in range(most)] if n > most else list(lines)


def _cut(text: str) -> str:
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT // 2]}\n…\n{text[-MOST_TEXT // 2 :]}"


def _rollout(r: RolloutLine) -> dict[str, Any]:
    chips = [[f"{name} {value:g}", "good" if value >= 1 else "warning"] for name, value in sorted(r.components.items())]
    chips += [[f"advantage {r.advantage:+.2f}", "note"]] if r.advantage is not None else []
    chips += [[f"{r.fault} fault", "alarm"]] if r.fault != "none" else []
    chips += [[f"stop: {r.stop}", "warning"]] if r.stop != "done" else []
    return {
        "kind": r.verdict,
        "arm": r.arm,
        "level": r.level,
        "step": r.step,
        "task": r.task,
        "head": f"step {r.step}, {f'{r.row}, ' if r.row else ''}{r.arm}, level {r.level}, {r.length} tokens",
        "chips": chips,
        "texts": [["", _cut(r.prompt)], *([a, _cut(b)] for a, b in r.answers), ["gold: ", _cut(r.gold)], ["", r.reason]],
    }


def _item(c: ItemChange) -> dict[str, Any]:
    colour = {"broken": "alarm", "fixed": "good", "right": "good"}.get(c.kind, "warning")
    return {
        "kind": c.kind,
        "arm": c.arm,
        "level": c.level,
        "task": c.id,
        "head": f"{c.arm}, level {c.level}, {c.row or c.id}",
        "chips": [[c.kind, colour]],
        "texts": [["", _cut(c.prompt)], ["before: ", _cut(c.before)], ["now: ", _cut(c.after)], ["gold: ", _cut(c.gold)]],
    }


KINDS = {
    "rollouts": {"right": "right", "wrong": "wrong", "faulty": "without verdict"},
    "items": {"broken": "became wrong", "fixed": "became right", "wrong": "stayed wrong", "right": "stayed right"},
}


def _list(name: str, title: str, lead: str) -> str:
    """A section with its filters, which the script fills."""
    kinds = "".join(f'<option value="{k}">{e(text)}</option>' for k, text in KINDS[name].items())
    more = ("arm", "level", "step") if name == "rollouts" else ("arm", "level")
    selects = "".join(f'<label>{w} <select data-field="{w}"><option value="">all</option></select></label>' for w in more)
    return (
        f'<section id="{name}"><h2>{e(title)}</h2><p class="lead">{e(lead)}</p><form class="filters">'
        f'<label>verdict <select data-field="kind"><option value="">all</option>{kinds}</select></label>{selects}'
        '<label class="words">text <input type="search" data-field="words" placeholder="in prompt, answer, task"></label></form>'
        '<p class="count" aria-live="polite"></p><div class="grid"></div>'
        '<button type="button" class="more" hidden>show more</button></section>'
    )


STYLE = """
.filters { display: flex; flex-wrap: wrap; gap: 10px 16px; margin: 14px 0 4px; }
.filters label { font-size: 13px; color: var(--muted); display: flex; flex-direction: column; gap: 3px; min-width: 6.5em; }
.filters .words { flex: 1 1 14em; }
.filters select, .filters input, .more { font: inherit; font-size: 16px; color: var(--ink); background: var(--card);
  border: 1px solid var(--line); border-radius: 6px; padding: 6px 9px; min-width: 0; width: 100%; }
.more { width: auto; margin: 18px 0 0; padding: 8px 18px; cursor: pointer; }
.count { color: var(--muted); font-size: 14px; margin: 8px 0 0; font-variant-numeric: tabular-nums; }
pre b { font-weight: 600; color: var(--muted); }
"""

SCRIPT = """
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
function make(tag, parent, text, kind) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  parent.appendChild(made);
  return made;
}
function card(row) {
  const whole = document.createElement("article");
  whole.className = "rollout";
  whole.setAttribute("aria-label", row.kind);
  const head = make("header", whole);
  make("span", head, row.head);
  for (const [text, kind] of row.chips) make("span", head, text, "chip " + kind);
  row.texts.forEach(([label, text], i) => {
    if (!text && (label || i > 1)) return;
    const box = make("pre", whole, undefined, i === 0 ? "prompt" : "");
    if (label) make("b", box, label);
    box.appendChild(document.createTextNode(text || (i === 1 ? "(empty)" : "")));
  });
  return whole;
}
function follow(name, rows) {
  const root = document.getElementById(name);
  if (!root) return;
  const fields = [...root.querySelectorAll("[data-field]")];
  const grid = root.querySelector(".grid"), more = root.querySelector(".more"), count = root.querySelector(".count");
  for (const field of fields) {
    const of = field.dataset.field;
    if (of === "kind" || of === "words") continue;
    const values = [...new Set(rows.map(row => row[of]))].sort((a, b) => typeof a === "number" ? a - b : a < b ? -1 : 1);
    for (const value of values) make("option", field, String(value)).value = String(value);
  }
  let found = [], shown = 0;
  function add() {
    for (const row of found.slice(shown, shown + 40)) grid.appendChild(card(row));
    shown = Math.min(found.length, shown + 40);
    more.hidden = shown >= found.length;
    count.textContent = found.length + " of " + rows.length + (more.hidden ? "" : ", the first " + shown + " are shown");
  }
  function filter() {
    found = rows.filter(row => fields.every(field => {
      const wanted = field.value, of = field.dataset.field;
      if (!wanted) return true;
      if (of !== "words") return String(row[of]) === wanted;
      const words = wanted.toLowerCase();
      return [row.task, ...row.texts.map(([, text]) => text)].some(text => text.toLowerCase().includes(words));
    }));
    grid.replaceChildren();
    shown = 0;
    add();
  }
  more.addEventListener("click", add);
  root.querySelector("form").addEventListener("submit", event => event.preventDefault());
  for (const field of fields) field.addEventListener("input", filter);
  filter();
}
follow("rollouts", data.rollouts);
follow("items", data.items);
"""
