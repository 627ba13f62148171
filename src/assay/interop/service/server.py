"""The counter: two addresses over HTTP, for those who may ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from assay.core.errors import DataError
from assay.core.util.renamed import refuse_old_keywords
from assay.interop.service.request_handler import Busy, ScoringRequestHandler, TooMany
from assay.sandbox.service.http import listen, read_request, refusal, require_token, table

__all__ = ["application", "serve"]


def application(handler: ScoringRequestHandler, token: str = "") -> Starlette:
    """The service as an ASGI application.

    ``POST /score`` takes ``{"items": [{"gold": ..., "answer": "text", "id": ..., "prompt": ...}, ...]}`` and gives
    ``{"results": [...]}`` in order; ``GET /health`` says how the service does. What is refused has a status and
    ``{"error": "..."}``: 400 for what cannot be read, 401 without the token, 413 for too much, 415 for another type than
    ``application/json``, 429 when too many wait.

    Args:
        handler: judges.
        token: asked for as ``Authorization: Bearer TOKEN`` by both addresses; empty for none.
    """

    async def score(request: Request) -> Response:
        data = await read_request(request, handler.limits.megabytes)
        if isinstance(data, Response):
            return data
        try:
            return JSONResponse({"results": await handler.score(_items(data))})
        except DataError as error:
            return refusal(413 if isinstance(error, TooMany) else 400, str(error))
        except Busy as error:
            return refusal(429, str(error), {"Retry-After": "1"})

    async def health(request: Request) -> Response:
        return JSONResponse(handler.health())

    return Starlette(
        routes=[
            Route("/score", require_token(score, token), methods=["POST"]),
            Route("/health", require_token(health, token), methods=["GET"]),
        ]
    )


@refuse_old_keywords({"said": "notify"})
def serve(
    handler: ScoringRequestHandler,
    host: str = "127.0.0.1",
    port: int = 8900,
    token: str = "",
    notify: Callable[[str], None] = print,
) -> None:
    """Serves until Ctrl-C or SIGTERM, which let requests at work end. For the main thread; elsewhere, give `application` to a
    server of your own.

    Args:
        handler: judges.
        host: an address of this machine; one beyond it needs a token.
        port: 0 for any that is free.
        token: asked of every request; empty for none.
        notify: called with a line that says where the service listens.

    Raises:
        ConfigError: an address beyond this machine without a token, or one that cannot be had.
    """
    listen(application(handler, token), handler.name, "POST /score, GET /health", host, port, token, notify)


def _items(data: bytes) -> list[object]:
    given: Any = table(data)
    items: Any = cast("dict[str, Any]", given).get("items") if isinstance(given, dict) else None
    if not isinstance(items, list):
        raise DataError('the request has no list "items"; send {"items": [{"gold": ..., "answer": "text"}, ...]}')
    return cast("list[object]", items)
