"""Likelihood on the tokens that a guidance forced: SEELE's loss and ADHint's selective masks, by hand-computed numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from assay.core import FrozenMap, Task
from assay.core.batch import Batch
from assay.core.columns import TokenColumn
from assay.core.group import Group
from assay.core.rollout import ids_of
from assay.core.sample import STREAMS
from assay.core.score import Fault, Score
from assay.guide import Compose
from assay.guide.compose import forced_rows
from assay.objective import Nll, Objective, Token, grpo
from assay.testing import graded_group
from assay.testing.objective import evaluate

FAULT = Score(components={}, fault=Fault.VERIFIER)
TASK = Task(id="t", domain="d", arm="a", level=1, split="train", index=0, public=FrozenMap({"prompt": "abc"}))


def hinted(*values: float | Score, forced: int = 2, key: str = "g0") -> Group:
    """Rollouts whose answers begin with ``forced`` ids, 50 and on."""
    group = graded_group(TASK, values, key=key)
    rollouts = [
        replace(r, calls=(replace(r.calls[0], prefix=ids_of([*r.calls[0].prefix, *range(50, 50 + forced)]), forced=forced),))
        for r in group.rollouts
    ]
    return replace(group, rollouts=tuple(rollouts))


def composed(*groups: Group) -> Batch:
    batch = Compose(learn_forced=True).compose(groups, None, 0)
    assert batch is not None
    return batch


def outcome(of: Batch, objective: Objective) -> tuple[float, np.ndarray]:
    """Loss and gradient where every token has the log-probability -2, under the sampler too."""
    program = objective.compile()
    now = np.where(of.token("mask"), -2.0, 0.0)
    found = evaluate(program, program.credit(of).with_tokens(TokenColumn("logp_old", now, "test")), {"logp_new": now})
    return float(found.loss), np.asarray(found.gradients["logp_new"])


def test_forced_ids_are_rows_of_their_own_in_the_place_of_the_group() -> None:
    batch = composed(hinted(1.0, 0.0), graded_group(TASK, [1.0, 0.0], key="plain"))
    expert = batch.rows["stream"] == STREAMS.index("expert")
    assert expert.sum() == 2 and set(batch.per_row("group")[expert]) == {0}
    for row in np.flatnonzero(expert):
        span = slice(batch.offsets[row], batch.offsets[row + 1])
        mask, prompt = batch.token("mask")[span], hinted(1.0).rollouts[0].calls[0].prefix[:-2]
        assert batch.token("ids")[span].tolist() == [*prompt, 50, 51]
        assert mask.tolist() == [False] * len(prompt) + [True, True]
        assert np.isnan(batch.token("logp_engine")[span][mask]).all()


def test_the_likelihood_is_the_mean_over_forced_tokens_and_leaves_the_policy_loss_as_it_is() -> None:
    plain, both = hinted(1.0, 0.0), grpo(kl=0.0) + Nll(streams=("expert",), coef=0.001, aggregate=Token())
    batch = composed(plain)
    alone = Compose().compose([plain], None, 0)
    assert alone is not None

    loss, gradient = outcome(batch, both)
    before, without = outcome(alone, grpo(kl=0.0))
    assert loss - before == pytest.approx(0.001 * 2.0)  # every forced token has -logp 2
    own = np.repeat(batch.rows["stream"] != STREAMS.index("expert"), batch.lengths)
    assert gradient[own].tolist() == pytest.approx(without.tolist())
    assert gradient[~own & batch.token("mask")].tolist() == pytest.approx([-0.001 / 4] * 4)


def test_where_the_rollout_did_worse_than_its_group_forced_tokens_have_no_gradient() -> None:
    masked = grpo(kl=0.0) + Nll(streams=("expert",), by="advantage", aggregate=Token())
    batch = composed(hinted(1.0, 0.0, 0.0, 0.0))
    gradient = outcome(batch, masked)[1]
    expert = np.repeat(batch.rows["stream"] == STREAMS.index("expert"), batch.lengths) & batch.token("mask")
    # rewards 1, 0, 0, 0: mean 1/4, sample deviation 1/2, advantages 3/2 and -1/2; 8 forced tokens
    assert gradient[expert].tolist() == pytest.approx([-1.5 / 8] * 2 + [0.0] * 6, rel=1e-3)


def test_nothing_is_added_without_forced_ids_nor_for_faults_and_for_groups_left_out() -> None:
    assert forced_rows(graded_group(TASK, [1.0])).rollouts == ()
    assert composed(hinted(1.0, 0.0, FAULT)).counts == composed(hinted(1.0, 0.0)).counts
    batch = Compose(learn_forced=True, drop_zero_signal=True).compose([hinted(1.0, 0.0), hinted(1.0, 1.0, key="g1")], None, 0)
    assert batch is not None and (batch.rows["stream"] == STREAMS.index("expert")).sum() == 2
