"""slime: policy losses, corrections, estimators."""

from __future__ import annotations

from functools import partial

from assay.objective.peers import PeerMatch

__all__ = ["TABLE"]

_loss = partial(PeerMatch, peer="slime", kind="loss")
_advantage = partial(PeerMatch, peer="slime", kind="advantage")
_correction = partial(PeerMatch, peer="slime", kind="correction")
_kl = partial(PeerMatch, peer="slime", kind="kl")
_value = partial(PeerMatch, peer="slime", kind="value")

_UNEQUAL = "groups of unequal sizes are normalised as one group"

TABLE: tuple[PeerMatch, ...] = (
    _loss(name="ppo", code="Objective(policy=PolicyGradient(trust=MinClip()), aggregate=SeqMean())"),
    _loss(name="ppo/eps_c", code="Objective(policy=PolicyGradient(trust=MinClip(dual=3.0)), aggregate=SeqMean())"),
    _loss(name="ppo/per_token", code="Objective(policy=PolicyGradient(trust=MinClip()), aggregate=Token())"),
    _loss(name="gspo", code="gspo(low=0.2, high=0.2)"),
    _loss(
        name="cispo",
        code="replace(cispo(), policy=PolicyGradient(trust=WeightClip(positive=(0.8, 1.2), negative=(0.8, 1.2))))",
        note="bounds are distances from 1 on both sides: eps 0.2 keeps weights above 0.8",
    ),
    _loss(
        name="opsm",
        code="opsm(delta=1e-4, anchor='old')",
        note="judged by the trainer's old policy, the paper by the sampler's",
    ),
    _loss(name="opd", code="replace(opd_advantage(), aggregate=SeqMean())", note="added to whichever estimator's advantage"),
    _value(name="value_loss", code="TdLoss(target=ColumnTarget(column='returns'), clip=0.2)"),
    _advantage(name="grpo", code="(Center(), Scale(eps=1e-6))", note=_UNEQUAL),
    _advantage(name="gspo", code="(Center(), Scale(eps=1e-6))", note=_UNEQUAL),
    _advantage(name="cispo", code="(Center(), Scale(eps=1e-6))", note=_UNEQUAL),
    _advantage(name="ppo", code="(Gae(gamma=1.0, lam=1.0),)", note="values at tool output enter the estimate"),
    _advantage(
        name="reinforce_plus_plus",
        code="(Discount(1.0), Whiten('token', ddof=1))",
        note="tool output is not skipped; whitens by 1 / sqrt(var + 1e-8)",
    ),
    _advantage(
        name="reinforce_plus_plus_baseline",
        code="(Center(), Whiten('token', ddof=1))",
        note="whitens by 1 / sqrt(var + 1e-8)",
    ),
    _correction(name="tis", code="Truncate(low=0.0, cap=2.0)"),
    _correction(name="icepop", code="IcePop(low=0.0, high=2.0)", note="shares the bounds of tis: no lower bound by default"),
    _kl(name="k1", reason="as a loss its gradient is 0 in expectation; use KlInReward, Kl('k2') or Kl('k1+')"),
    _kl(name="k2", code="Kl('k2', coef=0.001)"),
    _kl(name="low_var_kl", code="Kl('k3', coef=0.001, cap=10.0)"),
)
