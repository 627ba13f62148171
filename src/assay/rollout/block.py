"""Messages as tokens: rendered once, and cut into those of each message where the chat template allows it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from assay.core.errors import ConfigError, DataError
from assay.core.protocols import ChatTokenizer, Tokenizer
from assay.core.rollout import Ids, ids_of
from assay.core.task import Message, Prefill

__all__ = ["Block", "check_prefix", "concatenate", "forced_ids", "render", "render_following"]


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Consecutive messages as ids, up to where the assistant begins to speak.

    Attributes:
        messages: what was shown.
        ids: ``[P]`` all ids.
        tokenizer: what rendered them.
        history: the conversation that they follow, its last turn sampled, where the tokenizer writes them by that.
    """

    messages: tuple[Message, ...]
    ids: Ids
    tokenizer: Tokenizer
    history: tuple[Message, ...] | None = None

    def split(self) -> tuple[list[Ids], Ids]:
        """The ids of each message, and those with which the assistant's turn opens.

        Raises:
            ConfigError: the chat template rewrites earlier turns, so no message has ids of its own.
        """
        cuts = [0]
        for count in range(1, len(self.messages) + 1):
            head = self._block_ids(count)
            at = _difference(head, self.ids)
            if at is not None:
                raise ConfigError(
                    f"the chat template is not append-only: {count} of {len(self.messages)} messages render to other ids "
                    f"alone than together, first at token {at} ({self._texts(head, at)}); use a template that writes each turn "
                    "independently, or KeepAll(), which drops no turns"
                )
            cuts.append(len(head))
        return [self.ids[a:b] for a, b in pairwise(cuts)], self.ids[cuts[-1] :]

    def _block_ids(self, count: int) -> Ids:
        if self.history is None:
            return self.tokenizer.render(self.messages[:count], answer=False)
        return _follow_block(self.tokenizer, self.history, self.messages[:count], False)

    def _texts(self, head: Ids, at: int) -> str:
        alone, together = (self.tokenizer.decode(ids[at : at + 1]) for ids in (head, self.ids))
        return f"{alone!r} alone, {together!r} together"


def render(tokenizer: Tokenizer, messages: Sequence[Message]) -> Block:
    """Messages as a `Block`."""
    whole = tuple(messages)
    return Block(whole, ids_of(tokenizer.render(whole, answer=True)), tokenizer)


def render_following(tokenizer: Tokenizer, history: Sequence[Message], messages: Sequence[Message]) -> Block:
    """Messages behind a turn that was sampled and has ended, as a `Block`."""
    if not isinstance(tokenizer, ChatTokenizer):
        return render(tokenizer, messages)
    before, whole = tuple(history), tuple(messages)
    return Block(whole, _follow_block(tokenizer, before, whole, True), tokenizer, before)


def _follow_block(tokenizer: Tokenizer, history: tuple[Message, ...], messages: tuple[Message, ...], answer: bool) -> Ids:
    assert isinstance(tokenizer, ChatTokenizer)
    return ids_of(tokenizer.follow(history, messages, answer)[1:])


def forced_ids(tokenizer: Tokenizer, prefill: Prefill | None) -> Ids:
    """``[floor(share * n)]`` first ids of the prefill's ``n``; none without a prefill."""
    if prefill is None:
        return ids_of(())
    ids = tokenizer.encode(prefill.text)
    return ids_of(ids[: math.floor(prefill.share * len(ids) + 1e-9)])  # .29 * 100 is 28.999999999999996


def concatenate(*parts: Ids) -> Ids:
    """Ids behind one another, read-only."""
    out = np.concatenate(parts)
    out.setflags(write=False)
    return out


def check_prefix(parent: Ids, prefix: Ids, place: str) -> None:
    """Checks that ``prefix`` begins with its parent's very tokens.

    Raises:
        DataError: it does not; names ``place`` and the first token that differs.
    """
    at = _difference(parent, prefix)
    if at is not None:
        found = f"id {int(prefix[at])}" if at < len(prefix) else "its end"
        raise DataError(
            f"{place}: the prefix should go on from what was sampled, but token {at} is id {int(parent[at])} there and "
            f"{found} here"
        )


def _difference(head: Ids, whole: Ids) -> int | None:
    """The first position where ``whole`` does not begin with ``head``, or None."""
    shared = min(len(head), len(whole))
    unequal = np.flatnonzero(np.asarray(head)[:shared] != whole[:shared])
    if len(unequal):
        return int(unequal[0])
    return shared if len(head) > shared else None
