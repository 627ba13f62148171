"""A family as a taskset of the library ``verifiers`` (its ``v1``): what an exported package consists of."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from threading import Lock
from typing import Any

import numpy as np

from assay.core.errors import AssayError, ConfigError, RewardError, UnknownNameError, a_kind
from assay.core.protocols import TaskSource
from assay.core.score import Score
from assay.core.task import TOOLS, Task
from assay.interop.load_object import load
from assay.interop.taskset import taskset_class, vf, why_unjudged
from assay.tasks.draws import in_turn, in_turn_to_the_end, rows_of_cell
from assay.tasks.judged import load_rows
from assay.tasks.packages import installed_packages
from assay.tasks.registry import family, with_form, with_seed
from assay.verify.rollouts import rollout_of
from assay.verify.workers.pool import ScoringPool

__all__ = ["TasksetJudge", "environment_of", "prompt_of", "source_of", "taskset_of", "taskset_rows"]

_GENERATED = 1000
"""Tasks of a generated family where no number is asked for."""


def source_of(name: str, seed: int | None = None, form: str | None = None) -> TaskSource:
    """A family by name, by ``package.module:thing`` or ``FILE.py:thing``, or in a file of rows or puzzles; with another stream
    and form where they are given.

    Raises:
        UnknownNameError: no such family.
        ConfigError: the family has no such setting, what was named is no family, or its module cannot be imported.
    """
    source = _load_source(name)
    source = source if seed is None else with_seed(source, seed)
    return source if form is None else with_form(source, form)


def _load_source(name: str) -> TaskSource:
    if ":" not in name:
        if name.endswith(".jsonl"):
            return load_rows(name)
        return installed_packages().read(name) or family(name)
    found: Any = load(name)
    if isinstance(found, type) or not isinstance(found, TaskSource):
        if not callable(found):
            raise ConfigError(f"{name} is {a_kind(found)}, no task family; name a family, or a function that gives one")
        try:
            found = found()
        except AssayError:
            raise
        except Exception as error:  # a person's own code
            raise ConfigError(f"task family {name} failed: {type(error).__name__}: {error}") from error
    if not isinstance(found, TaskSource):
        raise ConfigError(f"{name} gives {a_kind(found)}, no task family (assay.core.protocols.TaskSource)")
    return found


class TasksetJudge:
    """A family's verifier for one process: rollouts are judged one after the other, in processes that can be killed where needed.

    Args:
        source: the family.
    """

    def __init__(self, source: TaskSource) -> None:
        self._pool, self._lock = ScoringPool(source.verifier(), refuse=False), Lock()

    async def score(self, task: Task, *said: str) -> Score:
        """The verdict on a rollout of one text, or of one per turn.

        Raises:
            RewardError: there is none: a fault is not a 0.
        """
        score = await asyncio.to_thread(self._judge_answer, task, said)
        if not score.valid:
            raise RewardError(f"no verdict on task {task.id!r} ({score.fault} fault): {score.info.get('error', 'no detail')}")
        return score

    def _judge_answer(self, task: Task, said: tuple[str, ...]) -> Score:
        rollout = rollout_of(task, *said)
        with self._lock:
            return self._pool.score([(task, rollout)])[rollout.id]


@lru_cache(maxsize=64)
def _open_taskset(name: str, seed: int | None, form: str | None) -> tuple[TaskSource, TasksetJudge]:
    source = source_of(name, seed, form)
    return source, TasksetJudge(source)


def taskset_of(name: str) -> type[Any]:
    """A taskset of a family: its ``load`` yields different tasks of the arms and levels asked for in turn, and a task's reward is
    the verdict of the family's verifier.

    A task's data hold its place in the family, never its answer: the answer is made anew where a rollout is judged.

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
            if played and "assay" in trace.info:
                return float(trace.info["assay"])  # its environment has judged the whole play
            return (await judge.score(task, trace.last_reply)).primary

        async def validate(self, runtime: Any) -> bool | None:
            """Whether the oracle's own turns are right, for ``vf-validate``; None without an oracle."""
            own: Any = self
            task, judge, _ = _task_of(own.data)
            source, _ = _open_taskset(own.data.family, own.data.seed, own.data.form)
            turns = source.trace(task, 0.0, np.random.default_rng(0))
            said = [turn.content for turn in turns or () if turn.role == "assistant"]
            return (await judge.score(task, *said)).primary == 1.0 if said else None

    class AssayConfig(api.TasksetConfig):
        family: str = name
        arm: str | None = None
        levels: list[int] = []  # noqa: RUF012 -- of pydantic; a tuple could not be given on the command line
        split: str = "train"
        seed: int | None = None
        form: str | None = None
        num_tasks: int | None = None

    class AssayTaskset(api.Taskset[AssayTask, AssayConfig]):
        def load(self) -> Iterator[Any]:
            """The tasks."""
            own: Any = self.config  # pyright: ignore
            source, _ = _open_taskset(own.family, own.seed, own.form)
            for task in _asked_for(source, own):
                yield AssayTask(
                    AssayData(
                        id=task.id,
                        name=task.id,
                        prompt=prompt_of(task),
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


def _asked_for(source: TaskSource, config: Any) -> Iterator[Task]:
    """The tasks that a config asks for: without a number all of a source of rows, `_GENERATED` of a generated one."""
    arms, levels = (config.arm,) if config.arm else (), tuple(config.levels)
    finite = all(rows_of_cell(source, arm, had[0], config.split) is not None for arm, had in source.arms().items())
    if finite:
        return islice(in_turn_to_the_end(source, config.split, arms, levels), config.num_tasks)
    return in_turn(source, _GENERATED if config.num_tasks is None else config.num_tasks, config.split, arms, levels)


def prompt_of(task: Task) -> str | list[dict[str, str]]:
    """What a task asks, as ``verifiers`` takes it: text, or messages of system, user and assistant.

    Raises:
        ConfigError: the task declares tools, shows pictures, or has a message of another role: ``verifiers`` has no place for
            them in a prompt.
    """
    turns = task.public_view().messages
    tools = next((m.content for m in turns if m.role == TOOLS), "")
    if tools:
        names = ", ".join(str(t.get("name")) for t in json.loads(tools))
        raise ConfigError(
            f"{task.arm}: its tasks declare tools ({names}), and verifiers takes no tools from a task: it runs tool servers of "
            "its own. Leave 'tools' out of the public part and describe them in the prompt; ToolCalls reads calls from the text"
        )
    other = next((m.role for m in turns if m.role not in _ROLES), "")
    if other or any(m.media for m in turns):
        what = f"a message of role {other!r}" if other else "pictures"
        raise ConfigError(f"{task.arm}: its tasks begin with {what}, which a prompt of verifiers cannot hold; ask in plain turns")
    said = [{"role": m.role, "content": m.content} for m in turns]
    return said[0]["content"] if len(said) == 1 and said[0]["role"] == "user" else said


_ROLES = ("system", "user", "assistant")


def environment_of() -> type[Any]:
    """The environment of families of several turns: the family's own answers what the policy says. A task of an arm without one
    is a single turn.

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
            source, _ = _open_taskset(task.data.family, task.data.seed, task.data.form)
            environment = source.environment(own.public_view())
            said: list[str] = []
            if environment is not None:
                await environment.start()
            async with agents.player.interaction(task) as interaction:
                segment = await interaction.turn()
                while environment is not None and not segment.terminated:
                    said.append(segment.last_reply)
                    step = await environment.step(said[-1])
                    if step.done:
                        break
                    segment = await interaction.turn("\n".join(m.content for m in step.obs.messages))
                if environment is not None:
                    interaction.trace.info["assay"] = (await judge.score(own, *said)).primary if said else 0.0

    return AssayEnv


def taskset_rows(name: str, n: int) -> list[dict[str, Any]]:
    """The first ``n`` tasks of an installed taskset as rows for `assay.tasks.judged_rows`, each judged by its own rewards.

    A task that cannot be judged by its answer alone has no question, so that an import refuses it; ``why_unjudged`` says why.

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
    why = why_unjudged(task)
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
    source, judge = _open_taskset(data.family, data.seed, data.form)
    if data.arm not in source.arms():
        raise UnknownNameError(f"arm of {source.name}", data.arm, source.arms())
    task = source.task(data.arm, data.level, data.split, data.index)
    return task, judge, source.environment(task.public_view()) is not None
