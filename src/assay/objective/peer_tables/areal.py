"""AReaL: decoupled PPO and what stands around it."""

from __future__ import annotations

from functools import partial

from assay.objective.peers import PeerMatch

__all__ = ["TABLE"]

_loss = partial(PeerMatch, peer="areal", kind="loss")
_advantage = partial(PeerMatch, peer="areal", kind="advantage")
_correction = partial(PeerMatch, peer="areal", kind="correction")
_value = partial(PeerMatch, peer="areal", kind="value")

TABLE: tuple[PeerMatch, ...] = (
    _loss(name="ppo_actor_loss_fn", code="Objective(policy=PolicyGradient(trust=MinClip()), aggregate=Token())"),
    _loss(
        name="ppo_actor_loss_fn/decoupled",
        code="areal(cap=5.0, mask=True)",
        note="the weight is applied only where rejection sampling is configured; kept tokens carry it uncapped",
    ),
    _loss(
        name="ppo_actor_loss_fn/c_clip",
        code="Objective(policy=PolicyGradient(trust=MinClip(dual=3.0)), aggregate=Token())",
    ),
    _loss(
        name="gspo",
        code="replace(gspo(low=0.2, high=0.2), aggregate=Token())",
        note="token mean: long rollouts weigh more than in the paper",
    ),
    _loss(
        name="sapo_loss_fn",
        code="replace(sapo(), aggregate=Token())",
        note="token mean over the micro-batch: long rollouts weigh more than in the paper",
    ),
    _loss(name="sapo_loss_fn/sequence", code="replace(sapo(level='sequence_mean'), aggregate=Token())"),
    _loss(
        name="m2po",
        code="m2po(budget=0.04, rule='drop', free_low=1.0, free_high=1.0)",
        note="all four quadrants, sampler against trainer's old policy, per micro-batch, at least one token kept, the "
        "denominator "
        "shrinks; here as published",
    ),
    _loss(name="prox_approx loglinear", code="areal(loglinear=True)", note="its other interpolations: linear, rollout"),
    _loss(
        name="kdrl",
        code="kdrl()",
        note="distils by k1 as a loss, whose gradient is 0 in expectation on the policy's own samples",
    ),
    _loss(name="cispo_loss_fn", code="cispo(cap=5.0)", note="newest repository only; not run here"),
    _loss(name="dpo_loss", code="dpo(beta=0.1)"),
    _loss(name="ipo", code="ipo(tau=0.1, score='sum')"),
    _value(name="ppo_critic_loss_fn", code="TdLoss(target=ColumnTarget(column='returns'), clip=0.5, coef=0.5)"),
    _value(
        name="ppo_critic_loss_fn/huber",
        code="TdLoss(target=ColumnTarget(column='returns'), fit=Huber(delta=10.0), clip=0.5)",
    ),
    _advantage(
        name="gae",
        code="(Gae(gamma=1.0, lam=1.0),)",
        note="a rollout as long as the padding counts as cut off; kl_ctl 0.1 without a reference acts as an entropy bonus",
    ),
    _advantage(
        name="adv_norm batch",
        code="(Gae(gamma=1.0, lam=1.0), Whiten('token', eps=1e-5, ddof=1))",
    ),
    _advantage(
        name="reward_norm group",
        code="(Center(), Scale(eps=1e-5))",
        note="groups are rows in a line of group_size: rows behind the last full one get 1e5 times their reward",
    ),
    _advantage(
        name="reward_norm leave_one_out",
        code="(Center('leave_one_out'),)",
        note="for advantages one token is left out, not one row",
    ),
    _correction(name="token mask ratio", code="IcePop(low=0.0, high=5.0)"),
    _correction(name="token clamp ratio", code="Truncate(cap=5.0)"),
    _correction(
        name="sequence mask ratio",
        code="IcePop(low=0.0, high=5.0, level='sequence_mean')",
        note="the rollout's geometric mean is the weight of each of its tokens",
    ),
    _correction(
        name="token mask kl_k1",
        code="(Reject(measure='k1', over='token', low=-0.5), Truncate(cap=inf))",
        note="trainer minus sampler, signed: only large ratios go; kept tokens carry their own weight",
    ),
    _correction(name="token mask kl_k2", code="(Reject(measure='k2', over='token', high=0.5), Truncate(cap=inf))"),
    _correction(
        name="token mask kl_k3",
        code="(Reject(measure='k3', over='token', high=0.5), Truncate(cap=inf))",
        note="of the ratio sampler over trainer, exp(-l) - 1 + l; here exp(l) - 1 - l, whose mean under the sampler is the "
        "divergence",
    ),
)
