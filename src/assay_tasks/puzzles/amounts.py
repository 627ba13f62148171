"""Amounts that are to be found: ages, weights, coins, codes, dates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.core.protocols import Verifier
from assay.tasks.problem import Facts, Form, Solution
from assay.verify.exact import ExactMatch
from assay_tasks.puzzles.clued import Clue, Clued, list_in, table_in, table_of
from assay_tasks.puzzles.constraints import AllDifferent, Constraint, Count, Every, Linear, Modulo, mask_of, relate
from assay_tasks.puzzles.puzzle import NAMES, list_words, renumber
from assay_tasks.puzzles.solver import Model

__all__ = ["Ages", "Balance", "Code", "Coins", "Digits"]

_TIMES = {2: "twice", 3: "three times", 4: "four times", 5: "five times"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ages(Clued):
    r"""How old everybody is, from sums, differences and multiples, now and in some years. The level counts people.

    >>> facts = {"names": ["Ada", "Ben"], "clues": [["times", 0, 1, 3], ["future", 0, 1, 6, 2]]}
    >>> Ages().fields(facts)["clues"].split("\n")[1], Ages().solve(facts).answer
    ('- In 6 years Ada will be twice as old as Ben.', 'Ada: 18, Ben: 6')
    """

    name: str = "riddles/ages"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    shapes: ClassVar[tuple[Any, ...]] = ((2,), (3,), (4,), (5,), (6,))
    templates: ClassVar[tuple[str, ...]] = (
        "{clues}\n\nAll ages are whole numbers of years, from 1 to 99. How old are {people} now? Answer in the form {first}: "
        "30, {second}: ... for all of them.",
        "How old is each of {people}? Their ages are whole numbers between 1 and 99, and it is known that\n\n{clues}\n\nGive "
        "every name with the age of today, like {first}: 30, separated by commas.",
        "{people} tell riddles about their ages, which are whole numbers of years below 100 and at least 1.\n\n{clues}\n\n"
        "Find the present age of everybody; write them as {first}: 30, {second}: ... and so on.",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """Ages, each tied to one before; true clues that are needed."""
        (n,) = self.shapes[level - 1]
        truth = [rng.randint(3, 20)]
        pool: list[Clue] = []
        while len(truth) < n:
            other = rng.randrange(len(truth))
            old, kind, years, times = (
                truth[other],
                rng.choice(("older", "times", "future")),
                rng.randint(2, 15),
                rng.randint(2, 4),
            )
            age = old + years if kind == "older" else old * times if kind == "times" else (old + years) * times - years
            if 1 <= age <= 80 and age not in truth:
                tail = {"older": [years], "times": [times], "future": [years, times]}[kind]
                pool.append([kind, len(truth), other, *tail])
                truth.append(age)
        for _ in range(6 * n):
            a, b = sorted(rng.sample(range(n), 2), key=lambda i: -truth[i])
            if rng.randrange(2):
                pool.append(["sum", min(a, b), max(a, b), truth[a] + truth[b]])
            elif truth[a] > truth[b]:
                pool.append(["older", a, b, truth[a] - truth[b]])
        pool.append(["all", *range(n), sum(truth)])
        rng.shuffle(pool)
        return self.with_clues({"names": rng.sample(NAMES, n)}, truth, pool, rng)

    def base(self, facts: Facts) -> Model:
        """Ages from 1 to 99."""
        model = Model()
        model.block(len(facts["names"]), mask_of(range(1, 100)))
        return model

    def demand(self, facts: Facts, clue: Clue) -> Constraint:
        """A linear equation."""
        match clue[0]:
            case "sum":
                return relate(clue[1:3], (1, 1), "=", clue[3])
            case "all":
                return relate(clue[1:-1], (1,) * (len(clue) - 2), "=", clue[-1])
            case "older":
                return relate(clue[1:3], (1, -1), "=", clue[3])
            case "times":
                return relate(clue[1:3], (1, -clue[3]), "=", 0)
            case _:
                return relate(clue[1:3], (1, -clue[4]), "=", clue[3] * (clue[4] - 1))

    def sentence(self, facts: Facts, clue: Clue, turn: int) -> str:
        """With names."""
        a, b = facts["names"][clue[1]], facts["names"][clue[2]]
        match clue[0]:
            case "sum":
                return f"{a} and {b} are {clue[3]} years old together."
            case "all":
                return f"The ages of all {len(clue) - 2} of them add up to {clue[-1]}."
            case "older":
                years = f"{clue[3]} year{'s' * (clue[3] > 1)}"
                return f"{a} is {years} older than {b}." if turn % 2 else f"{b} is {years} younger than {a}."
            case "times":
                return f"{a} is {_TIMES[clue[3]]} as old as {b}."
            case _:
                return f"In {clue[3]} years {a} will be {_TIMES[clue[4]]} as old as {b}."

    def write_solution(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The age of each."""
        return table_of(facts["names"], values)

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The people and clues."""
        return {**Clued.fields(self, facts), "people": list_words(facts["names"])}

    def verifier(self, form: Form) -> Verifier:
        """Everybody's age."""
        return table_in(form)


_FORMS = ("circle", "square", "star", "cross", "moon", "heart")


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance(Clued):
    r"""What shapes weigh, from scales. The level counts shapes.

    >>> facts = {"names": ["star", "moon"], "most": 9, "clues": [["weigh", [2, 1], 7], ["even", [1, 0], [0, 3]]]}
    >>> Balance().fields(facts)["clues"], Balance().solve(facts).answer
    ('- 2 stars and 1 moon weigh 7 grams.\n- 1 star weighs as much as 3 moons.', 'star: 3, moon: 1')
    """

    name: str = "riddles/balance"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    shapes: ClassVar[tuple[Any, ...]] = ((2, 12), (3, 12), (4, 15), (5, 20), (6, 20))
    templates: ClassVar[tuple[str, ...]] = (
        "Shapes of the same kind weigh the same, a whole number of grams from 1 to {most}.\n\n{clues}\n\nHow many grams does "
        "each kind weigh? Answer like this, for all {n} kinds: {first}: 5, {second}: ...",
        "A child weighs wooden shapes: {people}. Every {first} has the same weight, and so for each kind; all weights are "
        "whole grams, at least 1 and at most {most}. The scales show:\n\n{clues}\n\nFind the weight of one shape of each "
        "kind and write it as {first}: 5, {second}: ... without the unit.",
        "Find the weights in grams (whole numbers, 1 to {most}) of the kinds of shapes {people}, such that all of this is "
        "true:\n\n{clues}\n\nGive kind and weight, separated by commas, as in {first}: 5.",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """Weights at random; scales that are needed."""
        n, most = self.shapes[level - 1]
        truth = [rng.randint(1, most) for _ in range(n)]
        pool: list[Clue] = []
        for _ in range(8 * n):
            left, right = self._pan(n, rng), self._pan(n, rng)
            weight = sum(k * w for k, w in zip(left, truth, strict=True))
            other = sum(k * w for k, w in zip(right, truth, strict=True))
            apart = not any(a and b for a, b in zip(left, right, strict=True))
            if apart and rng.randrange(2):
                pool.append(
                    ["even", left, right]
                    if weight == other
                    else ["more", left, right]
                    if weight > other
                    else ["more", right, left]
                )
            else:
                pool.append(["weigh", left, weight])
        return self.with_clues({"names": rng.sample(_FORMS, n), "most": most}, truth, pool, rng)

    @staticmethod
    def _pan(n: int, rng: Random) -> list[int]:
        used = rng.sample(range(n), min(n, rng.choice((1, 2, 2, 3))))
        return [rng.randint(1, 3) if i in used else 0 for i in range(n)]

    def base(self, facts: Facts) -> Model:
        """Weights up to the most."""
        model = Model()
        model.block(len(facts["names"]), mask_of(range(1, facts["most"] + 1)))
        return model

    def demand(self, facts: Facts, clue: Clue) -> Constraint:
        """A linear equation or inequality."""
        factors = clue[1] if clue[0] == "weigh" else [a - b for a, b in zip(clue[1], clue[2], strict=True)]
        cells = [i for i, f in enumerate(factors) if f]
        total = clue[2] if clue[0] == "weigh" else 0
        return relate(cells, [factors[i] for i in cells], ">" if clue[0] == "more" else "=", total)

    def sentence(self, facts: Facts, clue: Clue, turn: int) -> str:
        """With counted shapes."""
        verb = "weighs" if sum(clue[1]) == 1 else "weigh"
        pan = self._pan_text(facts, clue[1])
        match clue[0]:
            case "weigh":
                return f"{pan} {verb} {clue[2]} gram{'s' * (clue[2] != 1)}."
            case "even":
                return f"{pan} {verb} as much as {self._pan_text(facts, clue[2])}."
            case _:
                return f"{pan} {verb} more than {self._pan_text(facts, clue[2])}."

    @staticmethod
    def _pan_text(facts: Facts, pan: Sequence[int]) -> str:
        plural = {name: f"{name}es" if name == "cross" else f"{name}s" for name in facts["names"]}
        return list_words([f"{k} {name if k == 1 else plural[name]}" for k, name in zip(pan, facts["names"], strict=True) if k])

    def write_solution(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The weight of each kind."""
        return table_of(facts["names"], values)

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Other shapes."""
        other = Clued.vary(self, facts, rng) or {}
        return {**other, "names": rng.sample(_FORMS, len(facts["names"]))}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The kinds and the scales."""
        return {**Clued.fields(self, facts), "people": list_words(facts["names"]), "most": str(facts["most"])}

    def verifier(self, form: Form) -> Verifier:
        """All kinds."""
        return table_in(form)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coins(Clued):
    r"""Which coin is false, and whether it is too heavy or too light, from weighings. The level counts coins.

    >>> facts = {"names": ["A", "B", "C"], "clues": [["<", [0], [1]], ["=", [0], [2]]]}
    >>> Coins().fields(facts)["clues"].split("\n")[0], Coins().solve(facts).answer
    ('- A against B: the right side is heavier.', 'B, heavier')
    """

    name: str = "riddles/coins"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    shapes: ClassVar[tuple[Any, ...]] = ((4, 1), (6, 2), (9, 3), (12, 4), (16, 4))
    templates: ClassVar[tuple[str, ...]] = (
        "Of {n} coins, named {people}, exactly one is false: it is either heavier or lighter than the others, which all "
        "weigh the same. They were weighed on a balance:\n\n{clues}\n\nWhich coin is false, and how? Answer in the form X, "
        "heavier or X, lighter.",
        "{n} coins look alike ({people}). One of them differs in weight from the rest, and nobody knows in which direction; "
        "all others are equal. These weighings with a pair of scales were made:\n\n{clues}\n\nName the odd coin and say "
        "whether it is heavier or lighter than a good one, for example: X, lighter",
        "A pair of scales compares coins on its left side with coins on its right side. Among {people} there is one "
        "counterfeit, too heavy or too light; the genuine coins have one and the same weight.\n\n{clues}\n\nDeduce the "
        "counterfeit coin and its fault. Write the letter, a comma, and heavier or lighter.",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """A false coin at random, and random weighings until it is found."""
        n, size = self.shapes[level - 1]
        truth = [rng.randrange(2 * n)]
        pool: list[Clue] = []
        for _ in range(12 * n):
            k = rng.randint(1, size)
            both = rng.sample(range(n), 2 * k)
            left, right = sorted(both[:k]), sorted(both[k:])
            coin, heavy = truth[0] // 2, truth[0] % 2
            sign = "=" if coin not in both else ">" if (coin in left) == bool(heavy) else "<"
            pool.append([sign, left, right])
        return self.with_clues({"names": list("ABCDEFGHIJKLMNOP"[:n])}, truth, pool, rng)

    def base(self, facts: Facts) -> Model:
        """The false coin, twice its number, and 1 more where it is heavy."""
        model = Model()
        model.var(range(2 * len(facts["names"])))
        return model

    def demand(self, facts: Facts, clue: Clue) -> Constraint:
        """Which coin and fault would give what the scales show."""
        sign, left, right = clue
        up, down = (left, right) if sign == ">" else (right, left)
        if sign == "=":
            mask = mask_of(v for v in range(2 * len(facts["names"])) if v // 2 not in (*left, *right))
        else:
            mask = mask_of([2 * c + 1 for c in up] + [2 * c for c in down])
        return Count((0,), (mask,), 1, 1)

    def sentence(self, facts: Facts, clue: Clue, turn: int) -> str:
        """What is on the two sides."""
        sign, left, right = clue
        sides = [", ".join(facts["names"][c] for c in side) for side in (left, right)]
        seen = {"=": "both sides balance", ">": "the left side is heavier", "<": "the right side is heavier"}[sign]
        return f"{sides[0]} against {sides[1]}: {seen}."

    def solve(self, facts: Facts) -> Solution:
        """Coin by coin and fault by fault."""
        return self.sift(facts)

    def write_solution(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The coin and its fault."""
        coin, heavy = divmod(values[0], 2)
        gold = [facts["names"][coin], "heavier" if heavy else "lighter"]
        return Solution(answer=", ".join(gold), gold=gold)

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Coins exchanged, weighings in another order."""
        n = len(facts["names"])
        other = rng.sample(range(n), n)
        clues = [[sign, renumber(left, other), renumber(right, other)] for sign, left, right in facts["clues"]]
        return {**facts, "clues": rng.sample(clues, len(clues))}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The coins and weighings."""
        return {**Clued.fields(self, facts), "people": list_words(facts["names"])}

    def verifier(self, form: Form) -> Verifier:
        """Coin and fault."""
        return list_in(form)


@dataclass(frozen=True, slots=True, kw_only=True)
class Code(Clued):
    """A secret code of different digits, from guesses and how well they fit. The level counts digits.

    >>> facts = {"names": ["digit", "digit"], "digits": 3, "clues": [["12", 1, 0], ["31", 0, 2]]}
    >>> Code().solve(facts).answer
    '13'
    """

    name: str = "riddles/code"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    shapes: ClassVar[tuple[Any, ...]] = ((3, 5), (3, 7), (4, 7), (4, 9), (5, 9))
    templates: ClassVar[tuple[str, ...]] = (
        "A code has {n} different digits, each from 1 to {digits}. For each guess it is told how many of its digits are "
        "right and in the right place, and how many are in the code but in another place:\n\n{clues}\n\nWhat is the code? "
        "Write its {n} digits without spaces.",
        "Break the code: {n} digits from 1 to {digits}, all different. Behind each guess stands how many of its digits are "
        "in place, that is where the code has them, and how many are out of place, that is in the code but at another "
        "position.\n\n{clues}\n\nGive the code as one number of {n} digits.",
        "In a game of bulls and cows the secret number has {n} digits, all different, taken from 1 to {digits}. The guesses "
        "so far were answered as follows; 'in place' counts digits that are right where they stand, 'out of place' digits "
        "that occur elsewhere in the number.\n\n{clues}\n\nOnly one number is possible. Which one?",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """A code and guesses at random; those that are needed."""
        n, most = self.shapes[level - 1]
        truth = rng.sample(range(1, most + 1), n)
        pool: list[Clue] = []
        for _ in range(40):
            guess = rng.sample(range(1, most + 1), n)
            bulls = sum(a == b for a, b in zip(guess, truth, strict=True))
            if bulls < n:
                pool.append(["".join(map(str, guess)), bulls, len(set(guess) & set(truth)) - bulls])
        return self.with_clues({"names": ["digit"] * n, "digits": most}, truth, pool, rng)

    def base(self, facts: Facts) -> Model:
        """Different digits."""
        model = Model()
        model.add(AllDifferent(model.block(len(facts["names"]), mask_of(range(1, facts["digits"] + 1)))))
        return model

    def demand(self, facts: Facts, clue: Clue) -> Constraint:
        """Digits in place, and digits at all."""
        guess = [1 << int(d) for d in clue[0]]
        cells = range(len(guess))
        every, hits = sum(guess), clue[1] + clue[2]
        return Every(Count(cells, guess, clue[1], clue[1]), Count(cells, (every,) * len(guess), hits, hits))

    def sentence(self, facts: Facts, clue: Clue, turn: int) -> str:
        """The guess and its answer."""
        return f"{clue[0]}: {clue[1]} in place, {clue[2]} out of place"

    def write_solution(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The code."""
        return Solution(answer="".join(map(str, values)))

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Other digits."""
        other = str.maketrans(
            "123456789"[: facts["digits"]], "".join(map(str, rng.sample(range(1, facts["digits"] + 1), facts["digits"])))
        )
        clues = [[guess.translate(other), a, b] for guess, a, b in facts["clues"]]
        return {**facts, "clues": rng.sample(clues, len(clues))}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The guesses."""
        return {**Clued.fields(self, facts), "digits": str(facts["digits"])}

    def verifier(self, form: Form) -> Verifier:
        """The digits in their order."""
        return ExactMatch(strip=True, where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Digits(Clued):
    r"""A number from what is said about its digits. The level counts digits.

    >>> facts = {"names": ["tens", "ones"], "clues": [["sum", 9], ["less", 0, 1, 5], ["by", 3]]}
    >>> Digits().fields(facts)["clues"].split("\n")[1], Digits().solve(facts).answer
    ('- The tens digit is 5 less than the ones digit.', '27')
    """

    name: str = "riddles/digits"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    shapes: ClassVar[tuple[Any, ...]] = ((2,), (3,), (4,), (5,), (6,))
    templates: ClassVar[tuple[str, ...]] = (
        "I am a whole number of {n} digits; my first digit is not 0.\n\n{clues}\n\nWhich number am I?",
        "Find the number with exactly {n} digits (it does not begin with 0) of which all of this is true:\n\n{clues}\n\n"
        "Write the number in digits, without separators.",
        "A lock opens at a number of {n} digits, the first of which is from 1 to 9. The owner remembers:\n\n{clues}\n\nWhat "
        "is the number?",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """A number at random; true clues that are needed."""
        (n,) = self.shapes[level - 1]
        truth = [rng.randint(1, 9), *(rng.randint(0, 9) for _ in range(n - 1))]
        number = int("".join(map(str, truth)))
        pool: list[Clue] = [["sum", sum(truth)], *(["by", k] for k in (3, 4, 6, 7, 9, 11, 13) if not number % k)]
        for _ in range(8 * n):
            a, b = rng.sample(range(n), 2)
            kind = rng.choice(("less", "over", "pair", "times", "odd", "same", "differ"))
            if kind in ("less", "over") and truth[a] < truth[b]:
                pool.append(["less", a, b, truth[b] - truth[a]] if kind == "less" else ["over", b, a])
            elif kind == "pair":
                pool.append([kind, *sorted((a, b)), truth[a] + truth[b]])
            elif kind == "times" and truth[b] and not truth[a] % truth[b] and truth[a] // truth[b] in (2, 3, 4):
                pool.append([kind, a, b, truth[a] // truth[b]])
            elif kind == "odd":
                pool.append([kind, a, truth[a] % 2])
            elif kind in ("same", "differ") and (truth[a] == truth[b]) == (kind == "same"):
                pool.append([kind, *sorted((a, b))])
        rng.shuffle(pool)
        names = ("hundred thousands", "ten thousands", "thousands", "hundreds", "tens", "ones")
        return self.with_clues({"names": list(names[6 - n :])}, truth, pool, rng)

    def base(self, facts: Facts) -> Model:
        """Digits, the first not 0."""
        model = Model()
        model.block(len(facts["names"]), mask_of(range(10)))
        model.domains[0] ^= 1
        return model

    def demand(self, facts: Facts, clue: Clue) -> Constraint:
        """About one digit, two, or all."""
        n, pair = len(facts["names"]), clue[1:3]
        match clue[0]:
            case "sum":
                return Linear(range(n), (1,) * n, clue[1], clue[1])
            case "by":
                return Modulo(range(n), [10 ** (n - 1 - i) for i in range(n)], clue[1], 0)
            case "less":
                return relate(pair, (-1, 1), "=", clue[3])
            case "over":
                return relate(pair, (1, -1), ">", 0)
            case "pair":
                return relate(pair, (1, 1), "=", clue[3])
            case "times":
                return relate(pair, (1, -clue[3]), "=", 0)
            case "odd":
                return Modulo((clue[1],), (1,), 2, clue[2])
            case "same":
                return relate(pair, (1, -1), "=", 0)
            case _:
                return relate(pair, (1, -1), "!=", 0)

    def sentence(self, facts: Facts, clue: Clue, turn: int) -> str:
        """With the digits by their places."""
        names = [f"the {name} digit" for name in facts["names"]]
        match clue[0]:
            case "sum":
                return f"The sum of all digits is {clue[1]}."
            case "by":
                return f"The number is divisible by {clue[1]}."
            case "less":
                text = f"{names[clue[1]]} is {clue[3]} less than {names[clue[2]]}"
            case "over":
                text = (
                    f"{names[clue[2]]} is less than {names[clue[1]]}"
                    if turn % 2
                    else f"{names[clue[1]]} is greater than {names[clue[2]]}"
                )
            case "pair":
                text = f"{names[clue[1]]} and {names[clue[2]]} add up to {clue[3]}"
            case "times":
                text = f"{names[clue[1]]} is {_TIMES[clue[3]]} {names[clue[2]]}"
            case "odd":
                text = f"{names[clue[1]]} is {'odd' if clue[2] else 'even'}"
            case "same":
                text = f"{names[clue[1]]} equals {names[clue[2]]}"
            case _:
                text = f"{names[clue[1]]} and {names[clue[2]]} are different"
        return f"{text[0].upper()}{text[1:]}."

    def write_solution(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The number."""
        return Solution(answer="".join(map(str, values)))

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Clues in another order."""
        return {**facts, "clues": rng.sample(facts["clues"], len(facts["clues"]))}

    def verifier(self, form: Form) -> Verifier:
        """The number as it is written."""
        return ExactMatch(strip=True, where=form.place)


# ---- choosing among things
