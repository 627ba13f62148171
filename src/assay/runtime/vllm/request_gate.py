"""Requests that have not ended: held back while weights change, counted while they run."""

from __future__ import annotations

import asyncio

import httpx

from assay.core.errors import DataError

__all__ = ["PendingRequest", "RequestGate"]


class PendingRequest:
    """A request that has not ended: it waits until ``go`` is set (False: aborted), then it is on the server until ``done``."""

    def __init__(self, wire: str, loop: asyncio.AbstractEventLoop) -> None:
        self.wire = wire
        self.go: asyncio.Future[bool] = loop.create_future()
        self.done: asyncio.Future[None] = loop.create_future()

    @property
    def running(self) -> bool:
        """On the server, or on the way to it."""
        return self.go.done() and self.go.result() and not self.done.done()


class RequestGate:
    """The requests of one event loop, and its HTTP client.

    Args:
        loop: that runs.
        client: of that loop.

    Attributes:
        swapping: a weight update is under way.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, client: httpx.AsyncClient) -> None:
        self.loop, self.client = loop, client
        self.jobs: dict[str, PendingRequest] = {}
        self.swapping = self._shut = False

    def enter(self, name: str, wire: str) -> PendingRequest:
        """A new request; await its ``go``.

        Raises:
            DataError: one of that name is running.
        """
        if name in self.jobs:
            raise DataError(f"request {name!r} is already running; give every request its own id")
        job = self.jobs[name] = PendingRequest(wire, self.loop)
        if not self._shut:
            job.go.set_result(True)
        return job

    def leave(self, name: str) -> None:
        """The request has ended, in whatever way."""
        job = self.jobs.pop(name)
        job.done.set_result(None)

    def shut(self) -> list[PendingRequest]:
        """Holds back requests that come from now on; the ones that run."""
        self._shut = True
        return [job for job in self.jobs.values() if job.running]

    def open(self) -> None:
        """Lets all that wait go on, and whatever comes."""
        self._shut = False
        for job in self.jobs.values():
            if not job.go.done():
                job.go.set_result(True)
