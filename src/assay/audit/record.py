"""What an audit found: rates with intervals, verdicts in a sentence, examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from assay.core.canon import plain
from assay.core.errors import ConfigError
from assay.core.import_path import filed_as
from assay.core.util.renamed import RenamedMembers
from assay.core.util.wilson import wilson_bounds

__all__ = ["Audit", "AuditSettings", "AuditStatus", "Check", "Example", "Latency", "Line", "Rate"]

_SHOWN = 160

NOT_COUNTED = " (tried, not counted)"
"""What `Audit.untried` says of a family of answers whose acceptance fails no audit."""


@filed_as("assay.verify.audit.record:Status")
class AuditStatus(StrEnum):
    """How a check ended: within its threshold, over it, without one, not done, or not done because answers to other checks
    stopped the judge too often, which is as bad as failing: nobody knows.
    """

    PASS = "pass"
    FAIL = "fail"
    INFO = "info"
    SKIPPED = "skipped"
    UNTRIED = "untried"


@filed_as("assay.verify.audit.record:Settings")
@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """How an audit is made, and what it tolerates. A threshold holds for every family of answers by itself.

    Attributes:
        seed: of the answers that are drawn.
        items: cases looked at, at most.
        hostile_items: cases of these that the library of tricks is tried on.
        deadline: seconds for one verdict.
        accept: least value of an answer that counts as accepted.
        template: how an answer must stand, with ``{answer}``; None to find the first of the usual forms that gold is read in.
        must: families of right answers that must be accepted beside the gold as given.
        inform: families of wrong answers whose acceptance is known and documented, and effects likewise: they are shown, and do
            not fail the audit.
        skip: checks and families to leave out.
        unique: whether every item has one right answer alone; None for what its case or family says.
        max_fn: share of right answers refused.
        max_fp: share of wrong answers accepted.
        max_disagreement: share of answers on which a second verifier decides otherwise.
        max_faults: share of answers on which the verifier raises.
        max_p99: seconds, of the slowest hundredth.
        backend: ``auto``, ``strong`` or ``landlock`` to judge inside the sandbox, ``none`` not to. None: ``auto`` for what is
            foreign and came by name, as far as this machine contains anything; `Audit.isolation` says what was.

    Raises:
        ConfigError: a setting out of range.
    """

    seed: int = 0
    items: int = 24
    hostile_items: int = 2
    deadline: float = 5.0
    accept: float = 0.5
    template: str | None = None
    must: tuple[str, ...] = ()
    inform: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    unique: bool | None = None
    max_fn: float = 0.02
    max_fp: float = 0.01
    max_disagreement: float = 0.02
    max_faults: float = 0.0
    max_p99: float = 1.0
    backend: str | None = None

    def __post_init__(self) -> None:
        for name in ("max_fn", "max_fp", "max_disagreement", "max_faults"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"Settings.{name}={getattr(self, name)}; use a share in [0, 1]")
        for name in ("items", "deadline", "max_p99"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"Settings.{name}={getattr(self, name)}; use more than 0")
        if self.hostile_items < 0:
            raise ConfigError(f"Settings.hostile_items={self.hostile_items}; use at least 0")
        if self.template is not None and "{answer}" not in self.template:
            raise ConfigError(
                f"Settings.template={self.template!r} has no place for the answer; write {{answer}} where it stands"
            )


@dataclass(frozen=True, slots=True)
class Rate:
    """How many of how many, with Wilson's 95 % interval.

    >>> str(Rate(0, 10))
    '0/10 = 0.000 [0.000, 0.278]'
    """

    failed: int
    of: int

    @property
    def value(self) -> float:
        """The share; 0 of nothing is 0."""
        return self.failed / self.of if self.of else 0.0

    @property
    def bounds(self) -> tuple[float, float]:
        """Ends of the interval."""
        return wilson_bounds(self.failed, self.of) if self.of else (0.0, 1.0)

    def __str__(self) -> str:
        low, high = self.bounds
        return f"{self.failed}/{self.of} = {self.value:.3f} [{low:.3f}, {high:.3f}]"


@dataclass(frozen=True, slots=True)
class Line:
    """A rate by itself: one family of answers, or one comparison.

    Attributes:
        name: of the family.
        says: it in words.
        rate: failures of how many.
        counts: whether a threshold holds for it; otherwise it only informs.
        highest: of a family of wrong answers, the highest value that one was given; None for other lines, and without a value.
    """

    name: str
    says: str
    rate: Rate
    counts: bool = True
    highest: float | None = None


@dataclass(frozen=True, slots=True)
class Example(RenamedMembers):
    """One failure.

    Attributes:
        family: of the answer.
        gold: of its problem.
        answer: what was said.
        finding: what the verifier made of it.
    """

    renamed_members: ClassVar[Mapping[str, str]] = {"said": "finding"}

    family: str
    gold: str
    answer: str
    finding: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One question to a verifier.

    Attributes:
        name: short, for ``skip``.
        status: how it ended.
        says: the verdict in a sentence.
        limit: the threshold, if it has one.
        lines: its rates.
        examples: failures, shortest answers first.
    """

    name: str
    status: AuditStatus
    says: str
    limit: float | None = None
    lines: tuple[Line, ...] = ()
    examples: tuple[Example, ...] = ()

    @classmethod
    def of(cls, name: str, lines: Sequence[Line], limit: float, good: str, bad: str, examples: Sequence[Example] = ()) -> Check:
        """A check that fails where a line that counts is over its limit; ``{worst}`` in ``bad`` is the worst such line."""
        over = [line for line in lines if line.counts and line.rate.value > limit]
        worst = max(over, key=lambda line: line.rate.value, default=None)
        shown = sorted(dict.fromkeys(examples), key=lambda e: (len(e.answer), e.answer))[:8]
        says = good if worst is None else bad.replace("{worst}", f"{worst.name}: {worst.rate}")
        status = AuditStatus.PASS if worst is None else AuditStatus.FAIL
        return cls(name=name, status=status, says=says, limit=limit, lines=tuple(lines), examples=tuple(shown))


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds of a call: percentiles over ``n`` calls; one that hung counts as its deadline."""

    p50: float
    p95: float
    p99: float
    max: float
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """All that was found out about a verifier.

    Attributes:
        name: the verifier.
        against: the second verifier, if there was one.
        template: how answers were written.
        settings: thresholds among them.
        items: cases looked at.
        probes: answers judged.
        left_out: answers not judged any more, after too many of their family, or of all, had stopped their judge.
        checks: every question.
        latency: how long a verdict takes; None where no call returned.
        isolation: what contained the verifier, or why nothing did.
        signature: how a person's function was called; empty for a verifier.
        versions: of Python and assay.
        untried: kinds of wrong answers that prove nothing here, because other answers than the gold may be right, and those that
            were judged and do not count.
    """

    name: str
    against: str | None
    template: str
    settings: AuditSettings
    items: int
    probes: int
    left_out: int
    checks: tuple[Check, ...]
    latency: Latency | None
    isolation: str = ""
    signature: str = ""
    versions: dict[str, str] = field(default_factory=dict[str, str])
    untried: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether no check is over its threshold, or could not be tried."""
        return not self.failed

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the checks that are."""
        return tuple(check.name for check in self.checks if check.status in (AuditStatus.FAIL, AuditStatus.UNTRIED))

    @property
    def verdict(self) -> str:
        """The result in a sentence: what failed, or that all passed; and where kinds of wrong answers were not tried, that a
        verifier which accepts them passes as well.
        """
        if self.failed:
            return f"failed: {', '.join(self.failed)}"
        left = [kind for kind in self.untried if not kind.endswith(NOT_COUNTED)]
        if not left:
            return "passed"
        return (
            f"passed what was tried. Not tried: {', '.join(left)}, as several answers may be right there: a verifier that "
            "accepts all of these passes too. If each item has one right answer, try them with --unique yes"
        )

    def check(self, name: str) -> Check:
        """The check of that name.

        Raises:
            KeyError: none.
        """
        return {check.name: check for check in self.checks}[name]

    def json(self) -> dict[str, Any]:
        """All of it as plain data; rates with their intervals, long answers cut."""
        out: dict[str, Any] = plain(self)
        out["passed"] = self.passed
        for made, check in zip(out["checks"], self.checks, strict=True):
            for line, known in zip(made["lines"], check.lines, strict=True):
                low, high = known.rate.bounds
                line["rate"] = {**line["rate"], "value": known.rate.value, "low": low, "high": high}
            for example in made["examples"]:
                example["answer"], example["gold"] = printable(example["answer"]), printable(example["gold"])
        return out


def printable(text: str) -> str:
    """An answer as a report shows it: control characters escaped, cut in the middle where it is long."""
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: 4 * _SHOWN])
    if len(text) <= _SHOWN:
        return safe
    return f"{safe[:_SHOWN]}… ({len(text):,} characters)"
