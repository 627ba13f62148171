"""Runs whose answers state confidences: learned from, measured in evaluations, and shown by `assay eval`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assay.testing import JudgeServer

RECIPE = """
from dataclasses import replace

from assay.core.rollout import Sampling
from assay.guide import Uniform
from assay.objective.methods import dr_grpo
from assay.recipes import confidence
from assay.runtime.settings import AdamW, DecoderShape, LearnerSettings, Muon
from assay.train.models import Scratch
from assay.train.stages import WarmUp

SHAPE = DecoderShape(
    hidden_size=32, num_layers=2, num_heads=2, num_kv_heads=1, head_dim=16, intermediate_size=64, max_positions=32
)


def small(seed: int = 0):
    run = confidence(seed)
    (stage,) = run.stages
    stage = replace(stage, steps=3, groups=4, group_size=4)
    warm = WarmUp(steps=80, batch=32, demonstrations=400, learner=LearnerSettings(optimizer=Muon(lr=8e-3)))
    evaluation = replace(run.evaluation, every=0, per_level=8, final_per_level=8)
    return replace(run, model=Scratch(shape=SHAPE, seed=seed), stages=(warm, stage), evaluation=evaluation)
"""


@pytest.fixture
def trained(assay, tmp_path: Path) -> Path:
    (tmp_path / "conf.py").write_text(RECIPE)
    said = assay("train", "conf.py:small", "--folder", "run", "--plain", "--no-report")
    assert said.code == 0, said.err
    return tmp_path / "run"


def test_a_stated_confidence_is_learned_from_and_measured(assay, trained: Path) -> None:
    metrics: list[dict[str, Any]] = [json.loads(line)["metrics"] for line in (trained / "metrics.jsonl").read_text().splitlines()]
    learned = [m for m in metrics if "reward/component/calibration" in m]
    assert len(learned) == 3 and {"reward/component/correct", "reward/component/reward"} <= learned[0].keys()
    assert any("calibration/sampled/ece" in m and "calibration/greedy/brier" in m for m in metrics)
    (items, *_) = [json.loads(line)["items"] for line in (trained / "evals.jsonl").read_text().splitlines()]
    assert all(len(i["confidence"]) == len(i["values"]) for i in items if "confidence" in i)

    seen: list[str] = []

    def reply(messages: list[Any]) -> str:
        seen.append(messages[-1].content)
        return "-1" if len(seen) % 2 else "0"

    with JudgeServer(reply) as server:
        judge = ("--reasoning-judge", server.url, "--reasoning-votes", "2")
        words = ("eval", trained, "--per-level", "8", "-n", "4", *judge)
        found = assay(*words, "--json").json
        assert found["calibration"]["answers"] > 0 and 0 <= found["calibration"]["ece"] <= 1
        cot, whole = found["reasoning"], found["all"]["metrics"]
        for name in ("pass@1", "pass@4"):
            values = [cot["cot"][rule]["metrics"][name]["value"] for rule in ("all", "majority", "any")]
            assert values == sorted(values) and values[-1] <= whole[name]["value"]
        assert cot["right"] == len(set(seen)) or cot["right"] * 2 == len(seen)
        shown = assay(*words)
    assert "stated confidence" in shown.out and "AUROC" in shown.out and "CoT-pass@k, all" in shown.out
    assert "reasoning right where the answer is" in shown.out


def test_votes_are_at_least_one(assay) -> None:
    said = assay("eval", "nowhere", "--reasoning-votes", "0")
    assert said.code == 2 and "--reasoning-votes 0" in said.err


def test_rewards_without_a_confidence_are_refused_in_words(assay, mine: Path) -> None:
    words = ("train", "mine.py:tiny", "--stages.0.reward.kind", "BrierReward", "--folder", "r", "--plain", "--no-report")
    said = assay(*words)
    assert said.code != 0 and "WithConfidence" in said.err
