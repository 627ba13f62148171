"""Contexts to rollouts: one engine, an environment per attempt, all attempts at once on one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from assay.core.errors import AssayError, ConfigError, DataError, EngineError
from assay.core.protocols import ContextManager, Engine, Environment, Obs, Request, TaskSource, Tokenizer
from assay.core.rollout import Call, Completion, Ids, Rollout, Sampling, Stop
from assay.core.seeds import derive
from assay.core.task import Context, Message
from assay.rollout.context import KeepAll
from assay.rollout.conversation import Block, Conversation, check_prefix, forced_ids, joined, rendered

__all__ = ["Player"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Player:
    """Plays contexts to their end with one policy; implements `assay.core.protocols.Sampler`.

    A task without environment is one call. With one, calls and environment steps alternate until the environment is done, the
    policy is cut off, or ``max_turns`` turns are used up (stop ``length``). The next prefix is the last one, what the policy
    sampled, and what the environment answered; nothing is ever re-tokenised. Noise positions count on over the calls of a
    rollout, so no uniform is used twice.

    Attributes:
        engine: draws tokens.
        tokenizer: renders messages; decodes what was sampled, for environments and verifiers.
        source: gives the environments.
        sampling: how tokens are drawn; without ``stop_ids`` an answer ends with the tokenizer's end token.
        seed: all sampling noise derives from it and the rollout's id.
        max_turns: assistant turns per rollout.
        manager: which turns the policy goes on with.

    Raises:
        ConfigError: ``max_turns`` below 1.
    """

    engine: Engine
    tokenizer: Tokenizer
    source: TaskSource
    sampling: Sampling
    seed: int
    max_turns: int = 8
    manager: ContextManager = field(default_factory=KeepAll)
    _room: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.max_turns < 1:
            raise ConfigError(f"Player.max_turns={self.max_turns}; use at least 1")
        if not self.sampling.stop_ids:
            object.__setattr__(self, "sampling", replace(self.sampling, stop_ids=(self.tokenizer.eos,)))
        object.__setattr__(self, "_room", self.engine.info().context)

    async def collect(self, contexts: Sequence[Context], n: int) -> list[Rollout]:
        """``n`` rollouts of each context, context by context, with ids ``KEY/0 .. KEY/n-1``.

        An environment that fails ends its own rollout with stop ``error``; the others go on.

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
            _Play(f"{c.key}/{i}", c, derive("rollout", self.seed, c.key, i), openings, []) for c in contexts for i in range(n)
        ]
        return await _all([self._play(play) for play in plays])

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

    # ---- one attempt ----------------------------------------------------------------------------------------------------

    async def _play(self, play: _Play) -> Rollout:
        try:
            world = self.source.environment(play.context.task)
            shown = await _open(world, play.context)
        except ConfigError:
            raise
        except Exception as failure:
            return play.ended(Stop.ERROR, f"environment start: {_sentence(failure)}")
        talk = play.converse(shown)
        self._check_room(play.context, len(talk.prefix))
        try:
            return await self._turns(play, talk, world)
        except _Divergence as failure:
            return play.ended(Stop.ERROR, str(failure))

    async def _turns(self, play: _Play, talk: Conversation, world: Environment | None) -> Rollout:
        for turn in range(1, self.max_turns + 1):
            said, stop = await self._turn(play, talk)
            if world is None or stop is not Stop.DONE:
                return play.ended(stop)
            try:
                step = await world.step(play.calls[-1].text)
            except Exception as failure:
                return play.ended(Stop.ERROR, f"environment step {turn}: {_sentence(failure)}")
            if not play.recorded:
                play.calls[-1] = replace(play.calls[-1], results=step.results)
            if step.done:
                return play.ended(Stop.DONE)
            talk.advance(play.calls[-1], said, rendered(self.tokenizer, step.obs.messages))
            talk.compact(self.manager, self._room - self.sampling.max_new_tokens)
        return play.ended(Stop.LENGTH)

    async def _turn(self, play: _Play, talk: Conversation) -> tuple[Ids, Stop]:
        """One assistant turn: a call, after the recorded ones that were cut off.

        Returns:
            The turn's ids, forced ones first, and why it ended.
        """
        said, prefix, score_prefix = talk.forced, talk.prefix, talk.score_prefix
        new = 0
        while True:
            room = min(self.sampling.max_new_tokens - new, self._room - len(prefix))
            if room < 1:
                return said, Stop.LENGTH
            replayed = bool(play.recorded)
            call = play.replay(prefix) if replayed else await self._call(play, prefix, said, room, score_prefix)
            play.calls.append(call)
            new += len(call.completion.ids)
            said = joined(said, call.completion.ids)
            if call.completion.stop is not Stop.PARTIAL or not replayed:
                return said, call.completion.stop
            prefix, score_prefix = call.tokens, None

    async def _call(self, play: _Play, prefix: Ids, said: Ids, room: int, score_prefix: Ids | None) -> Call:
        sampling = self.sampling if room == self.sampling.max_new_tokens else replace(self.sampling, max_new_tokens=room)
        request = Request(id=f"{play.id}#{len(play.calls)}", prompt=prefix, seed=play.seed, sampling=sampling, first=play.sampled)
        try:
            completion = await self.engine.generate(request)
        except AssayError:
            raise
        except Exception as failure:
            raise EngineError(f"request {request.id}: {_sentence(failure)}") from failure
        return Call(
            id=len(play.calls), parent=len(play.calls) - 1 if play.calls else None, prefix=prefix, completion=completion,
            text=self.tokenizer.decode(_spoken(said, completion)), score_prefix=score_prefix,
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
    """A rollout in progress; ``recorded`` are calls of an earlier sitting, still to be replayed."""

    id: str
    context: Context
    seed: int
    openings: _Openings
    recorded: list[Call]
    calls: list[Call] = field(default_factory=list[Call])

    @property
    def sampled(self) -> int:
        """Tokens sampled so far: the position in the noise stream."""
        return sum(len(c.completion.ids) for c in self.calls)

    def converse(self, shown: Obs) -> Conversation:
        context, blocks = self.context, self.openings
        forced = forced_ids(blocks.tokenizer, context.prefill)
        score = None if context.score_messages is None else blocks.block(context.score_messages + shown.messages)
        return Conversation(blocks.block(context.messages + shown.messages), forced, score)

    def replay(self, prefix: Ids) -> Call:
        """The next recorded call, when it was posed on these very tokens."""
        call = self.recorded.pop(0)
        try:
            check_prefix(call.prefix, prefix, f"rollout {self.id}, call {call.id} played again")
        except DataError as failure:
            raise _Divergence(f"the environment answered differently when played again: {failure}") from None
        return call

    def ended(self, stop: Stop, error: str | None = None) -> Rollout:
        return Rollout(id=self.id, context=self.context, calls=tuple(self.calls), stop=stop, seed=self.seed, error=error)


async def _open(world: Environment | None, context: Context) -> Obs:
    """What the environment shows first, from its snapshot when the context has one."""
    if context.snapshot is None:
        return Obs() if world is None else await world.start()
    restore = getattr(world, "restore", None)
    if restore is None:
        who = "its task has no environment" if world is None else f"{type(world).__name__} cannot start from one"
        raise ConfigError(
            f"context {context.key!r} has a snapshot, but {who}; give the environment an `async restore(snapshot)`, or pose "
            "the context without snapshot"
        )
    return await restore(context.snapshot)


def _spoken(said: Ids, completion: Completion) -> Ids:
    """The turn's ids so far without a stop token."""
    ids = joined(said, completion.ids) if len(said) else completion.ids
    ended = completion.stop is Stop.DONE and len(completion.ids) and int(completion.ids[-1]) in completion.sampling.stop_ids
    return ids[:-1] if ended else ids


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


def _sentence(failure: Exception) -> str:
    return f"{type(failure).__name__}: {failure}"
