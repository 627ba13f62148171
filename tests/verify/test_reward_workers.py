"""As many processes as a pool has workers judge plain Python rewards at once."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections import Counter
from typing import Any

import pytest
from foreign_code import LONG, items, pids

from assay.verify import RewardFunction, ScoringPool
from assay.verify.workers.dispatch import Dispatcher, JudgingJob

Row = dict[str, Any]


@pytest.mark.parametrize("workers", [2, 5])
def test_so_many_processes_are_at_work_at_once(workers: int) -> None:
    barrier = multiprocessing.get_context("fork").Barrier(workers)

    def judge(prompt: str, completion: str, row: Row) -> dict[str, float]:
        barrier.wait(LONG)
        time.sleep(0.03)  # a batch of quicker verdicts would be left to one worker, which no other meets at the barrier
        return {"reward": 1.0, "pid": float(os.getpid())}

    with ScoringPool(RewardFunction(judge), 2 * LONG, workers=workers) as pool:
        for _ in range(2):
            verdicts = pool.score(items(*map(str, range(2 * workers))))
            found = [s.components["pid"] for s in verdicts.values()]
            assert len(set(found)) == workers
        assert len(pids(pool)) == 1 + workers
        assert pool.counts == Counter()


def test_one_worker_judges_alone() -> None:
    def judge(prompt: str, completion: str, row: Row) -> dict[str, float]:
        time.sleep(0.01)
        return {"reward": 1.0, "pid": float(os.getpid())}

    with ScoringPool(RewardFunction(judge), LONG, workers=1) as pool:
        assert len({s.components["pid"] for s in pool.score(items(*"abcdef")).values()}) == 1


def test_quick_verdicts_stay_with_one_worker_and_slow_ones_are_spread() -> None:
    with ScoringPool(RewardFunction(lambda p, c, row: 1.0), LONG, workers=4) as pool:
        dispatcher = pool._dispatcher  # pyright: ignore[reportPrivateUsage]
        assert dispatcher is not None and dispatcher.spreads(2) and not dispatcher.spreads(1)  # nothing is known yet
        dispatcher._pace = 1e-5  # pyright: ignore[reportPrivateUsage]
        assert not dispatcher.spreads(256) and dispatcher.spreads(100_000)
        assert [s.primary for s in pool.score(items(*"abc")).values()] == [1.0] * 3


def test_jobs_of_quick_verdicts_are_put_together() -> None:
    dispatcher = Dispatcher(RewardFunction(lambda p, c, row: 1.0), LONG, 4, Counter())
    try:
        queue = [JudgingJob((i,)) for i in range(40)]
        sizes: dict[float, int] = {}
        for pace in (1.0, 0.005, 1e-6):
            dispatcher._pace = pace  # pyright: ignore[reportPrivateUsage]
            sizes[pace] = len(dispatcher._next(__import__("collections").deque(queue)).places)  # pyright: ignore[reportPrivateUsage]
        assert sizes == {1.0: 1, 0.005: 4, 1e-6: 10}
    finally:
        dispatcher.supervisor.close()
