"""Reading run folders, also partial ones, and comparing runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from assay.core.errors import DataError
from assay.measure.accuracy_at_k import TaskOutcomes, eval_items
from assay.measure.history import History, Practised
from assay.measure.intervals import Interval, Paired, mean_interval, paired_difference
from assay.measure.rollout_line import RolloutLine, rollout_line
from assay.runs.reader import MetricLine, RunRecord, metric_line, read_document, read_lines, read_record
from assay.runs.row_history import RowHistory

__all__ = ["EvalLine", "RolloutLine", "RunComparison", "RunView", "compare", "read_metrics", "read_run", "rollout_line"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalLine:
    """A line of ``evals.jsonl``: one evaluation. ``mode`` is ``greedy`` or ``sampled``."""

    step: int
    split: str
    mode: str
    items: tuple[TaskOutcomes, ...]

    def scores(self, threshold: float = 1.0) -> dict[str, float]:
        """Task id to share of rollouts that pass."""
        return {i.id: sum(i.reach_threshold(threshold)) / len(i.values) for i in self.items}

    def accuracy(self, threshold: float = 1.0, confidence: float = 0.95, seed: int = 0) -> Interval:
        """Mean over tasks with its interval."""
        return mean_interval(list(self.scores(threshold).values()), confidence, seed)

    def only(self, level: int | None = None, arm: str | None = None) -> EvalLine:
        """The items of one level, of one arm, or of one level of one arm."""
        kept = (i for i in self.items if level in (None, i.level) and arm in (None, i.arm))
        return replace(self, items=tuple(kept))

    def shared_with(self, other: EvalLine) -> EvalLine:
        """Its items that another evaluation has too, for comparisons; all where no item is in both."""
        known = {i.id for i in other.items}
        kept = tuple(i for i in self.items if i.id in known)
        return replace(self, items=kept or self.items)

    @property
    def levels(self) -> tuple[int, ...]:
        """Levels of its items, ascending."""
        return tuple(sorted({i.level for i in self.items}))

    @property
    def arms(self) -> tuple[str, ...]:
        """Arms of its items, sorted."""
        return tuple(sorted({i.arm for i in self.items}))

    @property
    def cells(self) -> tuple[tuple[str, int], ...]:
        """(arm, level) of its items, sorted."""
        return tuple(sorted({(i.arm, i.level) for i in self.items}))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView(RunRecord):
    """Everything that the folder of a language model's run says.

    Attributes:
        isolation: ``isolation.json``: by judge, what contains the programs that it starts; empty where none does.
        contamination: ``contamination.json``: what was found when evaluation items were looked for among the training prompts;
            empty where nobody looked.
        evals, rollouts: the lines of the two journals that an `assay.runs.RunRecord` lacks, in order of step.

    Carries: Open RL Benchmark (arXiv 2402.03046), in part.
    """

    isolation: Mapping[str, Any] = field(default_factory=dict[str, Any])
    contamination: Mapping[str, Any] = field(default_factory=dict[str, Any])
    evals: tuple[EvalLine, ...] = ()
    rollouts: tuple[RolloutLine, ...] = ()

    @property
    def threshold(self) -> float:
        """From which value on an evaluated rollout passes."""
        evaluation: Any = self.settings.get("evaluation")
        found: Any = cast("Mapping[str, Any]", evaluation).get("threshold") if isinstance(evaluation, Mapping) else None
        return float(found) if isinstance(found, int | float) else 1.0

    @property
    def overlap(self) -> str:
        """What is known of evaluation items among the training prompts, in one sentence."""
        found = self.contamination
        if "prompts" not in found:
            return "nobody looked whether training prompts contain evaluation items"
        hits, prompts, items = (int(found[name]) for name in ("contaminated", "prompts", "items"))
        part = "" if found.get("whole") else f", the first {found['sample']} of each level,"
        if not hits:
            near = "" if found.get("near") else " (near-duplicates were not looked for)"
            return f"0 of {prompts:,} training prompts{part} match {items:,} evaluation items{near}"
        allowed = f"allowed by Run.contamination.mode={found['mode']!r}"
        matched = f"{int(found['found']):,} of {items:,} evaluation items"
        return f"{hits:,} of {prompts:,} training prompts{part} match {matched}; {allowed}"

    @property
    def held_out(self) -> bool:
        """Whether its evaluations are of tasks that training never sees; a run without such tasks evaluates on its own."""
        return not self.evals or any(e.split == "test" for e in self.evals)

    @property
    def last_step(self) -> int:
        """Last step that any journal knows; 0 for an empty run."""
        return max((x.step for lines in (self.metrics, self.evals, self.events) for x in lines), default=0)

    @property
    def ended_early(self) -> tuple[str, ...]:
        """By stage, what ended it before its last step; empty where each ran all of them."""
        return tuple(event.message for event in self.events if event.kind == "until")

    @property
    def ending(self) -> str:
        """Where a run stands that has not finished, and which stages ended early; empty where all steps were done."""
        planned = f" of {self.planned_steps:,}" if self.planned_steps else ""
        stands = "" if self.finished else f"The run has not finished: it stands at step {self.last_step:,}{planned}."
        return " ".join(filter(None, (*(f"Ended early: {why}." for why in self.ended_early), stands)))

    def evaluations(self, mode: str) -> tuple[EvalLine, ...]:
        """The held-out evaluations of one mode by step; of several at one step the one with most items."""
        splits = {e.split for e in self.evals}
        split = "test" if "test" in splits else min(splits, default="")
        best: dict[int, EvalLine] = {}
        for e in self.evals:
            if e.mode == mode and e.split == split and e.items:
                known = best.get(e.step)
                best[e.step] = e if known is None or len(e.items) >= len(known.items) else known
        return tuple(best[s] for s in sorted(best))

    def base(self, mode: str) -> EvalLine | None:
        """The evaluation before reinforcement learning: the last before its first update, else the first of all.

        Where no stage is of reinforcement learning, before learning from preferences; else before the first update of all.
        """
        found = self.evaluations(mode)
        start = History.of(self.metrics).first_update
        before = [e for e in found if e.step < start]
        return before[-1] if before else (found[0] if found else None)

    def final(self, mode: str) -> EvalLine | None:
        """The last evaluation; None when there was none."""
        found = self.evaluations(mode)
        return found[-1] if found else None

    def history(self) -> History:
        """The metrics as series; ``eval/MODE/all`` is filled from the evaluations where the metrics lack it."""
        held_out = [e for mode in ("greedy", "sampled") for e in self.evaluations(mode)]
        known = {(x.step, n) for x in self.metrics for n in x.metrics}
        stage_of = {x.step: x.stage for x in self.metrics}
        extra = [
            MetricLine(step=e.step, stage=stage_of.get(e.step, "evaluation"), metrics={name: e.accuracy(self.threshold).value})
            for e in held_out
            if (e.step, name := f"eval/{e.mode}/all") not in known
        ]
        history = History.of([*self.metrics, *extra], min((len(e.items) for e in held_out), default=0))
        scores = {
            f"eval/{mode}/all": {e.step: e.scores(self.threshold) for e in held_out if e.mode == mode}
            for mode in {e.mode for e in held_out}
        }
        arms = {i.arm for e in held_out for i in e.items}
        scores |= {
            f"eval/{mode}/{arm}/all": {
                e.step: found for e in held_out if e.mode == mode if (found := e.only(arm=arm).scores(self.threshold))
            }
            for mode in {e.mode for e in held_out}
            for arm in (arms if len(arms) > 1 else ())
        }
        own = History.of(self.metrics)
        first = own.first_update if self.metrics else history.first_update
        return replace(
            history,
            stages=own.stages,
            first_update=first,
            item_scores=scores,
            held_out=self.held_out,
            practised=self._practice_of_rows(),
            vocabulary=self._vocabulary(),
        )

    def _vocabulary(self) -> int:
        """Tokens of the model that the run began with; 0 where its settings are not here or say none."""
        try:
            config: Any = json.loads((self.folder / "start" / "config.json").read_text(encoding="utf-8"))
            text: Any = config.get("text_config") or {}
            sizes: list[object] = [config.get("vocab_size"), text.get("vocab_size")]
        except (OSError, ValueError, AttributeError):
            return 0
        return next((size for size in sizes if isinstance(size, int)), 0)

    def _practice_of_rows(self) -> Practised | None:
        """What the history of rows says of them; None where they were not all met twice."""
        seen = RowHistory.read(self.folder)
        if seen is None:
            return None
        mine = seen.unhelped & ~np.isnan(seen.reward)
        rewards, rows = seen.reward[mine], len(np.unique(seen.id[mine]))
        if not rows or len(rewards) < 2 * rows:
            return None
        first, last = rewards[:rows], rewards[-rows:]
        error = float(np.sqrt((np.var(first) + np.var(last)) / rows))
        return Practised(rows=rows, groups=len(rewards), before=float(first.mean()), after=float(last.mean()), error=error)


# ---- reading ----------------------------------------------------------------------------------------------------------


def read_run(folder: Path) -> RunView:
    """A run folder, complete or not.

    A missing file (but events, which a quiet run has none of) and a last line that a kill tore apart are named in ``problems``;
    anything else that is wrong is an error.

    Raises:
        DataError: not a folder, no file of a run in it, or a file that cannot be read; names the file and the line.
    """
    found = read_record(folder, also=("evals.jsonl", "rollouts.jsonl"))
    problems = list(found.problems)
    return RunView(
        **{f.name: getattr(found, f.name) for f in fields(found) if f.name != "problems"},
        isolation=read_document(folder / "isolation.json", json.loads, problems, needed=False),
        contamination=read_document(folder / "contamination.json", json.loads, problems, needed=False),
        evals=read_lines(folder / "evals.jsonl", _eval_line, problems),
        rollouts=read_lines(folder / "rollouts.jsonl", rollout_line, problems),
        problems=tuple(problems),
    )


def read_metrics(folder: Path) -> tuple[MetricLine, ...]:
    """The metrics of a run folder alone, in order of step; none where nothing was written yet.

    Raises:
        DataError: not a folder, or a line that cannot be read; names the file and the line.
    """
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder; give a run folder (it holds run.toml and metrics.jsonl)")
    return read_lines(folder / "metrics.jsonl", metric_line, [], needed=False)


def _eval_line(record: Mapping[str, Any]) -> EvalLine:
    return EvalLine(
        step=int(record["step"]), split=str(record["split"]), mode=str(record["mode"]), items=eval_items(record["items"])
    )


# ---- comparing --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """One run in a comparison.

    Attributes:
        name, seed, step: which run, and the step of its last evaluation.
        accuracy: at that step; None without evaluation.
        gain: against the run's own base, paired over the items of both.
        versus_first: against the first run of the comparison, paired; None for the first, or where no item coincides.
    """

    name: str
    seed: int | None
    step: int
    accuracy: Interval | None
    gain: Paired | None
    versus_first: Paired | None


def compare(runs: Sequence[RunView], mode: str = "greedy", confidence: float = 0.95, seed: int = 0) -> tuple[RunComparison, ...]:
    """The last evaluations of several runs side by side, paired where their items coincide.

    Raises:
        DataError: no runs.
    """
    if not runs:
        raise DataError("a comparison needs at least one run")
    rows: list[RunComparison] = []
    reference = _final_scores(runs[0], mode)
    for position, run in enumerate(runs):
        final, now = run.final(mode), _final_scores(run, mode)
        base = run.base(mode)
        old = base.scores(run.threshold) if base and final and base.step < final.step else {}
        rows.append(
            RunComparison(
                name=run.name,
                seed=run.seed,
                step=final.step if final else run.last_step,
                accuracy=final.accuracy(run.threshold, confidence, seed) if final else None,
                gain=_pair(old, now, confidence, seed),
                versus_first=_pair(reference, now, confidence, seed) if position else None,
            )
        )
    return tuple(rows)


def _final_scores(run: RunView, mode: str) -> dict[str, float]:
    final = run.final(mode)
    return final.scores(run.threshold) if final else {}


def _pair(first: Mapping[str, float], second: Mapping[str, float], confidence: float, seed: int) -> Paired | None:
    return paired_difference(first, second, confidence, seed) if first.keys() & second.keys() else None
