"""A run of control as a value: what is learned, from what, for how long."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from assay.core import ConfigError, digest, to_dict
from assay.core.fields import later
from assay_control.data.recipes import OfflineData
from assay_control.parts.base import ControlMethod
from assay_control.worlds.base import World

__all__ = ["ControlRun"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlRun:
    """Everything that a run of control is: equal values give equal bits on the same machine.

    Attributes:
        method: how to learn.
        data: to learn from; None for methods that only learn from what they collect.
        world: to act in; that of the data where None.
        steps: of the loop: updates offline, steps of each copy of the world online, rounds of PPO.
        seed: of everything.
        evaluate_every: steps between evaluations; 0 evaluates at the end alone.
        episodes: of an evaluation.
        checkpoint_every: steps between checkpoints.
        log_every: steps between lines of metrics.
        threads: of PyTorch.
        judged: world that it is evaluated in, where it is another than that it acts in, such as a simulator's or one with
            starts of its own.

    Raises:
        ConfigError: no world, or a number out of its range.
    """

    method: ControlMethod
    data: OfflineData | None = None
    world: World | None = None
    steps: int = 2000
    seed: int = 0
    evaluate_every: int = 500
    episodes: int = 20
    checkpoint_every: int = 500
    log_every: int = 100
    threads: int = 1
    judged: World | None = later(None)

    def __post_init__(self) -> None:
        if self.world is None and self.data is None:
            raise ConfigError("ControlRun has neither data nor a world; give data, or a world to act in")
        for name in ("steps", "episodes", "checkpoint_every", "log_every", "threads"):
            if getattr(self, name) < 1:
                raise ConfigError(f"ControlRun.{name}={getattr(self, name)}; use a whole number, at least 1")
        if self.evaluate_every < 0:
            raise ConfigError(f"ControlRun.evaluate_every={self.evaluate_every}; use 0 for the end alone, or a number of steps")

    @property
    def acted_in(self) -> World:
        """The world that it acts in."""
        if self.world is not None:
            return self.world
        assert self.data is not None
        return self.data.world

    @property
    def evaluated_in(self) -> World:
        """The world that it is evaluated in."""
        return self.judged if self.judged is not None else self.acted_in

    def identity(self) -> str:
        """Digest of all settings but ``steps``, which a resume may raise."""
        return digest(to_dict(dataclasses.replace(self, steps=1)))
