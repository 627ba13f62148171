"""Outcomes to findings: one function per question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from assay.audit.effects import EFFECTS
from assay.audit.judge_probes import ProbeOutcome
from assay.audit.probes import FAMILIES, Side
from assay.audit.record import AuditSettings, AuditStatus, Check, Example, Latency, Line, Rate, printable

__all__ = [
    "agreement",
    "crashes",
    "effects",
    "example",
    "execution",
    "faults",
    "formats",
    "gold",
    "hangs",
    "latency_of",
    "reduce_check",
    "slowness",
    "tricks",
    "wrong",
]

Outcomes = Sequence[ProbeOutcome]


def example(outcome: ProbeOutcome) -> Example:
    """An outcome as a failure to show."""
    said = f"value {outcome.value:g}" if outcome.value is not None else f"{outcome.ended}: {outcome.error}".rstrip(": ")
    return Example(outcome.probe.family, outcome.probe.case.gold, outcome.probe.answer, said)


def gold(outcomes: Outcomes, settings: AuditSettings) -> Check:
    """Whether the gold as given is right. An answer without a verdict is not accepted either."""
    mine = [o for o in outcomes if o.probe.family == "gold"]
    bad = [o for o in mine if not _accepted(o, settings)]
    line = Line("gold", FAMILIES["gold"].says, Rate(len(bad), len(mine)))
    return Check.of(
        "gold",
        [line],
        settings.max_fn,
        f"accepts the gold as given ({len(mine)} answers)",
        "refuses right answers, written as the gold is; {worst}",
        [example(o) for o in bad],
    )


def formats(outcomes: Outcomes, settings: AuditSettings) -> Check:
    """In which other forms a right answer is accepted; only those that it must accept count."""
    mine = [o for o in outcomes if FAMILIES[o.probe.family].side is Side.RIGHT and o.probe.family != "gold"]
    bad = [o for o in mine if not _accepted(o, settings)]
    lines = _lines(mine, bad, lambda family: family in settings.must)
    first = {o.probe.family: o.probe.answer for o in reversed(bad)}
    refused = [f"{line.name} ('{printable(first[line.name])}')" for line in lines if line.rate.failed]
    says = f"also accepts every other form ({', '.join(line.name for line in lines)})"
    if refused:
        says = f"refuses some of: {', '.join(refused)}; none of them was promised"
    check = Check.of(
        "formats",
        lines,
        settings.max_fn,
        says,
        "refuses right answers in a form that it must accept; {worst}",
        [example(o) for o in bad if o.probe.family in settings.must or not settings.must],
    )
    if any(line.counts for line in lines):
        return check
    return Check(name="formats", status=AuditStatus.INFO, says=says, lines=check.lines, examples=check.examples)


def wrong(outcomes: Outcomes, settings: AuditSettings) -> Check:
    """Whether wrong answers are refused: near misses, constants, other items' answers, junk, hedges."""
    return _refuses("wrong_answers", outcomes, settings, False, "wrong answers")


def tricks(outcomes: Outcomes, settings: AuditSettings) -> Check:
    """Whether known tricks earn anything."""
    return _refuses("tricks", outcomes, settings, True, "known tricks")


def _refuses(name: str, outcomes: Outcomes, settings: AuditSettings, rough: bool, what: str) -> Check:
    mine = [o for o in outcomes if FAMILIES[o.probe.family].side is Side.WRONG and rough is _rough(o.probe.family)]
    bad = [o for o in mine if _accepted(o, settings)]
    lines = [replace(x, highest=_highest(mine, x.name)) for x in _lines(mine, bad, lambda family: family not in settings.inform)]
    return Check.of(
        name,
        lines,
        settings.max_fp,
        f"refuses {what} ({sum(o.probe.family not in settings.inform for o in mine)} answers)",
        f"accepts {what}; {{worst}}",
        [example(o) for o in bad],
    )


def _highest(mine: Outcomes, family: str) -> float | None:
    return max((o.value for o in mine if o.probe.family == family and o.value is not None), default=None)


def _rough(family: str) -> bool:
    return family.startswith("trick_") or family in ("payload", "long")


def faults(outcomes: Outcomes, settings: AuditSettings) -> Check:
    """Whether every answer gets a verdict: what raises is masked, and a policy learns to get there."""
    bad = [o for o in outcomes if o.ended == "raised"]
    return Check.of(
        "faults",
        _lines(outcomes, bad, only_bad=True) or [Line("all", "all answers", Rate(0, len(outcomes)))],
        settings.max_faults,
        "gives every answer a verdict",
        "raises, or returns no finite number, where an answer is odd; {worst}",
        [example(o) for o in bad],
    )


def hangs(outcomes: Outcomes, settings: AuditSettings) -> Check:
    """Whether an answer can keep it from ever returning."""
    return _check_endings(
        "hangs", outcomes, "hung", f"answers within {settings.deadline:g} s", "hangs, twice on the same answer; {worst}"
    )


def crashes(outcomes: Outcomes) -> Check:
    """Whether an answer can end its process."""
    return _check_endings("crashes", outcomes, "died", "survives every answer", "its process dies of an answer, twice; {worst}")


def _check_endings(name: str, outcomes: Outcomes, how: str, good: str, bad: str) -> Check:
    mine = [o for o in outcomes if o.ended == how]
    lines = _lines(outcomes, mine, only_bad=True) or [Line("all", "all answers", Rate(0, len(outcomes)))]
    return Check.of(name, lines, 0.0, good, bad, [example(o) for o in mine])


def execution(outcomes: Outcomes, traces: Sequence[str]) -> Check:
    """Whether it runs answers as code: what the interpreter reported, and what was left behind."""
    mine = [o for o in outcomes if o.probe.family == "payload"]
    bad = [o for o in outcomes if o.events]
    lines = [Line("payload", FAMILIES["payload"].says, Rate(len(bad), max(len(mine), len(bad))))]
    lines.append(Line("traces", "files, connections left behind", Rate(int(bool(traces)), 1)))
    words = "; ".join((*traces, *dict.fromkeys(e for o in bad for e in o.events)))
    shown = [Example(o.probe.family, o.probe.case.gold, o.probe.answer, ", ".join(o.events)) for o in bad]
    return Check.of(
        "execution", lines, 0.0, "runs no answer as code", f"runs answers as code outside of any sandbox ({words})", shown
    )


def effects(outcomes: Outcomes, settings: AuditSettings) -> Check:
    """Whether it does more than judge, whatever the answer: writes files, uses a network, starts programs."""
    bad = [o for o in outcomes if o.effects]
    lines = [
        Line(name, says, Rate(sum(name in o.effects for o in bad), len(outcomes)), name not in settings.inform)
        for name, says in EFFECTS.items()
    ]
    shown = [Example(o.probe.family, o.probe.case.gold, o.probe.answer, ", ".join(o.effects)) for o in bad]
    return Check.of("effects", lines, 0.0, "does nothing but judge", "does more than judge; {worst}", shown)


def latency_of(outcomes: Outcomes, settings: AuditSettings) -> Latency | None:
    """Percentiles of the seconds of a call."""
    seconds = [
        settings.deadline if o.ended == "hung" else o.seconds for o in outcomes if o.ended == "hung" or o.seconds is not None
    ]
    if not seconds:
        return None
    p50, p95, p99 = (float(x) for x in np.percentile(np.array(seconds, np.float64), (50, 95, 99)))
    return Latency(p50, p95, p99, float(max(s for s in seconds if s is not None)), len(seconds))


def slowness(outcomes: Outcomes, settings: AuditSettings) -> Check:
    """Whether a verdict comes soon enough."""
    found = latency_of(outcomes, settings)
    if found is None:
        return Check(name="latency", status=AuditStatus.SKIPPED, says="no call returned", limit=settings.max_p99)
    slow = [o for o in outcomes if (o.seconds or 0.0) > settings.max_p99]
    numbers = f"p50 {found.p50:.2g} s, p95 {found.p95:.2g} s, p99 {found.p99:.2g} s, at most {found.max:.2g} s"
    over = found.p99 > settings.max_p99
    return Check(
        name="latency",
        status=AuditStatus.FAIL if over else AuditStatus.PASS,
        limit=settings.max_p99,
        says=f"{'too slow: ' if over else ''}{numbers}",
        examples=tuple(Example(o.probe.family, o.probe.case.gold, o.probe.answer, f"{o.seconds:.2f} s") for o in slow[:8]),
    )


def agreement(outcomes: Outcomes, others: Outcomes, settings: AuditSettings) -> Check:
    """Whether a second verifier decides alike; answers on which either has no verdict do not count."""
    theirs = {o.probe.id: o for o in others}
    pairs = [(a, theirs[a.probe.id]) for a in outcomes if a.probe.id in theirs]
    pairs = [(a, b) for a, b in pairs if a.value is not None and b.value is not None]
    bad = [(a, b) for a, b in pairs if _accepted(a, settings) is not _accepted(b, settings)]
    shown = [Example(a.probe.family, a.probe.case.gold, a.probe.answer, f"value {a.value:g} against {b.value:g}") for a, b in bad]
    lines = _lines([a for a, _ in pairs], [a for a, _ in bad], only_bad=True)
    lines = [Line(line.name, line.says, line.rate, counts=False) for line in lines]
    return Check.of(
        "agreement",
        [Line("all", "all answers", Rate(len(bad), len(pairs))), *lines],
        settings.max_disagreement,
        f"decides as the second verifier does ({len(pairs)} answers)",
        "decides otherwise than the second one; {worst}",
        shown,
    )


def reduce_check(check: Check, tried: Mapping[str, int], left: Mapping[str, int]) -> Check:
    """A check as it stands when answers were left out: what was not tried at all does not hold.

    Args:
        check: as made from the answers that were judged.
        tried, left: by family, how many answers were judged and left out.
    """
    asks = _ASKS.get(check.name)
    mine = {family: n for family, n in left.items() if asks is None or asks(family)}
    none = [family for family in mine if not tried.get(family)]
    if not mine or check.status in (AuditStatus.FAIL, AuditStatus.SKIPPED):
        return check
    if asks is not None and none:
        says = f"not tried: {', '.join(none)}; the answers were left out after too many had stopped their judge"
        return replace(check, status=AuditStatus.UNTRIED, says=says)
    return replace(check, says=f"{check.says}; {sum(mine.values())} answers were left out")


_ASKS: Mapping[str, Callable[[str], bool]] = {
    "gold": lambda family: family == "gold",
    "formats": lambda family: FAMILIES[family].side is Side.RIGHT and family != "gold",
    "wrong_answers": lambda family: FAMILIES[family].side is Side.WRONG and not _rough(family),
    "tricks": lambda family: FAMILIES[family].side is Side.WRONG and _rough(family),
    "execution": lambda family: family == "payload",
}
"""The families of answers that a check is about; others are about all of them."""


def _accepted(outcome: ProbeOutcome, settings: AuditSettings) -> bool:
    return outcome.value is not None and outcome.value >= settings.accept


def _lines(
    mine: Outcomes, bad: Outcomes, counts: Callable[[str], bool] = lambda family: True, only_bad: bool = False
) -> list[Line]:
    """A line per family, in the order of `FAMILIES`."""
    out: list[Line] = []
    for name, family in FAMILIES.items():
        failed, of = sum(o.probe.family == name for o in bad), sum(o.probe.family == name for o in mine)
        if of and (failed or not only_bad):
            out.append(Line(name, family.says, Rate(failed, of), counts(name)))
    return out
