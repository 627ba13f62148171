"""Methods that differ in the way from rewards to advantages: baselines, normalisers, returns, critics."""

from __future__ import annotations

from assay.core.errors import UnknownNameError
from assay.objective.credit.base import CreditTerm
from assay.objective.credit.baseline import Against, Center, OptimalToken, RunningBaseline, TopGap
from assay.objective.credit.components import ComponentNorm
from assay.objective.credit.divergence import KlInReward
from assay.objective.credit.normalise import Scale, ScaleByMean, ScaleBySignal, Whiten
from assay.objective.credit.pass_at_k import PassAtK
from assay.objective.credit.returns import Discount, Gae, ProcessNorm, TokenReward, Turns
from assay.objective.credit.reward import Scalarise
from assay.objective.credit.steps import StateGroups
from assay.objective.loss.aggregate import SeqMean, SeqSum, Token
from assay.objective.loss.policy import PolicyGradient
from assay.objective.loss.ratio import Ratio
from assay.objective.loss.td import TdLoss
from assay.objective.loss.td_targets import ColumnTarget
from assay.objective.loss.trust import MinClip
from assay.objective.methods.registry import method
from assay.objective.methods.shared import GROUP_NORM
from assay.objective.objective import Objective

__all__ = [
    "agentic_reinforce",
    "gdpo",
    "gigpo",
    "gpg_nonzero",
    "grpo_leave_one_out",
    "grpo_passk",
    "grpo_process",
    "hierarchical_grpo",
    "maxrl",
    "opo",
    "otb",
    "pass_at_k_training",
    "ppo",
    "prpo",
    "rae",
    "reinforce_discounted",
    "remax",
]

_FREE = PolicyGradient(ratio=Ratio("none"), trust=None)


@method("Williams 1992", example={"gamma": 0.99})
def reinforce_discounted(gamma: float, kl: float = 0.0, baseline: str = "none") -> Objective:
    """REINFORCE with discount (Williams 1992): ``A_it = sum_(t' >= t) gamma^(t' - t) rew_t' - b``; ``-1/D sum_it A_it logp_it``.

    Args:
        gamma: worth of the next token.
        kl: coefficient of k1 per token in the reward; 0 leaves it out.
        baseline: ``none``, or one of `Center`'s without settings: ``group``, ``leave_one_out``, ``batch``.
    """
    centre = () if baseline == "none" else (Center(baseline),)
    return Objective(credit=(*kl_shape(kl), Discount(gamma), *centre), policy=_FREE, aggregate=SeqSum())


@method("Li et al. 2023, arXiv 2310.10505")
def remax(column: str = "greedy", kl: float = 0.0) -> Objective:
    """ReMax (2023): ``A_i = R_i - R_greedy``, the reward of the prompt's greedy answer; ``-1/D sum_i A_i sum_t logp_it``.

    Args:
        column: column of the rollouts with the greedy answer's reward; the sampler brings it.
        kl: coefficient of the k1 penalty per token in the reward, which later tokens alone are credited with; 0 leaves it out.

    Source: ReMax (arXiv 2310.10505).
    """
    shape: tuple[CreditTerm, ...] = (*kl_shape(kl), Discount(1.0)) if kl else ()
    return Objective(credit=(*shape, Against(column)), policy=_FREE, aggregate=SeqSum())


@method("On-Policy RL with Optimal Reward Baseline, 2025, arXiv 2505.23585")
def opo() -> Objective:
    """OPO (2025): ``A_i = R_i - sum_j T_j R_j / sum_j T_j``, the mean weighted by length; ``-1/D sum_i A_i sum_t logp_it``.

    Exactly on-policy: no ratio, no divergence, no entropy, one optimiser step per rollout batch.

    Source: OPO (arXiv 2505.23585).
    """
    return Objective(credit=(Center("length_weighted"),), policy=_FREE, aggregate=SeqSum())


@method("Optimal Token Baseline, 2026; verl", status="unsure")
def otb(tail: bool = True, cap: float | None = None, clip: float = 0.2) -> Objective:
    """Optimal token baseline (2026): ``A_it = G_it - sum_j W_jt G_jt / sum_j W_jt``, ``W`` the energy of the score up to token t.

    Args:
        tail: tokens behind the end of all other rollouts keep their return.
        cap: weigh the energy with ``min(pi_old / pi_engine, cap)^2``; None: not.
        clip: distance of PPO's bounds from 1.

    ``t`` counts action tokens (verl's ``tir_optimal_token_baseline``). A lone rollout gets 0, in verl its reward. Unsure: the
    loss beside it, PPO's with a token mean here.
    """
    policy = PolicyGradient(trust=MinClip(low=clip, high=clip))
    return Objective(credit=(OptimalToken(tail=tail, cap=cap),), policy=policy, aggregate=Token())


@method("Maximum Likelihood Reinforcement Learning, 2026, arXiv 2602.02710", status="unsure")
def maxrl(eps: float = 1e-6, clip: float = 0.2) -> Objective:
    """MaxRL (2026): ``A_i = (R_i - mu_q) / (mu_q + eps)``, PPO clip, token mean: hard prompts weigh about ``1 / pass rate``.

    Args:
        eps: added to the mean.
        clip: distance of the bounds from 1.

    A group that solves nothing gets 0, whatever its rewards. Rewards are 0 or more. Unsure: clip and aggregation beside it.

    Source: MaxRL (arXiv 2602.02710).
    """
    policy = PolicyGradient(trust=MinClip(low=clip, high=clip))
    return Objective(credit=(Center("group"), ScaleByMean(eps=eps)), policy=policy, aggregate=Token())


@method("GDPO, 2026, arXiv 2601.05242")
def gdpo(weights: tuple[tuple[str, float], ...] = (), unit: str = "rollout", clip: float = 0.2) -> Objective:
    """GDPO (2026): ``sum_c w_c (r_ic - mu_qc) / (sd_qc + eps)`` over the reward components, whitened over the batch; PPO clip.

    Args:
        weights: pairs of component and weight; all components with weight 1 when empty.
        unit: whiten over rollouts (``rollout``, the paper's, TRL's and NeMo-RL's) or over tokens (``token``, verl's).
        clip: distance of the bounds from 1.

    The components may have any names; the reward that is reported is their (weighted) sum.

    Source: GDPO (arXiv 2601.05242).
    """
    credit = (ComponentNorm(weights=weights, scale=Scale("group", eps=1e-4)), Whiten(unit, eps=1e-4, ddof=1))
    return Objective(
        scalarise=Scalarise(weights=weights, every=not weights),
        credit=credit,
        policy=PolicyGradient(trust=MinClip(low=clip, high=clip)),
        aggregate=Token(),
    )


@method("NeMo-RL 2026, grpo with leave_one_out")
def grpo_leave_one_out(eps: float = 1e-6, clip: float = 0.2) -> Objective:
    """GRPO with others' statistics (NeMo-RL's default): ``A_i = (R_i - mean of the others) / (sd of the others + eps)``.

    Args:
        eps: added to the standard deviation.
        clip: distance of the bounds from 1.

    A rollout whose others do not vary is not divided.
    """
    credit = (Center("leave_one_out"), Scale("leave_one_out", eps=eps))
    return Objective(credit=credit, policy=PolicyGradient(trust=MinClip(low=clip, high=clip)), aggregate=Token())


@method("arXiv 2503.19595, 2025; verl")
def grpo_passk(scale: bool = True, clip: float = 0.2) -> Objective:
    """Pass@k GRPO (2025): the best rollout gets ``(R_1st - R_2nd) / (sd_q + eps)``, all others 0; PPO clip, token mean.

    Args:
        scale: divide by the group's standard deviation.
        clip: distance of the bounds from 1.

    Source: pass@k policy gradient (arXiv 2503.19595), in part.
    """
    divide = (Scale("group"),) if scale else ()
    return Objective(credit=(TopGap(), *divide), policy=PolicyGradient(trust=MinClip(low=clip, high=clip)), aggregate=Token())


@method("Pass@k Training, 2025, arXiv 2508.10751")
def pass_at_k_training(k: int = 2, clip: float = 0.2) -> Objective:
    """Pass@k training (2025): the advantage of a rollout in closed form over all subsets of ``k`` of its group; PPO clip.

    ``rho = 1 - C(n - c, k) / C(n, k)``; correct ``(1 - rho) / sqrt(rho (1 - rho))``, wrong so that the group sums to 0.

    Args:
        k: draws of which one must solve the task.
        clip: distance of the bounds from 1.

    Source: Pass@k Training (arXiv 2508.10751), in part.
    """
    return Objective(credit=(PassAtK(k=k),), policy=PolicyGradient(trust=MinClip(low=clip, high=clip)), aggregate=Token())


@method("SPIRAL, 2025, arXiv 2506.24119; prime-rl", status="unsure")
def rae(by: str = "role", decay: float = 0.95, clip: float = 0.2) -> Objective:
    """Role-conditioned advantage (SPIRAL 2025): ``A_i = R_i - b_k``, ``b_k`` a running mean of the rewards of role or task ``k``.

    Args:
        by: column of the rollouts with the role (and task).
        decay: weight of the past, per rollout.
        clip: distance of PPO's bounds from 1.

    A batch moves ``b`` once, after it was judged; published code moves it rollout by rollout, in the order of the batch. Unsure:
    the loss beside it.

    Source: SPIRAL (arXiv 2506.24119), in part.
    """
    policy = PolicyGradient(trust=MinClip(low=clip, high=clip))
    return Objective(credit=(RunningBaseline(by, decay),), policy=policy, aggregate=Token())


@method("prime-rl 2026, hierarchical_grpo")
def hierarchical_grpo(by: str = "peers", clip: float = 0.2) -> Objective:
    """Hierarchical GRPO (prime-rl 2026): ``A_i = R_i - mean of its peers``; a lone rollout gets 0; PPO clip, token mean.

    Args:
        by: column of the rollouts with their peers inside the group: rollouts at one proposed problem, proposals from one task.
        clip: distance of the bounds from 1.
    """
    policy = PolicyGradient(trust=MinClip(low=clip, high=clip))
    return Objective(credit=(Center("group", by=by),), policy=policy, aggregate=Token())


@method("Group-in-Group Policy Optimization, 2025, arXiv 2505.10978")
def gigpo(
    weight: float = 1.0, gamma: float = 0.95, scale: bool = True, state: str = "state", by: str = "call", clip: float = 0.2
) -> Objective:
    """GiGPO (2025): ``A_it = (R_i - mu_q) / sd_q + weight (G_ik - mean) / sd`` over the group's steps from the same state.

    Args:
        weight: of the steps against the episode.
        gamma: worth of the next step.
        scale: divide both by their standard deviations; False: only centre.
        state: token column that names the state in which a step begins.
        by: token column that names the steps.
        clip: distance of the bounds from 1.

    Source: GiGPO (arXiv 2505.10978).
    """
    episode = GROUP_NORM if scale else GROUP_NORM[:1]
    credit = (*episode, StateGroups(state=state, by=by, gamma=gamma, weight=weight, scale=scale))
    policy = PolicyGradient(trust=MinClip(low=clip, high=clip))
    return Objective(credit=credit, policy=policy, aggregate=SeqMean(), brings=(state,))


@method("ROLL 2026, agentic_reinforce")
def agentic_reinforce(gamma: float = 1.0, by: str = "call") -> Objective:
    """Turn credit (ROLL): all tokens of a turn get ``G_k = r_k + gamma G_(k+1)``, whitened over tokens; PPO clip 0.2, token mean.

    Args:
        gamma: worth of the next turn.
        by: token column that names the turns.

    Source: Practitioner's guide to multi-turn RL (arXiv 2510.01132), in part.
    """
    return Objective(credit=(Turns(by, gamma), Whiten("token")), policy=PolicyGradient(), aggregate=Token())


@method("DeepSeekMath 2024, process supervision")
def grpo_process(column: str = "process_reward", by: str = "segment", eps: float = 1e-6, clip: float = 0.2) -> Objective:
    """GRPO with process rewards (DeepSeekMath 2024): ``A_it = sum_(k >= step of t) (r_ik - mean_q) / (sd_q + eps)``.

    Args:
        column: token column with each step's reward, at any of its tokens.
        by: token column that names the steps.
        eps: added to the standard deviation.
        clip: distance of the bounds from 1.

    The outcome is not paid besides. Left out: the divergence term of `grpo`.

    Source: GRPO (arXiv 2402.03300).
    """
    credit = (TokenReward(column, alone=True), ProcessNorm(by, eps=eps))
    policy = PolicyGradient(trust=MinClip(low=clip, high=clip))
    return Objective(credit=credit, policy=policy, aggregate=SeqMean(), brings=(column, by))


@method("rLLM 2026, prpo")
def prpo(eps: float = 1e-6) -> Objective:
    """PRPO (rLLM): ``A_i = (R_i - mean_B) / (sd_B + eps)`` over the rollouts of the batch; PPO clip 0.2, token mean.

    Args:
        eps: added to the standard deviation.
    """
    return Objective(credit=(Whiten("rollout", eps=eps),), policy=PolicyGradient(), aggregate=Token())


@method("verl 2026, gpg")
def gpg_nonzero() -> Objective:
    """GPG as in verl: ``alpha (R_i - mu_q)``, ``alpha = rollouts / rollouts whose reward is not 0``; ``-1/D sum A_i logp_it``.

    Source: GPG (arXiv 2504.02546).
    """
    return Objective(credit=(Center("group"), ScaleBySignal("reward")), policy=_FREE, aggregate=Token())


@method("Schulman et al. 2017")
def ppo(
    kl: float = 0.05,
    gamma: float = 1.0,
    lam: float = 0.95,
    clip: float = 0.2,
    dual: float | None = None,
    value: float = 0.1,
    value_clip: float | None = 0.2,
    whiten: str = "token",
) -> Objective:
    """PPO (2017): k1 in the reward, generalised advantage estimation, whitened; min-clip; a critic on ``A + V``.

    ``-min(r A, clip(r) A)`` as a token mean, plus ``value / 2 max((V - ret)^2, (clip(V, V_old +- value_clip) - ret)^2)``.

    Args:
        kl: coefficient of k1 to the reference, paid at each token; 0 leaves it out.
        gamma, lam: of the estimation.
        clip: distance of the bounds from 1.
        dual: cap on the ratio where ``A < 0`` (verl: 3); None for none.
        value: weight of the critic.
        value_clip: largest change of a value that still lowers its loss; None for any.
        whiten: ``token``, ``rollout`` or ``none``.

    Source: PPO (arXiv 1707.06347).
    """
    trust = MinClip(low=clip, high=clip) if dual is None else MinClip(low=clip, high=clip, dual=dual)
    critic = TdLoss(target=ColumnTarget(column="returns"), clip=value_clip, coef=value / 2)
    return Objective(
        credit=gae_chain(kl, gamma, lam, whiten),
        policy=PolicyGradient(trust=trust),
        aggregate=Token(),
        terms=(critic,),
    )


def gae_chain(kl: float, gamma: float, lam: float, whiten: str) -> tuple[CreditTerm, ...]:
    """PPO's way from rewards to advantages."""
    if whiten not in ("token", "rollout", "none"):
        raise UnknownNameError("whitening unit", whiten, ("token", "rollout", "none"))
    return (*kl_shape(kl), Gae(gamma=gamma, lam=lam), *(() if whiten == "none" else (Whiten(whiten),)))


def kl_shape(coef: float) -> tuple[CreditTerm, ...]:
    """k1 in the reward, or nothing when its coefficient is 0."""
    return (KlInReward(coef=coef),) if coef else ()
