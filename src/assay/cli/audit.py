"""``assay verify audit``: a verifier measured, assay's or anybody's."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from assay.cli.options import parse
from assay.cli.output import busy, grid, lines, note, show
from assay.core.errors import ConfigError

if TYPE_CHECKING:
    from assay.audit import Audit, Check

__all__ = ["audit_leaf"]

_PLACE: dict[str, str] = {"metavar": "NAMES"}

_SEVERAL = "if such an answer is right too, say so: 'unique = False' in its Problem, or --unique no for all"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """Audits a verifier: which answers it refuses, accepts or hangs on, and what it executes. Exit 1 past a threshold.
    A judge behind a server: 'assay verify audit SCORER --judge-url URL --judge-model NAME --cases FILE [--rubric FILE]', which
    has options of its own (--help).

    Attributes:
        name: a verifier of assay's, a task family or FAMILY/ARM, package.module:name, or my_file.py:name: also reward functions
            of verl, TRL, OpenRLHF.
        cases: file of rows (.jsonl, .csv, .parquet): gold, answer or verl's reward_model.ground_truth, and if wanted prompt,
            solutions, wrong, unique. Built-ins and families have their own.
        against: a second verifier of the same tasks to compare decisions with.
        signature: the library whose signature it has, if its parameter names do not show it.
        gold: the column in which the function looks for the right answer, if its name is unusual.
        chat: pass lists of messages, not text.
        template: how an answer must be written, with {answer} in it; detected when not given.
        accept: least value of an answer that counts as accepted.
        seed: seed of the generated answers.
        items: most cases to use.
        deadline: seconds for one verdict.
        must: forms of a right answer that must be accepted, comma-separated: whitespace,boxed,tag,...
        inform: families of wrong answers that may be accepted, comma-separated.
        skip: checks and families to leave out, comma-separated.
        unique: yes if every item has one right answer alone, so that near misses, hedges and denials are wrong; no if several may
            be right. When not given, cases say it, and families.
        max_fn: share of right answers that may be refused.
        max_fp: share of wrong answers that may be accepted, in any family.
        max_disagreement: share of answers on which the second verifier may decide otherwise.
        max_faults: share of answers, of any family, on which it may raise.
        max_p99: most seconds of the slowest hundredth of calls.
        backend: isolation of a foreign verifier: auto, strong or landlock; naming one also sandboxes assay's own verifiers.
        no_sandbox: run it in plain processes of this user.
        html: write the report as one page.
        json: print JSON.
    """

    name: str = field(metadata={"positional": True, "arg": {"metavar": "NAME"}})
    cases: Path | None = field(default=None, metadata={"arg": {"metavar": "FILE"}})
    against: str | None = field(default=None, metadata={"arg": {"metavar": "NAME"}})
    signature: Literal["assay", "plain", "verl", "verl-batch", "trl", "openrlhf", "verifiers"] | None = None
    gold: str | None = field(default=None, metadata={"arg": {"metavar": "COLUMN"}})
    chat: bool = False
    template: str | None = field(default=None, metadata={"arg": {"metavar": "TEXT"}})
    accept: float = 0.5
    seed: int = 0
    items: int = 24
    deadline: float = 5.0
    must: str = field(default="", metadata={"arg": _PLACE})
    inform: str = field(default="", metadata={"arg": _PLACE})
    skip: str = field(default="", metadata={"arg": _PLACE})
    unique: Literal["yes", "no"] | None = None
    max_fn: float = 0.02
    max_fp: float = 0.01
    max_disagreement: float = 0.02
    max_faults: float = 0.0
    max_p99: float = 1.0
    backend: Literal["auto", "strong", "landlock"] | None = None
    no_sandbox: bool = False
    html: Path | None = field(default=None, metadata={"arg": {"metavar": "FILE"}})
    json: bool = False


def audit_leaf(args: list[str]) -> int:
    """``assay verify audit NAME``; of a judge behind a server, ``assay verify audit SCORER --judge-url URL``."""
    if any(word.partition("=")[0] == "--judge-url" for word in args):
        from assay.cli.audit_judge import audit_judge_leaf

        return audit_judge_leaf(args)
    own = parse(AuditOptions, args, "assay verify audit")
    from assay.audit import AuditSettings, audit, audit_page, read_cases, resolve
    from assay.audit.cases import columns_of

    if own.no_sandbox and own.backend:
        raise ConfigError(f"--no-sandbox and --backend {own.backend}: give one of them")
    settings = AuditSettings(
        seed=own.seed,
        items=own.items,
        deadline=own.deadline,
        accept=own.accept,
        template=own.template,
        must=_names(own.must),
        inform=_names(own.inform),
        skip=_names(own.skip),
        unique=None if own.unique is None else own.unique == "yes",
        max_fn=own.max_fn,
        max_fp=own.max_fp,
        max_disagreement=own.max_disagreement,
        max_faults=own.max_faults,
        max_p99=own.max_p99,
        backend="none" if own.no_sandbox else own.backend,
    )
    cases = None if own.cases is None else read_cases(own.cases)
    columns = None if cases is None else columns_of(cases)
    subject = resolve(own.name, signature=own.signature, gold=own.gold, chat=True if own.chat else None, columns=columns)
    against = None if own.against is None else resolve(own.against, columns=columns)
    if own.html is not None and not own.html.parent.is_dir():
        raise ConfigError(f"--html {own.html}: there is no folder {own.html.parent}; make it first")
    with busy(f"auditing {own.name}"):
        found = audit(subject, cases, against=against, settings=settings)
    if not subject.installed and found.isolation.startswith("none"):
        note(f"warning: {own.name} was judged without containment, as a process of yours ({found.isolation})")
    if own.html is not None:
        own.html.write_text(audit_page(found), encoding="utf-8")
        note(f"written: {own.html}")
    show(own.json, found.json(), lambda: _print(found, own.unique is None and subject.family is not None))
    return 0 if found.passed else 1


def _print(found: Audit, of_family: bool) -> None:
    grid(("check", "", "verdict"), [[c.name, str(c.status), c.says] for c in found.checks])
    for check in found.checks:
        if check.status == "fail" and check.examples:
            _examples(check)
    left = f", {found.left_out} left out" if found.left_out else ""
    lines(
        {
            "verifier": f"{found.name}{f', against {found.against}' if found.against else ''}",
            "judged": f"{found.probes} answers to {found.items} items{left}; written as {found.template!r}",
            **({"called as": found.signature} if found.signature else {}),
            "isolation": found.isolation,
            **({"else": _SEVERAL} if of_family and "wrong_answers" in found.failed else {}),
            **({"untried": ", ".join(found.untried)} if found.untried else {}),
            "result": found.verdict,
        }
    )


def _examples(check: Check) -> None:
    from assay.audit.record import printable

    print(f"{check.name}:")
    for line in check.lines:
        if line.counts and line.rate.failed:
            print(f"  {line.name} ({line.says}): {line.rate}")
    for x in check.examples[:4]:
        print(f"    gold '{printable(x.gold)}', answer '{printable(x.answer)}': {printable(x.finding)}")
    print()


def _names(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())
