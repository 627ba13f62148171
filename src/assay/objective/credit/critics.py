"""Advantages from critics that value whole turns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from assay.core.errors import ConfigError
from assay.core.protocols import State
from assay.objective.credit.base import Credit, CreditTerm
from assay.objective.credit.paths import Path
from assay.objective.reducers import F, Partials, tally

__all__ = ["TurnAdvantage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnAdvantage(CreditTerm):
    """``A_k = min_j Q_j(s_k, a_k) - min_j V_j(s_k)`` of each turn, for all its tokens alike (ArCHer's actor).

    ``Q`` is read at the turn's last token, from heads that see the state behind it; ``V`` at its first, from heads that see the
    state before. The rollout's reward enters through what these critics learned, not here.

    Attributes:
        actions: token columns of the ``Q_j`` at the start of the batch.
        states: token columns of the ``V_j``.
        by: token column that names the turns; each run of equal values is one.
    """

    actions: tuple[str, ...] = ("q1_old", "q2_old")
    states: tuple[str, ...] = ("v1_old", "v2_old")
    by: str = "call"

    kind: ClassVar[str] = "baseline"

    def __post_init__(self) -> None:
        if not self.actions or not self.states:
            raise ConfigError(f"TurnAdvantage(actions={self.actions}, states={self.states}): name at least one column of each")

    @property
    def needs(self) -> tuple[str, ...]:
        """The critics' columns, and what names the turns."""
        return (*self.actions, *self.states, self.by)

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Advantages per turn; a rollout's own advantage is the mean of its tokens'."""
        path = Path.of(credit)
        turns, turn = path.segments(credit.batch.token(self.by))
        ends = path.at[np.append(np.flatnonzero(np.diff(turn)), len(turn) - 1)[: len(turns.at)]]
        made = (_least(credit, self.actions, ends) - _least(credit, self.states, turns.at))[turn]
        mean = tally(path.owner, made, len(credit.reward)) / np.maximum(path.length, 1)
        return replace(credit, advantage=mean, tokens=path.spread(made, len(credit.owner)))


def _least(credit: Credit, names: tuple[str, ...], where: np.ndarray) -> F:
    return np.min([np.asarray(credit.batch.token(name), np.float64)[where] for name in names], axis=0)
