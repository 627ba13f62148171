"""What the judges of a run cost, from its metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from assay.measure.history import History

__all__ = ["JudgeCost", "judge_costs"]

_PREFIX = "verify/judge/"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCost:
    """What a judge was asked in a run.

    Attributes:
        asked: questions that went to its server.
        cached: questions answered from the run folder.
        sent: requests, attempts included.
        reread: answers that could not be read.
        faults: questions without a judgement.
        tokens: of questions and answers, as the server counts them.
        seconds: of waiting, added up over requests that waited side by side.
    """

    asked: int = 0
    cached: int = 0
    sent: int = 0
    reread: int = 0
    faults: int = 0
    tokens: int = 0
    seconds: float = 0.0

    @property
    def line(self) -> str:
        """In a few words.

        >>> JudgeCost(asked=1200, cached=300, faults=2, tokens=5000, seconds=90.5).line
        '300 more from the run folder, 2 without an answer, 5,000 tokens, 90 s of waiting'
        """
        parts = [f"{self.cached:,} more from the run folder"] if self.cached else []
        parts += [f"{self.faults:,} without an answer"] if self.faults else []
        parts += [f"{self.tokens:,} tokens"] if self.tokens else []
        return ", ".join([*parts, f"{self.seconds:,.0f} s of waiting"])


def judge_costs(history: History) -> Mapping[str, JudgeCost]:
    """Judge to its cost, over all steps; empty where no judge was asked.

    >>> from assay.runs import MetricLine
    >>> metrics = {"verify/judge/critic/asked": 4.0, "verify/judge/critic/milliseconds": 1500.0}
    >>> judge_costs(History.of([MetricLine(step=1, stage="rl", metrics=metrics)]))["critic"].seconds
    1.5
    """
    sums: dict[str, dict[str, float]] = {}
    for name in history.names(_PREFIX):
        judge, _, what = name.removeprefix(_PREFIX).rpartition("/")
        sums.setdefault(judge, {})[what] = float(history[name].finite().values.sum())
    return {
        judge: JudgeCost(
            **{what: round(n) for what, n in found.items() if what != "milliseconds"},
            seconds=found.get("milliseconds", 0.0) / 1000.0,
        )
        for judge, found in sums.items()
    }
