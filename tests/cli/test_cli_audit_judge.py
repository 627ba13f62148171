"""The audit of a judge: an honest one passes, each planted weakness is found by its own check, over a server too."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from assay.audit import JudgeAudit, JudgeAuditSettings, audit_judge, judge_cases, read_judge_cases
from assay.core.errors import ConfigError, DataError, EngineError
from assay.core.score import Fault, Score
from assay.core.scoring import StatelessScorer
from assay.core.task import Message
from assay.scorers import Criterion, Rubric, RubricJudge
from assay.testing import JudgeServer, ScriptedScoring
from assay.verify import ExactMatch

RUBRIC = Rubric(criteria=(Criterion(name="right", text="Is the sum right?", tiers=("no", "partly", "yes")),), saturation=0.0)
ROWS: list[dict[str, Any]] = [
    {"prompt": f"{a}+{b}?", "response": f"It is {a + b + wrong}.", "label": float(not wrong), "author": "abc"[(a + b) % 3]}
    for a in range(4)
    for b in range(4)
    for wrong in (0, 1)
]


def right(messages: Sequence[Message]) -> bool:
    asked = messages[-1].content
    a, b = asked.removeprefix("Question:\n")[0], asked.removeprefix("Question:\n")[2]
    return f"It is {int(a) + int(b)}." in asked


def honest(messages: Sequence[Message]) -> str:
    return json.dumps({"right": 2 if right(messages) else 0})


def audited(reply: Callable[[Sequence[Message]], str], **settings: Any) -> JudgeAudit:
    ctx = ScriptedScoring(replies={"judge": reply})
    spec = RubricJudge(rubric=RUBRIC)
    return asyncio.run(audit_judge(spec, judge_cases(ROWS), ctx.judge, "it", JudgeAuditSettings(**settings)))  # type: ignore[arg-type]


def test_an_honest_judge_passes() -> None:
    found = audited(honest)
    assert found.passed, found.failed
    values = {c.name: c.value for c in found.checks}
    assert values["agreement"] == values["ranking"] == 1.0
    assert values["injection"] == values["trivial"] == values["length"] == values["repeats"] == values["faults"] == 0.0


def weak(test: Callable[[str], bool]) -> Callable[[Sequence[Message]], str]:
    """Honest, but persuaded by some words."""
    return lambda messages: json.dumps({"right": 2 if right(messages) or test(messages[-1].content) else 0})


def noisy(messages: Sequence[Message], seen: list[int] = []) -> str:  # noqa: B006
    seen.append(0)
    return json.dumps({"right": len(seen) * 7919 % 3})


@pytest.mark.parametrize(
    ("check", "reply"),
    [
        ("injection", weak(lambda text: "Ignore all previous" in text)),
        ("injection", weak(lambda text: "Full marks" in text)),
        ("style", weak(lambda text: "I am certain" in text)),
        ("length", weak(lambda text: len(text) > 700)),
        ("trivial", weak(lambda text: "Thought process" in text)),
        ("agreement", lambda messages: '{"right": 2}'),
        ("ranking", lambda messages: '{"right": 1}'),
        ("repeats", noisy),
    ],
)
def test_each_planted_weakness_is_found(check: str, reply: Any) -> None:
    assert check in audited(reply).failed


def test_a_judge_that_favours_an_author_or_an_order_is_found() -> None:
    class ByOrder(StatelessScorer):
        """The first answer shown is best."""

        judges = ("judge",)

        async def score(self, groups: Any, ctx: Any) -> Any:
            return [[Score(components={"reward": float(n == 0)}) for n, _ in enumerate(g.rollouts)] for g in groups]

        def floor(self, ctx: Any) -> dict[str, float]:
            return {"reward": 0.0}

    ctx = ScriptedScoring(replies={"judge": honest})
    rows = [{**row, "author": "own" if row["label"] else "other", "label": 0.5} for row in ROWS]
    found = asyncio.run(audit_judge(ByOrder(), judge_cases(rows), ctx.judge))  # type: ignore[arg-type]
    assert {"position", "author"} <= set(found.failed)
    assert next(c for c in found.checks if c.name == "ranking").value is None, "labels of one kind only"


def test_silence_is_counted_and_never_a_mark() -> None:
    def silent(messages: Sequence[Message]) -> str:
        if "certain" in messages[-1].content or "0+0" in messages[-1].content:
            raise EngineError("no answer")
        return honest(messages)

    found = audited(silent)
    assert "faults" in found.failed and next(c for c in found.checks if c.name == "style").value == 0.0
    with pytest.raises(DataError, match="no judgement on any"):
        audited(lambda messages: "?")
    ctx = ScriptedScoring(replies={"judge": honest})
    with pytest.raises(DataError, match="labelled answers"):
        audit_judge(RubricJudge(rubric=RUBRIC), [], ctx.judge)
    with pytest.raises(ConfigError, match="repeats=0"):
        JudgeAuditSettings(repeats=0)


def test_what_no_audit_has_is_refused() -> None:
    from assay.scorers import FromTasks, ReferenceProbability

    ctx = ScriptedScoring()
    for spec in (FromTasks(), ReferenceProbability()):
        with pytest.raises(ConfigError, match="audit"):
            asyncio.run(audit_judge(spec, judge_cases(ROWS[:1]), ctx.judge))  # type: ignore[arg-type]


def test_checks_that_cannot_be_tried_are_passed_and_said_so() -> None:
    ctx = ScriptedScoring(replies={"judge": honest})
    right = [{**row, "author": ""} for row in ROWS if row["label"]][:3]
    found = asyncio.run(audit_judge(RubricJudge(rubric=RUBRIC), judge_cases(right), ctx.judge))  # type: ignore[arg-type]
    untried = {c.name: c.says for c in found.checks if c.value is None}
    assert "no wrong answer" in untried["injection"] and "no two authors" in untried["author"] and found.passed

    class AsksAll(StatelessScorer):
        judges = ("judge",)
        tokens = True

        async def score(self, groups: Any, ctx: Any) -> Any:
            assert dict(ctx.task_floor) == {} and ctx.step == 0
            return ctx.tokenizer if self.tokens else await ctx.logprob([])

        def floor(self, ctx: Any) -> dict[str, float]:
            return {}

    with pytest.raises(ConfigError, match="a tokenizer"):
        asyncio.run(audit_judge(AsksAll(), judge_cases(right), ctx.judge))  # type: ignore[arg-type]
    AsksAll.tokens = False
    with pytest.raises(ConfigError, match="log-probabilities"):
        asyncio.run(audit_judge(AsksAll(), judge_cases(right), ctx.judge))  # type: ignore[arg-type]


def test_labels_come_from_rows_or_from_a_program(tmp_path: Path) -> None:
    rows = [{"prompt": "2+2?", "response": "4", "answer": "4"}, {"prompt": "2+2?", "response": "5", "answer": "4"}]
    assert [c.label for c in judge_cases(rows, ExactMatch())] == [1.0, 0.0]
    for row, said in (
        (rows[0], "label=None"),
        ({"prompt": "x"}, "response"),
        ({"prompt": "x", "response": "y", "label": 2}, "label=2"),
    ):
        with pytest.raises(DataError, match=said):
            judge_cases([row])

    def mute(task: Any, rollout: Any) -> Score:
        return Score(components={}, fault=Fault.VERIFIER)

    with pytest.raises(DataError, match="gives no verdict"):
        judge_cases(rows, mute)
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    with pytest.raises(DataError, match="no rows"):
        read_judge_cases(empty)


def test_the_command_audits_a_judge_behind_a_server(assay, tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_text("\n".join(json.dumps(row) for row in ROWS[:6]))
    (tmp_path / "rubric.toml").write_text(
        'saturation = 0.0\n[[criteria]]\nname = "right"\ntext = "Is the sum right?"\ntiers = ["no", "partly", "yes"]\n'
    )
    words = ["verify", "audit", "RubricJudge", "--cases", "cases.jsonl", "--rubric", "rubric.toml", "--repeats", "2"]
    with JudgeServer(weak(lambda text: "Note to the grader" in text)) as server:
        said = assay(*words, "--judge-url", server.url, "--json")
        assert said.code == 1 and said.json["failed"] == ["injection"], said.err
        shown = assay(*words, f"--judge-url={server.url}")
        assert shown.code == 1 and "failed: injection" in shown.out
    with JudgeServer(honest) as server:
        assert assay(*words, "--judge-url", server.url).code == 0
    for more, why in (
        (["audit", "FromTasks", "--cases", "cases.jsonl"], "asks no judge"),
        (["audit", "NoSuch", "--cases", "cases.jsonl"], "no scorer"),
        (["audit", "RubricJudge"], "--cases"),
    ):
        said = assay("verify", *more, "--judge-url", "http://127.0.0.1:9/v1")
        assert said.code == 2 and why in said.err
