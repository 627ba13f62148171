"""Knights and knaves: who speaks the truth, where statements speak of each other (Smullyan's puzzles)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any, ClassVar

from assay.core.errors import ConfigError, DataError
from assay.core.protocols import Verifier
from assay.tasks.draws import TRIES
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.tasks.problems import Problems
from assay.verify.structure.roles import Assignment

__all__ = ["Knights", "knaves"]

Statement = list[Any]
"""``["is", person]`` (speaks the truth), ``["count", k]`` (exactly k of all do), ``["same", a, b]``, ``["not", s]``, ``["says",
person, s]`` (would say so) or ``["and" / "or" / "if" / "iff" / "xor", s, t]``."""

_PEOPLE = (
    "Abe",
    "Bea",
    "Cal",
    "Dee",
    "Eli",
    "Fay",
    "Gus",
    "Hal",
    "Ivy",
    "Jed",
    "Kit",
    "Lou",
    "Max",
    "Nat",
    "Ora",
    "Pam",
    "Rex",
    "Sal",
    "Ted",
    "Una",
    "Val",
    "Wes",
    "Zoe",
)
_KINDS = (("knight", "knave"), ("angel", "demon"), ("saint", "rogue"))
_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_STAGES = ((2, 1), (3, 1), (3, 2), (4, 2), (5, 2), (5, 3), (6, 3), (8, 3), (9, 4), (11, 4))


@dataclass(frozen=True, slots=True, kw_only=True)
class Knights(Problem):
    """Who is a knight and who a knave, when everybody makes one statement. The level is the number of a stage, from 1.

    A stage is how many people there are and how deep their statements nest. Everything that a knight says is true, everything
    that a knave says is false; only one answer fits, which is found by looking at all of them.

    Attributes:
        stages: people (2 to 12) and depth of statements (1 to 6) of each level.

    Raises:
        ConfigError: levels that are no stages, or a stage out of range.

    >>> facts = {"names": "Abe Bea", "kinds": 0, "says": [["not", ["is", 1]], ["same", 0, 1]]}
    >>> Knights().solve(facts).answer
    'Abe: knight, Bea: knave'
    """

    name: str = "knaves/roles"
    domain: str = "logic"
    levels: tuple[int, ...] = tuple(range(1, 11))
    stages: tuple[tuple[int, int], ...] = _STAGES

    templates: ClassVar[tuple[str, ...]] = (
        "On an island everybody is either {a_true} or {a_false}. Whatever {a_true} says is true, and whatever {a_false} says "
        "is false. You meet {names}.\n{lines}\nWho is what?",
        "{names} live in a land where {a_true} speaks nothing but the truth and {a_false} nothing but lies; everybody is one "
        "or the other. You hear this:\n{lines}\nWhat is each of them?",
        "Each of {names} is {a_true}, all of whose statements are true, or {a_false}, all of whose statements are "
        "false.\n{lines}\nThere is only one way in which this can be. Find it.",
    )

    def __post_init__(self) -> None:
        super(Knights, self).__post_init__()
        if self.levels[-1] > len(self.stages):
            raise ConfigError(f"{self.name}.levels go up to {self.levels[-1]}, but there are {len(self.stages)} stages")
        for people, depth in self.stages:
            if not 2 <= people <= 12 or not 1 <= depth <= 6:
                raise ConfigError(f"{self.name}.stages: {(people, depth)} must be people from 2 to 12 and a depth from 1 to 6")

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Random statements, until only one answer fits."""
        people, depth = self.stages[level - 1]
        names = sorted(rng.sample(_PEOPLE, people))
        for _ in range(TRIES):
            says = [_statement(people, depth, rng, speaker) for speaker in range(people)]
            if _fitting(people, says)[0].bit_count() == 1:
                return {"names": " ".join(names), "kinds": rng.randrange(len(_KINDS)), "says": says}
        raise DataError(f"{self.name}: none of {TRIES} random sets of statements of stage {(people, depth)} has one answer")

    def solve(self, facts: Facts) -> Solution:
        """All assignments side by side, as the bits of one number."""
        names, (true, false) = str(facts["names"]).split(" "), _kinds(facts)
        fits, parts = _fitting(len(names), facts["says"])
        found = fits.bit_length() - 1
        roles = {name: true if found >> i & 1 else false for i, name in enumerate(names)}
        said = ", ".join([f"{name}: {role}" for name, role in roles.items()])
        return Solution(answer=said, gold=roles, effort=parts << len(names))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Names, kinds, and what each says."""
        names, (true, false) = str(facts["names"]).split(" "), _kinds(facts)
        says: list[Statement] = facts["says"]
        lines = [f"{name} says: {_statement_text(s, names, true, false)}." for name, s in zip(names, says, strict=True)]
        listed = f"{', '.join(names[:-1])} and {names[-1]}"
        kinds = {"true": true, "a_true": _a(true), "a_false": _a(false)}
        return {**kinds, "names": listed, "lines": "\n".join(lines), "first": names[0]}

    def word(self, facts: Facts, variant: int) -> str:
        """The puzzle, and how the answer is written."""
        fields = self.fields(facts)
        how = " Write each name and kind, as in {first}: {true}, with commas between.".format_map(fields)
        return self.templates[variant].format_map(fields) + how

    def verifier(self, form: Form) -> Verifier:
        """The same kind for every name."""
        return Assignment(roles=tuple([kind for pair in _KINDS for kind in pair]), where=form.place)


def knaves() -> Problems:
    """Puzzles of people who always or never speak the truth."""
    return Problems(name="knaves", summary="Who is a knight and who a knave.", problems=(Knights(),))


def _kinds(facts: Facts) -> tuple[str, str]:
    which: int = facts["kinds"]
    return _KINDS[which]


def _statement(people: int, depth: int, rng: Random, speaker: int) -> Statement:
    """A random statement of at most this depth; on the surface a speaker speaks of others."""
    if depth == 1 or rng.random() < 0.1:
        return _atom(people, rng, speaker)
    kind = rng.choice(("and", "or", "if", "iff", "xor", "not", "says"))
    if kind == "not":
        return ["not", _statement(people, depth - 1, rng, -1)]
    if kind == "says":
        return ["says", _other(people, speaker, rng), _statement(people, depth - 1, rng, -1)]
    one = other = _statement(people, depth - 1, rng, speaker)
    while other == one:
        other = _statement(people, rng.randint(1, depth - 1), rng, -1)
    return [kind, one, other]


def _atom(people: int, rng: Random, speaker: int) -> Statement:
    kind = rng.randrange(8)
    if kind == 0:
        return ["count", rng.randrange(people + 1)]
    if kind < 3:
        a = speaker if speaker >= 0 and rng.getrandbits(1) else _other(people, speaker, rng)
        return ["same", a, _other(people, a, rng)]
    one = ["is", _other(people, speaker, rng)]
    return one if kind < 5 else ["not", one]


def _other(people: int, but: int, rng: Random) -> int:
    """Anyone but one."""
    if but < 0:
        return rng.randrange(people)
    found = rng.randrange(people - 1)
    return found + (found >= but)


@lru_cache(maxsize=16)
def _tables(people: int) -> tuple[int, ...]:
    """For each person the assignments, of all 2^people, in which that person speaks the truth: one bit for each."""
    return tuple(sum(1 << case for case in range(1 << people) if case >> i & 1) for i in range(people))


@lru_cache(maxsize=256)
def _count_assignments(people: int, count: int) -> int:
    """The assignments in which exactly so many speak the truth."""
    return sum(1 << case for case in range(1 << people) if case.bit_count() == count)


def _fitting(people: int, says: list[Statement]) -> tuple[int, int]:
    """The assignments in which everybody's statement is true just if that person speaks the truth, and the parts looked at."""
    whole = (1 << (1 << people)) - 1
    fits, parts = whole, 0
    for speaker, said in enumerate(says):
        true, size = _truth(people, said, whole)
        fits &= whole & ~(true ^ _tables(people)[speaker])
        parts += size
    return fits, parts


def _truth(people: int, said: Statement, whole: int) -> tuple[int, int]:
    """The assignments in which a statement is true, and how many parts it has."""
    tables, kind, rest = _tables(people), str(said[0]), said[1:]
    match kind:
        case "is":
            return tables[int(rest[0])], 1
        case "count":
            return _count_assignments(people, rest[0]), 1
        case "same":
            return whole & ~(tables[int(rest[0])] ^ tables[int(rest[1])]), 1
        case "not":
            inner, size = _truth(people, rest[0], whole)
            return whole & ~inner, size + 1
        case "says":
            inner, size = _truth(people, rest[1], whole)
            return whole & ~(inner ^ tables[int(rest[0])]), size + 1
        case _:
            (a, x), (b, y) = _truth(people, rest[0], whole), _truth(people, rest[1], whole)
            return _JOINT[kind](a, b) & whole, x + y + 1


def _and(a: int, b: int) -> int:
    return a & b


def _or(a: int, b: int) -> int:
    return a | b


def _if(a: int, b: int) -> int:
    return ~a | b


def _iff(a: int, b: int) -> int:
    return ~(a ^ b)


def _xor(a: int, b: int) -> int:
    return a ^ b


_JOINT = {"and": _and, "or": _or, "if": _if, "iff": _iff, "xor": _xor}
_JOINED = {
    "and": "{a} and {b}",
    "or": "{a}, or {b}, or both",
    "if": "if {a}, then {b}",
    "iff": "{a} if and only if {b}",
    "xor": "either {a} or {b}, but not both",
}


def _statement_text(said: Statement, names: list[str], true: str, false: str) -> str:
    """A statement in words; parts that have parts of their own stand in brackets."""
    kind, rest = str(said[0]), said[1:]

    def part(inner: Statement) -> str:
        text = _statement_text(inner, names, true, false)
        plain = inner[0] in ("is", "count", "same") or (inner[0] == "not" and inner[1][0] == "is")
        return text if plain else f"({text})"

    match kind:
        case "is":
            return f"{names[rest[0]]} is {_a(true)}"
        case "count":
            return _count(rest[0], len(names), true)
        case "same":
            return f"{names[rest[0]]} and {names[rest[1]]} are of the same kind"
        case "not" if rest[0][0] == "is":
            return f"{names[rest[0][1]]} is {_a(false)}"
        case "not":
            return f"it is not true that {part(rest[0])}"
        case "says":
            return f"{names[rest[0]]} would say that {part(rest[1])}"
        case _:
            return _JOINED[kind].format(a=part(rest[0]), b=part(rest[1]))


def _a(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _count(count: int, people: int, true: str) -> str:
    if count == 0:
        return f"none of the {_WORDS[people]} is {_a(true)}"
    return f"exactly {_WORDS[count]} of the {_WORDS[people]} {f'is {_a(true)}' if count == 1 else f'are {true}s'}"
