"""Advantages of steps among the steps that other rollouts took from the same state (GiGPO)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from assay.core.errors import ConfigError
from assay.core.plan import Scope
from assay.core.protocols import State
from assay.objective.credit.base import Credit, CreditTerm
from assay.objective.credit.paths import Path, check_gamma
from assay.objective.credit.stats import Keyed, identity
from assay.objective.reducers import F, Moments, Partials, tally

__all__ = ["StateGroups"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateGroups(CreditTerm):
    """Adds a step's advantage to the rollout's (GiGPO): ``A_it = A_i + weight (G_ik - mean) / (sd + eps)``.

    ``G_ik = r_ik + gamma G_i(k+1)`` is the discounted reward from step ``k`` on; mean and standard deviation are those of all
    steps of the *group* that start in the same state. A step that no other shares its state with adds 0.

    Attributes:
        state: token column whose value at a step's first token names the state, such as a hash of the observation.
        by: token column that names the steps, as in `Turns`.
        gamma: worth of the next step.
        weight: of the steps against the episode.
        scale: divide by the standard deviation; False: only centre.
        ddof: 1 for the sample standard deviation, 0 for the population's.
        eps: added to the standard deviation.
    """

    state: str = "state"
    by: str = "call"
    gamma: float = 0.95
    weight: float = 1.0
    scale: bool = True
    ddof: int = 1
    eps: float = 1e-6

    def __post_init__(self) -> None:
        if says := check_gamma("StateGroups", self.gamma):
            raise ConfigError(says)
        if not self.weight > 0:
            raise ConfigError(f"StateGroups.weight={self.weight} does nothing or hurts; use a positive number")
        if self.ddof not in (0, 1) or not self.eps >= 0:
            raise ConfigError(f"StateGroups(ddof={self.ddof}, eps={self.eps}): use ddof 0 or 1, and eps >= 0")

    @property
    def needs(self) -> tuple[str, ...]:
        """The states and the steps."""
        return (self.state, self.by)

    @property
    def scope(self) -> Scope:
        """A group's steps."""
        return Scope.GROUP

    def local(self, credit: Credit) -> Partials:
        """Moments of the steps' returns per group and state."""
        _, whole, _, value = self._returns(credit)
        here = credit.counted[whole.owner]
        weights = None if credit.copies is None else credit.copies[whole.owner][here]
        return {"moments": Keyed.of(value[here], self._keys(credit, whole)[here], weights)}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Adds the steps' advantages."""
        path, whole, segment, value = self._returns(credit)
        m: Moments = stats["moments"].at(self._keys(credit, whole))
        sd = m.std(self.ddof)
        gap = value - m.mean
        gap = np.where((np.abs(gap) > 1e-12 * m.std(0)) & (m.count > 1), gap, 0.0)
        if self.scale:
            gap = np.where(sd > 0, gap / np.where(sd > 0, sd + self.eps, 1.0), 0.0)
        found = credit.with_metrics(credit_shared_states=float(np.mean(m.count > 1)) if len(m.count) else 0.0)
        added = path.spread(self.weight * gap[segment], len(credit.owner))
        return replace(found, tokens=credit.per_token() + added)

    def _keys(self, credit: Credit, whole: Path) -> np.ndarray:
        return np.stack([credit.group[whole.owner], identity(credit.batch.token(self.state)[whole.at])], axis=1)

    def _returns(self, credit: Credit) -> tuple[Path, Path, np.ndarray, F]:
        path = Path.of(credit)
        whole, segment = path.segments(credit.batch.token(self.by))
        value = whole.to_go(tally(segment, path.link_payments(credit), len(whole.at)), self.gamma)
        return path, whole, segment, value
