"""A folder in the hub's format with 50M weights learns from rows and a reward with no setting given."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from transformers import AutoModelForCausalLM, Qwen3Config

from assay.recipes import on_rows
from assay.runtime.models.hf import save_model
from assay.runtime.models.hub_model import HubModel
from assay.runtime.settings import AdamW, LearnerSettings
from assay.runtime.text.tokenizer import char_tokenizer
from assay.train import Evaluation, Imitate, train

pytestmark = pytest.mark.evidence


def write_look_alike(folder: Path) -> int:
    """Qwen3's architecture with 50M fresh weights and a tokenizer of characters; how many weights it has."""
    tokenizer = char_tokenizer("".join(map(chr, range(32, 127))) + "\n")
    config = Qwen3Config(
        hidden_size=512,
        num_hidden_layers=16,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=64,
        intermediate_size=1536,
        max_position_embeddings=1024,
        vocab_size=tokenizer.size,
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    made: Any = cast(Any, AutoModelForCausalLM).from_config(config, dtype=torch.float32)
    told = {**json.loads(made.config.to_json_string(use_diff=False)), "architectures": [type(made).__name__]}
    tensors = {name: parameter.detach() for name, parameter in made.named_parameters()}
    save_model(HubModel(config=told, tensors=tensors, tokenizer=tokenizer), folder)
    return sum(tensor.numel() for tensor in tensors.values())


def numbers(seed: int, digits: int, count: int) -> list[str]:
    draw = random.Random(seed)
    return list(dict.fromkeys(str(draw.randrange(10 ** (digits - 1), 10**digits)) for _ in range(count)))


def share(prompt: str, completion: str, row: dict[str, Any]) -> float:
    """The share of the places of an answer that are right."""
    right = sum(a == b for a, b in zip(completion, row["answer"], strict=False))
    return right / max(len(completion), len(row["answer"]))


def test_50m_weights_learn_with_no_setting_given(tmp_path: Path) -> None:
    """Three digits are demonstrated, four are learned from the reward alone; about six minutes on two cores."""
    assert 48e6 < write_look_alike(tmp_path / "fresh") < 52e6
    rows = [{"prompt": f"S{n}>", "answer": "".join(sorted(n))} for n in numbers(2, 4, 500)]
    shown = [{"prompt": f"S{n}>", "completion": "".join(sorted(n))} for n in numbers(1, 3, 600)]
    learner = LearnerSettings(optimizer=AdamW(lr=4e-4))
    begun = on_rows(rows, model=str(tmp_path / "fresh"), max_new_tokens=8)
    begun = replace(begun, stages=(Imitate(data=shown, steps=70, batch=32, learner=learner),), evaluation=Evaluation(every=0))
    train(begun, tmp_path / "base", progress=False)
    done = train(on_rows(rows, share, model=str(tmp_path / "base")), tmp_path / "learned", progress=False)
    assert done.accuracy_before is not None and done.accuracy is not None
    assert done.accuracy > done.accuracy_before + 0.2, done.sentence
