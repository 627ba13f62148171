"""Audits of task families: the family's own tasks, its oracle's answers, its verifier."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from assay.audit import AuditSettings, AuditStatus, Subject, audit, audit_page, resolve
from assay.audit.family_cases import family_cases
from assay.audit.run_audit import audit as run_audit
from assay.cli import main
from assay.core.errors import ConfigError, UnknownNameError
from assay.core.protocols import TaskSource, Verifier
from assay.core.task import Message, Task
from assay.tasks import Problem, Problems, Rows, family
from assay.tasks.problem import Facts, Form, Solution
from assay.verify import FormatIs

QUICK = AuditSettings(items=4, hostile_items=1, skip=("determinism", "order", "threads", "latency"), deadline=20.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubled(Problem):
    """A number doubled; judged by whatever is given."""

    judge: Verifier | None = None
    templates = ("What is {n} doubled?",)

    def draw(self, level: int, rng: Random) -> dict[str, Any]:
        return {"n": rng.randrange(10**4)}

    def solve(self, facts: Facts) -> Solution:
        return Solution(answer=str(2 * facts["n"]), steps="I double it.")

    def verifier(self, form: Form) -> Verifier:
        return super(Doubled, self).verifier(form) if self.judge is None else self.judge


def of(*problems: Problem, **settings: Any) -> Problems:
    return Problems(name="doubled", problems=problems, **settings)


STRICT, LAX = (
    Doubled(name="doubled/strict", domain="d"),
    Doubled(name="doubled/lax", domain="d", judge=FormatIs(pattern=r"(?s).*")),
)


def test_cases_are_the_familys_tasks_in_turn_with_the_oracles_answers() -> None:
    cases = family_cases(of(STRICT, LAX), 12)
    assert [(c.task.arm, c.task.level, c.unique) for c in cases[:3]] == [
        ("doubled/strict", 1, True),
        ("doubled/lax", 1, False),
        ("doubled/strict", 2, True),
    ]
    assert {c.task.split for c in cases} == {"test"} and len({c.task.id for c in cases}) == 12
    assert all(c.gold == str(2 * c.task.public["facts"]["n"]) and c.template == "<answer>{answer}</answer>" for c in cases)
    assert family_cases(of(STRICT), 3, seed=1)[0].task.id not in {c.task.id for c in family_cases(of(STRICT), 3)}
    assert family_cases(of(STRICT, form=Form.BOX), 1)[0].template == r"\boxed{{answer}}"


def test_an_answer_that_stands_in_no_form_is_the_oracles_whole_text() -> None:
    (case,) = family_cases(family("sort"), 1)
    assert case.unique and case.template == "{answer}" and case.gold == case.task.private["answer"]
    assert family_cases(family("coding"), 1)[0].gold
    rows = Rows([{"prompt": f"S{n}>", "answer": str(n)} for n in range(99)], test_share=0.5)
    assert family_cases(rows, 1)[0].gold


@pytest.mark.parametrize("judge", ["strict", "lax"])
def test_a_family_is_audited_by_what_its_verifier_promises(judge: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = of(STRICT if judge == "strict" else LAX)
    found = audit(Subject("doubled", source.verifier(), None, source), settings=QUICK)
    assert found.check("gold").status is AuditStatus.PASS
    assert found.passed is (judge == "strict"), found.failed
    assert found.template == "<answer>{answer}</answer>"
    if judge == "lax":
        assert "tricks" in found.failed or "wrong_answers" in found.failed


def test_a_family_by_name_is_trusted_as_a_built_in_is() -> None:
    subject = resolve("arithmetic/expression")
    assert subject.installed and subject.built_in is None and subject.family is not None
    assert list(subject.family.arms()) == ["arithmetic/expression"]
    found = run_audit("arithmetic/expression", settings=QUICK)
    assert found.passed and found.items == 4 and found.isolation.startswith("none")
    assert run_audit("arithmetic/expression", settings=replace(QUICK, template=r"\boxed{{answer}}")).failed == ("gold",)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("arithmetc", "did you mean 'arithmetic'"),
        ("numerc", "did you mean 'numeric'"),
        ("arithmetic/expresion", "did you mean 'arithmetic/expression'"),
    ],
)
def test_a_wrong_name_says_the_nearest(name: str, said: str) -> None:
    with pytest.raises(UnknownNameError, match=said):
        resolve(name)


def test_what_has_no_single_answer_is_refused_with_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"answered in several turns.*assay tasks check games"):
        family_cases(family("games"), 1)

    class Silent:
        """A family without an oracle."""

        def __init__(self, source: TaskSource) -> None:
            self.source = source

        def __getattr__(self, name: str) -> Any:
            return getattr(self.source, name)

        def trace(self, task: Task, noise: float, rng: np.random.Generator) -> tuple[Message, ...] | None:
            return None

    with pytest.raises(ConfigError, match=r"has no oracle.*--cases FILE.jsonl"):
        family_cases(Silent(of(STRICT)), 1)  # pyright: ignore[reportArgumentType]


def test_an_audit_says_what_it_did_not_try_and_counts_what_counts() -> None:
    both, alone = of(STRICT, LAX), of(STRICT)
    found = run_audit(Subject("doubled", both.verifier(), None, both), settings=replace(QUICK, skip=(*QUICK.skip, "others")))
    half = "(on 2 of 4 items)"
    assert found.untried == (f"near misses {half}", f"hedges and denials {half}", "constants (tried, not counted)")
    assert found.json()["untried"] == list(found.untried)
    lines = found.check("wrong_answers").lines
    counted = sum(line.rate.of for line in lines if line.name != "constants")
    assert any(line.name == "constants" for line in lines) and found.check("wrong_answers").says.endswith(
        f"({counted} answers)"
    ) is (found.check("wrong_answers").status is AuditStatus.PASS)
    assert "Untried: near misses (on 2 of 4 items)" in audit_page(found)
    whole = run_audit(Subject("doubled", alone.verifier(), None, alone), settings=QUICK)
    assert whole.untried == () and "Untried" not in audit_page(whole)


def test_the_command_prints_what_was_not_tried(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cases.jsonl").write_text('{"gold": "42", "unique": false}\n{"gold": "43", "unique": false}\n')
    skip = "determinism,order,threads,latency,missing_gold,constants"
    main(["verify", "audit", "exact", "--cases", str(tmp_path / "cases.jsonl"), "--skip", skip])
    out = capsys.readouterr().out
    assert re.search(r"^untried\s+near misses, other items, hedges and denials$", out, re.MULTILINE)
