"""The page that says of every method whether it trains; it compares none with another."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.core import cache_folder
from assay.lab import WORKERS, accuracy, change, run_cells
from assay.objective.methods import methods
from assay.runs import write_json, write_text
from assay.train import updates_of
from evidence.drawing import grid
from evidence.methods import BROUGHT, CONTROLS, KINDS, MAKER, NOTES, STEPS, cells, kind_of, objective_of

__all__ = ["Trained", "judge_interval", "make_page"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """A cell and what it says.

    Attributes:
        record: of the cell.
        curve: step to held-out accuracy of sampled answers.
        interval: paired 95 % interval of the change of sampled accuracy against the base; of no meaning where the cell failed.
    """

    record: Mapping[str, Any]
    curve: Mapping[int, float] = field(default_factory=dict[int, float])
    interval: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def of(cls, record: Mapping[str, Any], curve: Mapping[int, float]) -> Trained:
        """With its interval."""
        if "failed" in record:
            return cls(record=record, curve=curve)
        if "says" in record:  # of the committed page, without its items
            low, high = record["change"]
            return cls(record=record, curve={int(k): v for k, v in record["curve"].items()}, interval=(low, high))
        return cls(record=record, curve=curve, interval=change(record, "sampled"))

    @property
    def name(self) -> str:
        """Of the method, or of a control."""
        return str(self.record["kind"])

    @property
    def failed(self) -> str:
        """The error with which it ended; empty for none."""
        return str(self.record.get("failed", ""))

    @property
    def says(self) -> str:
        """``trains``, ``no change``, ``fell``, or ``broke`` with the error."""
        return f"broke: {self.failed}" if self.failed else judge_interval(*self.interval)

    @property
    def row(self) -> str:
        """Its line in a table."""
        if self.failed:
            return f"| `{self.name}` | | | {self.says} |"
        (low, high), now = self.interval, _share_right(self.record["now_sampled"])
        return f"| `{self.name}` | {now:.3f} | [{low:+.3f}, {high:+.3f}] | {self.says} |"

    @property
    def numbers(self) -> dict[str, Any]:
        """What is committed of it."""
        kept = {
            k: self.record[k]
            for k in ("kind", "seed", "failed", "steps", "digest", "cpu_seconds", "machine", "load")
            if k in self.record
        }
        if self.failed:
            return kept
        found = {k: _share_right(self.record[k]) for k in ("base_greedy", "base_sampled", "now_greedy", "now_sampled")}
        return (
            kept | found | {"change": list(self.interval), "says": self.says, "curve": {str(k): v for k, v in self.curve.items()}}
        )


def judge_interval(low: float, high: float) -> str:
    """What an interval of a change says.

    >>> judge_interval(0.01, 0.2), judge_interval(-0.1, 0.1), judge_interval(-0.2, -0.01)
    ('trains', 'no change', 'fell')
    """
    return "trains" if low > 0 else "fell" if high < 0 else "no change"


def make_page(folder: Path) -> list[str]:
    """Runs the cells that are not done yet, and writes ``methods.md``, ``methods.json`` and ``methods.svg``.

    Cells of the page in ``folder`` that this machine has no record of keep the page's numbers; without ``methods.json`` there all
    run.

    Returns:
        Controls that trained and cells that broke, in words.
    """
    work = cache_folder() / "studies" / "methods"
    kept = {k: c for k, c in _committed_cells(folder).items() if not (work / f"{k}-{c['seed']}.json").exists()}
    wanted = [cell for cell in cells() if cell[0] not in kept]
    if wanted:
        run_cells(MAKER, cells()[:1], work, WORKERS, go_on=True)  # the teacher, before those that it teaches
    records = kept | {r["kind"]: r for r in run_cells(MAKER, wanted, work, WORKERS, go_on=True)}
    found = [Trained.of(r, _curve(work / f"{kind}-{r['seed']}")) for kind, _, _ in cells() for r in [records[kind]]]
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "methods.json", {"cells": [t.numbers for t in found]})
    grid({t.name: _share(t.curve) for t in _in_order(found) if len(t.curve) > 1}, folder / "methods.svg")
    write_text(folder / "methods.md", _page(found))
    return [f"methods: {t.name} {t.says}" for t in found if t.failed or (t.name in CONTROLS and t.says == "trains")]


def _committed_cells(folder: Path) -> dict[str, dict[str, Any]]:
    """Name to numbers of the cells on the page that is there, those that broke left out."""
    path = folder / "methods.json"
    cells_there: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"] if path.exists() else []
    return {c["kind"]: c for c in cells_there if "failed" not in c}


def _share_right(items: Any) -> float:
    """Accuracy of items, or as the committed page has it."""
    return items if isinstance(items, float) else accuracy(items)


def _curve(folder: Path) -> dict[int, float]:
    path = folder / "metrics.jsonl"
    lines = [json.loads(x) for x in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    return {int(x["step"]): float(x["metrics"]["eval/sampled/all"]) for x in lines if "eval/sampled/all" in x["metrics"]}


def _share(curve: Mapping[int, float]) -> dict[float, float]:
    """A curve over the share of its run's steps."""
    return {step / max(curve): value for step, value in curve.items()}


def _kinds() -> dict[str, str]:
    return {name: kind_of(name, objective_of(name)) for name in methods()}


def _in_order(found: Sequence[Trained]) -> list[Trained]:
    """By kind, then by name; controls are left out."""
    kinds, order = _kinds(), list(KINDS)
    return sorted((t for t in found if t.name in kinds), key=lambda t: (order.index(kinds[t.name]), t.name))


def _page(found: Sequence[Trained]) -> str:
    kinds, done = _kinds(), [t.record for t in found if not t.failed]
    shown = {t.name: t for t in found}
    said = [t.says.partition(":")[0] for t in found if t.name not in CONTROLS]
    count = ", ".join(f"{said.count(word)} {word}" for word in ("trains", "no change", "fell", "broke") if word in said)
    loads, base = [x for r in done for x in r["load"]], _share_right(done[0]["base_sampled"])
    tables = [_table(kind, title, [n for n in kinds if kinds[n] == kind], shown) for kind, title in KINDS.items()]
    two = sum(updates_of(objective_of(name)) == 2 for name in methods())
    return f"""# Methods: does each train the small model?

{len(kinds)} named methods, each under its default settings where no note says otherwise, from one base where no note says
otherwise: the quickstart's, with {base:.3f} of sampled answers right on the held-out items. {count}.

**This page ranks nothing.** All have one learning rate, {STEPS} steps and one seed; where a method did not train under its
defaults, others were tried until it did or no more were at hand, and a note says which. How far one rises beside another says how
well these settings suit it, not which is better. Order is by name.

    python -m evidence methods        # cells that are done are read, not run

A step is a rollout batch of 32 prompts x 8 rollouts at 3 to 10 digits; AdamW at 3e-4, five steps of warm-up, linear decay from
the middle on. Methods with a ratio that a second optimiser step can move ({two}) take two a batch, the others one. *After*:
accuracy of one sampled answer to each of 512 held-out items behind the last step. *Change*: the paired 95 % bootstrap interval,
over items, of the gain on the base. *Trains*: it lies above 0. *Fell*: below. *No change*: it holds 0.

Machine, a cell on one of them: {"; ".join(sorted({r["machine"] for r in done}))}.
{WORKERS} cells at a time, load average {min(loads):.1f} to
{max(loads):.1f}. CPU-seconds of all steps: {sum(r["cpu_seconds"] for r in done):,.0f}. Numbers, curves, digests: `methods.json`.

## Controls

Under a coin toss for a reward nothing must train.

{_rows([shown[name].row.replace("random_", "") for name in CONTROLS if name in shown])}

{chr(10).join(tables)}
## Curves

Held-out accuracy of sampled answers (128 items, 0 to 1) over the steps of the run, by kind, then by name.

![A small curve per method](methods.svg)
"""


def _table(kind: str, title: str, names: Sequence[str], shown: Mapping[str, Trained]) -> str:
    out = [f"## {title}", "", *([_ABOUT[kind], ""] if kind in _ABOUT else [])]
    rows = [shown[n].row for n in names]
    notes = {n: NOTES.get(n) or BROUGHT.get(n, ("", ""))[1] for n in names}
    out += [_rows(rows), "", *(f"- `{n}`: {text}." for n, text in notes.items() if text)]
    return "\n".join([*out, ""]) if out[-1] else "\n".join(out)


def _rows(rows: Sequence[str]) -> str:
    return "\n".join(["| method | after | change | says |", "|---|---|---|---|", *rows])


_ABOUT: Mapping[str, str] = {
    "critic": "Where no note says otherwise heads start at 0 and learn at the policy's learning rate, from the first step on.",
    "scores": "Groups stand whole in one optimiser step; pairs are rollouts of a group with different rewards.",
    "columns": "The loop finds them out, or, where it is said, the study's composer brings what a user's verifier would.",
    "expert": "One more rollout per group: the family's own answer, in the stream `expert` (`Reinforce(experts=True)`).",
    "stored": "Where no note says otherwise: the step's own rollouts, given to the loss as the stream `offline`.",
    "teacher": "The teacher is what this study's `grpo` made of the base.",
    "self": "The policy behind its prompt and the solution teaches the policy behind the prompt alone.",
}
