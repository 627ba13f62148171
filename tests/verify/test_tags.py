"""The form of a text: alone, bound to an answer, and as part of a classification."""

import random
import re

import pytest

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.rollout import Stop
from assay.core.score import Fault, Score
from assay.core.task import Task
from assay.verify import (
    Classification,
    ExactMatch,
    Formatted,
    Numeric,
    PatternMatch,
    RewardFunction,
    TagFormat,
    TagShare,
    Together,
    task_and_rollout,
)
from assay.verify.text.tags import tag_fault

GOOD = "<think>a</think><answer>4</answer>"
NO_FORM = "<answer>4</answer>"
WRONG = "<think>a</think><answer>5</answer>"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (GOOD, 1.0),
        ("\n<think>\na\n</think>\n\n<answer>4</answer>\n", 1.0),
        (NO_FORM, 0.0),
        ("", 0.0),
        ("<think>a</think><think>b</think><answer>4</answer>", 0.0),  # a tag twice
        ("<think>a<answer>4</answer></think>", 0.0),  # nested
        ("<think>a<think>b</think></think><answer>4</answer>", 0.0),  # nested in itself
        ("<think>a</think><answer>4</answer></answer>", 0.0),
        ("<answer>4</answer><think>a</think>", 0.0),
        ("x <think>a</think><answer>4</answer>", 0.0),
        ("<think>a</think> so <answer>4</answer>", 0.0),
        (f"{GOOD} x", 0.0),
        ("<think>a<answer></think>4</answer>", 0.0),
        ("</think>a<think><answer>4</answer>", 0.0),
        ("<think></think><answer></answer>", 1.0),
    ],
)
def test_form(text: str, value: float) -> None:
    score = TagFormat()(*task_and_rollout("", text))
    assert dict(score.components) == {"format": value}
    assert score.info["verdict"] == ("formatted" if value else "malformed")


@pytest.mark.parametrize(
    ("text", "share", "missing"),
    [
        (GOOD, 1.0, []),
        ("</answer>5<answer></think><think>", 1.0, []),  # the order is another rule's
        ("<think>a<answer>4</answer>", 0.75, ["</think>"]),
        (f"{GOOD} <answer>5</answer>", 0.5, ["<answer>", "</answer>"]),
        ("4", 0.0, ["<think>", "</think>", "<answer>", "</answer>"]),
    ],
)
def test_share_of_marks(text: str, share: float, missing: list[str]) -> None:
    score = TagShare()(*task_and_rollout("", text))
    assert dict(score.components) == {"tags": share} and list(score.info["missing"]) == missing
    assert tuple(score.components) == TagShare().names
    with pytest.raises(ConfigError, match=r"TagShare\.tags"):
        TagShare(("a", "a"))


def test_form_settings() -> None:
    assert TagFormat(filled=True)(*task_and_rollout("", "<think> </think><answer>4</answer>")).info["why"] == "a tag is empty"
    assert TagFormat(filled=True)(*task_and_rollout("", GOOD)).primary == 1.0
    assert TagFormat()(*task_and_rollout("", GOOD, stop=Stop.LENGTH)).info["verdict"] == "unfinished"
    assert TagFormat(tags=("a",))(*task_and_rollout("", "<a>x</a>")).primary == 1.0
    for tags in ((), ("a", "a"), ("<a>",), ("",)):
        with pytest.raises(ConfigError, match=re.escape("TagFormat.tags=")):
            TagFormat(tags=tags)


def test_form_against_a_regular_expression() -> None:
    """R2's rule said in another way: a full match, and each mark once."""
    rng = random.Random(8)
    pieces = ["<think>", "</think>", "<answer>", "</answer>", "x", " ", "\n", "<", "</b>"]
    whole = re.compile(r"\s*<think>(.*?)</think>\s*<answer>(.*?)</answer>\s*", re.DOTALL)
    right = 0
    for _ in range(20_000):
        text = "".join(rng.choices(pieces, k=rng.randint(0, 4))) if rng.random() < 0.2 else GOOD
        for _ in range(rng.randint(0, 2)):
            at = rng.randint(0, len(text))
            text = text[:at] + rng.choice(pieces) + text[at:]
        once = all(len(re.findall(re.escape(mark), text)) == 1 for mark in pieces[:4])
        wanted = bool(whole.fullmatch(text)) and once
        right += wanted
        assert (not tag_fault(text, ("think", "answer"))) == wanted, text
    assert 4000 < right < 16_000


def test_gate() -> None:
    """R2: behind a gate a right answer in a wrong form is worth what a wrong answer is."""
    gate = Formatted(combine="gate")
    values = {text: gate(*task_and_rollout("4", text)).primary for text in (GOOD, NO_FORM, WRONG)}
    assert values == {GOOD: 1.0, NO_FORM: 0.0, WRONG: 0.0}
    score = gate(*task_and_rollout("4", NO_FORM))
    assert dict(score.components) == {"reward": 0.0, "answer": 1.0, "format": 0.0}
    assert score.info["verdict"] == "malformed" and gate(*task_and_rollout("4", WRONG)).info["verdict"] == "different"
    lowest = Formatted(RewardFunction(lambda p, c, row: 1.0, floor=-1.0), combine="gate")
    assert lowest(*task_and_rollout("4", NO_FORM)).primary == -1.0 and lowest.floor == {
        "reward": -1.0,
        "answer": -1.0,
        "format": 0.0,
    }
    assert not lowest.trusted and gate.trusted


def test_additive_and_override() -> None:
    rlpr = Formatted(combine="additive", weight=0.1)
    assert [rlpr(*task_and_rollout("4", t)).primary for t in (GOOD, NO_FORM, WRONG, "")] == pytest.approx([1.0, 0.9, 0.1, 0.0])
    router = Formatted(combine="override")
    assert [router(*task_and_rollout("4", t)).primary for t in (GOOD, NO_FORM, WRONG, "")] == [1.0, -1.0, 0.0, -1.0]
    assert (router.floor["reward"], rlpr.floor["reward"]) == (-1.0, 0.0)


def test_what_formatted_keeps_and_refuses() -> None:
    with_f1 = Formatted(ExactMatch(f1=True, where="tag"))
    assert with_f1.names == ("reward", "answer", "format", "f1")
    assert with_f1(*task_and_rollout("4 5", GOOD)).components["f1"] == pytest.approx(2 / 3)
    assert Formatted(Numeric(), TagFormat(("answer",)))(*task_and_rollout(4, NO_FORM)).primary == 1.0
    for settings, match in (({"weight": 1.5}, "weight"), ({"bad": float("nan")}, "bad")):
        with pytest.raises(ConfigError, match=match):
            Formatted(**settings)
    with pytest.raises(UnknownNameError, match="combine"):
        Formatted(combine="mean")
    with pytest.raises(ConfigError, match=r"gives \['format'\]"):
        Formatted(Together((ExactMatch(), TagFormat())))

    def broken(task: Task, rollout: object) -> Score:
        return Score(components={}, fault=Fault.INFRA, info=FrozenMap({"why": "x"}))

    assert Formatted(ExactMatch(), broken)(*task_and_rollout("4", GOOD)).fault is Fault.INFRA
    assert Formatted(broken)(*task_and_rollout("4", GOOD)).fault is Fault.INFRA


# ---- labels


@pytest.mark.parametrize(
    ("said", "correct", "form"),
    [
        ("<think>x</think><answer>Dog</answer>", 1.0, 1.0),
        ("dog", 1.0, 0.0),
        (" DOG \n", 1.0, 0.0),
        ("The dog", 0.0, 0.0),
        ("<think>x</think><answer>cat</answer>", 0.0, 1.0),
        ("dog <answer>cat</answer>", 0.0, 0.0),
        ("<answer></answer>", 0.0, 0.0),
    ],
)
def test_cls_rl(said: str, correct: float, form: float) -> None:
    assert dict(Classification()(*task_and_rollout("dog", said)).components) == {"correct": correct, "format": form}


def test_no_thinking() -> None:
    rule = Classification(thinking=False)
    assert rule.names == ("correct",)
    verdicts = {
        said: rule(*task_and_rollout("dog", said)) for said in ("dog", "Dog", " dog", "The dog", "<answer>dog</answer>", "")
    }
    assert [v.primary for v in verdicts.values()] == [1.0] + [0.0] * 5
    assert [v.info["verdict"] for v in verdicts.values()] == ["equal"] + ["different"] * 4 + ["unparsed"]


def test_labels_there_are() -> None:
    rule = Classification(labels=("dog", "Cat"))
    assert [rule(*task_and_rollout("cat", s)).info["verdict"] for s in ("CAT", "dog", "cow")] == [
        "equal",
        "different",
        "unparsed",
    ]
    for gold in ("cow", 3):
        with pytest.raises(DataError, match="none of the labels"):
            rule(*task_and_rollout(gold, "dog"))
    with pytest.raises(ConfigError, match="same"):
        Classification(labels=("dog", "Dog"))
    Classification(thinking=False, labels=("dog", "Dog"))


# ---- patterns


def test_patterns() -> None:
    assert PatternMatch()(*task_and_rollout("[0-9]{3}", "Answer: 123")).primary == 1.0
    assert PatternMatch()(*task_and_rollout("[0-9]{3}", "1234")).primary == 0.0
    assert PatternMatch(full=False, where="whole")(*task_and_rollout("b.", "abc")).primary == 1.0
    assert PatternMatch("A.b", flags="is")(*task_and_rollout(None, "a\nB")).primary == 1.0
    assert PatternMatch("x")(*task_and_rollout("y", "x")).primary == 1.0
    assert PatternMatch("x*", longest=3)(*task_and_rollout(None, "xxxx")).info["verdict"] == "unparsed"
    assert PatternMatch("x", where="tag")(*task_and_rollout(None, "x")).info["verdict"] == "unparsed"
    for settings in ({"pattern": "("}, {"flags": "q"}, {"longest": 0}):
        with pytest.raises(ConfigError, match="PatternMatch"):
            PatternMatch(**settings)
    for gold in ("(", None, 3):
        with pytest.raises(DataError, match="regular expression"):
            PatternMatch()(*task_and_rollout(gold, "x"))
