"""An invented world: things, how they are related, and an encyclopedia page on each with a search index.

After FictionalHot (arXiv 2510.00568): what is asked about exists nowhere else, so that it can be found and not be known.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random

from assay.core.seeds import derive

__all__ = ["KINDS", "PHRASES", "RELATIONS", "Lore", "lore"]

RELATIONS: Mapping[str, Mapping[str, str]] = {
    "film": {"director": "person", "lead": "person", "studio": "company", "film_year": "year"},
    "book": {"author": "person", "publisher": "company", "book_year": "year"},
    "person": {"birthplace": "city", "spouse": "person", "university": "university", "birth_year": "year"},
    "city": {"country": "country", "river": "river", "mayor": "person", "city_year": "year"},
    "country": {"capital": "city", "currency": "currency"},
    "company": {"founder": "person", "seat": "city", "company_year": "year"},
    "university": {"campus": "city", "university_year": "year"},
}
"""Kinds of things that have a page; each relation with the kind of what it leads to."""

KINDS = {
    "film": 14,
    "book": 14,
    "person": 40,
    "city": 12,
    "country": 4,
    "company": 10,
    "university": 6,
}
"""Of a hundred pages, so many are of each kind."""

PHRASES = {
    "director": ("the director of {}", "was directed by {}"),
    "lead": ("the leading actor of {}", "has {} in its leading part"),
    "studio": ("the studio of {}", "was made by the studio {}"),
    "film_year": ("the release year of {}", "came out in {}"),
    "author": ("the author of {}", "was written by {}"),
    "publisher": ("the publisher of {}", "was published by {}"),
    "book_year": ("the publication year of {}", "appeared in {}"),
    "birthplace": ("the birthplace of {}", "was born in {}"),
    "spouse": ("the spouse of {}", "is married to {}"),
    "university": ("the university attended by {}", "studied at {}"),
    "birth_year": ("the birth year of {}", "was born in the year {}"),
    "country": ("the country of {}", "lies in {}"),
    "river": ("the river of {}", "lies on the river {}"),
    "mayor": ("the mayor of {}", "has {} as its mayor"),
    "city_year": ("the founding year of {}", "was founded in {}"),
    "capital": ("the capital of {}", "has the capital {}"),
    "currency": ("the currency of {}", "pays in the currency {}"),
    "founder": ("the founder of {}", "was founded by {}"),
    "seat": ("the seat of {}", "has its seat in {}"),
    "company_year": ("the founding year of {}", "was founded in the year {}"),
    "campus": ("the home city of {}", "is in {}"),
    "university_year": ("the founding year of {}", "was founded in {}"),
}
"""Each relation as a noun for a question, and as a verb for a page."""

_ONSETS = ("b", "br", "d", "dr", "f", "g", "gr", "k", "kl", "l", "m", "n", "p", "pr", "r", "s", "sk", "t", "tr", "v", "z")
_CORES, _CODAS = ("a", "e", "i", "o", "u", "ai", "ou"), ("l", "m", "n", "r", "s", "th", "x", "nd", "sk", "")
_SINCE = {"film_year": 1900, "company_year": 1800, "book_year": 1800}
_ENDINGS = {"city": ("bad", "mere", "wick", "holm"), "country": ("ia", "ova", "estan"), "river": ("ava", "una", "o")}
_TITLES = ("lantern", "orchard", "winter", "harbour", "mirror", "garden", "silence", "bridge", "shadow", "voyage", "letters")
_FIRMS, _WORD = ("works", "brothers", "union", "house", "company"), re.compile(r"\w+")


@dataclass(frozen=True, slots=True, eq=False)
class Lore:
    """Things by kind, and what each is related to.

    Attributes:
        size: pages.
        names: of each kind that has pages.
        facts: name to relation to name or year.
        kind: of each name.
        pages: name to text.
        found: candidates of a clue, filled as they are asked for (`having`).
        index: the pages as a full-text table.

    Source: ReSeek (arXiv 2510.00568), in part.
    """

    size: int
    names: Mapping[str, tuple[str, ...]]
    facts: Mapping[str, Mapping[str, str]]
    kind: Mapping[str, str]
    pages: Mapping[str, str]
    index: sqlite3.Connection
    found: dict[tuple[str, ...], Mapping[str, frozenset[str]]] = field(
        default_factory=dict[tuple[str, ...], Mapping[str, frozenset[str]]]
    )

    def follow(self, name: str, path: Iterable[str]) -> str:
        """Where relations lead, one after another."""
        for relation in path:
            name = self.facts[name][relation]
        return name

    def having(self, kind: str, path: tuple[str, ...], decade: bool = False) -> Mapping[str, frozenset[str]]:
        """Each value that a path leads to from things of a kind (years by decade, if wanted), with those things."""
        key = (kind, *path, *(("decade",) if decade else ()))
        if key not in self.found:
            sets: dict[str, set[str]] = {}
            for name in self.names[kind]:
                value = self.follow(name, path)
                sets.setdefault(f"{value[:-1]}0" if decade else value, set()).add(name)
            self.found[key] = {value: frozenset(names) for value, names in sets.items()}
        return self.found[key]

    def search(self, query: str, k: int) -> list[str]:
        """Names of the pages that suit a query best, by BM25 over its words, titles counting thrice."""
        words = dict.fromkeys(_WORD.findall(query.casefold()))
        if not words:
            return []
        match = " OR ".join(f'"{word}"' for word in list(words)[:24])
        rows = self.index.execute(
            "SELECT title FROM pages WHERE pages MATCH ? ORDER BY bm25(pages, 3.0, 1.0), rowid LIMIT ?", (match, k)
        )
        return [title for (title,) in rows]


@lru_cache(maxsize=16)
def lore(seed: int, size: int) -> Lore:
    """The world of a seed with so many pages; made once in a process, and shared by all tasks.

    >>> world = lore(0, 100)
    >>> len(world.pages), world.follow(world.names["film"][0], ("director", "spouse")) in world.names["person"]
    (100, True)
    """
    rng = Random(derive("lore", seed, "", size))
    names = _names(rng, size)
    facts = _relate_names(rng, names)
    kind = {name: k for k, every in names.items() for name in every}
    pages = {name: _page(rng, kind[name], name, facts[name]) for k in KINDS for name in names[k]}
    index = sqlite3.connect(":memory:", check_same_thread=False)
    index.execute("CREATE VIRTUAL TABLE pages USING fts5(title, body, tokenize='unicode61')")
    index.executemany("INSERT INTO pages VALUES (?, ?)", sorted(pages.items()))
    return Lore(size, {k: names[k] for k in KINDS}, facts, kind, pages, index)


def _coin_word(rng: Random, taken: set[str], ending: str = "") -> str:
    """A new word that can be spoken."""
    while True:
        parts = [rng.choice(_ONSETS) + rng.choice(_CORES) for _ in range(2)]
        word = ("".join(parts) + (ending or rng.choice(_CODAS))).capitalize()
        if word not in taken:
            taken.add(word)
            return word


def _names(rng: Random, size: int) -> dict[str, tuple[str, ...]]:
    """Different names; people share family names, titles and firms share words."""
    counts = {kind: share * size // 100 for kind, share in KINDS.items()}
    taken = set[str]()
    families = [_coin_word(rng, taken) for _ in range(max(4, counts["person"] // 3))]
    made: dict[str, list[str]] = {"river": [], "currency": []}
    for kind, count in {**counts, "river": counts["city"] // 2, "currency": counts["country"]}.items():
        made[kind] = []
        for _ in range(count):
            word = _coin_word(rng, taken, rng.choice(_ENDINGS[kind]) if kind in _ENDINGS else "")
            made[kind].append(
                {
                    "person": f"{word} {rng.choice(families)}",
                    "film": f"{word}'s {rng.choice(_TITLES).capitalize()}",
                    "book": f"The {rng.choice(_TITLES).capitalize()} of {word}",
                    "company": f"{word} {rng.choice(_FIRMS).capitalize()}",
                    "university": f"{word} University",
                }.get(kind, word)
            )
    return {kind: tuple(every) for kind, every in made.items()}


def _relate_names(rng: Random, names: Mapping[str, tuple[str, ...]]) -> dict[str, dict[str, str]]:
    facts = {
        name: {
            relation: str(rng.randint(_SINCE.get(relation, 1500), 2019)) if to == "year" else rng.choice(names[to])
            for relation, to in relations.items()
        }
        for kind, relations in RELATIONS.items()
        for name in names[kind]
    }
    couples = rng.sample(names["person"], len(names["person"]) // 2 * 2)
    for one, other in zip(couples[::2], couples[1::2], strict=True):
        facts[one]["spouse"], facts[other]["spouse"] = other, one
    for person in names["person"]:
        facts[person]["birth_year"] = str(rng.randint(1850, 1999))
    capitals = rng.sample(names["city"], len(names["country"]))
    for country, capital, currency in zip(names["country"], capitals, names["currency"], strict=True):
        facts[country]["capital"], facts[country]["currency"] = capital, currency
        facts[capital]["country"] = country
    return facts


def _page(rng: Random, kind: str, name: str, facts: Mapping[str, str]) -> str:
    """What there is to know of a thing, a sentence each, in any order."""
    relations = rng.sample(sorted(facts), len(facts))
    said = [f"{'It' if kind != 'person' else 'This person'} {PHRASES[r][1].format(facts[r])}." for r in relations]
    return " ".join([f"{name} is a {kind}.", *said])
