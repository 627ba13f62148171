"""``assay runs sync``: sends a run's steps to trackers that do not have them yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.cli.options import parse
from assay.cli.output import busy, note, show
from assay.cli.run_request import run_folder
from assay.cli.tracker_options import choose_trackers, split_words
from assay.core.errors import AssayError, ConfigError
from assay.measure.trackers.send import last_step, send_run
from assay.measure.trackers.state import TRACKERS, TrackerState, recorded_trackers
from assay.measure.trackers.tracker import TrackerSettings

__all__ = ["runs_sync"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsSyncOptions:
    """Sends a run to trackers: all steps that they do not have, tables of rollouts, and the report.

    Attributes:
        run: a run folder; the run may have had no tracker.
        tracker: which: tensorboard, wandb, trackio, mlflow, or my_file.py:MyTracker; those that the run had when not given.
            Settings as --tracker.project, --tracker.mode online; the others are those that the run had.
        json: print JSON.
    """

    run: Path = field(metadata={"positional": True, "arg": {"metavar": "RUN"}})
    tracker: tuple[str, ...] = field(default=(), metadata={"arg": {"metavar": "[NAME ...]"}})
    json: bool = False


def runs_sync(args: list[str]) -> int:
    """``assay runs sync RUN [--tracker NAME ...]``; 1 where one of them failed."""
    about, words = split_words(args)
    own = parse(RunsSyncOptions, words, "assay runs sync")
    folder = run_folder(own.run, ("metrics.jsonl",))
    trackers = choose_trackers(about, before=recorded_trackers(folder))
    if not trackers:
        raise ConfigError(f"{folder} had no tracker; say which with --tracker: {', '.join(TRACKERS)}")
    for tracker in trackers:
        tracker.check_installed()
    last = last_step(folder)
    rows = [_send_run(folder, tracker) for tracker in trackers]

    def text() -> None:
        for row in rows:
            if not row["error"]:
                print(f"{row['tracker']}: steps up to {row['sent']} of {last}" + (f", {row['url']}" if row["url"] else ""))

    show(own.json, {"run": str(folder), "last": last, "trackers": rows}, text)
    return 1 if any(row["error"] for row in rows) else 0


def _send_run(folder: Path, tracker: TrackerSettings) -> dict[str, Any]:
    """What came of sending to one; an error of its library does not keep the others from theirs."""
    name, error = tracker.tracker_name(), ""
    try:
        with busy(f"sending to {name}"):
            send_run(folder, tracker)
    except AssayError:
        raise
    except Exception as failure:
        error = f"{type(failure).__name__}: {' '.join(str(failure).split())[:300]}"
        note(f"{name}: {error}; nothing is lost, try again later")
    state = TrackerState.read(folder, name)
    return {"tracker": name, "sent": state.sent if state else -1, "url": state.url if state else "", "error": error}
