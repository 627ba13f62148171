"""The lines of ``assay verify run``: read, judged side by side, and given out in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from queue import Queue, SimpleQueue
from threading import Thread
from time import perf_counter
from typing import Any

from assay.core.canon import FrozenMap
from assay.core.errors import DataError
from assay.core.protocols import TaskSource, Verifier
from assay.core.score import Fault, Score
from assay.verify import ScoringPool
from assay.verify.abilities import abilities_of
from assay.verify.cases import case_of, parse_row, verdict_row
from assay.verify.workers.cpu import cores

__all__ = ["Judges", "judge_lines"]

_INVENTED = "task 'case': "
"""How errors call a task that a line gave no name."""

_AHEAD = 64
"""Lines for each worker that may be judged before an earlier one is: behind one that takes its whole limit, others go on."""

Row = dict[str, Any]


class Judges:
    """Pools over one verifier, each of which judges one line at a time; any thread may ask.

    Args:
        verifier: what judges; it is prepared first, so that what this takes is no line's time.
        deadline: seconds for one verdict of a verifier that runs in a process of its own.
        workers: how many lines are judged at once; None for every core where the answers are programs, and 1 elsewhere.
        family: whose tasks lines name by their ids.

    Attributes:
        many: how many lines are judged at once.
    """

    def __init__(self, verifier: Verifier, deadline: float, workers: int | None, family: TaskSource | None) -> None:
        with suppress(Exception):  # a worker will meet the same failure, and say so
            abilities_of(verifier).prepare()
        beside = abilities_of(verifier).for_workers(workers or cores())
        self.many = workers or (1 if beside is None else cores())
        self._family = family
        self._stack = ExitStack()
        self._pools: SimpleQueue[ScoringPool] = SimpleQueue()
        for _ in range(self.many):  # before there is any thread: a pool forks
            self._pools.put(self._stack.enter_context(ScoringPool(beside or verifier, deadline, workers=1, refuse=False)))

    def row(self, place: str, line: str | bytes) -> Row:
        """The verdict on a line; one that cannot be read or judged is a row too.

        Args:
            place: where the line stands, for errors.
            line: JSON.
        """
        pool = self._pools.get()
        began = perf_counter()
        try:
            task, rollout = case_of(parse_row(line, place), place, family=self._family)
            score = pool.score([(task, rollout)])[rollout.id]
        except DataError as error:
            score = _unread(str(error))
        finally:
            seconds = perf_counter() - began
            self._pools.put(pool)
        return verdict_row(_add_place(score, place), seconds)

    def close(self) -> None:
        """Ends the pools, whatever they are doing."""
        self._stack.close()

    def __enter__(self) -> Judges:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def judge_lines(judges: Judges, lines: Iterable[str | bytes], name: str, give: Callable[[Row], None]) -> None:
    """Judges each line that is not blank, and gives out the rows in the order of the lines, each as soon as it may be.

    Args:
        judges: who judges.
        lines: they may come slowly: a row does not wait for the next line.
        name: of what they are read from, for errors.
        give: called for each row, not always from this thread.
    """
    placed = ((f"{name}, line {number}", line) for number, line in enumerate(lines, 1) if line.strip())
    if judges.many == 1:
        for place, line in placed:
            give(judges.row(place, line))
        return
    threads, giver = ThreadPoolExecutor(judges.many, thread_name_prefix="assay-judge"), _Giver(give, _AHEAD * judges.many)
    try:
        for place, line in placed:
            giver.hand(threads.submit(judges.row, place, line))
        giver.end()
    except BaseException:
        judges.close()  # nobody waits for a worker any longer
        raise
    finally:
        threads.shutdown(cancel_futures=True)
        giver.stop()


class _Giver:
    """A thread that gives out rows in the order in which it is handed them, and no more once giving one has failed."""

    def __init__(self, give: Callable[[Row], None], ahead: int) -> None:
        self._give = give
        self._handed: Queue[Future[Row] | None] = Queue(ahead)
        self._failed: BaseException | None = None
        self._thread = Thread(target=self._work, name="assay-rows", daemon=True)
        self._thread.start()

    def hand(self, future: Future[Row]) -> None:
        """Waits where it is far behind; raises what has failed."""
        if self._failed is not None:
            raise self._failed
        self._handed.put(future)

    def end(self) -> None:
        """Waits until all are given out; raises what has failed."""
        self.stop()
        if self._failed is not None:
            raise self._failed

    def stop(self) -> None:
        """Waits for the thread; harmless when repeated."""
        if self._thread.is_alive():
            self._handed.put(None)
            self._thread.join()

    def _work(self) -> None:
        while (future := self._handed.get()) is not None:
            try:
                if self._failed is None:
                    self._give(future.result())
            except BaseException as error:  # also what a cancelled one raises
                self._failed = error


def _add_place(score: Score, place: str) -> Score:
    """The verdict, with the place in its error where that is about the row: `DataError` is about a gold, never an answer."""
    kind, _, told = str(score.info.get("error", "")).partition(": ")
    return _unread(f"{place}: {told.removeprefix(_INVENTED)}") if kind == "DataError" else score


def _unread(error: str) -> Score:
    return Score(components={}, fault=Fault.VERIFIER, info=FrozenMap({"error": error}))
