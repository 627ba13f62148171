"""Who bought what, and what is done when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any, ClassVar

from assay.core.protocols import Verifier
from assay.tasks.problem import Facts, Form, Solution
from assay_tasks.puzzles.clued import Clue, Clued, in_order, list_in, table_in, table_of
from assay_tasks.puzzles.constraints import AllDifferent, Constraint, Count, Linear, Pair, mask_of, relate
from assay_tasks.puzzles.puzzle import list_words
from assay_tasks.puzzles.solver import Model

__all__ = ["Purchases", "Schedule"]

_GOODS = ("lamp", "vase", "clock", "chair", "mirror", "kettle", "drum", "kite", "globe", "basket")


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchases(Clued):
    """Who bought what at which price, from comparisons of prices. The level counts buyers.

    >>> facts = {"names": ["Ada", "Ben"], "goods": ["lamp", "vase"], "prices": [5, 9], "clues": [["more", 3, 0, 4]]}
    >>> Purchases().fields(facts)["clues"], Purchases().solve(facts).answer
    ('- The vase cost 4 euros more than what Ada bought.', 'Ada: lamp, Ben: vase')
    """

    name: str = "riddles/purchases"
    alphabetic: ClassVar[bool] = True
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    shapes: ClassVar[tuple[Any, ...]] = ((3, 2), (4, 3), (4, 0), (5, 0), (6, 0))
    templates: ClassVar[tuple[str, ...]] = (
        "At a market {people} each bought one thing: the things were {goods}, and the prices, not in this order, {prices} "
        "euros.\n\n{clues}\n\nWho bought what? Answer for everybody in the form {first}: {good}, {second}: ..., with commas "
        "between.",
        "{n} friends, {people}, bought {goods}, one thing each. One thing cost {price_list} euros, in some order. It is "
        "known that\n\n{clues}\n\nFind out which thing each of them bought. Write name and thing of everybody, as in "
        "{first}: {good}, separated by commas.",
        "Match buyers, goods and prices. Buyers: {people}. Goods: {goods}. Prices in euros: {prices}. Everybody bought one "
        "thing, and every price occurs once.\n\n{clues}\n\nGive the thing that each one bought, like this: {first}: {good}, "
        "{second}: ... (all {n} of them).",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """Prices, buyers and goods at random; true clues that are needed, and some more."""
        n, extra = self.shapes[level - 1]
        prices = sorted(rng.sample(range(3, 12 + 6 * n), n))
        facts: dict[str, Any] = {"names": self.draw_names(n, rng), "goods": sorted(rng.sample(_GOODS, n)), "prices": prices}
        truth = [*rng.sample(prices, n), *rng.sample(prices, n)]
        pool: list[Clue] = []
        for _ in range(25 * n):
            a, b = rng.sample(range(2 * n), 2)
            gap = truth[a] - truth[b]
            kind = rng.choice(("more", "over", "over", "same", "differ", "differ", "sum", "at"))
            if kind in ("more", "over") and gap > 0:
                pool.append([kind, a, b, gap] if kind == "more" else [kind, a, b])
            elif kind in ("same", "differ") and a < n <= b and (not gap) == (kind == "same"):
                pool.append([kind, a, b])
            elif kind == "sum" and gap and a < b and (a < n) == (b < n):
                pool.append([kind, a, b, truth[a] + truth[b]])
            elif kind == "at" and not rng.randrange(4):
                pool.append([kind, a, truth[a]])
        return self.with_clues(facts, truth, pool, rng, extra=extra)

    def base(self, facts: Facts) -> Model:
        """A price for every buyer and every thing."""
        full, model = mask_of(facts["prices"]), Model()
        for _ in range(2):
            model.add(AllDifferent(model.block(len(facts["names"]), full), full))
        return model

    def demand(self, facts: Facts, clue: Clue) -> Constraint:
        """Two prices compared or added."""
        pair = (clue[1], clue[2])
        match clue[0]:
            case "more":
                return relate(pair, (1, -1), "=", clue[3])
            case "over":
                return relate(pair, (1, -1), ">", 0)
            case "same":
                return relate(pair, (1, -1), "=", 0)
            case "differ":
                return relate(pair, (1, -1), "!=", 0)
            case "sum":
                return relate(pair, (1, 1), "=", clue[3])
            case _:
                return Count((clue[1],), (1 << clue[2],), 1, 1)

    def sentence(self, facts: Facts, clue: Clue, turn: int) -> str:
        """With buyers and goods by name."""
        n, kind = len(facts["names"]), clue[0]

        def thing(i: int) -> str:
            return f"what {facts['names'][i]} bought" if i < n else f"the {facts['goods'][i - n]}"

        a, b = thing(clue[1]), thing(clue[2]) if kind != "at" else ""
        match kind:
            case "more":
                text = f"{a} cost {clue[3]} euro{'s' * (clue[3] > 1)} more than {b}"
            case "over":
                text = f"{b} cost less than {a}" if turn % 2 else f"{a} cost more than {b}"
            case "same" | "differ":
                who, good = facts["names"][clue[1]], facts["goods"][clue[2] - n]
                text = f"{who} bought the {good}" if kind == "same" else f"{who} did not buy the {good}"
            case "sum":
                text = f"{a} and {b} cost {clue[3]} euros together"
            case _:
                text = f"{a} cost {clue[2]} euros"
        return f"{text[0].upper()}{text[1:]}."

    def write_solution(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The thing of each buyer."""
        n = len(facts["names"])
        good = {values[n + i]: word for i, word in enumerate(facts["goods"])}
        return table_of(facts["names"], [good[values[i]] for i in range(n)])

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Other names and goods."""
        other = Clued.vary(self, facts, rng) or {}
        return {**other, "goods": sorted(rng.sample(_GOODS, len(facts["goods"])))}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Buyers, goods, prices."""
        prices = list_words([str(p) for p in facts["prices"]])
        goods = list_words([f"{'an' if g[0] in 'aeiou' else 'a'} {g}" for g in facts["goods"]])
        return {
            **Clued.fields(self, facts),
            "people": list_words(facts["names"]),
            "goods": goods,
            "prices": prices,
            "price_list": prices.replace(", ", " euros, one ").replace(" and ", " euros and one "),
            "good": facts["goods"][0],
        }

    def verifier(self, form: Form) -> Verifier:
        """Everybody's thing."""
        return table_in(form)


_JOBS = ("painting", "cooking", "cleaning", "shopping", "gardening", "ironing", "baking", "writing", "packing", "sewing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule(Clued):
    """The order of jobs that take some hours each, from when they begin and end. The level counts jobs.

    >>> facts = {"names": ["baking", "sewing", "packing"], "hours": [2, 1, 3], "start": 8,
    ...          "clues": [["begins", 0, 11], ["before", 1, 2]]}
    >>> Schedule().solve(facts)
    Traceback (most recent call last):
    assay.core.errors.DataError: a puzzle needs exactly one solution; a search of effort ... found 0
    >>> Schedule().solve({**facts, "clues": [["begins", 0, 9], ["before", 1, 2]]}).answer
    'sewing, baking, packing'
    """

    name: str = "riddles/schedule"
    levels: tuple[int, ...] = (1, 2, 3, 4)
    shapes: ClassVar[tuple[Any, ...]] = ((3,), (4,), (5,), (6,))
    templates: ClassVar[tuple[str, ...]] = (
        "From {start}:00 on a worker does {n} jobs one after another, without a break: {jobs}.\n\n{clues}\n\nIn which order "
        "are the jobs done? Name them from first to last, separated by commas.",
        "Someone has {n} things to do in one day, in an order to be found: {jobs}. The first begins at {start}:00, and each "
        "of the others begins at the moment the one before it ends. It is known that\n\n{clues}\n\nList the things in the "
        "order in which they are done, with commas.",
        "Plan of a day, starting at {start}:00, with no pause and only one job at a time. Durations: {jobs}. Conditions:\n\n"
        "{clues}\n\nWhich order of the {n} jobs satisfies them? Answer with the jobs in order, separated by commas.",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """Durations and an order at random; true clues that are needed."""
        (n,) = self.shapes[level - 1]
        hours = [rng.randint(1, 4 if n < 5 else 2) for _ in range(n)]
        start = rng.randint(6, 9)
        facts: dict[str, Any] = {"names": self.draw_names(n, rng), "hours": hours, "start": start}
        order = rng.sample(range(n), n)
        begin, now = [0] * n, 0
        for job in order:
            begin[job], now = now, now + hours[job]
        pool: list[Clue] = []
        for _ in range(10 * n):
            a, b = rng.sample(range(n), 2)
            kind = rng.choice(("before", "after", "gap", "not next", "begins", "ends by", "not before"))
            end = begin[a] + hours[a]
            if (kind == "before" and begin[a] < begin[b]) or (kind == "after" and end == begin[b]):
                pool.append([kind, a, b])
            elif kind == "gap" and end < begin[b]:
                pool.append([kind, a, b, begin[b] - end])
            elif kind == "begins" and not rng.randrange(3):
                pool.append([kind, a, start + begin[a]])
            elif kind == "ends by" and end < now:
                pool.append([kind, a, start + rng.randint(end, now - 1)])
            elif kind == "not before" and begin[a]:
                pool.append([kind, a, start + rng.randint(1, begin[a])])
        return self.with_clues(facts, begin, pool, rng)

    def base(self, facts: Facts) -> Model:
        """When each job begins, no two at the same time."""
        hours, model = facts["hours"], Model()
        total = sum(hours)
        for time in hours:
            model.var(range(total - time + 1))
        for a in range(len(hours)):
            for b in range(a + 1, len(hours)):
                model.add(Pair(a, b, _disjoint(total, hours[a], hours[b])))
        return model

    def demand(self, facts: Facts, clue: Clue) -> Constraint:
        """Beginnings compared."""
        hours, start = facts["hours"], facts["start"]
        match clue[0]:
            case "before":
                return Linear((clue[1], clue[2]), (-1, 1), 1, None)
            case "after":
                return Linear((clue[1], clue[2]), (-1, 1), hours[clue[1]], hours[clue[1]])
            case "gap":
                gap = hours[clue[1]] + clue[3]
                return Linear((clue[1], clue[2]), (-1, 1), gap, gap)
            case "begins":
                return Linear((clue[1],), (1,), clue[2] - start, clue[2] - start)
            case "ends by":
                return Linear((clue[1],), (1,), None, clue[2] - start - hours[clue[1]])
            case _:
                return Linear((clue[1],), (1,), clue[2] - start, None)

    def sentence(self, facts: Facts, clue: Clue, turn: int) -> str:
        """With the jobs' names and hours of the clock."""
        a = facts["names"][clue[1]].capitalize()
        b = facts["names"][clue[2]] if clue[0] in ("before", "after", "gap") else ""
        match clue[0]:
            case "before":
                return f"{a} is done before {b}, directly or not." if turn % 2 else f"{a} comes earlier in the day than {b}."
            case "after":
                return f"When {a.lower()} ends, {b} begins."
            case "gap":
                return f"Between the end of {a.lower()} and the beginning of {b} there are exactly {clue[3]} h."
            case "begins":
                return f"{a} begins at {clue[2]}:00."
            case "ends by":
                return f"{a} is finished by {clue[2]}:00 at the latest."
            case _:
                return f"{a} does not begin before {clue[2]}:00."

    def write_solution(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The jobs in order."""
        return in_order(facts["names"], values)

    def draw_names(self, n: int, rng: Random) -> list[str]:
        """Jobs in place of people."""
        return sorted(rng.sample(_JOBS, n))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The jobs with their hours."""
        jobs = list_words([f"{job} ({time} h)" for job, time in sorted(zip(facts["names"], facts["hours"], strict=True))])
        return {**Clued.fields(self, facts), "jobs": jobs, "start": str(facts["start"])}

    def verifier(self, form: Form) -> Verifier:
        """The whole order."""
        return list_in(form)


@lru_cache(maxsize=4096)
def _disjoint(total: int, a: int, b: int) -> tuple[int, ...]:
    """For each beginning of a job of ``a`` hours, the beginnings of one of ``b`` hours that does not overlap it."""
    return tuple(
        mask_of(t for t in range(total - b + 1) if t + b <= s or s + a <= t) if s <= total - a else 0 for s in range(total)
    )
