"""Corrections for a sampler whose policy is not quite the one that is trained."""

from __future__ import annotations

from assay.objective.loss.aggregate import Constant, SeqMean, Token
from assay.objective.loss.mismatch import IcePop, Truncate
from assay.objective.loss.policy import PolicyGradient
from assay.objective.loss.ratio import Ratio
from assay.objective.loss.ratio_kinds import Interpolated
from assay.objective.loss.trust import MinClip
from assay.objective.methods.registry import method
from assay.objective.methods.shared import GROUP_NORM
from assay.objective.objective import Objective

__all__ = ["areal", "geo_mask", "hispo", "icepop", "masked_is", "tis"]


@method("Yao et al. 2025")
def tis(cap: float = 2.0, level: str = "token", low: float = 0.0, normalise: bool = False) -> Objective:
    """Truncated importance sampling (Yao 2025) on GRPO without KL: each token's loss times ``sg(min(pi_old / pi_engine, cap))``.

    Args:
        cap: largest weight (verl and slime: 2).
        level: ``token``, or ``sequence_product``, ``sequence_mean``, ``turn_product``, ``turn_mean``: one weight for a rollout
            or turn (SkyRL caps the product at 5).
        low: smallest weight.
        normalise: divide by the mean weight of the optimiser batch.
    """
    weight = Truncate(cap=cap, low=low, level=level, normalise=normalise)
    return Objective(credit=GROUP_NORM, policy=PolicyGradient(weights=(weight,)), aggregate=SeqMean())


@method("Every Step Evolves (Ring-1T), 2025")
def icepop(low: float = 0.5, high: float = 5.0) -> Objective:
    """IcePop (Ring-1T 2025) on GRPO without KL: the weight is ``w = pi_old / pi_engine`` inside ``[low, high]``, else 0; token
    mean.

    Args:
        low, high: the band.

    Denominators count masked tokens.

    Source: Ring-1T (arXiv 2510.18855), in part.
    """
    return Objective(credit=GROUP_NORM, policy=PolicyGradient(weights=(IcePop(low=low, high=high),)), aggregate=Token())


@method("When Speed Kills Stability, 2025; TRL")
def masked_is(high: float = 3.0, low: float = 0.0, level: str = "sequence_product") -> Objective:
    """Masked importance sampling (2025) on GRPO without KL: ``w`` of the whole rollout where it is at most ``high``, else 0.

    ``w_i = exp(sum_t (logp_old - logp_engine))``. It is what TRL does beside vLLM unless told otherwise.

    Args:
        high, low: the band; 3 and none in TRL.
        level: as in `tis`.

    Denominators count masked tokens.
    """
    weight = IcePop(low=low, high=high, level=level)
    return Objective(credit=GROUP_NORM, policy=PolicyGradient(weights=(weight,)), aggregate=Token())


@method("When Speed Kills Stability, 2025; NeMo-RL")
def geo_mask(low: float = 0.999, high: float = 1.002) -> Objective:
    """Geometric sequence mask (2025) on GRPO without KL: rollouts whose geometric mean of ``w`` is in ``[low, high]`` keep each
    token's own ``w = pi_old / pi_engine``, the others go.

    Args:
        low, high: the band (NeMo-RL's ``seq-mask-tis``; SkyRL: 0.99 to 1.01).

    Denominators count masked tokens.
    """
    weights = (IcePop(low=low, high=high, level="sequence_mean", unit=True), Truncate(cap=float("inf")))
    return Objective(credit=GROUP_NORM, policy=PolicyGradient(weights=weights), aggregate=Token())


@method("AReaL 2025")
def areal(cap: float = 5.0, mask: bool = False, loglinear: bool = False, clip: float = 0.2) -> Objective:
    """Decoupled PPO (AReaL 2025): trust region around the trainer's policy at the step's start, staleness corrected by a
    capped weight.

    ``-1/D sum sg(min(pi_old / pi_engine, cap)) min(r A, clip(r, 1 -+ clip) A)``, D tokens; GRPO advantage.

    Args:
        cap: largest weight.
        mask: 0 instead of ``cap`` for tokens above it, as the released code does when rejection is configured. D counts them.
        loglinear: do without the pass for the trainer's policy: interpolate it between sampler and current policy by the column
            ``staleness``, which the rows must bring.
        clip: distance of the bounds from 1.

    Left out: rejection by other statistics, which is a `Reject` among the weights.

    Source: AReaL (arXiv 2505.24298), in part.
    """
    trust = MinClip(low=clip, high=clip)
    if loglinear:
        ratio = Interpolated(cap=cap, mask=mask)
        policy = PolicyGradient(ratio=ratio, trust=trust)
        return Objective(credit=GROUP_NORM, policy=policy, aggregate=Token(), brings=ratio.needs)
    weight = IcePop(low=0.0, high=cap) if mask else Truncate(cap=cap)
    return Objective(credit=GROUP_NORM, policy=PolicyGradient(trust=trust, weights=(weight,)), aggregate=Token())


@method("LongCat-Flash-Prover, 2026", status="unsure", example={"length": 64, "sequence": 0.1, "token": 0.5})
def hispo(
    sequence: float, token: float, length: int | None = None, low: float = 0.2, high: float = 0.28, dual: float = 3.0
) -> Objective:
    """HisPO (LongCat-Flash-Prover 2026): triplet clip on the whole ratio ``rho = pi / pi_engine``, two masks on ``w = pi_old /
    pi_engine``.

    ``-1/(D * length) sum H_it min(rho A, clip(rho, 1 - low, 1 + high) A)``, at most ``-dual A`` where ``A < 0``; ``H = 1`` where
    the rollout's geometric mean of ``w`` and the token's own are near 1; D rollouts; GRPO advantage.

    Args:
        sequence: largest distance from 1 of the rollout's geometric mean.
        token: largest distance from 1 of a token's ``w``.
        length: the generation budget in tokens.
        low, high, dual: bounds of ``rho``.

    Unsure: the report prints none of the five numbers (low, high and dual here are customary) and does not say how the
    advantage is scaled; its formula divides by the batch's longest row, here by the constant budget.

    Source: LongCat-Flash-Prover (arXiv 2603.21065), in part.
    """
    masks = (
        IcePop(low=max(1 - sequence, 0.0), high=1 + sequence, level="sequence_mean", unit=True),
        IcePop(low=max(1 - token, 0.0), high=1 + token, unit=True),
    )
    trust = MinClip(low=low, high=high, dual=dual)
    policy = PolicyGradient(ratio=Ratio("token", anchor="engine"), trust=trust, weights=masks)
    return Objective(credit=GROUP_NORM, policy=policy, aggregate=Constant(length=length))
