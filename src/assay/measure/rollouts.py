"""Looking at rollouts: those of a run's recorded steps, and how answers to held-out items differ between two evaluations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from assay.core.errors import DataError
from assay.measure.rollout_line import RolloutLine, rollout_line
from assay.measure.runs import EvalLine, RunView, read_run
from assay.runs import RolloutFiles

__all__ = ["ItemChange", "ItemDiff", "RolloutFilter", "Rollouts", "diff_items", "evaluation_at", "read_rollouts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutFilter:
    """Which rollouts to look at; the fields that are given must all hold.

    Attributes:
        verdicts: of ``right``, ``wrong`` and ``faulty`` (no verdict); all when empty.
        level, step: as they say.
        task: part of the task's id, of its arm, or of the prompt.
        row: as ``row 7``.

    >>> RolloutFilter(verdicts=("right",), level=3)
    RolloutFilter(verdicts=('right',), level=3, step=None, task='', row='')
    """

    verdicts: tuple[str, ...] = ()
    level: int | None = None
    step: int | None = None
    task: str = ""
    row: str = ""

    def matches(self, r: RolloutLine) -> bool:
        """Whether a rollout is one of them."""
        return (
            (not self.verdicts or r.verdict in self.verdicts)
            and self.level in (None, r.level)
            and self.step in (None, r.step)
            and any(self.task in text for text in (r.task, r.arm, r.prompt))
            and self.row in ("", r.row)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollouts:
    """Recorded rollouts of a run.

    Attributes:
        lines: in order of step.
        sampled: rollouts that the recorded steps had in all; as many as there are lines where every one was kept.
        steps: the recorded steps.
        whole: whether they are the files of all rollouts; else the few of ``rollouts.jsonl``, of a run without such files.
    """

    lines: tuple[RolloutLine, ...]
    sampled: int
    steps: tuple[int, ...]
    whole: bool

    def select(self, wanted: RolloutFilter) -> tuple[RolloutLine, ...]:
        """Those that a filter matches."""
        return tuple(r for r in self.lines if wanted.matches(r))


def read_rollouts(folder: Path, step: int | Literal["last"] | None = None) -> Rollouts:
    """The recorded rollouts of a run, of one step, of the last that is recorded, or of all.

    Raises:
        DataError: not a run folder, a step that is not recorded, or a damaged file; names it.
    """
    files = RolloutFiles(folder)
    known = files.steps()
    if not known:
        lines = read_run(folder).rollouts
        known = tuple(sorted({r.step for r in lines}))
        step = _last(known, step)
        _check_step(folder, step, known)
        lines = tuple(r for r in lines if step in (None, r.step))
        return Rollouts(lines=lines, sampled=len(lines), steps=known, whole=False)
    step = _last(known, step)
    _check_step(folder, step, known)
    lines, sampled = list[RolloutLine](), 0
    for at in known if step is None else (step,):
        head, records = files.read(at)
        sampled += int(head["of"])
        lines += _lines(folder, at, records)
    return Rollouts(lines=tuple(lines), sampled=sampled, steps=known, whole=True)


def _last(known: Sequence[int], step: int | Literal["last"] | None) -> int | None:
    """A step, where ``last`` stands for the last that is recorded; of none, None."""
    return step if step != "last" else known[-1] if known else None


def _check_step(folder: Path, step: int | None, known: Sequence[int]) -> None:
    if step is not None and step not in known:
        near = min(known, key=lambda s: abs(s - step), default=None)
        told = f"the nearest is {near}, of {len(known)} (Run.rollouts_every)" if known else "it has none"
        raise DataError(f"run {folder} has no recorded rollouts of step {step}; {told}")


def _lines(folder: Path, step: int, records: Iterable[dict[str, object]]) -> list[RolloutLine]:
    try:
        return [rollout_line(record) for record in records]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{folder}, rollouts of step {step}: a record lacks {error}; remove that file") from None


# ---- the same items, twice ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemChange:
    """A held-out item in two evaluations.

    Attributes:
        id, arm, level: of the task.
        prompt, gold: what is asked and what is right; empty where the run did not record it.
        before, after: the answers; of several the first.
        was, now: share of the answers that pass.
        row: where it stands in the user's rows; empty where that is not recorded.
    """

    id: str
    arm: str
    level: int
    prompt: str
    gold: str
    before: str
    after: str
    was: float
    now: float
    row: str = ""

    @property
    def kind(self) -> str:
        """``broken`` (right before, wrong now), ``fixed``, ``right`` or ``wrong`` (in both); right is a half or more."""
        return {(True, False): "broken", (False, True): "fixed", (True, True): "right"}.get(
            (self.was >= 0.5, self.now >= 0.5), "wrong"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemDiff:
    """Two evaluations, item by item.

    Attributes:
        before, after: name and step of each.
        changes: the items that both have, those that broke first, then those that were fixed.
        only_before, only_after: number of items that one of them lacks.
    """

    before: str
    after: str
    changes: tuple[ItemChange, ...]
    only_before: int
    only_after: int

    def of_kind(self, *kinds: str) -> tuple[ItemChange, ...]:
        """The changes of some kinds (`ItemChange.kind`)."""
        return tuple(c for c in self.changes if c.kind in kinds)


ORDER = ("broken", "fixed", "wrong", "right")


def evaluation_at(run: RunView, mode: str, step: int | None) -> EvalLine:
    """The evaluation of a run at a step, the last one when None.

    Raises:
        DataError: there is none; names the nearest.
    """
    found = {e.step: e for e in run.evaluations(mode)}
    if not found:
        raise DataError(f"run {run.folder} has no {mode} held-out evaluation")
    if step is None:
        return found[max(found)]
    if step not in found:
        near = min(found, key=lambda s: abs(s - step))
        raise DataError(f"run {run.folder} has no {mode} evaluation at step {step}; the nearest is {near}")
    return found[step]


def diff_items(a: RunView, b: RunView, mode: str = "greedy", steps: tuple[int | None, int | None] = (None, None)) -> ItemDiff:
    """What became of each held-out item between two evaluations, of one run or of two.

    Args:
        a, b: the runs.
        mode: ``greedy`` or ``sampled``.
        steps: of the evaluations; None for the last.

    Raises:
        DataError: there is no such evaluation, or the two have no item in common.
    """
    before, after = evaluation_at(a, mode, steps[0]), evaluation_at(b, mode, steps[1])
    old, new = {i.id: i for i in before.items}, {i.id: i for i in after.items}
    both = [name for name in old if name in new]
    names = tuple(f"{run.name}@{line.step}" for run, line in ((a, before), (b, after)))
    if not both:
        raise DataError(f"{names[0]} and {names[1]} have no held-out item in common: compare runs on the same tasks")
    texts = {str(record["id"]): record for run in (a, b) for record in RolloutFiles(run.folder).items()}
    scores = before.scores(a.threshold), after.scores(b.threshold)
    changes = [
        ItemChange(
            id=name,
            arm=new[name].arm,
            level=new[name].level,
            prompt=str(texts.get(name, {}).get("prompt", "")),
            gold=str(texts.get(name, {}).get("gold", "")),
            before=next(iter(old[name].answers), None) or "",
            after=next(iter(new[name].answers), None) or "",
            was=scores[0][name],
            now=scores[1][name],
            row=str(texts.get(name, {}).get("row", "")),
        )
        for name in both
    ]
    changes.sort(key=lambda c: ORDER.index(c.kind))
    return ItemDiff(
        before=names[0],
        after=names[1],
        changes=tuple(changes),
        only_before=len(old) - len(both),
        only_after=len(new) - len(both),
    )
