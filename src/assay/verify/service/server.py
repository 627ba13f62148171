"""The counter: two addresses over HTTP, for those who may ask."""

from __future__ import annotations

import hmac
import json
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any, cast

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from assay.core.errors import ConfigError, DataError
from assay.verify.service.desk import Busy, Desk, TooMany

__all__ = ["application", "serve"]

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def application(desk: Desk, token: str = "") -> Starlette:
    """The service as an ASGI application.

    ``POST /score`` takes ``{"items": [{"gold": ..., "answer": "text", "id": ..., "prompt": ...}, ...]}`` and gives
    ``{"results": [...]}`` in order; ``GET /health`` says how the service does. What is refused has a status and
    ``{"error": "..."}``: 400 for what cannot be read, 401 without the token, 413 for too much, 415 for another type than
    ``application/json``, 429 when too many wait.

    Args:
        desk: judges.
        token: asked for as ``Authorization: Bearer TOKEN`` by both addresses; empty for none.
    """

    async def score(request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return _refused(415, "send application/json")  # a page in a browser cannot send this type to a local service unasked
        try:
            body = await _body(request, int(desk.limits.megabytes * 2**20))
        except ClientDisconnect:
            return Response(status_code=499)
        if body is None:
            return _refused(413, f"more than {desk.limits.megabytes:g} MiB in one request; send it in parts")
        try:
            return JSONResponse({"results": await desk.score(_items(body))})
        except DataError as error:
            return _refused(413 if isinstance(error, TooMany) else 400, str(error))
        except Busy as error:
            return _refused(429, str(error), {"Retry-After": "1"})

    async def health(request: Request) -> Response:
        return JSONResponse(desk.health())

    def guarded(answer: Callable[[Request], Any]) -> Callable[[Request], Any]:
        async def ask(request: Request) -> Response:
            given = request.headers.get("authorization", "").encode()
            if token and not hmac.compare_digest(given, f"Bearer {token}".encode()):
                return _refused(401, "send the token: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})
            return await answer(request)

        return ask

    return Starlette(
        routes=[Route("/score", guarded(score), methods=["POST"]), Route("/health", guarded(health), methods=["GET"])]
    )


def serve(desk: Desk, host: str = "127.0.0.1", port: int = 8900, token: str = "", said: Callable[[str], None] = print) -> None:
    """Serves until Ctrl-C or SIGTERM, which let requests at work end. For the main thread; elsewhere, give `application` to a
    server of your own.

    Args:
        desk: judges.
        host: an address of this machine; one beyond it needs a token.
        port: 0 for any that is free.
        token: asked of every request; empty for none.
        said: told where the service listens.

    Raises:
        ConfigError: an address beyond this machine without a token, or one that cannot be had.
    """
    import uvicorn

    if host not in _LOOPBACK and not token:
        raise ConfigError(f"host {host!r} can be reached from other machines: give a token that callers must send, or 127.0.0.1")
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
        said(f"serving {desk.name} on http://{where}:{listening.getsockname()[1]}: POST /score, GET /health; Ctrl-C stops")
        server = uvicorn.Server(uvicorn.Config(application(desk, token), log_level="warning", lifespan="off"))
        with _ended(), suppress(KeyboardInterrupt):
            server.run([listening])


@contextmanager
def _ended() -> Generator[None]:
    """Inside, SIGTERM is what Ctrl-C is. The server stops at either by itself, and raises it again when it has stopped."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


async def _body(request: Request, most: int) -> bytes | None:
    """The body, or None when it is longer than ``most`` bytes; what is too much is never held."""
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            return None
        parts.append(part)
    return b"".join(parts)


def _items(body: bytes) -> list[object]:
    try:
        given: Any = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise DataError(f"the request is not JSON: {error}") from None
    items: Any = cast("dict[str, Any]", given).get("items") if isinstance(given, dict) else None
    if not isinstance(items, list):
        raise DataError('the request has no list "items"; send {"items": [{"gold": ..., "answer": "text"}, ...]}')
    return cast("list[object]", items)


def _refused(status: int, error: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": error}, status_code=status, headers=headers)
