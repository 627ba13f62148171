"""GRPO and its kin: baselines from a group of rollouts at one prompt."""

from __future__ import annotations

from assay.objective.credit.base import CreditTerm
from assay.objective.credit.baseline import Center
from assay.objective.credit.filters import DropTruncated, DropZeroVariance
from assay.objective.credit.length import Overlong
from assay.objective.credit.normalise import Scale
from assay.objective.loss.aggregate import Constant, Prompt, SeqMean, Token
from assay.objective.loss.policy import PolicyGradient
from assay.objective.loss.ratio import Ratio
from assay.objective.loss.trust import MinClip, WeightClip
from assay.objective.methods.registry import method
from assay.objective.methods.shared import GROUP_NORM, cap_weight, kl_term
from assay.objective.objective import Objective

__all__ = ["cispo", "dapo", "dispo", "dr_grpo", "grpo", "gspo", "lite_ppo", "scale_rl"]


@method("DeepSeekMath 2024; R1 2025")
def grpo(kl: float = 0.001, clip: float = 0.2, eps: float = 1e-6) -> Objective:
    """GRPO (DeepSeekMath 2024): group mean and sample standard deviation, PPO's clip, k3 divergence from the reference.

    ``A_i = (R_i - mu_q) / (sd_q + eps)``; loss ``1/G sum_i 1/T_i sum_t [-min(r_t A, clip(r_t, 1 -+ clip) A) + kl * k3_t]``.

    Args:
        kl: coefficient of the divergence (0.001 as in R1; DeepSeekMath used 0.04); 0 leaves it out, and with it the reference.
        clip: distance of the bounds from 1.
        eps: added to the standard deviation.

    Left out: step rewards of a process reward model, which `grpo_process` has.

    Source: GRPO (arXiv 2402.03300).
    """
    return Objective(
        credit=(Center("group"), Scale("group", eps=eps)),
        policy=PolicyGradient(trust=MinClip(low=clip, high=clip)),
        aggregate=SeqMean(),
        terms=kl_term("k3", kl),
    )


@method("Understanding R1-Zero-Like Training, 2025", example={"length": 64})
def dr_grpo(length: int | None = None, clip: float = 0.2) -> Objective:
    """Dr.GRPO (2025): GRPO without the standard deviation and without the division by each rollout's length.

    ``A_i = R_i - mu_q``; loss ``-1/(D * length) sum_i sum_t min(...)``, D rollouts.

    Args:
        length: the generation budget in tokens (a constant, not the batch's longest row); an objective without it does not
        compile.
        clip: distance of the bounds from 1.

    Source: Dr. GRPO (arXiv 2503.20783).
    """
    return Objective(
        credit=(Center("group"),), policy=PolicyGradient(trust=MinClip(low=clip, high=clip)), aggregate=Constant(length=length)
    )


@method("Yu et al. 2025")
def dapo(
    low: float = 0.2, high: float = 0.28, filter_groups: bool = True, overlong: Overlong | DropTruncated | None = None
) -> Objective:
    """DAPO (Yu 2025) on GRPO without KL: clip-higher, token mean, groups without spread left out, and overlong handling.

    ``-1/D sum_it min(r_t A_i, clip(r_t, 1 - low, 1 + high) A_i)``, ``A_i = (R_i - mu_q) / sd_q``, D tokens of groups that vary.

    Args:
        low, high: distances of the bounds from 1.
        filter_groups: drop groups whose task metric does not vary, and count only what is kept. Dynamic sampling, which draws
            others in their place, is the stage's: ``filter=Mixed(), refill=Refill()`` of `assay.guide`, or
            ``--stages.0.filter.kind Mixed --stages.0.refill.kind Refill``.
        overlong: ``Overlong(limit=..., cache=...)`` for the soft penalty (20480 and 4096 in the paper), ``DropTruncated()`` to
            mask; None for neither.

    The released recipe adds a dual clip of 10: ``MinClip(low=0.2, high=0.28, dual=10.0)``.

    Source: DAPO dynamic sampling (arXiv 2503.14476).
    """
    shape: tuple[CreditTerm, ...] = (overlong,) if overlong else ()
    filters: tuple[CreditTerm, ...] = (DropZeroVariance(),) if filter_groups else ()
    return Objective(
        credit=(*shape, *filters, *GROUP_NORM), policy=PolicyGradient(trust=MinClip(low=low, high=high)), aggregate=Token()
    )


@method("Tricks or Traps?, 2025")
def lite_ppo(clip: float = 0.2) -> Objective:
    """Lite PPO ("Tricks or Traps?", 2025): ``A_i = (R_i - mu_q) / sd_B`` with the batch's spread of raw rewards; PPO clip,
    token mean, no KL.

    Args:
        clip: distance of the bounds from 1.

    Source: Lite PPO (arXiv 2508.08221).
    """
    return Objective(
        credit=(Center("group"), Scale("batch")), policy=PolicyGradient(trust=MinClip(low=clip, high=clip)), aggregate=Token()
    )


@method("Qwen 2025")
def gspo(low: float = 3e-4, high: float = 4e-4) -> Objective:
    """GSPO (Qwen 2025): the ratio of a whole rollout, ``s_i = exp(mean_t (logp_new - logp_old))``, clipped as one; GRPO
    advantage.

    Loss ``-1/G sum_i min(s_i A_i, clip(s_i, 1 - low, 1 + high) A_i)``, in the token form that gives each token its own gradient.

    Args:
        low, high: distances of the bounds from 1; so small that both log-probabilities must come from the same numerics.

    Source: GSPO (arXiv 2507.18071).
    """
    trust = MinClip(low=low, high=high)
    return Objective(credit=GROUP_NORM, policy=PolicyGradient(ratio=Ratio("sequence_mean"), trust=trust), aggregate=SeqMean())


@method("MiniMax-M1 2025")
def cispo(cap: float = 5.0) -> Objective:
    """CISPO (MiniMax-M1 2025): ``-1/D sum_it sg(min(r_t, cap)) A_it logp_it``, D tokens; GRPO advantage, no KL.

    Args:
        cap: absolute upper bound of the weight (5 in ScaleRL and TRL; the report prints none).

    Source: CISPO (arXiv 2506.13585).
    """
    return Objective(credit=GROUP_NORM, policy=PolicyGradient(trust=cap_weight(cap)), aggregate=Token())


@method("DISPO 2026", status="unsure")
def dispo(overlong: Overlong | DropTruncated | None = None) -> Objective:
    """DISPO (2026): CISPO with bounds by the sign of A: ``[0.8, 11]`` where A > 0, ``[0, 101]`` where A < 0; groups filtered
    as in DAPO.

    ``-1/D sum_it sg(clip(r_t, low, high)) A_i logp_it``, D tokens.

    Args:
        overlong: as in `dapo`.

    Unsure: the bounds come from a reimplementation; another uses 5 for both upper offsets.

    Source: DISPO (arXiv 2602.00983).
    """
    trust = WeightClip(positive=(0.8, 11.0), negative=(0.0, 101.0))
    shape: tuple[CreditTerm, ...] = (overlong,) if overlong else ()
    return Objective(credit=(*shape, DropZeroVariance(), *GROUP_NORM), policy=PolicyGradient(trust=trust), aggregate=Token())


@method("The Art of Scaling RL Compute, 2025", status="unsure")
def scale_rl(cap: float = 5.0) -> Objective:
    """The loss of ScaleRL (2025): ``(R - mu_q) / sd_B``, CISPO's weight against the sampler's own log-probabilities, mean per
    prompt.

    Args:
        cap: absolute upper bound of the weight.

    Groups without variance are dropped, not refilled. Pass-rate filter, forced interruption and fp32 head belong to sampler
    and model.

    Source: ScaleRL (arXiv 2510.13786), in part.
    """
    return Objective(
        credit=(DropZeroVariance(), Center("group"), Scale("batch")),
        policy=PolicyGradient(ratio=Ratio("token", anchor="engine"), trust=cap_weight(cap)),
        aggregate=Prompt(),
    )
