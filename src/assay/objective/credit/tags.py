"""Advantages of turns among the turns of the same kind (RLVMR)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError
from assay.core.plan import Scope
from assay.core.protocols import State
from assay.objective.credit.base import Credit, CreditTerm
from assay.objective.credit.paths import Path
from assay.objective.credit.stats import Keyed
from assay.objective.reducers import F, Moments, Partials, tally

__all__ = ["TagAdvantage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TagAdvantage(CreditTerm):
    """Adds a turn's advantage among the turns of its tag to the rollout's (RLVMR): ``A_it = alpha A_i + (1 - alpha) z_it``.

    ``z_it = (r_it - mean) / (sd + eps)`` over all turns of the *group* that have the same tag; ``r`` is the turn's own reward. A
    turn without a tag has ``z = 0``, and so has one whose tag all get the same reward. Put the episode's baseline before it.

    Attributes:
        reward: token column with a turn's own reward, at any of its tokens.
        tag: token column with the number of a turn's tag, at any of its tokens; 0 for none.
        by: token column that names the turns, as in `Turns`.
        alpha: share of the episode, 1 for nothing but it. The paper's is 0.5.
        weight: where given ``A_it = A_i + weight z_it`` instead, as the released code has it.
        keep_single: the only turn of its tag in a group keeps its reward as ``z``, as in the released code; 0 otherwise.
        eps: added to the standard deviation.

    Raises:
        ConfigError: ``alpha`` outside [0, 1], a weight that is not positive, or a negative ``eps``.
    """

    reward: str = "meta_reward"
    tag: str = "meta_tag"
    by: str = "call"
    alpha: float = 0.5
    weight: float | None = None
    keep_single: bool = False
    eps: float = 1e-6

    def __post_init__(self) -> None:
        if not 0.0 <= self.alpha <= 1.0 or (self.weight is not None and not self.weight > 0) or not self.eps >= 0:
            raise ConfigError(
                f"TagAdvantage(alpha={self.alpha}, weight={self.weight}, eps={self.eps}): use alpha in [0, 1], a positive weight "
                "or None, and eps >= 0"
            )

    @property
    def needs(self) -> tuple[str, ...]:
        """The turns with their tags and rewards."""
        return (self.reward, self.tag, self.by)

    @property
    def scope(self) -> Scope:
        """A group's turns."""
        return Scope.GROUP

    def local(self, credit: Credit) -> Partials:
        """Moments of the turns' rewards per group and tag."""
        _, whole, _, reward, tag = self._turns(credit)
        here = credit.counted[whole.owner] & (tag > 0)
        weights = None if credit.copies is None else credit.copies[whole.owner][here]
        return {"moments": Keyed.of(reward[here], _keys(credit, whole, tag)[here], weights)}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """The weighted sum."""
        path, whole, segment, reward, tag = self._turns(credit)
        m: Moments = stats["moments"].at(_keys(credit, whole, tag))
        sd, gap = m.std(0), reward - m.mean
        near = np.abs(gap) <= 1e-12 * sd  # the last bit of a mean decides nothing
        z = np.where((sd > 0) & ~near, gap / np.where(sd > 0, sd + self.eps, 1.0), 0.0)
        if self.keep_single:
            z = np.where(m.count == 1, reward, z)
        z = np.where(tag > 0, z, 0.0)
        mine, its = (1.0, self.weight) if self.weight is not None else (self.alpha, 1.0 - self.alpha)
        found = credit.with_metrics(credit_tagged_turns=float(np.mean(tag > 0)) if len(tag) else 0.0)
        return replace(found, tokens=mine * credit.per_token() + path.spread(its * z[segment], len(credit.owner)))

    def _turns(self, credit: Credit) -> tuple[Path, Path, NDArray[np.int64], F, NDArray[np.int64]]:
        path = Path.of(credit)
        whole, segment = path.segments(credit.batch.token(self.by))
        reward, tag = (
            tally(segment, np.asarray(credit.batch.token(name), np.float64)[path.at], len(whole.at))
            for name in (self.reward, self.tag)
        )
        return path, whole, segment, reward, np.rint(tag).astype(np.int64)


def _keys(credit: Credit, whole: Path, tag: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.stack([credit.group[whole.owner], tag], axis=1)
