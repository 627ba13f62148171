"""A reward model made here, in Hugging Face format: it scores the answer alone, and a policy learns what it likes."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_runs import SHAPE, only_rl, trained
from transformers import LlamaConfig, LlamaForSequenceClassification

from assay.core.errors import ConfigError
from assay.core.score import Fault
from assay.core.scoring import RolloutGroup
from assay.core.task import Message
from assay.runtime.models.classifier import SequenceClassifier
from assay.runtime.models.hf import save_model
from assay.runtime.settings import AdamW, LearnerSettings
from assay.scorers import RewardModel
from assay.testing import ScriptedScoring, check_scorer
from assay.train import models
from assay.train.models import Scratch
from assay.verify import rollout_of, task_and_rollout

LETTERS = "0123456789"


@pytest.fixture(scope="module")
def sevens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of two thousand weights that was taught to count sevens."""
    folder = tmp_path_factory.mktemp("reward")
    save_model(models.load_source(Scratch(shape=SHAPE), lambda run, place: place), folder)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = LlamaConfig(
            vocab_size=98,
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_labels=1,
            pad_token_id=0,
        )
        model = LlamaForSequenceClassification(config)
        tokens = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
        rng = np.random.default_rng(0)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        for _ in range(120):
            digits = rng.integers(0, 10, (32, 6))
            ids = torch.tensor([[tokens[LETTERS[d]] for d in row] for row in digits])
            wanted = torch.tensor((digits == 7).sum(1), dtype=torch.float32)
            loss = ((model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[:, 0] - wanted) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model.save_pretrained(folder)
    return folder


def group(*texts: str) -> RolloutGroup:
    task, _ = task_and_rollout("4", "4", prompt="12")
    rollouts = tuple(rollout_of(task, text, id=text or "-") for text in texts)
    return RolloutGroup(task=task, context=rollouts[0].context, rollouts=rollouts)


def rewards(spec: RewardModel, *texts: str) -> list[float]:
    (found,) = asyncio.run(spec.build().score([group(*texts)], ScriptedScoring()))
    return [x.components["reward"] for x in found]


def test_it_scores_what_it_was_taught_whatever_else_is_scored(sevens: Path) -> None:
    low, high, longer = rewards(RewardModel(path=str(sevens)), "1234", "7777", "77771")
    assert high > low + 1.0
    assert rewards(RewardModel(path=str(sevens), batch=1), "77771", "7777") == pytest.approx([longer, high], abs=1e-5)
    check_scorer(RewardModel(path=str(sevens)), [(group("1234", "7777"), [low, high])])
    assert rewards(RewardModel(path=str(sevens), lowest=high + 1), "1234") == [high + 1]
    assert rewards(RewardModel(path=str(sevens), max_tokens=4), "1234", "7777") != [low, high], "the prompt is cut off in front"


def test_altering_the_thought_leaves_the_reward_and_a_missing_mark_is_the_placeholder(sevens: Path) -> None:
    spec = RewardModel(path=str(sevens), answer_after="</t>", answer_end=".")
    first, second = rewards(spec, "7777</t>12.77", "1</t>12")
    assert first == second and rewards(spec, "7777") == rewards(RewardModel(path=str(sevens)), "7777")
    strict = replace(spec, strict=True, placeholder="0000")
    assert rewards(strict, "7777") == rewards(RewardModel(path=str(sevens)), "0000")


def test_a_chat_template_writes_the_conversation(sevens: Path) -> None:
    class Chats:
        chat_template = "any"

        def apply_chat_template(self, turns: list[dict[str, str]], **options: Any) -> list[int]:
            seen.extend(turns)
            return [5] * len(turns)

    seen: list[dict[str, str]] = []
    model = SequenceClassifier(sevens)
    model._tokenizer = Chats()
    (value,) = model.scores([[Message("user", "a"), Message("assistant", "b")]])
    assert math.isfinite(value) and seen == [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]


def test_what_is_no_number_is_a_fault_and_no_floor(sevens: Path) -> None:
    scorer = RewardModel(path=str(sevens)).build()
    assert scorer.metrics() == {} and scorer.state_dict() == {}
    scorer._model = type("M", (), {"scores": lambda self, rows: [math.nan for _ in rows]})()  # type: ignore[assignment]
    ((score,),) = asyncio.run(scorer.score([group("1")], ScriptedScoring()))
    assert score.fault is Fault.VERIFIER and "nan" in score.info["error"]


def test_folders_and_settings_that_cannot_be(sevens: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no sequence-classification model"):
        SequenceClassifier(tmp_path)
    settings: Any = json.loads((sevens / "config.json").read_text())
    two = tmp_path / "two"
    two.mkdir()
    for file in sevens.iterdir():
        (two / file.name).write_bytes(file.read_bytes())
    config = LlamaConfig.from_pretrained(two, num_labels=2)
    LlamaForSequenceClassification(config).save_pretrained(two)
    with pytest.raises(ConfigError, match="gives 2 numbers"):
        SequenceClassifier(two)
    assert settings["architectures"] == ["LlamaForSequenceClassification"]
    for wrong in ({"path": ""}, {"batch": 0}, {"strict": True}, {"lowest": -math.inf}):
        with pytest.raises(ConfigError):
            RewardModel(**({"path": "x"} | wrong))  # type: ignore[arg-type]


@pytest.mark.prove
def test_a_policy_learns_what_the_reward_model_likes(sevens: Path, tmp_path: Path) -> None:
    def ends(name: str, lr: float) -> tuple[float, float]:
        learner = LearnerSettings(optimizer=AdamW(lr=lr))
        run = only_rl(steps=16, groups=8, group_size=4, reward=RewardModel(path=str(sevens)), learner=learner)
        trained(run, tmp_path / name)
        lines = [json.loads(line)["metrics"] for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        found = [m["reward/mean"] for m in lines if "reward/mean" in m]
        return sum(found[:3]) / 3, sum(found[-3:]) / 3

    first, last = ends("learned", 2e-2)
    assert last > first + 0.3, (first, last)
    assert ends("control", 1e-9)[1] < first + 0.15
