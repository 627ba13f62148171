"""Methods of agents and of long thoughts whose other half is a sampler: branches behind tools' answers, chunks of an answer."""

from __future__ import annotations

from assay.objective.credit.baseline import Center
from assay.objective.credit.length import TruncatedReward
from assay.objective.credit.normalise import Scale
from assay.objective.credit.returns import TokenReward, Turns
from assay.objective.credit.uncertainty import ScaleByEntropy
from assay.objective.loss.aggregate import SeqMean, Token, TurnMean
from assay.objective.loss.policy import PolicyGradient
from assay.objective.loss.trust import MinClip
from assay.objective.loss.trust_soft import ClipWithGradient
from assay.objective.methods.registry import method
from assay.objective.methods.shared import GROUP_NORM, kl_term
from assay.objective.objective import Objective

__all__ = ["aepo", "delethink", "m_grpo", "reseek"]


@method("Agentic Entropy-Balanced Policy Optimization, 2025, arXiv 2510.14545", status="unsure")
def aepo(coef: float = 0.2, low: float = 0.2, high: float = 0.28) -> Objective:
    """AEPO (2025): GRPO's advantage times ``1 + coef z(H_t)``; above ``1 + high`` a token keeps the gradient ``(1 + high) A``.

    Args:
        coef: of the normalised entropy; 0 leaves the factor out.
        low, high: distances of the ratio's bounds from 1.

    The sampler is the other half: ``Branching`` of `assay.rollout`, or `Player` for independent rollouts. Token mean, no
    divergence.

    Unsure: ``coef``, how tokens are averaged, and over what ``z`` is taken (here the rollout batch).

    Source: AEPO (arXiv 2510.14545).
    """
    scaled = (ScaleByEntropy(coef=coef),) if coef else ()
    policy = PolicyGradient(trust=ClipWithGradient(low=low, high=high))
    return Objective(credit=(*GROUP_NORM, *scaled), policy=policy, aggregate=Token())


@method("The Markovian Thinker, 2025, arXiv 2510.06557")
def delethink(low: float = 0.2, high: float = 0.26) -> Objective:
    """Delethink (2025): one GRPO advantage for all chunks of an answer, ``-1/G sum_i 1/T_i sum_t min(r_t A_i, clip(r_t, 1 - low,
    1 + high) A_i)``; ``R = 0`` for an answer that its last chunk cuts off, whatever the verifier says of it.

    Args:
        low, high: distances of the ratio's bounds from 1.

    ``T_i`` counts the tokens of all chunks, each learned from behind the prompt that it was sampled under. The chunks are the
    sampler's: ``PlayerSpec(context=Chunks(...))`` of `assay.rollout`. The authors make two optimiser steps a batch.

    Source: Delethink (arXiv 2510.06557).
    """
    policy = PolicyGradient(trust=MinClip(low=low, high=high))
    return Objective(credit=(TruncatedReward(), *GROUP_NORM), policy=policy, aggregate=SeqMean())


@method("ReSeek, 2025, arXiv 2510.00568", status="unsure")
def reseek(column: str = "judge_reward", gamma: float = 1.0, clip: float = 0.2) -> Objective:
    """ReSeek (2025): the rewards of judging turns beside the outcome, ``G_k = r_k + gamma G_(k+1)`` for all tokens of turn ``k``,
    less the group's mean return and over its standard deviation.

    Args:
        column: token column with each turn's own reward, as `assay.train.JudgeReward` provides it.
        gamma: worth of the next turn.
        clip: distance of the ratio's bounds from 1.

    Token mean, no divergence.

    Unsure: ``gamma``, and whether the paper's GRPO gives a turn the return from it on, as here, or the whole rollout's.

    Source: ReSeek (arXiv 2510.00568).
    """
    credit = (TokenReward(column), Turns("call", gamma), Center("group"), Scale("group"))
    policy = PolicyGradient(trust=MinClip(low=clip, high=clip))
    return Objective(credit=credit, policy=policy, aggregate=Token(), brings=(column,))


@method("WebAgent-R1, 2025, arXiv 2505.16421", status="unsure")
def m_grpo(kl: float = 0.001, clip: float = 0.2) -> Objective:
    """M-GRPO (WebAgent-R1, 2025): ``-1/G sum_i 1/|tau_i| sum_j 1/|a_ij| sum_t [min(r_t A_i, clip(r_t) A_i) - kl k3_t]``.

    ``A_i = (R_i - mu_q) / sd_q`` for all turns of an episode; a mean over a turn's tokens, then over the episode's turns.

    Args:
        kl: coefficient of the divergence from the reference; 0 leaves it out, and with it the reference.
        clip: distance of the bounds from 1.

    The context is the other half: ``PlayerSpec(context=HideOlder())`` of `assay.rollout`.

    Unsure: whether the paper's main runs learn from thoughts; here from all that was sampled.

    Source: WebAgent-R1 (arXiv 2505.16421).
    """
    policy = PolicyGradient(trust=MinClip(low=clip, high=clip))
    return Objective(credit=GROUP_NORM, policy=policy, aggregate=TurnMean(), terms=kl_term("k3", kl))
