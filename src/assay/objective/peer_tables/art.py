"""ART: one loss with switches."""

from __future__ import annotations

from functools import partial

from assay.objective.peers import PeerMatch

__all__ = ["TABLE"]

_loss = partial(PeerMatch, peer="art", kind="loss")
_advantage = partial(PeerMatch, peer="art", kind="advantage")
_correction = partial(PeerMatch, peer="art", kind="correction")

TABLE: tuple[PeerMatch, ...] = (
    _loss(name="loss_fn", code="cispo(cap=5.0)", note="bounds are distances from 1: 1.0 below, 4.0 above"),
    _loss(name="loss_fn/ppo", code="Objective(policy=PolicyGradient(trust=MinClip()), aggregate=Token())"),
    _loss(
        name="loss_fn/sequence",
        code="replace(cispo(), policy=PolicyGradient(ratio=Ratio('sequence_mean'), trust=WeightClip()))",
    ),
    _loss(
        name="loss_fn/average",
        code="replace(cispo(), policy=PolicyGradient(ratio=Ratio('average'), trust=WeightClip()))",
    ),
    _loss(
        name="loss_fn/geometric_average",
        code="replace(cispo(), policy=PolicyGradient(ratio=Ratio('geometric_average'), trust=WeightClip()))",
    ),
    _loss(
        name="loss_fn/kimi_k2_tau",
        reason="an advantage that follows the current log-ratio; kimi15() has the square as a term instead",
    ),
    _loss(
        name="loss_fn/mask_prob_ratio",
        code="Objective(policy=PolicyGradient(trust=Gate(positive=(0.8, 1.2), negative=(0.8, 1.2))), aggregate=Token())",
    ),
    _advantage(
        name="scale_rewards",
        code="(Center(), Scale(ddof=0, eps=1e-6))",
        note="rollouts without advantage are left out of the batch",
    ),
    _advantage(name="scale_rewards False", code="(Center(),)"),
    _advantage(
        name="kl_penalty_coef",
        reason="a penalty on the advantage, centred by the micro-batch's mean; here KlInReward, before the baseline",
    ),
    _correction(
        name="truncated_importance_sampling",
        code="Truncate(cap=2.0)",
        note="without the sampler's log-probabilities it multiplies by the ratio a second time",
    ),
)
