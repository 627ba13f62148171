"""Losses on whole rollouts' scores: the verifier's verdicts as labels, rewards and advantages as targets."""

from __future__ import annotations

from assay.core.errors import ConfigError, UnknownNameError
from assay.objective.credit.baseline import Against, Center
from assay.objective.credit.reward import Scalarise
from assay.objective.loss.score import ScoreLoss
from assay.objective.loss.sets.groupwise import BalancedBce, GroupSoftmax, RewardGaps
from assay.objective.loss.sets.pointwise import ScoreSquare
from assay.objective.methods.registry import method
from assay.objective.objective import Objective

__all__ = ["OFF_POLICY", "a2po", "copg", "direct_advantage", "pacs", "real"]

OFF_POLICY = ("on_policy", "replay", "offline", "preference")
"""Streams of losses that hold for rollouts of any policy: all but expert rows."""


@method("PACS 2025")
def pacs(beta: float = 1.0, psi: str = "leave_one_out", score: str = "sum") -> Objective:
    """PACS (2025): cross-entropy of leave-one-out scores against the verifier's labels, class-balanced within the group.

    ``s_i = beta sum_t (logp_new - logp_old)``, ``psi_i = s_i - mean of the others' s``, loss ``mean BCE(psi_i, y_i)``, by two
    passes.

    Args:
        beta: scale of the scores.
        psi: ``leave_one_out``, ``raw`` (the score itself), or ``group_norm`` (over the group's standard deviation; where all
            scores of a group are equal its slope is a million).
        score: ``sum``, or ``mean``: ``beta mean_t logp_new``, without the old policy, as the released code has it.

    Whole groups per optimiser step.

    Source: PACS (arXiv 2509.02522).
    """
    anchor = "old" if score == "sum" else ""
    return Objective(policy=ScoreLoss(phi=BalancedBce(psi=psi), scale=beta, score=score, anchor=anchor))


@method("Rewards as Labels, 2026, arXiv 2602.05630")
def real(tau: float = 0.5, form: str = "sum") -> Objective:
    """REAL, rewards as labels (2026): ``log(1 + sum_+ e^(-s/tau)) + log(1 + sum_- e^(s/tau))`` per group, mean over groups, by
    two passes.

    ``s_i = mean_t (logp_new - logp_old)``. Groups of one class add nothing and stay in the divisor, as in both released codes.

    Args:
        tau: temperature.
        form: ``sum``; ``product``: ``log(1 + sum_+ e^(-s/tau) sum_- e^(s/tau))``; or ``bce``: the cross-entropy of ``s/tau``,
            averaged over the rollouts of mixed groups. The released code takes the group's best reward for the positive class
            there; here it is a reward of 1/2 and more in all forms.

    Source: REAL (arXiv 2602.05630).
    """
    if form not in ("sum", "product", "bce"):
        raise UnknownNameError("form", form, ("sum", "product", "bce"))
    if form == "bce":
        if not tau > 0:
            raise ConfigError(f"real(tau={tau}); use a positive temperature")
        bce = BalancedBce(psi="raw", balance=False, mixed=True)
        return Objective(policy=ScoreLoss(phi=bce, score="mean", scale=1 / tau))
    return Objective(policy=ScoreLoss(phi=GroupSoftmax(tau=tau, form=form), score="mean"))


@method("Contrastive Policy Gradient 2024", status="unsure")
def copg(beta: float = 0.1) -> Objective:
    """CoPG (2024): ``1/(k-1) sum_{i<j} ((R_i - R_j) - beta (s_i - s_j))^2`` per group, mean over groups, by two passes.

    ``s_i = sum_t (logp_new - logp_ref)``. Valid on rollouts of any policy; at the optimum ``beta (s_i - s_j) = R_i - R_j``, which
    is the policy that KL-regularised RL seeks. At the reference the gradient is RLOO's, times ``2 beta``.

    Args:
        beta: strength of the pull to the reference.

    Unsure: the paper's main settings; longer answers need a smaller beta.

    Source: CoPG (arXiv 2406.19185).
    """
    return Objective(policy=ScoreLoss(phi=RewardGaps(beta=beta), anchor="ref", streams=OFF_POLICY))


@method("Direct Advantage Policy Optimization 2024, arXiv 2412.18279", status="unsure")
def direct_advantage(beta: float = 0.01, segment: str = "") -> Objective:
    """Direct Advantage (2024): ``(A / beta - s)^2 / 2``, mean over rollouts or steps, with ``A_i = R_i - mu_q``, by two passes.

    ``s = sum_t (logp_new - logp_ref)`` over the tokens of the rollout or step. Siblings are the candidates of one state: the
    group is that of a state, the reward its Monte-Carlo value.

    Args:
        beta: at the optimum ``s = A / beta``; .01 and .02 in the paper.
        segment: token column of step numbers, ``call`` for turns; then put a credit term before it that gives each step its own
            advantage. The whole rollout when empty.

    Left out: the critic's training. Unsure: whether the paper's advantage is this one or a GAE of the critic.

    Source: Direct Advantage Policy Optimization (arXiv 2412.18279), in part.
    """
    return Objective(
        scalarise=Scalarise(streams=OFF_POLICY),
        credit=(Center("group"),),
        policy=ScoreLoss(phi=ScoreSquare(beta=beta), anchor="ref", segment=segment, streams=OFF_POLICY),
        brings=(segment,) if segment else (),
    )


@method("Accelerating RL for LLM Reasoning with Optimal Advantage Regression, 2025; TRL")
def a2po(beta: float = 1e-3, column: str = "optimal_value") -> Objective:
    """A*-PO (2025): ``(beta s - (R - V*))^2``, mean over rollouts, by two passes.

    ``s = sum_t (logp_new - logp_ref)``; ``V* = beta_1 log mean exp(R / beta_1)`` over some answers of the reference to the prompt
    (beta_1 .5, 8 answers). One answer per prompt is enough.

    Args:
        beta: strength of the pull to the reference, beta_2.
        column: of the rollouts, with ``V*``; whoever samples from the reference brings it.

    Source: A*-PO (arXiv 2505.20686), in part.
    """
    phi = ScoreSquare(beta=beta)
    return Objective(credit=(Against(column),), policy=ScoreLoss(phi=phi, coef=2 * phi.beta**2, anchor="ref", streams=OFF_POLICY))
