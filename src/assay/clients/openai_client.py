"""Text from any server that speaks OpenAI's protocol: for evaluation, teachers and judges, never for training."""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from assay.core.errors import ConfigError, EngineError, MissingExtraError
from assay.core.task import CALLS, Message
from assay.core.tools import as_dicts, declared_tools
from assay.core.util.stop_request import pause

try:
    import httpx
except ImportError:  # pragma: no cover - the tests have it
    raise MissingExtraError("httpx", "judge") from None

__all__ = ["Answer", "OpenAIClient", "RequestRefused"]

_LATER = (408, 409, 425, 429)  # and every 5xx
_LONGEST = 30.0  # seconds between two attempts, unless the server asks for more


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer.

    Attributes:
        text: of it.
        finish: why it ended, in the server's word: ``stop``, ``length``, ...
    """

    text: str
    finish: str


class RequestRefused(ConfigError):
    """The server refuses a request, and would refuse it again.

    Attributes:
        status: that it gave; 400 is about one request, 401, 403 and 404 are about all of them.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class OpenAIClient:
    """Asks for chat answers and completions. What fails for a while is asked again, until a deadline.

    Args:
        base_url: up to and with ``/v1``.
        model: name on the server.
        api_key_env: environment variable that holds the key; none is sent when empty. Read with each call, and in no
            message.
        concurrency: most requests at once.
        seconds: deadline of one call, waiting and attempts included.
        attempts: most times that one call is sent.
        pause: seconds before the second attempt, twice as many before each next one; a server's ``Retry-After`` goes first.
        request_seconds: deadline of one attempt, after which it is sent again; None for the call's own.
        transport: answers in place of the network, for tests.

    Attributes:
        counts: ``sent`` requests, attempts included, and ``tokens`` of questions and answers, where the server counts them.

    Raises:
        ConfigError: an address or a number that cannot be.

    >>> OpenAIClient("http://127.0.0.1:8000/v1", "my-model")
    OpenAIClient('http://127.0.0.1:8000/v1', 'my-model')
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key_env: str = "",
        *,
        concurrency: int = 16,
        seconds: float = 120.0,
        attempts: int = 6,
        pause: float = 1.0,
        request_seconds: float | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise ConfigError(f"OpenAIClient: base_url={base_url!r} is no address; write it as 'http://127.0.0.1:8000/v1'")
        if concurrency < 1 or attempts < 1 or not min(seconds, request_seconds or seconds) > 0 or not pause >= 0:
            raise ConfigError(
                f"OpenAIClient: concurrency={concurrency}, attempts={attempts}, seconds={seconds}, pause={pause}; use at least "
                "one request, one attempt, a positive deadline and no negative pause"
            )
        self.base_url, self.model, self._key_name = base_url.rstrip("/"), model, api_key_env
        self._seconds, self._attempts, self._pause, self._transport = seconds, attempts, pause, transport
        self._concurrency, self._request_seconds = concurrency, request_seconds
        self.counts: Counter[str] = Counter()
        self._loop: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore, httpx.AsyncClient] | None = None

    def __repr__(self) -> str:
        return f"OpenAIClient({self.base_url!r}, {self.model!r})"

    async def chat(
        self, messages: Sequence[Message], n: int = 1, *, temperature: float = 1.0, max_tokens: int = 512, **more: Any
    ) -> list[Answer]:
        """``n`` answers to a conversation.

        Tools that it declares are shown to the model, and its calls come back as the text that they are (``tool_choice`` is
        ``none`` where ``more`` says nothing else).

        Args:
            messages: turns, the last one the user's.
            n: answers.
            temperature: of sampling.
            max_tokens: cut-off for each.
            more: further fields of the request, as the server has them (``seed``, ``top_p``, ``stop``, ...).

        Raises:
            ConfigError: the key is missing.
            RequestRefused: the server refuses the key, or knows no such model or field.
            EngineError: no answer before the deadline; says what came instead.
        """
        body = {**_conversation(messages), "n": n, "temperature": temperature, "max_tokens": max_tokens, **more}
        return await self._answers("/chat/completions", body, n)

    async def complete(
        self, prompt: str, n: int = 1, *, temperature: float = 1.0, max_tokens: int = 512, **more: Any
    ) -> list[Answer]:
        """``n`` texts that go on from ``prompt``; like `chat` otherwise."""
        body = {"prompt": prompt, "n": n, "temperature": temperature, "max_tokens": max_tokens, **more}
        return await self._answers("/completions", body, n)

    async def check_reachable(self) -> None:
        """Refuses an address where no server listens; one that is slow, or that fails, is a server.

        Raises:
            EngineError: no connection.
        """
        _, client = self._here()
        try:
            await client.get(f"{self.base_url}/models", timeout=10.0)
        except httpx.ConnectError as error:
            raise EngineError(f"{self.base_url}: {_in_words(error)}") from error
        except httpx.HTTPError:
            return

    async def context_length(self) -> int | None:
        """Tokens that a prompt and its answer may have together, as ``/models`` says it (``max_model_len`` of vLLM and of
        ``assay serve model``); None where the server does not say, or does not answer within 10 s.
        """
        _, client = self._here()
        try:
            answer = await client.get(f"{self.base_url}/models", headers=self._headers(), timeout=10.0)
            listed: Any = _object(answer).get("data")
        except (httpx.HTTPError, EngineError):
            return None
        known = [
            cast("dict[str, Any]", m)
            for m in cast("list[Any]", listed if isinstance(listed, list) else [])
            if isinstance(m, dict)
        ]
        length: Any = next((m.get("max_model_len") for m in known if m.get("id") == self.model), None)
        return length if isinstance(length, int) and length > 0 else None

    async def close(self) -> None:
        """Closes connections."""
        if self._loop is not None and self._loop[0] is asyncio.get_running_loop():
            await self._loop[2].aclose()
        self._loop = None

    # ---- one call ---------------------------------------------------------------------------------------------------

    async def _answers(self, path: str, body: Mapping[str, Any], n: int) -> list[Answer]:
        slots, client = self._here()
        came: list[str] = []
        try:
            async with asyncio.timeout(self._seconds), slots:
                return await self._request(client, path, {"model": self.model, **body}, n, came)
        except TimeoutError as error:
            what = f"; the last attempt: {came[-1]}" if came else "; raise OpenAIClient(seconds=...), of a command --seconds"
            raise EngineError(f"{self._where(path)}: no answer within {self._seconds:g} s{what}") from error

    def _here(self) -> tuple[asyncio.Semaphore, httpx.AsyncClient]:
        loop = asyncio.get_running_loop()
        if self._loop is None or self._loop[0] is not loop:
            limits = httpx.Limits(max_connections=self._concurrency, keepalive_expiry=2.0)
            client = httpx.AsyncClient(limits=limits, transport=self._transport, timeout=None)  # the deadline is the call's
            self._loop = (loop, asyncio.Semaphore(self._concurrency), client)
        return self._loop[1], self._loop[2]

    async def _request(
        self, client: httpx.AsyncClient, path: str, body: Mapping[str, Any], n: int, came: list[str]
    ) -> list[Answer]:
        """Answers after as many attempts as it takes; ``came`` gets what came instead, attempt by attempt."""
        said, where = "", self._where(path)
        for attempt in range(self._attempts):
            wait = self._pause * 2**attempt
            self.counts["sent"] += 1
            try:
                answer = await client.post(
                    self.base_url + path, json=body, headers=self._headers(), timeout=self._request_seconds
                )
            except httpx.HTTPError as error:
                said = _in_words(error)
            else:
                if answer.status_code == 200:
                    try:
                        return self._read(answer, n)
                    except EngineError as error:  # a proxy's page, or half an answer: the server may do better
                        said = str(error)
                else:
                    said = f"status {answer.status_code}: {self._without_key(answer.text)[:500]!r}"
                    if answer.status_code < 500 and answer.status_code not in _LATER:
                        raise self._refusal(answer.status_code, path, said)
                    wait = max(wait, _asked_for(answer))
            came.append(said)
            if attempt + 1 < self._attempts:
                await pause(min(wait, max(_LONGEST, self._pause)))
        raise EngineError(f"{where}: no answer in {self._attempts} attempts; the last: {said}")

    def _read(self, answer: httpx.Response, n: int) -> list[Answer]:
        """The answers that a response holds.

        Raises:
            EngineError: none, or others than were asked for.
        """
        found = _object(answer)
        try:
            choices = sorted(found["choices"], key=lambda choice: choice["index"])
            texts = [c["message"]["content"] if "message" in c else c["text"] for c in choices]
            made = [Answer(text or "", str(c["finish_reason"])) for text, c in zip(texts, choices, strict=True)]
        except (KeyError, TypeError, AttributeError) as error:
            raise EngineError(f"an answer of another form ({error!r}): {str(found)[:300]}") from None
        if len(made) != n:
            raise EngineError(f"{len(made)} answers where {n} were asked for")
        usage: Any = found.get("usage")
        total: Any = cast("dict[str, Any]", usage).get("total_tokens") if isinstance(usage, dict) else None
        self.counts["tokens"] += total if isinstance(total, int) else 0
        return made

    def _headers(self) -> dict[str, str]:
        if not self._key_name:
            return {}
        if not (key := os.environ.get(self._key_name)):
            raise ConfigError(f"OpenAIClient: the environment variable {self._key_name!r} is not set; put the key into it")
        return {"Authorization": f"Bearer {key}"}

    def _without_key(self, text: str) -> str:
        """A server's words: some repeat the key that they refuse."""
        key = os.environ.get(self._key_name) if self._key_name else None
        return text.replace(key, "[key]") if key else text

    def _refusal(self, status: int, path: str, said: str) -> RequestRefused:
        short = not self.base_url.endswith("/v1")
        address = f"'/v1' may be missing from the address: {self.base_url}/v1" if short else "look at the address"
        fix = {
            401: "look at the key" if self._key_name else "name the variable that holds the key in OpenAIClient(api_key_env=...)",
            403: "look at what the key allows",
            404: f"{address}, and whether the server has a model {self.model!r}",
        }.get(status, "the server does not take this request")
        return RequestRefused(f"{self._where(path)} was refused with {said}; {fix}", status)

    def _where(self, path: str) -> str:
        return f"POST {self.base_url}{path} (model {self.model!r})"


def _in_words(error: httpx.HTTPError) -> str:
    """What went wrong, with the reason of a connection that was not made."""
    said = f"{type(error).__name__}: {error}".removesuffix(": ")
    return f"{said}: no server listens at this address" if isinstance(error, httpx.ConnectError) else said


def _conversation(messages: Sequence[Message]) -> dict[str, Any]:
    """Messages as the protocol has them: tools apart, calls with numbers and arguments as text."""
    tools, rest = declared_tools(messages, "OpenAIClient.chat")
    roles = [m.role for m in rest]
    turns = as_dicts(roles, [m.content for m in rest], ids=CALLS in roles)
    for turn in turns:
        for call in turn.get("tool_calls", ()):
            call["function"] = {**call["function"], "arguments": json.dumps(call["function"]["arguments"], ensure_ascii=False)}
    return {"messages": turns, **({"tools": json.loads(tools), "tool_choice": "none"} if tools else {})}


def _object(answer: httpx.Response) -> dict[str, Any]:
    try:
        found: Any = answer.json()
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise EngineError(f"an answer that is no JSON object: {answer.text[:300]!r}")
    return cast("dict[str, Any]", found)


def _asked_for(answer: httpx.Response) -> float:
    """Seconds that the server asks to wait; 0 where it says nothing, or a date."""
    try:
        return float(answer.headers.get("retry-after", 0))
    except ValueError:
        return 0.0
