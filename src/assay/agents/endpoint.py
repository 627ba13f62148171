"""The recording endpoint as an ASGI application: routes of the wire formats, sessions by secret, nothing of a training run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from typing import Any, NoReturn, cast

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from assay.agents.errors import AgentRequestError
from assay.agents.formats import ANTHROPIC, CHAT, COMPLETIONS, GEMINI, RESPONSES, WireFormat
from assay.agents.messages import AgentRequest
from assay.agents.recorder import CallNode
from assay.agents.session import AgentSession
from assay.core.errors import AssayError, DataError
from assay.sandbox.service.http import read_request, table

__all__ = ["AgentEndpoint"]

MEGABYTES = 64.0
"""Size that one request may have, in units of 2^20 bytes: agents send their whole conversation each time."""

PING_SECONDS = 10.0
"""After so long without an answer a stream begins with comments, so that no client takes the endpoint for dead."""

_NO_SESSION = "no session has this key: use the address or the key that the agent was given (OPENAI_BASE_URL, OPENAI_API_KEY)"


class AgentEndpoint:
    """Answers agents for the sessions that are open.

    A session is named by its secret in the path, ``/s/SECRET/v1/...``, which wins, or by the API key alone: as ``Authorization:
    Bearer``, ``x-api-key``, ``x-goog-api-key`` or ``?key=``.

    Args:
        open_session: makes the session of a secret that is not known; None: there are only those that `add` was given.
        model: name in the list of models.
        notify: called with a line for each ignored field, once.
    """

    def __init__(
        self,
        open_session: Callable[[str], AgentSession] | None = None,
        model: str = "policy",
        notify: Callable[[str], None] | None = None,
    ) -> None:
        self._sessions: dict[str, AgentSession] = {}
        self._open_session, self.model, self._notify = open_session, model, notify
        self._ignored: set[str] = set()
        self.application = Starlette(
            routes=[Route(path, answer, methods=list(methods)) for path, answer, methods in self._ways()]
        )

    def add(self, session: AgentSession) -> None:
        """Opens a session."""
        self._sessions[session.secret] = session

    def remove(self, session: AgentSession) -> None:
        """Forgets a session: its secret is no key any more."""
        self._sessions.pop(session.secret, None)

    def _ways(self) -> list[tuple[str, Callable[[Request], Any], tuple[str, ...]]]:
        posts = {"chat/completions": CHAT, "completions": COMPLETIONS, "responses": RESPONSES, "messages": ANTHROPIC}
        out: list[tuple[str, Callable[[Request], Any], tuple[str, ...]]] = []
        for before in ("", "/s/{secret}"):
            out += [(f"{before}/v1/{path}", self._answers(wire), ("POST",)) for path, wire in posts.items()]
            out += [
                (f"{before}/v1/responses", self._upgrade, ("GET",)),
                (f"{before}/v1/messages/count_tokens", self._count(ANTHROPIC), ("POST",)),
                (f"{before}/v1/models", self._models, ("GET",)),
                (f"{before}/v1/models/{{name:path}}", self._models, ("GET",)),
                (f"{before}/v1beta/models/{{name:path}}", self._gemini, ("POST",)),
                (before or "/", self._alive, ("GET", "HEAD")),
            ]
        return [*out, ("/s/{secret}/", self._alive, ("GET", "HEAD"))]

    # ---- routes ------------------------------------------------------------------------------------------------------

    def _answers(self, wire: WireFormat) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            return await self._answer_or_error(request, wire, {})

        return answer

    def _count(self, wire: WireFormat) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            return await self._answer_or_error(request, wire, {}, counts=True)

        return answer

    async def _gemini(self, request: Request) -> Response:
        name, _, verb = str(request.path_params["name"]).rpartition(":")
        if verb not in ("generateContent", "streamGenerateContent", "countTokens"):
            return _refusal(GEMINI, AgentRequestError(f"there is no method {verb!r} here", status=404))
        more = {"model": name, "stream": verb == "streamGenerateContent"}
        return await self._answer_or_error(request, GEMINI, more, counts=verb == "countTokens")

    async def _models(self, request: Request) -> Response:
        session = self._session(request)
        if session is None:
            return _refusal(CHAT, AgentRequestError(_NO_SESSION, status=401, code="invalid_api_key"))
        name = request.path_params.get("name", self.model)
        card = {"id": name, "object": "model", "created": 0, "owned_by": "assay", "max_model_len": session.recorder.context}
        one = "name" in request.path_params
        return JSONResponse(card if one else {"object": "list", "data": [card]})

    async def _upgrade(self, request: Request) -> Response:
        """Codex asks for a WebSocket first, and goes on with POST behind this status."""
        return Response(status_code=426, headers={"Upgrade": "HTTP/1.1"})

    async def _alive(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    # ---- one request -------------------------------------------------------------------------------------------------

    async def _answer_or_error(
        self, request: Request, wire: WireFormat, more: Mapping[str, Any], counts: bool = False
    ) -> Response:
        """The answer to one request; what cannot be answered is said in the format's own form."""
        session = self._session(request)
        try:
            if session is None:
                raise AgentRequestError(_NO_SESSION, status=401, code="invalid_api_key")
            data = await read_request(request, MEGABYTES, _raise_refusal)
            if isinstance(data, Response):  # the client has gone
                return data
            session.check_depth(request.headers)
            asked = wire.read({**_body(data), **more})
            self._tell(wire, asked)
            if counts:
                return JSONResponse(_count_prompt_tokens(wire, session, asked))
            return await self._reply(request, session, wire, asked)
        except AgentRequestError as error:
            if session is not None:
                session.refuse(error.code or str(error.status), str(error))
            return _refusal(wire, error)
        except AssayError as error:
            return _refusal(wire, AgentRequestError(str(error), status=500, code="server_error"))

    async def _reply(self, request: Request, session: AgentSession, wire: WireFormat, asked: AgentRequest) -> Response:
        again = request.headers.get("x-stainless-retry-count", "0") not in ("", "0")
        found = asyncio.ensure_future(session.answer(asked, again))
        gone = asyncio.ensure_future(_wait_for_disconnect(request))
        limit = PING_SECONDS if asked.stream else None
        await asyncio.wait((found, gone), return_when=asyncio.FIRST_COMPLETED, timeout=limit)
        if gone.done() and not found.done():
            found.cancel()
            session.lose_request(asked)
            return Response(status_code=499)
        if asked.stream:
            return AgentReply(wire, session, asked, found, gone)
        node = await found
        body = json.dumps(wire.write(asked, session.recorder.answer(node)), ensure_ascii=False)
        return AgentReply(wire, session, asked, found, gone, body)

    def _session(self, request: Request) -> AgentSession | None:
        headers = request.headers
        bearer = headers.get("authorization", "").removeprefix("Bearer ").strip()
        given = (headers.get("x-api-key"), headers.get("x-goog-api-key"), bearer, request.query_params.get("key"))
        path = request.path_params.get("secret")
        for secret in [path] if path else [key for key in given if key]:
            if secret in self._sessions:
                return self._sessions[secret]
            if self._open_session is not None:
                self._sessions[secret] = self._open_session(secret)
                return self._sessions[secret]
        return None

    def _tell(self, wire: WireFormat, asked: AgentRequest) -> None:
        for name in set(asked.ignored) - self._ignored:
            self._ignored.add(name)
            if self._notify is not None:
                self._notify(f"{wire.name}: the field {name!r} changes nothing here")


class AgentReply(Response):
    """Sends one answer, whole or in pieces, and notes whether it reached the client.

    Args:
        wire, session, asked: the request.
        found: the call that answers it.
        gone: done as soon as the client has closed the connection.
        whole: the body; None for a stream.
    """

    def __init__(
        self,
        wire: WireFormat,
        session: AgentSession,
        asked: AgentRequest,
        found: asyncio.Future[CallNode],
        gone: asyncio.Future[None],
        whole: str | None = None,
    ) -> None:
        kind = "application/json" if whole is not None else "text/event-stream"
        super().__init__(whole, media_type=kind)
        self._wire, self._session, self._asked, self._found, self._gone, self._whole = wire, session, asked, found, gone, whole
        if whole is None:
            self.raw_headers = [(k, v) for k, v in self.raw_headers if k != b"content-length"]
            self.headers["cache-control"] = "no-cache"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends it."""
        lost = False
        try:
            if self._whole is not None:
                lost = self._gone.done()
                await super().__call__(scope, receive, send)
                return
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            async for piece in self._pieces():
                lost = self._gone.done()
                await send({"type": "http.response.body", "body": piece.encode(), "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except (OSError, asyncio.CancelledError):
            lost = True
            raise
        finally:
            self._gone.cancel()
            if lost and self._found.done():
                self._lose()
            elif lost:
                self._found.cancel()
                self._session.lose_request(self._asked)
            elif self._found.done() and not self._found.cancelled() and self._found.exception() is None:
                self._found.result().delivered = True

    def _lose(self) -> None:
        with suppress(AssayError, asyncio.CancelledError):
            self._session.lose(self._found.result())

    async def _pieces(self) -> AsyncGenerator[str]:
        while not self._found.done():
            await asyncio.wait((self._found, self._gone), timeout=PING_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if self._gone.done() and not self._found.done():
                raise OSError("the client has gone")
            if not self._found.done():
                yield ": still sampling\n\n"
        try:
            node = self._found.result()
        except AssayError as error:  # the head is sent: clients read it from the stream
            told = error if isinstance(error, AgentRequestError) else AgentRequestError(str(error), status=500)
            yield f"event: error\ndata: {json.dumps(self._wire.refuse(told), ensure_ascii=False)}\n\n"
            return
        for piece in self._wire.stream(self._asked, self._session.recorder.answer(node)):
            yield piece


def _body(data: bytes) -> dict[str, Any]:
    try:
        found: Any = table(data)
    except DataError as error:
        raise AgentRequestError(str(error), code="invalid_json") from None
    if not isinstance(found, dict):
        raise AgentRequestError("the request is no JSON object", code="invalid_json")
    return cast("dict[str, Any]", found)


def _count_prompt_tokens(wire: WireFormat, session: AgentSession, asked: AgentRequest) -> dict[str, int]:
    """How many tokens a request's prompt has; nothing is recorded."""
    tokens = len(session.recorder.pose(asked).prefix)
    return {"totalTokens": tokens} if wire is GEMINI else {"input_tokens": tokens}


def _raise_refusal(status: int, text: str, headers: dict[str, str] | None) -> NoReturn:
    raise AgentRequestError(text, status=status)


def _refusal(wire: WireFormat, error: AgentRequestError) -> Response:
    headers = {"Retry-After": "1"} if error.status in (429, 503) else None
    return JSONResponse(wire.refuse(error), status_code=error.status, headers=headers)


async def _wait_for_disconnect(request: Request) -> None:
    """Returns when whoever asked has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
