"""Pure verifiers: truth tables by hand, and the contracts that user functions are held to."""

import dataclasses
import math
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError, RewardError
from assay.core.rollout import Stop
from assay.core.score import Fault, Score, SpanScore
from assay.core.task import Task
from assay.testing import rollout_of
from assay.verify import ExactMatch, FormatIs, RewardFunction, ScoringPool, Together, judge, task_and_rollout
from assay.verify.reward_function import prompt_of, row_of


def task(**private: object) -> Task:
    return Task(
        id="t",
        domain="d",
        arm="a",
        level=1,
        split="train",
        index=0,
        public=FrozenMap({"prompt": "1+1="}),
        world=FrozenMap({"w": 1}),
        private=FrozenMap(private),
    )


TWO = task(answer="2")


@pytest.mark.parametrize(
    ("text", "stop", "strip", "value"),
    [
        ("2", Stop.DONE, False, 1.0),
        ("2", Stop.LENGTH, False, 0.0),  # cut off: not an answer
        ("2", Stop.PARTIAL, False, 0.0),
        (" 2\n", Stop.DONE, False, 0.0),
        (" 2\n", Stop.DONE, True, 1.0),
        ("22", Stop.DONE, False, 0.0),
        ("", Stop.DONE, True, 0.0),
    ],
)
def test_exact_match(text: str, stop: Stop, strip: bool, value: float) -> None:
    assert dict(ExactMatch(strip=strip)(TWO, rollout_of(TWO, text, stop=stop)).components) == {"correct": value}


def test_exact_match_reads_the_last_call_and_numbers_as_text() -> None:
    assert ExactMatch()(task(answer=2), rollout_of(TWO, "no", "2")).primary == 1.0
    assert ExactMatch()(TWO, rollout_of(TWO)).primary == 0.0


def test_exact_match_without_an_answer_is_an_error() -> None:
    with pytest.raises(DataError, match=r"'t' has no private 'answer'.*'rubric'"):
        ExactMatch()(task(rubric="x"), rollout_of(TWO, "2"))
    with pytest.raises(DataError, match="no private 'answer'"):
        FormatIs("[0-9]", like_answer=True)(task(), rollout_of(TWO, "2"))


@pytest.mark.parametrize(
    ("text", "stop", "like", "value"),
    [
        ("07", Stop.DONE, True, 1.0),
        ("07", Stop.LENGTH, True, 0.0),
        ("070", Stop.DONE, True, 0.0),
        ("070", Stop.DONE, False, 1.0),
        ("07\n", Stop.DONE, False, 0.0),  # `$` would have let the newline pass
        ("x07", Stop.DONE, False, 0.0),
        ("", Stop.DONE, False, 0.0),
    ],
)
def test_format(text: str, stop: Stop, like: bool, value: float) -> None:
    verdict = FormatIs("[0-9]+", like_answer=like)(task(answer="12"), rollout_of(TWO, text, stop=stop))
    assert dict(verdict.components) == {"format": value}


def test_format_refuses_a_bad_pattern() -> None:
    with pytest.raises(ConfigError, match=r"'\[0-9' is not a regular expression"):
        FormatIs("[0-9")


@dataclasses.dataclass(frozen=True)
class Says:
    score: Score

    def __call__(self, task: object, rollout: object) -> Score:
        return self.score


def test_together_joins_components_spans_and_info() -> None:
    span = SpanScore(0, 0, 1, "step", 0.5)
    extra = Says(Score(components={"style": 0.25}, spans=(span,), columns={"hard": 0.5}, info=FrozenMap({"why": "ok"})))
    verdict = Together((ExactMatch(), FormatIs("[0-9]"), extra))(TWO, rollout_of(TWO, "2"))
    assert dict(verdict.components) == {"correct": 1.0, "format": 1.0, "style": 0.25}
    assert verdict.spans == (span,)
    assert dict(verdict.columns) == {"hard": 0.5}
    assert dict(verdict.info) == {"why": "ok", "verdict": "equal"}


def test_together_is_trusted_when_all_parts_are() -> None:
    assert Together((ExactMatch(), FormatIs("a"))).trusted
    assert not Together((ExactMatch(), Says(Score(components={"x": 1.0})))).trusted
    assert Together((ExactMatch(), FormatIs("a"))).names == ("correct", "format")


def test_together_passes_a_fault_on() -> None:
    fault = Score(components={}, fault=Fault.VERIFIER)
    assert Together((ExactMatch(), Says(fault)))(TWO, rollout_of(TWO, "2")) is fault


def test_together_refuses_nothing_and_repetition() -> None:
    with pytest.raises(ConfigError, match="at least one"):
        Together(())
    with pytest.raises(ConfigError, match=r"two verifiers give the components \['correct'\]"):
        Together((ExactMatch(), ExactMatch(strip=True)))
    with pytest.raises(DataError, match=r"gave the components or columns \['correct'\]"):
        Together((ExactMatch(), Says(Score(components={"correct": 1.0}))))(TWO, rollout_of(TWO, "2"))
    twice = tuple(Says(Score(components={name: 1.0}, columns={"hard": 0.5})) for name in ("correct", "style"))
    with pytest.raises(DataError, match=r"gave the components or columns \['hard'\]"):
        Together(twice)(TWO, rollout_of(TWO, "2"))


@given(st.text(max_size=8), st.text(max_size=8))
def test_exact_match_is_string_equality(answer: str, text: str) -> None:
    assert ExactMatch()(task(answer=answer), rollout_of(TWO, text)).primary == float(answer == text)


# ---- judge


def test_judge_gives_the_verdict() -> None:
    assert judge(ExactMatch(), TWO, rollout_of(TWO, "2")).primary == 1.0


def test_judge_makes_an_exception_a_fault_with_its_traceback() -> None:
    def divide(task: object, rollout: object) -> Score:
        raise ZeroDivisionError("by zero")

    verdict = judge(divide, TWO, rollout_of(TWO, "2"))
    assert verdict.fault is Fault.VERIFIER
    assert not verdict.valid
    assert verdict.info["error"] == "ZeroDivisionError: by zero"
    assert "in divide" in verdict.info["traceback"]


def test_judge_refuses_what_is_no_score() -> None:
    verdict = judge(lambda t, r: 1.0, TWO, rollout_of(TWO, "2"))  # pyright: ignore
    assert verdict.fault is Fault.VERIFIER
    assert "returned a float: 1.0" in verdict.info["error"]


@pytest.mark.parametrize(("error", "told"), [("engine lost", "engine lost"), (None, "generation failed")])
def test_judge_does_not_show_failed_attempts(error: str | None, told: str) -> None:
    lost = dataclasses.replace(rollout_of(TWO, "2", stop=Stop.ERROR), error=error)
    verdict = judge(lambda t, r: 1 / 0, TWO, lost)  # pyright: ignore
    assert (verdict.fault, verdict.info["error"]) == (Fault.INFRA, told)


# ---- reward functions


@pytest.mark.parametrize(
    ("returned", "components"),
    [
        (0.5, {"reward": 0.5}),
        (1, {"reward": 1.0}),
        (True, {"reward": 1.0}),
        (np.float32(0.25), {"reward": 0.25}),
        (np.bool_(True), {"reward": 1.0}),
        (np.array(2.0), {"reward": 2.0}),
        ({"correct": 1, "style": 0.5}, {"correct": 1.0, "style": 0.5}),
    ],
)
def test_reward_function_takes_numbers_and_named_numbers(returned: object, components: dict[str, float]) -> None:
    assert dict(RewardFunction(lambda p, c, r: returned)(TWO, rollout_of(TWO, "2")).components) == components


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        ("1.0", "returned a str"),
        ([1.0], "returned a list"),
        (1j, "returned a complex"),
        (np.array([1.0]), "returned a ndarray"),
        (math.nan, "returned nan"),
        (-math.inf, "returned -inf"),
        (np.float64("nan"), "returned nan"),
        ({"a": math.nan}, "returned nan"),
        ({"a": "x"}, "returned a str"),
        ({}, "no component"),
    ],
)
def test_reward_function_refuses_anything_else(returned: object, told: str) -> None:
    with pytest.raises(RewardError, match=told) as caught:
        RewardFunction(lambda p, c, r: returned)(TWO, rollout_of(TWO, "2"))
    assert "'answer': '2'" in str(caught.value)  # the row


def test_none_is_no_score_and_no_zero() -> None:
    for returned in (None, {"correct": None}):
        score = RewardFunction(lambda p, c, r, returned=returned: returned)(TWO, rollout_of(TWO, "2"))
        assert (score.valid, dict(score.components), score.info["verdict"]) == (False, {}, "none")
    some = RewardFunction(lambda p, c, r: {"correct": True, "style": None})(TWO, rollout_of(TWO, "2"))
    assert dict(some.components) == {"correct": 1.0}
    batch = RewardFunction(lambda p, c, r: [None, np.bool_(True)], batched=True)
    assert batch.values(["p", "p"], ["a", "b"], [{}, {}]) == [{}, {"reward": 1.0}]


def test_errors_name_the_function() -> None:
    def odd(prompt: str, completion: str, row: object) -> object:
        return "much"

    with pytest.raises(
        RewardError, match=r"returned a str \('much'\) for row .*It is 'test_errors.*odd' \(.*test_exact.py:\d+\)"
    ):
        RewardFunction(odd)(TWO, rollout_of(TWO, "2"))


def test_reward_function_sees_prompt_completion_and_row() -> None:
    seen: list[object] = []
    row = {"prompt": "1+1=", "answer": "2", "tags": ["a", "b"]}
    RewardFunction(lambda p, c, r: seen.extend([p, c, r]) or 0.0)(task(row=row, answer="2"), rollout_of(TWO, "3"))
    assert seen == ["1+1=", "3", row]


def test_row_of_a_generated_task_is_all_it_has() -> None:
    assert row_of(TWO) == {"prompt": "1+1=", "w": 1, "answer": "2"}
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1+1?"}]
    assert prompt_of(dataclasses.replace(TWO, public=FrozenMap({"messages": chat}))) == "Be brief.\n1+1?"


def test_batched_reward_function() -> None:
    lengths = RewardFunction(lambda prompts, completions, rows: np.array([len(c) for c in completions]), batched=True)
    assert lengths.values(["p", "p"], ["a", "bcd"], [{}, {}]) == [{"reward": 1.0}, {"reward": 3.0}]
    assert lengths(TWO, rollout_of(TWO, "22")).primary == 2.0


@pytest.mark.parametrize(
    ("returned", "told"),
    [([1.0], "1 value for 2"), ([1.0] * 3, "3 values for 2"), (1.0, "list of 2 numbers, got a float"), ("12", "got a str")],
)
def test_batched_reward_function_must_return_one_value_each(returned: object, told: str) -> None:
    with pytest.raises(RewardError, match=told):
        RewardFunction(lambda p, c, r: returned, batched=True).values(["p", "p"], ["a", "b"], [{}, {}])


def test_reward_function_must_be_callable() -> None:
    with pytest.raises(ConfigError, match="is a SimpleNamespace; pass a function"):
        RewardFunction(SimpleNamespace())  # pyright: ignore


@pytest.mark.parametrize(
    ("pattern", "trusted"),
    [
        ("", True),
        ("[0-9]*", True),
        ("[0-9]{2}", True),
        (r"\d+\.\d", True),
        ("a{2}b{,3}c", True),
        ("^[^a]?$", True),
        (r"\(x\)+", True),
        ("(a+)+b", False),
        ("a*a*", False),
        ("a?b?", False),
        ("a|b", False),
        ("[[]", False),
        ("(a)", False),
        (r"a\1*", False),
        (r"(a)\1", False),
        ("a" * 201, False),
        ("a{2}{3}", False),
        ("(?i)a", False),
        ("a+?b+", False),
    ],
)
@pytest.mark.filterwarnings("ignore:Possible nested set")
def test_a_pattern_that_no_text_makes_slow_is_trusted(pattern: str, trusted: bool) -> None:
    try:
        made = FormatIs(pattern)
    except ConfigError:
        assert not trusted  # of those that are none
        return
    assert made.trusted is trusted
    if trusted:
        began = time.process_time()
        for text in ("0" * 200_000 + "x", "a" * 200_000 + "x", "(x" * 100_000):
            made(*task_and_rollout("", text))
        assert time.process_time() - began < 2.0


@pytest.mark.slow
def test_a_catastrophic_pattern_does_not_hang_training() -> None:
    slow = FormatIs("(a+)+b")
    items = [
        (task, replace(rollout, id=str(i)))
        for i, (task, rollout) in enumerate((task_and_rollout("", "a" * 40), task_and_rollout("", "aab")))
    ]
    with ScoringPool(Together((ExactMatch(), slow)), deadline=0.4) as pool:
        scores = pool.score(items)
    assert scores["1"].components["format"] == 1.0
    assert scores["0"].fault is Fault.POLICY and scores["0"].components["format"] == 0.0


def test_together_prepares_each_part() -> None:
    class Prepared(ExactMatch):
        def prepare(self) -> None:
            told.append("prepared")

    told: list[str] = []
    Together(parts=(Prepared(), FormatIs("[0-9]+"))).prepare()
    assert told == ["prepared"]


def test_together_judges_at_once_where_each_part_does() -> None:
    both = Together(parts=(FormatIs("[0-9]+"), ExactMatch()))
    score = both.at_once(*task_and_rollout("4", "4"))
    assert score is not None and dict(score.components) == {"format": 1.0, "correct": 1.0}
    slow = Together(parts=(ExactMatch(), FormatIs("(a+)+b")))
    assert slow.at_once(*task_and_rollout("4", "4")) is None
