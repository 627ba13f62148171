"""Penalties on text that repeats itself, from token ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError
from assay.core.protocols import State
from assay.objective.credit.base import Credit, CreditTerm
from assay.objective.credit.paths import Path
from assay.objective.credit.stats import column
from assay.objective.reducers import Partials

__all__ = ["LoopPenalty", "NgramPenalty", "looped_share", "repeated_share"]


def looped_share(ids: NDArray[Any], repeats: int = 2) -> float:
    """Share of an answer that its looped end takes: the longest end that is one piece of text ``repeats`` times or more; else 0.

    >>> looped_share(np.array(list("xabcabcabc")))
    0.9
    >>> looped_share(np.array(list("abcdef")))
    0.0
    """
    back = ids[::-1]
    n = len(back)
    same = _common_prefix(back)
    looped = [p + same[p] for p in range(1, n // repeats + 1) if p + same[p] >= repeats * p]
    return max(looped, default=0) / n if n else 0.0


def repeated_share(ids: NDArray[Any], n: int = 3) -> float:
    """Share of the ``n``-grams that stand somewhere before: ``1 - distinct / all``; 0 for an answer of fewer than ``n`` tokens.

    >>> repeated_share(np.array([5, 5, 5, 5, 5]), 2)
    0.75
    """
    if len(ids) < n:
        return 0.0
    grams = np.lib.stride_tricks.sliding_window_view(ids, n)
    return 1.0 - len(np.unique(grams, axis=0)) / len(grams)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPenalty(CreditTerm):
    """A cut-off answer that ends in a loop loses ``penalty`` (CAMPO); others are not touched.

    Put filters on the group's metric before it: the penalty must not bring a solved group back.

    Attributes:
        penalty: what is subtracted.
        repeats: how often the piece must stand at the end.
        least: tokens that the loop must take; two equal tokens at the end are one unless this is raised.
        graded: subtract ``penalty`` times the looped share of the answer instead.
    """

    penalty: float = 0.1
    repeats: int = 2
    least: int = 2
    graded: bool = False

    kind: ClassVar[str] = "shape"

    def __post_init__(self) -> None:
        if not self.penalty > 0:
            raise ConfigError(f"LoopPenalty.penalty={self.penalty} does nothing or rewards loops; use a positive number")
        if self.repeats < 2:
            raise ConfigError(f"LoopPenalty.repeats={self.repeats}: what stands once repeats nothing; use 2 or more")
        if self.least < 2:
            raise ConfigError(f"LoopPenalty.least={self.least}: the shortest loop has 2 tokens; use 2 or more")

    @property
    def needs(self) -> tuple[str, ...]:
        """Token ids."""
        return ("ids",)

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """Whether a rollout was cut off."""
        return ("truncated",)

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Subtracts the penalty."""
        cut = column(credit, "truncated") != 0
        pairs = zip(_texts(credit), cut.tolist(), strict=True)
        share = np.array([self._share(ids) if is_cut else 0.0 for ids, is_cut in pairs])
        told = credit.with_metrics(credit_looped=float(np.sum(credit.counted & (share > 0))))
        return told.with_reward(credit.reward - self.penalty * (share if self.graded else (share > 0)))

    def _share(self, ids: NDArray[Any]) -> float:
        share = looped_share(ids, self.repeats)
        return share if share * len(ids) >= self.least - 1e-9 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NgramPenalty(CreditTerm):
    """Subtracts ``penalty`` times the share of an answer's ``n``-grams that it says more than once.

    Attributes:
        penalty: what a fully repetitive answer loses.
        n: tokens of a gram.
    """

    penalty: float = 1.0
    n: int = 3

    kind: ClassVar[str] = "shape"

    def __post_init__(self) -> None:
        if not self.penalty > 0 or self.n < 1:
            raise ConfigError(f"NgramPenalty(penalty={self.penalty}, n={self.n}): use a positive penalty and n of 1 or more")

    @property
    def needs(self) -> tuple[str, ...]:
        """Token ids."""
        return ("ids",)

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Subtracts the penalty."""
        share = np.array([repeated_share(ids, self.n) for ids in _texts(credit)])
        return credit.with_reward(credit.reward - self.penalty * share)


def _texts(credit: Credit) -> list[NDArray[Any]]:
    """The loss tokens' ids of each rollout, in order."""
    path = Path.of(credit)
    return np.split(credit.batch.token("ids")[path.at], path.start[1:])


def _common_prefix(text: NDArray[Any]) -> list[int]:
    """``[n + 1]`` how many elements from each place on equal the text's beginning, in linear time."""
    s: list[Any] = text.tolist()
    n = len(s)
    out, left, right = [0] * (n + 1), 0, 0
    for i in range(1, n):
        same = min(right - i, out[i - left]) if i < right else 0
        while i + same < n and s[same] == s[i + same]:
            same += 1
        out[i] = same
        if i + same > right:
            left, right = i, i + same
    return out
