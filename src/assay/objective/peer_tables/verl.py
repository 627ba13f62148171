"""verl: twelve policy losses, fourteen estimators, rollout correction."""

from __future__ import annotations

from functools import partial

from assay.objective.peers import PeerMatch

__all__ = ["TABLE"]

_loss = partial(PeerMatch, peer="verl", kind="loss")
_advantage = partial(PeerMatch, peer="verl", kind="advantage")
_correction = partial(PeerMatch, peer="verl", kind="correction")
_kl = partial(PeerMatch, peer="verl", kind="kl")
_value = partial(PeerMatch, peer="verl", kind="value")
_aggregation = partial(PeerMatch, peer="verl", kind="aggregation")

_CLIP = "MinClip(low=0.2, high=0.2, dual=3.0)"
_WITHIN = "WeightClip(positive=(0.8, 1.2), negative=(0.8, 1.2))"
_ONE_STEP = "the mean over the micro-batch where no global counts are given; here always over the optimiser batch"
_LONE = "a group of one keeps its raw reward; here it gets 0"

TABLE: tuple[PeerMatch, ...] = (
    _loss(name="vanilla", code=f"Objective(policy=PolicyGradient(trust={_CLIP}), aggregate=Token())", note=_ONE_STEP),
    _loss(
        name="dppo_tv",
        code="dppo(measure='tv', low=0.2, high=0.2, cap=3.0, anchor='old')",
        note="anchored at the trainer's old policy, the paper at the sampler's; cap 3 through the actor's default, 20 in "
        "the code",
    ),
    _loss(
        name="dppo_kl",
        code="dppo(measure='kl', low=0.2, high=0.2, cap=3.0, anchor='old')",
        note="as dppo_tv; 0.2 nats by default, 0.05 in its example",
    ),
    _loss(
        name="gspo",
        code="replace(gspo(low=0.2, high=0.2), aggregate=Token())",
        note="clip 0.2 and token mean by default, 3e-4/4e-4 and the mean per rollout in the paper; log-ratio of the "
        "rollout at most 10",
    ),
    _loss(name="sapo", code="sapo()", note="the mean per rollout whatever the mode"),
    _loss(name="gpg", code="Objective(policy=PolicyGradient(ratio=Ratio('none'), trust=None), aggregate=Token())"),
    _loss(
        name="clip_cov",
        code="clip_cov(fraction=0.0002, least=1.0, most=5.0, low=0.2, high=0.2)",
        note="means, at least one token and the random choice per micro-batch; here once per optimiser batch, with a dual "
        "clip of 10",
    ),
    _loss(
        name="kl_cov",
        code="kl_cov(fraction=0.0002, coef=0.1)",
        note="selected per micro-batch, at least one token; here once per optimiser batch",
    ),
    _loss(
        name="geo_mean",
        code="gmpo(low=0.2, high=0.2)",
        note="mean over the micro-batch's rollouts, so the loss grows with the number of micro-batches; bounds 0.4 in the paper",
    ),
    _loss(name="dro", code="dro(beta=0.1)", note="beta has no default; the token form of a method on whole rollouts"),
    _loss(
        name="cispo",
        code=f"replace(cispo(), policy=PolicyGradient(trust={_WITHIN}))",
        note="bounds are distances from 1 on both sides, 0.8 below by default; the report has no lower bound",
    ),
    _loss(
        name="bypass_mode",
        code=f"Objective(policy=PolicyGradient(ratio=Ratio(anchor='engine'), trust={_CLIP}), aggregate=Token())",
        note="its rejection mask is judged by the current policy in each micro-batch; here a weight is judged once, before",
    ),
    _loss(
        name="bypass_mode/reinforce",
        code="Objective(policy=PolicyGradient(ratio=Ratio(anchor='engine'), trust=WeightClip(positive=(0.0, 2.0), "
        "negative=(0.0, 2.0)))"
        ", aggregate=Token())",
    ),
    _loss(name="distillation forward_kl_topk", code="kd_topk()"),
    _loss(name="distillation k3", code="kd_estimator('k3')", note="pulls along the forward divergence"),
    _loss(name="distillation k2", code="kd_estimator('k2')"),
    _loss(name="distillation abs", code="kd_estimator('abs')"),
    _loss(
        name="distillation k1",
        reason="as a loss its gradient is 0 in expectation; use kd_estimator('k2') or kd_estimator('k1+')",
    ),
    _advantage(
        name="pf_ppo",
        code="(Resample(rule='pow', power=2.0), Center())",
        note="draws rollouts with replacement before the estimator; here their weights, or draw=True",
    ),
    _advantage(
        name="gae",
        code="(Gae(gamma=1.0, lam=1.0), Whiten('token', ddof=1))",
        note="whitens by 1 / sqrt(var + 1e-8)",
    ),
    _advantage(name="grpo", code="(Center(), Scale(eps=1e-6))", note=_LONE),
    _advantage(name="grpo_vectorized", code="(Center(), Scale(eps=1e-6))", note=_LONE),
    _advantage(
        name="gdpo",
        code="(ComponentNorm(scale=Scale(eps=1e-6)), Whiten('token', ddof=1))",
        note="reads the raw components, so a divergence in the reward is lost; long rollouts weigh more in the whitening",
    ),
    _advantage(name="grpo_passk", code="(TopGap(), Scale(eps=1e-6))", note="a group of one raises; here it gets 0"),
    _advantage(name="reinforce_plus_plus_baseline", code="(Center(), Whiten('token', ddof=1))"),
    _advantage(name="rloo", code="(Center('leave_one_out'),)", note=_LONE),
    _advantage(name="rloo_vectorized", code="(Center('leave_one_out'),)"),
    _advantage(name="opo", code="(Center('length_weighted'),)", note=_LONE),
    _advantage(name="reinforce_plus_plus", code="(Discount(1.0), Whiten('token', ddof=1))"),
    _advantage(name="remax", code="(Against('greedy'),)", note="the column `greedy` holds the greedy answer's reward"),
    _advantage(
        name="gpg",
        code="(Center(), ScaleBySignal('reward'))",
        note="counts rewards that are not 0; the paper counts groups that vary (ScaleBySignal()). " + _LONE,
    ),
    _advantage(
        name="optimal_token_baseline",
        code="(OptimalToken(),)",
        note="places are columns, so tool output shifts the baseline; here places count action tokens",
    ),
    _advantage(name="tir_optimal_token_baseline", code="(OptimalToken(),)"),
    _correction(name="rollout_is token", code="Truncate(cap=2.0)"),
    _correction(name="rollout_is sequence", code="Truncate(cap=2.0, level='sequence_product')"),
    _correction(name="rollout_is token lo_hi", code="IcePop(low=0.5, high=5.0)"),
    _correction(name="rollout_is batch_normalize", code="Truncate(cap=2.0, normalise=True)"),
    *(
        _correction(
            name=f"rollout_rs {unit}_{k}",
            code=f"Reject(measure={measure!r}, over={over!r}, {bounds})",
            note="rejected tokens leave the denominators in decoupled mode; here they stay"
            + ("; its bounds for k1 are mirrored: an upper bound of 5 keeps ratios down to 0.2" if k == "k1" else ""),
        )
        for unit, over in (("token", "token"), ("seq_sum", "sequence_sum"), ("seq_mean", "sequence_mean"))
        for k, measure, bounds in (
            ("k1", "ratio", "low=0.5, high=2.0"),
            ("k2", "k2", "high=0.5"),
            ("k3", "k3", "high=0.5"),
        )
    ),
    *(
        _correction(name=f"rollout_rs seq_max_{k}", code=f"Reject(measure={k!r}, over='sequence_any', high=0.5)")
        for k in ("k2", "k3")
    ),
    _kl(name="kl", reason="the same as k1: as a loss its gradient is 0 in expectation; use KlInReward, Kl('k2') or Kl('k1+')"),
    _kl(name="abs", code="Kl('abs', coef=0.001)"),
    _kl(name="mse", code="Kl('k2', coef=0.001)"),
    _kl(name="low_var_kl", code="Kl('k3', coef=0.001, cap=10.0)"),
    _kl(name="low_var_kl+", code="Kl('k3+', coef=0.001, cap=10.0)"),
    _kl(name="full", code="StatLoss(FullKl('ref'), coef=0.001)", note="named there, but not there"),
    _value(name="compute_value_loss", code="TdLoss(target=ColumnTarget(column='returns'), clip=0.5, coef=0.5)"),
    _aggregation(name="token-mean", code="Token()"),
    _aggregation(name="seq-mean-token-sum", code="SeqSum()"),
    _aggregation(name="seq-mean-token-mean", code="SeqMean()"),
    _aggregation(
        name="seq-mean-token-sum-norm",
        code="Constant(length=256)",
        note="divides by the padded width unless loss_scale_factor is set; here always by the constant",
    ),
    _aggregation(
        name="token-sum",
        reason="a sum over tokens grows with the batch; every aggregation here divides by a global count",
    ),
)
