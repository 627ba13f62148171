"""Behind the counter: pools that judge side by side, and how much may wait for them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

from assay.core.errors import AssayError, ConfigError, DataError
from assay.core.protocols import TaskSource, Verifier
from assay.verify.cases import case_of, verdict_row
from assay.verify.workers.pool import ScoringPool

__all__ = ["Busy", "ScoringRequestHandler", "ServiceLimits", "TooMany"]


class Busy(AssayError, RuntimeError):
    """So many requests wait already that one more is turned away; it should be sent again later."""


class TooMany(DataError):
    """More answers in one request than the service takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLimits:
    """What a service takes on.

    Attributes:
        parallel: requests that are judged at once, each in a pool of its own.
        deadline: seconds for one verdict of a verifier that is not trusted.
        items: answers in one request.
        megabytes: size of one request, in units of 2^20 bytes.
        waiting: requests that wait for a pool; one more is turned away.

    Raises:
        ConfigError: a limit that is not positive.
    """

    parallel: int = 2
    deadline: float = 5.0
    items: int = 4096
    megabytes: float = 64.0
    waiting: int = 256

    def __post_init__(self) -> None:
        for name in ("parallel", "deadline", "items", "megabytes"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"ServiceLimits.{name}={getattr(self, name)}; use a number above 0")
        if self.waiting < 0:
            raise ConfigError(f"ServiceLimits.waiting={self.waiting}; use 0 to turn away what cannot be judged at once, or more")


class ScoringRequestHandler:
    """Judges requests, each in a pool that nobody else uses meanwhile; a context manager, which ends the pools.

    Make it before threads and event loop start: a pool forks.

    Args:
        verifier: the scorer.
        name: what it is called.
        limits: see `ServiceLimits`.
        family: whose tasks rows may name by id.
    """

    def __init__(
        self, verifier: Verifier, name: str = "verifier", limits: ServiceLimits | None = None, family: TaskSource | None = None
    ) -> None:
        self.name, self.limits, self._family = name, limits or ServiceLimits(), family
        self._pools = [ScoringPool(verifier, self.limits.deadline, refuse=False) for _ in range(self.limits.parallel)]
        self._free = list(self._pools)
        self._turn = asyncio.Condition()
        self._waiting = 0
        self._counts: Counter[str] = Counter()
        self._began = monotonic()

    async def score(self, rows: Sequence[object]) -> list[dict[str, Any]]:
        """A verdict per row, in order: `assay.verify.cases.verdict_row` with the row's ``id``, where it has one.

        All rows are looked at before any is judged.

        Raises:
            TooMany: more rows than allowed.
        DataError: a row cannot be read; names its number.
            Busy: too many requests wait.
        """
        if len(rows) > self.limits.items:
            raise TooMany(f"{len(rows)} items in one request, at most {self.limits.items}; send them in parts")
        items = [case_of(row, f"item {i}", id=f"item-{i}", family=self._family) for i, row in enumerate(rows)]
        pool = await self._take()
        try:
            scores = await asyncio.to_thread(pool.score, items)
        finally:
            await self._give(pool)
        judged = [scores[rollout.id] for _, rollout in items]
        self._counts.update(["requests"])
        self._counts.update({"items": len(judged)})
        self._counts.update(f"fault/{s.fault.value}" for s in judged if s.fault.value != "none")
        return [_name_row(row, verdict_row(score)) for row, score in zip(rows, judged, strict=True)]

    def health(self) -> dict[str, Any]:
        """What it is and how it does, as JSON."""
        pools: Counter[str] = Counter()
        for pool in self._pools:
            pools.update(pool.counts)
        return {
            "status": "ok",
            "verifier": self.name,
            "seconds": round(monotonic() - self._began, 3),
            "free": len(self._free),
            "waiting": self._waiting,
            "served": dict(sorted(self._counts.items())),
            "pools": dict(sorted(pools.items())),
        }

    def close(self) -> None:
        """Ends the pools."""
        for pool in self._pools:
            pool.close()

    def __enter__(self) -> ScoringRequestHandler:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    async def _take(self) -> ScoringPool:
        async with self._turn:
            if not self._free and self._waiting >= self.limits.waiting:
                self._counts.update(["turned_away"])
                raise Busy(f"{self._waiting} requests wait already; try again later")
            self._waiting += 1
            try:
                await self._turn.wait_for(lambda: bool(self._free))
            finally:
                self._waiting -= 1
            return self._free.pop()

    async def _give(self, pool: ScoringPool) -> None:
        async with self._turn:
            self._free.append(pool)
            self._turn.notify()


def _name_row(row: object, verdict: dict[str, Any]) -> dict[str, Any]:
    return {"id": row["id"], **verdict} if isinstance(row, Mapping) and "id" in row else verdict
