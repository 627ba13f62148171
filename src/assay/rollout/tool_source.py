"""A user's tools beside any task: declared in front of its prompt, called in turns of the policy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError
from assay.core.protocols import Environment, Obs, Restorable, Step, TaskSource, Tokenizer, Tool
from assay.core.rollout import ToolResult
from assay.core.task import TOOLS, Context, Message, Task, TaskView
from assay.core.tools import declared_tools as tools_in
from assay.rollout.tool_calls import Asked, calls_of, fault_of
from assay.rollout.tool_class import EpisodeTool, EpisodeTools

__all__ = ["ToolEnvironment", "ToolSource"]

_DESCRIBED = (
    "You may call functions. These are there:\n<tools>\n{tools}\n</tools>\nTo call one, answer with its name and arguments:\n"
    '<tool_call>\n{{"name": <name>, "arguments": <arguments>}}\n</tool_call>'
)
"""Where no chat template shows tools: the words in which Hermes and Qwen were taught them, in front of the prompt."""


@dataclass(frozen=True, slots=True, eq=False)
class ToolSource:
    """A task source whose tasks are played with tools; implements `assay.core.protocols.TaskSource`.

    Tools are declared as the chat template shows them, or in words in front of the first turn where it shows none.

    Attributes:
        source: the tasks.
        tools: that may be called.
        tokenizer: of the policy.

    Raises:
        ConfigError: two tools of one name, or one whose schema has no name.
    """

    source: TaskSource
    tools: Sequence[Tool]
    tokenizer: Tokenizer

    def __post_init__(self) -> None:
        names = [tool.schema.get("name") for tool in self.tools]
        if not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
            raise ConfigError(f"tools have the names {names}; give each a name of its own")

    @property
    def name(self) -> str:
        """That of the source."""
        return self.source.name

    def arms(self) -> Mapping[str, tuple[int, ...]]:
        """Those of the source."""
        return self.source.arms()

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        """The source's task, with the tools in its opening."""
        task = self.source.task(arm, level, split, index)
        told = self.declare(task.public_view().messages, f"task {task.id!r}")
        tools, rest = tools_in(told, f"task {task.id!r}")
        public = {name: value for name, value in task.public.items() if name not in ("prompt", "messages", "tools")}
        media = [[{"kind": p.kind, "digest": p.digest, "size": list(p.size)} for p in m.media] for m in rest]
        public["messages"] = [
            {"role": m.role, "content": m.content, **({"media": shown} if shown else {})}
            for m, shown in zip(rest, media, strict=True)
        ]
        if tools:
            public["tools"] = [entry["function"] for entry in json.loads(tools)]
        return replace(task, public=FrozenMap(public))

    def verifier(self) -> Any:
        """That of the source."""
        return self.source.verifier()

    def environment(self, world: TaskView) -> ToolEnvironment:
        """The source's environment, or none, behind the tools."""
        inner = self.source.environment(world)
        kind = RestorableToolEnvironment if isinstance(inner, Restorable) else ToolEnvironment
        return kind(world, self.tools, inner, self.tokenizer)

    def trace(self, task: Task, noise: float, rng: Any) -> tuple[Message, ...] | None:
        """That of the source, whose oracle calls no tool of the user's."""
        return self.source.trace(task, noise, rng)

    def __getattr__(self, name: str) -> Any:
        """What some sources offer besides, as ``size``."""
        if name.startswith("__") or name in ("source", "tools", "tokenizer"):  # a copy that is not yet filled
            raise AttributeError(name)
        return getattr(self.source, name)

    def declare_tools(self, context: Context) -> Context:
        """A context that shows the tools, also where it is learned under and where a teacher reads."""
        place = f"context {context.key!r}"
        return replace(
            context,
            messages=self.declare(context.messages, place),
            score_messages=None if context.score_messages is None else self.declare(context.score_messages, place),
            privileged=None if context.privileged is None else self.declare(context.privileged, place),
        )

    def declare(self, messages: Sequence[Message], place: str) -> tuple[Message, ...]:
        """A conversation's opening with the tools in front, behind those that it declares itself; one that has them stays.

        Raises:
            ConfigError: it declares a tool of the same name, or opens with no turn that could show them.
            DataError: the tokenizer cannot write the declaration.
        """
        own, rest = tools_in(messages, place)
        schemas = [dict(tool.schema) for tool in self.tools]
        known = [entry["function"] for entry in json.loads(own)] if own else []
        if all(schema in known for schema in schemas):  # a rollout's own context, played again
            return tuple(messages)
        twice = {schema["name"] for schema in schemas} & {schema["name"] for schema in known}
        if twice:
            raise ConfigError(f"{place} declares a tool {min(twice)!r} of its own; give that of the sampler another name")
        both = [*known, *schemas]
        shown = (Message(TOOLS, json.dumps(both, ensure_ascii=False)), *rest)
        try:
            self.tokenizer.render(shown)
        except ConfigError:  # the template shows no tools
            if own:
                raise
            return self._describe_tools(rest, schemas, place)
        return shown

    def _describe_tools(
        self, messages: Sequence[Message], schemas: Sequence[Mapping[str, Any]], place: str
    ) -> tuple[Message, ...]:
        words = _DESCRIBED.format(tools="\n".join(json.dumps(schema, ensure_ascii=False) for schema in schemas))
        first = next((i for i, m in enumerate(messages) if m.role in ("system", "user")), None)
        if first is None:
            raise ConfigError(f"{place} has no system or user turn in front of which tools could be described; give it one")
        if words in messages[first].content:
            return tuple(messages)
        told = list(messages)
        system = told[first].role == "system"
        texts = (told[first].content, words) if system else (words, told[first].content)
        told[first] = replace(told[first], content="\n\n".join(texts))
        return tuple(told)


class ToolEnvironment:
    """One rollout's tools, in front of the task's own environment; implements `assay.core.protocols.Environment`.

    A turn that calls one of the tools is answered by a ``tool`` message for each call. All others are the task's: its environment
    answers, or, without one, the rollout is done. What is wrong with a call is answered, so that the policy can try again.

    Args:
        world: the task view.
        tools: the user's.
        inner: the task's own environment; None where a single answer ends it.
        tokenizer: an answer that it cannot write is given in escapes.
    """

    def __init__(self, world: TaskView, tools: Sequence[Tool], inner: Environment | None, tokenizer: Tokenizer) -> None:
        self.tools: Mapping[str, Tool] = {tool.schema["name"]: tool for tool in tools}
        self._world, self._inner, self._tokenizer, self._actor = world, inner, tokenizer, ""
        self._episode = EpisodeTools(world)

    async def start(self) -> Obs:
        """What the task's environment shows first."""
        return self._render_results(Obs() if self._inner is None else await self._inner.start())

    async def step(self, action: str) -> Step:
        """What the tools answer, or the task's environment.

        Raises:
            ConnectionError, TimeoutError, MemoryError, EngineError, SandboxError, StorageError: a tool's infrastructure failed.
        """
        asked = calls_of(action, self.tools)
        own = [call for call in asked if call.name in self.tools]
        if not asked or (self._inner is not None and not own):
            step = Step(done=True) if self._inner is None else await self._inner.step(action)
            self._render_results(step.obs)
            return step
        results = tuple(await self._results(asked))
        messages = tuple(Message("tool", self._spell_text(result.content)) for result in results)
        return Step(obs=Obs(messages, self._actor), results=results)

    async def close(self) -> None:
        """Ends what the tools kept for this rollout."""
        await self._episode.close()

    async def _results(self, asked: Sequence[Asked]) -> list[ToolResult]:
        """In the order of the calls, which run side by side; those of one instance one after the other."""
        queues: dict[Any, list[int]] = {}
        for i, call in enumerate(asked):
            called = self.tools.get(call.name)
            queue = called.owner if isinstance(called, EpisodeTool) and called.in_turn else i
            queues.setdefault(queue, []).append(i)
        found: dict[int, ToolResult] = {}

        async def run(places: Sequence[int]) -> None:
            for i in places:
                found[i] = await self._result(asked[i])

        tasks = [asyncio.ensure_future(run(places)) for places in queues.values()]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        return [found[i] for i in range(len(asked))]

    async def _result(self, call: Asked) -> ToolResult:
        wrong = fault_of(call, self.tools)
        if wrong:
            return ToolResult(content=f"Error: {wrong}.", error=wrong)
        called = self.tools[call.name]
        if isinstance(called, EpisodeTool):
            return await self._episode.call(called, call.arguments or {})
        return await called.call(call.arguments or {}, self._world)

    def _render_results(self, shown: Obs) -> Obs:
        self._actor = shown.actor
        return shown

    def _spell_text(self, text: str) -> str:
        """An answer that the policy can be shown: characters that its tokenizer lacks as escapes."""
        try:
            self._tokenizer.encode(text)
        except (DataError, UnicodeEncodeError):
            return text.encode("ascii", "backslashreplace").decode()
        return text


class RestorableToolEnvironment(ToolEnvironment):
    """The same where the task's environment can begin at a snapshot; what tools keep begins anew there."""

    async def restore(self, snapshot: Any) -> Obs:
        """What the task's environment shows there."""
        assert isinstance(self._inner, Restorable)
        return self._render_results(await self._inner.restore(snapshot))
