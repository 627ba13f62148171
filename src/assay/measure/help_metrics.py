"""How many rollouts of a step had help, and how they and the others succeeded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import nan

import numpy as np

from assay.core.group import Group
from assay.core.task import Context, Prefill, Task

__all__ = ["had_help", "help_metrics"]


def had_help(context: Context) -> bool:
    """Whether a policy was given more than the task: the first part of an answer, a later state, or a hint in its prompt.

    A prompt in other words (`assay.guide.ShuffledEvents`) is no help, nor is what a teacher alone reads.

    >>> from assay.core import FrozenMap, Moment, Task
    >>> from assay.guide import Ghpo, Prefix
    >>> task = Task(id="a", domain="d", arm="x", level=1, split="train", index=0,
    ...             public=FrozenMap({"prompt": "1+1="}), private=FrozenMap({"answer": "2"}))
    >>> specs = (Ghpo(), Prefix(share=(0.5, 0.5), probability=1.0))
    >>> [had_help(spec.next(task, [], Moment(key="k"))[0].context) for spec in specs]
    [False, True]
    """
    begun = context.prefill is not None and context.prefill.share > 0.0
    return begun or context.snapshot is not None or (context.messages != context.task.messages and context.tag != "shuffled")


def help_metrics(groups: Sequence[Group]) -> dict[str, float]:
    """What guidance did, where any context of the step had help; else nothing.

    ``help/share``: of the rollouts, those with help. ``help/success``, ``help/success_without``: mean primary metric of the valid
    rollouts with and without. ``help/prefix``: mean share of the solution that the answers with a prefix began with. Each but the
    last also by arm and level, as ``help/share/ARM/level_L``. NaN where there is nothing to measure.

    Args:
        groups: graded, all of the step: also those that others replaced.
    """
    rows = [
        (g.task.arm, g.task.level, had_help(r.context), s.primary if s.valid else nan)
        for g in groups
        for r, s in zip(g.rollouts, g.scores, strict=True)
    ]
    if not any(helped for _, _, helped, _ in rows):
        return {}
    given = {r.context.key: given_share(g.task, r.context.prefill) for g in groups for r in g.rollouts if r.context.prefill}
    out = {f"help/{name}": value for name, value in _of((h, v) for _, _, h, v in rows).items()}
    for arm, level in sorted({row[:2] for row in rows}):
        cell = _of((h, v) for a, lv, h, v in rows if (a, lv) == (arm, level))
        out |= {f"help/{name}/{arm}/level_{level}": value for name, value in cell.items()}
    return out | {"help/prefix": _mean([share for share in given.values() if share > 0.0])}


def given_share(task: Task, prefill: Prefill) -> float:
    """The share of a task's solution with which an answer begins, by its characters; that of the prefill's own text where this is
    no part of the solution, as a stored answer.

    >>> from assay.core import FrozenMap, Prefill, Task
    >>> task = Task(id="a", domain="d", arm="x", level=1, split="train", index=0, private=FrozenMap({"solution": "1234"}))
    >>> given_share(task, Prefill("12")), given_share(task, Prefill("1234", 0.25))
    (0.5, 0.25)
    """
    solution = task.private.get("solution", task.private.get("answer"))
    if isinstance(solution, str) and solution.startswith(prefill.text) and solution:
        return prefill.share * len(prefill.text) / len(solution)
    return prefill.share


def _of(rows: Iterable[tuple[bool, float]]) -> dict[str, float]:
    every = list(rows)
    return {
        "share": _mean([float(helped) for helped, _ in every]),
        "success": _mean([value for helped, value in every if helped and value == value]),
        "success_without": _mean([value for helped, value in every if not helped and value == value]),
    }


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else nan
