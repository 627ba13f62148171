"""A model that answers in text: conversations and texts in, tokens out, all callers in one running batch."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from assay.core.errors import DataError
from assay.core.protocols import Request
from assay.core.rollout import Completion, Ids, Sampling, ids_of
from assay.core.task import Message
from assay.publish.service.text_stream import TextStream
from assay.rollout.decode_text import with_stop
from assay.train.policy import Policy

if TYPE_CHECKING:
    from assay.runtime.text.tokenizer import HubTokenizer

__all__ = ["TextGenerator"]


class TextGenerator:
    """A model on this machine for a server or a conversation; a context manager, which ends its engine.

    Args:
        path: a run folder, a model folder in Hugging Face format, or a name on the hub.

    Attributes:
        tokenizer: of the model.
        context: longest prompt plus answer, in tokens.

    Raises:
        ConfigError: there is no such model.
        DataError: the folder holds none that assay can run.
    """

    def __init__(self, path: str | Path) -> None:
        from assay.runtime.engine.engine_thread import EngineThread
        from assay.runtime.engine.settings import engine_for

        model = Policy(path).model()
        self.tokenizer: HubTokenizer = model.tokenizer
        self.context = model.shape.max_positions
        self._vocabulary = model.shape.vocab_size
        self._engine = EngineThread(cast("Any", engine_for(model)))
        self._numbers = itertools.count()

    @property
    def chats(self) -> bool:
        """Whether its tokenizer writes conversations; a base model goes on with text."""
        return self.tokenizer.jinja is not None

    def chat_prompt(self, messages: Sequence[Message]) -> Ids:
        """A conversation as the chat template writes it, up to where the assistant begins to speak.

        Raises:
            ConfigError, DataError: the template cannot write it, or the tokenizer lacks a character.
        """
        return self.tokenizer.render(messages)

    def text_prompt(self, text: str) -> Ids:
        """A text to go on with, behind the special tokens that stand in front of every text.

        Raises:
            DataError: the tokenizer lacks a character, or there is nothing to go on with.
        """
        found = ids_of(np.concatenate([self.tokenizer.bos_ids, self.tokenizer.encode(text)]))
        if not len(found):
            raise DataError("an empty prompt, and this model has no token that stands in front of every text; give some text")
        return found

    def ids_prompt(self, ids: Sequence[int]) -> Ids:
        """Token ids as they are.

        Raises:
            DataError: none, or one outside the vocabulary.
        """
        wrong = [i for i in ids if not 0 <= i < self._vocabulary]
        if wrong or not ids:
            what = f"token id {wrong[0]}" if wrong else "no token ids"
            raise DataError(f"a prompt of {what}; the vocabulary has ids 0 to {self._vocabulary - 1}")
        return ids_of(ids)

    def submit(self, prompt: Ids, sampling: Sampling, seed: int, tell: Callable[[Ids], None] | None = None) -> Future[Completion]:
        """Asks for one completion; as `EngineThread.submit`.

        Args:
            prompt: ``[P]`` ids.
            sampling: how to draw; it ends at the model's own end tokens where it names none.
            seed: 64-bit seed of the noise.
            tell: called in another thread with new tokens.
        """
        wanted = with_stop(sampling, self.tokenizer)
        return self._engine.submit(Request(id=f"served/{next(self._numbers)}", prompt=prompt, seed=seed, sampling=wanted), tell)

    def stream(self, prompt: Ids, sampling: Sampling, seed: int) -> Generator[str, None, Completion]:
        """The text of one completion as it is sampled; the completion is the generator's value. Closing it ends the request.

        Args:
            prompt, sampling, seed: as in `submit`.

        Raises:
            EngineError: generation failed.
        """
        events = SimpleQueue[Ids | None]()
        text = TextStream(self.tokenizer, sampling.stop)
        future = self.submit(prompt, sampling, seed, events.put)
        future.add_done_callback(lambda done: events.put(None))
        try:
            while (ids := events.get()) is not None:
                if piece := text.push(ids):
                    yield piece
            completion = future.result()
            if rest := text.end(completion)[0]:
                yield rest
            return completion
        finally:
            future.cancel()

    def close(self) -> None:
        """Ends the engine, and with it what runs."""
        self._engine.close()

    def __enter__(self) -> TextGenerator:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
