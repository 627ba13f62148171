"""OpenRLHF: PolicyLoss with its corrections, seven estimators."""

from __future__ import annotations

from functools import partial

from assay.objective.peers import PeerMatch

__all__ = ["TABLE"]

_loss = partial(PeerMatch, peer="openrlhf", kind="loss")
_advantage = partial(PeerMatch, peer="openrlhf", kind="advantage")
_correction = partial(PeerMatch, peer="openrlhf", kind="correction")
_kl = partial(PeerMatch, peer="openrlhf", kind="kl")
_value = partial(PeerMatch, peer="openrlhf", kind="value")

TABLE: tuple[PeerMatch, ...] = (
    _loss(name="ppo", code="Objective(policy=PolicyGradient(trust=MinClip()), aggregate=Token())"),
    _loss(name="ppo/token_level_loss False", code="Objective(policy=PolicyGradient(trust=MinClip()), aggregate=SeqMean())"),
    _loss(name="ppo/dual_clip", code="Objective(policy=PolicyGradient(trust=MinClip(dual=3.0)), aggregate=Token())"),
    _loss(
        name="gspo",
        code="gspo(low=0.2, high=0.2)",
        note="beside a correction the ratio is anchored at the sampler and every gate is skipped",
    ),
    _loss(name="dpo", code="dpo(beta=0.1)"),
    _value(
        name="ValueLoss",
        code="TdLoss(target=ColumnTarget(column='returns'), clip=0.5, coef=0.5)",
    ),
    _advantage(
        name="gae",
        code="(Gae(gamma=1.0, lam=1.0), Whiten('token'))",
        note="values at tool output count as 0 and the sum decays through them; here such tokens are skipped",
    ),
    _advantage(name="reinforce", code="(Discount(1.0), Whiten('token'))"),
    _advantage(name="rloo", code="(Center('leave_one_out'),)"),
    _advantage(name="reinforce_baseline", code="(Center(), Whiten('token'))"),
    _advantage(name="dr_grpo", code="(Center(),)"),
    _advantage(
        name="group_norm",
        code="(Center(), Scale(eps=1e-9))",
        note="a constant group gets up to 0.98 by rounding in single precision; here exactly 0",
    ),
    _advantage(name="flash_reinforce", code="(Center('batch'),)"),
    _correction(name="token mask", code="IcePop(low=0.5, high=5.0)"),
    _correction(name="token clip", code="Truncate(low=0.5, cap=5.0)"),
    _correction(
        name="seq mask",
        code="(Reject(measure='ratio', over='sequence_mean', low=0.5, high=5.0), Truncate(cap=inf))",
        note="kept rollouts carry each token's own weight",
    ),
    _correction(name="token mask binary_kl", code="(Reject(measure='kl', over='token', high=0.05), Truncate(cap=inf))"),
    _correction(name="token mask tv", code="(Reject(measure='tv', over='token', high=0.2), Truncate(cap=inf))"),
    _kl(name="k1", code="KlInReward(coef=0.01)", note="in the reward; the reward's clip acts behind the baseline"),
    _kl(name="k2", code="Kl('k2', coef=0.01)"),
    _kl(name="k3", code="Kl('k3', coef=0.01, cap=10.0)"),
)
