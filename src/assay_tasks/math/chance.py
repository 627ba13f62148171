"""Counting and chance, with exact probabilities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import comb, factorial, prod
from random import Random
from typing import Any, ClassVar

from assay.tasks.problem import Facts, Solution
from assay.tasks.problems import Problems
from assay_tasks.math.exact import ExactProblem

__all__ = ["Arrangements", "Bayes", "Cards", "Coins", "Conditional", "Dice", "Expectation", "Paths", "Urn", "chance"]

_EXACT = "Give the exact probability as a fraction."


@dataclass(frozen=True, slots=True, kw_only=True)
class Dice(ExactProblem):
    r"""The probability of a sum of dice. The level is the number of dice, less one.

    >>> Dice().solve({"sides": [6, 6], "how": "exactly", "total": 4}).steps
    'ways: 3 to 4\n3 of 36 outcomes: 1/12'
    """

    name: str = "chance/dice"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)

    templates: ClassVar[tuple[str, ...]] = (
        "You roll {dice}, all fair. What is the probability that the sum is {how} {total}? Give the exact probability "
        "as a fraction.",
        "{Dice} are rolled; every side of a die is equally likely. How likely is a sum of {how} {total}? Answer with a fraction.",
        "Find the exact probability that the numbers shown by {dice} add up to {how} {total}. All dice are fair.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Dice of one or two kinds, and a sum that is possible but not sure."""
        kinds = rng.sample((3, 4, 5, 6, 7, 8, 9, 10, 12, 20), 2) if rng.random() < 0.9 else [6, 6]
        few = rng.randint(0, level)
        sides = sorted([kinds[0]] * few + [kinds[1]] * (level + 1 - few))
        total = sum(rng.randint(1, s) for s in sides)
        total = min(max(total, len(sides) + 1), sum(sides) - 1)
        return {"sides": sides, "how": rng.choice(("exactly", "at least", "at most")), "total": total}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The dice in words."""
        sides: list[int] = facts["sides"]
        parts = [f"{_NUMBERS[n]} {'die' if n == 1 else 'dice'} with sides 1 to {s}" for s, n in sorted(Counter(sides).items())]
        dice = " and ".join(parts)
        return {"dice": dice, "Dice": dice.capitalize(), "how": facts["how"], "total": str(facts["total"])}

    def solve(self, facts: Facts) -> Solution:
        """Counting the ways to each sum, die by die."""
        ways = {0: 1}
        effort = 0
        for s in facts["sides"]:
            more: dict[int, int] = {}
            for total, n in ways.items():
                for k in range(1, s + 1):
                    more[total + k] = more.get(total + k, 0) + n
            effort += len(ways) * s
            ways = more
        target, how = facts["total"], facts["how"]
        far = {"exactly": (target, target), "at least": (target, sum(facts["sides"])), "at most": (0, target)}[how]
        found = {t: n for t, n in sorted(ways.items()) if far[0] <= t <= far[1]}
        good = sum(found.values())
        total = prod(facts["sides"])
        answer = Fraction(good, total)
        steps = f"ways: {', '.join(f'{n} to {t}' for t, n in found.items())}\n{good} of {total} outcomes: {answer}"
        return Solution(answer=str(answer), steps=steps, effort=effort)


_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")


@dataclass(frozen=True, slots=True, kw_only=True)
class Urn(ExactProblem):
    r"""The probability of colours, drawn without putting back. The level is the number of balls drawn.

    >>> Urn().solve({"balls": {"red": 3, "blue": 2}, "wanted": {"red": 1, "blue": 1}}).steps
    'C(3, 1) × C(2, 1) = 6\nC(5, 2) = 10\n6/10 = 3/5'
    """

    name: str = "chance/urn"

    templates: ClassVar[tuple[str, ...]] = (
        "An urn holds {balls}. Somebody draws {n} without looking and without putting any back. "
        "What is the probability of {wanted}? " + _EXACT,
        "From a bag with {balls}, {n} are taken at once at random. How likely is it that they are {wanted}? Answer "
        "with a fraction.",
        "There are {balls} in a box. {N} are drawn at random without replacement. Find the exact probability of "
        "drawing {wanted}.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Colours with several balls each, and what is drawn from them."""
        colours = rng.sample(("red", "blue", "green", "white", "black", "yellow"), 2 if level < 3 else 3)
        balls = {c: rng.randint(level + 1, level + 9) for c in colours}
        while True:
            drawn = [rng.choice(colours) for _ in range(level)]
            wanted = {c: drawn.count(c) for c in colours if c in drawn}
            if level < 2 or len(wanted) > 1 or rng.random() < 0.3:
                return {"balls": balls, "wanted": wanted}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The balls in words."""
        n = sum(facts["wanted"].values())
        said = f"{_NUMBERS[n]} ball{'s' * (n > 1)}"
        wanted = _list_parts([f"{_NUMBERS[k]} {c} ball{'s' * (k > 1)}" for c, k in facts["wanted"].items()])
        balls = _list_parts([f"{k} {c} balls" for c, k in facts["balls"].items()])
        return {"balls": balls, "n": said, "N": said.capitalize(), "wanted": wanted if n > 1 else wanted.replace("one", "a")}

    def solve(self, facts: Facts) -> Solution:
        """Ways to choose the balls wanted, of all ways to choose."""
        balls, wanted = facts["balls"], facts["wanted"]
        ways = [comb(balls[c], k) for c, k in wanted.items()]
        total, n = sum(balls.values()), sum(wanted.values())
        said = " × ".join(f"C({balls[c]}, {k})" for c, k in wanted.items())
        answer = Fraction(prod(ways), comb(total, n))
        steps = f"{said} = {prod(ways)}\nC({total}, {n}) = {comb(total, n)}\n{prod(ways)}/{comb(total, n)} = {answer}"
        return Solution(answer=str(answer), steps=steps, effort=len(ways) + n)


def _list_parts(parts: list[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cards(ExactProblem):
    r"""The probability of cards of one kind in a hand. The level is the size of the hand.

    >>> Cards().solve({"deck": 52, "kind": 13, "name": "hearts", "hand": 2, "how": "at least", "count": 2}).steps
    'C(13, 2) × C(39, 0) = 78\nof C(52, 2) = 1326 hands: 1/17'
    """

    name: str = "chance/cards"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)

    templates: ClassVar[tuple[str, ...]] = (
        "A deck has {deck} cards, {kind} of which are {name}. You are dealt {hand} at random. "
        "What is the probability that {how} {count} of them {are} {name}? " + _EXACT,
        "{kind} of {deck} cards are {name}. {Hand} are drawn at random without replacement. Find the exact probability "
        "that {how} "
        "{count} of them {are} {name}.",
        "From a shuffled deck of {deck} cards with {kind} {name} in it, {hand} are dealt. How likely is it that {how} {count} "
        "{are} {name}? Answer with a fraction.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A deck, how many of its cards are of the kind, and what is asked."""
        deck, hand = rng.randint(20, 60), level + 1
        kind, name = rng.randint(3, deck // 2), rng.choice(("hearts", "red cards", "trumps", "picture cards"))
        return {
            "deck": deck,
            "kind": kind,
            "name": name,
            "hand": hand,
            "how": rng.choice(("exactly", "at least", "at most")),
            "count": rng.randint(1, min(hand - 1, 3)),
        }

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Numbers of cards in words."""
        hand = f"{_NUMBERS[facts['hand']]} cards"
        one = facts["count"] == 1
        told = {key: str(facts[key]) for key in ("deck", "kind", "name", "how")}
        are = "is one of the" if one else "are"
        return told | {"hand": hand, "Hand": hand.capitalize(), "count": _NUMBERS[facts["count"]], "are": are}

    def solve(self, facts: Facts) -> Solution:
        """Hands with each number of such cards."""
        deck, kind, hand, count = (facts[k] for k in ("deck", "kind", "hand", "count"))
        counts = {"exactly": [count], "at least": range(count, hand + 1), "at most": range(count + 1)}[facts["how"]]
        ways = [comb(kind, k) * comb(deck - kind, hand - k) for k in counts]
        said = [f"C({kind}, {k}) × C({deck - kind}, {hand - k}) = {w}" for k, w in zip(counts, ways, strict=True)]
        answer = Fraction(sum(ways), comb(deck, hand))
        total = f"of C({deck}, {hand}) = {comb(deck, hand)} hands: {answer}"
        return Solution(answer=str(answer), steps="\n".join([*said, total]), effort=len(ways) + hand)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coins(ExactProblem):
    r"""The probability of a pattern in tosses of a coin that may be biased. The level sets the number of tosses.

    The lowest level has only about 700 questions.

    >>> Coins().solve({"tosses": 3, "heads": "1/2", "what": "no_pair", "count": 2}).steps
    'no heads: 1/8\n1 head: 3 × 1/8\n2 heads: 1 × 1/8\nin all 5/8'
    """

    name: str = "chance/coins"

    templates: ClassVar[tuple[str, ...]] = (
        "A coin shows heads with probability {p}. It is tossed {n} times. What is the probability to see {event}? " + _EXACT,
        "Each of {n} independent tosses of a coin gives heads with probability {p}. How likely is it to see {event}? Answer with "
        "a fraction.",
        "Find the exact probability to see {event} in {n} tosses of a coin that lands on heads with probability {p}.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Tosses, bias, and an event."""
        n = level + 1 + rng.randrange(4)
        below = rng.randint(2, 10)
        heads = str(Fraction(rng.randint(1, below - 1), below))
        what = rng.choice(("exactly", "at_least", "no_pair"))
        return {"tosses": n, "heads": heads, "what": what, "count": 2 if what == "no_pair" else rng.randint(1, n - 1)}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The event in words."""
        count = facts["count"]
        events = {
            "exactly": f"exactly {_heads(count)}",
            "at_least": f"at least {_heads(count)}",
            "no_pair": "no two heads directly one after the other",
        }
        return {"p": facts["heads"], "n": str(facts["tosses"]), "event": events[facts["what"]]}

    def solve(self, facts: Facts) -> Solution:
        """By the number of heads."""
        n, p, what = facts["tosses"], Fraction(facts["heads"]), facts["what"]
        steps: list[str] = []
        total = Fraction(0)
        for k in range(n + 1):
            if (what == "exactly" and k != facts["count"]) or (what == "at_least" and k < facts["count"]):
                continue
            ways = comb(n - k + 1, k) if what == "no_pair" else comb(n, k)
            if ways:
                each = p**k * (1 - p) ** (n - k)
                total += ways * each
                steps.append(f"{_heads(k)}: {ways} × {each}" if k else f"no heads: {each}")
        steps.append(f"in all {total}")
        return Solution(answer=str(total), steps="\n".join(steps), effort=n * len(steps))


def _heads(count: int) -> str:
    return f"{count} head{'s' * (count > 1)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation(ExactProblem):
    r"""The expected gain of a game. The level sets the number of prizes.

    >>> Expectation().solve({"prizes": [[10, 1], [2, 3]], "tickets": 8, "price": 1, "plays": 2}).steps
    '1/8 × 10 + 3/8 × 2 = 2\n2 × (2 - 1) = 2'
    """

    name: str = "chance/expectation"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)

    templates: ClassVar[tuple[str, ...]] = (
        "A lottery has {tickets} equally likely tickets: {prizes}; the others win nothing. A ticket costs {price} "
        "dollars. Each of "
        "{plays} people buys one ticket. What is the expected total gain of all of them, in dollars (prizes less "
        "price, negative for "
        "a loss)? Answer exactly, with a fraction if needed.",
        "In a game one of {tickets} numbers is drawn at random, all equally likely: {prizes}, and nothing on the rest. "
        "One game costs "
        "{price} dollars. What gain (winnings minus cost) is expected in {plays} games, in dollars? Give an exact number.",
        "A wheel has {tickets} equal fields: {prizes}; all other fields pay nothing. A spin costs {price} dollars. "
        "Compute the exact "
        "expected net gain of {plays} spins in dollars.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Few large prizes and many small ones."""
        prizes = [[rng.randint(1, 20) * 5 ** (level - i), rng.randint(1, 2 + 2 * i)] for i in range(level)]
        return {
            "prizes": prizes,
            "tickets": sum(k for _, k in prizes) + rng.randint(5, 90),
            "price": rng.randint(1, 10),
            "plays": rng.choice((2, 3, 5, 10, 12)),
        }

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The prizes in words."""
        parts = [f"{k} {'wins' if k == 1 else 'win'} {prize} dollars{'' if k == 1 else ' each'}" for prize, k in facts["prizes"]]
        return {key: str(facts[key]) for key in ("tickets", "price", "plays")} | {"prizes": _list_parts(parts)}

    def solve(self, facts: Facts) -> Solution:
        """Each prize with its probability."""
        n, price, plays = facts["tickets"], facts["price"], facts["plays"]
        mean = sum((Fraction(k * prize, n) for prize, k in facts["prizes"]), Fraction(0))
        answer = plays * (mean - price)
        said = " + ".join(f"{k}/{n} × {prize}" for prize, k in facts["prizes"])
        steps = f"{said} = {mean}\n{plays} × ({mean} - {price}) = {answer}"
        return Solution(answer=str(answer), steps=steps, effort=2 * len(facts["prizes"]) + 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangements(ExactProblem):
    r"""How many ways there are to arrange or choose. The level: 1 choices, 2 letters, 3 with a condition, 4 with two groups.

    >>> Arrangements().solve({"kind": "letters", "word": "LEVEL"}).steps
    '5! / (2! × 2!) = 120 / 4 = 30'
    """

    name: str = "chance/arrangements"
    levels: tuple[int, ...] = (1, 2, 3, 4)

    templates: ClassVar[tuple[str, ...]] = (
        "{text}",
        "Counting: {text} Answer with a whole number.",
        "{text} Compute the exact number.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A question of one of the kinds of the level."""
        match level:
            case 1:
                return {"kind": rng.choice(("choose", "places", "code")), "n": rng.randint(6, 99), "k": rng.randint(2, 6)}
            case 2:
                letters = [rng.choice("ABDEKLMNORST") for _ in range(rng.randint(2, 5))]
                letters += [rng.choice(letters) for _ in range(rng.randint(2, 4))]
                rng.shuffle(letters)
                return {"kind": "letters", "word": "".join(letters)}
            case 3:
                if rng.random() < 0.7:
                    n = rng.randint(4, 7)
                    digits = sorted(rng.sample(range(10), n))
                    return {"kind": "digits", "digits": digits, "k": rng.randint(2, n - 1), "by": rng.choice((2, 5, 10))}
                return {"kind": rng.choice(("together", "apart", "ring")), "n": rng.randint(4, 14), "k": rng.randint(2, 5)}
            case _:
                men, women = rng.randint(4, 12), rng.randint(4, 12)
                size = rng.randint(3, 6)
                return {"kind": "committee", "men": men, "women": women, "size": size, "least": rng.randint(1, size - 1)}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The question in words."""
        told = {k: str(v) for k, v in facts.items()}
        if "digits" in facts:
            told["digits"] = _list_parts([str(d) for d in facts["digits"]])
        return {"text": _COUNTING[facts["kind"]].format_map(told)}

    def solve(self, facts: Facts) -> Solution:
        """By products of factorials and binomials."""
        n, k = facts.get("n", 0), facts.get("k", 0)
        match facts["kind"]:
            case "choose":
                how, answer, effort = f"C({n}, {k})", comb(n, k), 1
            case "places":
                how, answer, effort = " × ".join(str(n - i) for i in range(k)), prod(n - i for i in range(k)), 1
            case "code":
                how, answer, effort = f"{n}^{k}", n**k, 1
            case "letters":
                counts = [c for c in Counter(facts["word"]).values() if c > 1]
                below = prod(map(factorial, counts))
                whole = factorial(len(facts["word"]))
                twice = " × ".join(f"{c}!" for c in counts)
                how = f"{len(facts['word'])}! / ({twice}) = {whole} / {below}"
                answer, effort = whole // below, 2 + len(counts)
            case "digits":
                how, answer = _different_digits(facts["digits"], k, facts["by"])
                effort = 4
            case "together":
                how, answer, effort = f"{k}! × {n + 1}!", factorial(k) * factorial(n + 1), 5
            case "apart":
                how = f"{n}! × {' × '.join(str(n + 1 - i) for i in range(k))}"
                answer, effort = factorial(n) * prod(n + 1 - i for i in range(k)), 6
            case "ring":
                how, answer, effort = f"{n + k - 1}!", factorial(n + k - 1), 5
            case _:
                men, women, size, least = (facts[key] for key in ("men", "women", "size", "least"))
                pairs = [(w, size - w) for w in range(least, size + 1)]
                how = " + ".join(f"C({women}, {w}) × C({men}, {m})" for w, m in pairs)
                answer, effort = sum(comb(women, w) * comb(men, m) for w, m in pairs), 5 + len(pairs)
        return Solution(answer=str(answer), steps=f"{how} = {answer}", effort=effort)


def _different_digits(digits: list[int], k: int, by: int) -> tuple[str, int]:
    """Numbers of k different digits, not beginning with 0, of which the last one is divisible by 2 or 5, or 0."""
    parts: list[int] = []
    for last in digits:
        if last % by == 0:
            rest = [d for d in digits if d != last]
            ways = prod(len(rest) - i for i in range(k - 1))
            parts.append(ways - (prod(len(rest) - 1 - i for i in range(k - 2)) if 0 in rest else 0))
    return f"by the last digit: {' + '.join(map(str, parts)) or 'none'}", sum(parts)


_COUNTING = {
    "digits": "How many numbers with exactly {k} digits, all different, can be written with the digits {digits} so that the "
    "number is divisible by {by}? A number does not begin with 0.",
    "choose": "From {n} people, a team of {k} is chosen; their order does not matter. How many different teams are there?",
    "places": "{n} runners compete for the places 1 to {k}. No two share a place. How many different results for these "
    "places are possible?",
    "code": "A code has {k} signs, each of which is one of {n} symbols; symbols may be repeated. How many different codes are "
    "there?",
    "letters": "How many different sequences can be made of the letters {word}, each letter being used exactly as often as "
    "it occurs there?",
    "together": "{n} boys and {k} girls, all different persons, stand in a row. In how many ways can they do so if all girls "
    "stand next to each other?",
    "apart": "{n} boys and {k} girls, all different persons, stand in a row. In how many ways can they do so if no two "
    "girls stand next to each other?",
    "ring": "{n} men and {k} women, all different persons, sit down at a round table. Two ways to sit are the same if one is a "
    "rotation of the other. How many different ways are there?",
    "committee": "A committee of {size} is chosen from {men} men and {women} women. How many different committees have at least "
    "{least} of the women among their members?",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths(ExactProblem):
    r"""How many shortest ways lead through a grid, past closed crossings. The level sets the size and the number of those.

    >>> Paths().solve({"width": 2, "height": 2, "closed": [[1, 1]]}).answer
    '2'
    """

    name: str = "chance/paths"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)

    templates: ClassVar[tuple[str, ...]] = (
        "A robot stands at (0, 0) and goes to ({width}, {height}); each step adds 1 to one of its two coordinates. "
        "{closed} How many "
        "different ways are there?",
        "On a grid of streets you walk from the crossing (0, 0) to the crossing ({width}, {height}), always one block "
        "right (x grows "
        "by 1) or one block up (y grows by 1). {closed} In how many ways can you go?",
        "Count the lattice paths from (0, 0) to ({width}, {height}) with steps (1, 0) and (0, 1). {closed}",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A grid, and closed points that leave a way open."""
        width, height = (rng.randint(level + 1, level + 6) for _ in range(2))
        while True:
            inside = [[x, y] for x in range(width + 1) for y in range(height + 1) if 0 < x + y < width + height]
            facts = {"width": width, "height": height, "closed": sorted(rng.sample(inside, 2 * level - 1))}
            if self.solve(facts).answer != "0":
                return facts

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The grid and what is closed."""
        points = _list_parts([f"({x}, {y})" for x, y in facts["closed"]])
        closed = f"The point{'s' * (len(facts['closed']) > 1)} {points} must not be visited."
        return {"width": str(facts["width"]), "height": str(facts["height"]), "closed": closed}

    def solve(self, facts: Facts) -> Solution:
        """Point by point: the ways from the left and from below."""
        width, height = facts["width"], facts["height"]
        closed = {tuple(p) for p in facts["closed"]}
        row = [0] * (width + 1)
        steps: list[str] = []
        for y in range(height + 1):
            for x in range(width + 1):
                left = row[x - 1] if x else 0
                row[x] = 0 if (x, y) in closed else 1 if x == y == 0 else left + row[x]
            steps.append(f"ways to the points with y = {y}: {', '.join(map(str, row))}")
        return Solution(answer=str(row[-1]), steps="\n".join(steps), effort=(width + 1) * (height + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditional(ExactProblem):
    r"""A conditional probability from a table of counts. The level sets the size of the table.

    >>> Conditional().solve({"counts": [[2, 4], [6, 8]], "row": 1, "column": 0, "given": "column"}).steps
    '6 / (2 + 6) = 3/4'
    """

    name: str = "chance/conditional"
    levels: tuple[int, ...] = (1, 2, 3, 4)

    templates: ClassVar[tuple[str, ...]] = (
        "The table counts people by where they live and what they prefer to drink.\n{table}\nOne of these people is "
        "chosen at random. Given that the person {given}, what is the probability that "
        "the person "
        "{asked}? " + _EXACT,
        "A survey gave these counts:\n{table}\nHow likely is it that somebody {asked}, if it is known that this person {given}? "
        "Answer with an exact fraction.",
        "The following table counts people.\n{table}\nOne person is picked at random from those of whom it is true "
        "that the person "
        "{given}. Find the exact probability that this person {asked}.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Counts, and a row and a column."""
        rows, columns = ((2, 2), (2, 3), (3, 4), (4, 5))[level - 1]
        return {
            "counts": [[rng.randint(1, 40) for _ in range(columns)] for _ in range(rows)],
            "row": rng.randrange(rows),
            "column": rng.randrange(columns),
            "given": rng.choice(("row", "column")),
        }

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The table in lines."""
        counts = facts["counts"]
        lines = ["| | " + " | ".join(_DRINKS[: len(counts[0])]) + " |"]
        lines += [f"| {town} | {' | '.join(map(str, row))} |" for town, row in zip(_TOWNS, counts, strict=False)]
        row, column = f"lives in {_TOWNS[facts['row']]}", f"prefers {_DRINKS[facts['column']]}"
        given, asked = (row, column) if facts["given"] == "row" else (column, row)
        return {"table": "\n".join(lines), "given": given, "asked": asked}

    def solve(self, facts: Facts) -> Solution:
        """The cell, of its row or column."""
        counts, i, j = facts["counts"], facts["row"], facts["column"]
        among: list[int] = counts[i] if facts["given"] == "row" else [row[j] for row in counts]
        answer = Fraction(counts[i][j], sum(among))
        steps = f"{counts[i][j]} / ({' + '.join(map(str, among))}) = {answer}"
        return Solution(answer=str(answer), steps=steps, effort=len(counts) * len(counts[0]))


_TOWNS = ("Arden", "Brook", "Colne", "Dale")
_DRINKS = ("tea", "coffee", "milk", "juice", "water")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bayes(ExactProblem):
    r"""The probability of a cause, given what was seen. The level is the number of causes, less one.

    >>> print(Bayes().solve({"shares": [60, 40], "rates": [5, 10], "asked": 1}).steps)
    60% × 5% = 3/100
    40% × 10% = 1/25
    in all 7/100
    (1/25) / (7/100) = 4/7
    """

    name: str = "chance/bayes"
    levels: tuple[int, ...] = (1, 2, 3, 4)

    templates: ClassVar[tuple[str, ...]] = (
        "A factory has {n} machines. {shares} {rates} A part picked at random is faulty. What is the probability that machine "
        "{asked} made it? " + _EXACT,
        "Parts come from {n} machines. {shares} {rates} Given that a part is faulty, how likely is it from machine "
        "{asked}? Answer "
        "with an exact fraction.",
        "Of the parts in a store, all made by {n} machines, one is taken at random and found to be faulty. {shares} "
        "{rates} Find the "
        "exact probability that it was made by machine {asked}.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Shares that make up 100%, and rates of faults."""
        cuts = sorted(rng.sample(range(1, 20), level))
        shares = [5 * (b - a) for a, b in zip([0, *cuts], [*cuts, 20], strict=True)]
        return {"shares": shares, "rates": [rng.randint(1, 20) for _ in shares], "asked": rng.randrange(len(shares))}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Shares and rates in sentences."""
        names = "ABCDE"
        shares = _list_parts([f"machine {c} makes {s}%" for c, s in zip(names, facts["shares"], strict=False)])
        rates = _list_parts([f"{r}% for {c}" for c, r in zip(names, facts["rates"], strict=False)])
        return {
            "n": _NUMBERS[len(facts["shares"])],
            "shares": f"{shares[0].upper()}{shares[1:]} of all parts.",
            "rates": f"The share of faulty parts is {rates}.",
            "asked": names[facts["asked"]],
        }

    def solve(self, facts: Facts) -> Solution:
        """Bayes' theorem."""
        pairs = list(zip(facts["shares"], facts["rates"], strict=True))
        parts: list[Fraction] = [Fraction(s * r, 10_000) for s, r in pairs]
        total, at = sum(parts, Fraction(0)), int(facts["asked"])
        own = parts[at]
        steps = [f"{s}% × {r}% = {p}" for (s, r), p in zip(pairs, parts, strict=True)]
        steps += [f"in all {total}", f"({own}) / ({total}) = {own / total}"]
        return Solution(answer=str(own / total), steps="\n".join(steps), effort=2 * len(parts))


def chance() -> Problems:
    """Counting, and exact probabilities."""
    return Problems(
        name="chance",
        summary="Counting, and exact probabilities.",
        problems=(
            Dice(),
            Urn(),
            Cards(),
            Coins(),
            Expectation(),
            Arrangements(),
            Paths(),
            Conditional(),
            Bayes(),
        ),
    )
