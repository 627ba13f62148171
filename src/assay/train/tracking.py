"""The trackers of a run, from its first step to its report."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from assay.measure.trackers.run_trackers import RunTrackers
from assay.measure.trackers.state import recorded_trackers
from assay.measure.trackers.tracker import Ending, TrackerSettings

if TYPE_CHECKING:
    from assay.core.protocols import Tracker
    from assay.train.run import Run
    from assay.train.run_driver import Watch

__all__ = ["open_trackers"]


@contextmanager
def open_trackers(folder: Path, trackers: Sequence[TrackerSettings] | None, watch: Watch) -> Generator[Watch]:
    """Inside, a run in ``folder`` has trackers: give it the watch that this makes. They end behind the block, which therefore
    writes the report.

    Args:
        folder: of the run; bases that it builds first have no trackers.
        trackers: None for those that the run had before.
        watch: makes other trackers.

    Raises:
        ConfigError: two trackers of one name.
        MissingExtraError: the library of one is not installed.
    """
    senders = RunTrackers(folder, recorded_trackers(folder) if trackers is None else trackers)

    def both(run: Run, where: Path, first: int) -> Sequence[Tracker]:
        if where != folder:
            return watch(run, where, first)
        senders.start()
        return [senders, *watch(run, where, first)]

    ending: Ending = "failed"
    try:
        yield both
        ending = "finished" if (folder / "done.json").exists() else "stopped"
    except KeyboardInterrupt:
        ending = "stopped"
        raise
    finally:
        senders.finish(ending)
