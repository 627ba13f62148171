"""What each step of a run does, and how the policy acts while it collects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.core import ConfigError
from assay_control.lazy_torch import torch
from assay_control.parts.base import Noise, Phase
from assay_control.records import Choices

if TYPE_CHECKING:
    from torch import Tensor

    from assay_control.parts.nets import Nets

__all__ = ["AddNoise", "DrawAction", "EpsilonGreedy", "Offline", "Online", "OfflineToOnline"]


@dataclass(frozen=True, slots=True)
class Offline:
    """One update a step, and no step of the world.

    >>> Offline().phase(1)
    Phase(collect=0, updates=1, random=False, online=False)
    """

    def phase(self, step: int) -> Phase:
        """As `Schedule.phase`."""
        del step
        return Phase()


@dataclass(frozen=True, slots=True, kw_only=True)
class Online:
    """A step of each copy of the world, then ``updates``; random actions and no update for the first ``start`` steps.

    Attributes:
        start: steps before the first update.
        collect: steps of the world between updates.
        updates: after each of them.
        random: whether the first ``start`` steps act at random.

    >>> Online(start=1).phase(1).updates, Online(start=1).phase(2).updates
    (0, 1)
    """

    start: int = 1000
    collect: int = 1
    updates: int = 1
    random: bool = True

    def __post_init__(self) -> None:
        if self.start < 0 or self.collect < 1 or self.updates < 1:
            raise ConfigError(
                f"Online(start={self.start}, collect={self.collect}, updates={self.updates}): use start >= 0, others >= 1"
            )

    def phase(self, step: int) -> Phase:
        """As `Schedule.phase`."""
        begun = step > self.start
        return Phase(collect=self.collect, updates=self.updates if begun else 0, random=self.random and not begun, online=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineToOnline:
    """Learns from the data set first, then goes on in the world.

    Attributes:
        offline: steps on the data set, one update each.
        warmup: steps after them in which the policy is frozen and only acts, so that the buffer holds its own rows.
        updates: after each further step of the world.

    >>> schedule = OfflineToOnline(offline=2, warmup=1, updates=4)
    >>> [(schedule.phase(step).collect, schedule.phase(step).updates) for step in (2, 3, 4)]
    [(0, 1), (1, 0), (1, 4)]
    """

    offline: int = 10_000
    warmup: int = 0
    updates: int = 1

    def __post_init__(self) -> None:
        if min(self.offline, self.warmup) < 0 or self.updates < 1:
            raise ConfigError(
                f"OfflineToOnline(offline={self.offline}, warmup={self.warmup}, updates={self.updates}): use no negative number, "
                "and an update or more"
            )

    def phase(self, step: int) -> Phase:
        """As `Schedule.phase`."""
        if step <= self.offline:
            return Phase()
        frozen = step <= self.offline + self.warmup
        return Phase(collect=1, updates=0 if frozen else self.updates, online=True)


@dataclass(frozen=True, slots=True)
class AddNoise:
    """The policy's action with normal noise, as TD3 explores.

    Attributes:
        noise: deviation.
    """

    noise: float = 0.1

    def __call__(self, nets: Nets, observation: Tensor, noise: Noise, step: int) -> tuple[Tensor, Mapping[str, Tensor]]:
        """As `Explorer`."""
        del step
        action = nets.mean(observation)
        return (action + self.noise * noise.normal(*action.shape)).clamp(-1, 1), {}


@dataclass(frozen=True, slots=True)
class DrawAction:
    """An action drawn from the policy, as SAC explores.

    Attributes:
        columns: whether its log-probability is kept with the row, as PPO needs it.
    """

    columns: bool = False

    def __call__(self, nets: Nets, observation: Tensor, noise: Noise, step: int) -> tuple[Tensor, Mapping[str, Tensor]]:
        """As `Explorer`."""
        del step
        action, logp = nets.sample(observation, noise)
        return action, {"log_prob": logp} if self.columns else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonGreedy:
    """The best choice, or with a probability that falls from 1 to ``last`` over ``steps`` a random one, as DQN explores.

    Attributes:
        last: probability at the end.
        steps: over which it falls.
    """

    last: float = 0.05
    steps: int = 10_000

    def __post_init__(self) -> None:
        if not 0 <= self.last <= 1 or self.steps < 1:
            raise ConfigError(f"EpsilonGreedy(last={self.last}, steps={self.steps}): use a probability, and a step or more")

    def __call__(self, nets: Nets, observation: Tensor, noise: Noise, step: int) -> tuple[Tensor, Mapping[str, Tensor]]:
        """As `Explorer`."""
        assert isinstance(nets.space, Choices)
        epsilon = 1 + (self.last - 1) * min(step / self.steps, 1.0)
        best = nets.mean(observation)
        drawn = (noise.uniform(len(best)) * nets.space.count).long()
        return torch.where(noise.uniform(len(best)) < epsilon, drawn, best), {}
