"""Scorers that ask a judge beside the verifier, or about several answers: the sheets' numbers, and their promises."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError, EngineError, UnknownNameError
from assay.core.score import Fault, Score
from assay.core.scoring import RolloutGroup
from assay.core.task import Message
from assay.scorers import (
    Criterion,
    DifficultyTag,
    FlawedPositive,
    GenerativeReward,
    Interaction,
    PairwiseJudge,
    PolicyAwareRubric,
    Rubric,
    RubricJudge,
    ThinkingReward,
    category_reward,
    flaw_reward,
    judge_reward,
    keep_for_rejection,
    load_rubric,
    read_preference,
    read_scores,
    trust_weight,
    updated_weights,
    votes,
)
from assay.testing import ScriptedScoring, check_scorer
from assay.verify import rollout_of, task_and_rollout


def group(*texts: str, gold: str = "4", key: str = "g", **private: Any) -> RolloutGroup:
    task, _ = task_and_rollout(gold, gold, prompt="2+2=")
    task = replace(task, private=FrozenMap({**task.private, **private}))
    rollouts = tuple(rollout_of(task, text, id=f"{key}/{i}") for i, text in enumerate(texts))
    return RolloutGroup(task=task, context=rollouts[0].context, rollouts=rollouts)


def scored(scorer: Any, ctx: ScriptedScoring, *groups: RolloutGroup) -> list[list[Score]]:
    return asyncio.run(scorer.score(groups, ctx))


def silent(messages: Sequence[Message]) -> str:
    raise EngineError("no answer")


# ---- rubrics


def test_interactions_and_the_stretch() -> None:
    a, b = Criterion(name="a", text="?"), Criterion(name="b", text="?")
    plain = Rubric(criteria=(a, b), saturation=0.0)
    helped = replace(plain, interactions=(Interaction(first="a", second="b", weight=2.0),))
    assert helped.reward({"a": 1.0, "b": 1.0}) == 1.0 and helped.reward({"a": 1.0, "b": 0.0}) == 0.25
    fought = replace(plain, interactions=(Interaction(first="a", second="b", weight=-1.0),))
    assert fought.reward({"a": 1.0, "b": 1.0}) == fought.reward({"a": 1.0, "b": 0.0}) == 0.5
    assert replace(plain, stretch=2.0).reward({"a": 1.0, "b": 0.0}) == 0.25
    with pytest.raises(UnknownNameError, match="criterion"):
        replace(plain, interactions=(Interaction(first="a", second="c", weight=1.0),))
    for make in (
        lambda: Interaction(first="a", second="a", weight=1.0),
        lambda: Interaction(first="a", second="b", weight=0.0),
        lambda: replace(plain, stretch=0.5),
    ):
        with pytest.raises(ConfigError):
            make()


def test_a_rubric_is_a_file(tmp_path: Path) -> None:
    toml, as_json, bad = tmp_path / "r.toml", tmp_path / "r.json", tmp_path / "bad.toml"
    toml.write_text('stretch = 2.0\n[[criteria]]\nname = "a"\ntext = "?"\nweight = 3.0\n')
    as_json.write_text(json.dumps({"stretch": 2.0, "criteria": [{"name": "a", "text": "?", "weight": 3.0}]}))
    assert load_rubric(toml) == load_rubric(as_json) == Rubric(criteria=(Criterion(name="a", text="?", weight=3.0),), stretch=2.0)
    bad.write_text("criteria = 3")
    with pytest.raises(ConfigError, match=r"bad\.toml"):
        load_rubric(bad)
    with pytest.raises(DataError, match="cannot read"):
        load_rubric(tmp_path / "none.toml")


POLICY = PolicyAwareRubric(
    rubric=Rubric(
        criteria=(
            Criterion(name="a", text="Is a there?", category="x"),
            Criterion(name="b", text="Is b there?", category="x", weight=3.0),
            Criterion(name="c", text="Is c there?", category="y"),
        )
    )
)


def letters(messages: Sequence[Message]) -> str:
    asked = messages[-1].content
    name = re.findall(r"Is (\w) there", asked)[0]
    answer = asked.split("\n\n")[1].split("\n")[2]
    if "?" in answer:
        raise EngineError("no answer")
    return json.dumps({name: int(name in answer)})


def test_weights_follow_what_rollouts_differ_in() -> None:
    ctx = ScriptedScoring(replies={"judge": letters})
    check_scorer(POLICY, [(group("abc", "a", "?", key="h"), [1.0, 0.125, None])], ctx)
    scorer = POLICY.build()
    (first,) = scored(scorer, ctx, group("ac", "abc"))
    assert [x.components["reward"] for x in first] == [(0.25 + 1.0) / 2, 1.0], "all weights are 1 at first"
    (alpha,) = scorer.state_dict()["alpha"].values()
    a, b, c = alpha
    mean = 3 * 0.5 / 4
    assert a == 0.75 and b == pytest.approx(0.5 + 0.5 * (0.5 + 0.5 * 0.5 / mean)) and c == 1.0, (
        "all passed c: nothing varies there"
    )
    (second,) = scored(scorer, ctx, group("ac", "abc"))
    assert second[0].components["reward"] == pytest.approx((a / (a + 3 * b) + 1.0) / 2)
    assert second[0].components["reward"] < first[0].components["reward"]
    assert scorer.metrics()["rubric/weight_min"] < 0.75
    for _ in range(20):
        scored(scorer, ctx, group("ac", "abc"))
    (alpha,) = scorer.state_dict()["alpha"].values()
    assert alpha[0] == pytest.approx(0.5, abs=1e-3) and min(alpha) >= POLICY.low, "what all pass loses weight, and not all of it"
    assert scored(POLICY.build(), ctx) == []


def test_a_static_reward_a_scale_of_a_category_and_verdicts_that_are_missing() -> None:
    criteria = POLICY.rubric.criteria
    static = updated_weights(replace(POLICY, lam=0.0), [1.0] * 3, np.array([[0.0, 1.0, 0.0], [1.0, 1.0, 0.0]]))
    assert static == [1.0, 1.0, 1.0]
    larger = tuple(replace(c, weight=7 * c.weight) if c.category == "x" else c for c in criteria)
    for scores in ((1.0, 0.0, 1.0), (0.0, 1.0, 0.0)):
        assert category_reward(criteria, (1, 1, 1), scores) == pytest.approx(category_reward(larger, (1, 1, 1), scores))
    few = np.array([[0.0, math.nan, 1.0], [1.0, math.nan, 0.0], [1.0, 1.0, 0.0]])
    assert updated_weights(POLICY, [1.0, 2.0, 1.0], few)[1] == 2.0, "fewer than 3 of 4 have a verdict"
    nothing = updated_weights(replace(POLICY, spread="variance"), [2.0] * 3, np.zeros((2, 3)))
    assert nothing == [1.5] * 3
    idle = replace(POLICY, rubric=Rubric(criteria=(*criteria, Criterion(name="d", text="?", category="z", weight=0.0))))
    assert len(updated_weights(idle, [1.0] * 4, np.zeros((2, 4)))) == 4
    for wrong in ({"lam": 2.0}, {"beta": 0.0}, {"low": 2.0}, {"high": 0.5}, {"spread": "range"}):
        with pytest.raises(ConfigError):
            replace(POLICY, **wrong)  # type: ignore[arg-type]


# ---- votes


def rater(messages: Sequence[Message]) -> str:
    """A mark by length; refuses where an answer says 'down'."""
    asked = messages[-1].content
    if "down" in asked:
        raise EngineError("no answer")
    answers = re.findall(r"Answer \d+, between two lines (\w+):\n\1\n(.*?)\n\1", asked, re.DOTALL)
    return f"Principles. Critique [3]. Scores: {[min(10, 1 + len(text)) for _, text in answers]}"


def test_votes_widen_the_scale_and_the_order_of_answers_changes_nothing() -> None:
    ctx = ScriptedScoring(replies={"judge": rater})
    check_scorer(GenerativeReward(samples=3), [(group("", "123", "12345678901"), [0.1, 0.4, 1.0])], ctx)
    assert votes([[1, 10]] * 8) == [8, 80]
    (down,) = scored(GenerativeReward(samples=2), ctx, group("down", "4"))
    assert [x.fault for x in down] == [Fault.INFRA] * 2
    assert GenerativeReward().judges == ("judge",)
    assert all(scorer.by_group for scorer in (GenerativeReward(), PairwiseJudge(), RubricJudge()))
    assert not DifficultyTag().by_group, "it compares groups with each other"
    with pytest.raises(ConfigError, match="at least once"):
        GenerativeReward(samples=0)
    with pytest.raises(ConfigError, match="meta twice"):
        GenerativeReward(samples=1, meta="critic")


def test_the_better_half_votes_and_a_meta_judge_without_a_view_leaves_a_plain_half() -> None:
    said: list[str] = []

    def drifting(messages: Sequence[Message]) -> str:
        said.append("")
        return f"Scores: [{1 + len(said) % 4}]"

    def critic(messages: Sequence[Message]) -> str:
        return "9" if "[4]" in messages[-1].content or "[3]" in messages[-1].content else "2"

    ctx = ScriptedScoring(replies={"judge": drifting, "critic": critic})
    ((score,),) = scored(GenerativeReward(samples=4, meta="critic"), ctx, group("x"))
    assert score.components["reward"] == 0.35, "3 and 4 voted"
    said.clear()
    for meta in (lambda m: "5", silent, lambda m: "none"):
        said.clear()
        ((plain,),) = scored(
            GenerativeReward(samples=4, meta="critic"), replace(ctx, replies={"judge": drifting, "critic": meta}), group("x")
        )
        assert plain.components["reward"] == 0.25, "the first two, 2 and 3"


def test_judges_are_trained_by_rank() -> None:
    assert judge_reward([7, 7], 0) == -1.0 and judge_reward([3, 8], 1) == 1.0
    assert judge_reward([1], 1) == 1.0 and judge_reward([1], 0) == -1.0
    assert keep_for_rejection([[7, 4], [3, 4], [5, 1]], 0) == [0, 2] and keep_for_rejection([[7, 4]] * 3, 0) == []
    for reply in ("[11]", "[0]", "none", "[1, 2]"):
        with pytest.raises(DataError):
            read_scores(reply, 1)


# ---- flawed positives


def steps(messages: Sequence[Message]) -> str:
    asked = messages[-1].content
    return "words" if "junk" in asked else "0" if "guess" in asked else "-1"


def test_a_flawed_right_answer_is_worth_less() -> None:
    ctx = ScriptedScoring(verifier=_Ends(), replies={"judge": steps})
    g = group("sum 4", "guess 4", "guess 5", "junk 4")
    (found,) = scored(FlawedPositive(), ctx, g)
    assert [x.components["reward"] for x in found] == [1.0, 0.0, -1.0, 1.0]
    assert [x.columns["flaw_judged"] for x in found] == [1.0, 1.0, 1.0, 0.0] and found[1].primary == 1.0
    assert FlawedPositive().judges == ("judge",) and FlawedPositive().floor(ctx) == {
        "correct": 0.0,
        "reward": -1.0,
        "flawed": 0.0,
    }

    def advantage(rewards: list[float]) -> float:
        return rewards[0] - sum(rewards) / len(rewards)

    assert advantage([0.0, 1.0, -1.0]) == 0.0 and advantage([0.0, -1.0, -1.0]) > 0 > advantage([0.0, 1.0, 1.0])
    (fault,) = scored(FlawedPositive(), replace(ctx, verifier=_Broken()), group("x"))
    assert fault[0].fault is Fault.VERIFIER
    with pytest.raises(ConfigError, match="penalty"):
        FlawedPositive(penalty=3.0)


def test_the_judge_of_flaws_is_trained_by_distance() -> None:
    assert [flaw_reward(p, w, 4) for p, w in ((None, None), (2, None), (None, 2), (0, 2), (2, 2))] == [1, -1, -1, 0.5, 1]


class _Ends:
    """Right where the text ends with the gold."""

    names = ("correct",)

    def __call__(self, task: Any, rollout: Any) -> Score:
        return Score(components={"correct": float(rollout.text.endswith(task.private["answer"]))})


class _Broken:
    names = ("correct",)

    def __call__(self, task: Any, rollout: Any) -> Score:
        return Score(components={}, fault=Fault.VERIFIER)


# ---- thinking


def thoughts(messages: Sequence[Message]) -> str:
    asked = messages[-1].content
    return "all of it" if "junk" in asked else "0.5" if "good" in asked else "0.3"


def test_trust_falls_where_wrong_reasoning_is_liked_and_the_mark_fades() -> None:
    assert trust_weight([], [0.3]) == trust_weight([0.5], [0.3]) == 1.0 and trust_weight([0.3], [0.5]) == pytest.approx(
        0.8187, abs=1e-4
    )
    ctx = ScriptedScoring(verifier=_Ends(), replies={"judge": thoughts})
    (found,) = scored(ThinkingReward(), ctx, group("good 4", "so 5", "junk 4"))
    assert [x.components["reward"] for x in found] == pytest.approx([1 + 0.3 * 0.5, 0.3 * 0.3, 1.0])
    assert [x.columns["thinking_judged"] for x in found] == [1.0, 1.0, 0.0]
    (doubted,) = scored(ThinkingReward(), ctx, group("so 4", "good 5"))
    assert doubted[0].components["reward"] == pytest.approx(1 + 0.8187 * 0.3 * 0.3, abs=1e-4)
    (late,) = scored(ThinkingReward(steps=10.0), replace(ctx, step=10), group("good 4", "so 5"))
    assert late[0].components["reward"] == pytest.approx(1 + 0.110 * 0.5, abs=1e-3)
    (same,) = scored(ThinkingReward(), replace(ctx, replies={"judge": silent}), group("good 4", "so 4"))
    assert [x.components["reward"] for x in same] == [1.0, 1.0], "all right: the judge is not asked"
    (skipped,) = scored(ThinkingReward(skip_wrong=True), ctx, group("so 4", "good 5"))
    assert skipped[0].components["reward"] == pytest.approx(1.09) and skipped[1].components["thinking"] == 0.0
    broken = replace(ctx, verifier=_Broken())
    assert scored(ThinkingReward(), broken, group("x"))[0][0].fault is Fault.VERIFIER
    assert ThinkingReward().judges == ("judge",) and ThinkingReward().floor(ctx)["reward"] == 0.0
    with pytest.raises(ConfigError, match="steps=0"):
        ThinkingReward(steps=0.0)


def test_a_group_with_a_fault_keeps_it_and_the_others_have_marks() -> None:
    class Half(_Ends):
        def __call__(self, task: Any, rollout: Any) -> Score:
            return _Broken()(task, rollout) if "down" in rollout.text else super().__call__(task, rollout)

    ctx = ScriptedScoring(verifier=Half(), replies={"judge": thoughts})
    (found,) = scored(ThinkingReward(), ctx, group("good 4", "so 5", "down"))
    assert [x.valid for x in found] == [True, True, False] and found[0].components["thinking"] == 0.5


# ---- difficulty tags


def test_the_totals_of_the_sheet() -> None:
    ctx = ScriptedScoring(verifier=_Ends())

    def total(text: str, *others: str) -> float:
        (found,) = scored(DifficultyTag(), ctx, group(text, *others))
        return found[0].components["reward"]

    right, wrong = ["[Easy] .... 4"] * 10, "[Hard]" + "." * 40 + "5"
    easy = "[Easy]" + "." * 16 + "4"
    assert len(easy) * 2 == 46 and len(wrong) == 47
    half = total("[Easy]" + "." * 16 + "4", *right, "[Hard]" + "." * 39 + "5")  # half as long as the longest, 46
    assert half == pytest.approx(1.75)
    near = total("[Easy]4", *right, "[Hard]" + "." * 10_000 + "5")
    assert near == pytest.approx(2.0, abs=1e-3)
    failing = ["[Hard] 5"] * 9
    assert total("[Hard] 4", *failing) == 1.5
    assert total("4", *failing) == 0.5
    assert total("[Easy] 5", *failing) == -1.0
    assert total("[Easy]4", *failing, "[Hard]" + "." * 10_000 + "5") == pytest.approx(1.5, abs=1e-3)
    for count, label in ((10, "[Hard]"), (11, "[Easy]")):
        texts = [f"{label} 4"] * count + [f"{label} 5"] * (16 - count)
        assert scored(DifficultyTag(), ctx, group(*texts))[0][0].components["tag"] == 1.0
    assert scored(DifficultyTag(), replace(ctx, verifier=_Broken()), group("x"))[0][0].fault is Fault.VERIFIER
    assert DifficultyTag().floor(ctx)["tag"] == -1.0
    for make in (lambda: DifficultyTag(easy="[E", hard="[E]"), lambda: DifficultyTag(easy=""), lambda: DifficultyTag(bar=2.0)):
        with pytest.raises(ConfigError):
            make()
    check_scorer(DifficultyTag(), [(group("[Easy] 4", "5"), [1.0, 0.0])], ctx)


# ---- pairs


def compare(first_wins: bool = False) -> Any:
    def reply(messages: Sequence[Message]) -> str:
        asked = messages[-1].content
        if "junk" in asked:
            return "both"
        (_, a), (_, b) = re.findall(r"between two lines (\w+):\n\1\n(.*?)\n\1", asked, re.DOTALL)
        return "A" if first_wins or len(a) > len(b) else "tie" if len(a) == len(b) else "B"

    return reply


def test_both_orders_cancel_a_preference_for_the_first_place() -> None:
    ctx = ScriptedScoring(replies={"judge": compare()})
    check_scorer(PairwiseJudge(), [(group("long one", "4", "", "junk"), [1.0, 0.5, 0.0, None])], ctx)
    biased = replace(ctx, replies={"judge": compare(first_wins=True)})
    (found,) = scored(PairwiseJudge(offset=0.5), biased, group("long one", ""))
    assert [x.components["reward"] for x in found] == [0.0, 0.0] and found[0].columns == {"win": 0.5, "loss": 0.5}
    assert PairwiseJudge(offset=0.5).floor(ctx) == {"reward": -0.5}
    with pytest.raises(ConfigError, match="samples=0"):
        PairwiseJudge(samples=0)
    with pytest.raises(DataError, match="no text in its private 'reference'"):
        scored(PairwiseJudge(anchor="reference"), ctx, group("x"))
    with pytest.raises(DataError, match="none of A, B"):
        read_preference("C")


def test_the_mean_of_samples_is_a_generative_judges_probability() -> None:
    """A for 3 of 4 samples where the answer stands first, and for 1 of 4 where the anchor does: (.75 + 1 - .25) / 2."""
    asked: Counter[str] = Counter()

    def drawn(messages: Sequence[Message]) -> str:
        question = messages[-1].content
        asked[question] += 1
        first = question.index("\nlong one\n") < question.index("\n4\n")
        return "A" if asked[question] <= (3 if first else 1) else "B"

    (found,) = scored(PairwiseJudge(samples=4), ScriptedScoring(replies={"judge": drawn}), group("long one"))
    assert found[0].components["reward"] == 0.75 and found[0].columns == {"win": 0.75, "loss": 0.25}
    assert sorted(asked.values()) == [4, 4]
