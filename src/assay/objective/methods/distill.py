"""Learning from a teacher on the student's own rollouts, alone or beside a reward."""

from __future__ import annotations

from assay.objective.credit.teacher import TeacherAdvantage
from assay.objective.loss.aggregate import SeqMean, Token
from assay.objective.loss.base import LossTerm
from assay.objective.loss.distill import TeacherGradient, TeacherKl
from assay.objective.loss.kl import Kl
from assay.objective.loss.policy import PolicyGradient
from assay.objective.loss.ratio import Ratio
from assay.objective.loss.teachers import Teachers
from assay.objective.loss.topk import Distill, SparseDivergence, TopKModel, TopKTeacher
from assay.objective.loss.trust import MinClip, WeightClip
from assay.objective.loss.trust_masks import DivergenceMask
from assay.objective.loss.vocab_divergence import Jsd
from assay.objective.methods.registry import method
from assay.objective.methods.requires import Requires
from assay.objective.methods.shared import GROUP_NORM
from assay.objective.objective import Objective

__all__ = ["gkd", "iw_opd", "kd_estimator", "kd_topk", "opd", "opd_advantage", "opd_clipped", "ref_kl", "sdft", "sdpo"]


@method("On-Policy Distillation, Thinking Machines 2025")
def opd(discount: float = 0.0, bound: float = float("inf"), teachers: tuple[str, ...] = ("teacher",), by: str = "") -> Objective:
    """On-policy distillation (2025): ``-1/D sum_it r_it (logp_teacher - logp_engine)``, ``r = pi / pi_engine``, D tokens.

    Reverse KL to the teacher as a reward per token, and no other reward.

    Args:
        discount: worth of the next token's opinion (rLLM); 0 looks at the token alone.
        bound: on the opinion.
        teachers: names of the learner's models that teach; each has a column ``logp_NAME``.
        by: column of the rollouts with the name of each one's teacher, where there are several: ``domain``, say.
    """
    who = Teachers(teachers, by=by)
    term = TeacherGradient(teachers=who, student="engine", ratio=Ratio("token", anchor="engine"), discount=discount, bound=bound)
    return Objective(terms=(term,), aggregate=Token())


@method("verl 2026, distillation by policy gradient")
def opd_clipped(clip: float = 0.2, bound: float = 10.0) -> Objective:
    """Policy-gradient distillation of verl (2026): PPO's clip with ``A_t = sg(clip(logp_teacher - logp_new, -+ bound))``.

    The opinion is taken anew at each update; token mean.

    Args:
        clip: distance of the ratio's bounds from 1.
        bound: on the opinion.
    """
    term = TeacherGradient(trust=MinClip(low=clip, high=clip), bound=bound)
    return Objective(terms=(term,), aggregate=Token())


@method("prime-rl 2026, ref_kl loss")
def ref_kl(fall: float = 0.2, kl: float = 1e-3, teacher: str = "teacher") -> Objective:
    """prime-rl's ``ref_kl`` (2026): ``1/D sum [-keep r_t sg(logp_teacher - logp_new) + kl (log r_t)^2]``, r against the sampler.

    A token is kept unless its probability has fallen by more than a bound. prime-rl's ``opd``; with ``teacher="privileged"`` its
    ``opsd``.

    Args:
        fall: largest fall of the sampled token's probability.
        kl: weight of the square, which acts on left-out tokens too.
        teacher: whose log-probabilities; ``privileged``: the policy's own with a demonstration before the prompt, from a
            learner's model that reads privileged prompts.
    """
    trust = DivergenceMask(low=fall, high=float("inf"), both=True)
    term = TeacherGradient(teachers=Teachers((teacher,)), ratio=Ratio("token", anchor="engine"), trust=trust)
    drift = Kl("k2", anchor="engine", coef=2 * kl, label="drift")
    return Objective(terms=(term, drift), aggregate=Token())


@method("IW-OPD, as in TRL 2026")
def iw_opd(gamma: float = 0.5) -> Objective:
    """IW-OPD (2026): ``-1/D sum_it w_it a_it logp_it``, ``a = logp_teacher - logp_engine``, D tokens; early tokens weigh more.

    ``w_t = 1 + gamma (1 - sum_(t' < t) |a_t'| / sum |a|)``: where student and teacher part first weighs most.

    Args:
        gamma: weight of early tokens.
    """
    term = TeacherGradient(ratio=Ratio("none"), student="engine", prefix=gamma)
    return Objective(terms=(term,), aggregate=Token())


@method("slime 2026; ROLL 2026; rLLM 2026")
def opd_advantage(coef: float = 1.0, discount: float = 0.0, bound: float = float("inf"), clip: float = 0.2) -> Objective:
    """Distillation in the advantage (2026): ``A_t = (R - mu_q) / sd_q + coef (logp_teacher - logp_old)``, PPO's clip, token mean.

    Args:
        coef: weight of the teacher's opinion.
        discount: worth of the next token's opinion; 0 looks at the token alone.
        bound: on the opinion (rLLM: 5).
        clip: distance of the bounds from 1.
    """
    teacher = TeacherAdvantage(coef=coef, discount=discount, bound=bound)
    return Objective(credit=(*GROUP_NORM, teacher), policy=PolicyGradient(trust=MinClip(low=clip, high=clip)), aggregate=Token())


@method("verl 2026, distillation by estimators")
def kd_estimator(estimator: str = "k3", cap: float = 10.0, teachers: tuple[str, ...] = ("teacher",), by: str = "") -> Objective:
    """Sampled distillation of verl (2026): a KL estimator to the teacher on the student's rollouts, as a loss; token mean.

    Args:
        estimator: of `Kl`. ``k3`` as published pulls along the *forward* divergence; ``k2``, ``k3+`` and ``rk3`` along the
            reverse.
        cap: bound on a token's estimate.
        teachers, by: as in `opd`.
    """
    term = TeacherKl(estimator, teachers=Teachers(teachers, by=by), cap=cap)
    return Objective(terms=(term,), aggregate=Token())


@method("verl 2026; NeMo-RL 2026; TRL 2026", requires=Requires(settings={"k": 8}, why="no rows bring the teacher's tokens"))
def kd_topk(
    direction: str = "forward",
    rest: str = "ignore",
    weight: float = 0.5,
    floor: float = -10.0,
    low: float = 0.0,
    high: float = 10.0,
    outside: float = -100.0,
    k: int = 0,
) -> Objective:
    """Distillation by the teacher's k most likely tokens (2026): ``1/D sum_t sum_(v in top k) t_v log(t_v / s_v)``; D tokens.

    ``teacher_ids`` and ``teacher_logps``, each ``[tokens, k]``, come with rows or sampler, unless the learner's own model
    ``teacher`` is asked (``k``).

    Args:
        direction: ``forward`` (verl), ``reverse``, ``mixed`` (NeMo-RL), ``jsd`` (TRL).
        rest: what becomes of the other tokens: ``ignore`` (verl), ``tail`` and ``renormalise`` (TRL), ``outside`` (NeMo-RL's
            ``zero_outside_topk``).
        weight: of the forward part, or of the teacher in the mixture; only for ``mixed`` and ``jsd``.
        floor: least log-probability of either side (verl: -10; minus infinity in the others).
        low, high: bounds of a token's divergence (verl: 0 and 10).
        outside: the teacher's log-probability elsewhere; only for ``outside``.
        k: tokens that the learner's own teacher is asked for; 0 for columns that rows or sampler bring.
    """
    sparse = SparseDivergence(direction=direction, rest=rest, weight=weight, floor=floor, outside=outside)
    stat = TopKModel("teacher", k=k, sparse=sparse) if k else TopKTeacher(sparse=sparse)
    return _teacher_objective(Distill(stat, low=low, high=high))


@method("GKD 2023")
def gkd(beta: float = 0.5) -> Objective:
    """GKD (2023): ``beta KL(T||m) + (1 - beta) KL(S||m)``, ``m = beta T + (1 - beta) S``, over the whole vocabulary; token mean.

    The generalised Jensen-Shannon divergence from the teacher, on the student's own rollouts.

    Args:
        beta: 0 stands for KL(T||S), 1 for KL(S||T).

    Left out: the share of rollouts that come from data; such rows stand in the stream ``expert`` (``Distill.streams``). Both
    distributions are at temperature 1.

    Source: GKD (arXiv 2306.13649), in part.
    """
    return _teacher_objective(Distill(Jsd("teacher", beta=beta)))


@method("SDPO 2026, as in TRL", requires=Requires(why="the weights that the stage starts from teach, behind the solution"))
def sdpo(weight: float = 1.0, cap: float = 2.0, clip: float = 0.2) -> Objective:
    """SDPO (2026): ``sg(min(r_t, cap)) sg(logp_new - logp_privileged) logp_new``, mean per rollout; ``(1 - weight)`` GRPO beside.

    The policy's own log-probabilities under a *privileged* context (feedback, a solution) teach it without.

    Args:
        weight: share of the self-distillation; 1 leaves rewards out.
        cap: of the ratio to the policy that drew.
        clip: distance of GRPO's bounds from 1.

    ``logp_privileged``: the same tokens scored behind the privileged prompt, by a learner's model that reads it, with the present
    weights (``Every(steps=1)``) or averaged ones (``Ema``, as published).
    """
    bounds = (0.0, cap)
    teachers = Teachers(("privileged",))
    coef = weight if weight < 1 else 1.0
    term = TeacherGradient(teachers=teachers, trust=WeightClip(positive=bounds, negative=bounds), coef=coef, label="self")
    if weight == 1:
        return Objective(terms=(term,), aggregate=SeqMean())
    policy = PolicyGradient(trust=MinClip(low=clip, high=clip), coef=1 - weight)
    return Objective(credit=GROUP_NORM, policy=policy, terms=(term,), aggregate=SeqMean())


@method("SDFT 2026, as in TRL", requires=Requires(settings={"k": 8}, why="no rows bring the teacher's tokens"))
def sdft(alpha: float = 0.5, rest: str = "renormalise", cap: float = 2.0, k: int = 0) -> Objective:
    """SDFT (2026): ``sg(min(pi / pi_old, cap)) JS(T, S)`` over the teacher's most likely tokens, mean per rollout.

    The policy under a demonstration (T) teaches the policy without it (S).

    Args:
        alpha: weight of the teacher in the mixture.
        rest: ``renormalise`` or ``tail``, as in `kd_topk`.
        cap: of the ratio to the policy that drew.
        k: tokens that the learner's own model ``privileged`` is asked for (100 in TRL), which reads privileged prompts with
            present or averaged weights. 0: ``privileged_ids`` and ``privileged_logps``, each ``[tokens, k]``, come with rows or
            sampler.
    """
    sparse = SparseDivergence(direction="jsd", weight=alpha, rest=rest)
    brought = TopKTeacher(ids="privileged_ids", logps="privileged_logps", sparse=sparse)
    stat = TopKModel("privileged", k=k, sparse=sparse) if k else brought
    term = Distill(stat, correct="old", cap=cap, label="self")
    return Objective(terms=(term,), aggregate=SeqMean(), brings=stat.needs)


def _teacher_objective(term: Distill) -> Objective:
    """A term alone, with the columns that rows must bring."""
    terms: tuple[LossTerm, ...] = (term,)
    return Objective(terms=terms, aggregate=Token(), brings=term.stat.needs)
