"""Contexts to rollouts: one engine, an environment per attempt, all attempts at once on one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from assay.core.errors import AssayError, ConfigError, DataError, EngineError
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
from assay.core.rollout import Call, Completion, Ids, Rollout, Sampling, Stop
from assay.core.score import Fault
from assay.core.seeds import derive_each
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
        manager: which turns the policy goes on with.
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

    def __post_init__(self) -> None:
        if self.max_turns < 1:
            raise ConfigError(f"Player.max_turns={self.max_turns}; use at least 1")
        if not self.deadline > 0:
            raise ConfigError(f"Player.deadline={self.deadline}; it is in seconds and must be above 0")
        if not self.sampling.stop_ids:
            object.__setattr__(self, "sampling", replace(self.sampling, stop_ids=end_ids(self.tokenizer)))
        object.__setattr__(self, "_reader", Reader.of(self.tokenizer))
        object.__setattr__(self, "_room", self.engine.info().context)
        object.__setattr__(self, "_many", self.engine if isinstance(self.engine, EngineOfMany) else None)

    async def collect(self, contexts: Sequence[Context], n: int) -> list[Rollout]:
        """``n`` rollouts of each context, context by context, with ids ``KEY/0 .. KEY/n-1``.

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
            for i, seed in enumerate(derive_each("rollout", self.seed, c.key, n))
        ]
        if self._many is not None and all(play.is_one_call(self.source) for play in plays[::n]):
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

    async def _answered(self, plays: Sequence[_Play], engine: EngineOfMany) -> list[Rollout]:
        """Attempts that one call ends."""
        talks: dict[str, Conversation] = {}  # of a context; nobody goes on with it
        for play in plays:
            key = play.context.key
            if key not in talks:
                talks[key] = play.converse(Obs())
                self._check_room(play.context, len(talks[key].prefix))
        asked = [(play, talks[play.context.key]) for play in plays]
        requests = [self._request(play, talk.prefix, talk.forced, self.sampling) for play, talk in asked]
        with _blamed(requests):
            completions = await engine.generate_all(requests)
        for (play, talk), completion in zip(asked, completions, strict=True):
            instead = (talk.score_prefix, talk.privileged_prefix)
            play.calls.append(self._read(play, talk.prefix, talk.forced, completion, instead))
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
        talk = play.converse(shown)
        if not play.recorded:
            self._check_room(play.context, len(talk.prefix))
        for turn in range(1, self.max_turns + 1):
            said, stop = await self._turn(play, talk)
            if world is None or stop is not Stop.DONE:
                return play.ended(stop)
            step = await answered(partial(world.step, play.calls[-1].text), Step, turn, self.deadline)
            play.heard(step)
            if step.done:
                return play.ended(Stop.DONE)
            talk.hear(play.calls[-1], said, step.obs.messages)
            if not isinstance(self.manager, KeepAll):
                talk.compact(self.manager, self._room - self.sampling.max_new_tokens)
        return play.ended(Stop.LENGTH)

    async def _turn(self, play: _Play, talk: Conversation) -> tuple[Ids, Stop]:
        """One assistant turn: a call, after the recorded ones that were cut off.

        Returns:
            The turn's ids, forced ones first, and why it ended.
        """
        said, prefix = talk.forced, talk.prefix
        instead = (talk.score_prefix, talk.privileged_prefix)
        new = 0
        while True:
            room = min(self.sampling.max_new_tokens - new, self._room - len(prefix))
            if room < 1:
                return said, Stop.LENGTH
            replayed = bool(play.recorded)
            call = play.replay(prefix) if replayed else await self._call(play, prefix, said, room, instead)
            play.calls.append(call)
            new += len(call.completion.ids)
            said = joined(said, call.completion.ids)
            if call.completion.stop is not Stop.PARTIAL or not replayed:
                return said, call.completion.stop
            prefix, instead = call.tokens, (None, None)

    async def _call(
        self, play: _Play, prefix: Ids, said: Ids, room: int, instead: tuple[Ids | None, Ids | None]
    ) -> Call:  # fmt: skip
        sampling = self.sampling if room == self.sampling.max_new_tokens else replace(self.sampling, max_new_tokens=room)
        request = self._request(play, prefix, said, sampling)
        with _blamed([request]):
            completion = await self.engine.generate(request)
        return self._read(play, prefix, said, completion, instead)

    def _request(self, play: _Play, prefix: Ids, said: Ids, sampling: Sampling) -> Request:
        return Request(
            id=f"{play.id}#{len(play.calls)}", prompt=prefix, seed=play.seed, sampling=sampling, first=play.sampled,
            begun=len(said),
        )  # fmt: skip

    def _read(
        self, play: _Play, prefix: Ids, said: Ids, completion: Completion, instead: tuple[Ids | None, Ids | None]
    ) -> Call:  # fmt: skip
        turn = joined(said, completion.ids) if len(said) else completion.ids
        thought, text = self._reader.read(prefix[: len(prefix) - len(said)], turn, completion)
        return Call(
            id=len(play.calls), parent=len(play.calls) - 1 if play.calls else None, prefix=prefix, completion=completion,
            text=text, thought=thought, score_prefix=instead[0], privileged_prefix=instead[1],
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

    def converse(self, shown: Obs) -> Conversation:
        context, blocks = self.context, self.openings
        forced = forced_ids(blocks.tokenizer, context.prefill)
        score, privileged = (
            None if instead is None else blocks.block(instead + shown.messages)
            for instead in (context.score_messages, context.privileged)
        )
        return Conversation(blocks.block(context.messages + shown.messages), forced, score, privileged)

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
        self.recorded, self.calls = [*self.calls, *self.recorded], []

    def ended(self, stop: Stop) -> Rollout:
        return Rollout(id=self.id, context=self.context, calls=(*self.calls, *self.recorded), stop=stop, seed=self.seed)

    def failed(self, fault: Fault, error: str) -> Rollout:
        return replace(self.ended(Stop.ERROR), error=error, fault=fault)


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
