"""A server of OpenAI's protocol on this machine that says what a script says, and fails where it is told to."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, Self, cast

from assay.core.canon import digest
from assay.core.task import Message

__all__ = ["JudgeServer", "ServerFault"]

ServerFault = Literal["", "timeout", "429", "500", "refused", "junk", "half", "words"]
"""How a request fails: not at all; no answer; busy; broken; 401; a body that is no JSON; half a body; no judgement."""


class JudgeServer:
    """A model behind a server, for tests of judges. Use it as a context manager.

    Args:
        reply: what the model says to messages.
        fault: of the ``n``-th time, from 0, that a question is asked; none by default. It gets the question's digest, so that
            what fails does not depend on the order in which requests arrive.

    Attributes:
        asked: how often each question was asked, by digest.

    >>> with JudgeServer(lambda messages: "7") as server:
    ...     server.url.startswith("http://127.0.0.1:")
    True
    """

    def __init__(
        self, reply: Callable[[list[Message]], str], fault: Callable[[str, int], ServerFault] = lambda question, n: ""
    ) -> None:
        self._reply, self._fault = reply, fault
        self.asked: Counter[str] = Counter()
        self._lock, self._ended = threading.Lock(), threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body: Any = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.answer(self, body)

            def log_message(self, format: str, *args: Any) -> None:
                """Says nothing."""

        class Server(ThreadingHTTPServer):
            request_queue_size = 128  # connections that wait must not be refused: that would be a fault that nobody planned
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                """Says nothing of a client that is gone."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        """Up to and with ``/v1``."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def answer(self, request: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        """Answers one request, or fails."""
        turns = cast("list[dict[str, str]]", body["messages"])
        question = digest([body["model"], turns], 8)
        with self._lock:
            number = self.asked[question]
            self.asked[question] += 1
        fault = self._fault(question, number)
        if fault == "timeout":
            self._ended.wait(30.0)
            request.close_connection = True
            return
        status = {"429": 429, "500": 500, "refused": 401}.get(fault, 200)
        said = "I would rather not." if fault == "words" else self._reply([Message(t["role"], t["content"]) for t in turns])
        choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        data = json.dumps({"choices": [choice], "usage": {"total_tokens": 10}}).encode()
        data = b"<html>busy</html>" if fault == "junk" else data[: len(data) // 2] if fault == "half" else data
        request.send_response(status)
        if status == 429:
            request.send_header("Retry-After", "0")
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
