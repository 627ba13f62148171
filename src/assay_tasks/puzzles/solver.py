"""A small solver of finite domains: it narrows domains, branches, and counts solutions up to a bound."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from assay.core.errors import DataError
from assay_tasks.puzzles.constraints import Constraint, bits, mask_of, relate, values_in

__all__ = ["Found", "Model"]


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found.

    Attributes:
        solutions: a value for every variable, each; at most as many as were asked for.
        effort: domains that became narrower, and nodes of the search.
        complete: whether nothing was left out: False where the search was cut off.
    """

    solutions: tuple[tuple[int, ...], ...]
    effort: int
    complete: bool


class Model:
    """Variables with domains of whole numbers from 0, and constraints between them.

    The search is deterministic: it branches on the first variable with the fewest values left and takes the least value first.

    >>> model = Model()
    >>> x, y = model.var(range(5), "x"), model.var(range(5), "y")
    >>> model.linear((x, y), (1, 2), "=", 9)
    >>> model.solve(limit=9).solutions
    ((3, 3), (1, 4))
    >>> model.linear((x, y), (1, -1), ">=", 0)
    >>> model.only()[0]
    (3, 3)
    """

    __slots__ = ("constraints", "domains", "names", "watch")

    def __init__(self) -> None:
        self.names: list[str] = []
        self.domains: list[int] = []
        self.constraints: list[Constraint] = []
        self.watch: list[list[int]] = []

    def var(self, values: Iterable[int], name: str = "") -> int:
        """A new variable, told by its number.

        Raises:
            DataError: no values, or negative ones.
        """
        known = list(values)
        if not known or min(known) < 0:
            raise DataError(f"a variable needs values, all of them 0 or more; got {known[:9]}")
        return self.domain(mask_of(known), name)

    def domain(self, mask: int, name: str = "") -> int:
        """A new variable whose domain is given as bits."""
        self.names.append(name or f"x{len(self.names)}")
        self.domains.append(mask)
        self.watch.append([])
        return len(self.domains) - 1

    def block(self, count: int, mask: int) -> range:
        """Several new variables of one domain."""
        first = len(self.domains)
        self.names += [f"x{i}" for i in range(first, first + count)]
        self.domains += [mask] * count
        self.watch += [[] for _ in range(count)]
        return range(first, first + count)

    def add(self, *constraints: Constraint) -> None:
        """More that must hold."""
        for constraint in constraints:
            number = len(self.constraints)
            self.constraints.append(constraint)
            for cell in constraint.cells:
                self.watch[cell].append(number)

    def linear(self, cells: Sequence[int], factors: Sequence[int], relation: str, value: int) -> None:
        """``sum of factor * variable`` stands in a relation (``= != < <= > >=``) to a value."""
        self.add(relate(cells, factors, relation, value))

    def solve(self, limit: int = 2, most: int = 1_000_000, *, start: Sequence[int] = (), other: Sequence[int] = ()) -> Found:
        """Solutions, at most ``limit``.

        Args:
            limit: solutions after which the search stops.
            most: constraints looked at, after which it gives up.
            start: domains to begin with; the model's own by default.
            other: values that are tried last, and whose solution does not count.
        """
        search = _Search(self, limit, most, other)
        dom = list(start or self.domains)
        search.run(dom, range(len(self.constraints)))
        return Found(tuple(search.solutions), search.effort, search.looks <= most)

    def narrowed(self, dom: list[int], since: int = 0) -> bool:
        """Narrow domains by the constraints from number ``since`` on and all that they touch; False if nothing is left."""
        return _Search(self, 1, 1_000_000, ()).propagate(dom, range(since, len(self.constraints)))

    def only(self, most: int = 1_000_000) -> tuple[tuple[int, ...], int]:
        """The one solution, and the effort that finding it and proving that there is no other took.

        Raises:
            DataError: there is none, or another, or the search was cut off.
        """
        found = self.solve(2, most)
        if len(found.solutions) != 1 or not found.complete:
            raise DataError(
                f"a puzzle needs exactly one solution; a search of effort {found.effort} found {len(found.solutions)}"
                f"{'' if found.complete else ' and was cut off'}"
            )
        return found.solutions[0], found.effort

    def holds(self, values: Sequence[int]) -> bool:
        """Whether values, one for every variable, keep domains and constraints."""
        return all(d >> v & 1 for d, v in zip(self.domains, values, strict=True)) and all(
            c.holds(values) for c in self.constraints
        )

    def smt(self, but: Sequence[int] = ()) -> str:
        """The same in SMT-LIB 2, over ``Int``; with ``but``, also that the solution is another than these values."""
        lines: list[str] = []
        for name, domain in zip(self.names, self.domains, strict=True):
            values = values_in(domain)
            lines.append(f"(declare-const {name} Int)")
            if values[-1] - values[0] + 1 == len(values):
                lines.append(f"(assert (and (<= {values[0]} {name}) (<= {name} {values[-1]})))")
            else:
                lines.append(f"(assert (or {' '.join(f'(= {name} {v})' for v in values)}))")
        lines += [f"(assert {constraint.smt(self.names)})" for constraint in self.constraints]
        if but:
            same = " ".join(f"(= {name} {value})" for name, value in zip(self.names, but, strict=True))
            lines.append(f"(assert (not (and {same} true)))")
        return "\n".join(lines)

    def sample(self, rng: Random, most: int = 20_000) -> tuple[int, ...] | None:
        """The first solution when values are tried in random order; None where there is none among so many looks."""
        search = _Search(self, 1, most, ())
        search.rng = rng
        search.run(list(self.domains), range(len(self.constraints)))
        return search.solutions[0] if search.solutions else None

    def clues(
        self, truth: Sequence[int], pool: Sequence[Constraint], rng: Random, *, lean: bool = True, most: int = 4000
    ) -> list[int] | None:
        """Numbers of constraints of a pool which, added to the model, leave one solution, ``truth``; None if none were found.

        A solution that is not the truth is refuted by the next clue that it breaks, until there is none; with ``lean``, what is
        not needed is then left out again, in random order.

        Args:
            truth: a solution of the model that keeps the whole pool.
            pool: clues, in the order of preference.
            rng: the order in which clues are tried for leaving out.
            lean: whether to leave out.
            most: constraints that one search may look at; past it, or where the whole pool is too weak, there are none.
        """
        own = len(self.constraints)
        chosen = self._refuting(truth, pool, most)
        self._shorten(own)
        return self._lean(truth, pool, chosen, rng, most) if lean and chosen else chosen

    def _refuting(self, truth: Sequence[int], pool: Sequence[Constraint], most: int) -> list[int] | None:
        chosen: list[int] = []
        dom = list(self.domains)
        self.narrowed(dom)
        while True:
            found = self.solve(1, most, start=dom, other=truth)
            if not found.solutions:
                return sorted(chosen) if found.complete else None
            wrong = found.solutions[0]
            clue = next((i for i, c in enumerate(pool) if not c.holds(wrong)), None)
            if clue is None:
                return None
            chosen.append(clue)
            self.add(pool[clue])
            self.narrowed(dom, len(self.constraints) - 1)

    def _lean(self, truth: Sequence[int], pool: Sequence[Constraint], chosen: list[int], rng: Random, most: int) -> list[int]:
        own, kept = len(self.constraints), list(chosen)
        for clue in rng.sample(chosen, len(chosen)):
            self.add(*(pool[i] for i in kept if i != clue))
            found = self.solve(1, most, other=truth)
            if not found.solutions and found.complete:
                kept.remove(clue)
            self._shorten(own)
        return sorted(kept)

    def drop(self) -> None:
        """Forget the constraint that was added last."""
        self._shorten(len(self.constraints) - 1)

    def _shorten(self, count: int) -> None:
        """Forget all constraints but the first ``count``."""
        for number in range(len(self.constraints) - 1, count - 1, -1):
            for cell in self.constraints[number].cells:
                if self.watch[cell] and self.watch[cell][-1] == number:
                    self.watch[cell].pop()
        del self.constraints[count:]


class _Search:
    __slots__ = ("constraints", "effort", "limit", "looks", "most", "other", "rng", "solutions", "watch")

    def __init__(self, model: Model, limit: int, most: int, other: Sequence[int]) -> None:
        self.constraints, self.watch = model.constraints, model.watch
        self.limit, self.most, self.other = limit, most, tuple(other)
        self.effort = self.looks = 0
        self.rng: Random | None = None
        self.solutions: list[tuple[int, ...]] = []

    def propagate(self, dom: list[int], start: Iterable[int]) -> bool:
        """Narrow until nothing changes."""
        queue = deque(start)
        waiting = set(queue)
        changed: list[int] = []
        constraints, watch = self.constraints, self.watch
        while queue:
            number = queue.popleft()
            waiting.discard(number)
            self.looks += 1
            if not constraints[number].filter(dom, changed):
                return False
            if not changed:
                continue
            self.effort += len(changed)
            for cell in changed:
                for other in watch[cell]:
                    if other not in waiting:
                        waiting.add(other)
                        queue.append(other)
            changed.clear()
        return True

    def run(self, dom: list[int], start: Iterable[int]) -> None:
        """All solutions below these domains, until there are enough or it takes too long."""
        self.effort += 1
        if not self.propagate(dom, start):
            return
        cell, fewest = -1, 1 << 30
        for i, d in enumerate(dom):
            if d & (d - 1):
                size = d.bit_count()
                if size < fewest:
                    cell, fewest = i, size
                    if size == 2:
                        break
        if cell < 0:
            values = tuple(d.bit_length() - 1 for d in dom)
            if values != self.other:
                self.solutions.append(values)
            return
        rest = dom[cell]
        last = 1 << self.other[cell] & rest if self.other else 0
        rest ^= last
        while rest or last:
            bit = self._next(rest) if rest else last
            rest, last = (rest ^ bit, last) if rest else (0, 0)
            below = dom[:]
            below[cell] = bit
            self.run(below, self.watch[cell])
            if len(self.solutions) >= self.limit or self.looks > self.most:
                return

    def _next(self, rest: int) -> int:
        return rest & -rest if self.rng is None else self.rng.choice(bits(rest))
