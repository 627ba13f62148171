"""Probes to outcomes: the one place where an audited verifier runs."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.core.protocols import Verifier
from assay.core.rollout import Rollout
from assay.core.score import Score
from assay.core.seeds import derive
from assay.core.task import Task
from assay.verify.attempts import attempt
from assay.verify.audit.hostile import Canary
from assay.verify.audit.probes import Probe
from assay.verify.audit.watched import Played, Watched, events_of
from assay.verify.pool import ScoringPool

__all__ = ["Judging", "Outcome", "contained", "judging"]

_CHUNK = 64
_LONGEST = 120.0
"""Seconds for all that is judged again in one process."""

_PATIENCE = 12
"""Probes that may hang or die before the rest is left out: each costs two deadlines, and the finding is made."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a probe.

    Attributes:
        probe: the probe.
        value: the main value; None without a verdict.
        ended: ``verdict``, ``raised`` (or broke its contract), ``none`` (no verdict on purpose), ``hung`` or ``died``.
        seconds: of the call; None where it did not return.
        error: what went wrong, in words.
        events: what the verifier did with the answer's words, as the interpreter reported it.
    """

    probe: Probe
    value: float | None
    ended: str
    seconds: float | None = None
    error: str = ""
    events: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judging:
    """Where an audit judges.

    Attributes:
        deadline: seconds for one verdict.
        canary: by what code of an answer is known.
    """

    deadline: float
    canary: Canary
    listener: socket.socket

    def outcomes(self, verifier: Verifier, probes: Sequence[Probe]) -> list[Outcome]:
        """Outcomes in order; fewer than there are probes where too many stopped their judge."""
        out: list[Outcome] = []
        with contained(Watched(verifier, self.canary), self.deadline) as pool:
            for start in range(0, len(probes), _CHUNK):
                chunk = probes[start : start + _CHUNK]
                scores = pool.score([(p.case.task, said(p.case.task, p.answer, p.id)) for p in chunk])
                out += [_outcome(p, scores[p.id]) for p in chunk]
                if sum(o.ended in ("hung", "died") for o in out) >= _PATIENCE:
                    break
        done = events_of(self.canary)
        return [_with(o, done.get(o.probe.id, ())) for o in out]

    def played(self, verifier: Verifier, items: Iterable[tuple[Task, Rollout]], **how: Any) -> tuple[float | str, ...] | None:
        """Values of several items judged in one process (`Played`); None without any, or where that process hung or died."""
        given = tuple(items)
        if not given:
            return None
        with contained(Played(verifier, given, **how), min(self.deadline * len(given), _LONGEST)) as pool:
            (score,) = pool.score(given[:1]).values()
        return tuple(score.info["values"]) if "values" in score.info else None

    def traces(self) -> tuple[str, ...]:
        """What was left behind by an answer that ran: a file, a connection."""
        found = ["a file was made"] if Path(self.canary.path).exists() else []
        with suppress(BlockingIOError):
            while True:  # others may knock at any port; ours says its word
                connection, _ = self.listener.accept()
                with connection, suppress(OSError):
                    connection.settimeout(0.5)
                    if self.canary.token.encode() in connection.recv(1024):
                        found.append("a connection was opened")
        return tuple(dict.fromkeys(found))


def contained(verifier: Verifier, deadline: float) -> ScoringPool:
    """The pool in which a foreign verifier runs: a process of its own that is killed when it hangs.

    Every call of an audited verifier but those of a fresh interpreter (`assay.verify.audit.subject.again`) goes through here.
    """
    return ScoringPool(verifier, deadline, refuse=False)


@contextmanager
def judging(seed: int, deadline: float) -> Generator[Judging]:
    """A folder and a listener that an audit's canaries know, for as long as it lasts."""
    with (
        tempfile.TemporaryDirectory(prefix="assay-audit-", ignore_cleanup_errors=True) as place,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        listener.settimeout(0.0)
        token = f"canary_{derive('audit/canary', seed):016x}"
        yield Judging(deadline, Canary(place=place, token=token, port=listener.getsockname()[1]), listener)


def said(task: Task, text: str, id: str) -> Rollout:
    """An attempt that says a text."""
    return attempt(task, text, id=id, group=id)


def _outcome(probe: Probe, score: Score) -> Outcome:
    error = str(score.info.get("error", ""))
    if "ended" in score.info:
        return Outcome(probe, None, str(score.info["ended"]), error=error)
    seconds = score.info.get("seconds")
    if score.valid:  # also what the verifier itself calls the policy's fault: a limit that it looked after
        return Outcome(probe, score.primary, "verdict", seconds)
    return Outcome(probe, None, "none" if score.info.get("verdict") == "none" else "raised", seconds, error)


def _with(outcome: Outcome, events: tuple[str, ...]) -> Outcome:
    return Outcome(outcome.probe, outcome.value, outcome.ended, outcome.seconds, outcome.error, events)
