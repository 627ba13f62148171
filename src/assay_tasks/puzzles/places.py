"""Who is where: houses in a row, places in a race, seats at a round table, purchases, a day's jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any, ClassVar

from assay.core.protocols import Verifier
from assay.tasks.problem import Facts, Form, Solution
from assay_tasks.puzzles.clued import Clue, Clued, in_order, list_in
from assay_tasks.puzzles.constraints import AllDifferent, Constraint, Count, Pair, mask_of
from assay_tasks.puzzles.puzzle import NAMES, list_words
from assay_tasks.puzzles.solver import Model

__all__ = ["Order", "Seating", "Zebra"]


@lru_cache(maxsize=1024)
def _fits(n: int, kind: str, ring: bool = False, apart: int = 0) -> tuple[int, ...]:
    """For each place of the first, the places of the second that the relation allows, of places 0 to n - 1."""

    def holds(a: int, b: int) -> bool:
        step = (b - a) % n if ring else b - a
        match kind:
            case "same":
                return a == b
            case "differ":
                return a != b
            case "next":
                return step in ((1, n - 1) if ring else (1, -1))
            case "not next":
                return step not in ((1, n - 1) if ring else (1, -1))
            case "step":
                return step == apart
            case "before":
                return a < b
            case _:
                return a != b and abs(a - b) == apart

    return tuple(mask_of(b for b in range(n) if holds(a, b)) for a in range(n))


# ---- houses in a row

_WORLD: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("colour", ("red", "blue", "green", "white", "yellow", "black", "orange"), "the person in the {} house"),
    ("drink", ("tea", "coffee", "milk", "water", "cider", "cocoa", "lemonade"), "the person who drinks {}"),
    ("pet", ("cat", "dog", "horse", "parrot", "rabbit", "goldfish", "hamster"), "the owner of the {}"),
    ("job", ("baker", "doctor", "painter", "teacher", "lawyer", "pilot", "gardener"), "the {}"),
)
_KINDS_ZEBRA = ("same", "same", "same", "next", "left", "before", "differ", "at", "ends")


@dataclass(frozen=True, slots=True, kw_only=True)
class Zebra(Clued):
    r"""Who lives in which house of a row, from clues about neighbours and habits. The level counts houses and habits.

    >>> facts = {"names": ["Ada", "Ben"], "things": [["tea", "milk"]], "kinds": ["drink"],
    ...          "clues": [["same", 0, 2], ["left", 2, 3]]}
    >>> Zebra().fields(facts)["clues"].split("\n")[1], Zebra().solve(facts).answer
    ('- The person who drinks tea lives directly to the left of the person who drinks milk.', 'Ada, Ben')
    """

    name: str = "riddles/zebra"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    shapes: ClassVar[tuple[Any, ...]] = ((3, 1), (3, 2), (4, 2), (4, 3), (5, 3), (5, 4))
    templates: ClassVar[tuple[str, ...]] = (
        "{n} people, {people}, live in {n} houses in a row, numbered 1 to {n} from left to right, one in each. {kinds}\n\n"
        "{clues}\n\nWho lives in which house? Name the people from house 1 to house {n}, separated by commas.",
        "In a street there are {n} houses side by side; the leftmost is number 1, the rightmost number {n}. {people} each "
        "live in one of them. {kinds} This is known:\n\n{clues}\n\nList the people in the order of their houses, from the "
        "left, separated by commas.",
        "{people} are neighbours in a row of {n} houses (1 is on the far left, {n} on the far right), one person per house. "
        "{kinds}\n\nClues:\n{clues}\n\nWork out who lives where, and give the {n} names in the order of the houses from 1 to "
        "{n}, with commas between.",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """Everybody's place and habits at random; true clues of all kinds, as many as are needed."""
        n, count = self.shapes[level - 1]
        worlds = rng.sample(_WORLD, count)
        facts: dict[str, Any] = {
            "names": rng.sample(NAMES, n),
            "kinds": [kind for kind, _, _ in worlds],
            "things": [rng.sample(words, n) for _, words, _ in worlds],
        }
        truth = [place for _ in range(count + 1) for place in rng.sample(range(n), n)]
        pool = [clue for _ in range(12 * n * (count + 1)) if (clue := self._true(truth, n, rng)) is not None]
        return self.with_clues(facts, truth, pool, rng)

    def base(self, facts: Facts) -> Model:
        """A house for every person and thing, different ones within a kind."""
        n = len(facts["names"])
        model = Model()
        for _ in range(len(facts["things"]) + 1):
            model.add(AllDifferent(model.block(n, (1 << n) - 1), (1 << n) - 1))
        return model

    def demand(self, facts: Facts, clue: Clue) -> Constraint:
        """One place, or two compared."""
        n = len(facts["names"])
        match clue[0]:
            case "at":
                return Count((clue[1],), (1 << clue[2],), 1, 1)
            case "ends":
                return Count((clue[1],), (1 | 1 << n - 1,), 1, 1)
            case "left":
                return Pair(clue[1], clue[2], _fits(n, "step", False, 1))
            case _:
                return Pair(clue[1], clue[2], _fits(n, clue[0]))

    def sentence(self, facts: Facts, clue: Clue, turn: int) -> str:
        """With the people and things by their descriptions."""
        a = self._who(facts, clue[1])
        b = self._who(facts, clue[2]) if len(clue) > 2 and clue[0] != "at" else ""
        swapped = turn % 2
        match clue[0]:
            case "same":
                text = f"{a} is {b}"
            case "differ":
                text = f"{a} is not {b}"
            case "next":
                text = f"{a} lives next door to {b}" if swapped else f"{a} and {b} are next-door neighbours"
            case "left":
                text = f"{b} lives directly to the right of {a}" if swapped else f"{a} lives directly to the left of {b}"
            case "before":
                text = f"{b} lives somewhere to the right of {a}" if swapped else f"{a} lives somewhere to the left of {b}"
            case "ends":
                text = f"{a} lives at one end of the row"
            case _:
                text = f"{a} lives in house {clue[2] + 1}"
        return f"{text[0].upper()}{text[1:]}."

    def write_solution(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The people by house."""
        return in_order(facts["names"], values[: len(facts["names"])])

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Other names and things too."""
        n, world = len(facts["names"]), {kind: words for kind, words, _ in _WORLD}
        other = Clued.vary(self, facts, rng) or {}
        return {**other, "things": [rng.sample(world[kind], n) for kind in facts["kinds"]]}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The people, and what they have."""
        have = [
            _HAVE[kind].format(list_words(sorted(words))) for kind, words in zip(facts["kinds"], facts["things"], strict=True)
        ]
        return {**Clued.fields(self, facts), "people": list_words(facts["names"]), "kinds": " ".join(have)}

    def verifier(self, form: Form) -> Verifier:
        """All houses."""
        return list_in(form)

    def _who(self, facts: Facts, number: int) -> str:
        n = len(facts["names"])
        kind, i = divmod(number, n)
        if not kind:
            return facts["names"][i]
        return next(text for k, _, text in _WORLD if k == facts["kinds"][kind - 1]).format(facts["things"][kind - 1][i])

    def _true(self, truth: Sequence[int], n: int, rng: Random) -> list[Any] | None:
        kind = rng.choice(_KINDS_ZEBRA)
        a, b = rng.sample(range(len(truth)), 2)
        if truth[a] > truth[b] and kind in ("left", "before"):
            a, b = b, a
        gap, alike = truth[b] - truth[a], a // n == b // n
        match kind:
            case "same" | "differ" if not alike and (gap == 0) == (kind == "same"):
                return [kind, min(a, b), max(a, b)]
            case "next" if abs(gap) == 1:
                return [kind, a, b]
            case "left" | "before" if gap == 1 or (gap > 1 and kind == "before"):
                return [kind, a, b]
            case "ends" if truth[a] in (0, n - 1):
                return [kind, a]
            case "at" if not rng.randrange(3):
                return [kind, a, truth[a]]
            case _:
                return None


_HAVE = {
    "colour": "Their houses have different colours: {}.",
    "drink": "Each drinks something different: {}.",
    "pet": "Each owns a different animal: {}.",
    "job": "Each has a different job: {}.",
}


# ---- places in a race


@dataclass(frozen=True, slots=True, kw_only=True)
class Order(Clued):
    r"""The order in which runners finished, from comparisons. The level counts runners.

    >>> facts = {"names": ["Ada", "Ben", "Cleo"], "clues": [["before", 2, 0], ["step", 0, 1]]}
    >>> Order().fields(facts)["clues"], Order().solve(facts).answer
    ('- Cleo finished before Ada.\n- Ada finished immediately before Ben.', 'Cleo, Ada, Ben')
    """

    name: str = "riddles/order"
    alphabetic: ClassVar[bool] = True
    levels: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    shapes: ClassVar[tuple[Any, ...]] = ((3,), (4,), (5,), (6,), (7,), (8,))
    templates: ClassVar[tuple[str, ...]] = (
        "{people} ran a race; no two finished together.\n\n{clues}\n\nIn which order did they finish? Give the names from "
        "first to last, separated by commas.",
        "{n} runners, {people}, reached the finish one after another. From the statements\n\n{clues}\n\nfind the whole "
        "order. List the names, the winner first, with commas between them.",
        "After a race among {people} (without ties) spectators remember the following, all of it true:\n\n{clues}\n\n"
        "Reconstruct the result: all names in the order of arrival, separated by commas.",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """A random order, and true clues that are needed."""
        (n,) = self.shapes[level - 1]
        truth = rng.sample(range(n), n)
        pool: list[Clue] = []
        for _ in range(10 * n):
            a, b = rng.sample(range(n), 2)
            gap = truth[b] - truth[a]
            kind = rng.choice(("before", "before", "step", "between", "not next", "at", "not at", "either"))
            if kind in ("before", "step") and gap > 0 and (kind == "before" or gap == 1):
                pool.append([kind, a, b])
            elif kind == "between" and abs(gap) > 1:
                pool.append([kind, a, b, abs(gap)])
            elif kind == "not next" and abs(gap) > 1:
                pool.append([kind, a, b])
            elif kind == "at" and not rng.randrange(3):
                pool.append([kind, a, truth[a]])
            elif kind in ("not at", "either"):
                other = rng.choice([p for p in range(n) if p != truth[a]])
                pool.append([kind, a, other] if kind == "not at" else [kind, a, *sorted((truth[a], other))])
        return self.with_clues({"names": self.draw_names(n, rng)}, truth, pool, rng)

    def base(self, facts: Facts) -> Model:
        """Everybody at another place."""
        n, model = len(facts["names"]), Model()
        model.add(AllDifferent(model.block(n, (1 << n) - 1), (1 << n) - 1))
        return model

    def demand(self, facts: Facts, clue: Clue) -> Constraint:
        """One place, or two compared."""
        n = len(facts["names"])
        match clue[0]:
            case "at" | "either":
                return Count((clue[1],), (mask_of(clue[2:]),), 1, 1)
            case "not at":
                return Count((clue[1],), (1 << clue[2],), 0, 0)
            case "step":
                return Pair(clue[1], clue[2], _fits(n, "step", False, 1))
            case "between":
                return Pair(clue[1], clue[2], _fits(n, "apart", False, clue[3]))
            case _:
                return Pair(clue[1], clue[2], _fits(n, clue[0]))

    def sentence(self, facts: Facts, clue: Clue, turn: int) -> str:
        """With the runners' names."""
        names = facts["names"]
        a = names[clue[1]]
        b = names[clue[2]] if clue[0] in ("before", "step", "between", "not next") else ""
        match clue[0]:
            case "before":
                return f"{a} finished before {b}." if turn % 2 else f"{b} finished after {a}."
            case "step":
                return f"{b} finished immediately after {a}." if turn % 2 else f"{a} finished immediately before {b}."
            case "between":
                count = "one runner" if clue[3] == 2 else f"{clue[3] - 1} runners"
                return f"Exactly {count} finished between {a} and {b}."
            case "not next":
                return f"{a} and {b} did not finish directly one after the other."
            case "at":
                return f"{a} came {_ORDINALS[clue[2]]}."
            case "not at":
                return f"{a} did not come {_ORDINALS[clue[2]]}."
            case _:
                return f"{a} came {_ORDINALS[clue[2]]} or {_ORDINALS[clue[3]]}."

    def write_solution(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The runners in order."""
        return in_order(facts["names"], values)

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The runners and clues."""
        return {**Clued.fields(self, facts), "people": list_words(facts["names"])}

    def verifier(self, form: Form) -> Verifier:
        """All places."""
        return list_in(form)


_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


# ---- seats at a round table


@dataclass(frozen=True, slots=True, kw_only=True)
class Seating(Clued):
    r"""Who sits where at a round table. The level counts guests.

    >>> facts = {"names": ["Ada", "Ben", "Cleo", "Dan"], "clues": [["step", 0, 2, 2], ["step", 1, 0, 1]]}
    >>> Seating().fields(facts)["clues"].split("\n")[1], Seating().solve(facts).answer
    ('- Going clockwise, Ada sits 1 seat after Ben.', 'Ada, Dan, Cleo, Ben')
    """

    name: str = "riddles/seating"
    alphabetic: ClassVar[bool] = True
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    shapes: ClassVar[tuple[Any, ...]] = ((4,), (5,), (6,), (7,), (8,))
    templates: ClassVar[tuple[str, ...]] = (
        "{people} sit at a round table with {n} seats, all of them taken.\n\n{clues}\n\nGive the seating: the names "
        "clockwise around the table, starting with {first}, separated by commas.",
        "{n} guests ({people}) fill the {n} chairs around a round table. What is known of their places:\n\n{clues}\n\nStart "
        "at {first} and go around the table clockwise: in which order do you pass all the guests? Separate the names by "
        "commas.",
        "A round table has {n} seats at equal distances. {people} are seated such that\n\n{clues}\n\nList everyone in "
        "clockwise order, {first} first, with commas between the names.",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """A random seating, and true clues that are needed."""
        (n,) = self.shapes[level - 1]
        truth = [0, *rng.sample(range(1, n), n - 1)]
        pool: list[Clue] = []
        for _ in range(10 * n):
            a, b = rng.sample(range(n), 2)
            gap = (truth[b] - truth[a]) % n
            kind = rng.choice(("next", "not next", "not next", "step", "opposite"))
            if kind in ("next", "not next") and (gap in (1, n - 1)) == (kind == "next"):
                pool.append([kind, a, b])
            elif kind == "step" and gap <= n // 2 and not rng.randrange(2):
                pool.append([kind, a, b, gap])
            elif kind == "opposite" and 2 * gap == n:
                pool.append([kind, a, b])
        return self.with_clues({"names": self.draw_names(n, rng)}, truth, pool, rng)

    def base(self, facts: Facts) -> Model:
        """Seats counted clockwise from the first guest's."""
        n, model = len(facts["names"]), Model()
        model.add(AllDifferent(model.block(n, (1 << n) - 1), (1 << n) - 1))
        model.domains[0] = 1
        return model

    def demand(self, facts: Facts, clue: Clue) -> Constraint:
        """Two seats compared around the table."""
        n = len(facts["names"])
        if clue[0] == "opposite":
            return Pair(clue[1], clue[2], _fits(n, "step", True, n // 2))
        return Pair(clue[1], clue[2], _fits(n, clue[0], True, clue[3] if clue[0] == "step" else 0))

    def sentence(self, facts: Facts, clue: Clue, turn: int) -> str:
        """With the guests' names."""
        a, b = facts["names"][clue[1]], facts["names"][clue[2]]
        match clue[0]:
            case "next":
                return f"{a} sits next to {b}." if turn % 2 else f"{a} and {b} are neighbours."
            case "not next":
                return f"{a} does not sit next to {b}." if turn % 2 else f"{a} and {b} are not neighbours."
            case "opposite":
                return f"{a} sits exactly opposite {b}."
            case _:
                return f"Going clockwise, {b} sits {clue[3]} seat{'s' * (clue[3] > 1)} after {a}."

    def write_solution(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The guests clockwise."""
        return in_order(facts["names"], values)

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The guests and clues."""
        return {**Clued.fields(self, facts), "people": list_words(facts["names"])}

    def verifier(self, form: Form) -> Verifier:
        """All seats."""
        return list_in(form)


# ---- purchases


# ---- a day's jobs
