"""What is made of several verifiers has what they have: `Together` and `Formatted`."""

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from assay.core.rollout import Rollout
from assay.core.score import Fault, Score
from assay.core.task import Task
from assay.verify import ExactMatch, FormatIs, Formatted, MathAnswer, ScoringPool, TagFormat, Together, task_and_rollout
from assay.verify.code import CodeCall, CodeOutput
from assay.verify.composite import CompositeVerifier

FORM = FormatIs("[0-9]*")
SAID = "<think>x</think><answer>{}</answer>"


@dataclass(frozen=True)
class Starts:
    """Says that it starts programs, contained in its own way."""

    tag: str
    held: bool = True
    deadline: float = 3.0
    names: ClassVar[tuple[str, ...]] = ("ran",)

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        return Score(components={"ran": 1.0})

    def isolation(self) -> dict[str, Any]:
        return {"tag": self.tag, "held": self.held, "line": f"isolation: {self.tag}"}


@pytest.mark.parametrize("make", [lambda part: Together((part, FORM)), lambda part: Formatted(part, FORM)])
def test_what_starts_programs_is_seen_through_it(make: Any) -> None:
    made: CompositeVerifier = make(CodeCall(workers=6))
    assert not made.trusted and made.isolation() == CodeCall().isolation()
    alone = made.for_workers(10**6)
    assert alone == make(CodeCall(workers=1))
    quiet: CompositeVerifier = make(ExactMatch())
    assert quiet.trusted and quiet.isolation() is None and quiet.for_workers(2) is None


def test_programs_contained_in_several_ways() -> None:
    one, unsafe = Starts("strong"), Starts("rlimits (UNSAFE)", held=False)
    assert Together((one, ExactMatch())).isolation() == one.isolation()
    assert Formatted(ExactMatch(), Starts("strong")).isolation() == one.isolation()

    @dataclass(frozen=True)
    class Other(Starts):
        names: ClassVar[tuple[str, ...]] = ("other",)

    assert Together((one, Other("strong"))).isolation() == one.isolation()
    both = Together((one, Other("rlimits (UNSAFE)", held=False))).isolation()
    assert both == {
        "tag": "strong, rlimits (UNSAFE)",
        "held": False,
        "line": "isolation: strong; isolation: rlimits (UNSAFE)",
        "parts": [one.isolation(), unsafe.isolation()],
    }


def test_its_deadline_is_enough_for_all_and_without_end_where_a_part_says_none() -> None:
    assert Together((MathAnswer(deadline=2.5), Starts("x"))).deadline == 5.5
    assert Formatted(MathAnswer(deadline=2.5), TagFormat()).deadline == 2.5  # who is trusted takes no time
    assert Formatted(CodeOutput(), TagFormat()).deadline == float("inf")
    with ScoringPool(Formatted(MathAnswer(deadline=0.25)), deadline=9.0) as pool:
        assert pool.deadline == 0.25


def test_mathematics_behind_a_form_is_judged_at_once_where_it_can_be() -> None:
    made = Formatted(MathAnswer(), TagFormat())
    task, rollout = task_and_rollout("1/2", SAID.format("0.5"))
    assert made.at_once(task, rollout) == made(task, rollout)
    assert made(task, rollout).primary == 1.0
    assert made.at_once(*task_and_rollout("1", SAID.format(r"\sin^2 x + \cos^2 x"))) is None


def test_the_first_fault_is_the_verdict_and_no_further_part_is_asked() -> None:
    fault = Score(components={}, fault=Fault.INFRA)

    @dataclass(frozen=True)
    class Gives:
        names: ClassVar[tuple[str, ...]] = ("correct",)

        def __call__(self, task: Task, rollout: Rollout) -> Score:
            return fault

    @dataclass(frozen=True)
    class Never:
        names: ClassVar[tuple[str, ...]] = ("format",)

        def __call__(self, task: Task, rollout: Rollout) -> Score:
            raise AssertionError

    for made in (Together((Gives(), Never())), Formatted(Gives(), Never())):
        assert made(*task_and_rollout("4", "4")) is fault
