"""Evaluations as people and programs read them: metrics with intervals, and comparisons on the same tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from assay.cli.output import grid, note, table
from assay.core.errors import RewardError
from assay.core.protocols import TaskSource

if TYPE_CHECKING:
    from assay.measure import EvalRow, EvalTable, Interval, Paired

__all__ = ["Evaluated", "pairs_of", "print_evaluations"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """One model's evaluation.

    Attributes:
        name: of the model, for people.
        table: its metrics.
        items: per task what `assay.train.Policy.evaluate` gives.
    """

    name: str
    table: EvalTable
    items: Sequence[dict[str, Any]]

    @classmethod
    def of(cls, name: str, items: Sequence[dict[str, Any]], family: TaskSource, threshold: float, seed: int) -> Evaluated:
        """From items.

        Raises:
            RewardError: none of them has a verdict.
        """
        from assay.measure import eval_items, tabulate

        judged = [i for i in items if i["values"]]
        if not judged:
            raise RewardError(f"no rollout of {family.name} got a verdict: its verifier failed on all; try 'assay tasks check'")
        return cls(name=name, table=tabulate(eval_items(judged), threshold=threshold, seed=seed), items=items)

    @property
    def faults(self) -> int:
        """Rollouts without a verdict."""
        return sum(i["faults"] for i in self.items)

    def json(self) -> dict[str, Any]:
        """For programs."""
        from assay.measure import evaluation_json

        return {"model": self.name, "faults": self.faults, **evaluation_json(self.table)}


def pairs_of(first: Evaluated, second: Evaluated) -> list[tuple[str, Paired]]:
    """Second minus first on the same tasks: every metric over all tasks, and the mean verdict by (arm, level)."""
    from assay.measure import paired_difference

    def scores(made: Evaluated, name: str, cell: tuple[str | None, int | None] | None = None) -> dict[str, float]:
        return {t.name: t.metrics[name].value for t in made.table.tasks if cell is None or (t.arm, t.level) == cell}

    shared = [n for n in second.table.names if n in first.table.names]
    if not shared:
        raise RewardError("the two evaluations have no metric in common: faults left them different numbers of rollouts")
    cells = [(c.name, (c.arm, c.level)) for c in second.table.cells] if len(second.table.cells) > 1 else []
    wanted = [(f"all {n}", n, None) for n in shared] + [(f"{name} {shared[0]}", shared[0], cell) for name, cell in cells]
    out: list[tuple[str, Paired]] = []
    for name, metric, cell in wanted:
        one, two = scores(first, metric, cell), scores(second, metric, cell)
        if one.keys() & two.keys():
            out.append((name, paired_difference(one, two)))
    return out


def print_evaluations(family: str, made: Evaluated, other: Evaluated | None, pairs: Sequence[tuple[str, Paired]]) -> None:
    """By level the metrics at the most attempts; over all tasks those of every k. Wider tables would not fit a terminal."""
    from assay.measure import evaluation_table, paired_table

    for one in (made, other) if other else (made,):
        print(f"{one.name} on {family}, 95 % intervals over tasks")
        chosen = _widest(one.table.names)
        table(evaluation_table(_only(one.table, chosen)))
        if len(chosen) < len(one.table.names):
            _by_k(one.table)
        if one.faults:
            note(f"{one.name}: {one.faults} rollouts without a verdict (the verifier or the machine failed); they are left out")
    if other:
        print(f"{made.name} minus {other.name}, on the same tasks")
        chosen = _widest(made.table.names)
        table(paired_table([(n, p) for n, p in pairs if not n.startswith("all ") or n.removeprefix("all ") in chosen]))


def _widest(names: Sequence[str]) -> list[str]:
    """Of each kind of metric (avg, pass, maj, best) the one with the most attempts; pass@1 says what avg says."""
    last = {name.partition("@")[0]: name for name in names if name != "pass@1"}
    return list(last.values())


def _only(found: EvalTable, names: Sequence[str]) -> EvalTable:
    def cut(row: EvalRow) -> EvalRow:
        return replace(row, metrics={n: row.metrics[n] for n in names})

    return replace(found, total=cut(found.total), cells=tuple(map(cut, found.cells)), tasks=tuple(map(cut, found.tasks)))


def _by_k(found: EvalTable) -> None:
    """One row per k, over all tasks."""
    kinds = list(dict.fromkeys(n.partition("@")[0] for n in found.names if not n.startswith("avg")))
    ks = sorted({int(n.partition("@")[2]) for n in found.names if not n.startswith("avg")})
    values = found.total.metrics
    rows = [[k, *(_shown(values.get(f"{kind}@{k}")) for kind in kinds)] for k in ks]
    grid(("k", *(f"{kind}@k, all" for kind in kinds)), rows, range(len(kinds) + 1))


def _shown(x: Interval | None) -> str:
    return f"{x.value:.3f} ({x.low:.3f}, {x.high:.3f})" if x else "–"
