"""What a pool knows of its verifier: declared floors, the components that it gives, and that a resumed run knows them too."""

import json
from typing import Any

import pytest
from foreign_code import LONG, act, items

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, RewardError
from assay.core.rollout import Rollout
from assay.core.score import Fault, Score
from assay.core.task import Task
from assay.verify import ExactMatch, FormatIs, RewardFunction, ScoringPool, Together
from assay.verify.abilities import abilities_of


def numbered(prompt: str, completion: str, row: dict[str, Any]) -> float:
    return act(prompt, completion, row) if completion == "die" else float(completion)


def died(pool: ScoringPool, *others: str) -> dict[str, float]:
    """The score of an answer that kills its judge, in a batch with ``others``."""
    verdict = pool.score(items("die", *others))["r0"]
    assert verdict.fault is Fault.POLICY
    return dict(verdict.components)


def test_the_floor_is_what_the_verifier_declares_whatever_the_run_has_seen() -> None:
    with ScoringPool(RewardFunction(numbered), LONG) as pool:
        assert died(pool, "1", "0.5") == {"reward": 0.0}
        assert died(pool, "1", "-0.5", "-0.25") == {"reward": -0.5}  # declared wrongly: no better than what it stands beside
        assert pool.counts["below_floor"] == 2
        assert died(pool, "1", "1") == {"reward": 0.0}  # and no batch decides another's scores
        assert pool.counts["below_floor"] == 2
    with ScoringPool(RewardFunction(numbered, floor=-1.0), LONG) as pool:
        assert died(pool, "1", "-0.5") == {"reward": -1.0}
        assert died(pool, "1", "-2") == {"reward": -2.0}
        assert died(pool, "1") == {"reward": -1.0}
    with ScoringPool(RewardFunction(numbered, floor=3.0), LONG) as pool:
        assert died(pool) == {"reward": 3.0}


def test_each_component_has_its_floor_and_all_that_were_seen_are_given() -> None:
    def several(prompt: str, completion: str, row: dict[str, Any]) -> dict[str, float]:
        value = numbered(prompt, completion, row)
        return {"correct": value} if value > 1 else {"correct": value, "style": value - 1}

    with ScoringPool(RewardFunction(several), LONG) as pool:
        assert died(pool, "1", "0.5", "2") == {"correct": 0.0, "style": -0.5}
        assert died(pool, "2", "-1") == {"correct": -1.0, "style": -2.0}
        assert died(pool) == {"correct": 0.0, "style": 0.0}


def test_a_function_of_several_components_declares_their_floors() -> None:
    def several(prompt: str, completion: str, row: dict[str, Any]) -> dict[str, float]:
        value = numbered(prompt, completion, row)
        return {"correct": value, "style": value - 1}

    with ScoringPool(RewardFunction(several, floor={"correct": 0.0, "style": -1.0}), LONG) as pool:
        assert died(pool) == {"correct": 0.0, "style": -1.0}  # before it has given any verdict
        assert died(pool, "1", "0.5") == {"correct": 0.0, "style": -1.0}
        assert pool.counts["below_floor"] == 0


def test_a_score_of_the_policys_fault_always_has_a_main_component() -> None:
    def renamed(prompt: str, completion: str, row: dict[str, Any]) -> dict[str, float]:
        return {f"part{numbered(prompt, completion, row):g}": -1.0}

    class Declares:
        names = ("one", "two")

        def __call__(self, task: Task, rollout: Rollout) -> Score:
            return Score(components={"reward": act("", rollout.text, {"answer": ""})})

    with ScoringPool(RewardFunction(renamed), LONG) as pool:
        assert died(pool, "1", "2") == {"part2": -1.0}  # each the only one of its verdict: the latest of the batch
    with ScoringPool(Declares(), LONG) as pool:
        assert died(pool) == {"reward": 0.0}


def test_any_verifier_may_have_a_floor() -> None:
    class Custom:
        floor = -3.0

        def __call__(self, task: Task, rollout: Rollout) -> Score:
            return Score(components={"reward": act("", rollout.text, {"answer": ""})})

    with ScoringPool(Custom(), LONG) as pool:
        assert died(pool) == {"reward": -3.0}
    both = Together((ExactMatch(), RewardFunction(numbered, floor=-1.0)))
    assert both.floor == {"correct": 0.0, "reward": -1.0}
    assert [abilities_of(both).floor_of(name) for name in ("correct", "reward", "of another name")] == [0.0, -1.0, -1.0]
    assert abilities_of(Together((both, FormatIs(".*")))).floor_of("reward") == -1.0
    with ScoringPool(both, LONG) as pool:
        assert died(pool, "1") == {"correct": 0.0, "reward": -1.0}


@pytest.mark.parametrize("floor", [float("nan"), float("-inf")])
def test_a_floor_is_a_number(floor: float) -> None:
    with pytest.raises(ConfigError, match=r"RewardFunction.floor is -?(nan|inf); give the lowest value"):
        RewardFunction(act, floor=floor)


def test_a_resumed_pool_behaves_like_one_never_interrupted() -> None:
    def named(prompt: str, completion: str, row: dict[str, Any]) -> dict[str, float]:
        return {"style": 1.0, "correct": numbered(prompt, completion, row)}

    with ScoringPool(RewardFunction(named), LONG) as pool:
        assert pool.state_dict() == {"answered": False, "names": ["reward"]}
        pool.score(items("1", "-2"))
        state = json.loads(json.dumps(pool.state_dict(), sort_keys=True))
    assert state == {"answered": True, "names": ["style", "correct"]}
    with ScoringPool(RewardFunction(named), LONG) as pool:
        pool.load_state_dict(state)
        assert pool.state_dict() == state
        verdict = pool.score(items("die"))["r0"]
        assert list(verdict.components.items()) == [("style", 0.0), ("correct", 0.0)]


def test_a_state_that_remembers_lowest_values_is_read_and_they_no_longer_count() -> None:
    with ScoringPool(RewardFunction(numbered, floor=-1.0), LONG) as pool:
        pool.load_state_dict({"answered": True, "names": ["reward"], "lowest": {"reward": -7.0}})
        assert pool.state_dict() == {"answered": True, "names": ["reward"]}
        assert died(pool) == {"reward": -1.0}


def test_a_resumed_pool_knows_that_its_verifier_can_answer() -> None:
    batch = items("sleep", "sleep", "sleep", "yes", "yes", "no", "no")
    with ScoringPool(RewardFunction(act), 0.3, workers=1) as pool, pytest.raises(RewardError, match="first 3 different"):
        pool.score(batch)
    with ScoringPool(RewardFunction(act), 0.3, workers=1) as pool:
        pool.load_state_dict({"answered": True, "names": ["reward"]})
        assert [s.fault for s in pool.score(batch).values()] == [Fault.POLICY] * 3 + [Fault.NONE] * 4


def test_trusted_verifiers_are_learnt_from_too() -> None:
    pool = ScoringPool(ExactMatch())
    pool.score(items("yes", "no"))
    assert pool.state_dict() == {"answered": True, "names": ["correct"]}


def test_components_without_a_main_one_are_refused_at_the_first_batch() -> None:
    def unnamed(prompt: str, completion: str, row: dict[str, Any]) -> dict[str, float]:
        return {"accuracy": 1.0, "style": 0.5}

    class Trusted:
        trusted = True

        def __call__(self, task: Task, rollout: Rollout) -> Score:
            return Score(components={"accuracy": 1.0, "style": 0.5}, info=FrozenMap({"why": "so"}))

    told = r"\['accuracy', 'style'\], and none .*; name the task's own metric 'correct' or 'reward'"
    for verifier in (RewardFunction(unnamed), Trusted()):
        with ScoringPool(verifier, LONG) as pool, pytest.raises(RewardError, match=told):
            pool.score(items("a", "b"))
    extended = Together((RewardFunction(unnamed), ExactMatch()))  # the parts need no main one of their own
    with ScoringPool(extended, LONG) as pool:
        assert pool.score(items("yes"))["r0"].primary == 1.0
