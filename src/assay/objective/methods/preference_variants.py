"""DPO's relatives, under the names of TRL's losses: other losses of a pair, other divergences, other pairs.

Notation as in `assay.objective.methods.preference`.
"""

from __future__ import annotations

from assay.core.errors import UnknownNameError
from assay.objective.loss.sets.base import Mix
from assay.objective.loss.sets.links import JsLink, Link, PowerLink
from assay.objective.loss.sets.pairwise import Pairwise
from assay.objective.loss.sets.shapes import (
    ApoDown,
    ApoZero,
    BcoPair,
    DiscoGap,
    ExoGap,
    HingeGap,
    LogisticGap,
    NcaPair,
    SppoPair,
)
from assay.objective.loss.sets.sorted import SortedGaps
from assay.objective.methods.preference import supervised_too, to_reference
from assay.objective.methods.registry import method
from assay.objective.objective import Objective

__all__ = ["aot", "apo", "bco", "discopop", "exo", "f_dpo", "ld_dpo", "mpo", "nca", "rso", "sppo"]


@method("RSO 2023, arXiv 2309.06657; SLiC 2023, arXiv 2305.10425")
def rso(beta: float = 0.05) -> Objective:
    """RSO (2023): ``max(0, 1 - beta (s+ - s-))``, the hinge loss on normalised likelihoods; mean over pairs, by two passes.

    Args:
        beta: scale of the scores.

    Left out: the sampling of pairs by rejection.

    Source: RSO (arXiv 2309.06657), in part.
    """
    return Objective(policy=to_reference(Pairwise(shape=HingeGap(beta=beta))))


@method("f-DPO 2023, arXiv 2309.16240")
def f_dpo(beta: float = 0.1, divergence: str = "forward_kl", alpha: float = 0.5, score: str = "sum") -> Objective:
    """f-DPO (2023): DPO with ``f'(e^s)`` for ``s``: ``1 - e^-s``, ``log 2 + log sigmoid(s)`` or ``(1 - e^(-a s)) / a``.

    Args:
        beta: strength of the pull to the reference.
        divergence: ``forward_kl``, ``js`` or ``alpha``; the reverse KL is `dpo`.
        alpha: of ``alpha``, as the paper's; not 0. 1 is the forward KL.
        score: ``sum``, or ``mean`` over the rollout's tokens.

    Source: f-DPO (arXiv 2309.16240).
    """
    links: dict[str, Link] = {"forward_kl": PowerLink(-1.0), "js": JsLink()}
    if divergence == "alpha":
        links[divergence] = PowerLink(-alpha)
    if divergence not in links:
        raise UnknownNameError("divergence", divergence, (*links, "alpha"))
    return Objective(policy=to_reference(Pairwise(shape=LogisticGap(beta=beta), link=links[divergence]), score))


@method("LD-DPO 2024, arXiv 2409.06411")
def ld_dpo(beta: float = 0.1, alpha: float = 0.5) -> Objective:
    """LD-DPO (2024): DPO in which tokens beyond the length of the group's shortest rollout count ``alpha``.

    ``-log sigmoid(beta (s+ - s-))``, ``s = sum_(t <= l) d_t + alpha sum_(t > l) d_t``, ``d = logp_new - logp_ref``,
    l that length.

    Args:
        beta: strength of the pull to the reference.
        alpha: in [0, 1]; 1 is DPO.

    In a group of two this is the pair's shorter rollout, as published.

    Source: LD-DPO (arXiv 2409.06411).
    """
    return Objective(policy=to_reference(Pairwise(shape=LogisticGap(beta=beta)), tail=alpha))


@method("EXO 2024, arXiv 2402.00856")
def exo(beta: float = 0.1, eps: float = 1e-3) -> Objective:
    """EXO (2024): the KL of ``sigmoid(beta (s+ - s-))`` from a label of ``1 - eps``; mean over pairs, by two passes.

    Args:
        beta: scale of the scores.
        eps: how far the label is from certain.

    Source: EXO (arXiv 2402.00856).
    """
    return Objective(policy=to_reference(Pairwise(shape=ExoGap(beta=beta, eps=eps))))


@method("NCA 2024, arXiv 2402.05369")
def nca(beta: float = 0.01) -> Objective:
    """NCA (2024): ``-log sigmoid(x+) - log sigmoid(-x+)/2 - log sigmoid(-x-)/2``, ``x = beta s``; mean over pairs, by two passes.

    Args:
        beta: scale of the scores.

    Source: NCA (arXiv 2402.05369).
    """
    return Objective(policy=to_reference(Pairwise(shape=NcaPair(beta=beta))))


@method("BCO 2024, arXiv 2404.04656")
def bco(beta: float = 0.1) -> Objective:
    """BCO on pairs (2024): ``-log sigmoid(beta s+) - log sigmoid(-beta s-)``; mean over pairs, by two passes.

    Args:
        beta: scale of the scores.

    Left out: the running shift of the scores and the density ratio.

    Source: BCO (arXiv 2404.04656), in part.
    """
    return Objective(policy=to_reference(Pairwise(shape=BcoPair(beta=beta))))


@method("SPPO 2024, arXiv 2405.00675")
def sppo(beta: float = 0.001, label: str = "hard") -> Objective:
    """SPPO (2024): ``(s+ - 1/(2 beta))^2 + (s- + 1/(2 beta))^2``; mean over pairs, by two passes.

    Args:
        beta: strength of the pull to the reference.
        label: ``hard``, or a soft label as in `assay.objective.Pairwise`.

    Source: SPPO (arXiv 2405.00675), in part.
    """
    return Objective(policy=to_reference(Pairwise(shape=SppoPair(beta=beta), label=label)))


@method("APO 2024, arXiv 2408.06266")
def apo(beta: float = 0.1, side: str = "zero") -> Objective:
    """APO (2024): ``1 - sigmoid(beta s+) + sigmoid(beta s-)``, or ``sigmoid(beta s+) + 1 - sigmoid(beta (s+ - s-))``.

    Args:
        beta: scale of the scores.
        side: ``zero`` where better rollouts are above what the policy writes, ``down`` where they are under it.

    Source: APO (arXiv 2408.06266), in part.
    """
    shapes = {"zero": ApoZero(beta=beta), "down": ApoDown(beta=beta)}
    if side not in shapes:
        raise UnknownNameError("side", side, shapes)
    return Objective(policy=to_reference(Pairwise(shape=shapes[side])))


@method("DiscoPOP 2024, arXiv 2406.08414")
def discopop(beta: float = 0.05, tau: float = 0.05) -> Objective:
    """DiscoPOP (2024): ``-log sigmoid(x) (1 - m) + e^-x m``, ``x = beta (s+ - s-)``, ``m = sigmoid(x / tau)``; mean over pairs.

    Args:
        beta: scale of the scores.
        tau: temperature of the blend.

    Source: DiscoPOP (arXiv 2406.08414), in part.
    """
    return Objective(policy=to_reference(Pairwise(shape=DiscoGap(beta=beta, tau=tau))))


@method("AOT 2024, arXiv 2406.05882")
def aot(beta: float = 0.1, paired: bool = True, smoothing: float = 0.0) -> Objective:
    """AOT (2024): DPO's loss on ``u_(r) - v_(r)``, the r-th smallest of each over the whole optimiser batch; by two passes.

    Args:
        beta: scale of the gaps.
        paired: ``u = logp+ - logp-`` and ``v`` the reference's; False: ``u = s+`` and ``v = s-``.
        smoothing: chance that a label is wrong.

    One pair per group, best and worst.

    Source: AOT (arXiv 2406.05882).
    """
    return Objective(policy=to_reference(SortedGaps(beta=beta, paired=paired, smoothing=smoothing)))


@method("MPO 2024, arXiv 2411.10442")
def mpo(beta: float = 0.1, preference: float = 0.8, quality: float = 0.2, generation: float = 1.0) -> Objective:
    """MPO (2024): ``preference`` times DPO, ``quality`` times BCO on pairs, ``generation`` times the likelihood of the better.

    Args:
        beta: scale of the scores.
        preference, quality: weights of the losses on scores.
        generation: weight of the better rollouts' token mean of ``-logp_new``.

    Source: MPO (arXiv 2411.10442), in part.
    """
    both = Mix(of=((preference, Pairwise(shape=LogisticGap(beta=beta))), (quality, Pairwise(shape=BcoPair(beta=beta)))))
    return Objective(policy=to_reference(both), terms=supervised_too(generation))
