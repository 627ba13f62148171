"""Runs in folders: trained, killed, gone on with, evaluated."""

from __future__ import annotations

import dataclasses
import io
import platform
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from assay.core import ConfigError, digest, from_dict, loads_toml
from assay.runs import (
    Journal,
    RunFiles,
    check_unused,
    check_versions,
    lock,
    remove_leftovers,
    write_json,
    write_settings,
    write_versions,
)
from assay.runs import checkpoint as checkpoints
from assay.runs.storage import read_json
from assay_control.data.files import npz_bytes
from assay_control.evaluation import PolicyEvaluation
from assay_control.lazy_torch import torch
from assay_control.loop import walk
from assay_control.records import Array
from assay_control.run import ControlRun
from assay_control.session import Session

__all__ = ["ControlOutcome", "load_session", "read_run_settings", "resume", "train"]

FILES = RunFiles(claim=("run.toml", "versions.json"), before=("metrics.jsonl", "evals.jsonl", "events.jsonl"))
Watch = Callable[[int, Mapping[str, float]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlOutcome:
    """What came of a run.

    Attributes:
        folder: of the run.
        step: that it reached.
        metrics: of the last line, evaluation included.
        digest: of networks, optimisers, buffer, world and counters at the end: equal digests are equal bits.
        finished: whether it reached its last step.
    """

    folder: Path
    step: int
    metrics: Mapping[str, float]
    digest: str
    finished: bool


def train(run: ControlRun, folder: Path, watch: Watch | None = None, stop: Callable[[], bool] = lambda: False) -> ControlOutcome:
    """Trains in a new folder.

    Args:
        run: what to do.
        folder: new or empty.
        watch: is told of each line of metrics.
        stop: asked after each step; True ends the run behind a checkpoint, from which `resume` goes on.

    Raises:
        ConfigError: the folder is in use, or the settings do not fit together.
        DataError: the data cannot be read.
        NonFiniteError: a gradient is not finite.
        StorageError: the disk is full.
    """
    check_unused(folder, FILES)
    with _threads(run.threads):
        session = Session(run)  # what cannot begin leaves no folder behind
        with lock.worker(folder):
            write_settings(folder, run)
            write_versions(folder, versions(run))
            return _work(session, folder, watch, stop)


def resume(
    folder: Path,
    steps: int | None = None,
    watch: Watch | None = None,
    stop: Callable[[], bool] = lambda: False,
    allow_inexact: bool = False,
) -> ControlOutcome:
    """Goes on with a run from its last checkpoint; killed and gone on with, it ends with the bits of one that was not.

    Args:
        folder: of the run.
        steps: new last step; that of before where None.
        watch, stop: as in `train`.
        allow_inexact: go on although versions differ.

    Raises:
        ConfigError: no run there, or fewer steps than it has done.
        CheckpointError: the checkpoint is damaged, or of another run.
        InexactResumeError: versions differ.
    """
    run = read_run_settings(folder)
    with lock.worker(folder), _threads(run.threads):
        check_versions(folder, versions(run), allow_inexact)
        found = checkpoints.latest(folder)
        remove_leftovers(folder, found)
        if steps is not None:
            run = dataclasses.replace(run, steps=steps)
            write_settings(folder, run)
        session = Session(run)
        journal = Journal(folder)
        if found is not None:
            _restore(session, found)
        journal.cut(session.step)
        journal.close()
        if session.step > run.steps:
            raise ConfigError(f"{folder} has done {session.step} steps; give --steps above it, not {run.steps}")
        return _work(session, folder, watch, stop)


def load_session(folder: Path) -> Session:
    """A run's last checkpoint in memory, to evaluate it or to act with it.

    Raises:
        ConfigError: no run there, or it has no checkpoint yet.
        CheckpointError: the checkpoint is damaged.
    """
    session = Session(read_run_settings(folder))
    found = checkpoints.latest(folder)
    if found is None:
        raise ConfigError(f"{folder} has no checkpoint yet; go on with it: assay control resume {folder}")
    _restore(session, found)
    return session


def read_run_settings(folder: Path) -> ControlRun:
    """The settings of a run folder.

    Raises:
        ConfigError: no run of control there.
    """
    path = folder / "run.toml"
    if not path.exists():
        raise ConfigError(f"{folder} holds no run (no run.toml); give the folder of a run of 'assay control train'")
    table = loads_toml(path.read_text(encoding="utf-8"))
    if table.get("kind") != "assay_control.run:ControlRun":
        raise ConfigError(f"{folder} holds a run of {table.get('kind', 'another kind')}; language models go on by 'assay resume'")
    return cast("ControlRun", from_dict(ControlRun, table))


def versions(run: ControlRun) -> dict[str, str]:
    """Everything besides the settings on which the bits depend."""
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": str(torch.__version__),
        "machine": platform.machine(),
        "threads": str(run.threads),
        "capability": str(torch.backends.cpu.get_cpu_capability()),
    }


@contextmanager
def _threads(count: int) -> Generator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _Folder:
    """Writes what the loop reports into a run folder."""

    def __init__(self, folder: Path, watch: Watch | None) -> None:
        self.folder, self.watch, self.journal = folder, watch, Journal(folder)
        self.last: Mapping[str, float] = {}
        self.digest = ""

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """A line of ``metrics.jsonl``."""
        self.last = dict(values)
        self.journal.append("metrics", {"step": step, "stage": "control", "metrics": dict(values)})
        if self.watch is not None:
            self.watch(step, values)

    def evaluation(self, step: int, found: PolicyEvaluation) -> None:
        """A line of ``evals.jsonl``: the returns of all its episodes."""
        self.journal.append(
            "evals",
            {
                "step": step,
                "returns": found.returns.tolist(),
                "costs": found.costs.tolist(),
                "lengths": found.lengths.tolist(),
                "terminated": found.terminated.tolist(),
            },
        )

    def checkpoint(self, session: Session) -> None:
        """Saves the session; the journals are forced to the disk before."""
        self.journal.sync()
        arrays = session.arrays()

        def fill(folder: Path) -> None:
            (folder / "arrays.npz").write_bytes(npz_bytes(arrays))

        state: dict[str, Any] = {"run": session.run.identity(), **session.counters(), "last": dict(self.last)}
        checkpoints.save(self.folder, session.step, state, fill)
        self.digest = state_digest(session, arrays)


def state_digest(session: Session, arrays: Mapping[str, Array] | None = None) -> str:
    """Of all arrays and counters of a session.

    Two sessions with equal digests do the same from here on.
    """
    held = session.arrays() if arrays is None else arrays
    from assay.core.canon import array_digests

    return digest([array_digests(held), session.counters()])


def _work(session: Session, folder: Path, watch: Watch | None, stop: Callable[[], bool]) -> ControlOutcome:
    recorder = _Folder(folder, watch)
    before = checkpoints.latest_name(folder)
    if before is not None:
        recorder.last = read_json(folder / "checkpoints" / before / "state.json").get("last", {})
    try:
        walk(session, recorder, stop)
    finally:
        recorder.journal.close()
    finished = session.step >= session.run.steps
    found = state_digest(session)
    if finished:
        write_json(folder / "done.json", {"step": session.step, "digest": found})
    return ControlOutcome(folder=folder, step=session.step, metrics=recorder.last, digest=found, finished=finished)


def _restore(session: Session, found: Path) -> None:
    state = checkpoints.load_state(found, session.run.identity())
    with np.load(io.BytesIO((found / "learner" / "arrays.npz").read_bytes()), allow_pickle=False) as file:
        session.restore(state, {name: file[name] for name in file.files})
