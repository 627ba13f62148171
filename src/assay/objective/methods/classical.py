"""REINFORCE and its kin."""

from __future__ import annotations

from assay.objective.credit.base import CreditTerm
from assay.objective.credit.baseline import Center
from assay.objective.credit.divergence import KlInReward
from assay.objective.credit.filters import DropSmall
from assay.objective.credit.normalise import Whiten
from assay.objective.credit.returns import Discount
from assay.objective.loss.aggregate import SeqMean, SeqSum, Token
from assay.objective.loss.likelihood import Nll
from assay.objective.loss.policy import PolicyGradient
from assay.objective.loss.ratio import Ratio
from assay.objective.loss.trust import MinClip
from assay.objective.methods.registry import method
from assay.objective.methods.requires import Requires
from assay.objective.methods.shared import kl_term
from assay.objective.objective import Objective

__all__ = ["loop", "nll", "reinforce", "reinforce_pp", "reinforce_pp_baseline", "rloo"]


@method("maximum likelihood", requires=Requires(demonstrations=True, why="it raises the likelihood of whatever it is given"))
def nll() -> Objective:
    """Negative log-likelihood: ``-1/D sum_it logp_it``, D all loss tokens, on every stream. Supervised learning; the warm-up's
    objective.
    """
    return Objective(terms=(Nll(),), aggregate=Token())


@method("Williams 1992")
def reinforce(baseline: float = 0.0) -> Objective:
    """REINFORCE (Williams 1992): ``-1/D sum_i (R_i - b) sum_t logp_it``, D rollouts. No ratio: one optimiser step per rollout
    batch.

    Args:
        baseline: the constant ``b``; for a running mean use ``Center("ema", decay=...)`` in ``credit``.

    Discounting inside a rollout is `reinforce_discounted`.
    """
    credit = (Center("constant", value=baseline),) if baseline else ()
    return Objective(credit=credit, policy=PolicyGradient(ratio=Ratio("none"), trust=None), aggregate=SeqSum())


@method("Hu 2025")
def reinforce_pp(kl: float = 0.0, gamma: float = 1.0) -> Objective:
    """REINFORCE++ (Hu 2025): ``G_it = sum_(t' >= t) gamma^(t' - t) rew_it'`` whitened over all loss tokens; PPO clip 0.2.

    ``A = (R - mean) / (sqrt(var) + eps)`` with mean and variance over tokens, so long rollouts weigh more.

    Args:
        kl: coefficient of k1 per token in the return (published ones differ: 1e-4 to 1e-2); 0 leaves it out.
        gamma: worth of the next token.

    Source: REINFORCE++ (arXiv 2501.03262).
    """
    shape: tuple[CreditTerm, ...] = (KlInReward(coef=kl),) if kl else ()
    discount = (Discount(gamma),) if kl or gamma != 1.0 else ()
    return Objective(credit=(*shape, *discount, Whiten("token")), policy=PolicyGradient(), aggregate=Token())


@method("Hu 2025")
def reinforce_pp_baseline(kl: float = 1e-4) -> Objective:
    """REINFORCE++-baseline (Hu 2025): ``R_i - mu_q``, then whitened over all loss tokens of the batch; k2 divergence as a loss.

    Args:
        kl: coefficient of k2 to the reference; 0 leaves it out.

    The whitening subtracts a token mean, so a group without variance may still get an advantage.

    Source: REINFORCE++ (arXiv 2501.03262).
    """
    return Objective(
        credit=(Center("group"), Whiten("token")), policy=PolicyGradient(), aggregate=Token(), terms=kl_term("k2", kl)
    )


@method("Kool et al. 2019; Ahmadian et al. 2024")
def rloo(kl: float = 0.0) -> Objective:
    """RLOO (Kool 2019; Ahmadian 2024): ``A_i = R_i - mean of the others``; ``-1/D sum_i A_i sum_t logp_it``, D rollouts. No
    ratio.

    Args:
        kl: coefficient of the summed k1 subtracted from the reward (0.03 in TRL); 0 leaves it out.

    Source: RLOO (arXiv 2402.14740).
    """
    shape: tuple[CreditTerm, ...] = (KlInReward(coef=kl),) if kl else ()
    return Objective(
        credit=(*shape, Center("leave_one_out")), policy=PolicyGradient(ratio=Ratio("none"), trust=None), aggregate=SeqSum()
    )


@method("Reinforcement Learning for Long-Horizon Interactive LLM Agents, 2025", status="unsure")
def loop(eps: float = 0.1, drop: float = 0.01) -> Objective:
    """LOOP (2025): leave-one-out advantage, PPO clip with reciprocal bounds ``[1 / (1 + eps), 1 + eps]``, mean per rollout.

    ``-1/N sum_i 1/T_i sum_t min(r_t A_i, clip(r_t, 1 / (1 + eps), 1 + eps) A_i)``, ``A_i = R_i - mean_(j != i) R_j``.

    Args:
        eps: 0.1 as in the released code; the paper prints none (unsure).
        drop: rollouts with a smaller advantage leave the loss and its denominator (0.01 in the released code); 0 keeps them.

    Source: LOOP (arXiv 2502.01600).
    """
    clip = MinClip(low=1 - 1 / (1 + eps), high=eps)
    small = (DropSmall(limit=drop),) if drop else ()
    return Objective(credit=(Center("leave_one_out"), *small), policy=PolicyGradient(trust=clip), aggregate=SeqMean())
