"""Numbers by hand: ensembles, models, meta steps, imitation, feasibility, normalised advantages."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from test_control_parts import Fixed, nets, rows

from assay.cli import main
from assay.core import ConfigError, from_dict, to_dict
from assay_control import (
    AWAC,
    AWR,
    BC,
    EDAC,
    FISOR,
    GGDSAC,
    IQL,
    MBPO,
    MOORL,
    MOPO,
    RO2O,
    SAC,
    AdvantageWeighted,
    AlternateBlocks,
    BootstrappedReturn,
    Box,
    ContrastiveQ,
    ControlRun,
    DataThenHalf,
    Evenly,
    ExpertHalf,
    FeasibleClone,
    FeasibleValue,
    FitFeasible,
    GeneralisedGaussian,
    GradientDiversity,
    HazardPoint,
    ImaginedRows,
    ModelLikelihood,
    NearExpert,
    Net,
    Noise,
    Pendulum,
    PerturbedPessimism,
    PerturbedPolicy,
    PerturbedValue,
    PolicyNoise,
    PolicyNoisePenalised,
    ReBRAC,
    ReCOIL,
    Reptile,
    Session,
    ShapeFit,
    VaGraM,
    ValueGradientModel,
    dataset,
    inverse_variance_weights,
    normalised_awac,
    normalised_awr,
    rank_correlation,
    train,
    transitions,
)
from assay_control.parts.buffer import Buffer
from assay_control.parts.imitation import corrected_variance, generalised_gaussian_nll
from assay_control.run_folders import state_digest


def with_columns(**columns: Any) -> Any:
    return rows(columns=columns)


# ---- normalised advantages ----------------------------------------------------------------------------------------------


def test_normalised_weights_do_not_depend_on_the_size_of_rewards() -> None:
    """Scaling and shifting all advantages changes no weight; without ``normalise`` it does."""
    held = nets(IQL(width=8))
    values = torch.tensor([1.0, 2.0, 4.0, 9.0])
    held.v = lambda o, averaged=False: torch.zeros(4)  # type: ignore[method-assign]

    def loss(q: torch.Tensor, normalise: bool) -> float:
        held.least_q = lambda *a, **k: q  # type: ignore[method-assign]
        return float(AdvantageWeighted(normalise=normalise)(rows(), held, None, Noise(0, 0), None).detach())

    assert loss(values, True) == pytest.approx(loss(100 * values - 7, True), rel=1e-4)
    assert loss(values, False) != pytest.approx(loss(2 * values, False), rel=1e-2)


def test_a_cut_at_the_horizon_bootstraps_a_return() -> None:
    batch = with_columns(
        ahead=torch.tensor([1.0, 2.0, 1.0, 1.0]), cut=torch.tensor([True, True, False, False]), end_observation=torch.zeros(4, 2)
    )
    made = BootstrappedReturn()(batch, Fixed(v=torch.full((4,), 8.0)), Noise(0, 0), 0.5)
    assert made.tolist() == [2.5 + 4.0, 2.5 + 2.0, 2.5, 2.5]


def test_settings_of_before_stay_what_they_were() -> None:
    """A file without ``normalise`` is the method as it was, and the digest of such a run is unchanged."""
    for plain, normal in ((AWR(), normalised_awr()), (AWAC(), normalised_awac())):
        assert "normalise" not in to_dict(plain) and normal.normalise and from_dict(type(normal), to_dict(normal)) == normal
    assert "judged" not in to_dict(ControlRun(method=AWR(), world=Pendulum()))
    assert not {"transform", "actor", "reptile"} & set(to_dict(IQL().compose()))
    assert "project" not in to_dict(IQL().compose().nets["q"])


# ---- ensembles ----------------------------------------------------------------------------------------------------------


def test_critics_that_agree_are_alike() -> None:
    """EDAC's ``GradientDiversity``: equal members give N cos = N each, 1/(N-1) of N(N-1) pairs; opposite ones are below 0."""
    held = nets(EDAC(width=8, ensemble=3))
    with torch.no_grad():
        for p in held["q"].parameters:
            p.copy_(p[:1].expand_as(p))
    assert float(GradientDiversity(1.0)(rows(), held, Noise(0, 0), {}).detach()) == pytest.approx(3.0, abs=1e-4)
    two = nets(EDAC(width=8, ensemble=2))
    with torch.no_grad():
        for at, p in enumerate(two["q"].parameters):
            p[1] = -p[0] if at == len(two["q"].parameters) - 2 else p[0]
    assert float(GradientDiversity(0.5)(rows(), two, Noise(0, 0), None).detach()) == pytest.approx(-1.0, abs=1e-4)
    one = nets(EDAC(width=8, ensemble=1))
    assert float(GradientDiversity(1.0)(rows(), one, Noise(0, 0), None)) == 0.0


def test_a_critic_that_does_not_see_the_action_has_a_finite_gradient() -> None:
    """Where all its hidden units are off, the gradient in the action is 0, and the slope of its length infinite."""
    held = nets(EDAC(width=8, ensemble=2))
    with torch.no_grad():
        for p in held["q"].parameters:
            p[0] = 0.0
    found = torch.autograd.grad(GradientDiversity(1.0)(rows(), held, Noise(0, 0), None), held["q"].parameters, allow_unused=True)
    assert all(g is None or bool(g.isfinite().all()) for g in found)


def test_rebrac_without_its_weight_is_td3() -> None:
    """``PolicyNoisePenalised``: at weight 0 TD3's target; else less by the distance where the data have a next action."""
    held = nets(ReBRAC(width=8))
    batch = with_columns(next_action=torch.full((4, 1), 0.3), follows=torch.tensor([True, True, True, False]))
    plain = PolicyNoise()(batch, held, Noise(0, 1), 0.9)
    assert torch.equal(PolicyNoisePenalised(0.0)(batch, held, Noise(0, 1), 0.9), plain)
    less = plain - PolicyNoisePenalised(2.0)(batch, held, Noise(0, 1), 0.9)
    action = held.mean(batch.next_observation, averaged=True)
    noise = (0.2 * Noise(0, 1).normal(4, 1)).clamp(-0.5, 0.5)
    far = 0.9 * 2.0 * ((action + noise).clamp(-1, 1) - 0.3).square()[:, 0]
    assert torch.allclose(less[:3], far[:3], atol=1e-5) and float(less[3]) == 0.0
    with pytest.raises(ConfigError):
        PolicyNoisePenalised(-1.0)


def test_ro2o_terms_by_hand() -> None:
    """``PerturbedValue`` costs .8 and .2, ``PerturbedPessimism`` reaches .1; all are 0 with no disturbance and equal critics."""
    assert PerturbedValue().cost(torch.tensor([1.0, -1.0])).tolist() == pytest.approx([0.8, 0.2])
    assert PerturbedPessimism().kappa(1_800_000) == pytest.approx(0.1) and PerturbedPessimism().kappa(9_000_000) == 0.1
    held = nets(RO2O(width=8, ensemble=3))
    for still in (PerturbedValue(1.0, 0.0, 3), PerturbedPolicy(1.0, 0.0, 3)):
        assert float(still(rows(), held, Noise(0, 0), {}).detach()) == pytest.approx(0.0, abs=1e-6)
    assert float(PerturbedPolicy(1.0, 0.5, 3)(rows(), held, Noise(0, 0), {}).detach()) > 0
    q, kappa = 3, 1.0
    near, noise = rows().observation, Noise(0, 4)
    noise.uniform(1, *near.shape)
    action, _ = held.sample(near, noise)
    std = held.q(near, action).std(0)
    made = float(PerturbedPessimism(1.0, 0.0)(rows(), held, Noise(0, 4), {}).detach())
    assert made == pytest.approx(float((q * (kappa * std).square().mean()).detach()), rel=1e-4)
    parts = RO2O(width=8)
    assert parts.compose().updates == parts.compose().updates and parts.compose().source == DataThenHalf(batch=128, offline=1500)
    bare = dataclasses.replace(parts, value=0.0, policy=0.0, pessimism=0.0).compose()
    assert all(r.weight == 0.0 for u in bare.updates for r in u.regularisers), "with weights of 0 nothing is computed: SAC-N"


# ---- models -------------------------------------------------------------------------------------------------------------


def test_imagined_rows() -> None:
    """MOPO: no share is the batch itself; ``penalty`` 0 is MBPO's; the penalty is that of the greatest deviation."""
    held = nets(MOPO(width=8, members=3))
    batch = rows(stream=torch.zeros(4, dtype=torch.int64))
    assert ImaginedRows(share=0.0)(batch, held, Noise(0, 0), 5) is batch
    assert ImaginedRows(share=0.5, since=9)(batch, held, Noise(0, 0), 5) is batch
    plain, less = (ImaginedRows(share=0.5, steps=1, penalty=p)(batch, held, Noise(0, 0), 5) for p in (0.0, 2.0))
    assert plain.stream.tolist() == [2, 2, 0, 0] and torch.equal(plain.observation, batch.observation)
    assert torch.equal(plain.reward[2:], batch.reward[2:]) and torch.equal(plain.next_observation, less.next_observation)
    from assay_control.parts.models import model_outputs

    mean, spread, _ = model_outputs(batch, held, plain.observation[:2], plain.action[:2])
    assert mean.shape == (3, 2, 3)
    assert torch.allclose(plain.reward[:2] - less.reward[:2], 2.0 * spread.exp().norm(dim=-1).amax(0), atol=1e-5)
    deep = ImaginedRows(share=1.0, steps=4)(batch, held, Noise(0, 1), 5)
    assert not torch.equal(deep.observation, batch.observation), "some rows are deeper in their branch"
    with torch.no_grad():
        held["model"].parameters[-1][..., -1] = 50.0
    ended = ImaginedRows(share=1.0, steps=4)(batch, held, Noise(0, 1), 5)
    assert ended.terminal.all() and torch.equal(ended.observation, batch.observation), "a branch that has ended goes no further"
    with pytest.raises(ConfigError):
        ImaginedRows(share=2.0)


def test_a_model_learns_the_pendulum() -> None:
    session = Session(ControlRun(method=MOPO(width=32, model=10**6), data=dataset("pendulum/random"), steps=10))
    logs: list[dict[str, torch.Tensor]] = []
    for _ in range(2):
        for _ in range(150):
            session.update(None)
        logs.append({})
        session.update(logs[-1])
    assert float(logs[1]["model/nll"]) < float(logs[0]["model/nll"])
    assert isinstance(session.method.updates[0].fit, ModelLikelihood)


def test_value_gradients_weigh_a_models_errors() -> None:
    """VaGraM's ``ValueGradientModel``: gradient (1, 2), error (.5, -.25): .5, where VAML's (g·e)² is 0 and squares are .3125."""
    g, e = torch.tensor([[1.0, 2.0]]), torch.tensor([[0.5, -0.25]])
    assert float(ValueGradientModel().weigh(g, e)) == 0.5
    assert float((g * e).sum() ** 2) == 0.0 and float(e.square().sum()) == 0.3125
    assert float(ValueGradientModel().weigh(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 99.0]]))) == 0.0
    held = nets(VaGraM(width=8))
    full, cut = (ValueGradientModel(bound=b).gradient(rows(), held).norm(dim=-1) for b in (1.0, 0.25))
    assert float(cut.max()) == pytest.approx(float(full.quantile(0.25)), rel=1e-4) and float(full.max()) > float(cut.max())
    assert torch.isfinite(ValueGradientModel()(rows(), held, None, Noise(0, 0), {}).detach())
    assert isinstance(MBPO().compose().updates[0].fit, ModelLikelihood)


# ---- normalise and project ----------------------------------------------------------------------------------------------


def test_projection_keeps_norms_and_outputs() -> None:
    """Normalise-and-Project (``Net``): (3, 4) at norm 2 is (1.2, 1.6); norms stay, and so do outputs of a normalised layer."""
    net = Net(width=16, layer_norm=True, project=True, ensemble=2).build(3, 1, False, 0, "q")
    plain = Net(width=16, layer_norm=True, ensemble=2).build(3, 1, False, 0, "q")
    assert (np.array([3.0, 4.0]) * 2 / 5).tolist() == [1.2, 1.6]
    x = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
    start = [net.parameters[i].norm().item() for i in (0, 4)]
    for held in (net, plain):
        for _ in range(20):
            held.descend((held(x)[..., 0] - x[:, 0] * 3).square().mean())
    assert [net.parameters[i].norm().item() for i in (0, 4)] == pytest.approx(start, rel=1e-5)
    assert plain.parameters[0].norm().item() != pytest.approx(start[0], rel=1e-4)
    before = plain(x).detach()
    with torch.no_grad():
        # biases are of the same layer, so both are scaled for the outputs to stay
        plain.parameters[0].mul_(3.0)
        plain.parameters[1].mul_(3.0)
    assert torch.allclose(plain(x).detach(), before, atol=1e-4)
    again = Net(width=16, layer_norm=True, project=True, ensemble=2).build(3, 1, False, 0, "q")
    again.restore(net.state())
    for held in (net, again):
        held.descend(held(x).square().mean())
    assert torch.equal(net.flat, again.flat), "a resume keeps the norms of the start"
    assert IQL(project=True).compose().nets["q"].project
    with pytest.raises(ConfigError, match="needs layer_norm"):
        Net(project=True)


# ---- meta steps ---------------------------------------------------------------------------------------------------------


def test_reptile_by_hand() -> None:
    """Meta 0, adapted 2, rate .5: 1; MOORL's ``AlternateBlocks`` draws each block of one buffer alone."""
    net = Net(width=4).build(2, 1, False, 0, "q")
    meta = torch.zeros_like(net.flat)
    with torch.no_grad():
        net.flat.fill_(2.0)
    net.restart(meta, 0.5)
    assert (meta == 1).all() and (net.flat == 1).all()
    data = transitions(dataset("pendulum/random").cached(), 0.99)
    buffer = Buffer(20, 3, Box(1))
    zeros = {"reward": np.zeros(20), "terminal": np.zeros(20, bool), "done": np.zeros(20, bool)}
    buffer.put(observation=np.ones((20, 3)), action=np.zeros((20, 1)), next_observation=np.ones((20, 3)), **zeros)
    drawer = AlternateBlocks(batch=8, updates=3).open(data, buffer, 0)
    streams = [int(drawer.draw(i).stream.float().mean() * 2) for i in range(30)]
    assert set(streams) == {0, 2} and all(len(set(streams[i : i + 3])) == 1 for i in range(0, 30, 3))
    with pytest.raises(ConfigError):
        Reptile(nets=(), updates=1)


def test_moorl_with_rate_one_is_sac_on_alternating_buffers() -> None:
    def digest(reptile: Any) -> str:
        method = dataclasses.replace(MOORL(width=8, start=3, inner=2, rate=1.0).compose(), reptile=reptile)
        session = Session(ControlRun(method=method, data=dataset("pendulum/random"), steps=12))
        for step in range(1, 9):
            phase = session.method.schedule.phase(step)
            session.collect(phase)
            for _ in range(phase.updates):
                session.update(None)
        session.meta = {}
        return state_digest(session)

    assert digest(None) == digest(Reptile(nets=("q", "pi"), updates=2, rate=1.0))
    assert digest(None) != digest(Reptile(nets=("q", "pi"), updates=2, rate=0.5))


# ---- imitation and tails ------------------------------------------------------------------------------------------------


def test_recoil_reads_no_reward() -> None:
    """ReCOIL's ``ContrastiveQ`` and ``ExpertHalf``: other rewards, the same bits; the first half of a batch is the expert's."""
    run = ControlRun(method=ReCOIL(width=8, batch=16), data=dataset("pendulum/mixed"), steps=9)
    digests = set[str]()
    for factor in (1.0, -3.0):
        session = Session(dataclasses.replace(run, method=dataclasses.replace(run.method.compose(), reward=(factor, 1.0))))
        for _ in range(5):
            session.update({})
        digests.add(state_digest(session))
    assert len(digests) == 1
    data = transitions(dataset("pendulum/mixed").cached(), 0.99)
    first = ExpertHalf(batch=16, expert=10).open(data, None, 0).draw(0)
    assert (data.episode[first.index[:8].numpy()] >= 190).all() and (data.episode[first.index[8:].numpy()] < 190).any()
    with pytest.raises(ConfigError, match="200 episodes"):
        ExpertHalf(expert=201).open(data, None, 0)
    with pytest.raises(ConfigError):
        ContrastiveQ(balance=1.0)
    assert set(run.method.compose().nets) == {"v", "q", "pi"}, "there is no discriminator"


def test_generalised_normal_errors_by_hand() -> None:
    """``GeneralisedGaussian``: δ .5 at β 1 and 2; variance and kurtosis of β 1, 1.5, 2; ``inverse_variance_weights``."""
    half = torch.tensor(0.5)
    assert float(generalised_gaussian_nll(half, torch.tensor(1.0), "linear")) == pytest.approx(0.5)
    assert float(generalised_gaussian_nll(half, torch.tensor(2.0), "linear")) == pytest.approx(0.879, abs=1e-3)
    power = float(generalised_gaussian_nll(half, torch.tensor(2.0), "power"))
    assert power - math.log(2) == pytest.approx(0.129, abs=1e-3), "the sheet's number leaves the constant out"
    x = torch.linspace(-40, 40, 400_001, dtype=torch.float64)
    for beta, variance, kurtosis in ((1.0, 2.0, 6.0), (1.5, 0.738, 3.762), (2.0, 0.5, 3.0)):
        p = (-generalised_gaussian_nll(x, torch.tensor(beta, dtype=torch.float64), "power")).exp() * (x[1] - x[0])
        second = float((p * x**2).sum())
        assert float(p.sum()) == pytest.approx(1.0, abs=1e-3) and second == pytest.approx(variance, abs=2e-3)
        assert float((p * x**4).sum()) / second**2 == pytest.approx(kurtosis, abs=0.02)
    assert float(corrected_variance(torch.tensor([[1.0], [2.0], [4.0], [5.0], [8.0]]))) == pytest.approx(4.072, abs=1e-3)
    spread = torch.tensor([0.1, 1.0, 1.0, 1.0])
    w = 1 / spread
    assert float(w.sum() ** 2 / w.square().sum()) == pytest.approx(1.641, abs=1e-3)
    errors = torch.stack([spread.sqrt() * s for s in (-1.0, 1.0)]) / math.sqrt(2)
    weights = inverse_variance_weights(errors, size=3.0)
    assert float(weights.sum()) == pytest.approx(4.0) and float(weights[0] / weights[1]) == pytest.approx(1.35 / 0.45, abs=0.02)
    held = nets(GGDSAC(width=8, ensemble=2))
    target = torch.zeros(4)
    for part in (GeneralisedGaussian(), GeneralisedGaussian(form="linear"), ShapeFit()):
        assert torch.isfinite(part(rows(), held, target, Noise(0, 0), {}).detach())
    with pytest.raises(ConfigError, match="'power' or 'linear'"):
        GeneralisedGaussian(form="cubic")


# ---- feasibility --------------------------------------------------------------------------------------------------------


def test_feasibility_by_hand() -> None:
    """FISOR: ``FitFeasible`` .485; ``FeasibleClone`` 4.4817, 2.7183 and 0; ``FeasibleValue`` counts the safer pair."""
    one = torch.tensor([False])
    assert float(FitFeasible().target(torch.tensor([-1.0]), torch.tensor([0.5]), one)) == pytest.approx(0.485)
    assert float(FitFeasible().target(torch.tensor([25.0]), torch.tensor([0.5]), ~one)) == 25.0
    t = torch.tensor
    made = FeasibleClone().weights(t([0.5, 0.5, 0.5]), t([-1.0, 0.3, -1.0]), t([-1.0, 0.1, 0.2]))
    assert made.tolist() == pytest.approx([4.4817, 2.7183, 0.0], abs=1e-4)
    assert FeasibleClone().weights(t([99.0]), t([-1.0]), t([-1.0])).tolist() == [100.0]
    session = Session(ControlRun(method=FISOR(width=8), data=dataset("hazard/mixed"), steps=5))
    log: dict[str, torch.Tensor] = {}
    session.update(log)
    assert 0 <= float(log["pi/unused"]) <= 1
    with pytest.raises(ConfigError):
        FeasibleValue(tau=1.0)


@pytest.mark.evidence
def test_a_safe_policy_is_learned_from_data_that_are_not(tmp_path: Any) -> None:
    """1,200 updates: FISOR's policy has less cost than cloning, which flies through the hazard as two of three episodes do."""
    cost = {}
    for name, method in (("fisor", FISOR(reward=5.0, batch=96)), ("bc", BC(batch=96))):
        run = ControlRun(method=method, data=dataset("hazard/mixed"), steps=1200, evaluate_every=0, episodes=20)
        cost[name] = train(run, tmp_path / name).metrics.get("eval/cost", 0.0)
    assert cost["fisor"] < 0.5 < cost["bc"]


def test_steps_that_cannot_be_saved_are_not_feasible() -> None:
    place = HazardPoint()
    state = np.array([[-0.36, 0.0, 0.12, 0.0], [-0.9, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    assert place.feasible(state).tolist() == [False, True, False]


def test_evenly_drawn_rows_know_what_follows() -> None:
    data = transitions(dataset("pendulum/random").cached(), 0.99)
    batch = Evenly(batch=64).open(data, None, 0).draw(0)
    index = batch.index.numpy()
    follows = batch.columns["follows"].numpy()
    assert np.array_equal(batch.columns["next_action"].numpy()[follows], data.action[index + 1][follows])
    assert np.array_equal(follows, data.step[index] < 199) and batch.columns["cut"].all()
    assert np.array_equal(batch.columns["ahead"].numpy(), 200 - data.step[index])
    assert SAC().compose().reptile is None


# ---- objective mismatch -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_rows_near_the_expert_are_drawn_more_often() -> None:
    """``NearExpert``: weights have a mean of 1; a great bandwidth draws what `Evenly` draws; a small one the expert's rows."""
    data = transitions(dataset("pendulum/mixed").cached(), 0.99)
    near = NearExpert(batch=64, bandwidth=0.1)
    assert near.weights(data).mean() == pytest.approx(1.0)
    share = {
        h: (data.episode[NearExpert(batch=256, bandwidth=h).open(data, None, 0).draw(0).index.numpy()] >= 190).mean()
        for h in (0.02, 1e12)
    }
    assert share[0.02] > 2 * share[1e12]
    even = Evenly(batch=256).open(data, None, 0).draw(0)
    assert torch.equal(NearExpert(batch=256, bandwidth=1e18).open(data, None, 0).draw(0).index, even.index)
    with pytest.raises(ConfigError):
        NearExpert(bandwidth=0.0)


def test_likelihood_and_return_of_a_runs_evaluations(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """``rank_correlation`` does not depend on the order of checkpoints; ``assay control mismatch`` reads a run's."""
    x, y = [3.0, 1.0, 2.0, 5.0], [1.0, 0.5, 0.7, 0.2]
    order = [2, 0, 3, 1]
    assert rank_correlation(x, y) == rank_correlation([x[i] for i in order], [y[i] for i in order])
    method = MBPO(width=8, start=3, batch=8, members=2)
    train(ControlRun(method=method, world=Pendulum(horizon=5), steps=8, evaluate_every=2, episodes=1), tmp_path / "run")
    assert main(["control", "mismatch", str(tmp_path / "run"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["evaluations"] == 3 and -1 <= told["rank correlation"] <= 1
    assert main(["control", "mismatch"]) == 2
    train(ControlRun(method=BC(width=8), data=dataset("pendulum/expert"), steps=2, episodes=1), tmp_path / "bc")
    assert main(["control", "mismatch", str(tmp_path / "bc")]) == 2
    assert "train mbpo" in capsys.readouterr().err
