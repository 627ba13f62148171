"""What a run records of its steps' rollouts, and where: each row of every step, and of some steps the rollouts themselves."""

from __future__ import annotations

from assay.core.optional_protocols import row_places
from assay.runs.journal import Journal
from assay.runs.rollout_files import RolloutFiles
from assay.runs.row_history import row_columns
from assay.train.metrics import kept_rollouts, rollout_records
from assay.train.run import Run
from assay.train.runner import StepResult
from assay.train.session import Parts

__all__ = ["RolloutRecorder"]


class RolloutRecorder:
    """Records rollouts of a run's steps.

    Args:
        run: settings.
        journal: gets a few rollouts of a step; the digest covers it.
        files: get all of them, within bounds; the digest does not cover these.
    """

    def __init__(self, run: Run, journal: Journal, files: RolloutFiles) -> None:
        self.run, self._journal, self._files = run, journal, files

    def due(self, stage_step: int) -> bool:
        """Whether a stage's step is recorded whatever becomes of the stage: its first, and every so many."""
        return stage_step == 1 or stage_step % self.run.rollouts_every == 0

    def step(self, parts: Parts, result: StepResult) -> None:
        """The step just done: its rows always, its rollouts where they are due."""
        if result.outcomes:
            place = {"step": parts.step, "stage": parts.stage.name}
            self._journal.append("row_history", {**place, **row_columns(result.outcomes)})
        for row in result.collected:
            self._journal.append("collected", {"step": parts.step, "stage": parts.stage.name, **row})
        if self.due(parts.stage_step):
            self.record(parts, result)

    def record(self, parts: Parts, result: StepResult) -> None:
        """The step just done, in the journal and in a file."""
        place = {"step": parts.step, "stage": parts.stage.name}
        for line in rollout_records(result.groups, parts.tokenizer, result.found.scores):
            self._journal.append("rollouts", {**place, **line})
        self.keep(parts, result)

    def keep(self, parts: Parts, result: StepResult) -> None:
        """The step just done, in a file alone: a stage's last step is recorded without a change of the digest."""
        if result.groups and (most := self.run.rollouts_kept):
            place = {"step": parts.step, "stage": parts.stage.name}
            where = row_places(self.run.tasks)
            kept = kept_rollouts(result.groups, result.outcomes, parts.tokenizer, result.found.scores, most, where)
            of = sum(len(group.rollouts) for group in result.groups)
            self._files.write(parts.step, [{**place, **line} for line in kept], of)
