"""rLLM: estimators; its losses are those of the backend that it runs on."""

from __future__ import annotations

from functools import partial

from assay.objective.peers import PeerMatch

__all__ = ["TABLE"]

_loss = partial(PeerMatch, peer="rllm", kind="loss")
_advantage = partial(PeerMatch, peer="rllm", kind="advantage")

_LONE = "a group of one keeps its raw reward; here it gets 0"

TABLE: tuple[PeerMatch, ...] = (
    _loss(
        name="ppo",
        code="Objective(policy=PolicyGradient(trust=MinClip()), aggregate=Token())",
        note="the backend's, verl's or tinker's",
    ),
    _loss(
        name="importance_sampling",
        code="Objective(policy=PolicyGradient(trust=None), aggregate=Token())",
        note="the backend's; a sum over tokens",
    ),
    _loss(name="opd", code="opd(bound=5.0)", note="an estimator there"),
    _advantage(name="grpo", code="(Center(), Scale(ddof=0, eps=1e-6))", note=_LONE),
    _advantage(name="reinforce", code="()", note="the reward itself"),
    _advantage(
        name="reinforce_plus_plus_baseline",
        code="(Center(), Scale('batch', ddof=0, eps=1e-6, of='advantage'))",
        note="divides the group-centred reward by the batch's spread, without centring again",
    ),
    _advantage(name="prpo", code="(Whiten('rollout', eps=1e-6),)"),
    _advantage(name="rloo", code="(Center('leave_one_out'),)", note=_LONE),
    _advantage(
        name="precomputed",
        code="(TokenReward('advantages_given', alone=True),)",
        note="values per step that the workflow brings",
    ),
)
