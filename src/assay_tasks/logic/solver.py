"""A solver of formulas in conjunctive normal form, and how hard SATURN takes one to be."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

from assay.core.errors import ConfigError

__all__ = ["Solver", "difficulty"]


def difficulty(width: int, variables: int, clauses: int) -> float:
    """SATURN's estimate of how hard a formula with a planted solution is for a model: ``log2 k + 2 log2 l - n + k / n`` (arXiv
    2505.16368).

    Args:
        width: literals in a clause, n.
        variables: k.
        clauses: l.

    Raises:
        ConfigError: a number below 1.

    >>> round(difficulty(3, 5, 5), 3), round(difficulty(5, 8, 40), 3)
    (5.632, 10.244)
    """
    if min(width, variables, clauses) < 1:
        raise ConfigError(f"a formula has at least one literal, variable and clause, got {(width, variables, clauses)}")
    return log2(variables) + 2 * log2(clauses) - width + variables / width


class Solver:
    """Davis, Putnam, Logemann and Loveland: clauses with one literal left decide, else the first literal of a shortest clause is
    tried both ways.

    Attributes:
        effort: clauses looked at so far.

    Args:
        variables: how many there are; they are called 1 to that.
        clauses: literals, a variable's number or its negative.

    >>> Solver(2, [[1, 2], [-1, 2]]).model(), Solver(1, [[1], [-1]]).model()
    ([True, True], None)
    """

    __slots__ = ("_clauses", "_variables", "effort")

    def __init__(self, variables: int, clauses: Sequence[Sequence[int]]) -> None:
        self._variables = variables
        self._clauses = [
            (sum(1 << x for x in {x for x in clause if x > 0}), sum(1 << -x for x in {x for x in clause if x < 0}))
            for clause in clauses
        ]
        self.effort = 0

    def model(self) -> list[bool] | None:
        """A value for each variable such that every clause holds, False where any will do; None where there is none."""
        found = self._search(0, 0)
        return None if found is None else [bool(found >> i & 1) for i in range(1, self._variables + 1)]

    def _search(self, true: int, false: int) -> int | None:
        """Variables that are true, as bits; ``true`` and ``false`` are those that are decided."""
        while True:
            shortest, least = (0, 0), self._variables + 1
            for positive, negative in self._clauses:
                self.effort += 1
                if positive & true or negative & false:
                    continue
                left = (positive & ~false, negative & ~true)
                size = left[0].bit_count() + left[1].bit_count()
                if size < least:
                    shortest, least = left, size
                    if size < 2:
                        break
            if least > self._variables:
                return true
            if not least:
                return None
            bit = shortest[0] & -shortest[0]
            other = 0 if bit else shortest[1] & -shortest[1]
            if least == 1:
                true, false = true | bit, false | other
                continue
            found = self._search(true | bit, false | other)
            if found is not None:
                return found
            true, false = true | other, false | bit
