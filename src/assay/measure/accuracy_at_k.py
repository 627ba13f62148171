"""How often a model is right: pass@k, avg@k, maj@k and best-of-k from n rollouts per task.

All four are exact expectations over the ``C(n, k)`` ways to choose k of the n rollouts: no resampling noise, no seed.
Tables go from tasks to (arm, level) to all; every aggregate is a mean over tasks, with an interval over tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.core.errors import DataError
from assay.core.util.renamed import RenamedMembers
from assay.measure.intervals import Interval, mean_interval

__all__ = ["EvalRow", "EvalTable", "TaskOutcomes", "best_of_k", "eval_items", "maj_at_k", "pass_at_k", "tabulate"]


def pass_at_k(n: ArrayLike, c: ArrayLike, k: int) -> NDArray[np.float64]:
    """Probability that k of n rollouts, c of which are right, hold a right one: ``1 - C(n - c, k) / C(n, k)``.

    In product form, so that large n neither overflows nor cancels.

    Args:
        n: rollouts per task, any shape.
        c: right ones among them, broadcast against ``n``.
        k: rollouts chosen.

    Returns:
        float64 of the broadcast shape, in [0, 1].

    Raises:
        DataError: ``k < 1``, ``k > n`` (the estimate would be biased) or ``c`` outside ``[0, n]``.

    Source: Chen et al. 2021 (arXiv:2107.03374), eq. 1.

    >>> pass_at_k(4, 1, 2).item(), pass_at_k([4, 4], [1, 3], 1).tolist()
    (0.5, [0.25, 0.75])
    """
    total, right = np.broadcast_arrays(np.asarray(n, np.int64), np.asarray(c, np.int64))
    if k < 1:
        raise DataError(f"pass@k needs k >= 1, got {k}")
    if total.size and k > int(total.min()):
        raise DataError(f"pass@{k} needs at least {k} rollouts per task, one has {int(total.min())}: sample more or lower k")
    if np.any((right < 0) | (right > total)):
        raise DataError("pass@k: the number of right rollouts must lie in [0, n]")
    miss = np.ones(total.shape, np.float64)
    for i in range(k):  # the i-th chosen rollout is wrong too
        miss *= np.maximum(total - right - i, 0) / (total - i)
    return 1.0 - miss


def best_of_k(values: Sequence[float], k: int) -> float:
    """Expected largest of k values chosen from ``values`` without replacement: what a perfect selector would reach.

    Equals pass@k when the values are 0 and 1.

    Raises:
        DataError: ``k`` outside ``[1, len(values)]``.

    >>> best_of_k([0.0, 0.5, 1.0], 2)  # {0,.5} {0,1} {.5,1}
    0.8333333333333334
    """
    _check_k("best", len(values), k)
    ways = [comb(i, k - 1) for i in range(len(values))]  # i values lie below the i-th smallest
    return float(sum(w * v for w, v in zip(ways, sorted(values), strict=True)) / comb(len(values), k))


def maj_at_k(answers: Sequence[str | None], passed: Sequence[bool], k: int) -> float:
    """Probability that the majority answer of k rollouts is right.

    Exact expectation over all k-subsets. Equal answers vote together; a rollout without an answer (None) abstains; tied answers
    are chosen among with equal probability; a subset of abstentions is wrong. An answer's verdict is the mean verdict of its
    rollouts.

    Args:
        answers: ``n`` extracted answers.
        passed: ``n`` verdicts.
        k: rollouts chosen.

    Raises:
        DataError: lengths differ, or ``k`` outside ``[1, n]``.

    Source: self-consistency, Wang et al. 2022 (arXiv:2203.11171). The tie share ``1 / (1 + t)`` is the integral of ``y^t`` over
    [0, 1], so that one polynomial per answer, integrated by Gauss-Legendre (exact at this degree), counts the subsets.

    >>> maj_at_k(["a", "a", "b"], [True, True, False], 3), round(maj_at_k(["a", "a", "b"], [True, True, False], 2), 4)
    (1.0, 0.6667)
    """
    if len(answers) != len(passed):
        raise DataError(f"maj@k: {len(answers)} answers but {len(passed)} verdicts")
    _check_k("maj", len(answers), k)
    verdicts: dict[str, list[bool]] = {}
    for answer, verdict in zip(answers, passed, strict=True):
        if answer is not None:
            verdicts.setdefault(answer, []).append(verdict)
    sizes = {a: len(v) for a, v in verdicts.items()}
    abstain = len(answers) - sum(sizes.values())
    total = 0.0
    for answer, of_answer in verdicts.items():
        if any(of_answer):
            others = [s for a, s in sizes.items() if a != answer]
            total += sum(of_answer) / len(of_answer) * _winning(sizes[answer], others, abstain, k)
    return min(1.0, total / comb(len(answers), k))


def _check_k(name: str, n: int, k: int) -> None:
    if not 1 <= k <= n:
        raise DataError(f"{name}@{k} needs 1 <= k <= rollouts; the task has {n}: sample more or lower k")


def _winning(size: int, others: Sequence[int], abstain: int, k: int) -> float:
    """Number of k-subsets that an answer with ``size`` rollouts wins; ties count by their share."""
    ways = 0.0
    for votes in range(1, min(size, k) + 1):
        rest = k - votes
        nodes, weights = np.polynomial.legendre.leggauss(rest // votes // 2 + 1)
        y = (nodes + 1) / 2  # [G]
        poly = np.zeros((len(y), rest + 1))  # coefficient of x^j: ways to fill j of the other places
        poly[:, : abstain + 1] = [comb(abstain, j) for j in range(min(abstain, rest) + 1)]
        for other in others:
            factor = np.zeros((len(y), min(other, votes, rest) + 1))
            factor[:] = [comb(other, j) for j in range(factor.shape[1])]
            if votes < factor.shape[1]:
                factor[:, votes] *= y
            poly = np.stack([np.convolve(p, f)[: rest + 1] for p, f in zip(poly, factor, strict=True)])
        ways += comb(size, votes) * float(weights @ poly[:, rest]) / 2
    return ways


# ---- from items to tables ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOutcomes:
    """One task's rollouts.

    Attributes:
        id: the task.
        arm, level: where it belongs.
        values: ``n`` primary metrics, one per rollout.
        answers: ``n`` extracted answers (None: abstained) for maj@k, or empty.
    """

    id: str
    arm: str
    level: int
    values: tuple[float, ...]
    answers: tuple[str | None, ...] = ()

    def __post_init__(self) -> None:
        if not self.values:
            raise DataError(f"evaluation item {self.id!r} has no values; give one per rollout")
        if not all(np.isfinite(v) for v in self.values):
            raise DataError(f"evaluation item {self.id!r} has a value that is not finite: {self.values}")
        if self.answers and len(self.answers) != len(self.values):
            raise DataError(f"evaluation item {self.id!r}: {len(self.values)} values but {len(self.answers)} answers")

    def reach_threshold(self, threshold: float) -> tuple[bool, ...]:
        """Per rollout, whether its value reaches ``threshold``."""
        return tuple(v >= threshold for v in self.values)


def eval_items(records: Iterable[Mapping[str, Any]]) -> tuple[TaskOutcomes, ...]:
    """The ``items`` of a line of ``evals.jsonl`` as records; a task without any verdict (``values`` empty) is left out.

    Raises:
        DataError: a field is missing or of the wrong type, or an id repeats; names the item.

    >>> eval_items([{"id": "a", "arm": "sort", "level": 2, "values": [1, 0]}])[0].values
    (1.0, 0.0)
    """
    out: dict[str, TaskOutcomes] = {}
    for position, record in enumerate(records):
        try:
            if not len(record["values"]):
                continue
            item = TaskOutcomes(
                id=str(record["id"]),
                arm=str(record["arm"]),
                level=int(record["level"]),
                values=tuple(float(v) for v in record["values"]),
                answers=tuple(None if a is None else str(a) for a in record.get("answers") or ()),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"evaluation item {position}: {type(error).__name__} {error}; needs id, arm, level, values") from None
        if item.id in out:
            raise DataError(f"evaluation item {position}: id {item.id!r} occurs twice")
        out[item.id] = item
    return tuple(out.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalRow:
    """Metrics of a set of tasks; ``arm`` and ``level`` are None where the row spans several.

    Attributes:
        name: ``all``, ``ARM level L`` or a task's id.
        arm, level: of all tasks in the row, or None.
        tasks: how many.
        metrics: ``avg@n``, ``pass@k``, ``maj@k``, ``best@k`` to value and interval over tasks.
    """

    name: str
    arm: str | None
    level: int | None
    tasks: int
    metrics: Mapping[str, Interval]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalTable(RenamedMembers):
    """An evaluation at three depths.

    Attributes:
        threshold: a rollout passes when its value reaches it.
        rollouts: fewest rollouts of any task; largest k.
        total: over all tasks.
        cells: one per (arm, level), sorted.
        tasks: one per task in the given order; their intervals are empty (low = high = value).
    """

    renamed_members: ClassVar[Mapping[str, str]] = {"attempts": "rollouts"}

    threshold: float
    rollouts: int
    total: EvalRow
    cells: tuple[EvalRow, ...]
    tasks: tuple[EvalRow, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Metric names, in the order of the columns."""
        return tuple(self.total.metrics)


def tabulate(
    items: Sequence[TaskOutcomes], ks: Sequence[int] = (), threshold: float = 1.0, confidence: float = 0.95, seed: int = 0
) -> EvalTable:
    """pass@k, maj@k and best@k for each k, and avg@n, per task, per (arm, level) and over all.

    ``avg@n`` is the mean verdict over all n rollouts (for every k the expectation is the same). ``best@k`` is shown only where
    values other than 0 and 1 occur, ``maj@k`` only where every item has answers.

    Args:
        items: the evaluation, at least one item.
        ks: numbers of rollouts; 1 and the powers of two up to the fewest rollouts when empty.
        threshold: a rollout passes when its value reaches it.
        confidence: of the intervals over tasks.
        seed: of the bootstrap.

    Raises:
        DataError: no items, or a k above the rollouts of some item.

    >>> table = tabulate(eval_items([{"id": i, "arm": "s", "level": 1, "values": [i % 2, 1]} for i in range(4)]))
    >>> table.total.metrics["avg@2"].value, table.total.metrics["pass@2"].value
    (0.75, 1.0)
    """
    if not items:
        raise DataError("an evaluation needs at least one item")
    fewest = min(len(i.values) for i in items)
    chosen = tuple(sorted(set(ks))) or tuple(2**p for p in range(fewest.bit_length()))
    names, values = _scores(items, chosen, fewest, threshold)
    cells: dict[tuple[str, int], list[int]] = {}
    for index, item in enumerate(items):
        cells.setdefault((item.arm, item.level), []).append(index)

    def row(name: str, index: Sequence[int], arm: str | None, level: int | None) -> EvalRow:
        part = values[np.asarray(index)]
        found = {n: mean_interval(part[:, c], confidence, seed) for c, n in enumerate(names)}
        return EvalRow(name=name, arm=arm, level=level, tasks=len(index), metrics=found)

    return EvalTable(
        threshold=threshold,
        rollouts=fewest,
        total=row("all", range(len(items)), _common(i.arm for i in items), _common(i.level for i in items)),
        cells=tuple(row(f"{arm} level {level}", index, arm, level) for (arm, level), index in sorted(cells.items())),
        tasks=tuple(
            EvalRow(
                name=i.id,
                arm=i.arm,
                level=i.level,
                tasks=1,
                metrics={n: Interval(float(v), float(v), float(v), confidence, 1) for n, v in zip(names, scores, strict=True)},
            )
            for i, scores in zip(items, values, strict=True)
        ),
    )


def _common(values: Iterable[Any]) -> Any:
    found = set(values)
    return found.pop() if len(found) == 1 else None


def _scores(
    items: Sequence[TaskOutcomes], ks: Sequence[int], fewest: int, threshold: float
) -> tuple[list[str], NDArray[np.float64]]:
    """Metric names and their values ``[tasks, metrics]``."""
    passed = [i.reach_threshold(threshold) for i in items]
    n, c = np.array([len(p) for p in passed]), np.array([sum(p) for p in passed])
    columns: dict[str, NDArray[np.float64]] = {f"avg@{fewest}": c / n}
    columns |= {f"pass@{k}": pass_at_k(n, c, k) for k in ks if k > 1 or fewest > 1}
    if all(i.answers for i in items):
        for k in (k for k in ks if k > 1):
            columns[f"maj@{k}"] = np.array([maj_at_k(i.answers, p, k) for i, p in zip(items, passed, strict=True)])
    if any(v not in (0.0, 1.0) for i in items for v in i.values):
        columns |= {f"best@{k}": np.array([best_of_k(i.values, k) for i in items]) for k in ks}
    return list(columns), np.stack(list(columns.values()), axis=1)
