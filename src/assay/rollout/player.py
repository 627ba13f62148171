"""Contexts to rollouts: one engine, an environment per rollout, all rollouts at once on one event loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import isawaitable
from itertools import count
from typing import Any, Literal

from assay.core.errors import ConfigError, DataError, a_kind
from assay.core.media import check_media_seen
from assay.core.protocols import (
    ContextManager,
    Engine,
    EngineOfMany,
    Obs,
    Request,
    Step,
    TaskSource,
    Tokenizer,
    Tool,
)
from assay.core.ragged import SUPPORT
from assay.core.rollout import ASIDE, Call, Completion, Ids, Rollout, Sampling, Stop, ids_of
from assay.core.sample import check_annealed
from assay.core.score import Fault
from assay.core.seeds import derive, derive_each
from assay.core.task import Context, Message, media_in
from assay.core.util.event_loop import gather_or_cancel
from assay.rollout.block import concatenate, forced_ids
from assay.rollout.context import KeepAll
from assay.rollout.conversation import Conversation
from assay.rollout.decode_text import AnswerReader, end_ids
from assay.rollout.environments import EnvironmentFailure, ask_environment, closed_at_end, open_environment
from assay.rollout.roles import check_alone
from assay.rollout.rollout_state import Divergence, Openings, RolloutState, blame_engine, shared_calls, with_doubt
from assay.rollout.tool_source import ToolSource

__all__ = ["Player"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Player:
    """Plays contexts to their end with one policy; implements `assay.core.protocols.Sampler`.

    A task without environment is one call; an engine that can (`EngineOfMany`) is asked for all of these together, where no task
    has an environment. With one, calls and environment steps alternate until the environment is done, the
    policy is cut off, or ``max_turns`` turns are used up (stop ``length``). The next prefix is the last one, what the policy
    sampled, and what the environment answered; nothing is ever re-tokenised. Noise positions count on over the calls of a
    rollout, so no uniform is used twice.

    An environment that raises, or gives no answer within ``deadline``, is replaced once by a fresh one, which hears the recorded
    actions again; nothing is sampled anew. If it fails again the rollout ends with stop ``error`` and an ``infra`` fault. Only
    where it twice gave no answer to the very same action is the fault the ``policy``'s, as long as environments answer at all.
    The deadline cancels what the environment awaits; one that computes or blocks without awaiting stops the whole event loop,
    and nothing can interrupt it. Environments must await; foreign code belongs in a sandbox.

    Attributes:
        engine: draws tokens.
        tokenizer: renders messages; decodes what was sampled, for environments and verifiers, which read what stands behind
            the thought where the tokenizer names thinking tags.
        source: gives the environments.
        sampling: how tokens are drawn; without ``stop_ids`` an answer ends with the tokenizer's end tokens.
        seed: all sampling noise derives from it and the rollout's id.
        max_turns: assistant turns per rollout.
        manager: what of a conversation the policy goes on with.
        deadline: seconds for one start or step of an environment, the calls of tools in a turn together among them.
        tools: that the policy may call beside what the tasks' environments answer.
        pictures: with ``placeholder`` the engine reads each picture's placeholder as text (`assay.core.Call.placeholders`).

    Raises:
        ConfigError: ``max_turns`` below 1, a deadline that is not positive, or two tools of one name.
    """

    engine: Engine
    tokenizer: Tokenizer
    source: TaskSource
    sampling: Sampling
    seed: int
    max_turns: int = 8
    manager: ContextManager = field(default_factory=KeepAll)
    deadline: float = 30.0
    tools: Sequence[Tool] = ()
    pictures: Literal["refuse", "placeholder"] = "refuse"
    _world_source: TaskSource = field(init=False, repr=False)
    _context_length: int = field(init=False, repr=False)
    _many: EngineOfMany | None = field(init=False, repr=False)
    _reader: AnswerReader = field(init=False, repr=False)
    _keeps: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.max_turns < 1:
            raise ConfigError(f"Player.max_turns={self.max_turns}; use at least 1")
        if not self.deadline > 0:
            raise ConfigError(f"Player.deadline={self.deadline}; it is in seconds and must be above 0")
        if not self.sampling.stop_ids:
            object.__setattr__(self, "sampling", replace(self.sampling, stop_ids=end_ids(self.tokenizer)))
        source = ToolSource(self.source, self.tools, self.tokenizer) if self.tools else self.source
        object.__setattr__(self, "_world_source", source)
        object.__setattr__(self, "_reader", AnswerReader.of(self.tokenizer))
        object.__setattr__(self, "_keeps", isinstance(self.manager, KeepAll))
        object.__setattr__(self, "_context_length", self.engine.info().context)
        object.__setattr__(self, "_many", self.engine if isinstance(self.engine, EngineOfMany) else None)

    async def collect(self, contexts: Sequence[Context], n: int, first: int = 0) -> list[Rollout]:
        """``n`` rollouts of each context, context by context, with ids ``KEY/0 .. KEY/n-1``, or from number ``first`` on.

        Where an environment names actors, each of ``n`` episodes gives one rollout per actor, ``KEY/0/ROLE`` in the group
        ``GROUP@ROLE``, in the order in which they first acted.

        An environment that fails twice ends its own rollout with stop ``error``; the others go on.

        Raises:
            ConfigError: ``n`` below 1, an opening that leaves no room for an answer, or a snapshot that nobody can start from.
            DataError: two contexts with one key.
            EngineError: generation failed; all rollouts are ended.
        """
        plays = self._plays(contexts, n, first)
        if self._many is not None and self._keeps and all(play.is_one_call(self._world_source) for play in plays[::n]):
            return await self._end_with_call(plays, self._many)
        return with_doubt(plays, [r for episode in await gather_or_cancel([self._play(play) for play in plays]) for r in episode])

    async def collect_each(
        self, contexts: Sequence[Context], n: int, ended: Callable[[Sequence[Rollout]], None]
    ) -> list[Rollout]:
        """`collect`, the same rollouts; ``ended`` is told of each context's, in their order, when its last one has ended.

        Raises:
            ConfigError, DataError, EngineError: as of `collect`.
        """
        plays = self._plays(contexts, n)
        episodes: list[list[Rollout]] = [[] for _ in plays]
        left = [n] * len(contexts)

        async def play(at: int) -> list[Rollout]:
            episodes[at], context = await self._play(plays[at]), at // n
            left[context] -= 1
            if not left[context]:
                ended([r for episode in episodes[context * n : (context + 1) * n] for r in episode])
            return episodes[at]

        return with_doubt(
            plays, [r for episode in await gather_or_cancel([play(at) for at in range(len(plays))]) for r in episode]
        )

    def _plays(self, contexts: Sequence[Context], n: int, first: int = 0) -> list[RolloutState]:
        """The rollouts to be, context by context."""
        if n < 1:
            raise ConfigError(f"collect was asked for n={n} rollouts per context; use at least 1")
        keys = [c.key for c in contexts]
        if len(set(keys)) < len(keys):
            twice = sorted({k for k in keys if keys.count(k) > 1})
            raise DataError(f"contexts share a key, so their rollouts would share ids and noise: {twice}")
        openings, played = Openings(self.tokenizer), self._world_source
        if isinstance(played, ToolSource):
            contexts = [played.declare_tools(context) for context in contexts]
        return [
            RolloutState(f"{c.key}/{i}", c, seed, openings, [])
            for c in contexts
            for i, seed in list(enumerate(derive_each("rollout", self.seed, c.key, first + n)))[first:]
        ]

    async def branch(self, rollout: Rollout, calls: int, number: int, token: int = 0) -> Rollout:
        """Another rollout of the same context, number ``number``, that shares the beginning of this one.

        The environment hears the shared actions again. What is shared carries no loss in the branch (`Call.shared`), and stands
        behind all that the branch samples with noise of its own.

        Args:
            rollout: what to branch off.
            calls: its first calls that are shared.
            number: of the branch among the rollouts of the context.
            token: sampled tokens of the next call that are shared too.

        Raises:
            DataError: the rollout has no such calls or tokens, or would be shared as a whole.
            EngineError: generation failed.
        """
        check_alone(rollout)
        shared = shared_calls(rollout, calls, token, self._reader)
        context = rollout.context
        seed = derive("rollout", self.seed, context.key, number)
        (branch,) = await self._play(RolloutState(f"{context.key}/{number}", context, seed, Openings(self.tokenizer), shared))
        return branch

    async def _end_with_call(self, plays: Sequence[RolloutState], engine: EngineOfMany) -> list[Rollout]:
        """Rollouts that one call ends."""
        talks: dict[str, Conversation] = {}  # of a context; nobody goes on with it
        for play in plays:
            key = play.context.key
            if key not in talks:
                talks[key] = self._converse(play, Obs())
                self._check_context(play.context, len(talks[key].prefix))
        asked = [(play, talks[play.context.key]) for play in plays]
        for play, talk in asked:
            play.media = talk.media
        requests = [self._request(play, talk.prefix, talk.start, self.sampling) for play, talk in asked]
        with blame_engine(requests):
            completions = await engine.generate_all(requests)
        for (play, talk), completion in zip(asked, completions, strict=True):
            play.add(self._read(play, talk.prefix, talk.start, talk.answer_ids, completion, talk))
        return [rollout for play in plays for rollout in play.end_rollout(play.calls[-1].completion.stop)]

    # ---- one rollout ----------------------------------------------------------------------------------------------------

    async def _play(self, play: RolloutState) -> list[Rollout]:
        """A rollout, of each actor where there are several; once more with the calls so far when its environment breaks."""
        try:
            return await self._sitting(play)
        except Divergence as failure:
            return play.fail_rollout(Fault.INFRA, str(failure))
        except EnvironmentFailure as failure:
            first = failure
        play.begin_again()
        try:
            return await self._sitting(play)
        except Divergence as failure:
            return play.fail_rollout(Fault.INFRA, f"{first}; {failure}")
        except EnvironmentFailure as second:
            said = second.turn > 0 and (first.turn, first.hung, second.hung) == (second.turn, True, True)
            error = f"{second}, twice" if str(first) == str(second) else f"{first}; played again, {second}"
            return play.fail_rollout(Fault.POLICY if said else Fault.INFRA, error)

    async def _sitting(self, play: RolloutState) -> list[Rollout]:
        """One environment from its start until the rollout ends."""
        world, shown = await open_environment(partial(play.environment, self._world_source), play.context, self.deadline)
        spoken: dict[str, tuple[Conversation, Call, Ids]] = {}  # each actor's last turn
        async with closed_at_end(world):
            for turn in count(1):
                play.enter(shown.actor)
                if play.turns[shown.actor] > min(self.max_turns, play.context.max_turns or self.max_turns):
                    return play.end_rollout(Stop.LENGTH, over=True)
                talk = await self._listen(play, spoken.get(shown.actor), shown)
                if play.interrupted or talk.ended:
                    return play.end_rollout(Stop.PARTIAL if play.interrupted else Stop.LENGTH)
                talk, said, stop = await self._turn(play, talk)
                if world is None or stop is not Stop.DONE:
                    return play.end_rollout(stop)
                step = await ask_environment(partial(world.step, play.calls[-1].text), Step, turn, self.deadline)
                play.observe_step(step)
                if step.done:
                    return play.end_rollout(Stop.DONE)
                spoken[shown.actor], shown = (talk, play.calls[-1], said), step.obs
            raise AssertionError("turns are counted without end")

    async def _listen(self, play: RolloutState, spoken: tuple[Conversation, Call, Ids] | None, shown: Obs) -> Conversation:
        """The conversation in which an actor acts next: its opening, or behind its last turn."""
        if spoken is not None:
            talk = spoken[0].hear(spoken[1], spoken[2], shown.messages)
            return await self._rewritten(play, talk) or talk
        talk = self._converse(play, shown)
        if not play.recorded:
            self._check_context(play.context, len(talk.prefix))
        return talk

    async def _turn(self, play: RolloutState, talk: Conversation) -> tuple[Conversation, Ids, Stop]:
        """One assistant turn: a call, and further ones as long as the context manager goes on with an answer that was cut off.

        Returns:
            The conversation that the last call stands in, the turn's ids, forced ones first, and why it ended.
        """
        while True:
            calls, play.media = len(play.calls), talk.media
            said, stop = await self._sample(play, talk.prefix, talk.start, talk.answer_ids, talk.allowed, talk)
            if stop is not Stop.LENGTH or len(play.calls) == calls:
                return talk, said, stop
            changed = await self._rewritten(play, talk.continue_answer(play.calls[-1], said))
            if play.interrupted:
                return talk, said, Stop.PARTIAL
            if changed is None or changed.ended:
                return talk, said, stop
            talk = changed

    async def _rewritten(self, play: RolloutState, talk: Conversation) -> Conversation | None:
        """What the context manager makes of a conversation; None for the same."""
        if self._keeps:
            return None

        async def ask(conversation: Any, messages: Sequence[Message], limit: int | None = None) -> Call | None:
            prefix, calls = conversation.prefix_for(messages), len(play.calls)
            play.media = conversation.media + media_in(messages)
            _, stop = await self._sample(play, prefix, len(prefix), ids_of(()), limit or self.sampling.max_new_tokens, None)
            play.interrupted = stop is Stop.PARTIAL
            return play.calls[-1] if len(play.calls) > calls else None

        before = len(play.calls)
        answer: Any = self.manager.rewrite(talk, ask)
        if not isawaitable(answer):
            raise ConfigError(f"{self.manager!r}.rewrite is no coroutine; write 'async def rewrite(self, conversation, ask)'")
        found: Any = await answer
        if found is None:
            return None
        if not isinstance(found, Conversation):
            raise ConfigError(f"{self.manager!r}.rewrite returned {a_kind(found)}; return what the conversation's methods give")
        if len(play.calls) > before:
            play.parents[play.actor] = len(play.calls) - 1
        return replace(found, rewrites=talk.rewrites + 1)

    async def _sample(
        self, play: RolloutState, prefix: Ids, start: int, said: Ids, limit: int, talk: Conversation | None
    ) -> tuple[Ids, Stop]:
        """One call, after the recorded ones that were cut off.

        Args:
            play: the rollout.
            prefix: ``[P]`` what the call goes on from.
            start: where its answer begins in ``prefix``.
            said: the answer's ids so far.
            limit: most tokens sampled.
            talk: the conversation that it stands in; None for an aside.

        Returns:
            The answer's ids, and why it ended.
        """
        new, first = 0, talk
        while True:
            left = min(limit - new, self._context_length - len(prefix))
            if left < 1:
                return said, Stop.LENGTH
            replayed = bool(play.recorded)
            call = play.replay(prefix) if replayed else await self._call(play, prefix, start, said, left, first, talk is None)
            play.add(call)
            new += len(call.completion.ids)
            said = concatenate(said, call.completion.ids)
            if call.completion.stop is not Stop.PARTIAL or not replayed:
                return said, call.completion.stop
            prefix, first = call.tokens, None

    async def _call(
        self, play: RolloutState, prefix: Ids, start: int, said: Ids, left: int, first: Conversation | None, aside: bool
    ) -> Call:
        sampling = self.sampling if left == self.sampling.max_new_tokens else replace(self.sampling, max_new_tokens=left)
        request = self._request(play, prefix, start, sampling)
        with blame_engine([request]):
            completion = await self.engine.generate(request)
        call = self._read(play, prefix, start, said, completion, first)
        return replace(call, role=ASIDE) if aside else call if not play.actor else replace(call, role=play.actor)

    def _request(self, play: RolloutState, prefix: Ids, start: int, sampling: Sampling) -> Request:
        shown = () if self.pictures == "placeholder" else play.media
        if shown:
            who = type(self.engine).__name__
            check_media_seen(shown, self.engine.info().media, f"context {play.context.key!r}", f"the engine {who}")
        return Request(
            id=f"{play.id}#{len(play.calls)}",
            prompt=prefix,
            seed=play.seed,
            sampling=sampling,
            first=play.sampled,
            prefix_tokens=len(prefix) - start,
            media=shown,
        )

    def _read(
        self, play: RolloutState, prefix: Ids, start: int, said: Ids, completion: Completion, first: Conversation | None
    ) -> Call:
        """A call; ``first`` is the conversation whose answer it begins."""
        if completion.sampling.keep_support and SUPPORT not in completion.columns:
            raise ConfigError(
                f"{type(self.engine).__name__} was asked for the ids that each token is drawn from, and tells none "
                "(Sampling.keep_support); use an engine that does (engine=Auto()), or an objective that corrects for truncation"
            )
        check_annealed(completion, type(self.engine).__name__)
        turn = concatenate(said, completion.ids) if len(said) else completion.ids
        thought, text = self._reader.read(prefix[:start], turn, completion)
        return Call(
            id=len(play.calls),
            parent=play.parents.get(play.actor),
            prefix=prefix,
            completion=completion,
            text=text,
            thought=thought,
            media=play.media,
            placeholders=bool(play.media) and self.pictures == "placeholder",
            score_prefix=first.score_prefix if first else None,
            privileged_prefix=first.privileged_prefix if first else None,
            forced=len(first.answer_ids) if first and not first.cuts else 0,
        )

    def _converse(self, play: RolloutState, shown: Obs) -> Conversation:
        context, blocks = play.context, play.openings
        score, privileged = (
            None if instead is None else blocks.block(instead + shown.messages)
            for instead in (context.score_messages, context.privileged)
        )
        limit = self.sampling.max_new_tokens
        return Conversation.begin(
            context.task,
            blocks.block(context.messages + shown.messages),
            forced_ids(blocks.tokenizer, context.prefill),
            score,
            privileged,
            limit=limit,
            budget=self._context_length - limit,
        )

    def _check_context(self, context: Context, prompt: int) -> None:
        if prompt + self.sampling.max_new_tokens > self._context_length:
            raise ConfigError(
                f"context {context.key!r} opens with {prompt} tokens; with sampling.max_new_tokens="
                f"{self.sampling.max_new_tokens} that exceeds the engine's context of {self._context_length}: shorten the "
                "prompt, lower max_new_tokens, or use a model with more positions"
            )
