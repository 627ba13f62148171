"""Data sets and environments of other libraries: HDF5, Minari, PettingZoo and MuJoCo, by look-alikes of their interfaces."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from assay.cli import main
from assay.core import ConfigError, DataError
from assay_control import (
    Box,
    CartPole,
    Choices,
    FileData,
    GymnasiumWorld,
    ParallelAgents,
    Pendulum,
    RandomActions,
    collect_episodes,
    read_episodes,
    read_hdf5,
    read_minari,
    write_episodes,
    write_hdf5,
    write_minari,
)
from assay_control.testing import check_world
from assay_control.worlds import pettingzoo


class FakeFile(dict[str, Any]):
    """A file of h5py: arrays by name, kept as .npz."""

    def __init__(self, path: Path, mode: str) -> None:
        super().__init__()
        self._path, self._mode = path, mode
        if mode == "r":
            try:
                with np.load(path) as held:
                    self.update({n: held[n] for n in held.files})
            except ValueError:
                raise OSError("unable to open file (file signature not found)") from None
            self["metadata"] = SimpleNamespace()  # a group, which has no shape

    def __enter__(self) -> FakeFile:
        return self

    def __exit__(self, *error: object) -> None:
        if self._mode == "w":
            with Path(self._path).open("wb") as file:
                np.savez(file, **self)


@pytest.fixture
def h5py(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("h5py")
    module.File = FakeFile  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "h5py", module)


def same(one: Any, other: Any) -> bool:
    names = ("observations", "actions", "rewards", "terminated", "truncated")
    return all(np.allclose(getattr(one, n), getattr(other, n), atol=1e-6) for n in names)


@pytest.mark.usefixtures("h5py")
def test_hdf5_there_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = collect_episodes(CartPole(), RandomActions(), 4, 0)
    write_hdf5(made, tmp_path / "x.hdf5")
    back = read_hdf5(tmp_path / "x.hdf5")
    assert len(back) == 4 and all(same(a, b) for a, b in zip(made, back, strict=True))
    assert len(FileData(world=CartPole(), path=str(tmp_path / "x.hdf5")).rows(0.9)) == sum(len(e) for e in made)
    assert main(["control", "datasets", "pendulum/random", "--out", str(tmp_path / "y.h5")]) == 0
    assert len(read_episodes(str(tmp_path / "y.h5"))) == 100
    assert main(["control", "datasets", "--out", "z.npz"]) == 2
    assert "name the data set" in capsys.readouterr().err
    with pytest.raises(DataError, match="does not exist"):
        read_hdf5(tmp_path / "none.hdf5")
    (tmp_path / "bad.h5").write_bytes(b"no")
    with pytest.raises(DataError, match="no HDF5 file"):
        read_hdf5(tmp_path / "bad.h5")


def test_files_by_their_ending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = collect_episodes(Pendulum(horizon=5), RandomActions(), 2, 0)
    write_episodes(made, tmp_path / "x.npz")
    assert all(same(a, b) for a, b in zip(made, read_episodes(str(tmp_path / "x.npz")), strict=True))
    with pytest.raises(ConfigError, match=r"use \.npz"):
        write_episodes(made, tmp_path / "x.csv")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ConfigError, match="pip install h5py"):
        write_episodes(made, tmp_path / "x.h5")


class FakeBox:
    def __init__(self, low: Any, high: Any, shape: Any, dtype: Any) -> None:
        self.low, self.high = np.full(shape, low, dtype), np.full(shape, high, dtype)
        self.shape, self.dtype = shape, dtype


def fake_minari(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    held: dict[str, Any] = {}

    def load(name: str, download: bool) -> Any:
        assert not download
        if name not in held:
            raise FileNotFoundError(name)
        return held[name]

    def create(**given: Any) -> None:
        held[given["dataset_id"]] = SimpleNamespace(
            action_space=given["action_space"], iterate_episodes=lambda: iter(given["buffer"]), told=given
        )

    module = ModuleType("minari")
    module.__dict__.update(load_dataset=load, create_dataset_from_buffers=create, EpisodeBuffer=SimpleNamespace)
    spaces = ModuleType("gymnasium.spaces")
    spaces.__dict__.update(Box=FakeBox, Discrete=lambda n: SimpleNamespace(n=n))
    monkeypatch.setitem(sys.modules, "minari", module)
    monkeypatch.setitem(sys.modules, "gymnasium.spaces", spaces)
    return held


def test_minari_there_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    held = fake_minari(monkeypatch)
    for name, place in (("a/pendulum-v0", Pendulum(horizon=9)), ("a/pole-v0", CartPole())):
        made = collect_episodes(place, RandomActions(), 3, 0)
        write_minari(made, name, "a world of assay")
        back = read_minari(name)
        assert all(same(a, b) for a, b in zip(made, back, strict=True)) and held[name].told["algorithm_name"] == "random"
    assert held["a/pole-v0"].action_space.n == 2
    assert len(FileData(world=Pendulum(), path="minari:a/pendulum-v0").rows(0.9)) == 27
    held["a/pendulum-v0"].action_space = FakeBox(-2.0, 2.0, (1,), np.float32)
    assert np.allclose(
        read_minari("a/pendulum-v0")[0].actions * 2, collect_episodes(Pendulum(horizon=9), RandomActions(), 3, 0)[0].actions
    )
    with pytest.raises(DataError, match="minari list local"):
        read_minari("none")
    held["a/pole-v0"].iterate_episodes = lambda: iter([SimpleNamespace(observations={"image": 1})])
    with pytest.raises(DataError, match="not vectors"):
        read_minari("a/pole-v0")
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(ConfigError, match="pip install minari"):
        read_minari("a/pole-v0")


# ---- agents of one kind -------------------------------------------------------------------------------------------------


class FakeTeam:
    """Two agents on a line; each sees where both are, and an episode is over where one is far away."""

    possible_agents = ("a", "b")
    box = True
    size = 2

    def observation_space(self, agent: str) -> Any:
        return FakeBox(-9.0, 9.0, (self.size,), np.float32)

    def action_space(self, agent: str) -> Any:
        return FakeBox(-0.5, 0.5, (1,), np.float32) if self.box else SimpleNamespace(n=3)

    def _seen(self) -> dict[str, Any]:
        return {"a": self.at.copy(), "b": self.at[::-1].copy()}

    def reset(self, seed: int) -> Any:
        self.at = np.random.default_rng(seed).uniform(-1, 1, 2)
        return self._seen(), {}

    def step(self, actions: dict[str, Any]) -> Any:
        self.at = self.at + np.array([float(np.reshape(actions[a], -1)[0]) for a in "ab"]) * (1 if self.box else 0.1)
        far = np.abs(self.at) > 2
        names = self.possible_agents
        reward = dict(zip(names, -np.abs(self.at), strict=True))
        return self._seen(), reward, dict(zip(names, far, strict=True)), dict.fromkeys(names, False), {}


@pytest.fixture
def team(monkeypatch: pytest.MonkeyPatch) -> type[FakeTeam]:
    class Team(FakeTeam):
        pass

    module = ModuleType("fake_team")
    module.parallel_env = Team  # type: ignore[attr-defined]
    module.other = dict  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fake_team", module)
    pettingzoo._facts.cache_clear()  # type: ignore[attr-defined]
    return Team


def test_agents_of_one_kind_are_copies(team: type[FakeTeam]) -> None:
    place = ParallelAgents("fake_team", horizon=9)
    assert (place.observation_size, place.actions) == (2, Box(1))
    check_world(place, steps=30, copies=3, restores=False, alone=False)
    running = place.open(4, lambda n: np.arange(n, dtype=np.uint64))
    for _ in range(9):
        step = running.step(np.array([[1.0], [0.0], [0.0], [0.0]]))
        if step.done.any():
            break
    assert step.terminated.tolist() == [True, False, False, False] and step.truncated.tolist() == [False, True, False, False], (
        "where one agent ends, the other of its team is cut"
    )
    assert running.state() == {}
    running.restore({})
    team.box = False
    pettingzoo._facts.cache_clear()  # type: ignore[attr-defined]
    assert ParallelAgents("fake_team").actions == Choices(3)
    check_world(ParallelAgents("fake_team", horizon=5), steps=8, copies=2, restores=False, alone=False)


def test_agents_that_cannot_share_a_policy_are_refused(team: type[FakeTeam]) -> None:
    for path, told in (
        ("fake_team:none", "no such function"),
        ("no_team", "install the package"),
        ("fake_team:other", "PettingZoo"),
    ):
        with pytest.raises(ConfigError, match=told):
            _ = ParallelAgents(path).actions
    team.size = 0
    team.observation_space = lambda self, agent: FakeBox(0, 1, (1 if agent == "a" else 2,), np.float32)  # type: ignore[method-assign]
    with pytest.raises(ConfigError, match="one length"):
        _ = ParallelAgents("fake_team").actions
    team.observation_space = FakeTeam.observation_space  # type: ignore[method-assign]
    team.action_space = lambda self, agent: SimpleNamespace(n=2 if agent == "a" else 3)  # type: ignore[method-assign]
    with pytest.raises(ConfigError, match="one space of actions"):
        _ = ParallelAgents("fake_team").observation_size


# ---- MuJoCo -------------------------------------------------------------------------------------------------------------


class FakeMujoco:
    """An environment with ``data`` and ``set_state`` as those of MuJoCo have them."""

    observation_space = FakeBox(-9.0, 9.0, (2,), np.float32)
    action_space = FakeBox(-1.0, 1.0, (1,), np.float32)
    spec = SimpleNamespace(max_episode_steps=6)

    def __init__(self) -> None:
        self.data = SimpleNamespace(qpos=np.zeros(1), qvel=np.zeros(1), qacc_warmstart=np.zeros(1), time=0.0)
        self.unwrapped = self

    def set_state(self, qpos: Any, qvel: Any) -> None:
        self.data.qpos[:], self.data.qvel[:] = qpos, qvel

    def _seen(self) -> Any:
        return np.concatenate([self.data.qpos, self.data.qvel])

    def reset(self, seed: int) -> Any:
        self.set_state(np.random.default_rng(seed).uniform(-1, 1, 1), np.zeros(1))
        self.data.qacc_warmstart[:], self.data.time = 0.0, 0.0
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        d = self.data
        d.qacc_warmstart[:] = 0.5 * d.qacc_warmstart + action
        d.qvel[:] += 0.1 * d.qacc_warmstart
        d.qpos[:] += 0.1 * d.qvel
        return self._seen(), float(d.qpos[0]), False, False, {}


def test_a_simulation_of_mujoco_is_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    from assay_control.worlds import gymnasium

    monkeypatch.setattr(gymnasium, "_gymnasium", lambda: SimpleNamespace(make=lambda name: FakeMujoco()))
    gymnasium._facts.cache_clear()  # type: ignore[attr-defined]
    check_world(GymnasiumWorld("Fake-v1"), steps=20, copies=2)
    gymnasium._facts.cache_clear()  # type: ignore[attr-defined]
