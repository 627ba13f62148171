"""A reward that changes the row it is given changes it for nobody else, and that is said once."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from assay.core.rollout import Rollout
from assay.core.task import Task
from assay.interop.import_rewards import RubricReward, TrlReward, VerlReward
from assay.tasks.rows import Rows
from assay.verify import RewardFunction, ScoringPool
from assay.verify.reward_function import copy_of
from assay.verify.rollouts import rollout_of

ROW = {"prompt": "1 + 1", "answer": "2", "tests": [["1", "2"], ["2", "3"]], "more": {"uses": 0, "names": ["a"]}}


def group(n: int) -> list[tuple[Task, Rollout]]:
    task = Rows((ROW,), name="sums", test_share=0).task("sums", 1, "train", 0)
    return [(task, rollout_of(task, f"answer {i}", id=f"r{i}")) for i in range(n)]


def spoil(prompt: str, completion: str, row: dict[str, Any]) -> float:
    """1 on a row as it was, and never again on the same one."""
    fresh = row == ROW
    row["answer"] = completion
    row["tests"].clear()
    row["more"]["uses"] += 1
    row["more"]["names"].append("b")
    row.pop("prompt")
    row["score"] = 1.0
    return float(fresh)


def spoil_all(prompts: Sequence[str], completions: Sequence[str], rows: list[dict[str, Any]]) -> list[float]:
    return [spoil(p, c, r) for p, c, r in zip(prompts, completions, rows, strict=True)]


@pytest.mark.parametrize("batched", [False, True])
def test_siblings_see_the_row_as_it_was(batched: bool) -> None:
    fn = RewardFunction(spoil_all if batched else spoil, batched=batched)
    with ScoringPool(fn, 20.0) as pool:
        verdicts = pool.score(group(6))
        assert [s.primary for s in verdicts.values()] == [1.0] * 6
        assert all(s.info["changed"] == "answer, more, prompt, score, tests" for s in verdicts.values())
        (said,) = pool.news()
        assert "changes the row" in said and "answer, more, prompt, score, tests" in said and "own copy" in said
        pool.score(group(3))
        assert pool.news() == [] and pool.counts["changed"] == 9
        state = pool.state_dict()
    with ScoringPool(fn, 20.0) as again:
        again.load_state_dict(state)
        again.score(group(2))
        assert again.news() == [] and again.counts["changed"] == 2


def test_a_function_that_only_reads_is_not_told_of() -> None:
    with ScoringPool(RewardFunction(lambda p, c, row: float(len(row["tests"]))), 20.0) as pool:
        verdicts = pool.score(group(3))
        assert [s.primary for s in verdicts.values()] == [2.0] * 3
        assert all("changed" not in s.info for s in verdicts.values())
        assert pool.news() == [] and "changes" not in pool.state_dict() and not pool.counts["changed"]


def test_rows_that_are_passed_by_hand_stay_as_they_are() -> None:
    rows = [json.loads(json.dumps(ROW))] * 3
    fn = RewardFunction(spoil)
    assert fn.values(["p"] * 3, ["c"] * 3, rows) == [{"reward": 1.0}] * 3
    assert rows[0] == ROW
    (score,) = fn.score_views([("p", "c", rows[0])])
    assert score.info["changed"] and rows[0] == ROW


def test_what_does_not_compare_is_told_too() -> None:
    class Odd:
        def __ne__(self, other: object) -> bool:
            raise ValueError("no")

    def odd(prompt: str, completion: str, row: dict[str, Any]) -> float:
        row["answer"] = Odd()
        return 1.0

    (score,) = RewardFunction(odd).score_views([("p", "c", dict(ROW))])
    assert "do not compare" in score.info["changed"]


def test_copies() -> None:
    given = {"a": [1, {"b": (1, [2])}], "c": {"d"}}
    made = copy_of(given)
    made["a"][1]["b"][1].append(3)
    made["c"].add("e")
    assert given == {"a": [1, {"b": (1, [2])}], "c": {"d"}}


# ---- functions of other libraries


def test_functions_of_other_libraries_get_their_own_too() -> None:
    def verl(data_source: str, solution_str: str, ground_truth: Any, extra_info: dict[str, Any]) -> float:
        fresh = ground_truth == [["1", "2"], ["2", "3"]]
        ground_truth.clear()
        extra_info["x"] = 1
        return float(fresh)

    def trl(completions: list[str], tests: list[list[Any]], **columns: Any) -> list[float]:
        out = [float(t == [["1", "2"], ["2", "3"]]) for t in tests]
        for t in tests:
            t.clear()
        return out

    for reward in (VerlReward(verl, gold="tests"), TrlReward(trl)):
        for _ in range(2):
            assert [s.primary for s in reward.many(group(3))] == [1.0] * 3


def test_functions_of_a_rubric_share_the_state_alone() -> None:
    seen: list[Any] = []

    def first(completion: list[dict[str, str]], more: dict[str, Any], state: dict[str, Any]) -> float:
        completion[0]["content"] = "spoiled"
        more["names"].clear()
        state["mark"] = 7
        return 0.25

    def second(completion: list[dict[str, str]], more: dict[str, Any], state: dict[str, Any]) -> float:
        seen.append((completion[0]["content"], more["names"], state["mark"]))
        return 0.5

    class Rubric:
        funcs = (first, second)
        weights = (1.0, 1.0)

    assert [s.primary for s in RubricReward(Rubric()).many(group(2))] == [0.75, 0.75]
    assert seen == [("answer 0", ["a"], 7), ("answer 1", ["a"], 7)]
