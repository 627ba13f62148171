"""Methods that act on the policy's entropy or on single tokens' probabilities: exploration kept, or collapse slowed.

Covariances, quantiles and maxima are those of the whole optimiser batch, taken before its step (`loss.token_weights`); published
code takes them per micro-batch.
"""

from __future__ import annotations

from dataclasses import replace

from assay.core.errors import ConfigError
from assay.objective.credit.base import CreditTerm
from assay.objective.credit.divergence import AdaptiveKlInReward, KlInReward
from assay.objective.credit.filters import DropTruncated, DropZeroVariance
from assay.objective.credit.length import Overlong
from assay.objective.loss.aggregate import SeqMean, Token
from assay.objective.loss.entropy import Entropy
from assay.objective.loss.policy import PolicyGradient
from assay.objective.loss.token_weights import ClipCovariance, EntropyChange, LowLogp, TopCovariance, TopEntropy
from assay.objective.loss.trust import MinClip
from assay.objective.loss.vocab import Floor, MinP, TopP
from assay.objective.loss.vocab_terms import AdaptiveEntropy, ProxyKl, RestrictedGradient, ReweightedKl, SelectedKl
from assay.objective.methods.credit import gae_chain, ppo
from assay.objective.methods.group import dapo, grpo
from assay.objective.methods.registry import method
from assay.objective.methods.requires import Requires
from assay.objective.methods.shared import GROUP_NORM
from assay.objective.objective import Objective

__all__ = [
    "clip_cov",
    "cure",
    "entropy_only",
    "grpo_entropy",
    "kl_cov",
    "lp_reg",
    "nlpo",
    "one_shot",
    "rapo",
    "skywork_or1",
    "steer",
    "top_entropy",
]

_HIGHER = MinClip(low=0.2, high=0.28)


@method("The Entropy Mechanism of RL for Reasoning LMs, 2025; PRIME-RL, verl")
def clip_cov(
    fraction: float = 2e-4, least: float = 1.0, most: float = 5.0, low: float = 1.0, high: float = 1.0, seed: int = 0
) -> Objective:
    """Clip-Cov (2025): GRPO, but no loss on a random ``fraction`` of tokens with ``least < (A - mean A)(lp - mean lp) < most``.

    Args:
        fraction: share of all loss tokens (a fraction, no percentage; at least one token); 0 leaves the part out.
        least, most: bounds on the covariance of a candidate, which the ratio's own clip must leave alone.
        low, high: distances of the ratio's bounds from 1; opened to [0, 2] in the authors' scripts.
        seed: of the random choice, which also depends on the weights' version and on the token itself.

    Dual clip 10 as in the authors' scripts, token mean, no divergence.

    Source: Clip-Cov, KL-Cov (arXiv 2505.22617).
    """
    chosen = (ClipCovariance(fraction=fraction, least=least, most=most, low=low, high=high, seed=seed),) if fraction else ()
    trust = MinClip(low=low, high=high, dual=10.0)
    return Objective(credit=GROUP_NORM, policy=PolicyGradient(trust=trust, weights=chosen), aggregate=Token())


@method("The Entropy Mechanism of RL for Reasoning LMs, 2025; PRIME-RL, verl")
def kl_cov(fraction: float = 0.002, coef: float = 1.0) -> Objective:
    """KL-Cov (2025): ``-A r`` without a clip, plus ``coef |lp - lp_old|`` on the top ``fraction`` of tokens by covariance.

    ``cov_t = (A_t - mean A)(lp_t - mean lp)`` over the batch's loss tokens.

    Args:
        fraction: share of all loss tokens: 0.002 at 7B, 0.0002 at 32B in the authors' scripts, whose ``k_percent`` of 0.2 and
            0.02 is a percentage; 0 leaves the penalty out.
        coef: of the penalty (1 in the scripts, 0.1 in verl's configuration).

    On the first step of a batch the penalty is 0, and so is its slope. Token mean.

    Source: Clip-Cov, KL-Cov (arXiv 2505.22617).
    """
    term = (SelectedKl("abs", coef=coef, weights=(TopCovariance(fraction=fraction),), label="kl_cov"),) if fraction else ()
    return Objective(credit=GROUP_NORM, policy=PolicyGradient(trust=None), aggregate=Token(), terms=term)


@method("Rethinking Entropy Interventions in RLVR, 2025; zz-haooo/STEER")
def steer(
    floor: float = 0.8, ceiling: float | None = None, low: float = 0.2, high: float = 0.28, dual: float = 10.0
) -> Objective:
    """STEER (2025): each token's loss times ``exp(-k |Omega|)``, Omega the entropy change ``(A / p_old) p (1 - p)(log p + H)``.

    ``k = -log(floor) / max(max_t |Omega|, 0.02)``: the token that would change the entropy most has the weight ``floor``.

    Args:
        floor: smallest weight.
        ceiling: largest weight of the linear map (1.2 in the released code); None for the exponential one.
        low, high, dual: of the ratio's clip.

    The largest change is that of the optimiser batch; the released code takes the micro-batch's. GRPO advantage, token mean.

    Source: STEER (arXiv 2510.10150).
    """
    return Objective(
        credit=GROUP_NORM,
        policy=PolicyGradient(
            trust=MinClip(low=low, high=high, dual=dual), weights=(EntropyChange(floor=floor, ceiling=ceiling),)
        ),
        aggregate=Token(),
    )


@method("Low-probability Tokens Sustain Exploration, 2025; CarlanLark/Lp-Reg-dev")
def lp_reg(kappa: float | None = 0.02, fraction: float = 0.01, coef: float = 1.0, threshold: float | None = None) -> Objective:
    """Lp-Reg (2025): GRPO plus ``coef k3(lp, lp_proxy)`` on the least likely ``fraction`` of tokens with A < 0, if below a proxy.

    The proxy is the old policy without tokens below ``kappa max p``, renormalised; k3's slope ``1 - proxy / p`` lifts the token.
    A token that the proxy does not have is left alone.

    Args:
        kappa: share of the largest probability that a token of the proxy must reach; None where ``threshold`` is given.
        fraction: share of the loss tokens with A < 0 (0.005 in the authors' 32B scripts; a fraction, no percentage); 0 leaves the
            regulariser out.
        coef: of the regulariser.
        threshold: a fixed probability in the place of ``kappa max p``.

    The ratio's bounds are 0 and 10, as in the authors' scripts, so that tokens with A < 0 are not clipped. Token mean, no
    divergence from a reference. Left out: the same for tokens with A > 0, whose fraction is 0 in all scripts.

    Source: Lp-Reg (arXiv 2510.03222).
    """
    if kappa is not None and threshold is None:
        support = MinP(kappa)
    elif threshold is not None and kappa is None:
        support = Floor(threshold)
    else:
        raise ConfigError(
            f"lp_reg(kappa={kappa}, threshold={threshold}): the proxy has one rule; give one, and None for the other"
        )
    weights = (LowLogp(fraction=fraction, side="negative"),) if fraction else ()
    term = (ProxyKl(coef=coef, support=support, weights=weights, label="lp_reg"),) if fraction else ()
    return Objective(credit=GROUP_NORM, policy=PolicyGradient(trust=MinClip(low=1.0, high=9.0)), aggregate=Token(), terms=term)


@method("Beyond the 80/20 Rule, 2025; TRL")
def top_entropy(fraction: float = 0.2, low: float = 0.2, high: float = 0.28, normalise: bool = False) -> Objective:
    """80/20 rule (2025): DAPO's loss on the ``fraction`` of tokens at the most uncertain places alone; the others have none.

    ``-1/D sum_it M_t min(r_t A, clip(r_t, 1 - low, 1 + high) A)``, ``M_t = 1`` for the largest entropies ``H_t``, else 0.

    Args:
        fraction: share of the optimiser batch's loss tokens, by the current policy's entropy.
        low, high: distances of the ratio's bounds from 1.
        normalise: divide by the number of chosen tokens; else by that of all (TRL).

    Groups whose task metric does not vary are dropped; their refill is the sampler's.

    Source: 80/20 rule (arXiv 2506.01939).
    """
    chosen = TopEntropy(fraction=fraction, normalise=normalise)
    policy = PolicyGradient(trust=MinClip(low=low, high=high), weights=(chosen,))
    return Objective(credit=(DropZeroVariance(), *GROUP_NORM), policy=policy, aggregate=Token())


@method("Bytedance/CURE, 2025")
def cure(low: float = 0.2, high: float = 0.28, overlong: Overlong | DropTruncated | None = None) -> Objective:
    """CURE (2025): DAPO on groups of ``n1 (1 + n2)`` rollouts, some of them continued from an uncertain place in another one.

    Args:
        low, high: distances of the ratio's bounds from 1.
        overlong: as in `dapo` (a cache of 512 in the paper).

    The rest is the sampler's: 4 full rollouts a prompt, in each a cut at one of its 20 most uncertain tokens, 3 continuations
    from there; all 16 have one group, and the shared prefix is context, without loss. From about step 300 it is plain DAPO, with
    16 full rollouts.

    Source: CURE (arXiv 2508.11016).
    """
    return dapo(low=low, high=high, overlong=overlong)


@method("entropy regularisation: Williams & Peng 1991; verl, TRL")
def grpo_entropy(coef: float = 0.001, kl: float = 0.0, clip: float = 0.2) -> Objective:
    """GRPO with an entropy bonus: ``- coef H_t`` per token, ``H`` the exact entropy over the vocabulary.

    Args:
        coef: of the bonus (0.001 in RL-PLUS and 1-shot RLVR); 0 leaves it out.
        kl: coefficient of k3 to the reference; 0 leaves it out.
        clip: distance of the ratio's bounds from 1.
    """
    objective = grpo(kl=kl, clip=clip)
    return objective + Entropy(coef=coef) if coef else objective


@method("RL for Reasoning with One Training Example, 2025")
def one_shot(kl: float = 0.001, entropy: float = 0.001, clip: float = 0.2) -> Objective:
    """1-shot RLVR (2025): GRPO on one prompt, plus k3 to the reference, minus ``entropy H``.

    Both act alone once all answers are right: the policy term is exactly 0 then.

    Args:
        kl: coefficient of k3; 0 leaves it out.
        entropy: coefficient of the bonus; 0 leaves it out. `entropy_only` is the paper's ablation.
        clip: distance of the ratio's bounds from 1.

    The data's part: one prompt, repeated to fill the batch, chosen for the variance of its accuracy over a training run.

    Source: 1-shot RLVR (arXiv 2504.20571), in part.
    """
    return grpo_entropy(coef=entropy, kl=kl, clip=clip)


@method("RL for Reasoning with One Training Example, 2025")
def entropy_only(coef: float = 0.001) -> Objective:
    """Entropy alone (2025): ``- coef mean H_t``, no reward: how much of a gain is mere exploration.

    Args:
        coef: of the entropy.
    """
    return Objective(terms=(Entropy(coef=coef),), aggregate=SeqMean())


@method("Skywork-OR1, 2025, arXiv 2505.22312; TRL")
def skywork_or1(target: float = 0.2, step: float = 0.005, start: float = 0.0, most: float = 1.0, clip: float = 0.2) -> Objective:
    """Adaptive entropy (Skywork-OR1 2025): GRPO without KL, minus ``c H`` while the mean entropy is not above a target.

    The coefficient rises by ``step`` after a batch with ``H <= target`` and falls by it after another.

    Args:
        target: mean entropy in nats.
        step: change of the coefficient per rollout batch.
        start, most: first and largest coefficient (TRL: 0 and 1).
        clip: distance of the ratio's bounds from 1.

    The entropy that decides is that of the batch before. Groups whose task metric does not vary are dropped.

    Source: Skywork-OR1 (arXiv 2505.22312), in part.
    """
    return Objective(
        credit=(DropZeroVariance(), *GROUP_NORM),
        policy=PolicyGradient(trust=MinClip(low=clip, high=clip)),
        aggregate=Token(),
        terms=(AdaptiveEntropy(target=target, step=step, start=start, most=most),),
    )


@method("RAPO, Unlocking Reasoning Capabilities via RL Exploration, 2025", status="unsure")
def rapo(
    alpha: float = 0.01,
    entropy: float = 0.001,
    low: float = 0.0,
    high: float = 1.0,
    estimator: str = "sampled",
    clip: float = 0.2,
) -> Objective:
    """RAPO (2025): GRPO plus ``alpha KL(ref^ || pi)``, ``ref^ ~ ref^phi`` with phi the group's mean reward, minus ``entropy H``.

    Where rewards are low, the reference is flattened and the policy may leave it.

    Args:
        alpha: coefficient of the divergence; 0 leaves it out.
        entropy: coefficient of the bonus; 0 leaves it out.
        low, high: bounds of phi.
        estimator: ``sampled``: ``r (u log u - u + 1)``, ``u = ref^ / pi``; ``full``: the sum over the vocabulary.
        clip: distance of the ratio's bounds from 1.

    Unsure: alpha, the entropy's coefficient, phi (here the clipped mean reward) and how tokens are averaged inside a rollout
    (here each rollout's mean).

    Source: RAPO (arXiv 2510.03865).
    """
    terms = (ReweightedKl(estimator, coef=alpha, low=low, high=high),) if alpha else ()
    bonus = (Entropy(coef=entropy),) if entropy else ()
    policy = PolicyGradient(trust=MinClip(low=clip, high=clip))
    return Objective(credit=GROUP_NORM, policy=policy, aggregate=SeqMean(), terms=(*terms, *bonus))


@method(
    "RL4LMs 2022, arXiv 2210.01241", requires=Requires(refresh={"mask": 10}, why="the mask policy is a copy that lags behind")
)
def nlpo(
    p: float = 0.9,
    least: int = 100,
    kl: float = 0.1,
    target: float | None = 1.0,
    lam: float = 0.95,
    clip: float = 0.2,
    value: float = 0.5,
    mask: str = "mask",
) -> Objective:
    """NLPO (RL4LMs 2022): PPO of policies restricted to the nucleus of a mask policy, current and old alike, and renormalised.

    Args:
        p: mass of the nucleus: the smallest set of the mask policy's most likely tokens that reaches it; 1 is PPO.
        least: tokens that are kept at the least (100 in the IMDB configuration).
        kl: coefficient of k1 to the reference, paid at each token (0.1 for IMDB, 0.001 for CommonGen).
        target: divergence per rollout that the coefficient follows (1 and 2); None for a fixed coefficient.
        lam: of the generalised advantage estimation, gamma 1.
        clip: distance of the ratio's bounds from 1.
        value: weight of the critic.
        mask: name of the mask policy among the learner's models.

    The mask policy is a copy of the policy that is brought up to date every few updates (5 for IMDB, 20 for CommonGen):
    ``Anchor("mask", refresh=Every(steps=5))``. Left to the sampler: tokens are to be drawn from the restricted policy.

    Source: NLPO (arXiv 2210.01241), in part.
    """
    shaped = gae_chain(0.0, 1.0, lam, "token")
    penalty: tuple[CreditTerm, ...] = ()
    if kl:
        penalty = (KlInReward(coef=kl) if target is None else AdaptiveKlInReward(coef=kl, target=target),)
    policy = RestrictedGradient(trust=MinClip(low=clip, high=clip), support=TopP(p, least=least), mask=mask)
    return replace(ppo(kl=0.0, lam=lam, value=value), credit=(*penalty, *shaped), policy=policy)
