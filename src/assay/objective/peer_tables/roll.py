"""ROLL: variants of the policy loss, estimators of the RLVR and the agentic pipeline."""

from __future__ import annotations

from functools import partial

from assay.objective.peers import PeerMatch

__all__ = ["TABLE"]

_loss = partial(PeerMatch, peer="roll", kind="loss")
_advantage = partial(PeerMatch, peer="roll", kind="advantage")
_aggregation = partial(PeerMatch, peer="roll", kind="aggregation")

_LOST = "its settings are no fields of the configuration and are dropped in silence"
_UNMASKED = "values at tool output and padding enter the estimate; here such tokens are skipped"

TABLE: tuple[PeerMatch, ...] = (
    _loss(name="vanilla", code="Objective(policy=PolicyGradient(ratio=Ratio('none'), trust=None), aggregate=SeqMean())"),
    _loss(
        name="ppo",
        code="Objective(policy=PolicyGradient(trust=MinClip(dual=1.4)), aggregate=SeqMean())",
        note="the dual clip is at 1 + 2 * 0.2 = 1.4; elsewhere 3",
    ),
    _loss(
        name="tis",
        code="Objective(policy=PolicyGradient(trust=WeightClip(positive=(0.0, 1.0), negative=(0.0, 1.0))), aggregate=SeqMean())",
        note="truncates the ratio to its own old policy; elsewhere the name means trainer against sampler. " + _LOST,
    ),
    _loss(
        name="topr",
        code="replace(topr(level='token'), aggregate=SeqMean())",
        note="splits by the raw score, so that a baseline may turn a positive rollout's advantage round; token ratio. " + _LOST,
    ),
    _loss(
        name="cispo",
        code="replace(cispo(), policy=PolicyGradient(trust=WeightClip(positive=(0.9, 1.1), negative=(0.9, 1.1))), "
        "aggregate=SeqMean())",
        note=_LOST,
    ),
    _loss(
        name="kimi15",
        code="replace(kimi15(tau=0.1, level='token'), aggregate=SeqMean())",
        note="squares each token's log-ratio; the paper squares the rollout's sum. " + _LOST,
    ),
    _loss(
        name="ppo/seq",
        code="Objective(policy=PolicyGradient(ratio=Ratio('sequence_mean'), trust=MinClip(dual=1.4)), aggregate=SeqMean())",
    ),
    _loss(name="opd", code="opd_advantage()", note="k1 to the teacher, subtracted from the advantage; its pure form is opd()"),
    _advantage(name="reinforce", code="(Discount(1.0),)", note="on rewards normalised as reward_norm says"),
    _advantage(
        name="grpo",
        code="(Center(), Scale(eps=1e-6))",
        note="with a batch mean and a group spread its arrays broadcast to a matrix",
    ),
    _advantage(name="gae", code="(Gae(gamma=1.0, lam=0.95),)", note=_UNMASKED),
    _advantage(
        name="gigpo",
        code="(Center(), Scale(), StateGroups())",
        note="normalises neither part by default, and its state groups cross prompts that hash alike",
    ),
    _advantage(name="step_reinforce", code="(Turns('call', 1.0),)"),
    _advantage(
        name="agentic_reinforce",
        code="(Turns('call', 1.0),)",
        note="reads the reward at the last token of a turn only; here all that a turn is paid",
    ),
    _advantage(name="agentic_reward_norm", code="(Center(), Scale(eps=1e-6))"),
    _aggregation(name="token-mean", code="Token()", note="ignores the mask: masked tokens count unless their loss is 0"),
    _aggregation(name="seq-mean-token-mean", code="SeqMean()"),
    _aggregation(name="seq-mean-token-sum-norm", code="Constant(length=256)", note="is not divided by the number of rollouts"),
)
