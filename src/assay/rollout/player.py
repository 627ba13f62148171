"""Contexts to rollouts: one engine, an environment per attempt, all attempts at once on one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from assay.core.columns import TokenColumn
from assay.core.errors import AssayError, ConfigError, DataError, EngineError, a_kind
from assay.core.protocols import (
    ContextManager,
    Engine,
    EngineOfMany,
    Environment,
    Obs,
    Request,
    Step,
    TaskSource,
    Tokenizer,
)
from assay.core.rollout import ASIDE, Call, Completion, Ids, Rollout, Sampling, Stop, ids_of
from assay.core.score import Fault
from assay.core.seeds import derive, derive_each
from assay.core.task import Context, Message
from assay.rollout.context import KeepAll
from assay.rollout.conversation import Block, Conversation, check_prefix, forced_ids, joined, rendered
from assay.rollout.saying import Reader, end_ids
from assay.rollout.worlds import Broken, answered, opened, sentence

__all__ = ["Player"]

_HANGS = 3
"""So many different actions that hang, while no environment answers anything, mean that those are broken and not the actions."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Player:
    """Plays contexts to their end with one policy; implements `assay.core.protocols.Sampler`.

    A task without environment is one call; an engine that can (`EngineOfMany`) is asked for all of these together, where no task
    has an environment. With one, calls and environment steps alternate until the environment is done, the
    policy is cut off, or ``max_turns`` turns are used up (stop ``length``). The next prefix is the last one, what the policy
    sampled, and what the environment answered; nothing is ever re-tokenised. Noise positions count on over the calls of a
    rollout, so no uniform is used twice.

    An environment that raises, or gives no answer within ``deadline``, is replaced once by a fresh one, which hears the recorded
    actions again; nothing is sampled anew. If it fails again the attempt ends with stop ``error`` and an ``infra`` fault. Only
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
        deadline: seconds for one start or step of an environment.

    Raises:
        ConfigError: ``max_turns`` below 1, or a deadline that is not positive.
    """

    engine: Engine
    tokenizer: Tokenizer
    source: TaskSource
    sampling: Sampling
    seed: int
    max_turns: int = 8
    manager: ContextManager = field(default_factory=KeepAll)
    deadline: float = 30.0
    _room: int = field(init=False, repr=False)
    _many: EngineOfMany | None = field(init=False, repr=False)
    _reader: Reader = field(init=False, repr=False)
    _keeps: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.max_turns < 1:
            raise ConfigError(f"Player.max_turns={self.max_turns}; use at least 1")
        if not self.deadline > 0:
            raise ConfigError(f"Player.deadline={self.deadline}; it is in seconds and must be above 0")
        if not self.sampling.stop_ids:
            object.__setattr__(self, "sampling", replace(self.sampling, stop_ids=end_ids(self.tokenizer)))
        object.__setattr__(self, "_reader", Reader.of(self.tokenizer))
        object.__setattr__(self, "_keeps", isinstance(self.manager, KeepAll))
        object.__setattr__(self, "_room", self.engine.info().context)
        object.__setattr__(self, "_many", self.engine if isinstance(self.engine, EngineOfMany) else None)

    async def collect(self, contexts: Sequence[Context], n: int, first: int = 0) -> list[Rollout]:
        """``n`` rollouts of each context, context by context, with ids ``KEY/0 .. KEY/n-1``, or from number ``first`` on.

        An environment that fails twice ends its own rollout with stop ``error``; the others go on.

        Raises:
            ConfigError: ``n`` below 1, an opening that leaves no room for an answer, or a snapshot that nobody can start from.
            DataError: two contexts with one key.
            EngineError: generation failed; all attempts are ended.
        """
        if n < 1:
            raise ConfigError(f"collect was asked for n={n} rollouts per context; use at least 1")
        keys = [c.key for c in contexts]
        if len(set(keys)) < len(keys):
            raise DataError(f"contexts share a key, so their rollouts would share ids and noise: {_repeated(keys)}")
        openings = _Openings(self.tokenizer)
        plays = [
            _Play(f"{c.key}/{i}", c, seed, openings, [])
            for c in contexts
            for i, seed in list(enumerate(derive_each("rollout", self.seed, c.key, first + n)))[first:]
        ]
        if self._many is not None and self._keeps and all(play.is_one_call(self.source) for play in plays[::n]):
            return await self._answered(plays, self._many)
        return _doubted(plays, await _all([self._play(play) for play in plays]))

    async def resume(self, rollout: Rollout) -> Rollout:
        """Goes on with a rollout that was cut off as ``partial``.

        The new call's prefix is the tokens so far; its noise goes on where it stopped. The environment, if any, is played again
        from its start with the recorded actions; one that answers differently this time ends the rollout with stop ``error``.

        Raises:
            DataError: the rollout is not partial.
            EngineError: generation failed.
        """
        if rollout.stop is not Stop.PARTIAL:
            raise DataError(f"rollout {rollout.id} stopped as {rollout.stop.value!r}; only a partial one can go on")
        openings = _Openings(self.tokenizer)
        return await self._play(_Play(rollout.id, rollout.context, rollout.seed, openings, list(rollout.calls)))

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
        shared = [replace(call, shared=True) for call in rollout.calls[:calls]]
        last = rollout.calls[calls] if 0 <= calls < len(rollout.calls) else None
        if last is None or not 0 <= token < max(1, len(last.completion.ids)):
            sizes = [len(call.completion.ids) for call in rollout.calls]
            raise DataError(
                f"rollout {rollout.id} has calls of {sizes} tokens and cannot branch behind {calls} calls, token {token}"
            )
        if token:
            head = _head(last.completion, token)
            thought, text = self._reader.read(last.prefix, head.ids, head)
            shared.append(replace(last, completion=head, text=text, thought=thought, results=(), shared=True))
        context = rollout.context
        seed = derive("rollout", self.seed, context.key, number)
        return await self._play(_Play(f"{context.key}/{number}", context, seed, _Openings(self.tokenizer), shared))

    async def _answered(self, plays: Sequence[_Play], engine: EngineOfMany) -> list[Rollout]:
        """Attempts that one call ends."""
        talks: dict[str, Conversation] = {}  # of a context; nobody goes on with it
        for play in plays:
            key = play.context.key
            if key not in talks:
                talks[key] = self._converse(play, Obs())
                self._check_room(play.context, len(talks[key].prefix))
        asked = [(play, talks[play.context.key]) for play in plays]
        requests = [self._request(play, talk.prefix, talk.start, self.sampling) for play, talk in asked]
        with _blamed(requests):
            completions = await engine.generate_all(requests)
        for (play, talk), completion in zip(asked, completions, strict=True):
            play.add(self._read(play, talk.prefix, talk.start, talk.said, completion, talk))
        return [play.ended(play.calls[-1].completion.stop) for play in plays]

    # ---- one attempt ----------------------------------------------------------------------------------------------------

    async def _play(self, play: _Play) -> Rollout:
        """An attempt; once more with the calls so far when its environment breaks."""
        try:
            return await self._sitting(play)
        except _Divergence as failure:
            return play.failed(Fault.INFRA, str(failure))
        except Broken as failure:
            first = failure
        play.begin_again()
        try:
            return await self._sitting(play)
        except _Divergence as failure:
            return play.failed(Fault.INFRA, f"{first}; {failure}")
        except Broken as second:
            said = second.turn > 0 and (first.turn, first.hung, second.hung) == (second.turn, True, True)
            error = f"{second}, twice" if str(first) == str(second) else f"{first}; played again, {second}"
            return play.failed(Fault.POLICY if said else Fault.INFRA, error)

    async def _sitting(self, play: _Play) -> Rollout:
        """One environment from its start until the attempt ends."""
        world, shown = await opened(partial(play.environment, self.source), play.context, self.deadline)
        talk = self._converse(play, shown)
        if not play.recorded:
            self._check_room(play.context, len(talk.prefix))
        for turn in range(1, self.max_turns + 1):
            talk, said, stop = await self._turn(play, talk)
            if world is None or stop is not Stop.DONE:
                return play.ended(stop)
            step = await answered(partial(world.step, play.calls[-1].text), Step, turn, self.deadline)
            play.heard(step)
            if step.done:
                return play.ended(Stop.DONE)
            talk = talk.hear(play.calls[-1], said, step.obs.messages)
            if turn < self.max_turns:
                talk = await self._rewritten(play, talk) or talk
            if play.interrupted:
                return play.ended(Stop.PARTIAL)
            if talk.ended:
                break
        return play.ended(Stop.LENGTH)

    async def _turn(self, play: _Play, talk: Conversation) -> tuple[Conversation, Ids, Stop]:
        """One assistant turn: a call, and further ones as long as the context manager goes on with an answer that was cut off.

        Returns:
            The conversation that the last call stands in, the turn's ids, forced ones first, and why it ended.
        """
        while True:
            calls = len(play.calls)
            said, stop = await self._sample(play, talk.prefix, talk.start, talk.said, talk.allowed, talk)
            if stop is not Stop.LENGTH or len(play.calls) == calls:
                return talk, said, stop
            changed = await self._rewritten(play, talk.cut_off(play.calls[-1], said))
            if play.interrupted:
                return talk, said, Stop.PARTIAL
            if changed is None or changed.ended:
                return talk, said, stop
            talk = changed

    async def _rewritten(self, play: _Play, talk: Conversation) -> Conversation | None:
        """What the context manager makes of a conversation; None for the same."""
        if self._keeps:
            return None

        async def ask(conversation: Any, messages: Sequence[Message], limit: int | None = None) -> Call | None:
            prefix, calls = conversation.asked(messages), len(play.calls)
            _, stop = await self._sample(play, prefix, len(prefix), ids_of(()), limit or self.sampling.max_new_tokens, None)
            play.interrupted = stop is Stop.PARTIAL
            return play.calls[-1] if len(play.calls) > calls else None

        found = await self.manager.rewrite(talk, ask)
        if found is None:
            return None
        if not isinstance(found, Conversation):
            raise ConfigError(f"{self.manager!r}.rewrite returned {a_kind(found)}; return what the conversation's methods give")
        play.parent = len(play.calls) - 1
        return replace(found, rewrites=talk.rewrites + 1)

    async def _sample(
        self, play: _Play, prefix: Ids, start: int, said: Ids, limit: int, talk: Conversation | None
    ) -> tuple[Ids, Stop]:  # fmt: skip
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
            room = min(limit - new, self._room - len(prefix))
            if room < 1:
                return said, Stop.LENGTH
            replayed = bool(play.recorded)
            call = play.replay(prefix) if replayed else await self._call(play, prefix, start, said, room, first, talk is None)
            play.add(call)
            new += len(call.completion.ids)
            said = joined(said, call.completion.ids)
            if call.completion.stop is not Stop.PARTIAL or not replayed:
                return said, call.completion.stop
            prefix, first = call.tokens, None

    async def _call(
        self, play: _Play, prefix: Ids, start: int, said: Ids, room: int, first: Conversation | None, aside: bool
    ) -> Call:  # fmt: skip
        sampling = self.sampling if room == self.sampling.max_new_tokens else replace(self.sampling, max_new_tokens=room)
        request = self._request(play, prefix, start, sampling)
        with _blamed([request]):
            completion = await self.engine.generate(request)
        call = self._read(play, prefix, start, said, completion, first)
        return replace(call, role=ASIDE) if aside else call

    def _request(self, play: _Play, prefix: Ids, start: int, sampling: Sampling) -> Request:
        return Request(
            id=f"{play.id}#{len(play.calls)}", prompt=prefix, seed=play.seed, sampling=sampling, first=play.sampled,
            begun=len(prefix) - start,
        )  # fmt: skip

    def _read(
        self, play: _Play, prefix: Ids, start: int, said: Ids, completion: Completion, first: Conversation | None
    ) -> Call:  # fmt: skip
        """A call; ``first`` is the conversation whose answer it begins."""
        turn = joined(said, completion.ids) if len(said) else completion.ids
        thought, text = self._reader.read(prefix[:start], turn, completion)
        return Call(
            id=len(play.calls), parent=play.parent, prefix=prefix, completion=completion, text=text, thought=thought,
            score_prefix=first.score_prefix if first else None, privileged_prefix=first.privileged_prefix if first else None,
        )  # fmt: skip

    def _converse(self, play: _Play, shown: Obs) -> Conversation:
        context, blocks = play.context, play.openings
        score, privileged = (
            None if instead is None else blocks.block(instead + shown.messages)
            for instead in (context.score_messages, context.privileged)
        )
        limit = self.sampling.max_new_tokens
        return Conversation.begun(
            context.task, blocks.block(context.messages + shown.messages), forced_ids(blocks.tokenizer, context.prefill), score,
            privileged, limit=limit, budget=self._room - limit,
        )  # fmt: skip

    def _check_room(self, context: Context, prompt: int) -> None:
        if prompt + self.sampling.max_new_tokens > self._room:
            raise ConfigError(
                f"context {context.key!r} opens with {prompt} tokens; with sampling.max_new_tokens="
                f"{self.sampling.max_new_tokens} that exceeds the engine's context of {self._room}: shorten the prompt, lower "
                "max_new_tokens, or use a model with more positions"
            )


class _Divergence(Exception):
    """An environment played again did not answer as before."""


class _Openings:
    """Rendered openings, shared by the rollouts of a context."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._known: dict[tuple[Message, ...], Block] = {}

    def block(self, messages: tuple[Message, ...]) -> Block:
        if messages not in self._known:
            self._known[messages] = rendered(self.tokenizer, messages)
        return self._known[messages]


@dataclass(slots=True)
class _Play:
    """A rollout in progress.

    Attributes:
        recorded: calls of an earlier sitting, still to be replayed.
        parent: the call that the next one goes on from.
        interrupted: the engine was told to abort an aside.
    """

    id: str
    context: Context
    seed: int
    openings: _Openings
    recorded: list[Call]
    calls: list[Call] = field(default_factory=list[Call])
    parent: int | None = None
    interrupted: bool = False
    answers: int = 0
    made: list[Environment] = field(default_factory=list[Environment])

    def is_one_call(self, source: TaskSource) -> bool:
        """Whether one answer ends the task. An environment that was made to find out is the first that is played with."""
        if self.context.snapshot is not None:
            return False
        try:
            world = source.environment(self.context.task)
        except Exception:
            return False  # it will fail again where somebody answers for it
        if world is not None:
            self.made.append(world)
        return world is None

    def environment(self, source: TaskSource) -> Environment | None:
        """A fresh one."""
        return self.made.pop() if self.made else source.environment(self.context.task)

    @property
    def sampled(self) -> int:
        """Tokens sampled so far: the position in the noise stream."""
        return sum(len(c.completion.ids) for c in self.calls)

    def add(self, call: Call) -> None:
        """The next call; an aside is no call that others go on from, unless the conversation is rewritten."""
        self.calls.append(call)
        if call.role != ASIDE or call.completion.stop is Stop.PARTIAL:
            self.parent = call.id

    def replay(self, prefix: Ids) -> Call:
        """The next recorded call, when it was posed on these very tokens."""
        call = self.recorded[0]
        try:
            check_prefix(call.prefix, prefix, f"rollout {self.id}, call {call.id} played again")
        except DataError as failure:
            raise _Divergence(f"the environment answered differently when played again: {failure}") from None
        return self.recorded.pop(0)

    def heard(self, step: Step) -> None:
        """The environment's answer to the last call."""
        self.answers += 1
        if not self.recorded:
            self.calls[-1] = replace(self.calls[-1], results=step.results)
        elif step.done:
            raise _Divergence(
                f"the environment answered differently when played again: rollout {self.id} ended with call {self.calls[-1].id}, "
                "and went on before"
            )

    def begin_again(self) -> None:
        """All calls so far are to be replayed."""
        self.recorded, self.calls, self.parent = [*self.calls, *self.recorded], [], None

    def ended(self, stop: Stop) -> Rollout:
        return Rollout(id=self.id, context=self.context, calls=(*self.calls, *self.recorded), stop=stop, seed=self.seed)

    def failed(self, fault: Fault, error: str) -> Rollout:
        return replace(self.ended(Stop.ERROR), error=error, fault=fault)


def _head(completion: Completion, tokens: int) -> Completion:
    """The first tokens of a completion, as if it had been cut off there."""

    def cut(columns: Mapping[str, TokenColumn]) -> dict[str, TokenColumn]:
        return {name: replace(column, values=column.values[:tokens]) for name, column in columns.items()}

    spans = tuple(replace(s, end=min(s.end, tokens)) for s in completion.spans if s.start < tokens)
    return replace(
        completion,
        ids=completion.ids[:tokens],
        logp_engine=completion.logp_engine[:tokens],
        spans=spans,
        stop=Stop.PARTIAL,
        columns=cut(completion.columns),
    )


@contextmanager
def _blamed(requests: Sequence[Request]) -> Generator[None]:
    """What an engine raises inside, as an error of assay that names a request."""
    try:
        yield
    except AssayError:
        raise
    except Exception as failure:
        others = f" and {len(requests) - 1} others" if len(requests) > 1 else ""
        raise EngineError(f"request {requests[0].id}{others}: {sentence(failure)}") from failure


def _doubted(plays: Sequence[_Play], rollouts: list[Rollout]) -> list[Rollout]:
    """The rollouts; hangs are nobody's doing but the environments' own when none of these answered anything."""
    hung = {(r.context.task.id, r.text) for r in rollouts if r.fault is Fault.POLICY}
    if len(hung) < _HANGS or any(play.answers for play in plays):
        return rollouts
    why = f"no environment of {len(rollouts)} attempts answered any action"
    return [replace(r, fault=Fault.INFRA, error=f"{r.error}; {why}") if r.fault is Fault.POLICY else r for r in rollouts]


async def _all(attempts: Sequence[Coroutine[Any, Any, Rollout]]) -> list[Rollout]:
    """All results in order; when one fails the others are cancelled and its error is raised."""
    tasks = [asyncio.ensure_future(a) for a in attempts]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def _repeated(keys: Sequence[str]) -> list[str]:
    return sorted({k for k in keys if keys.count(k) > 1})
