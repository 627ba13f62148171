"""The methods of `methods.entropy`: what they are made of, where they coincide, and the laws."""

import math
from dataclasses import replace

import numpy as np
import pytest
from objective_batches import run, slopes, spread, tiny

from assay.core.columns import TokenColumn
from assay.core.errors import ConfigError
from assay.objective import (
    DropTruncated,
    Entropy,
    Kl,
    MinClip,
    Objective,
    Overlong,
    PolicyGradient,
    SeqMean,
    Token,
    dapo,
    grpo,
)
from assay.objective.loss.vocab import Floor, MinP, SupportLogp
from assay.objective.methods.credit import ppo
from assay.objective.methods.entropy import (
    clip_cov,
    cure,
    entropy_only,
    grpo_entropy,
    kl_cov,
    lp_reg,
    nlpo,
    one_shot,
    rapo,
    skywork_or1,
    steer,
    top_entropy,
)
from assay.objective.methods.registry import registered_methods
from assay.objective.methods.shared import GROUP_NORM
from assay.testing.objective import check_objective, evaluate, random_batch, random_live

METHODS = [
    clip_cov,
    cure,
    entropy_only,
    grpo_entropy,
    kl_cov,
    lp_reg,
    nlpo,
    one_shot,
    rapo,
    skywork_or1,
    steer,
    top_entropy,
]


@pytest.mark.parametrize("make", METHODS, ids=lambda m: m.__name__)
def test_named_methods_say_what_they_are(make):
    method = registered_methods()[make.__name__]
    assert method.summary.endswith(".")
    assert method.status == ("unsure" if make is rapo else "published")


@pytest.mark.parametrize(
    "objective",
    [
        clip_cov(fraction=0.3, least=0.0),
        kl_cov(fraction=0.3),
        lp_reg(fraction=0.5),
        lp_reg(kappa=None, threshold=0.01),
        steer(ceiling=1.2),
        top_entropy(fraction=0.4, normalise=True),
        rapo(estimator="full"),
        nlpo(target=None),
        nlpo(kl=0.0, p=0.7, least=1),
        cure(overlong=Overlong(limit=6, cache=3)),
    ],
    ids=lambda o: type(o.policy).__name__,
)
def test_laws_of_other_settings(objective, seeds):
    check_objective(objective, seeds)


# ---- where parts are left out -----------------------------------------------------------------------------------------


def group(low, high, **more):
    return Objective(credit=GROUP_NORM, policy=PolicyGradient(trust=MinClip(low=low, high=high, **more)), aggregate=Token())


def test_without_chosen_tokens_they_are_plain():
    assert clip_cov(fraction=0.0, low=0.2, high=0.2) == group(0.2, 0.2, dual=10.0)
    assert kl_cov(fraction=0.0) == replace(group(0.2, 0.2), policy=PolicyGradient(trust=None))
    assert lp_reg(fraction=0.0) == group(1.0, 9.0)
    assert grpo_entropy(coef=0.0) == grpo(kl=0.0)
    assert rapo(alpha=0.0, entropy=0.0) == replace(grpo(kl=0.0), aggregate=SeqMean())
    assert one_shot(entropy=0.0) == grpo()
    assert cure() == dapo()
    assert cure(overlong=DropTruncated()) == dapo(overlong=DropTruncated())


def test_the_top_of_all_entropies_is_dapo():
    batch = random_batch(1, ("logp_old", "entropy_now"))
    live = random_live(batch, ("logp_new",), 1)
    first, second = (evaluate(o.compile(), batch, live) for o in (top_entropy(fraction=1.0), dapo()))
    assert first.loss == pytest.approx(second.loss)
    assert first.gradients["logp_new"].tolist() == pytest.approx(second.gradients["logp_new"].tolist())


def test_restricted_to_everything_nlpo_is_ppo():
    columns = {"logp_old": -1.2, "logp_ref": -1.3, "values_old": 0.5, "logp_kept_old": -1.2}
    batch = tiny([1.0, 0.0, 1.0], [0, 1, 2], [2, 3, 1], columns=columns)
    logp, values = [-1.0, -1.4, -0.9, -1.1, -1.3, -1.2], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    plain = run(ppo(kl=0.1, value=0.5), batch, logp, values=values)
    found = run(nlpo(p=1.0, target=None), batch, -9.0, logp_kept=logp, values=values)
    assert found.loss == pytest.approx(plain.loss)
    assert found.gradients["logp_kept"].tolist() == pytest.approx(plain.gradients["logp_new"].tolist())


def test_a_fifth_of_the_tokens_the_most_uncertain_ones_have_all_of_the_loss():
    entropy = [0.1, 2.0, 0.3, 0.4, 0.5, 0.6, 1.9, 0.8, 0.9, 1.0]
    batch = tiny([1.0, 0.0], [0, 0], [5, 5], columns={"logp_old": -1.0, "entropy_now": entropy})
    whole = slopes(dapo(), batch)
    expected = np.where(np.isin(np.arange(10), [1, 6]), whole, 0.0)
    assert slopes(top_entropy(), batch).tolist() == pytest.approx(expected.tolist())
    assert slopes(top_entropy(normalise=True), batch).tolist() == pytest.approx((5 * expected).tolist())


# ---- what they ask for ------------------------------------------------------------------------------------------------


def forwards(objective):
    return {f.column: (f.model, f.when, f.stat) for f in objective.plan().forwards}


def test_what_each_method_asks_of_the_learner():
    assert forwards(clip_cov()).keys() == {"logp_old", "logp_now"}
    assert forwards(kl_cov()).keys() == {"logp_old", "logp_now"}
    assert forwards(steer()).keys() == {"logp_old", "logp_now", "entropy_now"}
    assert forwards(top_entropy()).keys() == {"logp_old", "entropy_now"}
    assert forwards(skywork_or1()).keys() == {"logp_old", "entropy_old"}
    assert forwards(lp_reg())["logp_proxy"] == ("policy", "batch", SupportLogp(support=MinP(0.02), label="logp_proxy"))
    fixed = lp_reg(kappa=None, threshold=0.01)
    assert forwards(fixed)["logp_proxy"][2].support == Floor(0.01)
    assert forwards(nlpo())["logp_kept_old"][2].models == ("mask",)
    assert [s.models for s in rapo().plan().vocab] == [("ref",)]
    assert one_shot().plan().live == ("logp_new", "entropy")
    assert entropy_only().uses_reward is False


@pytest.mark.parametrize("both", [(None, None), (0.02, 0.01)])
def test_a_proxy_has_one_rule(both):
    with pytest.raises(ConfigError, match="one rule"):
        lp_reg(kappa=both[0], threshold=both[1])


# ---- numbers ----------------------------------------------------------------------------------------------------------


def test_once_all_answers_are_right_divergence_and_entropy_act_alone():
    batch = tiny([1, 1, 1, 1], [0] * 4, [2] * 4, columns={"logp_old": -1.0, "logp_ref": -1.3})
    logp, entropy = np.linspace(-1.5, -0.5, 8), np.linspace(0.2, 0.9, 8)
    rest = Objective(terms=(Kl("k3", coef=0.001), Entropy(coef=0.001)), aggregate=SeqMean())
    whole, alone = (run(o, batch, logp, entropy=entropy) for o in (one_shot(), rest))
    assert whole.loss == pytest.approx(alone.loss)
    for name in ("logp_new", "entropy"):
        assert whole.gradients[name].tolist() == pytest.approx(alone.gradients[name].tolist())
    assert whole.gradients["logp_new"].any()


def test_a_selected_token_of_lp_reg_has_both_slopes():
    old = np.log([0.5, 0.4, 0.02, 0.3])
    now = np.log([0.55, 0.35, 0.01, 0.3])
    proxy = np.log([0.51, 0.41, 0.03, 0.31])
    columns = {"logp_old": list(old), "logp_proxy": list(proxy)}
    batch = tiny([1.0, 0.0], [0, 0], [2, 2], columns=columns)
    objective = lp_reg(fraction=0.5)
    advantage = np.repeat(objective.compile().credit(batch).rollout("advantage"), 2)
    expected = -advantage * np.exp(now - old) / 4
    expected[2] += (1 - 0.03 / 0.01) / 4
    found = slopes(replace(objective, brings=("logp_proxy",)), batch, now)
    assert found.tolist() == pytest.approx(expected.tolist(), abs=1e-12)


def test_clip_cov_silences_a_token_and_counts_it():
    rng = np.random.default_rng(0)
    now = -np.abs(rng.normal(size=40)) * 3
    batch = tiny([1.0, 0.0], [0, 0], [20, 20], columns={"logp_old": list(now)})
    plain = slopes(clip_cov(fraction=0.0), batch, now)
    found = slopes(clip_cov(fraction=0.1, least=0.5), batch, now)
    silent = np.flatnonzero(found == 0)
    assert len(silent) == 4
    assert np.delete(found, silent).tolist() == pytest.approx(np.delete(plain, silent).tolist())


def test_steer_multiplies_each_tokens_loss():
    # A = 1/sqrt 2 and -1/sqrt 2 with the sample deviation; p, H as in the sheet of the weight
    p, entropy = [0.9, 0.2], [0.4, 1.5]
    batch = tiny([1.0, 0.0], [0, 0], columns={"logp_old": list(np.log(p)), "entropy_now": entropy})
    found = slopes(steer(), batch, np.log(p))
    change = np.array([0.029464, 0.087551]) / math.sqrt(2)
    weight = np.exp(math.log(0.8) * change / change[1])
    assert found.tolist() == pytest.approx([-weight[0] / math.sqrt(2) / 2, 0.8 / math.sqrt(2) / 2], abs=1e-5)


def test_the_prefix_of_a_branch_is_context():
    objective = cure()
    batch = tiny([1, 0] * 8, [0] * 16, [4] * 16, columns={"logp_old": -1.0})  # 4 full rollouts and 4 x 3 continuations
    mask = np.array(batch.token("mask"))
    branch = np.zeros_like(mask)
    for row in range(4, 16):
        branch[batch.offsets[row] + 1 : batch.offsets[row] + 3] = True
    masked = batch.with_tokens(TokenColumn("mask", mask & ~branch))
    masked = replace(masked, counts=replace(masked.counts, tokens=int((mask & ~branch).sum())))
    masked = masked.with_rollouts(tokens=np.array([4] * 4 + [2] * 12))
    live = {"logp_new": np.where(mask, -1.1, 0.0)}
    gradient = evaluate(objective.compile(), masked, live).gradients["logp_new"]
    assert not gradient[branch].any()
    assert (gradient[mask & ~branch] != 0).all()
    assert spread(batch, 1.0).sum() == 64
