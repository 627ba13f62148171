"""Rewards of turns that judge what was found (ReSeek), in training too."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live import spied
from test_turn_rewards import BAD, columns, group, played

from assay.core.batch import Batch
from assay.core.errors import ConfigError
from assay.core.rollout import ASIDE, ToolResult
from assay.core.score import Fault
from assay.objective import reseek
from assay.recipes import tools_reseek
from assay.runtime.settings import DecoderShape
from assay.train import JudgeReward, train
from assay.train.models import Scratch
from assay.train.run import Evaluation

USEFUL, USELESS = ToolResult(content="The sum, it is 102."), ToolResult(content="It is 12.")  # the task's answer is 102
YES, NO = "<judge>Yes</judge>", "so: <judge> no </judge>"


def earned(*turns: tuple[str, ToolResult | None], **settings: Any) -> list[float]:
    return columns(JudgeReward(**settings), group(played(*turns))).get("judge_reward", [])


def test_the_asymmetric_table_of_reseek() -> None:
    """Match .3, useless accepted -.6, useful rejected -.3."""
    for result, says, value in ((USEFUL, YES, 0.3), (USELESS, NO, 0.3), (USELESS, YES, -0.6), (USEFUL, NO, -0.3)):
        assert earned(("?", result), (says, None)) == [0, value]
    assert earned(("?", USEFUL), (YES, None), ("?", USELESS), (YES, None)) == [0, 0.3, 0, -0.6]


def test_what_judges_nothing_earns_nothing() -> None:
    assert earned(("102", None)) == [0]  # no search
    assert earned((YES, None), (YES, None)) == [0, 0]  # nothing was found
    assert earned(("?", BAD), (YES, None)) == [0, 0]  # the tool failed
    assert earned(("?", USEFUL), ("102", None)) == [0, 0]
    assert earned(("?", USEFUL), (YES + NO, None)) == [0, 0]
    assert columns(JudgeReward(), group(played(("?", USEFUL), (YES, None)), fault=Fault.INFRA)) == {}


def test_a_shared_search_is_judged_and_an_aside_is_no_turn() -> None:
    rollout = played(("?", USEFUL), ("sum up", None), (YES, None))
    search, aside, says = rollout.calls
    rollout = replace(rollout, calls=(replace(search, shared=True), replace(aside, role=ASIDE), says))
    assert columns(JudgeReward(), group(rollout)) == {"judge_reward": [0.3]}


def test_always_no_is_worth_less_than_an_answer() -> None:
    """Rejecting what is of use again and again earns less than accepting it once."""
    no = sum(earned(*[("?", USEFUL), (NO, None)] * 3))
    yes = sum(earned(("?", USEFUL), (YES, None)))
    assert no == pytest.approx(-0.9) and no < yes


def test_relevance_above_its_threshold_is_of_use() -> None:
    near = JudgeReward(relevance=lambda task, asked, found: 0.7)
    assert columns(near, group(played(("?", USEFUL), (YES, None))))["judge_reward"] == [0, -0.6]
    assert columns(replace(near, threshold=0.6), group(played(("?", USEFUL), (YES, None))))["judge_reward"] == [0, 0.3]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"yes": "("}, "JudgeReward.yes"),
        ({"threshold": 1.0}, "JudgeReward.threshold"),
        ({"match": -0.6}, "worth more than a wrong one"),
    ],
)
def test_settings_that_cannot_be_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        JudgeReward(**given)


def test_the_recipe_learns_from_its_judgements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = spied(monkeypatch)
    run = tools_reseek()
    (stage,) = run.stages
    assert stage.objective == reseek()
    shape = DecoderShape(hidden_size=32, num_layers=1, num_heads=2, num_kv_heads=2, head_dim=16, intermediate_size=32)
    run = replace(
        run,
        model=Scratch(shape=replace(shape, max_positions=192)),
        stages=(replace(stage, steps=1, groups=2, group_size=4),),
        evaluation=Evaluation(every=0, final_per_level=1, kl_to_base=False),
    )
    train(run, tmp_path / "run", progress=False)
    batch: Batch = batches[0]
    assert "judge_reward" in batch.tokens and np.isfinite(batch.token("advantage")).all()
