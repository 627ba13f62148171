"""Questions about one or a few places of a long text, and about all of it: needles, variables, counts, sums, latest values.

The kinds are those of RULER (arXiv 2404.06654) and of record keeping; texts are generated, so their length is a setting.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.core.errors import ConfigError
from assay.core.protocols import Verifier
from assay.core.seeds import derive
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.tasks.problems import Problems
from assay.tasks.turns import list_names
from assay.verify.exact import ExactMatch
from assay.verify.text.items import SetMatch
from assay_tasks.math.arithmetic import number_in
from assay_tasks.text.lexicon import WORDS

__all__ = ["Aggregate", "FrequentWords", "LatestValue", "Mentions", "Needles", "VariableTracking", "context"]

LENGTHS = (128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768)
"""Words of a text, about, at each level."""

_FILLER = (
    "The {a} stood beside the {b}.",
    "Nobody had seen the {a} since the {b} came.",
    "No {a} is as heavy as that {b}.",
    "They carried the {a} past the {b}.",
    "It took an hour to paint the {a} and the {b}.",
    "Some say the {a} was there first.",
    "Behind the {a} there was some {b}.",
    "The {a} was left where the {b} used to be.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LongText(Problem, ABC):
    """Base: lines that matter are spread over a text of lines that do not. The level says how long it is, 128 words to 32768.

    The facts name what matters and the seed of the rest, so that they stay small.

    Attributes:
        lengths: words of the text at each level, about.

    Raises:
        ConfigError: as many lengths as there are levels, ascending, of 64 words or more, are wanted.
    """

    domain: str = "context"
    levels: tuple[int, ...] = tuple(range(1, len(LENGTHS) + 1))
    lengths: tuple[int, ...] = LENGTHS

    def __post_init__(self) -> None:
        Problem.__post_init__(self)
        if len(self.lengths) != len(self.levels) or list(self.lengths) != sorted(set(self.lengths)) or self.lengths[0] < 64:
            raise ConfigError(f"{self.name}.lengths needs {len(self.levels)} ascending numbers of 64 or more, got {self.lengths}")

    def length(self, level: int) -> int:
        """Words of the text."""
        return self.lengths[self.levels.index(level)]

    @abstractmethod
    def lines(self, facts: Facts) -> list[str]:
        """The lines that matter, in their order."""
        ...

    def text(self, facts: Facts) -> str:
        """All lines: those that matter at random places among idle ones, in their order."""
        rng, wanted = Random(derive("haystack", 0, self.name, facts["seed"])), self.lines(facts)
        idle, words = list[str](), sum(line.count(" ") + 1 for line in wanted)
        while words < facts["length"]:
            line = rng.choice(_FILLER).format(a=rng.choice(WORDS), b=rng.choice(WORDS))
            words += line.count(" ") + 1
            idle.append(line)
        places = sorted(rng.randint(0, len(idle)) for _ in wanted)
        out, at = list[str](), 0
        for place, line in zip(places, wanted, strict=True):
            out += [*idle[at:place], line]
            at = place
        return " ".join([*out, *idle[at:]])

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The text."""
        return {"text": self.text(facts)}

    def base(self, level: int, rng: Random) -> dict[str, Any]:
        """The facts that all kinds have."""
        return {"seed": rng.randrange(2**32), "length": self.length(level)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Needles(LongText):
    """Numbers that belong to a key, among other keys and their numbers.

    Attributes:
        keys: keys that have numbers; all but those asked for distract.
        asked: keys asked for.
        values: numbers that each key has.

    Carries: RULER (arXiv 2404.06654), in part.
    """

    name: str = "context/needle"
    keys: int = 1
    asked: int = 1
    values: int = 1

    templates: ClassVar[tuple[str, ...]] = (
        "{text}\n\nWhat {noun} of {keys} {are} mentioned in the text above?{many}",
        "Read the text and remember the secret numbers.\n\n{text}\n\nGive the secret {number} of {keys}.{many}",
        "Somewhere in the following text the secret {number} of {keys} can be found.\n\n{text}\n\nWrite the {number}.{many}",
    )

    def __post_init__(self) -> None:
        LongText.__post_init__(self)
        if not 1 <= self.asked <= self.keys <= 40 or not 1 <= self.values <= 8:
            raise ConfigError(
                f"{self.name} needs 1 <= asked <= keys <= 40 and 1 to 8 values, got asked={self.asked}, keys={self.keys}, "
                f"values={self.values}"
            )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Keys of two words, numbers of seven digits."""
        keys = [f"{a}-{b}" for a, b in zip(rng.sample(WORDS, self.keys), rng.sample(WORDS, self.keys), strict=True)]
        pairs = [[key, rng.randint(10**6, 10**7 - 1)] for key in keys for _ in range(self.values)]
        rng.shuffle(pairs)
        return {**self.base(level, rng), "pairs": pairs, "asked": rng.sample(keys, self.asked)}

    def lines(self, facts: Facts) -> list[str]:
        """One line for each number."""
        return [f"One secret number of {key} is {value}." for key, value in facts["pairs"]]

    def solve(self, facts: Facts) -> Solution:
        """By reading the lines."""
        found = [str(v) for key in facts["asked"] for k, v in facts["pairs"] if k == key]
        return Solution(answer=", ".join(found), gold=found, effort=facts["length"])

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The text and the keys."""
        many = len(facts["asked"]) * self.values > 1
        return {
            "text": self.text(facts),
            "keys": list_names(facts["asked"]),
            "are": "are" if many else "is",
            "noun": "secret numbers" if many else "secret number",
            "number": "numbers" if many else "number",
            "many": " Give all of them, separated by commas, in any order." if many else "",
        }

    def verifier(self, form: Form) -> Verifier:
        """The numbers, in any order."""
        return SetMatch(where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableTracking(LongText):
    """All names that hold a number through a chain of assignments, other chains aside.

    Attributes:
        links: names in a chain.
        chains: chains in the text.
    """

    name: str = "context/variables"
    links: int = 4
    chains: int = 3

    templates: ClassVar[tuple[str, ...]] = (
        "{text}\n\nThe text holds assignments such as 'Set X1 to the value of X2.' Which variables have the value {value} in "
        "the end? List them, separated by commas.",
        "Follow the assignments in this text in their order.\n\n{text}\n\nName all variables whose value is {value} "
        "after the last one, with commas between.",
        "{text}\n\nFind every variable that was set to {value}, directly or through others. Separate the names by commas.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Chains that are mixed with each other."""
        names = [f"X{n}" for n in rng.sample(range(100, 1000), self.links * self.chains)]
        values = rng.sample(range(10000, 100000), self.chains)
        chains = [names[i * self.links : (i + 1) * self.links] for i in range(self.chains)]
        turns = [i for i in range(self.chains) for _ in range(self.links)]
        rng.shuffle(turns)
        return {**self.base(level, rng), "chains": chains, "values": values, "turns": turns}

    def lines(self, facts: Facts) -> list[str]:
        """The assignments of all chains, each in its order."""
        at, out = [0] * len(facts["chains"]), list[str]()
        for turn in facts["turns"]:
            chain: list[str] = facts["chains"][turn]
            source = f"the value of {chain[at[turn] - 1]}" if at[turn] else str(facts["values"][turn])
            out.append(f"Set {chain[at[turn]]} to {source}.")
            at[turn] += 1
        return out

    def solve(self, facts: Facts) -> Solution:
        """The names of the first chain."""
        found: list[str] = facts["chains"][0]
        return Solution(answer=", ".join(found), gold=found, effort=facts["length"])

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The text and the value asked for."""
        return {"text": self.text(facts), "value": str(facts["values"][0])}

    def verifier(self, form: Form) -> Verifier:
        """The names, in any order."""
        return SetMatch(where=form.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrequentWords(Problem):
    """The words that occur most often in a long list of invented words.

    Attributes:
        top: how many are asked for; each occurs at least a fifth more often than any other.
    """

    name: str = "context/frequent"
    domain: str = "context"
    levels: tuple[int, ...] = tuple(range(1, len(LENGTHS) + 1))
    top: int = 3

    templates: ClassVar[tuple[str, ...]] = (
        "{text}\n\nWhich {top} words occur most often in the list above? Separate them by commas, in any order.",
        "Count the words of this list.\n\n{text}\n\nName the {top} most frequent ones, with commas between them.",
        "Below is a list of words.\n\n{text}\n\nGive the {top} words that occur more often than all others, separated by commas.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Words of which some come often."""
        size = LENGTHS[self.levels.index(level)]
        words = list[str]()
        while len(words) < 12 + size // 64:
            word = "".join(rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") for _ in range(3))
            if word not in words:
                words.append(word)
        often = size // (3 * self.top)
        rest, most = size - often * self.top, max(1, often * 4 // 5)
        counts = [often] * self.top
        for i in range(len(words) - self.top):
            left = len(words) - self.top - i
            counts.append(min(most, max(rest // left, 0)))
            rest -= counts[-1]
        return {"words": words, "counts": counts, "seed": rng.randrange(2**32)}

    def solve(self, facts: Facts) -> Solution:
        """By counting."""
        counted = Counter(dict(zip(facts["words"], facts["counts"], strict=True)))
        found = [word for word, _ in counted.most_common(self.top)]
        return Solution(answer=", ".join(found), gold=found, effort=sum(facts["counts"]))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """All words, shuffled."""
        text = [word for word, n in zip(facts["words"], facts["counts"], strict=True) for _ in range(n)]
        Random(derive("frequent", 0, self.name, facts["seed"])).shuffle(text)
        return {"text": " ".join(text), "top": str(self.top)}

    def verifier(self, form: Form) -> Verifier:
        """The words, in any order."""
        return SetMatch(where=form.place)


_SHOPS = ("north", "south", "east", "west", "harbour", "station")


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate(LongText):
    """The sum of what one shop sold, over the records in a text: one for every 64 words, of six shops."""

    name: str = "context/sum"

    unique: ClassVar[bool | None] = True
    templates: ClassVar[tuple[str, ...]] = (
        "{text}\n\nAdd up everything that the {shop} shop sold according to the text. How many is it in all?",
        "The following text mentions sales now and then.\n\n{text}\n\nHow many things did the {shop} shop sell in total?",
        "{text}\n\nWhat is the total number sold by the {shop} shop, over all records in the text?",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Records of all shops."""
        base = self.base(level, rng)
        shop = rng.choice(_SHOPS)
        records = [[rng.choice(_SHOPS), rng.randint(2, 60), rng.choice(WORDS)] for _ in range(base["length"] // 64)]
        records += [[shop, rng.randint(2, 60), rng.choice(WORDS)] for _ in range(2)]
        rng.shuffle(records)
        return {**base, "shop": shop, "records": records}

    def lines(self, facts: Facts) -> list[str]:
        """One line for each record."""
        return [f"Record: the {shop} shop sold {n} of the {thing} kind." for shop, n, thing in facts["records"]]

    def solve(self, facts: Facts) -> Solution:
        """Adds the shop's records."""
        own = [n for shop, n, _ in facts["records"] if shop == facts["shop"]]
        return Solution(answer=str(sum(own)), effort=facts["length"])

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The text and the shop."""
        return {"text": self.text(facts), "shop": facts["shop"]}

    def verifier(self, form: Form) -> Verifier:
        """Equality of numbers."""
        return number_in(form)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestValue(LongText):
    """The last of many values that a key was given, among other keys that change too.

    Attributes:
        keys: keys that change.
        updates: values that each is given in turn.
    """

    name: str = "context/latest"
    keys: int = 3
    updates: int = 4

    unique: ClassVar[bool | None] = True
    templates: ClassVar[tuple[str, ...]] = (
        "{text}\n\nWhat is the latest price of the {key} according to the text, that is, the one mentioned last?",
        "Prices change in this text.\n\n{text}\n\nWhich price does the {key} have at the end?",
        "{text}\n\nThe price of the {key} was changed several times above. What is it after the last change?",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Changes in any order."""
        keys = rng.sample(WORDS, self.keys)
        changes = [[key, price] for key in keys for price in rng.sample(range(100, 10000), self.updates)]
        rng.shuffle(changes)
        return {**self.base(level, rng), "key": rng.choice(keys), "changes": changes}

    def lines(self, facts: Facts) -> list[str]:
        """One line for each change."""
        return [f"The price of the {key} is now {price}." for key, price in facts["changes"]]

    def solve(self, facts: Facts) -> Solution:
        """The key's last change."""
        price = [price for key, price in facts["changes"] if key == facts["key"]][-1]
        return Solution(answer=str(price), effort=facts["length"])

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The text and the key."""
        return {"text": self.text(facts), "key": facts["key"]}

    def verifier(self, form: Form) -> Verifier:
        """Equality of numbers."""
        return number_in(form)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mentions(LongText):
    """Who visited a place first, or last, of many visitors of several places."""

    name: str = "context/mentions"

    templates: ClassVar[tuple[str, ...]] = (
        "{text}\n\nWho is the {which} person that the text says visited the {place}?",
        "Visits are told in this text in their order.\n\n{text}\n\nName the person who visited the {place} {which}.",
        "{text}\n\nOf all who visited the {place}, who came {which}? Give the name.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Visits of invented people."""
        places = rng.sample(WORDS, 4)
        base = self.base(level, rng)
        people = [
            "".join(rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") for _ in range(3)).capitalize()
            for _ in range(6 + base["length"] // 128)
        ]
        visits = [[person, places[i % 4] if i < 8 else rng.choice(places)] for i, person in enumerate(dict.fromkeys(people))]
        rng.shuffle(visits)
        return {**base, "visits": visits, "place": places[0], "which": rng.choice(("first", "last"))}

    def lines(self, facts: Facts) -> list[str]:
        """One line for each visit."""
        return [f"Then {person} visited the {place}." for person, place in facts["visits"]]

    def solve(self, facts: Facts) -> Solution:
        """The first or last who is said to have been there."""
        there = [person for person, place in facts["visits"] if place == facts["place"]]
        return Solution(answer=there[0 if facts["which"] == "first" else -1], effort=facts["length"])

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The text, the place, and which is asked for."""
        return {"text": self.text(facts), "place": facts["place"], "which": facts["which"]}

    def verifier(self, form: Form) -> Verifier:
        """The name."""
        return ExactMatch(strip=True, casefold=True, where=form.place)


def context() -> Problems:
    """Questions about texts of 128 to 32768 words.

    Carries: GoLongRL, TMN-Reweight (arXiv 2605.19577), in part.
    """
    return Problems(
        name="context",
        summary="Questions about long texts, of 128 to 32768 words.",
        problems=(
            Needles(),
            Needles(name="context/needle_keys", keys=12, asked=3),
            Needles(name="context/needle_values", keys=3, values=4),
            VariableTracking(),
            FrequentWords(),
            Aggregate(),
            LatestValue(),
            Mentions(),
        ),
    )
