"""Connections that send nothing are closed: a deadline for the head of each request, and a bound on how many are open."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["deadlines"]

_LATE = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


def deadlines(seconds: float, most: int) -> type[asyncio.Protocol]:
    """The protocol of uvicorn with a deadline for the head of each request.

    Args:
        seconds: from the connection, or the end of the answer before, until a request's head is there.
        most: connections that are open at once; of more the one that has waited longest for its head is closed.

    Returns:
        A class for ``uvicorn.Config(http=...)``; the connections of one server share it.
    """
    waiting: dict[WithDeadline, asyncio.TimerHandle] = {}

    class WithDeadline(H11Protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait()
            if len(self.connections) > most and waiting:
                next(iter(waiting))._late()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            cycle: Any = self.cycle  # None before the first request, though its declaration does not say so
            if cycle is not None and not cycle.response_complete:
                self._stop()
            elif self not in waiting and not self.transport.is_closing():
                self._wait()

        def on_response_complete(self) -> None:
            self._stop()
            super().on_response_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def _wait(self) -> None:
            waiting[self] = self.loop.call_later(seconds, self._late)

        def _stop(self) -> None:
            timer = waiting.pop(self, None)
            if timer is not None:
                timer.cancel()

        def _late(self) -> None:
            self._stop()
            if not self.transport.is_closing():
                self.transport.write(_LATE)
                self.transport.close()

    return WithDeadline
