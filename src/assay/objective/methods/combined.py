"""Methods that make one advantage of several reward components."""

from __future__ import annotations

from assay.objective.credit.balance import Constrained, HypervolumeScale
from assay.objective.credit.base import CreditTerm
from assay.objective.credit.baseline import Center
from assay.objective.credit.combine import LogTamed, ScaleByType, VarianceAdaptive
from assay.objective.credit.reward import Scalarise
from assay.objective.loss.aggregate import SeqMean, Token
from assay.objective.loss.policy import PolicyGradient
from assay.objective.loss.trust import MinClip
from assay.objective.methods.registry import method
from assay.objective.methods.shared import GROUP_NORM
from assay.objective.objective import Objective

__all__ = ["constrained", "dvao", "hypervolume_weighting", "log_tamed", "tmn_reweight"]

Weights = tuple[tuple[str, float], ...]


@method("DVAO, 2026, arXiv 2605.25604", status="unsure")
def dvao(weights: Weights = (), clip: float = 0.2) -> Objective:
    """DVAO (2026): ``A_i = sum_k b_k (r_ik - mu_qk) / sum_k b_k sd_qk`` over the reward components; PPO clip, token mean.

    Args:
        weights: pairs of component and base weight; all components with weight 1 when empty.
        clip: distance of the bounds from 1.

    Unsure: degrees of freedom of the deviations (population here), what a group without spread gets (0 here), and the loss beside
    it.

    Source: DVAO (arXiv 2605.25604).
    """
    return _combine_rewards(weights, (VarianceAdaptive(weights=weights),), clip)


@method("PaCo-RL, 2025")
def log_tamed(weights: Weights = (), bar: str = "mean", clip: float = 0.2) -> Objective:
    """Log-tamed aggregation (PaCo-RL 2025): ``log(1 + r)`` for components that vary much, a weighted sum, then GRPO without KL.

    Args:
        weights: pairs of component and weight; all components with weight 1 when empty. Rewards are 0 or more.
        bar: ``mean`` or ``median`` of the components' ``sd / mean`` over the batch, above which one is tamed.
        clip: distance of the bounds from 1.

    Left out: images, and the pairwise judge of their consistency.
    """
    return _combine_rewards(weights, (LogTamed(weights=weights, bar=bar), *GROUP_NORM), clip)


@method("GoLongRL, 2026, arXiv 2605.19577")
def tmn_reweight(by: str = "arm", alpha: float = 0.8, gamma: float = 1.0) -> Objective:
    """TMN-Reweight (GoLongRL 2026): one scale per reward type, and ``exp(gamma (1/2 - s_q))`` by difficulty; clip 0.2 and 0.28.

    Args:
        by: column of the rollouts that tells the reward type.
        alpha: share of the group's own mean in the bound between easy and hard.
        gamma: strength of the weight by difficulty; 0 for the scale alone.

    Source: GoLongRL (arXiv 2605.19577), in part.
    """
    return Objective(
        credit=(ScaleByType(by=by, alpha=alpha, gamma=gamma),),
        policy=PolicyGradient(trust=MinClip(low=0.2, high=0.28)),
        aggregate=Token(),
    )


@method("Constrained RLHF, 2023, arXiv 2310.04373", status="unsure")
def constrained(
    thresholds: Weights = (), main: str = "", form: str = "sigmoid", lr: float = 0.05, clip: float = 0.2
) -> Objective:
    """Constrained RLHF (2023): ``(1 - l) A_0 + l A_c``, ``l`` descending on ``l (mean r_c - theta)``; PPO clip.

    Args:
        thresholds: pairs of component and the value beyond which it is not to be driven; without any, the task's alone counts.
        main: the task's component; the task's own metric when empty.
        form: of the multipliers: ``sigmoid``, ``unbounded`` or ``tanh``.
        lr: step of the multipliers.
        clip: distance of the bounds from 1.

    Unsure: the published ``tanh`` form. Left out: a value head per component, for which groups stand here, and the search for
    thresholds by a gold metric.

    Source: Constrained RLHF (arXiv 2310.04373), in part.
    """
    credit = (Constrained(main=main, thresholds=thresholds, form=form, lr=lr),)
    return Objective(credit=credit, policy=PolicyGradient(trust=MinClip(low=clip, high=clip)), aggregate=SeqMean())


@method("Dynamic Reward Weighting, 2025, arXiv 2509.11452")
def hypervolume_weighting(components: tuple[str, ...] = (), weights: Weights = (), clip: float = 0.2) -> Objective:
    """Hypervolume-guided weighting (2025): advantages without standard deviation, times ``1/2 + 3/2 tanh(gain of the front)``.

    Args:
        components: the objectives whose front counts; all components when empty.
        weights: pairs of component and weight in the reward; ``components`` with equal weights that sum to 1 when empty.
        clip: distance of the bounds from 1.

    Left out: weights by the components' gradients. The front is of training batches; the source's is of held-out prompts.

    Source: Dynamic Reward Weighting (arXiv 2509.11452), in part.
    """
    share = weights or tuple((name, 1.0 / len(components)) for name in components)
    return Objective(
        scalarise=Scalarise(weights=share, every=not share),
        credit=(Center("group"), HypervolumeScale(components=components)),
        policy=PolicyGradient(trust=MinClip(low=clip, high=clip)),
        aggregate=SeqMean(),
    )


def _combine_rewards(weights: Weights, credit: tuple[CreditTerm, ...], clip: float) -> Objective:
    return Objective(
        scalarise=Scalarise(weights=weights, every=not weights),
        credit=credit,
        policy=PolicyGradient(trust=MinClip(low=clip, high=clip)),
        aggregate=Token(),
    )
