"""Questions out of anybody's own graph of facts: where relations lead, who is meant, in which order they hang together."""

from __future__ import annotations

import csv
from abc import ABC
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from assay.core.errors import ConfigError, DataError
from assay.core.protocols import Verifier
from assay.core.util.jsonl import object_of
from assay.tasks.draws import TRIES
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.tasks.problems import Problems
from assay.verify.text.items import ListMatch

__all__ = ["Clues", "InOrder", "Triple", "Walk", "load_triples", "self_supervised_graph"]

Triple = tuple[str, str, str]
"""A fact: head, relation, tail."""

_LEAST = 12
_LETTERS = "ABCDEFGHIJ"


def load_triples(path: str | Path) -> tuple[Triple, ...]:
    """The facts of a file: ``.tsv`` and ``.txt`` with tabs, ``.csv``, or ``.jsonl`` with ``head``, ``relation`` and ``tail``.

    Blank lines are left out, and what stands twice counts once.

    Raises:
        DataError: a file that cannot be read, or a line that is no fact; names it.
    """
    place = Path(path)
    try:
        with place.open(encoding="utf-8", newline="") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read facts from {place}: {error}") from error
    found = (_fact(line, place.suffix, f"{place}, line {number}") for number, line in enumerate(lines, 1) if line.strip())
    return tuple(dict.fromkeys(found))


def _fact(line: str, suffix: str, place: str) -> Triple:
    if suffix == ".jsonl":
        try:
            row = object_of(line)
        except DataError as error:
            raise DataError(f"{place}: {error}") from None
        parts: list[Any] = [row.get(name) for name in ("head", "relation", "tail")]
    else:
        (parts,) = csv.reader([line], delimiter="," if suffix == ".csv" else "\t")
    try:
        return _check_fact(parts)
    except DataError as error:
        raise DataError(f"{place}: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class _OwnGraph(Problem, ABC):
    """Base: facts are shown, some that matter among others from the same graph, and the answer follows from those shown alone.

    Attributes:
        triples: the graph's facts.

    Raises:
        ConfigError: fewer than 12 different facts.
    """

    triples: tuple[Triple, ...] = field(default=(), repr=False)
    domain: str = "graph"
    levels: tuple[int, ...] = (1, 2, 3, 4)
    _of: Mapping[str, tuple[Triple, ...]] = field(init=False, repr=False, compare=False)
    _single: Mapping[str, tuple[Triple, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        Problem.__post_init__(self)
        every = tuple(dict.fromkeys(self.triples))
        if len(every) < _LEAST:
            raise ConfigError(f"{self.name} needs a graph of {_LEAST} facts or more, got {len(every)}")
        touching, leading = defaultdict[str, list[Triple]](list), defaultdict[tuple[str, str], list[Triple]](list)
        for fact in every:
            leading[fact[:2]].append(fact)
            for entity in dict.fromkeys((fact[0], fact[2])):
                touching[entity].append(fact)
        single = defaultdict[str, list[Triple]](list)
        for facts in leading.values():
            if len(facts) == 1:  # a head and a relation that lead to one place only
                single[facts[0][0]].append(facts[0])
        object.__setattr__(self, "triples", every)
        object.__setattr__(self, "_of", {e: tuple(facts) for e, facts in touching.items()})
        object.__setattr__(self, "_single", {e: tuple(facts) for e, facts in single.items()})

    def path(self, hops: int, rng: Random) -> list[Triple]:
        """A path of facts that lead to one place each, through no entity twice.

        Raises:
            DataError: none was found.
        """
        starts = list(self._single)
        for _ in range(TRIES if starts else 0):
            at = rng.choice(starts)
            seen, found = {at}, list[Triple]()
            while len(found) < hops:
                ways = [fact for fact in self._single.get(at, ()) if fact[2] not in seen]
                if not ways:
                    break
                found.append(rng.choice(ways))
                at = found[-1][2]
                seen.add(at)
            else:
                return found
        raise DataError(f"{self.name}: the graph has no path of {hops} facts, each the only one of its head and relation")

    def others(self, chosen: Sequence[Triple], count: int, rng: Random) -> list[Triple]:
        """So many other facts, or all that there are: first those about entities of the chosen."""
        near = dict.fromkeys(fact for head, _, tail in chosen for e in (head, tail) for fact in self._of[e])
        pool = [fact for fact in near if fact not in chosen]
        rng.shuffle(pool)
        for fact in rng.sample(self.triples, min(len(self.triples), 2 * count + len(chosen))):
            if fact not in chosen and fact not in near:
                pool.append(fact)
        return pool[:count]

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The facts, one to a line."""
        return {"facts": "\n".join(map(_fact_text, facts["shown"]))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk(_OwnGraph):
    """Where one relation after the other leads, over facts among others. The level is the number of relations to follow.

    >>> facts = [["Ann", "lives in", "Rome"], ["Rome", "lies in", "Italy"], ["Ben", "lives in", "Bern"]]
    >>> walk = Walk(triples=tuple((str(i), "before", str(i + 1)) for i in range(12)))
    >>> walk.solve({"shown": facts, "start": "Ann", "ways": ["lives in", "lies in"]}).answer
    'Italy'
    """

    name: str = "own/walk"
    levels: tuple[int, ...] = (1, 2, 3, 4, 6)

    templates: ClassVar[tuple[str, ...]] = (
        "These facts are known, each as head | relation | tail:\n{facts}\nBegin at {start} and follow these relations, one after "
        "the other, from head to tail: {ways}. Where do you arrive?",
        "Facts, written head | relation | tail:\n{facts}\nStart from {start}. Go along: {ways}. Name the last place of the way.",
        "{facts}\n\nEach line above leads from its first name to its last by the relation between them. Which name does one "
        "reach from {start} by {ways}, in this order?",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A path, and twice as many other facts and two."""
        path = self.path(level, rng)
        shown = [*path, *self.others(path, 2 * level + 2, rng)]
        rng.shuffle(shown)
        return {"shown": shown, "start": path[0][0], "ways": [relation for _, relation, _ in path]}

    def solve(self, facts: Facts) -> Solution:
        """Step by step."""
        lead = {(head, relation): tail for head, relation, tail in facts["shown"]}
        at, steps = facts["start"], list[str]()
        for relation in facts["ways"]:
            steps.append(_fact_text((at, relation, lead[at, relation])))
            at = lead[at, relation]
        return Solution(answer=at, steps="\n".join(steps), effort=len(facts["ways"]) * len(facts["shown"]))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The facts, the start and the relations."""
        return {
            "facts": "\n".join(map(_fact_text, facts["shown"])),
            "start": facts["start"],
            "ways": ", then ".join(facts["ways"]),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Clues(_OwnGraph):
    """Who is masked in several facts at once. The level is the number of these facts; no other name fits all of them.

    Where the graph has them, facts of others are shown that fit some of the clues.
    """

    name: str = "own/clues"

    templates: ClassVar[tuple[str, ...]] = (
        "Known facts, each as head | relation | tail:\n{facts}\nOne and the same name was masked as ? in these:\n{clues}\n"
        "Which name is it?",
        "Find the one name that can stand for ? in all of these lines:\n{clues}\nThis is known (head | relation | tail):\n"
        "{facts}",
        "{facts}\n\nAll that is known stands above, a fact to a line. Whom does ? stand for, if all of this is among "
        "it?\n{clues}",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Facts about one entity, and others that fit some of the clues."""
        known = [e for e, facts in self._of.items() if len(facts) >= level]
        for _ in range(TRIES if known else 0):
            meant = rng.choice(known)
            chosen = rng.sample(self._of[meant], level)
            if any(head == tail for head, _, tail in chosen):
                continue
            clues = [["" if meant == head else head, relation, "" if meant == tail else tail] for head, relation, tail in chosen]
            rivals = [fact for fact in self.triples if fact not in chosen and any(_fits(fact, clue) for clue in clues)]
            rng.shuffle(rivals)
            shown = list(dict.fromkeys((*chosen, *rivals[: 2 * level], *self.others(chosen, 2 * level + 2, rng))))
            if _fitting_names(shown, clues) == [meant]:
                rng.shuffle(shown)
                return {"shown": shown, "clues": clues}
        raise DataError(f"{self.name}: the graph has no entity that {level} of its facts tell from all others")

    def solve(self, facts: Facts) -> Solution:
        """All names that fit all clues."""
        (meant,) = _fitting_names(facts["shown"], facts["clues"])
        steps = "\n".join(_fact_text([part or meant for part in clue]) for clue in facts["clues"])
        return Solution(answer=meant, steps=steps, effort=len(facts["clues"]) * len(facts["shown"]))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The facts, and the clues with a question mark."""
        clues = "\n".join(_fact_text([part or "?" for part in clue]) for clue in facts["clues"])
        return {"facts": "\n".join(map(_fact_text, facts["shown"])), "clues": clues}


@dataclass(frozen=True, slots=True, kw_only=True)
class InOrder(_OwnGraph):
    """The order in which facts hang together, each beginning where the one before ended. The level is their number, less 2."""

    name: str = "own/chain"

    templates: ClassVar[tuple[str, ...]] = (
        "These facts (head | relation | tail) form one chain, in which each begins where the one before it ends:\n{facts}\nGive "
        "their letters in the order of the chain, separated by semicolons.",
        "Put these facts into a chain, so that the tail of each is the head of the next:\n{facts}\nAnswer with all letters in "
        "order, with semicolons between them.",
        "{facts}\n\nArranged rightly, every line begins with the name that ends the line before. In which order? List the "
        "letters, separated by semicolons.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A path in any order but its own."""
        path = self.path(level + 2, rng)
        shown = path[:]
        while shown == path:
            rng.shuffle(shown)
        return {"shown": shown}

    def solve(self, facts: Facts) -> Solution:
        """From the only head that is no tail."""
        after = {head: (_LETTERS[i], tail) for i, (head, _, tail) in enumerate(facts["shown"])}
        (at,) = after.keys() - {tail for _, tail in after.values()}
        letters = list[str]()
        while at in after:
            letter, at = after[at]
            letters.append(letter)
        return Solution(answer="; ".join(letters), gold=letters, effort=len(letters) ** 2)

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The facts by letter."""
        return {"facts": "\n".join(f"{_LETTERS[i]}. {_fact_text(fact)}" for i, fact in enumerate(facts["shown"]))}

    def verifier(self, form: Form) -> Verifier:
        """The letters in order."""
        return ListMatch(where=form.place, separator=";")


def self_supervised_graph(triples: Iterable[Sequence[str]], name: str = "own") -> Problems:
    """A family out of one's own graph of facts, without a label in it: arms ``name/walk``, ``clues`` and ``chain``.

    Every answer follows from the facts that a prompt shows, by as many hops or clues as the level says, so no knowledge of the
    graph is needed and none is leaked between splits.

    Raises:
        ConfigError: fewer than 12 different facts.
        DataError: something that is no fact; names it.
    """
    every = tuple(_check_fact(fact) for fact in triples)
    return Problems(
        name=name,
        summary="Questions out of a graph of one's own.",
        problems=(
            Walk(name=f"{name}/walk", triples=every),
            Clues(name=f"{name}/clues", triples=every),
            InOrder(name=f"{name}/chain", triples=every),
        ),
    )


def _check_fact(fact: Sequence[str]) -> Triple:
    given: Any = fact
    if isinstance(given, str) or len(given) != 3 or not all(isinstance(part, str) and part.strip() for part in given):
        raise DataError(f"a fact is a head, a relation and a tail, got {given!r}; give three texts")
    head, relation, tail = (" ".join(part.split()) for part in fact)
    if any("|" in part for part in fact):
        raise DataError(f"the fact {given!r} holds '|', which stands between the parts of a fact in prompts; write it otherwise")
    return head, relation, tail


def _fact_text(fact: Sequence[str]) -> str:
    return " | ".join(fact)


def _fits(fact: Sequence[str], clue: Sequence[str]) -> bool:
    """Whether a fact is a clue's, with something in the place that is masked."""
    return all(asked in ("", said) for said, asked in zip(fact, clue, strict=True))


def _fitting_names(shown: Sequence[Sequence[str]], clues: Sequence[Sequence[str]]) -> list[str]:
    """The names that fit all clues."""
    first, *others = (frozenset(_mask_words(shown, clue)) for clue in clues)
    return sorted(first.intersection(*others))


def _mask_words(shown: Sequence[Sequence[str]], clue: Sequence[str]) -> Iterator[str]:
    return (fact[list(clue).index("")] for fact in shown if _fits(fact, clue))
