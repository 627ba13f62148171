"""The settings of a sampler as bytes for another process."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from assay.asynchronous.messages import SamplerSettings
from assay.core.errors import ConfigError
from assay.core.optional_protocols import ShowsPictures
from assay.core.protocols import Environment, TaskSource, Verifier
from assay.core.task import Message, Task, TaskView

__all__ = ["WithoutEnvironments", "pickle_settings", "sendable_tasks"]


@dataclass(frozen=True, slots=True)
class WithoutEnvironments:
    """Stands for tasks that a single answer ends, in a process that is given each task and needs nothing else of them.

    Attributes:
        name: of the tasks.
    """

    name: str

    def environment(self, world: TaskView) -> Environment | None:
        """None."""
        return None

    def arms(self) -> Mapping[str, tuple[int, ...]]:
        """Not told here."""
        raise self._absent()

    def task(self, arm: str, level: int, split: str, index: int) -> Task:
        """Not told here."""
        raise self._absent()

    def verifier(self) -> Verifier:
        """Not told here."""
        raise self._absent()

    def trace(self, task: Task, noise: float, rng: np.random.Generator) -> tuple[Message, ...] | None:
        """Not told here."""
        raise self._absent()

    def _absent(self) -> ConfigError:
        return ConfigError(f"the sampler asks for tasks of {self.name!r}, which sampler processes are not sent")


def sendable_tasks(tasks: TaskSource) -> TaskSource:
    """What another process is given of the tasks: a stand-in where a single answer ends them, since rows may be many and their
    reward may be a function of a notebook; else the tasks.

    Raises:
        ConfigError: they are played in an environment, or show pictures, and cannot be sent.
    """
    if not _has_environments(tasks) and not isinstance(tasks, ShowsPictures):
        return WithoutEnvironments(tasks.name)
    if reason := _why_not(tasks):
        raise _unsendable(f"the tasks {tasks.name!r}, which are played in an environment: {reason}")
    return tasks


def pickle_settings(settings: SamplerSettings) -> bytes:
    """The settings as bytes.

    Raises:
        ConfigError: something cannot be sent; names it.
    """
    for what, value in (("Reinforce.sampler", settings.sampler), ("Run.engine", settings.engine)):
        if reason := _why_not(value):
            raise _unsendable(f"{what}: {reason}")
    return pickle.dumps(settings, protocol=5)


def _unsendable(what: str) -> ConfigError:
    return ConfigError(
        f"sampler processes cannot be sent {what}. Define its functions and classes in a module that can be imported, or leave "
        "Reinforce.asynchronous out"
    )


def _why_not(value: object) -> str:
    """Why another process could not read it; empty where it can."""
    try:
        data = pickle.dumps(value, protocol=5)
    except Exception as error:  # whatever the user's objects raise
        return f"{type(error).__name__}: {error}"
    return "it uses what the main script defines" if b"__main__" in data else ""


def _has_environments(tasks: TaskSource) -> bool:
    """Whether the first task of any arm and level is played in an environment."""
    return any(
        tasks.environment(tasks.task(arm, level, "train", 0).public_view()) is not None
        for arm, levels in tasks.arms().items()
        for level in levels
    )
