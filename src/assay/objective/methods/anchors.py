"""Methods that differ in what they hold on to: a reference that is reset, the base model's own answers."""

from __future__ import annotations

from dataclasses import replace

from assay.objective.credit.baseline import Center
from assay.objective.credit.filters import DropZeroVariance
from assay.objective.credit.normalise import Whiten
from assay.objective.loss.aggregate import Token
from assay.objective.loss.divergence import AnchorDivergence
from assay.objective.loss.mismatch import IcePop
from assay.objective.loss.policy import PolicyGradient
from assay.objective.loss.trust import MinClip
from assay.objective.methods.group import dapo
from assay.objective.methods.registry import method
from assay.objective.methods.requires import Requires
from assay.objective.methods.shared import GROUP_NORM, kl_term
from assay.objective.objective import Objective

__all__ = ["dph_rl", "pro_rl", "pro_rl_v2"]


@method("ProRL, NVIDIA 2025", status="unsure")
def pro_rl(kl: float = 0.001, estimator: str = "k3", low: float = 0.2, high: float = 0.4) -> Objective:
    """ProRL (2025): DAPO's clip-higher, dynamic sampling and token mean, *with* k3 to a reference that is reset to the policy.

    ``1/D sum_it [-min(r_t A_i, clip(r_t, 1 - low, 1 + high) A_i) + kl k3_t]``, ``A_i = (R_i - mu_q) / sd_q``, D tokens.

    Args:
        kl: coefficient of the divergence.
        estimator: of `Kl`.
        low, high: distances of the bounds from 1.

    The reset is the learner's (``Anchor("ref", refresh=Every(steps=...))``); one together with the optimiser's is a new stage,
    whose reference is the policy that it starts from. Right behind it every log-ratio to the reference is 0, and so is the
    divergence's gradient. BroRL (2025) is the same with 512 rollouts per prompt. Unsure: coefficient, estimator and trigger of
    the reset.

    Source: BroRL (arXiv 2510.01180), in part; ProRL (arXiv 2505.24864).
    """
    return Objective(
        credit=(DropZeroVariance(), *GROUP_NORM),
        policy=PolicyGradient(trust=MinClip(low=low, high=high)),
        aggregate=Token(),
        terms=kl_term(estimator, kl),
    )


@method("ProRL v2, NeMo-RL and OpenRLHF recipes, 2025")
def pro_rl_v2(kl: float = 1e-4, low: float = 0.2, high: float = 0.27, band: tuple[float, float] | None = (0.5, 5.0)) -> Objective:
    """ProRL v2 (2025): REINFORCE++-baseline with clip-higher, dynamic sampling, k2 to the reference, and IcePop's mask.

    ``1/D sum_it [-w_t min(r_t A_i, clip(r_t) A_i) + kl k2_t]``, ``A_i = R_i - mu_q`` whitened over tokens, ``w_t = pi_old /
    pi_engine`` inside the band and 0 outside, D tokens.

    Args:
        kl: coefficient of k2 to the reference.
        low, high: distances of the bounds from 1.
        band: of ``pi_old / pi_engine``; None for no mask.

    Left out: reward 0 for rollouts that were cut off, and a length penalty that comes and goes, both parts of ``credit``.

    Source: ProRL (arXiv 2505.24864).
    """
    weights = (IcePop(low=band[0], high=band[1]),) if band else ()
    return Objective(
        credit=(DropZeroVariance(), Center("group"), Whiten("token")),
        policy=PolicyGradient(trust=MinClip(low=low, high=high), weights=weights),
        aggregate=Token(),
        terms=kl_term("k2", kl),
    )


@method(
    "DPH-RL, The Choice of Divergence, 2025",
    requires=Requires(
        settings={"stored": False}, stored="beside", why="no rows bring answers of the base: its own right ones stand for them"
    ),
)
def dph_rl(generator: str = "forward_kl", coef: float = 0.01, alpha: float | None = None, stored: bool = True) -> Objective:
    """DPH-RL (2025): GRPO with clip-higher and token mean, ``+ coef f(pi / pi_ref)`` on the base model's own answers.

    The policy learns from prompts that the base model does not master, the divergence from those that it does. ``f = u - 1 - log
    u`` makes it KL(ref||pi).

    Args:
        generator: of `AnchorDivergence`: ``forward_kl`` (coefficient 0.01 to 0.05), ``js`` (0.05 to 0.2), ``alpha``.
        coef: weight of the divergence.
        alpha: only for ``alpha`` (published: 0.2).
        stored: the answers' rows bring ``logp_ref``; False: a pass of the reference fills it.

    The answers are drawn before training, with their log-probabilities, and stand in the stream ``offline``.

    Source: DPH-RL (arXiv 2509.07430), in part.
    """
    term = AnchorDivergence(generator, coef=coef, alpha=alpha, aggregate=Token())
    return replace(dapo(filter_groups=False) + term, brings=("logp_ref",) if stored else ())
