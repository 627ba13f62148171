"""Each scorer that asks a judge trains for two steps against a server that fails now and then, and resumes its state."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import digest_of, only_rl, trained

from assay.clients import Judge
from assay.core.errors import DataError
from assay.core.score import Score
from assay.core.scoring import RolloutGroup, ScoreContext
from assay.core.task import Message
from assay.scorers import (
    Criterion,
    DifficultyTag,
    FlawedPositive,
    GenerativeReward,
    PairwiseJudge,
    PolicyAwareRubric,
    Rubric,
    RubricJudge,
    ThinkingReward,
)
from assay.testing import JudgeServer
from assay.train import train

RUBRIC = Rubric(criteria=(Criterion(name="seven", text="Does it say 7?"), Criterion(name="one", text="Does it say 1?")))

SEVEN = Rubric(criteria=RUBRIC.criteria[:1])


def reply(messages: list[Message]) -> str:
    """What each scorer asks for, by what it says of the form."""
    asked = messages[-1].content
    if "Scores: [" in asked:
        return f"Scores: {[1 + n % 10 for n, _ in enumerate(re.findall('^Answer [0-9]+, between', asked, re.MULTILINE))]}"
    if "first step that is wrong" in asked:
        return "0" if "7" in asked else "-1"
    if "from 0 to 1" in asked:
        return "0.5" if "7" in asked else "0.2"
    if "A, B, or tie" in asked:
        return "tie"
    name = "seven" if "say 7" in asked else "one"
    return json.dumps({name: int({"seven": "7", "one": "1"}[name] in asked.split("\n\n")[1])})


@pytest.mark.slow
@pytest.mark.parametrize(
    "scorer",
    [
        PolicyAwareRubric(rubric=RUBRIC),
        GenerativeReward(samples=2),
        PairwiseJudge(),
        FlawedPositive(threshold=0.0),
        ThinkingReward(),
        DifficultyTag(),
    ],
    ids=lambda s: type(s).__name__,
)
def test_two_steps(scorer: Any, tmp_path: Path) -> None:
    def fault(question: str, n: int) -> Any:
        return "500" if int(question[-2:], 16) < 51 and not n else ""

    with JudgeServer(reply, fault) as server:
        judges = (Judge(url=server.url, model="m", pause=0.001),) if scorer.judges else ()
        run = replace(only_rl(steps=2, reward=scorer), judges=judges)
        trained(run, tmp_path / "run")
        asks = bool(judges) and not isinstance(scorer, ThinkingReward)  # which asks only where some are right and some are wrong
        assert server.asked or not asks
    metrics = [json.loads(line)["metrics"] for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    steps = [m for m in metrics if "reward/component/reward" in m or "reward/mean" in m]
    assert len(steps) == 2 and all(m.get("fault/infra", 0.0) == 0.0 for m in steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched(RubricJudge):
    """Notes how many groups each call scores."""

    alone: bool = True
    calls: list[int] = field(default_factory=list, compare=False)

    @property
    def by_group(self) -> bool:
        return self.alone

    async def score(self, groups: Sequence[RolloutGroup], ctx: ScoreContext) -> Sequence[Sequence[Score]]:
        self.calls.append(len(groups))
        return await super(Watched, self).score(groups, ctx)


def test_groups_that_are_scored_while_others_are_sampled_change_no_number(tmp_path: Path) -> None:
    """A run whose groups are scored one by one, as they end, and one whose groups are scored together end with one digest."""
    digests, asked = dict[bool, str](), dict[bool, int]()
    for alone in (True, False):
        scorer = Watched(rubric=SEVEN, alone=alone)
        with JudgeServer(reply) as server:
            run = replace(only_rl(steps=2, reward=scorer), judges=(Judge(url=server.url, model="m"),))
            assert train(run, tmp_path / str(alone)).finished
            digests[alone] = digest_of(tmp_path / str(alone))
            asked[alone] = sum(server.asked.values())
        groups = run.stages[0].groups
        assert scorer.calls == ([1] * groups * 2 if alone else [groups] * 2)
    assert digests[True] == digests[False] and asked[True] == asked[False]


def test_a_scorer_that_fails_on_one_group_ends_the_step(tmp_path: Path) -> None:
    """Before the others are sampled or after: the run ends with what it raised, and no question is left open."""
    with JudgeServer(reply) as server:
        run = replace(only_rl(steps=2, reward=RubricJudge()), judges=(Judge(url=server.url, model="m"),))
        with pytest.raises(DataError, match="has no private 'rubric'"):
            train(run, tmp_path / "run")
        assert not server.asked
