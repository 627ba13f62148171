"""What a run writes down and tells while it goes: metrics and events, to its journal and its trackers."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

from assay.core.errors import MismatchError, StorageError
from assay.core.group import Group
from assay.core.protocols import TaskSource, Tracker
from assay.runs.journal import Journal
from assay.train import record
from assay.train.gold_check import describe_rewards
from assay.train.metrics import pool_metrics
from assay.train.progress_view import ObservesEvaluations
from assay.train.run import Run
from assay.train.run_progress import Progress
from assay.train.session import Parts
from assay.train.silent_rewards import count_verdicts, silent_rewards

__all__ = ["RunLog"]


class RunLog:
    """The journal and the trackers of a run at work.

    Args:
        journal: where everything is written down.
        trackers: hear of metrics and evaluations besides.

    Attributes:
        step: the newest finished step, at which an error is written down.
    """

    def __init__(self, journal: Journal, trackers: Sequence[Tracker] = ()) -> None:
        self.journal, self.trackers, self.step = journal, trackers, 0
        self._counted: Mapping[str, int] = {}

    # ---- before the first step

    def write_isolation(self, run: Run, step: int) -> None:
        """Says what contains the programs that judges start, before any is started."""
        judges = {"reward": run.tasks.verifier()} | ({"check": run.check.verifier} if run.check else {})
        for line in record.isolation(self.journal.folder, judges):
            self._print_event(step, "isolation", line)

    def write_gold_check(self, run: Run) -> None:
        """Warns of a reward that cannot be earned by the rows' own answers, or is not always the same."""
        for line in describe_rewards(run):
            self._print_event(0, "gold", line)

    def _print_event(self, step: int, what: str, line: str) -> None:
        print(line, file=sys.stderr, flush=True)
        self.journal.event(step, what, line)

    # ---- of a stage

    def open_stage(self, p: Parts) -> None:
        """A stage goes on where it stands; counts of scoring begin anew."""
        self.step, self._counted = p.step, p.counts()

    def write_notes(self, p: Parts) -> None:
        """What of a stage's machinery is not as one would expect."""
        for what, line in p.notes():
            self.journal.event(p.step, what, line)

    def write_metrics(self, p: Parts, metrics: Mapping[str, float]) -> None:
        """A step or an evaluation: its numbers, what the scoring pool counted since the last, and what happened besides."""
        counts = p.counts()
        metrics = {**metrics, **pool_metrics(counts, self._counted)}
        self._counted = counts
        for line in p.pool.news():
            self.journal.event(p.step, "reward", line)
        while p.news:
            self.journal.event(p.step, *p.news.pop(0))
        self.journal.append("metrics", {"step": p.step, "stage": p.stage.name, "metrics": metrics})
        for tracker in self.trackers:
            tracker.log(p.step, metrics)

    def send_evaluation(self, items: int, part: bool) -> None:
        """Tells trackers that want to know of an evaluation, as `ObservesEvaluations` says."""
        for tracker in self.trackers:
            if isinstance(tracker, ObservesEvaluations):
                tracker.observe_evaluation(items, part)

    def write_mismatch(self, p: Parts, metrics: Mapping[str, float], progress: Progress) -> MismatchError | None:
        """Says where engine and learner begin to disagree too much; the error by which the run is to end, if it is to."""
        found = p.agreement.judge_step(metrics, p.step)
        if found.compared:
            if found.alarm and not progress.apart:
                self.journal.event(p.step, "mismatch", found.alarm)
            progress.apart = bool(found.alarm)
        return found.error

    def write_untrained(self, p: Parts, progress: Progress) -> None:
        """Says which tensors have had no gradient although others learn."""
        new = [name for name in p.untrained if name not in progress.untrained]
        if new:
            shown = ", ".join(new[:4]) + (f" and {len(new) - 4} more" if len(new) > 4 else "")
            self.journal.event(
                p.step,
                "untrained",
                f"the gradient of {len(new)} trained tensor{'s' if len(new) > 1 else ''} has been exactly 0 at every step that "
                f"moved others: {shown}; nothing that the loss reads depends on them",
            )
            progress.untrained += new

    def write_silent(self, p: Parts, tasks: TaskSource, groups: Sequence[Group], progress: Progress) -> dict[str, float]:
        """Says which of several rewards never has a verdict; how many they are, as a metric where there are any."""
        count_verdicts(tasks, groups, progress)
        silent = silent_rewards(tasks, progress)
        for name in silent:
            if name not in progress.silent:
                self._print_event(
                    p.step,
                    "reward",
                    f"the reward {name!r} has given None for all of the {progress.judged} rollouts that the other rewards have "
                    "judged so far: it is left out of the sum, and its weight counts for nothing",
                )
                progress.silent.append(name)
        return {"reward/silent": float(len(silent))} if silent else {}

    # ---- at the end

    def write_error(self, error: Exception) -> None:
        """What ended the run, where it can still be written: the first error is the one to tell."""
        with suppress(StorageError):
            self.journal.event(self.step, "error", f"{type(error).__name__}: {error}")

    def close(self) -> None:
        """Ends journal and trackers."""
        self.journal.close()
        for tracker in self.trackers:
            tracker.close()
