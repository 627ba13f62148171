"""Answers to workers, outcomes back: one worker while all goes well, several where answers stop theirs or are programs."""

from __future__ import annotations

import pickle
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from multiprocessing.connection import wait
from time import monotonic
from typing import Any, cast

from assay.core.canon import FrozenMap
from assay.core.errors import RewardError
from assay.core.protocols import Verifier
from assay.core.rollout import Rollout
from assay.core.score import Fault, Score
from assay.core.task import Task
from assay.core.util.stop_request import LOOK as LOOK_FOR_STOP
from assay.core.util.stop_request import StopRequestError, stop_requested
from assay.verify.abilities import abilities_of
from assay.verify.user_reward import abstained
from assay.verify.verdict import broken_score
from assay.verify.workers import cpu
from assay.verify.workers.connections import FlightPlan
from assay.verify.workers.cpu import LOOK, CpuLimiter, DeadlineClock
from assay.verify.workers.process import AWAITS, BEAT, hear
from assay.verify.workers.results import CorruptResults
from assay.verify.workers.supervisor import ScoringWorker, WorkerSupervisor

__all__ = ["Dispatcher", "JudgingEnd", "JudgingJob", "JudgingOutcome"]

_Pair = tuple[Task, Rollout]

_WORTH, _PART = 0.02, 0.02
"""Seconds that a batch must take before other workers help, and that a worker is given to do at a time: to send a job and to wake
for its verdicts takes about a tenth of a millisecond."""


_LAST_CALLS = 1.0
"""Seconds that asynchronous calls in flight have left when a run is asked to stop: those that wait to be made again never end."""


class JudgingEnd(StrEnum):
    """How one judging ended."""

    VERDICT = "verdict"
    HUNG = "hung"
    DIED = "died"
    AWAITS = "awaits"


@dataclass(frozen=True, slots=True)
class JudgingOutcome:
    """How one judging ended, and the score that says so.

    Attributes:
        end: with a verdict, or how else.
        score: the verdict, or the fault.
        place, tries: of one of many calls in flight: its number, and how often it was tried.
    """

    end: JudgingEnd
    score: Score
    place: int = 0
    tries: int = 1

    @property
    def good(self) -> bool:
        """Whether there is a verdict that counts, or the function has none to give."""
        return self.end is JudgingEnd.VERDICT and (self.score.valid or abstained(self.score))

    @property
    def stopped(self) -> bool:
        """Whether the worker is gone."""
        return self.end in (JudgingEnd.HUNG, JudgingEnd.DIED)


@dataclass(frozen=True, slots=True)
class JudgingJob:
    """Answers to judge one after another.

    Attributes:
        places: in the batch.
        fresh: on a worker that has judged nothing yet.
        alone: without others, since one of the batch has stopped its worker: so it is known who does.
    """

    places: tuple[int, ...]
    fresh: bool = False
    alone: bool = False


@dataclass(slots=True)
class _Call:
    """A worker with what it judges, and what it has said so far."""

    worker: ScoringWorker
    calls: int
    clock: DeadlineClock
    found: list[JudgingOutcome | list[Score]]
    began: float
    over: bool = False


class Dispatcher:
    """Judges answers on workers that may hang or die.

    Args:
        verifier: what judges; one with ``beside`` judges on every core from the start (`ScoringPool`).
        deadline: seconds for one call, from when its worker begins it; a wait for a core does not count (`DeadlineClock`).
        workers: how many answers are judged at once at most (`CpuLimiter`).
        counts: where ``hung`` and ``died`` are counted.
        memory: bytes that each worker may have; None for equal shares to the workers that compute at once and to the program.
        flight: how asynchronous calls are made.

    Attributes:
        supervisor: the workers.
        wide: whether a batch is spread over several workers one answer at a time.
    """

    def __init__(
        self,
        verifier: Verifier,
        deadline: float,
        workers: int,
        counts: Counter[str],
        memory: int | None = None,
        flight: FlightPlan | None = None,
    ) -> None:
        self._limiter = CpuLimiter(workers)
        other = abilities_of(verifier).for_workers(self._limiter.width)
        self.wide = other is not None and self._limiter.width > 1
        self.supervisor = WorkerSupervisor(other or verifier, counts, memory or cpu.memory() // (1 + self._limiter.width))
        self._deadline = deadline
        self._workers = workers
        self._counts = counts
        self._flight = flight or FlightPlan(deadline=deadline)
        self._pace: float | None = None

    def call(self, items: Sequence[_Pair]) -> list[Score] | JudgingOutcome:
        """All items in one call: their scores, or how the call failed."""
        call = self._begin(self.supervisor.hand(items, how=True), 1)
        self._finish(call)
        return call.found[0]

    def pipeline(self, items: Sequence[_Pair], fresh: bool = False) -> list[JudgingOutcome]:
        """The items in order on one worker that never waits for us; ends early, after the first that stops it."""
        if not items:
            return []
        call = self._begin(self.supervisor.hand(items, fresh=fresh), len(items))
        self._finish(call)
        return _outcomes(call.found)

    def fly(self, items: Sequence[_Pair], fresh: bool = False) -> dict[int, JudgingOutcome]:
        """The items as asynchronous calls in flight at once on one worker: outcomes by place.

        Those are missing whose verdict was not there when the worker died, or when its event loop was blocked for a deadline.
        """
        found: dict[int, JudgingOutcome] = {}
        if not items:
            return found
        worker = self.supervisor.hand(items, how=self._flight, fresh=fresh)
        clock = DeadlineClock(worker.pid, self._deadline)
        asked: float | None = None
        while True:
            through = worker.connection.poll(min(LOOK_FOR_STOP, max(0.0, clock.seconds_left())))
            try:
                new = worker.verdicts.new()
                found |= {outcome.place: outcome for _, data in new if isinstance(outcome := _read(data), JudgingOutcome)}
                if new:
                    clock.again(new[-1][0])
                if through:
                    hear(worker.connection)
            except (CorruptResults, EOFError, OSError) as error:
                self._died_outcome(worker, str(error) if isinstance(error, CorruptResults) else "")
                break
            if through:
                self.supervisor.rest(worker)
                break
            if clock.seconds_left() <= 0.0 and not new:
                self._hung(worker)
                break
            asked = asked or (monotonic() if stop_requested() else None)
            if asked is not None and monotonic() - asked > _LAST_CALLS:
                self.supervisor.end(worker)
                raise StopRequestError("the run was asked to stop while asynchronous rewards were waited for")
        self._count(found.values())
        return {place: outcome for place, outcome in found.items() if 0 <= place < len(items)}

    def spreads(self, n: int) -> bool:
        """Whether several workers judge a batch of ``n``: not where one is through sooner than others could begin.

        How long a verdict takes is known from those before; nothing is known at first.
        """
        if self.wide:
            return True
        return self._workers > 1 and n > 1 and (self._pace is None or n * self._pace >= _WORTH)

    def deal(
        self, items: Sequence[_Pair], queue: deque[JudgingJob], flying: bool = False
    ) -> Iterator[tuple[int, JudgingOutcome]]:
        """The jobs to as many workers as there is room for; the caller may append jobs in between.

        What a worker that is stopped leaves of its job is judged by others.

        Args:
            items: the batch.
            queue: jobs; those of quick verdicts are put together.
            flying: each is an asynchronous call, alone in its process.
        """
        busy: list[tuple[JudgingJob, _Call]] = []
        while queue or busy:
            while queue and self._limiter.free({call.worker.pid: call.clock.began for _, call in busy}):
                job = queue.popleft() if flying else self._next(queue)
                how = self._flight if flying else False
                worker = self.supervisor.hand([items[i] for i in job.places], how=how, fresh=job.fresh)
                busy.append((job, self._begin(worker, len(job.places))))
            soonest = max(0.0, min(call.clock.seconds_left() for _, call in busy))
            wait([call.worker.connection for _, call in busy], min(soonest, LOOK) if queue else soonest)
            for entry in list(busy):
                job, call = entry
                known = len(call.found)
                self._look(call)
                new = _outcomes(call.found)[known:]
                self._count(new)
                yield from zip(job.places[known:], new, strict=False)
                if call.over:
                    busy.remove(entry)
                    queue.extendleft(JudgingJob((place,), alone=True) for place in reversed(job.places[len(call.found) :]))
        self.supervisor.shrink(self._workers)

    def _next(self, queue: deque[JudgingJob]) -> JudgingJob:
        """The next job; together with those behind it where verdicts are so quick that to send each alone would cost more."""
        job = queue.popleft()
        if self.wide or job.fresh or job.alone or self._pace is None:
            return job
        most = min(int(_PART / max(self._pace, 1e-9)), -(-(len(queue) + 1) // self._workers))
        places = list(job.places)
        while len(places) < most and queue and not queue[0].fresh and not queue[0].alone:
            places += queue.popleft().places
        return JudgingJob(tuple(places))

    def _count(self, outcomes: Iterable[JudgingOutcome]) -> None:
        """Counts the calls that were made again."""
        for outcome in outcomes:
            if outcome.tries > 1:
                self._counts["reconnected"] += outcome.tries - 1

    def _begin(self, worker: ScoringWorker, calls: int) -> _Call:
        clock = DeadlineClock(worker.pid, self._deadline)
        return _Call(worker, calls, clock, [], clock.began)

    def _finish(self, call: _Call) -> None:
        """Waits until the calls of a batch are over, up to the first that stops the worker, which else rests then.

        The worker writes down each verdict with its time. So it is enough to look when it is through, and when the call that it
        was last seen at has had its deadline: most often it has long been at a later one.
        """
        while not call.over:
            call.worker.connection.poll(max(0.0, call.clock.seconds_left()))
            self._look(call)

    def _look(self, call: _Call) -> None:
        """Takes what is new from a worker, and settles whether it is through, late or gone."""
        worker, known = call.worker, len(call.found)
        through = worker.connection.poll()  # first of all: a verdict that came while we were busy elsewhere is in time
        try:
            new = worker.verdicts.new()
        except CorruptResults as error:
            call.found, call.over = [*call.found[: call.calls - 1], self._died_outcome(worker, str(error))], True
            return
        read = [verdict for _, data in new if (verdict := _read(data)) is not None]
        call.found += read[: call.calls - known]
        if new:
            call.clock.again(new[-1][0])
            self._measure(call, new[-1][0])
        if through:
            call.found, call.over = self._judge_rest(worker, call.found, call.calls, known), True
        elif call.clock.seconds_left() <= 0.0 and not new:  # to read what was new may have taken us longer than the deadline
            call.found, call.over = self._late(worker, call.found, call.calls), True

    def _measure(self, call: _Call, last: float) -> None:
        """Learns how long a verdict takes: half from the newest call, half from those before."""
        taken = max(0.0, last - call.began) / max(1, len(call.found))
        self._pace = taken if self._pace is None else (taken + self._pace) / 2

    def _judge_rest(
        self, worker: ScoringWorker, found: list[JudgingOutcome | list[Score]], calls: int, known: int
    ) -> list[JudgingOutcome | list[Score]]:
        try:
            hear(worker.connection)
        except CorruptResults as error:  # whoever wrote there may have written verdicts too: only those seen before count
            return [*found[: min(known, calls - 1)], self._died_outcome(worker, str(error))]
        except (EOFError, OSError):
            if len(found) < calls:
                return [*found, self._died_outcome(worker)]
            self.supervisor.end(worker)
            return found
        if len(found) < calls:
            return [*found, self._died_outcome(worker, "it wrote over its verdicts")]
        self.supervisor.rest(worker)
        return found

    def _late(
        self, worker: ScoringWorker, found: list[JudgingOutcome | list[Score]], calls: int
    ) -> list[JudgingOutcome | list[Score]]:
        if len(found) < calls:
            return [*found, self._hung(worker)]
        self.supervisor.end(worker)  # all verdicts are there, and only the word that it is through is not
        return found

    def _died_outcome(self, worker: ScoringWorker, why: str = "") -> JudgingOutcome:
        self._counts["died"] += 1
        how, printed = self.supervisor.end(worker)
        if why:
            how = f"{why}, through descriptors that are not its own, and was ended"
        return _stopped_outcome(JudgingEnd.DIED, "died", f"the scoring process ended without a verdict ({how})", printed)

    def _hung(self, worker: ScoringWorker) -> JudgingOutcome:
        self._counts["hung"] += 1
        _, printed = self.supervisor.end(worker)
        return _stopped_outcome(JudgingEnd.HUNG, "timeout", f"no verdict within {self._deadline:g} s", printed)


def _stopped_outcome(end: JudgingEnd, verdict: str, error: str, printed: str) -> JudgingOutcome:
    info = {"verdict": verdict, "error": error, "ended": end.value} | ({"printed": printed} if printed else {})
    return JudgingOutcome(end, Score(components={}, fault=Fault.INFRA, info=FrozenMap(info)))


def _outcomes(found: Sequence[JudgingOutcome | list[Score]]) -> list[JudgingOutcome]:
    return [outcome for outcome in found if isinstance(outcome, JudgingOutcome)]


def _read(data: bytes) -> JudgingOutcome | list[Score] | None:
    """What a worker wrote: a verdict, those of one call, or a beat (None)."""
    if data == BEAT:
        return None
    try:
        verdict: Any = pickle.loads(data)
    except Exception as error:  # whatever a foreign class raises that is rebuilt here
        return JudgingOutcome(
            JudgingEnd.VERDICT, broken_score(RewardError(f"the verdict cannot be read: {type(error).__name__}: {error}"))
        )
    if verdict == AWAITS:
        return JudgingOutcome(JudgingEnd.AWAITS, broken_score(RewardError("the function returned an awaitable")))
    if isinstance(verdict, tuple):
        place, tries, score = cast("tuple[int, int, Score]", verdict)
        return JudgingOutcome(JudgingEnd.VERDICT, score, place, tries)
    return cast("list[Score]", verdict) if isinstance(verdict, list) else JudgingOutcome(JudgingEnd.VERDICT, verdict)
