"""The tokens of a conversation: what was shown is rendered once, what the policy sampled is never re-tokenised."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from assay.core.errors import ConfigError, DataError
from assay.core.protocols import ChatTokenizer, ContextManager, Tokenizer
from assay.core.rollout import Call, Ids, ids_of
from assay.core.task import Message, Prefill
from assay.rollout.saying import said_text

__all__ = ["Block", "Conversation", "check_prefix", "followed", "forced_ids", "joined", "rendered"]


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
            head = self._written(count)
            at = _difference(head, self.ids)
            if at is not None:
                raise ConfigError(
                    f"the chat template is not append-only: {count} of {len(self.messages)} messages render to other ids "
                    f"alone than together, first at token {at} ({self._texts(head, at)}); use a template that writes each turn "
                    "independently, or KeepAll(), which drops no turns"
                )
            cuts.append(len(head))
        return [self.ids[a:b] for a, b in pairwise(cuts)], self.ids[cuts[-1] :]

    def _written(self, count: int) -> Ids:
        if self.history is None:
            return self.tokenizer.render(self.messages[:count], answer=False)
        return _behind(self.tokenizer, self.history, self.messages[:count], False)

    def _texts(self, head: Ids, at: int) -> str:
        alone, together = (self.tokenizer.decode(ids[at : at + 1]) for ids in (head, self.ids))
        return f"{alone!r} alone, {together!r} together"


def rendered(tokenizer: Tokenizer, messages: Sequence[Message]) -> Block:
    """Messages as a `Block`."""
    whole = tuple(messages)
    return Block(whole, ids_of(tokenizer.render(whole, answer=True)), tokenizer)


def followed(tokenizer: Tokenizer, history: Sequence[Message], messages: Sequence[Message]) -> Block:
    """Messages behind a turn that was sampled and has ended, as a `Block`."""
    if not isinstance(tokenizer, ChatTokenizer):
        return rendered(tokenizer, messages)
    before, whole = tuple(history), tuple(messages)
    return Block(whole, _behind(tokenizer, before, whole, True), tokenizer, before)


def _behind(tokenizer: Tokenizer, history: tuple[Message, ...], messages: tuple[Message, ...], answer: bool) -> Ids:
    assert isinstance(tokenizer, ChatTokenizer)
    return ids_of(tokenizer.follow(history, messages, answer)[1:])


def forced_ids(tokenizer: Tokenizer, prefill: Prefill | None) -> Ids:
    """``[floor(share * n)]`` first ids of the prefill's ``n``; none without a prefill."""
    if prefill is None:
        return ids_of(())
    ids = tokenizer.encode(prefill.text)
    return ids_of(ids[: math.floor(prefill.share * len(ids) + 1e-9)])  # .29 * 100 is 28.999999999999996


def joined(*parts: Ids) -> Ids:
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


class Conversation:
    """The working conversation of one rollout: turns with their ids, the prefix of the next call, and what it is learned under.

    Args:
        opening: the first messages.
        forced: forced first tokens of the first answer.
        score_opening: the messages to learn under instead; None for the same.
        privileged_opening: the messages that a privileged teacher reads instead; None for none.
    """

    __slots__ = (
        "_answered", "_forced", "_history", "_opener", "_opening", "_parts", "_privileged", "_score", "_turns", "prefix",
        "privileged_prefix", "score_prefix",
    )  # fmt: skip

    def __init__(self, opening: Block, forced: Ids, score_opening: Block | None, privileged_opening: Block | None = None) -> None:
        self._opening, self._score, self._privileged, self._forced = opening, score_opening, privileged_opening, forced
        self._turns: list[tuple[Message, Ids]] = []
        self._parts: list[Block | tuple[Message, Ids]] = []  # not yet cut into turns
        self._history: list[Message] = list(opening.messages)
        self._opener = forced
        self._answered = False
        self.prefix = joined(opening.ids, forced) if len(forced) else opening.ids
        self.score_prefix = None if score_opening is None else joined(score_opening.ids, forced)
        self.privileged_prefix = None if privileged_opening is None else joined(privileged_opening.ids, forced)

    @property
    def forced(self) -> Ids:
        """Forced first tokens of the answer that comes next."""
        return ids_of(()) if self._answered else self._forced

    def advance(self, call: Call, said: Ids, heard: Block) -> None:
        """Adds the policy's turn and what the environment answered.

        Args:
            call: the last call of the turn.
            said: its sampled ids over all calls of the turn, forced ones first. A turn that ended otherwise than by the
                tokenizer's end token gets that token in the next prefix, as context.
            heard: what came back.
        """
        if not self._answered:
            self._parts = [self._opening]
            self._answered = True
        whole = call.tokens
        end = ids_of([] if len(said) and said[-1] == heard.tokenizer.eos else [heard.tokenizer.eos])
        self._parts += [(Message("assistant", call.text), joined(said, end)), heard]
        self._history += [self._told(call, said), *heard.messages]
        self.prefix = joined(whole, end, heard.ids)
        self.score_prefix = self.privileged_prefix = None
        if heard.history is None:  # nobody else has looked whether the template is append-only
            self._cut()

    def hear(self, call: Call, said: Ids, messages: Sequence[Message]) -> None:
        """`advance` with messages that are still to be rendered."""
        self.advance(call, said, followed(self._opening.tokenizer, [*self._history, self._told(call, said)], messages))

    def _told(self, call: Call, said: Ids) -> Message:
        """The policy's turn as a template would be given it: with its thought."""
        return Message("assistant", said_text(self._opening.tokenizer, said, call.completion))

    def _cut(self) -> None:
        """Gives each message its ids."""
        for part in self._parts:
            if isinstance(part, Block):
                pieces, self._opener = part.split()
                self._turns += zip(part.messages, pieces, strict=True)
            else:
                self._turns.append((part[0], joined(self._opener, part[1])))
        self._parts = []

    def compact(self, manager: ContextManager, budget: int) -> None:
        """Drops the turns that ``manager`` does not keep; the prefix is then made of the kept turns' ids, as sampled.

        Args:
            manager: what to keep.
            budget: tokens that the prefix may have.

        Raises:
            ConfigError: the manager's indices are out of order or range, keep nothing, or break up an opening that is learned
                under other messages.
            DataError: all turns were kept, and yet the prefix differs from what was sampled.
        """
        self._cut()
        kept = list(manager.keep([(m, len(ids)) for m, ids in self._turns], budget))
        if not kept or kept != sorted(set(kept)) or kept[0] < 0 or kept[-1] >= len(self._turns):
            raise ConfigError(
                f"{manager!r}.keep returned {kept} for {len(self._turns)} turns; return at least one index, ascending, without "
                "repeats"
            )
        prefix = joined(*(self._turns[i][1] for i in kept), self._opener)
        if len(kept) == len(self._turns):
            check_prefix(self.prefix, prefix, "conversation with all turns kept")
            return
        self.score_prefix = self._instead(self._score, "score_messages", manager, kept)
        self.privileged_prefix = self._instead(self._privileged, "privileged messages", manager, kept)
        self.prefix = prefix
        self._turns = [self._turns[i] for i in kept]
        self._history = [self._history[i] for i in kept]

    def _instead(self, opening: Block | None, what: str, manager: ContextManager, kept: list[int]) -> Ids | None:
        """The prefix with another opening."""
        if opening is None:
            return None
        count = len(self._opening.messages)
        if kept[:count] != list(range(count)):
            raise ConfigError(
                f"{manager!r} drops opening messages of a context with {what}, so what these stand for is open; keep the whole "
                "opening"
            )
        pieces, _ = opening.split()
        return joined(*pieces, *(self._turns[i][1] for i in kept[count:]), self._opener)


def _difference(head: Ids, whole: Ids) -> int | None:
    """The first position where ``whole`` does not begin with ``head``, or None."""
    shared = min(len(head), len(whole))
    unequal = np.flatnonzero(np.asarray(head)[:shared] != whole[:shared])
    if len(unequal):
        return int(unequal[0])
    return shared if len(head) > shared else None
