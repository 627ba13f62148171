"""Games of questions: a number, a thing of a table, a hidden function."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any, ClassVar

from assay.tasks.problem import Facts
from assay_tasks.games.play import Game, Match

__all__ = ["BlackBox", "GuessNumber", "TwentyQuestions"]

_WHOLE = re.compile(r"[-+]?[0-9]{1,18}")


@dataclass(frozen=True, slots=True, kw_only=True)
class GuessNumber(Game):
    """Find a number by guesses that are answered "higher" or "lower". At level n it is one of 2^(n+2).

    Halving what is left wins whatever the number is; one guess more is allowed.

    >>> GuessNumber().solve({"low": 11, "high": 18, "secret": 16, "turns": 5}).answer.split()
    ['14', '16']
    """

    name: str = "games/number"
    levels: tuple[int, ...] = tuple(range(1, 11))
    move: ClassVar[str] = "guess"

    templates: ClassVar[tuple[str, ...]] = (
        "I am thinking of a whole number from {low} to {high}. Find it with at most {turns} guesses. After each wrong guess I "
        "say whether my number is higher or lower.",
        "Guess my number! It is a whole number, at least {low} and at most {high}. You have {turns} guesses, and after each "
        "wrong one you hear whether the number is higher or lower than your guess.",
        "A whole number between {low} and {high}, both included, is hidden. Each guess is answered with 'higher' or 'lower' "
        "until you hit it. You lose after {turns} wrong guesses.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Any range of the size, any number in it."""
        size = 2 ** (level + 2)
        low = rng.randint(11, 5000)
        return {"low": low, "high": low + size - 1, "secret": rng.randrange(low, low + size), "turns": level + 4}

    def match(self, facts: Facts) -> Match:
        """A fresh match."""
        return _Number(facts)


class _Number(Match):
    def __init__(self, facts: Facts) -> None:
        super().__init__(facts["turns"])
        self._secret: int = facts["secret"]
        self._low, self._high = facts["low"], facts["high"]

    def answer(self, action: str) -> str:
        if not _WHOLE.fullmatch(action):
            return "Please guess a whole number."
        guess = int(action)
        if guess == self._secret:
            self.win()
            return "Yes, that is it."
        if guess < self._secret:
            self._low = max(self._low, guess + 1)
            return f"My number is higher than {guess}."
        self._high = min(self._high, guess - 1)
        return f"My number is lower than {guess}."

    def advise(self) -> str:
        self.effort += 1
        return str((self._low + self._high) // 2)


_ATTRIBUTES = {
    "colour": ("red", "blue", "green", "yellow", "black", "white"),
    "shape": ("round", "square", "flat", "long"),
    "material": ("wood", "metal", "glass", "stone", "cloth"),
    "size": ("tiny", "small", "large", "huge"),
    "room": ("kitchen", "cellar", "attic", "study", "hall"),
    "age": ("new", "old", "ancient"),
    "price": ("cheap", "fair", "dear"),
    "weight": ("light", "heavy"),
    "surface": ("smooth", "rough"),
}
_SIZES = (6, 8, 10, 12, 16, 20, 24, 32, 48, 64)
_ONSETS, _ENDS = "bdfgklmnprstvz", ("an", "el", "ik", "om", "ur", "ash", "ent", "ilo")


@dataclass(frozen=True, slots=True, kw_only=True)
class TwentyQuestions(Game):
    """Find one thing of a table by questions about its attributes. The level says how many things there are, 6 to 64.

    The table stands in the prompt. A question such as ``colour red`` is answered yes or no; a thing's name is a guess. There are
    as many turns as halving needs, one for the guess, and one more from 16 things on: naming one after another fails mostly.

    >>> rows = [["bik", "red", "new"], ["dan", "red", "old"], ["fel", "blue", "new"], ["gom", "blue", "old"]]
    >>> facts = {"attributes": ["colour", "age"], "things": rows, "secret": 3, "turns": 3}
    >>> TwentyQuestions().solve(facts).answer.split(chr(10))
    ['colour red', 'age new', 'gom']
    """

    name: str = "games/questions"
    levels: tuple[int, ...] = tuple(range(1, 11))
    move: ClassVar[str] = "question or guess"

    templates: ClassVar[tuple[str, ...]] = (
        "I have one of these things in mind. Each line gives a name and its {attributes}.\n{table}\nFind out which. Ask about "
        "one attribute and one value, for example '{example}', and I say yes or no; or guess by saying a name alone. You have "
        "{turns} turns, guesses included.",
        "One line of this table is secret ({attributes} stand behind each name):\n{table}\nIn a turn you may ask 'attribute "
        "value', such as '{example}', which is answered yes or no, or name the thing that you think it is. You must name the "
        "right one within {turns} turns.",
        "Twenty questions, but with {turns} turns. I chose one of:\n{table}\nBehind each name stand its {attributes}. A turn is "
        "a question of the form '{example}' (I answer yes or no) or the name of a thing (your guess).",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A table whose lines all differ."""
        count = _SIZES[level - 1]
        attributes = rng.sample(sorted(_ATTRIBUTES), min(9, 2 + count.bit_length() // 2 + rng.randrange(2)))
        names, rows = set[str](), set[tuple[str, ...]]()
        while len(names) < count:
            names.add(rng.choice(_ONSETS) + rng.choice("aeiou") + rng.choice(_ONSETS) + rng.choice(_ENDS))
        while len(rows) < count:
            rows.add(tuple(rng.choice(_ATTRIBUTES[a]) for a in attributes))
        things = [[name, *row] for name, row in zip(sorted(names), sorted(rows), strict=True)]
        rng.shuffle(things)
        turns = (count - 1).bit_length() + 1 + (count >= 16)
        return {"attributes": attributes, "things": things, "secret": rng.randrange(count), "turns": turns}

    def fair(self, facts: Facts) -> bool:
        """Whether the oracle finds the thing in time."""
        return self.play_oracle(facts)[0].won

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The table as lines."""
        table = "\n".join(f"{row[0]}: {', '.join(row[1:])}" for row in facts["things"])
        first = facts["attributes"][0]
        return {
            "attributes": ", ".join(facts["attributes"]),
            "table": table,
            "turns": str(facts["turns"]),
            "example": f"{first} {_ATTRIBUTES[first][0]}",
        }

    def match(self, facts: Facts) -> Match:
        """A fresh match."""
        return _Questions(facts)


class _Questions(Match):
    def __init__(self, facts: Facts) -> None:
        super().__init__(facts["turns"])
        self._attributes: list[str] = facts["attributes"]
        self._left: list[list[str]] = facts["things"]
        self._names = {row[0] for row in self._left}
        self._secret: list[str] = self._left[facts["secret"]]

    def answer(self, action: str) -> str:
        if action in self._names:
            if action == self._secret[0]:
                self.win()
                return "Yes, that is it."
            self._left = [row for row in self._left if row[0] != action]
            return "No, that is not it."
        attribute, _, value = action.removeprefix("ask ").removesuffix("?").partition(" ")
        if attribute not in self._attributes or value not in _ATTRIBUTES[attribute]:
            return f"Ask about one of {', '.join(self._attributes)} and a value of it, or say a name of the table."
        at = 1 + self._attributes.index(attribute)
        yes = self._secret[at] == value
        self._left = [row for row in self._left if (row[at] == value) == yes]
        return "Yes." if yes else "No."

    def advise(self) -> str:
        """The question that comes nearest to halving what is left; the name when one is left."""
        count = len(self._left)
        self.effort += count * len(self._attributes)
        best, gap = "", count
        for at, attribute in enumerate(self._attributes, 1):
            held = [row[at] for row in self._left]
            for value in dict.fromkeys(held):
                away = abs(2 * held.count(value) - count)
                if away < gap:
                    best, gap = f"{attribute} {value}", away
        return best or self._left[0][0]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlackBox(Game):
    """Find a polynomial by its values. The level is its degree.

    A turn asks for the value at a whole number from -9 to 9, or states the coefficients. There are as many turns as the degree
    needs, one for the statement, and one more. Coefficients are whole numbers from -25 to 25.

    >>> BlackBox().solve({"coefficients": [3, -5], "turns": 4}).answer.split(chr(10))
    ['0', '1', 'coefficients 3, -5']
    """

    name: str = "games/blackbox"
    levels: tuple[int, ...] = tuple(range(1, 7))
    most: int = 25
    move: ClassVar[str] = "query or statement"

    templates: ClassVar[tuple[str, ...]] = (
        "A function f is hidden. It is a polynomial in x of degree {degree} whose coefficients are whole numbers. Say a whole "
        "number from -9 to 9 and I tell you the value of f there. When you know f, say 'coefficients' and its {count} "
        "coefficients with commas between them, that of the highest power first: 'coefficients {example}' stands for {worked}. "
        "You have {turns} turns in all.",
        "I hide a polynomial f(x) of degree {degree} with whole-number coefficients. In a turn you either give a whole number "
        "from -9 to 9, to learn f of it, or state your solution: 'coefficients' followed by all {count} coefficients from the "
        "highest power down, such as 'coefficients {example}' for {worked}. The right statement must come within {turns} turns.",
        "Find f. All that is known: f(x) is a polynomial of degree {degree}, and its coefficients are integers. Queries are "
        "integers from -9 to 9, answered with the value of f. The statement 'coefficients {example}' would mean f(x) = {worked} "
        "(highest power first, {count} numbers). Queries and statements together may be at most {turns}.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Coefficients, the first of which is not 0."""
        first = rng.randint(1, self.most) * rng.choice((-1, 1))
        rest = [rng.randint(-self.most, self.most) for _ in range(level)]
        return {"coefficients": [first, *rest], "turns": level + 3}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Degree, turns, and an example of a statement."""
        count = len(facts["coefficients"])
        example = [2 + i if i % 2 == 0 else -1 - i for i in range(count)]
        powers = [f"x^{p}" if p > 1 else "x" if p else "" for p in range(count - 1, -1, -1)]
        worked = "".join(f"{' + ' if a > 0 else ' - '}{abs(a)}{p}" for a, p in zip(example, powers, strict=True))
        return {
            "degree": str(count - 1),
            "count": str(count),
            "turns": str(facts["turns"]),
            "example": ", ".join(map(str, example)),
            "worked": worked.removeprefix(" + "),
        }

    def match(self, facts: Facts) -> Match:
        """A fresh match."""
        return _Box(facts)


class _Box(Match):
    def __init__(self, facts: Facts) -> None:
        super().__init__(facts["turns"])
        self._coefficients: list[int] = facts["coefficients"]
        self._seen: dict[int, int] = {}

    def answer(self, action: str) -> str:
        head, _, tail = action.partition(" ")
        if head.rstrip(":") == "coefficients":
            parts = [part.strip().replace(" ", "") for part in tail.split(",")]
            if len(parts) != len(self._coefficients) or not all(_WHOLE.fullmatch(part) for part in parts):
                return f"A statement has {len(self._coefficients)} whole numbers with commas between them."
            if list(map(int, parts)) == self._coefficients:
                self.win()
                return "Yes, that is f."
            return "No, that is not f."
        if not _WHOLE.fullmatch(action) or not -9 <= int(action) <= 9:
            return "Say a whole number from -9 to 9, or 'coefficients' and the coefficients."
        x = int(action)
        value = 0
        for a in self._coefficients:
            value = value * x + a
        self._seen[x] = value
        return f"f({x}) = {value}"

    def advise(self) -> str:
        """Values at 0, 1, -1, 2, ...; then the one polynomial through them."""
        self.effort += 1
        need = len(self._coefficients)
        if len(self._seen) < need:
            return str(next(x for n in range(19) if (x := (n + 1) // 2 * (1 if n % 2 else -1)) not in self._seen))
        found = _through(list(self._seen.items())[:need])
        self.effort += need * need
        return f"coefficients {', '.join(map(str, found))}"


def _through(points: list[tuple[int, int]]) -> list[int]:
    """Coefficients, highest power first, of the polynomial through points: Newton's divided differences, exactly."""
    xs, row = [x for x, _ in points], [Fraction(y) for _, y in points]
    tops = [row[0]]
    for step in range(1, len(xs)):
        row = [(b - a) / (xs[i + step] - xs[i]) for i, (a, b) in enumerate(pairwise(row))]
        tops.append(row[0])
    found = [tops[-1]]
    for top, x in zip(tops[-2::-1], xs[len(xs) - 2 :: -1], strict=True):
        found = [a - x * b for a, b in zip([*found, Fraction(0)], [Fraction(0), *found], strict=True)]
        found[-1] += top
    return [int(a) for a in found]
