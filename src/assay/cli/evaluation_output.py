"""Evaluations as people and programs read them: metrics with intervals, and comparisons on the same tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from assay.cli.output import grid, note, table
from assay.core.canon import plain
from assay.core.errors import RewardError
from assay.core.protocols import TaskSource

if TYPE_CHECKING:
    from assay.measure import Boundary, BoundaryRate, Calibration, CotPass, EvalRow, EvalTable, Interval, Paired, SelectedAccuracy

__all__ = ["Evaluated", "calibration_line", "pairs_of", "print_evaluations"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """One model's evaluation.

    Attributes:
        name: of the model, for people.
        table: its metrics.
        items: per task what `assay.train.Policy.evaluate` gives.
        reasoning: what a judge said of the reasoning of right answers; None where none was asked.
        selection: what a selector among k answers reaches; None where none was named.
    """

    name: str
    table: EvalTable
    items: Sequence[dict[str, Any]]
    reasoning: CotPass | None = None
    selection: SelectedAccuracy | None = None

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

    @property
    def calibration(self) -> Calibration | None:
        """How well stated confidences fit; None where no answer states one."""
        from assay.measure import calibration_of

        return calibration_of(self.items, self.table.threshold)

    def json(self) -> dict[str, Any]:
        """For programs."""
        from assay.measure import evaluation_json

        found = self.calibration
        stated = {} if found is None else {"calibration": plain(found)}
        voted = {} if self.reasoning is None else {"reasoning": _reasoning_json(self.reasoning)}
        picked = {} if self.selection is None else {"selection": plain(self.selection)}
        return {"model": self.name, "faults": self.faults, **stated, **voted, **picked, **evaluation_json(self.table)}


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


def boundary_between(first: Evaluated, second: Evaluated) -> Boundary:
    """What the second solves that the first does not, and the other way round, at half of their rollouts per task."""
    from assay.measure import boundary_of

    return boundary_of(first.items, second.items, second.table.threshold)


def print_evaluations(family: str, made: Evaluated, other: Evaluated | None, pairs: Sequence[tuple[str, Paired]]) -> None:
    """By level the metrics at the most attempts; over all tasks those of every k. Wider tables would not fit a terminal."""
    from assay.measure import evaluation_table, paired_table

    for one in (made, other) if other else (made,):
        print(f"{one.name} on {family}, 95 % intervals over tasks")
        chosen = _widest(one.table.names)
        table(evaluation_table(_only(one.table, chosen)))
        if len(chosen) < len(one.table.names):
            _by_k(one.table)
        if (found := one.calibration) is not None:
            print(calibration_line(found))
        if one.reasoning is not None:
            _by_rule(one.table, one.reasoning)
        if one.selection is not None:
            _by_selector(one.table, one.selection)
        if one.faults:
            note(f"{one.name}: {one.faults} rollouts without a verdict (the verifier or the machine failed); they are left out")
    if other:
        print(f"{made.name} minus {other.name}, on the same tasks")
        chosen = _widest(made.table.names)
        table(paired_table([(n, p) for n, p in pairs if not n.startswith("all ") or n.removeprefix("all ") in chosen]))
        _boundary(boundary_between(other, made))


def _boundary(found: Boundary) -> None:
    """The three rates; chance alone moves tasks at the edge of a model's abilities."""

    def row(name: str, of: str, rate: BoundaryRate) -> list[str]:
        if rate.value is None:
            return [name, of, "–", "–"]
        floor = "–" if rate.floor is None else f"{rate.floor:.3f}"
        return [name, of, f"{rate.value:.3f} ({rate.low:.3f}, {rate.high:.3f})", floor]

    print(f"of {found.problems} tasks, solved in {found.k} rollouts: {found.before:.1f} before, {found.after:.1f} now")
    rows = [
        row("expansion: solved now", "unsolved before", found.expansion),
        row("shrinkage: not solved now", "solved before", found.shrinkage),
        row("preservation: solved now", "solved before", found.preservation),
    ]
    grid(("rate", "of tasks", "share", "same model by chance"), rows, (2, 3))


def calibration_line(x: Calibration) -> str:
    """What stated confidences are worth, in a line.

    >>> from assay.measure import calibration_of
    >>> print(calibration_line(calibration_of([{"values": [1, 0], "confidence": [0.9, 0.2]}])))
    stated confidence 0.550 where 0.500 are right: ECE 0.150, Brier 0.025, AUROC 1.000; of 100 % of 2 answers
    """
    area = "–" if x.auroc is None else f"{x.auroc:.3f}"
    answers = round(x.answers / x.stated)
    return (
        f"stated confidence {x.confidence:.3f} where {x.accuracy:.3f} are right: ECE {x.ece:.3f}, Brier {x.brier:.3f}, "
        f"AUROC {area}; of {100 * x.stated:.0f} % of {answers} answers"
    )


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
    rows = [[k, *(_format_number(values.get(f"{kind}@{k}")) for kind in kinds)] for k in ks]
    grid(("k", *(f"{kind}@k, all" for kind in kinds)), rows, range(len(kinds) + 1))


def _by_rule(found: EvalTable, voted: CotPass) -> None:
    """One row per k: pass@k, and with right reasoning by each rule for the votes."""
    names = [n for n in found.names if n.startswith("pass@")]
    rows = [
        [
            n.partition("@")[2],
            _format_number(found.total.metrics[n]),
            *(_format_number(t.total.metrics.get(n)) for t in voted.tables.values()),
        ]
        for n in names
    ]
    grid(("k", "pass@k", *(f"CoT-pass@k, {rule}" for rule in voted.tables)), rows, range(len(voted.tables) + 2))
    shares = ", ".join(f"{rule} {share:.3f}" for rule, share in voted.given_right.items())
    print(f"reasoning right where the answer is ({voted.right} answers), by votes: {shares}")
    if voted.unjudged:
        note(f"{voted.unjudged} right answers without a vote; they are left out")


def _by_selector(found: EvalTable, chosen: SelectedAccuracy) -> None:
    """One row per k: the answer that the selector takes, and what a perfect one would reach."""
    rows = [
        [k, _format_number(taken), _format_number(found.total.metrics.get(f"pass@{k}"))]
        for k, taken in ((name.partition("@")[2], taken) for name, taken in chosen.metrics.items())
    ]
    grid(("k", f"best by {chosen.selector}, right", "by a perfect selector (pass@k)"), rows, range(3))
    if chosen.unscored:
        note(f"{chosen.unscored} answers that {chosen.selector} failed on; they are left out of what it chooses from")


def _reasoning_json(voted: CotPass) -> dict[str, Any]:
    tables = {rule: plain(table.total) for rule, table in voted.tables.items()}
    return {"right": voted.right, "given_right": dict(voted.given_right), "unjudged": voted.unjudged, "cot": tables}


def _format_number(x: Interval | None) -> str:
    return f"{x.value:.3f} ({x.low:.3f}, {x.high:.3f})" if x else "–"
