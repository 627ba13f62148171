"""Who tells the truth, which label is right, what follows, what a circuit was given, how a map is coloured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any, ClassVar

from assay.core.protocols import Verifier
from assay.tasks.draws import checked_levels
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.verify.exact import ExactMatch
from assay.verify.text.items import SetMatch
from assay_tasks.puzzles.clued import Clue, Clued, table_in, table_of
from assay_tasks.puzzles.constraints import Constraint, Count, Known, Pair, Rows
from assay_tasks.puzzles.puzzle import NAMES, Puzzle, bullets, list_words, renumber
from assay_tasks.puzzles.solver import Model

__all__ = ["Boxes", "Circuit", "Colouring", "Syllogism", "Tellers"]

_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tellers(Puzzle):
    r"""Who of some people tells the truth, when each says something about the others. The level counts people.

    >>> facts = {"names": ["Ada", "Ben", "Cleo"], "claims": [["lies", 1], ["lies", 2], ["exactly", 3]]}
    >>> Tellers().fields(facts)["claims"].split("\n")[0], Tellers().solve(facts).answer
    ('- Ada says: "Ben is lying."', 'Ben')
    """

    name: str = "riddles/tellers"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    shapes: ClassVar[tuple[Any, ...]] = ((3,), (4,), (5,), (6,), (8,))
    templates: ClassVar[tuple[str, ...]] = (
        "Each of {n} people either tells the truth or lies.\n\n{claims}\n\nWhat a truth-teller says is true, what a liar "
        "says is false. Who tells the truth? List the names, separated by commas.",
        "{people} each make one statement, which is true or false:\n\n{claims}\n\nCall those whose statement is true "
        "truth-tellers, and all others liars. Name all truth-tellers, with commas between.",
        "Some of {people} are telling the truth, the rest are lying, and there is only one possibility of who does which:\n\n"
        "{claims}\n\nWhich of them are telling the truth? Give their names, separated by commas.",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """Claims at random; refused where they fit twice or never, or nobody tells the truth."""
        (n,) = self.shapes[level - 1]
        facts = {"names": rng.sample(NAMES, n), "claims": [self._claim(i, n, rng) for i in range(n)]}
        found = self.model(facts).solve(2)
        return facts if len(found.solutions) == 1 and any(found.solutions[0]) else None

    @staticmethod
    def _claim(speaker: int, n: int, rng: Random) -> list[Any]:
        a, b = sorted(rng.sample([i for i in range(n) if i != speaker], 2))
        kind = rng.choice(("lies", "lies", "honest", "same", "differ", "either", "neither", "exactly", "at least"))
        match kind:
            case "lies" | "honest":
                return [kind, rng.choice((a, b))]
            case "exactly" | "at least":
                return [kind, rng.randint(1, n - 1)]
            case _:
                return [kind, a, b]

    def model(self, facts: Facts) -> Model:
        """Whoever tells the truth says what is so, and no one else."""
        model, n = Model(), len(facts["names"])
        model.block(n, 3)
        for i, (kind, *about) in enumerate(facts["claims"]):
            others = [j for j in range(n) if j != i] if kind in ("exactly", "at least") else about
            rows = [
                (1 << own, *(1 << v for v in values))
                for own, *values in product((0, 1), repeat=len(others) + 1)
                if own == _so(kind, [own, *values] if kind in ("exactly", "at least") else values, about[0])
            ]
            model.add(Rows((i, *others), rows))
        return model

    def write_solution(self, facts: Facts, values: Sequence[int]) -> Solution:
        """Their names."""
        gold = [name for name, v in zip(facts["names"], values, strict=True) if v]
        return Solution(answer=", ".join(gold), gold=gold)

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Other names."""
        return {**facts, "names": rng.sample(NAMES, len(facts["names"]))}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The claims."""
        names = facts["names"]
        claims = bullets(
            f'{name} says: "{self._claim_text(claim, names)}"' for name, claim in zip(names, facts["claims"], strict=True)
        )
        return {"n": str(len(names)), "people": list_words(names), "claims": claims}

    @staticmethod
    def _claim_text(claim: Clue, names: Sequence[str]) -> str:
        kind, first = claim[0], claim[1]
        match kind:
            case "lies":
                return f"{names[first]} is lying."
            case "honest":
                return f"{names[first]} is telling the truth."
            case "exactly" | "at least":
                some = f"{kind.capitalize()} {_WORDS[first]} of the {_WORDS[len(names)]} of us"
                return f"{some} {'is' if first == 1 else 'are'} telling the truth."
            case _:
                a, b = names[first], names[claim[2]]
        match kind:
            case "same":
                return f"{a} and {b} are both telling the truth or both lying."
            case "differ":
                return f"One of {a} and {b} is telling the truth and the other is lying."
            case "either":
                return f"At least one of {a} and {b} is telling the truth."
            case _:
                return f"{a} and {b} are both lying."

    def verifier(self, form: Form) -> Verifier:
        """The names as a set."""
        return SetMatch(where=form.place)


def _so(kind: str, values: Sequence[int], count: int) -> int:
    """Whether a claim is true."""
    match kind:
        case "lies":
            return 1 - values[0]
        case "honest":
            return values[0]
        case "same":
            return int(values[0] == values[1])
        case "differ":
            return int(values[0] != values[1])
        case "either":
            return int(any(values))
        case "neither":
            return int(not any(values))
        case "exactly":
            return int(sum(values) == count)
        case _:
            return int(sum(values) >= count)


_COLOURS = ("red", "blue", "green", "white", "yellow", "black", "brown", "grey", "orange", "pink")


@dataclass(frozen=True, slots=True, kw_only=True)
class Boxes(Puzzle):
    r"""In which box a treasure lies, when so many of their labels are true. The level counts boxes.

    >>> facts = {"names": ["red", "blue", "green"], "labels": [["in", 0], ["in", 2], ["not in", 2]], "true": 2}
    >>> Boxes().fields(facts)["labels"].split("\n")[1], Boxes().solve(facts).answer
    ('- blue: "The treasure is in the green box."', 'red')
    """

    name: str = "riddles/boxes"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    shapes: ClassVar[tuple[Any, ...]] = ((3,), (4,), (5,), (6,), (8,))
    templates: ClassVar[tuple[str, ...]] = (
        "A treasure lies in one of {n} boxes. Their labels say:\n\n{labels}\n\n{true} true. In which box is the treasure? "
        "Answer with its colour.",
        "There are {n} boxes, and exactly one of them holds a treasure. On each a label is written:\n\n{labels}\n\n{true} "
        "true, the others are false. Which colour has the box with the treasure?",
        "Find the treasure: it is in one of the boxes {people}. The labels read\n\n{labels}\n\nand it is known that "
        "{true_low} true. Name the colour of the right box.",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """Labels at random; refused where no number of true ones tells the box."""
        (n,) = self.shapes[level - 1]
        labels = [self._label(i, n, rng) for i in range(n)]
        true = [sum(_here(label, place) for label in labels) for place in range(n)]
        single = [place for place in range(n) if true.count(true[place]) == 1 and 0 < true[place] < n]
        if not single:
            return None
        return {"names": rng.sample(_COLOURS, n), "labels": labels, "true": true[rng.choice(single)]}

    @staticmethod
    def _label(own: int, n: int, rng: Random) -> list[Any]:
        a, b = sorted(rng.sample(range(n), 2))
        return rng.choice((["in", rng.choice((own, a))], ["not in", rng.choice((own, b))], ["among", a, b], ["not in", a]))

    def model(self, facts: Facts) -> Model:
        """Where it is, which labels are true, and how many."""
        n, model = len(facts["names"]), Model()
        where = model.var(range(n), "where")
        for label in facts["labels"]:
            model.add(Pair(where, model.var((0, 1)), [2 if _here(label, place) else 1 for place in range(n)]))
        model.add(Count(range(1, n + 1), (2,) * n, facts["true"], facts["true"]))
        return model

    def write_solution(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The colour."""
        return Solution(answer=facts["names"][values[0]])

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Other colours."""
        return {**facts, "names": rng.sample(_COLOURS, len(facts["names"]))}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The labels."""
        names = facts["names"]
        said = {
            "in": "The treasure is in the {} box.",
            "not in": "The treasure is not in the {} box.",
            "among": "The treasure is in the {} box or in the {} box.",
        }
        labels = [
            f'{name}: "{said[kind].format(*(names[i] for i in about))}"'
            for name, (kind, *about) in zip(names, facts["labels"], strict=True)
        ]
        count = facts["true"]
        true = f"Exactly {_WORDS[count]} of these labels {'is' if count == 1 else 'are'}"
        return {
            "n": str(len(names)),
            "people": list_words(names, "or"),
            "labels": bullets(labels),
            "true": true,
            "true_low": true[0].lower() + true[1:],
        }

    def verifier(self, form: Form) -> Verifier:
        """The colour."""
        return ExactMatch(strip=True, casefold=True, where=form.place)


def _here(label: Clue, place: int) -> bool:
    kind, *about = label
    return (place in about) != (kind == "not in")


_CLASSES = ("blickets", "wugs", "daxes", "feps", "lorps", "morks", "tivs", "zorbs", "gazzers", "pimwits")


@dataclass(frozen=True, slots=True, kw_only=True)
class Syllogism(Problem):
    """Whether a sentence about classes follows from others, contradicts them, or neither. The level counts classes.

    No class is empty. One third of the questions has each answer.

    >>> facts = {"names": ["wugs", "daxes", "feps"], "premises": [["all", 0, 1], ["no", 1, 2]], "claim": ["some", 0, 2]}
    >>> Syllogism().solve(facts).answer, Syllogism().solve({**facts, "claim": ["no", 2, 0]}).answer
    ('no', 'yes')
    """

    name: str = "riddles/syllogism"
    domain: str = "logic"
    levels: tuple[int, ...] = (1, 2, 3)
    shapes: ClassVar[tuple[Any, ...]] = ((3, 2), (4, 3), (5, 5))
    templates: ClassVar[tuple[str, ...]] = (
        "Suppose that all of this is true, and that there is at least one of each kind:\n\n{premises}\n\nIs the following "
        "true?\n\n{claim}\n\nAnswer 'yes' if it must be true, 'no' if it must be false, and 'unknown' if it may be either.",
        "{premises}\n\nNone of these kinds is empty. Does it follow that {claim_low} Answer yes if it does, no if the "
        "opposite follows, or unknown if neither can be concluded.",
        "From these facts about made-up creatures, each kind of which has at least one member,\n\n{premises}\n\ndecide about "
        "the sentence: {claim} Reply with yes (it is certainly true), no (it is certainly false) or unknown (the facts do "
        "not settle it).",
    )

    def __post_init__(self) -> None:
        Problem.__post_init__(self)
        checked_levels(self.name, self.levels, 1, len(self.shapes))

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Premises and a claim at random, until the answer is one drawn before."""
        n, count = self.shapes[level - 1]
        wanted = rng.choice(("yes", "no", "unknown"))
        while True:
            pairs = [sorted(rng.sample(range(n), 2), key=lambda _: rng.random()) for _ in range(count + 1)]
            if len({frozenset(pair) for pair in pairs}) <= count or len({at for pair in pairs for at in pair}) < n:
                continue  # a sentence twice, or a kind of which nothing is said
            premises = [[rng.choice(("all", "all", "no", "some", "some not")), *pair] for pair in pairs[:-1]]
            facts: dict[str, Any] = {"premises": premises, "claim": [rng.choice(("all", "no", "some", "some not")), *pairs[-1]]}
            if self._verdict({**facts, "names": ["x"] * n})[0] == wanted:
                return {"names": self._draw_names(n, rng), **facts}

    def redraw(self, facts: Facts, level: int, rng: Random) -> dict[str, Any]:
        """Mostly the same with other names."""
        if rng.random() < 0.1:
            return self.draw(level, rng)
        return {**facts, "names": self._draw_names(len(facts["names"]), rng)}

    def solve(self, facts: Facts) -> Solution:
        """Whether the premises allow the claim, and whether they allow that it is false."""
        verdict, effort = self._verdict(facts)
        return Solution(answer=verdict, effort=effort)

    def models(self, facts: Facts) -> tuple[Model, Model]:
        """The premises with the claim, and with its opposite: a variable for each kind of creature, 1 where there is one."""
        one, other = self._premises(facts), self._premises(facts)
        kind, a, b = facts["claim"]
        opposite = {"all": "some not", "some not": "all", "no": "some", "some": "no"}[kind]
        one.add(_classes(len(facts["names"]), kind, a, b))
        other.add(_classes(len(facts["names"]), opposite, a, b))
        return one, other

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The sentences."""
        claim = _said_class(facts["claim"], facts["names"])
        premises = bullets(_said_class(clue, facts["names"]) for clue in facts["premises"])
        return {"premises": premises, "claim": claim, "claim_low": f"{claim[0].lower()}{claim[1:-1]}?"}

    def verifier(self, form: Form) -> Verifier:
        """One of the three words."""
        return ExactMatch(strip=True, casefold=True, punctuation=True, where=form.place)

    def _draw_names(self, n: int, rng: Random) -> list[str]:
        """Kinds by the alphabet: the question does not tell in which order they stand, so two orders would be one question."""
        return sorted(rng.sample(_CLASSES, n))

    def _verdict(self, facts: Facts) -> tuple[str, int]:
        found = [model.solve(1) for model in self.models(facts)]
        can, cannot = (bool(f.solutions) for f in found)
        verdict = "unknown" if can and cannot else "yes" if can else "no" if cannot else "never"
        return verdict, sum(f.effort for f in found)

    @staticmethod
    def _premises(facts: Facts) -> Model:
        n, model = len(facts["names"]), Model()
        model.block(2**n, 3)
        for i in range(n):
            model.add(_classes(n, "some", i, i))
        model.add(*(_classes(n, *clue) for clue in facts["premises"]))
        return model


def _classes(n: int, kind: str, a: int, b: int) -> Count:
    """A sentence about the 2^n kinds of creatures: which of them there must be, or must not be."""
    among = [k for k in range(2**n) if k >> a & 1 and (k >> b & 1) == (kind in ("no", "some"))]
    masks = (2,) * len(among)
    return Count(among, masks, 1, len(among)) if kind in ("some", "some not") else Count(among, masks, 0, 0)


def _said_class(clue: Clue, names: Sequence[str]) -> str:
    kind, a, b = clue[0], names[clue[1]], names[clue[2]]
    return {
        "all": f"All {a} are {b}.",
        "no": f"No {a} are {b}.",
        "some": f"Some {a} are {b}.",
        "some not": f"Some {a} are not {b}.",
    }[kind]


_GATES = ("AND", "OR", "XOR", "NAND", "NOR")


@dataclass(frozen=True, slots=True, kw_only=True)
class Circuit(Clued):
    r"""Which inputs a circuit of gates had, from some of its values. The level counts inputs.

    >>> facts = {"names": ["x1", "x2"], "gates": [["XOR", 0, 1], ["AND", 1, 2]], "clues": [["is", 3, 1]]}
    >>> Circuit().fields(facts)["gates"].split("\n")[1], Circuit().solve(facts).answer
    ('- g2 = x2 AND g1', 'x1: 0, x2: 1')
    """

    name: str = "riddles/circuit"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    shapes: ClassVar[tuple[Any, ...]] = ((2, 3), (3, 5), (4, 8), (6, 12), (8, 18))
    templates: ClassVar[tuple[str, ...]] = (
        "A circuit has the inputs {people}, each 0 or 1, and these gates (XOR: exactly one is 1; NAND: not both are 1; NOR: "
        "none is 1):\n\n{gates}\n\nIt is observed that {seen}. Find the inputs and write them as {example} for all of them.",
        "All values below are 0 or 1.\n\n{gates}\n\nHere NAND is 1 unless both are 1, NOR is 1 only if both are 0, and XOR "
        "is 1 if exactly one of the two is 1. Which values of {people} make {seen}? Answer in the form {example}",
        "The inputs {people} of a logic circuit are unknown bits. Its gates compute (NAND is the negation of AND, NOR that "
        "of OR)\n\n{gates}\n\nand a measurement shows {seen}. Only one input is possible. State it like this: {example}",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """Gates and inputs at random; values of gates, the last ones first, that are needed."""
        n, count = self.shapes[level - 1]
        gates: list[list[Any]] = []
        truth = [rng.randint(0, 1) for _ in range(n)]
        for k in range(count):
            a, b = sorted(rng.sample(range(n + k), 2))
            if k < n and not any(k in gate[1:] for gate in gates):
                a, b = sorted((k, rng.choice([i for i in range(n + k) if i != k])))  # every input is used
            gates.append([rng.choice(_GATES), a, b])
            truth.append(_gate(gates[-1][0], truth[a], truth[b]))
        facts = {"names": [f"x{i + 1}" for i in range(n)], "gates": gates}
        pool: list[Clue] = [["is", n + k, truth[n + k]] for k in reversed(range(count))]
        return self.with_clues(facts, truth, pool, rng)

    def base(self, facts: Facts) -> Model:
        """The gates."""
        n, model = len(facts["names"]), Model()
        model.block(n + len(facts["gates"]), 3)
        for k, (kind, a, b) in enumerate(facts["gates"]):
            model.add(Rows((a, b, n + k), *_TABLES[kind]))
        return model

    def demand(self, facts: Facts, clue: Clue) -> Constraint:
        """The value of a gate."""
        return Count((clue[1],), (1 << clue[2],), 1, 1)

    def sentence(self, facts: Facts, clue: Clue, turn: int) -> str:
        """Gate and value."""
        return f"g{clue[1] - len(facts['names']) + 1} = {clue[2]}"

    def write_solution(self, facts: Facts, values: Sequence[int]) -> Solution:
        """The inputs."""
        return table_of(facts["names"], values[: len(facts["names"])])

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Inputs exchanged."""
        n = len(facts["names"])
        other = [*rng.sample(range(n), n), *range(n, n + len(facts["gates"]))]
        gates = [[kind, *renumber((a, b), other)] for kind, a, b in facts["gates"]]
        return {**facts, "gates": gates, "clues": rng.sample(facts["clues"], len(facts["clues"]))}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The gates, and what is seen."""
        n, names = len(facts["names"]), facts["names"]
        wires = [*names, *(f"g{k + 1}" for k in range(len(facts["gates"])))]
        gates = bullets(f"g{k + 1} = {wires[a]} {kind} {wires[b]}" for k, (kind, a, b) in enumerate(facts["gates"]))
        seen = list_words([self.sentence(facts, clue, 0) for clue in facts["clues"]])
        example = ", ".join(f"{name}: {i % 2}" for i, name in enumerate(names[:2])) + (", ..." if n > 2 else "")
        return {"people": list_words(names), "gates": gates, "seen": seen, "example": example}

    def verifier(self, form: Form) -> Verifier:
        """All inputs."""
        return table_in(form)


def _gate(kind: str, a: int, b: int) -> int:
    match kind:
        case "AND":
            return a & b
        case "OR":
            return a | b
        case "XOR":
            return a ^ b
        case "NAND":
            return 1 - (a & b)
        case _:
            return 1 - (a | b)


_TABLES: dict[str, tuple[list[tuple[int, int, int]], Known]] = {
    kind: ([(1 << a, 1 << b, 1 << _gate(kind, a, b)) for a, b in product((0, 1), repeat=2)], {}) for kind in _GATES
}
"""The rows of each kind of gate, and what domains they narrow to: three domains of at most two values each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Colouring(Clued):
    r"""How a map is coloured with three colours, when some countries' colours are known. The level counts countries.

    >>> facts = {"names": ["A", "B", "C"], "colours": ["red", "blue", "green"], "borders": [[0, 1], [0, 2], [1, 2]],
    ...          "clues": [["is", 0, 2], ["not", 1, 0]]}
    >>> Colouring().fields(facts)["clues"].split("\n")[1], Colouring().solve(facts).answer
    ('- B is not red.', 'A: green, B: blue, C: red')
    """

    name: str = "riddles/colouring"
    levels: tuple[int, ...] = (1, 2, 3, 4, 5)
    shapes: ClassVar[tuple[Any, ...]] = ((4, 4), (6, 9), (8, 13), (10, 17), (13, 23))
    templates: ClassVar[tuple[str, ...]] = (
        "The countries {people} are coloured {colours} such that countries with a common border have different colours. "
        "These have a common border: {borders}.\n\n{clues}\n\nGive the colour of every country, in the form {first}: red, "
        "{second}: ...",
        "On a map every country is {colours_or}. Neighbours never have the same colour. The pairs of neighbours are "
        "{borders}.\n\nKnown:\n{clues}\n\nHow are all {n} countries ({people}) coloured? Write {first}: red, {second}: ... "
        "and so on.",
        "Each of {people} gets one of the colours {colours}. No two joined by a line may get the same, and the lines are "
        "{borders}. Besides:\n\n{clues}\n\nThere is one way to do it. State it as {first}: red, {second}: ... for all of "
        "them.",
    )

    def make(self, level: int, rng: Random) -> dict[str, Any] | None:
        """Colours and borders at random; colours of countries, or that they lack one, that are needed."""
        n, count = self.shapes[level - 1]
        truth = [i % 3 for i in range(n)]
        rng.shuffle(truth)
        pairs = [(a, b) for a in range(n) for b in range(a + 1, n) if truth[a] != truth[b]]
        if len(pairs) < count:
            return None
        borders = sorted(rng.sample(pairs, count))
        facts = {
            "names": list("ABCDEFGHIJKLM"[:n]),
            "colours": ["blue", "green", "red"],
            "borders": [list(pair) for pair in borders],
        }
        pool: list[Clue] = [["not", a, c] for a in range(n) for c in range(3) if c != truth[a]]
        pool = [*rng.sample(pool, n), *(["is", a, truth[a]] for a in rng.sample(range(n), n))]
        return self.with_clues(facts, truth, pool, rng)

    def base(self, facts: Facts) -> Model:
        """Neighbours apart."""
        model = Model()
        model.block(len(facts["names"]), 7)
        model.add(*(Pair(a, b, (6, 5, 3)) for a, b in facts["borders"]))
        return model

    def demand(self, facts: Facts, clue: Clue) -> Constraint:
        """A country's colour."""
        return Count((clue[1],), (1 << clue[2],), *((1, 1) if clue[0] == "is" else (0, 0)))

    def sentence(self, facts: Facts, clue: Clue, turn: int) -> str:
        """In words."""
        return f"{facts['names'][clue[1]]} is {'' if clue[0] == 'is' else 'not '}{facts['colours'][clue[2]]}."

    def write_solution(self, facts: Facts, values: Sequence[int]) -> Solution:
        """All colours."""
        return table_of(facts["names"], [facts["colours"][v] for v in values])

    def vary(self, facts: Facts, rng: Random) -> dict[str, Any] | None:
        """Colours exchanged, countries renamed."""
        n = len(facts["names"])
        other = rng.sample(range(n), n)
        shade = rng.sample(range(3), 3)
        clues: list[Clue] = [[kind, *renumber((a,), other), shade[c]] for kind, a, c in facts["clues"]]
        borders = sorted(renumber(pair, other) for pair in facts["borders"])
        return {**facts, "borders": borders, "clues": rng.sample(clues, len(clues))}

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The map."""
        names = facts["names"]
        borders = list_words([f"{names[a]}-{names[b]}" for a, b in facts["borders"]])
        return {
            **Clued.fields(self, facts),
            "people": list_words(names),
            "borders": borders,
            "colours": list_words(facts["colours"]),
            "colours_or": list_words(facts["colours"], "or"),
        }

    def verifier(self, form: Form) -> Verifier:
        """All countries."""
        return table_in(form)
