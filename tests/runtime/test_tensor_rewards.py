"""Reward functions that return tensors of torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from assay.core.canon import FrozenMap
from assay.core.errors import RewardError
from assay.core.task import Task
from assay.testing import rollout_of
from assay.verify import RewardFunction, ScoringPool

TASK = Task(
    id="t",
    domain="d",
    arm="a",
    level=1,
    split="train",
    index=0,
    public=FrozenMap({"prompt": "1+1="}),
    private=FrozenMap({"answer": "2"}),
)


def reward(returned: Any) -> dict[str, float]:
    return dict(RewardFunction(lambda prompt, completion, row: returned)(TASK, rollout_of(TASK, "2")).components)


@pytest.mark.parametrize(
    ("returned", "components"),
    [
        (torch.tensor(0.5), {"reward": 0.5}),
        (torch.tensor([0.5]), {"reward": 0.5}),
        (torch.tensor([[1.0]]), {"reward": 1.0}),
        (torch.tensor(2), {"reward": 2.0}),
        (torch.tensor(True), {"reward": 1.0}),
        (torch.tensor(0.5, dtype=torch.bfloat16), {"reward": 0.5}),
        (torch.tensor(0.5, requires_grad=True), {"reward": 0.5}),
        ({"correct": torch.tensor(1.0), "style": np.float32(0.25)}, {"correct": 1.0, "style": 0.25}),
    ],
    ids=str,
)
def test_a_tensor_of_one_element_is_a_number(returned, components):
    assert reward(returned) == components


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (torch.tensor([0.5, 1.0]), "returned a Tensor"),
        (torch.tensor([]), "returned a Tensor"),
        (torch.tensor(float("nan")), "returned nan"),
        (torch.tensor(1j), "returned a Tensor"),
        (torch.Tensor, "returned a _TensorMeta"),
    ],
    ids=str,
)
def test_other_tensors_are_refused(returned, says):
    with pytest.raises(RewardError, match=says):
        reward(returned)


def test_batched_rewards_may_be_one_tensor():
    lengths = RewardFunction(lambda prompts, texts, rows: torch.tensor([len(t) for t in texts]), batched=True)
    assert lengths.values(["p", "p"], ["a", "bcd"], [{}, {}]) == [{"reward": 1.0}, {"reward": 3.0}]
    for returned, says in (
        (torch.ones(3), "3 values for 2"),
        (torch.tensor(1.0), "list of 2 numbers"),
        (torch.ones(2, 2), "a list"),
    ):
        with pytest.raises(RewardError, match=says):
            RewardFunction(lambda p, c, r, made=returned: made, batched=True).values(["p", "p"], ["a", "b"], [{}, {}])


def halves(prompt: str, completion: str, row: Any) -> Any:
    return torch.tensor(0.5) * len(completion)


def test_tensors_come_out_of_the_pool():
    with ScoringPool(RewardFunction(halves), 20.0) as pool:
        scores = pool.score([(TASK, rollout_of(TASK, "22", id="x", group="g"))])
    assert scores["x"].primary == 1.0
