"""How hard a question is for named models: pass rates with intervals, and what to keep by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError, DataError
from assay.core.util.wilson import wilson_bounds
from assay.curate.row_index import Joined
from assay.curate.rows import Fields, Row
from assay.curate.step import Chunk, Decision, RowStep, SetStep, StepNotes, Verdict, drop, keep

__all__ = ["Band", "Hardest", "PassRates", "Passes", "Unsolved", "WeakStrong", "rate_bin"]

_EDGES = (0.2, 0.4, 0.6, 0.8)
NO_ATTEMPTS = "no attempts"


def rate_bin(rate: float) -> str:
    """The bin of a pass rate, as Guru reports them: the two ends are bins of their own.

    >>> [rate_bin(r) for r in (0.0, 0.1, 0.2, 0.99, 1.0)]
    ['0', '(0, 0.2)', '[0.2, 0.4)', '[0.8, 1)', '1']
    """
    if rate in (0, 1):
        return str(int(rate))
    edges = (0.0, *_EDGES, 1.0)
    at = int(np.searchsorted(_EDGES, rate, "right"))
    return f"{'[' if at else '('}{edges[at]:g}, {edges[at + 1]:g})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """Graded attempts of a model, in a file.

    Entries name their row by ``id`` or question. One has ``passed`` and ``n``, how many of how many attempts passed; or it is one
    attempt, with ``passed`` true or false. Entries about one row add up.

    Attributes:
        model: whose attempts these are; scores carry the name.
        file: JSON lines, or another form of rows.
        fields: where an entry without an ``id`` holds its question.
    """

    model: str
    file: Path
    fields: Fields = field(default_factory=Fields)

    def index(self, scratch: Path) -> Joined:
        """The file, to be looked up in."""
        return Joined(scratch / f"{self.model}.sqlite", [self.file], self.fields, _attempts)

    def of(self, rows: Sequence[Row], joined: Joined) -> list[tuple[int, int]]:
        """(passed, attempts) of each row; (0, 0) where there are none."""
        return [(sum(p for p, _ in found), sum(n for _, n in found)) for found in joined.of(rows)]


class _WithPasses:
    """A step that reads the attempts of one model."""

    __slots__ = ()
    passes: Passes

    @property
    def files(self) -> tuple[Path, ...]:
        """The attempts."""
        return (self.passes.file,)

    def prepare(self, scratch: Path) -> Joined:
        """An index of the attempts."""
        return self.passes.index(scratch)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRates(_WithPasses, RowStep):
    """Keeps every row, with a model's pass rate, its Wilson interval and its bin as scores.

    Attributes:
        passes: the model's attempts.
        confidence: of the interval.
    """

    passes: Passes
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise ConfigError(f"PassRates.confidence={self.confidence}; use a share in (0, 1)")

    @property
    def name(self) -> str:
        """With the model's name."""
        return f"pass_rates.{self.passes.model}"

    def judge(self, chunk: Chunk, ready: Any) -> Sequence[Verdict | None]:
        """Scores for each row that has attempts."""
        return [self._score_rate(*found) if found[1] else None for found in self.passes.of(chunk.rows, ready)]

    def _score_rate(self, passed: int, n: int) -> Verdict:
        low, high = wilson_bounds(passed, n, self.confidence)
        scores = {
            "pass_rate": passed / n,
            "attempts": n,
            "low": round(low, 6),
            "high": round(high, 6),
            "bin": rate_bin(passed / n),
        }
        return keep(**{f"{self.passes.model}.{name}": value for name, value in scores.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Band(_WithPasses, RowStep):
    """Keeps rows whose pass rate is in a band, ends included.

    Attributes:
        passes: the model's attempts.
        low, high: the band.

    Raises:
        ConfigError: no band in [0, 1].

    Source: Vision-G1 keeps [0.2, 0.8] of five attempts before each round of RL.
    """

    passes: Passes
    low: float = 0.2
    high: float = 0.8

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high <= 1:
            raise ConfigError(f"Band: low={self.low}, high={self.high}; use 0 <= low <= high <= 1")

    @property
    def name(self) -> str:
        """With the model's name."""
        return f"band.{self.passes.model}"

    def judge(self, chunk: Chunk, ready: Any) -> Sequence[Verdict | None]:
        """A verdict for each row."""
        return [self._verdict(*found) for found in self.passes.of(chunk.rows, ready)]

    def _verdict(self, passed: int, n: int) -> Verdict | None:
        if not n:
            return drop(NO_ATTEMPTS, model=self.passes.model)
        if self.low <= passed / n <= self.high:
            return None
        return drop("too hard" if passed / n < self.low else "too easy", pass_rate=passed / n, attempts=n)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeakStrong(RowStep):
    """Keeps what separates a weak model from a strong one.

    A row goes when the weak model nearly always solves it, when the strong one nearly never does, or when the weak one does
    better.

    Attributes:
        weak, strong: the attempts of both.
        low: a strong model's pass rate up to this is never.
        high: a weak model's pass rate from this on is always.

    Raises:
        ConfigError: cut-offs that are not 0 <= low < high <= 1.

    Source: Guru (arXiv 2506.14965). UNSURE: the cut-offs of the release; 0.1 and 0.9 are the example of its documentation.
    """

    weak: Passes
    strong: Passes
    low: float = 0.1
    high: float = 0.9

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high <= 1:
            raise ConfigError(f"WeakStrong: low={self.low}, high={self.high}; use 0 <= low < high <= 1")

    @property
    def files(self) -> tuple[Path, ...]:
        """The attempts of both."""
        return (self.weak.file, self.strong.file)

    def prepare(self, scratch: Path) -> tuple[Joined, Joined]:
        """Indexes of the attempts."""
        (scratch / "strong").mkdir(exist_ok=True)
        return self.weak.index(scratch), self.strong.index(scratch / "strong")

    def judge(self, chunk: Chunk, ready: Any) -> Sequence[Verdict | None]:
        """A verdict for each row."""
        weak, strong = self.weak.of(chunk.rows, ready[0]), self.strong.of(chunk.rows, ready[1])
        return [self._verdict(w, s) for w, s in zip(weak, strong, strict=True)]

    def _verdict(self, weak: tuple[int, int], strong: tuple[int, int]) -> Verdict | None:
        missing = [p.model for p, found in ((self.weak, weak), (self.strong, strong)) if not found[1]]
        if missing:
            return drop(NO_ATTEMPTS, model=missing[0])
        w, s = weak[0] / weak[1], strong[0] / strong[1]
        for reason, holds in (("too easy", w >= self.high), ("too hard", s <= self.low), ("weak beats strong", w > s)):
            if holds:
                return drop(reason, weak=w, strong=s)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsolved(_WithPasses, RowStep):
    """Drops rows that a model solves: those of its attempts, usually one greedy answer each, that passed.

    The static form of SELF, which asks the policy itself at every step.

    Attributes:
        passes: the base model's greedy attempts.

    Source: the Reasoning Boundary Paradox (arXiv 2510.02230).
    """

    passes: Passes

    def judge(self, chunk: Chunk, ready: Any) -> Sequence[Verdict | None]:
        """A verdict for each row."""
        return [self._verdict(*found) for found in self.passes.of(chunk.rows, ready)]

    def _verdict(self, passed: int, n: int) -> Verdict | None:
        if not n:
            return drop(NO_ATTEMPTS, model=self.passes.model)
        return drop("solved already", passed=passed, attempts=n) if passed else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardest(_WithPasses, SetStep):
    """Keeps the rows with the lowest pass rates, by rank: a nested chain of sets for the phases of a run.

    Rows of equal pass rate are ordered by the digest of their content. The score ``phase`` is how many of the sets a row is in: a
    row of phase k is in the first k sets.

    Attributes:
        passes: the model's attempts.
        sizes: of the sets, descending.
        unsolved: rows that were never solved may be chosen.

    Raises:
        ConfigError: sizes that do not descend.

    Source: DRIVE (arXiv 2511.06307), which re-estimates pass rates between phases: to do so, curate each phase's set again.
    UNSURE: whether it keeps the unsolved.
    """

    passes: Passes
    sizes: tuple[int, ...] = (72, 50, 25)
    unsolved: bool = True

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 1 or list(self.sizes) != sorted(self.sizes, reverse=True):
            raise ConfigError(f"Hardest.sizes={self.sizes}; use whole numbers from 1, the largest first")

    def note(self, chunk: Chunk, ready: Any) -> Mapping[str, NDArray[Any]]:
        """Pass rates; NaN without attempts."""
        found = self.passes.of(chunk.rows, ready)
        return {"rate": np.array([p / n if n else np.nan for p, n in found], np.float64)}

    def decide(self, seen: StepNotes, ready: Any) -> Sequence[Decision]:
        """All but the first by pass rate."""
        rate = seen.column("rate")
        known = seen.alive & ~np.isnan(rate)
        eligible = known if self.unsolved else known & (rate > 0)
        order = np.lexsort((seen.rank, rate))
        order = order[eligible[order]]
        phase = np.full(len(rate), np.nan)
        for size in reversed(self.sizes):
            phase[order[:size]] = np.nan_to_num(phase[order[:size]]) + 1
        easier = order[self.sizes[0] :]
        never = np.flatnonzero(known & ~eligible)
        missing = np.flatnonzero(seen.alive & np.isnan(rate))
        return [
            Decision("not among the hardest", seen.positions[easier], evidence={"pass_rate": rate[easier]}),
            Decision("never solved", seen.positions[never]),
            Decision(NO_ATTEMPTS, seen.positions[missing]),
            Decision("", np.empty(0, np.int64), scores={"phase": phase}),
        ]


def _attempts(entry: Mapping[str, Any]) -> tuple[int, int]:
    """(passed, attempts) of an entry."""
    passed: Any = entry.get("passed")
    n: Any = entry.get("n", 1)
    whole = isinstance(passed, int) and isinstance(n, int) and not isinstance(n, bool)
    if not whole or not 0 <= int(passed) <= n or n < 1 or ("n" not in entry and not isinstance(passed, bool)):
        raise DataError(f"passed={passed!r}, n={entry.get('n')!r}; give passed of n attempts, or one attempt as true or false")
    return int(passed), n
