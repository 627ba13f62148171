"""Composers by the names that folders of earlier studies know them by; new runs have `assay.train.streams` and
`assay.train.providers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from assay.core.batch import Batch
from assay.core.errors import ConfigError, UnknownNameError
from assay.core.group import Group
from assay.core.protocols import Replay
from assay.guide import Compose
from assay.train import streams
from assay.train.providers import DEFAULTS
from assay.train.reference_value import ReferenceValue

__all__ = ["AsStream", "WithColumns", "WithStored"]

_OLD = (
    "difficulty",
    "hardness",
    "loss",
    "optimal_value",
    "peers",
    "process_reward",
    "responsiveness",
    "role",
    "segment",
    "value_ref",
    "win",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AsStream(streams.AsStream):
    """`assay.train.streams.AsStream`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WithStored(streams.WithStored):
    """`assay.train.streams.WithStored`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WithColumns:
    """Each group's rollouts, with columns of `assay.train.providers.DEFAULTS`; a run has `Reinforce.columns` for that.

    Attributes:
        names: of the columns.
        solved: pairs of level and the base's sampled accuracy there, for ``value_ref`` and ``optimal_value``.
    """

    names: tuple[str, ...]
    solved: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        for name in self.names:
            if name not in _OLD:
                raise UnknownNameError("column", name, _OLD)
        if {"value_ref", "optimal_value"} & {*self.names} and not self.solved:
            raise ConfigError(f"WithColumns(names={self.names}): give solved=((level, accuracy of the base), ...) with them")

    def compose(self, groups: Sequence[Group], replay: Replay | None, step: int, experts: Sequence[Group] = ()) -> Batch | None:
        """The batch of a step, or None when no rollout has a token to learn from.

        Raises:
            ConfigError: there are expert rollouts.
        """
        if experts:
            raise ConfigError("WithColumns makes columns for the policy's own rollouts only; leave Reinforce.experts at False")
        for name in dict.fromkeys("process_reward" if n == "segment" else n for n in self.names):
            provider: Any = DEFAULTS[name]
            if isinstance(provider, ReferenceValue):
                provider = replace(provider, solved=self.solved)
            groups = provider.provide(None, groups)
        return Compose().compose(groups, replay, step)
