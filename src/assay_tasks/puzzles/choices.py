"""Which of several things: a bag, a sum, change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.core.protocols import Verifier
from assay.tasks.problem import Facts, Form, Solution
from assay.verify.text.items import SetMatch
from assay_tasks.puzzles.clued import table_in, table_of
from assay_tasks.puzzles.constraints import Linear, mask_of
from assay_tasks.puzzles.puzzle import Puzzle, bullets, list_words
from assay_tasks.puzzles.solver import Model

__all__ = ["Change", "Knapsack", "SubsetSum"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Knapsack(Puzzle):
    """Which things to take so that they are worth most and not too heavy. The level counts things.

    >>> Knapsack().solve({"weights": [3, 4, 5], "values": [4, 5, 8], "room": 8}).answer
    'A, C'
    """

    name: str = "riddles/knapsack"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    shapes: ClassVar[tuple[Any, ...]] = ((3,), (5,), (7,), (9,), (11,), (13,))
    templates: ClassVar[tuple[str, ...]] = (
        "A bag holds at most {room} kg. Each of these things may be put in or left out:\n\n{things}\n\nWhich things have the "
        "greatest total value among all choices that are not too heavy? List their letters, separated by commas.",
        "Choose among the following things so that their total weight is at most {room} kg and their total value is as great "
        "as possible. Each exists once.\n\n{things}\n\nGive the letters of the things to choose, with commas between.",
        "{things}\n\nA thief can carry {room} kg. Which of the things above should be taken for the most money? There is one "
        "best choice; answer with its letters, separated by commas.",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """Weights and values at random; refused where two choices are best."""
        (n,) = self.shapes[level - 1]
        weights = [rng.randint(2, 25) for _ in range(n)]
        values = [max(1, w * rng.randint(6, 14) // 10 + rng.randint(-2, 5)) for w in weights]
        facts = {"weights": weights, "values": values, "room": max(min(weights), sum(weights) * rng.randint(35, 65) // 100)}
        return facts if _best(facts)[1] == 1 else None

    def model(self, facts: Facts) -> Model:
        """What is taken: not too heavy, and worth no less than the best."""
        n, model = len(facts["weights"]), Model()
        model.block(n, 3)
        model.add(Linear(range(n), facts["weights"], None, facts["room"]))
        model.add(Linear(range(n), facts["values"], _best(facts)[0], None))
        return model

    def write_solution(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The letters."""
        gold = ["ABCDEFGHIJKLM"[i] for i, v in enumerate(values) if v]
        return Solution(answer=", ".join(gold), gold=gold)

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """The things in another order."""
        order = rng.sample(range(len(facts["weights"])), len(facts["weights"]))
        return {**facts, "weights": [facts["weights"][i] for i in order], "values": [facts["values"][i] for i in order]}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The things."""
        rows = zip("ABCDEFGHIJKLM", facts["weights"], facts["values"], strict=False)
        return {"things": bullets(f"{c}: {w} kg, worth {v} euros" for c, w, v in rows), "room": str(facts["room"])}

    def verifier(self, form: Form) -> Verifier:
        """The letters as a set."""
        return SetMatch(where=form.place)


def _best(facts: Facts) -> tuple[int, int]:
    """The greatest value, and how many choices have it, by dynamic programming over weight and value."""
    ways = {(0, 0): 1}
    for weight, value in zip(facts["weights"], facts["values"], strict=True):
        for (load, worth), count in list(ways.items()):
            if load + weight <= facts["room"]:
                more = (load + weight, worth + value)
                ways[more] = ways.get(more, 0) + count
    top = max(worth for _, worth in ways)
    return top, sum(count for (_, worth), count in ways.items() if worth == top)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetSum(Puzzle):
    """Which of some numbers add up to a total. The level counts numbers.

    >>> SubsetSum().solve({"numbers": [3, 8, 14, 21], "total": 24}).answer
    '3, 21'
    """

    name: str = "riddles/subset_sum"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    shapes: ClassVar[tuple[Any, ...]] = ((4, 30), (6, 60), (8, 150), (10, 400), (12, 999))
    templates: ClassVar[tuple[str, ...]] = (
        "Which of the numbers {numbers} add up to exactly {total}? Each may be used at most once. List the chosen numbers, "
        "separated by commas.",
        "Choose some of these numbers, each at most once, so that their sum is {total}: {numbers}. Give the chosen numbers "
        "with commas between them.",
        "Exactly one selection from {numbers} has the sum {total}. Find it, and write down its numbers, separated by commas.",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """Different numbers and a part of them; refused where another part has the sum."""
        n, most = self.shapes[level - 1]
        numbers = rng.sample(range(1, most + 1), n)
        total = sum(rng.sample(numbers, rng.randint(2, n - 1)))
        ways = {0: 1}
        for number in numbers:
            for old, count in list(ways.items()):
                ways[old + number] = ways.get(old + number, 0) + count
        return {"numbers": numbers, "total": total} if ways[total] == 1 else None

    def model(self, facts: Facts) -> Model:
        """Whether each is taken."""
        n, model = len(facts["numbers"]), Model()
        model.block(n, 3)
        model.add(Linear(range(n), facts["numbers"], facts["total"], facts["total"]))
        return model

    def write_solution(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The numbers taken."""
        gold = [str(number) for number, v in zip(facts["numbers"], values, strict=True) if v]
        return Solution(answer=", ".join(gold), gold=gold)

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """The numbers in another order."""
        return {**facts, "numbers": rng.sample(facts["numbers"], len(facts["numbers"]))}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The numbers."""
        return {"numbers": list_words([str(v) for v in facts["numbers"]]), "total": str(facts["total"])}

    def verifier(self, form: Form) -> Verifier:
        """The numbers as a set."""
        return SetMatch(where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Puzzle):
    """How many coins of each kind make an amount, if their number is known. The level counts kinds and coins.

    >>> Change().solve({"coins": [2, 5, 10], "total": 24, "count": 4}).answer
    '2: 2, 5: 0, 10: 2'
    """

    name: str = "riddles/change"
    levels: tuple[int, ...] = (1, 2, 3, 4)
    shapes: ClassVar[tuple[Any, ...]] = ((2, 12), (3, 8), (4, 9), (5, 12))
    templates: ClassVar[tuple[str, ...]] = (
        "In a country there are coins of {coins} cents. Somebody pays {total} cents with exactly {count} coins. How many of "
        "each kind are they? Answer for every kind, also with 0, like this: {example}",
        "{count} coins are worth {total} cents together. There are only coins of {coins} cents. Tell how many there are of "
        "each, none left out, in the form {example}",
        "Make {total} cents of exactly {count} coins, using coins of {coins} cents (as many of a kind as needed, or none). "
        "Just one way is right. Write the number of coins for each value, as in {example}",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """Values and numbers of coins at random; refused where there is another way."""
        kinds, most = self.shapes[level - 1]
        coins = sorted(rng.sample((1, 2, 3, 4, 5, 7, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 75), kinds))
        numbers = [rng.choice((0, 1, 1, 2, 3, 4)) if kinds > 2 else rng.randint(0, most) for _ in coins]
        count = sum(numbers)
        if not 1 < count <= most:
            return None
        facts = {"coins": coins, "total": sum(a * b for a, b in zip(coins, numbers, strict=True)), "count": count}
        return facts if len(self.model(facts).solve(2).solutions) == 1 else None

    def model(self, facts: Facts) -> Model:
        """The number of each kind."""
        n, model = len(facts["coins"]), Model()
        model.block(n, mask_of(range(facts["count"] + 1)))
        model.add(Linear(range(n), (1,) * n, facts["count"], facts["count"]))
        model.add(Linear(range(n), facts["coins"], facts["total"], facts["total"]))
        return model

    def write_solution(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The numbers."""
        return table_of([str(c) for c in facts["coins"]], values)

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The kinds."""
        coins = [str(c) for c in facts["coins"]]
        example = ", ".join(f"{c}: {i % 3 + 1}" for i, c in enumerate(coins))
        return {"coins": list_words(coins), "total": str(facts["total"]), "count": str(facts["count"]), "example": example}

    def verifier(self, form: Form) -> Verifier:
        """All kinds."""
        return table_in(form)
