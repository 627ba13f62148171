"""Probes to outcomes: the one place where an audited verifier runs."""

from __future__ import annotations

import socket
import tempfile
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from assay.audit.effects import EFFECTS, Played, WatchedVerifier, events_of
from assay.audit.hostile import Canary
from assay.audit.probes import AuditProbe
from assay.audit.record import AuditSettings
from assay.audit.sandboxed_verifier import SandboxedVerifier
from assay.audit.subject import Subject, again
from assay.core.errors import ConfigError
from assay.core.protocols import Verifier
from assay.core.rollout import Rollout
from assay.core.score import Score
from assay.core.seeds import derive
from assay.core.task import Task
from assay.sandbox import Sandbox
from assay.verify.rollouts import rollout_of
from assay.verify.workers.pool import ScoringPool

__all__ = ["AuditContext", "ProbeOutcome", "audit_context", "isolated_pool"]

_CHUNK = 32
_LONGEST = 120.0
"""Seconds for all that is judged again in one process."""

_PATIENCE, _MOST = 3, 36
"""Probes of a family, and of all, that may hang or die before the rest is left out: each costs two deadlines, and the finding
is made. One family shall not keep the others from being tried.
"""


@dataclass(frozen=True, slots=True)
class ProbeOutcome:
    """What became of a probe.

    Attributes:
        probe: the probe.
        value: the main value; None without a verdict.
        ended: ``verdict``, ``raised`` (or broke its contract), ``none`` (no verdict on purpose), ``hung`` or ``died``.
        seconds: of the call; None where it did not return.
        error: what went wrong, in words.
        events: what the verifier did with the answer's words, as the interpreter reported it.
        effects: what it did besides judging (`EFFECTS`), whatever the answer.
    """

    probe: AuditProbe
    value: float | None
    ended: str
    seconds: float | None = None
    error: str = ""
    events: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()


@dataclass(frozen=True)
class AuditContext:
    """Where an audit judges.

    Attributes:
        deadline: seconds for one verdict.
        canary: by what code of an answer is known.
        sandbox: where subjects run that came by name; None for processes that can be killed and are not contained.
        built_ins: there also those of assay.
    """

    deadline: float
    canary: Canary
    listener: socket.socket
    sandbox: Sandbox | None = None
    built_ins: bool = False

    def outcomes(self, subject: Subject, probes: Sequence[AuditProbe]) -> list[ProbeOutcome]:
        """Outcomes in order; fewer than there are probes where too many stopped their judge."""
        out: list[ProbeOutcome] = []
        stopped: Counter[str] = Counter()
        with self._in_sandbox(subject) or isolated_pool(WatchedVerifier(subject.verifier, self.canary), self.deadline) as pool:
            for start in range(0, len(probes), _CHUNK):
                chunk = [p for p in probes[start : start + _CHUNK] if stopped[p.family] < _PATIENCE]
                scores = pool.score([(p.case.task, rollout_saying(p.case.task, p.answer, p.id)) for p in chunk])
                out += [_outcome(p, scores[p.id]) for p in chunk]
                stopped.update(o.probe.family for o in out[len(out) - len(chunk) :] if o.ended in ("hung", "died"))
                if stopped.total() >= _MOST:
                    break
        done = events_of(self.canary)
        return [_with(o, done.get(o.probe.id, ())) for o in out]

    def play_together(
        self, subject: Subject, items: Iterable[tuple[Task, Rollout]], **how: Any
    ) -> tuple[float | str, ...] | None:
        """Values of several items judged in one process (`Played`); None without any, or where that process hung or died."""
        given = tuple(items)
        if not given:
            return None
        seconds = min(self.deadline * len(given), _LONGEST)
        if (box := self._in_sandbox(subject)) is not None:
            with box:
                return box.play_together(given, seconds, **how)
        with isolated_pool(Played(subject.verifier, given, **how), seconds) as pool:
            (score,) = pool.score(given[:1]).values()
        return tuple(score.info["values"]) if "values" in score.info else None

    def again(self, subject: Subject, items: Sequence[tuple[Task, Rollout]], hash_seed: int) -> Sequence[float | str]:
        """Values from a fresh interpreter whose hashes of text are seeded otherwise: by chance where it is contained.

        Raises:
            ConfigError: the verifier cannot be made in another process, or that process failed.
        """
        if not self._holds(subject):
            return again(subject, items, hash_seed, self.deadline)
        values = self.play_together(subject, items)
        if values is None:
            raise ConfigError("a process of its own gave no verdicts in time")
        return values

    def _in_sandbox(self, subject: Subject) -> SandboxedVerifier | None:
        if not self._holds(subject):
            return None
        assert self.sandbox is not None and subject.recipe is not None
        return SandboxedVerifier(self.sandbox, subject.recipe, self.canary, self.deadline)

    def _holds(self, subject: Subject) -> bool:
        return self.sandbox is not None and subject.recipe is not None and (self.built_ins or not subject.installed)

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


def isolated_pool(verifier: Verifier, deadline: float) -> ScoringPool:
    """The pool of a verifier that is not boxed: a process of its own that is killed when it hangs."""
    return ScoringPool(verifier, deadline, refuse=False)


@contextmanager
def audit_context(settings: AuditSettings, sandbox: Sandbox | None = None) -> Generator[AuditContext]:
    """A folder and a listener that an audit's canaries know, for as long as it lasts."""
    with (
        tempfile.TemporaryDirectory(prefix="assay-audit-", ignore_cleanup_errors=True) as place,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        listener.settimeout(0.0)
        token = f"canary_{derive('audit/canary', settings.seed):016x}"
        yield AuditContext(
            settings.deadline,
            Canary(place=place, token=token, port=listener.getsockname()[1]),
            listener,
            sandbox,
            settings.backend is not None,
        )


def rollout_saying(task: Task, text: str, id: str) -> Rollout:
    """A rollout that says a text."""
    return rollout_of(task, text, id=id, group=id)


def _outcome(probe: AuditProbe, score: Score) -> ProbeOutcome:
    error = str(score.info.get("error", ""))
    if "ended" in score.info:
        return ProbeOutcome(probe, None, str(score.info["ended"]), error=error)
    seconds = score.info.get("seconds")
    if score.valid:  # also what the verifier itself calls the policy's fault: a limit that it looked after
        return ProbeOutcome(probe, score.primary, "verdict", seconds)
    return ProbeOutcome(probe, None, "none" if score.info.get("verdict") == "none" else "raised", seconds, error)


def _with(outcome: ProbeOutcome, events: tuple[str, ...]) -> ProbeOutcome:
    effects = tuple(e for e in events if e in EFFECTS)
    return replace(outcome, events=tuple(e for e in events if e not in EFFECTS), effects=effects)
