"""What the services over HTTP share: who may ask, how much, where they listen, and how they stop."""

from __future__ import annotations

import asyncio
import hmac
import json
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from assay.core.canon import refuse_repeated_keys
from assay.core.errors import ConfigError, DataError

__all__ = ["check_address", "require_token", "listen", "refusal", "read_request", "table"]

HEAD_SECONDS = 15.0
"""From a connection, or the answer before, until the head of a request has come."""

BODY_SECONDS = 120.0
"""From the head of a request until all of its body has come."""

CONNECTIONS = 512
"""That are open at once; of more, the one that has waited longest for its head is closed."""

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def refusal(status: int, error: str, headers: dict[str, str] | None = None) -> Response:
    """What is refused, and why."""
    return JSONResponse({"error": error}, status_code=status, headers=headers)


def require_token(
    answer: Callable[[Request], Any], token: str, refuse: Callable[[int, str, dict[str, str] | None], Response] = refusal
) -> Callable[[Request], Any]:
    """An answer for those alone who send the token; for all where it is empty. ``refuse`` writes what others get."""

    async def ask(request: Request) -> Response:
        given = request.headers.get("authorization", "").encode()
        if token and not hmac.compare_digest(given, f"Bearer {token}".encode()):
            return refuse(401, "send the token: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})
        return await answer(request)

    return ask


def listen(
    application: Starlette,
    what: str,
    ways: str,
    host: str,
    port: int,
    token: str,
    notify: Callable[[str], None] = print,
    hint: Callable[[str], str] | None = None,
) -> None:
    """Serves until Ctrl-C or SIGTERM, which let requests at work end. For the main thread.

    Args:
        application: answers.
        what: is served, in a word.
        ways: its addresses, for people.
        host: an address of this machine; one beyond it needs a token.
        port: 0 for any that is free.
        token: what the application asks for; empty for none.
        notify: called with a line that says where the service listens.
        hint: given that address, what else is said.

    Raises:
        ConfigError: no port, an address beyond this machine without a token, or one that cannot be had.
    """
    import uvicorn

    check_address(host, port, token)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {host}, port {port}: {error.strerror}; choose another port, or 0 for any"
            ) from None
        where = f"[{host}]" if ":" in host else host
        from assay.sandbox.service.connections import deadlines

        http = deadlines(HEAD_SECONDS, CONNECTIONS)
        server = uvicorn.Server(uvicorn.Config(application, log_level="warning", lifespan="off", http=http, backlog=CONNECTIONS))
        listening.listen(CONNECTIONS)  # before it is said: who reads that may come at once
        with _sigterm_as_interrupt(), suppress(KeyboardInterrupt):
            address = f"http://{where}:{listening.getsockname()[1]}"
            notify(f"serving {what} on {address}: {ways}; Ctrl-C stops" + (f"\n{hint(address)}" if hint else ""))
            server.run([listening])


def check_address(host: str, port: int, token: str) -> None:
    """Refuses an address before anything slow is loaded.

    Raises:
        ConfigError: no port, or an address beyond this machine without a token.
    """
    if not 0 <= port <= 65535:
        raise ConfigError(f"port {port}: use one from 1 to 65535, or 0 for any that is free")
    if host not in _LOOPBACK and not token:
        raise ConfigError(f"host {host!r} can be reached from other machines: give a token that callers must send, or 127.0.0.1")


@contextmanager
def _sigterm_as_interrupt() -> Generator[None]:
    """Inside, SIGTERM is what Ctrl-C is. The server stops at either by itself, and raises it again when it has stopped."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


async def read_request(
    request: Request, megabytes: float, refuse: Callable[[int, str, dict[str, str] | None], Response] = refusal
) -> bytes | Response:
    """What was sent, or why it is refused: another type than JSON, which a page in a browser could send to a local service
    unasked, or more than so many units of 2^20 bytes; what is too much is never held. ``refuse`` writes the refusal.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        return refuse(415, "send application/json", None)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > megabytes * 2**20:
                    return refuse(413, f"more than {megabytes:g} MiB in one request; send less, or in parts", None)
                parts.append(part)
    except TimeoutError:
        return refuse(408, f"the request was not whole after {BODY_SECONDS:g} s", {"Connection": "close"})
    except ClientDisconnect:
        return Response(status_code=499)
    return b"".join(parts)


def table(data: bytes) -> Any:
    """A body as JSON.

    Raises:
        DataError: it is none, or says one key twice.
    """
    try:
        return json.loads(data, object_pairs_hook=refuse_repeated_keys)
    except DataError as error:
        raise DataError(f"the request: {error}") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"the request is not JSON: {error}") from None
