"""Divergence, entropy, likelihood: values, gradients, and the KL laws."""

import json
import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from objective_batches import run, slopes, tiny

from assay.core.batch import Batch
from assay.core.errors import ConfigError, PlanError
from assay.core.protocols import State
from assay.objective import AdaptiveKl, Entropy, Kl, LossTerm, Nll, Objective, SeqMean, SeqSum, Token
from assay.objective.loss.base import View
from assay.objective.program import Program
from assay.objective.reduce import Partials

LOG = math.log


def value(estimator: str, p: float, ref: float) -> float:
    batch = tiny([0], columns={"logp_ref": LOG(ref), "logp_old": LOG(p)})
    return run(Objective(terms=(Kl(estimator),)), batch, LOG(p)).loss


@pytest.mark.parametrize(("p", "ref", "k2", "k3"), [(0.5, 0.25, 0.2402, 0.1931), (0.25, 0.5, 0.2402, 0.3069)])
def test_estimates(p: float, ref: float, k2: float, k3: float) -> None:
    assert value("k2", p, ref) == pytest.approx(k2, abs=5e-5)
    assert value("k3", p, ref) == pytest.approx(k3, abs=5e-5)
    assert value("rk3", p, ref) == pytest.approx(k3, abs=5e-5)


def expectation(estimator: str, p: float, q: float, ratio: float | None = None) -> tuple[float, float]:
    """``E_P[estimate]`` and the gradient of ``sum_x sg(P(x)) estimate(x)`` at logit ``a`` of ``P = sigmoid(a)``, by the
    program itself."""
    a = torch.tensor(LOG(p / (1 - p)), dtype=torch.float64, requires_grad=True)
    logp = torch.stack([torch.nn.functional.logsigmoid(a), torch.nn.functional.logsigmoid(-a)])
    ref = [LOG(q), LOG(1 - q)]
    batch = tiny([0, 0], columns={"logp_ref": ref, "logp_old": logp.detach().numpy()})
    program = Objective(terms=(Kl(estimator),), aggregate=SeqSum()).compile()
    ready = program.prepare(batch)
    total, weights = torch.zeros((), dtype=torch.float64), [p, 1 - p]
    for row in range(2):
        live = torch.zeros(2, dtype=torch.float64).index_add(0, torch.tensor([1]), logp[row : row + 1])
        share, _ = program.micro(ready.micro([row]), {"logp_new": live})
        total = total + 2 * weights[row] * share
    total.backward()
    assert a.grad is not None
    return float(total.detach()), float(a.grad)


def divergence_slope(p: float, q: float, forward: bool) -> float:
    a = torch.tensor(LOG(p / (1 - p)), dtype=torch.float64, requires_grad=True)
    pi = torch.stack([torch.sigmoid(a), torch.sigmoid(-a)])
    ref = torch.tensor([q, 1 - q], dtype=torch.float64)
    kl = (ref * (ref / pi).log()).sum() if forward else (pi * (pi / ref).log()).sum()
    kl.backward()
    assert a.grad is not None
    return float(a.grad)


def test_as_losses_k2_and_rk3_pull_along_reverse_and_k3_along_forward_kl() -> None:
    p, q = 0.5, 0.25
    (v2, g2), (v3, g3), (vr, gr) = (expectation(e, p, q) for e in ("k2", "k3", "rk3"))
    assert (v2, v3, vr) == (pytest.approx(0.16121, abs=5e-6), pytest.approx(0.14384, abs=5e-6), pytest.approx(0.14384, abs=5e-6))
    assert (g2, g3, gr) == (pytest.approx(0.274653, abs=1e-6), pytest.approx(0.25, abs=1e-6), pytest.approx(0.274653, abs=1e-6))
    assert g2 == pytest.approx(divergence_slope(p, q, forward=False))
    assert g3 == pytest.approx(divergence_slope(p, q, forward=True))


@pytest.mark.parametrize("estimator", ["k2", "k3", "rk3"])
def test_equal_policies_have_no_divergence_and_no_gradient(estimator: str) -> None:
    batch = tiny([0, 0], lengths=[2, 3], columns={"logp_ref": -1.5, "logp_old": -1.5})
    outcome = run(Objective(terms=(Kl(estimator),)), batch, -1.5)
    assert outcome.loss == 0
    assert not outcome.gradients["logp_new"].any()
    assert outcome.metrics == {"kl/kl_ref": 0.0, "loss/kl": 0.0}


def test_k1_as_a_loss_is_refused() -> None:
    with pytest.raises(PlanError, match="KlInReward"):
        Kl("k1")
    with pytest.raises(ConfigError, match="did you mean 'k3'"):
        Kl("kk3")
    with pytest.raises(ConfigError, match="own anchor"):
        Kl("rk3", anchor="old")


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


def test_a_term_without_a_loss_says_so() -> None:
    with pytest.raises(TypeError, match="abstract"):
        LossTerm()  # type: ignore[abstract]
    batch = tiny([3.0, 4.0], lengths=[1, 2])
    view = View(batch, {"logp_new": torch.zeros(5, dtype=torch.float64)}, np.array([1, 4]), "x")
    assert view.per_rollout("components/correct").tolist() == [3.0, 4.0]
    assert Nll().report(view) == {}
    assert (Nll().reports, Kl("k2").reports) == (False, True)
