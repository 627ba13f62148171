"""Rewards of single turns: by what tools answered, and by tagged thoughts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from live import spied

from assay.core.batch import Batch
from assay.core.errors import ConfigError
from assay.core.group import Group
from assay.core.protocols import Draw
from assay.core.rollout import ASIDE, Call, Rollout, ToolResult
from assay.core.score import Fault, Score
from assay.objective import TokenReward
from assay.recipes import tools_rlvmr
from assay.runtime.settings import DecoderShape
from assay.testing import rollout_of
from assay.train import MetaReasoning, ToolReward, train
from assay.train.models import Scratch
from assay.train.run import Evaluation
from assay.train.turn_rewards import INVALID, META_TAG
from assay_tasks import Bills

TASK = Bills().task("bills", 2, "train", 0)
OK, BAD = ToolResult(content="1", cost=0.5), ToolResult(content="!", error="no")


def played(*turns: tuple[str, ToolResult | None]) -> Rollout:
    one = rollout_of(TASK, "1").calls[0]
    calls: list[Call] = []
    for i, (text, result) in enumerate(turns):
        results = () if result is None else (result,)
        calls.append(replace(one, id=i, parent=i - 1 if i else None, text=text, results=results))
    return replace(rollout_of(TASK, "1"), calls=tuple(calls))


def group(rollout: Rollout, correct: float = 1.0, fault: Fault = Fault.NONE) -> Group:
    score = Score(components={"correct": correct}) if fault is Fault.NONE else Score(components={}, fault=fault)
    return Group(key="g0", task=TASK, draw=Draw("bills", 2, 1.0), rollouts=(rollout,), scores=(score,))


def columns(provider: Any, given: Group) -> dict[str, list[float]]:
    (found,) = provider.provide(None, [given])
    out: dict[str, list[float]] = {}
    for span in found.scores[0].spans:
        out.setdefault(span.name, []).append(span.value)
    return out


def test_calls_are_paid_by_what_they_did() -> None:
    rollout = played(("?ab", OK), ("?cd", BAD), ("7", None))
    found = columns(ToolReward(answered=0.2, failed=-0.3, cost=0.1), group(rollout))
    assert found == {"tool_reward": [pytest.approx(0.15), -0.3, 0.0]}
    with pytest.raises(ConfigError, match="pays for nothing"):
        ToolReward()


def say(tag: str, action: str) -> str:
    return f"<{tag}>Because.\nSo.</{tag}> {action}"


def test_the_rules_of_rlvmr() -> None:
    rollout = played(
        (say("planning", "look"), OK),
        (say("explore", "go north"), OK),
        (say("explore", "go north"), OK),  # already taken
        (say("explore", "fly"), BAD),  # invalid: no tag, and a penalty
        (say("reflection", "go south"), OK),  # another action behind an invalid one
        (say("reflection", "go west"), OK),  # nothing to mend
        (say("explore", "fly"), BAD),
        (say("reflection", "fly"), OK),  # the same again
        ("done", None),
    )
    found = columns(MetaReasoning(), group(rollout))
    assert found["meta_reward"] == [1, 1, 0, 0, 1, 0, 0, 0, 0]
    assert found[META_TAG] == [1, 2, 2, 0, 3, 3, 0, 3, 0]
    assert found[INVALID] == [0, 0, 0, 1, 0, 0, 1, 0, 0]
    failed = columns(MetaReasoning(magnitude=2.0), group(rollout, correct=0.0))
    assert failed["meta_reward"][:2] == [0, 2]  # a plan is worth what came of it
    assert columns(MetaReasoning(), group(rollout, fault=Fault.INFRA)) == {}


def test_an_action_that_failed_once_may_be_explored_again() -> None:
    rollout = played((say("explore", "fly"), BAD), (say("explore", "fly"), OK))
    assert columns(MetaReasoning(), group(rollout))["meta_reward"] == [0, 1]


def test_asides_and_shared_calls_are_no_turns() -> None:
    rollout = played(("?ab", OK), ("?cd", OK))
    first, second = rollout.calls
    rollout = replace(rollout, calls=(replace(first, role=ASIDE), replace(second, shared=True)))
    assert columns(ToolReward(answered=1.0), group(rollout)) == {}


def test_what_stands_for_a_tag_may_be_the_action_itself() -> None:
    meta = MetaReasoning(planning="^(?=#)", explore="^(?=[?])", reflection="")
    assert [meta.read(text) for text in ("#12", "?ab", "7")] == [(1, "#12"), (2, "?ab"), (0, "7")]
    with pytest.raises(ConfigError, match=r"MetaReasoning.explore='\(' is no regular expression"):
        MetaReasoning(explore="(")
    with pytest.raises(ConfigError, match="magnitude=0"):
        MetaReasoning(magnitude=0)


def test_the_recipe_learns_from_its_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = spied(monkeypatch)
    run = tools_rlvmr()
    (stage,) = run.stages
    shape = DecoderShape(hidden_size=32, num_layers=1, num_heads=2, num_kv_heads=2, head_dim=16, intermediate_size=32)
    run = replace(
        run,
        model=Scratch(shape=replace(shape, max_positions=192)),
        stages=(replace(stage, steps=1, groups=2, group_size=4),),
        evaluation=Evaluation(every=0, final_per_level=1, kl_to_base=False),
    )
    train(run, tmp_path / "run", progress=False)
    batch: Batch = batches[0]
    assert {"meta_reward", META_TAG, INVALID} <= set(batch.tokens)
    assert isinstance(stage.objective.credit[0], TokenReward) and stage.objective.credit[0].coef == -0.1
