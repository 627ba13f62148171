"""Regression of values: fits, clipping, where it acts, and who learns from it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from objective_batches import plain, run, slopes, spread, tiny

from assay.core.columns import TokenColumn
from assay.core.errors import ConfigError, DataError, PlanError
from assay.objective import Center, Objective, SeqSum, Token, View
from assay.objective.loss.td import Margin, TdLoss
from assay.objective.loss.td_fits import Bce, Fit, HlGauss, Huber, Square, TwoHot
from assay.objective.loss.td_targets import ColumnTarget, ConservativeTarget, MeanTarget, OutcomeTarget, ReturnTarget
from assay.objective.loss.td_values import DuelingValue, HeadValue, LogRatioValue, Value
from assay.testing.objective import check_term, evaluate


def critic(**kwargs: Any) -> Objective:
    td = TdLoss(**{"coef": 0.5, "label": "critic", **kwargs})
    return Objective(policy=plain(), terms=(td,), aggregate=Token(), brings=("returns", "values_old", "call", "ahead"))


def on_returns(returns: Any, **kwargs: Any) -> tuple[Objective, Any]:
    batch = tiny([0], lengths=[np.size(returns)], columns={"returns": returns, "values_old": 0.5})
    return critic(target=ColumnTarget(column="returns"), **kwargs), batch


def fitted(fit: Fit, outputs: Any, returns: Sequence[float]) -> Any:
    """Outcome of one rollout whose tokens have these outputs ``[n]`` or ``[n, k]`` and returns."""
    objective, batch = on_returns(np.array(returns), fit=fit)
    given = np.zeros((int(batch.offsets[-1]), *np.shape(outputs)[1:]))
    given[batch.token("mask")] = outputs
    program = objective.compile()
    live = {n: torch.tensor(v, requires_grad=True) for n, v in (("logp_new", spread(batch, -1.0)), ("values", given))}
    loss, metrics = program.micro(program.prepare(batch), live)
    loss.backward()
    slope = live["values"].grad
    assert slope is not None
    return float(loss.detach()), slope.numpy()[batch.token("mask")], metrics


# ---- squares and clipping -----------------------------------------------------------------------------------------------


def test_value_regression_with_clipping() -> None:
    objective, batch = on_returns([1.0], clip=0.2)
    assert "values" in objective.plan().live
    assert {"returns", "values_old"} <= set(objective.plan().columns)
    outcome = run(objective, batch, values=0.9)
    assert outcome.loss == pytest.approx(0.045)
    # The clipped value's error is the larger one, so the value has no gradient.
    assert not outcome.gradients["values"].any()
    assert outcome.metrics["critic/clip_fraction"] == 1
    inside = run(objective, batch, values=0.6)
    assert inside.loss == pytest.approx(0.5 * 0.16)
    assert inside.gradients["values"][1] == pytest.approx(-0.4)
    assert (inside.metrics["critic/error"], inside.metrics["critic/value"]) == (pytest.approx(0.16), pytest.approx(0.6))
    assert inside.metrics["critic/clip_fraction"] == 0
    # Away from the target the larger loss is the unclipped one, and it pulls back.
    assert run(objective, batch, values=0.1).gradients["values"][1] == pytest.approx(-0.9)


def test_value_regression_on_outcomes_and_advantages() -> None:
    batch = tiny([1, 0], lengths=[1, 3])
    outcome = run(critic(), batch, values=[0.5, 0.5, 0.5, 0.5])
    np.testing.assert_allclose(outcome.gradients["values"][batch.token("mask")], np.array([-0.5, 0.5, 0.5, 0.5]) / 4)
    centred = Objective(credit=(Center(),), policy=plain(), terms=(TdLoss(target=OutcomeTarget(column="advantage")),))
    assert run(centred, batch, values=0.0).metrics["loss/td"] == pytest.approx(0.25)


def test_huber_is_a_square_inside_and_a_line_outside() -> None:
    loss, slope, _ = fitted(Huber(), [12.0, -2.0], [0.0, 0.0])
    assert loss == pytest.approx(0.5 * (70 + 2) / 2)
    np.testing.assert_allclose(slope, [0.5 * 10 / 2, 0.5 * -2 / 2])
    half, square = fitted(Huber(delta=100.0), [0.3], [1.0]), fitted(Square(), [0.3], [1.0])
    assert half[0] == pytest.approx(square[0] / 2)
    objective, batch = on_returns([1.0], clip=0.2, fit=Huber())
    assert run(objective, batch, values=0.9).loss == pytest.approx(0.0225)


# ---- cross-entropies ----------------------------------------------------------------------------------------------------


def test_hl_gauss_vector() -> None:
    five = HlGauss(low=0.0, high=1.0, bins=5)
    found = five.histogram(torch.tensor([0.5], dtype=torch.float64))[0]
    phi = lambda x: 0.5 * math.erfc(-x / math.sqrt(2))
    by_hand = np.diff([phi((e - 0.5) / 0.15) for e in (0, 0.2, 0.4, 0.6, 0.8, 1)])
    np.testing.assert_allclose(found.numpy(), by_hand / by_hand.sum(), atol=1e-14)
    np.testing.assert_allclose(found.numpy(), [0.0223, 0.2299, 0.4954, 0.2299, 0.0223], atol=5e-5)
    assert float(found @ five.centres(found)) == pytest.approx(0.5)
    # Without width it is one-hot, and beyond the support its end.
    sharp = replace(five, ratio=1e-4).histogram(torch.tensor([0.31, -3.0, 9.0], dtype=torch.float64))
    np.testing.assert_allclose(sharp.numpy(), np.eye(5)[[1, 0, 4]], atol=1e-12)


def test_two_hot_has_the_target_as_its_mean() -> None:
    three = TwoHot(low=0.0, high=0.5, bins=3)
    np.testing.assert_allclose(three.histogram(torch.tensor([0.34], dtype=torch.float64))[0], [0.0, 0.64, 0.36], atol=1e-12)
    wide = TwoHot(low=-1.0, high=2.0, bins=7)
    y = torch.linspace(-1.0, 2.0, 41, dtype=torch.float64)
    np.testing.assert_allclose(wide.histogram(y) @ wide.centres(y), y, atol=1e-12)
    np.testing.assert_allclose(wide.histogram(torch.tensor([-5.0, 5.0]))[:, [0, -1]], [[1, 0], [0, 1]])
    np.testing.assert_allclose(wide.histogram(y).sum(1), 1.0)


@pytest.mark.parametrize("fit", [TwoHot(low=0.0, high=1.0, bins=5), HlGauss(low=0.0, high=1.0, bins=5)])
def test_a_categorical_critic_learns_by_cross_entropy(fit: Any) -> None:
    z = np.array([[0.3, -0.2, 0.5, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0, 0.0]])
    y = torch.tensor([0.34, 2.0], dtype=torch.float64)
    loss, slope, metrics = fitted(fit, z, y.tolist())
    q, p = fit.histogram(y).numpy(), torch.tensor(z).softmax(1).numpy()
    assert loss == pytest.approx(-0.5 * (q * np.log(p)).sum() / 2)
    np.testing.assert_allclose(slope, 0.5 * (p - q) / 2, atol=1e-12)
    value = p @ fit.centres(y).numpy()
    assert metrics["critic/value"] == pytest.approx(value.mean())
    assert metrics["critic/error"] == pytest.approx(((value - y.numpy()) ** 2).mean())
    assert metrics["critic/outside"] == 0.5


def test_bce_is_a_categorical_critic_of_two_bins() -> None:
    z, y = np.array([0.7, -1.2, 0.0]), [1.0, 0.25, 0.0]
    loss, slope, metrics = fitted(Bce(), z, y)
    p = 1 / (1 + np.exp(-z))
    np.testing.assert_allclose(slope, 0.5 * (p - y) / 3)
    assert metrics["critic/value"] == pytest.approx(p.mean())
    both, _, _ = fitted(TwoHot(low=0.0, high=1.0, bins=2), np.stack([np.zeros(3), z], 1), y)
    assert loss == pytest.approx(both)
    # Sixteen completions of a state: the critic's best answer is their share of successes.
    logit = math.log(5 / 11)
    assert fitted(Bce(), [logit], [5 / 16])[1][0] == pytest.approx(0, abs=1e-12)


def test_a_head_of_another_width_is_named() -> None:
    with pytest.raises(
        DataError, match=r"reads 5 numbers per token, the head gives 1: use ValueHead\(form='hl_gauss', outputs=5"
    ):
        fitted(HlGauss(low=0.0, high=1.0, bins=5), [0.0], [0.5])
    with pytest.raises(DataError, match="reads 1 numbers per token, the head gives 3"):
        fitted(Square(), [[0.0, 1.0, 2.0]], [0.5])
    assert TdLoss(fit=TwoHot(bins=7)).heads == {"values": ("two_hot", 7, -0.1, 1.1)}
    assert TdLoss(value=LogRatioValue()).heads == {}
    assert TdLoss(value=DuelingValue(head="v")).heads == {"v": ("scalar", 1, 0.0, 0.0)}
    assert TdLoss(fit=Bce(), value=HeadValue(name="v")).heads == {"v": ("bernoulli", 1, 0.0, 1.0)}
    assert TdLoss(fit=HlGauss()).heads["values"][0] == "hl_gauss"


# ---- where it acts ------------------------------------------------------------------------------------------------------


def test_turns_are_regressed_at_their_ends() -> None:
    """Two turns of two and one tokens, and a rollout of one turn; each turn weighs as one under a sum over tokens."""
    batch = tiny([1, 0], lengths=[3, 2], columns={"returns": [1.0, 2.0, 3.0, 4.0, 5.0], "call": [0, 0, 1, 0, 0]})
    for at, acting, target in (("start", [0, 2, 3], [2, 3, 5]), ("end", [1, 2, 4], [2, 3, 5])):
        td = TdLoss(target=ColumnTarget(column="returns", at="end"), at=at, label="critic")
        objective = replace(critic(), terms=(td,), aggregate=SeqSum())
        assert td.sparse and objective.plan().skip
        outcome = run(objective, batch, values=0.0)
        wanted = np.zeros(5)
        wanted[acting] = -2 * np.array(target) / 2
        np.testing.assert_allclose(outcome.gradients["values"][batch.token("mask")], wanted)
        assert outcome.metrics["critic/value"] == 0
        assert outcome.metrics["critic/error"] == pytest.approx((4 + 9 + 25) / 3)
    first = TdLoss(target=ColumnTarget(column="returns", at="start"), at="end")
    outcome = run(replace(critic(), terms=(first,)), batch, values=0.0)
    np.testing.assert_allclose(outcome.gradients["values"][batch.token("mask")], -2 * np.array([0, 1, 3, 0, 4]) / 5)
    assert not TdLoss().sparse


# ---- who learns ---------------------------------------------------------------------------------------------------------


def test_no_gradient_enters_a_critic_through_the_actor() -> None:
    """The advantage is a column of numbers; the policy's own term moves log-probabilities alone, the critic's its values."""
    objective = Objective(policy=plain(), terms=(TdLoss(),), aggregate=Token(), brings=("values_old",))
    batch = tiny([1, 0], lengths=[2, 1])
    outcome = run(objective, batch, values=[0.25, 0.5, 0.75])
    alone = run(replace(objective, terms=()), batch)
    np.testing.assert_array_equal(outcome.gradients["logp_new"], alone.gradients["logp_new"])
    wanted = 2 * (np.array([0.25, 0.5, 0.75]) - [1, 1, 0]) / 3
    np.testing.assert_allclose(outcome.gradients["values"][batch.token("mask")], wanted)


def rover(rho: float) -> Objective:
    td = TdLoss(value=LogRatioValue(rho=rho), target=MeanTarget(rho=rho))
    return Objective(credit=(Center(),), policy=td, aggregate=Token(), brings=("logp_mean_now", "logp_mean_old"))


def test_rover_fits_as_a_regression_of_log_ratios() -> None:
    plan = rover(1.0).plan()
    assert [f.column for f in plan.forwards] == ["logp_old"]
    rho, lengths = 0.7, [2, 3]
    same = {"logp_old": -1.0, "logp_mean_old": -3.0, "logp_mean_now": -3.0}
    batch = tiny([1, 0], lengths=lengths, columns=same)
    # At the old policy: REINFORCE with centred reward, token mean, times 2 rho.
    np.testing.assert_allclose(slopes(rover(rho), batch), -2 * rho * np.array([0.5, 0.5, -0.5, -0.5, -0.5]) / 5)
    moved = tiny([1, 0], lengths=lengths, columns=same | {"logp_mean_now": [-3.0, -2.5, -3.0, -2.0, -3.5]})
    following = rho * np.array([0.5, 0.0, 1.0, -0.5, 0.0])
    target = np.array([0.5, 0.5, -0.5, -0.5, -0.5]) + following
    np.testing.assert_allclose(slopes(rover(rho), moved), -2 * rho * target / 5)
    # The mean runs over the vocabulary: the tokens' own log-probabilities at the next place would give another value.
    assert np.abs(slopes(rover(rho), moved, [-1.0, -0.5, -1.0, 0.0, -1.5]) - slopes(rover(rho), moved)).max() > 0.1


def test_the_value_of_a_duel_is_the_policys_own() -> None:
    """``Q = alpha (logp - logp_max) + V``: the favourite's advantage is 0, so Q is V there."""
    value = DuelingValue(alpha=2.0)
    objective = Objective(policy=TdLoss(value=value, target=ColumnTarget(column="returns")), brings=("returns",))
    assert objective.policy is not None and objective.policy.terminal
    assert value.live == ("logp_new", "logp_max", "values")
    assert [s.name for s in objective.policy.stats] == ["logp_max"]
    batch = tiny([0], lengths=[2], columns={"returns": [1.0, 0.0]})
    outcome = run(replace(objective, aggregate=Token()), batch, [-0.5, -2.0], logp_max=[-0.5, -0.25], values=[0.2, 0.3])
    q = np.array([0.2, 2.0 * -1.75 + 0.3])
    error = 2 * (q - [1.0, 0.0]) / 2
    for name, factor in (("logp_new", 2.0), ("logp_max", -2.0), ("values", 1.0)):
        np.testing.assert_allclose(outcome.gradients[name][batch.token("mask")], factor * error)


def test_the_margin_pulls_towards_demonstrations() -> None:
    objective = Objective(terms=(Margin(alpha=3.0, coef=0.5),), aggregate=Token())
    assert [s.name for s in objective.terms[0].stats] == ["logp_max"]
    batch = tiny([0, 0], lengths=[2, 1], streams=["expert", "on_policy"])
    outcome = run(objective, batch, [-0.5, -2.0, -9.0], logp_max=[-0.5, -0.25, -0.1])
    assert outcome.loss == pytest.approx(0.5 * 3 * 1.75 / 2)
    np.testing.assert_allclose(outcome.gradients["logp_new"][batch.token("mask")], [-0.75, -0.75, 0])


@pytest.mark.parametrize(
    "term",
    [
        TdLoss(),
        TdLoss(fit=Huber(delta=0.5), clip=0.3, coef=0.5),
        TdLoss(fit=Bce()),
        TdLoss(target=ReturnTarget(gamma=0.9, lam=0.8)),
        TdLoss(target=ReturnTarget(gamma=0.9, lam=0.0, values="ahead", by="call"), at="end"),
        TdLoss(target=ColumnTarget(column="ahead", at="end"), at="start", coef=0.3),
        TdLoss(value=LogRatioValue(rho=0.7), target=MeanTarget(rho=0.7)),
        TdLoss(value=DuelingValue(), target=ConservativeTarget(gamma=0.5)),
        Margin(alpha=0.5, streams=("on_policy",)),
    ],
)
def test_laws(term: Any, seeds: range) -> None:
    check_term(term, seeds)


def test_bad_regressions_are_named() -> None:
    for make, says in (
        (lambda: TdLoss(clip=0.0), "positive distance"),
        (lambda: TdLoss(value=LogRatioValue(), clip=0.2), "value head"),
        (lambda: TdLoss(fit=HlGauss(), clip=0.2), "HlGauss fits other numbers: set clip=None"),
        (lambda: TdLoss(fit=Bce(), value=LogRatioValue()), "LogRatioValue is a value itself: use Square"),
        (lambda: TdLoss(at="ends"), "did you mean 'end'"),
        (lambda: OutcomeTarget(column="rewards"), "did you mean 'reward'"),
        (lambda: Huber(delta=0.0), "positive error"),
        (lambda: TwoHot(low=1.0, high=1.0), "low < high"),
        (lambda: TwoHot(bins=1), "two bins"),
        (lambda: HlGauss(ratio=0.0), "ratio=0.0"),
        (lambda: LogRatioValue(rho=0.0), "temperature"),
        (lambda: DuelingValue(alpha=-1.0), "positive scale"),
        (lambda: Margin(alpha=0.0), "positive scale"),
    ):
        with pytest.raises(ConfigError, match=says):
            make()
    with pytest.raises(PlanError, match="two terminals"):
        Objective(policy=plain(), terms=(TdLoss(value=LogRatioValue()),)).plan()
    constant = Objective(policy=plain(), terms=(TdLoss(value=Constantly()),))
    assert run(constant, tiny([1])).metrics["loss/td"] == pytest.approx(0.25)
    assert Constantly().anchors == ()
    assert not Constantly().policy
    assert Constantly().stats == ()
    assert not ColumnTarget(column="returns").reward


@dataclass(frozen=True, slots=True, kw_only=True)
class Constantly(Value):
    """One half, whatever the state."""

    def of(self, view: View) -> torch.Tensor:
        return view.live("logp_new") * 0 + 0.5


# ---- laws of the categorical fits, whose heads give several numbers -----------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Fanned(HeadValue):
    """Logits that fan out from one number, so that a batch of single numbers can hold a categorical critic to the laws."""

    bins: int = 5

    @property
    def heads(self) -> tuple[str, ...]:
        return ()

    def of(self, view: View) -> torch.Tensor:
        one = view.live(self.name).unsqueeze(1)
        return one * torch.linspace(-1.0, 1.0, self.bins, dtype=one.dtype) + one.square()


@pytest.mark.parametrize("fit", [TwoHot(low=-1.0, high=1.0, bins=5), HlGauss(low=-1.0, high=1.0, bins=5)])
def test_laws_of_bins(fit: Fit, seeds: range) -> None:
    check_term(TdLoss(value=Fanned(), fit=fit, target=ColumnTarget(column="returns")), seeds)


def test_metrics_of_a_clipped_critic_are_means_over_its_tokens() -> None:
    objective, batch = on_returns([1.0, 0.0, 1.0], clip=0.2)
    assert evaluate(
        objective.compile(),
        batch.with_tokens(TokenColumn("logp_now", np.zeros(4))),
        {
            "logp_new": spread(batch, -1.0),
            "values": spread(batch, [0.9, 0.6, 0.5]),
        },
    ).metrics["critic/clip_fraction"] == pytest.approx(1 / 3)
