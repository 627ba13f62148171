"""What verifiers declare, read into one record."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from assay.core.errors import ConfigError
from assay.core.rollout import Rollout
from assay.core.score import Score
from assay.core.task import Task
from assay.verify import ExactMatch, Formatted, MathAnswer, RewardFunction, Routed, ScoringPool, Together
from assay.verify.abilities import Abilities, abilities_of
from assay.verify.rollouts import task_and_rollout


class Base:
    def __call__(self, task: Task, rollout: Rollout) -> Score:
        return Score(components={"reward": 1.0})


def test_a_verifier_that_declares_nothing_has_the_defaults() -> None:
    found = abilities_of(Base())
    assert found == Abilities() and found.components == ("reward",) and found.floors == {"reward": 0.0}
    assert found.named_floors == {} and found.prepare() is found.ready() is found.isolation() is found.for_workers(3) is None


def test_abilities_stand_in_one_record_or_in_attributes_of_their_names() -> None:
    class Attributes(Base):
        names = ("correct", "style")
        floor: ClassVar = {"style": -1.0}
        trusted = True

    class Record(Base):
        abilities = Abilities(names=("correct", "style"), floor={"style": -1.0}, trusted=True)
        ready = False  # of its own, and no ability

    for verifier in (Attributes(), Record()):
        found = abilities_of(verifier)
        assert found.trusted and found.floors == {"correct": -1.0, "style": -1.0}
        with ScoringPool(verifier) as pool:
            assert pool.floor() == {"correct": -1.0, "style": -1.0}
            assert pool.score([task_and_rollout("4", "4")])["case"].primary == 1.0


def test_built_in_verifiers_declare_themselves() -> None:
    assert abilities_of(ExactMatch()).by_text and abilities_of(ExactMatch()).trusted
    assert abilities_of(RewardFunction(lambda p, c, row: 0.0, floor=-2.0)).floors == {"reward": -2.0}
    math = abilities_of(MathAnswer())
    assert math.key is not None and math.at_once is not None and math.deadline == MathAnswer().deadline


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("ready", False, "Odd.ready is a bool, and a scoring pool calls what has this name"),
        ("abilities", {"trusted": True}, r"Odd.abilities is a dict; give an Abilities\(...\)"),
        ("floor", float("nan"), "Abilities.floor=nan; give the lowest value as a finite number"),
        ("floor", {"a": "low"}, "Abilities.floor="),
        ("deadline", -1.0, "Abilities.deadline=-1.0; use seconds"),
    ],
)
def test_abilities_of_another_form_are_named(name: str, value: Any, said: str) -> None:
    odd = type("Odd", (Base,), {name: value})()
    with pytest.raises(ConfigError, match=said):
        abilities_of(odd)


def test_what_is_made_of_others_passes_on_a_declared_record() -> None:
    class Record(Base):
        abilities = Abilities(names=("reward",), floor=-2.0, trusted=True, by_text=True)

    both = Together((ExactMatch(), Record()))
    found = abilities_of(both)
    assert found.trusted and found.by_text and found.floors == {"correct": 0.0, "reward": -2.0}
    slow = Routed({"a": Record(), "b": MathAnswer()})
    assert not abilities_of(slow).trusted and abilities_of(slow).deadline == MathAnswer().deadline
    assert abilities_of(slow).floors == {"reward": -2.0, "correct": 0.0}
    assert Formatted(verifier=Record()).floor == {"reward": -2.0, "answer": -2.0, "format": 0.0}
