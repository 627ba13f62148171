"""The tokens of a conversation: what was shown is rendered once, what the policy sampled is never re-tokenised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from assay.core.errors import ConfigError
from assay.core.media import Media
from assay.core.protocols import Tokenizer
from assay.core.rollout import Call, Ids, ids_of
from assay.core.task import Message, TaskView, media_in
from assay.core.util.renamed import RenamedMembers
from assay.rollout.block import Block, check_prefix, concatenate, render, render_following
from assay.rollout.decode_text import text_of

__all__ = ["Conversation", "Turn"]


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

        def open_with(block: Block | None) -> Ids | None:
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
            score_prefix=open_with(score),
            privileged_prefix=open_with(privileged),
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

    def replace_messages(self, instead: Mapping[int, Message]) -> Conversation:
        """The conversation in which other messages stand for some of what the environment answered, by their indices in `turns`.

        What the policy said stays, in the ids that were sampled; what stands behind a replaced message moves up or back.

        Raises:
            ConfigError: an answer is in progress, an index is out of range, before the policy's first turn or one of its turns,
                or the chat template rewrites earlier turns.
        """
        whole, turns = self._whole(), list(self._whole()._turns)
        first = next((i for i, turn in enumerate(turns) if turn.message.role == "assistant"), len(turns))
        if self.cuts:
            raise ConfigError("Conversation.replace_messages changes whole messages, and an answer is in progress: use carry")
        for i in instead:
            if not first < i < len(turns) or turns[i].message.role == "assistant":
                raise ConfigError(
                    f"Conversation.replace_messages was given {i} for {len(turns)} turns, of which the policy's first is "
                    f"{first}; name answers of the environment behind it"
                )
        opener, at = whole._opener, first
        while at < len(turns):
            end = next((i for i in range(at, len(turns)) if turns[i].message.role == "assistant"), len(turns))
            if any(i in instead for i in range(at, end)):
                told = [instead.get(i, turns[i].told) for i in range(at, end)]
                pieces, behind = render_following(self._tokenizer, [turn.told for turn in turns[:at]], told).split()
                turns[at:end] = [Turn(m, m, ids) for m, ids in zip(told, pieces, strict=True)]
                opener = behind if end == len(turns) else opener
            at = end + 1
        made = replace(whole, _turns=tuple(turns), _opener=opener, _history=tuple(turn.told for turn in turns), _cut=[])
        prefix, every = concatenate(*(turn.ids for turn in turns), opener), list(range(len(turns)))
        return replace(
            made,
            prefix=prefix,
            start=len(prefix),
            score_prefix=made._instead(self.score, "score_messages", every),
            privileged_prefix=made._instead(self.privileged, "privileged messages", every),
            media=media_in(turn.told for turn in turns),
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
            score_prefix=self._prefix_with(self.score, ids),
            privileged_prefix=self._prefix_with(self.privileged, ids),
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

    def _prefix_with(self, opening: Block | None, ids: Ids) -> Ids | None:
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
