"""Episodes in ``.npz`` files: assay's own layout, and flat arrays as D4RL has them."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from assay.core import DataError
from assay_control.records import Array, Episode

__all__ = ["episodes_of_arrays", "npz_bytes", "read_npz", "to_arrays"]


def to_arrays(episodes: Sequence[Episode]) -> dict[str, Array]:
    """The arrays of a file: observations one longer than actions for each episode, and the lengths.

    >>> e = Episode(observations=np.zeros((3, 2)), actions=np.zeros((2, 1)), rewards=np.ones(2),
    ...             terminated=np.array([False, True]), truncated=np.zeros(2, bool))
    >>> back = episodes_of_arrays(to_arrays([e]), "memory")
    >>> back[0].rewards.tolist(), len(back[0].observations)
    ([1.0, 1.0], 3)
    """
    return {
        "observations": np.concatenate([e.observations for e in episodes]),
        "actions": np.concatenate([e.actions for e in episodes]),
        "rewards": np.concatenate([e.rewards for e in episodes]),
        "costs": np.concatenate([np.zeros(len(e), np.float32) if e.costs is None else e.costs for e in episodes]),
        "terminals": np.concatenate([e.terminated for e in episodes]),
        "timeouts": np.concatenate([e.truncated for e in episodes]),
        "lengths": np.array([len(e) for e in episodes]),
        "seeds": np.array([e.seed for e in episodes], np.uint64),
        "sources": np.array([e.source for e in episodes]),
    }


def npz_bytes(arrays: Mapping[str, Array]) -> bytes:
    """Equal arrays give equal bytes: the archive has no time in it."""
    file = io.BytesIO()
    np.savez(file, **arrays)  # pyright: ignore[reportArgumentType]
    return file.getvalue()


def read_npz(path: Path) -> list[Episode]:
    """The episodes of a file.

    Raises:
        DataError: no such file, none of numpy's, or arrays that do not fit together.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise DataError(f"{path} does not exist; give an .npz file of episodes") from None
    except (ValueError, BadZipFile, OSError, EOFError) as error:
        raise DataError(f"{path} is no .npz file of arrays: {error}") from None
    return episodes_of_arrays(arrays, str(path))


def episodes_of_arrays(arrays: Mapping[str, Array], place: str) -> list[Episode]:
    """Episodes out of flat arrays, in assay's layout or D4RL's (Fu et al. 2020, arXiv 2004.07219).

    In D4RL's layout ``timeouts`` are cuts at a horizon. Where it has no ``next_observations``, what followed the last step of an
    episode is not there: after a terminal step nothing is bootstrapped and its own observation stands in; after a timeout or at
    the end of the file the last step is left out, because its successor would be the start of the next episode.

    Raises:
        DataError: an array is missing or has another length.

    >>> flat = {"observations": np.arange(4.0)[:, None], "actions": np.zeros((4, 1)), "rewards": np.ones(4),
    ...         "terminals": np.array([0, 1, 0, 0], bool), "timeouts": np.array([0, 0, 0, 1], bool)}
    >>> [(len(e), bool(e.terminated[-1])) for e in episodes_of_arrays(flat, "memory")]
    [(2, True), (1, False)]
    """
    missing = {"observations", "actions", "rewards", "terminals"} - arrays.keys()
    if missing:
        raise DataError(f"{place}: no array {', '.join(sorted(missing))}; there are {', '.join(sorted(arrays))}")
    return _own(arrays, place) if "lengths" in arrays else _flat(arrays, place)


def _own(arrays: Mapping[str, Array], place: str) -> list[Episode]:
    lengths = arrays["lengths"].astype(np.int64)
    n = int(lengths.sum())
    wrong = {k: len(v) for k, v in arrays.items() if k in ("actions", "rewards", "terminals", "timeouts") and len(v) != n}
    if wrong or len(arrays["observations"]) != n + len(lengths):
        raise DataError(
            f"{place}: lengths add up to {n} steps of {len(lengths)} episodes, but {wrong or 'observations'} do not fit"
        )
    at = np.concatenate([[0], np.cumsum(lengths)])
    timeouts = arrays.get("timeouts", np.zeros(n, bool))
    return [
        Episode(
            observations=arrays["observations"][at[i] + i : at[i + 1] + i + 1],
            actions=arrays["actions"][at[i] : at[i + 1]],
            rewards=arrays["rewards"][at[i] : at[i + 1]],
            costs=arrays["costs"][at[i] : at[i + 1]] if "costs" in arrays else None,
            terminated=arrays["terminals"][at[i] : at[i + 1]].astype(bool),
            truncated=timeouts[at[i] : at[i + 1]].astype(bool),
            source=str(arrays["sources"][i]) if "sources" in arrays else place,
            seed=int(arrays["seeds"][i]) if "seeds" in arrays else 0,
        )
        for i in range(len(lengths))
    ]


def _flat(arrays: Mapping[str, Array], place: str) -> list[Episode]:
    n = len(arrays["rewards"])
    for name in ("observations", "actions", "terminals", "timeouts", "next_observations"):
        if name in arrays and len(arrays[name]) != n:
            raise DataError(f"{place}: {name} has {len(arrays[name])} rows and rewards has {n}; flat arrays have one row a step")
    terminal = arrays["terminals"].astype(bool)
    timeout = arrays.get("timeouts", np.zeros(n, bool)).astype(bool) & ~terminal
    ends = np.flatnonzero(terminal | timeout) + 1
    ends = ends if len(ends) and ends[-1] == n else np.append(ends, n)
    episodes: list[Episode] = []
    begin = 0
    for end in ends.tolist():
        made = _episode(arrays, begin, end, bool(terminal[end - 1]), place)
        if made is not None:
            episodes.append(made)
        begin = end
    return episodes


def _episode(arrays: Mapping[str, Array], begin: int, end: int, terminated: bool, place: str) -> Episode | None:
    observed = arrays["observations"]
    if "next_observations" in arrays:
        after = arrays["next_observations"][end - 1]
    elif terminated:
        after = observed[end - 1]  # never bootstrapped from
    else:
        end -= 1  # its successor is not in the file
        after = observed[end]
    if end <= begin:
        return None
    last = np.zeros(end - begin, bool)
    last[-1] = True
    return Episode(
        observations=np.concatenate([observed[begin:end], after[None]]),
        actions=arrays["actions"][begin:end],
        rewards=arrays["rewards"][begin:end],
        terminated=last & terminated,
        truncated=last & (not terminated),
        source=place,
    )
