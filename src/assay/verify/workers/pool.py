"""Verdicts from foreign code that may raise, hang or die, without losing the run."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from itertools import chain
from types import TracebackType

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError
from assay.core.protocols import State, Verifier
from assay.core.rollout import Rollout, Stop
from assay.core.score import Fault, Score
from assay.core.task import Task
from assay.verify.abilities import abilities_of, measured
from assay.verify.user_reward import UserReward
from assay.verify.verdict import WHOLE_CALL, failed_rollout, judge
from assay.verify.workers.cache import VerdictCache
from assay.verify.workers.connections import UNREACHED, FlightPlan
from assay.verify.workers.dispatch import Dispatcher, JudgingEnd, JudgingJob, JudgingOutcome
from assay.verify.workers.refusals import failure_text, refuse_blindness, refuse_hanging

__all__ = ["ScoringPool"]

_NEWS = {
    "replaced": "the process that starts scoring workers was stopped or killed, and has been replaced",
    "out_of_memory": "a scoring worker asked for more memory than it may have and was ended: does the reward keep something of "
    "each answer? If it needs more, raise Run.reward_memory (ScoringPool.memory), in GiB",
}

_Pair = tuple[Task, Rollout]


class ScoringPool:
    """Scores rollouts; a verifier that is not ``trusted`` runs in processes of its own that can be killed.

    A built-in verifier (``trusted``) runs in this process. Any other runs in a forked worker: what it raises is a ``verifier``
    fault, and so is a verdict of several components without ``correct`` or ``reward``; a worker that dies is an ``infra``
    fault; one that gives no verdict within the deadline is killed. Each such rollout is judged once more on a fresh worker. A
    fault that comes again is recorded and masked; but an answer that hangs or kills its judge twice is a ``policy`` fault and
    scores the floor, or hanging would become a strategy. A rollout that ended in an error never reaches the verifier: it is an
    ``infra`` fault, or the ``policy``'s when its own output exceeded a limit of its environment.

    The floor of a component is what the verifier declares (`Abilities.floor`; `RewardFunction.floor`; 0 where it declares none),
    whatever the run has seen: equal answers score alike at any time. Where a verdict of the same batch lies below its declared
    floor, the floor is wrong: ``below_floor`` counts such verdicts, and a hang of that batch scores the lowest of them, so that
    it never pays better than the worst answer beside it. Such a rollout gets every component that the verifier has given, or
    declares.

    A batch is spread over the workers, unless its verdicts are so quick that one is through sooner: an answer may be judged
    beside others as long as it has a core of its own or they sleep. What hangs or dies is judged again on a worker of its own.

    Calls of an asynchronous reward are in flight at once on the event loop of one worker. Each has its deadline. One whose
    connection fails is made again, alone; one that no service answers in the end is an ``infra`` fault that says the first cause.
    A call that blocks the event loop for a deadline, or ends the process, is told from the others by judging each alone.

    Of a built-in verifier whose verdict depends on nothing but how a rollout ended and its last text (``by_text``), rollouts at
    a task that end alike are judged once.

    What a function prints is not shown: its first 2,000 bytes per answer stand in ``info["printed"]`` of the verdict, and in
    the message of a `RewardError`; the rest, and what other programs and C code print, is dropped.

    What a verifier may have besides ``__call__`` is its `Abilities`. One with ``beside`` is spread over the cores from the first
    answer, since its workers mostly wait for programs that they started.

    Use it as a context manager, or call `close`; processes also end when the pool is collected or the program ends.

    Args:
        verifier: the scorer.
        deadline: seconds for one verdict, from when a worker begins it; for a batched `RewardFunction`, for one call. Time that
            the worker waits for a core does not count, up to three more deadlines (on Linux): a busy machine is no fault of an
            answer.
        workers: how many processes judge at once at most; 1 for a function that must not run twice at the same time. Of those
            that compute there are as many as cores; ones that wait give way to others.
        refuse: raise where training on the verdicts would be blind; False to get every verdict as it is, as when answers are
            judged one by one.
        memory: GiB that each worker, and each program that it starts, may have beyond what it begins with (on Linux; shared
            memory does not count); None for equal shares of the machine's memory to the workers that compute at once and to this
            program. A worker that asks for more is ended as if it had died.
        in_flight: calls of an asynchronous reward (`RewardFunction` of an ``async def``) at the same time, in one process.
        attempts: tries of such a call whose connection fails, with growing pauses.

    Attributes:
        counts: since the pool was made, how often a verdict was ``retried``, a call ``hung``, a worker ``died`` (and was
            ``out_of_memory``, where it met its limit), a batched call was ``split`` into single ones, an asynchronous call was
            ``reconnected`` (made once more after its connection failed), a verdict was lost to an ``unreached`` service, one lay
            ``below_floor``, a function ``changed`` its copy of a row, the process that starts workers was ``replaced``; 0 for
            what never happened.

    Raises:
        ConfigError: a deadline or a memory that is not positive, or no workers.

    >>> from assay.verify import RewardFunction
    >>> with ScoringPool(RewardFunction(lambda p, c, row: 1.0), deadline=2.0) as pool:
    ...     pool.score([])
    {}
    """

    def __init__(
        self,
        verifier: Verifier,
        deadline: float = 5.0,
        *,
        workers: int = 8,
        refuse: bool = True,
        memory: float | None = None,
        in_flight: int = 64,
        attempts: int = 4,
    ) -> None:
        if not deadline > 0:
            raise ConfigError(f"ScoringPool.deadline is in seconds and must be > 0, got {deadline}")
        if workers < 1:
            raise ConfigError(f"ScoringPool.workers={workers}; use at least 1")
        if in_flight < 1 or attempts < 1:
            raise ConfigError(f"ScoringPool.in_flight={in_flight}, attempts={attempts}; use at least 1 of each")
        if memory is not None and not memory > 0:
            raise ConfigError(
                f"ScoringPool.memory is in GiB and must be > 0, got {memory}; leave it out for a share of the machine's"
            )
        self.abilities = abilities_of(verifier)
        self.abilities.ready()
        self.verifier = verifier
        self.deadline = deadline if self.abilities.deadline is None else min(deadline, self.abilities.deadline)
        self.counts: Counter[str] = Counter()
        self._refuse = refuse
        self._answered = False
        self._names = self.abilities.components
        self._news: list[str] = []
        self._changes = self._split = False
        self._failure: str | None = None
        self._awaits = isinstance(verifier, UserReward) and verifier.concurrent
        if self._awaits:  # before the fork, so that no worker does
            import assay.verify.workers.asynchronous  # noqa: F401  # pyright: ignore[reportUnusedImport]
        self._lock = threading.Lock()
        self._dispatcher: Dispatcher | None = None
        if not self.abilities.trusted:
            held = None if memory is None else int(memory * 2**30)
            flight = FlightPlan(in_flight, self.deadline, attempts)
            self._dispatcher = Dispatcher(verifier, self.deadline, workers, self.counts, held, flight)
        self._ahead = VerdictCache(verifier)

    def score(self, items: Sequence[tuple[Task, Rollout]]) -> dict[str, Score]:
        """The verdict on each rollout, by rollout id.

        Raises:
            RewardError: with ``refuse``: no verdict on more than half of the rollouts, or the verifier hangs from the start;
                shows the first failure with its row.
            DataError: two rollouts with one id, or one that cannot be sent to another process.
        """
        repeated = [i for i, n in Counter(r.id for _, r in items).items() if n > 1]
        if repeated:
            raise DataError(f"results are keyed by rollout id, but {repeated[:3]} occur more than once")
        rest = [(t, r) for t, r in items if r.stop is not Stop.ERROR]
        with self._lock:
            verdicts = self._inline(rest) if self._dispatcher is None else self._with_cache(rest, self._dispatcher)
            floor = self._floor(verdicts)
            if floor != self.floor():
                self.counts["below_floor"] += self._count_below_floor(verdicts)
        if self._refuse:
            refuse_blindness(rest, verdicts)
        self._note_failure(rest, verdicts)
        by_id = {r.id: score for (_, r), score in zip(rest, verdicts, strict=True)}
        return {r.id: failed_rollout(r, floor) or by_id[r.id] for _, r in items}

    def news(self) -> list[str]:
        """What a run's record should say of the verifier, each thing once: since the last call."""
        said, self._news = self._news, []
        return said

    def take_failure(self) -> str | None:
        """The first error that the user's reward raised on an answer, twice, with its lines and the row; None without one.

        A rollout whose call failed is a fault and no score, whether this is asked for or not. Each failure is told once.
        """
        found, self._failure = self._failure, None
        return found

    def state_dict(self) -> State:
        """What a resumed run must remember: whether the verifier ever answered, its components, and whether it was said that it
        changes rows.
        """
        told = {"changes": True} if self._changes else {}
        return {"answered": self._answered, "names": list(self._names), **told}

    def load_state_dict(self, state: State) -> None:
        """Continue where `state_dict` was taken; the lowest values seen, which older states hold, no longer count."""
        self._answered = bool(state["answered"])
        self._changes = bool(state.get("changes", False))
        self._names = tuple(str(name) for name in state["names"])

    def floor(self) -> dict[str, float]:
        """The declared floor of each component."""
        return {name: self.abilities.floor_of(name) for name in self._names}

    def close(self) -> None:
        """End the workers and the process that forks them."""
        if self._dispatcher is not None:
            self._dispatcher.supervisor.close()

    def __enter__(self) -> ScoringPool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # ---- in this process

    def _inline(self, items: Sequence[_Pair]) -> list[Score]:
        if not self.abilities.by_text:
            verdicts = [judge(self.verifier, task, rollout) for task, rollout in items]
            self._learn(verdicts)
            return verdicts
        asked = [(id(task), rollout.stop, rollout.text) for task, rollout in items]
        found = {key: judge(self.verifier, *item) for key, item in dict(zip(asked, items, strict=True)).items()}
        self._learn(found.values())
        return [found[key] for key in asked]

    # ---- in workers

    def _with_cache(self, items: Sequence[_Pair], dispatcher: Dispatcher) -> list[Score]:
        known = self._ahead.look(items)
        self._learn(known.verdicts.values())
        asked = [items[i] for i in known.asked]
        judged = self._judge_outside(asked, dispatcher)
        self._ahead.remember(asked, judged)
        found = {**known.verdicts, **dict(zip(known.asked, judged, strict=True))}
        found |= {i: found[twin] for i, twin in known.twins.items()}
        return [found[i] for i in range(len(items))]

    def _judge_outside(self, items: Sequence[_Pair], dispatcher: Dispatcher) -> list[Score]:
        try:
            before = {name: self.counts[name] for name in _NEWS}
            firsts, seconds = self._judge_batch(items, dispatcher)
        except BaseException:  # whatever leaves here leaves workers in the middle of a batch
            dispatcher.supervisor.end_all()
            raise
        self.counts.update(["retried"] * len(seconds))
        self._news += [_NEWS[name] for name, n in before.items() if self.counts[name] > n and _NEWS[name] not in self._news]
        verdicts = [(seconds.get(i) or firsts[i]).score for i in range(len(items))]
        self.counts.update("unreached" for score in verdicts if score.info.get("verdict") == UNREACHED)
        self._learn(verdicts)
        self._notice_changes(items, verdicts)
        floor = self._floor(verdicts)
        for i, second in seconds.items():
            if firsts[i].stopped and second.stopped:
                info = second.score.info
                info = FrozenMap({**info, "error": f"{info['error']}, twice on the same answer"})
                verdicts[i] = Score(components=dict(floor), fault=Fault.POLICY, info=info)
        return verdicts

    def _judge_batch(
        self, items: Sequence[_Pair], dispatcher: Dispatcher
    ) -> tuple[dict[int, JudgingOutcome], dict[int, JudgingOutcome]]:
        """The first outcome of each item, and the second of those whose first was not good, by place in the batch."""
        firsts, stopped = self._together(items, dispatcher)
        if not firsts and not stopped:
            firsts = self._at_first(items, dispatcher)
        seconds: dict[int, JudgingOutcome] = {}
        stopped = stopped or any(outcome.stopped for outcome in firsts.values())
        queue = deque(JudgingJob((i,), alone=stopped) for i in range(len(items)) if i not in firsts)
        queue.extend(JudgingJob((i,), fresh=True) for i, outcome in firsts.items() if outcome.stopped)
        awaits = self._deal(items, queue, firsts, seconds, dispatcher)
        if awaits:  # found out now
            firsts |= self._fly(items, awaits, dispatcher)
            self._deal(items, deque(JudgingJob((i,)) for i in awaits if i not in firsts), firsts, seconds, dispatcher)
        again = [i for i in sorted(firsts) if not firsts[i].good and not firsts[i].stopped and not self._given_up(firsts[i])]
        return firsts, seconds | self._judge_again(items, again, dispatcher)

    def _deal(
        self,
        items: Sequence[_Pair],
        queue: deque[JudgingJob],
        firsts: dict[int, JudgingOutcome],
        seconds: dict[int, JudgingOutcome],
        dispatcher: Dispatcher,
    ) -> list[int]:
        """Judges by several workers, into ``firsts`` and ``seconds``; the places of those whose calls turned out to await."""
        awaits: list[int] = []
        for i, outcome in dispatcher.deal(items, queue, self._awaits):
            if outcome.end is JudgingEnd.AWAITS:
                awaits += [i, *(place for job in queue if not job.fresh for place in job.places)]
                for job in [job for job in queue if not job.fresh]:
                    queue.remove(job)
            elif i in firsts:
                seconds[i] = outcome
            else:
                firsts[i] = outcome
                if self._refuse and not self._answered:
                    refuse_hanging(items, firsts, self.deadline)
                if outcome.stopped:
                    queue.append(JudgingJob((i,), fresh=True))
        return sorted(awaits)

    def _at_first(self, items: Sequence[_Pair], dispatcher: Dispatcher) -> dict[int, JudgingOutcome]:
        """Outcomes of what one worker takes whole; none where the batch is to be spread over several."""
        if self._awaits:
            return self._fly(items, range(len(items)), dispatcher)
        if dispatcher.spreads(len(items)):
            return {}
        firsts = dict(enumerate(dispatcher.pipeline(items)))
        awaits = [i for i, outcome in firsts.items() if outcome.end is JudgingEnd.AWAITS]
        if not awaits:
            return firsts
        rest = [*awaits, *range(len(firsts), len(items))]
        return {i: outcome for i, outcome in firsts.items() if i not in awaits} | self._fly(items, rest, dispatcher)

    def _fly(
        self, items: Sequence[_Pair], places: Sequence[int], dispatcher: Dispatcher, fresh: bool = False
    ) -> dict[int, JudgingOutcome]:
        """Outcomes of asynchronous calls in flight, by place in the batch; from here on the verifier is known to await."""
        self._awaits = True
        return {places[at]: outcome for at, outcome in dispatcher.fly([items[i] for i in places], fresh=fresh).items()}

    def _given_up(self, outcome: JudgingOutcome) -> bool:
        """Whether all tries of an asynchronous call have been made, or a call for this answer alone would hide what is wrong."""
        verdict = outcome.score.info.get("verdict")
        return verdict == WHOLE_CALL or (self._awaits and verdict == UNREACHED)

    def _judge_again(self, items: Sequence[_Pair], places: Sequence[int], dispatcher: Dispatcher) -> dict[int, JudgingOutcome]:
        """Second outcomes of answers on which the function failed, on a worker that has judged nothing."""
        if not places:
            return {}
        if self._awaits:
            found = self._fly(items, places, dispatcher, fresh=True)
        else:
            found = dict(zip(places, dispatcher.pipeline([items[i] for i in places], fresh=True), strict=False))
        left = deque(JudgingJob((i,), fresh=True) for i in places if i not in found)  # it ends early where a worker is stopped
        return found | dict(dispatcher.deal(items, left, self._awaits))

    def _together(self, items: Sequence[_Pair], dispatcher: Dispatcher) -> tuple[dict[int, JudgingOutcome], bool]:
        """Outcomes of one call for all, where there is such a form and it succeeds; and whether it stopped its worker."""
        if not (isinstance(self.verifier, UserReward) and self.verifier.batched) or len(items) < 2:
            return {}, False
        answer = dispatcher.call(items)
        if isinstance(answer, list):
            return {i: JudgingOutcome(JudgingEnd.VERDICT, score) for i, score in enumerate(answer)}, False
        self.counts["split"] += 1  # single calls find the culprit
        if not self._split:
            self._split = True
            self._news.append(
                f"a call of the batched reward function failed, and its {len(items)} answers were judged one by one. The cause: "
                f"{answer.score.info.get('error')}"
            )
        return {}, answer.stopped

    # ---- what it has seen

    def _learn(self, verdicts: Iterable[Score]) -> None:
        """That it answers, and which components it gives: a function of several need not declare them."""
        given = [score.components for score in verdicts if score.valid]
        if not given:
            return
        every = tuple(dict.fromkeys(chain(self._names if self._answered else (), *given)))
        self._names = every if measured(every) else tuple(given[-1])
        self._answered = True

    def _floor(self, verdicts: Sequence[Score]) -> dict[str, float]:
        """The declared floors, or the lowest of these verdicts where one lies below."""
        floors = self.floor()
        for score in verdicts:
            if score.fault is Fault.NONE:
                for name, value in score.components.items():
                    if value < floors.get(name, value):
                        floors[name] = value
        return floors

    def _count_below_floor(self, verdicts: Sequence[Score]) -> int:
        """How many verdicts lie below the declared floor."""
        floors = self.floor()
        return sum(any(v < floors.get(n, v) for n, v in s.components.items()) for s in verdicts if s.fault is Fault.NONE)

    def _notice_changes(self, items: Sequence[_Pair], verdicts: Sequence[Score]) -> None:
        """Counts the rows that a function changed, and says so the first time."""
        changed = [
            (task, score.info["changed"]) for (task, _), score in zip(items, verdicts, strict=True) if "changed" in score.info
        ]
        self.counts.update(["changed"] * len(changed))
        if changed and not self._changes:
            self._changes = True
            task, names = changed[0]
            self._news.append(
                f"the reward function changes the row that it is given (task {task.id!r}: {names}); each call gets its own copy, "
                "so no other answer sees it; copy what you change"
            )

    def _note_failure(self, items: Sequence[_Pair], verdicts: Sequence[Score]) -> None:
        """Keeps the first error of the user's own code."""
        if self._failure is not None or not isinstance(self.verifier, UserReward):
            return
        for item, score in zip(items, verdicts, strict=True):
            if score.fault is Fault.VERIFIER and "traceback" in score.info:
                self._failure = f"the reward failed on an answer to task {item[0].id!r}:\n{failure_text(item, score)}"
                return
