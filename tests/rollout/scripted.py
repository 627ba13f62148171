"""A scripted engine, a character tokenizer and small worlds for the tests of the rollout room."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from assay.core import Completion, Context, FrozenMap, Ids, Message, Sampling, Span, Stop, Task, TokenColumn, ToolResult, ids_of
from assay.core.protocols import EngineInfo, Environment, Obs, Request, Step

EOS, OPEN, CLOSE = 0, 1, 2  # end of an answer, begin of an answer, end of any other turn


class Letters:
    """One id per character; an assistant's turn is OPEN text EOS, any other is text CLOSE."""

    size, eos = 128, EOS

    def encode(self, text: str) -> Ids:
        return ids_of([ord(c) for c in text])

    def decode(self, ids: Sequence[int] | Ids) -> str:
        return "".join(chr(int(i)) for i in ids)

    def render(self, messages: Sequence[Message], answer: bool = True) -> Ids:
        out: list[int] = []
        for m in messages:
            text = [ord(c) for c in m.content]
            out += [OPEN, *text, EOS] if m.role == "assistant" else [*text, CLOSE]
        return ids_of([*out, OPEN] if answer else out)


class Rewriting(Letters):
    """A chat template that is not append-only: it counts its messages."""

    def render(self, messages: Sequence[Message], answer: bool = True) -> Ids:
        return ids_of([len(messages), *super().render(messages, answer)])


Reply = str | tuple[str, Stop] | Exception


@dataclass
class Scripted:
    """Answers a request by a function of it; a text ends with EOS, (text, stop) does not."""

    reply: Callable[[Request], Reply]
    context: int = 200
    version: int = 3
    requests: list[Request] = field(default_factory=list)
    running: int = 0
    together: int = 0

    def info(self) -> EngineInfo:
        return EngineInfo(version=self.version, vocabulary=128, context=self.context)

    async def generate(self, request: Request) -> Completion:
        self.requests.append(request)
        self.running += 1
        self.together = max(self.together, self.running)
        try:
            await asyncio.sleep(0)
            return self._answer(request, self.reply(request))
        finally:
            self.running -= 1

    def _answer(self, request: Request, reply: Reply) -> Completion:
        if isinstance(reply, Exception):
            raise reply
        text, stop = reply if isinstance(reply, tuple) else (reply, Stop.DONE)
        ids = [ord(c) for c in text] + ([EOS] if stop is Stop.DONE else [])
        if len(ids) > request.sampling.max_new_tokens:
            ids, stop = ids[: request.sampling.max_new_tokens], Stop.LENGTH
        n = len(ids)
        routing = (np.arange(n * 6, dtype=np.int16) + request.first).reshape(n, 2, 3)
        return Completion(
            ids=ids_of(ids),
            logp_engine=-np.array(ids, np.float32),
            spans=(Span(self.version, 0, n),) if n else (),
            stop=stop,
            sampling=request.sampling,
            columns={"routing": TokenColumn("routing", routing, "engine", self.version)},
        )


def says(*texts: Reply) -> Callable[[Request], Reply]:
    """The k-th call of every rollout answers the k-th text."""
    return lambda request: texts[int(request.id.rpartition("#")[2])]


@dataclass
class Echo:
    """Answers each action with ``<action>`` until it hears ``stop``; fails at ``fail`` when that is an action."""

    hello: str = ""
    fail: str | None = None
    steps: int = 0

    async def start(self) -> Obs:
        await asyncio.sleep(0)
        if self.fail == "start":
            raise OSError("no world")
        return Obs((Message("tool", self.hello),) if self.hello else ())

    async def step(self, action: str) -> Step:
        await asyncio.sleep(0)
        if self.fail == action:
            raise OSError("the world broke")
        self.steps += 1
        answer = f"<{action}>"
        return Step(
            obs=Obs((Message("tool", answer),)), done=action == "stop", results=(ToolResult(content=answer, duration=0.5),)
        )


@dataclass
class Saved(Echo):
    """Can begin at a saved state."""

    async def restore(self, snapshot: object) -> Obs:
        return Obs((Message("tool", f"at {snapshot}"),))


@dataclass
class Worlds:
    """A task source that only gives environments; ``make`` gives a fresh one per rollout."""

    make: Callable[[], Environment | None] = lambda: None

    def environment(self, world: object) -> Environment | None:
        assert not hasattr(world, "private")
        return self.make()


def task(prompt: str = "1+1=") -> Task:
    return Task(id=prompt, domain="d", arm="x", level=1, split="train", index=0, public=FrozenMap({"prompt": prompt}))


def posed(key: str = "c", prompt: str = "1+1=", **changed: object) -> Context:
    exposed = task(prompt).public_view()
    return Context(**{"key": key, "group": key, "task": exposed, "messages": exposed.messages, **changed})


SHORT = Sampling(max_new_tokens=8)
