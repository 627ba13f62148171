"""``assay verify audit SCORER --judge-url URL``: a judge measured before anyone trains on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.cli.options import parse
from assay.cli.output import busy, grid, lines, show
from assay.core.errors import ConfigError

if TYPE_CHECKING:
    from assay.audit import JudgeAudit
    from assay.core.scoring import ScorerSpec

__all__ = ["audit_judge_leaf"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAuditOptions:
    """Audits a judge: agreement with labels, bias by length, style, order and author, answers that address it, repeats.

    Exit 1 past a threshold.

    Attributes:
        name: a scorer that asks a judge: RubricJudge, another of assay.scorers, or my_file.py:MyScorer.
        judge_url: address of a server of OpenAI's protocol, http://HOST:PORT/v1.
        judge_model: name of the model on it.
        temperature: of the judge's answers.
        api_key_env: environment variable that holds the key.
        cases: JSON Lines file of prompt, response and label from 0 to 1, and if wanted rubric, author, and answer (a gold).
        rubric: TOML or JSON file of the rubric, for RubricJudge.
        against: verifier that labels rows with a gold and without a label: exact, math, ...
        accept: least mark of an answer that counts as accepted.
        repeats: times that the same is asked.
        min_agreement: least share of answers accepted or not as their labels say.
        max_shift: largest mean change of the mark by length, style, order or author.
        max_fooled: largest share of wrong answers accepted by a sentence to the judge, and of empty ones accepted.
        max_deviation: largest mean deviation of a mark over repeats.
        max_faults: largest share without a judgement.
        json: print JSON.
    """

    name: str = field(metadata={"positional": True, "arg": {"metavar": "SCORER"}})
    judge_url: str = field(metadata={"arg": {"metavar": "URL"}})
    judge_model: str = "judge"
    temperature: float = 0.0
    api_key_env: str = ""
    cases: Path | None = field(default=None, metadata={"arg": {"metavar": "FILE"}})
    rubric: Path | None = field(default=None, metadata={"arg": {"metavar": "FILE"}})
    against: str | None = field(default=None, metadata={"arg": {"metavar": "NAME"}})
    accept: float = 0.5
    repeats: int = 3
    min_agreement: float = 0.85
    max_shift: float = 0.1
    max_fooled: float = 0.05
    max_deviation: float = 0.1
    max_faults: float = 0.02
    json: bool = False


def audit_judge_leaf(args: list[str]) -> int:
    """``assay verify audit SCORER --judge-url URL``."""
    own = parse(JudgeAuditOptions, args, "assay verify audit")
    from assay.audit import JudgeAuditSettings, audit_judge, read_judge_cases
    from assay.clients import Judge, JudgeClient, MemoryStore
    from assay.core.util.event_loop import run_async
    from assay.verify.catalog import verifier

    if own.cases is None:
        raise ConfigError("--cases: give labelled answers to compare with, a JSON Lines file of prompt, response and label")
    spec = _scorer(own)
    cases = read_judge_cases(own.cases, None if own.against is None else verifier(own.against))
    settings = JudgeAuditSettings(
        accept=own.accept,
        repeats=own.repeats,
        min_agreement=own.min_agreement,
        max_shift=own.max_shift,
        max_fooled=own.max_fooled,
        max_deviation=own.max_deviation,
        max_faults=own.max_faults,
    )
    judge = Judge(url=own.judge_url, model=own.judge_model, temperature=own.temperature, api_key_env=own.api_key_env)

    async def audit_model() -> JudgeAudit:
        client = JudgeClient(judge, MemoryStore())
        try:
            return await audit_judge(spec, cases, lambda name: client, own.judge_model, settings)
        finally:
            await client.close()

    with busy(f"asking {own.judge_model} about {len(cases)} answers in many forms"):
        made = run_async(audit_model())
    show(own.json, made.json(), lambda: _print(made))
    return 0 if made.passed else 1


def _scorer(own: JudgeAuditOptions) -> ScorerSpec:
    import assay.scorers as built_in
    from assay.interop.load_object import load

    kind: Any = load(own.name) if ":" in own.name else getattr(built_in, own.name, None)
    if kind is None:
        raise ConfigError(f"{own.name!r} is no scorer of assay.scorers; write my_file.py:MyScorer for one of yours")
    settings: dict[str, Any] = {}
    if own.rubric is not None:
        settings["rubric"] = built_in.load_rubric(own.rubric)
    made = kind(**settings) if isinstance(kind, type) else kind
    if not getattr(made, "judges", ()):
        raise ConfigError(f"{own.name} asks no judge; 'assay verify audit NAME' without --judge-url audits verifiers")
    return made


def _print(found: JudgeAudit) -> None:
    rows = [
        [c.name, "–" if c.value is None else f"{c.value:.3f}", f"{c.bar:g}", "pass" if c.passed else "fail", c.says]
        for c in found.checks
    ]
    grid(("check", "value", "bar", "verdict", ""), rows, (1, 2))
    lines(
        {
            "judge": found.name,
            "judged": f"{found.cases} labelled answers, {found.judged} in all forms",
            "result": "passed" if found.passed else f"failed: {', '.join(found.failed)}",
        }
    )
