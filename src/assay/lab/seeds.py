"""Runs side by side on one machine: seeds, or settings that differ. Each is, to the bit, what it would be alone.

Every run is a process of its own, in a folder of its own, with a journal of its own; what went wrong with one is no matter of the
others. What was finished is not run again, what was stopped or killed is gone on with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from assay.core.canon import plain
from assay.core.config import dumps_toml, from_dict, loads_toml, to_dict
from assay.core.errors import AssayError, ConfigError, DataError
from assay.core.rowfile import rows_beside
from assay.lab.processes import Processes, ProcessJob, exit_reason, own_cores
from assay.lab.summary import Difference, Mean, RunEnding, State, differences, means
from assay.measure.runs import EvalLine, read_run
from assay.runs import lock, storage, user_code
from assay.train.driver import when_stopped
from assay.train.models import Built
from assay.train.record import code_of, load_run
from assay.train.run import Run
from assay.train.stopping import REQUEUE
from assay.verify.workers.cpu import cores

__all__ = [
    "Difference",
    "Mean",
    "RunEnding",
    "State",
    "StudyObserver",
    "StudyRun",
    "check_members",
    "differences",
    "means",
    "run_all",
    "same_run",
    "side_by_side",
]

RESULTS = "results.json"
"""What came out, in the folder of the runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRun:
    """One of the runs.

    Attributes:
        name: of its folder.
        group: what it shares with those that differ from it in nothing but the seed.
        run: its settings.
        words: what stands behind ``assay train`` to get them.
    """

    name: str
    group: str
    run: Run = field(repr=False)
    words: tuple[str, ...] = field(repr=False)


class StudyObserver(Protocol):
    """Hears how the runs go."""

    def state(self, name: str, state: State, said: str) -> None:
        """A run is in another state; ``said`` is more about it, for people."""
        ...

    def log(self, name: str, step: int, metrics: Mapping[str, float]) -> None:
        """A line of a run's ``metrics.jsonl``."""
        ...


class NoObserver:
    """Hears nothing."""

    def state(self, name: str, state: State, said: str) -> None:
        """Nothing."""

    def log(self, name: str, step: int, metrics: Mapping[str, float]) -> None:
        """Nothing."""


def side_by_side(
    runs: Mapping[str, Run],
    folder: str | Path,
    *,
    at_once: int = 0,
    groups: Mapping[str, str] | None = None,
    news: StudyObserver | None = None,
    allow_inexact: bool = False,
) -> tuple[RunEnding, ...]:
    """Runs several runs, as many at a time as there are cores for them, each in ``folder/NAME``.

    The same call goes on with what was stopped, killed or failed, and leaves alone what is finished.

    Args:
        runs: by the names of their folders; each must be one that ``run.toml`` can say all of.
        folder: of all; each run's settings are put beside its folder.
        at_once: how many at a time; 0 for as many as this process has cores for, by ``Run.threads`` and ``Run.mesh``.
        groups: which runs differ in nothing but the seed, for `means`; all of them when None.
        news: hears how they go.
        allow_inexact: keep finished runs, and go on with others, although the code of a reward, verifier or tool has changed.

    Returns:
        What became of each, in the order given; also in ``folder/results.json``, with the means.

    Raises:
        ConfigError: a folder holds another run, or another process works on these.
        InexactResumeError: a run was made with other code of the user's, and ``allow_inexact`` is False.
    """
    place = Path(folder)
    members = [
        StudyRun(name=name, group=(groups or {}).get(name, ""), run=run, words=(str(place / f"{name}.toml"),))
        for name, run in runs.items()
    ]
    with storage.storage_errors(place):
        place.mkdir(parents=True, exist_ok=True)
    for member in members:
        storage.write_text(place / f"{member.name}.toml", dumps_toml(to_dict(member.run)))
    return run_all(members, place, at_once=at_once, options=("--plain",), news=news, allow_inexact=allow_inexact)


def run_all(
    members: Sequence[StudyRun],
    folder: Path,
    *,
    at_once: int = 0,
    options: tuple[str, ...] = (),
    news: StudyObserver | None = None,
    allow_inexact: bool = False,
    note: Callable[[str], None] = lambda line: None,
) -> tuple[RunEnding, ...]:
    """`side_by_side` of runs that the command line can make; ``options`` are those that ``train`` and ``resume`` share.

    ``note`` gets a line for each run that was made with other code, where that is allowed.

    Raises:
        ConfigError: a folder holds another run, or another process works on these.
        InexactResumeError: a run was made with other code of the user's, and ``allow_inexact`` is False.
    """
    for line in check_members(members, folder, allow_inexact):
        note(line)
    going_on = ("--allow-inexact",) if allow_inexact else ()
    with lock.worker(folder):
        endings = _SeedRunner(members, folder, options, news or NoObserver(), going_on).work(at_once)
        found = {"runs": endings, "means": means(endings), "differences": differences(endings)}
        storage.write_json(folder / RESULTS, plain(found))
    return endings


def check_members(members: Sequence[StudyRun], folder: Path, allow_inexact: bool = False) -> list[str]:
    """Whether what a folder holds of the runs, finished or not, is of these settings and of the user's code as it is now.

    Returns:
        A line for each run that was made with other code, where that is allowed.

    Raises:
        ConfigError: a folder holds another run.
        InexactResumeError: a run was made with other code, and ``allow_inexact`` is False.
    """
    found: list[str] = []
    for member in members:
        if not same_run(folder / member.name, member.run):
            raise ConfigError(
                f"{folder / member.name} holds a run of other settings than asked for; choose another folder, or remove that one"
            )
        if edited := user_code.check_code(folder / member.name, code_of(member.run), allow_inexact):
            found.append(f"{member.name} was made with other code than now: {'; '.join(edited)}")
    return found


def same_run(folder: Path, run: Run) -> bool:
    """Whether a folder holds no run yet, or just this one, as this version reads it."""
    path = folder / "run.toml"
    if not path.exists():
        return True
    try:
        with rows_beside(path.parent):
            found = from_dict(Run, loads_toml(path.read_text(encoding="utf-8")))
        if found == run:
            return True
    except AssayError:
        pass  # it has parts that only its recipe can make
    try:
        return [s.steps for s in load_run(folder, run).stages] == [s.steps for s in run.stages]
    except AssayError:
        return False


# ---- at work ----------------------------------------------------------------------------------------------------------


class _Journal:
    """What is new in a run's ``metrics.jsonl``."""

    def __init__(self, folder: Path) -> None:
        self._path, self._at = folder / "metrics.jsonl", 0

    def news(self) -> list[dict[str, Any]]:
        """The lines since the last look; one that is not whole yet waits."""
        try:
            with self._path.open("rb") as file:
                end = file.seek(0, 2)
                self._at = min(self._at, end)  # a resume cuts it back
                file.seek(self._at)
                text = file.read()
        except OSError:
            return []
        whole = text[: text.rfind(b"\n") + 1]
        self._at += len(whole)
        found: list[dict[str, Any]] = []
        for line in whole.splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:  # cut back and grown again since the last look
                continue
        return found


class _SeedRunner:
    """Starts the runs, hears them, and sees them end."""

    def __init__(
        self,
        members: Sequence[StudyRun],
        folder: Path,
        options: tuple[str, ...],
        news: StudyObserver,
        going_on: tuple[str, ...] = (),
    ) -> None:
        self._members = {m.name: m for m in members}
        self._folder, self._options, self._news, self._going_on = folder, options, news, going_on
        self._journals = {m.name: _Journal(folder / m.name) for m in members}
        self._waiting: list[str] = []
        self._ended: dict[str, tuple[State, str]] = {}
        self._told: dict[str, str] = {}
        self._stop = False

    def work(self, at_once: int) -> tuple[RunEnding, ...]:
        """Until all have ended, or the runs that are at work when it was stopped."""
        each = max(m.run.threads * m.run.mesh.size for m in self._members.values())
        for name in self._members:
            done = (self._folder / name / "done.json").exists()
            self._become(name, State.FINISHED if done else State.WAITING)
            self._waiting += [] if done else [name]
        most = min(at_once or max(1, cores() // each), max(1, len(self._waiting)))
        with own_cores(each, most) as places, Processes(places) as processes, when_stopped(lambda: self._ask(processes)):
            while processes.running or (self._waiting and not self._stop):
                while processes.free and (name := self._next(processes.running)):
                    self._waiting.remove(name)
                    processes.start(self._job(name))
                for job, status in processes.wait_ended():
                    self._on_end(job, status)
                self._hear(processes.running)
        for name in self._waiting:
            self._become(name, State.STOPPED)
        return tuple(self._ending(m) for m in self._members.values())

    def _ask(self, processes: Processes) -> None:
        """The first Ctrl-C or SIGTERM ends the runs at work after their steps, with a checkpoint; the second at once."""
        self._stop = True
        processes.ask()

    def _next(self, running: Sequence[str]) -> str:
        """A run that may start; empty where none may: a base that several start from is built by the first of them, and a run at
        which a process of a call before is still at work can only wait for it.
        """
        if self._stop:
            return ""
        built = [self._members[name].run.model for name in running if self._builds(name)]
        for name in self._waiting:
            if self._members[name].run.model in built:
                continue
            if holder := lock.holder(self._folder / name):
                self._become(name, State.WAITING, f"process {holder} works on it")
                continue
            return name
        return ""

    def _builds(self, name: str) -> bool:
        """Whether a run that is at work has yet to build its base, or to find it in the cache."""
        return isinstance(self._members[name].run.model, Built) and not (self._folder / name / "start").exists()

    def _job(self, name: str) -> ProcessJob:
        folder = self._folder / name
        begun = (folder / "run.toml").exists()
        words = (
            ("resume", str(folder), *self._going_on) if begun else ("train", *self._members[name].words, "--folder", str(folder))
        )
        return ProcessJob(name=name, words=("assay", *words, *self._options), log=folder.with_name(f"{name}.log"), new=not begun)

    def _on_end(self, job: ProcessJob, status: int) -> None:
        self._hear([job.name])
        if status == 0 and (self._folder / job.name / "done.json").exists():
            self._become(job.name, State.FINISHED)
        elif status in (130, REQUEUE) or (self._stop and status < 0):
            self._become(job.name, State.STOPPED)
        else:
            self._become(job.name, State.FAILED, exit_reason(job.log, status))

    def _hear(self, running: Sequence[str]) -> None:
        for name in running:
            if name not in self._ended:
                self._become(name, State.RUNNING, "base" if self._builds(name) else "")
            for line in self._journals[name].news():
                self._news.log(name, int(line["step"]), line["metrics"])

    def _become(self, name: str, state: State, said: str = "") -> None:
        """Notes and tells a state, where it is another."""
        if state in (State.FINISHED, State.STOPPED, State.FAILED):
            self._ended[name] = state, said
        if self._told.get(name) != (now := f"{state} {said}"):
            self._told[name] = now
            self._news.state(name, state, said)

    def _ending(self, member: StudyRun) -> RunEnding:
        state, said = self._ended[member.name]
        folder = self._folder / member.name
        known: dict[str, Any] = {"name": member.name, "group": member.group, "seed": member.run.seed}
        known |= {"state": state, "error": said}
        try:
            view = read_run(folder)
        except DataError:  # it never began
            return RunEnding(**known)
        cpu = view.history()["time/cpu"].values
        base, greedy, sampled = view.base("greedy"), view.final("greedy"), view.final("sampled")
        return RunEnding(
            **known,
            step=view.last_step,
            digest=str(storage.read_json(folder / "done.json")["digest"]) if state is State.FINISHED else "",
            base=_accuracy(base, view.threshold),
            greedy=_accuracy(greedy, view.threshold),
            sampled=_accuracy(sampled, view.threshold),
            cpu_seconds=round(float(cpu[-1]), 2) if len(cpu) else 0.0,
        )


def _accuracy(line: EvalLine | None, threshold: float) -> float | None:
    return None if line is None else float(np.mean(list(line.scores(threshold).values())))
