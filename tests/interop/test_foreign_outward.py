"""Verifiers as reward functions of other trainers: the same verdicts, and a fault is never a silent 0."""

import os
import pickle
import sys
from types import SimpleNamespace

import pytest

from assay.core.errors import DataError, RewardError
from assay.interop import adapt, as_openrlhf, as_trl, as_verl
from assay.verify import ExactMatch, RewardFunction
from assay.verify.rollouts import task_and_rollout


def moody(prompt, completion, row):
    if completion == "raise":
        raise ValueError("a bad answer")
    return float(completion == row["answer"])


@pytest.fixture
def closed():
    """Functions to close afterwards."""
    made = []
    yield lambda function: made.append(function) or function
    for function in made:
        function.close()


def test_trl_gets_numbers_and_none(closed) -> None:
    function = closed(as_trl(RewardFunction(moody), deadline=30.0))
    assert function.__name__ == "RewardFunction"
    found = function(
        prompts=["p", "p", "p"],
        completions=["2", "3", "raise"],
        answer=["2", "2", "2"],
        completion_ids=[[1], [2], [3]],
        trainer_state=object(),
        log_metric=print,
        picture=[object()] * 3,
    )
    assert found == [1.0, 0.0, None]
    assert function(prompts=["p"], completions=["raise"], answer=["2"]) == [None]  # alone, too


def test_trl_conversations_and_a_gold_of_another_name(closed) -> None:
    function = closed(as_trl(ExactMatch(), gold="key"))
    prompts = [[{"role": "user", "content": "1+1="}]] * 2
    completions = [[{"role": "assistant", "content": c}] for c in "23"]
    assert function(prompts=prompts, completions=completions, key=["2", "2"]) == [1.0, 0.0]
    with pytest.raises(DataError, match="no column 'key'"):
        function(prompts=prompts, completions=completions, answer=["2", "2"])


def test_verl_raises_or_counts(closed) -> None:
    function = closed(as_verl(RewardFunction(moody), deadline=30.0))
    assert function(data_source="d", solution_str="2", ground_truth="2", extra_info={"question": "1+1="}, router=None) == 1.0
    with pytest.raises(RewardError, match=r"(?s)a fault is not a 0.*a bad answer"):
        function("d", "raise", "2")
    counted = closed(as_verl(RewardFunction(moody), deadline=30.0, on_fault=-1.0))
    assert counted("d", "2", "2") == {"score": 1.0, "acc": 1.0, "fault": 0.0}
    assert counted("d", "raise", "2") == {"score": -1.0, "acc": -1.0, "fault": 1.0}
    with pytest.raises(DataError, match="no column 'key'"):
        closed(as_verl(ExactMatch(), gold="key"))("d", "2", "2")


def test_openrlhf_judges_what_follows_the_prompt(closed) -> None:
    function = closed(as_openrlhf(RewardFunction(moody), deadline=30.0, on_fault=0.5))
    queries = ["<s>1+1=2<|im_end|>\n", "1+1=3</s>", "raise"]
    found = function(queries, ["1+1=", "1+1=", "not shown"], ["2", "2", "2"])
    assert [float(x) for x in found["rewards"]] == [float(x) for x in found["scores"]] == [1.0, 0.0, 0.5]
    assert [float(x) for x in found["extra_logs"]["fault"]] == [0.0, 0.0, 1.0]
    strict = closed(as_openrlhf(RewardFunction(moody), deadline=30.0))
    with pytest.raises(RewardError, match="a fault is not a 0"):
        strict(["raise"], [""], ["2"])


@pytest.mark.parametrize("torch", [None, SimpleNamespace(tensor=lambda values: ("tensor", *values))])
def test_openrlhf_gets_tensors_where_torch_is(monkeypatch, closed, torch) -> None:
    monkeypatch.setitem(sys.modules, "torch", torch)
    found = closed(as_openrlhf(ExactMatch()))(["2"], [""], ["2"])["rewards"]
    assert found == [1.0] if torch is None else found == ("tensor", 1.0)


def test_there_and_back_again(closed) -> None:
    for function in (as_trl(ExactMatch()), as_verl(ExactMatch()), as_openrlhf(ExactMatch())):
        back = adapt(closed(function))
        assert [back(*task_and_rollout("2", text)).primary for text in ("2", "3")] == [1.0, 0.0]


def test_a_pool_of_its_own_after_a_fork_and_after_pickling(closed, monkeypatch) -> None:
    function = closed(as_trl(ExactMatch()))
    first = function._pool
    here = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: here + 1)
    assert function(prompts=["p"], completions=["2"], answer=["2"]) == [1.0]
    assert function._pool is not first
    assert closed(pickle.loads(pickle.dumps(function)))(prompts=["p"], completions=["3"], answer=["2"]) == [0.0]
