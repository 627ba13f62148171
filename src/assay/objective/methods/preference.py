"""Losses on pairs of rollouts, the better and the worse: of groups that the policy sampled, or of a user's preferences.

Notation: ``s = sum_t (logp_new - logp_ref)`` unless a method says otherwise, ``s+`` and ``s-`` of the better and the worse.
Every method here takes its pairs from groups: rollouts with different rewards; ties and rollouts without a verdict are in none.
A user's pair is a group of two in the stream ``preference`` with rewards 1 and 0. The loss is the mean over pairs.
"""

from __future__ import annotations

from assay.core.errors import ConfigError
from assay.objective.loss.aggregate import Token
from assay.objective.loss.base import LossTerm
from assay.objective.loss.likelihood import Nll
from assay.objective.loss.score import ScoreLoss
from assay.objective.loss.sets.base import Mix, SetLoss
from assay.objective.loss.sets.links import OddsLink, PowerLink
from assay.objective.loss.sets.pairwise import Pairwise
from assay.objective.loss.sets.pointwise import Kto, Likelihood
from assay.objective.loss.sets.shapes import LogisticGap, SquareGap
from assay.objective.methods.registry import method
from assay.objective.methods.scores import OFF_POLICY
from assay.objective.objective import Objective
from assay.objective.plan import forward_of

__all__ = ["cpl", "cpo", "dpo", "inpo", "ipo", "kto", "orpo", "simpo", "supervised_too", "to_reference"]


def to_reference(phi: SetLoss | Mix, score: str = "sum", tail: float = 1.0) -> ScoreLoss:
    """A loss on scores relative to the reference, on rollouts of any policy."""
    return ScoreLoss(phi=phi, score=score, anchor="ref", streams=OFF_POLICY, tail=tail)


def supervised_too(coef: float, score: str = "sum", pairs: str = "all") -> tuple[LossTerm, ...]:
    """``-logp_new`` of the better rollouts beside a pairwise loss; none when its coefficient is 0."""
    if not coef:
        return ()
    phi = Likelihood(pairs=pairs, over="tokens" if score == "sum" else "attempts")
    return (ScoreLoss(phi=phi, coef=coef, score=score, anchor="", streams=OFF_POLICY, label="supervised"),)


@method("DPO 2023, arXiv 2305.18290; smoothing: cDPO 2023; robust: arXiv 2403.00409; nll: RPO 2024")
def dpo(
    beta: float = 0.1, smoothing: float = 0.0, robust: bool = False, score: str = "sum", pairs: str = "all", nll: float = 0.0
) -> Objective:
    """DPO (2023): ``-log sigmoid(beta (s+ - s-))``, mean over pairs, by two passes.

    Args:
        beta: strength of the pull to the reference.
        smoothing: chance e that a label is wrong: ``-(1 - e) log sigmoid(x) - e log sigmoid(-x)``.
        robust: instead ``(-(1 - e) log sigmoid(x) + e log sigmoid(-x)) / (1 - 2e)``.
        score: ``sum``, or ``mean`` over the rollout's tokens.
        pairs: ``all`` of a group, or its ``extreme`` one, best and worst.
        nll: coefficient of the better rollouts' token mean of ``-logp_new``.

    Source: DPO (arXiv 2305.18290).
    """
    phi = Pairwise(shape=LogisticGap(beta=beta), pairs=pairs, smoothing=smoothing, robust=robust)
    return Objective(policy=to_reference(phi, score), terms=supervised_too(nll, pairs=pairs))


@method("IPO 2023, arXiv 2310.12036")
def ipo(tau: float = 0.1, score: str = "mean", pairs: str = "all") -> Objective:
    """IPO (2023): ``(s+ - s- - 1/(2 tau))^2``, mean over pairs, by two passes.

    Args:
        tau: strength of the pull to the reference.
        score: ``mean`` over the rollout's tokens, as the authors say they did; ``sum`` is the paper's text.
        pairs: ``all`` of a group, or its ``extreme`` one.

    Source: IPO (arXiv 2310.12036).
    """
    return Objective(policy=to_reference(Pairwise(shape=SquareGap(target=_half_over("ipo", "tau", tau)), pairs=pairs), score))


@method("INPO 2024, arXiv 2407.00617", status="unsure")
def inpo(eta: float = 0.0075, tau: float = 0.0025, previous: str = "old", label: str = "hard") -> Objective:
    """INPO (2024): ``(h - 1/(2 eta))^2``, ``h`` the gap of ``sum_t (logp_new - tau/eta logp_ref - (eta - tau)/eta logp_old)``.

    Iterative Nash policy optimisation: each round samples from the policy of the last, ``pi_t``, asks an oracle, and stays close
    to ``pi_t`` and to the reference. In RL with verifiable rewards the verifier is the oracle, and ties are left out.

    Args:
        eta: step of the round.
        tau: strength of the pull to the reference, at most eta; at eta ``pi_t`` drops out.
        previous: ``pi_t``: ``old``, the policy at the start of the rollout batch, when a round is a batch; for longer rounds a
            column of your own.
        label: ``hard``, ``probability`` or ``bradley_terry``, as in `assay.objective.Pairwise`.

    Unsure: whether the paper's pairs are symmetric draws with expected labels; ``label`` gives that form.

    Source: INPO (arXiv 2407.00617).
    """
    if not 0 <= tau <= eta:
        raise ConfigError(f"inpo(eta={eta}, tau={tau}): use 0 <= tau <= eta, tau / eta is the reference's share")
    target = _half_over("inpo", "eta", eta)
    anchors = tuple((name, share) for name, share in (("ref", tau / eta), (previous, (eta - tau) / eta)) if share)
    column = f"logp_{previous}"
    brings = () if forward_of(column) else (column,)
    phi = Pairwise(shape=SquareGap(target=target), label=label)
    return Objective(policy=ScoreLoss(phi=phi, anchor=anchors, streams=OFF_POLICY), brings=brings)


@method("CPL 2023, arXiv 2310.13639")
def cpl(
    alpha: float = 0.1, bias: float = 0.5, discount: float = 1.0, anchor: str = "", bc: float = 0.0, pairs: str = "all"
) -> Objective:
    """CPL (2023): ``-log sigmoid(alpha (S+ - bias S-))``, ``S = sum_t discount^t logp_new``, mean over pairs, by two passes.

    Args:
        alpha: scale of the scores.
        bias: lambda in (0, 1]: under 1 the loss does not rest on pushing the worse rollout down.
        discount: gamma; 1 in the released configurations.
        anchor: empty; ``ref`` for the KL variant (there alpha .2, bias .75).
        bc: coefficient of the token mean of ``-logp_new`` over both rollouts; 1 to 1.5 in the BC variant, with bias 1.
        pairs: ``all`` of a group, or its ``extreme`` one.

    Left out: the behaviour cloning before; put a supervised stage before this one.

    Source: CPL (arXiv 2310.13639).
    """
    phi = Pairwise(shape=LogisticGap(beta=alpha, bias=bias), pairs=pairs)
    cloning = (Nll(coef=bc, streams=OFF_POLICY, aggregate=Token(), label="cloning"),) if bc else ()
    return Objective(policy=ScoreLoss(phi=phi, anchor=anchor, discount=discount, streams=OFF_POLICY), terms=cloning)


@method("SimPO 2024, arXiv 2405.14734; alpha: AlphaPO 2025, arXiv 2501.03884")
def simpo(beta: float = 2.0, gamma: float = 0.5, alpha: float = 0.0, smoothing: float = 0.0, pairs: str = "all") -> Objective:
    """SimPO (2024): ``-log sigmoid(beta (l+ - l-) - gamma)``, ``l = mean_t logp_new``, mean over pairs, by two passes.

    Args:
        beta: scale of the scores; 2 to 10 in the paper.
        gamma: margin.
        alpha: AlphaPO's: ``l`` becomes ``(1 - exp(-alpha l)) / alpha``; 0 for none.
        smoothing: chance that a label is wrong.
        pairs: ``all`` of a group, or its ``extreme`` one.

    Source: SimPO (arXiv 2405.14734).
    """
    link = PowerLink(-alpha) if alpha else None
    phi = Pairwise(shape=LogisticGap(beta=beta, margin=gamma), link=link, smoothing=smoothing, pairs=pairs)
    return Objective(policy=ScoreLoss(phi=phi, score="mean", anchor="", streams=OFF_POLICY))


@method("CPO 2024, arXiv 2401.08417")
def cpo(beta: float = 0.1, nll: float = 1.0, smoothing: float = 0.0, pairs: str = "all") -> Objective:
    """CPO (2024): ``-log sigmoid(beta (S+ - S-)) + nll * mean -logp_new of the better``, ``S = sum_t logp_new``, by two passes.

    Args:
        beta: scale of the scores.
        nll: coefficient of the supervised part, a mean over the tokens of the better rollouts.
        smoothing: chance that a label is wrong.
        pairs: ``all`` of a group, or its ``extreme`` one.

    Source: CPO (arXiv 2401.08417).
    """
    phi = Pairwise(shape=LogisticGap(beta=beta), smoothing=smoothing, pairs=pairs)
    return Objective(policy=ScoreLoss(phi=phi, anchor="", streams=OFF_POLICY), terms=supervised_too(nll, pairs=pairs))


@method("ORPO 2024, arXiv 2403.07691")
def orpo(beta: float = 0.1, pairs: str = "all") -> Objective:
    """ORPO (2024): ``-l+ - beta log sigmoid(odds+ - odds-)``, ``l = mean_t logp_new``, ``odds = l - log(1 - e^l)``; two passes.

    Args:
        beta: weight of the odds ratio.
        pairs: ``all`` of a group, or its ``extreme`` one.

    The likelihood is over the answer's tokens, a mean over answers; TRL takes prompt and answer, a mean over tokens.

    Source: ORPO (arXiv 2403.07691).
    """
    phi = Pairwise(shape=LogisticGap(beta=1.0), link=OddsLink(), pairs=pairs)
    odds = ScoreLoss(phi=phi, coef=beta, score="mean", anchor="", streams=OFF_POLICY)
    return Objective(policy=odds, terms=supervised_too(1.0, "mean", pairs))


@method("KTO 2024, arXiv 2402.01306; baseline zero: APO 2024, arXiv 2408.06266", status="unsure")
def kto(beta: float = 0.1, desirable: float = 1.0, undesirable: float = 1.0, baseline: str = "mean") -> Objective:
    """KTO (2024): ``w+ sigmoid(-beta (s - z))`` or ``w- sigmoid(beta (s - z))`` per rollout, by its verdict alone; no pairs.

    Args:
        beta: strength of the pull to the reference.
        desirable, undesirable: weights of the classes.
        baseline: ``mean``: ``z`` is the mean score of the whole batch, at least 0; ``zero``: 0 (APO-zero without pairs).

    Unsure: KTO estimates ``z`` on mismatched answers of the same batch; here it is the mean over the answers themselves, which is
    unbiased on rollouts of the current policy only.

    Source: KTO (arXiv 2402.01306).
    """
    return Objective(policy=to_reference(Kto(beta=beta, desirable=desirable, undesirable=undesirable, baseline=baseline)))


def _half_over(name: str, knob: str, value: float) -> float:
    if not value > 0:
        raise ConfigError(f"{name}({knob}={value}): use a positive number; the wanted gap is 1 / (2 {knob})")
    return 1 / (2 * value)
