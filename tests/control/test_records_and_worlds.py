"""Episodes, worlds and their controllers."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pytest

from assay.core import ConfigError, DataError
from assay_control import (
    WORLDS,
    Box,
    CartPole,
    Choices,
    Episode,
    GymnasiumWorld,
    Pendulum,
    PointMaze,
    evaluate_policy,
    normalise_return,
    references,
    transitions,
    world,
)
from assay_control.testing import check_world
from assay_control.worlds.base import Copies
from assay_control.worlds.maze import free_cells


def seeds(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.uint64)


def episode(rewards: list[float], terminated: bool = False, observation: float = 0.0) -> Episode:
    n = len(rewards)
    last = np.arange(n) == n - 1
    return Episode(
        observations=np.full((n + 1, 2), observation),
        actions=np.zeros((n, 1)),
        rewards=np.array(rewards),
        terminated=last & terminated,
        truncated=last & (not terminated),
    )


@pytest.mark.parametrize("name", list(WORLDS))
def test_worlds_keep_the_laws(name: str) -> None:
    check_world(world(name))


def test_a_pendulum_moves_as_gymnasiums_does() -> None:
    """One step by hand: angle pi/2, speed 1, torque 2."""
    move = Pendulum().move(np.array([[np.pi / 2, 1.0]]), np.array([[1.0]]))
    speed = 1 + (15 * 1.0 + 3 * 2) * 0.05
    assert np.allclose(move.state, [[np.pi / 2 + speed * 0.05, speed]])
    assert np.allclose(move.reward, -((np.pi / 2) ** 2 + 0.1 + 0.001 * 4))


def test_a_cart_pole_moves_as_gymnasiums_does() -> None:
    move = CartPole().move(np.zeros((1, 4)), np.array([1]))
    push = 10 / 1.1
    swing = -push / (0.5 * (4 / 3 - 0.1 / 1.1))
    assert np.allclose(move.state, [[0, 0.02 * (push - 0.05 * swing / 1.1), 0, 0.02 * swing]])
    assert CartPole().move(np.array([[2.5, 0, 0, 0]]), np.array([0])).terminated.tolist() == [True]


def test_nobody_walks_through_a_wall() -> None:
    maze = PointMaze()
    place = maze.start(seeds(50))
    rng = np.random.default_rng(0)
    for _ in range(100):
        place = maze.move(place, rng.uniform(-1, 1, (50, 2))).state
        cell = np.rint(place).astype(int)
        assert free_cells(maze.maze)[cell[:, 0], cell[:, 1]].all()
    assert np.allclose(maze.place(maze.observe(place)), place)


def test_controllers_are_far_better_than_chance() -> None:
    for name, least, most in (("pendulum", -190.0, -120.0), ("cart-pole", 499.0, 500.0), ("maze", 1.0, 1.0)):
        found = references(world(name))
        assert found is not None and least <= found.expert.value <= most
        assert found.random.value < found.expert.value - 0.5


def test_a_score_is_0_at_random_and_100_at_the_expert() -> None:
    found = references(Pendulum())
    assert found is not None
    assert normalise_return(found.random.value, found) == 0 and normalise_return(found.expert.value, found) == 100
    with pytest.raises(ConfigError, match="not above"):
        normalise_return(0.0, dataclasses.replace(found, expert=found.random))


def test_evaluation_counts_each_episode_once() -> None:
    found = evaluate_policy(CartPole(horizon=30), lambda o: np.ones(len(o), np.int64), 5, 0, 0.5)
    assert (found.lengths < 30).all() and found.terminated.all()
    assert np.array_equal(found.returns, found.lengths) and np.allclose(found.discounted, 2 - 2 * 0.5**found.lengths)
    assert found.mean().n == 5


def test_returns_to_go_and_flat_columns() -> None:
    rows = transitions([episode([1, 2, 4], terminated=True), episode([8])], 0.5)
    assert rows.to_go.tolist() == [3, 4, 4, 8] and rows.terminal.tolist() == [False, False, True, False]
    assert rows.returns().tolist() == [7, 8] and rows.episode.tolist() == [0, 0, 0, 1] and rows.step.tolist() == [0, 1, 2, 0]
    assert rows.digest() != transitions([episode([1, 2, 5], terminated=True), episode([8])], 0.5).digest()
    with pytest.raises(DataError, match="at least one episode"):
        transitions([], 0.9)


def test_wrong_records_are_refused() -> None:
    good = episode([1.0, 2.0])
    with pytest.raises(DataError, match=r"T \+ 1"):
        dataclasses.replace(good, observations=np.zeros((2, 2)))
    with pytest.raises(DataError, match="split it there"):
        dataclasses.replace(good, terminated=np.array([True, False]))
    with pytest.raises(DataError, match="not finite"):
        dataclasses.replace(good, rewards=np.array([1.0, np.nan]))
    for wrong in (lambda: Box(0), lambda: Choices(1), lambda: Pendulum(mass=0), lambda: CartPole(length=-1)):
        with pytest.raises(ConfigError):
            wrong()
    with pytest.raises(ConfigError, match="is a wall"):
        PointMaze(goal=(0, 0))
    with pytest.raises(ConfigError, match="use one of"):
        PointMaze(maze="spiral")
    with pytest.raises(ConfigError, match="close its border"):
        PointMaze(maze="..#/###", begin=None, goal=(0, 0))
    with pytest.raises(ConfigError, match="differ in length"):
        PointMaze(maze="..#/##", begin=None, goal=(0, 0))
    with pytest.raises(ConfigError, match="at least one copy"):
        Copies(Pendulum(), 0, seeds)
    with pytest.raises(ConfigError, match="actions of shape"):
        Pendulum().open(2, seeds).step(np.zeros((2, 2)))


class FakeSpace:
    def __init__(self, size: int) -> None:
        self.shape, self.low, self.high, self.dtype = (size,), -2 * np.ones(size), 2 * np.ones(size), np.float32


class FakeEnvironment:
    """As Gymnasium's: a point that is pushed."""

    observation_space, action_space = FakeSpace(1), FakeSpace(1)
    spec = type("Spec", (), {"max_episode_steps": 5})

    def reset(self, seed: int) -> tuple[np.ndarray, dict]:
        self.place, self.steps = np.array([seed % 7]) / 7, 0
        return self.place, {}

    def step(self, action: np.ndarray) -> tuple:
        self.place, self.steps = self.place + action, self.steps + 1
        return self.place, float(action[0]), bool(self.place[0] > 3), self.steps >= 5, {}


def test_an_environment_of_gymnasium_is_a_world(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", type("Gymnasium", (), {"make": staticmethod(lambda name: FakeEnvironment())}))
    made = GymnasiumWorld("Push-v0")
    assert (made.observation_size, made.actions, made.horizon) == (1, Box(1), 5)
    check_world(made, restores=False)
    step = made.open(1, lambda n: np.zeros(n, np.uint64)).step(np.array([[0.5]]))
    assert step.reward.tolist() == [1.0], "actions are stretched to the environment's own ends"


def test_gymnasium_is_asked_for_by_name_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ConfigError, match="pip install gymnasium"):
        GymnasiumWorld("Missing-v0").horizon  # noqa: B018


def test_episodes_can_be_drawn() -> None:
    for name in WORLDS:
        made = world(name)
        running = made.open(1, seeds)
        svg = made.picture(np.stack([running.observation[0]] * 3))
        assert svg.startswith("<svg") and "stroke" in svg
