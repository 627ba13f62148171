"""The parts that a method is composed of, as protocols, and the composition itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from assay.core import ConfigError, FrozenMap, derive
from assay.core.fields import later
from assay_control.lazy_torch import torch
from assay_control.networks import Net, Scalar
from assay_control.parts.transformer import SequenceNet
from assay_control.records import Array, Transitions

if TYPE_CHECKING:
    from torch import Tensor

    from assay_control.parts.buffer import Buffer
    from assay_control.parts.nets import Nets

__all__ = [
    "Actor",
    "Composition",
    "Drawer",
    "Explorer",
    "Fit",
    "Log",
    "EpisodeMemory",
    "RowTransform",
    "ControlMethod",
    "Noise",
    "Phase",
    "Regulariser",
    "Reptile",
    "TransitionBatch",
    "Schedule",
    "Source",
    "Target",
    "Update",
]

Log = dict[str, "Tensor"]
"""Metrics of an update, written where it is asked for."""


class Noise:
    """Random numbers of one update: a pure function of the run's seed and the update's number.

    >>> bool((Noise(0, 3).normal(2) == Noise(0, 3).normal(2)).all())
    True
    """

    def __init__(self, seed: int, count: int) -> None:
        self._generator = torch.Generator().manual_seed(derive("control/noise", seed, index=count) >> 1)

    def normal(self, *shape: int) -> Tensor:
        """Standard normal."""
        return torch.randn(shape, generator=self._generator)

    def uniform(self, *shape: int) -> Tensor:
        """Even in [0, 1)."""
        return torch.rand(shape, generator=self._generator)

    def subset(self, size: int, count: int) -> list[int]:
        """``count`` different whole numbers below ``size``."""
        drawn: Any = torch.randperm(size, generator=self._generator)[:count]
        return drawn.tolist()


@dataclass(slots=True, kw_only=True)
class TransitionBatch:
    """A batch of transitions as tensors.

    Attributes:
        observation, next_observation: ``[B, O]`` float32, scaled.
        action: ``[B, A]`` float32 or ``[B]`` int64.
        reward: ``[B]``.
        terminal: ``[B]`` bool.
        to_go: ``[B]`` discounted return to the end of the episode, where the source knows it.
        index: ``[B]`` rows of the source.
        stream: ``[B]`` 0 for offline, 1 for online rows.
        columns: what else the source supplies, as ``advantage`` or ``log_prob``; of a data set ``next_action`` and ``follows``,
            whether the data have one; ``ahead`` steps to the episode's end, ``cut`` whether that is a horizon,
            ``end_observation``, and ``cost``.
        pool: ``[n, O]`` observations and ``[n, A]`` actions of the whole data set, where the batch is of one.
    """

    observation: Tensor
    action: Tensor
    reward: Tensor
    next_observation: Tensor
    terminal: Tensor
    to_go: Tensor
    index: Tensor
    stream: Tensor
    columns: Mapping[str, Tensor] = field(default_factory=dict[str, "Tensor"])
    pool: tuple[Tensor, Tensor] | None = None

    def __len__(self) -> int:
        return len(self.reward)

    def later(self, value: Tensor, discount: float) -> Tensor:
        """``reward + discount * value``, without the second part where the episode had ended by itself.

        The value of what follows a terminal step is left out by choice, not by a product with 0, so it may be anything.
        """
        return self.reward + discount * value.masked_fill(self.terminal, 0.0)


class Target(Protocol):
    """What a value is fitted to: ``[B]`` or ``[N, B]``, without gradient."""

    def __call__(self, rows: TransitionBatch, nets: Nets, noise: Noise, discount: float) -> Tensor: ...


class Fit(Protocol):
    """The loss of the network that an update owns: of a critic given its targets, or of an actor, which has none."""

    def __call__(self, rows: TransitionBatch, nets: Nets, target: Tensor | None, noise: Noise, log: Log | None) -> Tensor: ...


class Regulariser(Protocol):
    """What is added to a loss; at ``weight`` 0 it is not computed, so the method without it is the same bit for bit."""

    @property
    def weight(self) -> float: ...

    def __call__(self, rows: TransitionBatch, nets: Nets, noise: Noise, log: Log | None) -> Tensor: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """One network's turn in an update.

    Attributes:
        owner: name of the network whose parameters, and no others, change.
        fit: its loss.
        target: what the fit is given.
        regularisers: what is added.
        every: updates between its turns.
        since: number of the first update that has it, from 0.
        until: number of the first update that has it no more; None where it stays.
        transformed: whether it learns from the batch as the composition's `RowTransform` makes it.
    """

    owner: str
    fit: Fit
    target: Target | None = None
    regularisers: tuple[Regulariser, ...] = ()
    every: int = 1
    since: int = 0
    until: int | None = None
    transformed: bool = later(False)

    def __post_init__(self) -> None:
        if self.every < 1:
            raise ConfigError(f"Update(owner={self.owner!r}).every={self.every}; use a whole number, at least 1")

    def has_turn(self, count: int) -> bool:
        """Whether it takes part in update number ``count``."""
        return count >= self.since and (self.until is None or count < self.until) and count % self.every == 0


class RowTransform(Protocol):
    """Makes another batch of a batch, with the networks at hand: rows that a model imagines, for example."""

    def __call__(self, rows: TransitionBatch, nets: Nets, noise: Noise, count: int) -> TransitionBatch:
        """The batch of update number ``count``."""
        ...


class EpisodeMemory(Protocol):
    """What an actor has seen of the episodes that it acts in."""

    def act(self, observation: Tensor) -> Tensor:
        """Actions without noise for ``[n, O]`` scaled observations."""
        ...

    def observe(self, action: Array, reward: Array, done: Array) -> None:
        """Is told what came of the actions; where an episode is done, the next begins."""
        ...


class Actor(Protocol):
    """How a policy acts that needs to remember: a frozen dataclass."""

    def begin(self, nets: Nets, count: int, data: Transitions | None) -> EpisodeMemory:
        """Acts in ``count`` episodes that begin now; ``data`` as they are learned from."""
        ...


class Drawer(Protocol):
    """A source with its rows at hand."""

    def draw(self, count: int) -> TransitionBatch:
        """Batch number ``count``: a pure function of the seed, the number and the rows that are there."""
        ...

    def prepare(self, nets: Nets, discount: float) -> None:
        """Called after each collection, before the first draw from it."""
        ...


class Source(Protocol):
    """Where batches come from: a frozen dataclass."""

    @property
    def batch(self) -> int: ...

    def open(self, data: Transitions | None, buffer: Buffer | None, seed: int) -> Drawer:
        """Binds it to rows.

        Raises:
            ConfigError: rows that it needs are not there.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """What a step of the loop does.

    Attributes:
        collect: steps of each copy of the world.
        updates: on batches of the source.
        random: whether random actions are taken while collecting.
        online: whether what was collected, and no longer the data set alone, is learned from.
    """

    collect: int = 0
    updates: int = 1
    random: bool = False
    online: bool = False


class Schedule(Protocol):
    """Which phase a step belongs to: a pure function of its number, from 1."""

    def phase(self, step: int) -> Phase: ...


class Explorer(Protocol):
    """How the policy acts while data are collected."""

    def __call__(self, nets: Nets, observation: Tensor, noise: Noise, step: int) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Actions, and columns to be kept with them."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reptile:
    """After each ``updates`` updates ``θ_meta <- θ_meta + rate (θ - θ_meta)``, and learning goes on from there.

    Source: Nichol et al. 2018, arXiv 1803.02999; MOORL's outer step. Moments of the optimisers begin afresh; averaged copies
    stay.

    Attributes:
        nets: names of the networks.
        updates: inner steps.
        rate: η; 1 is plain training.

    Raises:
        ConfigError: no network, no step, or a rate outside of (0, 1].
    """

    nets: tuple[str, ...]
    updates: int = 10
    rate: float = 0.5

    def __post_init__(self) -> None:
        if not self.nets or self.updates < 1 or not 0 < self.rate <= 1:
            raise ConfigError(
                f"Reptile(nets={self.nets}, updates={self.updates}, rate={self.rate}): "
                "use a network or more, a step or more, and a "
                "rate above 0 and up to 1"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """A method as its parts.

    Attributes:
        nets: networks by name; ``pi`` acts, or ``q`` where its outputs are choices and there is no ``pi``.
        updates: in their order; each changes its owner alone.
        source: of batches.
        schedule: what each step does.
        explorer: how it acts while collecting; None for methods that never do.
        discount: of later rewards.
        scale: whether observations are shifted and scaled by the mean and deviation of the data set.
        reward: factor and offset of rewards as they are learned from; returns are reported as they are.
        copies: of the world that are acted in beside each other.
        capacity: rows of the buffer of what was collected.
        average_every: updates between moves of the averaged copies.
        transform: makes the batch of those updates that are ``transformed``; None for none.
        reptile: an outer step over networks; None for none.
        actor: how it acts where that needs memory of the episode; None for a policy of the observation alone.

    Raises:
        ConfigError: an update of a network that is not declared, or a discount that is none.
    """

    nets: Mapping[str, Net | Scalar | SequenceNet]
    updates: tuple[Update, ...]
    source: Source
    schedule: Schedule
    explorer: Explorer | None = None
    discount: float = 0.99
    scale: bool = True
    reward: tuple[float, float] = (1.0, 0.0)
    copies: int = 1
    capacity: int = 1_000_000
    average_every: int = 1
    transform: RowTransform | None = later(None)
    actor: Actor | None = later(None)
    reptile: Reptile | None = later(None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nets", FrozenMap(self.nets))
        if unknown := [u.owner for u in self.updates if u.owner not in self.nets]:
            raise ConfigError(f"updates of {unknown}, but the networks are {sorted(self.nets)}; declare them in nets")
        if not 0 <= self.discount <= 1 or min(self.copies, self.capacity, self.average_every) < 1:
            raise ConfigError(
                f"Composition(discount={self.discount}, copies={self.copies}, capacity={self.capacity}, "
                f"average_every={self.average_every}): use a discount in [0, 1] and whole numbers from 1 up"
            )

    def compose(self) -> Composition:
        """Itself: a composition is a method."""
        return self


@runtime_checkable
class ControlMethod(Protocol):
    """A frozen dataclass of settings that says how it is composed."""

    def compose(self) -> Composition:
        """Its parts."""
        ...
