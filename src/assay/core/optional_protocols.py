"""What some task sources, curricula and samplers can do besides what all can, and the screen that a stage may have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from assay.core.media import Pictures
from assay.core.protocols import ContextManager, Curriculum, TaskSource
from assay.core.rollout import Rollout
from assay.core.score import Score
from assay.core.task import Context, Task

__all__ = [
    "CountsRows",
    "DiffersInEvaluation",
    "MixesFamilies",
    "PlacesLevels",
    "PlacesRows",
    "ReadsMetrics",
    "ReadsTasks",
    "SamplerByContext",
    "ShowsPictures",
    "TaskScreen",
    "row_places",
]


@runtime_checkable
class CountsRows(TaskSource, Protocol):
    """A family of finitely many rows: behind the last one a stream begins again."""

    def size(self, arm: str, level: int, split: str) -> int:
        """Different rows of a cell."""
        ...


@runtime_checkable
class DiffersInEvaluation(ContextManager, Protocol):
    """A context manager that treats an evaluation's conversations otherwise than those of training."""

    def for_evaluation(self) -> ContextManager:
        """The one of evaluations."""
        ...


@runtime_checkable
class MixesFamilies(TaskSource, Protocol):
    """Several families side by side."""

    def source(self, arm: str) -> TaskSource:
        """The family that an arm belongs to."""
        ...


@runtime_checkable
class PlacesLevels(TaskSource, Protocol):
    """A family whose levels may be points of a box, of several quantities at once."""

    def level_point(self, arm: str, level: int) -> tuple[float, ...]:
        """The quantities of a level; empty for an arm whose levels are a row."""
        ...


@runtime_checkable
class PlacesRows(TaskSource, Protocol):
    """A family of a user's rows, which says where in them a task stands."""

    def row_place(self, task: Task) -> str:
        """As ``row 7``; "" where that is not known."""
        ...


def row_places(tasks: TaskSource) -> Callable[[Task], str]:
    """What says where in a user's rows a task stands; "" for families that have no rows."""
    return tasks.row_place if isinstance(tasks, PlacesRows) else lambda task: ""


@runtime_checkable
class ReadsMetrics(Curriculum, Protocol):
    """A curriculum that follows what a run measures, such as its held-out evaluations."""

    def observe_metrics(self, metrics: Mapping[str, float]) -> None:
        """Called behind each step with its metrics, and with those of the evaluation behind it, if there was one."""
        ...


@runtime_checkable
class ReadsTasks(Curriculum, Protocol):
    """A curriculum that looks at the tasks that it may draw."""

    def read_tasks(self, tasks: TaskSource) -> None:
        """Called once, before the first draw and before a state is loaded."""
        ...


@runtime_checkable
class ShowsPictures(TaskSource, Protocol):
    """A family whose tasks or environments show pictures."""

    @property
    def pictures(self) -> Pictures:
        """Pixels of all pictures that its tasks and environments have shown."""
        ...


@runtime_checkable
class SamplerByContext(Protocol):
    """A `Sampler` that can tell of a context's rollouts while it samples those of others."""

    async def collect_each(
        self, contexts: Sequence[Context], n: int, ended: Callable[[Sequence[Rollout]], None]
    ) -> list[Rollout]:
        """``collect``; tells ``ended`` of each context's rollouts, in their order, when its last one has ended."""
        ...


class TaskScreen(Protocol):
    """Which drawn tasks are rolled out, by the policy's greedy answer to each. Pure; that answer is not learned from."""

    def keep_task(self, task: Task, score: Score) -> bool:
        """Whether the task is rolled out; ``score`` is that of the greedy answer, and may be a fault."""
        ...
