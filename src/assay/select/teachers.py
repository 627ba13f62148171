"""Who answers tasks for others to learn from: a model of one's own, or any server that speaks OpenAI's protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from assay.core.errors import ConfigError, DataError, EngineError
from assay.core.protocols import TaskSource
from assay.core.rollout import Rollout, Sampling
from assay.core.task import Context, Task
from assay.core.thinking import Thinking
from assay.rollout import Player
from assay.rollout.environments import EnvironmentFailure
from assay.runtime.models.hub_names import hub_name, on_hub
from assay.train.models import model_folder
from assay.train.server_player import ServerPlayer

if TYPE_CHECKING:
    from assay.clients.openai_client import OpenAIClient
    from assay.core.protocols import Engine
    from assay.runtime.models.any_model import AnyModel

__all__ = ["ModelTeacher", "ServerTeacher", "Teacher", "context_of"]


class Teacher(Protocol):
    """Attempts tasks."""

    @property
    def thinking(self) -> Thinking | None:
        """The tags of its thoughts; None where it has none."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """What its answers depend on, as plain values."""
        ...

    async def ask(self, source: TaskSource, tasks: Sequence[Task], n: int) -> list[list[Rollout | str]]:
        """``n`` attempts at each task; in place of one that could not be made, why.

        Raises:
            ConfigError: it can be asked nothing, as with a wrong key.
        """
        ...

    async def close(self) -> None:
        """Ends what it holds open."""
        ...


def context_of(task: Task) -> Context:
    """A task as it is asked: its opening conversation."""
    world = task.public_view()
    return Context(
        key=f"distill/{task.arm}/{task.level}/{task.split}/{task.index}", group=task.id, task=world, messages=world.messages
    )


@dataclass(frozen=True, kw_only=True)
class ModelTeacher:
    """A model on this machine. Its answers are a function of the seed and the task.

    Attributes:
        model: a run folder, a model folder in Hugging Face format, or a name on the hub.
        temperature: of its answers; 0 takes the most likely token.
        max_new_tokens: most tokens in an answer; when None, 512, or half the context where that is less.
        seed: of the sampling noise.
        max_turns: model calls per attempt, in families with an environment.
        deadline: seconds that an environment may take for one start or step.

    Raises:
        ConfigError: a temperature or a number of tokens that cannot be.
    """

    model: Path | str
    temperature: float = 1.0
    max_new_tokens: int | None = None
    seed: int = 0
    max_turns: int = 8
    deadline: float = 30.0

    def __post_init__(self) -> None:
        try:
            Sampling(temperature=self.temperature, max_new_tokens=1 if self.max_new_tokens is None else self.max_new_tokens)
        except DataError as error:
            raise ConfigError(f"ModelTeacher: {error}") from None

    @cached_property
    def _loaded(self) -> AnyModel:
        from assay.runtime.models.hf import load_model

        return load_model(model_folder(Path(self.model)))

    @cached_property
    def _engine(self) -> Engine:
        from assay.runtime.engine.settings import engine_for

        return engine_for(self._loaded)

    @property
    def thinking(self) -> Thinking | None:
        """As its tokenizer's chat settings say."""
        return self._loaded.tokenizer.thinking

    @property
    def _sampling(self) -> Sampling:
        most = self.max_new_tokens or min(512, self._loaded.shape.max_positions // 2)
        return Sampling(temperature=self.temperature, max_new_tokens=most)

    def describe(self) -> Mapping[str, Any]:
        """The model by its place, or its name with the commit, and how it is asked."""
        name = hub_name(self.model)
        where = str(on_hub(name).name) if name else str(Path(self.model).resolve())
        return {"model": where, "sampling": asdict(self._sampling), "seed": self.seed, "max_turns": self.max_turns}

    async def ask(self, source: TaskSource, tasks: Sequence[Task], n: int) -> list[list[Rollout | str]]:
        """Plays each task ``n`` times.

        Raises:
            ConfigError: a prompt that leaves no room for an answer.
            DataError: a prompt that the tokenizer or the chat template cannot write.
            EngineError: generation failed.
        """
        player = Player(
            engine=self._engine,
            tokenizer=self._loaded.tokenizer,
            source=source,
            sampling=self._sampling,
            seed=self.seed,
            max_turns=self.max_turns,
            deadline=self.deadline,
        )
        made = await player.collect([context_of(task) for task in tasks], n)
        return [list(made[at * n : (at + 1) * n]) for at in range(len(tasks))]

    async def close(self) -> None:
        """Nothing is held open."""


@dataclass(frozen=True, kw_only=True)
class ServerTeacher:
    """A model behind a server. It is asked for one answer at a time, which every server can give.

    Attributes:
        client: asks the server, and again where it fails for a while.
        temperature, max_new_tokens: of its answers.
        thinking: the tags of its thoughts, where its answers hold any.
        max_turns, deadline: as in `ModelTeacher`.
    """

    client: OpenAIClient
    temperature: float = 1.0
    max_new_tokens: int = 2048
    thinking: Thinking | None = field(default_factory=Thinking)
    max_turns: int = 8
    deadline: float = 30.0

    def describe(self) -> Mapping[str, Any]:
        """The server, its model, and how it is asked; no key."""
        said = {name: getattr(self, name) for name in ("temperature", "max_new_tokens", "max_turns")}
        tags = asdict(self.thinking) if self.thinking else None
        return {"server": self.client.base_url, "model": self.client.model, **said, "thinking": tags}

    async def ask(self, source: TaskSource, tasks: Sequence[Task], n: int) -> list[list[Rollout | str]]:
        """Asks for each attempt, all at once as far as the client allows.

        Raises:
            ConfigError: the server refuses such requests.
        """
        wanted = [asyncio.ensure_future(self._attempt(source, task, i)) for task in tasks for i in range(n)]
        try:
            made = await asyncio.gather(*wanted)
        except BaseException:
            for each in wanted:
                each.cancel()
            await asyncio.gather(*wanted, return_exceptions=True)
            raise
        return [list(made[at * n : (at + 1) * n]) for at in range(len(tasks))]

    async def close(self) -> None:
        """Closes the client's connections."""
        await self.client.close()

    async def _attempt(self, source: TaskSource, task: Task, number: int) -> Rollout | str:
        player = ServerPlayer(
            client=self.client,
            temperature=self.temperature,
            max_new_tokens=self.max_new_tokens,
            thinking=self.thinking,
            max_turns=self.max_turns,
            deadline=self.deadline,
        )
        try:
            return await player.play(source, task, context_of(task), number)
        except (EngineError, EnvironmentFailure) as error:
            return str(error)
