"""RLPR by its published numbers: the mean probability, its base, and the filter by spread."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError
from assay.core.rollout import Completion, Ids, Rollout, Sampling, Span, Stop, ids_of
from assay.core.score import Score
from assay.core.scoring import RolloutGroup
from assay.core.task import Task
from assay.guide import Admitted
from assay.scorers import ReferenceProbability, SpreadFilter
from assay.scorers.reference import mean_probability, reasoning_of, reference_of, well_formed
from assay.scorers.spread import SpreadHistory
from assay.testing import CharCodec, ScriptedScoring, check_filter, check_scorer, graded_group, rollout_of
from assay.verify.user_reward import abstained

CODE = CharCodec("".join(map(chr, range(32, 127))))
WHY = "hm <answer>7</answer>"


def task_of(answer: Any = "abc", prompt: str = "Q>") -> Task:
    return Task(
        id="t",
        domain="d",
        arm="a",
        level=1,
        split="train",
        index=0,
        public=FrozenMap({"prompt": prompt}),
        private=FrozenMap({"answer": answer}),
    )


def said(task: Task, text: str, id: str = "r0") -> Rollout:
    """A rollout in the ids of `CODE`."""
    made = rollout_of(task, text, id=id)
    call = made.calls[0]
    ids = CODE.encode(text)
    done = Completion(
        ids=ids, logp_engine=np.full(len(ids), -1.0, np.float32), spans=call.completion.spans, stop=Stop.DONE, sampling=Sampling()
    )
    return replace(made, calls=(replace(call, prefix=CODE.encode("Q>"), completion=done),))


def group_of(*texts: str, task: Task | None = None, key: str = "g") -> RolloutGroup:
    task = task or task_of()
    rollouts = tuple(said(task, text, f"{key}/{i}") for i, text in enumerate(texts))
    return RolloutGroup(task=task, context=replace(rollouts[0].context, key=key), rollouts=rollouts)


def by_length(policy: float, base: float) -> Any:
    """Each token has this probability, by model; the policy's grows with the reasoning."""

    def logprob(row: Ids, model: str) -> NDArray[np.float32]:
        p = base if model == "base" else min(1.0, policy * len(row) / 10)
        return np.full(len(row), np.log(p), np.float32)

    return logprob


def scored(spec: ReferenceProbability, *groups: RolloutGroup, **ctx: Any) -> list[list[Score]]:
    found = asyncio.run(spec.build().score(groups, ScriptedScoring(tokenizer=CODE, **ctx)))
    return [list(scores) for scores in found]


def test_the_mean_is_of_probabilities_and_not_of_their_logarithms() -> None:
    assert mean_probability(np.log(np.array([0.2, 0.9, 0.01, 0.9], np.float32)), 3) == pytest.approx(0.6033, abs=1e-4)
    assert np.exp(np.log([0.9, 0.01, 0.9]).mean()) == pytest.approx(0.201, abs=1e-3)  # what it is not


def test_without_reasoning_nothing_is_gained_and_less_than_the_base_is_nothing() -> None:
    bare = group_of("<answer>whatever</answer>")
    for policy in (0.3, 0.7):
        ((score,),) = scored(ReferenceProbability(), bare, logprob_of=lambda row, model, p=policy: np.full(len(row), np.log(p)))
        assert score.components["probability"] == score.components["base"] and score.components["reward"] == 0.0
    ((worse,),) = scored(ReferenceProbability(), bare, logprob_of=by_length(0.1, 0.9))
    assert worse.components["probability"] < worse.components["base"] and worse.components["reward"] == 0.0


def test_the_row_is_the_policys_own_reasoning_with_the_reference_behind_it() -> None:
    rows: list[tuple[str, str]] = []

    def seen(row: Ids, model: str) -> NDArray[np.float32]:
        rows.append((model, CODE.decode(row)))
        return np.log(np.full(len(row), 0.5, np.float32))

    scored(ReferenceProbability(), group_of(WHY, "<answer>a</answer>", "none"), logprob_of=seen)
    assert rows == [("policy", "Q>hm <answer>abc"), ("policy", "Q><answer>abc"), ("base", "Q><answer>abc")]


def test_an_answer_without_a_place_for_the_reference_earns_nothing() -> None:
    asking = task_of(prompt="Q in <answer>")
    empty = replace(said(asking, "x", "g/1"), calls=())
    group = group_of("no mark", task=asking)
    group = replace(group, rollouts=(replace(empty, context=group.context), *group.rollouts))
    alone = replace(group, rollouts=group.rollouts[:1])
    beside = group_of("no mark", WHY)
    found = [scored(ReferenceProbability(), g, logprob_of=by_length(0.5, 0.1))[0] for g in (group, alone, beside)]
    for score in (*found[0], *found[1], found[2][0]):
        assert score.valid and score.components["probability"] == score.components["reward"] == score.components["format"] == 0.0
    assert found[2][1].components["reward"] > 0


@pytest.mark.parametrize("spread", [None, SpreadFilter()])
def test_a_group_that_nothing_asks_for_the_opening_abstains_and_is_counted(spread: SpreadFilter | None) -> None:
    """No 0 that the filter and the baseline would take for a reward, and the other groups are scored as without it."""
    scorer, ctx = ReferenceProbability(spread=spread).build(), ScriptedScoring(tokenizer=CODE, logprob_of=by_length(0.5, 0.1))
    lost, good = group_of("7", "so 7", key="a"), group_of(WHY, "7", key="b")
    first, second = asyncio.run(scorer.score([lost, good], ctx))
    assert all(abstained(x) and not x.components and "'<answer>'" in x.info["error"] for x in first)
    assert scorer.metrics()["reference/abstained"] == 0.5
    whole = ReferenceProbability(spread=spread).build()
    assert list(second) == list(asyncio.run(whole.score([good], ctx))[0])
    assert "reference/abstained" not in whole.metrics()
    assert {k: v for k, v in scorer.metrics().items() if k != "reference/abstained"} == whole.metrics()


def test_it_keeps_what_scorers_promise() -> None:
    groups = group_of(WHY, "hm hm <answer>abc</answer>", key="a"), group_of("<answer>", task=task_of(["xy", "z"]), key="b")
    ctx = ScriptedScoring(tokenizer=CODE, logprob_of=by_length(0.5, 0.2))
    rows = [len("Q>" + text) for text in ("hm <answer>abc", "hm hm <answer>abc", "<answer>xy")]
    wanted = [min(1.0, 0.5 * n / 10) - 0.2 for n in rows]
    report = check_scorer(ReferenceProbability(), [(groups[0], wanted[:2]), (groups[1], wanted[2:])], ctx)
    assert "exact resume" in report.passed and report.numbers == {"rollouts": 3}
    check_scorer(ReferenceProbability(spread=None), [(groups[0], wanted[:2])], replace(ctx, asked=[]))


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (WHY, True),
        ("<answer>7</answer> ", True),
        ("<answer>7", False),
        (WHY + "!", False),
        (WHY + WHY, False),
        ("7</answer>", False),
    ],
)
def test_the_form(text: str, right: bool) -> None:
    assert well_formed(text, "<answer>", "</answer>") is right
    assert well_formed("so =7", "=", "") and not well_formed("=7=", "=", "")
    ((score,),) = scored(ReferenceProbability(), group_of(text, task=task_of(prompt="Q in <answer>")))
    assert score.components["format"] == float(right)


def test_settings_and_tasks_that_cannot_be() -> None:
    with pytest.raises(ConfigError, match="opening=''"):
        ReferenceProbability(opening="")
    for answer in (None, 4, [], ""):
        with pytest.raises(DataError, match=r"task 't' has no text in its private 'answer'"):
            reference_of(task_of(answer), "answer")
    assert reference_of(task_of(["4", "four"]), "answer") == "4"


class Merged:
    """A tokenizer of which id 0 is ``=7``, one token over the end of the opening; a last id is silent, as an end token is."""

    texts = ("=7", "a", "=", "7", "")

    def decode(self, ids: Any) -> str:
        return "".join(self.texts[int(i)] for i in ids)

    def encode(self, text: str) -> Ids:
        return ids_of([self.texts.index(c) for c in text])


def test_an_opening_that_ends_within_a_token_is_encoded_again() -> None:
    code: Any = Merged()
    for ids, wanted in (([1, 0], [1, 2]), ([1, 2, 3], [1, 2]), ([1, 2, 4], [1, 2]), ([1, 1], None)):
        made = said(task_of(), "x")
        call = made.calls[0]
        done = replace(
            call.completion, ids=ids_of(ids), logp_engine=np.zeros(len(ids), np.float32), spans=(Span(0, 0, len(ids)),)
        )
        found = reasoning_of(replace(made, calls=(replace(call, prefix=ids_of([3]), completion=done),)), code, "=")
        assert (None if found is None else found.tolist()) == (None if wanted is None else [3, *wanted])


# ---- the filter by spread


def test_the_filter_begins_when_it_should_and_follows_the_running_mean() -> None:
    history = SpreadHistory(SpreadFilter(share=0.5, decay=0.99))
    for step in range(100, 105):  # steps 1 to 5 of the stage
        assert history.admit(step, [0.0, 1.0]) == [True, True] and history.mean is None
    assert history.admit(105, [0.2, 0.4]) == [True, True] and history.mean == pytest.approx(0.3)
    for step in range(106, 110):
        assert all(history.admit(step, [0.0]))
    mean = 0.3 * 0.99**4
    assert history.mean == pytest.approx(mean)
    assert history.admit(110, [mean / 2 - 1e-9, mean / 2 + 1e-9]) == [False, True]
    assert history.mean == pytest.approx(0.99 * mean + 0.01 * mean / 2)
    copy = SpreadHistory(SpreadFilter(share=0.5, decay=0.99))
    copy.load_state_dict(history.state_dict())
    assert copy.admit(111, [0.01, 1.0]) == history.admit(111, [0.01, 1.0]) and copy.state_dict() == history.state_dict()
    fresh = SpreadHistory(SpreadFilter())
    fresh.load_state_dict(SpreadHistory(SpreadFilter()).state_dict())
    assert fresh.mean is None and fresh.admit(0, []) == []


def test_groups_that_differ_too_little_are_marked_and_left_out() -> None:
    spec = ReferenceProbability(spread=SpreadFilter(share=1.0, mean_from=1, filter_from=2))
    even, uneven = group_of(WHY, WHY, key="even"), group_of("<answer>", WHY, key="uneven")
    scorer = spec.build()
    for step, marks in ((7, [1.0, 1.0]), (8, [0.0, 1.0])):
        ctx = ScriptedScoring(tokenizer=CODE, logprob_of=by_length(0.3, 0.1), step=step)
        found = asyncio.run(scorer.score([even, uneven], ctx))
        assert [s.columns["admitted"] for scores in found for s in scores] == [m for m in marks for _ in range(2)]
    assert scorer.metrics()["reference/admitted"] == 0.5 and scorer.metrics()["reference/spread"] > 0
    groups = [
        graded_group(task_of(), [Score(components={"reward": v}, columns={"admitted": m}) for v in (0.0, 1.0)], key=f"g{m}")
        for m in (0.0, 1.0)
    ]
    assert [Admitted().select(g) for g in groups] == [None, groups[1]]
    plain = graded_group(task_of(), [0.0, 1.0])
    assert Admitted().select(plain) is plain and check_filter(Admitted()).passed


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"share": -1.0}, "share=-1.0"),
        ({"decay": 1.0}, "decay=1.0"),
        ({"mean_from": 0}, "mean_from=0"),
        ({"filter_from": 2}, "filter_from=2"),
    ],
)
def test_filter_settings_that_cannot_be(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        SpreadFilter(**settings)
