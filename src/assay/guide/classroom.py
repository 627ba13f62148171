"""AGAIN: the curriculum of an earlier run that was like this one and ended well, beside this run's own (Meta-ACL)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import ConfigError
from assay.core.group import Draw, Outcome
from assay.core.protocols import State
from assay.guide.box_curricula import AlpGmm, AlpGmmBook, Fit

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

    Source: Meta-ACL (arXiv 2011.08463). There a student is compared by a test on fixed tasks; here by its success in
    practice. UNSURE: how draws are split between expert and own fits.

    Attributes:
        classroom: folders of earlier runs that trained with `AlpGmm` or `Again` on the same cells.
        pretest: fits before the comparison.
        look: share of even draws before it.
        uniform: share of even draws behind it.
        neighbours: earlier runs among which the best is taken.
        least: mean progress up to which a component is left out.
        mode: how the expert's fits follow each other.
        window: successes that ``reward`` averages.

    Raises:
        ConfigError: a value out of range, or no classroom.
    """

    classroom: tuple[str, ...]
    uniform: float = 0.02
    pretest: int = 2
    look: float = 0.1
    neighbours: int = 5
    least: float = 0.2
    mode: Literal["pool", "time", "reward"] = "reward"
    window: int = 50

    def __post_init__(self) -> None:
        super(Again, self).__post_init__()
        object.__setattr__(self, "classroom", tuple(map(str, self.classroom)))
        if not self.classroom or self.mode not in ("pool", "time", "reward"):
            raise ConfigError(
                f"Again.classroom={self.classroom} must name earlier runs, and .mode={self.mode!r} be pool, time or reward"
            )
        if min(self.pretest, self.neighbours, self.window) < 1 or not 0.0 < self.look <= 1.0 or self.least < 0.0:
            raise ConfigError(
                f"Again.pretest={self.pretest}, .neighbours={self.neighbours} and .window={self.window} must be at least 1, "
                f".look={self.look} in (0, 1], .least={self.least} at least 0"
            )

    def build(self, arms: Mapping[str, tuple[int, ...]], seed: int) -> AgainBook:
        """The curriculum with its state; raises ConfigError when there is nothing to choose."""
        return AgainBook(self, arms, seed)


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
        self._students: list[tuple[list[Fit], float]] = []

    def draw(self, n: int) -> list[Draw]:
        """As `CellBook`.

        Raises:
            ConfigError: at the first draw: a folder of the classroom has no checkpoint of such a run, or is of other cells.
        """
        if not self._students:
            self._students = [self._student(Path(place)) for place in self.again.classroom]
        return super().draw(n)

    def _student(self, folder: Path) -> tuple[list[Fit], float]:
        """An earlier run's fits, and its last success summed over cells."""
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
        return [Fit.from_list(fit) for fit in state["fits"]], float(sum(cell[2] for cell in state["cells"]))

    @property
    def uniform(self) -> float:
        """Share of even draws, before the comparison and behind it."""
        return self.again.look if self.expert is None else self.again.uniform

    def guided(self) -> F | None:
        """Half by the expert, half by this run's own fits; either alone where the other says nothing."""
        own, stages = super().guided(), self._stages()
        if not stages:
            return own
        taught = (
            np.mean([p for p, _ in stages], axis=0) if self.again.mode == "pool" else stages[min(self.at, len(stages) - 1)][0]
        )
        return taught if own is None else 0.5 * own + 0.5 * taught

    def _stages(self) -> list[tuple[F, float]]:
        """The expert's fits as probabilities, those without progress left out, each with its mean success."""
        fits = [] if self.expert is None else self._students[self.expert][0]
        found = [(self.at_cells(fit.mixture, self.again.least), fit.reward) for fit in fits]
        return [(p, reward) for p, reward in found if p is not None]

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """As `AlpGmmBook`; chooses the expert when the pretest is over, and goes on to its next fit when that is due."""
        before = len(self.fits)
        super().observe(outcomes)
        if self.expert is None:
            if len(self.fits) >= self.again.pretest and self._students:
                self.expert = self._nearest_best()
            return
        self._last = [*self._last, *(o.group.success for o in outcomes if o.group.success is not None)][-self.again.window :]
        stages = self._stages()
        if self.at + 1 < len(stages) and self._due(stages[self.at][1], before):
            self.at, self._last = self.at + 1, []

    def _due(self, reward: float, fits: int) -> bool:
        if self.again.mode == "time":
            return len(self.fits) > fits
        return len(self._last) == self.again.window and sum(self._last) / len(self._last) >= reward

    def _nearest_best(self) -> int:
        """Of the earlier runs nearest to this one's success, the one of highest last success."""
        own = np.array(self.fits[self.again.pretest - 1].success)

        def apart(number: int) -> float:
            fits = self._students[number][0]
            return float(((np.array(fits[min(self.again.pretest, len(fits)) - 1].success) - own) ** 2).sum())

        near = sorted(range(len(self._students)), key=apart)[: self.again.neighbours]
        return max(near, key=lambda number: self._students[number][1])

    def metrics(self) -> Mapping[str, float]:
        """Those of `AlpGmmBook`, and ``curriculum/expert_stage``, -1 before there is an expert."""
        return {**super().metrics(), "curriculum/expert_stage": float(-1 if self.expert is None else self.at)}

    def state_dict(self) -> State:
        """That of `AlpGmmBook`, the classroom as it was read, the expert, and how far it was followed."""
        students = [[[fit.to_list() for fit in fits], score] for fits, score in self._students]
        return {**super().state_dict(), "students": students, "expert": self.expert, "at": self.at, "last": self._last}

    def load_state_dict(self, state: State) -> None:
        """Continue where `state_dict` was taken.

        Raises:
            CheckpointError: the state has other cells.
        """
        super().load_state_dict(state)
        self._students = [([Fit.from_list(fit) for fit in fits], float(score)) for fits, score in state["students"]]
        self.expert = None if state["expert"] is None else int(state["expert"])
        self.at, self._last = int(state["at"]), [float(x) for x in state["last"]]
