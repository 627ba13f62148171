"""The stage on answers with rewards: rows, values, draws, refusals, and that it learns what is rewarded."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tiny_runs import SHAPE, SORTED, tiny

from assay.core.errors import AssayError
from assay.objective.credit.baseline import Against
from assay.objective.methods import a_lol, grpo, r_gold, weighted_bc
from assay.runtime import char_tokenizer
from assay.runtime.settings import AdamW, LearnerSettings
from assay.testing import check_stage
from assay.train import NamedMethod, OfflineReinforce, models, wire_run
from assay.train.models import Scratch
from assay.train.offline import RewardedRows
from assay.train.opening import open_stage
from assay.train.preflight import check_fits, check_run
from assay.train.run import ContaminationCheck, Run
from assay.verify import ScoringPool
from assay_tasks import SortDigits

ROWS = [
    {"prompt": r["prompt"], "answer": r[side], "reward": x} for r in SORTED for side, x in (("chosen", 1.0), ("rejected", 0.0))
]
FAST = LearnerSettings(optimizer=AdamW(lr=3e-3))


def offline(**changes: Any) -> OfflineReinforce:
    return OfflineReinforce(**({"data": ROWS, "steps": 3, "batch": 16, "objective": weighted_bc()} | changes))


def learning(*stages: Any) -> Run:
    return replace(tiny(), name="offline", stages=stages or (offline(),), contamination=ContaminationCheck(mode="off"))


def batches(stage: OfflineReinforce, steps: int) -> list[Any]:
    rows = RewardedRows(0, stage, char_tokenizer("S0123456789>"))
    return [rows.batch(i) for i in range(steps)]


def test_the_stage_keeps_the_contract_of_stages() -> None:
    rows = [
        {"prompt": f"{a}+{b}=", "answer": str(a + b + wrong), "reward": 1.0 - wrong}
        for a in range(4)
        for b in range(4)
        for wrong in (0, 1)
    ]
    bad = [offline(data=rows, batch=99), offline(data=[{"prompt": "1+1=", "answer": "2"}], batch=1)]
    check_stage(offline(data=rows, draw="advantage"), tasks=SortDigits(levels=(1, 2)), bad=bad)


def test_rows_of_a_question_are_a_group_with_their_rewards_and_its_value() -> None:
    rows = [{"prompt": "S1>", "answer": a, "reward": x} for a, x in (("1", 1.0), ("2", 0.0), ("3", 0.5))]
    (batch,) = batches(offline(data=[*rows, {"prompt": "S2>", "answer": "2", "reward": 0.25}], batch=4), 1)
    by_value = dict(zip(batch.rollout("components/reward").tolist(), batch.rollout("value_ref").tolist(), strict=True))
    assert by_value == {1.0: 0.5, 0.0: 0.5, 0.5: 0.5, 0.25: 0.25}
    assert len(np.unique(batch.rollout("group"))) == 2 and "row_weight" not in batch.rollouts


def test_the_values_are_of_the_references_answers_where_these_are_given() -> None:
    told = [{"prompt": "S1>", "answer": "9", "reward": 0.75}, {"prompt": "S9>", "answer": "9", "reward": 0.25}]
    rows = [{"prompt": p, "answer": "1", "reward": 1.0, "weight": 2.0} for p in ("S1>", "S7>")]
    (batch,) = batches(offline(data=rows, values=told, batch=2), 1)
    assert sorted(batch.rollout("value_ref").tolist()) == [0.5, 0.75], "the mean over all where a question has none"
    assert set(batch.rollout("row_weight")) == {2.0}


def test_rows_are_drawn_as_often_as_their_advantage_says() -> None:
    rows = [{"prompt": "S1>", "answer": str(i), "reward": x} for i, x in enumerate((0.0, 0.5, 1.0))]
    told = [{"prompt": "S1>", "answer": "9", "reward": 0.25}]
    found = np.concatenate(
        [b.rollout("components/reward") for b in batches(offline(data=rows, values=told, batch=3, draw="advantage"), 400)]
    )
    assert not (found == 0.0).any() and np.mean(found == 1.0) == pytest.approx(0.75, abs=0.05)  # 0.75 : 0.25


REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"data": [{"prompt": "S1>", "answer": "1"}], "batch": 1}, "row 1 has no 'reward'"),
    (
        {"data": [{"prompt": "S1>", "answer": "1", "reward": 1, "stream": "replay"}], "batch": 1},
        "'replay' in a stage OfflineReinforce",
    ),
    ({"batch": 500}, "batch=500, but the data has 180 rows"),
    ({"draw": "advantage", "data": [{"prompt": "S1>", "answer": "1", "reward": 1}], "batch": 1}, "no row's reward is above"),
    ({"objective": grpo()}, "acts on rows of on_policy, replay.*a_lol"),
    ({"objective": replace(a_lol(), scalarise=grpo().scalarise)}, "statistics of none of the stage's rows"),
    ({"objective": replace(a_lol(), credit=(Against("mine"),))}, "Against reads 'mine'"),
)


@pytest.mark.parametrize(("changes", "said"), REFUSED)
def test_what_the_rows_cannot_give_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(AssayError, match=said):
        check_run(learning(offline(**changes)))


def test_what_the_writer_gave_a_token_is_asked_for_where_it_is_read() -> None:
    from assay.objective.loss.policy import PolicyGradient
    from assay.objective.loss.ratio import Ratio

    compares = replace(a_lol(), policy=PolicyGradient(ratio=Ratio(anchor="engine"), streams=("offline",)))
    with pytest.raises(AssayError, match="has no 'logprobs', and PolicyGradient"):
        check_run(learning(offline(objective=compares)))
    known = [row | {"logprobs": [-0.1] * (len(row["answer"]) + 1)} for row in ROWS]
    check_run(learning(offline(objective=compares, data=known)))
    (batch,) = batches(offline(objective=compares, data=known), 1)
    assert set(batch.token("logp_engine")[batch.token("mask")]) == {np.float32(-0.1)}


def test_settings_and_rows_are_checked() -> None:
    with pytest.raises(AssayError, match=r"OfflineReinforce\.draw"):
        offline(draw="luck")
    long = [*ROWS, {"prompt": "S1>", "answer": "1" * 40, "reward": 1.0}]
    with pytest.raises(AssayError, match="the model's context holds 32"):
        check_fits(learning(offline(data=long)), models.load_source(Scratch(shape=SHAPE), lambda run, folder: folder))


def test_a_method_is_named() -> None:
    wired, _ = wire_run(learning(), {0: NamedMethod(method="a_lol", settings={})})
    assert [a.name for a in wired.stages[0].learner.anchors] == ["ref"]
    with pytest.raises(AssayError, match="does not learn from answers with rewards alone"):
        wire_run(learning(), {0: NamedMethod(method="grpo", settings={})})


@pytest.mark.slow
@pytest.mark.parametrize("objective", [a_lol("reference_free"), r_gold()])
def test_rewarded_answers_become_likelier_than_others(objective: Any) -> None:
    """Right answers are rewarded in one run and wrong ones in the other: each learns its own."""

    def chosen(rewards: tuple[float, float]) -> float:
        data = [row | {"reward": rewards[0] if row["reward"] else rewards[1]} for row in ROWS]
        run = learning(offline(data=data, steps=40, batch=32, objective=objective, learner=FAST))
        return _margin(run)

    assert chosen((1.0, 0.0)) > 0.5 and chosen((0.0, 1.0)) < -0.5


def _margin(run: Run) -> float:
    """Mean log-probability of a pair's right answer less that of its wrong one, in nats, when the run is over."""
    stage = run.stages[0]
    s = open_stage(run, stage, models.load_source(run.model, lambda run, folder: folder), ScoringPool(run.tasks.verifier()))

    async def work() -> None:
        for _ in range(stage.steps):
            await s.step()
            s.parts.stage_step += 1

    asyncio.run(work())
    tokenizer = s.parts.tokenizer
    found: list[float] = []
    for pair in SORTED[:40]:
        sides = [
            np.array([*tokenizer.encode(pair["prompt"] + pair[side]), tokenizer.eos], np.int32) for side in ("chosen", "rejected")
        ]
        right, wrong = s.parts.learner.score(sides)
        found.append(float(right.sum() - wrong.sum()))
    return float(np.mean(found))
