"""Answers to workers, outcomes back: one worker while all goes well, several where answers stop theirs or are programs."""

from __future__ import annotations

import pickle
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from multiprocessing.connection import wait

from assay.core.canon import FrozenMap
from assay.core.errors import RewardError
from assay.core.protocols import Verifier
from assay.core.rollout import Rollout
from assay.core.score import Fault, Score
from assay.core.task import Task
from assay.verify.abilities import abilities_of
from assay.verify.verdict import broken
from assay.verify.workers import cpu as room
from assay.verify.workers.cpu import LOOK, CpuLimiter, DeadlineClock
from assay.verify.workers.process import hear
from assay.verify.workers.results import CorruptResults
from assay.verify.workers.supervisor import ScoringWorker, WorkerSupervisor

__all__ = ["Dispatcher", "JudgingEnd", "JudgingJob", "JudgingOutcome"]

_Pair = tuple[Task, Rollout]


class JudgingEnd(StrEnum):
    """How one judging ended."""

    VERDICT = "verdict"
    HUNG = "hung"
    DIED = "died"


@dataclass(frozen=True, slots=True)
class JudgingOutcome:
    """How one judging ended, and the score that says so."""

    end: JudgingEnd
    score: Score

    @property
    def good(self) -> bool:
        """Whether there is a verdict that counts."""
        return self.end is JudgingEnd.VERDICT and self.score.valid

    @property
    def stopped(self) -> bool:
        """Whether the worker is gone."""
        return self.end is not JudgingEnd.VERDICT


@dataclass(frozen=True, slots=True)
class JudgingJob:
    """An answer to judge: its place in the batch, and whether on a worker that has judged nothing yet."""

    index: int
    fresh: bool = False


class Dispatcher:
    """Judges answers on workers that may hang or die.

    Args:
        verifier: what judges; one with ``beside`` judges on every core from the start (`ScoringPool`).
        deadline: seconds for one call, from when its worker begins it; a wait for a core does not count (`DeadlineClock`).
        workers: how many answers are judged at once at most (`CpuLimiter`).
        counts: where ``hung`` and ``died`` are counted.
        memory: bytes that each worker may have; None for equal shares to the workers that compute at once and to the program.

    Attributes:
        bench: the workers.
        wide: whether a batch is spread over several workers from its first answer.
    """

    def __init__(
        self, verifier: Verifier, deadline: float, workers: int, counts: Counter[str], memory: int | None = None
    ) -> None:
        self._room = CpuLimiter(workers)
        other = abilities_of(verifier).beside(self._room.width)
        self.wide = other is not None and self._room.width > 1
        self.bench = WorkerSupervisor(other or verifier, counts, memory or room.memory() // (1 + self._room.width))
        self._deadline = deadline
        self._counts = counts

    def call(self, items: Sequence[_Pair]) -> list[Score] | JudgingOutcome:
        """All items in one call: their scores, or how the call failed."""
        (answer,) = self._answers(self.bench.hand(items, together=True), 1)
        return answer

    def pipeline(self, items: Sequence[_Pair], fresh: bool = False) -> list[JudgingOutcome]:
        """The items in order on one worker that never waits for us; ends early, after the first that stops it."""
        if not items:
            return []
        found = self._answers(self.bench.hand(items, fresh=fresh), len(items))
        return [outcome for outcome in found if isinstance(outcome, JudgingOutcome)]

    def deal(self, items: Sequence[_Pair], queue: deque[JudgingJob]) -> Iterator[tuple[int, JudgingOutcome]]:
        """The jobs one by one to as many workers as there is room for; the caller may append jobs in between."""
        busy: dict[ScoringWorker, tuple[int, DeadlineClock]] = {}
        while queue or busy:
            while queue and self._room.free({w.pid: clock.began for w, (_, clock) in busy.items()}):
                job = queue.popleft()
                worker = self.bench.hand([items[job.index]], fresh=job.fresh)
                busy[worker] = (job.index, DeadlineClock(worker.pid, self._deadline))
            soonest = min(clock.left() for _, clock in busy.values())
            wait([w.connection for w in busy], max(0.0, min(soonest, LOOK) if queue else soonest))
            for worker, (index, clock) in list(busy.items()):
                outcome = self._seen(worker, clock)
                if outcome is not None:
                    del busy[worker]
                    yield index, outcome
        self.bench.shrink(self._room.width if self.wide else 1)

    def _answers(self, worker: ScoringWorker, calls: int) -> list[JudgingOutcome | list[Score]]:
        """What the calls of a batch came to, in order, up to the first that stops the worker, which else rests then.

        The worker writes down each verdict with its time. So it is enough to look when it is through, and when the call that it
        was last seen at has had its deadline: most often it has long been at a later one.
        """
        clock, left = DeadlineClock(worker.pid, self._deadline), self._deadline
        found: list[JudgingOutcome | list[Score]] = []
        while True:
            through = worker.connection.poll(left)
            try:
                new = worker.verdicts.new()
            except CorruptResults as error:
                return [*found[: calls - 1], self._died(worker, str(error))]
            found += [_read(data) for _, data in new[: calls - len(found)]]
            if new:
                clock.again(new[-1][0])
            if through:
                return self._rested(worker, found, calls)
            left = clock.left()
            if left <= 0.0 and not new:  # to read what was new may have taken us longer than the deadline
                return self._late(worker, found, calls)
            left = max(0.0, left)

    def _rested(
        self, worker: ScoringWorker, found: list[JudgingOutcome | list[Score]], calls: int
    ) -> list[JudgingOutcome | list[Score]]:
        try:
            hear(worker.connection)
        except CorruptResults as error:
            return [*found[: calls - 1], self._died(worker, str(error))]
        except (EOFError, OSError):
            if len(found) < calls:
                return [*found, self._died(worker)]
            self.bench.end(worker)
            return found
        if len(found) < calls:
            return [*found, self._died(worker, "it wrote over its verdicts")]
        self.bench.rest(worker)
        return found

    def _late(
        self, worker: ScoringWorker, found: list[JudgingOutcome | list[Score]], calls: int
    ) -> list[JudgingOutcome | list[Score]]:
        if len(found) < calls:
            return [*found, self._hung(worker)]
        self.bench.end(worker)  # all verdicts are there, and only the word that it is through is not
        return found

    def _seen(self, worker: ScoringWorker, clock: DeadlineClock) -> JudgingOutcome | None:
        if worker.connection.poll():  # first of all: a verdict that came while we were busy elsewhere is in time
            try:
                found = [_read(data) for _, data in worker.verdicts.new()[:1]]
            except CorruptResults as error:
                return self._died(worker, str(error))
            (outcome,) = self._rested(worker, [*found], 1)
            assert isinstance(outcome, JudgingOutcome)
            return outcome
        return self._hung(worker) if clock.left() <= 0.0 else None

    def _died(self, worker: ScoringWorker, why: str = "") -> JudgingOutcome:
        self._counts["died"] += 1
        how, printed = self.bench.end(worker)
        if why:
            how = f"{why}, through descriptors that are not its own, and was ended"
        return _stopped(JudgingEnd.DIED, "died", f"the scoring process ended without a verdict ({how})", printed)

    def _hung(self, worker: ScoringWorker) -> JudgingOutcome:
        self._counts["hung"] += 1
        _, printed = self.bench.end(worker)
        return _stopped(JudgingEnd.HUNG, "timeout", f"no verdict within {self._deadline:g} s", printed)


def _stopped(end: JudgingEnd, verdict: str, error: str, printed: str) -> JudgingOutcome:
    info = {"verdict": verdict, "error": error, "ended": end.value} | ({"printed": printed} if printed else {})
    return JudgingOutcome(end, Score(components={}, fault=Fault.INFRA, info=FrozenMap(info)))


def _read(data: bytes) -> JudgingOutcome | list[Score]:
    try:
        verdict: Score | list[Score] = pickle.loads(data)
    except Exception as error:  # whatever a foreign class raises that is rebuilt here
        return JudgingOutcome(
            JudgingEnd.VERDICT, broken(RewardError(f"the verdict cannot be read: {type(error).__name__}: {error}"))
        )
    return verdict if isinstance(verdict, list) else JudgingOutcome(JudgingEnd.VERDICT, verdict)
