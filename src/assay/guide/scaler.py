"""SCALER: a set of active environments, each at a difficulty that follows its accuracy; those that teach nothing are replaced."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import floor

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import CheckpointError, ConfigError
from assay.core.group import Draw, Outcome
from assay.core.protocols import State
from assay.core.seeds import derive, uniforms

__all__ = ["Scaler", "ScalerCurriculum"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaler:
    """Each arm is an environment with a difficulty ``d``, counted in its levels from 0, the lowest, to ``D``, the highest.

    After a batch in which an active arm has accuracy ``a``, ``d`` becomes ``clip(d + clip(step (a - target), -1, 1), 0, D)``.
    Draws go to the active arms equally often; one at ``d`` is of level ``floor(d)`` or the next one, so that the mean is ``d``.

    An active arm is replaced by another, drawn among those that wait, after ``patience`` batches in a row all of whose rollouts
    failed, after as many in a row at ``D``, or when its difficulty no longer grows: the slope of the line through its last
    ``window`` difficulties is at most 0. Where none waits it stays. It keeps its difficulty and forgets the rest.

    Source: SCALER (arXiv 2601.04809), in which one level of a batch is the rounded ``d``; here it is drawn, since with one prompt
    per arm rounding would never leave a level. Its authors' code has an arm that is replaced come back at once, or stand twice
    among the active ones; here neither happens. UNSURE: ``window`` is 10 in the paper, 20 and 50 in the code.

    Attributes:
        active: how many arms are practised at a time; all of them where there are no more.
        step: how fast difficulty follows accuracy.
        target: accuracy at which difficulty rests, in (0, 1).
        start: difficulty of an arm at first, at least 0.
        patience: batches in a row without success, or at the highest level, after which an arm is replaced.
        window: difficulties through which the line is laid, at least 2.

    Raises:
        ConfigError: a value out of range.

    >>> c = Scaler(start=0.25).build({"sort": (3, 4, 5)}, seed=0)
    >>> sorted({(d.level, d.propensity) for d in c.draw(8)})
    [(3, 0.75), (4, 0.25)]
    """

    active: int = 64
    step: float = 2.0
    target: float = 0.5
    start: float = 0.0
    patience: int = 5
    window: int = 10

    def __post_init__(self) -> None:
        if self.active < 1 or self.patience < 1 or self.window < 2:
            raise ConfigError(
                f"Scaler.active={self.active} and .patience={self.patience} must be at least 1, .window={self.window} at least 2"
            )
        if not 0.0 < self.step < float("inf") or not 0.0 < self.target < 1.0:
            raise ConfigError(f"Scaler.step={self.step} must be > 0 and Scaler.target={self.target} in (0, 1)")
        if not 0.0 <= self.start < float("inf"):
            raise ConfigError(f"Scaler.start={self.start}; a difficulty is at least 0, the lowest level")

    def build(self, arms: Mapping[str, tuple[int, ...]], seed: int) -> ScalerCurriculum:
        """The curriculum with its state; raises ConfigError when there is nothing to choose."""
        return ScalerCurriculum(self, arms, seed)


@dataclass(slots=True)
class _Arm:
    """What is known of an arm: its difficulty; of its active time, batches without success, at the top, and difficulties."""

    difficulty: float
    failed: int = 0
    topped: int = 0
    history: list[float] = field(default_factory=list[float])


class ScalerCurriculum:
    """The state of `Scaler`.

    Args:
        spec: its settings.
        arms: each arm with its levels.
        seed: the run's seed.

    Attributes:
        active: the arms that are practised now.

    Raises:
        ConfigError: no arm, an arm without levels, or a level that an arm has twice.
    """

    def __init__(self, spec: Scaler, arms: Mapping[str, tuple[int, ...]], seed: int) -> None:
        wrong = {arm: levels for arm, levels in arms.items() if not levels or len(set(levels)) < len(levels)}
        if not arms or wrong:
            raise ConfigError(f"a curriculum needs arms with levels, each named once; got {dict(wrong or arms)}")
        self.spec, self.seed = spec, seed
        self._levels = {arm: tuple(sorted(arms[arm])) for arm in sorted(arms)}
        self._arms = {arm: _Arm(min(spec.start, self._top(arm))) for arm in self._levels}
        order: list[int] = np.argsort(self._uniforms("first", 0, len(self._levels)), kind="stable").tolist()
        names = list(self._levels)
        self.active: list[str] = [names[i] for i in order[: spec.active]]
        self._turn = self._groups = self._replaced = 0

    def difficulty(self, arm: str) -> float:
        """An arm's difficulty, from 0 to the number of its levels less 1.

        >>> Scaler(start=9.0).build({"sort": (3, 4, 5)}, seed=0).difficulty("sort")
        2.0
        """
        return self._arms[arm].difficulty

    def draw(self, n: int) -> list[Draw]:
        """``n`` choices: the active arms in rounds, each round in a new order.

        Raises:
            ConfigError: ``n`` is not positive.
        """
        if n < 1:
            raise ConfigError(f"a curriculum draws at least one task, got n={n}")
        width = len(self.active)
        rounds = -(-n // width)
        u = self._uniforms("draw", self._turn, width * (rounds + 1))
        self._turn += 1
        order: list[int] = np.argsort(u[width:].reshape(rounds, width), axis=1, kind="stable").ravel()[:n].tolist()
        times = [0] * width
        out: list[Draw] = []
        for i in order:
            out.append(self._at(self.active[i], times[i], float(u[i])))
            times[i] += 1
        return out

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """A batch: difficulties move, and arms that teach nothing are replaced. Groups of other arms say nothing."""
        results: dict[str, list[float]] = defaultdict(list)
        for group in (outcome.group for outcome in outcomes):
            if group.success is not None and group.task.arm in self.active:
                results[group.task.arm].append(group.success)
        self._groups += sum(map(len, results.values()))
        waiting = [arm for arm in self._levels if arm not in self.active]
        for place, arm in enumerate(self.active):
            if arm in results:
                self._move(arm, sorted(results[arm]))  # so that the sum has the same bits in any order of the groups
                if waiting and self._spent(arm):
                    self.active[place] = waiting.pop(self._choice(len(waiting)))
                    self._arms[arm] = _Arm(self._arms[arm].difficulty)

    def metrics(self) -> Mapping[str, float]:
        """``curriculum/share/ARM/level_L`` of every cell, ``curriculum/difficulty/ARM`` of every arm, ``curriculum/groups``,
        ``curriculum/replaced``.
        """
        out = {"curriculum/groups": float(self._groups), "curriculum/replaced": float(self._replaced)}
        for arm, levels in self._levels.items():
            out[f"curriculum/difficulty/{arm}"] = self._arms[arm].difficulty
            for i, level in enumerate(levels):
                near = max(0.0, 1.0 - abs(i - self._arms[arm].difficulty)) if arm in self.active else 0.0
                out[f"curriculum/share/{arm}/level_{level}"] = near / len(self.active)
        return out

    def state_dict(self) -> State:
        """Counters, the active arms in order, and what is known of each arm."""
        known = {arm: [a.difficulty, a.failed, a.topped, list(a.history)] for arm, a in self._arms.items()}
        counts = [self._turn, self._groups, self._replaced]
        return {"counts": counts, "active": list(self.active), "arms": known}

    def load_state_dict(self, state: State) -> None:
        """Continue where `state_dict` was taken.

        Raises:
            CheckpointError: the state has other arms.
        """
        if sorted(state["arms"]) != list(self._levels):
            raise CheckpointError(f"the curriculum's state is of arms {sorted(state['arms'])}, this run has {list(self._levels)}")
        self._turn, self._groups, self._replaced = (int(count) for count in state["counts"])
        self.active = [str(arm) for arm in state["active"]]
        self._arms = {
            arm: _Arm(float(difficulty), int(failed), int(topped), [float(d) for d in history])
            for arm, (difficulty, failed, topped, history) in state["arms"].items()
        }

    def _top(self, arm: str) -> float:
        return float(len(self._levels[arm]) - 1)

    def _at(self, arm: str, time: int, offset: float) -> Draw:
        """Draw number ``time`` of an arm in this turn: of any k of them floor(k x) or one more are of the upper level, where x is
        what ``d`` is above the lower one, and each is with probability x.
        """
        d = self._arms[arm].difficulty
        lower = floor(d)
        part = d - lower
        upper = floor((time + 1) * part + offset) > floor(time * part + offset)
        chance = part if upper else 1.0 - part
        return Draw(arm, self._levels[arm][lower + upper], chance / len(self.active))

    def _move(self, arm: str, successes: list[float]) -> None:
        known, top = self._arms[arm], self._top(arm)
        accuracy = sum(successes) / len(successes)
        change = min(max(self.spec.step * (accuracy - self.spec.target), -1.0), 1.0)
        known.difficulty = min(max(known.difficulty + change, 0.0), top)
        known.failed = known.failed + 1 if accuracy == 0.0 else 0
        known.topped = known.topped + 1 if known.difficulty == top else 0
        known.history = [*known.history, known.difficulty][-self.spec.window :]

    def _spent(self, arm: str) -> bool:
        known = self._arms[arm]
        if max(known.failed, known.topped) >= self.spec.patience:
            return True
        n = len(known.history)
        # The sign of the slope of the least-squares line: that of its numerator.
        rise = sum((i - (n - 1) / 2) * d for i, d in enumerate(known.history))
        return n == self.spec.window and rise <= 1e-12

    def _choice(self, n: int) -> int:
        (u,) = self._uniforms("replace", self._replaced, 1)
        self._replaced += 1
        return bisect_right([(i + 1) / n for i in range(n - 1)], float(u))

    def _uniforms(self, what: str, turn: int, n: int) -> NDArray[np.float64]:
        return uniforms(np.array([derive("curriculum", self.seed, what, turn)], np.uint64), 0, n)[0]
