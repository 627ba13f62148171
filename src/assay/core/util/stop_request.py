"""Whether the run at work in this process was asked to stop: what waits before it tries again then ends at once."""

from __future__ import annotations

import asyncio
import threading
from time import monotonic

from assay.core.errors import RewardError

__all__ = ["LOOK", "StopRequestError", "clear_stop_request", "pause", "request_stop", "stop_requested"]

LOOK = 0.1
"""Seconds between two looks."""

_asked = threading.Event()


class StopRequestError(RewardError):
    """A run was asked to stop while a verdict was waited for. The step is given up, and done again when the run goes on."""


def request_stop() -> None:
    """Ends every `pause`; may be called in a signal's handler."""
    _asked.set()


def clear_stop_request() -> None:
    """The run has ended, and nobody has asked the next one to stop."""
    _asked.clear()


def stop_requested() -> bool:
    """Whether somebody has."""
    return _asked.is_set()


async def pause(seconds: float) -> None:
    """Sleeps, until the run at work is asked to stop.

    Raises:
        StopRequestError: it is.

    >>> request_stop()
    >>> asyncio.run(pause(60.0))
    Traceback (most recent call last):
    ...
    assay.core.util.stop_request.StopRequestError: the run was asked to stop before a call that failed was tried again
    >>> clear_stop_request()
    """
    end = monotonic() + seconds
    while (left := end - monotonic()) > 0.0 or _asked.is_set():
        if _asked.is_set():
            raise StopRequestError("the run was asked to stop before a call that failed was tried again")
        await asyncio.sleep(min(left, LOOK))
