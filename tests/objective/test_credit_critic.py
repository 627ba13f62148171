"""PPO end to end: what the chain makes reaches the critic, and what passes and heads fill reaches the chain."""

import numpy as np
import pytest
from credit_batches import chains, near
from objective_batches import tiny

from assay.core.columns import TokenColumn
from assay.objective import Objective
from assay.objective.methods import credit, weighted
from assay.testing.objective import check_objective, evaluate


def actor_and_critic(objective: Objective, values: list[float], old: list[float]) -> tuple[float, np.ndarray, np.ndarray]:
    """Loss, and the gradients by log-probability and by value, of one rollout whose rewards are 0, 0 and 1."""
    batch = chains([1.0], [[1, 1, 1]], columns={"values_old": [old], "logp_old": [[-1.0] * 3], "logp_ref": [[-1.0] * 3]})
    mask = batch.token("mask")
    live = {"logp_new": np.full(int(batch.offsets[-1]), -1.0), "values": np.zeros(int(batch.offsets[-1]))}
    live["values"][mask] = values
    outcome = evaluate(objective.compile(), batch, live)
    return outcome.loss, outcome.gradients["logp_new"][mask], outcome.gradients["values"][mask]


def test_the_critic_regresses_the_returns_of_the_chain() -> None:
    old = [0.2, 0.4, 0.6]
    objective = credit.ppo(kl=0.0, whiten="none", value=1.0, value_clip=None)
    loss, actor, critic = actor_and_critic(objective, old, old)
    near(actor, -np.array([0.751, 0.58, 0.4]) / 3, 1e-12)
    near(critic, (np.array(old) - [0.951, 0.98, 1.0]) / 3, 1e-12)
    near(loss, -np.mean([0.751, 0.58, 0.4]) + 0.5 * np.mean((np.array(old) - [0.951, 0.98, 1.0]) ** 2), 1e-12)


def test_value_clipping_has_the_sheets_number() -> None:
    """V = .9, V_old = .5, return 1: half the larger square, (.7 - 1)^2, is .045."""
    batch = chains([1.0], [[1]], columns={"values_old": [[0.5]], "logp_old": [[-1.0]]})
    objective = credit.ppo(kl=0.0, whiten="none", value=1.0)
    live = {"logp_new": np.array([0.0, -1.0]), "values": np.array([0.0, 0.9])}
    outcome = evaluate(objective.compile(), batch, live)
    near(outcome.loss, -0.5 + 0.045, 1e-12)


def test_resampling_comes_before_advantages_and_critic() -> None:
    batch = tiny([-2, 1, 0, 1], columns={"values_old": 0.0, "logp_old": -1.0, "logp_ref": -1.0})
    program = weighted.pf_ppo(kl=0.05).compile()
    ready = program.prepare(batch)
    near(ready.rollout("keep"), 4 * np.array([4, 1, 0, 1]) / 6, 1e-12)
    # Whitened over -2 four times and 1 twice: mean -1, standard deviation sqrt(2).
    mask = ready.token("mask")
    near(ready.token("advantage")[mask][[0, 1, 3]], np.array([-1, 2, 2]) / np.sqrt(2), 1e-7)


@pytest.mark.parametrize("name", ["ppo", "otb", "pf_ppo"])
def test_laws(name: str, seeds: range) -> None:
    make = weighted.pf_ppo if name == "pf_ppo" else getattr(credit, name)
    check_objective(make(), seeds)


def test_the_optimal_baseline_reads_the_mass_of_squares() -> None:
    batch = tiny([1.0, 0.0], columns={"logp_old": -1.0, "sum_pi_squared_old": 0.4})
    done = credit.otb().compile().credit(batch)
    near(done.token("advantage")[done.token("mask")], [0.5, -0.5], 1e-12)


def test_ppo_without_a_chain_of_its_own_has_no_returns() -> None:
    made = (
        credit.ppo(kl=0.0)
        .compile()
        .credit(chains([1.0], [[1, 0, 1]], columns={"values_old": [[0.5, 0.0, 0.5]], "logp_old": [[-1.0] * 3]}))
    )
    column = made.tokens["returns"]
    assert isinstance(column, TokenColumn)
    near(column.values[made.token("mask")], [0.975, 1.0], 1e-12)


def test_the_dual_clip_is_a_setting() -> None:
    assert credit.ppo(dual=3.0).policy != credit.ppo().policy
