"""The two other terminals: losses on sets of scores by two passes, and regression of values."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from objective_batches import plain, run, slopes, tiny

from assay.core.batch import Batch
from assay.core.errors import ConfigError, PlanError
from assay.objective import (
    BalancedBce,
    Center,
    ColumnTarget,
    GroupSoftmax,
    LogRatioValue,
    Objective,
    OutcomeTarget,
    ScoreLoss,
    SetLoss,
    Target,
    TdLoss,
    Token,
    Value,
    View,
    pacs,
    real,
    rloo,
)
from assay.testing.objective import evaluate, random_batch, random_live

LOG2 = math.log(2)


def scores(
    objective: Objective, s: list[float], labels: list[float], groups: list[int] | None = None
) -> tuple[float, np.ndarray]:
    """Loss and implicit advantages of one-token attempts with scores ``s``."""
    batch = tiny(labels, groups, columns={"logp_old": -2.0})
    logp = -2.0 + np.array(s)
    return run(objective, batch, logp).loss, -slopes(objective, batch, logp)


def test_pacs_numbers() -> None:
    loss, _ = scores(pacs(), [0.4, -0.2, 0.0, -0.2], [1, 0, 0, 0])
    assert loss == pytest.approx(0.5359, abs=5e-5)
    loss, implicit = scores(pacs(), [0.0] * 4, [1, 0, 0, 0])
    assert loss == pytest.approx(LOG2)
    np.testing.assert_allclose(implicit, [1 / 3] + [-1 / 9] * 3)
    np.testing.assert_allclose(implicit, np.array([1, -1 / 3, -1 / 3, -1 / 3]) / 3)


def test_pacs_on_groups_of_one_class() -> None:
    loss, implicit = scores(pacs(), [0.0] * 3, [1, 1, 1])
    assert loss == pytest.approx(LOG2)
    np.testing.assert_array_equal(implicit, [0, 0, 0])
    _, later = scores(pacs(), [0.3, -0.1, 0.0], [1, 1, 1])
    assert np.abs(later).min() > 0
    raw = Objective(policy=ScoreLoss(phi=BalancedBce(psi="raw", balance=False)))
    assert raw.min_group == 1
    np.testing.assert_allclose(scores(raw, [0.0] * 2, [1, 1])[1], [0.25, 0.25])
    assert scores(raw, [1.0, 0.0], [1, 0])[0] == pytest.approx((math.log(1 + math.exp(-1)) + LOG2) / 2)


def test_real_numbers() -> None:
    loss, _ = scores(real(), [0.1, -0.05, 0.0, 0.02], [1, 0, 0, 0])
    assert loss == pytest.approx(1.97075, abs=5e-6)
    loss, implicit = scores(real(), [0.0] * 4, [1, 0, 0, 0])
    assert loss == pytest.approx(2.0794, abs=5e-5)
    np.testing.assert_allclose(implicit, [1, -0.5, -0.5, -0.5])
    # A group of one class adds nothing and stays in the divisor.
    loss, implicit = scores(real(), [0.0] * 6, [1, 0, 0, 0, 1, 1], [0, 0, 0, 0, 1, 1])
    assert loss == pytest.approx(2.0794 / 2, abs=5e-5)
    np.testing.assert_array_equal(implicit[4:], [0, 0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference(SetLoss):
    """DPO on all (better, worse) pairs of a group: a set loss in the user's own few lines."""

    beta: float = 0.1

    def total(self, scores: torch.Tensor, reward: torch.Tensor, group: torch.Tensor) -> tuple[torch.Tensor, float]:
        better = (group[:, None] == group[None, :]) & (reward[:, None] > reward[None, :])
        gap = (scores[:, None] - scores[None, :])[better]
        return torch.nn.functional.softplus(-self.beta * gap).sum(), float(len(gap))


def test_a_users_pairwise_loss() -> None:
    objective = Objective(policy=ScoreLoss(phi=Preference(), anchor="ref", streams=("preference",)))
    assert {f.column for f in objective.plan().forwards} == {"logp_ref", "logp_now"}
    batch = tiny([1, 0], columns={"logp_ref": -2.0}, streams=["preference"] * 2)
    assert run(objective, batch, [0.5, -2.5]).loss == pytest.approx(0.5544, abs=5e-5)
    np.testing.assert_allclose(-slopes(objective, batch, -2.0), [0.05, -0.05])
    without = tiny([1, 1], columns={"logp_ref": -2.0}, streams=["preference"] * 2)
    assert run(objective, without, -2.0).loss == 0


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "policy",
    [
        ScoreLoss(phi=BalancedBce(), scale=2.0),
        ScoreLoss(phi=BalancedBce(psi="raw"), score="mean", anchor=""),
        ScoreLoss(phi=GroupSoftmax(), score="mean", coef=0.3),
        ScoreLoss(phi=Preference()),
    ],
)
def test_two_passes_give_the_gradient_of_phi(policy: ScoreLoss, seed: int) -> None:
    batch = random_batch(seed, ["logp_old"])
    live = random_live(batch, ["logp_new"], seed)
    outcome = evaluate(Objective(policy=policy).compile(), batch, live, [[r] for r in range(len(batch))])
    logp = torch.tensor(live["logp_new"], requires_grad=True)
    rows = {int(r): i for i, r in enumerate(batch.rows["rollout"])}
    s: list[torch.Tensor] = []
    for row in rows.values():
        here = slice(int(batch.offsets[row]), int(batch.offsets[row + 1]))
        mask = torch.tensor(batch.token("mask")[here])
        gap = logp[here] - (torch.tensor(batch.token("logp_old")[here]) if policy.anchor else 0.0)
        s.append(policy.scale * (gap[mask].mean() if policy.score == "mean" else gap[mask].sum()))
    index = np.array(list(rows))
    reward = torch.tensor(batch.rollout("components/correct")[index])
    total, count = policy.phi.total(torch.stack(s), reward, torch.tensor(batch.rollout("group")[index]))
    phi = policy.coef * total / count
    phi.backward()
    assert outcome.loss == pytest.approx(float(phi.detach()))
    assert logp.grad is not None
    np.testing.assert_allclose(outcome.gradients["logp_new"], logp.grad.numpy(), atol=1e-12)
    assert np.abs(logp.grad.numpy()).max() > 0


def test_pacs_starts_as_a_third_of_rloo() -> None:
    batch = tiny([1, 0, 0, 0], lengths=[2, 1, 3, 1], columns={"logp_old": -1.0})
    # PACS averages over attempts as RLOO does, and BCE's slope at 0 with balanced weights is a third of A for 1 of 4.
    np.testing.assert_allclose(slopes(pacs(), batch), slopes(rloo(), batch) * 4 / 3, atol=1e-12)


def test_bad_score_settings_are_named() -> None:
    for make, says in (
        (lambda: ScoreLoss(score="max"), "unknown score"),
        (lambda: ScoreLoss(scale=0.0), "positive"),
        (lambda: ScoreLoss(aggregate=Token()), "brings its own denominator"),
        (lambda: BalancedBce(psi="rawr"), "did you mean 'raw'"),
        (lambda: GroupSoftmax(tau=0.0), "temperature"),
    ):
        with pytest.raises(ConfigError, match=says):
            make()
    assert Preference().min_group == 1


def test_a_score_loss_without_rows_is_nothing() -> None:
    batch = tiny([1, 0], columns={"logp_old": -1.0}, streams=["expert", "expert"])
    outcome = run(pacs(), batch)
    assert outcome.loss == 0
    assert not outcome.gradients["logp_new"].any()


# ---- regression -------------------------------------------------------------------------------------------------------


def critic(**kwargs: Any) -> Objective:
    td = TdLoss(coef=0.5, label="critic", **kwargs)
    return Objective(policy=plain(), terms=(td,), aggregate=Token(), brings=("returns", "values_old"))


def test_value_regression_with_clipping() -> None:
    objective = critic(target=ColumnTarget(column="returns"), clip=0.2)
    assert "values" in objective.plan().live
    assert objective.plan().columns == ("returns", "values_old")
    batch = tiny([0], columns={"returns": 1.0, "values_old": 0.5})
    outcome = run(objective, batch, values=0.9)
    assert outcome.loss == pytest.approx(0.045)
    # The clipped value's error is the larger one, so the value has no gradient.
    assert not outcome.gradients["values"].any()
    inside = run(objective, batch, values=0.6)
    assert inside.loss == pytest.approx(0.5 * 0.16)
    assert inside.gradients["values"][1] == pytest.approx(-0.4)
    assert inside.metrics["critic/error"] == pytest.approx(0.16)


def test_value_regression_on_outcomes_and_advantages() -> None:
    batch = tiny([1, 0], lengths=[1, 3])
    outcome = run(critic(), batch, values=[0.5, 0.5, 0.5, 0.5])
    np.testing.assert_allclose(outcome.gradients["values"][batch.token("mask")], np.array([-0.5, 0.5, 0.5, 0.5]) / 4)
    centred = Objective(credit=(Center(),), policy=plain(), terms=(TdLoss(target=OutcomeTarget(column="advantage")),))
    assert run(centred, batch, values=0.0).metrics["loss/td"] == pytest.approx(0.25)


@dataclass(frozen=True, slots=True, kw_only=True)
class NextMean(Target):
    """ROVER's target: the advantage plus the mean value over the vocabulary at the next loss token, 0 behind the last."""

    rho: float = 1.0

    @property
    def needs(self) -> tuple[str, ...]:
        return ("advantage", "logp_mean_now", "logp_mean_old")

    def of(self, batch: Batch) -> np.ndarray:
        mask = batch.token("mask")
        value = np.where(mask, self.rho * (batch.token("logp_mean_now") - batch.token("logp_mean_old")), 0.0)
        last = batch.offsets[1:] - 1
        following = np.append(value[1:], 0.0)
        following[last] = 0.0
        return batch.token("advantage") + following


def rover(rho: float) -> Objective:
    td = TdLoss(value=LogRatioValue(rho=rho), target=NextMean(rho=rho))
    return Objective(credit=(Center(),), policy=td, aggregate=Token(), brings=("logp_mean_now", "logp_mean_old"))


def test_rover_fits_as_a_regression_of_log_ratios() -> None:
    plan = rover(1.0).plan()
    assert [f.column for f in plan.forwards] == ["logp_old"]
    assert plan.columns == ("logp_mean_now", "logp_mean_old")
    rho, lengths = 0.7, [2, 3]
    same = {"logp_old": -1.0, "logp_mean_old": -3.0, "logp_mean_now": -3.0}
    batch = tiny([1, 0], lengths=lengths, columns=same)
    # At the old policy: REINFORCE with centred reward, token mean, times 2 rho.
    np.testing.assert_allclose(slopes(rover(rho), batch), -2 * rho * np.array([0.5, 0.5, -0.5, -0.5, -0.5]) / 5)
    moved = tiny([1, 0], lengths=lengths, columns=same | {"logp_mean_now": [-3.0, -2.5, -3.0, -2.0, -3.5]})
    following = rho * np.array([0.5, 0.0, 1.0, -0.5, 0.0])
    target = np.array([0.5, 0.5, -0.5, -0.5, -0.5]) + following
    np.testing.assert_allclose(slopes(rover(rho), moved), -2 * rho * target / 5)


def test_bad_regressions_are_named() -> None:
    with pytest.raises(ConfigError, match="positive distance"):
        TdLoss(clip=0.0)
    with pytest.raises(ConfigError, match="value head"):
        TdLoss(value=LogRatioValue(), clip=0.2)
    with pytest.raises(ConfigError, match="did you mean 'reward'"):
        OutcomeTarget(column="rewards")
    with pytest.raises(PlanError, match="two terminals"):
        Objective(policy=plain(), terms=(TdLoss(value=LogRatioValue()),)).plan()
    constant = Objective(policy=plain(), terms=(TdLoss(value=Constantly()),))
    assert run(constant, tiny([1])).metrics["loss/td"] == pytest.approx(0.25)
    assert Constantly().anchors == ()
    assert not Constantly().policy
    assert not ColumnTarget(column="returns").reward


@dataclass(frozen=True, slots=True, kw_only=True)
class Constantly(Value):
    """One half, whatever the state."""

    def of(self, view: View) -> torch.Tensor:
        return view.live("logp_new") * 0 + 0.5
