"""Whether numbers that name an option count from 0 or from 1: the rows of a file decide it together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["OptionNumber", "base_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionNumber:
    """A gold that is a number among options.

    Attributes:
        value: the number.
        options: how many options the row has.
        is_text: it is also the text of an option, so it proves nothing.
        from_zero: the row is of a data set that counts from 0 (MMLU, HellaSwag).
    """

    value: int
    options: int
    is_text: bool = False
    from_zero: bool = False

    @property
    def fits(self) -> bool:
        """Whether it names an option, counted from 0 or from 1."""
        return 0 <= self.value <= self.options


def base_of(numbers: Iterable[OptionNumber]) -> int | None:
    """The number of the first option, 0 or 1; None where both readings fit all rows.

    A 0 shows that they count from 0; a number that is that of the options, without any 0, that they count from 1. Numbers that
    fit neither way say nothing: such rows are refused in any case.

    >>> rows = [OptionNumber(value=v, options=4) for v in (1, 2, 4)]
    >>> base_of(rows), base_of([*rows, OptionNumber(value=0, options=4)]), base_of(rows[:2])
    (1, 0, None)
    """
    known = [n for n in numbers if n.fits]
    telling = [n for n in known if not n.is_text]
    if any(n.value == 0 for n in telling):
        return 0
    if any(n.value == n.options for n in telling):
        return 1
    return 0 if any(n.from_zero for n in known) else None
