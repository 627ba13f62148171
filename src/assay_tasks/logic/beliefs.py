"""Stories of nested beliefs: where one person thinks that another thinks a thing is (theory of mind)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from assay.core.errors import ConfigError, DataError
from assay.core.protocols import Verifier
from assay.tasks.draws import TRIES
from assay.tasks.problem import Facts, Form, Problem, Solution
from assay.tasks.problems import Problems
from assay.verify.text.items import SetMatch

__all__ = ["NestedBelief", "beliefs"]

Event = list[Any]
"""``["enter" / "leave", person]``, ``["move", person, place]``, ``["tell", person, person]`` (in private, where the thing is), or
``["spy", person, mover, place]`` (the first, outside, secretly watches the second move the thing)."""

_PEOPLE = (
    "Ann",
    "Ben",
    "Cora",
    "Dan",
    "Ella",
    "Finn",
    "Gina",
    "Hugo",
    "Iris",
    "Jack",
    "Kira",
    "Leo",
    "Mia",
    "Noah",
    "Olga",
    "Paul",
)
_THINGS = ("key", "coin", "letter", "ball", "ring", "map", "watch", "ticket", "pen", "stone")
_PLACES = ("box", "basket", "drawer", "bag", "crate", "jar", "trunk", "cupboard", "chest", "bucket")
_ROOMS = ("kitchen", "study", "garage", "cellar", "attic", "hall", "office", "workshop")
_STAGES = ((0, 4), (1, 4), (1, 7), (2, 6), (2, 9), (3, 8), (3, 12), (4, 14))


@dataclass(frozen=True, slots=True, kw_only=True)
class NestedBelief(Problem):
    """Where does Ann think that Ben thinks the key is? The level is the number of a stage, from 1.

    A stage is the order of the belief, 0 for where the thing really is, and the number of events. People come and go, move the
    thing between closed containers, tell one another in private, or watch in secret through a window. Who is in the room sees
    what happens there and who else sees it; who watches in secret is not seen. A person told in private believes it.

    Attributes:
        stages: order (0 to 6) and events (3 to 40) of each level.

    Raises:
        ConfigError: levels that are no stages, or a stage out of range.

    Source: the order of beliefs of Hi-ToM (He et al. 2023, arXiv:2310.16755) and the private and secret events of ExploreToM
    (Sclar et al. 2024, arXiv:2412.12175), which Lu et al. 2025 (arXiv:2504.01698) train on.

    >>> facts = {"people": ["Ann", "Ben"], "places": ["box", "jar"], "thing": "key", "room": "hall", "in": [0, 1], "first": 0}
    >>> facts |= {"events": [["leave", 0], ["move", 1, 1]]}
    >>> [NestedBelief().solve(facts | {"chain": chain}).answer for chain in ([], [0], [1], [1, 0])]
    ['jar', 'box', 'jar', 'box']
    """

    name: str = "beliefs/nested"
    domain: str = "logic"
    levels: tuple[int, ...] = tuple(range(1, len(_STAGES) + 1))
    stages: tuple[tuple[int, int], ...] = _STAGES

    templates: ClassVar[tuple[str, ...]] = (
        "{story}\n{rules}\n{question}",
        "Read this story.\n{story}\n\nIn it, {rules_later}\n{question}",
        "{rules}\nHere is what happened.\n{story}\n{question}",
    )

    def __post_init__(self) -> None:
        super(NestedBelief, self).__post_init__()
        if self.levels[-1] > len(self.stages):
            raise ConfigError(f"{self.name}.levels go up to {self.levels[-1]}, but there are {len(self.stages)} stages")
        for order, events in self.stages:
            if not 0 <= order <= 6 or not 3 <= events <= 40:
                raise ConfigError(f"{self.name}.stages: {(order, events)} must be an order from 0 to 6 and events from 3 to 40")

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        """A random story; of the beliefs in it, three in four are asked where they differ from what is so."""
        order, events = self.stages[level - 1]
        people = rng.sample(_PEOPLE, min(6, max(3, order + 1)))
        facts: dict[str, Any] = {
            "people": people,
            "places": rng.sample(_PLACES, min(6, 3 + level // 2)),
            "thing": rng.choice(_THINGS),
            "room": rng.choice(_ROOMS),
            "first": 0,
        }
        differ = order > 0 and rng.random() < 0.75
        for _ in range(TRIES):
            inside = [i for i in range(len(people)) if rng.random() < 0.8] or [0]
            told = _story(len(people), len(facts["places"]), set(inside), events, rng)
            made = facts | {"in": inside, "events": told, "chain": _chain(order, len(people), rng)}
            found, real = _believed_place(made), _believed_place(made | {"chain": []})
            # a belief of somebody who never saw the thing is no question
            if found is not None and (order == 0 or differ == (found != real)):
                return made
        raise DataError(f"{self.name}: none of {TRIES} random stories of stage {(order, events)} has such a belief")

    def solve(self, facts: Facts) -> Solution:
        """The place of the last event that all of the chain saw, and each knew that the next did."""
        found = _believed_place(facts)
        if found is None:
            raise DataError(f"{self.name}: in this story that person never saw the thing: {facts['events']}")
        chain, places = facts["chain"], facts["places"]
        steps = "\n".join(f"{places[place]} seen openly by {_names(facts, seen)}" for place, seen, _ in _witnessed_facts(facts))
        answer = str(places[found])
        return Solution(answer=answer, gold=[answer], steps=steps, effort=len(facts["events"]) * (1 + len(chain)))

    def fields(self, facts: Facts) -> Mapping[str, str]:
        """The story in sentences, what people can know, and the question."""
        rules = (
            "the containers are closed. Everybody in the room sees all that happens there and who is there; somebody who watches "
            "in secret is noticed by nobody. Those who are told something in private believe it, and nobody else knows of it."
        )
        return {"story": _text(facts), "rules": rules[0].upper() + rules[1:], "rules_later": rules, "question": _question(facts)}

    def word(self, facts: Facts, variant: int) -> str:
        """The story and the question, with the containers to choose from."""
        how = f" Answer with one of: {', '.join(facts['places'])}."
        return self.templates[variant].format_map(self.fields(facts)) + how

    def verifier(self, form: Form) -> Verifier:
        """The container's name, in either case, full stop or not."""
        return SetMatch(where=form.place)


def beliefs() -> Problems:
    """Stories in which people believe what is not so, and others know that they do.

    Carries: reinforcement learning on theory of mind (arXiv 2504.01698), in part.
    """
    return Problems(name="beliefs", summary="What one person thinks that another thinks.", problems=(NestedBelief(),))


def _chain(order: int, people: int, rng: Random) -> list[int]:
    """Who thinks that who thinks ...: nobody follows himself."""
    chain: list[int] = []
    for _ in range(order):
        chain.append(rng.choice([i for i in range(people) if not chain or i != chain[-1]]))
    return chain


def _story(people: int, places: int, inside: set[int], events: int, rng: Random) -> list[Event]:
    """Events that can happen: only who is inside moves the thing or leaves, only who knows where it is tells it."""
    out: list[Event] = []
    place, knowing = 0, set(inside)
    while len(out) < events:
        outside = sorted(set(range(people)) - inside)
        kind = rng.choice(("leave", "leave", "enter", "move", "move", "move", "tell", "spy"))
        if kind == "leave" and inside:
            who = rng.choice(sorted(inside))
            inside.discard(who)
            out.append([kind, who])
        elif kind == "enter" and outside:
            inside.add(who := rng.choice(outside))
            out.append([kind, who])
        elif kind in ("move", "spy") and inside and (kind == "move" or outside):
            place = rng.choice([i for i in range(places) if i != place])
            mover, spies = rng.choice(sorted(inside)), [rng.choice(outside)] if kind == "spy" else []
            knowing = inside | set(spies)
            out.append([kind, *spies, mover, place])
        elif kind == "tell" and (pairs := [(a, b) for a in sorted(knowing) for b in range(people) if b not in knowing]):
            teller, hearer = rng.choice(pairs)
            knowing.add(hearer)
            out.append([kind, teller, hearer])
    return out


def _witnessed_facts(facts: Facts) -> list[tuple[int, frozenset[int], frozenset[int]]]:
    """Each time that a place of the thing was shown or told: the place, who saw it openly, and who in secret."""
    inside, place = set(facts["in"]), int(facts["first"])
    out = [(place, frozenset(inside), frozenset[int]())]
    for kind, *rest in facts["events"]:
        if kind == "enter":
            inside.add(rest[0])
        elif kind == "leave":
            inside.discard(rest[0])
        elif kind == "tell":
            out.append((place, frozenset(rest), frozenset[int]()))
        else:
            place = rest[-1]
            out.append((place, frozenset(inside), frozenset(rest[:1] if kind == "spy" else ())))
    return out


def _believed_place(facts: Facts) -> int | None:
    """The place at the end of a chain of beliefs; None where one of it never saw the thing with the others."""
    chain: Sequence[int] = facts["chain"]
    for place, seen, secretly in reversed(_witnessed_facts(facts)):
        # the first may have watched in secret; of the others somebody must have seen that they saw it
        if not chain or (chain[0] in seen | secretly and seen.issuperset(chain[1:])):
            return place
    return None


def _names(facts: Facts, who: Sequence[int] | frozenset[int]) -> str:
    names = [facts["people"][i] for i in sorted(who)]
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names) or "nobody"


def _text(facts: Facts) -> str:
    people, places, thing, room = facts["people"], facts["places"], facts["thing"], facts["room"]
    are = "are" if len(facts["in"]) > 1 else "is"
    out = [f"{_names(facts, facts['in'])} {are} in the {room}. The {thing} is in the {places[facts['first']]}, as they can see."]
    for kind, *rest in facts["events"]:
        if kind == "enter":
            out.append(f"{people[rest[0]]} enters the {room}.")
        elif kind == "leave":
            out.append(f"{people[rest[0]]} leaves the {room}.")
        elif kind == "move":
            out.append(f"{people[rest[0]]} moves the {thing} to the {places[rest[1]]}.")
        elif kind == "tell":
            out.append(f"In private, {people[rest[0]]} tells {people[rest[1]]} which container the {thing} is in.")
        else:
            spy, mover, place = rest
            seen = f"{people[spy]} secretly watches through the window"
            out.append(f"{people[mover]} moves the {thing} to the {places[place]}, while {seen}.")
    outside = sorted(set(range(len(people))) - set(facts["in"]))
    if outside:
        out.insert(1, f"{_names(facts, outside)} {'are' if len(outside) > 1 else 'is'} elsewhere.")
    return " ".join(out)


def _question(facts: Facts) -> str:
    thing, names = facts["thing"], [facts["people"][i] for i in facts["chain"]]
    if not names:
        return f"Where is the {thing} really?"
    inner = "".join(f" that {name} thinks" for name in names[1:])
    return f"Where does {names[0]} think{inner} the {thing} is?"
