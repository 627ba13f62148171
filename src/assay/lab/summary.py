"""What came of runs side by side: how each ended, means of groups, and paired differences between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from assay.core.util.renamed import RenamedMembers
from assay.measure.intervals import Interval, student

__all__ = ["Difference", "Mean", "RunEnding", "State", "differences", "means"]


class State(StrEnum):
    """How it stands with a run."""

    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnding(RenamedMembers):
    """What became of a run.

    Attributes:
        name, group, seed: which it is.
        state: finished, stopped or failed.
        error: why it failed; empty otherwise.
        step: steps done.
        digest: of a finished run; as alone.
        base, greedy, sampled: held-out accuracy of greedy answers at its start, of greedy and of sampled ones at its end; None
            where it was not evaluated.
        cpu_seconds: of its steps, evaluation left out.
    """

    renamed_members: ClassVar[Mapping[str, str]] = {"said": "error"}

    name: str
    group: str
    seed: int
    state: State
    error: str = ""
    step: int = 0
    digest: str = ""
    base: float | None = None
    greedy: float | None = None
    sampled: float | None = None
    cpu_seconds: float = 0.0

    @property
    def gain(self) -> float | None:
        """Greedy accuracy at the end minus that at the start."""
        return None if self.base is None or self.greedy is None else self.greedy - self.base


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """The finished runs of a group together.

    Attributes:
        group: which.
        runs: how many.
        base, greedy, gain, sampled: mean over runs with its 95 % interval (`assay.measure.student`); a number without one of a
            single run and where all runs are alike, which shows no spread; None where a run was not evaluated.
    """

    group: str
    runs: int
    base: Interval | float | None
    greedy: Interval | float | None
    gain: Interval | float | None
    sampled: Interval | float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Two groups on the seeds that both have finished: second minus first, seed by seed.

    Attributes:
        first, second: the groups.
        runs: how many seeds.
        greedy, sampled: mean difference of held-out accuracy, with an interval as that of a `Mean`.
    """

    first: str
    second: str
    runs: int
    greedy: Interval | float | None
    sampled: Interval | float | None


def means(endings: Sequence[RunEnding]) -> tuple[Mean, ...]:
    """The finished runs of each group together.

    >>> runs = [RunEnding(name=f"seed-{s}", group="", seed=s, state=State.FINISHED, base=0.5, greedy=0.8 + s / 10) for s
    ...     in (0, 1)]
    >>> found = means(runs)[0]
    >>> str(found.greedy), str(found.base), found.sampled
    ('0.850 [0.215, 1.000]', '0.5', None)
    """
    groups = dict.fromkeys(e.group for e in endings)
    return tuple(_mean(group, [e for e in endings if e.group == group and e.state is State.FINISHED]) for group in groups)


def _mean(group: str, runs: Sequence[RunEnding]) -> Mean:
    return Mean(
        group=group,
        runs=len(runs),
        base=_over_seeds([e.base for e in runs], 0.0),
        greedy=_over_seeds([e.greedy for e in runs], 0.0),
        gain=_over_seeds([e.gain for e in runs], -1.0),
        sampled=_over_seeds([e.sampled for e in runs], 0.0),
    )


def differences(endings: Sequence[RunEnding]) -> tuple[Difference, ...]:
    """Every group against the first, paired by seed: what seeds have in common, as their base, is no part of the interval.

    >>> accuracy = {"a": (0.5, 0.7), "b": (0.6, 0.9)}
    >>> runs = [RunEnding(name=g, group=g, seed=s, state=State.FINISHED, greedy=v) for g, vs in accuracy.items() for s, v in
    ...     enumerate(vs)]
    >>> found = differences(runs)[0]
    >>> found.first, found.second, found.runs, str(found.greedy)
    ('a', 'b', 2, '0.150 [-0.485, 0.785]')
    """
    groups: dict[str, dict[int, RunEnding]] = {e.group: {} for e in endings}
    for e in endings:
        if e.state is State.FINISHED:
            groups[e.group][e.seed] = e
    first = next(iter(groups), "")
    out: list[Difference] = []
    for second in [g for g in groups if g != first]:
        of_first, of_second = groups[first], groups[second]
        pairs = [(of_first[s], of_second[s]) for s in of_first if s in of_second]
        found = Difference(
            first=first,
            second=second,
            runs=len(pairs),
            greedy=_over_seeds([_minus(b.greedy, a.greedy) for a, b in pairs], -1.0),
            sampled=_over_seeds([_minus(b.sampled, a.sampled) for a, b in pairs], -1.0),
        )
        out.append(found)
    return tuple(out)


def _minus(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b


def _over_seeds(values: Sequence[float | None], least: float) -> Interval | float | None:
    """Mean and interval of accuracies, within what an accuracy can be."""
    known = [v for v in values if v is not None]
    if not known or len(known) < len(values):
        return None
    if max(known) - min(known) <= 1e-12:  # an interval without width would claim certainty
        return known[0]
    found = student(known)
    return Interval(found.value, max(least, found.low), min(1.0, found.high), found.confidence, found.n)
