"""Methods that learn values: critics of other shapes than PPO's, and policies that are value functions."""

from __future__ import annotations

from assay.objective.credit.baseline import Center
from assay.objective.credit.critics import TurnAdvantage
from assay.objective.credit.normalise import Scale, Whiten
from assay.objective.credit.returns import Gae
from assay.objective.loss.aggregate import SeqSum, Token
from assay.objective.loss.base import LossTerm
from assay.objective.loss.likelihood import Nll
from assay.objective.loss.policy import PolicyGradient
from assay.objective.loss.ratio import Ratio
from assay.objective.loss.select import Correct
from assay.objective.loss.td import Margin, TdLoss
from assay.objective.loss.td_fits import HlGauss
from assay.objective.loss.td_targets import ColumnTarget, ConservativeTarget, MeanTarget, ReturnTarget
from assay.objective.loss.td_values import DuelingValue, HeadValue, LogRatioValue
from assay.objective.loss.trust import MinClip
from assay.objective.loss.wrap import Where
from assay.objective.methods.credit import gae_chain
from assay.objective.methods.registry import method
from assay.objective.methods.requires import Critic, Requires
from assay.objective.objective import Objective

__all__ = ["archer", "b_coder", "ppo_hl_gauss", "rover", "vapo"]


@method("Stop Regressing, 2024, on PPO")
def ppo_hl_gauss(
    bins: int = 51,
    low: float = -0.1,
    high: float = 1.1,
    ratio: float = 0.75,
    kl: float = 0.05,
    gamma: float = 1.0,
    lam: float = 0.95,
    clip: float = 0.2,
    value: float = 0.1,
    whiten: str = "token",
) -> Objective:
    """PPO with a categorical critic (HL-Gauss, 2024): ``value * CE(q(A + V), softmax(z))``, q a normal histogram, V the mean.

    Args:
        bins, low, high: of the critic; give the range of the returns a margin. Its head is
            ``ValueHead(form="hl_gauss", outputs=bins, low=low, high=high)``.
        ratio: standard deviation in widths of a bin.
        kl: coefficient of k1 to the reference, paid at each token; 0 leaves it out.
        gamma, lam: of the estimation.
        clip: distance of the ratio's bounds from 1.
        value: weight of the critic.
        whiten: ``token``, ``rollout`` or ``none``.

    There is no clipping of values. The number of bins and the range for language models are choices of this library.

    Source: HL-Gauss critic (arXiv 2403.03950).
    """
    fit = HlGauss(low=low, high=high, bins=bins, ratio=ratio)
    return Objective(
        credit=gae_chain(kl, gamma, lam, whiten),
        policy=PolicyGradient(trust=MinClip(low=clip, high=clip)),
        aggregate=Token(),
        terms=(TdLoss(target=ColumnTarget(column="returns"), fit=fit, coef=value, label="critic"),),
    )


@method(
    "VAPO 2025, arXiv 2504.05118; NeMo-RL",
    status="unsure",
    requires=Requires(
        critics=(Critic(lr=3e-3),),
        critics_first=50,
        why="its critic learns before the policy, and faster",
    ),
)
def vapo(
    adaptive: float | None = 0.05,
    lam: float = 0.95,
    lam_returns: float = 1.0,
    low: float = 0.2,
    high: float = 0.28,
    imitate: float = 0.1,
    value: float = 0.1,
    value_clip: float | None = None,
) -> Objective:
    """VAPO (2025): PPO with ``lam = 1 - 1 / (adaptive T_i)``, Monte-Carlo targets, clip-higher, likelihood of own successes.

    Args:
        adaptive: of the length-adaptive ``lam``, which is 0 for rollouts of at most ``1 / adaptive`` tokens: the default is
            made for thousands. None for ``lam`` itself.
        lam: of the advantages where ``adaptive`` is None.
        lam_returns: of the critic's targets.
        low, high: distances of the ratio's bounds from 1.
        imitate: weight of the likelihood of rollouts that succeeded, a mean over their tokens; 0 leaves it out.
        value: weight of the critic.
        value_clip: largest change of a value that still lowers its loss; None for any.

    The critic learns first: ``LearnerSettings(policy_after=50)``. Groups of rollouts are the sampler's. Unsure: whether values
    are clipped, and the critic's weight (it is a model of its own there).

    Source: VAPO (arXiv 2504.05118).
    """
    critic = TdLoss(target=ColumnTarget(column="returns"), clip=value_clip, coef=value / 2, label="critic")
    own = Nll(coef=imitate, streams=("on_policy", "replay"), aggregate=Token(), label="own_success") if imitate else None
    return Objective(
        credit=(Gae(lam=lam, adaptive=adaptive, lam_returns=lam_returns), Whiten("token")),
        policy=PolicyGradient(trust=MinClip(low=low, high=high)),
        aggregate=Token(),
        terms=(critic,) if own is None else (critic, Where(own, (Correct(),), per="selected")),
    )


@method("Random Policy Valuation is Enough, 2025; tinnerhrhe/ROVER")
def rover(rho: float = 1.0, scale: bool = False) -> Objective:
    """ROVER (2025): ``mean_t (Q_t - sg(A_i + V'_t))^2``, ``Q_t = rho (logp_new - logp_old)``, ``V'`` the next Q's mean.

    ``V'_t = mean_v rho (log pi(v) - log pi_old(v))`` at the next loss token, 0 behind the last; ``A_i = R_i - mu_q``.

    Args:
        rho: temperature of the values.
        scale: divide the advantage by the group's standard deviation (the authors' math runs).

    Where other tokens stand between two loss tokens, the authors' code takes 0 for ``V'``; here it is the next loss token's. Left
    out: the authors' optional clip of ``Q``, and their factor on ``V'``.

    Source: ROVER (arXiv 2509.24981).
    """
    td = TdLoss(value=LogRatioValue(rho=rho), target=MeanTarget(rho=rho), label="rover")
    credit = (Center("group"), Scale("group")) if scale else (Center("group"),)
    return Objective(credit=credit, policy=td, aggregate=Token())


@method(
    "B-Coder 2023, arXiv 2310.03173",
    status="unsure",
    requires=Requires(
        settings={"values": "values_target"},
        critics=(Critic(tau=0.1, lr=3e-3),),
        critics_first=15,
        why="its critic learns before the policy, and faster, and is compared with a slow copy of itself",
    ),
)
def b_coder(
    alpha: float = 1.0, gamma: float = 1.0, margin: float = 0.1, imitate: float = 0.1, values: str = "values_now"
) -> Objective:
    """B-Coder (2023): ``(Q - sg(r + gamma Q(s', argmax q)))^2 + margin |A(demo)| + imitate CE(demo)``, q the frozen model.

    ``Q = alpha (logp_new - logp_max) + V``, the policy is ``softmax(Q / alpha)``: the model itself. Demonstrations are rows of
    the stream ``expert``.

    Args:
        alpha: value of a nat.
        gamma: discount of a token.
        margin: weight of ``A = Q - V`` on demonstrations.
        imitate: weight of their likelihood.
        values: column of V behind the next token; ``values_target`` are those of a head with target weights.

    V is the head ``ValueHead()``; the paper trains it first (``LearnerSettings(policy_after=...)``).
    Unsure: alpha, gamma and both weights, none of which was found. Left out: the initial value ``V^r``, and ranking candidates by
    ``Q - gamma V``.

    Source: B-Coder (arXiv 2310.03173), in part.
    """
    td = TdLoss(
        value=DuelingValue(alpha=alpha), target=ConservativeTarget(alpha=alpha, gamma=gamma, values=values), label="b_coder"
    )
    demos: tuple[LossTerm, ...] = (Margin(alpha=alpha, coef=margin),) if margin else ()
    demos += (Nll(coef=imitate, streams=("expert",)),) if imitate else ()
    return Objective(policy=td, aggregate=Token(), terms=demos)


@method(
    "ArCHer 2024; YifeiZhou02/ArCHer",
    status="unsure",
    requires=Requires(
        critics=(
            *(Critic(name=n, model="critic", tau=0.1, init=0.1, lr=3e-3, model_lr=1e-3) for n in ("v1", "v2")),
            *(Critic(name=n, model="critic", tau=0.1, init=0.1, lr=3e-3, model_lr=1e-3, behind=True) for n in ("q1", "q2")),
        ),
        critics_first=40,
        why="two critics of turns that begin apart, on a model of their own with a slow copy, ahead of the policy",
    ),
)
def archer(gamma: float = 0.95, value: float = 1.0) -> Objective:
    """ArCHer (2024): ``-(min_j Q_j - min_j V_j) sum_t logp_t`` per turn; ``Q_j -> r + gamma Vbar_j(s')``, ``V_j -> Qbar_j``.

    Two critics of turns, each with target weights of its own; the minimum is taken in the actor's advantage alone.

    Args:
        gamma: worth of the next turn.
        value: weight of each critic's loss, a mean over rollouts of its sum over turns.

    The heads: ``v1``, ``v2`` and, with ``behind=True``, ``q1``, ``q2``; all with ``tau=0.1`` and ``init`` above 0, without which
    both critics would stay alike. As in the source they share a model of their own: ``trunk="critic"`` of each, and
    ``LearnerSettings(trunks=(Trunk(tau=0.1),))``. The actor climbs what the critics believe, so they must be ahead of it:
    ``policy_after`` and ``policy_every`` give them more steps, and a rate well above the policy's.

    Unsure: ``V`` learns from the rollout's own action instead of one drawn anew. Left out: a baseline per token, and replay,
    which needs actions drawn anew.

    Source: ArCHer (arXiv 2402.19446), in part.
    """
    terms: list[LossTerm] = []
    for k in ("1", "2"):
        to_q = ReturnTarget(gamma=gamma, lam=0.0, values=f"v{k}_target", by="call")
        terms.append(TdLoss(value=HeadValue(name=f"q{k}"), target=to_q, at="end", coef=value, label=f"q{k}"))
        to_v = ColumnTarget(column=f"q{k}_target", at="end")
        terms.append(TdLoss(value=HeadValue(name=f"v{k}"), target=to_v, at="start", coef=value, label=f"v{k}"))
    return Objective(
        credit=(TurnAdvantage(),), policy=PolicyGradient(ratio=Ratio("none"), trust=None), aggregate=SeqSum(), terms=tuple(terms)
    )
