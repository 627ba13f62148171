"""What a loss on scores is: a sum over rollouts, pairs or groups, and what it is to be divided by."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from assay.core.errors import ConfigError
from assay.core.plan import Forward
from assay.objective.reducers import Partials

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Mix", "Scored", "SetLoss", "group_mean", "groups_of"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scored:
    """The ``k`` scored rollouts of a rank, or their segments, in the order of the rollouts; whole groups, ``k`` may be 0.

    Attributes:
        score: ``[k]`` float64, with gradient in `SetLoss.total`.
        anchored: ``[k]`` the anchors' part of the score: ``score + anchored`` is the policy's own.
        reward: ``[k]`` rewards.
        advantage: ``[k]`` mean advantage of the element's tokens.
        group: ``[k]`` group numbers, ``0 .. groups - 1``.
        tokens: ``[k]`` loss tokens.
        confidence: ``[k]`` ``exp(mean_t (logp_now - log sum_v p_v^2))``, 1 where no loss asks for it.
        stats: what `SetLoss.local` gave, merged over ranks; empty inside `local`.
    """

    score: Tensor
    anchored: Tensor
    reward: Tensor
    advantage: Tensor
    group: Tensor
    tokens: Tensor
    confidence: Tensor
    stats: Partials = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class SetLoss(ABC):
    """Base of losses on scores; a subclass says what its sum and its count are (`total`) and overrides what else differs.

    The whole optimiser batch is visible, without micro-batches; a group stands whole on one rank. What must be known of other
    ranks goes through `local`.
    """

    @property
    def min_group(self) -> int:
        """Rollouts that a group must have."""
        return 1

    @property
    def grouped(self) -> bool:
        """Whether it compares the rollouts of a group."""
        return True

    @property
    def terminal(self) -> bool:
        """Whether it teaches the policy from rewards; at most one such loss per stream."""
        return True

    @property
    def needs(self) -> tuple[str, ...]:
        """``("advantage",)`` when it reads `Scored.advantage`."""
        return ()

    @property
    def forwards(self) -> tuple[Forward, ...]:
        """``(CONFIDENCE,)`` when it reads `Scored.confidence`."""
        return ()

    @property
    def accepts(self) -> tuple[str, ...]:
        """Scores that it makes sense of: ``sum`` and ``mean``."""
        return ("sum", "mean")

    @property
    def tells(self) -> tuple[str, ...]:
        """Names of what `numbers` gives."""
        return ()

    def local(self, scored: Scored) -> Partials:
        """Partial statistics of this rank's scores, without gradient; merged over ranks they stand in `Scored.stats`."""
        return {}

    @abstractmethod
    def total(self, scored: Scored) -> tuple[Tensor, float]:
        """The loss, summed over this rank's rollouts, pairs or groups (at least one rollout), and how many there were.

        Returns:
            The sum and the count that it is to be divided by, after adding both over ranks.
        """

    def numbers(self, scored: Scored) -> Mapping[str, float]:
        """Numbers for the report, summed over what `total` counts; one per name in `tells`."""
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """A weighted sum of losses on the same scores, each divided by its own count (MPO); the first one's numbers are reported.

    Attributes:
        of: pairs of weight and loss.
    """

    of: tuple[tuple[float, SetLoss], ...]

    def __post_init__(self) -> None:
        if not self.of or not all(weight and abs(weight) < float("inf") for weight, _ in self.of):
            raise ConfigError(f"Mix.of={self.of}; give at least one pair of a finite weight other than 0 and a loss")


def group_mean(values: Tensor, group: Tensor) -> tuple[Tensor, Tensor]:
    """``[k]`` each value's group mean, and the group's size."""
    groups = int(group.max()) + 1
    size = values.new_zeros(groups).index_add(0, group, values.new_ones(len(values)))
    total = values.new_zeros(groups).index_add(0, group, values)
    return (total / size)[group], size[group]


def groups_of(group: Tensor) -> tuple[Tensor, ...]:
    """The members of each group, in the order of the rollouts."""
    import torch

    order = torch.argsort(group, stable=True)
    sizes = [int(size) for size in torch.bincount(group)]
    return tuple(torch.split(order, sizes)) if sizes else ()
