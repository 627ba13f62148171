"""Before the first step: a reward that gives the rows' own answers less than its full value is told of."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace
from typing import Any

import pytest
from tiny_runs import only_rl

from assay.scorers import ReferenceProbability
from assay.tasks import Rows
from assay.train.gold_check import describe_rewards
from assay.train.run import Run

ROWS = [{"prompt": f"{n}+1=", "answer": str(n + 1), "solution": f"so it is #{n + 1}"} for n in range(10, 40)]


def gold(reward: Any, rows: Any = ROWS, **changes: Any) -> str:
    run: Run = replace(only_rl(), tasks=Rows(rows, reward=reward), **changes)
    return "\n".join(describe_rewards(run))


def right(completion: str, answer: str) -> bool:
    return completion == answer


def test_a_reward_that_its_own_answers_earn_says_nothing() -> None:
    assert gold(right) == ""
    assert gold(lambda completion, answer: float(completion.endswith("#" + answer))) == "", "the solution earns it"
    assert (
        gold(right, [{"prompt": f"{n}", "key": n, "answer": None} for n in range(9)] + [{"prompt": "a", "answer": "b"}] * 3) == ""
    )


def test_a_reward_that_cannot_be_earned_is_told_with_a_row() -> None:
    text = gold(lambda completion, answer: completion == f"<{answer}>")
    assert text.startswith("warning: your reward gives the gold answer less than 1 on 20 of 20 rows; e.g. rows/rows/1/")
    assert "reward 0. If an answer must have more than the gold" in text
    some = gold(lambda completion, answer: completion == answer and answer != "15")
    assert "on 1 of 20 rows" in some or some == ""


def test_a_reward_that_wants_a_usual_form_is_no_warning_but_names_the_form() -> None:
    text = gold(lambda completion, answer: completion.endswith(f"Answer: {answer}"))
    assert (
        text == "your reward gives the gold answer 1 where it is written as 'Answer: {answer}': let the prompts ask for that form"
    )
    shop = [{"prompt": f"{n}+1=", "answer": str(n + 1)} for n in range(10, 40)]
    assert "#### {answer}" in gold(lambda completion, answer: float(completion == f"#### {answer}"), shop)
    mixed = gold(lambda completion, answer: completion == (f"#### {answer}" if answer < "20" else f"<{answer}>"))
    assert mixed.startswith("warning:") and "a field 'solution'" in mixed, "no one form is enough for all rows"


@pytest.mark.parametrize("case", ["async", "scorer", "raises", "abstains", "no rows"])
def test_what_may_cost_money_or_has_no_verdict_is_not_asked(case: str) -> None:
    async def served(completion: str) -> float:
        raise AssertionError("asked")

    def fails(completion: str) -> float:
        raise ValueError("oh")

    rewards: dict[str, Any] = {"async": served, "raises": fails, "abstains": lambda completion: None}
    if case == "scorer":
        run = replace(only_rl(reward=ReferenceProbability()), tasks=Rows(ROWS, reward=lambda completion: 0.0))
        assert describe_rewards(run) == ()
        return
    rows = ROWS if case != "no rows" else [{"prompt": str(n)} for n in range(20)]
    assert gold(rewards.get(case, lambda completion: 0.0), rows) == ""


def test_a_reward_that_is_not_always_the_same_is_told() -> None:
    calls = itertools.count()

    def alternating(completion: str, answer: str) -> float:
        """In one process, one after another: 1, 2, 3 ..."""
        return 1.0 + next(calls)

    text = gold(alternating, ROWS[:12])
    assert text.startswith("warning: your reward gave the same answer to the same row 1, then 3; e.g. rows/rows/1/"), text
    assert text.count("warning") == 1 and "teaches noise" in text
    assert gold(lambda completion, answer: 0.5 + len(answer)) == "", "not 1, and always the same"


def test_a_slow_reward_is_asked_once() -> None:
    def slow(completion: str) -> float:
        time.sleep(1.1)
        return 0.0

    assert "on 1 of 1 rows" in gold(slow)
