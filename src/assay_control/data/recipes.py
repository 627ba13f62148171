"""Data sets as recipes: which behaviours acted, for how many episodes, under which seed."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np

from assay.core import ConfigError, DataError, cache_folder, derive, digest, generator, to_dict
from assay.core.seeds import derive_each
from assay.runs import write_bytes
from assay_control.data.behaviours import Behaviour
from assay_control.data.external import read_episodes
from assay_control.data.files import npz_bytes, read_npz, to_arrays
from assay_control.records import Array, Choices, Episode, Transitions, returns_to_go, transitions
from assay_control.worlds.base import Copies, World

__all__ = ["Corrupted", "Dataset", "FileData", "OfflineData", "Share", "collect_episodes", "with_returns"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Episodes of one behaviour.

    Attributes:
        behaviour: who acts.
        episodes: how many.
        length: steps after which an episode is cut; the world's horizon where 0.
        world: that these episodes are of, where it is another than the data set's, such as one that begins elsewhere.
    """

    behaviour: Behaviour
    episodes: int
    length: int = 0
    world: World | None = None

    def __post_init__(self) -> None:
        if self.episodes < 1 or self.length < 0:
            raise ConfigError(
                f"Share(episodes={self.episodes}, length={self.length}): use one episode or more, and no negative length"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A data set that is made afresh, the same each time, from behaviours in a world.

    Attributes:
        world: in which they act.
        shares: of the behaviours, in their order.
        seed: of starts and noise.

    >>> from assay_control.worlds.pendulum import Pendulum
    >>> from assay_control.data.behaviours import RandomActions
    >>> data = Dataset(world=Pendulum(horizon=5), shares=(Share(behaviour=RandomActions(), episodes=2),))
    >>> len(data.episodes()), data.digest() == data.digest()
    (2, True)
    """

    world: World
    shares: tuple[Share, ...]
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.shares:
            raise ConfigError("Dataset.shares is empty; give at least one Share")

    def digest(self) -> str:
        """Of the recipe."""
        return digest(to_dict(self))

    def rows(self, discount: float) -> Transitions:
        """Its steps in flat columns."""
        return transitions(self.cached(), discount)

    def episodes(self) -> list[Episode]:
        """All episodes, share by share."""
        out: list[Episode] = []
        for number, share in enumerate(self.shares):
            seed = derive("control/data", self.seed, index=number)
            out += collect_episodes(share.world or self.world, share.behaviour, share.episodes, seed, share.length)
        return out

    def cached(self, folder: Path | None = None) -> list[Episode]:
        """`episodes`, kept in assay's cache folder under the digest of the recipe and of the code of its world and behaviours.

        Args:
            folder: instead of ``control`` in the cache folder.

        Raises:
            StorageError: the folder cannot be written.
        """
        parts = [self.world, *(share.behaviour for share in self.shares), *(s.world for s in self.shares if s.world is not None)]
        path = (folder or cache_folder() / "control") / f"{digest([self.digest(), code_digest(parts)])}.npz"
        if path.exists():
            return read_npz(path)
        made = self.episodes()
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, npz_bytes(to_arrays(made)))
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class FileData:
    """A data set in a file of one's own: ``.npz`` or ``.hdf5`` with flat arrays, or a data set of Minari.

    The arrays are those of D4RL's layout: ``observations [n, O]``, ``actions``, ``rewards [n]``, ``terminals [n]``,
    ``timeouts [n]`` and, where known, ``next_observations``; or assay's own with ``observations [n + E, O]`` and ``lengths [E]``.

    Attributes:
        world: that it is of, for sizes and evaluation.
        path: of the file; ``minari:`` and a name for a data set of Minari.
        checksum: digest of the episodes; where given, another file is refused.
    """

    world: World
    path: str
    checksum: str = field(default="")

    def digest(self) -> str:
        """Of what the file holds."""
        return digest([digest({k: v.tolist() for k, v in to_arrays([e]).items()}) for e in read_episodes(self.path)])

    def episodes(self) -> list[Episode]:
        """All episodes of the file.

        Raises:
            DataError: no such file, arrays that do not fit together or not the world; or another file than before.
        """
        found = read_episodes(self.path)
        check_fits(found, self.world, self.path)
        if self.checksum and self.checksum != self.digest():
            raise DataError(f"{self.path} is not the file that the run began with; put that one back, or start a new run")
        return found

    def rows(self, discount: float) -> Transitions:
        """Its steps in flat columns."""
        return transitions(self.cached(), discount)

    def cached(self, folder: Path | None = None) -> list[Episode]:
        """The same: a file is its own cache."""
        del folder
        return self.episodes()


CORRUPTED = ("observation", "action", "reward", "dynamics")


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrupted:
    """A data set in which a share of the rows is wrong: ``x + scale · deviation(x) · U(-1, 1)``, exactly ``floor(rate · n)``
    rows.

    ``dynamics`` are the next observations. Source: Yang et al. 2023, arXiv 2310.12955, the random kind; the size of its noise on
    rewards is not known, and here is as on the other fields.

    Attributes:
        base: the data set before; one that is corrupted already may be corrupted in another field too.
        what: ``observation``, ``action``, ``reward`` or ``dynamics``.
        rate: share of the rows.
        scale: of the noise, in deviations.
        seed: of which rows, and of the noise.

    Raises:
        ConfigError: another word, or a rate that is no share.
    """

    base: OfflineData
    what: str = "dynamics"
    rate: float = 0.3
    scale: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.what not in CORRUPTED or not 0 <= self.rate <= 1 or self.scale < 0:
            raise ConfigError(
                f"Corrupted(what={self.what!r}, rate={self.rate}, scale={self.scale}): use one of {', '.join(CORRUPTED)}, "
                "a share and a scale of 0 or more"
            )

    @property
    def world(self) -> World:
        """That of the clean data."""
        return self.base.world

    def mask(self, count: int) -> Array:
        """``[count]`` which rows are wrong."""
        chosen = generator("control/corrupt", self.seed).permutation(count)[: int(self.rate * count)]
        return np.isin(np.arange(count), chosen)

    def rows(self, discount: float) -> Transitions:
        """The clean rows with the wrong ones in their places; returns to go stay those of the clean data.

        Raises:
            ConfigError: actions that are choices are to be corrupted.
        """
        clean = self.base.rows(discount)
        name = "next_observation" if self.what == "dynamics" else self.what
        values: Array = getattr(clean, name)
        if not np.issubdtype(values.dtype, np.floating):
            raise ConfigError("Corrupted.what='action': choices have no deviation; corrupt another field")
        noise = generator("control/corrupt", self.seed, "noise").uniform(-1, 1, values.shape)
        wrong = values + self.scale * values.std(0) * noise
        mask = self.mask(len(clean)).reshape(-1, *(1,) * (values.ndim - 1))
        changed: Any = {name: np.where(mask, wrong, values).astype(np.float32)}
        return dataclasses.replace(clean, **changed)

    def cached(self, folder: Path | None = None) -> list[Episode]:
        """The clean episodes."""
        return self.base.cached(folder)


class OfflineData(Protocol):
    """What a run learns from: a frozen dataclass."""

    @property
    def world(self) -> World: ...

    def rows(self, discount: float) -> Transitions:
        """Steps in flat columns."""
        ...

    def cached(self, folder: Path | None = None) -> list[Episode]:
        """Episodes, as they were collected."""
        ...


def with_returns(rows: Transitions, discount: float) -> Transitions:
    """Rows whose returns to go are those of their rewards."""
    to_go = np.concatenate([returns_to_go(part, discount) for part in np.split(rows.reward, rows.first[1:])])
    return dataclasses.replace(rows, to_go=to_go.astype(np.float32))


def code_digest(parts: Sequence[object]) -> str:
    """Of the source of the modules that define some parts, so that what was made by other code is made afresh."""
    kinds = {Copies, *(type(part) for part in parts)}
    files = {sys.modules[kind.__module__].__file__ or "" for kind in kinds}
    return digest([Path(file).read_text(encoding="utf-8") for file in sorted(files) if file])


def check_fits(episodes: Sequence[Episode], world: World, place: str) -> None:
    """Raises DataError where episodes are of another world."""
    space = world.actions
    shape = () if isinstance(space, Choices) else (space.size,)
    for number, episode in enumerate(episodes):
        if episode.observations.shape[1:] != (world.observation_size,) or episode.actions.shape[1:] != shape:
            raise DataError(
                f"{place}, episode {number}: observations of shape {episode.observations.shape[1:]} and actions of "
                f"{episode.actions.shape[1:]}; {type(world).__name__} has ({world.observation_size},) and {shape}"
            )


def collect_episodes(world: World, behaviour: Behaviour, count: int, seed: int, length: int = 0) -> list[Episode]:
    """Plays ``count`` episodes beside each other.

    Args:
        world: to act in.
        behaviour: who acts.
        count: of episodes.
        seed: of starts and noise.
        length: steps after which an episode is cut; the horizon where 0.

    >>> from assay_control import CartPole, Scripted
    >>> [len(e) for e in collect_episodes(CartPole(horizon=20), Scripted(), 2, 0)]
    [20, 20]
    """
    starts = derive_each("control/start", seed, "", count)
    running = world.open(count, _seeds(starts, seed))
    act = behaviour.begin(world, count, seed)
    steps = min(length or world.horizon, world.horizon)
    observations = np.empty((steps + 1, count, world.observation_size), np.float32)
    observations[0] = running.observation
    columns: list[tuple[Array, Array, Array, Array]] = []
    ends = np.full(count, steps)
    terminated = np.zeros(count, bool)
    for t in range(steps):
        action = act(running.observation, t)
        step = running.step(action)
        observations[t + 1] = step.observation
        columns.append((action, step.reward, step.cost, step.terminated))
        ended = step.done & (ends == steps) & (t + 1 < steps)
        ends[ended] = t + 1
        last = step.terminated & (ends == t + 1)
        terminated |= last
        if (ends <= t + 1).all():
            break
    actions = np.stack([c[0] for c in columns])
    kind = np.int64 if isinstance(world.actions, Choices) else np.float32
    rewards, costs = (np.stack([c[i] for c in columns]).astype(np.float32) for i in (1, 2))
    out: list[Episode] = []
    for i in range(count):
        n = int(ends[i])
        flags = np.zeros(n, bool)
        flags[-1] = True
        out.append(
            Episode(
                observations=observations[: n + 1, i].copy(),
                actions=actions[:n, i].astype(kind),
                rewards=rewards[:n, i].copy(),
                costs=costs[:n, i].copy(),
                terminated=flags & terminated[i],
                truncated=flags & ~terminated[i],
                source=behaviour.source,
                seed=starts[i],
            )
        )
    return out


def _seeds(starts: Sequence[int], seed: int) -> Any:
    """The given starts first; later ones, of copies that are done before others and whose next episode nobody keeps, anyhow."""
    given = [np.array(starts, np.uint64)]

    def seeds(count: int) -> Array:
        if given:
            return given.pop()
        return np.arange(count, dtype=np.uint64) + np.uint64(seed & 0xFFFF)

    return seeds


def with_fields(world: World, **changes: Any) -> World:
    """A world with other settings.

    Raises:
        ConfigError: it has no such setting.
    """
    try:
        return cast("World", dataclasses.replace(cast("Any", world), **changes))
    except TypeError as error:
        raise ConfigError(f"{type(world).__name__}: {error}") from None
