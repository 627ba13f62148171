import json
import math
from dataclasses import replace

import numpy as np
import pytest
from objective_batches import run, slopes, spread, tiny

from assay.core.columns import TokenColumn
from assay.core.errors import ConfigError
from assay.core.plan import Forward
from assay.objective import Center, Entropy, MinClip, Objective, PolicyGradient, Ratio, SeqMean, Token
from assay.objective.loss.token_weights import LowLogp, ProbabilityGate, TopCovariance
from assay.objective.loss.vocab import OUTSIDE, MinP, SupportLogp, TopKEntropy, TopP
from assay.objective.loss.vocab_divergence import FullKl, PowerKl
from assay.objective.loss.vocab_terms import (
    AdaptiveEntropy,
    ProxyKl,
    RestrictedGradient,
    ReweightedKl,
    SelectedKl,
    StatLoss,
)
from assay.objective.reducers import Local
from assay.testing.objective import check_objective, check_term, evaluate

ALL = LowLogp(fraction=1.0, side="all")


def alone(term, **more):
    return Objective(terms=(term,), aggregate=Token(), **more)


def with_now(batch, logp):
    """Log-probabilities under which weights choose: the current ones."""
    return batch.with_tokens(TokenColumn("logp_now", spread(batch, logp)))


# ---- a statistic as a loss --------------------------------------------------------------------------------------------


def test_a_statistic_is_its_own_loss():
    term = StatLoss(FullKl("ref"), coef=0.1)
    objective = alone(term)
    plan = objective.plan()
    assert (plan.live, plan.vocab) == (("logp_new", "kl_pi_ref"), (FullKl("ref"),))
    found = run(objective, tiny([1.0], lengths=[2]), kl_pi_ref=[0.3, 0.5])
    assert found.loss == pytest.approx(0.1 * 0.4)
    assert found.gradients["kl_pi_ref"][1:].tolist() == pytest.approx([0.05, 0.05])
    assert found.metrics["kl_pi_ref/value"] == pytest.approx(0.4)
    assert StatLoss(PowerKl(power="phi")).needs == ("phi",)
    assert (term.name, StatLoss(TopKEntropy(5), coef=-1.0, label="mine").name) == ("kl_pi_ref", "mine")


# ---- chosen tokens ----------------------------------------------------------------------------------------------------


def test_a_divergence_acts_on_chosen_tokens_and_counts_all():
    batch = tiny([1.0], lengths=[4], columns={"logp_old": -1.0, "logp_now": [-1.5, -3.0, -0.5, -1.0]})
    for estimator, slope in (("abs", -1.0), ("k2", -2.0), ("k3", 1 - math.exp(2.0))):
        objective = alone(SelectedKl(estimator, weights=(LowLogp(fraction=0.25, side="all"),), coef=0.5))
        found = run(objective, batch, [-1.5, -3.0, -0.5, -1.0]).gradients["logp_new"][1:]
        assert found.tolist() == pytest.approx([0.0, 0.5 * slope / 4, 0.0, 0.0]), estimator


def test_the_penalty_of_kl_cov_is_0_where_the_policy_has_not_moved():
    batch = tiny([1.0], lengths=[3], columns={"logp_old": -1.0})
    found = run(alone(SelectedKl("abs", weights=(ALL,))), batch, -1.0)
    assert found.loss == 0.0
    assert not found.gradients["logp_new"].any()


def test_a_selection_needs_a_rule():
    with pytest.raises(ConfigError, match="nothing chooses tokens"):
        SelectedKl("abs")


def proxied(proxy, now, advantage=(-1.0, -1.0, -1.0, 1.0)):
    batch = tiny([1.0], lengths=[4], columns={"logp_proxy": proxy, "advantage": list(advantage)})
    objective = alone(ProxyKl(weights=(LowLogp(fraction=1.0),)), brings=("logp_proxy", "advantage"))
    return run(objective, batch, now).gradients["logp_new"][1:]


def test_the_proxy_lifts_what_lies_below_it():
    now, proxy = np.log([0.02, 0.3, 0.01, 0.01]), np.log([0.05, 0.2, 1.0, 0.05])
    proxy[2] = OUTSIDE
    found = proxied(list(proxy), list(now))
    # 1 - proxy / p on the first token; above its proxy, without one, and of A > 0 the others
    assert found.tolist() == pytest.approx([(1 - 0.05 / 0.02) / 4, 0, 0, 0])


def test_the_proxy_is_a_statistic_of_the_old_policy():
    term = ProxyKl(support=MinP(0.1), weights=(ALL,))
    stat = SupportLogp(support=MinP(0.1), label="logp_proxy")
    assert term.forwards == (Forward("logp_proxy", "policy", "batch", stat),)
    assert term.needs == ("logp_now", "logp_proxy")
    assert term.anchors == ()
    plan = alone(term).plan()
    assert {f.column: f.stat for f in plan.forwards} == {"logp_now": None, "logp_proxy": stat}


def test_with_all_tokens_in_the_proxy_an_unmoved_policy_is_left_alone():
    old = list(np.log([0.02, 0.3, 0.01, 0.6]))  # kappa = 0: the proxy is the old policy
    assert not proxied(old, old).any()


# ---- RAPO -------------------------------------------------------------------------------------------------------------


def coins(reward=1.0):
    """Both faces of a fair coin once, of which the reference gives 1/4 and 3/4."""
    return tiny([reward, reward], [0, 0], columns={"logp_old": math.log(0.5)})


def test_the_pull_to_a_reference_has_the_gradient_of_the_divergence():
    objective = alone(ReweightedKl())
    logp = np.full(2, math.log(0.5))
    found = run(objective, coins(), logp, logp_rapo=np.log([0.25, 0.75]))
    assert found.loss == pytest.approx(0.130812, abs=1e-6)
    slope = found.gradients["logp_new"][coins().token("mask")]
    assert float(slope @ [0.5, -0.5]) == pytest.approx(0.25, abs=1e-12)  # d logp / da of a coin (a, 0)
    assert found.metrics["rapo/value"] == pytest.approx(0.130812, abs=1e-6)


def test_the_whole_divergence_needs_no_ratio():
    term = ReweightedKl("full", coef=2.0)
    assert term.stats == (PowerKl("ref", power="rapo/phi", label="kl_rapo"),)
    assert term.anchors == ()
    found = run(alone(term), coins(), -1.0, kl_rapo=[0.1, 0.3])
    assert found.loss == pytest.approx(0.4)
    assert alone(term).grouped
    assert alone(ReweightedKl()).plan().vocab[0].needs == ("rapo/phi",)


def test_phi_is_the_mean_reward_of_the_group():
    batch = tiny([1, 0, 0, 0, 1, 3, 9], [0, 0, 0, 0, 1, 1, 1], valid=[True] * 6 + [False], streams=["on_policy"] * 7)
    objective = alone(ReweightedKl(low=0.3, high=0.9))
    ready = objective.compile().prepare(batch)
    assert ready.token("rapo/phi")[batch.token("mask")].tolist() == [0.3] * 4 + [0.9] * 2
    wide = alone(ReweightedKl()).compile().prepare(batch)
    assert wide.token("rapo/phi")[batch.token("mask")].tolist() == [0.25] * 4 + [1.0] * 2


# ---- NLPO -------------------------------------------------------------------------------------------------------------


def paid(policy, **more):
    return Objective(credit=(Center("group"),), policy=policy, aggregate=SeqMean(), **more)


def pair(**columns):
    return tiny([1.0, 0.0], [0, 0], [2, 2], columns=columns)


def test_restricted_to_everything_it_is_the_policy_gradient():
    now, old = [-1.0, -0.4, -2.0, -0.3], [-1.2, -0.7, -1.9, -0.6]
    plain = run(paid(PolicyGradient(trust=MinClip())), pair(logp_old=old), now)
    objective = paid(RestrictedGradient(support=TopP(1.0)), brings=("logp_kept_old",))
    found = run(objective, pair(logp_kept_old=old), -7.0, logp_kept=now)
    assert found.loss == pytest.approx(plain.loss)
    assert found.gradients["logp_kept"].tolist() == pytest.approx(plain.gradients["logp_new"].tolist())
    assert not found.gradients["logp_new"].any()
    assert found.metrics["policy/kl_old"] == pytest.approx(plain.metrics["policy/kl_old"])


def test_the_ratio_is_that_of_the_restricted_policies():
    objective = paid(RestrictedGradient(trust=None), brings=("logp_kept_old",))
    found = run(objective, pair(logp_kept_old=math.log(0.5)), -7.0, logp_kept=[math.log(0.6)] * 4)
    # A = 1/2 and -1/2 over two rollouts of two tokens, g = 1.2
    assert found.gradients["logp_kept"][pair().token("mask")].tolist() == pytest.approx([-0.15, -0.15, 0.15, 0.15])


def test_a_token_outside_the_support_has_no_weight():
    old = [-1.0, OUTSIDE, -1.0, -1.0]
    objective = paid(RestrictedGradient(), brings=("logp_kept_old",))
    found = run(objective, pair(logp_kept_old=old), -7.0, logp_kept=[-1.0, OUTSIDE, -1.0, -1.0])
    assert (found.gradients["logp_kept"][pair().token("mask")] != 0).tolist() == [True, False, True, True]


def test_both_restricted_policies_are_statistics_of_the_mask_policy():
    term = RestrictedGradient(support=TopP(0.8), weights=(ProbabilityGate(),))
    stat = SupportLogp(support=TopP(0.8), model="mask", label="logp_kept")
    assert term.forwards == (Forward("logp_kept_old", "policy", "batch", stat),)
    plan = paid(term).plan()
    assert plan.vocab == (stat,)
    assert plan.live == ("logp_new", "logp_kept")
    assert {f.column for f in plan.forwards} == {"logp_kept_old", "logp_now"}


def test_only_the_old_policy_is_known_under_a_support():
    with pytest.raises(ConfigError, match="anchor the ratio at 'old'"):
        RestrictedGradient(ratio=Ratio("token", anchor="engine"))
    with pytest.raises(ConfigError, match="coef"):
        RestrictedGradient(coef=0.0)


# ---- a target for the entropy -----------------------------------------------------------------------------------------


def test_the_coefficient_follows_the_entropy():
    term = AdaptiveEntropy(target=0.2, step=0.3, most=0.5)
    state = term.init()
    assert term.factor(state) == 0.0
    seen = []
    for entropy in (0.1, 0.2, 0.05, 0.3, 0.3, 0.3, 0.1):
        batch = tiny([1.0, 0.0], lengths=[1, 3], columns={"entropy_old": entropy})
        state = json.loads(json.dumps(term.advance(state, Local().reduce(term.local(batch)))))
        seen.append((round(state["coef"], 9), round(term.factor(state), 9)))
    assert seen == [(0.3, 0.3), (0.5, 0.5), (0.5, 0.5), (0.2, 0.0), (0.0, 0.0), (0.0, 0.0), (0.3, 0.3)]


def test_a_batch_is_learned_from_with_the_coefficient_from_before_it():
    objective = alone(AdaptiveEntropy(start=0.1, step=0.05, coef=2.0))
    program = objective.compile()
    low = tiny([1.0], lengths=[2], columns={"entropy_old": 0.1})
    first = evaluate(program, program.credit(low), {"logp_new": spread(low, -1.0), "entropy": spread(low, 0.1)})
    second = evaluate(program, program.credit(low), {"logp_new": spread(low, -1.0), "entropy": spread(low, 0.1)})
    assert first.loss == 0.0
    assert second.loss == pytest.approx(-2.0 * 0.15 * 0.1)
    assert program.metrics()["coef/entropy"] == pytest.approx(0.3)


def test_a_batch_without_tokens_moves_nothing():
    term = AdaptiveEntropy(start=0.1)
    batch = tiny([1.0], columns={"entropy_old": 0.1}).with_rollouts(keep=np.zeros(1))
    state = term.init()
    assert term.advance(state, term.local(batch)) == state


@pytest.mark.parametrize(
    "make",
    [
        lambda: AdaptiveEntropy(start=2.0),
        lambda: AdaptiveEntropy(target=0.0),
        lambda: AdaptiveEntropy(step=0.0),
        lambda: ReweightedKl("k3"),
        lambda: ReweightedKl(low=0.5, high=0.5),
    ],
)
def test_settings_that_mean_nothing_are_refused(make):
    with pytest.raises(ConfigError):
        make()


# ---- laws -------------------------------------------------------------------------------------------------------------


TERMS = [
    StatLoss(FullKl("ref")),
    SelectedKl("abs", weights=(TopCovariance(fraction=0.4),)),
    SelectedKl("k2", weights=(LowLogp(fraction=0.5, side="all"), ProbabilityGate(high=0.9))),
    ProxyKl(weights=(LowLogp(fraction=0.8, side="all"),)),
    ReweightedKl(),
    ReweightedKl("full"),
    RestrictedGradient(),
    RestrictedGradient(ratio=Ratio("sequence_mean"), weights=(LowLogp(fraction=0.5),)),
]


@pytest.mark.parametrize("term", TERMS, ids=lambda t: f"{type(t).__name__} {t.name}")
def test_laws(term, seeds):
    check_term(term, seeds)


def test_laws_of_a_bonus_that_follows_a_target(seeds):
    bonus = AdaptiveEntropy(start=0.1, target=5.0)
    check_objective(paid(PolicyGradient()) + bonus, seeds)
    check_objective(alone(replace(bonus, coef=0.5)) + Entropy(coef=0.1, label="other"), seeds)


def test_slopes_of_a_policy_with_chosen_tokens_add_up():
    columns = {"logp_old": [-1.0, -1.0, -1.0, -1.0]}
    now = [-0.9, -0.8, -1.3, -1.05]
    batch = tiny([1.0, 0.0], [0, 0], [2, 2], columns=columns)
    policy = paid(PolicyGradient(trust=None))
    both = policy + SelectedKl("abs", coef=0.5, weights=(TopCovariance(fraction=0.25),))
    gap = slopes(both, batch, now) - slopes(policy, batch, now)
    cov = np.array([0.5, 0.5, -0.5, -0.5]) * (np.array(now) - np.mean(now))
    assert np.flatnonzero(gap).tolist() == [int(np.argmax(cov))]
    assert gap[np.argmax(cov)] == pytest.approx(0.5 * np.sign(now[int(np.argmax(cov))] + 1.0) / 4)
