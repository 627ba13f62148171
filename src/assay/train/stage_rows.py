"""The rows of a stage, counted: what ``assay explain`` and a dry run say of it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["StageRows", "TokenCounts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRows:
    """The rows of a stage, for ``assay explain``.

    Attributes:
        step: training rows of a step; the most there can be.
        pool: given rows that the stage walks over; 0 where it makes or samples its own.
        what: name of the given rows, in the plural.
        batch: how many of them a step learns from; 0 where that cannot be told without a tokenizer.
        shared: rows that have the prompt of one before them, and say something else.
        tokens: tokens sampled in the whole stage, at most.
    """

    step: int
    pool: int = 0
    what: str = ""
    batch: int = 0
    shared: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Of all given rows, each once: all tokens, and those that carry loss."""

    rows: int
    learned: int
