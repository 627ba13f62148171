"""Plays tasks with a model behind a server that speaks OpenAI's protocol, in text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from assay.core.protocols import Environment, Step, TaskSource
from assay.core.rollout import Call, Rollout, Stop, ToolResult
from assay.core.task import Context, Message, Task
from assay.core.thinking import Thinking
from assay.rollout.environments import ask_environment, open_environment
from assay.verify import rollout_of

if TYPE_CHECKING:
    from assay.clients.openai_client import Answer, OpenAIClient

__all__ = ["ServerPlayer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPlayer:
    """Asks a server for each turn of a task. One answer is asked for at a time, which every server can give.

    Attributes:
        client: asks the server, and again where it fails for a while.
        temperature, max_new_tokens: of its answers.
        thinking: the tags of its thoughts, where its answers hold any.
        max_turns: answers per rollout, in families with an environment.
        deadline: seconds that an environment may take for one start or step.
        more: further fields of each request, such as ``top_p``.
    """

    client: OpenAIClient
    temperature: float = 1.0
    max_new_tokens: int = 2048
    thinking: Thinking | None = field(default_factory=Thinking)
    max_turns: int = 8
    deadline: float = 30.0
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])

    async def play(self, source: TaskSource, task: Task, context: Context, number: int) -> Rollout:
        """One rollout.

        Args:
            source: gives the task's environment, where it has one.
            task: what is played.
            context: how it is posed.
            number: of the rollout, of those of this context.

        Raises:
            ConfigError: the server refuses such requests.
            EngineError: it gave no answer.
            EnvironmentFailure: the environment failed.
        """
        world, shown = await open_environment(partial(source.environment, context.task), context, self.deadline)
        talk = [*context.messages, *shown.messages]
        said: list[tuple[str | None, str, tuple[ToolResult, ...]]] = []
        stop = Stop.LENGTH
        for turn in range(1, self.max_turns + 1):
            answer = await self._answer(talk)
            thought, text = self.thinking.split(answer.text) if self.thinking else (None, answer.text)
            step = await self._hear(world, text, turn) if answer.finish not in ("length", "content_filter") else None
            said.append((thought, text, step.results if step else ()))
            if step is None:
                break
            if world is None or step.done:
                stop = Stop.DONE
                break
            talk += [Message("assistant", text), *step.obs.messages]
        made = rollout_of(task, *(text for _, text, _ in said), id=f"{context.key}/{number}", group=task.id, stop=stop)
        return replace(made, context=context, calls=tuple(map(_with, made.calls, said)))

    async def _answer(self, talk: Sequence[Message]) -> Answer:
        (answer,) = await self.client.chat(talk, temperature=self.temperature, max_tokens=self.max_new_tokens, **self.more)
        return answer

    async def _hear(self, world: Environment | None, text: str, turn: int) -> Step:
        if world is None:
            return Step(done=True)
        return await ask_environment(partial(world.step, text), Step, turn, self.deadline)


def _with(call: Call, said: tuple[str | None, str, tuple[ToolResult, ...]]) -> Call:
    return replace(call, thought=said[0], results=said[2])
