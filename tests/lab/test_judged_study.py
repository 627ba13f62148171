"""The study of trained judges: what scorers ask is read, a program answers it, and the page says which sign all seeds have."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from assay.core import Message, Task
from assay.core.scoring import RolloutGroup
from assay.scorers import (
    Criterion,
    FlawedPositive,
    GenerativeReward,
    PairwiseJudge,
    PolicyAwareRubric,
    Rubric,
    ThinkingReward,
)
from assay.testing import ScriptedScoring
from assay.verify import rollout_of
from benchmarks.judged_arms import PARTS
from benchmarks.judged_forms import FORMS, Judgements
from benchmarks.judged_page import page, sign
from benchmarks.judged_server import Program, read_asked, worded
from benchmarks.judged_tasks import Behind, Boxes, Chosen, Shifts, Tagged, working

SOUND, FLAWED, WRONG = "7\n2\n4\n8\n=8", "7\n2\n5\n8\n=8", "7\n2\n5\n6\n=7"


def task() -> Task:
    """``4915=``, whose answer is 8; its anchor has three lines of four."""
    made = Shifts().task("shifts", 4, "train", 0)
    return Task(
        id="t",
        domain="shifts",
        arm="shifts",
        level=4,
        split="train",
        index=0,
        public=made.public.__class__({"prompt": "4915="}),
        private=made.private.__class__({"answer": "8", "anchor": "7\n2\n4\n9\n=9"}),
    )


def says(messages: Sequence[Message]) -> str:
    asked = read_asked(messages)
    return worded(asked, Program().judge(asked, 0.0, 0))


def rewards(scorer: Any) -> list[float]:
    of = task()
    rollouts = tuple(rollout_of(of, text, id=f"g/{n}") for n, text in enumerate((SOUND, FLAWED, WRONG)))
    group = RolloutGroup(task=of, context=rollouts[0].context, rollouts=rollouts)
    ctx = ScriptedScoring(replies={"judge": says}, verifier=Behind())
    (found,) = asyncio.run(scorer.build().score([group], ctx))
    assert all(score.valid for score in found)
    return [score.components["reward"] for score in found]


def test_a_program_answers_what_each_scorer_asks() -> None:
    """Lines right: 4, 3 and 2 of 4; the third answer is wrong."""
    assert rewards(FlawedPositive()) == [1.0, 0.0, -1.0]
    # trusted: right answers have 1.0 and 0.7, the wrong one 0.5
    assert rewards(ThinkingReward(lam=0.3)) == pytest.approx([1.3, 1.21, 0.15])
    assert rewards(PairwiseJudge(anchor="anchor", samples=2)) == [1.0, 0.5, 0.0]
    assert rewards(GenerativeReward(samples=2)) == pytest.approx([0.9, 0.7, 0.5])
    criteria = (Criterion(name="all", text="Are all lines right?"), Criterion(name="number", text="Is there one for each?"))
    assert rewards(PolicyAwareRubric(rubric=Rubric(criteria=criteria))) == [1.0, 0.5, 0.5]


@pytest.mark.parametrize("form", FORMS)
def test_the_truth_has_the_full_reward_and_the_prompt_hides_it(form: str) -> None:
    family = Judgements(form=form)
    for n in range(40):
        asked = family.task(family.name, 4, "train", n)
        truth = str(asked.private["answer"]).rpartition(":")[2]
        prompt: str = asked.public["prompt"]
        assert prompt.endswith(">") and prompt.count(">") == 1
        assert FORMS[form].reward(truth, truth, 4) == 1.0 > FORMS[form].reward("?", truth, 4)
        assert set(prompt + str(asked.private["answer"])) <= set(family.alphabet)


def test_traces_without_slips_are_right() -> None:
    rng = np.random.default_rng(0)
    for family in (Shifts(), Tagged(levels=(2, 3)), Boxes(), Chosen(kept=(3, 5))):
        for n in range(20):
            made = family.task(family.name, family.levels[0], "train", n)
            (said,) = family.trace(made, 0.0, rng)
            assert working(said.content)[1] == made.private["answer"]
            assert set(said.content + made.public["prompt"]) <= set(family.alphabet)
    assert [Chosen(kept=(3, 5)).task("shifts", 4, "train", n).index for n in range(3)] == [3, 5, 3]


def test_the_page_says_the_sign_that_all_seeds_have() -> None:
    assert [sign([0.5, 0.6], [0.4, 0.4]), sign([0.3, 0.2], [0.4, 0.4]), sign([0.5, 0.3], [0.4, 0.4])] == ["+", "-", "0"]
    of = {"right": 0.5, "sound": 0.25}
    records = [
        {
            "part": "FAPO",
            "arm": arm.name,
            "seed": seed,
            "base": of,
            "end": {**of, "sound": 0.25 + n / 8},
            "tokens": 9.0,
            "cpu": 1.0,
            "asked": 3.0,
            "cached": 1.0,
            "faults": 0.0,
        }
        for n, arm in enumerate(PARTS["FAPO"].arms)
        for seed in range(2)
    ]
    made = page(records)
    assert "| FAPO, trained judge | + | + | 0.500 0.500 | 0.375 0.375 | 9 | 3 | 1 | 1 |" in made
    assert "Trust-GRPO" not in made, "a part without records has no table"
