"""Several rewards as one: the sum, each by its name, and those that have no verdict."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from foreign_code import LONG, items

from assay.core.errors import ConfigError, RewardError
from assay.core.group import Draw, Group
from assay.core.score import Fault
from assay.interop import TrlReward
from assay.testing import rollout_of
from assay.verify import RewardFunction, RewardPart, ScoringPool, WeightedRewards
from assay.verify.abilities import abilities_of
from assay.verify.user_reward import Pending, abstained, gather

Row = dict[str, Any]


def right(prompt: str, completion: str, row: Row) -> bool:
    return completion == row["answer"]


def short(prompt: str, completion: str, row: Row) -> float | None:
    return None if completion == "skip" else 1 / len(completion)


def weighted(**parts: tuple[Callable[..., Any] | Any, float]) -> WeightedRewards:
    made: dict[str, Any] = {name: f if hasattr(f, "start") else RewardFunction(f) for name, (f, _) in parts.items()}
    return WeightedRewards(tuple(RewardPart(name, made[name], weight) for name, (_, weight) in parts.items()))


def test_the_sum_and_each_value_by_its_name() -> None:
    both = weighted(correct=(right, 1.0), short=(short, 0.6))
    (item,) = items("yes")
    score = both(*item)
    assert dict(score.components) == {"reward": 1.0 + 0.6 / 3, "correct": 1.0, "short": 1 / 3}
    assert score.primary == 1.0  # what evaluations report
    with ScoringPool(both, LONG) as pool:
        verdicts = pool.score(items("yes", "no"))
        assert dict(verdicts["r0"].components) == dict(score.components)
        assert dict(verdicts["r1"].components) == {"reward": 0.3, "correct": 0.0, "short": 0.5}
        assert pool.floor() == {"reward": 0.0, "correct": 0.0, "short": 0.0}


def test_a_part_without_a_verdict_is_left_out_and_none_at_all_is_no_score() -> None:
    both = weighted(right=(lambda p, c, r: None if c == "skip" else 1.0, 1.0), short=(short, 0.5))
    one = weighted(right=(right, 1.0), short=(short, 0.5))
    with ScoringPool(both, LONG) as pool, ScoringPool(one, LONG) as other:
        verdicts = pool.score(items("skip", "ab", "skip", "skip"))
        assert [abstained(s) for s in verdicts.values()] == [True, False, True, True]
        assert (verdicts["r0"].valid, dict(verdicts["r0"].components)) == (False, {})
        assert pool.counts["retried"] == 0 and pool.take_failure() is None
        assert dict(other.score(items("skip"))["r0"].components) == {"reward": 0.0, "correct": 0.0, "right": 0.0}
        with pytest.raises(RewardError, match=r"no verdict on 2 of 2 answers(?s:.*)every one of the reward functions gave None"):
            pool.score(items("skip", "skip"))


def test_accuracy_is_measured_by_one_part_and_never_by_the_sum() -> None:
    both = weighted(right=(right, 1.0), brief=(lambda p, c, r: 1.0, 1.0))
    wrong_but_short, yes = (both(*item) for item in items("no", "yes"))
    assert (wrong_but_short.components["reward"], wrong_but_short.primary) == (1.0, 0.0)
    assert (yes.components["reward"], yes.primary) == (2.0, 1.0)
    small = weighted(right=(right, 0.5), brief=(lambda p, c, r: 0.0, 0.2))
    assert small(*items("yes")[0]).primary == 1.0
    named = replace(both, metric="brief")
    assert (named.measured_by, named(*items("no")[0]).primary) == ("brief", 1.0)
    assert weighted(brief=(short, 1.0), correct=(right, 1.0)).measured_by == "correct"


def test_where_the_metric_has_no_verdict_the_next_part_counts_unless_it_was_named() -> None:
    both = weighted(short=(short, 1.0), right=(right, 1.0))
    assert both(*items("skip")[0]).primary == 0.0  # by ``right``: each row of its own kind has its own reward
    assert abstained(replace(both, metric="short")(*items("skip")[0]))
    only = weighted(short=(short, 1.0), right=(right, 0.0))
    assert abstained(only(*items("skip")[0]))  # what has a verdict is not learned from: a sum of 0 would say nothing
    assert dict(weighted(right=(right, 0.0))(*items("yes")[0]).components) == {"reward": 0.0, "correct": 1.0, "right": 1.0}


def test_a_metric_that_is_no_part_or_hides_another_is_refused() -> None:
    both = weighted(right=(right, 1.0), correct=(short, 1.0))
    with pytest.raises(ConfigError, match=r"metric='rihgt' names none of the rewards; they are called right, correct"):
        replace(both, metric="rihgt")
    with pytest.raises(ConfigError, match=r"metric='right', and another reward is called 'correct'"):
        replace(both, metric="right")


def test_a_group_has_signal_where_the_sums_differ() -> None:
    both = weighted(right=(right, 1.0), short=(short, 0.5))
    task = items("a")[0][0]
    rollouts = [rollout_of(task, text) for text in ("a", "abcd")]
    group = Group(
        key=rollouts[0].context.group,
        task=task,
        draw=Draw(task.arm, task.level, 1.0),
        rollouts=tuple(rollouts),
        scores=tuple(both(task, r) for r in rollouts),
    )
    assert group.values == (0.0, 0.0) and group.success == 0.0 and group.informative


def test_without_a_pool_it_judges_the_same() -> None:
    both = weighted(right=(lambda p, c, r: None if c == "skip" else 1.0, 1.0), short=(short, 0.5))
    skipped, judged = (both(*item) for item in items("skip", "ab"))
    assert abstained(skipped) and dict(judged.components) == {"reward": 1.25, "correct": 1.0, "right": 1.0, "short": 0.5}
    batched = weighted(size=(TrlReward(lambda completions: [float(len(c)) for c in completions]), 1.0), right=(right, 1.0))
    found = batched.start_batch(batched.views(items("yes", "no")))
    assert isinstance(found, list)
    assert [dict(s.components) for s in found] == [
        {"reward": 4.0, "correct": 3.0, "size": 3.0, "right": 1.0},
        {"reward": 2.0, "correct": 2.0, "size": 2.0, "right": 0.0},
    ]
    assert dict(batched.floor) == {"reward": 0.0, "correct": 0.0, "size": 0.0, "right": 0.0}


def test_a_part_of_several_values_counts_by_its_main_one() -> None:
    several = weighted(judge=(lambda p, c, r: {"correct": 0.5, "style": 0.25}, 2.0))
    (item,) = items("a")
    assert dict(several(*item).components) == {"reward": 1.0, "correct": 0.5, "judge": 0.5, "judge/style": 0.25}
    with pytest.raises(RewardError, match=r"'judge' gave \['style', 'tone'\], and none of them says what counts"):
        weighted(judge=(lambda p, c, r: {"style": 0.5, "tone": 0.5}, 1.0))(*item)


def test_asynchronous_parts_are_awaited_together_and_others_called() -> None:
    met: list[str] = []

    def meeting(name: str) -> Any:
        async def judge(prompt: str, completion: str, row: Row) -> float:
            met.append(name)
            while len(met) < 2:
                await asyncio.sleep(0)
            return 0.5

        return judge

    both = weighted(one=(meeting("one"), 1.0), right=(right, 1.0), two=(meeting("two"), 1.0))
    assert both.concurrent and not both.batched
    with ScoringPool(both, LONG) as pool:
        wanted = {"reward": 2.0, "correct": 0.5, "one": 0.5, "right": 1.0, "two": 0.5}
        assert dict(pool.score(items("yes"))["r0"].components) == wanted
    met.clear()
    assert both(*items("yes")[0]).components["reward"] == 2.0


def test_a_batched_part_is_called_once() -> None:
    calls: list[int] = []

    def batch(completions: list[str], **columns: Any) -> list[float]:
        calls.append(len(completions))
        return [float(len(c) + 10 * len(calls)) for c in completions]

    async def one(prompt: str, completion: str, row: Row) -> float:
        return 1.0

    both = weighted(size=(TrlReward(batch), 1.0), one=(one, 1.0))
    assert both.batched and not both.concurrent
    with ScoringPool(both, LONG) as pool:
        verdicts = pool.score(items("a", "bcd"))
        assert [dict(s.components) for s in verdicts.values()] == [
            {"reward": 12.0, "correct": 11.0, "size": 11.0, "one": 1.0},
            {"reward": 14.0, "correct": 13.0, "size": 13.0, "one": 1.0},
        ]
        assert pool.counts["split"] == 0


def test_where_one_part_fails_the_others_are_not_waited_for() -> None:
    async def fails() -> float:
        raise ValueError("lost")

    async def waits() -> float:
        await asyncio.Event().wait()
        return 0.0

    both = gather([Pending(waits(), float), Pending(fails(), float), 1.0], sum)
    assert isinstance(both, Pending)
    with pytest.raises(ValueError, match="lost"):
        asyncio.run(both.result())
    dropped = gather([Pending(waits(), float), Pending(asyncio.Queue[int](), float)], sum)  # pyright: ignore[reportArgumentType]
    assert isinstance(dropped, Pending)
    dropped.close()  # a coroutine that never began says nothing when it goes


def test_the_error_of_a_part_is_told_with_its_lines() -> None:
    def broken(prompt: str, completion: str, row: Row) -> float:
        return 1.0 / (len(completion) - 2)

    with ScoringPool(weighted(right=(right, 1.0), odd=(broken, 0.1)), LONG) as pool:
        verdicts = pool.score(items("yes", "no", "yes"))
        assert verdicts["r1"].fault is Fault.VERIFIER
        failure = pool.take_failure()
        assert failure is not None and pool.take_failure() is None
        assert "test_weighted_rewards.py" in failure and "return 1.0 / (len(completion) - 2)" in failure
        assert "src/assay" not in failure
        assert "row: {'prompt': 'p1', 'answer': 'yes'}" in failure and "completion: 'no'" in failure


def test_names_and_weights_that_cannot_stand() -> None:
    ability = abilities_of(weighted(right=(right, 1.0)))
    assert (ability.weighted_sum, ability.names) == (True, ("reward", "correct", "right"))
    part = RewardPart("right", RewardFunction(right))
    for wrong in ((), (part, part)):
        with pytest.raises(ConfigError, match="give at least one, and each a name of its own"):
            WeightedRewards(wrong)
    for name in ("reward", "", "a/b"):
        with pytest.raises(ConfigError, match="give another name"):
            RewardPart(name, RewardFunction(right))
    weights: list[Any] = [float("nan"), True, "1"]
    for weight in weights:
        with pytest.raises(ConfigError, match=r"the weight of reward 'right' is .*; give a finite number"):
            RewardPart("right", RewardFunction(right), weight)
