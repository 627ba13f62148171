"""Methods that differ from GRPO in how the policy follows: ratio, trust region, penalty.

TRL's loss types beside them are aggregations: ``grpo`` is `SeqMean`, ``dapo`` and ``bnpo`` are `Token` (over the optimiser's and
the micro-batch's tokens there, always the former here), ``dr_grpo`` is `Constant`, ``luspo`` is `SeqSum` under a sequence ratio.
"""

from __future__ import annotations

import math

from assay.objective.credit.baseline import Center
from assay.objective.credit.filters import DropZeroVariance
from assay.objective.loss.aggregate import SeqMean, SeqSum, Token
from assay.objective.loss.kl import Kl
from assay.objective.loss.mismatch_reject import SecondMoment
from assay.objective.loss.policy import PolicyGradient
from assay.objective.loss.ratio import Ratio
from assay.objective.loss.ratio_kinds import GeoMean
from assay.objective.loss.trust import Gate, MinClip, WeightClip
from assay.objective.loss.trust_masks import DivergenceMask, Within
from assay.objective.loss.trust_penalty import Proximal
from assay.objective.loss.trust_soft import GammaWeight, SoftGate
from assay.objective.methods.registry import method
from assay.objective.methods.shared import GROUP_NORM, cap_weight
from assay.objective.objective import Objective

__all__ = [
    "cispo_masked",
    "dppo",
    "dro",
    "gmpo",
    "gpg",
    "kimi15",
    "luspo",
    "m2po",
    "opsm",
    "prime_rl",
    "prime_rl_ipo",
    "rollout_is",
    "sapo",
    "topr",
    "vespo",
]

_FREE = PolicyGradient(ratio=Ratio("none"), trust=None)


@method("Soft Adaptive Policy Optimization, 2025, arXiv 2511.20347")
def sapo(positive: float = 1.0, negative: float = 1.05, level: str = "token") -> Objective:
    """SAPO (Qwen 2025): ``-1/G sum_i 1/T_i sum_t f(r_t) A``, ``f(r) = 4/tau sigmoid(tau (r - 1))``; GRPO advantage, no KL.

    Args:
        positive, negative: the temperature ``tau`` where ``A > 0`` and elsewhere: the larger, the faster the gradient fades.
        level: of the ratio.

    Source: SAPO (arXiv 2511.20347).
    """
    policy = PolicyGradient(ratio=Ratio(level), trust=SoftGate(positive=positive, negative=negative))
    return Objective(credit=GROUP_NORM, policy=policy, aggregate=SeqMean())


@method("Geometric-Mean Policy Optimization, 2025, arXiv 2507.20673")
def gmpo(low: float = 0.4, high: float = 0.4) -> Objective:
    """GMPO (2025): ``-1/G sum_i A_i exp(mean_t z_t)``, each ``z_t`` the token's log-ratio, clipped on the side where it has moved
    enough; GRPO advantage, no KL.

    Args:
        low, high: bounds of the log-ratio in nats (verl's ``geo_mean`` reads them from its ratio clip, 0.2).

    Source: GMPO (arXiv 2507.20673).
    """
    return Objective(credit=GROUP_NORM, policy=PolicyGradient(ratio=GeoMean(low=low, high=high), trust=None), aggregate=SeqMean())


@method("LUSPO, as in TRL", status="unsure")
def luspo(low: float = 2e-3, high: float = 2.5e-3) -> Objective:
    """LUSPO (length-unbiased sequence policy optimisation): GSPO's loss summed over a rollout's tokens, ``-1/G sum_i T_i min(s_i
    A_i, clip(s_i, 1 - low, 1 + high) A_i)``.

    Args:
        low, high: distances of the bounds from 1.

    Unsure: read through TRL alone; the authors' code was not found.
    """
    policy = PolicyGradient(ratio=Ratio("sequence_mean"), trust=MinClip(low=low, high=high))
    return Objective(credit=GROUP_NORM, policy=policy, aggregate=SeqSum())


@method("Divergence Proximal Policy Optimization, 2026, arXiv 2602.04879")
def dppo(
    measure: str = "tv", low: float | None = None, high: float | None = None, cap: float = 20.0, anchor: str = "engine"
) -> Objective:
    """DPPO (2026): ``-1/D sum M_t min(r_t, cap) A logp``, ``M_t = 0`` where the step leads further away and the sampled token's
    probability already differs too much from the sampler's; D tokens, GRPO advantage.

    Args:
        measure: ``tv`` or ``kl``, of "this token or another".
        low, high: largest divergence where the probability has fallen, and where it has risen; None for 0.2 (``tv``), 0.05 nats
            (``kl``, the example of the carriers).
        cap: largest weight.
        anchor: the sampler, as published; ``old`` as verl has it.

    Left out: divergences over the k likeliest tokens, which need the whole distribution.
    """
    bound = 0.05 if measure == "kl" else 0.2
    trust = DivergenceMask(
        measure=measure, low=bound if low is None else low, high=bound if high is None else high, cap=cap, anchor=anchor
    )
    return Objective(
        credit=GROUP_NORM, policy=PolicyGradient(ratio=Ratio("token", anchor=anchor), trust=trust), aggregate=Token()
    )


@method("VESPO, 2026; TRL")
def vespo(k_pos: float = 2.0, lam_pos: float = 3.0, k_neg: float = 3.0, lam_neg: float = 2.0, anchor: str = "old") -> Objective:
    """VESPO (2026): ``-1/D sum sg(phi(w_i)) A_i logp``, ``w_i`` the rollout's whole ratio, ``phi = w^k exp(lam (1 - w))``; D
    tokens, GRPO advantage.

    Args:
        k_pos, lam_pos: exponent and rate where ``A > 0``.
        k_neg, lam_neg: the same elsewhere.
        anchor: ``engine`` puts the sampler's mismatch into ``w``, as the authors do with their correction.
    """
    trust = GammaWeight(positive=(k_pos, lam_pos), negative=(k_neg, lam_neg))
    policy = PolicyGradient(ratio=Ratio("sequence_product", anchor=anchor), trust=trust)
    return Objective(credit=GROUP_NORM, policy=policy, aggregate=Token())


@method("Tapered Off-Policy REINFORCE, 2025, arXiv 2503.14286")
def topr(baseline: float = 0.5, level: str = "sequence_product", anchor: str = "old") -> Objective:
    """TOPR (2025): ``-1/G sum_i w_i A_i sum_t logp``, ``w = 1`` where ``A > 0`` and ``sg(min(pi / pi_ANCHOR, 1))`` elsewhere.

    Args:
        baseline: subtracted from the reward: the sign of the rest splits the rollouts. 0.5 makes rewards of 0 and 1 a half of
            the paper's -1 and 1.
        level: of the ratio, the whole rollout's as published; ``token`` as in ROLL.
        anchor: the policy that sampled.

    Left out: the paper's further bounds, which `WeightClip` takes; ROLL splits by the raw score even where a baseline turns the
    advantage's sign.

    Source: TOPR (arXiv 2503.14286).
    """
    policy = PolicyGradient(ratio=Ratio(level, anchor=anchor), trust=WeightClip(positive=(1.0, 1.0), negative=(0.0, 1.0)))
    return Objective(credit=(Center("constant", value=baseline),), policy=policy, aggregate=SeqSum())


@method("Group Policy Gradient, 2025, arXiv 2504.02546")
def gpg(filter_groups: bool = True) -> Objective:
    """GPG (2025): ``-alpha/D sum (R_i - mu_q) logp_it``, no ratio, no spread; ``alpha = B / (B - M)`` makes up for the M of B
    rollouts whose groups do not vary.

    Args:
        filter_groups: count only the tokens of groups that vary, which is ``alpha``, by tokens.

    One optimiser step per rollout batch. Left out: drawing again until enough groups vary, the sampler's work. verl's ``gpg``
    counts rewards that are not 0 instead of groups that vary.

    Source: GPG (arXiv 2504.02546).
    """
    filters = (DropZeroVariance(),) if filter_groups else ()
    return Objective(credit=(*filters, Center("group")), policy=_FREE, aggregate=Token())


@method("Kimi k1.5, 2025, arXiv 2501.12599")
def kimi15(tau: float = 0.1, level: str = "sequence") -> Objective:
    """Kimi k1.5 (2025): ``-(R_i - mu_q) s_i + tau/2 s_i^2``, ``s_i = sum_t (logp_new - logp_old)``, mean over rollouts. No ratio:
    the square holds the policy.

    Args:
        tau: weight of the square (0.1 in ROLL; the paper prints none).
        level: ``sequence`` as published; ``token`` squares each token's log-ratio, as ROLL does.

    Source: Kimi k1.5 (arXiv 2501.12599), in part.
    """
    return Objective(credit=(Center("group"),), policy=_FREE, aggregate=SeqSum(), terms=(_square(level, tau),))


@method("Direct Reward Optimisation, 2024; verl", example={"beta": 0.1})
def dro(beta: float, level: str = "token", anchor: str = "old") -> Objective:
    """DRO (2024): ``-A logp + beta/2 (logp_new - logp_ANCHOR)^2``, token mean; GRPO advantage.

    Args:
        beta: weight of the square; verl has no default.
        level: ``token`` as in verl; ``sequence`` squares the rollout's sum, as published.
        anchor: ``old`` as in verl; ``ref`` as published.

    Left out: the learned value that the paper has in place of a group's mean.
    """
    return Objective(credit=GROUP_NORM, policy=_FREE, aggregate=Token(), terms=(_square(level, beta, anchor),))


@method("MiniMax-M1 2025, unified form")
def cispo_masked(cap: float = 5.0, low: float = 0.2, high: float = 0.28) -> Objective:
    """CISPO's unified form (MiniMax-M1 2025): ``-1/D sum M_t sg(min(r_t, cap)) A logp``, ``M_t = 0`` where PPO would clip; D
    tokens, GRPO advantage.

    Args:
        cap: absolute upper bound of the weight.
        low, high: distances of the mask's bounds from 1.

    Source: CISPO (arXiv 2506.13585).
    """
    trust = Within(inner=cap_weight(cap), gate=MinClip(low=low, high=high))
    return Objective(credit=GROUP_NORM, policy=PolicyGradient(trust=trust), aggregate=Token())


@method("Prosperity before Collapse (M2PO), 2025, arXiv 2510.01161")
def m2po(
    budget: float = 0.04, rule: str = "cap", free_low: float = 0.7, free_high: float = 1.5, anchor: str = "old"
) -> Objective:
    """M2PO (2025): ``-1/D sum M_t r_t A``, ``M_t = 0`` for the largest ``(log r)^2`` among tokens that the step moves further
    away, until its mean over the optimiser batch is within a budget; D tokens, GRPO advantage.

    Args:
        budget: largest mean of ``(log r)^2``.
        rule: ``cap``: what is left out still counts as if clipped, as in the released code; ``drop``: it does not (AReaL).
        free_low, free_high: ratios between them are never left out, as in the released code; 1 and 1 for none.
        anchor: the policy that sampled.

    One pass more before each optimiser step. The released code takes the mean over what its process sees of a mini-batch.

    Source: M2PO (arXiv 2510.01161).
    """
    weight = SecondMoment(budget=budget, rule=rule, free=(free_low, free_high), anchor=anchor)
    policy = PolicyGradient(ratio=Ratio("token", anchor=anchor), trust=None, weights=(weight,))
    return Objective(credit=GROUP_NORM, policy=policy, aggregate=Token())


@method("DeepSeek-V3.2 2025; slime, TRL")
def opsm(delta: float = 1e-4, clip: float = 0.2, anchor: str = "engine") -> Objective:
    """Off-policy sequence mask (DeepSeek-V3.2 2025) on GRPO without KL: rollouts with ``A < 0`` go once ``mean_t (logp_ANCHOR -
    logp_new) > delta``.

    Args:
        delta: largest drift in nats per token (slime's default; TRL and the paper print none).
        clip: distance of the bounds from 1.
        anchor: the sampler, as published and in TRL; ``old`` in slime.
    """
    gate = Gate(positive=(0.0, math.inf), negative=(math.exp(-delta), math.inf))
    trust = Within(inner=MinClip(low=clip, high=clip), gate=gate, ratio=Ratio("sequence_mean", anchor=anchor))
    return Objective(credit=GROUP_NORM, policy=PolicyGradient(trust=trust), aggregate=SeqMean())


@method("prime-rl 2026, default loss")
def prime_rl(low: float = 0.2, high: float = 0.2, kl: float = 1e-3) -> Objective:
    """prime-rl's default loss (2026): ``1/D sum [-M_t r_t A + kl (log r_t)^2]`` against the sampler, M the mask of `dppo`, D
    tokens; ``A = R - mu_q``.

    Args:
        low, high: largest fall and rise of the sampled token's probability.
        kl: weight of the square, which acts on masked tokens too.
    """
    return _prime(DivergenceMask(low=low, high=high), kl)


@method("prime-rl 2026, ipo loss")
def prime_rl_ipo(bound: float = 0.1, kl: float = 1e-3) -> Objective:
    """prime-rl's ``ipo`` loss (2026): `prime_rl` whose mask leaves out every token that moved by more than a bound, in either
    direction and whatever the sign of A. Not the preference loss of that name.

    Args:
        bound: largest change of the sampled token's probability.
        kl: weight of the square, which acts on masked tokens too.
    """
    return _prime(DivergenceMask(low=bound, high=bound, both=True), kl)


@method("SkyRL 2026, rollout_is loss")
def rollout_is(low: float = 0.2, high: float = 0.2) -> Objective:
    """SkyRL's ``rollout_is`` loss (2026): ``-1/D sum 1[1 - low < r_t < 1 + high] r_t A`` with the ratio against the sampler; D
    tokens, GRPO advantage.

    Args:
        low, high: distances of the bounds from 1, for both signs of A: tokens on the far side go even where the step leads back.
    """
    band = (max(1 - low, 0.0), 1 + high)
    policy = PolicyGradient(ratio=Ratio("token", anchor="engine"), trust=Gate(positive=band, negative=band))
    return Objective(credit=GROUP_NORM, policy=policy, aggregate=Token())


def _prime(trust: DivergenceMask, kl: float) -> Objective:
    terms = (Kl("k2", coef=2 * kl, anchor="engine"),) if kl else ()
    policy = PolicyGradient(ratio=Ratio("token", anchor="engine"), trust=trust)
    return Objective(credit=(Center("group"),), policy=policy, aggregate=Token(), terms=terms)


def _square(level: str, coef: float, anchor: str = "old") -> Kl | Proximal:
    """Half the squared log-ratio, per token or per rollout."""
    if level == "token":
        return Kl("k2", coef=coef, anchor=anchor, label="proximal")
    return Proximal(level=f"{level}_sum", coef=coef, anchor=anchor)
