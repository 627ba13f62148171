"""What a value should be: outcomes, returns, backups from the state behind. Numpy, without gradient, anew before each step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from assay.core.batch import Batch
from assay.core.errors import ConfigError, UnknownNameError
from assay.objective.credit.paths import Path, path_of
from assay.objective.loss.td_paths import check_place, places
from assay.objective.reducers import F

__all__ = ["ColumnTarget", "ConservativeTarget", "MeanTarget", "OutcomeTarget", "ReturnTarget", "Target"]

_OUTCOMES = ("reward", "advantage")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target(ABC):
    """Base of regression targets: numpy, without gradient, recomputed before each optimiser step."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Token columns that it reads."""
        return ()

    @property
    def reward(self) -> bool:
        """Whether it reads rewards or advantages."""
        return False

    @abstractmethod
    def of(self, batch: Batch) -> F:
        """``[N]`` targets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeTarget(Target):
    """The rollout's outcome at each of its tokens.

    Attributes:
        column: ``reward`` or ``advantage``.
    """

    column: str = "reward"

    def __post_init__(self) -> None:
        _check_outcome(self.column)

    @property
    def reward(self) -> bool:
        """It does."""
        return True

    def of(self, batch: Batch) -> F:
        """``[N]`` outcomes."""
        return np.repeat(np.asarray(batch.per_row(self.column), np.float64), batch.lengths)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnTarget(Target):
    """A token column that rows, sampler, learner or credit chain bring.

    Attributes:
        column: its name.
        at: ``token``: each token's own entry; ``start`` or ``end``: that of its segment's first or last loss token.
        by: token column that names the segments: ``call`` for turns; each run of equal values is one.
    """

    column: str
    at: str = "token"
    by: str = "call"

    def __post_init__(self) -> None:
        check_place("ColumnTarget", self.at)

    @property
    def needs(self) -> tuple[str, ...]:
        """The column, and what names the segments."""
        return (self.column,) if self.at == "token" else (self.column, self.by)

    def of(self, batch: Batch) -> F:
        """``[N]`` its values."""
        values = np.asarray(batch.token(self.column), np.float64)
        if self.at == "token":
            return values
        path = path_of(batch)
        segments, segment = path.segments(batch.token(self.by))
        return path.spread(values[places(path, segments, segment, self.at)][segment], len(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnTarget(Target):
    """The lambda-return of a rollout's outcome, paid at its last step: ``G_k = r_k + gamma ((1 - lam) V_k+1 + lam G_k+1)``.

    ``lam=1`` is the Monte-Carlo return and reads no values; ``lam=0`` is TD(0). ``V`` of a segment is that of its first token;
    behind the last step it is 0. What stands between steps is passed over. It is computed anew before each optimiser step, with
    the values that target heads have then; the returns of `Gae` (column ``returns``) are those of the start of the batch.

    Attributes:
        gamma: worth of the next step.
        lam: weight of what really followed.
        values: token column of ``V``: ``values_target`` are those of a target head now, ``values_old`` those at the start of the
            batch.
        by: token column that names the steps: ``call`` for turns; each run of equal values is one. None: tokens.
        outcome: ``reward`` or ``advantage``.
    """

    gamma: float = 1.0
    lam: float = 1.0
    values: str = "values_target"
    by: str | None = None
    outcome: str = "reward"

    def __post_init__(self) -> None:
        for name, value in (("gamma", self.gamma), ("lam", self.lam)):
            if not 0 <= value <= 1:
                raise ConfigError(f"ReturnTarget.{name}={value}; use a number in [0, 1]")
        _check_outcome(self.outcome)

    @property
    def needs(self) -> tuple[str, ...]:
        """The values unless nothing is bootstrapped, and what names the steps."""
        values = () if self.lam == 1 else (self.values,)
        return values if self.by is None else (*values, self.by)

    @property
    def reward(self) -> bool:
        """It does."""
        return True

    def of(self, batch: Batch) -> F:
        """``[N]`` returns."""
        path = path_of(batch)
        links, link = (path, np.arange(len(path.at))) if self.by is None else path.segments(batch.token(self.by))
        worth = _link_payments(batch, links, self.outcome)
        if self.lam < 1:
            after = links.next(np.asarray(batch.token(self.values), np.float64)[links.at])
            worth = worth + self.gamma * (1.0 - self.lam) * after
        return path.spread(links.to_go(worth, self.gamma * self.lam)[link], int(batch.offsets[-1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanTarget(Target):
    """``A_t + V'_t`` with ``V'_t = mean_v rho (log pi(v) - log pi_old(v))`` over the vocabulary at the next loss token, 0 behind
    the last: the value under the uniform policy (ROVER).

    ``logp_mean_now`` and ``logp_mean_old`` hold ``mean_v log pi(v | tokens before)`` at each token, of the present policy and of
    that at the start of the batch.

    Attributes:
        rho: temperature, as in `LogRatioValue`.
    """

    rho: float = 1.0

    @property
    def needs(self) -> tuple[str, ...]:
        """The advantage and both means over the vocabulary."""
        return ("advantage", "logp_mean_now", "logp_mean_old")

    @property
    def reward(self) -> bool:
        """It does."""
        return True

    def of(self, batch: Batch) -> F:
        """``[N]`` targets."""
        path = path_of(batch)
        now, old = (np.asarray(batch.token(f"logp_mean_{x}"), np.float64)[path.at] for x in ("now", "old"))
        after = path.spread(path.next(self.rho * (now - old)), int(batch.offsets[-1]))
        return np.asarray(batch.token("advantage"), np.float64) + after


@dataclass(frozen=True, slots=True, kw_only=True)
class ConservativeTarget(Target):
    """``r_t + gamma Q(s', argmax_a q(s', a))``: the backup takes the action that a frozen policy likes best (B-Coder).

    ``Q(s', a*) = alpha (logp_choice_now - logp_max_now) + V(s')`` at the next loss token, 0 behind the last, as in
    `DuelingValue`; never more than ``max_a Q(s', a) = V(s')``. ``logp_choice_now`` is the present log-probability of the frozen
    policy's most likely token, ``logp_max_now`` that of the present policy's own.

    Attributes:
        alpha: value of a nat.
        gamma: discount of a token.
        values: token column of ``V``.
        outcome: ``reward`` or ``advantage``, paid at the last token.
    """

    alpha: float = 1.0
    gamma: float = 1.0
    values: str = "values_target"
    outcome: str = "reward"

    def __post_init__(self) -> None:
        if not self.alpha > 0 or not 0 <= self.gamma <= 1:
            raise ConfigError(f"ConservativeTarget(alpha={self.alpha}, gamma={self.gamma}): use alpha > 0 and gamma in [0, 1]")
        _check_outcome(self.outcome)

    @property
    def needs(self) -> tuple[str, ...]:
        """Both log-probabilities and the values."""
        return ("logp_choice_now", "logp_max_now", self.values)

    @property
    def reward(self) -> bool:
        """It does."""
        return True

    def of(self, batch: Batch) -> F:
        """``[N]`` targets."""
        path = path_of(batch)
        choice, most, value = (np.asarray(batch.token(n), np.float64)[path.at] for n in self.needs)
        after = path.next(self.alpha * (choice - most) + value)
        return path.spread(_link_payments(batch, path, self.outcome) + self.gamma * after, int(batch.offsets[-1]))


def _check_outcome(name: str) -> None:
    if name not in _OUTCOMES:
        raise UnknownNameError("outcome", name, _OUTCOMES)


def _link_payments(batch: Batch, links: Path, outcome: str) -> F:
    """``[n]`` the rollout's outcome at its last link, 0 before."""
    return np.where(links.last, np.asarray(batch.rollout(outcome), np.float64)[links.owner], 0.0)
