"""Where a run stands: what its checkpoints remember besides a stage's state."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Progress"]


@dataclass(slots=True)
class Progress:
    """What a checkpoint remembers besides a stage's state.

    Attributes:
        evaluated: global step of the newest full evaluation.
        cpu: CPU seconds spent in steps so far, evaluation excluded.
        ended: number of steps that the stage was to have when it ended, by steps or by metric; 0 while it goes on.
        gate: temperature-1 accuracy that the stage's gate found at its end, of the arm where it is lowest.
        apart: engine and learner disagreed too much at the last step that compared them.
        untrained: the tensors without gradient that the journal has told of, in this stage.
        judged, heard, silent: rollouts that several rewards have judged, those of the rewards that had a verdict on any, and
            those that the journal has told of for having none.
        best, stale: of the metric of `Stage.until` in this stage: its best value, and evaluations since.
    """

    evaluated: int = -1
    cpu: float = 0.0
    ended: int = 0
    gate: float | None = None
    apart: bool = False
    untrained: list[str] = field(default_factory=list[str])
    best: float | None = None
    stale: int = 0
    judged: int = 0
    heard: list[str] = field(default_factory=list[str])
    silent: list[str] = field(default_factory=list[str])

    def begin_stage(self) -> None:
        """Forgets what is of the stage before."""
        self.ended, self.gate, self.untrained = 0, None, []
        self.best, self.stale = None, 0
