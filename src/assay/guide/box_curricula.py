"""A curriculum over a box in which cells are points: draws go where learning progresses (ALP-GMM)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError
from assay.core.fields import later
from assay.core.group import Outcome
from assay.core.optional_protocols import PlacesLevels
from assay.core.protocols import State, TaskSource
from assay.guide.cell_curricula import CellBook, CellRule, Standing
from assay.guide.gaussian_mixture import GaussianMixture, best_mixture
from assay.guide.promoted_levels import accuracy_at

__all__ = ["AlpGmm", "AlpGmmBook", "Fit", "cell_points"]

F = NDArray[np.float64]

FEWEST = 6
"""Groups before progress is measured: with fewer, the nearest one before is far."""


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A mixture over cells and progress.

    Attributes:
        mixture: as it was fitted.
        reward: mean success of the groups that it was fitted to.
        success: ``[cells]`` moving average of success when it was fitted.
    """

    mixture: GaussianMixture
    reward: float
    success: tuple[float, ...]

    def to_list(self) -> list[Any]:
        """As JSON holds it."""
        return [self.mixture.to_list(), self.reward, list(self.success)]

    @classmethod
    def from_list(cls, saved: Sequence[Any]) -> Fit:
        """From `to_list`."""
        return cls(GaussianMixture.from_list(saved[0]), float(saved[1]), tuple(float(x) for x in saved[2]))


def places_of(cells: Sequence[tuple[str, int]], tasks: TaskSource) -> list[tuple[float, ...]]:
    """Where each cell's level lies in the box of its family; empty where that has none."""
    families = {arm: _family_of(tasks, arm) for arm, _ in cells}
    return [source.level_point(arm, level) if (source := families[arm]) else () for arm, level in cells]


def _family_of(tasks: Any, arm: str) -> PlacesLevels | None:
    """The arm's family in a mixture, or in what pays otherwise for its answers; None where it has no places."""
    while tasks is not None and not isinstance(tasks, PlacesLevels):
        inner = getattr(tasks, "source", None)
        tasks = inner(arm) if callable(inner) else inner
    return tasks


def cell_points(
    cells: Sequence[tuple[str, int]], points: Mapping[str, Sequence[float]], places: Sequence[tuple[float, ...]] = ()
) -> F:
    """``[cells, d]`` where each cell lies in the box, each side from 0 to 1: the arm's coordinates, then the level's place.

    Without coordinates an arm's place among the arms is its coordinate; of one arm there is none. A level's place is that of the
    family's box (`places_of`), else its rank among its arm's levels.

    Raises:
        ConfigError: some arms have coordinates, or levels places, and others not, or of another length.

    >>> cell_points([("a", 1), ("a", 2), ("b", 7)], {}).tolist()
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    """
    arms = list(dict.fromkeys(arm for arm, _ in cells))
    given = {arm: [float(x) for x in points[arm]] for arm in arms if arm in points}
    if points and (len(given) < len(arms) or len({len(x) for x in given.values()}) > 1):
        raise ConfigError(f"points={dict(points)}: give each of the arms {arms} as many coordinates as the others")
    named = given or {arm: [float(i)] if len(arms) > 1 else [] for i, arm in enumerate(arms)}
    ranks = {arm: [level for a, level in cells if a == arm] for arm in arms}
    rows = [
        [*named[arm], *(place or (ranks[arm].index(level) / max(1, len(ranks[arm]) - 1),))]
        for (arm, level), place in zip(cells, places or [()] * len(cells), strict=True)
    ]
    if len({len(row) for row in rows}) > 1 or len({bool(place) for place in places}) > 1:
        raise ConfigError(
            f"arms {arms}: the levels of some are points of a box of other axes; practise them in stages of their own"
        )
    out = np.array(rows)
    low, high = out.min(0), out.max(0)
    return (out - low) / np.where(high > low, high - low, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlpGmm(CellRule):
    """ALP-GMM: draws where success changes most, by a mixture of normal distributions over cells and progress.

    A cell is a point ``z`` of a box: its arm's coordinates and its level, each from 0 to 1. The absolute learning progress of a
    group is ``|R(z) - R(z')|`` with ``z'`` the nearest group before it. After every ``fit_every`` groups the mixture of 2 to
    ``components`` normal distributions of lowest AIC is fitted to the last ``fit_every`` vectors ``(z, progress)``; until then
    draws are even. A cell's probability is ``uniform`` in equal parts, and for the rest that of the components, chosen in
    proportion to their mean progress, at the cell.

    A box may have several axes: the levels of an `assay.tasks.BoxProblem` are the points of its lattice, up to 1000 of an arm,
    and any of them may be drawn.

    Source: Portelas 2019 (arXiv 1910.07224). There a task is a vector of real numbers, drawn and clipped; here it is a point of
    the lattice, and a component's density is normalised over the lattice, so that propensities are true.

    Attributes:
        fit_every: groups between fits, and groups fitted.
        uniform: share of even draws, in (0, 1].
        buffer: groups among which the nearest one is looked for.
        components: most of a mixture.
        points: each arm's coordinates, where arms have a geometry; empty for their order.
        tested: keep the greedy accuracy of each cell at every held-out evaluation, by which `Again` compares runs; draws do not
            follow it.

    Raises:
        ConfigError: a value out of range.

    >>> AlpGmm().build({"sort": (3, 4)}, seed=0).propensities.tolist()
    [0.5, 0.5]
    """

    fit_every: int = 250
    uniform: float = 0.2
    buffer: int = 500
    components: int = 10
    points: Mapping[str, tuple[float, ...]] = field(default_factory=FrozenMap)
    tested: bool = later(False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", FrozenMap({arm: tuple(x) for arm, x in self.points.items()}))
        if not FEWEST <= self.fit_every <= self.buffer or self.components < 2:
            raise ConfigError(
                f"AlpGmm.fit_every={self.fit_every} must be {FEWEST} to .buffer={self.buffer}, .components={self.components} "
                "at least 2"
            )
        if not 0.0 < self.uniform <= 1.0:
            raise ConfigError(f"AlpGmm.uniform={self.uniform}; use a share in (0, 1], or cells are never seen again")

    def weights(self, standing: Standing) -> F:
        """``[cells]`` ones: as it is before the first fit."""
        return np.ones_like(standing.success)

    def build(self, arms: Mapping[str, tuple[int, ...]], seed: int) -> AlpGmmBook:
        """The curriculum with its state; raises ConfigError when there is nothing to choose."""
        return AlpGmmBook(self, arms, seed)


class AlpGmmBook(CellBook):
    """The state of `AlpGmm`.

    Attributes:
        fits: every fit so far.
        tests: of each held-out evaluation, how many fits there were, and the accuracy of each cell; empty unless
            `AlpGmm.tested`.
    """

    def __init__(self, rule: AlpGmm, arms: Mapping[str, tuple[int, ...]], seed: int) -> None:
        super().__init__(rule, arms, seed)
        self.spec = rule
        self.points = cell_points(self.cells, rule.points)
        self.fits: list[Fit] = []
        self.tests: list[tuple[int, tuple[float, ...]]] = []
        self._known: list[tuple[int, float, float]] = []  # cell, success, progress
        self._count_all = 0

    def read_tasks(self, tasks: TaskSource) -> None:
        """Takes the places of levels that are points of a box."""
        self.points = cell_points(self.cells, self.spec.points, places_of(self.cells, tasks))

    @property
    def uniform(self) -> float:
        """Share of even draws."""
        return self.spec.uniform

    @property
    def propensities(self) -> F:
        """``[cells]`` probability of each cell at the next draw; sums to 1."""
        guided = self.guided_weights()
        even = np.full(len(self.cells), 1.0 / len(self.cells))
        return even if guided is None else self.uniform * even + (1.0 - self.uniform) * guided

    def guided_weights(self) -> F | None:
        """``[cells]`` probabilities without the even part; None before the first fit."""
        return self.at_cells(self.fits[-1].mixture) if self.fits else None

    def at_cells(self, mixture: GaussianMixture, least: float = 0.0) -> F | None:
        """``[cells]`` a mixture's probabilities: components of mean progress above ``least``, in proportion to it. With no
        progress anywhere all alike; None where no component is above.
        """
        progress = np.maximum(mixture.means[:, -1], 0.0)
        chosen = progress > least if least else np.ones(len(progress), np.bool_)
        if not chosen.any():
            return None
        share = np.where(chosen, progress if progress[chosen].any() else 1.0, 0.0)
        d = self.points.shape[1]
        own = GaussianMixture(mixture.weights, mixture.means[:, :d], mixture.covariances[:, :d, :d], 0.0)
        logs = own.log_densities(self.points)
        density = np.exp(logs - logs.max(0))
        return (density / density.sum(0)) @ (share / share.sum())

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Measures the progress of each group of the batch in its order, and fits anew when it is due."""
        super().observe(outcomes)
        for outcome in outcomes:
            group = outcome.group
            cell = self._at.get((group.task.arm, group.task.level))
            if cell is None or group.success is None:
                continue
            self._known = [*self._known, (cell, group.success, self._progress(cell, group.success))][-self.spec.buffer :]
            self._count_all += 1
            if self._count_all % self.spec.fit_every == 0:
                self._fit()

    def observe_metrics(self, metrics: Mapping[str, float]) -> None:
        """Keeps the accuracy of each cell where there was an evaluation.

        Raises:
            ConfigError: it had no item of a cell.
        """
        if not self.spec.tested or "eval/greedy/all" not in metrics:
            return
        found = [accuracy_at(metrics, "greedy", arm, level) for arm, level in self.cells]
        missing = [cell for cell, accuracy in zip(self.cells, found, strict=True) if accuracy is None]
        if missing:
            raise ConfigError(
                f"{type(self.spec).__name__}.tested: the evaluation has no item of {missing[:4]}, which is practised; leave "
                "Evaluation.levels empty, or name these levels too"
            )
        self.tests.append((len(self.fits), tuple(accuracy for accuracy in found if accuracy is not None)))

    def _progress(self, cell: int, success: float) -> float:
        if len(self._known) < FEWEST:
            return 0.0
        apart = ((self.points[[c for c, _, _ in self._known]] - self.points[cell]) ** 2).sum(1)
        nearest = len(apart) - 1 - int(np.argmin(apart[::-1]))  # of those equally near the newest
        return abs(success - self._known[nearest][1])

    def _fit(self) -> None:
        last = self._known[-self.spec.fit_every :]
        vectors = np.array([[*self.points[cell], progress] for cell, _, progress in last])
        mixture = best_mixture(vectors, 2, self.spec.components, self.seed)
        reward = sum(success for _, success, _ in last) / len(last)
        self.fits.append(Fit(mixture, reward, tuple(self.standing.success.tolist())))

    def metrics(self) -> Mapping[str, float]:
        """Those of `CellBook`, ``curriculum/fits`` and ``curriculum/progress``, the mean of the last fit's groups."""
        last = [progress for _, _, progress in self._known[-self.spec.fit_every :]]
        own = {"curriculum/fits": float(len(self.fits)), "curriculum/progress": sum(last) / max(1, len(last))}
        return {**super().metrics(), **own}

    def state_dict(self) -> State:
        """That of `CellBook`, the groups remembered, and every fit."""
        fits, tests = [fit.to_list() for fit in self.fits], [[n, list(values)] for n, values in self.tests]
        own = {"known": [list(x) for x in self._known], "observed": self._count_all, "fits": fits}
        return {**super().state_dict(), **own, **({"tests": tests} if self.spec.tested else {})}

    def load_state_dict(self, state: State) -> None:
        """Continue where `state_dict` was taken.

        Raises:
            CheckpointError: the state has other cells.
        """
        super().load_state_dict(state)
        self._known = [(int(c), float(s), float(p)) for c, s, p in state["known"]]
        self._count_all = int(state["observed"])
        self.fits = [Fit.from_list(saved) for saved in state["fits"]]
        self.tests = saved_tests(state)


def saved_tests(state: Mapping[str, Any]) -> list[tuple[int, tuple[float, ...]]]:
    """The tests in a state of such a curriculum (`AlpGmmBook.tests`)."""
    return [(int(n), tuple(float(x) for x in values)) for n, values in state.get("tests", ())]
