"""Whether a verdict depends on anything but the answer: on the time, the process, the order, the batch, the name, the thread."""

from __future__ import annotations

from collections.abc import Sequence

from assay.audit.cases import AuditCase
from assay.audit.checks import example
from assay.audit.judge_probes import AuditContext, ProbeOutcome, rollout_saying
from assay.audit.record import AuditStatus, Check, Example, Line, Rate
from assay.audit.subject import Subject
from assay.core.errors import ConfigError
from assay.core.rollout import Rollout
from assay.core.task import Task

__all__ = ["determinism", "missing_gold", "order", "sample_outcomes", "threads"]

_SAMPLE = 48
_HASH_SEEDS = (1, 2)
_LOST = "no answer got a verdict before, or the process that judged them again hung or died"
Values = Sequence[float | str]


def sample_outcomes(outcomes: Sequence[ProbeOutcome]) -> list[ProbeOutcome]:
    """Outcomes that can be judged again together: some of each family, none that stopped its judge or is very long."""
    good = [o for o in outcomes if o.ended in ("verdict", "raised") and len(o.probe.answer) < 2000]
    by_family: dict[str, list[ProbeOutcome]] = {}
    for o in good:
        by_family.setdefault(o.probe.family, []).append(o)
    turns = [o for turn in range(4) for family in by_family.values() for o in family[turn : turn + 1]]
    return sorted(turns[:_SAMPLE], key=lambda o: o.probe.id)


def determinism(subject: Subject, chosen: Sequence[ProbeOutcome], place: AuditContext) -> Check:
    """Whether the same call gives the same value: again in one process, and in others whose hashes are seeded otherwise."""
    items = _items(chosen)
    first = [o.value if o.value is not None else "fault" for o in chosen]
    lines: list[Line] = []
    bad: list[Example] = []
    twice = place.play_together(subject, items + items)
    if twice is None:
        return _not_done("determinism", _LOST)
    half = len(items)
    for name, says, values in (
        ("another process", "the same answers in another process", twice[:half]),
        ("again", "the same answers again in one process", twice[half:]),
    ):
        lines.append(_compare_values(name, says, chosen, first, values, bad))
    note = ""
    for seed in _HASH_SEEDS:
        try:
            values = place.again(subject, items, seed)
        except ConfigError as error:
            note = f"; not tried under other hash seeds: {error}"
            break
        lines.append(
            _compare_values(f"fresh interpreter {seed}", "in a fresh interpreter with other hashes", chosen, first, values, bad)
        )
    return Check.of(
        "determinism",
        lines,
        0.0,
        f"gives the same value every time ({half} answers){note}",
        f"gives another value to the same answer; {{worst}}{note}",
        bad,
    )


def order(subject: Subject, chosen: Sequence[ProbeOutcome], place: AuditContext) -> Check:
    """Whether a verdict depends on its neighbours, its place in a batch, or the names of task and rollout."""
    items = _items(chosen)
    first = place.play_together(subject, items)
    renamed = [
        (o.probe.case.task, rollout_saying(o.probe.case.task, o.probe.answer, f"other name {i}")) for i, o in enumerate(chosen)
    ]
    ways = {
        "reversed": ("in reverse order", place.play_together(subject, items[::-1])),
        "renamed": ("under other ids", place.play_together(subject, renamed)),
    }
    if subject.batched:
        backwards = place.play_together(subject, items[::-1], together=True)
        ways["batch"] = ("all in one call", place.play_together(subject, items, together=True))
        ways["batch reversed"] = ("all in one call, in reverse order", backwards)
    if first is None or any(values is None for _, values in ways.values()):
        return _not_done("order", _LOST)
    lines: list[Line] = []
    bad: list[Example] = []
    for name, (says, values) in ways.items():
        assert values is not None
        lines.append(_compare_values(name, says, chosen, first, values[::-1] if name.endswith("reversed") else values, bad))
    return Check.of(
        "order",
        lines,
        0.0,
        f"depends on nothing but the answer ({', '.join(ways)})",
        "a value depends on the other answers, or on a name; {worst}",
        bad,
    )


def threads(subject: Subject, chosen: Sequence[ProbeOutcome], place: AuditContext) -> Check:
    """Whether it works outside of the main thread, where trainers call it and signals are forbidden."""
    items = _items(chosen)
    first, other = place.play_together(subject, items), place.play_together(subject, items, thread=True)
    if first is None or other is None:
        return _not_done("threads", _LOST)
    bad: list[Example] = []
    line = _compare_values("thread", "in a thread that is not the main one", chosen, first, other, bad)
    return Check.of("threads", [line], 0.0, "works in any thread", "gives other values outside of the main thread; {worst}", bad)


def missing_gold(subject: Subject, cases: Sequence[AuditCase], place: AuditContext) -> Check:
    """Whether a row that has lost its gold is a fault: scored 0 it would teach that every answer is wrong."""
    tasks = [case.without_gold() for case in cases]
    values = place.play_together(subject, [(t, rollout_saying(t, c.gold, t.id)) for t, c in zip(tasks, cases, strict=True)])
    if values is None:
        return _not_done("missing_gold", _LOST)
    bad = [(case, value) for case, value in zip(cases, values, strict=True) if value != "fault"]
    return Check.of(
        "missing_gold",
        [Line("missing gold", "rows that have lost their gold", Rate(len(bad), len(values)))],
        0.0,
        "a row without its gold is a fault",
        "a row that has lost its gold gets a value, as if its answer had been judged; {worst}",
        [Example("missing gold", "none", case.gold, f"value {value:g}") for case, value in bad],
    )


def _items(chosen: Sequence[ProbeOutcome]) -> list[tuple[Task, Rollout]]:
    return [(o.probe.case.task, rollout_saying(o.probe.case.task, o.probe.answer, o.probe.id)) for o in chosen]


def _compare_values(
    name: str, says: str, chosen: Sequence[ProbeOutcome], first: Values, values: Values, bad: list[Example]
) -> Line:
    """One comparison; differences are added to ``bad``."""
    different = [i for i, (a, b) in enumerate(zip(first, values, strict=True)) if a != b]
    for i in different:
        shown = example(chosen[i])
        bad.append(Example(shown.family, shown.gold, shown.answer, f"{first[i]}, and {values[i]} {says}"))
    return Line(name, says, Rate(len(different), len(first)))


def _not_done(name: str, why: str) -> Check:
    return Check(name=name, status=AuditStatus.SKIPPED, says=f"not done: {why}")
