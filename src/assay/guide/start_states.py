"""Rollouts that begin in the middle of an episode, at a state of the environment that the task brings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from assay.core.errors import ConfigError, DataError
from assay.core.group import Group
from assay.core.protocols import Moment, Posed
from assay.core.seeds import derive, uniforms
from assay.core.task import Task
from assay.guide.guidance import Stateless, plain_context

__all__ = ["StartStates"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartStates(Stateless):
    """With some probability, and only early in the run, an episode begins at a state of a recorded trajectory.

    States are in ``private["states"]``, in the order of the trajectory, as the task's environment writes them
    (`assay.core.Snapshots`). One is drawn evenly; all rollouts of the group begin there, so their baseline compares like with
    like. At probability 0, and after ``steps``, every episode begins at its task. Evaluation always does.

    Attributes:
        probability: of beginning at a state.
        steps: of the run, after which no episode does; 0 for the whole run.
        seed: chooses other draws; each draw is a pure function of seed and key.

    Raises:
        ConfigError: a value out of range.

    UNSURE: how states are drawn, and until which step of the run.

    Left out: clusters of states to draw from evenly (S3RL), and a shorter horizon behind a state.

    Source: Snapshot Reinforcement Learning (2024), in part.

    >>> from assay.core import FrozenMap, Moment, Task
    >>> task = Task(id="a", domain="d", arm="x", level=1, split="train", index=0,
    ...             public=FrozenMap({"prompt": "H12>"}), private=FrozenMap({"states": ({"heaps": [1, 1], "turn": 1},)}))
    >>> StartStates(probability=1.0).next(task, [], Moment(key="k"))[0].context.snapshot["turn"]
    1
    """

    probability: float = 0.5
    steps: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0.0 <= self.probability <= 1.0:
            raise ConfigError(f"StartStates.probability must be in [0, 1], got {self.probability}")
        if self.steps < 0:
            raise ConfigError(f"StartStates.steps must be at least 0, got {self.steps}")

    def next(self, task: Task, history: Sequence[Group], moment: Moment) -> Sequence[Posed]:
        """The context, or () when the task was attempted.

        Raises:
            DataError: the task brings no states.
        """
        if history:
            return ()
        states = _states_of(task)
        plain = plain_context(task, moment.key)
        chance, where = uniforms(np.array([derive("guidance/states", self.seed, "", moment.key)], np.uint64), 0, 2)[0]
        if not states or chance >= self.probability or (self.steps and moment.step >= self.steps):
            return (Posed(context=plain),)
        return (Posed(context=replace(plain, snapshot=states[int(where * len(states))], tag="state")),)


def _states_of(task: Task) -> Sequence[Any]:
    states: Any = task.private.get("states")
    if not isinstance(states, tuple | list):
        raise DataError(
            f"task {task.id!r}: StartStates needs private['states'], a list of what its environment's snapshot() gave, found "
            f"{states!r}; use a family that brings them, such as Heaps, or Plain()"
        )
    return cast("Sequence[Any]", states)
