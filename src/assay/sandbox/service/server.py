"""``POST /run_code`` and ``GET /health``: SandboxFusion's words in front of a sandbox of ours."""

from __future__ import annotations

from collections.abc import Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from assay.core.errors import ConfigError, DataError
from assay.sandbox.service.http import listen, read_request, refusal, require_token, table
from assay.sandbox.service.request_handler import Full, RunRequestHandler

__all__ = ["application", "serve"]


def application(handler: RunRequestHandler, token: str = "") -> Starlette:
    """The service as an ASGI application.

    ``POST /run_code`` takes ``{"code", "language", "stdin", "run_timeout", "memory_limit_MB", "files"}`` and gives ``{"status",
    "message", "run_result": {"status", "execution_time", "return_code", "stdout", "stderr"}, ...}``; what is refused has a status
    and ``{"error": "..."}``: 400 for what cannot be read or given, 401 without the token, 413 for too much, 415 for another type
    than ``application/json``, 429 when too many wait.

    Args:
        handler: runs programs.
        token: asked for as ``Authorization: Bearer TOKEN`` by both addresses; empty for none.
    """

    async def run_code(request: Request) -> Response:
        data = await read_request(request, handler.limits.megabytes)
        if isinstance(data, Response):
            return data
        try:
            return JSONResponse(await handler.run(table(data)))
        except (ConfigError, DataError) as error:
            return refusal(400, str(error))
        except Full as error:
            return refusal(429, str(error), {"Retry-After": "1"})

    async def health(request: Request) -> Response:
        return JSONResponse(handler.health())

    ways = (("/run_code", run_code, "POST"), ("/health", health, "GET"))
    return Starlette(routes=[Route(path, require_token(answer, token), methods=[method]) for path, answer, method in ways])


def serve(
    handler: RunRequestHandler, host: str = "127.0.0.1", port: int = 8901, token: str = "", notify: Callable[[str], None] = print
) -> None:
    """Serves until Ctrl-C or SIGTERM, which let programs at work end. For the main thread; elsewhere, give `application` to a
    server of your own.

    Args:
        handler: runs programs.
        host: an address of this machine; one beyond it needs a token.
        port: 0 for any that is free.
        token: asked of every request; empty for none.
        notify: called with a line that says where the service listens.

    Raises:
        ConfigError: an address beyond this machine without a token, or one that cannot be had.
    """
    listen(application(handler, token), "the sandbox", "POST /run_code, GET /health", host, port, token, notify)
