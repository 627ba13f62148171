"""NeMo-RL: the clipped policy-gradient loss with its switches, six estimators."""

from __future__ import annotations

from functools import partial

from assay.objective.peers import PeerMatch

__all__ = ["TABLE"]

_loss = partial(PeerMatch, peer="nemo_rl", kind="loss")
_advantage = partial(PeerMatch, peer="nemo_rl", kind="advantage")
_correction = partial(PeerMatch, peer="nemo_rl", kind="correction")
_kl = partial(PeerMatch, peer="nemo_rl", kind="kl")
_value = partial(PeerMatch, peer="nemo_rl", kind="value")

TABLE: tuple[PeerMatch, ...] = (
    _loss(name="ClippedPGLoss", code="Objective(policy=PolicyGradient(trust=MinClip()), aggregate=Token())"),
    _loss(
        name="ClippedPGLoss/ratio_clip_c",
        code="Objective(policy=PolicyGradient(trust=MinClip(dual=3.0)), aggregate=Token())",
    ),
    _loss(
        name="ClippedPGLoss/disable_ppo_ratio",
        code="Objective(policy=PolicyGradient(ratio=Ratio('none'), trust=None), aggregate=Token())",
    ),
    _loss(
        name="ClippedPGLoss/force_on_policy_ratio",
        code="Objective(policy=PolicyGradient(ratio=Ratio('none'), trust=None), aggregate=Token())",
        note="the ratio is 1 with a gradient: the same gradient, another value",
    ),
    _loss(name="gspo", code="gspo(low=0.2, high=0.2)", note="needs sequence_level_importance_ratios and a loss per sequence"),
    _loss(
        name="cispo",
        code="replace(cispo(), policy=PolicyGradient(trust=WeightClip(positive=(0.8, 1.2), negative=(0.8, 1.2))))",
        note="bounds are distances from 1 on both sides",
    ),
    _loss(
        name="vapo_nll",
        code="vapo()",
        note="the likelihood of its own successes is normalised per micro-batch, so it grows with their number",
    ),
    _loss(name="opd", code="opd()", note="an estimator there, under its clipped loss; here the ratio has no clip"),
    _value(name="mse_value", code="TdLoss(target=ColumnTarget(column='returns'), clip=0.2, coef=0.5)"),
    _advantage(
        name="grpo",
        code="(Center('leave_one_out'), Scale('leave_one_out', eps=1e-6))",
        note="mean and spread of the others by default, so a group's advantages do not add up to 0",
    ),
    _advantage(name="grpo/use_leave_one_out_baseline False", code="(Center(), Scale(eps=1e-6))"),
    _advantage(
        name="gdpo",
        code="(ComponentNorm(centre=Center('leave_one_out'), scale=Scale('leave_one_out')), Whiten('rollout', eps=0.0, ddof=1))",
    ),
    _advantage(name="gdpo/use_leave_one_out_baseline False", code="(ComponentNorm(), Whiten('rollout', eps=0.0, ddof=1))"),
    _advantage(
        name="reinforce_plus_plus",
        code="(Center(), Whiten('token'))",
        note="subtracts k1 per token without summing it to go; no discount",
    ),
    _advantage(name="raw", code="()", note="the reward itself"),
    _advantage(name="gae", code="(Gae(gamma=1.0, lam=0.95),)"),
    _correction(name="importance_correction", code="Truncate(cap=inf)"),
    _correction(name="tis", code="Truncate(low=0.0, cap=2.0)"),
    _correction(name="icepop", code="IcePop(low=0.5, high=5.0)"),
    _correction(
        name="seq-mask-tis",
        code="(IcePop(low=0.999, high=1.002, level='sequence_mean', unit=True), Truncate(cap=inf))",
    ),
    _kl(name="reference_policy_kl_penalty", code="Kl('rk3', coef=0.01, ratio='self', cap=10.0)"),
)
