"""A learner scores each token at the temperature it was sampled at: values and gradients against a plain softmax."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from assay.core import FrozenMap, Sampling, Task
from assay.core.batch import pack
from assay.core.vocab import FullEntropy, VocabStat
from assay.runtime.learner.lm_head import LmHead, StatisticInputs, head_columns, head_statistics
from assay.testing import graded_group

POSITIONS, WIDTH, VOCABULARY = 40, 8, 37


class CrossEntropy(VocabStat):
    """Of another model's distribution against the policy's."""

    models = ("other",)

    @property
    def kind(self) -> str:
        return "cross_entropy"

    def of(self, logp: Tensor, ids: Tensor, others: dict[str, Tensor], columns: dict[str, Tensor]) -> Tensor:
        return -(others["other"].exp() * logp).sum(1)


def inputs(bias: bool) -> tuple[Tensor, Tensor, Tensor | None, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=draw, dtype=torch.float64).requires_grad_()

    warmth = torch.rand(POSITIONS, generator=draw, dtype=torch.float64) + 0.3
    targets = torch.randint(0, VOCABULARY, (POSITIONS,), generator=draw)
    return normal(POSITIONS, WIDTH), normal(VOCABULARY, WIDTH), normal(VOCABULARY) if bias else None, warmth, targets


def by_softmax(hidden: Tensor, head: LmHead, targets: Tensor, warmth: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    z = hidden @ head.weight.T
    z = z if head.bias is None else z + head.bias
    z = z * head.scale
    z = head.cap * torch.tanh(z / head.cap) if head.cap else z
    logp = torch.log_softmax(z / warmth[:, None], 1)
    return logp.gather(1, targets[:, None])[:, 0], -(logp.exp() * logp).sum(1), logp


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("scale", "cap"), [(1.0, 0.0), (0.5, 0.0), (1.0, 3.0), (0.5, 3.0)])
def test_columns_and_statistics_are_those_of_a_softmax_at_each_temperature(bias: bool, scale: float, cap: float) -> None:
    hidden, weight, shift, warmth, targets = inputs(bias)
    leaves = [x for x in (hidden, weight, shift) if x is not None]
    head = LmHead(weight, shift, scale, cap)
    logp, entropy, _ = by_softmax(hidden, head, targets, warmth)
    wanted = torch.autograd.grad((logp * warmth).sum() + entropy.square().sum(), leaves)
    at = head.at_temperature(warmth)
    for found in (
        head_columns(hidden, at, targets, True),
        head_statistics(hidden, at, targets, (FullEntropy(),), StatisticInputs()),
    ):
        torch.testing.assert_close(found[0], logp)
        torch.testing.assert_close(found[1], entropy)
        grads = torch.autograd.grad((found[0] * warmth).sum() + found[1].square().sum(), leaves)
        for mine, theirs in zip(grads, wanted, strict=True):
            torch.testing.assert_close(mine, theirs)


def test_other_models_are_read_at_the_same_temperatures() -> None:
    hidden, weight, _, warmth, targets = inputs(False)
    others = hidden.detach().flip(0)
    _, _, logp = by_softmax(hidden, LmHead(weight), targets, warmth)
    _, _, theirs = by_softmax(others, LmHead(weight), targets, warmth)
    beside = StatisticInputs({"other": (others, LmHead(weight.detach()).at_temperature(warmth))})
    found = head_statistics(hidden, LmHead(weight).at_temperature(warmth), targets, (CrossEntropy(),), beside)
    torch.testing.assert_close(found[1], -(theirs.detach().exp() * logp).sum(1))


def test_rows_say_at_which_temperature_they_were_sampled_where_it_is_not_1() -> None:
    task = Task(id="t", domain="d", arm="a", level=1, split="train", index=0, public=FrozenMap({"prompt": "?"}))
    group = graded_group(task, [1.0, 0.0])
    assert "temperature" not in pack([group]).tokens
    hot, greedy = Sampling(temperature=0.5), Sampling(temperature=0.0)
    calls = [
        replace(r.calls[0], completion=replace(r.calls[0].completion, sampling=s))
        for r, s in zip(group.rollouts, (hot, greedy), strict=True)
    ]
    mixed = replace(group, rollouts=tuple(replace(r, calls=(c,)) for r, c in zip(group.rollouts, calls, strict=True)))
    batch = pack([mixed])
    column, mask = batch.token("temperature"), batch.token("mask")
    rows = batch.row_of_token
    assert set(column[mask & (rows == 0)].tolist()) == {0.5}
    assert set(column[mask & (rows == 1)].tolist()) == {0.0}  # greedy: a learner scores that at 1
    assert not column[~mask].any()
    assert column.dtype == np.float32
