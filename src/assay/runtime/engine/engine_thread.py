"""An engine at work in a thread of its own, so that a server or a terminal stays awake while it samples."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from assay.core.errors import EngineError
from assay.core.protocols import Request
from assay.core.rollout import Completion, Ids
from assay.runtime.engine.scheduler import RunningBatch

__all__ = ["EngineThread"]


class EngineThread:
    """Takes requests from any thread and samples them as one running batch; a context manager, which ends the thread.

    Args:
        engine: used by nobody else meanwhile.

    >>> from assay.core import Sampling
    >>> from assay.runtime import DecoderShape, NativeEngine, char_tokenizer, init_model
    >>> model = init_model(DecoderShape(vocab_size=12), char_tokenizer("0123456789"), seed=0)
    >>> wanted = Request(id="a", prompt=model.tokenizer.encode("42"), seed=7, sampling=Sampling(max_new_tokens=3))
    >>> with EngineThread(NativeEngine(model)) as engine:
    ...     len(engine.submit(wanted).result().ids)
    3
    """

    def __init__(self, engine: RunningBatch[Any]) -> None:
        self._engine = engine
        self._loop = asyncio.new_event_loop()
        self._open = True
        self._thread = threading.Thread(target=self._run, name="assay-engine", daemon=True)
        self._thread.start()

    def submit(self, request: Request, tell: Callable[[Ids], None] | None = None) -> Future[Completion]:
        """Asks for a completion.

        Args:
            request: what is wanted.
            tell: called in the engine's thread with new tokens, in order, before the completion is there.

        Returns:
            A future, whose ``cancel`` ends the request; its exceptions are those of `RunningBatch.generate`.

        Raises:
            EngineError: it was closed.
        """
        if not self._open:
            raise EngineError(f"request {request.id!r}: the engine's thread has ended; make another EngineThread")
        return asyncio.run_coroutine_threadsafe(self._engine.generate(request, tell), self._loop)

    def close(self) -> None:
        """Ends what runs, behind the step that is being computed, and the thread."""
        if self._open:
            self._open = False
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def __enter__(self) -> EngineThread:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            with suppress(asyncio.CancelledError):
                self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self._loop.close()
