"""Reading run folders, also partial ones, and comparing runs."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from assay.core.errors import DataError, a_kind
from assay.measure.accuracy_at_k import TaskOutcomes, eval_items
from assay.measure.history import History, MetricLine
from assay.measure.intervals import Interval, Paired, mean_interval, paired

__all__ = ["EvalLine", "EventLine", "RolloutLine", "RunComparison", "RunView", "compare", "read_run"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalLine:
    """A line of ``evals.jsonl``: one evaluation. ``mode`` is ``greedy`` or ``sampled``."""

    step: int
    split: str
    mode: str
    items: tuple[TaskOutcomes, ...]

    def scores(self, threshold: float = 1.0) -> dict[str, float]:
        """Task id to share of attempts that pass."""
        return {i.id: sum(i.passed(threshold)) / len(i.values) for i in self.items}

    def accuracy(self, threshold: float = 1.0, confidence: float = 0.95, seed: int = 0) -> Interval:
        """Mean over tasks with its interval."""
        return mean_interval(list(self.scores(threshold).values()), confidence, seed)

    def only(self, level: int | None = None, arm: str | None = None) -> EvalLine:
        """The items of one level, of one arm, or of one level of one arm."""
        kept = (i for i in self.items if level in (None, i.level) and arm in (None, i.arm))
        return replace(self, items=tuple(kept))

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
class EventLine:
    """A line of ``events.jsonl``: something that happened at a step."""

    step: int
    kind: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutLine:
    """A line of ``rollouts.jsonl``: one sampled attempt with its verdict."""

    step: int
    stage: str
    id: str
    task: str
    arm: str
    level: int
    prompt: str
    text: str
    stop: str
    components: Mapping[str, float]
    fault: str
    length: int

    @property
    def primary(self) -> float | None:
        """``correct``, else ``reward``, else the only component, else None."""
        for name in ("correct", "reward"):
            if name in self.components:
                return self.components[name]
        return next(iter(self.components.values())) if len(self.components) == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """Everything a run folder says.

    Attributes:
        folder: where it is.
        settings: ``run.toml``.
        versions: ``versions.json``.
        isolation: ``isolation.json``: by judge, what contains the programs that it starts; empty where none does.
        contamination: ``contamination.json``: what was found when evaluation items were looked for among the training prompts;
            empty where nobody looked.
        metrics, evals, events, rollouts: the lines of the four journals, in order of step.
        finished: whether the run says that it reached its end (``done.json``).
        problems: sentences on what is missing or was cut off.

    Carries: Open RL Benchmark (arXiv 2402.03046), in part.
    """

    folder: Path
    settings: Mapping[str, Any]
    versions: Mapping[str, Any]
    isolation: Mapping[str, Any] = field(default_factory=dict[str, Any])
    contamination: Mapping[str, Any] = field(default_factory=dict[str, Any])
    metrics: tuple[MetricLine, ...] = ()
    evals: tuple[EvalLine, ...] = ()
    events: tuple[EventLine, ...] = ()
    rollouts: tuple[RolloutLine, ...] = ()
    finished: bool = False
    problems: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.resolve().name

    @property
    def seed(self) -> int | None:
        """The run's seed, None where the settings do not say."""
        seed = self.settings.get("seed")
        return seed if isinstance(seed, int) else None

    @property
    def threshold(self) -> float:
        """From which value on an evaluated attempt passes."""
        evaluation: Any = self.settings.get("evaluation")
        found: Any = cast("Mapping[str, Any]", evaluation).get("threshold") if isinstance(evaluation, Mapping) else None
        return float(found) if isinstance(found, int | float) else 1.0

    @property
    def planned_steps(self) -> int | None:
        """Steps over all stages of the settings; None where they do not say."""
        stages: Any = self.settings.get("stages")
        tables = (
            [cast("dict[str, Any]", s) for s in cast("list[Any]", stages) if isinstance(s, dict)]
            if isinstance(stages, list)
            else []
        )
        steps = [s["steps"] for s in tables if isinstance(s.get("steps"), int)]
        return sum(steps) if steps and len(steps) == len(tables) else None

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
    def last_step(self) -> int:
        """Last step that any journal knows; 0 for an empty run."""
        return max((x.step for lines in (self.metrics, self.evals, self.events) for x in lines), default=0)

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
        """The evaluation before reinforcement learning: the last at or before its first step, else the first of all."""
        found = self.evaluations(mode)
        start = History.of(self.metrics).learning_from
        before = [e for e in found if e.step <= start]
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
        return replace(history, stages=History.of(self.metrics).stages)


# ---- reading ----------------------------------------------------------------------------------------------------------


def read_run(folder: Path) -> RunView:
    """A run folder, complete or not.

    A missing file (but events, which a quiet run has none of) and a last line that a kill tore apart are named in ``problems``;
    anything else that is wrong is an error.

    Raises:
        DataError: not a folder, no file of a run in it, or a file that cannot be read; names the file and the line.
    """
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder; give a run folder (it holds run.toml and metrics.jsonl)")
    problems: list[str] = []
    view = RunView(
        folder=folder,
        settings=_document(folder / "run.toml", tomllib.loads, problems),
        versions=_document(folder / "versions.json", json.loads, problems),
        isolation=_document(folder / "isolation.json", json.loads, problems, needed=False),
        contamination=_document(folder / "contamination.json", json.loads, problems, needed=False),
        metrics=_sorted(_lines(folder / "metrics.jsonl", _metric_line, problems)),
        evals=_sorted(_lines(folder / "evals.jsonl", _eval_line, problems)),
        events=_sorted(_lines(folder / "events.jsonl", _event_line, problems, needed=False)),
        rollouts=_sorted(_lines(folder / "rollouts.jsonl", _rollout_line, problems)),
    )
    if sum(p.endswith("is missing") for p in problems) == 5 and not view.events:
        raise DataError(f"{folder} holds no file of a run (run.toml, metrics.jsonl, ...); give a run folder")
    return replace(view, finished=(folder / "done.json").exists(), problems=tuple(problems))


def _sorted(lines: list[Any]) -> Any:
    return tuple(sorted(lines, key=lambda x: x.step))


def _document(path: Path, parse: Callable[[str], Any], problems: list[str], needed: bool = True) -> Mapping[str, Any]:
    if not path.exists():
        if needed:
            problems.append(f"{path.name} is missing")
        return {}
    try:
        value = parse(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: {error}; restore the file or remove it") from None
    if not isinstance(value, dict):
        raise DataError(f"{path}, line 1: expected a table of settings, found {a_kind(value)}")
    return value  # type: ignore[reportUnknownVariableType]


def _lines(path: Path, build: Callable[[Mapping[str, Any]], T], problems: list[str], needed: bool = True) -> list[T]:
    if not path.exists():
        if needed:
            problems.append(f"{path.name} is missing")
        return []
    lines = path.read_bytes().split(b"\n")
    out: list[T] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            out.append(build(json.loads(line)))
        except json.JSONDecodeError as error:
            if number != len(lines):  # only a line without its end can be torn
                raise DataError(f"{path}, line {number}: not JSON ({error.msg}); remove the line or the file") from None
            problems.append(f"{path.name}, line {number}: cut off in the middle, as a kill leaves it; it is not used")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = f"field {error} is missing" if isinstance(error, KeyError) else str(error)
            raise DataError(f"{path}, line {number}: {reason}") from None
    if not out and needed:
        problems.append(f"{path.name} is empty")
    return out


def _metric_line(record: Mapping[str, Any]) -> MetricLine:
    metrics = {str(n): float(v) for n, v in record["metrics"].items()}
    return MetricLine(step=int(record["step"]), stage=str(record.get("stage", "rl")), metrics=metrics)


def _eval_line(record: Mapping[str, Any]) -> EvalLine:
    return EvalLine(
        step=int(record["step"]), split=str(record["split"]), mode=str(record["mode"]), items=eval_items(record["items"])
    )


def _event_line(record: Mapping[str, Any]) -> EventLine:
    return EventLine(step=int(record["step"]), kind=str(record["kind"]), message=str(record["message"]))


def _rollout_line(record: Mapping[str, Any]) -> RolloutLine:
    return RolloutLine(
        step=int(record["step"]),
        stage=str(record.get("stage", "rl")),
        id=str(record["id"]),
        task=str(record["task"]),
        arm=str(record["arm"]),
        level=int(record["level"]),
        prompt=str(record["prompt"]),
        text=str(record["text"]),
        stop=str(record["stop"]),
        components={str(n): float(v) for n, v in record["components"].items()},
        fault=str(record["fault"]),
        length=int(record["length"]),
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
    return paired(first, second, confidence, seed) if first.keys() & second.keys() else None
