"""Problems with records: labels by a rule, an order by relevance, fields out of prose."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, product
from random import Random
from typing import Any, ClassVar

from assay.core.errors import ConfigError, DataError
from assay.core.protocols import Verifier
from assay.tasks.draws import TRIES
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.verify.exact import ExactMatch
from assay.verify.text.jsonvalue import JsonMatch
from assay.verify.text.ranking import Ranking, RankMetric
from assay_tasks.text.lexicon import WORDS

__all__ = ["Classify", "Extract", "Rank"]

_TRAITS = {
    "colour": ("red", "blue", "green"),
    "size": ("small", "large"),
    "shape": ("round", "square", "flat"),
    "material": ("wood", "metal", "glass"),
    "age": ("old", "new"),
    "price": ("cheap", "dear"),
    "origin": ("north", "south", "east"),
}

_LABELS = ("dax", "wug", "blicket", "toma", "zup", "fep", "modi", "kiki", "gorp", "lun")


@dataclass(frozen=True, slots=True, kw_only=True)
class Classify(Problem):
    """Label a thing by the rule that labelled examples follow. The level is the number of traits, less 1; examples grow with it.

    A rule says that one trait's value (levels 1 to 3), or two traits' values together (from 4), get one label and all else the
    other. It is proved that one rule alone errs least on the examples, and that all rules that err as little agree on what is
    asked.

    Attributes:
        noise: share of the examples whose label is wrong, rounded down to whole examples.

    Raises:
        ConfigError: a share outside [0, 0.3].

    >>> rows = [[["small", "old"], 1], [["small", "new"], 1], [["large", "old"], 0], [["large", "new"], 0]]
    >>> facts = {"labels": ["A", "B"], "depth": 1, "traits": ["size", "age"], "examples": rows, "wrong": 0}
    >>> Classify().solve(facts | {"asked": ["small", "old"]}).answer
    'B'
    """

    name: str = "text/classify"
    domain: str = "text"
    levels: tuple[int, ...] = tuple(range(1, 7))
    noise: float = 0.0

    templates: ClassVar[tuple[str, ...]] = (
        "These things were labelled by a rule. {rule}{noise}\n{examples}\nWhich label belongs to this: {asked}?",
        "Each line gives a thing and its label. {rule}{noise}\n{examples}\nGive the label of: {asked}",
        "Learn from the examples how things are labelled, and label the last one. {rule}{noise}\n{examples}\n{asked}: ?",
    )

    def __post_init__(self) -> None:
        Problem.__post_init__(self)
        if not 0.0 <= self.noise <= 0.3:
            raise ConfigError(f"{self.name}.noise must be a share from 0 to 0.3, got {self.noise}")

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Examples of both labels, until they leave no doubt."""
        depth, count = 1 + (level > 3), 6 + 4 * level
        for _ in range(TRIES):
            traits = rng.sample(sorted(_TRAITS), level + 1)
            rule = [(at, rng.choice(_TRAITS[traits[at]])) for at in rng.sample(range(len(traits)), depth)]
            things = [_thing(rng, traits, rule, i % 2 == 0) for i in range(count + rng.randrange(1, 3))]
            asked = things.pop()
            rows: list[tuple[list[str], int]] = [(thing, int(_fits(thing, rule))) for thing in things]
            wrong = int(self.noise * len(rows))
            for at in rng.sample(range(len(rows)), wrong):
                rows[at] = rows[at][0], 1 - rows[at][1]
            rng.shuffle(rows)
            labels = rng.sample(_LABELS, 2)
            found: dict[str, Any] = {
                "labels": labels,
                "depth": depth,
                "traits": traits,
                "examples": rows,
                "asked": asked,
                "wrong": wrong,
            }
            if asked not in things and len(_answers(found)) == 1:
                return found
        raise DataError(f"{self.name}: {TRIES} draws of level {level} gave no examples that leave no doubt; lower noise")

    def solve(self, facts: Facts) -> Solution:
        """Tries every rule, and takes the one that errs least."""
        (label,) = _answers(facts)
        return Solution(answer=facts["labels"][label], effort=len(_rules(facts)) * len(facts["examples"]))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The examples as lines."""
        lines = [f"{_thing_text(facts, thing)}: {facts['labels'][label]}" for thing, label in facts["examples"]]
        noise = f" {facts['wrong']} of the labels {'is' if facts['wrong'] == 1 else 'are'} wrong." if facts["wrong"] else ""
        rule = "in which one trait has" if facts["depth"] == 1 else "in which two traits each have"
        return {
            "examples": "\n".join(lines),
            "asked": _thing_text(facts, facts["asked"]),
            "noise": noise,
            "rule": f"Things {rule} a certain value have one label, and all others have the other.",
        }

    def verifier(self, form: Form) -> Verifier:
        """The label, in any case of letters."""
        return ExactMatch(strip=True, casefold=True, where=form.place)


def _thing(rng: Random, traits: list[str], rule: list[tuple[int, str]], fitting: bool) -> list[str]:
    thing = [rng.choice(_TRAITS[trait]) for trait in traits]
    for at, value in rule if fitting else ():
        thing[at] = value
    return thing


def _fits(thing: list[str], rule: list[tuple[int, str]] | tuple[tuple[int, str], ...]) -> bool:
    return all(thing[at] == value for at, value in rule)


def _thing_text(facts: Facts, thing: list[str]) -> str:
    return ", ".join(f"{trait} {value}" for trait, value in zip(facts["traits"], thing, strict=True))


def _rules(facts: Facts) -> list[tuple[tuple[int, str], ...]]:
    """Every choice of so many traits with a value each."""
    values: list[list[tuple[int, str]]] = [[(at, value) for value in _TRAITS[trait]] for at, trait in enumerate(facts["traits"])]
    depth: int = facts["depth"]
    return [rule for some in combinations(values, depth) for rule in product(*some)]


def _answers(facts: Facts) -> set[int]:
    """What the rules that err least say of the thing asked for."""
    least, said = len(facts["examples"]) + 1, set[int]()
    for rule in _rules(facts):
        errors = sum(_fits(thing, rule) != bool(label) for thing, label in facts["examples"])
        for wrong, turned in ((errors, 0), (len(facts["examples"]) - errors, 1)):
            answer = int(_fits(facts["asked"], rule)) ^ turned
            if wrong < least:
                least, said = wrong, {answer}
            elif wrong == least:
                said.add(answer)
    return said


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank(Problem):
    """Order documents by how many words of a query they have. The level says how many documents there are, 4 to 20.

    A document that has the same words more often is no better; those with equally many may stand in any order. The score is the
    discounted gain of the order (nDCG), so a nearly right order earns most of it.

    >>> documents = {"one": ["tin", "oak"], "two": ["oak", "elm"], "three": ["fig", "fig"]}
    >>> Rank().solve({"query": ["elm", "oak"], "documents": documents}).answer
    'two, one, three'
    """

    name: str = "text/rank"
    domain: str = "text"
    levels: tuple[int, ...] = tuple(range(1, 7))

    templates: ClassVar[tuple[str, ...]] = (
        "Rank these documents by how many different words of the query '{query}' they contain, the most "
        "first:\n{documents}\nGive all names in order, separated by commas.",
        "Query: {query}\nDocuments:\n{documents}\nA document is the better the more of the query's words occur in it (each "
        "counts once). List the names of all documents from best to worst with commas between.",
        "Here are some documents, each with its name.\n{documents}\nSort the names by relevance to '{query}', that is, by the "
        "number of query words which the document has, in descending order. Write them on one line, separated by commas.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Documents that have from none to all of the query's words."""
        count, terms = (4, 6, 8, 11, 15, 20)[level - 1], 3 + level // 2
        names = rng.sample(WORDS, count + 24 + terms)
        query, others, names = names[:terms], names[terms : terms + 24], names[terms + 24 :]
        documents: dict[str, list[str]] = {}
        for i, name in enumerate(names):
            words = rng.sample(query, i if i < 2 else rng.randint(0, terms)) + rng.sample(others, 3 + level)
            documents[name] = [*words, rng.choice(words)]
            rng.shuffle(documents[name])
        order = rng.sample(names, count)
        return {"query": query, "documents": {name: documents[name] for name in order}}

    def solve(self, facts: Facts) -> Solution:
        """By counting; equals in alphabetical order."""
        gains = {name: sum(word in words for word in facts["query"]) for name, words in facts["documents"].items()}
        order = sorted(gains, key=lambda name: (-gains[name], name))
        effort = sum(len(words) for words in facts["documents"].values()) * len(facts["query"])
        steps = "\n".join(f"{name}: {gains[name]}" for name in facts["documents"])
        return Solution(answer=", ".join(order), gold={"gains": gains}, steps=steps, effort=effort)

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The documents as lines."""
        lines = [f"{name}: {' '.join(words)}" for name, words in facts["documents"].items()]
        return {"query": " ".join(facts["query"]), "documents": "\n".join(lines)}

    def verifier(self, form: Form) -> Verifier:
        """The order's discounted gain."""
        return Ranking(metric=RankMetric.NDCG, where=form.place)


_PEOPLE = ("Ann", "Ben", "Cara", "Dan", "Eva", "Finn", "Gina", "Hugo", "Ida", "Jan", "Kim", "Leo", "Mia", "Nick", "Olga", "Paul")
_CITIES = ("Oslo", "Lima", "Cairo", "Kyoto", "Turin", "Quito", "Accra", "Delhi", "Perth", "Sofia", "Minsk", "Hanoi")
_GOODS = (
    "aprons",
    "anchors",
    "arrows",
    "badges",
    "bananas",
    "barrels",
    "baskets",
    "blankets",
    "bottles",
    "brooms",
    "buckets",
    "buttons",
    "cameras",
    "candles",
    "carpets",
    "carrots",
    "chairs",
    "coats",
    "cushions",
    "drawers",
    "drums",
    "engines",
    "forks",
    "guitars",
    "hammers",
    "helmets",
    "jackets",
    "kettles",
    "ladders",
    "lanterns",
    "lemons",
    "magnets",
    "mirrors",
    "needles",
    "onions",
    "oysters",
    "pencils",
    "pianos",
    "pillows",
    "ribbons",
    "saddles",
    "scarves",
    "shovels",
    "sponges",
    "tables",
    "tickets",
    "violins",
    "wheels",
)
_ORDERS: tuple[str, ...] = (
    "{customer} from {city} ordered {count} {item} for {price} dollars{paid}.",
    "An order of {count} {item} at {price} dollars came from {customer} in {city}{paid}.",
    "In {city}, {customer} bought {count} {item} and owes {price} dollars in all{paid}.",
    "{count} {item} go to {customer} ({city}); the bill is {price} dollars{paid}.",
)
_PAID = {True: (", which is paid", ", already paid"), False: (", which is not paid yet", ", still to be paid")}
_IDLE: tuple[str, ...] = (
    "The weather was fine that day.",
    "The shop closes at {n} on Sundays.",
    "Nobody asked about the {n} boxes in the cellar.",
    "Delivery takes about {n} days.",
    "The phone rang {n} times.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract(Problem):
    """Write what a text says of some orders as JSON. The level is the number of orders; idle sentences stand between.

    >>> orders = [{"customer": "Ann", "city": "Oslo", "item": "tickets", "count": 2, "price": 8, "paid": True}]
    >>> print(Extract().solve({"orders": orders, "words": [[0, 0]], "idle": []}).answer)
    [{"customer": "Ann", "city": "Oslo", "item": "tickets", "count": 2, "price": 8, "paid": true}]
    """

    name: str = "text/extract"
    domain: str = "text"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 8)

    templates: ClassVar[tuple[str, ...]] = (
        "{text}\nWrite every order of this text as JSON: a list, in the order of the text, of objects with the keys {keys}.",
        "Extract the orders from the text below.\n{text}\nAnswer with a JSON list with one object for each order, in the same "
        "order, with the keys {keys}.",
        "Turn the orders in the following note into JSON.\n{text}\nThe result is a list of objects in the order in which they "
        "are mentioned; keys: {keys}.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Orders, and how each is worded."""
        items = rng.sample(_GOODS, level)
        orders = [
            {
                "customer": rng.choice(_PEOPLE),
                "city": rng.choice(_CITIES),
                "item": item,
                "count": rng.randint(2, 99),
                "price": rng.randint(5, 999),
                "paid": rng.random() < 0.5,
            }
            for item in items
        ]
        words = [[rng.randrange(len(_ORDERS)), rng.randrange(2)] for _ in orders]
        idle = [[rng.randrange(level + 1), rng.randrange(len(_IDLE)), rng.randint(2, 20)] for _ in range(level // 2)]
        return {"orders": orders, "words": words, "idle": idle}

    def solve(self, facts: Facts) -> Solution:
        """The orders themselves."""
        orders: list[dict[str, Any]] = facts["orders"]
        return Solution(answer=json.dumps(orders), gold=orders, effort=6 * len(orders) + len(facts["idle"]))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The text."""
        orders: list[dict[str, Any]] = facts["orders"]
        words: list[list[int]] = facts["words"]
        idle: list[list[int]] = facts["idle"]
        said = [
            _ORDERS[form].format(**order | {"paid": _PAID[bool(order["paid"])][paid]})
            for order, (form, paid) in zip(orders, words, strict=True)
        ]
        for at, which, n in idle:
            said.insert(at, _IDLE[which].format(n=n))
        keys = "customer, city, item, count, price (both whole numbers) and paid (true or false)"
        return {"text": " ".join(said), "keys": keys}

    def verifier(self, form: Form) -> Verifier:
        """Equality of JSON values."""
        return JsonMatch(where=form.place)
