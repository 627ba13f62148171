"""The audit: probes, judging, checks, one record."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from assay import __version__
from assay.audit import checks, repeatability
from assay.audit.built_in import BUILT_IN, cases_of
from assay.audit.cases import AuditCase, columns_of
from assay.audit.effects import EFFECTS
from assay.audit.family_cases import family_cases
from assay.audit.hostile import Canary
from assay.audit.judge_probes import AuditContext, ProbeOutcome, audit_context
from assay.audit.probes import FAMILIES, AuditProbe, fill_template, hostile, right_answers, untried_kinds, wrong_answers
from assay.audit.record import Audit, AuditSettings, Check
from assay.audit.sandboxed_verifier import sandbox_for
from assay.audit.subject import Subject, subject_of
from assay.core.errors import ConfigError, SandboxError, UnknownNameError
from assay.core.seeds import generator
from assay.sandbox import Sandbox
from assay.verify.answer_templates import PLACE, TEMPLATES

__all__ = ["CHECKS", "audit", "probes_of"]

CHECKS = (
    "gold",
    "formats",
    "wrong_answers",
    "tricks",
    "agreement",
    "determinism",
    "order",
    "threads",
    "missing_gold",
    "faults",
    "hangs",
    "crashes",
    "latency",
    "execution",
    "effects",
)
"""Every question, in the order of the report."""


def audit(
    verifier: Any, cases: Sequence[AuditCase] | None = None, *, against: Any = None, settings: AuditSettings | None = None
) -> Audit:
    """Measure a verifier: false negatives and positives, tricks, determinism, order, threads, faults, hangs, speed, execution.

    It runs in processes of its own that can be killed, never in this one: inside the sandbox where it is foreign and came by name
    (`AuditSettings.backend`). Equal seeds give equal answers to judge.

    Args:
        verifier: a verifier, a reward function with anybody's signature, or a name for `resolve`.
        cases: problems with their gold; None for a built-in verifier's own, or a task family's.
        against: a second verifier of the same, to compare decisions with.
        settings: what it tolerates; for a built-in with its own cases, what its documentation promises counts besides.

    Raises:
        DataError: no cases, and the verifier is not built in.
        UnknownNameError: a check or family of that name is not there.
        ConfigError: what was named is no verifier, or cannot be made inside the sandbox.
        SandboxError: a backend was asked for that does not hold here.

    >>> from assay.verify import ExactMatch
    >>> from assay.audit import case_of
    >>> audit(ExactMatch(), [case_of({"gold": "42"})], settings=AuditSettings(hostile_items=0)).check("gold").status.value
    'pass'
    """
    columns = None if cases is None else columns_of(cases)
    subject = subject_of(verifier, columns=columns)
    second = None if against is None else subject_of(against, columns=columns)
    asked = AuditSettings() if settings is None else settings
    _check_names(asked)
    if cases is None and subject.family is not None:
        cases = family_cases(subject.family, asked.items, asked.seed)
        asked = _of_family(asked, asked.unique if asked.unique is not None else all(case.unique for case in cases))
    elif cases is None:
        cases = cases_of(subject.built_in, subject.name, asked.seed, asked.items)
        asked = _as_documented(asked, subject.built_in)
    else:
        cases = _sample_cases(cases, asked)
    if asked.unique is not None:
        cases = [replace(case, unique=asked.unique) for case in cases]
    sandbox, isolation = _sandbox([s for s in (subject, second) if s is not None], asked)
    with sandbox or nullcontext(), audit_context(asked, sandbox) as place:
        template = asked.template or _template(subject, cases, asked, place)
        probes = [p for p in probes_of(cases, template, asked, place.canary) if p.family not in asked.skip]
        outcomes = place.outcomes(subject, probes)
        made = _checks(subject, second, cases, outcomes, asked, place)
    tried = Counter(o.probe.family for o in outcomes)
    left = Counter(p.family for p in probes) - tried
    return Audit(
        name=subject.name,
        against=None if second is None else second.name,
        template=template,
        settings=asked,
        items=len(cases),
        probes=len(outcomes),
        left_out=left.total(),
        untried=untried_kinds(cases, probes, asked.skip, asked.inform),
        checks=tuple(checks.reduce_check(check, tried, left) for check in made),
        latency=checks.latency_of(outcomes, asked),
        isolation=isolation,
        signature=subject.signature,
        versions={"python": platform.python_version(), "assay": __version__},
    )


def _sandbox(subjects: Sequence[Subject], settings: AuditSettings) -> tuple[Sandbox | None, str]:
    """Where the subjects run, and that in words: contained if one is foreign and came by name, or if a backend was asked for."""
    named = [s for s in subjects if s.recipe is not None]
    if settings.backend == "none" or (settings.backend is None and all(s.installed for s in named)):
        return None, "none: processes of this user, which can be killed"
    if len(named) < len(subjects):
        lone = next(s.name for s in subjects if s.recipe is None)
        if settings.backend is None:
            return None, f"none: {lone} is an object of this process, and only what has a name can be made in the sandbox"
        raise ConfigError(f"{lone} is an object of this process; name it package.module:name or file.py:name to contain it")
    try:
        made = sandbox_for([s.name for s in named], settings.backend or "auto")
    except SandboxError as error:
        if settings.backend is not None:
            raise
        return None, f"none: {str(error).splitlines()[0]}"
    return made, made.isolation.removeprefix("isolation: ")


def probes_of(cases: Sequence[AuditCase], template: str, settings: AuditSettings, canary: Canary) -> list[AuditProbe]:
    """All answers to judge, the same for the same seed; one text is tried once per case and family."""
    texts: dict[tuple[str, str, str], AuditCase] = {}
    for index, case in enumerate(cases):
        form = settings.template or case.template or template
        for family, text in (*right_answers(case, form), *wrong_answers(cases, index, form, settings.seed)):
            texts.setdefault((case.task.id, family, text), case)
    for case in cases[: settings.hostile_items]:
        for _, family, text in hostile([case], settings.template or case.template or template, canary):
            texts.setdefault((case.task.id, family, text), case)
    return [AuditProbe(f"probe {n}", case, family, text) for n, ((_, family, text), case) in enumerate(texts.items())]


def _checks(
    subject: Subject,
    second: Subject | None,
    cases: Sequence[AuditCase],
    outcomes: list[ProbeOutcome],
    settings: AuditSettings,
    place: AuditContext,
) -> list[Check]:
    again = repeatability.sample_outcomes(outcomes)
    questions: dict[str, Callable[[], Check]] = {
        "gold": lambda: checks.gold(outcomes, settings),
        "formats": lambda: checks.formats(outcomes, settings),
        "wrong_answers": lambda: checks.wrong(outcomes, settings),
        "tricks": lambda: checks.tricks(outcomes, settings),
        "determinism": lambda: repeatability.determinism(subject, again, place),
        "order": lambda: repeatability.order(subject, again, place),
        "threads": lambda: repeatability.threads(subject, again, place),
        "missing_gold": lambda: repeatability.missing_gold(subject, cases[:8], place),
        "faults": lambda: checks.faults(outcomes, settings),
        "hangs": lambda: checks.hangs(outcomes, settings),
        "crashes": lambda: checks.crashes(outcomes),
        "latency": lambda: checks.slowness(outcomes, settings),
        "execution": lambda: checks.execution(outcomes, place.traces()),
        "effects": lambda: checks.effects(outcomes, settings),
    }
    if second is not None:
        others = place.outcomes(second, [o.probe for o in outcomes])
        questions["agreement"] = lambda: checks.agreement(outcomes, others, settings)
    return [questions[name]() for name in CHECKS if name in questions and name not in settings.skip]


def _template(subject: Subject, cases: Sequence[AuditCase], settings: AuditSettings, place: AuditContext) -> str:
    """The form of all cases, else the first of the usual ones in which most gold is read; the answer alone where none is."""
    if len(own := {case.template for case in cases}) == 1 and own != {""}:
        return own.pop()
    probes = [
        AuditProbe(f"form {t} {c}", case, "gold", fill_template(template, case.gold))
        for t, template in enumerate(TEMPLATES)
        for c, case in enumerate(cases[:6])
    ]
    right = dict.fromkeys(TEMPLATES, 0)
    for outcome in place.outcomes(subject, probes):
        template = TEMPLATES[int(outcome.probe.id.split()[1])]
        right[template] += outcome.value is not None and outcome.value >= settings.accept
    best = max(right.values())
    return next(t for t in TEMPLATES if right[t] == best) if best else PLACE


def _sample_cases(cases: Sequence[AuditCase], settings: AuditSettings) -> list[AuditCase]:
    """As many cases as are wanted, drawn by seed, in their order."""
    if len(cases) <= settings.items:
        return list(cases)
    chosen = generator("audit/cases", settings.seed).permutation(len(cases))[: settings.items]
    return [cases[int(i)] for i in sorted(chosen)]


def _as_documented(settings: AuditSettings, name: str | None) -> AuditSettings:
    known = BUILT_IN[name or ""]
    return replace(
        settings,
        must=tuple(dict.fromkeys((*settings.must, *known.must))),
        inform=tuple(dict.fromkeys((*settings.inform, *known.inform))),
        skip=tuple(dict.fromkeys((*settings.skip, *known.skip))),
    )


def _of_family(settings: AuditSettings, unique: bool) -> AuditSettings:
    """A family's tasks always have their gold; where other answers than the oracle's may be right, a constant may be; and a
    verifier of an installed package may run what it judges, in the sandbox.
    """
    inform = (*EFFECTS, *(() if unique else ("constants",)))
    return replace(
        settings,
        inform=tuple(dict.fromkeys((*settings.inform, *inform))),
        skip=tuple(dict.fromkeys((*settings.skip, "missing_gold"))),
    )


def _check_names(settings: AuditSettings) -> None:
    for name in settings.skip:
        if name not in CHECKS and name not in FAMILIES:
            raise UnknownNameError("check or family of answers", name, [*CHECKS, *FAMILIES])
    for name in settings.must:
        if name not in FAMILIES:
            raise UnknownNameError("family of answers", name, FAMILIES)
    for name in settings.inform:
        if name not in FAMILIES and name not in EFFECTS:
            raise UnknownNameError("family of answers or effect", name, [*FAMILIES, *EFFECTS])
