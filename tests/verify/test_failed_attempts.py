"""Rollouts whose generation failed: whose fault it was decides between the floor and no score at all."""

from dataclasses import replace

import pytest

from assay.core import Fault, FrozenMap, Rollout, Score, Stop, Task
from assay.testing import rollout_of
from assay.verify import ExactMatch, FormatIs, RewardFunction, ScoringPool, Together
from assay.verify.verdict import LARGEST, broken_score, check_score, failed_rollout, judge

PUBLIC, PRIVATE = FrozenMap({"prompt": "?"}), FrozenMap({"answer": "yes"})
TASK = Task(id="t", domain="d", arm="a", level=1, split="train", index=0, public=PUBLIC, private=PRIVATE)


def failed(fault: Fault, name: str = "r0") -> Rollout:
    return replace(rollout_of(TASK, "yes", id=name, stop=Stop.ERROR), error="no answer within 2 s, twice", fault=fault)


def test_only_failed_attempts_are_scored_here() -> None:
    assert failed_rollout(rollout_of(TASK, "yes"), {"correct": 0.0}) is None
    assert failed_rollout(rollout_of(TASK, "yes", stop=Stop.LENGTH), {"correct": 0.0}) is None


@pytest.mark.parametrize("fault", [Fault.NONE, Fault.INFRA])
def test_a_fault_of_the_infrastructure_has_no_score(fault: Fault) -> None:
    score = judge(ExactMatch(), TASK, failed(fault))
    assert (score.fault, dict(score.components), score.info["error"]) == (Fault.INFRA, {}, "no answer within 2 s, twice")


def test_a_fault_of_the_policy_scores_the_floor_in_every_component() -> None:
    both = Together((ExactMatch(), FormatIs("[a-z]*")))
    score = judge(both, TASK, failed(Fault.POLICY))
    assert (score.fault, score.info["error"]) == (Fault.POLICY, "no answer within 2 s, twice")
    assert dict(score.components) == {"correct": 0.0, "format": 0.0}

    class Nameless:
        def __call__(self, task: Task, rollout: Rollout) -> Score:
            raise AssertionError("a failed rollout is never shown to a verifier")

    assert dict(judge(Nameless(), TASK, failed(Fault.POLICY)).components) == {"reward": 0.0}


def test_a_pool_floors_every_component_that_its_verifier_gives() -> None:
    verifier = RewardFunction(lambda prompt, completion, row: {"reward": 1.0, "short": 0.5}, floor=-1.0)
    with ScoringPool(verifier, 30.0) as pool:
        verdicts = pool.score(
            [(TASK, failed(Fault.POLICY)), (TASK, rollout_of(TASK, "yes", id="r1")), (TASK, failed(Fault.INFRA, "r2"))]
        )
    assert [s.fault for s in verdicts.values()] == [Fault.POLICY, Fault.NONE, Fault.INFRA]
    assert dict(verdicts["r0"].components) == {"reward": -1.0, "short": -1.0}
    assert list(verdicts) == ["r0", "r1", "r2"]


def test_the_middle_of_a_long_message_is_left_out() -> None:
    score = broken_score(ValueError("begins " + "x" * 5_000_000 + " ends"))
    for name in ("error", "traceback"):
        text = str(score.info[name])
        assert len(text) < 9000 and "characters left out" in text and "begins" in text and text.rstrip().endswith("ends")
    assert broken_score(ValueError("short")).info["error"] == "ValueError: short"


def test_a_reward_whose_squares_overflow_is_a_fault_that_names_it() -> None:
    assert check_score(Score(components={"reward": LARGEST})).valid
    for value in (1e308, -1e308):
        found = check_score(Score(components={"reward": value}))
        assert found.fault is Fault.VERIFIER
        assert "scale the reward to about 1" in str(found.info["error"])
        assert str(value) in str(found.info["error"])
