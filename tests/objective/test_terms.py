"""Divergence, entropy, likelihood: values, gradients, and the KL laws."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from objective_batches import run, slopes, tiny

from assay.core.batch import Batch
from assay.core.errors import ConfigError, PlanError
from assay.core.protocols import State
from assay.objective import (
    AdaptiveKl,
    Center,
    Entropy,
    Kl,
    LossTerm,
    MinClip,
    Nll,
    Objective,
    PolicyGradient,
    SeqMean,
    SeqSum,
    Token,
    Truncate,
)
from assay.objective.loss.base import View
from assay.objective.loss.hybrid import Confidence
from assay.objective.program import Program
from assay.objective.reducers import Partials
from assay.testing.objective import check_term

LOG = math.log


def kl(estimator: str, **settings: Any) -> Kl:
    """k1 stands on samples of others alone."""
    return Kl(estimator, streams=("offline",) if estimator == "k1" else ("on_policy",), **settings)


def value(estimator: str, p: float, ref: float, **settings: Any) -> float:
    term = kl(estimator, **settings)
    batch = tiny([0], columns={"logp_ref": LOG(ref), "logp_old": LOG(p)}, streams=term.streams)
    return run(Objective(terms=(term,)), batch, LOG(p)).loss


@pytest.mark.parametrize(
    ("p", "ref", "k1", "k2", "k3"), [(0.5, 0.25, 0.6931, 0.2402, 0.1931), (0.25, 0.5, -0.6931, 0.2402, 0.3069)]
)
def test_estimates(p: float, ref: float, k1: float, k2: float, k3: float) -> None:
    expected = {"k1": k1, "k2": k2, "k3": k3, "abs": abs(k1), "rk3": k3, "k1+": k1, "k3+": k3, "abs+": abs(k1)}
    assert {e: value(e, p, ref) for e in expected} == pytest.approx(expected, abs=5e-5)
    u = ref / p
    assert value("fk3", p, ref) == pytest.approx(u * LOG(u) - u + 1)


def expectation(estimator: str, p: float, q: float, old: float | None = None, **settings: Any) -> tuple[float, float]:
    """``E_old[estimate]`` and the gradient of ``sum_x old(x) estimate(x)`` at logit ``a`` of ``P = sigmoid(a)``, by the program
    itself; ``old`` is ``p`` unless another policy drew the samples."""
    drawn = p if old is None else old
    a = torch.tensor(LOG(p / (1 - p)), dtype=torch.float64, requires_grad=True)
    logp = torch.stack([torch.nn.functional.logsigmoid(a), torch.nn.functional.logsigmoid(-a)])
    term = kl(estimator, **settings)
    columns = {"logp_ref": [LOG(q), LOG(1 - q)], "logp_old": [LOG(drawn), LOG(1 - drawn)]}
    batch = tiny([0, 0], columns=columns, streams=term.streams * 2)
    program = Objective(terms=(term,), aggregate=SeqSum()).compile()
    ready = program.prepare(batch)
    total, weights = torch.zeros((), dtype=torch.float64), [drawn, 1 - drawn]
    for row in range(2):
        live = torch.zeros(2, dtype=torch.float64).index_add(0, torch.tensor([1]), logp[row : row + 1])
        share, _ = program.micro(ready.micro([row]), {"logp_new": live})
        total = total + 2 * weights[row] * share
    total.backward()
    assert a.grad is not None
    return float(total.detach()), float(a.grad)


def divergence(p: float, q: float, forward: bool) -> tuple[float, float]:
    """KL(P||Q), or KL(Q||P), and its gradient at the logit of P."""
    a = torch.tensor(LOG(p / (1 - p)), dtype=torch.float64, requires_grad=True)
    pi = torch.stack([torch.sigmoid(a), torch.sigmoid(-a)])
    ref = torch.tensor([q, 1 - q], dtype=torch.float64)
    kl = (ref * (ref / pi).log()).sum() if forward else (pi * (pi / ref).log()).sum()
    kl.backward()
    assert a.grad is not None
    return float(kl.detach()), float(a.grad)


REVERSE, FORWARD = 0.274653, 0.25


@pytest.mark.parametrize(
    ("estimator", "mean", "slope"),
    [
        ("k1", 0.14384, 0.0),
        ("k2", 0.16121, REVERSE),
        ("k3", 0.14384, FORWARD),
        ("rk3", 0.14384, REVERSE),
        ("fk3", 0.130812, FORWARD),
        ("k1+", 0.14384, REVERSE),
        ("k3+", 0.14384, REVERSE),
        ("abs+", 0.549306, REVERSE),
    ],
)
def test_the_kl_laws_by_enumeration(estimator: str, mean: float, slope: float) -> None:
    """P = [.5, .5], Q = [.25, .75]: what an estimator is worth on average, and along what its gradient pulls."""
    found = expectation(estimator, 0.5, 0.25)
    assert found == (pytest.approx(mean, abs=5e-6), pytest.approx(slope, abs=1e-6))
    assert divergence(0.5, 0.25, forward=False) == (pytest.approx(0.14384, abs=5e-6), pytest.approx(REVERSE, abs=1e-6))
    assert divergence(0.5, 0.25, forward=True) == (pytest.approx(0.130812, abs=5e-7), pytest.approx(FORWARD))


@pytest.mark.parametrize("p", [0.1, 0.35, 0.8])
@pytest.mark.parametrize("old", [0.2, 0.6])
@pytest.mark.parametrize(("estimator", "forward"), [("rk3", False), ("fk3", True)])
def test_a_live_ratio_makes_the_gradient_right_off_policy(estimator: str, forward: bool, old: float, p: float) -> None:
    exact = divergence(p, 0.25, forward)
    assert expectation(estimator, p, 0.25, old) == (pytest.approx(exact[0]), pytest.approx(exact[1]))
    assert expectation("k3+", p, 0.25, old, ratio="old")[1] == pytest.approx(divergence(p, 0.25, forward=False)[1])
    assert expectation("k3", p, 0.25, old)[1] != pytest.approx(divergence(p, 0.25, forward=True)[1], abs=1e-3)


def test_a_ratio_to_itself_is_one_and_brings_its_gradient() -> None:
    """NeMo-RL's form: right on the policy's own samples, whatever was old."""
    assert expectation("rk3", 0.5, 0.25, ratio="self") == (pytest.approx(0.14384, abs=5e-6), pytest.approx(REVERSE, abs=1e-6))
    objective = Objective(terms=(Kl("rk3", ratio="self"),))
    assert [f.column for f in objective.plan().forwards] == ["logp_ref"]
    assert [f.column for f in Objective(terms=(Kl("k3+", ratio="engine"),)).plan().forwards] == ["logp_ref"]


def test_bounds_of_estimates_and_ratios() -> None:
    """verl, NeMo-RL, OpenRLHF: ``d`` within +-20, an estimate within +-10, a ratio up to 10."""
    batch = tiny([0, 0, 0], columns={"logp_ref": [-1.0, -4.0, -31.0], "logp_old": [-4.0, -1.0, -1.0]})
    one = Objective(terms=(Kl("k3", cap=10.0),), aggregate=SeqSum())
    found = run(one, batch, [-4.0, -1.0, -1.0])
    estimates = [math.exp(3) - 4, math.exp(-3) + 2, 10.0]
    assert found.loss == pytest.approx((10.0 + estimates[1] + 10.0) / 3)
    np.testing.assert_allclose(found.gradients["logp_new"][batch.token("mask")] * 3, [0, 1 - math.exp(-3), 0])
    assert found.metrics["kl/kl_ref"] == pytest.approx((estimates[0] + estimates[1] + 19 + math.exp(-20)) / 3)
    far = Objective(terms=(Kl("rk3", clamp=2.5),), aggregate=SeqSum())
    assert not slopes(far, batch, [-4.0, -1.0, -1.0]).any()  # nor through the ratio
    straight = Objective(terms=(Kl("k3+", ratio="old", ratio_cap=2.0, cap=1.0),), aggregate=SeqSum())
    moved = run(straight, batch, [-3.0, -1.0, -1.0])
    np.testing.assert_allclose(moved.gradients["logp_new"][batch.token("mask")] * 3, [2.0 * -2.0, 3.0, 0.0])
    assert moved.loss == pytest.approx(1.0)
    capped = Objective(terms=(Kl("rk3", ratio_cap=2.0),), aggregate=SeqSum())
    np.testing.assert_allclose(
        run(capped, batch, [-3.0, -1.0, -1.0]).loss * 3, 2 * (math.exp(2) - 3) + estimates[1] + 19, rtol=1e-6
    )


def test_absolute_values_push_by_their_sign() -> None:
    batch = tiny([0, 0, 0], columns={"logp_ref": [-1.0, -2.0, -3.0]})
    np.testing.assert_allclose(slopes(Objective(terms=(Kl("abs"),), aggregate=SeqSum()), batch, -2.0) * 3, [-1, 0, 1])


def test_the_unbiased_estimator_beside_ppo() -> None:
    """TRL's bias-corrected KL on two rows of 4 and 2 tokens, clip 0.2, beta 0.1: -0.448735."""
    old = np.array([-1, -0.5, -2, -0.7, -0.3, -1.2])
    new = old + np.array([0.1, -0.3, 0.2, 0.04, -0.5, 0.6])
    batch = tiny([1.0, -0.5], lengths=[4, 2], columns={"logp_old": old, "logp_ref": old - 0.3})
    objective = Objective(policy=PolicyGradient(trust=MinClip()), aggregate=Token(), terms=(Kl("rk3", coef=0.1),))
    assert run(objective, batch, new).loss == pytest.approx(-0.448735, abs=1e-6)


@pytest.mark.parametrize("estimator", ["k2", "k3", "rk3", "fk3", "k1+", "k3+", "abs+"])
def test_equal_policies_have_no_divergence_and_no_gradient(estimator: str) -> None:
    """Right behind a reset of the reference (ProRL) nothing pulls."""
    batch = tiny([0, 0], lengths=[2, 3], columns={"logp_ref": -1.5, "logp_old": -1.5})
    outcome = run(Objective(terms=(Kl(estimator),)), batch, -1.5)
    assert outcome.loss == 0
    assert not outcome.gradients["logp_new"].any()
    assert outcome.metrics == {"kl/kl_ref": 0.0, "loss/kl": 0.0}


def test_k1_as_a_loss_is_refused() -> None:
    for streams in ((), ("on_policy",), ("offline", "replay")):
        with pytest.raises(PlanError, match="KlInReward"):
            Kl("k1", streams=streams)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Kl("kk3"), "did you mean"),
        (lambda: Kl("rk3", anchor="old"), "own anchor"),
        (lambda: Kl("k3+", anchor="engine", ratio="engine"), "own anchor"),
        (lambda: Kl("k3", ratio="old"), "has no ratio"),
        (lambda: Kl("k2", ratio_cap=3.0), "has no ratio"),
        (lambda: Kl("k3+", ratio_cap=3.0), "bounds no ratio"),
        (lambda: Kl(clamp=0.0), "clamp=0.0 leaves nothing"),
        (lambda: Kl(cap=-1.0), "cap=-1.0 leaves nothing"),
        (lambda: Kl("rk3", ratio_cap=0.0), "ratio_cap=0.0 leaves nothing"),
    ],
)
def test_what_makes_no_sense_is_named(make: Callable[[], Kl], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make()


@pytest.mark.parametrize(
    "term",
    [Kl("abs"), Kl("rk3", cap=0.7, clamp=1.0), Kl("fk3", ratio="engine"), Kl("k3+", ratio="old", ratio_cap=2.0), Kl("k1+")],
)
def test_estimators_keep_the_laws(term: Kl, seeds: range) -> None:
    assert check_term(term, seeds).passed[-1] == "gradient"


def test_k2_to_a_teacher_has_gradient_d() -> None:
    batch = tiny([0], lengths=[2], columns={"logp_teacher": [-1.0, -2.0]})
    objective = Objective(terms=(Kl("k2", anchor="teacher"),), aggregate=SeqSum())
    assert [f.model for f in objective.plan().forwards] == ["teacher"]
    np.testing.assert_allclose(slopes(objective, batch, [-0.5, -0.5]), [0.5, 1.5])


def far_from_the_reference(streams: list[str] | None = None, ref: float | list[float] = -9.0) -> Batch:
    return tiny([0] * 256, lengths=[1] * 256, columns={"logp_old": 0.0, "logp_ref": ref}, streams=streams)


def test_coefficient_follows_its_target() -> None:
    program = Objective(terms=(AdaptiveKl("k2", coef=0.2, target=6.0, horizon=10000.0),)).compile()
    program.credit(far_from_the_reference())
    assert program.state_dict()["kl"]["coef"] == pytest.approx(0.201024)
    program.credit(far_from_the_reference(ref=0.0))
    assert program.state_dict()["kl"]["coef"] == pytest.approx(0.201024 * (1 - 0.2 * 0.0256))
    for bad in ({"target": 0.0}, {"horizon": -1.0}):
        with pytest.raises(ConfigError, match="positive"):
            AdaptiveKl("k2", **bad)


def test_a_batch_is_judged_by_the_coefficient_from_before_it() -> None:
    objective, batch = Objective(terms=(AdaptiveKl("k2", coef=0.2),)), far_from_the_reference()

    def loss(program: Program, ready: Batch) -> float:
        share, _ = program.micro(program.prepare(ready), {"logp_new": torch.zeros(512, dtype=torch.float64)})
        return float(share)

    program = objective.compile()
    for coef in (0.2, 0.201024, 0.201024 * 1.00512):
        ready = program.credit(batch)
        assert program.metrics()["coef/kl"] == pytest.approx(coef)
        assert [loss(program, ready), loss(program, ready)] == pytest.approx([coef * 81 / 2] * 2)  # each step of the batch
        again = objective.compile()
        again.load_state_dict(json.loads(json.dumps(program.state_dict())))
        assert loss(again, ready) == loss(program, ready)  # saved between the steps of a batch


def test_the_coefficient_is_moved_by_its_own_streams() -> None:
    """Expert rows, which sit on the reference, say nothing about how far the policy has gone."""
    streams, ref = ["on_policy"] * 128 + ["expert"] * 128, [-9.0] * 128 + [0.0] * 128
    program = Objective(terms=(AdaptiveKl("k2", coef=0.2),)).compile()
    program.credit(far_from_the_reference(streams, ref))
    assert program.state_dict()["kl"]["coef"] == pytest.approx(0.2 * (1 + 0.2 * 128 / 10000))
    program.credit(far_from_the_reference(["expert"] * 256))
    assert program.state_dict()["kl"]["coef"] == pytest.approx(0.2 * (1 + 0.2 * 128 / 10000))  # nothing measured, nothing moved


def test_one_batch_moves_the_coefficient_by_a_fifth_at_most() -> None:
    program = Objective(terms=(AdaptiveKl("k2", coef=0.2, horizon=8.0),)).compile()
    program.credit(far_from_the_reference(ref=0.0))
    assert program.state_dict()["kl"]["coef"] == pytest.approx(0.16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Annealed(Nll):
    """A coefficient that is halved after each batch: a state that no statistic moves."""

    def init(self) -> State:
        return {"coef": self.coef}

    def advance(self, state: State, stats: Partials) -> State:
        assert not stats
        return {"coef": state["coef"] / 2}

    def factor(self, state: State) -> float:
        return float(state["coef"])


def test_a_state_may_follow_the_batches_alone() -> None:
    objective, batch = Objective(terms=(Annealed(coef=4.0),)), tiny([0])
    program, live = objective.compile(), {"logp_new": torch.full((2,), -1.0, dtype=torch.float64)}
    losses = [float(program.micro(program.prepare(program.credit(batch)), live)[0]) for _ in range(3)]
    assert losses == [4.0, 2.0, 1.0]
    assert objective.plan().reductions == ("aggregate/kept/all",)
    assert Nll().advance({"kept": 1.0}, {}) == {"kept": 1.0}


def test_entropy_bonus_of_a_bernoulli() -> None:
    p = 0.3
    a = torch.tensor(LOG(p / (1 - p)), dtype=torch.float64, requires_grad=True)
    pi = torch.stack([torch.sigmoid(a), torch.sigmoid(-a)])
    entropy = -(pi * pi.log()).sum()
    batch = tiny([0])
    program = Objective(terms=(Entropy(coef=0.5),)).compile()
    assert program.plan.live == ("logp_new", "entropy")
    live = {"logp_new": torch.zeros(2, dtype=torch.float64), "entropy": torch.stack([torch.zeros_like(entropy), entropy])}
    loss, metrics = program.micro(program.prepare(batch), live)
    loss.backward()
    assert a.grad is not None
    assert float(a.grad) == pytest.approx(0.5 * p * (1 - p) * LOG(p / (1 - p)))
    assert metrics["entropy/entropy_live"] == pytest.approx(float(entropy.detach()))


def test_likelihood() -> None:
    batch = tiny([0, 0], lengths=[1, 3], streams=["expert", "on_policy"])
    assert run(Objective(terms=(Nll(),), aggregate=Token()), batch, [-1, -2, -3, -4]).loss == pytest.approx(2.5)
    assert run(Objective(terms=(Nll(),), aggregate=SeqMean()), batch, [-1, -2, -3, -4]).loss == pytest.approx(2.0)


def test_weighted_likelihood(seeds: range) -> None:
    """By the reward, by the advantage, by a column, by the policy's own probability; nothing is made less likely."""
    batch = tiny([1.0, 0.5, 0.0], lengths=[1, 2, 1], quality=[2.0, -1.0, 0.5])
    logp = [-1.0, -2.0, -3.0, -4.0]

    def weights(term: Nll, **parts: Any) -> np.ndarray:
        return -slopes(Objective(terms=(term,), aggregate=SeqSum(), **parts), batch, logp) * 3

    np.testing.assert_allclose(weights(Nll(by="reward")), [1, 0.5, 0.5, 0])
    np.testing.assert_allclose(weights(Nll(by="advantage"), credit=(Center(),)), [0.5, 0, 0, 0])
    np.testing.assert_allclose(weights(Nll(by="quality")), [2, 0, 0, 0.5])
    np.testing.assert_allclose(weights(Nll(weights=(Confidence(0.1),))), np.maximum(np.exp(logp), 0.1))
    assert (Nll(by="quality").rollout_columns, Nll(by="reward").rollout_columns) == (("quality",), ())
    assert (Nll(by="reward").reward, Nll(by="quality").reward, Nll(by="reward").sparse, Nll().sparse) == (
        True,
        False,
        True,
        False,
    )
    assert Nll(weights=(Truncate(normalise=True),)).needs == ("logp_old", "logp_engine")
    assert Nll(weights=(Truncate(normalise=True),)).reduces
    for term in (Nll(by="reward"), Nll(by="advantage"), Nll(weights=(Confidence(), Truncate(normalise=True)))):
        assert check_term(term, seeds).passed[-1] == "gradient"


def test_a_term_without_a_loss_says_so() -> None:
    with pytest.raises(TypeError, match="abstract"):
        LossTerm()  # type: ignore[abstract]
    batch = tiny([3.0, 4.0], lengths=[1, 2])
    view = View(batch, {"logp_new": torch.zeros(5, dtype=torch.float64)}, np.array([1, 4]), "x")
    assert view.per_rollout("components/correct").tolist() == [3.0, 4.0]
    assert Nll().report(view) == {}
    assert (Nll().reports, Kl("k2").reports) == (False, True)
