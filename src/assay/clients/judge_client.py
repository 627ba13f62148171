"""A judge at work: asked until its answer can be read, never twice for the same."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from assay.clients.judge import Judge
from assay.core.errors import DataError, EngineError
from assay.core.task import Message
from assay.core.util.stop_request import pause

if TYPE_CHECKING:
    from assay.clients.openai_client import OpenAIClient

__all__ = ["JudgeClient", "JudgementStore", "MemoryStore"]

_T = TypeVar("_T")

_READINGS = 5
"""Times that a judge is asked where its answer cannot be read, each with a seed of its own."""

_GIVE_UP = 8
"""Answers after which a judge of which none could be read is not asked any more."""

_APART = 7919
"""Between two such seeds."""


class JudgementStore(Protocol):
    """Where answers are kept, so that no question is asked twice."""

    def find(self, key: str) -> str | EngineError | None:
        """The answer that is kept, or the error that this step met with before; None where the judge must be asked."""
        ...

    def keep(self, key: str, text: str) -> None: ...

    def fail(self, key: str, error: str) -> None: ...


class MemoryStore:
    """Keeps answers for as long as it lives."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def find(self, key: str) -> str | None:
        """The answer, if there is one."""
        return self._texts.get(key)

    def keep(self, key: str, text: str) -> None:
        """Keeps an answer."""
        self._texts[key] = text

    def fail(self, key: str, error: str) -> None:
        """Forgets an error: the question may be asked again."""


class JudgeClient:
    """A judge at work; implements `assay.core.scoring.JudgePort`.

    A question goes to the server once: equal questions that are asked at the same time wait for one answer, and answers that
    could be read are kept in the store. A judge whose first 8 answers could all not be read is asked nothing more until `retry`:
    the rubric, the template or the model is wrong, and time would change nothing. Nor is one that gave no answer at all when the
    attempts of a first question were used up: its server is down, and each further question would wait as long.

    Args:
        judge: settings.
        store: where answers are kept.
        client: asks the server; made from the settings when None.

    Attributes:
        counts: ``asked`` questions that went to the server, ``cached`` ones that were answered from the store, ``reread``
            answers that could not be read, ``faults`` questions without a judgement, ``sent`` requests, attempts included,
            ``tokens`` of them and their answers as the server counts them, ``milliseconds`` of waiting, added up.
    """

    def __init__(self, judge: Judge, store: JudgementStore, client: OpenAIClient | None = None) -> None:
        self.judge, self._store, self._client = judge, store, client
        self.counts: Counter[str] = Counter()
        self._waiting: dict[str, asyncio.Task[str]] = {}
        self._unread, self._was_read, self._last = 0, False, ""
        self._answered, self._silent = False, ""  # what came instead of the first answer, after all attempts
        self._slots = asyncio.Semaphore(judge.concurrency)  # a deadline begins when a question's turn has come

    async def ask(self, messages: Sequence[Message], read: Callable[[str], _T], *, sample: int = 0) -> _T:
        """What ``read`` makes of the judge's answer.

        Raises:
            EngineError: no judgement after all attempts, or before the deadline; says what came instead.
            ConfigError: the server refuses such requests.
        """
        key = self.judge.digest(messages, sample)
        kept = self._store.find(key)
        if isinstance(kept, str):
            try:
                found = read(kept)
            except (ValueError, DataError):  # kept for a scorer that reads otherwise
                kept = None
            else:
                self.counts["cached"] += 1
                self._was_read = True
                return found
        if isinstance(kept, EngineError):
            self.counts["faults"] += 1
            raise kept
        task = self._waiting.get(key)
        if task is None:
            task = self._waiting[key] = asyncio.ensure_future(self._answer(key, messages, read, sample))
            task.add_done_callback(lambda done: self._waiting.pop(key, None))
        text = await task
        try:
            return read(text)
        except (ValueError, DataError) as error:  # asked by another at the same time, who reads otherwise
            raise EngineError(f"judge {self.judge.name!r}: {error}; it said {text[:200]!r}") from None

    def retry(self) -> None:
        """Asks again after it gave up, as at the next step of a run."""
        self._unread, self._silent = 0, ""

    async def check_reachable(self) -> None:
        """Refuses a judge at whose address no server listens.

        Raises:
            EngineError: no connection; says how to name another address.
        """
        try:
            await self._make_client().check_reachable()
        except EngineError as error:
            raise EngineError(
                f"judge {self.judge.name!r} cannot be reached: {error}; start its server, or give Judge.url "
                "(--judges.N.url URL, N from 0)"
            ) from None

    async def close(self) -> None:
        """Closes connections; a question after that opens new ones."""
        if self._client is not None:
            await self._client.close()

    async def _answer(self, key: str, messages: Sequence[Message], read: Callable[[str], Any], sample: int) -> str:
        self.counts["asked"] += 1
        client = self._make_client()
        async with self._slots:
            began = time.monotonic()
            try:
                text = await self._readable(client, messages, read, sample)
            except EngineError as error:
                self.counts["faults"] += 1
                self._store.fail(key, str(error))
                raise
            finally:
                self.counts["milliseconds"] += round(1000 * (time.monotonic() - began))
                self.counts.update({name: client.counts.pop(name) for name in list(client.counts)})
        self._store.keep(key, text)
        return text

    async def _readable(self, client: OpenAIClient, messages: Sequence[Message], read: Callable[[str], Any], sample: int) -> str:
        said = ""
        try:
            async with asyncio.timeout(self.judge.seconds):
                for attempt in range(_READINGS):
                    self._check_given_up()
                    try:
                        (answer,) = await client.chat(
                            messages,
                            temperature=self.judge.temperature,
                            max_tokens=self.judge.max_tokens,
                            seed=self.judge.seed + sample + _APART * attempt,
                        )
                    except EngineError as error:
                        self._silent = self._silent or str(error)
                        raise
                    self._answered = True
                    try:
                        read(answer.text)
                    except (ValueError, DataError) as error:
                        self._last = said = f"{error}; it said {answer.text[:200]!r}"
                        self._unread += 1
                        self.counts["reread"] += 1
                        self._check_given_up()
                        if attempt + 1 < _READINGS:
                            await pause(self.judge.pause * 2**attempt)
                    else:
                        self._was_read = True
                        return answer.text
        except TimeoutError:
            raise EngineError(
                f"judge {self.judge.name!r}: no judgement within {self.judge.seconds:g} s; raise Judge.seconds. {said}"
            ) from None
        raise EngineError(f"judge {self.judge.name!r}: none of {_READINGS} answers could be read; the last: {said}")

    def _check_given_up(self) -> None:
        if self._silent and not self._answered:
            raise EngineError(f"judge {self.judge.name!r} has given no answer at all: {self._silent}")
        if not self._was_read and self._unread >= _GIVE_UP:
            raise EngineError(
                f"judge {self.judge.name!r}: none of its first {self._unread} answers could be read; the last: {self._last}"
            )

    def _make_client(self) -> OpenAIClient:
        if self._client is None:
            from assay.clients.openai_client import OpenAIClient

            j = self.judge
            self._client = OpenAIClient(
                j.url,
                j.model,
                j.api_key_env,
                concurrency=j.concurrency,
                seconds=j.seconds,
                attempts=j.attempts,
                pause=j.pause,
                request_seconds=j.request_seconds,
            )
        return self._client
