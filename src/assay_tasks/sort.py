"""Digit sorting: the smallest family on which a policy can climb to lengths that nobody demonstrated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.core.protocols import Verifier
from assay.tasks.single import SingleTurn
from assay.verify.exact import ExactMatch, FormatIs, Together

__all__ = ["SortDigits"]

_DIGITS = "0123456789"


@dataclass(frozen=True, slots=True, kw_only=True)
class SortDigits(SingleTurn):
    """Write the digits in ascending order: ``S3020>`` asks for ``0023``. The level is the number of digits.

    The verifier gives ``correct`` (the exact string, ended by the policy itself) and ``format`` (only digits, as many as
    asked).

    >>> task = SortDigits().task("sort", 5, "train", 0)
    >>> task.public["prompt"], task.private["answer"]
    ('S41996>', '14699')
    """

    levels: tuple[int, ...] = (3, 4, 5, 6, 7, 8, 9, 10)

    @property
    def name(self) -> str:
        """``sort``."""
        return "sort"

    @property
    def symbols(self) -> str:
        """The ten digits."""
        return _DIGITS

    @property
    def alphabet(self) -> str:
        """Digits, ``S`` and ``>``."""
        return _DIGITS + "S>"

    def ask(self, level: int, rng: np.random.Generator) -> str:
        """Digits drawn evenly and independently."""
        return f"S{''.join(map(str, rng.integers(0, 10, level).tolist()))}>"

    def solve(self, prompt: str) -> str:
        """The digits in order."""
        return "".join(sorted(prompt[1:-1]))

    def verifier(self) -> Verifier:
        """Exact match, and a format of as many digits as the answer has."""
        return Together((ExactMatch(), FormatIs("[0-9]*", like_answer=True)))
