"""AGAIN: the curriculum of an earlier run that was like this one and ended well, beside this run's own (Meta-ACL)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError
from assay.core.fields import later
from assay.core.group import Draw, Outcome
from assay.core.protocols import State
from assay.guide.box_curricula import AlpGmm, AlpGmmBook, Fit, saved_tests

__all__ = ["Again", "AgainBook"]

F = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Again(AlpGmm):
    """AGAIN: after a first look, the fits of the earlier run that was most like this one and ended best, beside ALP-GMM.

    Until there are ``pretest`` fits it is `AlpGmm`, with ``look`` even draws. Then the success of each cell is compared with that
    of the earlier runs of the ``classroom`` at the same fit: of the ``neighbours`` nearest, fewer where there are fewer, the one
    whose last success summed over cells is highest is the expert. Its fits, without components of mean progress at most
    ``least``, are followed: all at once (``pool``), one every ``fit_every`` groups (``time``), or one whenever the mean of the
    last ``window`` successes is at least the one recorded with the fit (``reward``). Of the draws that are not even
    ``1 / 2`` follow the expert, and the rest this run's own fits.

    With ``tested`` runs are compared as in the paper, by a test on fixed tasks: the greedy accuracy of each cell at the first
    held-out evaluation behind fit ``pretest``, and for the final score at the last one. All runs need it then. With ``looked``
    the first look is a run of its own, which trained with ``AlpGmm(uniform=0.1)`` for as long: this run begins anew from the
    base and follows from its first step the expert of that look. That is the paper's restart.

    Source: Meta-ACL (arXiv 2011.08463). UNSURE: how draws are split between expert and own fits.

    Attributes:
        classroom: folders of earlier runs that trained with `AlpGmm` or `Again` on the same cells.
        pretest: fits before the comparison.
        look: share of even draws before it.
        uniform: share of even draws behind it.
        neighbours: earlier runs among which the best is taken.
        least: mean progress up to which a component is left out.
        mode: how the expert's fits follow each other.
        window: successes that ``reward`` averages.
        looked: folder of the run that was this one's first look; empty for a look within the run.

    Raises:
        ConfigError: a value out of range, no classroom, or a look that is one of the classroom.
    """

    classroom: tuple[str, ...]
    uniform: float = 0.02
    pretest: int = 2
    look: float = 0.1
    neighbours: int = 5
    least: float = 0.2
    mode: Literal["pool", "time", "reward"] = "reward"
    window: int = 50
    looked: str = later("")

    def __post_init__(self) -> None:
        super(Again, self).__post_init__()
        object.__setattr__(self, "classroom", tuple(map(str, self.classroom)))
        if not self.classroom or self.mode not in ("pool", "time", "reward"):
            raise ConfigError(
                f"Again.classroom={self.classroom} must name earlier runs, and .mode={self.mode!r} be pool, time or reward"
            )
        if self.looked in self.classroom:
            raise ConfigError(
                f"Again.looked={self.looked!r} is one of the classroom, and would be its own expert; leave it out there"
            )
        if min(self.pretest, self.neighbours, self.window) < 1 or not 0.0 < self.look <= 1.0 or self.least < 0.0:
            raise ConfigError(
                f"Again.pretest={self.pretest}, .neighbours={self.neighbours} and .window={self.window} must be at least 1, "
                f".look={self.look} in (0, 1], .least={self.least} at least 0"
            )

    def build(self, arms: Mapping[str, tuple[int, ...]], seed: int) -> AgainBook:
        """The curriculum with its state; raises ConfigError when there is nothing to choose."""
        return AgainBook(self, arms, seed)


@dataclass(frozen=True, slots=True)
class _Student:
    """What the folder of a run tells: its fits, its tests, and its last success summed over cells."""

    fits: list[Fit]
    score: float
    tests: list[tuple[int, tuple[float, ...]]] = field(default_factory=list[tuple[int, tuple[float, ...]]])

    def known_at(self, fit: int, tested: bool) -> F:
        """``[cells]`` what it could do at a fit, counted from 1; at its last one where it has fewer."""
        behind = [values for fits, values in self.tests if fits >= fit] or [values for _, values in self.tests[-1:]]
        return np.array(behind[0] if tested else self.fits[min(fit, len(self.fits)) - 1].success)

    def to_list(self) -> list[Any]:
        """As JSON holds it."""
        tests = [[fits, list(values)] for fits, values in self.tests]
        return [[fit.to_list() for fit in self.fits], self.score, *([tests] if tests else [])]

    @classmethod
    def from_list(cls, saved: Sequence[Any]) -> _Student:
        """From `to_list`."""
        fits, score, *rest = saved
        return cls([Fit.from_list(fit) for fit in fits], float(score), saved_tests({"tests": rest[0]}) if rest else [])


class AgainBook(AlpGmmBook):
    """The state of `Again`. It keeps what it has read of the classroom, so a run that goes on needs no other folder.

    Attributes:
        expert: number of the run of the classroom that was chosen; None before.
        at: which of its fits is followed.
    """

    def __init__(self, rule: Again, arms: Mapping[str, tuple[int, ...]], seed: int) -> None:
        super().__init__(rule, arms, seed)
        self.again = rule
        self.expert: int | None = None
        self.at = 0
        self._last: list[float] = []
        self._students: list[_Student] = []

    def draw(self, n: int) -> list[Draw]:
        """As `CellBook`.

        Raises:
            ConfigError: at the first draw: a folder of the classroom has no checkpoint of such a run, or is of other cells.
        """
        if not self._students:
            self._students = [self._student(Path(place)) for place in self.again.classroom]
            if self.again.looked:
                look = self._student(Path(self.again.looked))
                self.expert = self._nearest_best(look.known_at(self.again.pretest, self.again.tested))
        return super().draw(n)

    def _student(self, folder: Path) -> _Student:
        """What an earlier run tells."""
        pointer = folder / "LATEST"
        if not pointer.exists():
            raise ConfigError(f"Again.classroom: {folder} is no run with a checkpoint")
        place = folder / "checkpoints" / pointer.read_text(encoding="utf-8").strip() / "state.json"
        session: Any = json.loads(place.read_text(encoding="utf-8"))["session"]
        state: Any = session.get("practice", {}).get("curriculum", {})
        if not state.get("fits"):
            raise ConfigError(
                f"Again.classroom: {folder} has no fit of AlpGmm or Again; name runs that trained with one for longer"
            )
        cells = [(str(arm), int(level)) for arm, level, *_ in state["cells"]]
        if cells != self.cells:
            raise ConfigError(f"Again.classroom: {folder} practised {cells[:4]}..., and this run has {self.cells[:4]}...")
        tests = saved_tests(state) if self.again.tested else []
        if self.again.tested and not tests:
            raise ConfigError(
                f"Again.tested: {folder} has no test; name runs that trained with tested=True and evaluations, or use False"
            )
        last = tests[-1][1] if tests else [float(cell[2]) for cell in state["cells"]]
        return _Student([Fit.from_list(fit) for fit in state["fits"]], float(sum(last)), tests)

    @property
    def uniform(self) -> float:
        """Share of even draws, before the comparison and behind it."""
        return self.again.look if self.expert is None else self.again.uniform

    def guided_weights(self) -> F | None:
        """Half by the expert, half by this run's own fits; either alone where the other says nothing."""
        own, stages = super().guided_weights(), self._stages()
        if not stages:
            return own
        taught = (
            np.mean([p for p, _ in stages], axis=0) if self.again.mode == "pool" else stages[min(self.at, len(stages) - 1)][0]
        )
        return taught if own is None else 0.5 * own + 0.5 * taught

    def _stages(self) -> list[tuple[F, float]]:
        """The expert's fits as probabilities, those without progress left out, each with its mean success."""
        fits = [] if self.expert is None else self._students[self.expert].fits
        found = [(self.at_cells(fit.mixture, self.again.least), fit.reward) for fit in fits]
        return [(p, reward) for p, reward in found if p is not None]

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """As `AlpGmmBook`; chooses the expert when the pretest is over, and goes on to its next fit when that is due."""
        before = len(self.fits)
        super().observe(outcomes)
        if self.expert is None:
            if len(self.fits) >= self.again.pretest and self._students and not self.again.tested:
                self.expert = self._nearest_best(np.array(self.fits[self.again.pretest - 1].success))
            return
        self._last = [*self._last, *(o.group.success for o in outcomes if o.group.success is not None)][-self.again.window :]
        stages = self._stages()
        if self.at + 1 < len(stages) and self._due(stages[self.at][1], before):
            self.at, self._last = self.at + 1, []

    def observe_metrics(self, metrics: Mapping[str, float]) -> None:
        """As `AlpGmmBook`; chooses the expert at the first test behind the pretest."""
        super().observe_metrics(metrics)
        if self.expert is None and self.again.tested and self._students and self.tests:
            fits, values = self.tests[-1]
            if fits >= self.again.pretest:
                self.expert = self._nearest_best(np.array(values))

    def _due(self, reward: float, fits: int) -> bool:
        if self.again.mode == "time":
            return len(self.fits) > fits
        return len(self._last) == self.again.window and sum(self._last) / len(self._last) >= reward

    def _nearest_best(self, own: F) -> int:
        """Of the earlier runs nearest to what this one can do, ``[cells]``, the one of highest last success."""

        def distance_to(number: int) -> float:
            return float(((self._students[number].known_at(self.again.pretest, self.again.tested) - own) ** 2).sum())

        near = sorted(range(len(self._students)), key=distance_to)[: self.again.neighbours]
        return max(near, key=lambda number: self._students[number].score)

    def metrics(self) -> Mapping[str, float]:
        """Those of `AlpGmmBook`, and ``curriculum/expert_stage``, -1 before there is an expert."""
        return {**super().metrics(), "curriculum/expert_stage": float(-1 if self.expert is None else self.at)}

    def state_dict(self) -> State:
        """That of `AlpGmmBook`, the classroom as it was read, the expert, and how far it was followed."""
        students = [student.to_list() for student in self._students]
        return {**super().state_dict(), "students": students, "expert": self.expert, "at": self.at, "last": self._last}

    def load_state_dict(self, state: State) -> None:
        """Continue where `state_dict` was taken.

        Raises:
            CheckpointError: the state has other cells.
        """
        super().load_state_dict(state)
        self._students = [_Student.from_list(saved) for saved in state["students"]]
        self.expert = None if state["expert"] is None else int(state["expert"])
        self.at, self._last = int(state["at"]), [float(x) for x in state["last"]]
