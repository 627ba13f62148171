"""Targets of regressions: returns over tokens and turns, backups, a toy chain, two heads that follow their own targets."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from objective_batches import tiny

from assay.core.batch import Batch
from assay.core.columns import TokenColumn
from assay.core.errors import ConfigError
from assay.core.seeds import generator
from assay.objective.loss.td_targets import ColumnTarget, ConservativeTarget, MeanTarget, OutcomeTarget, ReturnTarget, Target
from assay.testing.objective import random_batch, split_rows


def rewarded(rewards: list[float], lengths: list[int], **columns: Any) -> Batch:
    batch = tiny(rewards, lengths=lengths, columns=columns)
    return batch.with_rollouts(reward=np.array(rewards), advantage=np.array(rewards) - 0.5)


def at_tokens(target: Target, batch: Batch) -> list[float]:
    return target.of(batch)[batch.token("mask")].tolist()


def test_lambda_returns_between_monte_carlo_and_td() -> None:
    v = [0.2, 0.4, 0.6, 0.5]
    batch = rewarded([1.0, 3.0], [3, 1], values_target=v)
    assert at_tokens(ReturnTarget(), batch) == [1.0, 1.0, 1.0, 3.0]
    np.testing.assert_allclose(at_tokens(ReturnTarget(gamma=0.5), batch), [0.25, 0.5, 1.0, 3.0])
    np.testing.assert_allclose(at_tokens(ReturnTarget(lam=0.0), batch), [0.4, 0.6, 1.0, 3.0])
    np.testing.assert_allclose(at_tokens(ReturnTarget(gamma=0.5, lam=0.0), batch), [0.2, 0.3, 1.0, 3.0])
    # PPO's numbers: A [.751, .58, .4] on V, so returns [.951, .98, 1].
    np.testing.assert_allclose(at_tokens(ReturnTarget(lam=0.95), batch), [0.951, 0.98, 1.0, 3.0])
    np.testing.assert_allclose(at_tokens(ReturnTarget(outcome="advantage"), batch), [0.5, 0.5, 0.5, 2.5])
    assert at_tokens(OutcomeTarget(), batch) == [1.0, 1.0, 1.0, 3.0]
    assert at_tokens(OutcomeTarget(column="advantage"), batch) == [0.5, 0.5, 0.5, 2.5]


def test_turns_are_steps_whose_state_is_their_first_token() -> None:
    batch = rewarded([1.0, 2.0], [5, 1], call=[0, 0, 1, 1, 2, 0], v=[0.1, 9.0, 0.3, 9.0, 0.7, 0.2])
    one = ReturnTarget(gamma=0.5, lam=0.0, values="v", by="call")
    assert one.needs == ("v", "call")
    np.testing.assert_allclose(at_tokens(one, batch), [0.15, 0.15, 0.35, 0.35, 1.0, 2.0])
    assert ReturnTarget(by="call").needs == ("call",)
    np.testing.assert_allclose(at_tokens(ReturnTarget(gamma=0.5, by="call"), batch), [0.25, 0.25, 0.5, 0.5, 1.0, 2.0])
    ends = ColumnTarget(column="v", at="end")
    assert (ends.needs, at_tokens(ends, batch)) == (("v", "call"), [9.0, 9.0, 9.0, 9.0, 0.7, 0.2])
    assert at_tokens(replace(ends, at="start"), batch) == [0.1, 0.1, 0.3, 0.3, 0.7, 0.2]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "target",
    [
        ReturnTarget(gamma=0.9, lam=0.7, values="v"),
        ReturnTarget(gamma=0.9, lam=0.7, values="v", by="call"),
        ColumnTarget(column="v", at="start"),
        ColumnTarget(column="v", at="end"),
        MeanTarget(rho=0.5),
        ConservativeTarget(alpha=0.5, gamma=0.5, values="v"),
    ],
)
def test_an_attempt_in_several_rows_is_one_chain(target: Target, seed: int) -> None:
    batch = random_batch(seed, ["v", "call", "advantage", "logp_mean_now", "logp_mean_old", "logp_choice_now", "logp_max_now"])
    turns = np.floor(2 * np.asarray(batch.token("call")))
    batch = batch.with_tokens(TokenColumn("call", turns)).with_rollouts(reward=batch.rollout("components/correct"))
    split, source = split_rows(batch, seed)
    whole = target.of(batch)[source]
    mask = split.token("mask")
    np.testing.assert_allclose(target.of(split)[mask], whole[mask])
    assert np.abs(target.of(batch)).max() > 0


def test_a_batch_without_loss_tokens_has_no_targets() -> None:
    batch = rewarded([1.0], [2], v=0.0, call=0)
    empty = batch.with_tokens(TokenColumn("mask", np.zeros(3, np.bool_)))
    for target in (ReturnTarget(), ReturnTarget(lam=0.5, values="v", by="call"), ColumnTarget(column="v", at="end")):
        assert target.of(empty).tolist() == [0.0, 0.0, 0.0]


def test_conservative_backups_never_exceed_the_largest() -> None:
    rng = generator("tests/backups", 0)
    n, alpha = 40, 0.7
    logp = np.log(rng.dirichlet(np.ones(6), n))
    choice = rng.integers(0, 6, n)
    value = rng.normal(size=n)
    columns = {"logp_choice_now": logp[np.arange(n), choice], "logp_max_now": logp.max(1), "values_target": value}
    batch = rewarded([2.0], [n], **columns)
    target = np.array(at_tokens(ConservativeTarget(alpha=alpha, gamma=0.9), batch))
    q = alpha * (logp - logp.max(1, keepdims=True)) + value[:, None]
    best = np.append(0.9 * q.max(1)[1:], 2.0)
    assert (target <= best + 1e-12).all()
    np.testing.assert_allclose(target, np.append(0.9 * q[np.arange(n), choice][1:], 2.0))
    # Where the frozen policy's favourite is the present one's too, both backups are the value itself.
    same = rewarded([2.0], [n], **(columns | {"logp_choice_now": logp.max(1)}))
    np.testing.assert_allclose(at_tokens(ConservativeTarget(alpha=alpha, gamma=0.9), same), best)
    # A one-step episode has nothing behind it: the error is r - Q.
    assert at_tokens(ConservativeTarget(gamma=0.9), rewarded([2.0], [1], **{k: v[:1] for k, v in columns.items()})) == [2.0]


def test_a_two_state_chain_has_its_fixed_point() -> None:
    """s0 -> s1 -> end, reward 1 at the end, gamma .5, two actions each: under the conservative backup Q(s1, .) = 1 and
    Q(s0, a) = .5 Q(s1, a*), with a* the frozen policy's action, however the present policy ranks it.
    """
    alpha, gamma, frozen = 1.0, 0.5, 1
    q = np.zeros((2, 2))
    for _ in range(200):
        value, logp = q.max(1), (q - q.max(1, keepdims=True)) / alpha  # logits whose duel gives Q back
        taken = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])  # the actions of four rollouts
        batch = rewarded(
            [1.0] * 4,
            [2] * 4,
            logp_choice_now=np.tile(logp[:, frozen], 4),
            logp_max_now=np.tile(logp.max(1), 4),
            values_target=np.tile(value, 4),
        )
        target = np.array(at_tokens(ConservativeTarget(alpha=alpha, gamma=gamma), batch)).reshape(4, 2)
        for state in (0, 1):
            for action in (0, 1):
                q[state, action] += 0.3 * (target[taken[:, state] == action, state].mean() - q[state, action])
    np.testing.assert_allclose(q, [[0.5, 0.5], [1.0, 1.0]], atol=1e-12)


def test_two_levels_of_a_critic_settle() -> None:
    """ArCHer without discount on episodes of one turn: Q goes to r, V to E_pi r, so Q - V is the reward less a baseline; and
    with gamma 0 every turn is a bandit of its own.
    """
    q, v, q_bar, v_bar = np.zeros(2), 0.0, np.zeros(2), 0.0  # two actions, half of the rollouts each
    rewards = np.array([1.0, 0.0])
    tau = 0.1
    for _ in range(400):
        batch = rewarded(rewards.tolist(), [1, 1], call=0, v1_target=v_bar, q1_target=q_bar)
        to_q = np.array(at_tokens(ReturnTarget(gamma=0.95, lam=0.0, values="v1_target", by="call"), batch))
        to_v = np.array(at_tokens(ColumnTarget(column="q1_target", at="end"), batch))
        q, v = q + 0.5 * (to_q - q), v + 0.5 * (to_v.mean() - v)
        q_bar, v_bar = q_bar + tau * (q - q_bar), v_bar + tau * (v - v_bar)
    np.testing.assert_allclose(q, rewards, atol=1e-9)
    np.testing.assert_allclose(q - v, [0.5, -0.5], atol=1e-9)
    batch = rewarded([1.0], [3], call=[0, 1, 2], v1_target=[5.0, 6.0, 7.0])
    assert at_tokens(ReturnTarget(gamma=0.0, lam=0.0, values="v1_target", by="call"), batch) == [0.0, 0.0, 1.0]


def test_bad_targets_are_named() -> None:
    for make, says in (
        (lambda: ReturnTarget(gamma=1.5), r"gamma=1.5; use a number in \[0, 1\]"),
        (lambda: ReturnTarget(lam=-0.1), "lam=-0.1"),
        (lambda: ReturnTarget(outcome="rewards"), "did you mean 'reward'"),
        (lambda: ColumnTarget(column="x", at="begin"), "place of ColumnTarget"),
        (lambda: ConservativeTarget(alpha=0.0), "alpha > 0"),
        (lambda: ConservativeTarget(gamma=1.1), "gamma in"),
        (lambda: ConservativeTarget(outcome="rewards"), "did you mean 'reward'"),
    ):
        with pytest.raises(ConfigError, match=says):
            make()
