"""A verifier under watch: how long it takes, and whether it runs an answer as code."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread
from time import perf_counter
from types import CodeType
from typing import Any, cast

from assay.audit.hostile import Canary
from assay.core.canon import FrozenMap
from assay.core.import_path import filed_as
from assay.core.protocols import Verifier
from assay.core.rollout import Rollout
from assay.core.score import Score
from assay.core.task import Task
from assay.verify.reward_function import RewardFunction
from assay.verify.verdict import judge

__all__ = ["EFFECTS", "Played", "WatchedVerifier", "events_of", "value_of"]

EFFECTS = {
    "writes_files": "opens files for writing",
    "uses_network": "looks for other machines, or connects to them",
    "starts_programs": "starts programs",
}
"""What a verifier may do besides judging."""

_PROGRAMS = {"os.exec", "os.fork", "os.posix_spawn", "os.system", "subprocess.Popen"}
_NETWORK = {"socket.connect", "socket.getaddrinfo"}
_EVENTS = _PROGRAMS | _NETWORK | {"exec", "open", "os.putenv", "pickle.find_class", "socket.__new__"}
"""What the interpreter reports of itself that may be the doing of an answer. Parsing alone (``compile``) is not among them."""

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_INTERNET = (2, 10)
"""Families of sockets: AF_INET and AF_INET6."""


class _Watch:
    """The audit hook of a process, which looks only while an answer is judged; a hook can never be removed."""

    def __init__(self, canary: Canary, out: int | None) -> None:
        self.canary = canary
        self.subject: str | None = None
        os.environ.pop(canary.token, None)  # an earlier audit's, inherited
        self._seen: set[tuple[str | None, str]] = set()
        self._file = os.open(f"{canary.place}/events", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600) if out is None else out
        sys.addaudithook(self._hook)

    def note(self, event: str) -> None:
        """Remember what was done on the answer at hand: in a file, since its worker may die of it."""
        if (self.subject, event) not in self._seen:
            self._seen.add((self.subject, event))
            os.write(self._file, (json.dumps([self.subject, event]) + "\n").encode())

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if self.subject is None or event not in _EVENTS:
            return
        subject, self.subject = self.subject, None  # what follows is ours
        try:
            seen = _words_of(args[0]) if event == "exec" else [repr(args)]
            marked = any(self.canary.token in word for word in seen)
            done = _effect(event, args)
            self.subject = subject
            if marked or (event == "socket.connect" and f", {self.canary.port})" in repr(args[1:])):
                self.note(event)
            elif done:
                self.note(done)
        finally:
            self.subject = subject


_Watch._hook.__cantrace__ = True  # pyright: ignore  # or neither a debugger nor a test would see its lines


def _effect(event: str, args: tuple[Any, ...]) -> str:
    """Which of `EFFECTS` an event is; nothing for most."""
    if event in _PROGRAMS:
        return "starts_programs"
    if event in _NETWORK or (event == "socket.__new__" and int(args[1]) in _INTERNET):
        return "uses_network"
    writes = event == "open" and isinstance(args[2], int) and args[2] & _WRITES
    return "writes_files" if writes and not _nowhere(str(args[0])) else ""


def _nowhere(path: str) -> bool:
    """What Python keeps for itself, and what keeps nothing."""
    return "__pycache__" in path or path.startswith("/dev/")


def _words_of(value: object) -> Iterator[str]:
    """Names and texts in a piece of code, and in its constants."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, CodeType):
        yield from value.co_names
        yield from _words_of(value.co_consts)
    elif isinstance(value, tuple | frozenset):
        for part in cast("Iterable[object]", value):
            yield from _words_of(part)


_WATCHES: dict[str, _Watch] = {}
"""One per process and folder."""


@filed_as("assay.verify.audit.watched:Watched")
@dataclass(frozen=True)
class WatchedVerifier:
    """A verifier whose scores say in ``info["seconds"]`` how long they took; what it ran is written down (`events_of`).

    Attributes:
        inner: the verifier.
        canary: by what code of an answer would be known.
        out: descriptor to write it to; None for the file that `events_of` reads.
    """

    inner: Verifier
    canary: Canary
    out: int | None = None

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        """Judge one rollout; what the verifier raises is a ``verifier`` fault."""
        key = f"{os.getpid()} {self.canary.place}"
        if key not in _WATCHES:
            _WATCHES[key] = _Watch(self.canary, self.out)
        watch = _WATCHES[key]
        watch.subject = rollout.id
        began = perf_counter()
        try:
            score = judge(self.inner, task, rollout)
            seconds = perf_counter() - began
            if os.environ.pop(self.canary.token, None) is not None:
                watch.note("environment variable set")
        finally:
            watch.subject = None
        return replace(score, info=FrozenMap({**score.info, "seconds": seconds}))


def events_of(canary: Canary) -> dict[str, tuple[str, ...]]:
    """What was written down: rollout id to events, each once."""
    path = Path(canary.place, "events")
    found: dict[str, dict[str, None]] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        subject, event = json.loads(line)
        found.setdefault(str(subject), {})[event] = None
    return {subject: tuple(events) for subject, events in found.items()}


@dataclass(frozen=True)
class Played:
    """Several rollouts judged one after another in one process, as one verdict: ``info["values"]`` in order.

    Attributes:
        inner: the verifier.
        items: task and rollout of each.
        together: in one call, where the verifier has such a form; else one by one.
        thread: not in the main thread.
    """

    inner: Verifier
    items: tuple[tuple[Task, Rollout], ...]
    together: bool = False
    thread: bool = False

    def __call__(self, task: Task, rollout: Rollout) -> Score:
        """All values; the rollout given is not looked at."""
        values: list[float | str] = []
        if self.thread:
            other = Thread(target=lambda: values.extend(self.values()), daemon=True)
            other.start()
            other.join()
        else:
            values.extend(self.values())
        return Score(components={"reward": 0.0}, info=FrozenMap({"values": values}))

    def values(self) -> list[float | str]:
        """A number per rollout, ``"fault"`` where there is no verdict."""
        if not self.together:
            return [value_of(judge(self.inner, task, rollout)) for task, rollout in self.items]
        try:
            return [value_of(score) for score in _many(self.inner, self.items)]
        except Exception:  # foreign code
            return ["fault"] * len(self.items)


def value_of(score: Score) -> float | str:
    """The main value of a score, ``"fault"`` where it has none."""
    return score.primary if score.valid else "fault"


def _many(verifier: Any, items: tuple[tuple[Task, Rollout], ...]) -> list[Score]:
    if isinstance(verifier, RewardFunction):
        return verifier.score_views([verifier.view(task, rollout) for task, rollout in items])
    return verifier.many(items)
