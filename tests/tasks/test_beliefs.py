"""Stories of beliefs: those of the field by hand, and the rule beside one that filters what each person knows of the next."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from assay.core.errors import ConfigError, DataError
from assay.tasks import family
from assay.verify.rollouts import rollout_of
from assay_tasks.logic.beliefs import NestedBelief

SALLY: dict[str, Any] = {
    "people": ["Sally", "Anne"],
    "places": ["basket", "box"],
    "thing": "marble",
    "room": "hall",
    "in": [0, 1],
    "first": 0,
    "events": [["leave", 0], ["move", 1, 1], ["enter", 0]],
}
"""Sally puts her marble into the basket and leaves; Anne moves it (Baron-Cohen et al. 1985)."""


def answer(facts: dict[str, Any], *chain: int) -> str:
    return NestedBelief().solve(facts | {"chain": list(chain)}).answer


def test_sally_looks_where_she_left_it() -> None:
    assert [answer(SALLY), answer(SALLY, 0), answer(SALLY, 1), answer(SALLY, 1, 0)] == ["box", "basket", "box", "basket"]


def test_the_ice_cream_van() -> None:
    """John and Mary see the van in the park; both are told of the church, apart (Perner and Wimmer 1985)."""
    story = SALLY | {"people": ["John", "Mary", "driver"], "places": ["park", "church"], "in": [0, 1, 2]}
    story |= {"events": [["leave", 0], ["leave", 1], ["move", 2, 1], ["tell", 2, 1], ["tell", 2, 0]]}
    assert [answer(story), answer(story, 0), answer(story, 1)] == ["church", "church", "church"]
    assert [answer(story, 0, 1), answer(story, 1, 0)] == ["park", "park"]


def test_who_watches_in_secret_knows_and_nobody_knows_that() -> None:
    story = SALLY | {"events": [["leave", 0], ["spy", 0, 1, 1]]}
    assert [answer(story, 0), answer(story, 0, 1), answer(story, 1, 0)] == ["box", "box", "basket"]
    assert answer(story, 0, 1, 0) == "basket"  # Sally knows that Anne does not know of her


def known(events: list[tuple[int, set[int], set[int]]], chain: list[int]) -> int:
    """The last of the events that are left when each person keeps those that, by the one before, the next saw."""
    seen = [e for e in events if chain[0] in e[1] | e[2]]
    for person in chain[1:]:
        seen = [e for e in seen if person in e[1]]
    return seen[-1][0]


def test_drawn_stories_against_the_other_rule() -> None:
    problem, rng, wrong = NestedBelief(), Random(0), Counter[bool]()
    for n in range(400):
        level = 2 + n % 7
        facts = problem.draw(level, rng)
        inside, events = set(facts["in"]), [(facts["first"], set(facts["in"]), set[int]())]
        for kind, *rest in facts["events"]:
            if kind in ("enter", "leave"):
                assert (rest[0] in inside) == (kind == "leave")
                (inside.add if kind == "enter" else inside.remove)(rest[0])
            elif kind == "tell":
                place, *_ = events[-1]
                assert known(events, [rest[0]]) == place, "only who knows the place tells it"
                events.append((place, set(rest), set()))
            else:
                watchers = set(rest[:-2])
                assert rest[-2] in inside and not watchers & inside and rest[-1] != events[-1][0]
                events.append((rest[-1], set(inside), watchers))
        expected = facts["places"][known(events, facts["chain"])]
        assert problem.solve(facts).answer == expected
        wrong[expected == facts["places"][events[-1][0]]] += 1
        assert len(facts["chain"]) == problem.stages[level - 1][0]
        assert all(a != b for a, b in zip(facts["chain"], facts["chain"][1:], strict=False))
    assert 0.65 < wrong[False] / 400 < 0.85


def test_answers_as_models_write_them() -> None:
    source = family("beliefs")
    task, judge = source.task("beliefs/nested", 4, "test", 0), source.verifier()
    right = task.private["answer"][0]
    other = next(place for place in task.public["facts"]["places"] if place != right)
    for said, value in (
        (f"<answer>{right}</answer>", 1.0),
        (f"<answer>{right.title()}.</answer>", 1.0),
        (f"Not the {right}! <answer>{other}</answer>", 0.0),
        (f"<answer>{right}, {other}</answer>", 0.0),
    ):
        assert judge(task, rollout_of(task, said)).primary == value, said


def test_what_is_wrong_is_told() -> None:
    with pytest.raises(ConfigError, match=r"beliefs/nested\.stages: \(9, 4\) must be an order from 0 to 6"):
        NestedBelief(levels=(1,), stages=((9, 4),))
    with pytest.raises(ConfigError, match="levels go up to 3, but there are 1 stages"):
        NestedBelief(levels=(1, 3), stages=((1, 4),))
    with pytest.raises(DataError, match="never saw the thing"):
        answer(SALLY | {"in": [1]}, 0)
    with pytest.raises(DataError, match=r"none of \d+ random stories"):
        NestedBelief(levels=(1,), stages=((6, 3),)).draw(1, OneAlone())


class OneAlone(Random):
    """Draws nobody but the first into the room, so that nobody knows of anybody."""

    def random(self) -> float:
        return 0.9
