"""Plans carried out in small worlds: by hand, and random walks against what they say."""

from __future__ import annotations

import random
from typing import Any

import pytest

from assay.core.errors import DataError, UnknownNameError
from assay.verify import PlanVerifier, task_and_rollout
from assay.verify.structure.planning_domains import WORLDS, domain_of, shortest

GOLDS: dict[str, tuple[dict[str, Any], str, int]] = {
    "jugs": ({"sizes": [3, 5], "target": 4}, "fill B, pour B A, empty A, pour B A, fill B, pour B A", 6),
    "hanoi": ({"pegs": [[3, 2, 1], [], []], "goal": [[], [], [3, 2, 1]]}, "A C, A B, C B, A C, B A, B C, A C", 7),
    "pancakes": ({"stack": [3, 1, 2]}, "3\n2", 2),
    "lights": ({"rows": ["010", "111", "010"]}, "R2C2", 1),
    "slide": ({"rows": [[1, 2, 3], [4, 0, 6], [7, 5, 8]]}, "1. 5\n2. 8", 2),
    "blocks": ({"stacks": [["A", "B"], ["C"]], "goal": [["A"], ["C", "B"]]}, "B to C", 1),
    "warehouse": ({"rows": ["@..", ".$o", "..."]}, "DR", 2),
}


@pytest.mark.parametrize("name", WORLDS)
def test_plans_by_hand(name: str) -> None:
    rest, plan, least = GOLDS[name]
    gold = {"world": name, **rest}
    found, states = shortest(domain_of(gold))
    assert found is not None and len(found) == least and states > 1
    for text in (plan, ", ".join(found)):
        assert dict(PlanVerifier()(*task_and_rollout(gold, text)).components) == {"correct": 1.0, "valid": 1.0}
        assert PlanVerifier()(*task_and_rollout({**gold, "most": least}, text)).info["verdict"] == "equal"
        short = PlanVerifier()(*task_and_rollout({**gold, "most": least - 1}, text))
        assert (short.info["verdict"], short.components["valid"], short.primary) == ("suboptimal", 1.0, 0.0)
    assert PlanVerifier()(*task_and_rollout(gold, f"{plan}, fly")).info["verdict"] == "invalid"
    assert PlanVerifier()(*task_and_rollout(gold, "")).info["verdict"] == "unparsed"


@pytest.mark.parametrize("name", WORLDS)
def test_any_walk_is_judged_by_where_it_ends(name: str) -> None:
    rng, gold = random.Random(name), {"world": name, **GOLDS[name][0]}
    world, ended = domain_of(gold), 0
    for _ in range(200):
        state, words = world.start, list[str]()
        for _ in range(rng.randint(1, 9)):
            word, state = rng.choice(list(world.moves(state).items()))
            words.append(word)
        verdict = PlanVerifier()(*task_and_rollout(gold, "; ".join(words))).info["verdict"]
        assert verdict == ("equal" if world.done(state) else "different")
        ended += world.done(state)
    assert ended > 0 or name in ("hanoi", "jugs")


def test_what_is_not_possible() -> None:
    for name, words in (
        ("jugs", ("pour A B", "empty A", "fill C")),
        ("hanoi", ("B A", "A A", "A D")),
        ("pancakes", ("1", "4")),
        ("lights", ("r4c1",)),
        ("slide", ("1", "9")),
        ("blocks", ("A to C", "B to A", "C to table", "B to B")),
        ("warehouse", ("U", "L", "D,R,R")),
    ):
        for word in words:
            assert PlanVerifier()(*task_and_rollout({"world": name, **GOLDS[name][0]}, word)).info["verdict"] == "invalid", word
    rows = ["@$#", "$.o", "o.."]
    assert (
        PlanVerifier()(*task_and_rollout({"world": "warehouse", "rows": rows}, "R")).info["verdict"] == "invalid"
    )  # a wall behind the box
    assert shortest(domain_of({"world": "warehouse", "rows": ["@$.", "o.."]}))[0] is None
    assert shortest(domain_of({"world": "jugs", "sizes": [2, 4], "target": 3}))[0] is None
    assert shortest(domain_of({"world": "pancakes", "stack": [2, 4, 1, 3]}), most=3)[0] is None


def test_golds() -> None:
    for gold in (3, {}, {"world": "mars"}):
        with pytest.raises(DataError, match="has no world"):
            PlanVerifier()(*task_and_rollout(gold, "R"))
    for gold in (
        {"world": "jugs"},
        {"world": "lights", "rows": []},
        {"world": "slide", "rows": 3},
        {"world": "hanoi", "pegs": 1, "goal": 1},
    ):
        with pytest.raises(DataError, match="does not describe the world"):
            PlanVerifier()(*task_and_rollout(gold, "R"))
    for rows in (["@.", "$."], ["..", "$o"], ["@@", "$o"]):
        with pytest.raises(DataError, match="a warehouse needs one man"):
            PlanVerifier()(*task_and_rollout({"world": "warehouse", "rows": rows}, "R"))
    with pytest.raises(DataError, match="'most' is '3'"):
        PlanVerifier()(*task_and_rollout({"world": "pancakes", "stack": [2, 1], "most": "3"}, "2"))
    with pytest.raises(UnknownNameError):
        PlanVerifier(where="x")  # pyright: ignore
