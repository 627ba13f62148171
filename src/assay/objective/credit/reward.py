"""Components to one reward, and transforms of the reward."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from assay.core.batch import Batch
from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.plan import Scope
from assay.core.protocols import State
from assay.core.sample import STREAMS
from assay.objective.credit.base import Credit, CreditTerm
from assay.objective.reduce import F, Partials, tally

__all__ = ["KlInReward", "Overlong", "Scalarise"]

_PREFIX = "components/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalarise:
    """Named components to one reward per attempt, and which attempts enter statistics.

    Attributes:
        weights: pairs of component and weight; when empty the reward is the task's own metric: ``correct``, else ``reward``,
        else the
            only component.
        streams: attempts of other streams get an advantage but never enter a statistic.

    >>> from assay.objective import Scalarise
    >>> Scalarise(weights=(("correct", 1.0), ("format", 0.1))).weights[1]
    ('format', 0.1)
    """

    weights: tuple[tuple[str, float], ...] = ()
    streams: tuple[str, ...] = ("on_policy", "replay")

    def __post_init__(self) -> None:
        for stream in self.streams:
            if stream not in STREAMS:
                raise UnknownNameError("stream", stream, STREAMS)
        if not self.streams:
            raise ConfigError("Scalarise.streams is empty, so no attempt would enter a statistic; name at least one stream")

    def start(self, batch: Batch) -> Credit:
        """The record from which a chain begins.

        Raises:
            DataError: the batch has no reward components, or none of the known primary ones.
            UnknownNameError: a weighted component is missing.
        """
        found = {n.removeprefix(_PREFIX): a for n, a in batch.rollouts.items() if n.startswith(_PREFIX)}
        if not found:
            raise DataError("the batch has no reward components ('components/NAME' per attempt); grade the rollouts first")
        for name, _ in self.weights:
            if name not in found:
                raise UnknownNameError("reward component", name, found)
        metric = _primary(found) if not self.weights or _has_primary(found) else None
        reward = metric if not self.weights else sum(w * found[name] for name, w in self.weights)
        reward = np.asarray(reward, np.float64)
        valid = np.asarray(batch.rollouts.get("valid", np.ones(len(reward), np.bool_)), np.bool_)
        if np.isnan(reward[valid]).any():
            names = [name for name, _ in self.weights] or sorted(found)
            raise DataError(
                f"{int(np.isnan(reward[valid]).sum())} graded attempts lack one of the reward components {names}: verifiers "
                "that are mixed in one run must give the same names, or Scalarise.weights must name those that all give"
            )
        stream = np.full(len(reward), -1, np.int64)
        stream[batch.rows["rollout"]] = batch.rows["stream"]
        wanted = [STREAMS.index(s) for s in self.streams]
        reward = np.where(valid, reward, 0.0)
        return Credit(
            batch=batch, metric=reward if metric is None else np.where(valid, metric, 0.0), reward=reward, advantage=reward,
            keep=valid.astype(np.float64), counted=valid & ((stream == -1) | np.isin(stream, wanted)),
        )  # fmt: skip


def _has_primary(found: dict[str, F]) -> bool:
    return "correct" in found or "reward" in found or len(found) == 1


def _primary(found: dict[str, F]) -> F:
    """``[R]`` each attempt's own metric: its ``correct`` where it has one, else its ``reward``; or the only component."""
    if not _has_primary(found):
        raise DataError(
            f"no component 'correct' or 'reward' among {sorted(found)}; say how they make one reward: "
            f"Scalarise(weights=((name, weight), ...))"
        )
    if "correct" in found and "reward" in found:
        return np.where(np.isnan(found["correct"]), found["reward"], found["correct"])
    return next((found[n] for n in ("correct", "reward") if n in found), next(iter(found.values())))


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlong(CreditTerm):
    """Soft penalty on long answers (DAPO): added to the reward is 0 up to ``limit - cache`` tokens, then falls linearly to -1
    at ``limit``.

    Attributes:
        limit: answer length at which the full penalty is reached.
        cache: length of the ramp.

    >>> from assay.objective import Overlong
    >>> Overlong(limit=20480, cache=4096).ramp(np.array([16384, 18432, 20480, 30000])).tolist()
    [0.0, -0.5, -1.0, -1.0]
    """

    limit: int
    cache: int

    def __post_init__(self) -> None:
        if not 0 < self.cache <= self.limit:
            raise ConfigError(f"Overlong.cache={self.cache} must be in (0, limit={self.limit}]")

    @property
    def kind(self) -> str:
        """A reward transform."""
        return "shape"

    def ramp(self, length: F) -> F:
        """The penalty at each length."""
        return np.clip((self.limit - self.cache - length) / self.cache, -1.0, 0.0)

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Adds the penalty to the reward; the task's metric stays."""
        return _rewarded(credit, credit.reward + self.ramp(np.asarray(credit.batch.rollout("length"), np.float64)))


@dataclass(frozen=True, slots=True, kw_only=True)
class KlInReward(CreditTerm):
    """``R' = R - coef * sum_t (logp_old - logp_ANCHOR)``: the k1 estimate of the divergence, where it belongs (RLOO, PPO).

    Attributes:
        coef: weight of the penalty.
        anchor: the policy not to leave.
    """

    coef: float
    anchor: str = "ref"

    def __post_init__(self) -> None:
        if not self.coef > 0:
            raise ConfigError(
                f"KlInReward.coef={self.coef} does nothing or rewards divergence; use a positive number or leave the term out"
            )

    @property
    def kind(self) -> str:
        """A reward transform."""
        return "shape"

    @property
    def needs(self) -> tuple[str, ...]:
        """Log-probabilities of both policies."""
        return ("logp_old", f"logp_{self.anchor}")

    @property
    def scope(self) -> Scope:
        """An attempt's own tokens."""
        return Scope.SEQUENCE

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Subtracts the summed log-ratio of each attempt's loss tokens."""
        batch = credit.batch
        mask = batch.token("mask")
        k1 = (batch.token("logp_old").astype(np.float64) - batch.token(f"logp_{self.anchor}"))[mask]
        summed = tally(credit.owner[mask], k1, len(credit.reward))
        return _rewarded(credit, credit.reward - self.coef * summed)


def _rewarded(credit: Credit, reward: F) -> Credit:
    return replace(credit, reward=reward, advantage=reward)
