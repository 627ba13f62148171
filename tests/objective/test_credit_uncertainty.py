"""Advantages by the entropy of their tokens, and the methods of agents (AEPO, Delethink)."""

from __future__ import annotations

import math

import pytest
from credit_batches import after, around, chains, flat, near, per_attempt, wide
from objective_batches import run, tiny

from assay.core.batch import Batch
from assay.core.errors import ConfigError, PlanError
from assay.objective import (
    Center,
    DropTruncated,
    MinClip,
    PolicyGradient,
    Scale,
    ScaleByEntropy,
    TruncatedReward,
    aepo,
    delethink,
    grpo,
    reseek,
)
from assay.objective.loss.trust_soft import ClipWithGradient
from assay.testing.objective import check_objective, check_term

__all__ = ["wide"]


def uncertain(rewards: list[float], entropy: list[list[float]], masks: list[list[int]] | None = None) -> Batch:
    return chains(rewards, masks or [[1] * len(h) for h in entropy], columns={"entropy": entropy})


def test_an_uncertain_token_has_a_larger_advantage_of_either_sign() -> None:
    """Entropies 0, 1, 2, 1: mean 1, deviation sqrt(1/2), so z = -sqrt(2), 0, sqrt(2), 0."""
    batch = uncertain([1.0, 0.0], [[0.0, 1.0], [2.0, 1.0]])
    found = per_attempt(batch, after(batch, Center(), ScaleByEntropy(coef=0.5)))
    near(found[0], [0.5 * (1 - math.sqrt(0.5)), 0.5], 1e-12)
    near(found[1], [-0.5 * (1 + math.sqrt(0.5)), -0.5], 1e-12)


def test_context_and_tool_tokens_count_for_no_mean() -> None:
    batch = uncertain([1.0, 0.0], [[0.0, 99.0, 1.0], [2.0, 1.0]], [[1, 0, 1], [1, 1]])
    near(
        flat(batch, Center(), ScaleByEntropy(coef=0.5)),
        [0.5 * (1 - math.sqrt(0.5)), 0.5, -0.5 * (1 + math.sqrt(0.5)), -0.5],
        1e-12,
    )


def test_equal_entropies_leave_the_advantage_alone_and_no_factor_turns_a_sign() -> None:
    same = uncertain([1.0, 0.0], [[0.3, 0.3], [0.3, 0.3]])
    assert flat(same, Center(), ScaleByEntropy()) == flat(same, Center())
    batch = uncertain([1.0, 0.0], [[0.0], [2.0]])
    record = after(batch, Center(), ScaleByEntropy(coef=3.0))  # z = -1: the factor would be -2
    assert per_attempt(batch, record) == [[0.0], [-2.0]]
    assert record.metrics["credit/entropy_floor"] == 0.5


def test_laws(wide: None, seeds: range) -> None:
    check_term(ScaleByEntropy(), seeds)
    check_objective(around(Center(), Scale(), ScaleByEntropy()), seeds)


@pytest.mark.parametrize("coef", [0.0, -1.0, math.inf, math.nan])
def test_a_coefficient_that_does_nothing_or_hurts_is_refused(coef: float) -> None:
    with pytest.raises(ConfigError, match=r"ScaleByEntropy\.coef"):
        ScaleByEntropy(coef=coef)


def test_aepo_is_grpo_s_advantage_by_entropy_under_a_clip_that_keeps_its_gradient() -> None:
    """Rewards 1 and 0 of one token each: A = +-1/sqrt(2), z = -+1, so .8 A and 1.2 A."""
    batch = uncertain([1.0, 0.0], [[1.0], [2.0]])
    near(flat(batch, *aepo().credit), [0.8 / math.sqrt(2), -1.2 / math.sqrt(2)], 1e-5)
    policy = aepo().policy
    assert isinstance(policy, PolicyGradient) and policy.trust == ClipWithGradient(low=0.2, high=0.28)
    assert aepo(coef=0.0).credit == grpo().credit


def test_delethink_pays_nothing_for_an_answer_that_does_not_end() -> None:
    batch = chains([1.0, 1.0], [[1, 1], [1]], truncated=[True, False])
    near(flat(batch, *delethink().credit), [-1 / math.sqrt(2)] * 2 + [1 / math.sqrt(2)], 1e-5)
    with pytest.raises(PlanError, match="both treat answers cut off"):
        TruncatedReward().check((DropTruncated(),))


def test_delethink_averages_an_answer_over_the_tokens_of_all_its_chunks() -> None:
    """Rewards 1 and 0 with 3 and 1 tokens on policy: each rollout weighs 1/2, whatever its length; bounds .8 and 1.26."""
    batch = tiny([1.0, -1.0], lengths=[3, 1], columns={"logp_old": -1.0})
    objective = delethink()
    assert isinstance(objective.policy, PolicyGradient) and objective.policy.trust == MinClip(low=0.2, high=0.26)
    bare = type(objective)(policy=objective.policy, aggregate=objective.aggregate)
    gradients = run(bare, batch, -1.0).gradients["logp_new"][batch.token("mask")]
    near(gradients, [-1 / 6] * 3 + [1 / 2], 1e-12)


def test_reseek_gives_a_turn_its_return_less_the_group_s_mean() -> None:
    """Turns earn .3 and 1 against -.6 and 0: returns 1.3, 1 and -.6, 0; mean .35, deviation 1.9 / sqrt(2)."""
    columns = {"call": [[0, 1], [0, 1]], "judge_reward": [[0.3, 0.0], [-0.6, 0.0]]}
    batch = chains([1.0, 0.0], [[1, 1], [1, 1]], columns=columns)
    sd = 1.9 / math.sqrt(2)
    near(flat(batch, *reseek().credit), [0.95 / sd, 0.65 / sd, -0.95 / sd, -0.35 / sd], 1e-5)
