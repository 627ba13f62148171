"""Data sets of other libraries, in and out: HDF5 with flat arrays as D4RL has them, and Minari. Both packages are optional."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from assay.core import ConfigError, DataError
from assay.runs import write_bytes
from assay_control.data.files import episodes_of_arrays, npz_bytes, read_npz, to_arrays
from assay_control.records import Array, Episode

__all__ = ["read_episodes", "read_hdf5", "read_minari", "write_episodes", "write_hdf5", "write_minari"]

MINARI = "minari:"


def _optional(name: str, why: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        raise ConfigError(f"{name} is not installed: pip install {name}, for {why}") from None


def read_episodes(place: str) -> list[Episode]:
    """The episodes of a file, or of a data set of Minari.

    Args:
        place: a path that ends with ``.npz``, ``.hdf5`` or ``.h5``; or ``minari:`` and the name of a data set that Minari has
            on this machine.

    Raises:
        DataError: it is not there, or no data set.
        ConfigError: a package that it needs is not installed.
    """
    if place.startswith(MINARI):
        return read_minari(place.removeprefix(MINARI))
    path = Path(place)
    return read_hdf5(path) if path.suffix in (".hdf5", ".h5") else read_npz(path)


def write_episodes(episodes: Sequence[Episode], path: Path) -> None:
    """Writes ``.npz`` in assay's layout, or ``.hdf5`` with flat arrays.

    Raises:
        ConfigError: another ending, or h5py is not installed.
        StorageError: the disk is full.
    """
    if path.suffix == ".npz":
        write_bytes(path, npz_bytes(to_arrays(episodes)))
    elif path.suffix in (".hdf5", ".h5"):
        write_hdf5(episodes, path)
    else:
        raise ConfigError(f"{path} has an ending that is not known; use .npz, .hdf5 or .h5")


def read_hdf5(path: Path) -> list[Episode]:
    """Episodes of flat arrays in an HDF5 file, in the layout of D4RL (Fu et al. 2020, arXiv 2004.07219); groups are left out.

    Raises:
        DataError: no such file, or arrays that do not fit together.
        ConfigError: h5py is not installed.
    """
    h5py = _optional("h5py", "files of HDF5")
    if not path.exists():
        raise DataError(f"{path} does not exist; give an HDF5 file of episodes")
    try:
        with h5py.File(path, "r") as file:
            arrays = {name: np.asarray(file[name]) for name in file if hasattr(file[name], "shape")}
    except OSError as error:
        raise DataError(f"{path} is no HDF5 file: {error}") from None
    return episodes_of_arrays(arrays, str(path))


def write_hdf5(episodes: Sequence[Episode], path: Path) -> None:
    """Flat arrays with ``next_observations``, ``terminals`` and ``timeouts``: no step is lost when they are read again.

    Raises:
        ConfigError: h5py is not installed.
    """
    h5py = _optional("h5py", "files of HDF5")
    with h5py.File(path, "w") as file:
        for name, values in _flat_arrays(episodes).items():
            file[name] = values


def _flat_arrays(episodes: Sequence[Episode]) -> dict[str, Array]:
    return {
        "observations": np.concatenate([e.observations[:-1] for e in episodes]),
        "next_observations": np.concatenate([e.observations[1:] for e in episodes]),
        "actions": np.concatenate([e.actions for e in episodes]),
        "rewards": np.concatenate([e.rewards for e in episodes]),
        "terminals": np.concatenate([e.terminated for e in episodes]),
        "timeouts": np.concatenate([e.truncated for e in episodes]),
    }


def read_minari(name: str) -> list[Episode]:
    """The episodes of a data set of Minari that is on this machine; nothing is downloaded.

    Actions that are vectors are scaled to [-1, 1] by the ends of its action space.

    Raises:
        DataError: there is none of that name, or its observations are no vectors.
        ConfigError: minari is not installed.
    """
    minari = _optional("minari", "its data sets")
    try:
        found = minari.load_dataset(name, download=False)
    except FileNotFoundError:
        raise DataError(f"Minari has no data set {name!r} on this machine; see 'minari list local'") from None
    space = found.action_space
    return [_from_minari(e, space, f"{name}, episode {number}") for number, e in enumerate(found.iterate_episodes())]


def _from_minari(episode: Any, space: Any, place: str) -> Episode:
    observed: Any = episode.observations
    kind = type(episode.observations).__name__
    if isinstance(observed, Mapping) or np.ndim(observed) != 2:
        raise DataError(f"{place}: observations are {kind}, not vectors [T + 1, O]; flatten them first")
    actions = np.asarray(episode.actions)
    if not hasattr(space, "n"):
        low, high = np.asarray(space.low, np.float64), np.asarray(space.high, np.float64)
        actions = ((actions - low) / (high - low) * 2 - 1).astype(np.float32)
    count = len(episode.rewards)
    ended = np.zeros(count, bool)
    ended[-1] = True
    terminated = bool(np.asarray(episode.terminations)[-1])
    return Episode(
        observations=np.asarray(observed, np.float32),
        actions=actions.astype(np.int64) if hasattr(space, "n") else actions,
        rewards=np.asarray(episode.rewards, np.float32),
        terminated=ended & terminated,
        truncated=ended & (not terminated),
        source=place,
        seed=int(getattr(episode, "seed", None) or 0),
    )


def write_minari(episodes: Sequence[Episode], name: str, environment: str) -> None:
    """Makes a data set of Minari out of episodes.

    Args:
        episodes: to write; actions stay in [-1, 1].
        name: of the data set, such as ``pendulum/mixed-v0``.
        environment: description of the world, noted with it.

    Raises:
        ConfigError: minari or gymnasium is not installed.
    """
    minari, spaces = _optional("minari", "its data sets"), _optional("gymnasium.spaces", "spaces of a data set of Minari")
    first = episodes[0]
    choices = np.issubdtype(np.asarray(first.actions).dtype, np.integer)
    if choices:
        action: Any = spaces.Discrete(1 + int(max(int(np.max(e.actions)) for e in episodes)))
    else:
        action = spaces.Box(-1.0, 1.0, first.actions.shape[1:], np.float32)
    minari.create_dataset_from_buffers(
        dataset_id=name,
        buffer=[_to_minari(minari, e, number) for number, e in enumerate(episodes)],
        observation_space=spaces.Box(-np.inf, np.inf, first.observations.shape[1:], np.float32),
        action_space=action,
        description=environment,
        algorithm_name=first.source,
    )


def _to_minari(minari: Any, episode: Episode, number: int) -> Any:
    buffer = import_module("minari.data_collector").EpisodeBuffer if hasattr(minari, "__path__") else minari.EpisodeBuffer
    return buffer(
        id=number,
        seed=episode.seed & 0x7FFFFFFF,
        observations=episode.observations,
        actions=episode.actions,
        rewards=episode.rewards,
        terminations=episode.terminated,
        truncations=episode.truncated,
        infos={},
    )
