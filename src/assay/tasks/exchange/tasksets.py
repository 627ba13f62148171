"""A family as a taskset of the library ``verifiers`` (its ``v1``): what an exported package consists of."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from itertools import islice
from threading import Lock
from typing import Any

from assay.core.errors import ConfigError, RewardError, UnknownNameError
from assay.core.protocols import TaskSource
from assay.core.score import Score
from assay.core.task import Task
from assay.interop.taskset import taskset_class, unjudged, vf
from assay.tasks.draws import in_turn
from assay.tasks.registry import family, reseeded, written
from assay.verify.rollouts import rollout_of
from assay.verify.workers.pool import ScoringPool

__all__ = ["TasksetJudge", "environment_of", "source_of", "taskset_of", "taskset_rows"]


def source_of(name: str, seed: int | None = None, form: str | None = None) -> TaskSource:
    """A family by name, or by ``package.module:thing``, with another stream and form where they are given.

    Raises:
        UnknownNameError: no such family.
        ConfigError: the family has no such setting.
    """
    module, colon, thing = name.partition(":")
    made: Any = getattr(import_module(module), thing) if colon else family(name)
    source: TaskSource = made() if isinstance(made, type) or not isinstance(made, TaskSource) else made
    source = source if seed is None else reseeded(source, seed)
    return source if form is None else written(source, form)


class TasksetJudge:
    """A family's verifier for one process: attempts are judged one after the other, in processes that can be killed where needed.

    Args:
        source: the family.
    """

    def __init__(self, source: TaskSource) -> None:
        self._pool, self._lock = ScoringPool(source.verifier(), refuse=False), Lock()

    async def score(self, task: Task, *said: str) -> Score:
        """The verdict on an attempt of one text, or of one per turn.

        Raises:
            RewardError: there is none: a fault is not a 0.
        """
        score = await asyncio.to_thread(self._judged, task, said)
        if not score.valid:
            raise RewardError(f"no verdict on task {task.id!r} ({score.fault} fault): {score.info.get('error', 'no detail')}")
        return score

    def _judged(self, task: Task, said: tuple[str, ...]) -> Score:
        rollout = rollout_of(task, *said)
        with self._lock:
            return self._pool.score([(task, rollout)])[rollout.id]


@lru_cache(maxsize=64)
def _opened(name: str, seed: int | None, form: str | None) -> tuple[TaskSource, TasksetJudge]:
    source = source_of(name, seed, form)
    return source, TasksetJudge(source)


def taskset_of(name: str) -> type[Any]:
    """A taskset of a family: its ``load`` yields different tasks of the arms and levels asked for in turn, and a task's reward is
    the verdict of the family's verifier.

    A task's data hold its place in the family, never its answer: the answer is made anew where an attempt is judged.

    Args:
        name: of the family (`source_of`), the default of the config's ``family``.

    Raises:
        MissingExtraError: ``verifiers`` is not installed.
    """
    api = vf()

    class AssayData(api.TaskData):
        family: str
        arm: str
        level: int
        split: str
        index: int
        seed: int | None = None
        form: str | None = None

    class AssayTask(api.Task[AssayData]):
        @api.reward(weight=1.0)
        async def correct(self, trace: Any) -> float:
            """The primary component of the verdict."""
            own: Any = self
            task, judge, played = _task_of(own.data)
            if played:
                return float(trace.info["assay"])  # its environment has judged the whole play
            return (await judge.score(task, trace.last_reply)).primary

    class AssayConfig(api.TasksetConfig):
        family: str = name
        arm: str | None = None
        levels: tuple[int, ...] = ()
        split: str = "train"
        seed: int | None = None
        form: str | None = None
        num_tasks: int = 1000

    class AssayTaskset(api.Taskset[AssayTask, AssayConfig]):
        def load(self) -> Iterator[Any]:
            """The tasks."""
            own: Any = self.config  # pyright: ignore
            source, _ = _opened(own.family, own.seed, own.form)
            for task in in_turn(source, own.num_tasks, own.split, (own.arm,) if own.arm else (), own.levels):
                turns = [{"role": m.role, "content": m.content} for m in task.exposed().messages]
                yield AssayTask(
                    AssayData(
                        id=task.id,
                        name=task.id,
                        prompt=turns[0]["content"] if len(turns) == 1 else turns,
                        family=own.family,
                        arm=task.arm,
                        level=task.level,
                        split=task.split,
                        index=task.index,
                        seed=own.seed,
                        form=own.form,
                    ),
                    own.task,
                )

    return AssayTaskset


def environment_of() -> type[Any]:
    """The environment of families of several turns: the family's own world answers what the policy says.

    Raises:
        MissingExtraError: ``verifiers`` is not installed.
    """
    api = vf()

    class AssayEnvConfig(api.EnvConfig):
        player: api.AgentConfig = api.AgentConfig()  # pyright: ignore

    class AssayEnv(api.Env[AssayEnvConfig]):
        async def run(self, task: Any, agents: Any) -> None:
            """One episode."""
            own, judge, _ = _task_of(task.data)
            source, _ = _opened(task.data.family, task.data.seed, task.data.form)
            world = source.environment(own.exposed())
            if world is None:
                raise ConfigError(f"arm {own.arm!r} of {source.name!r} has no environment; export it without the environment")
            said: list[str] = []
            await world.start()
            async with agents.player.interaction(task) as interaction:
                segment = await interaction.turn()
                while not segment.terminated:
                    said.append(segment.last_reply)
                    step = await world.step(said[-1])
                    if step.done:
                        break
                    segment = await interaction.turn("\n".join(m.content for m in step.obs.messages))
                interaction.trace.info["assay"] = (await judge.score(own, *said)).primary if said else 0.0

    return AssayEnv


def taskset_rows(name: str, n: int) -> list[dict[str, Any]]:
    """The first ``n`` tasks of an installed taskset as rows for `assay.tasks.judged_rows`, each judged by its own rewards.

    A task that cannot be judged by its answer alone has no question, so that an import refuses it; ``unjudged`` says why.

    Raises:
        MissingExtraError: ``verifiers`` is not installed.
        ConfigError: no such taskset, or one that needs a config.
    """
    kind = taskset_class(name)
    try:
        tasks = islice(kind(vf("utils.generic").concrete_type(kind, vf().TasksetConfig)()), n)
    except Exception as error:  # foreign code
        raise ConfigError(f"the taskset {name!r} cannot be made with its default config: {error}") from error
    return [_row(name, task) for task in tasks]


def _row(name: str, task: Any) -> dict[str, Any]:
    data: dict[str, Any] = task.data.model_dump(mode="json", exclude_none=True)
    why = unjudged(task)
    if why:
        return {"unjudged": why, "data": data}
    prompt: Any = data.get("prompt")
    turns = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    system = [{"role": "system", "content": data["system_prompt"]}] if data.get("system_prompt") else []
    posed = {"messages": [*system, *turns]} if system or not isinstance(prompt, str) else {"prompt": prompt}
    spec = {"name": "taskset", "taskset": name}
    return {**posed, "data": data, "data_source": f"verifiers/{name}", "verifier": spec}


def _task_of(data: Any) -> tuple[Task, TasksetJudge, bool]:
    """The task that data name, its judge, and whether it is played in an environment."""
    source, judge = _opened(data.family, data.seed, data.form)
    if data.arm not in source.arms():
        raise UnknownNameError(f"arm of {source.name}", data.arm, source.arms())
    task = source.task(data.arm, data.level, data.split, data.index)
    return task, judge, source.environment(task.exposed()) is not None
