"""Rollouts that begin in the middle of an episode, at a state of the environment that the task brings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError, DataError
from assay.core.fields import later
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
    (`assay.core.Snapshots`), or in a file, where a teacher's trajectories were recorded
    (`assay.rollout.states_between`). One is drawn evenly, or with ``clusters`` (S3RL) a cluster evenly and then one of
    its states: the states of a task are parted by k-means of the numbers within them, so that rare kinds are met as often as
    common ones. All rollouts of the group begin there, so their baseline compares like with like. At probability 0, and after
    ``steps``, every episode begins at its task. Evaluation always does.

    Attributes:
        probability: of beginning at a state.
        steps: of the run, after which no episode does; 0 for the whole run.
        seed: chooses other draws; each draw is a pure function of seed and key.
        clusters: that the states of a task are parted into, at most; 0 to draw states evenly.
        horizon: assistant turns behind a state, beyond which an episode is cut off (S3RL); 0 for as many as any episode has.
        data: JSON lines with ``prompt`` and ``states``, in place of the tasks' own; tasks that it lacks begin at their prompt.

    Raises:
        ConfigError: a value out of range.

    UNSURE: how many clusters, how long a horizon, and until which step of the run.

    Source: Snapshot Reinforcement Learning (2024), with both parts of its S3RL.

    >>> from assay.core import FrozenMap, Moment, Task
    >>> task = Task(id="a", domain="d", arm="x", level=1, split="train", index=0,
    ...             public=FrozenMap({"prompt": "H12>"}), private=FrozenMap({"states": ({"heaps": [1, 1], "turn": 1},)}))
    >>> StartStates(probability=1.0).next(task, [], Moment(key="k"))[0].context.snapshot["turn"]
    1
    """

    probability: float = 0.5
    steps: int = 0
    seed: int = 0
    clusters: int = later(0)
    horizon: int = later(0)
    data: str = later("")

    def __post_init__(self) -> None:
        if not 0.0 <= self.probability <= 1.0:
            raise ConfigError(f"StartStates.probability must be in [0, 1], got {self.probability}")
        for name in ("steps", "clusters", "horizon"):
            if getattr(self, name) < 0:
                raise ConfigError(f"StartStates.{name} must be at least 0, got {getattr(self, name)}")

    @property
    def files(self) -> tuple[str, ...]:
        """The recorded states, looked for before a run begins; nothing where tasks bring their own."""
        return (self.data,) if self.data else ()

    def next(self, task: Task, history: Sequence[Group], moment: Moment) -> Sequence[Posed]:
        """The context, or () when the task was attempted.

        Raises:
            DataError: the task brings no states, the file holds something else, or states to cluster hold no numbers.
        """
        if history:
            return ()
        plain = plain_context(task, moment.key)
        states = _read_states(self.data).get("\n".join(m.content for m in plain.messages), ()) if self.data else _states_of(task)
        seed = np.array([derive("guidance/states", self.seed, "", moment.key)], np.uint64)
        chance, where, which = uniforms(seed, 0, 3)[0]
        if not states or chance >= self.probability or (self.steps and moment.step >= self.steps):
            return (Posed(context=plain),)
        if self.clusters:
            parts = clusters_of(states, self.clusters)
            states = [states[i] for i in parts[int(which * len(parts))]]
        state = states[int(where * len(states))]
        return (Posed(context=replace(plain, snapshot=state, tag="state", max_turns=self.horizon or None)),)


def clusters_of(states: Sequence[Any], most: int) -> list[list[int]]:
    """Places of the states, parted by k-means of the numbers within each, in their order and filled up with 0.

    Centres begin at the first state and then at the one farthest from all centres so far, so that nothing is drawn. States
    with equal numbers are never parted, so that there may be fewer clusters than ``most``.

    Raises:
        DataError: a state holds no number.

    >>> clusters_of([{"heaps": [1, 1]}, {"heaps": [1, 2]}, {"heaps": [9, 9]}], 2)
    [[0, 1], [2]]
    """
    rows = [list(_numbers(state)) for state in states]
    bare = next((i for i, row in enumerate(rows) if not row), None)
    if bare is not None:
        raise DataError(f"StartStates.clusters: the state {states[bare]!r} holds no number to cluster by; use clusters=0")
    points = np.zeros((len(rows), max(map(len, rows))))
    for i, row in enumerate(rows):
        points[i, : len(row)] = row
    centres = points[:1]
    while len(centres) < most:
        far = _distances(points, centres).min(axis=1)
        if not far.max() > 0.0:
            break
        centres = np.concatenate([centres, points[[int(far.argmax())]]])
    owner = _distances(points, centres).argmin(axis=1)
    for _ in range(100):
        centres = np.stack([points[owner == k].mean(axis=0) if (owner == k).any() else c for k, c in enumerate(centres)])
        moved = _distances(points, centres).argmin(axis=1)
        if (moved == owner).all():
            break
        owner = moved
    return sorted(found for k in range(len(centres)) if (found := np.flatnonzero(owner == k).tolist()))


def _distances(points: NDArray[np.float64], centres: NDArray[np.float64]) -> NDArray[np.float64]:
    """``[points, centres]`` squared."""
    return ((points[:, None] - centres[None]) ** 2).sum(axis=2)


def _numbers(state: Any) -> Iterator[float]:
    """Every number within, by sorted keys."""
    if isinstance(state, bool | int | float):
        yield float(state)
    elif isinstance(state, Mapping):
        held = cast("Mapping[str, Any]", state)
        for key in sorted(held):
            yield from _numbers(held[key])
    elif isinstance(state, tuple | list):
        for part in cast("Sequence[Any]", state):
            yield from _numbers(part)


@cache
def _read_states(path: str) -> Mapping[str, Sequence[Any]]:
    """Prompt to the states of all its trajectories, in the order of the file."""
    found: dict[str, list[Any]] = {}
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise DataError(f"StartStates.data={path!r} cannot be read ({error}); give a file of states in JSON lines") from error
    for number, line in enumerate(lines, 1):
        try:
            row: Any = json.loads(line)
            prompt, states = row["prompt"], row["states"]
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path}, line {number}: a row is an object with 'prompt' and 'states' ({error})") from error
        if not isinstance(prompt, str) or not isinstance(states, list):
            raise DataError(f"{path}, line {number}: 'prompt' is text and 'states' a list, found {line[:80]!r}")
        found.setdefault(prompt, []).extend(cast("list[Any]", states))
    return found


def _states_of(task: Task) -> Sequence[Any]:
    states: Any = task.private.get("states")
    if not isinstance(states, tuple | list):
        raise DataError(
            f"task {task.id!r}: StartStates needs private['states'], a list of what its environment's snapshot() gave, found "
            f"{states!r}; use a family that brings them, such as Heaps, or Plain()"
        )
    return cast("Sequence[Any]", states)
