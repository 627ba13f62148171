"""SkyRL: eleven loss names, five estimators, off-policy corrections."""

from __future__ import annotations

from functools import partial

from assay.objective.peers import PeerMatch

__all__ = ["TABLE"]

_loss = partial(PeerMatch, peer="skyrl", kind="loss")
_advantage = partial(PeerMatch, peer="skyrl", kind="advantage")
_correction = partial(PeerMatch, peer="skyrl", kind="correction")
_aggregation = partial(PeerMatch, peer="skyrl", kind="aggregation")

_SINGLE = "ratios in single precision"
_LONE = "a group of one keeps its raw reward; here it gets 0"
_SCALED = (
    "advantages are divided by the token count before, so its thresholds never match and the penalty is not scaled with them"
)

TABLE: tuple[PeerMatch, ...] = (
    _loss(name="regular", code="Objective(policy=PolicyGradient(trust=MinClip()), aggregate=Token())", note=_SINGLE),
    _loss(name="dual_clip", code="Objective(policy=PolicyGradient(trust=MinClip(dual=3.0)), aggregate=Token())", note=_SINGLE),
    _loss(
        name="gspo",
        code="replace(gspo(low=0.2, high=0.2), aggregate=SeqMean())",
        note="warns unless the reduction is sequence_mean",
    ),
    _loss(name="sapo", code="sapo()", note=_SINGLE),
    _loss(
        name="cispo",
        code="replace(cispo(), policy=PolicyGradient(trust=WeightClip(positive=(1.0, 6.0), negative=(1.0, 6.0))))",
        note="bounds are distances from 1; the lower one is 1 by default, which raises every weight below 1",
    ),
    _loss(
        name="rollout_is",
        code="rollout_is()",
        note="zero outside the band on both sides, also where the step leads back; PPO's clip keeps those",
    ),
    _loss(
        name="dppo",
        code="dppo(cap=inf)",
        note="the ratio itself, without cap: the same gradient; with a correction beside it the mismatch counts twice",
    ),
    _loss(name="clip_cov", code="clip_cov(fraction=0.0002, least=1.0, most=5.0, low=0.2, high=0.2)", note=_SCALED),
    _loss(name="kl_cov", code="kl_cov(fraction=0.2, coef=1.0)", note="selects 20 % of tokens, the authors 0.2 %; " + _SCALED),
    _loss(name="cross_entropy", code="Objective(terms=(Nll(),), aggregate=Token())", note="a sum over tokens"),
    _loss(
        name="importance_sampling",
        code="Objective(policy=PolicyGradient(trust=None), aggregate=Token())",
        note="a sum over tokens",
    ),
    _advantage(name="grpo", code="(Center(), Scale(eps=1e-6))", note=_LONE),
    _advantage(name="rloo", code="(Center('leave_one_out'),)"),
    _advantage(
        name="reinforce++",
        code="(Discount(1.0), Whiten('token', ddof=1))",
        note="the running return starts anew behind tool output; here tool output is skipped",
    ),
    _advantage(
        name="gae",
        code="(Gae(gamma=1.0, lam=1.0), Whiten('token', ddof=1))",
        note="values at tool output enter the estimate; here such tokens are skipped",
    ),
    _advantage(
        name="maxrl",
        code="(Center(), ScaleByMean(eps=1e-6))",
        note="a negative mean turns the signs round and a mean of 0 gives a million; here both give 0. " + _LONE,
    ),
    _correction(name="tis token", code="Truncate(cap=2.0)"),
    _correction(name="tis sequence", code="Truncate(cap=5.0, level='sequence_product')"),
    _correction(name="outlier_token", code="Reject(measure='ratio', over='sequence_any', low=0.0, high=2.0)"),
    _correction(name="token_mask", code="IcePop(low=0.5, high=2.0, unit=True)"),
    _correction(name="sequence_mask geometric", code="IcePop(low=0.99, high=1.01, level='sequence_mean', unit=True)"),
    _correction(name="sequence_mask product", code="IcePop(low=0.5, high=2.0, level='sequence_product', unit=True)"),
    _aggregation(name="token_mean", code="Token()"),
    _aggregation(name="sequence_mean", code="SeqMean()", note="rollouts without loss tokens count among the rollouts"),
    _aggregation(
        name="seq_mean_token_sum_norm",
        code="Constant(length=256)",
        note="rollouts without loss tokens count among the rollouts",
    ),
    _aggregation(name="prompt_mean", code="Prompt()"),
)
