"""Behaviours, recipes, files, measures and weights of data."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from assay.core import ConfigError, DataError
from assay_control import (
    DATASETS,
    CartPole,
    Corrupted,
    Dataset,
    FileData,
    Pendulum,
    PointMaze,
    RandomActions,
    Scripted,
    Share,
    TopEpisodes,
    Wander,
    WeightedEpisodes,
    collect_episodes,
    coverage,
    data_card,
    dataset,
    episodes_of_arrays,
    joint_coverage,
    read_npz,
    return_advantages,
    to_arrays,
    top_episodes,
    trajectory_quality,
    trajectory_weights,
    transitions,
)
from assay_control.data.files import npz_bytes


def small(seed: int = 0) -> Dataset:
    return Dataset(
        world=Pendulum(horizon=10),
        shares=(Share(behaviour=RandomActions(), episodes=3), Share(behaviour=Scripted(noise=0.1), episodes=2)),
        seed=seed,
    )


def test_a_recipe_gives_the_same_data_each_time(tmp_path: Path) -> None:
    first, again, other = (transitions(d.episodes(), 0.99).digest() for d in (small(), small(), small(1)))
    assert first == again != other
    kept = small().cached(tmp_path)
    assert len(list(tmp_path.glob("*.npz"))) == 1
    assert transitions(small().cached(tmp_path), 0.99).digest() == transitions(kept, 0.99).digest() == first
    assert [e.source for e in kept] == ["random"] * 3 + ["script gain=1 noise=0.1"] * 2


@pytest.mark.parametrize("name", list(DATASETS))
def test_named_data_sets_can_be_made(name: str) -> None:
    made = dataset(name)
    made = made if isinstance(made, Dataset) else made.base
    shares = tuple(dataclasses.replace(s, episodes=2) for s in made.shares)
    assert len(dataclasses.replace(made, shares=shares).episodes()) == 2 * len(shares)


def test_a_weak_controller_is_between_chance_and_the_expert() -> None:
    totals = [
        np.mean([e.total for e in collect_episodes(Pendulum(), b, 50, 0)])
        for b in (RandomActions(), Scripted(gain=0.5), Scripted())
    ]
    assert totals[0] < totals[1] - 200 < totals[2] - 400


def test_wandering_reaches_cells_all_over_the_maze() -> None:
    maze = PointMaze(begin=None)
    seen = np.concatenate([maze.place(e.observations) for e in collect_episodes(maze, Wander(), 60, 0, 19)])
    assert len(np.unique(np.rint(seen), axis=0)) > 30
    near = collect_episodes(maze, Wander(near=2, noise=0.0), 20, 0, 5)
    assert max(np.abs(maze.place(e.observations[-1]) - maze.place(e.observations[0])).sum() for e in near) < 8
    with pytest.raises(ConfigError, match="PointMaze"):
        Wander().begin(Pendulum(), 1, 0)


def test_wrong_behaviours_are_refused() -> None:
    for wrong in (lambda: Scripted(gain=0), lambda: Wander(noise=-1), lambda: Share(behaviour=RandomActions(), episodes=0)):
        with pytest.raises(ConfigError):
            wrong()
    with pytest.raises(ConfigError, match="does nothing to choices"):
        Scripted(gain=0.5).begin(CartPole(), 1, 0)
    with pytest.raises(ConfigError, match="at least one Share"):
        Dataset(world=Pendulum(), shares=())

    @dataclasses.dataclass(frozen=True)
    class Plain:
        actions = Pendulum().actions

    with pytest.raises(ConfigError, match="no scripted controller"):
        Scripted().begin(Plain(), 1, 0)  # type: ignore[arg-type]


def flat(**changes: np.ndarray) -> dict[str, np.ndarray]:
    """Twelve rows: one terminal at row 4, one timeout at row 8, and the file ends in the middle of an episode."""
    n = 12
    made = {
        "observations": np.arange(float(n))[:, None],
        "actions": np.zeros((n, 1)),
        "rewards": np.ones(n),
        "terminals": np.arange(n) == 4,
        "timeouts": np.arange(n) == 8,
    }
    return {**made, **changes}


def test_flat_arrays_are_cut_where_a_successor_is_missing() -> None:
    found = episodes_of_arrays(flat(), "memory")
    assert [len(e) for e in found] == [5, 3, 2]
    assert found[0].terminated[-1] and found[1].truncated[-1] and not found[1].terminated.any()
    assert found[1].observations[-1] == [8.0], "the last observation of a timeout is its own, never the next episode's start"
    whole = episodes_of_arrays(flat(next_observations=np.arange(1.0, 13.0)[:, None]), "memory")
    assert [len(e) for e in whole] == [5, 4, 3] and whole[1].observations[-1] == [9.0]


def test_files_of_ones_own(tmp_path: Path) -> None:
    data = small()
    path = tmp_path / "mine.npz"
    path.write_bytes(npz_bytes(to_arrays(data.episodes())))
    own = FileData(world=data.world, path=str(path))
    assert transitions(own.cached(), 1.0).digest() == transitions(data.episodes(), 1.0).digest()
    assert dataclasses.replace(own, checksum=own.digest()).episodes()
    with pytest.raises(DataError, match="put that one back"):
        dataclasses.replace(own, checksum="other").episodes()
    with pytest.raises(DataError, match="CartPole has"):
        dataclasses.replace(own, world=CartPole()).episodes()
    with pytest.raises(DataError, match="does not exist"):
        read_npz(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("no archive")
    with pytest.raises(DataError, match=r"is no \.npz"):
        read_npz(tmp_path / "text.npz")
    with pytest.raises(DataError, match="no array terminals"):
        episodes_of_arrays({k: v for k, v in flat().items() if k != "terminals"}, "memory")
    with pytest.raises(DataError, match="one row a step"):
        episodes_of_arrays(flat(actions=np.zeros((3, 1))), "memory")
    with pytest.raises(DataError, match="do not fit"):
        episodes_of_arrays({**to_arrays(data.episodes()), "rewards": np.zeros(3)}, "memory")


def test_the_weights_of_the_paper() -> None:
    """RW and AW: the numbers of the sheet, ``WeightedEpisodes`` against them."""
    assert trajectory_weights(np.array([0.0, 0.5, 1.0]), 0.1).round(4).tolist() == [0.0, 0.0067, 0.9933]
    assert trajectory_weights(np.array([0.0, 0.5, 1.0]), 1.0).round(3).tolist() == [0.186, 0.307, 0.506]
    assert np.allclose(trajectory_weights(np.array([0.0, 1.0]), 1e6), 0.5)
    assert round(float(trajectory_weights(np.array([-3.0, 7.0]), 0.1)[1]), 5) == 0.99995
    rows = transitions(dataset("pendulum/mixed").cached(), 0.99)
    expert = rows.episode >= 190
    for by, least, most in (("advantage", 0.95, 1.0), ("return", 0.8, 0.95)):
        weights = WeightedEpisodes(by=by).weights(rows)
        assert least < weights[expert].sum() / weights.sum() < most
    with pytest.raises(ConfigError, match="temperature"):
        trajectory_weights(np.zeros(2), 0.0)
    with pytest.raises(DataError, match="no episodes"):
        trajectory_weights(np.zeros(0), 1.0)


def test_a_share_of_the_rows_can_be_wrong() -> None:
    """``Corrupted``: exactly floor(.3 n) rows of one field differ, within scale deviations, and the mask says which."""
    for what, name in (
        ("dynamics", "next_observation"),
        ("reward", "reward"),
        ("action", "action"),
        ("observation", "observation"),
    ):
        wrong = Corrupted(base=small(), what=what, scale=2.0)
        clean, rows = small().rows(0.99), wrong.rows(0.99)
        differs = (getattr(clean, name) != getattr(rows, name)).reshape(len(rows), -1).any(1)
        assert differs.sum() == 15 and np.array_equal(differs, wrong.mask(50)) and rows.digest() == wrong.rows(0.99).digest()
        change = np.abs(getattr(clean, name) - getattr(rows, name)).reshape(len(rows), -1).max(0)
        assert (change <= 2 * getattr(clean, name).reshape(len(rows), -1).std(0) + 1e-5).all()
        for other in {"observation", "action", "reward", "next_observation"} - {name}:
            assert np.array_equal(getattr(clean, other), getattr(rows, other))
    assert len(wrong.cached()) == 5 and wrong.world == small().world
    with pytest.raises(ConfigError, match="use one of observation"):
        Corrupted(base=small(), what="goal")
    with pytest.raises(ConfigError, match="no deviation"):
        Corrupted(base=dataset("cart-pole/expert"), what="action").rows(0.9)


def test_equal_starts_make_advantages_returns() -> None:
    episodes = small().episodes()
    alike = [
        dataclasses.replace(e, observations=np.concatenate([episodes[0].observations[:1], e.observations[1:]])) for e in episodes
    ]
    rows = transitions(alike, 1.0)
    assert np.allclose(trajectory_weights(return_advantages(rows), 0.1), trajectory_weights(rows.returns(), 0.1), atol=1e-6)


def test_a_share_of_episodes_that_are_alike_is_refused() -> None:
    """95 zeros, 5 ones, the best 10 %: a quantile would keep everything."""
    returns = np.array([0.0] * 95 + [1.0] * 5)
    with pytest.raises(ConfigError, match="95 have a return of 0"):
        top_episodes(returns, 0.1)
    assert top_episodes(returns, 0.05).sum() == 5
    with pytest.raises(ConfigError, match="use a share"):
        top_episodes(returns, 0.0)
    with pytest.raises(ConfigError, match="batch=0"):
        TopEpisodes(batch=0)


def test_measures_of_data() -> None:
    assert trajectory_quality(np.array([10.0, 20.0]), 0, 20) == 0.75
    with pytest.raises(ConfigError):
        trajectory_quality(np.zeros(1), 1, 1)
    rows = transitions(small().episodes(), 1.0)
    twice = transitions(small().episodes() * 2, 1.0)
    assert coverage(rows, rows) == 1.0 and coverage(twice, rows) == 1.0, "copies of data cover nothing new"
    assert joint_coverage(twice) == joint_coverage(rows) / 2
    with pytest.raises(ConfigError, match="bins"):
        coverage(rows, rows, bins=1)
    card = data_card(small())
    assert card["episodes"] == 5 and card["rows"] == 50 and 0 <= card["positive semivariance"] <= 1
