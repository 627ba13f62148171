"""The tokens of a conversation: what was shown is rendered once, what the policy sampled is never re-tokenised."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np

from assay.core.errors import ConfigError, DataError
from assay.core.media import Media
from assay.core.protocols import ChatTokenizer, Tokenizer
from assay.core.rollout import Call, Ids, ids_of
from assay.core.task import Message, Prefill, TaskView, media_in
from assay.core.util.renamed import RenamedMembers
from assay.rollout.decode_text import text_of

__all__ = ["Block", "Conversation", "Turn", "check_prefix", "concatenate", "forced_ids", "render", "render_following"]


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


def render(tokenizer: Tokenizer, messages: Sequence[Message]) -> Block:
    """Messages as a `Block`."""
    whole = tuple(messages)
    return Block(whole, ids_of(tokenizer.render(whole, answer=True)), tokenizer)


def render_following(tokenizer: Tokenizer, history: Sequence[Message], messages: Sequence[Message]) -> Block:
    """Messages behind a turn that was sampled and has ended, as a `Block`."""
    if not isinstance(tokenizer, ChatTokenizer):
        return render(tokenizer, messages)
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


_NONE = ids_of(())


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """One message with its ids.

    Attributes:
        message: what a context manager reads.
        told: the same as a chat template is given it: an assistant's turn with its thought.
        ids: ``[T]`` as they stand in the prefix.
    """

    message: Message
    told: Message
    ids: Ids


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Conversation(RenamedMembers):
    """What the policy goes on with in one rollout; implements `assay.core.protocols.Conversation`.

    A value: each method gives another one, and none of them tokenises what was sampled.

    Attributes:
        task: what is worked on.
        opening: the first messages.
        score, privileged: the messages to learn under instead, and those that a privileged teacher reads; None for the same.
        prefix: ``[P]`` ids of the next call.
        start: where in ``prefix`` the answer begins; forced or carried ids stand behind it.
        answer_ids: ``[S]`` ids of the answer so far, forced ones first.
        limit, allowed: most tokens of a call that begins an answer, and of the next call.
        budget: tokens that the prefix may have for a call of ``limit`` to fit into the engine's context.
        cuts, rewrites: how often the present answer was cut off (0 between two turns), and a context manager changed anything.
        ended: the rollout ends here, with stop ``length``.
        media: pictures that ``prefix`` shows, in order.
        score_prefix, privileged_prefix: what stands for ``prefix`` there; None for the same.
    """

    renamed_members: ClassVar[Mapping[str, str]] = {"begun": "begin", "cut_off": "continue_answer", "said": "answer_ids"}

    task: TaskView
    opening: Block
    score: Block | None = None
    privileged: Block | None = None
    prefix: Ids
    start: int
    answer_ids: Ids = field(default_factory=lambda: _NONE)
    limit: int
    allowed: int
    budget: int
    cuts: int = 0
    rewrites: int = 0
    ended: bool = False
    media: tuple[Media, ...] = ()
    score_prefix: Ids | None = None
    privileged_prefix: Ids | None = None
    _history: tuple[Message, ...]  # without an answer in progress
    _parts: tuple[Block | Turn, ...]  # behind one another, not yet cut into turns
    _answer: Message | None = None  # as far as it came before it was cut off
    _turns: tuple[Turn, ...] = ()
    _opener: Ids = field(default_factory=lambda: _NONE)  # what stands behind the turns
    _cut: list[Conversation] = field(default_factory=list["Conversation"])  # the same, cut into turns

    @classmethod
    def begin(
        cls,
        task: TaskView,
        opening: Block,
        forced: Ids = _NONE,
        score: Block | None = None,
        privileged: Block | None = None,
        *,
        limit: int = 1,
        budget: int = 0,
    ) -> Conversation:
        """A conversation whose first answer begins with ``forced`` ids."""

        def opened(block: Block | None) -> Ids | None:
            return None if block is None else concatenate(block.ids, forced) if len(forced) else block.ids

        return cls(
            task=task,
            opening=opening,
            score=score,
            privileged=privileged,
            prefix=concatenate(opening.ids, forced) if len(forced) else opening.ids,
            start=len(opening.ids),
            answer_ids=forced,
            limit=limit,
            allowed=limit,
            budget=budget,
            score_prefix=opened(score),
            privileged_prefix=opened(privileged),
            media=media_in(opening.messages),
            _history=opening.messages,
            _parts=(opening,),
        )

    # ---- what was said and heard ------------------------------------------------------------------------------------

    def hear(self, call: Call, said: Ids, messages: Sequence[Message]) -> Conversation:
        """`advance` with messages that are still to be rendered."""
        return self.advance(call, said, render_following(self._tokenizer, [*self._history, self._turn_of(call, said)], messages))

    def advance(self, call: Call, said: Ids, heard: Block) -> Conversation:
        """The conversation behind the policy's turn and what the environment answered.

        Args:
            call: the last call of the turn.
            said: its sampled ids over all calls of the turn, forced ones first. A turn that ended otherwise than by the
                tokenizer's end token gets that token in the next prefix, as context.
            heard: what came back.
        """
        eos = heard.tokenizer.eos
        end = ids_of([] if len(said) and said[-1] == eos else [eos])
        told, whole = self._turn_of(call, said), call.tokens
        prefix = concatenate(whole, end, heard.ids)
        turn = Turn(Message("assistant", call.text), told, concatenate(whole[self.start :], end))
        made = replace(
            self,
            prefix=prefix,
            start=len(prefix),
            answer_ids=_NONE,
            allowed=self.limit,
            cuts=0,
            score_prefix=None,
            privileged_prefix=None,
            media=self.media + media_in(heard.messages),
            _history=(*self._history, told, *heard.messages),
            _parts=(*self._parts, turn, heard),
            _cut=[],
        )
        if heard.history is None:  # nobody else has looked whether the template is append-only
            return made._whole()
        return made

    def continue_answer(self, call: Call, said: Ids) -> Conversation:
        """The conversation as it stands where an answer reached its limit; arguments as in `advance`."""
        return replace(
            self,
            prefix=call.tokens,
            answer_ids=said,
            cuts=self.cuts + 1,
            score_prefix=None,
            privileged_prefix=None,
            _answer=self._turn_of(call, said),
            _cut=[],
        )

    def _turn_of(self, call: Call, said: Ids) -> Message:
        """The policy's turn as a template would be given it: with its thought."""
        return Message("assistant", text_of(self._tokenizer, said, call.completion))

    @property
    def _tokenizer(self) -> Tokenizer:
        return self.opening.tokenizer

    # ---- what a context manager may do --------------------------------------------------------------------------------

    def turns(self) -> tuple[tuple[Message, int], ...]:
        """Messages with their tokens, in order, the opening first; the answer in progress is none of them.

        Raises:
            ConfigError: the chat template rewrites earlier turns.
        """
        return tuple((turn.message, len(turn.ids)) for turn in self._whole()._turns)

    def keep(self, indices: Sequence[int]) -> Conversation:
        """The conversation with some of its `turns` alone; their ids stand in the prefix as they were sampled.

        Raises:
            ConfigError: an answer is in progress, the indices are out of order or range, keep nothing, or break up an opening
                that is learned under other messages.
            DataError: all turns were kept, and yet the prefix differs from what was sampled.
        """
        whole, kept = self._whole(), list(indices)
        turns = whole._turns
        if self.cuts:
            raise ConfigError("Conversation.keep drops whole turns, and an answer is in progress: use carry or restart")
        if not kept or kept != sorted(set(kept)) or kept[0] < 0 or kept[-1] >= len(turns):
            raise ConfigError(
                f"Conversation.keep was given {kept} for {len(turns)} turns; give at least one index, ascending, without repeats"
            )
        prefix = concatenate(*(turns[i].ids for i in kept), whole._opener)
        if len(kept) == len(turns):
            check_prefix(self.prefix, prefix, "conversation with all turns kept")
            return whole
        return replace(
            whole,
            prefix=prefix,
            start=len(prefix),
            score_prefix=whole._instead(self.score, "score_messages", kept),
            privileged_prefix=whole._instead(self.privileged, "privileged messages", kept),
            media=media_in(turns[i].told for i in kept),
            _turns=tuple(turns[i] for i in kept),
            _history=tuple(self._history[i] for i in kept),
            _cut=[],
        )

    def restart(self, messages: Sequence[Message]) -> Conversation:
        """The opening, then ``messages`` alone; an answer in progress is given up, and another one begins."""

        def block(first: Block) -> Block:
            return render(self._tokenizer, [*first.messages, *messages])

        opening = block(self.opening)
        return replace(
            self,
            prefix=opening.ids,
            start=len(opening.ids),
            answer_ids=_NONE,
            allowed=self.limit,
            cuts=0,
            score_prefix=None if self.score is None else block(self.score).ids,
            privileged_prefix=None if self.privileged is None else block(self.privileged).ids,
            media=media_in(opening.messages),
            _history=opening.messages,
            _parts=(opening,),
            _turns=(),
            _opener=_NONE,
            _cut=[],
        )

    def carry(self, ids: Ids, limit: int) -> Conversation:
        """The answer in progress goes on behind ``ids`` in place of all that was said of it.

        Args:
            ids: ``[C]`` context, of which nothing is learned again.
            limit: most tokens of the next call.

        Raises:
            ConfigError: no answer is in progress, or a limit below 1.
        """
        if not self.cuts or limit < 1:
            raise ConfigError(
                f"Conversation.carry(limit={limit}) with cuts={self.cuts}: it goes on with an answer that was cut off, by 1 "
                "token at least"
            )
        return replace(
            self,
            prefix=concatenate(self.prefix[: self.start], ids),
            allowed=limit,
            score_prefix=self._behind(self.score, ids),
            privileged_prefix=self._behind(self.privileged, ids),
            _cut=[],
        )

    def end(self) -> Conversation:
        """The rollout ends here, with stop ``length``."""
        return replace(self, ended=True, _cut=[])

    def prefix_for(self, messages: Sequence[Message]) -> Ids:
        """``[P]`` the prefix of a call that answers ``messages`` here, behind an answer in progress where there is one."""
        tokenizer = self._tokenizer
        if self.cuts and self._answer is not None:
            end = ids_of([tokenizer.eos])
            return concatenate(self.prefix, end, render_following(tokenizer, [*self._history, self._answer], messages).ids)
        if self._parts and isinstance(last := self._parts[-1], Block):
            before, shown, size = last.history, last.messages, len(last.ids)
        else:
            spoken = max((i for i, turn in enumerate(self._turns) if turn.message.role == "assistant"), default=-1)
            before = tuple(turn.told for turn in self._turns[: spoken + 1]) or None
            shown = tuple(turn.told for turn in self._turns[spoken + 1 :])
            size = sum(len(turn.ids) for turn in self._turns[spoken + 1 :]) + len(self._opener)
        more = (*shown, *messages)
        block = render(tokenizer, more) if before is None else render_following(tokenizer, before, more)
        return concatenate(self.prefix[: len(self.prefix) - size], block.ids)

    # ---- pieces -------------------------------------------------------------------------------------------------------

    def _whole(self) -> Conversation:
        """The same, with ids of its own for each message."""
        if not self._parts:
            return self
        if not self._cut:
            turns, opener = list(self._turns), self._opener
            for part in self._parts:
                if isinstance(part, Block):
                    pieces, opener = part.split()
                    turns += (Turn(m, m, ids) for m, ids in zip(part.messages, pieces, strict=True))
                else:
                    turns.append(replace(part, ids=concatenate(opener, part.ids)))
            self._cut.append(replace(self, _turns=tuple(turns), _opener=opener, _parts=(), _cut=[]))
        return self._cut[0]

    def _behind(self, opening: Block | None, ids: Ids) -> Ids | None:
        """The prefix with another opening, and ``ids`` as the answer so far."""
        if opening is None:
            return None
        if self._parts == (self.opening,):
            return concatenate(opening.ids, ids)
        whole = self._whole()
        instead = whole._instead(opening, "score_messages", list(range(len(whole._turns))))
        assert instead is not None
        return concatenate(instead, ids)

    def _instead(self, opening: Block | None, what: str, kept: list[int]) -> Ids | None:
        """The prefix with another opening."""
        if opening is None:
            return None
        count = len(self.opening.messages)
        if kept[:count] != list(range(count)):
            raise ConfigError(
                f"Conversation.keep({kept}) drops opening messages of a context with {what}, so what these stand for is open; "
                "keep the whole opening"
            )
        pieces, _ = opening.split()
        return concatenate(*pieces, *(self._turns[i].ids for i in kept[count:]), self._opener)


def _difference(head: Ids, whole: Ids) -> int | None:
    """The first position where ``whole`` does not begin with ``head``, or None."""
    shared = min(len(head), len(whole))
    unequal = np.flatnonzero(np.asarray(head)[:shared] != whole[:shared])
    if len(unequal):
        return int(unequal[0])
    return shared if len(head) > shared else None
