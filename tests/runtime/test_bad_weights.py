"""Adapters where nothing would train them, and weights that are NaN: refused with the true reason."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hub_cases import hub_model
from safetensors.torch import load_file, save_file

from assay.core.errors import ConfigError, DataError
from assay.runtime import DecoderShape, LearnerSettings, Lora, TorchLearner, char_tokenizer, init_model, load_model, save_model
from assay.runtime.engine.settings import engine_for
from assay.runtime.learner.anchor_models import check_buildable
from assay.runtime.models.exported import write_exported
from assay.runtime.models.finite import check_weights
from assay.runtime.models.hub_files import load_hub

TARGETS = {
    "head": ("llama", ("lm_head",), r"lm_head is the head, where an adapter would never be trained"),
    "tied head": ("gpt2", ("lm_head",), r"lm_head is the head.*leave 'lm_head' out, or train all weights \(adapter=None\)"),
    "head among others": ("llama", ("q_proj", "lm_head"), r"lm_head is the head"),
    "embedding": ("llama", ("embed_tokens",), r"model.embed_tokens is an embedding, where an adapter would never be trained"),
    "embedding among others": ("llama", ("q_proj", "embed_tokens"), r"leave 'embed_tokens' out"),
    "positions": ("gpt2", ("wpe", "c_attn"), r"transformer.wpe is an embedding"),
    "misspelt among others": ("llama", ("q_proj", "v_prj"), r"no layer is called 'v_prj'; did you mean 'v_proj'\?"),
    "of another family": ("gpt2", ("c_attn", "q_proj"), r"no layer is called 'q_proj';.* called \['c_attn', 'c_fc', 'c_proj'\]"),
}


@pytest.mark.parametrize("name", TARGETS)
def test_an_adapter_that_would_never_be_trained_is_refused(name):
    family, targets, told = TARGETS[name]
    settings = LearnerSettings(adapter=Lora(rank=4, targets=targets))
    for build in (
        lambda: TorchLearner(hub_model(family), settings, total_steps=1),
        lambda: check_buildable(hub_model(family), settings),
    ):
        with pytest.raises(ConfigError, match=told):
            build()


@pytest.mark.parametrize("targets", [(), ("q_proj", "down_proj"), ("model.layers.1.self_attn.q_proj",)])
def test_adapters_on_layers_are_taken(targets):
    found = TorchLearner(hub_model("llama"), LearnerSettings(adapter=Lora(rank=4, targets=targets)), total_steps=1)
    assert found.parameters and not any("lm_head" in name for name in found.parameters)


def test_a_trained_adapter_on_the_head_says_what_to_do(tmp_path):
    """As PEFT would write it."""
    save_model(hub_model("llama").with_adapter(Lora(rank=4, targets=("q_proj",))), tmp_path / "model")
    folder = tmp_path / "model" / "adapter"
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps(config | {"target_modules": ["q_proj", "lm_head"]}))
    with pytest.raises(ConfigError, match=r"adapter_config.json: .*lm_head is the head.*merge it with PEFT"):
        load_hub(tmp_path / "model")


def test_an_adapter_whose_layers_are_named_by_a_pattern_is_read(tmp_path):
    """As PEFT would write it: on the queries of one layer alone."""
    only = Lora(rank=4, targets=("model.layers.1.self_attn.q_proj",))
    save_model(hub_model("llama").with_adapter(only), tmp_path / "model")
    path = tmp_path / "model" / "adapter" / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"target_modules": r".*\.layers\.1\..*q_proj"}))
    found = load_hub(tmp_path / "model").adapter
    assert found is not None and found.settings.targets == only.targets and len(found.tensors) == 2


# ---- NaN ---------------------------------------------------------------------------------------------------------------------


def spoil(folder: Path, name: str, value: float = float("nan")) -> Path:
    tensors = load_file(folder / "model.safetensors")
    tensors[name].view(-1)[0] = value
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_folder_with_nan_weights_is_refused_by_the_name_of_the_weight(value, tmp_path):
    save_model(init_model(DecoderShape(vocab_size=12), char_tokenizer("0123456789"), seed=0), tmp_path / "own")
    spoil(tmp_path / "own", "model.layers.0.mlp.up_proj.weight", value)
    with pytest.raises(DataError, match=r"own: weight model.layers.0.mlp.up_proj.weight holds 1 NaN or infinite number of"):
        load_model(tmp_path / "own")
    save_model(hub_model("gpt2"), tmp_path / "hub")
    spoil(tmp_path / "hub", "transformer.h.0.attn.c_proj.weight", value)
    found = load_model(tmp_path / "hub")
    uses: list[Any] = [lambda: TorchLearner(found, LearnerSettings(), total_steps=1), lambda: engine_for(found)]
    for use in uses:
        with pytest.raises(DataError, match=r"GPT2LMHeadModel: weight transformer.h.0.attn.c_proj.weight holds 1 NaN"):
            use()


def test_an_adapter_with_nan_is_refused_by_the_name_of_its_tensor(tmp_path):
    save_model(hub_model("llama").with_adapter(Lora(rank=4, targets=("q_proj",))), tmp_path / "model")
    path = tmp_path / "model" / "adapter" / "adapter_model.safetensors"
    tensors = load_file(path)
    name = sorted(tensors)[0]
    tensors[name].view(-1)[:2] = float("nan")
    save_file(tensors, path, metadata={"format": "pt"})
    with pytest.raises(DataError, match=r"adapter_model.safetensors: weight .*lora_A.* holds 2 NaN or infinite numbers of"):
        load_hub(tmp_path / "model")


def test_large_weights_are_no_nan():
    check_weights([("a", torch.full((4,), 3e38)), ("b", torch.zeros(2, dtype=torch.int64))], "here")


def test_an_export_of_nan_weights_does_not_blame_the_dtype(tmp_path):
    model = hub_model("gpt2")
    name = "transformer.h.0.attn.c_proj.weight"
    bad = model.tensors[name].clone()
    bad[0, 0] = float("nan")
    with pytest.raises(DataError, match=f"the model: weight {name} holds 1 NaN"):
        write_exported(replace(model, tensors={**model.tensors, name: bad}), tmp_path, dtype="float16")
