"""``/v1/chat/completions``, ``/v1/completions`` and ``/v1/models``: OpenAI's protocol in front of a model of ours."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, cast

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from assay.core.errors import AssayError, DataError
from assay.core.rollout import Completion, Ids
from assay.core.util.renamed import refuse_old_keywords
from assay.publish.service.completion_request import (
    KNOWN,
    CompletionRequest,
    RequestError,
    ServedDefaults,
    chat_request,
    text_request,
)
from assay.publish.service.completion_response import Answered, CompletionResponse, error_body
from assay.publish.service.text_generator import TextGenerator
from assay.publish.service.text_stream import TextStream, before_call
from assay.sandbox.service.http import listen, read_request, require_token, table

__all__ = ["application", "serve"]

MEGABYTES = 16.0
"""Size that one request may have, in units of 2^20 bytes."""

WAITING = 1024
"""Answers that are sampled or wait; a request for more is turned away until some have ended."""


class ModelService:
    """Answers requests for one model.

    Args:
        model: samples.
        name: what it is called.
        defaults: how to draw where a request does not say.
        notify: called with a line for each ignored field, once.
    """

    def __init__(self, model: TextGenerator, name: str, defaults: ServedDefaults, notify: Callable[[str], None]) -> None:
        self.model, self.name, self._defaults, self._notify = model, name, defaults, notify
        self._ignored: set[str] = set()
        self._open = 0

    async def answer(self, request: Request, chat: bool) -> Response:
        """The answer to one request."""
        data = await read_request(request, MEGABYTES, _refusal)
        if isinstance(data, Response):
            return data
        try:
            body = self._body(data, "chat" if chat else "text")
            asked = (chat_request if chat else text_request)(body, self.model, self._defaults)
            if self._open + len(asked.seeds) > WAITING:
                raise RequestError(f"{self._open} answers wait already; try again later", status=429, code="rate_limit_exceeded")
            writer = CompletionResponse(asked, self.name, chat, self.model.tokenizer)
            if asked.stream:
                return StreamingResponse(self._stream(asked, writer), media_type="text/event-stream")
            answers = await self._whole(request, asked)
            return Response(status_code=499) if answers is None else JSONResponse(writer.whole(answers))
        except AssayError as error:
            status, told = error_body(error)
            return JSONResponse(told, status_code=status, headers={"Retry-After": "1"} if status == 429 else None)

    def models(self) -> dict[str, Any]:
        """The model as a list of models."""
        return {"object": "list", "data": [self.card()]}

    def card(self) -> dict[str, Any]:
        """What is known of the model."""
        return {"id": self.name, "object": "model", "created": 0, "owned_by": "assay", "max_model_len": self.model.context}

    def _body(self, data: bytes, kind: str) -> Mapping[str, Any]:
        try:
            found: Any = table(data)
        except DataError as error:
            raise RequestError(str(error)) from None
        if not isinstance(found, dict):
            raise RequestError("the request is no JSON object")
        body = cast("dict[str, Any]", found)
        name = body.get("model")
        if name is not None and name != self.name:
            raise RequestError(
                f"The model {name!r} does not exist here; this server has {self.name!r}.",
                status=404,
                code="model_not_found",
                param="model",
            )
        for field in sorted(body.keys() - KNOWN[kind] - self._ignored):
            self._ignored.add(field)
            self._notify(f"requests have a field {field!r}, which this server does not know and ignores")
        return body

    # ---- whole answers ------------------------------------------------------------------------------------------------

    async def _whole(self, request: Request, asked: CompletionRequest) -> list[Answered] | None:
        """All answers; None where whoever asked has gone away, which ends them."""
        wanted = [asyncio.wrap_future(future) for future in self._submit(asked)]
        gone = asyncio.ensure_future(_wait_for_disconnect(request))
        every = asyncio.gather(*wanted)
        self._open += len(wanted)
        try:
            await asyncio.wait((every, gone), return_when=asyncio.FIRST_COMPLETED)
            if not every.done():
                return None
            return [self._answer_request(asked, completion) for completion in await every]
        finally:
            self._open -= len(wanted)
            gone.cancel()
            every.cancel()

    def _submit(self, asked: CompletionRequest, tells: Sequence[Callable[[Ids], None]] = ()) -> list[Future[Completion]]:
        return [
            self.model.submit(asked.prompts[i // asked.n], asked.sampling[i // asked.n], seed, tells[i] if tells else None)
            for i, seed in enumerate(asked.seeds)
        ]

    def _answer_request(self, asked: CompletionRequest, completion: Completion) -> Answered:
        return Answered(completion, self._text(asked, completion).end(completion)[1])

    def _text(self, asked: CompletionRequest, completion: Completion | None = None) -> TextStream:
        sampling = asked.sampling[0] if completion is None else completion.sampling
        return TextStream(self.model.tokenizer, sampling.stop, before_call if asked.tools else None)

    # ---- streams ------------------------------------------------------------------------------------------------------

    async def _stream(self, asked: CompletionRequest, writer: CompletionResponse) -> AsyncGenerator[str]:
        """Server-sent events: tokens of all answers as they come, then why each ended."""
        loop, events = asyncio.get_running_loop(), asyncio.Queue[tuple[int, Ids | None]]()

        def put(index: int, ids: Ids | None) -> None:
            with suppress(RuntimeError):  # the server has ended, and its loop
                loop.call_soon_threadsafe(events.put_nowait, (index, ids))

        count = len(asked.seeds)
        futures = self._submit(asked, [partial(put, i) for i in range(count)])
        for i, future in enumerate(futures):
            future.add_done_callback(partial(_set_result, partial(put, i, None)))
        self._open += count
        try:
            async for piece in self._pieces(asked, writer, futures, events):
                yield f"data: {json.dumps(piece, ensure_ascii=False)}\n\n"
            yield "data: [DONE]\n\n"
        except AssayError as error:  # the head is sent: clients read it from the stream
            yield f"data: {json.dumps(error_body(error)[1], ensure_ascii=False)}\n\n"
        finally:
            self._open -= count
            for future in futures:
                future.cancel()

    async def _pieces(
        self,
        asked: CompletionRequest,
        writer: CompletionResponse,
        futures: Sequence[Future[Completion]],
        events: asyncio.Queue[tuple[int, Ids | None]],
    ) -> AsyncGenerator[dict[str, Any]]:
        texts = [self._text(asked) for _ in futures]
        for index in range(len(futures)):
            first = writer.begin(index)
            if first is not None:
                yield first
        left = len(futures)
        while left:
            index, ids = await events.get()
            if ids is not None:
                text = texts[index].push(ids)
                if text:
                    yield writer.piece(index, text)
                continue
            left -= 1
            completion: Completion = futures[index].result()
            rest, text = texts[index].end(completion)
            yield writer.last(index, Answered(completion, text), rest)
        if asked.usage:
            yield writer.end([future.result() for future in futures])


def application(
    model: TextGenerator,
    name: str = "model",
    defaults: ServedDefaults | None = None,
    key: str = "",
    notify: Callable[[str], None] = print,
) -> Starlette:
    """The server as an ASGI application.

    ``POST /v1/chat/completions``, ``POST /v1/completions``, ``GET /v1/models`` and ``GET /health``, with the fields and the
    errors of OpenAI's protocol.

    Args:
        model: samples.
        name: what callers call it.
        defaults: how to draw where a request does not say.
        key: asked for as ``Authorization: Bearer KEY`` by all addresses but ``/health``; empty for none.
        notify: called with a line for each ignored field of requests, once.
    """
    service = ModelService(model, name, defaults or ServedDefaults(), notify)

    async def chat(request: Request) -> Response:
        return await service.answer(request, chat=True)

    async def text(request: Request) -> Response:
        return await service.answer(request, chat=False)

    async def models(request: Request) -> Response:
        return JSONResponse(service.models())

    async def card(request: Request) -> Response:
        if request.path_params["name"] != name:
            return _refusal(404, f"The model {request.path_params['name']!r} does not exist here; this server has {name!r}.")
        return JSONResponse(service.card())

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    ways = (
        ("/v1/chat/completions", chat, "POST"),
        ("/v1/completions", text, "POST"),
        ("/v1/models", models, "GET"),
        ("/v1/models/{name:path}", card, "GET"),
    )
    routes = [Route(path, require_token(answer, key, _refusal), methods=[method]) for path, answer, method in ways]
    return Starlette(routes=[*routes, Route("/health", health, methods=["GET"])])


@refuse_old_keywords({"said": "notify"})
def serve(
    model: TextGenerator,
    name: str = "model",
    defaults: ServedDefaults | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    key: str = "",
    notify: Callable[[str], None] = print,
) -> None:
    """Serves until Ctrl-C or SIGTERM, which let answers at work end; a second one ends them. For the main thread; elsewhere, give
    `application` to a server of your own.

    Args:
        model, name, defaults, key: as in `application`.
        host: an address of this machine; one beyond it needs a key.
        port: 0 for any that is free.
        notify: called with a line that says where the server listens, and of fields that are ignored.

    Raises:
        ConfigError: an address beyond this machine without a key, or one that cannot be had.
    """
    made = application(model, name, defaults, key, notify)
    listen(
        made, name, "an OpenAI-compatible server, /v1", host, port, key, notify, lambda address: _hint(address, model, name, key)
    )


def _hint(address: str, model: TextGenerator, name: str, key: str) -> str:
    path, asks = ("chat/completions", {"messages": [{"role": "user", "content": "Hello"}]})
    if not model.chats:
        path, asks = "completions", {"prompt": "Once"}
    words = ["curl", f"{address}/v1/{path}", "-H", "Content-Type: application/json"]
    words += ["-H", "Authorization: Bearer KEY"] if key else []
    words += ["-d", json.dumps({"model": name, **asks}, ensure_ascii=False)]
    lacks = "" if model.chats else "the model has no chat template: use /v1/completions, which goes on with a text\n"
    return f"{lacks}for trying a model; to serve many callers, give its folder ('assay export') to vLLM\n{shlex.join(words)}"


def _set_result(put: Callable[[], None], future: Future[Completion]) -> None:
    put()


async def _wait_for_disconnect(request: Request) -> None:
    """Returns when whoever asked has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _refusal(status: int, error: str, headers: dict[str, str] | None = None) -> Response:
    code = {401: "invalid_api_key", 404: "model_not_found"}.get(status)
    told = error_body(RequestError(error, status=status, code=code))[1]
    return JSONResponse(told, status_code=status, headers=headers)
