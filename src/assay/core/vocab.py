"""A number per token that needs the whole next-token distribution, not only the probability of the token that was drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

__all__ = ["FullEntropy", "VocabStat"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VocabStat(ABC):
    """Base of all statistics over the vocabulary; a subclass says how it is called (`kind`), what it reads, what it is (`of`).

    A learner evaluates it on a few positions at a time, in both passes, so that the logits of a whole batch never exist at once:
    `of` must treat each position on its own. What `of` does to ``logp`` must be differentiable where a term learns through it.

    Attributes:
        label: name of the column; the statistic's own `kind` when empty.
        drawn: whether `of` reads which token was drawn.
    """

    label: str = ""
    drawn: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The token column that holds it."""
        return self.label or self.kind

    @property
    @abstractmethod
    def kind(self) -> str:
        """Its name when it has no label: says what it is, and of which other model."""

    @property
    def models(self) -> tuple[str, ...]:
        """Other models whose distributions at the same positions it reads: ``ref``, ``teacher``, ..."""
        return ()

    @property
    def needs(self) -> tuple[str, ...]:
        """Token columns of the batch that it reads; those that a term's ``prepare`` makes only in the gradient pass."""
        return ()

    @property
    def lists(self) -> tuple[str, ...]:
        """Those of `needs` that hold several numbers per token, ``[tokens, k]``; all of them with the same ``k``."""
        return ()

    @abstractmethod
    def of(self, logp: Any, ids: Any, others: Mapping[str, Any], columns: Mapping[str, Any]) -> Any:
        """The statistic at ``c`` positions.

        Args:
            logp: ``[c, V]`` log-probabilities of the model that is asked, normalised (each row's exponentials add up to 1).
            ids: ``[c]`` int64, the token that was drawn.
            others: by name of `models`, the same of those, without gradient.
            columns: by name of `needs`, ``[c]`` values, without gradient.

        Returns:
            ``[c]`` finite values in the dtype of ``logp``.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class FullEntropy(VocabStat):
    """``H = -sum_v p_v log p_v`` in nats, exact: what a learner's own column ``entropy`` holds."""

    @property
    def kind(self) -> str:
        """``entropy``."""
        return "entropy"

    def of(self, logp: Any, ids: Any, others: Mapping[str, Any], columns: Mapping[str, Any]) -> Any:
        """``[c]`` entropies."""
        return -(logp.exp() * logp).sum(1)
