"""Tasks of the library ``verifiers`` (its ``v1``: tasksets), each judged by its own rewards."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

from assay.core.canon import plain
from assay.core.errors import ConfigError, DataError, MissingExtraError, RewardError
from assay.core.rollout import Rollout
from assay.core.score import Score
from assay.core.task import Task
from assay.interop.values import score_value, settle

__all__ = ["TasksetReward", "taskset_class", "why_unjudged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksetReward:
    """The rewards of a task of an installed taskset: ``reward`` is their weighted sum, ``info`` has each.

    The task's own code judges a conversation of the task's prompt and the rollout's last text, with the task's default config. It
    is foreign code, so a `ScoringPool` runs it in a process that can be killed. Judges that call a model, and rewards that need a
    container, are refused: they cannot be a function of the answer.

    Attributes:
        taskset: id of an installed package (``my-env``, ``owner/my-env``).

    Raises:
        MissingExtraError: ``verifiers`` is not installed.
        ConfigError: no such taskset, or it is none of ``v1``.
        DataError: the task's row has no ``data``, what the taskset's own task holds.
        RewardError: the task has no reward that a text can be judged by.
    """

    taskset: str = ""

    def __post_init__(self) -> None:
        if not self.taskset:
            raise ConfigError("TasksetReward.taskset is empty; give the id of an installed taskset")

    @property
    def names(self) -> tuple[str, ...]:
        """Components that it gives."""
        return ("reward",)

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        """Judge one rollout."""
        row: Any = task.private.get("row", task.private)
        if "data" not in row:
            raise DataError(f"task {task.id!r} has no 'data' of a task of {self.taskset!r}; it has {sorted(row)}")
        made, kind = self._task(plain(row["data"]))
        missing = why_unjudged(made)
        if missing:
            raise RewardError(f"a task of {self.taskset!r} cannot be judged by its answer alone: {missing}")
        trace = _trace(made, kind, [(m.role, m.content) for m in task.public_view().messages], rollout.text)
        settle(made.score(trace))
        values = {name: float(r.score) for name, r in trace.rewards.items() if r is not None}
        if len(values) < len(trace.rewards) or not values:
            lost = sorted(set(trace.rewards) - set(values)) or "all"
            raise RewardError(f"rewards of a task of {self.taskset!r} gave no number: {lost}")
        return score_value(float(trace.reward), {}, rewards=values)

    def prepare(self) -> None:
        """Import the taskset in a worker, before any answer is timed."""
        taskset_class(self.taskset)

    def _task(self, data: Mapping[str, Any]) -> tuple[Any, type[Any]]:
        kind = taskset_class(self.taskset).task_type()
        return kind(kind.data_type().model_validate(data)), kind


@lru_cache(maxsize=32)
def taskset_class(name: str) -> Any:
    """The class of an installed taskset.

    Raises:
        MissingExtraError: ``verifiers`` is not installed.
        ConfigError: no such taskset, or it is none of ``v1``.
    """
    loaders = vf("utils.loaders")
    try:
        return loaders.taskset_class(name)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ConfigError(f"there is no taskset {name!r} of verifiers v1 here: {error}") from None


def why_unjudged(task: Any) -> str:
    """Why a task of a taskset cannot be judged by its answer alone; "" where it can."""
    if task.NEEDS_CONTAINER:
        return "it needs a container"
    if task.__class__.toolsets(task.config):
        return "it has tools, which its own harness serves"
    if task.plugged_judges():
        return "it asks a model to judge"
    rewards = task.hooks("reward")
    needs = [fn.__name__ for fn in rewards if _needs_runtime(fn)]
    if needs:
        return f"its rewards {needs} need the container that it was solved in"
    return "" if rewards else "it has no rewards"


def vf(inside: str = "") -> Any:
    """A module of ``verifiers.v1``.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        return import_module(f"verifiers.v1.{inside}" if inside else "verifiers.v1")
    except ModuleNotFoundError as error:
        if error.name and error.name.split(".")[0] != "verifiers":
            raise
        raise MissingExtraError("verifiers", "tasksets") from None


def _needs_runtime(function: Any) -> bool:
    found = inspect.signature(function).parameters.get("runtime")
    return found is not None and found.default is inspect.Parameter.empty


def _trace(made: Any, kind: type[Any], prompt: list[tuple[str, str]], text: str) -> Any:
    api, graph = vf(), vf("graph")
    says = {"system": api.SystemMessage, "user": api.UserMessage, "assistant": api.AssistantMessage}
    nodes: list[Any] = []
    for role, content in prompt:
        if role not in says:
            raise DataError(f"a prompt for verifiers has turns of {sorted(says)}, not of {role!r}")
        nodes.append(graph.MessageNode(parent=len(nodes) - 1 if nodes else None, message=says[role](content=content)))
    last = api.AssistantMessage(content=text)
    nodes.append(graph.MessageNode(parent=len(nodes) - 1, message=last, sampled=True))
    task = api.TraceTask(type=kind.__name__, data=made.data, key=made.key, hash=made.hash)
    return api.Trace(task=task, agent=api.AgentInfo(config=api.AgentConfig()), nodes=nodes, is_completed=True, ok=True)
