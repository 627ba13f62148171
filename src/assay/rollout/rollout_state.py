"""A rollout in progress: its calls so far, and those of an earlier sitting that are to be replayed."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from assay.core.columns import TokenColumn
from assay.core.errors import AssayError, DataError, EngineError
from assay.core.media import Media
from assay.core.protocols import Environment, Request, Step, TaskSource, Tokenizer
from assay.core.rollout import ASIDE, Call, Completion, Ids, Rollout, Stop
from assay.core.score import Fault
from assay.core.task import Context, Message
from assay.rollout.block import Block, check_prefix, render
from assay.rollout.decode_text import AnswerReader
from assay.rollout.environments import EnvironmentFailure, error_text
from assay.rollout.roles import of_role, roles_in

__all__ = ["Divergence", "Openings", "RolloutState", "blame_engine", "cut_at", "shared_calls", "with_doubt"]

_HANGS = 3
"""So many different actions that hang, while no environment answers anything, mean that those are broken and not the actions."""


class Divergence(Exception):
    """An environment played again did not answer as before."""


class Openings:
    """Rendered openings, shared by the rollouts of a context."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._known: dict[tuple[Message, ...], Block] = {}

    def block(self, messages: tuple[Message, ...]) -> Block:
        if messages not in self._known:
            self._known[messages] = render(self.tokenizer, messages)
        return self._known[messages]


@dataclass(slots=True)
class RolloutState:
    """A rollout in progress.

    Attributes:
        recorded: calls of an earlier sitting, still to be replayed.
        actor: who acts; empty where there is one.
        turns: how often each actor was to act.
        parents: the call that an actor's next one goes on from.
        interrupted: the engine was told to abort an aside.
        media: pictures that the next call's prefix shows.
    """

    id: str
    context: Context
    seed: int
    openings: Openings
    recorded: list[Call]
    calls: list[Call] = field(default_factory=list[Call])
    actor: str = ""
    turns: dict[str, int] = field(default_factory=dict[str, int])
    parents: dict[str, int] = field(default_factory=dict[str, int])
    interrupted: bool = False
    media: tuple[Media, ...] = ()
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
            self.parents[self.actor] = call.id

    def enter(self, actor: str) -> None:
        """An actor is to act.

        Raises:
            Broken: it has no name, and others had.
        """
        if self.turns and (not actor or "" in self.turns) and actor not in self.turns:
            known = sorted(self.turns)
            raise EnvironmentFailure(
                self.answers, False, f"it names the actor {actor!r} behind {known}; name one in each Obs, or none at all"
            )
        self.actor = actor
        self.turns[actor] = self.turns.get(actor, 0) + 1

    def replay(self, prefix: Ids) -> Call:
        """The next recorded call, when it was posed on these very tokens."""
        call = self.recorded[0]
        try:
            check_prefix(call.prefix, prefix, f"rollout {self.id}, call {call.id} played again")
        except DataError as failure:
            raise Divergence(f"the environment answered differently when played again: {failure}") from None
        if call.media != self.media:
            raise Divergence(f"the environment answered differently when played again: rollout {self.id} shows other pictures")
        return self.recorded.pop(0)

    def observe_step(self, step: Step) -> None:
        """The environment's answer to the last call."""
        self.answers += 1
        if not self.recorded:
            self.calls[-1] = replace(self.calls[-1], results=step.results)
        elif step.done:
            raise Divergence(
                f"the environment answered differently when played again: rollout {self.id} ended with call {self.calls[-1].id}, "
                "and went on before"
            )

    def begin_again(self) -> None:
        """All calls so far are to be replayed."""
        self.recorded, self.calls = [*self.calls, *self.recorded], []
        self.parents, self.turns, self.actor = {}, {}, ""

    def end_rollout(self, stop: Stop, over: bool = False) -> list[Rollout]:
        """The rollout, or that of each actor; where one of them reached a limit, and the turns of all are not ``over``, the
        others have stop ``done``.
        """
        calls = (*self.calls, *self.recorded)
        whole = Rollout(id=self.id, context=self.context, calls=calls, stop=stop, seed=self.seed)
        roles = roles_in(whole)
        if not roles:
            return [whole]
        alone = stop is Stop.LENGTH and not over
        made = [of_role(whole, role) for role in roles]
        return [replace(r, stop=Stop.DONE) if alone and r.role != self.actor else r for r in made]

    def fail_rollout(self, fault: Fault, error: str) -> list[Rollout]:
        """The same, ended by its environment; only the actor whose turn it was may be at fault."""
        return [
            replace(r, stop=Stop.ERROR, error=error, fault=fault if r.role == self.actor else Fault.INFRA)
            for r in self.end_rollout(Stop.DONE)
        ]


def cut_at(completion: Completion, tokens: int) -> Completion:
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


def shared_calls(rollout: Rollout, calls: int, token: int, reader: AnswerReader) -> list[Call]:
    """The beginning of a rollout that a branch shares: its first ``calls`` calls, and ``token`` sampled tokens of the next.

    Raises:
        DataError: the rollout has no such calls or tokens, or would be shared as a whole.
    """
    shared = [replace(call, shared=True) for call in rollout.calls[:calls]]
    last = rollout.calls[calls] if 0 <= calls < len(rollout.calls) else None
    if last is None or not 0 <= token < max(1, len(last.completion.ids)):
        sizes = [len(call.completion.ids) for call in rollout.calls]
        raise DataError(f"rollout {rollout.id} has calls of {sizes} tokens and cannot branch behind {calls} calls, token {token}")
    if token:
        head = cut_at(last.completion, token)
        thought, text = reader.read(last.prefix, head.ids, head)
        shared.append(replace(last, completion=head, text=text, thought=thought, results=(), shared=True))
    return shared


def with_doubt(plays: Sequence[RolloutState], rollouts: list[Rollout]) -> list[Rollout]:
    """The rollouts; hangs are nobody's doing but the environments' own when none of these answered anything."""
    hung = {(r.context.task.id, r.text) for r in rollouts if r.fault is Fault.POLICY}
    if len(hung) < _HANGS or any(play.answers for play in plays):
        return rollouts
    why = f"no environment of {len(rollouts)} rollouts answered any action"
    return [replace(r, fault=Fault.INFRA, error=f"{r.error}; {why}") if r.fault is Fault.POLICY else r for r in rollouts]


@contextmanager
def blame_engine(requests: Sequence[Request]) -> Generator[None]:
    """What an engine raises inside, as an error of assay that names a request."""
    try:
        yield
    except AssayError:
        raise
    except Exception as failure:
        others = f" and {len(requests) - 1} others" if len(requests) > 1 else ""
        raise EngineError(f"request {requests[0].id}{others}: {error_text(failure)}") from failure
