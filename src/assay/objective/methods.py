"""Published methods as short compositions; `methods` lists them.

Each docstring gives formula, source, defaults and what was left out. Notation: ``mu_q``, ``sd_q`` mean and standard deviation
of a group's
rewards, ``sd_B`` of the batch's; ``r_t = exp(logp_new - logp_old)``; ``T_i`` loss tokens of an attempt; ``D`` a global count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from assay.objective.credit.base import CreditTerm
from assay.objective.credit.baseline import Center, Scale, Whiten
from assay.objective.credit.filters import DropTruncated, DropZeroVariance
from assay.objective.credit.reward import KlInReward, Overlong
from assay.objective.loss.aggregate import Constant, Prompt, SeqMean, SeqSum, Token
from assay.objective.loss.policy import MinClip, PolicyGradient, Ratio, WeightClip
from assay.objective.loss.score import BalancedBce, GroupSoftmax, ScoreLoss
from assay.objective.loss.terms import Kl, Nll
from assay.objective.loss.weights import IcePop, Truncate
from assay.objective.objective import Objective

__all__ = [
    "areal",
    "cispo",
    "dapo",
    "dispo",
    "dr_grpo",
    "grpo",
    "gspo",
    "icepop",
    "lite_ppo",
    "loop",
    "methods",
    "nll",
    "pacs",
    "real",
    "reinforce",
    "reinforce_pp",
    "reinforce_pp_baseline",
    "rloo",
    "scale_rl",
    "tis",
]

_GROUP_NORM: tuple[CreditTerm, ...] = (Center("group"), Scale("group"))


def nll() -> Objective:
    """Negative log-likelihood: ``-1/D sum_it logp_it``, D all loss tokens, on every stream. Supervised learning; the warm-up's
    objective.
    """
    return Objective(terms=(Nll(),), aggregate=Token())


def reinforce(baseline: float = 0.0) -> Objective:
    """REINFORCE (Williams 1992): ``-1/D sum_i (R_i - b) sum_t logp_it``, D attempts. No ratio: one optimiser step per rollout
    batch.

    Args:
        baseline: the constant ``b``; for a running mean use ``Center("ema", decay=...)`` in ``credit``.

    Left out: discounting inside an attempt (gamma = 1).
    """
    credit = (Center("constant", value=baseline),) if baseline else ()
    return Objective(credit=credit, policy=PolicyGradient(ratio=Ratio("none"), trust=None), aggregate=SeqSum())


def reinforce_pp() -> Objective:
    """REINFORCE++ (Hu 2025): outcome whitened over all loss tokens of the batch, PPO clip 0.2, token mean.

    ``A = (R - mean) / (sqrt(var) + eps)`` with mean and variance over tokens, so long attempts weigh more.

    Left out: the k1 penalty inside the per-token return (published coefficients differ); discount 1.
    """
    return Objective(credit=(Whiten("token"),), policy=PolicyGradient(), aggregate=Token())


def reinforce_pp_baseline(kl: float = 1e-4) -> Objective:
    """REINFORCE++-baseline (Hu 2025): ``R_i - mu_q``, then whitened over all loss tokens of the batch; k2 divergence as a loss.

    Args:
        kl: coefficient of k2 to the reference; 0 leaves it out.

    The whitening subtracts a token mean, so a group without variance may still get an advantage.
    """
    return Objective(credit=(Center("group"), Whiten("token")), policy=PolicyGradient(), aggregate=Token(), terms=_kl("k2", kl))


def rloo(kl: float = 0.0) -> Objective:
    """RLOO (Kool 2019; Ahmadian 2024): ``A_i = R_i - mean of the others``; ``-1/D sum_i A_i sum_t logp_it``, D attempts. No
    ratio.

    Args:
        kl: coefficient of the summed k1 subtracted from the reward (0.03 in TRL); 0 leaves it out.
    """
    shape: tuple[CreditTerm, ...] = (KlInReward(coef=kl),) if kl else ()
    return Objective(
        credit=(*shape, Center("leave_one_out")), policy=PolicyGradient(ratio=Ratio("none"), trust=None), aggregate=SeqSum()
    )


def loop(eps: float = 0.1) -> Objective:
    """LOOP (2025): leave-one-out advantage, PPO clip with reciprocal bounds ``[1 / (1 + eps), 1 + eps]``, mean per attempt.

    Args:
        eps: 0.1 as in the released code; the paper prints none (unsure).

    Left out: dropping attempts with small advantage (0.01 in the released code).
    """
    clip = MinClip(low=1 - 1 / (1 + eps), high=eps)
    return Objective(credit=(Center("leave_one_out"),), policy=PolicyGradient(trust=clip), aggregate=SeqMean())


def grpo(kl: float = 0.001, clip: float = 0.2, eps: float = 1e-6) -> Objective:
    """GRPO (DeepSeekMath 2024): group mean and sample standard deviation, PPO's clip, k3 divergence from the reference.

    ``A_i = (R_i - mu_q) / (sd_q + eps)``; loss ``1/G sum_i 1/T_i sum_t [-min(r_t A, clip(r_t, 1 -+ clip) A) + kl * k3_t]``.

    Args:
        kl: coefficient of the divergence (0.001 as in R1; DeepSeekMath used 0.04); 0 leaves it out, and with it the reference.
        clip: distance of the bounds from 1.
        eps: added to the standard deviation.

    Left out: step rewards of a process reward model.
    """
    return Objective(
        credit=(Center("group"), Scale("group", eps=eps)),
        policy=PolicyGradient(trust=MinClip(low=clip, high=clip)),
        aggregate=SeqMean(),
        terms=_kl("k3", kl),
    )


def dr_grpo(length: int | None = None, clip: float = 0.2) -> Objective:
    """Dr.GRPO (2025): GRPO without the standard deviation and without the division by each attempt's length.

    ``A_i = R_i - mu_q``; loss ``-1/(D * length) sum_i sum_t min(...)``, D attempts.

    Args:
        length: the generation budget in tokens (a constant, not the batch's longest row); an objective without it does not
        compile.
        clip: distance of the bounds from 1.
    """
    return Objective(
        credit=(Center("group"),), policy=PolicyGradient(trust=MinClip(low=clip, high=clip)), aggregate=Constant(length=length)
    )


def dapo(
    low: float = 0.2, high: float = 0.28, filter_groups: bool = True, overlong: Overlong | DropTruncated | None = None
) -> Objective:
    """DAPO (Yu 2025), as four independent parts on GRPO without KL: clip-higher, dynamic sampling, token mean, overlong handling.

    Args:
        low, high: distances of the bounds from 1.
        filter_groups: drop groups whose task metric does not vary, and count only what is kept. The *refill* of the batch is
        the sampler's.
        overlong: ``Overlong(limit=..., cache=...)`` for the soft penalty (20480 and 4096 in the paper), ``DropTruncated()`` to
        mask; None for
            neither.

    The released recipe adds a dual clip of 10: ``MinClip(low=0.2, high=0.28, dual=10.0)``.
    """
    shape: tuple[CreditTerm, ...] = (overlong,) if overlong else ()
    filters: tuple[CreditTerm, ...] = (DropZeroVariance(),) if filter_groups else ()
    return Objective(
        credit=(*shape, *filters, *_GROUP_NORM), policy=PolicyGradient(trust=MinClip(low=low, high=high)), aggregate=Token()
    )


def lite_ppo(clip: float = 0.2) -> Objective:
    """Lite PPO ("Tricks or Traps?", 2025): ``A_i = (R_i - mu_q) / sd_B`` with the batch's spread of raw rewards; PPO clip,
    token mean, no KL.

    Args:
        clip: distance of the bounds from 1.
    """
    return Objective(
        credit=(Center("group"), Scale("batch")), policy=PolicyGradient(trust=MinClip(low=clip, high=clip)), aggregate=Token()
    )


def gspo(low: float = 3e-4, high: float = 4e-4) -> Objective:
    """GSPO (Qwen 2025): the ratio of a whole attempt, ``s_i = exp(mean_t (logp_new - logp_old))``, clipped as one; GRPO
    advantage.

    Loss ``-1/G sum_i min(s_i A_i, clip(s_i, 1 - low, 1 + high) A_i)``, in the token form that gives each token its own gradient.

    Args:
        low, high: distances of the bounds from 1; so small that both log-probabilities must come from the same numerics.
    """
    trust = MinClip(low=low, high=high)
    return Objective(credit=_GROUP_NORM, policy=PolicyGradient(ratio=Ratio("sequence_mean"), trust=trust), aggregate=SeqMean())


def cispo(cap: float = 5.0) -> Objective:
    """CISPO (MiniMax-M1 2025): ``-1/D sum_it sg(min(r_t, cap)) A_it logp_it``, D tokens; GRPO advantage, no KL.

    Args:
        cap: absolute upper bound of the weight (5 in ScaleRL and TRL; the report prints none).
    """
    return Objective(credit=_GROUP_NORM, policy=PolicyGradient(trust=_capped(cap)), aggregate=Token())


def dispo(overlong: Overlong | DropTruncated | None = None) -> Objective:
    """DISPO (2026): CISPO with bounds by the sign of A: ``[0.8, 11]`` where A > 0, ``[0, 101]`` where A < 0; groups filtered
    as in DAPO.

    Args:
        overlong: as in `dapo`.

    Unsure: the bounds come from a reimplementation; another uses 5 for both upper offsets.
    """
    trust = WeightClip(positive=(0.8, 11.0), negative=(0.0, 101.0))
    shape: tuple[CreditTerm, ...] = (overlong,) if overlong else ()
    return Objective(credit=(*shape, DropZeroVariance(), *_GROUP_NORM), policy=PolicyGradient(trust=trust), aggregate=Token())


def scale_rl(cap: float = 5.0) -> Objective:
    """The loss of ScaleRL (2025): ``(R - mu_q) / sd_B``, CISPO's weight against the sampler's own log-probabilities, mean per
    prompt.

    Args:
        cap: absolute upper bound of the weight.

    Groups without variance are dropped, not refilled. Pass-rate filter, forced interruption and fp32 head belong to sampler
    and model.
    """
    return Objective(
        credit=(DropZeroVariance(), Center("group"), Scale("batch")),
        policy=PolicyGradient(ratio=Ratio("token", anchor="engine"), trust=_capped(cap)),
        aggregate=Prompt(),
    )


def tis(cap: float = 2.0) -> Objective:
    """Truncated importance sampling (Yao 2025) on GRPO without KL: each token's loss times ``sg(min(pi_old / pi_engine, cap))``.

    Args:
        cap: largest weight (verl: 2).
    """
    return Objective(credit=_GROUP_NORM, policy=PolicyGradient(weights=(Truncate(cap=cap),)), aggregate=SeqMean())


def icepop(low: float = 0.5, high: float = 5.0) -> Objective:
    """IcePop (Ring-1T 2025) on GRPO without KL: the weight is ``w = pi_old / pi_engine`` inside ``[low, high]``, else 0; token
    mean.

    Args:
        low, high: the band.

    Denominators count masked tokens.
    """
    return Objective(credit=_GROUP_NORM, policy=PolicyGradient(weights=(IcePop(low=low, high=high),)), aggregate=Token())


def areal(cap: float = 5.0) -> Objective:
    """Decoupled PPO (AReaL 2025): trust region around the trainer's policy at the step's start, staleness corrected by a
    capped weight.

    ``-1/D sum sg(min(pi_old / pi_engine, cap)) min(r A, clip(r, 0.8, 1.2) A)``, D tokens; GRPO advantage.

    Args:
        cap: largest weight.
    """
    return Objective(credit=_GROUP_NORM, policy=PolicyGradient(weights=(Truncate(cap=cap),)), aggregate=Token())


def pacs(beta: float = 1.0) -> Objective:
    """PACS (2025): cross-entropy of leave-one-out scores against the verifier's labels, class-balanced within the group.

    ``s_i = beta sum_t (logp_new - logp_old)``, ``psi_i = s_i - mean of the others' s``, loss ``mean BCE(psi_i, y_i)``, by two
    passes.

    Args:
        beta: scale of the scores.

    Whole groups per optimiser step.
    """
    return Objective(policy=ScoreLoss(phi=BalancedBce(), scale=beta))


def real(tau: float = 0.5) -> Objective:
    """REAL, rewards as labels (2026): ``log(1 + sum_+ e^(-s/tau)) + log(1 + sum_- e^(s/tau))`` per group, mean over groups, by
    two passes.

    ``s_i = mean_t (logp_new - logp_old)``. Groups of one class add nothing and stay in the divisor, as in both released codes.

    Args:
        tau: temperature.
    """
    return Objective(policy=ScoreLoss(phi=GroupSoftmax(tau=tau), score="mean"))


def methods() -> Mapping[str, Callable[..., Objective]]:
    """All named methods, by name.

    >>> from assay.objective.methods import methods
    >>> sorted(methods())[:3]
    ['areal', 'cispo', 'dapo']
    """
    every: tuple[Callable[..., Objective], ...] = (
        nll, reinforce, reinforce_pp, reinforce_pp_baseline, rloo, loop, grpo, dr_grpo, dapo, lite_ppo, gspo, cispo, dispo,
        scale_rl, tis, icepop, areal, pacs, real,
    )  # fmt: skip
    return {make.__name__: make for make in every}


def _kl(estimator: str, coef: float) -> tuple[Kl, ...]:
    return (Kl(estimator, coef=coef),) if coef else ()


def _capped(cap: float) -> WeightClip:
    return WeightClip(positive=(0.0, cap), negative=(0.0, cap))
