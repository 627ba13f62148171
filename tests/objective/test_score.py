"""The terminal for losses on scores: what a score is, what a loss on groups says, what is refused."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from objective_batches import run, slopes, spread, tiny

from assay.core.batch import Batch
from assay.core.columns import TokenColumn
from assay.core.errors import ConfigError, DataError, PlanError, UnknownNameError
from assay.objective import BalancedBce, Center, CreditTerm, GroupSoftmax, Objective, ScoreLoss, SetLoss, Token, pacs, real, rloo
from assay.objective.loss.sets.base import Mix, Scored
from assay.objective.loss.sets.groupwise import RewardGaps
from assay.objective.loss.sets.pairwise import Pairwise
from assay.objective.loss.sets.pointwise import Kto, Likelihood, ScoreSquare
from assay.objective.loss.sets.sorted import SortedGaps
from assay.objective.methods.scores import a2po, copg, direct_advantage
from assay.testing.objective import check_term, evaluate, split_rows

LOG2 = math.log(2)


def scores(
    objective: Objective, s: list[float], labels: list[float], groups: list[int] | None = None, column: str = "logp_old"
) -> tuple[float, np.ndarray]:
    """Loss and implicit advantages of one-token rollouts with scores ``s``."""
    batch = tiny(labels, groups, columns={column: -2.0})
    logp = -2.0 + np.array(s)
    return run(objective, batch, logp).loss, -slopes(objective, batch, logp)


# ---- groupwise --------------------------------------------------------------------------------------------------------


def test_pacs_numbers() -> None:
    loss, _ = scores(pacs(), [0.4, -0.2, 0.0, -0.2], [1, 0, 0, 0])
    assert loss == pytest.approx(0.5359, abs=5e-5)
    loss, implicit = scores(pacs(), [0.0] * 4, [1, 0, 0, 0])
    assert loss == pytest.approx(LOG2)
    np.testing.assert_allclose(implicit, [1 / 3] + [-1 / 9] * 3)
    np.testing.assert_allclose(implicit, np.array([1, -1 / 3, -1 / 3, -1 / 3]) / 3)


def test_pacs_starts_as_a_third_of_rloo() -> None:
    batch = tiny([1, 0, 0, 0], lengths=[2, 1, 3, 1], columns={"logp_old": -1.0})
    # PACS averages over rollouts as RLOO does, and BCE's slope at 0 with balanced weights is a third of A for 1 of 4.
    np.testing.assert_allclose(slopes(pacs(), batch), slopes(rloo(), batch) * 4 / 3, atol=1e-12)


def test_pacs_on_groups_of_one_class() -> None:
    loss, implicit = scores(pacs(), [0.0] * 3, [1, 1, 1])
    assert loss == pytest.approx(LOG2)
    np.testing.assert_array_equal(implicit, [0, 0, 0])
    _, later = scores(pacs(), [0.3, -0.1, 0.0], [1, 1, 1])
    assert np.abs(later).min() > 0
    raw = Objective(policy=ScoreLoss(phi=BalancedBce(psi="raw", balance=False)))
    assert raw.min_group == 1
    assert not raw.grouped
    np.testing.assert_allclose(scores(raw, [0.0] * 2, [1, 1])[1], [0.25, 0.25])
    assert scores(raw, [1.0, 0.0], [1, 0])[0] == pytest.approx((math.log(1 + math.exp(-1)) + LOG2) / 2)


def test_pacs_normalised_as_grpo() -> None:
    s, y = [0.4, -0.2, 0.0, -0.2], [1, 0, 0, 0]
    x = torch.tensor(s, dtype=torch.float64, requires_grad=True)
    psi = (x - x.mean()) / (x.std() + 1e-6)
    weight = torch.tensor([2.0, 2 / 3, 2 / 3, 2 / 3], dtype=torch.float64)
    expected = torch.nn.functional.binary_cross_entropy_with_logits(psi, torch.tensor(y, dtype=torch.float64), weight)
    expected.backward()
    loss, implicit = scores(pacs(psi="group_norm"), s, y)
    assert loss == pytest.approx(float(expected.detach()))
    assert x.grad is not None
    np.testing.assert_allclose(implicit, -x.grad.numpy(), atol=1e-12)
    # Before the first step every score is the same: the slope is 1 / eps, as in the released code.
    _, first = scores(pacs(psi="group_norm"), [0.0] * 4, y)
    np.testing.assert_allclose(first, 1e6 * np.array([0.25, -1 / 12, -1 / 12, -1 / 12]))
    assert np.isfinite(scores(pacs(psi="group_norm"), [0.7], [1])[0])


def test_pacs_on_mean_log_probabilities_has_no_anchor() -> None:
    objective = pacs(score="mean", psi="raw")
    assert [f.column for f in objective.plan().forwards] == ["logp_now"]
    batch = tiny([1, 0], lengths=[2, 4])
    logp = [-1.0, -3.0, -1.0, -1.0, -1.0, -1.0]
    # Raw scores -2 and -1, one rollout of each class: all weights 1.
    assert run(objective, batch, logp).loss == pytest.approx((math.log(1 + math.exp(2)) + math.log(1 + math.exp(-1))) / 2)


@pytest.mark.parametrize(("only", "kept"), [("positive", 0), ("negative", 1)])
def test_pacs_of_one_class_keeps_the_divisor(only: str, kept: int) -> None:
    objective = Objective(policy=ScoreLoss(phi=BalancedBce(psi="raw", balance=False, only=only)))
    loss, implicit = scores(objective, [0.0, 0.0], [1, 0])
    assert loss == pytest.approx(LOG2 / 2)
    assert implicit[kept] != 0
    assert implicit[1 - kept] == 0


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


def test_real_bounds_and_damps_gradients() -> None:
    for s in (-30.0, 0.0, 30.0):
        _, implicit = scores(real(), [s, -s, 0.3, 0.1], [1, 0, 0, 0])
        assert np.abs(implicit).max() <= 2
    hard = [abs(scores(real(), [0.0, s, 0.0, 0.0], [1, 0, 0, 0])[1][1]) for s in (0.5, 0.0, -0.5, -1.0)]
    assert hard == sorted(hard, reverse=True)


def test_real_as_cross_entropy_and_as_product() -> None:
    s, y, groups = [0.1, -0.05, 0.4, 0.2, 0.3], [1, 0, 0, 1, 1], [0, 0, 0, 1, 1]
    bce = [math.log1p(math.exp(-0.2)), math.log1p(math.exp(-0.1)), math.log1p(math.exp(0.8))]
    loss, implicit = scores(real(form="bce"), s, y, groups)
    assert loss == pytest.approx(sum(bce) / 3)  # the group of one class is not in the divisor
    np.testing.assert_array_equal(implicit[3:], [0, 0])
    np.testing.assert_allclose(implicit[0], 1 / (1 + math.exp(0.2)) / 0.5 / 3)
    product = math.log1p(math.exp(-0.2) * (math.exp(-0.1) + math.exp(0.8)))
    assert scores(real(form="product"), s, y, groups)[0] == pytest.approx(product / 2)
    # The product only compares: a common shift changes nothing.
    assert scores(real(form="product"), [x + 3 for x in s], y, groups)[0] == pytest.approx(product / 2)


def test_copg_numbers() -> None:
    loss, implicit = scores(copg(), [0.5, -0.2], [1, 0], column="logp_ref")
    assert loss == pytest.approx(0.8649)
    np.testing.assert_allclose(implicit, 2 * 0.1 * 0.93 * np.array([1, -1]))
    loss, implicit = scores(copg(), [10.0, 0.0], [1, 0], column="logp_ref")
    assert loss == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(implicit, 0, atol=1e-12)
    _, implicit = scores(copg(), [0.0] * 4, [1, 0, 0, 0], column="logp_ref")
    np.testing.assert_allclose(implicit, [0.2] + [-0.2 / 3] * 3)


def test_copg_is_the_sum_over_all_pairs_and_meets_ipo() -> None:
    rng = np.random.default_rng(3)
    s, reward = rng.normal(size=5), rng.random(5)
    pairs = [(i, j) for i in range(5) for j in range(i)]
    expected = sum((reward[i] - reward[j] - 0.3 * (s[i] - s[j])) ** 2 for i, j in pairs) / 4
    assert scores(copg(beta=0.3), list(s), list(reward), column="logp_ref")[0] == pytest.approx(expected)
    # With rewards of +-1/4 a pair's loss is IPO's, with tau = beta, times beta squared.
    loss, _ = scores(copg(beta=0.1), [1.0, -2.0], [0.25, -0.25], column="logp_ref")
    assert loss == pytest.approx(0.01 * (3.0 - 5.0) ** 2)
    # Groups of one have no pair and are in no divisor.
    alone, _ = scores(copg(), [0.5, -0.2, 4.0], [1, 0, 1], [0, 0, 1], column="logp_ref")
    assert alone == pytest.approx(0.8649)


# ---- pointwise --------------------------------------------------------------------------------------------------------


def test_direct_advantage_numbers() -> None:
    rewards = [0.3, 0.2]  # A = +-.05, A / beta = +-5
    loss, implicit = scores(direct_advantage(), [0.3, 0.0], rewards, column="logp_ref")
    assert loss == pytest.approx((11.045 + 12.5) / 2)
    np.testing.assert_allclose(implicit, np.array([4.7, -5.0]) / 2)
    loss, implicit = scores(direct_advantage(), [5.0, -5.0], rewards, column="logp_ref")
    assert loss == pytest.approx(0.0, abs=1e-12)
    # Equal values pull towards the reference.
    _, implicit = scores(direct_advantage(), [0.4, -0.2], [1, 1], column="logp_ref")
    np.testing.assert_allclose(implicit, [-0.2, 0.1])
    assert direct_advantage().min_group == 2


@dataclass(frozen=True, slots=True)
class BySteps(CreditTerm):
    """Advantages by the step column, times ten."""

    def apply(self, credit: Any, stats: Any, state: Any) -> Any:
        return replace(credit, tokens=np.asarray(credit.batch.token("step"), float) * 10)


def test_direct_advantage_by_steps(seeds: range) -> None:
    objective = direct_advantage(beta=2.0, segment="step")
    objective = replace(objective, credit=(BySteps(),))
    batch = tiny([1], lengths=[4], columns={"logp_ref": -1.0, "step": [1, 2, 2, 1]})
    logp = [-0.5, -1.0, -2.0, -1.0]
    # Step 1 has the score .5 and the advantage 10, step 2 the score -1 and the advantage 20.
    assert run(objective, batch, logp).loss == pytest.approx(((5 - 0.5) ** 2 + (10 + 1) ** 2) / 2 / 2)
    np.testing.assert_allclose(slopes(objective, batch, logp), -np.array([4.5, 11.0, 11.0, 4.5]) / 2)
    check_term(ScoreLoss(phi=ScoreSquare(beta=2.0), segment="call"), seeds)


def test_quadratic_penalty_is_a_direct_advantage() -> None:
    """``-A s + beta s^2 / 2`` has the gradient of ``beta`` times the square."""
    objective = Objective(credit=(Center(),), policy=ScoreLoss(phi=ScoreSquare(beta=0.5), coef=0.5))
    s, rewards = np.array([0.3, -0.7, 0.1]), [1, 0, 0]
    _, implicit = scores(objective, list(s), rewards)
    advantage = np.array([2 / 3, -1 / 3, -1 / 3])
    np.testing.assert_allclose(implicit, (advantage - 0.5 * s) / 3)


def test_a2po_numbers() -> None:
    batch = tiny([1, 0], [0, 1], columns={"logp_ref": -2.0}, optimal_value=[0.75, 0.25])
    loss = run(a2po(beta=0.1), batch, [-1.5, -2.5]).loss
    assert loss == pytest.approx(((0.05 - 0.25) ** 2 + (-0.05 + 0.25) ** 2) / 2)
    assert not a2po().grouped


# ---- what a score is --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean(SetLoss):
    """The mean score."""

    def total(self, scored: Scored) -> tuple[torch.Tensor, float]:
        return scored.score.sum(), float(len(scored.score))


def weights(policy: ScoreLoss, batch: Batch, **kwargs: Any) -> np.ndarray:
    return slopes(Objective(policy=policy), batch, **kwargs) * len(batch)


def test_scores_against_several_anchors() -> None:
    policy = ScoreLoss(phi=Mean(), anchor=(("ref", 0.25), ("old", 0.75)), scale=2.0)
    assert policy.needs == ("logp_now", "logp_ref", "logp_old")
    batch = tiny([1, 0], lengths=[2, 1], columns={"logp_ref": [-1.0, -2.0, -3.0], "logp_old": [-2.0, -2.0, -1.0]})
    loss = run(Objective(policy=policy), batch, [-0.5, -1.0, -0.2]).loss
    assert loss == pytest.approx((2 * (-1.5 + 0.75 + 3.0) + 2 * (-0.2 + 0.75 + 0.75)) / 2)
    np.testing.assert_allclose(weights(policy, batch), [2, 2, 2])
    assert ScoreLoss(phi=Mean(), anchor="").needs == ("logp_now",)


def test_discounted_scores_count_tokens_as_they_were_sampled() -> None:
    policy = ScoreLoss(phi=Mean(), anchor="", discount=0.5)
    batch = tiny([1, 0], lengths=[3, 2])
    np.testing.assert_allclose(weights(policy, batch), [1, 0.5, 0.25, 1, 0.5])
    np.testing.assert_allclose(weights(replace(policy, score="mean"), batch), np.array([2, 1, 0.5, 3, 1.5]) / 6)
    # A rollout in two rows goes on counting in the second; where calls are named, their order counts.
    split, source = split_rows(batch, 1)
    assert len(split) > 2
    logp = spread(batch, [0.3, 0.7, 0.1, -0.2, 0.4])
    outcome = evaluate(Objective(policy=policy).compile(), split, {"logp_new": logp[source]})
    assert outcome.loss == pytest.approx((0.3 + 0.35 + 0.025 - 0.2 + 0.2) / 2)
    call = TokenColumn("call", spread(batch, [5, 4, 4, 0, 1]).astype(np.int32))
    np.testing.assert_allclose(weights(policy, batch.with_tokens(call)), [0.25, 1, 0.5, 1, 0.5])


def test_tokens_beyond_the_shortest_attempt_may_count_less() -> None:
    policy = ScoreLoss(phi=Mean(), anchor="", tail=0.25)
    batch = tiny([1, 0, 0], [0, 0, 1], lengths=[3, 2, 4])
    np.testing.assert_allclose(weights(policy, batch), [1, 1, 0.25, 1, 1, 1, 1, 1, 1])
    assert policy.grouped
    np.testing.assert_allclose(weights(replace(policy, tail=0.0), batch)[2], 0.0)


def test_the_old_policy_of_a_replayed_attempt_is_the_one_that_sampled_it() -> None:
    columns = {"logp_old": -1.0, "logp_engine": -3.0}
    policy = ScoreLoss(phi=Mean())
    batch = tiny([1, 0], columns=columns, streams=["replay", "on_policy"])
    assert run(Objective(policy=policy), batch, -1.0).loss == pytest.approx((2.0 + 0.0) / 2)
    fresh = tiny([1, 0], columns=columns)
    assert run(Objective(policy=policy), fresh, -1.0).loss == 0


def test_implicit_advantages_are_those_of_the_whole_term() -> None:
    batch = tiny([1, 0], columns={"logp_old": -1.0})
    objective = Objective(policy=ScoreLoss(phi=Mean(), coef=3.0))
    ready = objective.compile().prepare(batch.with_tokens(TokenColumn("logp_now", np.array(batch.token("logp_old")))))
    np.testing.assert_allclose(ready.token("score/implicit")[batch.token("mask")], [-1.5, -1.5])


def test_only_attempts_with_a_gradient_are_computed() -> None:
    batch = tiny([1, 0, 1, 1], [0, 0, 1, 1], columns={"logp_old": -1.0})
    program = Objective(policy=ScoreLoss(phi=Pairwise())).compile()
    ready = program.prepare(batch.with_tokens(TokenColumn("logp_now", np.array(batch.token("logp_old")))))
    assert program.plan.skip
    assert program.active(ready).tolist() == [True, True, False, False]


def test_a_loss_without_gradient_is_still_reported() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Flat(SetLoss):
        def total(self, scored: Scored) -> tuple[torch.Tensor, float]:
            return torch.tensor(3.0), 1.0

    outcome = run(Objective(policy=ScoreLoss(phi=Flat())), tiny([1, 0], columns={"logp_old": -1.0}))
    assert outcome.loss == 3.0
    assert not outcome.gradients["logp_new"].any()


def test_a_score_loss_without_rows_is_nothing() -> None:
    batch = tiny([1, 0], columns={"logp_old": -1.0, "logp_ref": -1.0}, streams=["expert", "expert"])
    for objective in (pacs(), real(), copg(), Objective(policy=ScoreLoss(phi=Kto())), direct_advantage()):
        outcome = run(objective, batch)
        assert outcome.loss == 0
        assert not outcome.gradients["logp_new"].any()


# ---- a user's own, and several at once --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference(SetLoss):
    """DPO on all (better, worse) pairs of a group: a set loss in the user's own few lines."""

    beta: float = 0.1

    def total(self, scored: Scored) -> tuple[torch.Tensor, float]:
        group, reward = scored.group, scored.reward
        better = (group[:, None] == group[None, :]) & (reward[:, None] > reward[None, :])
        gap = (scored.score[:, None] - scored.score[None, :])[better]
        return torch.nn.functional.softplus(-self.beta * gap).sum(), float(len(gap))


def test_a_users_pairwise_loss(seeds: range) -> None:
    objective = Objective(policy=ScoreLoss(phi=Preference(), anchor="ref", streams=("preference",)))
    assert {f.column for f in objective.plan().forwards} == {"logp_ref", "logp_now"}
    batch = tiny([1, 0], columns={"logp_ref": -2.0}, streams=["preference"] * 2)
    assert run(objective, batch, [0.5, -2.5]).loss == pytest.approx(0.5544, abs=5e-5)
    np.testing.assert_allclose(-slopes(objective, batch, -2.0), [0.05, -0.05])
    without = tiny([1, 1], columns={"logp_ref": -2.0}, streams=["preference"] * 2)
    assert run(objective, without, -2.0).loss == 0
    assert "gradient" in check_term(ScoreLoss(phi=Preference()), seeds).passed
    for needed in (Preference().needs, Preference().forwards, Preference().tells, tuple(Preference().local(None))):  # type: ignore[arg-type]
        assert needed == ()
    nothing: Mapping[str, float] = Preference().numbers(None)  # type: ignore[arg-type]
    assert nothing == {}
    assert Preference().min_group == 1
    assert Preference().grouped


@pytest.mark.parametrize(
    ("phi", "least", "grouped"),
    [
        (BalancedBce(), 2, True),
        (BalancedBce(psi="raw"), 1, True),
        (BalancedBce(psi="raw", mixed=True), 2, True),
        (GroupSoftmax(), 2, True),
        (RewardGaps(), 2, True),
        (Pairwise(), 2, True),
        (SortedGaps(), 2, True),
        (Likelihood(), 2, True),
        (Kto(), 1, False),
        (ScoreSquare(), 1, False),
    ],
    ids=repr,
)
def test_what_a_loss_asks_of_groups(phi: SetLoss, least: int, grouped: bool) -> None:
    assert ScoreLoss(phi=phi).min_group == least
    assert ScoreLoss(phi=phi).grouped is grouped


def test_a_mix_divides_each_part_by_its_own_count(seeds: range) -> None:
    parts = (0.5, BalancedBce(psi="raw", balance=False)), (2.0, RewardGaps())
    mixed = Objective(policy=ScoreLoss(phi=Mix(of=parts)))
    s, labels = [0.3, -0.2, 0.1], [1, 0, 0]
    loss, implicit = scores(mixed, s, labels)
    each = [scores(Objective(policy=ScoreLoss(phi=part)), s, labels) for _, part in parts]
    assert loss == pytest.approx(0.5 * each[0][0] + 2.0 * each[1][0])
    np.testing.assert_allclose(implicit, 0.5 * each[0][1] + 2.0 * each[1][1])
    assert mixed.min_group == 2
    check_term(ScoreLoss(phi=Mix(of=((1.0, Kto()), (-0.5, Pairwise())))), seeds)


def test_the_first_losss_numbers_are_reported() -> None:
    batch = tiny([1, 0, 1, 0], [0, 0, 1, 1], columns={"logp_old": -1.0})
    policy = ScoreLoss(phi=Pairwise())
    outcome = run(Objective(policy=policy), batch, [-0.5, -1.0, -1.0, -0.9])
    told = {name.removeprefix("score/"): value for name, value in outcome.metrics.items() if name.startswith("score/")}
    assert told == pytest.approx({"accuracy": 0.5, "margin": 0.2, "better": 0.25, "worse": 0.05})
    assert not ScoreLoss(phi=GroupSoftmax()).reports
    both = ScoreLoss(phi=Mix(of=((1.0, RewardGaps()), (1.0, Pairwise()))))
    assert not both.reports


# ---- what is refused --------------------------------------------------------------------------------------------------


def test_bad_score_settings_are_named() -> None:
    for make, says in (
        (lambda: ScoreLoss(score="max"), "unknown score"),
        (lambda: ScoreLoss(scale=0.0), "positive"),
        (lambda: ScoreLoss(discount=1.5), "discount=1.5"),
        (lambda: ScoreLoss(tail=-0.1), "tail=-0.1"),
        (lambda: ScoreLoss(anchor=(("ref", 0.5), ("ref", 0.5))), "different policies"),
        (lambda: ScoreLoss(anchor=(("", 0.5),)), "different policies"),
        (lambda: ScoreLoss(anchor=(("ref", 0.0),)), "different policies"),
        (lambda: ScoreLoss(segment="step"), "BalancedBce compares rollouts"),
        (lambda: ScoreLoss(phi=ScoreSquare(), segment="step", tail=0.5), "no common length"),
        (lambda: ScoreLoss(phi=Likelihood(), score="mean"), "needs score='sum'"),
        (lambda: ScoreLoss(aggregate=Token()), "brings its own denominator"),
        (lambda: Mix(of=()), "at least one"),
        (lambda: Mix(of=((0.0, Kto()),)), "other than 0"),
        (lambda: BalancedBce(psi="rawr"), "did you mean 'raw'"),
        (lambda: BalancedBce(only="positives"), "did you mean 'positive'"),
        (lambda: BalancedBce(only="positive"), "balance=False"),
        (lambda: BalancedBce(eps=0.0), "eps"),
        (lambda: GroupSoftmax(tau=0.0), "temperature"),
        (lambda: GroupSoftmax(form="products"), "did you mean 'product'"),
        (lambda: RewardGaps(beta=0.0), "beta"),
        (lambda: ScoreSquare(beta=-1.0), "beta"),
        (lambda: real(form="mean"), "unknown form"),
        (lambda: real(form="bce", tau=0.0), "tau=0.0"),
    ):
        with pytest.raises(ConfigError, match=says):
            make()
    with pytest.raises(UnknownNameError):
        pacs(psi="rloo")


def test_two_losses_that_teach_the_same_rows_are_refused() -> None:
    with pytest.raises(PlanError, match="two terminals"):
        Objective(policy=ScoreLoss(), terms=(ScoreLoss(phi=Kto(), label="kto"),)).plan()
    beside = ScoreLoss(phi=Likelihood(), anchor="", label="supervised")
    assert not beside.terminal
    assert Objective(policy=ScoreLoss(), terms=(beside,)).plan().forwards


@dataclass(frozen=True, slots=True)
class Half(CreditTerm):
    """Weighs every rollout by one half."""

    def apply(self, credit: Any, stats: Any, state: Any) -> Any:
        return replace(credit, keep=credit.keep / 2)


def test_weights_of_attempts_are_refused() -> None:
    objective = Objective(credit=(Half(),), policy=ScoreLoss())
    with pytest.raises(DataError, match=r"the weight 0\.5, but a loss on scores counts each rollout once"):
        run(objective, tiny([1, 0], columns={"logp_old": -1.0}))
