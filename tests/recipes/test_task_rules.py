"""Rules of task systems beside their controls: the page, and what is compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.core.task import Message
from benchmarks.task_rules import outcome, page
from benchmarks.task_rules_arms import ARMS, TRIALS, Arm, near_query

ROOT = Path(__file__).parents[2]


def test_the_committed_page_is_what_its_records_say() -> None:
    records = json.loads((ROOT / "docs/evidence/task_rules.json").read_text())
    assert (ROOT / "docs/evidence/task_rules.md").read_text() == page(records)
    assert all(outcome(arm, records).part for arm in ARMS), "each rule was run beside its control"


@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)
def test_what_is_compared_starts_alike_and_differs_in_one_thing(arm: Arm) -> None:
    part, control = TRIALS[arm.part], TRIALS[arm.control]
    assert part.truth.name == control.truth.name and arm.predicted in ("higher", "lower", "none")
    if arm.part == arm.control:
        assert arm.how != arm.control_how
    elif "start" not in arm.name and "thinking" not in arm.name:
        assert part.base is control.base
        differing = [part.stages != control.stages, part.reward is not control.reward]
        assert any(differing)


def test_an_outcome_is_of_the_levels_and_the_arm_that_are_compared() -> None:
    def record(base: float, end: float) -> dict[str, dict[str, float]]:
        return {"base-drawn": {"a/1": base, "b/1": 0.0}, "end-drawn": {"a/1": end, "a/2": 1.0, "b/1": 0.0}}

    arm = Arm(name="x", part="p", control="c", predicted="higher", why="", arms="a", levels=(1,))
    records = {"p": {"0": record(0.2, 0.5), "1": record(0.2, 0.4)}, "c": {"0": record(0.2, 0.3), "1": record(0.2, 0.6)}}
    found = outcome(arm, records)
    assert (found.base, found.part, found.control, found.found) == ([0.2, 0.2], [0.5, 0.4], [0.3, 0.6], "seeds disagree")


@pytest.mark.parametrize(
    ("query", "near"),
    [("SELECT max(a) FROM t WHERE b>3 AND c<5", "1.0"), ("SELECT max(a) FROM t WHERE b>3", "0.7"), ("SELECT a FROM t", "0.0")],
)
def test_the_scripted_judge_counts_what_a_query_has_of_the_question(query: str, near: str) -> None:
    said = f"Question:\nmax a if b>3&c<5\n\nReasoning and query:\n<think>b>3&c<5</think><answer>{query}</answer>\n"
    assert near_query([Message("user", said)]) == near
