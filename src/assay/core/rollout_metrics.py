"""Numbers that a context manager or a sampler reports of the rollouts of a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from assay.core.rollout import Rollout

__all__ = ["ReportsRollouts"]


@runtime_checkable
class ReportsRollouts(Protocol):
    """A context manager, or the settings of a sampler, with numbers of its own for ``metrics.jsonl``.

    Both have no state, since a rollout may be played again: their numbers are a function of the finished rollouts.
    """

    def rollout_metrics(self, rollouts: Sequence[Rollout]) -> Mapping[str, float]:
        """By name, over all graded rollouts of a step; ``nan`` for what nothing could be measured for.

        The same for the same rollouts, and of no name that a step has already, such as ``context/summaries``.
        """
        ...
