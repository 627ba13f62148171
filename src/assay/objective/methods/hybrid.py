"""Methods that learn from an expert, a teacher, offline data or a target distribution beside, or instead of, their own
rollouts.
"""

from __future__ import annotations

from assay.core.errors import ConfigError, UnknownNameError
from assay.objective.credit.base import CreditTerm
from assay.objective.credit.baseline import Against, Center
from assay.objective.credit.divergence import KlInReward
from assay.objective.credit.expert import AlignExpert, SmoothExpert
from assay.objective.credit.filters import DropZeroVariance
from assay.objective.credit.resample import Balance
from assay.objective.credit.reward import Scalarise
from assay.objective.credit.tilt import Tilt
from assay.objective.credit.transform import PositivePart
from assay.objective.loss.aggregate import Constant, SeqMean, SeqSum, Token
from assay.objective.loss.base import LossTerm
from assay.objective.loss.entropy import Entropy
from assay.objective.loss.guided_shape import GuidedShape
from assay.objective.loss.hybrid import Calibrated, Confidence, OutcomeMean, PrefixScore
from assay.objective.loss.kl import Kl
from assay.objective.loss.likelihood import Nll
from assay.objective.loss.policy import PolicyGradient
from assay.objective.loss.ratio import Ratio
from assay.objective.loss.ratio_kinds import Mixture
from assay.objective.loss.schedule import Annealed, Linear
from assay.objective.loss.select import Correct, Incorrect, PassRate, Selector
from assay.objective.loss.token_weights import Focal
from assay.objective.loss.trust import MinClip, WeightClip
from assay.objective.loss.weights import TokenWeight
from assay.objective.loss.wrap import Where
from assay.objective.methods.registry import method
from assay.objective.methods.shared import GROUP_NORM, kl_term
from assay.objective.methods.trust import prime_rl
from assay.objective.objective import Objective

__all__ = [
    "a_lol",
    "calib_rl",
    "echo",
    "gdc",
    "guide_grpo",
    "kdrl",
    "kl_rl",
    "oreal",
    "r_gold",
    "rest_grpo",
    "rl_plus",
    "visurf",
    "weighted_bc",
]

_OFFLINE = ("offline",)
_MASKS: dict[str, tuple[Selector, ...]] = {"none": (), "incorrect": (Incorrect(),), "unsolved": (PassRate(high=0.0),)}


def _plain(streams: tuple[str, ...] = ("on_policy", "replay"), coef: float = 1.0) -> PolicyGradient:
    """``-A logp``."""
    return PolicyGradient(ratio=Ratio("none"), trust=None, streams=streams, coef=coef)


# ---- teacher ---------------------------------------------------------------------------------------------------------


@method("KDRL 2025", status="unsure")
def kdrl(kl: float = 5e-3, step: float = 5e-5, floor: float = 1e-3, mask: str = "none", estimator: str = "k2") -> Objective:
    """KDRL (2025): ``1/D sum_it [-A_i logp_it + beta_n k2_it]``, k2 to the *teacher*, D tokens, GRPO advantage.

    ``beta_n = max(kl - step n, floor)`` at the n-th rollout batch.

    Args:
        kl: first coefficient; 0 leaves the teacher out and is GRPO without ratio.
        step: what each rollout batch takes off it; 0 for none.
        floor: where it stays.
        mask: teach all rollouts (``none``), the wrong ones (``incorrect``), or those of groups without a success (``unsolved``);
            the divergence is then a mean over the tokens that are taught.
        estimator: of `Kl`. Several updates per rollout batch need ``rk3``.

    Unsure: the formulas come from secondary sources; whether mask and annealing were ever combined. Best published setting: the
    defaults.

    Source: KDRL (arXiv 2506.02208).
    """
    if mask not in _MASKS:
        raise UnknownNameError("mask of KDRL", mask, _MASKS)
    terms: tuple[LossTerm, ...] = ()
    if kl:
        term: LossTerm = Kl(estimator, anchor="teacher", coef=kl, aggregate=Token())
        term = Annealed(term, Linear(step=step, floor=floor)) if step else term
        terms = (Where(term, _MASKS[mask], per="selected") if _MASKS[mask] else term,)
    return Objective(credit=GROUP_NORM, policy=_plain(), aggregate=Token(), terms=terms)


# ---- expert ----------------------------------------------------------------------------------------------------------


@method("RL-PLUS 2025", example={"length": 64}, status="unsure")
def rl_plus(
    length: int | None = None, gamma: float = 0.5, entropy: float = 0.001, uniform: float = 1.0, own: int = 8
) -> Objective:
    """RL-PLUS (2025): ``-1/(D length) sum A r`` on own rows, ``-1/(D length) sum A (1 - p)^gamma 2 pi / (pi_old + pi_hat)`` on
    expert's.

    ``A = R - mu_q`` with own rollouts alone in ``mu_q``; no clip; ``pi_hat = (pi_old + uniform) / 2``, ``p`` the probability now,
    detached: what the policy finds unlikely in the expert's answer weighs most.

    Args:
        length: the generation budget in tokens.
        gamma: exponent of that weight.
        entropy: coefficient of the entropy bonus; 0 leaves it out.
        uniform: probability that an uninformed writer gives every token: 1 in the released code.
        own: own rollouts per prompt, beside one expert rollout: D counts both.

    Unsure: ``uniform`` in the paper's text, perhaps one over the vocabulary's size.

    Source: RL-PLUS (arXiv 2508.00222).
    """
    if own < 1:
        raise ConfigError(f"rl_plus(own={own}): a prompt has at least one own rollout")
    policy = PolicyGradient(trust=None, coef=own / (own + 1))
    expert = PolicyGradient(
        ratio=Mixture(uniform=uniform),
        trust=None,
        weights=(Focal(gamma),),
        streams=("expert",),
        coef=1 / (own + 1),
        label="expert",
    )
    bonus: tuple[LossTerm, ...] = (Entropy(coef=entropy),) if entropy else ()
    return Objective(credit=(Center("group"),), policy=policy, aggregate=Constant(length=length), terms=(expert, *bonus))


@method("Guide-GRPO, Adaptive Guidance Accelerates RL of Reasoning Models, 2025")
def guide_grpo(quantile: float = 0.9, clip: float = 0.2) -> Objective:
    """Guide-GRPO (2025): GRPO, and on hinted rollouts ``-A rho / (rho + gamma)``, ``rho = pi(y|x)/pi_old(y|x,hint)``; token mean.

    Args:
        quantile: of the hinted ratios of the optimiser batch, which is ``gamma``.
        clip: distance of the ratio's bounds from 1, of rollouts without a hint.

    Hinted rollouts are those of ``assay.guide.GuideHint``; without any it is GRPO with the sampler as old policy, KL 0.

    Source: Guide-GRPO (arXiv 2506.13923).
    """
    policy = PolicyGradient(ratio=Ratio("none"), trust=None, weights=(GuidedShape(quantile=quantile, clip=clip),))
    return Objective(credit=GROUP_NORM, policy=policy, aggregate=Token())


@method("CalibRL, Controllable Exploration in Hybrid-Policy RLVR, 2026", status="unsure")
def calib_rl(coef: float = 0.1, slope: float = 0.5, clip: float = 0.2, dual: float = 3.0) -> Objective:
    """CalibRL (2026): GRPO without the deviation, ``+ coef |A| leaky_relu(-y (logp_new - logp_expert))``, y = +-1, token mean.

    ``y`` says whether the rollout is correct.

    Args:
        coef: weight of the term.
        slope: of the leaky side.
        clip: distance of the bounds from 1.
        dual: cap on the ratio where A < 0.

    The expert's rollout at the same prompt stands in the stream ``expert``; it enters neither statistics nor losses. Tokens are
    compared by place up to the end of the shorter answer; the released code goes on past the expert's end. Unsure: the alignment
    that the paper means.

    Source: CalibRL (arXiv 2602.20197).
    """
    return Objective(
        credit=(AlignExpert(), Center("group")),
        policy=PolicyGradient(trust=MinClip(low=clip, high=clip, dual=dual)),
        aggregate=Token(),
        terms=(Calibrated(coef=coef, slope=slope),),
    )


@method("ViSurf, Visual Supervised-and-Reinforcement Fine-Tuning, 2025", status="unsure")
def visurf(clip: float = 0.2, smooth: bool = True) -> Objective:
    """ViSurf (2025): GRPO over a prompt's rollouts and its given solution, one more rollout of the group, in one batch.

    ``-1/(G + 1) sum_i 1/T_i sum_t min(r_t A_i, clip(r_t) A_i)``, ``A_i = (R_i - mu_q) / sd_q`` over all G + 1; the
    solution's ``R`` is the mean of the others once one of them is as good.

    Args:
        clip: distance of the bounds from 1.
        smooth: once an own rollout is as good as the given solution, that one gets no advantage.

    The ratio of an expert row is against the policy's own old log-probabilities of it. Left out: rewards for formats that the
    solution cannot have, which are the verifier's. Unsure: the paper's third reward control was read in secondary sources only.

    Source: ViSurf (arXiv 2510.10606), in part.
    """
    streams = ("on_policy", "replay", "expert")
    return Objective(
        scalarise=Scalarise(streams=streams),
        credit=(*((SmoothExpert(),) if smooth else ()), *GROUP_NORM),
        policy=PolicyGradient(trust=MinClip(low=clip, high=clip), streams=streams),
        aggregate=SeqMean(),
    )


@method("prime-rl 2026, echo")
def echo(alpha: float = 0.1, low: float = 0.2, high: float = 0.2, kl: float = 1e-3) -> Objective:
    """prime-rl's ``echo`` (2026): `prime_rl`, ``- alpha/D' sum logp`` of what tools and environment answered, D' their tokens.

    Args:
        alpha: weight of that likelihood.
        low, high, kl: as in `prime_rl`.

    The answers stand as rows of their own in the stream ``expert``, with the loss mask on what was observed.
    """
    return prime_rl(low, high, kl) + Nll(coef=alpha, streams=("expert",), aggregate=Token(), label="echo")


# ---- correct and wrong rollouts ----------------------------------------------------------------------------------------


@method("OREAL, Exploring the Limit of Outcome Reward, 2025", status="unsure")
def oreal(kl: float = 0.01, negative: float = 0.5, scores: str | None = None, balance: bool = True) -> Objective:
    """OREAL (2025): ``-1/D+ sum_(i correct) A w+_t logp - negative/D- sum_(i wrong) A w-_t logp + kl k3``, leave-one-out A.

    D+ and D- are tokens of correct and of wrong rollouts. ``w+ = clip((p_t - 1/2) / (1/2), 0, 1)`` with ``p_t`` the token reward
    model's belief in success up to token t; ``w-`` the same of ``1 - p_t``. The model is a head that learns from outcomes beside.

    Args:
        kl: coefficient of k3 to the reference over all tokens; 0 leaves it out.
        negative: weight of the wrong rollouts' part.
        scores: name of the learner's head with the token scores (``ValueHead(name=...)``); None: all ``w`` are 1 and no model.
        balance: keep one correct and one wrong rollout per prompt, after the advantage saw all.

    Left out: steps at the start in which only the head learns (``LearnerSettings.policy_after``). Unsure: the paper's reshaping
    of negative rewards; this is the released code's.

    Source: OREAL (arXiv 2502.06781).
    """
    down: tuple[TokenWeight, ...] = ()
    up: tuple[TokenWeight, ...] = ()
    model: tuple[LossTerm, ...] = ()
    if scores is not None:
        up, down = (PrefixScore(column=f"{scores}_old"),), (PrefixScore(column=f"{scores}_old", wrong=True),)
        model = (OutcomeMean(head=scores),)
    wrong = PolicyGradient(ratio=Ratio("none"), trust=None, weights=down, coef=negative, aggregate=Token(), label="negative")
    right = Nll(by="advantage", weights=up, streams=wrong.streams, aggregate=Token(), label="positive")
    chosen: tuple[CreditTerm, ...] = (Balance(),) if balance else ()
    return Objective(
        credit=(Center("leave_one_out"), *chosen),
        policy=Where(wrong, (Incorrect(),), per="selected"),
        aggregate=Token(),
        terms=(Where(right, (Correct(),), per="selected"), *kl_term("k3", kl), *model),
    )


@method("ReST-RL 2025")
def rest_grpo(spread: float = 0.05, kl: float = 0.001, clip: float = 0.2) -> Objective:
    """ReST-GRPO (2025): `grpo` on a batch whose prompts with a standard deviation of rewards below ``spread`` are left out.

    Args:
        spread: least population standard deviation.
        kl: coefficient of k3 to the reference.
        clip: distance of the bounds from 1.

    The sampler's part: for prompts whose best rollout has a reward of 0.9 or more, that rollout is cut after each line and half
    as many sub-prompts as lines are drawn from the cuts, with weights ``0.95^i`` from the shortest on; the given part is context.

    Source: ReST-RL (arXiv 2508.19576), in part.
    """
    if not spread > 0:
        raise ConfigError(f"rest_grpo(spread={spread}): keep it positive, or use grpo()")
    return Objective(
        credit=(DropZeroVariance(tolerance=spread * (1 - 1e-9)), *GROUP_NORM),
        policy=PolicyGradient(trust=MinClip(low=clip, high=clip)),
        aggregate=SeqMean(),
        terms=kl_term("k3", kl),
    )


# ---- offline ---------------------------------------------------------------------------------------------------------


@method("Advantage-based Offline Policy Gradients, 2023")
def a_lol(variant: str = "sequence", eps: float = 0.9, beta: float = 0.1, advantage: bool = True) -> Objective:
    """A-LoL (2023): ``-1/D sum_i sg(clip(pi/pi_ref, 1 -+ eps)) max(0, R_i - V_ref(x_i)) logp(y_i|x_i)`` on stored answers.

    Rollouts with a negative advantage are left out, and out of D.

    Args:
        variant: ``sequence``: the ratio of whole answers. ``token``: each token's own (A-LoL seq.). ``reference_free``: 1.
            ``kl``: 1, and ``beta (logp - logp_ref)`` is added.
        eps: distance of the ratio's bounds from 1; only for the first two.
        beta: weight of the penalty; only for ``kl``.
        advantage: False: the reward itself in place of the advantage (R-LoL).

    ``value_ref``, the reference's expected reward at the prompt, is a column of the rollouts. Left out: sampling by advantage.

    Source: A-LoL, R-LoL (arXiv 2305.14718), in part.
    """
    ratios = {"sequence": Ratio("sequence_product", anchor="ref"), "token": Ratio("token", anchor="ref")}
    if variant not in (*ratios, "reference_free", "kl"):
        raise UnknownNameError("variant of A-LoL", variant, (*ratios, "reference_free", "kl"))
    policy = _plain(_OFFLINE)
    if variant in ratios:
        bounds = (max(1 - eps, 0.0), 1 + eps)
        policy = PolicyGradient(ratio=ratios[variant], trust=WeightClip(positive=bounds, negative=bounds), streams=_OFFLINE)
    return Objective(
        scalarise=Scalarise(streams=_OFFLINE),
        credit=(Against("value_ref"), PositivePart()) if advantage else (),
        policy=policy,
        aggregate=SeqSum(),
        terms=(Kl("k1", coef=beta, streams=_OFFLINE),) if variant == "kl" else (),
    )


@method("weighted behaviour cloning, as in A-LoL 2023")
def weighted_bc() -> Objective:
    """Weighted behaviour cloning: ``-1/D sum_i max(R_i, 0) logp(y_i|x_i)`` on stored answers, D rollouts.

    Source: A-LoL, R-LoL (arXiv 2305.14718), in part.
    """
    return Objective(scalarise=Scalarise(streams=_OFFLINE), aggregate=SeqSum(), terms=(Nll(by="reward", streams=_OFFLINE),))


@method("GOLD 2021, as in A-LoL 2023")
def r_gold(floor: float = 0.1) -> Objective:
    """Reward GOLD (2021, 2023): ``-1/D sum_it sg(max(p_it, floor)) max(R_i, 0) logp_it`` on stored answers, D rollouts.

    ``p`` is the policy's own probability now.

    Args:
        floor: least weight of a token.

    Source: A-LoL, R-LoL (arXiv 2305.14718), in part.
    """
    term = Nll(by="reward", weights=(Confidence(floor),), streams=_OFFLINE)
    return Objective(scalarise=Scalarise(streams=_OFFLINE), aggregate=SeqSum(), terms=(term,))


# ---- target distributions --------------------------------------------------------------------------------------------


@method("RL with KL penalties is better viewed as Bayesian inference, 2022")
def kl_rl(beta: float = 0.1, baseline: str = "leave_one_out") -> Objective:
    """KL-regularised RL as inference (2022): REINFORCE on ``R - beta sum_t log(pi/pi_ref)``; optimum ``pi_ref e^(R/beta) / Z``.

    It descends the *reverse* divergence KL(pi||p*) to that optimum.

    Args:
        beta: coefficient of the divergence; the optimum's temperature.
        baseline: of `Center`: ``leave_one_out``, ``group`` or ``batch``; ``none``.

    Source: KL-RL as Bayesian inference (arXiv 2205.11275).
    """
    centre: tuple[CreditTerm, ...] = () if baseline == "none" else (Center(baseline),)
    return Objective(credit=(KlInReward(coef=beta), *centre), policy=_plain(), aggregate=SeqSum())


@method("GDC 2021; CDPG 2022")
def gdc(
    beta: float | None = 1.0, over: str = "run", behaviour: str = "engine", baseline: bool = False, cap: float = float("inf")
) -> Objective:
    """GDC, DPG (2021): ``-1/D sum_i P(y_i) / (Z q(y_i)) logp(y_i)``, ``P = pi_ref e^(R/beta)``, q who drew, D rollouts.

    It descends the *forward* divergence KL(p*||pi) to the optimum of `kl_rl`.

    Args:
        beta: temperature of the reward; None: ``P = pi_ref`` on correct rollouts, 0 elsewhere.
        over: ``run``: Z is the mean of P/q over all batches so far; ``group``: over the rollouts at the prompt (CDPG).
        behaviour: ``q``, who drew the rollouts: ``engine`` or ``old``.
        baseline: subtract 1 from the weights, their mean (GDC++).
        cap: largest weight.

    Source: GDC (arXiv 2012.11635), as in KL-RL as Bayesian inference (arXiv 2205.11275).
    """
    less: tuple[CreditTerm, ...] = (Center("constant", value=1.0),) if baseline else ()
    return Objective(
        credit=(Tilt(beta=beta, over=over, behaviour=behaviour, cap=cap), *less), policy=_plain(), aggregate=SeqSum()
    )
