"""Methods that weigh prompts or rollouts: difficulty, class, bonuses, resampling, filters."""

from __future__ import annotations

from dataclasses import replace

from assay.core.errors import ConfigError
from assay.objective.credit.base import CreditTerm
from assay.objective.credit.baseline import Center
from assay.objective.credit.filters import DropZeroVariance, PositivesOnly
from assay.objective.credit.normalise import Scale
from assay.objective.credit.pass_at_k import PassAtKBonus
from assay.objective.credit.repetition import LoopPenalty
from assay.objective.credit.resample import BestAnd, Deduplicate, Resample
from assay.objective.credit.shape import PairwiseWin, ScaleByClass
from assay.objective.credit.transform import ConfidenceBonus, ScaleByPrompt, ScaleBySample
from assay.objective.loss.aggregate import Constant, SeqMean, Token
from assay.objective.loss.policy import PolicyGradient
from assay.objective.loss.ratio import Ratio
from assay.objective.loss.trust import MinClip
from assay.objective.methods.credit import ppo
from assay.objective.methods.registry import method
from assay.objective.methods.shared import GROUP_NORM, kl_term
from assay.objective.objective import Objective

__all__ = [
    "campo",
    "expert_iteration",
    "grpo_s",
    "gui_g1",
    "pairwise_rl",
    "pf_grpo",
    "pf_ppo",
    "progrpo",
    "srpo",
    "univg_r1",
    "w_grpo",
]

_HIGHER = MinClip(low=0.2, high=0.28)


@method("GUI-G1, 2025", status="unsure", example={"length": 128})
def gui_g1(length: int | None = None, column: str = "difficulty", clip: float = 0.2) -> Objective:
    """GUI-G1 (2025): Dr.GRPO times a weight per prompt: ``-1/(D * length) sum_i w_q sum_t min(...)``, ``A_i = R_i - mu_q``.

    Args:
        length: the generation budget in tokens (128 in the paper); an objective without it does not compile.
        column: column of the rollouts with the prompt's weight, larger for smaller targets.
        clip: distance of the bounds from 1.

    Unsure: the closed form of the weight from the target's relative area; the released code reads a column too. Left out: the
    reward ``hit + 0.25 IoU + 0.125 box`` (`Scalarise.weights`), and dropping prompts with equal outcomes beforehand.

    Source: GUI-G1 (arXiv 2505.15810), in part.
    """
    credit = (Center("group"), ScaleByPrompt(rule="column", column=column))
    return Objective(credit=credit, policy=PolicyGradient(trust=MinClip(low=clip, high=clip)), aggregate=Constant(length=length))


@method("UniVG-R1, 2025", status="unsure")
def univg_r1(rule: str = "exp", gamma: float = 1.0, component: str = "", kl: float = 0.04, clip: float = 0.2) -> Objective:
    """UniVG-R1 (2025): GRPO times ``f(m)`` per prompt, m the group's mean IoU: ``exp(1 - m)``, ``(1.05 - m)^gamma``, or
    ``max(-log(0.02 + m), 0)``.

    Args:
        rule: ``exp`` (the released run), ``power`` or ``log``.
        gamma: exponent of ``power``.
        component: reward component with the IoU; the task's metric when empty.
        kl: coefficient of k3, which is not weighted; 0 leaves it out. Unsure: its published value.
        clip: distance of the bounds from 1.

    The group's standard deviation weighs prompts too; the factor comes on top.

    Source: UniVG-R1 (arXiv 2505.14231), in part.
    """
    return Objective(
        credit=(*GROUP_NORM, ScaleByPrompt(rule=rule, gamma=gamma, component=component)),
        policy=PolicyGradient(trust=MinClip(low=clip, high=clip)),
        aggregate=SeqMean(),
        terms=kl_term("k3", kl),
    )


@method("Inverse RL with Dynamic Reward Scaling, 2026", status="unsure")
def grpo_s(rule: str = "sigmoid", high: float = 10.0, kl: float = 0.001, clip: float = 0.2) -> Objective:
    """GRPO-S (DR-IRL 2026): GRPO times ``alpha_i = alpha_D alpha_M`` per rollout, ``alpha = sigmoid(x_i) / sigmoid(mean x)``.

    Args:
        rule: ``sigmoid``: the columns ``hardness`` and ``responsiveness`` hold x; ``value``: they hold the factors.
        high: largest factor.
        kl: coefficient of k3; 0 leaves it out.
        clip: distance of the bounds from 1.

    Unsure: thresholds of the paper's mask, ``kl``, bounds of alpha. Left out: the learned reward models of each category.
    """
    return Objective(
        credit=(*GROUP_NORM, ScaleBySample(rule=rule, high=high)),
        policy=PolicyGradient(trust=MinClip(low=clip, high=clip)),
        aggregate=SeqMean(),
        terms=kl_term("k3", kl),
    )


@method("Generative Reasoning Recommendation via LLMs, 2025")
def srpo(k: int = 4, kl: float = 0.001, hit: float = 1.0, filter_groups: bool = True) -> Objective:
    """SRPO (GREAM 2025): ``A_i = (R_i - mu_q) / (sd_q + eps) + B_i``, ``B`` the analytic pass@k advantage of exact hits.

    PPO clip 0.2 with dual clip 10, token mean, k3 divergence. The reward grades how much of the code matches; ``B`` sums to 0.

    Args:
        k: draws of which one must hit.
        kl: coefficient of k3; 0 leaves it out.
        hit: task metric of an exact hit.
        filter_groups: drop groups whose metric does not vary; refilling is the sampler's.

    Source: GREAM (arXiv 2510.20815), in part.
    """
    filters = (DropZeroVariance(),) if filter_groups else ()
    return Objective(
        credit=(*filters, *GROUP_NORM, PassAtKBonus(k=k, hit=hit)),
        policy=PolicyGradient(trust=MinClip(dual=10.0)),
        aggregate=Token(),
        terms=kl_term("k3", kl),
    )


@method("ProGRPO: Back to Basics, 2026", status="unsure")
def progrpo(coef: float = 1.0, fraction: float = 0.2) -> Objective:
    """ProGRPO with ARM (2026): ``A_i = (R_i - mu_q) / sd_q + coef (c(q) - c(o_i))`` in groups with a success; clip 0.2 / 0.28.

    ``c`` is ``exp`` of the mean log-probability over the least likely tokens; token mean.

    Args:
        coef: weight of the confidence. Unsure: not printed where it was read.
        fraction: share of the tokens that is meant.

    The prompt's confidence comes with the rollouts (``prompt_confidence``). Unsure: whether groups without a failure skip it too.

    Source: ProGRPO (arXiv 2602.05281).
    """
    credit = (*GROUP_NORM, ConfidenceBonus(coef=coef, fraction=fraction))
    return Objective(credit=credit, policy=PolicyGradient(trust=_HIGHER), aggregate=Token())


@method("Beyond Variance (W-GRPO), 2026", status="unsure")
def w_grpo(penalty: float = 1.0, scale: str = "group", clip: float = 0.2) -> Objective:
    """W-GRPO (2026): correct rollouts are worth 1, wrong ones ``-penalty``; ``A_i = (R_i - mu_q) / sd``; PPO clip, token mean.

    Args:
        penalty: what a wrong rollout costs.
        scale: ``group``, ``batch`` or ``none``. A group's standard deviation cancels ``penalty`` exactly, so with ``group`` it
            must be 1.
        clip: distance of the bounds from 1.

    The pair of a hard and an easy prompt that makes rare outcomes weigh is the sampler's. Unsure: penalty, scope, aggregation.

    Source: W-GRPO (arXiv 2602.03452), in part.
    """
    if scale not in ("group", "batch", "none"):
        raise ConfigError(f"w_grpo(scale={scale!r}): use 'group', 'batch' or 'none'")
    if scale == "group" and penalty != 1.0:
        raise ConfigError(
            f"w_grpo(penalty={penalty}, scale='group'): a group's standard deviation cancels the penalty exactly; use "
            "scale='batch' or scale='none', or leave the penalty at 1"
        )
    divide = () if scale == "none" else (Scale(scale, ddof=0),)
    credit = (ScaleByClass(wrong=-penalty), Center("group"), *divide)
    return Objective(credit=credit, policy=PolicyGradient(trust=MinClip(low=clip, high=clip)), aggregate=Token())


@method("Policy Filtration in RLHF, 2024", status="unsure")
def pf_grpo(rule: str = "best_random", power: float = 2.0, draw: bool = False, seed: int = 0) -> Objective:
    """Policy filtration (PF-PPO 2024) on GRPO: rollouts weighed by score, then ``(R_i - mu_q) / sd_q``; PPO clip, token mean.

    Args:
        rule: ``pow`` (``|R|^power``), ``max_min``, ``max_random`` resample; ``best_random`` and ``best_worst`` keep two.
        power: of ``pow``.
        draw: whole copies, drawn; False: the weights. Of the resampling rules only.
        seed: of all draws.

    Unsure: the size of the groups. `pf_ppo` is the paper's own, with a critic.

    Source: PF-PPO (arXiv 2409.06957).
    """
    return Objective(credit=(_filtration(rule, power, draw, seed), *GROUP_NORM), policy=PolicyGradient(), aggregate=Token())


@method("Policy Filtration in RLHF, 2024; verl", status="unsure")
def pf_ppo(
    rule: str = "pow",
    power: float = 2.0,
    draw: bool = False,
    seed: int = 0,
    kl: float = 0.05,
    gamma: float = 1.0,
    lam: float = 0.95,
) -> Objective:
    """PF-PPO (2024): PPO on rollouts resampled by score, ``|R|^power`` above all; advantages and critic see the copies.

    Args:
        rule: as in `pf_grpo`; ``pow`` is verl's default.
        power: of ``pow``.
        draw: whole copies, drawn; False: the weights.
        seed: of all draws.
        kl, gamma, lam: of `ppo`.

    Unsure: the size of the groups.

    Source: PF-PPO (arXiv 2409.06957).
    """
    plain = ppo(kl=kl, gamma=gamma, lam=lam)
    return replace(plain, credit=(_filtration(rule, power, draw, seed), *plain.credit))


def _filtration(rule: str, power: float, draw: bool, seed: int) -> CreditTerm:
    kept = {"best_random": "random", "best_worst": "worst"}
    return BestAnd(other=kept[rule], seed=seed) if rule in kept else Resample(rule=rule, power=power, draw=draw, seed=seed)


@method("MiroMind-M1, 2025")
def campo(penalty: float = 0.1, graded: bool = False, filter_groups: bool = True) -> Objective:
    """CAMPO (MiroMind-M1 2025): DAPO without divergence; a cut-off answer that ends in a loop loses ``penalty``; dual clip 10.

    ``A_i = (R'_i - mu_q) / sd_q``, ``R' = R - penalty`` where the end repeats itself; graded: ``R - penalty (T - start) / T``.

    Args:
        penalty: what is subtracted before the group's statistics, and behind the filter.
        graded: penalty times the looped share instead, the paper's idea that its code does not use.
        filter_groups: drop groups whose metric does not vary.

    Its stages of longer and longer contexts are a schedule of the stage: ``Reinforce.schedules``, key ``max_new_tokens``.

    Source: MiroMind-M1 CAMPO (arXiv 2507.14683), in part.
    """
    filters = (DropZeroVariance(),) if filter_groups else ()
    return Objective(
        credit=(*filters, LoopPenalty(penalty=penalty, graded=graded), *GROUP_NORM),
        policy=PolicyGradient(trust=MinClip(low=0.2, high=0.28, dual=10.0)),
        aggregate=Token(),
    )


@method("Expert iteration, as in Echo Chamber 2025")
def expert_iteration(threshold: float = 0.5, deduplicate: bool = True) -> Objective:
    """Expert iteration (Echo Chamber 2025): ``-1/D sum_(i correct) R_i sum_t logp_it``, D tokens of correct rollouts.

    Args:
        threshold: task metric from which a rollout is correct.
        deduplicate: equal answers to a prompt count as one.

    With rewards of 0 and 1 supervised learning on what the verifier accepted. Rounds, and whether each begins at the first
    weights, are a schedule of runs.

    Source: Echo Chamber (arXiv 2504.07912), in part.
    """
    once = (Deduplicate(),) if deduplicate else ()
    policy = PolicyGradient(ratio=Ratio("none"), trust=None)
    return Objective(credit=(PositivesOnly(threshold=threshold), *once), policy=policy, aggregate=Token())


@method("Pairwise-RL, 2025", status="unsure")
def pairwise_rl(centre: float = 0.5, both: bool = True, clip: float = 0.2) -> Objective:
    """Pairwise-RL (2025): the reward is the chance to beat a fixed answer, ``(P(o > y) + 1 - P(y > o)) / 2 - centre``.

    Args:
        centre: subtracted from the chance.
        both: the judge was asked in both orders (columns ``win`` and ``loss``); False: only ``win``.
        clip: distance of PPO's bounds from 1.

    Unsure: the paper's calibration, and its pairwise value and advantage; a group's mean stands in for its critic.

    Source: Pairwise-RL (arXiv 2504.04950), in part.
    """
    credit = (PairwiseWin(centre=centre, loss="loss" if both else None), Center("group"))
    return Objective(credit=credit, policy=PolicyGradient(trust=MinClip(low=clip, high=clip)), aggregate=Token())
