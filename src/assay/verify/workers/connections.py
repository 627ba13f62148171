"""Rewards that ask a service: how its calls are made, and which errors say nothing about the answer to be judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assay.core.canon import FrozenMap
from assay.core.errors import EngineError
from assay.core.score import Fault, Score
from assay.verify.verdict import broken_score

__all__ = ["BLOCKED", "UNREACHED", "DeadlineError", "FlightPlan", "is_connection_error", "unreached_score"]

UNREACHED = "unreached"
"""``info["verdict"]`` where a service gave no answer."""

BLOCKED = "with its event loop blocked"
"""Of a call that ran out its deadline while others of the same function computed, or made what they need."""

_NAMES = frozenset(
    {
        "http.HTTPException",
        "httpx.TransportError",
        "httpcore.NetworkError",
        "httpcore.TimeoutException",
        "aiohttp.ClientConnectionError",
        "aiohttp.ClientPayloadError",
        "requests.ConnectionError",
        "requests.Timeout",
        "requests.ChunkedEncodingError",
        "openai.APIConnectionError",
        "anthropic.APIConnectionError",
        "grpc.RpcError",
        "socket.gaierror",
        "ssl.SSLError",
        "urllib3.HTTPError",
        "websockets.ConnectionClosed",
    }
)
"""Errors of clients that are no `ConnectionError` of Python, by package and class: the packages need not be installed."""

_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
"""Statuses of HTTP by which a server says that the same request may succeed later."""


@dataclass(frozen=True, slots=True)
class FlightPlan:
    """How the calls of an asynchronous reward are made.

    Attributes:
        in_flight: calls at the same time.
        deadline: seconds for one try of one call.
        attempts: tries of a call whose connection fails. One that runs out its deadline is tried twice at most.
        pause: seconds before the second try; twice as many before each further one.
    """

    in_flight: int = 64
    deadline: float = 5.0
    attempts: int = 4
    pause: float = 0.25


class DeadlineError(TimeoutError):
    """A call that ran out its deadline."""


def unreached_score(first: BaseException, tries: int = 1) -> Score:
    """The ``infra`` fault of a call whose service could not be reached; it says the first cause."""
    cause = str(first) if isinstance(first, DeadlineError) else f"{type(first).__name__}: {first}"
    words = f"no verdict in {tries} tries, the first of which ended so: {cause}" if tries > 1 else cause
    info = {"error": words, "verdict": UNREACHED, "traceback": broken_score(first).info["traceback"]}
    return Score(components={}, fault=Fault.INFRA, info=FrozenMap(info))


def is_connection_error(error: BaseException) -> bool:
    """Whether an error, or one that it was raised from, is of the connection to a service, or a busy server's.

    >>> is_connection_error(ConnectionResetError()), is_connection_error(ValueError("a bad answer"))
    (True, False)
    """
    seen: BaseException | None = error
    for _ in range(8):  # a cause may name itself
        if seen is None or _of_connection(seen):
            break
        seen = seen.__cause__
    else:
        return False
    return seen is not None


def _of_connection(error: BaseException) -> bool:
    known = ConnectionError | TimeoutError | EngineError
    if isinstance(error, known) or _status(error) in _BUSY:
        return True
    return any(f"{cls.__module__.partition('.')[0]}.{cls.__name__}" in _NAMES for cls in type(error).__mro__)


def _status(error: Any) -> object:
    """The status of HTTP that an error carries; None without one."""
    response = getattr(error, "response", None)
    found = [getattr(of, name, None) for of in (error, response) for name in ("status_code", "status", "code")]
    return next((status for status in found if isinstance(status, int)), None)
