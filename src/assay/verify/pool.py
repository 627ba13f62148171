"""Verdicts from foreign code that may raise, hang or die, without losing the run."""

from __future__ import annotations

import os
import pickle
import threading
import weakref
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from multiprocessing.connection import Connection
from types import TracebackType

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError, RewardError
from assay.core.protocols import Verifier
from assay.core.rollout import Rollout
from assay.core.score import Fault, Score
from assay.core.task import Task
from assay.verify.function import RewardFunction, row_of
from assay.verify.verdict import failed_attempt, judge
from assay.verify.worker import Keeper, views

__all__ = ["ScoringPool"]

_ARRIVAL = 60.0
"""Seconds that a worker may take to read a batch: nothing of the user's runs yet, so only a broken machine needs them."""

_HANGS = 3
"""So many different answers that hang, before the verifier ever answered, mean that it is broken and not the answers."""


_Pair = tuple[Task, Rollout]


class _End(StrEnum):
    VERDICT = "verdict"
    HUNG = "hung"
    DIED = "died"


@dataclass(frozen=True, slots=True)
class _Outcome:
    end: _End
    score: Score

    @property
    def good(self) -> bool:
        return self.end is _End.VERDICT and self.score.valid


class ScoringPool:
    """Scores attempts; a verifier that is not ``trusted`` runs in a process of its own that can be killed.

    A built-in verifier (``trusted``) runs in this process. Any other runs in a forked worker: what it raises is a ``verifier``
    fault; a worker that dies is an ``infra`` fault; one that gives no verdict within the deadline is killed. Each such attempt
    is judged once more on a fresh worker. A fault that comes again is recorded and masked; but an answer that hangs or kills
    its judge twice is a ``policy`` fault and scores the floor, or hanging would become a strategy.

    Use it as a context manager, or call `close`; processes also end when the pool is collected or the program ends.

    Args:
        verifier: the scorer.
        deadline: seconds for one verdict; for a batched `RewardFunction`, for one call.
        floor: value of every component of an answer that exceeded the limits.

    Attributes:
        counts: how often a verdict was ``retried``, a call ``hung``, a worker ``died``, a batch was ``split`` into single
        calls.

    Raises:
        ConfigError: a deadline that is not positive.

    >>> from assay.verify import RewardFunction
    >>> with ScoringPool(RewardFunction(lambda p, c, row: 1.0), deadline=2.0) as pool:
    ...     pool.score([])
    {}
    """

    def __init__(self, verifier: Verifier, deadline: float = 5.0, *, floor: float = 0.0) -> None:
        if not deadline > 0:
            raise ConfigError(f"ScoringPool.deadline is in seconds and must be > 0, got {deadline}")
        self.verifier = verifier
        self.deadline = deadline
        self.floor = floor
        self.counts: Counter[str] = Counter()
        self._answered = False
        self._names: tuple[str, ...] = getattr(verifier, "names", ()) or ("reward",)
        self._lock = threading.Lock()
        self._bench: _Bench | None = None
        if not getattr(verifier, "trusted", False):
            self._bench = _Bench(verifier)

    def score(self, items: Sequence[tuple[Task, Rollout]]) -> dict[str, Score]:
        """The verdict on each attempt, by rollout id.

        Raises:
            RewardError: no verdict on more than half of the attempts, or the verifier hangs from the start; shows the first
                failure with its row.
            DataError: two attempts with one id, or one that cannot be sent to another process.
        """
        repeated = [i for i, n in Counter(r.id for _, r in items).items() if n > 1]
        if repeated:
            raise DataError(f"results are keyed by rollout id, but {repeated[:3]} occur more than once")
        lost = {r.id: score for _, r in items if (score := failed_attempt(r)) is not None}
        rest = [(t, r) for t, r in items if r.id not in lost]
        with self._lock:
            verdicts = self._inline(rest) if self._bench is None else self._outside(rest, self._bench)
        self._refuse_blindness(rest, verdicts)
        by_id = {r.id: score for (_, r), score in zip(rest, verdicts, strict=True)} | lost
        return {r.id: by_id[r.id] for _, r in items}

    def close(self) -> None:
        """End the worker and the keeper."""
        if self._bench is not None:
            self._bench.close()

    def __enter__(self) -> ScoringPool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # ---- in this process

    def _inline(self, items: Sequence[_Pair]) -> list[Score]:
        return [judge(self.verifier, task, rollout) for task, rollout in items]

    # ---- in a worker

    def _outside(self, items: Sequence[_Pair], bench: _Bench) -> list[Score]:
        try:
            outcomes = self._together(items, bench) or self._each(items, bench)
            again = [i for i, o in enumerate(outcomes) if not o.good]
            if again:
                self.counts["retried"] += len(again)
                bench.drop()
                retried = self._each([items[i] for i in again], bench)
                for i, second in zip(again, retried, strict=True):
                    outcomes[i] = self._settled(outcomes[i], second)
        except BaseException:  # whatever leaves here leaves a worker in the middle of a batch
            bench.drop()
            raise
        return [o.score for o in outcomes]

    def _together(self, items: Sequence[_Pair], bench: _Bench) -> list[_Outcome] | None:
        """One call for all; None when there is no such form or it failed, so that single calls find the culprit."""
        if not (isinstance(self.verifier, RewardFunction) and self.verifier.batched) or len(items) < 2:
            return None
        bench.send(items, together=True)
        outcome = self._next(bench)
        if isinstance(outcome, list):
            self._answered = True
            return [_Outcome(_End.VERDICT, score) for score in outcome]
        self.counts["split"] += 1
        return None

    def _each(self, items: Sequence[_Pair], bench: _Bench) -> list[_Outcome]:
        outcomes: list[_Outcome] = []
        while len(outcomes) < len(items):
            bench.send(items[len(outcomes) :])
            for _ in range(len(outcomes), len(items)):
                outcome = self._next(bench)
                assert isinstance(outcome, _Outcome)
                outcomes.append(outcome)
                if outcome.end is not _End.VERDICT:
                    break
            self._refuse_hanging(items, outcomes)
        return outcomes

    def _next(self, bench: _Bench) -> _Outcome | list[Score]:
        """The worker's next message; a worker that hung or died is replaced by the next batch sent."""
        try:
            if bench.poll(self.deadline):
                message = bench.receive()
                if isinstance(message, list):
                    return message
                self._answered = self._answered or message.valid
                if message.valid:
                    self._names = tuple(message.components)
                return _Outcome(_End.VERDICT, message)
        except (EOFError, OSError):
            self.counts["died"] += 1
            return _Outcome(_End.DIED, _infra(f"the scoring process ended without a verdict ({bench.drop()})"))
        self.counts["hung"] += 1
        bench.drop()
        return _Outcome(_End.HUNG, _infra(f"no verdict within {self.deadline:g} s"))

    def _settled(self, first: _Outcome, second: _Outcome) -> _Outcome:
        if first.end is _End.VERDICT or second.end is _End.VERDICT:
            return second
        return _Outcome(second.end, self._floored(second))

    def _floored(self, outcome: _Outcome) -> Score:
        info = FrozenMap({"error": f"{outcome.score.info['error']}, twice on the same answer"})
        return Score(components=dict.fromkeys(self._names, self.floor), fault=Fault.POLICY, info=info)

    # ---- a verifier that says too little

    def _refuse_hanging(self, items: Sequence[_Pair], outcomes: Sequence[_Outcome]) -> None:
        if self._answered or any(o.end is not _End.HUNG for o in outcomes):
            return
        answers = {(task.id, rollout.text) for task, rollout in items[: len(outcomes)]}
        if len(answers) >= _HANGS:
            raise RewardError(
                f"the reward function gave no verdict within {self.deadline:g} s on its first {len(answers)} different answers; "
                f"make it faster or raise the deadline. First row: {row_of(items[0][0])!r}"
            )

    def _refuse_blindness(self, items: Sequence[_Pair], verdicts: Sequence[Score]) -> None:
        ended = [s.fault is Fault.POLICY and self._bench is not None for s in verdicts]
        enough = sum(ended) >= _HANGS  # an answer or two may hang or kill their judge; most answers of a batch do not
        silent = [not s.valid or (floored and enough) for s, floored in zip(verdicts, ended, strict=True)]
        failed = [(item, score) for item, score, none in zip(items, verdicts, silent, strict=True) if none]
        if 2 * len(failed) <= len(items):
            return
        (task, rollout), score = failed[0]
        detail = str(score.info.get("traceback", score.info.get("error", "no detail"))).rstrip()
        raise RewardError(
            f"no verdict on {len(failed)} of {len(items)} answers: the reward function failed, hung, or ended its process; "
            "training on the rest would be blind. The first failure:\n"
            f"{detail}\nrow: {row_of(task)!r}\ncompletion: {rollout.text!r}"
        )


class _Bench:
    """The keeper, and the one worker that is at work."""

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self._keeper = Keeper(verifier)
        self._worker: tuple[int, Connection] | None = None
        self._finalizer = weakref.finalize(self, _shut, self._keeper, os.getpid())

    def send(self, items: Sequence[_Pair], together: bool = False) -> None:
        """Hands a batch to the worker, a new one if need be."""
        try:
            data = pickle.dumps((views(self._verifier, items), together), protocol=pickle.HIGHEST_PROTOCOL)
        except Exception as error:  # pickle raises whatever a foreign __reduce__ raises
            raise DataError(
                f"a task or rollout cannot be sent to the scoring process: {error}; keep plain values in it"
            ) from error
        for _ in range(3):
            try:
                connection = self._ready()
                connection.send_bytes(data)
                if connection.poll(_ARRIVAL):
                    connection.recv()
                    return
            except (EOFError, OSError):
                pass  # it died while idle, which says nothing about the batch
            self.drop()
        raise RewardError("three scoring processes in a row died before they read their batch; is the machine out of memory?")

    def poll(self, seconds: float) -> bool:
        """Whether a message, or the worker's end, arrives in time."""
        assert self._worker is not None
        return self._worker[1].poll(seconds)

    def receive(self) -> Score | list[Score]:
        """The worker's next message."""
        assert self._worker is not None
        return self._worker[1].recv()

    def drop(self) -> str:
        """End the worker; how it ended, in words."""
        if self._worker is None:
            return "no worker"
        (pid, connection), self._worker = self._worker, None
        connection.close()
        try:
            code = self._keeper.kill(pid)
        except (EOFError, OSError):
            return "its keeper is gone"
        return f"killed by signal {-code}" if code < 0 else f"exit code {code}"

    def close(self) -> None:
        """End everything; harmless when repeated."""
        if self._worker is not None:
            self._worker[1].close()
            self._worker = None
        self._finalizer()

    def _ready(self) -> Connection:
        if not self._finalizer.alive:
            raise RewardError("this ScoringPool is closed; make a new one")
        if self._worker is None:
            try:
                self._worker = self._keeper.spawn()
            except (EOFError, OSError):  # somebody killed the keeper: start another
                self._finalizer()
                self._keeper = Keeper(self._verifier)
                self._finalizer = weakref.finalize(self, _shut, self._keeper, os.getpid())
                self._worker = self._keeper.spawn()
        return self._worker[1]


def _shut(keeper: Keeper, owner: int) -> None:
    if os.getpid() == owner:
        keeper.close()


def _infra(message: str) -> Score:
    return Score(components={}, fault=Fault.INFRA, info=FrozenMap({"error": message}))
