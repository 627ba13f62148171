"""Which groups differ enough to learn from, measured against how much groups have differed so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.core.errors import ConfigError
from assay.core.protocols import State

__all__ = ["SpreadFilter", "SpreadHistory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadFilter:
    """Keeps a group whose rewards' standard deviation is at least ``share`` of a running mean of such deviations.

    After RLPR (Yu et al. 2025, arXiv 2506.18254), whose released settings are ``share`` 0.5 for Qwen, 0.9 for Llama and 1.0 for
    Gemma models. The running mean starts as the mean of the first step that it sees.

    Attributes:
        share: of the running mean that a group's deviation must reach; 0 keeps every group.
        decay: of the running mean, per step.
        mean_from: step of the stage, counted from 1, from which on the running mean is formed.
        filter_from: step from which on groups are left out.

    Raises:
        ConfigError: a number out of range, or groups are to be left out before there is a mean.
    """

    share: float = 0.5
    decay: float = 0.99
    mean_from: int = 6
    filter_from: int = 11

    def __post_init__(self) -> None:
        if not self.share >= 0.0 or not 0.0 <= self.decay < 1.0:
            raise ConfigError(f"SpreadFilter: share={self.share}, decay={self.decay}; use a share >= 0 and a decay in [0, 1)")
        if not 1 <= self.mean_from <= self.filter_from:
            raise ConfigError(
                f"SpreadFilter: mean_from={self.mean_from}, filter_from={self.filter_from}; count steps from 1, and filter no "
                "earlier than the mean is formed"
            )


class SpreadHistory:
    """The filter at work.

    Attributes:
        mean: running mean of the groups' deviations; None before there is one.
    """

    def __init__(self, settings: SpreadFilter) -> None:
        self._settings = settings
        self._first: int | None = None
        self.mean: float | None = None

    def admit(self, step: int, spreads: Sequence[float]) -> list[bool]:
        """Which groups are kept, by the mean before this step; then takes their deviations into the mean.

        Args:
            step: global steps finished.
            spreads: standard deviation of each group's rewards.
        """
        self._first = step if self._first is None else self._first
        now, s = step - self._first + 1, self._settings
        bound = s.share * self.mean if self.mean is not None and now >= s.filter_from else 0.0
        if spreads and now >= s.mean_from:
            mean = sum(spreads) / len(spreads)
            self.mean = mean if self.mean is None else s.decay * self.mean + (1.0 - s.decay) * mean
        return [spread >= bound for spread in spreads]

    def state_dict(self) -> State:
        """The mean, and when the stage began."""
        return {"first": self._first, "mean": self.mean}

    def load_state_dict(self, state: State) -> None:
        """Restores `state_dict`."""
        self._first = None if state["first"] is None else int(state["first"])
        self.mean = None if state["mean"] is None else float(state["mean"])
