"""Methods with critics, and policies that are value functions: their numbers, their limits, and who learns from what."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from objective_batches import advantages, plain, run, slopes, tiny

from assay.core.errors import ConfigError
from assay.objective import Objective, SeqSum
from assay.objective.credit.critics import TurnAdvantage
from assay.objective.methods.credit import ppo
from assay.objective.methods.value import archer, b_coder, ppo_hl_gauss, rover, vapo
from assay.testing.objective import check_objective, check_term, random_batch, random_live
from assay.testing.objective import evaluate as outcome_of

METHODS = [
    ppo_hl_gauss(),
    ppo_hl_gauss(bins=5, low=-2.0, high=2.0, kl=0.0, whiten="none"),
    vapo(),
    vapo(adaptive=None, imitate=0.0, value_clip=0.2),
    rover(),
    rover(rho=0.5, scale=True),
    b_coder(),
    b_coder(alpha=0.5, gamma=0.5, margin=0.0, imitate=0.0, values="values_target"),
    archer(),
    archer(gamma=0.0, value=0.5),
]


@pytest.mark.parametrize("objective", METHODS)
def test_laws(objective: Objective, seeds: range) -> None:
    check_objective(objective, seeds)


def test_laws_of_parts(seeds: range) -> None:
    check_term(TurnAdvantage(), seeds)


def filled(objective: Objective) -> dict[str, str]:
    """Columns that passes without gradient fill, and when."""
    return {f.column: f.when for f in objective.plan().forwards}


# ---- PPO and its kin ----------------------------------------------------------------------------------------------------


def test_ppo_numbers() -> None:
    """One rollout, rewards [0, 0, 1], V [.2, .4, .6], lam .95: A [.751, .58, .4], returns A + V; V .9 from .5 towards 1: .045."""
    objective = ppo(kl=0.0, whiten="none", value=1.0)
    assert filled(objective) == {"logp_old": "batch", "values_old": "batch"}
    batch = tiny([1], lengths=[3], columns={"logp_old": -1.0, "values_old": [0.2, 0.4, 0.6]})
    found = objective.compile().credit(batch)
    mask = batch.token("mask")
    np.testing.assert_allclose(found.token("advantage")[mask], [0.751, 0.58, 0.4])
    np.testing.assert_allclose(found.token("returns")[mask], [0.951, 0.98, 1.0])
    one = tiny([1], columns={"logp_old": -1.0, "values_old": 0.5})
    assert run(objective, one, values=0.9).metrics["loss/td"] == pytest.approx(0.045)
    whole = run(objective, batch, values=[0.2, 0.4, 0.6])
    np.testing.assert_allclose(whole.gradients["values"][mask], -np.array([0.751, 0.58, 0.4]) / 3)
    np.testing.assert_allclose(whole.gradients["logp_new"][mask], -np.array([0.751, 0.58, 0.4]) / 3)


def test_a_categorical_critic_changes_nothing_for_the_actor() -> None:
    objective = ppo_hl_gauss(bins=5, low=0.0, high=1.0, kl=0.0, whiten="none", value=2.0)
    assert filled(objective) == {"logp_old": "batch", "values_old": "batch"}
    batch = tiny([1], lengths=[3], columns={"logp_old": -1.0, "values_old": [0.2, 0.4, 0.6]})
    live = {"logp_new": np.where(batch.token("mask"), -1.0, 0.0), "values": np.zeros((4, 5))}
    outcome = outcome_of(objective.compile(), batch, live)
    with_squares = run(ppo(kl=0.0, whiten="none"), batch, values=0.0)
    np.testing.assert_allclose(outcome.gradients["logp_new"], with_squares.gradients["logp_new"])
    fit = objective.terms[0].fit  # type: ignore[attr-defined]
    q = fit.histogram(torch.tensor([0.951, 0.98, 1.0], dtype=torch.float64)).numpy()
    np.testing.assert_allclose(outcome.gradients["values"][1:], 2.0 * (0.2 - q) / 3, atol=1e-12)
    assert outcome.metrics["critic/value"] == pytest.approx(0.5)


def test_vapo_believes_rewards_more_in_long_attempts() -> None:
    batch = tiny([1], lengths=[40], columns={"logp_old": -1.0, "values_old": 0.0})
    # lam = 1 - 1 / (.05 * 40) = .5; the outcome alone is paid, so A_t = .5^(T - t), and the critic's target is the outcome.
    found = replace(vapo(), credit=vapo().credit[:1]).compile().credit(batch)
    np.testing.assert_allclose(found.token("advantage")[batch.token("mask")], 0.5 ** np.arange(39, -1, -1))
    np.testing.assert_allclose(found.token("returns")[batch.token("mask")], 1.0)
    batch = random_batch(3, ["logp_old", "values_old"])
    live = random_live(batch, ["logp_new", "values"], 3)
    bare = vapo(adaptive=None, lam_returns=0.95, low=0.2, high=0.2, imitate=0.0, value_clip=0.2)
    a, b = (outcome_of(o.compile(), batch, live) for o in (bare, ppo(kl=0.0)))
    assert a.loss == pytest.approx(b.loss)
    for name, gradient in a.gradients.items():
        np.testing.assert_allclose(gradient, b.gradients[name])


def test_vapo_imitates_its_own_successes_alone() -> None:
    batch = tiny([1, 0, 0, 1], lengths=[1, 5, 2, 3], columns={"logp_old": -1.0, "values_old": 0.0})
    with_it, without = (run(vapo(imitate=x), batch, values=0.0).gradients["logp_new"] for x in (0.1, 0.0))
    imitated = (with_it - without)[batch.token("mask")]
    np.testing.assert_allclose(imitated, np.repeat([-0.1 / 4, 0, 0, -0.1 / 4], [1, 5, 2, 3]), atol=1e-12)
    failed = tiny([0, 0], lengths=[1, 5], columns={"logp_old": -1.0, "values_old": 0.0})
    assert run(vapo(), failed, values=0.0).metrics.get("loss/own_success", 0.0) == 0


# ---- ROVER --------------------------------------------------------------------------------------------------------------


def test_rover_is_a_regression_over_the_whole_vocabulary() -> None:
    """Against a softmax policy of 3 tokens on two rollouts, in float64, by autograd on its logits."""
    rho, rng = 0.6, np.random.default_rng(0)
    lengths, ids = [2, 1], np.array([0, 2, 1])
    old = torch.tensor(rng.normal(size=(3, 3)))
    logits = (old + torch.tensor(rng.normal(size=(3, 3)))).requires_grad_()
    logp, before = logits.log_softmax(1), old.log_softmax(1)
    pick = torch.arange(3)
    q = rho * (logp - before)
    after = torch.stack([q[1].mean().detach(), q.new_zeros(()), q.new_zeros(())])  # 0 behind each rollout's last token
    target = torch.tensor([0.5, 0.5, -0.5]) + after
    by_hand = (q[pick, ids] - target).square().mean()
    by_hand.backward()
    columns = {"logp_old": before[pick, ids].numpy(), "logp_mean_old": before.mean(1).numpy()}
    columns["logp_mean_now"] = logp.detach().mean(1).numpy()
    batch = tiny([1, 0], lengths=lengths, columns=columns)
    objective = rover(rho=rho)
    assert filled(objective) == {"logp_old": "batch", "logp_mean_old": "batch", "logp_mean_now": "step"}
    outcome = run(objective, batch, logp.detach()[pick, ids].tolist())
    assert outcome.loss == pytest.approx(float(by_hand.detach()))
    by_logp = torch.tensor(outcome.gradients["logp_new"][batch.token("mask")])
    again = logits.detach().requires_grad_()
    (again.log_softmax(1)[pick, ids] * by_logp).sum().backward()
    assert again.grad is not None and logits.grad is not None
    np.testing.assert_allclose(again.grad.numpy(), logits.grad.numpy(), atol=1e-12)


def test_rover_starts_as_reinforce_with_centred_reward() -> None:
    same = {"logp_old": -1.0, "logp_mean_old": -3.0, "logp_mean_now": -3.0}
    batch = tiny([1, 0, 0, 0], lengths=[2, 1, 1, 2], columns=same)
    centred = np.repeat([0.75, -0.25, -0.25, -0.25], [2, 1, 1, 2])
    np.testing.assert_allclose(slopes(rover(), batch), -2 * centred / 6)
    scaled = slopes(rover(scale=True), batch)
    np.testing.assert_allclose(scaled, -2 * centred / (0.5 + 1e-6) / 6, atol=1e-9)


# ---- B-Coder ------------------------------------------------------------------------------------------------------------


def test_b_coder_numbers() -> None:
    objective = b_coder(alpha=2.0, gamma=0.5, margin=0.25, imitate=0.125)
    assert filled(objective) == {"logp_choice_now": "step", "logp_max_now": "step", "values_now": "step"}
    assert [s.name for s in objective.plan().vocab] == ["logp_max"]
    columns = {"logp_choice_now": [-9.0, -1.0, 0.0], "logp_max_now": [-9.0, -0.25, 0.0], "values_now": [7.0, 0.5, 0.0]}
    batch = tiny([1, 0], lengths=[2, 1], columns=columns, streams=["on_policy", "expert"])
    outcome = run(objective, batch, [-1.0, -2.0, -3.0], logp_max=[-0.5, -0.25, -1.0], values=[0.1, 0.2, 9.0])
    q = np.array([2 * -0.5 + 0.1, 2 * -1.75 + 0.2])
    target = np.array([0.5 * (2 * -0.75 + 0.5), 1.0])
    td, demo = ((q - target) ** 2).mean(), 0.25 * 2 * 2.0 + 0.125 * 3.0
    assert outcome.loss == pytest.approx(td + demo)
    error = 2 * (q - target) / 2
    mask = batch.token("mask")
    np.testing.assert_allclose(outcome.gradients["values"][mask], [*error, 0])
    np.testing.assert_allclose(outcome.gradients["logp_new"][mask], [*(2 * error), -0.25 * 2 - 0.125])
    # A one-step episode: the error is r - Q, whatever the frozen model likes.
    single = tiny([1], columns={"logp_choice_now": -3.0, "logp_max_now": -0.1, "values_now": 4.0})
    assert run(objective, single, -1.0, logp_max=-1.0, values=0.25).loss == pytest.approx(0.75**2)


def test_without_values_the_best_answer_is_the_models_own() -> None:
    """V = 0 and nothing learned: Q is alpha (logp - logp_max), largest where the model is surest."""
    logits = torch.tensor([[0.3, 1.2, -0.4], [2.0, 0.0, 1.9]])
    logp = logits.log_softmax(1)
    q = 0.5 * (logp - logp.amax(1, keepdim=True))
    assert q.argmax(1).tolist() == logits.argmax(1).tolist()
    assert q.amax(1).tolist() == [0.0, 0.0]
    np.testing.assert_allclose((q / 0.5).softmax(1).numpy(), logits.softmax(1).numpy(), atol=1e-6)


# ---- ArCHer -------------------------------------------------------------------------------------------------------------


def turns(rewards: list[float], calls: list[list[int]], **columns: Any) -> Any:
    """Rollouts whose tokens belong to these calls, with columns per token."""
    flat = [c for call in calls for c in call]
    names = [f"{head}{k}_{source}" for head in "qv" for k in "12" for source in ("old", "target")]
    return tiny(rewards, lengths=[len(c) for c in calls], columns={**dict.fromkeys(names, 0.0), "call": flat, **columns})


def test_archer_takes_the_minimum_in_the_actor_alone() -> None:
    objective = archer(gamma=0.5)
    when = filled(objective)
    assert all(when[f"{h}{k}_old"] == "batch" and when[f"{h}{k}_target"] == "step" for h in "qv" for k in "12")
    assert objective.plan().columns == ("call",)
    batch = turns(
        [1.0],
        [[0, 0, 1]],
        q1_old=[9.0, 0.5, 0.75],
        q2_old=[9.0, 0.25, 1.0],
        v1_old=[0.125, 9.0, 0.5],
        v2_old=[0.5, 9.0, 0.25],
        v1_target=[9.0, 9.0, 0.4],
        v2_target=[9.0, 9.0, 0.6],
        q1_target=[9.0, 0.3, 0.8],
        q2_target=[9.0, 0.7, 0.2],
    )
    outcome = run(objective, batch, q1=0.0, q2=0.0, v1=0.0, v2=0.0)
    mask = batch.token("mask")
    np.testing.assert_allclose(outcome.gradients["logp_new"][mask], -np.array([0.125, 0.125, 0.5]))
    # Each critic follows its own target weights, at its turn's end or start.
    np.testing.assert_allclose(outcome.gradients["q1"][mask], -2 * np.array([0, 0.5 * 0.4, 1.0]))
    np.testing.assert_allclose(outcome.gradients["q2"][mask], -2 * np.array([0, 0.5 * 0.6, 1.0]))
    np.testing.assert_allclose(outcome.gradients["v1"][mask], -2 * np.array([0.3, 0, 0.8]))
    np.testing.assert_allclose(outcome.gradients["v2"][mask], -2 * np.array([0.7, 0, 0.2]))


def test_archer_on_one_turn_is_reinforce_with_a_critic() -> None:
    """Settled critics of episodes of one turn: Q is the reward, V its expectation."""
    settled = {"q1_old": [1.0, 1.0, 0.0], "q2_old": [1.0, 1.0, 0.0], "v1_old": 0.5, "v2_old": 0.5}
    batch = turns([1.0, 0.0], [[0, 0], [0]], **settled)
    outcome = run(archer(), batch, q1=0.0, q2=0.0, v1=0.0, v2=0.0)
    np.testing.assert_allclose(outcome.gradients["logp_new"][batch.token("mask")], -np.array([0.5, 0.5, -0.5]) / 2)


def test_a_turn_advantage_of_one_critic_each() -> None:
    batch = turns([1.0, 0.0], [[0, 1], [0]], q1_old=[0.5, 2.0, 0.25], v1_old=[0.25, 1.0, 0.5]).with_rollouts()
    one = TurnAdvantage(actions=("q1_old",), states=("v1_old",))
    assert one.kind == "baseline"
    brings = ("q1_old", "v1_old")
    np.testing.assert_allclose(advantages(batch, one, brings=brings), [(0.25 + 1.0) / 2, -0.25])
    tokens = Objective(credit=(one,), policy=plain(), aggregate=SeqSum(), brings=brings).compile().credit(batch)
    np.testing.assert_allclose(tokens.token("advantage")[batch.token("mask")], [0.25, 1.0, -0.25])
    with pytest.raises(ConfigError, match="at least one column of each"):
        TurnAdvantage(actions=())
