"""Applied worlds by the numbers of their sheets; worlds of other worlds; rewards from comparisons; tabular horizons."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from assay.core import ConfigError, from_dict, to_dict
from assay_control import (
    BC,
    SAC,
    CheckMatrix,
    ControlRun,
    Corridor,
    DelayLine,
    Distracted,
    ExtrusionDie,
    GymnasiumWorld,
    HazardPoint,
    Motor,
    Offloading,
    OracleLabels,
    Pendulum,
    PointMaze,
    Portfolio,
    PreferredRewards,
    RandomActions,
    Scripted,
    SnapshotStarts,
    code_distance,
    collect_episodes,
    completion_rise,
    dataset,
    effective_horizon,
    evaluate_policy,
    fit_preferences,
    flow_ratios,
    gf2_rank,
    hypergraph_product,
    hypervolume,
    learn_shallow,
    portfolio_step,
    sharpe_ratio,
    train,
    world,
)
from assay_control.testing import check_world
from assay_control.worlds.base import state_uniforms
from assay_control.worlds.cells import cluster_points
from assay_control.worlds.offloading import front_of


def seeds(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.uint64) * np.uint64(2**40 + 12345)


def test_the_flow_through_a_die_by_hand() -> None:
    """``ExtrusionDie``: heights (1, 1, 1.1), equal lands: .8638 .8638 1.2476, Σc² .0765; L3 = 1.1^1.35 balances."""
    h = np.array([[1.0, 1.0, 1.1]])
    assert flow_ratios(h, np.ones((1, 3)), 0.35).round(4).tolist() == [[0.8638, 0.8638, 1.2476]]
    place = ExtrusionDie()
    assert place.imbalance(h, np.ones((1, 3)))[0] == pytest.approx(0.0765, abs=1e-4)
    assert place.imbalance(h, np.array([[1.0, 1.0, 1.1**1.35]]))[0] == pytest.approx(0.0, abs=1e-12)
    balanced = np.concatenate([np.log(h), np.log([[1.0, 1.0, 1.1**1.35]])], 1)
    move = place.move(balanced, np.zeros((1, 3)))
    assert move.terminated.all() and move.reward[0] == 5.0
    assert evaluate_policy(place, place.control, 20, 0).terminated.all()


def test_a_motor_by_hand() -> None:
    """``Motor``: at rest the current rises by u/L; beyond the limit the episode ends with -10 = -1 / (1 - .9)."""
    place = Motor(jump=0.0, period=1e-5)
    state = place.start(seeds(1))
    move = place.move(state, np.ones((1, 1)))
    assert move.state[0, 0] == pytest.approx(24 / 5e-3 * 1e-5, rel=1e-2)
    state[0, 0] = 25.0
    broken = place.move(state, np.ones((1, 1)))
    assert broken.terminated.all() and broken.reward[0] == -10.0 and broken.cost is not None and broken.cost[0] == 1
    found = evaluate_policy(Motor(), Motor().control, 20, 0)
    assert not found.terminated.any() and found.returns.mean() > -5


def test_a_portfolio_by_hand() -> None:
    """``portfolio_step``: drift, turnover .21291, cost 2.13e-4; Sharpe .5554; without momentum nothing can be gained."""
    drift, turnover, cost = portfolio_step(
        np.array([[0.5, 0.3, 0.2]]), np.array([[1.02, 0.99, 1.0]]), np.array([[0.4, 0.4, 0.2]]), 1e-3
    )
    assert drift.round(5).tolist() == [[0.50645, 0.29494, 0.19861]]
    assert turnover[0] == pytest.approx(0.21291, abs=1e-5) and cost[0] == pytest.approx(2.13e-4, abs=1e-6)
    assert sharpe_ratio(np.array([0.01, -0.005, 0.008, 0.002])) == pytest.approx(0.5554, abs=1e-4)
    assert sharpe_ratio(np.ones(3)) == 0.0
    gains = {m: evaluate_policy(Portfolio(momentum=m), Portfolio().control, 200, 0).returns.mean() for m in (0.0, 1.0)}
    assert gains[1.0] > 10 > 0 > gains[0.0], (
        "the momentum rule gains where there is momentum, and pays its costs where there is none"
    )


def test_offloading_by_hand() -> None:
    """2 GHz with 4 and 10 Mbit left and 6 more: 11 to 24 s; .012 J and .048 J; hypervolume 6, without the middle 5."""
    assert completion_rise(np.array([4.0, 10.0]), 6.0, 2.0) == pytest.approx(13.0)
    assert completion_rise(np.array([]), 6.0, 4.0) == pytest.approx(1.5)
    place = Offloading(edges=1, weight=0.5)
    state = np.array([[0.0, 0.0, 2.0, 4.0, 6.0, 0.5, 0.0, 0.0]])
    delay, energy = (np.array([place.costs(state, np.array([a]))[k][0] for a in (0, 1)]) for k in (0, 1))
    assert energy.tolist() == pytest.approx([-0.6, -2.4]) and delay[1] == pytest.approx(-0.015)
    assert hypervolume(np.array([[3, 1], [2, 2], [1, 3]])) == 6.0 and hypervolume(np.array([[3, 1], [1, 3]])) == 5.0
    front = front_of(Offloading(), Offloading().control, np.array([0.05, 0.95]), episodes=3)
    assert front[1, 0] > front[0, 0] and front[1, 1] < front[0, 1], "more weight on delay: less delay, more energy"


def test_a_valve_acts_after_its_lag() -> None:
    """``DelayLine``: what is let in now is seen ``lag`` steps later, and only the history says what is on its way."""
    place = DelayLine(lag=3, jump=0.0)
    state = place.start(seeds(1))
    outflow = []
    for t in range(6):
        state = place.move(state, np.array([[1.0 if t == 0 else 0.0]])).state
        outflow.append(place.observe(state)[0, 0])
    assert outflow == pytest.approx([0, 0, 0.2, 0.2, 0.2, 0.2])
    assert DelayLine(lag=3, history=False).observation_size == 3 and place.observation_size == 6
    rewards = {g: collect_episodes(DelayLine(), Scripted(gain=g, noise=0.0), 5, 0)[0].total for g in (0.1, 1.0)}
    assert rewards[1.0] > rewards[0.1]


def test_a_hazard_costs_and_its_controller_keeps_clear() -> None:
    place = HazardPoint()
    found = evaluate_policy(place, place.control, 40, 0)
    assert found.costs.sum() == 0 and found.terminated.all()
    blind = collect_episodes(place, Scripted(of=dataclasses.replace(place, radius=0.01)), 10, 0)
    assert sum(float(e.costs.sum()) for e in blind if e.costs is not None) > 20
    assert "of HazardPoint" in Scripted(of=place).source and "of" not in to_dict(Scripted())


def test_worlds_of_worlds() -> None:
    for place in (
        Distracted(world=Pendulum(horizon=15), count=3),
        SnapshotStarts(world=PointMaze(horizon=20), clusters=4, length=5, teachers=3),
        SnapshotStarts(world=Pendulum(horizon=15), clusters=0, teachers=2),
    ):
        check_world(place, steps=30)
        assert from_dict(type(place), to_dict(place)) == place
    with pytest.raises(ConfigError, match="own worlds"):
        Distracted(world=GymnasiumWorld("x"))
    with pytest.raises(ConfigError, match="use a share"):
        SnapshotStarts(world=Pendulum(), share=2.0)
    plain = Pendulum().start(seeds(8))
    none = SnapshotStarts(world=Pendulum(), share=0.0, teachers=2)
    assert np.array_equal(none.start(seeds(8))[:, :-1], plain), "share 0 begins as the world does"
    assert np.array_equal(Distracted(world=Pendulum(), count=2).control(np.zeros((1, 5))), Pendulum().control(np.zeros((1, 3))))


def test_episodes_from_snapshots_go_on_as_they_did_and_are_cut() -> None:
    """A stored state and the teacher's action give the teacher's next state; the cut is a truncation, which bootstraps."""
    from assay_control.worlds.wrappers import stored_states

    maze = PointMaze(begin=(1, 1))
    place = SnapshotStarts(world=maze, share=1.0, teachers=1, clusters=3, length=4)
    states, cells = stored_states(place)
    assert set(cells.tolist()) == {0, 1, 2}
    after = maze.move(states[:-1], maze.control(maze.observe(states[:-1]))).state
    assert np.allclose(after, states[1:])
    assert {tuple(s[:-1]) for s in place.start(seeds(30))} <= {tuple(s) for s in states}
    running = place.open(3, seeds)
    steps = [running.step(np.zeros((3, 2))) for _ in range(4)]
    assert steps[3].truncated.all() and not steps[3].terminated.any() and not any(s.done.any() for s in steps[:3])


def test_a_run_is_judged_in_a_world_of_its_own(tmp_path: Any) -> None:
    run = ControlRun(
        method=SAC(width=8, start=4, batch=8),
        world=SnapshotStarts(world=Pendulum(horizon=10), teachers=2),
        judged=Pendulum(horizon=7),
        steps=6,
        episodes=2,
    )
    assert train(run, tmp_path / "run").metrics["eval/length"] == 7
    assert run.evaluated_in != run.acted_in == run.world


def test_rewards_from_comparisons() -> None:
    """``fit_preferences`` orders three items; ``PreferredRewards`` finds the reward, and nothing where answers are random."""
    phi = np.eye(3)
    w = fit_preferences(phi[[0, 0, 1]], phi[[1, 2, 2]], np.array([1, 1, 1]))
    assert w[0] < w[1] < w[2]
    data: Any = dataset("pendulum/preferred")
    assert isinstance(data, PreferredRewards)
    held = data.base.rows(0.9)
    found = {
        e: np.corrcoef(dataclasses.replace(data, labeller=OracleLabels(error=e)).rewards(held), held.reward)[0, 1]
        for e in (0.0, 0.5)
    }
    assert found[0.0] > 0.85 and abs(found[0.5]) < 0.5
    rows = data.rows(0.5)
    assert rows.reward.max() == 0.0 and rows.reward.min() == pytest.approx(-1.0)
    last = np.append(rows.first[1:], len(rows)) - 1
    assert np.allclose(rows.to_go[last], rows.reward[last]), "returns are those of the learned rewards"
    assert data.world == Pendulum() and len(data.cached()) == 150
    told = OracleLabels(error=0.0, unsure=0.5).label(held, np.arange(100), np.arange(100, 200), 0)
    assert 30 < (told == -1).sum() < 70
    assert from_dict(ControlRun, to_dict(ControlRun(method=BC(), data=data))).data == data
    with pytest.raises(ConfigError):
        OracleLabels(error=0.9)


@pytest.mark.parametrize(
    ("place", "least", "first", "best"),
    [
        (Corridor(cells=4, horizon=8), 1, 1.0, 1.0),
        (Corridor(cells=4, horizon=8, decoy=0.02), 5, 1.0, 1.08),
        (Corridor(cells=6, horizon=10, decoy=0.05), 7, 0.5, 1.2),
    ],
)
def test_effective_horizons_by_hand(place: Corridor, least: int, first: float, best: float) -> None:
    found = effective_horizon(place)
    assert found.least == least and found.returns[0] == pytest.approx(first) and found.best == pytest.approx(best)
    assert found.returns[2] == pytest.approx(1.0), "J of k = 3 is 1 in all three"
    assert evaluate_policy(place, place.control, 2, 0).returns[0] == pytest.approx(best)
    assert effective_horizon(place, most=max(1, least - 1)).least == (1 if least == 1 else None)


def test_a_shallow_learner_needs_the_depth_of_its_world() -> None:
    place = Corridor(cells=4, horizon=8, decoy=0.02)
    shallow, steps = learn_shallow(place, 1, 300)
    deep, _ = learn_shallow(place, 5, 300)
    assert shallow < deep == pytest.approx(1.08) and steps > 300
    with pytest.raises(ConfigError):
        learn_shallow(place, 0, 1)


def test_chance_inside_an_episode_is_part_of_the_state() -> None:
    u = state_uniforms(np.array([1.0, 1.0, 2.0]), np.array([5.0, 6.0, 5.0]), 1)[:, 0]
    assert len(set(u.tolist())) == 3 and ((u >= 0) & (u < 1)).all()
    cells = cluster_points(np.array([[0.0], [0.1], [5.0]]), 2, 0)
    assert cells[0] == cells[1] != cells[2]


def test_settings_out_of_range_are_refused() -> None:
    wrong: list[Any] = [
        lambda: ExtrusionDie(index=0.0), lambda: Motor(jump=2.0), lambda: Motor(limit=0.0), lambda: HazardPoint(radius=0.0),
        lambda: DelayLine(lag=0), lambda: Portfolio(assets=0), lambda: Offloading(edges=0), lambda: Corridor(cells=0),
        lambda: Distracted(world=Pendulum(), count=0), lambda: PreferredRewards(base=dataset("pendulum/random"), labels=0),
    ]  # fmt: skip
    for make in wrong:
        with pytest.raises(ConfigError):
            make()
    assert RandomActions().source == "random" and world("corridor") == Corridor()


def test_codes_of_low_weight_by_hand() -> None:
    """Hamming (7, 4): 58 qubits, 16 kept, checks of up to 7, qubits in up to 8; repetition (3): [[13, 1]], weight 4."""
    hamming = np.array([[1, 0, 1, 0, 1, 0, 1], [0, 1, 1, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1, 1]])
    repetition = np.array([[1, 1, 0], [0, 1, 1]])
    for h, qubits, kept, weight, degree in ((hamming, 58, 16, 7, 8), (repetition, 13, 1, 4, 4)):
        x, z = hypergraph_product(h)
        assert x.shape[1] == qubits and qubits - gf2_rank(x) - gf2_rank(z) == kept and not (x @ z.T % 2).any()
        assert max(x.sum(1).max(), z.sum(1).max()) == weight and (x.sum(0) + z.sum(0)).max() <= degree
    assert code_distance(hamming) == 3 and code_distance(repetition) == 3 and code_distance(np.eye(3, dtype=int)) == 4
    place = CheckMatrix()
    state = place.start(seeds(12))
    for action in range(20):
        after = place.move(state, np.full(12, action)).state
        matrices = [s[:-1].reshape(4, 8).astype(int) for s in after]
        assert all(code_distance(h) >= 2 and 8 - gf2_rank(h) >= s[-1] for h, s in zip(matrices, state, strict=True))
        state = after
    greedy = evaluate_policy(place, place.control, 10, 0)
    assert greedy.returns.mean() > evaluate_policy(place, lambda o: np.zeros(len(o), np.int64), 10, 0).returns.mean()
    with pytest.raises(ConfigError):
        CheckMatrix(length=11)
