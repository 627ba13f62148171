"""Numbers by hand: targets, losses, regularisers, sources, schedules, networks."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import torch

from assay.core import ConfigError
from assay_control import (
    BC,
    CQL,
    IQL,
    RIQL,
    TD3BC,
    WSRL,
    AdvantageReturn,
    AdvantageWeighted,
    BestChoice,
    Box,
    Buffer,
    Choices,
    ClippedRatio,
    ClonePenalty,
    Composition,
    Conservative,
    ConservativeChoices,
    ControlRun,
    DrawAction,
    DualValue,
    EpsilonGreedy,
    Evenly,
    Expectile,
    FitQ,
    GreedyAction,
    HalfOnline,
    LastRollout,
    NearestAction,
    Net,
    NextValue,
    Noise,
    OfflineToOnline,
    Online,
    OnPolicyRounds,
    PolicyNoise,
    ReturnToGo,
    SampledAction,
    Scalar,
    Session,
    SoftGreedy,
    SoftValue,
    Temperature,
    TopEpisodes,
    TransitionBatch,
    Update,
    WeightedEpisodes,
    dataset,
    expectile_loss,
    generalised_advantages,
    nearest_rows,
    transitions,
)
from assay_control.parts.conservative import spread
from assay_control.parts.nets import Nets


def rows(n: int = 4, **changes: Any) -> TransitionBatch:
    made: dict[str, Any] = {
        "observation": torch.linspace(-1, 1, 2 * n).view(n, 2),
        "action": torch.linspace(-0.5, 0.5, n).view(n, 1),
        "reward": torch.arange(float(n)),
        "next_observation": torch.linspace(1, -1, 2 * n).view(n, 2),
        "terminal": torch.zeros(n, dtype=torch.bool),
        "to_go": torch.full((n,), 2.5),
        "index": torch.arange(n),
        "stream": torch.zeros(n, dtype=torch.int64),
    }
    return TransitionBatch(**{**made, **changes})


def nets(method: Any, space: Any = None) -> Nets:
    return Nets(method.compose(), 2, space or Box(1), 0)


class Fixed:
    """Stands for networks: values that are given."""

    space, size = Box(1), 1

    def __init__(self, **values: Any) -> None:
        self.__dict__ |= {name: (lambda *a, _v=value, **k: _v) for name, value in values.items()}


# ---- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tau", [0.5, 0.7, 0.9, 0.99])
def test_the_expectile_of_a_coin_is_tau(tau: float) -> None:
    """Q is 0 or 1, each with probability 1/2: V = tau exactly (IQL's ``Expectile``)."""
    q = torch.tensor([0.0, 1.0], dtype=torch.float64)
    v = torch.tensor(tau, dtype=torch.float64, requires_grad=True)
    expectile_loss(q - v, tau).mean().backward()
    assert abs(float(v.grad)) < 1e-15
    given = Fixed(least_q=torch.tensor([0.0, 1.0]), v=torch.tensor([0.5, 0.5]))
    assert float(Expectile(tau)(rows(2), given, None, Noise(0, 0), {})) == pytest.approx(0.125)


def test_targets_by_hand() -> None:
    batch = rows(2, reward=torch.tensor([1.0, 1.0]), terminal=torch.tensor([False, True]))
    noise = Noise(0, 0)
    assert NextValue()(batch, Fixed(v=torch.tensor([4.0, 4.0])), noise, 0.5).tolist() == [3.0, 1.0]
    assert ReturnToGo()(batch, Fixed(), noise, 0.5).tolist() == [2.5, 2.5]
    choices = Fixed(all_q=torch.tensor([[1.0, 2.0], [3.0, 0.0]]))
    assert BestChoice()(batch, choices, noise, 0.5).tolist() == [2.0, 1.0]
    held = nets(TD3BC(width=8))
    same = PolicyNoise(noise=0.0)(rows(), held, noise, 0.9)
    action = held.mean(rows().next_observation, averaged=True)
    assert torch.allclose(same, rows().reward + 0.9 * held.least_q(rows().next_observation, action, averaged=True))
    assert not torch.equal(same, PolicyNoise()(rows(), held, noise, 0.9))


def test_soft_values_by_hand() -> None:
    held = nets(CQL(width=8))
    plain, soft = (SoftValue(entropy=e)(rows(), held, Noise(0, 1), 1.0) for e in (False, True))
    action, logp = held.sample(rows().next_observation, Noise(0, 1))
    assert torch.allclose(plain - soft, logp.detach(), atol=1e-5), "alpha is 1 at the start"
    assert torch.allclose(plain, rows().reward + held.least_q(rows().next_observation, action, averaged=True))
    best = SoftValue(entropy=False, best_of=8)(rows(), held, Noise(0, 1), 1.0)
    many, _ = held.sample(rows().next_observation, Noise(0, 1), 8)
    each = torch.stack([held.least_q(rows().next_observation, a, averaged=True) for a in many])
    assert torch.allclose(best, rows().reward + each.amax(0))
    awac = SampledAction()(rows(), held, Noise(0, 1), 1.0)
    assert torch.allclose(awac, plain)


def test_subsets_of_critics() -> None:
    held = nets(dataclasses.replace(CQL(width=8).compose(), nets={**CQL(width=8).compose().nets, "q": CQL(width=8).critic(5)}))
    noise = Noise(0, 2)
    action, _ = held.sample(rows().next_observation, noise)
    chosen = noise.subset(5, 2)
    q = held.q(rows().next_observation, action, averaged=True)[chosen].amin(0)
    assert len(set(chosen)) == 2
    assert torch.allclose(SoftValue(subset=2, entropy=False)(rows(), held, Noise(0, 2), 1.0), rows().reward + q)


def test_huber_by_hand() -> None:
    given = Fixed(q=torch.tensor([[0.5, 10.0]]))
    zero = torch.zeros(2)
    assert float(FitQ(delta=1.0)(rows(2), given, zero, Noise(0, 0), None)) == pytest.approx((0.125 + 9.5) / 2)
    assert float(FitQ()(rows(2), given, zero, Noise(0, 0), {})) == pytest.approx((0.25 + 100) / 2)


# ---- conservative critics ---------------------------------------------------------------------------------------------


def test_cql_by_hand() -> None:
    """Q = (1, 2, 3), the data's action is worth 2: 1.4076; three even draws on [-1, 1], corrected: 1.0021; floor 2.5: 1.7944."""
    q = torch.tensor([1.0, 2.0, 3.0])
    given = Fixed(q=torch.tensor([[2.0]]))
    given.__class__ = type("Choosing", (Fixed,), {"__getitem__": lambda self, name: lambda o: q.view(1, 1, 3)})
    assert float(ConservativeChoices(weight=1.0)(rows(1), given, Noise(0, 0), {})) == pytest.approx(1.4076, abs=1e-4)
    assert float(spread(q.view(1, 3, 1), torch.full((3, 1), -math.log(2)))) - 2 == pytest.approx(1.0021, abs=1e-4)
    floored = torch.maximum(q, torch.tensor(2.5))
    assert float(floored.logsumexp(0)) - 2 == pytest.approx(1.7944, abs=1e-4)


def test_the_calibrated_floor_raises_the_policys_actions_alone() -> None:
    held = nets(CQL(width=8))
    plain, high, low = (
        float(Conservative(weight=1.0, actions=3, floor=f)(rows(to_go=torch.full((4,), g)), held, Noise(0, 0), {}).detach())
        for f, g in ((False, 0.0), (True, 50.0), (True, -50.0))
    )
    assert low == pytest.approx(plain) and 40 < high < 110


def test_a_regulariser_without_weight_is_not_there() -> None:
    from assay_control.run_folders import state_digest

    def digest(method: Any) -> str:
        session = Session(ControlRun(method=method, data=dataset("pendulum/random")))
        for _ in range(4):
            session.update(None)
        return state_digest(session)

    with_, without = CQL(width=8, alpha=0.0).compose(), CQL(width=8).compose()
    bare = dataclasses.replace(without, updates=(dataclasses.replace(without.updates[0], regularisers=()), *without.updates[1:]))
    assert digest(with_) == digest(bare) != digest(without)


# ---- actors -----------------------------------------------------------------------------------------------------------


def test_advantages_weight_the_datas_actions() -> None:
    held = nets(IQL(width=8))
    batch = rows()
    loss = float(AdvantageWeighted(temperature=0.5, clip=3.0)(batch, held, None, Noise(0, 0), {}).detach())
    advantage = held.least_q(batch.observation, batch.action, averaged=True) - held.v(batch.observation)
    weight = (advantage / 0.5).exp().clamp(max=3.0)
    assert loss == pytest.approx(float((weight * -held.log_prob(batch.observation, batch.action)).mean().detach()), abs=1e-6)
    returns = float(AdvantageWeighted(advantage="return - v", clip=1.0)(batch, held, None, Noise(0, 0), None).detach())
    assert returns == pytest.approx(float(-held.log_prob(batch.observation, batch.action).mean().detach()), abs=1e-6), (
        "all weights are clipped"
    )
    assert np.isfinite(float(AdvantageWeighted(advantage="q - q(pi)")(batch, held, None, Noise(0, 0), None).detach()))


def test_td3_bc_does_not_depend_on_the_size_of_values() -> None:
    held = nets(TD3BC(width=8))
    gradients = []
    for factor in (1.0, 100.0):
        with torch.no_grad():
            held["q"].parameters[-1].mul_(factor)
            held["q"].parameters[-2].mul_(factor)
        loss = GreedyAction(2.5)(rows(), held, None, Noise(0, 0), {})
        gradients.append(torch.cat([g.flatten() for g in torch.autograd.grad(loss, held["pi"].parameters)]))
    assert torch.allclose(*gradients, rtol=1e-4)
    assert float(GreedyAction(0.0)(rows(), held, None, Noise(0, 0), None).detach()) == 0.0, "alpha 0 is behaviour cloning"
    distance = (held.mean(rows().observation) - rows().action).square().mean()
    assert float(ClonePenalty(2.0)(rows(), held, Noise(0, 0), {}).detach()) == pytest.approx(2 * float(distance.detach()))


def test_the_actor_of_sac_by_hand() -> None:
    held = nets(CQL(width=8))
    action, logp = held.sample(rows().observation, Noise(0, 5))
    q = held.q(rows().observation, action)
    assert float(SoftGreedy()(rows(), held, None, Noise(0, 5), {}).detach()) == pytest.approx(
        float((logp - q.amin(0)).mean().detach()), abs=1e-6
    )
    assert float(SoftGreedy(mean_q=True)(rows(), held, None, Noise(0, 5), None).detach()) == pytest.approx(
        float((logp - q.mean(0)).mean().detach()), abs=1e-6
    )
    loss = Temperature(-1.0)(rows(), held, None, Noise(0, 5), {})
    (gradient,) = torch.autograd.grad(loss, held["alpha"].parameters)
    assert float(gradient[0]) == pytest.approx(-float((logp - 1.0).mean().detach()), abs=1e-5)


def test_densities_integrate_to_one() -> None:
    grid = torch.linspace(-0.9999, 0.9999, 20001).view(-1, 1)
    here = torch.zeros(len(grid), 2)
    for outputs, least in (("gaussian", 0.98), ("normal", 0.6)):
        method = dataclasses.replace(IQL(width=8).compose(), nets={"pi": Net(outputs=outputs, width=8)}, updates=())
        held = nets(method)
        mass = float((held.log_prob(here, grid).exp().sum() * 2 * 0.9999 / 20000).detach())
        assert least < mass < 1.001
        action, logp = held.sample(torch.zeros(5, 2), Noise(0, 0))
        assert torch.allclose(logp, held.log_prob(torch.zeros(5, 2), action), atol=1e-3)


def test_ppo_by_hand() -> None:
    reward, value = np.array([[1.0], [2.0]]), np.array([[0.5], [1.0]])
    cut = generalised_advantages(reward, value, value + 1, np.zeros((2, 1), bool), np.array([[False], [True]]), 0.5, 0.5)
    later = 2 + 0.5 * 2 - 1
    assert np.allclose(cut[:, 0], [1 + 0.5 * 1.5 - 0.5 + 0.25 * later, later]), "a cut at the horizon bootstraps"
    given = Fixed(log_prob=torch.tensor([math.log(1.5), 0.0]))
    batch = rows(2, columns={"log_prob": torch.zeros(2), "advantage": torch.tensor([1.0, -1.0]), "return": torch.ones(2)})
    normal = 1 / math.sqrt(2)
    assert float(ClippedRatio(clip=0.2)(batch, given, None, Noise(0, 0), {})) == pytest.approx(-(1.2 - 1) * normal / 2, abs=1e-6)
    assert AdvantageReturn()(batch, given, Noise(0, 0), 0.9).tolist() == [1.0, 1.0]
    bonus = ClippedRatio(clip=0.2, entropy=0.5)(batch, given, None, Noise(0, 0), None)
    assert float(bonus) > -(1.2 - 1) * normal / 2


# ---- in-sample methods ------------------------------------------------------------------------------------------------


def test_iql_never_asks_about_an_action_outside_the_data() -> None:
    held, batch = nets(IQL(width=8)), rows()
    asked: list[torch.Tensor] = []
    q = held.q

    def spy(observation: torch.Tensor, action: torch.Tensor, *more: Any, **named: Any) -> torch.Tensor:
        asked.append(action)
        return q(observation, action, *more, **named)

    held.q = spy  # type: ignore[method-assign]
    for part in IQL(width=8).compose().updates:
        target = part.target(batch, held, Noise(0, 0), 0.9) if part.target else None
        part.fit(batch, held, target, Noise(0, 0), None)
    assert len(asked) == 3 and all(torch.equal(action, batch.action) for action in asked)


# ---- published methods --------------------------------------------------------------------------------------------------


def test_the_dual_value_by_hand() -> None:
    """f-DVL's ``DualValue``, λ .8; Q even in [0, 1] has V = .17, .42, .76, .95, and the quantile .75 for tv."""
    assert DualValue().loss(torch.tensor([-1.0, 1.0, 2.0, 100.0])).tolist() == pytest.approx([0.2, 0.8, 2.0, 2060.0])
    assert float(DualValue().loss(torch.tensor(-9.0))) == pytest.approx(1.8), "far below, the surrogate stays at 0"
    q, grid = torch.linspace(0, 1, 2001), torch.linspace(-0.5, 1.5, 2001)
    for kind, weight, value in (
        ("chi2", 0.5, 0.17),
        ("chi2", 0.6, 0.42),
        ("chi2", 0.8, 0.76),
        ("chi2", 0.95, 0.95),
        ("tv", 0.8, 0.75),
    ):
        part = DualValue(weight=weight, kind=kind)
        losses = part.loss(q - grid[:, None]).mean(1)
        assert float(grid[losses.argmin()]) == pytest.approx(value, abs=0.006)
    given = Fixed(least_q=torch.tensor([1.0, 3.0]), v=torch.tensor([2.0, 2.0]))
    assert float(DualValue()(rows(2), given, None, Noise(0, 0), {})) == pytest.approx((0.2 + 0.8) / 2)
    with pytest.raises(ConfigError, match="between 1/2 and 1"):
        DualValue(kind="tv", weight=0.5)
    with pytest.raises(ConfigError, match="use 'chi2' or 'tv'"):
        DualValue(kind="kl")


def test_robust_values_by_hand() -> None:
    """``RIQL``: Huber's loss with δ = 1 (.5 gives .125, 10 gives 9.5), the .25-quantile of 1 ... 5 is 2, targets are cut."""
    parts = RIQL(width=8, sigma=1.0).compose()
    assert parts.updates[1].fit == FitQ(delta=1.0) and RIQL(sigma=0.5).compose().updates[1].fit == FitQ(delta=4.0)
    held = nets(parts)
    held.q = lambda *a, **k: torch.arange(1.0, 6.0).view(5, 1)  # type: ignore[method-assign]
    assert float(held.least_q(torch.zeros(1, 2), torch.zeros(1, 1), quantile=0.25)) == 2.0
    assert float(held.least_q(torch.zeros(1, 2), torch.zeros(1, 1))) == 1.0, "quantile 0 is the least"
    batch = rows(2, reward=torch.tensor([-500.0, 5000.0]), terminal=torch.ones(2, dtype=torch.bool))
    assert NextValue(low=-100.0, high=1000.0)(batch, Fixed(v=torch.zeros(2)), Noise(0, 0), 0.9).tolist() == [-100.0, 1000.0]
    for wrong in (
        lambda: RIQL(sigma=0.0).compose(),
        lambda: Expectile(0.7, quantile=2.0),
        lambda: NextValue(low=1.0, high=0.0),
        lambda: AdvantageWeighted(advantage="return - v", quantile=0.5),
    ):
        with pytest.raises(ConfigError):
            wrong()


def test_the_nearest_row_by_hand() -> None:
    """PRDC's ``NearestAction``: 0 where the pair is in the data, and the blocked search finds what comparing all does."""
    generator = torch.Generator().manual_seed(0)
    keys, queries = torch.randn(40_000, 3, generator=generator), torch.randn(5, 3, generator=generator)
    whole = torch.stack([(keys - q).square().sum(1).argmin() for q in queries])
    assert nearest_rows(keys, queries).tolist() == whole.tolist()
    assert nearest_rows(torch.zeros(4, 2), torch.zeros(1, 2)).tolist() == [0], "of equally near ones the first"
    held = nets(TD3BC(width=8))
    batch = rows()
    actions = held.mean(batch.observation).detach()
    inside = dataclasses.replace(batch, pool=(batch.observation, actions))
    assert float(NearestAction()(inside, held, Noise(0, 0), {}).detach()) == 0.0
    far = dataclasses.replace(batch, pool=(batch.observation, actions + 0.5))
    assert float(NearestAction(weight=2.0, beta=1e3)(far, held, Noise(0, 0), None).detach()) == pytest.approx(0.5, abs=1e-5)
    own = (held.mean(batch.observation) - batch.action).square().mean()
    pool = dataclasses.replace(batch, pool=(batch.observation, batch.action))
    assert float((NearestAction(beta=1e-3)(pool, held, Noise(0, 0), None) - own).detach()) <= 1e-6, "never farther than its own"
    with pytest.raises(ConfigError, match="searches in the data set"):
        NearestAction()(batch, held, Noise(0, 0), None)
    with pytest.raises(ConfigError):
        NearestAction(beta=-1.0)


def test_a_warm_start_forgets_the_data_and_waits() -> None:
    """``WSRL``: no update and no change of the critic while the frozen policy acts; then batches have its rows alone."""
    session = Session(
        ControlRun(method=WSRL(width=8, offline=3, warmup=4, updates=2, batch=8), data=dataset("pendulum/weak"), steps=10)
    )
    digests = []
    for step in range(1, 9):
        phase = session.method.schedule.phase(step)
        if phase.collect:
            session.collect(phase)
        for _ in range(phase.updates):
            session.update(None)
        digests.append(session.nets["q"].flat.detach().clone())
    assert session.updates == 3 + 2 and session.acted == 5
    assert all(torch.equal(digests[2], other) for other in digests[3:7]) and not torch.equal(digests[6], digests[7])
    batch = session.drawer.draw(3)
    assert batch.stream.tolist() == [1] * 8 and int(batch.index.max()) < 5 and session.drawer.draw(2).stream.tolist() == [0] * 8
    assert [u.has_turn(2) for u in session.method.updates[:2]] == [True, False]
    assert [u.has_turn(3) for u in session.method.updates[:2]] == [False, True]
    many = WSRL(ensemble=10).compose()
    assert many.updates[1].target == SoftValue(subset=2, entropy=False)


# ---- sources and schedules ----------------------------------------------------------------------------------------------


def test_equal_weights_draw_what_no_weights_draw() -> None:
    data = transitions(dataset("pendulum/random").cached(), 0.99)
    same = dataclasses.replace(data, reward=np.zeros_like(data.reward))
    even, weighted = (
        source.open(same, None, 0).draw(5) for source in (Evenly(batch=32), WeightedEpisodes(batch=32, by="return"))
    )
    assert torch.equal(even.index, weighted.index)
    top = TopEpisodes(batch=64, share=0.1).open(data, None, 0).draw(0)
    returns = data.returns()
    assert {int(e) for e in data.episode[top.index.numpy()]} <= set(np.argsort(returns)[-10:].tolist())
    weights = WeightedEpisodes(batch=64).weights(data)
    drawn = np.concatenate([WeightedEpisodes(batch=500).open(data, None, 0).draw(i).index.numpy() for i in range(20)])
    best = weights > np.quantile(weights, 0.9)
    assert abs(best[drawn].mean() - weights[best].sum() / weights.sum()) < 0.02


def test_half_of_each_batch_is_offline() -> None:
    data = transitions(dataset("pendulum/random").cached(), 0.99)
    buffer = Buffer(10, 3, Box(1))
    zeros = {"reward": np.zeros(5), "terminal": np.zeros(5, bool), "done": np.zeros(5, bool)}
    buffer.put(observation=np.ones((5, 3)), action=np.zeros((5, 1)), next_observation=np.ones((5, 3)), **zeros)
    batch = HalfOnline(batch=256).open(data, buffer, 0).draw(0)
    assert batch.stream.tolist() == [0] * 128 + [1] * 128
    assert bool((batch.observation[128:] == 1).all()) and len(batch) == 256
    with pytest.raises(ConfigError, match="even number"):
        HalfOnline(batch=3)
    with pytest.raises(ConfigError, match="cannot take"):
        buffer.put(reward=np.zeros(1))


def test_schedules() -> None:
    online = [Online(start=2, updates=3).phase(step) for step in (1, 2, 3)]
    assert [(p.updates, p.random) for p in online] == [(0, True), (0, True), (3, False)]
    both = OfflineToOnline(offline=2, warmup=2, updates=4)
    assert [(both.phase(s).collect, both.phase(s).updates) for s in (1, 2, 3, 4, 5)] == [(0, 1), (0, 1), (1, 0), (1, 0), (1, 4)]
    assert OnPolicyRounds(collect=8, epochs=2, parts=3).phase(1).updates == 6


def test_random_choices_fade() -> None:
    held = Nets(
        Composition(nets={"q": Net(outputs="choices", width=8)}, updates=(), source=Evenly(), schedule=Online()), 2, Choices(3), 0
    )
    seen = torch.zeros(3000, 2)
    best = held.mean(seen[:1])
    for step, share in ((0, 1 / 3), (50, 1 - 0.525 * 2 / 3), (100, 1 - 0.05 * 2 / 3)):
        action, columns = EpsilonGreedy(last=0.05, steps=100)(held, seen, Noise(0, step), step)
        assert abs(float((action == best).float().mean()) - share) < 0.03 and not columns
    action, columns = DrawAction(columns=True)(nets(IQL(width=8)), torch.zeros(4, 2), Noise(0, 0), 0)
    assert action.shape == (4, 1) and columns["log_prob"].shape == (4,)


# ---- networks -----------------------------------------------------------------------------------------------------------


def member(parameters: list[torch.Tensor], x: torch.Tensor, index: int) -> torch.Tensor:
    """A network of two hidden layers with layer norm, written out."""
    w = [p[index] for p in parameters]
    for at in (0, 4):
        x = x @ w[at] + w[at + 1]
        x = (x - x.mean(1, keepdim=True)) / (x.var(1, keepdim=True, unbiased=False) + 1e-5).sqrt()
        x = (x * w[at + 2] + w[at + 3]).clamp(min=0)
    return x @ w[8] + w[9]


def test_an_ensemble_is_its_members() -> None:
    """Each member of a batched network equals one that is written out, and a step is Adam's."""
    net = Net(inputs="observation action", width=8, ensemble=3, layer_norm=True, target=0.5, lr=0.01).build(2, 1, False, 0, "q")
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    out = net(x)
    assert out.shape == (3, 5, 1)
    for index in range(3):
        assert torch.allclose(out[index], member(net.parameters, x, index), atol=1e-6)
    m, v, flat = (torch.zeros_like(net.flat), torch.zeros_like(net.flat), net.flat.clone())
    for k in (1, 2, 3):
        loss = net(x).square().sum()
        g = torch.cat([g.flatten() for g in torch.autograd.grad(net(x).square().sum(), net.parameters)])
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        flat = flat - 0.01 * (m / (1 - 0.9**k)) / ((v / (1 - 0.999**k)).sqrt() + 1e-8)
        net.descend(loss)
        assert torch.allclose(net.flat, flat, atol=1e-6)
    before = net.averaged.clone()
    net.average()
    assert torch.allclose(net.averaged, (before + net.flat.detach()) / 2)


def test_layer_norm_bounds_values_far_from_the_data() -> None:
    for norm, most in ((True, 20.0), (False, float("inf"))):
        net = Net(inputs="observation action", width=32, layer_norm=norm).build(2, 1, False, 0, "q")
        far = net(torch.tensor([[0.0, 0.0, 1e6]])).detach()
        assert abs(float(far)) < most
    assert abs(float(far)) > 1e3


def test_rates_clips_and_states() -> None:
    net = Net(width=4, lr=0.1, cosine=10, clip=1e-9, activation="silu", target=0.1).build(2, 1, False, 0, "v")
    assert net.rate() == 0.1
    for _ in range(5):
        net.descend(net(torch.ones(3, 2)).sum() * 1e6)
    assert net.rate() == pytest.approx(0.05)
    state = net.state()
    other = Net(width=4, activation="tanh", target=0.1).build(2, 1, False, 9, "v")
    other.restore(state)
    assert np.array_equal(other.state()["flat"], state["flat"]) and other.updates == 5
    with pytest.raises(ConfigError, match="parameters, the checkpoint"):
        Net(width=5, target=0.1).build(2, 1, False, 0, "v").restore(state)
    number = Scalar(start=0.5).build(2, 3, False, 0, "alpha")
    assert float(number.numbers().detach()) == 0.5 and Scalar(per_action=True).build(2, 3, False, 0, "x").numbers().shape == (3,)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Net(inputs="action"),
        lambda: Net(outputs="many"),
        lambda: Net(activation="step"),
        lambda: Net(width=0),
        lambda: Net(target=2.0),
        lambda: PolicyNoise(noise=-1),
        lambda: SoftValue(best_of=0),
        lambda: FitQ(delta=-1),
        lambda: Expectile(1.0),
        lambda: AdvantageWeighted(temperature=0),
        lambda: AdvantageWeighted(advantage="q"),
        lambda: GreedyAction(-1.0),
        lambda: Conservative(actions=0),
        lambda: WeightedEpisodes(by="length"),
        lambda: Online(collect=0),
        lambda: OfflineToOnline(updates=0),
        lambda: EpsilonGreedy(last=2),
        lambda: OnPolicyRounds(parts=0),
        lambda: LastRollout(decay=2),
        lambda: ClippedRatio(clip=0),
        lambda: Update(owner="q", fit=FitQ(), every=0),
        lambda: Composition(nets={}, updates=(Update(owner="q", fit=FitQ()),), source=Evenly(), schedule=Online()),
        lambda: dataclasses.replace(BC().compose(), discount=2.0),
        lambda: BC(weight="best").compose(),
    ],
)
def test_wrong_settings_are_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError):
        wrong()


def test_networks_that_do_not_suit_a_world_are_refused() -> None:
    with pytest.raises(ConfigError, match="use a method that can choose"):
        nets(IQL(), Choices(2))
    with pytest.raises(ConfigError, match="needs a network 'pi'"):
        nets(dataclasses.replace(BC().compose(), nets={}, updates=()))
    with pytest.raises(ConfigError, match="no density"):
        nets(TD3BC(width=8)).sample(torch.zeros(1, 2), Noise(0, 0))
    with pytest.raises(ConfigError, match="has none"):
        Evenly().open(None, None, 0)
