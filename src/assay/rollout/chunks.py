"""Long answers in chunks of bounded context: head and tail of what was said so far in place of all of it (Delethink)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.core.errors import ConfigError
from assay.core.protocols import AskPolicy, Conversation
from assay.core.rollout import ids_of

__all__ = ["Chunks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunks:
    """An answer that reaches the limit of a call goes on behind the question, its first ``head`` and its last
    ``tail`` tokens (Delethink, "The Markovian Thinker", arXiv 2510.06557).

    A chunk is ``C = Sampling.max_new_tokens`` tokens of context behind the question: the first samples all of them, each
    later one ``C - head - tail`` behind what it carries. Ids are carried, never text. Every chunk is a row of its own, in
    which what was carried is context; all have the rollout's one advantage. Verifiers and environments read the chunks as one
    text. An answer that does not end within ``most`` chunks has stop ``length``.

    The published settings are ``C`` 8192, 8 rollouts at temperature .6, an upper clip of .26, two optimiser steps and a loss that
    is the mean over rollouts of the mean over their tokens; they belong to run and objective. The head stays that of the first
    chunk, as in the released configuration.

    Attributes:
        head: first tokens of the answer that are carried.
        tail: last tokens of the answer that are carried.
        most: chunks of an answer; 1 changes nothing.

    Raises:
        ConfigError: a number out of range.

    >>> Chunks().total(8192)
    24576
    """

    head: int = 100
    tail: int = 3996
    most: int = 5

    def __post_init__(self) -> None:
        for name, least in (("head", 0), ("tail", 1), ("most", 1)):
            if getattr(self, name) < least:
                raise ConfigError(f"Chunks.{name}={getattr(self, name)}; use at least {least}")

    def total(self, chunk: int) -> int:
        """Most tokens of an answer whose first chunk has ``chunk``: ``C + (most - 1) (C - head - tail)``."""
        return chunk + (self.most - 1) * (chunk - self.head - self.tail)

    async def rewrite(self, conversation: Conversation, ask: AskPolicy) -> Conversation | None:
        """The answer behind what is carried of it; nothing changes between two turns.

        Raises:
            ConfigError: a chunk has no room for more than is carried.
        """
        if not 0 < conversation.cuts < self.most:
            return None
        said, chunk = conversation.answer_ids, conversation.limit
        if self.head + self.tail >= chunk:
            raise ConfigError(
                f"Chunks carries {self.head + self.tail} tokens (head={self.head}, tail={self.tail}) of a chunk of {chunk}, "
                "Run.sampling.max_new_tokens: carry fewer, or raise that"
            )
        carried = said if len(said) <= self.head + self.tail else np.concatenate([said[: self.head], said[-self.tail :]])
        return conversation.carry(ids_of(carried), chunk - len(carried))
