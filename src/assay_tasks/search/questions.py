"""What is asked of an invented world: chains of relations, oblique clues, masked passages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.core.errors import DataError
from assay.tasks.draws import TRIES
from assay.tasks.problem import Facts
from assay.tasks.problems import Problems
from assay.tasks.turns import list_names
from assay_tasks.search.environment import SearchProblem
from assay_tasks.search.lore import KINDS, PHRASES, RELATIONS, Lore, lore

__all__ = ["Clues", "Hops", "Masks", "search"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hops(SearchProblem):
    """What a chain of relations leads to, such as the spouse of the director of a film. Levels have 1 to 5 relations.

    The encyclopedia grows from 200 to 3000 pages; all but those of the chain distract. No chain meets a thing twice.
    """

    name: str = "search/hops"
    levels: tuple[int, ...] = tuple(range(1, 8))
    sizes: ClassVar[tuple[int, ...]] = (200, 200, 1000, 1000, 3000, 3000, 3000)
    shown: ClassVar[int] = 3
    _hops: ClassVar[tuple[int, ...]] = (1, 2, 2, 3, 3, 4, 5)

    templates: ClassVar[tuple[str, ...]] = (
        "{who} is {phrase}?",
        "Find out {whom} {phrase} is.",
        "I am looking for {phrase}. {who} is it?",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A walk from a thing of any kind."""
        size, hops = self.pages(level), self._hops[level - 1]
        world = lore(self.lore_seed, size)
        for _ in range(TRIES):
            kind = rng.choice(list(KINDS))
            start = name = rng.choice(world.names[kind])
            path, met = list[str](), {start}
            while len(path) < hops and kind in RELATIONS:
                last = len(path) == hops - 1
                ways = sorted(r for r, to in RELATIONS[kind].items() if last or to in RELATIONS)
                path.append(rng.choice(ways))
                kind, name = RELATIONS[kind][path[-1]], world.facts[name][path[-1]]
                if name in met:
                    break
                met.add(name)
            else:
                if len(path) == hops:
                    return {"pages": size, "start": start, "path": path}
        raise DataError(f"{self.name}: no chain of {hops} relations among {size} pages in {TRIES} tries")

    def find_path(self, facts: Facts) -> tuple[list[str], list[tuple[str, str]], int]:
        """Follows the chain, page by page."""
        world, at, looked = self.lore(facts), facts["start"], list[tuple[str, str]]()
        for relation in facts["path"]:
            looked.append((at, at))
            at = world.facts[at][relation]
        return [at], looked, len(looked) * len(str(facts["pages"]))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The chain as a nest of nouns."""
        world = self.lore(facts)
        kind = world.kind[facts["start"]]
        phrase = facts["start"] if kind in ("person", "city", "country", "university") else f"the {kind} {facts['start']}"
        for relation in facts["path"]:
            phrase, kind = PHRASES[relation][0].format(phrase), RELATIONS[kind][relation]
        return {"phrase": phrase, "who": "Who" if kind == "person" else "What", "whom": "who" if kind == "person" else "what"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Clues(SearchProblem):
    """The one thing that all of some clues fit, each of which fits others too. From level 3 on a clue has two relations.

    After BMGQ (2025): clues are collected from the thing backwards, and it is proved over all pages that each leaves more than
    one candidate and all together exactly one, of which none can be left out.

    Source: BMGQ (arXiv 2510.24151), in part.
    """

    name: str = "search/clues"
    levels: tuple[int, ...] = tuple(range(1, 6))
    sizes: ClassVar[tuple[int, ...]] = (400, 1000, 2000, 3000, 5000)
    _forms: ClassVar[tuple[tuple[int, bool], ...]] = ((1, False), (1, True), (2, False), (2, False), (2, True))
    """How many relations a clue has, and whether years are given by decade."""

    templates: ClassVar[tuple[str, ...]] = (
        "Which {kind} fits all of this? {clues} Give its name.",
        "One {kind} alone matches every clue. {clues} What is its name?",
        "Name the {kind} of which all of the following is true. {clues}",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """Clues that are added while they narrow the candidates."""
        size = self.pages(level)
        world = lore(self.lore_seed, size)
        for _ in range(TRIES):
            kind = rng.choice(("film", "book", "person", "company"))
            clues = _clues(world, rng, kind, rng.choice(world.names[kind]), *self._forms[level - 1])
            if clues:
                return {"pages": size, "kind": kind, "clues": clues}
        raise DataError(f"{self.name}: {TRIES} things of {size} pages have no clues that suit")

    def find_path(self, facts: Facts) -> tuple[list[str], list[tuple[str, str]], int]:
        """Candidates that every clue leaves; the oracle searches what a clue names and reads what confirms it."""
        world, kind = self.lore(facts), facts["kind"]
        sets = [_candidates(world, kind, *clue) for clue in facts["clues"]]
        (name,) = _shared_items(sets)
        between: dict[str, list[str]] = {}  # things that clues go through, with what the clues name
        for path, value, decade in facts["clues"]:
            if len(path) == 2 and not decade:
                between.setdefault(world.facts[name][path[0]], []).append(value)
        looked = [(" ".join([world.kind[page], *values]), page) for page, values in between.items()]
        named = [*between, *(value for path, value, decade in facts["clues"] if len(path) == 1 and not decade)]
        effort = sum(map(len, sets)) + len(sets) * len(world.names[kind])
        return [name], [*looked, (" ".join([kind, *named]), name)], effort

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """Each clue as a sentence."""
        said = [_sentence(facts["kind"], path, value, decade) for path, value, decade in facts["clues"]]
        return {"kind": facts["kind"], "clues": " ".join(said)}


def _candidates(world: Lore, kind: str, path: list[str], value: str, decade: bool) -> frozenset[str]:
    return world.having(kind, tuple(path), decade)[value]


def _shared_items(sets: list[frozenset[str]]) -> frozenset[str]:
    return sets[0].intersection(*sets[1:])


def _clues(world: Lore, rng: Random, kind: str, name: str, deep: int, decades: bool) -> list[list[Any]]:
    """Clues to a thing, each true of others, all together of it alone and none of them idle; [] where there are none."""
    paths: list[tuple[str, ...]] = [(r,) for r in RELATIONS[kind]]
    if deep > 1:
        paths = [(r, s) for r, to in RELATIONS[kind].items() for s in RELATIONS.get(to, ())]
    chosen: list[list[Any]] = []
    left = frozenset(world.names[kind])
    for path in rng.sample(paths, len(paths)):
        value = world.follow(name, path)
        decade = decades and path[-1].endswith("_year")
        value = f"{value[:-1]}0" if decade else value
        fits = world.having(kind, path, decade)[value]
        if len(fits) > 1 and len(left & fits) < len(left):
            chosen.append([list(path), value, decade])
            left &= fits
        if len(left) == 1:
            break
    if len(left) > 1:
        return []
    for clue in list(chosen):
        others = [_candidates(world, kind, *c) for c in chosen if c is not clue]
        if others and len(_shared_items(others)) == 1:
            chosen.remove(clue)
    return chosen if len(chosen) > 1 else []


def _sentence(kind: str, path: list[str], value: str, decade: bool) -> str:
    said = PHRASES[path[-1]][1].format(f"the {value}s" if decade else value)
    if decade:
        said = said.replace("in the year the", "in the")
    thing = "this person" if kind == "person" else "it"
    subject = thing if len(path) == 1 else PHRASES[path[0]][0].format(thing)
    return f"{subject[0].upper()}{subject[1:]} {said}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Masks(SearchProblem):
    """Fill masked names and numbers in a passage. Levels have 1 to 3 masks, the upper half also hides whom it is about.

    After MaskSearch (arXiv 2505.20285): spans are drawn without repetition, numbers with the greatest weight; the title is
    never masked, nor a span that occurs twice. Where the title is hidden, it is proved that what is shown fits one page alone.
    """

    name: str = "search/masks"
    levels: tuple[int, ...] = tuple(range(1, 7))
    sizes: ClassVar[tuple[int, ...]] = (200, 1000, 1000, 200, 1000, 3000)
    hidden: ClassVar[bool] = True

    templates: ClassVar[tuple[str, ...]] = (
        "Fill the gaps of this passage of the encyclopedia:\n{passage}\nGive what stands for {gaps}, with commas between.",
        "Some words are missing from this text:\n{passage}\nWhat belongs in place of {gaps}? Answer in this order, separated by "
        "commas.",
        "Restore the masked words {gaps}:\n{passage}\nWrite them in order with commas between them.",
    )

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A page and some of its spans."""
        size, count, closed = self.pages(level), (level - 1) % 3 + 1, level > 3
        world = lore(self.lore_seed, size)
        for _ in range(TRIES):
            kind = rng.choice(("film", "book", "person", "city", "company"))
            name = rng.choice(world.names[kind])
            values = world.facts[name]
            spans = [r for r in values if world.pages[name].count(values[r]) == 1 and values[r] != name]
            masked = list[str]()
            while len(masked) < min(count, len(spans)):
                left = [r for r in sorted(spans) if r not in masked]
                masked += rng.choices(left, [3 if r.endswith("_year") else len(values[r].split()) for r in left])
            shown = [r for r in values if r not in masked]
            if len(masked) == count and (not closed or len(_same(world, kind, name, shown)) == 1):
                return {"pages": size, "page": name, "masked": masked, "closed": closed}
        raise DataError(f"{self.name}: no passage of {size} pages has {count} spans to mask in {TRIES} tries")

    def find_path(self, facts: Facts) -> tuple[list[str], list[tuple[str, str]], int]:
        """Finds the page by what is shown of it, and reads what is missing."""
        world = self.lore(facts)
        _, masked, name = self._passage(facts)
        kind = world.kind[name]
        shown = [r for r in RELATIONS[kind] if r not in facts["masked"]]
        query = f"{kind} {' '.join(world.facts[name][r] for r in shown)}" if facts["closed"] else name
        (page,) = _same(world, kind, name, shown) if facts["closed"] else (name,)
        looked = [(query, page)]
        effort = len(masked) + (len(world.names[kind]) if facts["closed"] else len(str(facts["pages"])))
        return [world.facts[page][r] for r in masked], looked, effort

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The passage with its gaps numbered."""
        passage, masked, _ = self._passage(facts)
        return {"passage": passage, "gaps": list_names([f"[{i}]" for i in range(1, len(masked) + 1)])}

    def _passage(self, facts: Facts) -> tuple[str, list[str], str]:
        """The passage, and what is masked in the order of the gaps."""
        world, name = self.lore(facts), facts["page"]
        values, text = world.facts[name], world.pages[name]
        masked: list[str] = sorted(facts["masked"], key=lambda r: text.index(values[r]))
        if facts["closed"]:
            text = text.replace(f"{name} is a", "This is a", 1)
        for number, relation in enumerate(masked, 1):
            text = text.replace(values[relation], f"[{number}]")
        return text, masked, name


def _same(world: Lore, kind: str, name: str, shown: list[str]) -> frozenset[str]:
    """Things of a kind of which the same is shown."""
    sets = [world.having(kind, (r,))[world.facts[name][r]] for r in shown]
    return _shared_items([frozenset(world.names[kind]), *sets])


def search() -> Problems:
    """Questions over an invented world, answered by searching it."""
    return Problems(
        name="search",
        summary="Questions over an invented world, answered by searching its encyclopedia.",
        problems=(Hops(), Clues(), Masks()),
    )
