"""Components to one reward."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from assay.core.batch import Batch
from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.sample import STREAMS
from assay.objective.credit.base import Credit
from assay.objective.reducers import F

__all__ = ["Scalarise"]

_PREFIX = "components/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalarise:
    """Named components to one reward per rollout, and which rollouts enter statistics.

    Attributes:
        weights: pairs of component and weight; when empty the reward is the task's own metric: ``correct``, else ``reward``,
            else the only component.
        every: the reward is the sum of all components, whatever their names, each with weight 1.
        streams: rollouts of other streams get an advantage but never enter a statistic.

    >>> from assay.objective import Scalarise
    >>> Scalarise(weights=(("correct", 1.0), ("format", 0.1))).weights[1]
    ('format', 0.1)
    """

    weights: tuple[tuple[str, float], ...] = ()
    every: bool = False
    streams: tuple[str, ...] = ("on_policy", "replay")

    def __post_init__(self) -> None:
        for stream in self.streams:
            if stream not in STREAMS:
                raise UnknownNameError("stream", stream, STREAMS)
        if not self.streams:
            raise ConfigError("Scalarise.streams is empty, so no rollout would enter a statistic; name at least one stream")
        if self.every and self.weights:
            raise ConfigError(
                f"Scalarise(weights={self.weights}, every=True): count either each component alike or by weights; "
                "give one of the two"
            )

    @property
    def combines(self) -> bool:
        """Whether the reward is made of components, and so another number than the task's own metric."""
        return self.every or bool(self.weights)

    def start(self, batch: Batch) -> Credit:
        """The record from which a chain begins.

        Raises:
            DataError: the batch has no reward components, or none of the known primary ones.
            UnknownNameError: a weighted component is missing.
        """
        found = {n.removeprefix(_PREFIX): a for n, a in batch.rollouts.items() if n.startswith(_PREFIX)}
        if not found:
            raise DataError("the batch has no reward components ('components/NAME' per rollout); grade the rollouts first")
        weights = self._weights(found)
        metric = _primary(found) if not weights or _has_primary(found) else None
        reward = self._sum(found)
        valid = np.asarray(batch.rollouts.get("valid", np.ones(len(reward), np.bool_)), np.bool_)
        if np.isnan(reward[valid]).any():
            names = [name for name, _ in weights] or sorted(found)
            raise DataError(
                f"{int(np.isnan(reward[valid]).sum())} graded rollouts lack one of the reward components {names}: verifiers "
                "that are mixed in one run must give the same names, or Scalarise.weights must name those that all give"
            )
        stream = np.full(len(reward), -1, np.int64)
        stream[batch.rows["rollout"]] = batch.rows["stream"]
        wanted = np.array([*(s in self.streams for s in STREAMS), True])  # the last for -1, which has no rows
        reward = np.where(valid, reward, 0.0)
        return Credit(
            batch=batch,
            metric=reward if metric is None else np.where(valid, metric, 0.0),
            reward=reward,
            advantage=reward,
            keep=valid.astype(np.float64),
            counted=valid & wanted[stream],
        )

    def reward(self, components: Mapping[str, float]) -> float:
        """What one rollout's components are worth.

        Raises:
            DataError: none of the known primary components.
            UnknownNameError: a weighted component is missing.

        >>> Scalarise(weights=(("correct", 1.0), ("format", 0.5))).reward({"correct": 1.0, "format": 1.0})
        1.5
        """
        return float(self._sum({name: np.array([value]) for name, value in components.items()})[0])

    def _weights(self, found: Collection[str]) -> tuple[tuple[str, float], ...]:
        return tuple((name, 1.0) for name in sorted(found)) if self.every else self.weights

    def _sum(self, found: Mapping[str, F]) -> F:
        weights = self._weights(found)
        for name, _ in weights:
            if name not in found:
                raise UnknownNameError("reward component", name, found)
        return np.asarray(sum(w * found[name] for name, w in weights) if weights else _primary(found), np.float64)


def _has_primary(found: Mapping[str, F]) -> bool:
    return "correct" in found or "reward" in found or len(found) == 1


def _primary(found: Mapping[str, F]) -> F:
    """``[R]`` each rollout's own metric: its ``correct`` where it has one, else its ``reward``; or the only component."""
    if not _has_primary(found):
        raise DataError(
            f"no component 'correct' or 'reward' among {sorted(found)}; say how they make one reward: "
            "Scalarise(weights=((name, weight), ...)), or Scalarise(every=True) for their sum"
        )
    if "correct" in found and "reward" in found:
        return np.where(np.isnan(found["correct"]), found["reward"], found["correct"])
    return next((found[n] for n in ("correct", "reward") if n in found), next(iter(found.values())))
