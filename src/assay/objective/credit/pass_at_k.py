"""Advantages for pass@k in closed form: what a rollout adds to the chance that one of ``k`` draws solves the task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, sqrt
from typing import ClassVar

import numpy as np

from assay.core.errors import ConfigError
from assay.core.plan import Scope
from assay.core.protocols import State
from assay.objective.credit.base import Credit, CreditTerm, check_behind
from assay.objective.credit.shape import solved_rollouts
from assay.objective.reducers import F, Partials, Sum, tally

__all__ = ["PassAtK", "PassAtKBonus", "pass_at_k"]


def pass_at_k(n: int, correct: int, k: int) -> tuple[float, float]:
    """Advantages of the correct and of the wrong rollouts of a group, normalised over all its subsets of ``k``.

    ``rho = 1 - C(n - c, k) / C(n, k)``, ``s = sqrt(rho (1 - rho))``; correct ``(1 - rho) / s``; wrong
    ``(1 - rho - C(n - c - 1, k - 1) / C(n - 1, k - 1)) / s``. They sum to 0 over the group, and are 0 where ``s`` is, or where
    the group has fewer than ``k`` rollouts.

    >>> [round(x, 4) for x in pass_at_k(10, 2, 4)]
    [0.7071, -0.1768]
    """
    if n < k:
        return 0.0, 0.0
    missed = comb(n - correct, k) / comb(n, k)
    spread = sqrt(missed * (1.0 - missed))
    if spread == 0.0:
        return 0.0, 0.0
    # Of the subsets with a given wrong rollout, those that miss; there is a wrong rollout, or nothing would be missed.
    alone = comb(n - correct - 1, k - 1) / comb(n - 1, k - 1)
    return missed / spread, (missed - alone) / spread


@dataclass(frozen=True, slots=True, kw_only=True)
class PassAtK(CreditTerm):
    """The advantage of pass@k training, from the group's counts alone, in place of the reward's.

    Attributes:
        k: draws of which one must solve the task.
        hit: task metric from which a rollout solves it.
    """

    k: int = 4
    hit: float = 1.0

    kind: ClassVar[str] = "baseline"

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ConfigError(f"{type(self).__name__}.k={self.k}; use a number of draws, 1 or more")

    @property
    def scope(self) -> Scope:
        """A group."""
        return Scope.GROUP

    @property
    def min_group(self) -> int:
        """Subsets of ``k`` that differ."""
        return self.k + 1

    def check(self, before: Sequence[CreditTerm]) -> None:
        """Raises PlanError: it is about whole rollouts."""
        check_behind(
            self,
            before,
            ("return",) if self.kind == "baseline" else (),
            "it compares whole rollouts, and a return makes values per token: leave the return out",
        )

    def local(self, credit: Credit) -> Partials:
        """Rollouts and hits of each group."""
        here, group = credit.counted, credit.group[credit.counted]
        hits = solved_rollouts(credit, self.hit)[here].astype(np.float64)
        return {"n": Sum(tally(group, np.ones_like(hits), credit.groups)), "hits": Sum(tally(group, hits, credit.groups))}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Replaces the advantage."""
        return credit.with_advantage(self._advantage(credit, stats))

    def _advantage(self, credit: Credit, stats: Partials) -> F:
        """``[R]`` by the class of each rollout."""
        pairs = zip(stats["n"].values.tolist(), stats["hits"].values.tolist(), strict=True)
        table = np.array([pass_at_k(int(n), int(c), self.k) for n, c in pairs])[credit.group]
        return np.where(solved_rollouts(credit, self.hit), table[:, 0], table[:, 1])


@dataclass(frozen=True, slots=True, kw_only=True)
class PassAtKBonus(PassAtK):
    """`PassAtK` on exact hits, added to the advantage (SRPO): near misses are ranked by the reward, hits by what they add.

    Attributes:
        coef: weight of the bonus.
    """

    coef: float = 1.0

    kind: ClassVar[str] = "transform"

    def __post_init__(self) -> None:
        PassAtK.__post_init__(self)
        if not self.coef > 0:
            raise ConfigError(f"PassAtKBonus.coef={self.coef} does nothing or hurts; use a positive number or leave the term out")

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Adds the bonus."""
        return credit.center(credit.advantage + self.coef * self._advantage(credit, stats))
