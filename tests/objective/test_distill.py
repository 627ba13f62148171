"""Learning from a teacher: sampled tokens, a few likely tokens, whole distributions, several teachers, privileged contexts."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from law_batches import check_mixed
from objective_batches import plain, run, slopes, spread, tiny

from assay.core.batch import Batch
from assay.core.columns import TokenColumn
from assay.core.errors import ConfigError, DataError, PlanError
from assay.core.plan import Forward, Offers
from assay.objective import (
    Center,
    Gate,
    Kl,
    MinClip,
    Objective,
    PolicyGradient,
    Ratio,
    SeqMean,
    SeqSum,
    Token,
    Truncate,
    WeightClip,
)
from assay.objective.credit.teacher import TeacherAdvantage
from assay.objective.loss.distill import TeacherGradient, TeacherKl
from assay.objective.loss.ratio_kinds import GeoMean
from assay.objective.loss.teachers import Teachers
from assay.objective.loss.topk import Distill, SparseDivergence, TopKModel, TopKTeacher
from assay.objective.loss.vocab_divergence import FullKl, Jsd
from assay.objective.methods.distill import (
    gkd,
    iw_opd,
    kd_estimator,
    kd_topk,
    opd,
    opd_advantage,
    opd_clipped,
    ref_kl,
    sdft,
    sdpo,
)
from assay.objective.methods.group import grpo
from assay.testing.objective import check_objective, check_term

LOG = math.log
INF = float("inf")
S, T = torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64), torch.tensor([[0.25, 0.25, 0.5]], dtype=torch.float64)


# ---- sampled tokens --------------------------------------------------------------------------------------------------


def g(term: TeacherGradient, batch: Batch, logp: Any) -> np.ndarray:
    """What each token's log-probability is pushed by."""
    brings = tuple(n for n in term.teachers.needs if n != "logp_teacher")
    return -slopes(Objective(terms=(term,), aggregate=SeqSum(), brings=brings), batch, logp)


def test_the_gradient_is_the_gap_to_the_teacher() -> None:
    """``A = logp_teacher - logp_student`` times the ratio; the student is the current policy, the old one or the sampler."""
    batch = tiny([0], lengths=[2], columns={"logp_teacher": [-1.0, -2.0], "logp_old": [-1.5, -1.5], "logp_engine": -1.4})
    logp, plainly = np.array([-1.2, -1.6]), Ratio("none")
    np.testing.assert_allclose(g(TeacherGradient(ratio=plainly), batch, logp), [0.2, -0.4])
    np.testing.assert_allclose(g(TeacherGradient(ratio=plainly, bound=0.3), batch, logp), [0.2, -0.3])
    np.testing.assert_allclose(g(TeacherGradient(ratio=plainly, student="old"), batch, logp), [0.5, -0.5])
    np.testing.assert_allclose(g(TeacherGradient(ratio=plainly, student="engine"), batch, logp), [0.4, -0.6])
    np.testing.assert_allclose(g(TeacherGradient(), batch, logp), np.exp([0.3, -0.1]) * [0.2, -0.4])
    np.testing.assert_allclose(g(TeacherGradient(student="old", discount=0.5), batch, [-1.5, -1.5]), [0.25, -0.5])
    np.testing.assert_allclose(g(TeacherGradient(student="old", discount=1.0, bound=0.2), batch, [-1.5, -1.5]), [0.0, -0.2])


def test_on_the_policys_own_samples_it_is_the_reverse_divergence() -> None:
    """By enumeration: the expected gradient is that of KL(S||T), and k2's."""
    z = torch.tensor([0.3, -0.2, 0.1], dtype=torch.float64, requires_grad=True)
    live, teacher = torch.softmax(z, 0), T[0]
    (expected,) = torch.autograd.grad((live * (live.log() - teacher.log())).sum(), z)
    p, logp = live.detach().numpy(), torch.log_softmax(z, 0)
    batch = tiny([0] * 3, columns={"logp_teacher": teacher.log().numpy(), "logp_old": np.log(p)})
    for term in (TeacherGradient(), TeacherGradient(student="old"), TeacherKl("k2"), TeacherKl("rk3")):
        found = slopes(Objective(terms=(term,), aggregate=SeqSum()), batch, np.log(p)) * 3 * p
        (slope,) = torch.autograd.grad((torch.tensor(found) * logp).sum(), z, retain_graph=True)
        np.testing.assert_allclose(slope.numpy(), expected.numpy(), atol=1e-12)


def test_early_tokens_weigh_more() -> None:
    """IW-OPD: gaps .2, -.6, .2 at gamma .5 weigh 1.5, 1.4, 1.1; a rollout without a gap has no weight to share."""
    batch = tiny([0, 0], lengths=[3, 1], columns={"logp_teacher": [-0.8, -1.6, -0.8, -1.0], "logp_engine": -1.0})
    found = -slopes(iw_opd(), batch, -1.0) * 4
    np.testing.assert_allclose(found, [0.2 * 1.5, -0.6 * 1.4, 0.2 * 1.1, 0.0], atol=1e-12)


def test_prime_rls_ref_kl() -> None:
    """A row of four tokens, the teacher .3 below the sampler, summed: 1.406787. A token that fell by more than .2 is left out."""
    old = np.array([-1, -0.5, -2, -0.7])
    moved = np.array([0.1, -0.3, 0.2, 0.04])
    batch = tiny([0], lengths=[4], columns={"logp_engine": old, "logp_teacher": old - 0.3})
    found = run(ref_kl(), batch, old + moved)
    assert found.loss * 4 == pytest.approx(1.406787, abs=1e-6)
    fell = tiny([0], lengths=[2], columns={"logp_engine": [LOG(0.9), LOG(0.3)], "logp_teacher": -1.0})
    slope = slopes(ref_kl(kl=1e-9), fell, [LOG(0.6), LOG(0.9)])
    assert slope[0] == pytest.approx(0.0, abs=1e-8)
    assert slope[1] == pytest.approx(3 * (1 + LOG(0.9)) / 2)
    assert ref_kl(teacher="privileged").plan().forwards == (Forward("logp_privileged", "privileged"),)


def test_trust_regions_go_by_the_teachers_sign() -> None:
    """verl: PPO's clip on the opinion; where the teacher agrees with the step, the bound holds."""
    batch = tiny([0, 0], columns={"logp_teacher": [-0.5, -3.0], "logp_old": -1.5})
    found = run(opd_clipped(), batch, [-1.0, -1.0])
    np.testing.assert_allclose(found.gradients["logp_new"][batch.token("mask")], [0.0, math.exp(0.5)])
    assert found.metrics["teacher/clip_fraction"] == 0.5
    assert found.metrics["teacher/opinion"] == pytest.approx((0.5 - 2.0) / 2)
    free = run(iw_opd(), tiny([0], columns={"logp_teacher": -0.5, "logp_engine": -1.5}), -1.0)
    assert free.metrics == {"teacher/opinion": 1.5, "loss/teacher": 1.5}
    wide = Gate(positive=(0.0, 2.0), negative=(0.0, 1.0))
    np.testing.assert_allclose(g(TeacherGradient(trust=wide), batch, [-1.0, -1.0]) * 2, [0.5 * math.exp(0.5), 0.0])
    geometric = TeacherGradient(ratio=GeoMean(low=0.1, high=0.1), student="old")
    np.testing.assert_allclose(g(geometric, batch, [-1.0, -1.0]) * 2, [0.0, -1.5 * math.exp(0.5)])


def test_several_teachers_each_have_their_domain() -> None:
    columns = {"logp_math": -1.0, "logp_code": -3.0}
    batch = tiny([0] * 3, lengths=[1, 2, 1], columns=columns, teacher=["math", "code", ""])
    settings = {"teachers": ("math", "code"), "by": "teacher"}
    kl = kd_estimator("k2", **settings)  # type: ignore[arg-type]
    np.testing.assert_allclose(slopes(kl, batch, -2.0) * 4, [-1.0, 1.0, 1.0, 0.0])
    assert kl.plan().forwards == (Forward("logp_code", "code"), Forward("logp_math", "math"))
    with pytest.raises(
        PlanError, match=r"no model 'code': it offers policy, math.*LearnerSettings\(anchors=\(..., Anchor\('code'"
    ):
        kl.plan(offers=Offers(models=("policy", "math")))
    assert replace(kl, brings=("logp_code",)).plan(offers=Offers(models=("policy", "math"))).columns == ("logp_code",)
    teachers = Teachers(("math", "code"), by="teacher")
    np.testing.assert_allclose(g(TeacherGradient(teachers=teachers, ratio=Ratio("none")), batch, -2.0) * 3, [1, -1, -1, 0])
    drawn = batch.with_tokens(TokenColumn("logp_engine", spread(batch, -2.5)))
    np.testing.assert_allclose(-slopes(opd(**settings), drawn, -2.5) * 4, [1.5, -0.5, -0.5, 0.0])  # type: ignore[arg-type]
    assert (TeacherGradient(teachers=teachers).sparse, TeacherGradient().sparse) == (True, False)
    assert (TeacherKl(teachers=teachers).sparse, TeacherKl(teachers=teachers).rollout_columns) == (True, ("teacher",))
    assert TeacherGradient(teachers=teachers).rollout_columns == ("teacher",)
    strange = batch.with_rollouts(teacher=np.array(["math", "music", "code"]))
    with pytest.raises(DataError, match=r"teacher='music', which is no teacher; they are math, code"):
        run(kl, strange, -2.0)


def test_several_teachers_keep_the_laws(monkeypatch: pytest.MonkeyPatch) -> None:
    rollouts = {"teacher": ["math", "code", "", "math"]}
    settings = {"teachers": ("math", "code"), "by": "teacher"}
    for objective in (opd(discount=0.3, **settings), kd_estimator("rk3", **settings)):  # type: ignore[arg-type]
        check_mixed(monkeypatch, objective, attempts=rollouts)


def test_a_teacher_in_the_advantage(seeds: range) -> None:
    """slime, ROLL, rLLM: added to what the outcome gives; rLLM discounts before it clips."""
    columns = {"logp_teacher": [-0.5, -2.0, -1.0], "logp_old": -1.0}
    batch = tiny([1, 0], lengths=[2, 1], columns=columns)

    def tokens(**settings: Any) -> np.ndarray:
        objective = Objective(credit=(Center(), TeacherAdvantage(**settings)), policy=plain(), aggregate=SeqSum())
        made = objective.compile().credit(batch)
        np.testing.assert_allclose(made.rollout("advantage")[1], -0.5)
        return made.token("advantage")[batch.token("mask")]

    np.testing.assert_allclose(tokens(), [1.0, -0.5, -0.5])
    np.testing.assert_allclose(tokens(coef=0.1), [0.55, 0.4, -0.5])
    np.testing.assert_allclose(tokens(discount=0.2, bound=0.25), [0.75, 0.25, -0.5])
    equal = tiny([1, 0, 0], columns={"logp_teacher": -1.0, "logp_old": -1.0})
    same = grpo(kl=0.0)
    np.testing.assert_array_equal(
        slopes(opd_advantage(), equal), slopes(Objective(credit=same.credit, policy=same.policy, aggregate=Token()), equal)
    )
    metrics = Objective(credit=(Center(), TeacherAdvantage(coef=2.0)), policy=plain()).compile()
    metrics.credit(batch)
    assert metrics.metrics()["credit/teacher"] == pytest.approx(-1.0 / 3)
    assert check_term(TeacherAdvantage(discount=0.4, bound=1.0), seeds).passed


def test_nothing_to_teach_is_no_error() -> None:
    record = Objective(policy=plain()).scalarise.start(tiny([1.0], columns={"logp_teacher": -1.0, "logp_old": -1.0}))
    batch = record.batch.with_tokens(TokenColumn("mask", np.zeros(2, np.bool_)))
    empty = Objective(policy=plain()).scalarise.start(batch)
    made = TeacherAdvantage().apply(empty, {}, {})
    assert (made.advantage.tolist(), made.metrics["credit/teacher"]) == ([1.0], 0.0)


# ---- a few likely tokens ---------------------------------------------------------------------------------------------


def at(ids: list[int], sparse: SparseDivergence, logp: torch.Tensor | None = None) -> torch.Tensor:
    """The divergence of S from T at some tokens; the teacher's column holds -1 where there is none."""
    student = S.log() if logp is None else logp
    columns = {
        "teacher_ids": torch.tensor([ids], dtype=torch.float64),
        "teacher_logps": torch.tensor([[float(T[0, i].log()) if i >= 0 else -1e4 for i in ids]], dtype=torch.float64),
    }
    return TopKTeacher(sparse=sparse).of(student, torch.tensor([0]), {}, columns)


@pytest.mark.parametrize(
    ("direction", "expected"),
    [("forward", 0.239278), ("jsd", 0.055582), ("reverse", 0.218012), ("mixed", (0.239278 + 0.218012) / 2)],
)
def test_at_all_tokens_it_is_the_divergence(direction: str, expected: float) -> None:
    """TRL's SDPO numbers; the rest makes no difference where there is none, up to the tail's smallest mass."""
    for rest in ("ignore", "renormalise", "tail"):
        assert float(at([0, 1, 2], SparseDivergence(direction=direction, rest=rest))) == pytest.approx(expected, abs=2e-6)
        assert float(at([2, -1, 0, 1], SparseDivergence(direction=direction, rest=rest))) == pytest.approx(expected, abs=2e-6)
    assert float(Jsd("teacher").of(S.log(), torch.tensor([0]), {"teacher": T.log()}, {})) == pytest.approx(0.055582, abs=5e-7)


def test_what_becomes_of_the_rest() -> None:
    """Two of three tokens: nothing, one token more, made to add up, or the teacher's outside."""
    s, t = S[0].numpy(), T[0].numpy()
    few = [2, 0]
    forward = sum(t[i] * LOG(t[i] / s[i]) for i in few)
    assert float(at(few, SparseDivergence())) == pytest.approx(forward)
    assert float(at(few, SparseDivergence(rest="tail"))) == pytest.approx(forward + t[1] * LOG(t[1] / s[1]))
    ts, ss = t[few] / t[few].sum(), s[few] / s[few].sum()
    assert float(at(few, SparseDivergence(rest="renormalise"))) == pytest.approx((ts * np.log(ts / ss)).sum())
    reverse = sum(s[i] * LOG(s[i] / t[i]) for i in few)
    outside = s[1] * (LOG(s[1]) + 100)
    assert float(at(few, SparseDivergence(direction="reverse", rest="outside"))) == pytest.approx(reverse + outside)
    mixed = SparseDivergence(direction="mixed", weight=0.25, rest="outside")
    assert float(at(few, mixed)) == pytest.approx(0.25 * forward + 0.75 * (reverse + outside))
    floored = float(at([2, 1], SparseDivergence(floor=LOG(0.4))))
    assert floored == pytest.approx(0.5 * LOG(0.5 / 0.4) + 0.4 * LOG(0.4 / 0.4))


@pytest.mark.parametrize("rest", ["ignore", "tail", "renormalise"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "mixed", "jsd"])
def test_where_the_teacher_says_nothing_nothing_is_taught(direction: str, rest: str) -> None:
    z = torch.tensor([[0.3, -0.4, 0.2]], dtype=torch.float64, requires_grad=True)
    found = at([-1, -1], SparseDivergence(direction=direction, rest=rest), torch.log_softmax(z, 1))
    (slope,) = torch.autograd.grad(found.sum(), z)
    assert float(found.detach()) == pytest.approx(0.0, abs=1e-12)
    assert not slope.any()


@pytest.mark.parametrize("direction", ["forward", "reverse", "mixed", "jsd"])
def test_its_gradient_is_that_of_the_divergence(direction: str) -> None:
    z = torch.tensor([[0.3, -0.4, 0.2]], dtype=torch.float64, requires_grad=True)
    logp = torch.log_softmax(z, 1)
    few = at([2, 0, 1], SparseDivergence(direction=direction, weight=0.3), logp)
    (found,) = torch.autograd.grad(few.sum(), z, retain_graph=True)
    kls = [FullKl("teacher", under=u).of(logp, torch.tensor([0]), {"teacher": T.log()}, {}) for u in ("model", "policy")]
    whole = {"forward": kls[0], "reverse": kls[1], "mixed": 0.3 * kls[0] + 0.7 * kls[1]}
    jsd = Jsd("teacher", beta=0.3).of(logp, torch.tensor([0]), {"teacher": T.log()}, {})
    (expected,) = torch.autograd.grad(whole.get(direction, jsd).sum(), z)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), atol=1e-12)


@pytest.mark.parametrize(("support", "few"), [("policy", [0, 1]), ("model", [2, 0])])
def test_another_models_distribution_at_the_likely_tokens(support: str, few: list[int]) -> None:
    sparse = SparseDivergence(direction="jsd", rest="renormalise")
    stat = TopKModel("teacher", k=2, support=support, sparse=sparse)
    found = stat.of(S.log(), torch.tensor([0]), {"teacher": T.log()}, {})
    if support == "policy":
        assert float(found) == pytest.approx(float(at(few, sparse)))
    else:
        assert float(found) in (pytest.approx(float(at([2, 0], sparse))), pytest.approx(float(at([2, 1], sparse))))
    assert (stat.kind, stat.models) == ("topk_jsd_teacher", ("teacher",))
    assert TopKModel(k=50).of(S.log(), torch.tensor([0]), {"teacher": T.log()}, {}).shape == (1,)


def test_bounds_and_corrections_of_a_divergence(seeds: range) -> None:
    """verl clamps a token's to [0, 10]; SDFT multiplies by the capped ratio to the policy that drew."""
    batch = tiny([0, 0, 0], columns={"logp_old": [-1.0, -2.0, -1.0]})
    stat = FullKl("teacher")
    clamped = Objective(terms=(Distill(stat, low=0.0, high=10.0),), aggregate=SeqSum())
    found = run(clamped, batch, -1.0, kl_pi_teacher=[3.0, -0.5, 12.0])
    assert found.loss * 3 == pytest.approx(13.0)
    np.testing.assert_allclose(found.gradients["kl_pi_teacher"][batch.token("mask")] * 3, [1, 0, 0])
    assert found.metrics["kl_pi_teacher/value"] == pytest.approx(14.5 / 3)
    corrected = Objective(terms=(Distill(stat, correct="old"),), aggregate=SeqSum())
    weighed = run(corrected, batch, [-1.5, -1.0, -1.0], kl_pi_teacher=1.0)
    np.testing.assert_allclose(weighed.gradients["kl_pi_teacher"][batch.token("mask")] * 3, [math.exp(-0.5), 2.0, 1.0])
    assert not weighed.gradients["logp_new"].any()
    assert check_term(Distill(Jsd("teacher"), correct="old", high=0.8), seeds).passed[-1] == "gradient"
    assert Distill().needs == ("teacher_ids", "teacher_logps")


# ---- methods ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "objective",
    [
        opd(),
        opd(discount=0.5, bound=0.7),
        opd_clipped(),
        ref_kl(),
        iw_opd(),
        opd_advantage(0.3),
        kd_estimator(),
        kd_topk(),
        kd_topk("jsd", rest="tail"),
        sdpo(),
        sdpo(0.4),
        sdft(),
        Objective(terms=(TeacherGradient(weights=(Truncate(normalise=True),), trust=MinClip()),)),
        Objective(terms=(TeacherGradient(ratio=Ratio("sequence_mean"), trust=WeightClip()),)),
    ],
)
def test_methods_keep_the_laws(objective: Objective, seeds: range) -> None:
    assert len(check_objective(objective, seeds).passed) == 9


def test_gkd_is_a_divergence_over_the_vocabulary() -> None:
    assert gkd(0.3).plan().vocab == (Jsd("teacher", beta=0.3),)
    assert kd_topk().plan().columns == ("teacher_ids", "teacher_logps")
    asked = kd_topk("reverse", k=5).plan(offers=Offers(models=("policy", "teacher")))
    assert (asked.columns, [s.name for s in asked.vocab]) == ((), ["topk_reverse_teacher"])
    batch = tiny([0, 0], lengths=[1, 3])
    found = run(gkd(), batch, -1.0, jsd_teacher=[4.0, 1.0, 1.0, 2.0])
    assert found.loss == pytest.approx(2.0)


def test_the_same_policy_under_a_privileged_context_teaches_it() -> None:
    """TRL: ``sg(lp - lp_T) lp`` times the capped ratio; the share of GRPO beside it."""
    columns = {"logp_privileged": [-0.5, -1.5], "logp_old": [-1.0, -3.0]}
    batch = tiny([1, 0], columns=columns)
    alone = slopes(sdpo(), batch, [-1.0, -1.0])
    np.testing.assert_allclose(alone * 2, [-0.5, 2.0 * 0.5])
    half = slopes(sdpo(0.5), batch, [-1.0, -1.0])
    other = Objective(credit=grpo().credit, policy=PolicyGradient(), aggregate=SeqMean())
    np.testing.assert_allclose(half, (alone + slopes(other, batch, [-1.0, -1.0])) / 2)
    assert not sdpo().uses_reward
    assert sdpo().plan().forwards == (Forward("logp_old"), Forward("logp_privileged", "privileged"))
    assert sdft(0.3).plan().columns == ("privileged_ids", "privileged_logps")
    asked = sdft(0.3, k=5).plan(offers=Offers(models=("policy", "privileged")))
    sparse = SparseDivergence(direction="jsd", weight=0.3, rest="renormalise")
    assert (asked.columns, asked.vocab) == ((), (TopKModel("privileged", k=5, sparse=sparse),))


def test_verls_estimators_are_bounded() -> None:
    batch = tiny([0, 0], columns={"logp_teacher": [-1.0, -9.0]})
    np.testing.assert_allclose(slopes(kd_estimator("k2"), batch, -1.5) * 2, [-0.5, 0.0])
    assert isinstance(kd_estimator().terms[0], Kl)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Teachers(()), "at least one"),
        (lambda: Teachers(("a", "a"), by="x"), "differ from one another"),
        (lambda: Teachers(("a", "b")), "say with by="),
        (lambda: TeacherGradient(student="teacher"), "student"),
        (lambda: TeacherGradient(discount=1.5), "worth of the next token"),
        (lambda: TeacherGradient(bound=0.0), "leaves nothing"),
        (lambda: TeacherGradient(prefix=-1.0), "weight of 0 or more"),
        (lambda: TeacherGradient(prefix=0.5), "not there yet"),
        (lambda: TeacherGradient(discount=0.5), "not there yet"),
        (lambda: TeacherAdvantage(coef=0.0), "leads away"),
        (lambda: TeacherAdvantage(teacher="old"), "the gap would be 0"),
        (lambda: TeacherAdvantage(bound=-1.0), "leaves nothing"),
        (lambda: SparseDivergence(direction="backward"), "direction of a divergence"),
        (lambda: SparseDivergence(rest="drop"), "rest of a distribution"),
        (lambda: SparseDivergence(weight=1.0), "use a number between"),
        (lambda: SparseDivergence(rest="outside"), "has no use"),
        (lambda: SparseDivergence(floor=0.0), "negative"),
        (lambda: SparseDivergence(outside=-INF), "negative"),
        (lambda: TopKModel(k=0), "one token or more"),
        (lambda: TopKModel(support="teacher"), "support of a divergence"),
        (lambda: Distill(low=0.5), "must lie inside"),
        (lambda: Distill(high=-1.0, low=-1.0), "must lie inside"),
        (lambda: Distill(cap=0.0), "leaves nothing"),
    ],
)
def test_bad_settings_are_named(make: Callable[[], object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make()
