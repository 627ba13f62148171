"""Constraints over variables with few whole values: each narrows domains, judges values, and writes itself in SMT-LIB 2.

A domain is a whole number whose bit ``v`` says that the value ``v`` is still possible. A constraint's `filter` takes values away
and notes in ``changed`` which variables lost some; it gives False where a variable is left without a value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from itertools import combinations

from assay.core.errors import ConfigError

__all__ = [
    "AllDifferent",
    "Constraint",
    "Count",
    "Every",
    "Known",
    "Linear",
    "Modulo",
    "Pair",
    "Rows",
    "Unlike",
    "bits",
    "mask_of",
    "relate",
    "values_in",
]


def mask_of(values: Iterable[int]) -> int:
    """The domain with these values.

    >>> mask_of([0, 2])
    5
    """
    mask = 0
    for value in values:
        mask |= 1 << value
    return mask


def values_in(domain: int) -> list[int]:
    """The values of a domain, ascending.

    >>> values_in(5)
    [0, 2]
    """
    out: list[int] = []
    while domain:
        low = domain & -domain
        out.append(low.bit_length() - 1)
        domain ^= low
    return out


def bits(domain: int) -> list[int]:
    """The single bits of a domain, ascending.

    >>> bits(5)
    [1, 4]
    """
    out: list[int] = []
    while domain:
        low = domain & -domain
        out.append(low)
        domain ^= low
    return out


class Constraint(ABC):
    """Something that must hold between variables, which are told by their numbers in ``cells``."""

    __slots__ = ("cells",)

    cells: Sequence[int]

    @abstractmethod
    def filter(self, dom: list[int], changed: list[int]) -> bool:
        """Take impossible values away; False where none is left."""
        ...

    @abstractmethod
    def holds(self, values: Sequence[int]) -> bool:
        """Whether it holds under a value for every variable."""
        ...

    @abstractmethod
    def smt(self, names: Sequence[str]) -> str:
        """The same as a term of SMT-LIB 2, with the variables' names."""
        ...


class AllDifferent(Constraint):
    """No two variables have the same value. ``full`` is the domain of all values where every one of them must occur, else 0."""

    __slots__ = ("full",)

    def __init__(self, cells: Sequence[int], full: int = 0) -> None:
        self.cells, self.full = cells, full

    def filter(self, dom: list[int], changed: list[int]) -> bool:
        """Fixed values leave the others; a value with one place left takes it."""
        cells, done = self.cells, 0
        while True:
            fixed = 0
            for c in cells:
                d = dom[c]
                if not d & (d - 1):
                    if fixed & d:
                        return False
                    fixed |= d
            if fixed == done:
                break
            done = fixed
            for c in cells:
                d = dom[c]
                if d & fixed and d & (d - 1):
                    d &= ~fixed
                    if not d:
                        return False
                    dom[c] = d
                    changed.append(c)
        return not self.full or self.full == done or self._places(dom, changed)

    def _places(self, dom: list[int], changed: list[int]) -> bool:
        once = twice = 0
        for c in self.cells:
            d = dom[c]
            twice |= once & d
            once |= d
        if once & self.full != self.full:
            return False
        once &= self.full & ~twice
        for c in self.cells:
            d = dom[c]
            mine = d & once
            if mine and mine != d:
                if mine & (mine - 1):
                    return False
                dom[c] = mine
                changed.append(c)
        return True

    def holds(self, values: Sequence[int]) -> bool:
        """Whether all values differ, and all of ``full`` occur."""
        seen = 0
        for c in self.cells:
            bit = 1 << values[c]
            if seen & bit:
                return False
            seen |= bit
        return seen & self.full == self.full

    def smt(self, names: Sequence[str]) -> str:
        """``distinct``, and that each value of ``full`` occurs."""
        apart = f"(distinct {' '.join(names[c] for c in self.cells)})" if len(self.cells) > 1 else "true"
        some = [f"(or {' '.join(f'(= {names[c]} {v})' for c in self.cells)})" for v in values_in(self.full)]
        return f"(and {apart} {' '.join(some)})" if some else apart


class Linear(Constraint):
    """``low <= sum of factor * variable <= high``; None for a side without a bound."""

    __slots__ = ("factors", "high", "low")

    def __init__(self, cells: Sequence[int], factors: Sequence[int], low: int | None, high: int | None) -> None:
        self.cells, self.factors, self.low, self.high = cells, factors, low, high

    def filter(self, dom: list[int], changed: list[int]) -> bool:
        """Bounds of each variable from the bounds of all others."""
        cells, factors = self.cells, self.factors
        least = most = 0
        for c, f in zip(cells, factors, strict=True):
            d = dom[c]
            low, high = (d & -d).bit_length() - 1, d.bit_length() - 1
            if f > 0:
                least += f * low
                most += f * high
            else:
                least += f * high
                most += f * low
        above = None if self.high is None or most <= self.high else self.high - least
        below = None if self.low is None or least >= self.low else most - self.low
        if above is None and below is None:
            return True
        if (above is not None and above < 0) or (below is not None and below < 0):
            return False
        return self._narrow(dom, changed, above, below)

    def _narrow(self, dom: list[int], changed: list[int], above: int | None, below: int | None) -> bool:
        """Each variable may exceed its own least share of the sum by ``above``, and fall short of its greatest by ``below``."""
        for c, f in zip(self.cells, self.factors, strict=True):
            d = dom[c]
            if not d & (d - 1):
                continue
            low, high = (d & -d).bit_length() - 1, d.bit_length() - 1
            size, first, last = abs(f), low, high
            up, down = (above, below) if f > 0 else (below, above)
            if up is not None:
                last = min(high, low + up // size)
            if down is not None:
                first = max(low, high - down // size)
            if first > low or last < high:
                d = (d & ((2 << last) - 1)) >> first << first
                if not d:
                    return False
                dom[c] = d
                changed.append(c)
        return True

    def holds(self, values: Sequence[int]) -> bool:
        """Whether the sum lies between the bounds."""
        total = sum(f * values[c] for c, f in zip(self.cells, self.factors, strict=True))
        return (self.low is None or total >= self.low) and (self.high is None or total <= self.high)

    def smt(self, names: Sequence[str]) -> str:
        """One or two comparisons of the sum."""
        total = _sum(names, self.cells, self.factors)
        if self.low is not None and self.low == self.high:
            return f"(= {total} {_number(self.low)})"
        sides = [f"(>= {total} {_number(self.low)})"] if self.low is not None else []
        sides += [f"(<= {total} {_number(self.high)})"] if self.high is not None else []
        return sides[0] if len(sides) == 1 else f"(and {' '.join(sides)})" if sides else "true"


class Unlike(Constraint):
    """``sum of factor * variable`` is not ``value``."""

    __slots__ = ("factors", "value")

    def __init__(self, cells: Sequence[int], factors: Sequence[int], value: int) -> None:
        self.cells, self.factors, self.value = cells, factors, value

    def filter(self, dom: list[int], changed: list[int]) -> bool:
        """When one variable is left, it loses the value that would make the sum."""
        total, left, factor = 0, -1, 0
        for c, f in zip(self.cells, self.factors, strict=True):
            d = dom[c]
            if d & (d - 1):
                if left >= 0:
                    return True
                left, factor = c, f
            else:
                total += f * (d.bit_length() - 1)
        if left < 0:
            return total != self.value
        share, rest = divmod(self.value - total, factor)
        if not rest and share >= 0 and dom[left] >> share & 1:
            dom[left] ^= 1 << share
            changed.append(left)
        return True

    def holds(self, values: Sequence[int]) -> bool:
        """Whether the sum is another."""
        return sum(f * values[c] for c, f in zip(self.cells, self.factors, strict=True)) != self.value

    def smt(self, names: Sequence[str]) -> str:
        """``distinct``."""
        return f"(distinct {_sum(names, self.cells, self.factors)} {_number(self.value)})"


class Count(Constraint):
    """Of the statements "variable is one of these values", at least ``low`` and at most ``high`` are true.

    A clause is a count of at least 1, an implication a clause.
    """

    __slots__ = ("high", "low", "masks")

    def __init__(self, cells: Sequence[int], masks: Sequence[int], low: int, high: int) -> None:
        self.cells, self.masks, self.low, self.high = cells, masks, low, high

    def filter(self, dom: list[int], changed: list[int]) -> bool:
        """When no more may be true the rest are false, and when all the rest are needed they are true."""
        sure, undecided = 0, 0
        for c, m in zip(self.cells, self.masks, strict=True):
            d = dom[c]
            if d & m:
                if d & ~m:
                    undecided += 1
                else:
                    sure += 1
        if sure > self.high or sure + undecided < self.low:
            return False
        if not undecided or (sure < self.high and sure + undecided > self.low):
            return True
        return self._decide(dom, changed, keep=sure < self.high)

    def _decide(self, dom: list[int], changed: list[int], keep: bool) -> bool:
        for c, m in zip(self.cells, self.masks, strict=True):
            d = dom[c]
            if d & m and d & ~m:
                d &= m if keep else ~m
                dom[c] = d
                changed.append(c)
        return True

    def holds(self, values: Sequence[int]) -> bool:
        """Whether as many are true."""
        true = sum(m >> values[c] & 1 for c, m in zip(self.cells, self.masks, strict=True))
        return self.low <= true <= self.high

    def smt(self, names: Sequence[str]) -> str:
        """Clauses where few or none may be true, else a sum of ones."""
        terms = [_among(names[c], m) for c, m in zip(self.cells, self.masks, strict=True)]
        if self.low == 1 and self.high >= len(terms):
            return f"(or {' '.join(terms)} false)"
        if self.high <= 1:
            apart = [f"(not (and {a} {b}))" for a, b in combinations(terms, 2)] if self.high else [f"(not {t})" for t in terms]
            some = f"(or {' '.join(terms)} false)" if self.low else "true"
            return f"(and {some} {' '.join(apart)} true)"
        total = f"(+ {' '.join(f'(ite {t} 1 0)' for t in terms)} 0)"
        return f"(and (<= {self.low} {total}) (<= {total} {self.high}))"


class Pair(Constraint):
    """Two variables with values that fit: ``fits[v]`` is the domain of the second where the first is ``v``."""

    __slots__ = ("fits",)

    def __init__(self, first: int, second: int, fits: Sequence[int]) -> None:
        self.cells, self.fits = (first, second), fits

    def filter(self, dom: list[int], changed: list[int]) -> bool:
        """Values without a partner go."""
        a, b = self.cells
        mine, other, keep, some = dom[a], dom[b], 0, 0
        rest = mine
        while rest:
            low = rest & -rest
            rest ^= low
            match = self.fits[low.bit_length() - 1] & other
            if match:
                keep |= low
                some |= match
        if not keep:
            return False
        if keep != mine:
            dom[a] = keep
            changed.append(a)
        if some != other:
            dom[b] = some
            changed.append(b)
        return True

    def holds(self, values: Sequence[int]) -> bool:
        """Whether the two fit."""
        return bool(self.fits[values[self.cells[0]]] >> values[self.cells[1]] & 1)

    def smt(self, names: Sequence[str]) -> str:
        """A disjunction over the first variable's values."""
        a, b = (names[c] for c in self.cells)
        return f"(or {' '.join(f'(and (= {a} {v}) {_among(b, m)})' for v, m in enumerate(self.fits) if m)} false)"


Known = dict[tuple[int, ...], tuple[int, ...]]
"""Domains of the variables of a table, and what is left of them."""


class Rows(Constraint):
    """The values together are one of the rows of a table. ``rows`` holds each as single bits, one to a variable.

    ``known`` keeps what domains were narrowed to: for small tables, which meet the same domains again. Tables of the same rows
    may share one.
    """

    __slots__ = ("known", "rows")

    def __init__(self, cells: Sequence[int], rows: Sequence[Sequence[int]], known: Known | None = None) -> None:
        self.cells, self.rows, self.known = cells, rows, known

    def filter(self, dom: list[int], changed: list[int]) -> bool:
        """What no row has that is still possible goes."""
        now = tuple([dom[c] for c in self.cells])
        seen = self.known.get(now) if self.known is not None else None
        if seen is None:
            seen = self._narrow_row(now)
            if self.known is not None:
                self.known[now] = seen
        if seen == now:
            return now[0] != 0
        for c, old, new in zip(self.cells, now, seen, strict=True):
            if not new:
                return False
            if new != old:
                dom[c] = new
                changed.append(c)
        return True

    def _narrow_row(self, now: tuple[int, ...]) -> tuple[int, ...]:
        """For each variable the values that it has in a row whose values are all possible."""
        seen = [0] * len(now)
        for row in self.rows:
            for bit, d in zip(row, now, strict=True):
                if not bit & d:
                    break
            else:
                seen = [s | bit for s, bit in zip(seen, row, strict=True)]
        return tuple(seen)

    def holds(self, values: Sequence[int]) -> bool:
        """Whether the table has the row."""
        mine = [1 << values[c] for c in self.cells]
        return any(list(row) == mine for row in self.rows)

    def smt(self, names: Sequence[str]) -> str:
        """A disjunction of rows."""
        rows = (
            f"(and {' '.join(f'(= {names[c]} {bit.bit_length() - 1})' for c, bit in zip(self.cells, row, strict=True))})"
            for row in self.rows
        )
        return f"(or {' '.join(rows)} false)"


class Modulo(Constraint):
    """``sum of factor * variable`` leaves ``rest`` when divided by ``by``."""

    __slots__ = ("by", "factors", "rest")

    def __init__(self, cells: Sequence[int], factors: Sequence[int], by: int, rest: int) -> None:
        self.cells, self.factors, self.by, self.rest = cells, factors, by, rest

    def filter(self, dom: list[int], changed: list[int]) -> bool:
        """When one variable is left, it keeps the values that leave the rest."""
        total, left, factor = 0, -1, 0
        for c, f in zip(self.cells, self.factors, strict=True):
            d = dom[c]
            if d & (d - 1):
                if left >= 0:
                    return True
                left, factor = c, f
            else:
                total += f * (d.bit_length() - 1)
        if left < 0:
            return total % self.by == self.rest
        keep = mask_of(v for v in values_in(dom[left]) if (total + factor * v) % self.by == self.rest)
        if keep != dom[left]:
            dom[left] = keep
            changed.append(left)
        return keep != 0

    def holds(self, values: Sequence[int]) -> bool:
        """Whether it leaves that."""
        return sum(f * values[c] for c, f in zip(self.cells, self.factors, strict=True)) % self.by == self.rest

    def smt(self, names: Sequence[str]) -> str:
        """``mod``."""
        return f"(= (mod {_sum(names, self.cells, self.factors)} {self.by}) {self.rest})"


class Every(Constraint):
    """Several constraints as one, where one clue says them together."""

    __slots__ = ("parts",)

    def __init__(self, *parts: Constraint) -> None:
        self.parts = parts
        self.cells = tuple(dict.fromkeys(cell for part in parts for cell in part.cells))

    def filter(self, dom: list[int], changed: list[int]) -> bool:
        """One after the other."""
        return all(part.filter(dom, changed) for part in self.parts)

    def holds(self, values: Sequence[int]) -> bool:
        """Whether all hold."""
        return all(part.holds(values) for part in self.parts)

    def smt(self, names: Sequence[str]) -> str:
        """``and``."""
        return f"(and {' '.join(part.smt(names) for part in self.parts)} true)"


def relate(cells: Sequence[int], factors: Sequence[int], relation: str, value: int) -> Constraint:
    """``sum of factor * variable`` compared with a value.

    Raises:
        ConfigError: no such relation.

    >>> relate((0, 1), (1, -1), "<", 0).smt(["a", "b"])
    '(<= (+ a (* (- 1) b)) (- 1))'
    """
    match relation:
        case "=" | "==":
            return Linear(cells, factors, value, value)
        case "<=":
            return Linear(cells, factors, None, value)
        case "<":
            return Linear(cells, factors, None, value - 1)
        case ">=":
            return Linear(cells, factors, value, None)
        case ">":
            return Linear(cells, factors, value + 1, None)
        case "!=":
            return Unlike(cells, factors, value)
        case _:
            raise ConfigError(f"unknown relation {relation!r} between a sum and {value}; use one of = != < <= > >=")


def _number(value: int) -> str:
    return str(value) if value >= 0 else f"(- {-value})"


def _sum(names: Sequence[str], cells: Sequence[int], factors: Sequence[int]) -> str:
    terms = [names[c] if f == 1 else f"(* {_number(f)} {names[c]})" for c, f in zip(cells, factors, strict=True)]
    return terms[0] if len(terms) == 1 else f"(+ {' '.join(terms)})" if terms else "0"


def _among(name: str, mask: int) -> str:
    values = values_in(mask)
    return f"(= {name} {values[0]})" if len(values) == 1 else f"(or {' '.join(f'(= {name} {v})' for v in values)} false)"
