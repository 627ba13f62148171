"""Stated confidence: how it is read, what it is worth, and that the verifier behind it sees the answer alone."""

from __future__ import annotations

import numpy as np
import pytest

from assay.core.canon import FrozenMap
from assay.core.errors import ConfigError, RewardError, UnknownNameError
from assay.core.scoring import RolloutGroup
from assay.core.task import Task
from assay.scorers import BrierReward, brier_reward
from assay.tasks import Rows, WithConfidence
from assay.testing import ContractError, ScriptedScoring, check_scorer, check_task_source
from assay.verify import ExactMatch, MathAnswer, Together, rollout_of, task_and_rollout
from assay.verify.abilities import abilities_of
from assay.verify.confidence import ConfidenceMarks, ConfidenceVerifier
from assay_tasks import KeyValue, SortDigits, Urns

SHORT = ConfidenceMarks("~", "")


@pytest.mark.parametrize(
    ("text", "value", "answer"),
    [
        ("4 <confidence>0.25</confidence>", 0.25, "4"),
        ("4 <confidence> 80 </confidence> ok", 0.8, "4  ok"),
        ("4 <confidence>1</confidence>", 1.0, "4"),
        ("4 <confidence>100%</confidence>", 1.0, "4"),
        ("4 <confidence>-1</confidence>", None, "4"),
        ("4 <confidence>high</confidence>", None, "4"),
        ("4 <confidence>0.2", None, "4 <confidence>0.2"),
        ("</confidence>4<confidence>", None, "</confidence>4<confidence>"),
        ("<confidence>1</confidence><confidence>1</confidence>", None, "<confidence>1</confidence><confidence>1</confidence>"),
        ("4", None, "4"),
    ],
)
def test_how_a_confidence_is_read_and_taken_out(text: str, value: float | None, answer: str) -> None:
    assert ConfidenceMarks().read(text) == value
    assert ConfidenceMarks().strip_statement(text) == answer


def test_the_sheets_numbers_and_that_the_true_rate_is_best() -> None:
    assert [round(brier_reward(c, q), 2) for c, q in ((1, 0.9), (0, 0.9), (0, 0.0))] == [0.99, -0.81, 0.0]
    grid = np.linspace(0, 1, 101)
    for p in (0.2, 0.5, 0.9):
        for form in ("paper", "code"):
            mean = [p * brier_reward(1, q, form) + (1 - p) * brier_reward(0, q, form) for q in grid]
            assert abs(grid[int(np.argmax(mean))] - p) < 1e-9
        assert abs(p * brier_reward(1, p) + (1 - p) * brier_reward(0, p) - p * p) < 1e-12
    assert [brier_reward(c, q, "code") for c, q in ((1, 1.0), (0, 1.0), (0, 0.0))] == [1.5, 0.5, 1.0]
    assert brier_reward(1, None, "code") == 0.0 and brier_reward(1, None) == -1.0
    with pytest.raises(UnknownNameError, match="paper"):
        BrierReward(form="papr")


def test_the_verifier_sees_the_answer_alone_wherever_it_runs() -> None:
    judge = ConfidenceVerifier(Together((ExactMatch(),)), SHORT)
    score = judge(*task_and_rollout("b", "b~0.7"))
    assert score.primary == 1.0 and score.columns == {"confidence": 0.7}
    assert score.components == {"correct": 1.0, "calibration": pytest.approx(0.91), "stated": 1.0}
    bare = judge(*task_and_rollout("b", "b"))
    assert bare.primary == 1.0 and bare.columns == {} and bare.components["calibration"] == bare.components["stated"] == 0.0
    assert judge.names == ("correct", "calibration", "stated") and judge.floor["calibration"] == 0.0
    assert abilities_of(judge).trusted and judge.by_text and judge.with_members((ExactMatch(),)).marks == SHORT
    slow = ConfidenceVerifier(MathAnswer(), SHORT)
    once = slow.at_once(*task_and_rollout("4", "4~0.5"))
    assert once is None or once.primary == 1.0
    task, rollout = task_and_rollout("b", "b~0.7")
    assert ConfidenceVerifier(ExactMatch()).with_members((ExactMatch(),))(task, rollout).primary == 0.0, "other marks"


def test_a_fault_of_the_verifier_stays_a_fault() -> None:
    from assay.core.score import Fault, Score

    class Broken:
        def __call__(self, task: Task, rollout: object) -> Score:
            return Score(components={}, fault=Fault.VERIFIER)

    score = ConfidenceVerifier(Broken(), SHORT)(*task_and_rollout("b", "b~0.7"))
    assert score.fault is Fault.VERIFIER and score.components == {} and BrierReward()._reward_score(score) is score


def test_marks_need_an_opening_and_demonstrations_a_confidence() -> None:
    with pytest.raises(ConfigError, match="opening is empty"):
        ConfidenceMarks("")
    with pytest.raises(ConfigError, match="shown="):
        WithConfidence(tasks=SortDigits(), shown=(2.0,))


def group(*texts: str, key: str = "g") -> RolloutGroup:
    task, _ = task_and_rollout("b", "b")
    rollouts = tuple(rollout_of(task, text, id=f"{key}/{i}") for i, text in enumerate(texts))
    return RolloutGroup(task=task, context=rollouts[0].context, rollouts=rollouts)


def test_the_reward_keeps_what_scorers_promise_and_leaves_accuracy_alone() -> None:
    ctx = ScriptedScoring(verifier=ConfidenceVerifier(ExactMatch(), SHORT))
    check_scorer(BrierReward(), [(group("b~0.9", "c~0.9", "b"), [1.0, 0.0, 1.0])], ctx)
    check_scorer(BrierReward(form="code"), [(group("b~0.9"), [1.0])], ctx)
    import asyncio

    ((right, wrong, bare),) = asyncio.run(BrierReward().score([group("b~0.9", "c~0.9", "b")], ctx))
    assert [round(x.components["reward"], 2) for x in (right, wrong, bare)] == [0.99, -0.81, -1.0]
    assert right.info["learned"] == "reward" and BrierReward().floor(ctx)["reward"] == -1.0
    with pytest.raises(RewardError, match="WithConfidence"):
        asyncio.run(BrierReward().score([group("b")], ScriptedScoring()))


# ---- the tasks


def test_any_family_can_ask_for_a_confidence() -> None:
    check_task_source(WithConfidence(tasks=SortDigits(levels=(3, 4)), marks=SHORT, request=""))
    asked = WithConfidence(tasks=SortDigits(levels=(3,)))
    task = asked.task("sort", 3, "train", 0)
    assert task.public["prompt"].endswith("as <confidence>0.8</confidence>.") and task.public["prompt"].startswith("S")
    assert set("<confide/>.S0\n") <= set(asked.alphabet) and asked.name == "sort" and asked.test_share == 0.1
    (turn,) = asked.trace(task, 0.0, np.random.default_rng(1)) or ()
    assert asked.verifier()(task, rollout_of(task, turn.content)).primary == 1.0
    rows = Rows([{"messages": [{"role": "user", "content": "2+2?"}], "answer": "4"}], test_share=0)
    chat = WithConfidence(tasks=rows)
    assert chat.task("rows", 1, "train", 0).public["messages"][0]["content"].startswith("2+2?\nThen state")
    assert "T" in chat.alphabet and chat.environment(chat.task("rows", 1, "train", 0).public_view()) is None
    assert WithConfidence(tasks=KeyValue()).arms() == KeyValue().arms()

    class NoOracle(SortDigits):
        __slots__ = ()
        alphabet = ""

        def trace(self, task: Task, noise: float, rng: np.random.Generator) -> None:  # type: ignore[override]
            return None

    silent = WithConfidence(tasks=NoOracle())
    assert silent.trace(task, 0.0, np.random.default_rng(0)) is None and silent.alphabet == ""


def test_urns_are_right_as_often_as_their_level_says() -> None:
    urns = Urns()
    with pytest.raises(ContractError, match=r"scores 0\.0, not 1"):  # whose outcome nobody can know
        check_task_source(Urns(levels=(7, 9)))
    for level in urns.levels:
        tasks = [urns.task("urns", level, "train", i) for i in range(2000)]
        right = sum(t.private["answer"] == urns.solve(t.public["prompt"]) for t in tasks) / len(tasks)
        assert abs(right - level / 10) < 0.04
    with pytest.raises(ConfigError, match="levels"):
        Urns(levels=(4,))


def test_rows_of_messages_keep_what_is_before() -> None:
    rows = Rows(
        [{"messages": [{"role": "system", "content": "x"}, {"role": "user", "content": "y"}], "answer": "4"}], test_share=0
    )
    task = WithConfidence(tasks=rows, request="how sure?").task("rows", 1, "train", 0)
    assert task.public["messages"][0]["content"] == "x" and isinstance(task.public, FrozenMap)
