"""Folders of other models and adapters: both ways with transformers and PEFT, and what is wrong with bad ones."""

import json
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from hub_cases import DENSE, FAMILIES, hub_model
from learner_cases import Likelihood, random_batch

import assay.runtime.models.hub_files as hub_files
from assay.core.errors import ConfigError, DataError
from assay.core.plan import Plan
from assay.runtime.learner.learner import TorchLearner
from assay.runtime.models.exported import reload_exported, write_exported
from assay.runtime.models.hf import load_model, save_model
from assay.runtime.models.model import Model
from assay.runtime.settings import AdamW, LearnerSettings, Lora

LORA = Lora(rank=4)
ROW = torch.arange(2, 30)[None]


def same(first, second):
    return first.keys() == second.keys() and all(torch.equal(t, second[n]) for n, t in first.items())


def trained(model, adapter):
    made = TorchLearner(model, LearnerSettings(optimizer=AdamW(lr=3e-3), adapter=adapter), total_steps=9)
    for _ in range(2):
        made.step(random_batch(6), Plan(), Likelihood())
    return made


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_transformers_loads_what_assay_saves_and_the_reverse(family, tmp_path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = hub_model(family)
    save_model(model, tmp_path / "m")
    theirs, info = AutoModelForCausalLM.from_pretrained(tmp_path / "m", output_loading_info=True)
    assert not any(info[k] for k in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    with torch.no_grad():
        torch.testing.assert_close(theirs.eval()(ROW).logits, model.module()(ROW).logits)
    assert AutoTokenizer.from_pretrained(tmp_path / "m")("S12> ")["input_ids"] == model.tokenizer.encode("S12> ").tolist()
    theirs.to(torch.bfloat16).save_pretrained(tmp_path / "theirs")
    model.tokenizer.save(tmp_path / "theirs")
    again = load_model(tmp_path / "m")
    if isinstance(again, Model):  # assay's own decoder has this architecture
        assert family in ("qwen3", "llama") and same(dict(again.tensors), dict(model.tensors))
        return
    half = load_model(tmp_path / "theirs")
    assert same(dict(again.tensors), dict(model.tensors)) and again.shape == model.shape == half.shape
    assert {t.dtype for t in half.tensors.values()} == {torch.bfloat16}
    save_model(again, tmp_path / "twice")
    assert same(dict(load_model(tmp_path / "twice").tensors), dict(model.tensors))


def test_numbers_that_no_gradient_moves_are_kept(tmp_path):
    """DeepSeek's experts have a bias that lies in the files and is no parameter: without it tokens go to others."""
    from transformers import AutoModelForCausalLM, DeepseekV3Config

    sizes = {
        "vocab_size": 112,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "max_position_embeddings": 64,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "bos_token_id": None,
        "n_routed_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 16,
        "kv_lora_rank": 8,
        "q_lora_rank": 8,
        "qk_rope_head_dim": 4,
        "qk_nope_head_dim": 4,
        "v_head_dim": 8,
        "n_group": 1,
        "topk_group": 1,
        "first_k_dense_replace": 1,
    }
    with torch.random.fork_rng():
        torch.manual_seed(0)
        theirs = AutoModelForCausalLM.from_config(DeepseekV3Config(**sizes)).eval()
    (name,) = (n for n, _ in theirs.named_buffers() if n.endswith("e_score_correction_bias"))
    theirs.get_buffer(name).copy_(torch.linspace(-0.1001, 0.1001, 8))
    theirs.save_pretrained(tmp_path / "theirs")
    hub_model("phi").tokenizer.save(tmp_path / "theirs")
    model = load_model(tmp_path / "theirs")
    with torch.no_grad():
        torch.testing.assert_close(model.module()(ROW).logits, theirs(ROW).logits)
        plain = replace(model, tensors=model.tensors | {name: torch.zeros(8)}).module()
        assert float((plain(ROW).logits - theirs(ROW).logits).abs().max()) > 1e-3, "or nothing is seen of it"
    assert torch.equal(model.module(torch.bfloat16).get_buffer(name), theirs.get_buffer(name))
    save_model(trained(model, None).model(), tmp_path / "trained")
    assert torch.equal(load_model(tmp_path / "trained").tensors[name], theirs.get_buffer(name))
    (tmp_path / "out").mkdir()
    write_exported(model, tmp_path / "out", dtype="bfloat16")
    assert reload_exported(model, tmp_path / "out", [ROW[0].numpy()], [], dtype="bfloat16").tensors > 10
    other = replace(model, tensors=model.tensors | {name: torch.zeros(8)})
    with pytest.raises(DataError, match=f"{name} of the exported folder is not the run's"):
        reload_exported(other, tmp_path / "out", [ROW[0].numpy()], [], dtype="bfloat16")


def test_large_weights_are_shared_and_not_copied(tmp_path, monkeypatch):
    save_model(hub_model("gpt2"), tmp_path / "m")
    model = load_model(tmp_path / "m")
    save_model(model, tmp_path / "copied")
    monkeypatch.setattr(hub_files, "COPIED", 0)
    save_model(model, tmp_path / "linked")
    nodes = [os.stat(tmp_path / n / "model.safetensors").st_ino for n in ("m", "linked", "copied")]
    assert nodes[0] == nodes[1] != nodes[2]
    shutil.rmtree(tmp_path / "m")  # gone since it was read
    save_model(model, tmp_path / "alone")
    assert same(dict(load_model(tmp_path / "alone").tensors), dict(model.tensors))


@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")  # PEFT asks transformers for it
@pytest.mark.parametrize(
    ("family", "settings"),
    [
        *((f, LORA) for f in DENSE),
        *(pytest.param(f, replace(LORA, dora=True), marks=[] if f == "gemma2" else pytest.mark.prove) for f in DENSE),
    ],
    ids=lambda x: x if isinstance(x, str) else "dora" if x.dora else "lora",
)
def test_peft_loads_the_adapter_and_assay_loads_it_again(family, settings, tmp_path):
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    made = trained(hub_model(family), settings)
    save_model(made.model(), tmp_path / "m")
    base = AutoModelForCausalLM.from_pretrained(tmp_path / "m").eval()
    with torch.no_grad():
        before = base(ROW).logits
        found = PeftModel.from_pretrained(base, tmp_path / "m" / "adapter").eval()(ROW).logits
        wanted = made.policy.module(ROW).logits
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)
    assert float((found - before).abs().max()) > 1e-2
    for folder in (tmp_path / "m", tmp_path / "m" / "adapter"):
        again = load_model(folder)
        assert again.adapter is not None and same(dict(again.adapter.tensors), dict(made.model().adapter.tensors))
        next_ = TorchLearner(again, LearnerSettings(adapter=again.adapter.settings), total_steps=9)
        np.testing.assert_allclose(next_.score([ROW[0].int().numpy()])[0], made.score([ROW[0].int().numpy()])[0], atol=1e-5)


def test_an_adapter_for_another_base_is_refused(tmp_path):
    save_model(trained(hub_model("gpt2"), LORA).model(), tmp_path / "m")
    save_model(hub_model("gpt2", seed=1), tmp_path / "other")
    shutil.copytree(tmp_path / "m" / "adapter", tmp_path / "other" / "adapter")
    with pytest.raises(DataError, match="was trained beside another base than the one here"):
        load_model(tmp_path / "other")


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"peft_type": "IA3"}, ConfigError, "peft_type='IA3'; only LoRA and DoRA"),
        ({"modules_to_save": ["lm_head"]}, ConfigError, r"modules_to_save=\['lm_head'\] is not read; merge"),
        ({"base_model_name_or_path": "../absent"}, DataError, "its base '../absent' is no folder here"),
        ({"r": 8}, DataError, "does not fit its base"),
        ({"target_modules": ["q_proj"]}, ConfigError, "Lora.targets=.*linear layers are called"),
    ],
)
def test_bad_adapters_are_named(tmp_path, changes, error, words):
    save_model(trained(hub_model("gpt2"), LORA).model(), tmp_path / "m")
    path = tmp_path / "m" / "adapter" / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(error, match=words):
        load_model(path.parent)


@pytest.mark.slow
def test_missing_and_damaged_files_are_named(tmp_path):
    save_model(trained(hub_model("gpt2"), LORA).model(), tmp_path / "m")
    for name, said in (
        ("config.json", "config.json"),
        ("model.safetensors", "no readable weights"),
        ("tokenizer.json", "tokenizer.json"),
        ("adapter/adapter_config.json", "adapter_config.json"),
        ("adapter/adapter_model.safetensors", "missing, truncated"),
    ):
        folder = shutil.copytree(tmp_path / "m", tmp_path / name.replace("/", "_"))
        (folder / name).unlink()
        with pytest.raises(DataError, match=said):
            load_model(folder)
    folder = shutil.copytree(tmp_path / "m", tmp_path / "half")
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[: len(data) // 2])
    with pytest.raises(DataError, match="holds no readable weights"):
        load_model(folder)
    folder = shutil.copytree(tmp_path / "m", tmp_path / "lacking")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "n_layer": 3}))
    with pytest.raises(DataError, match="its weights do not fit its config, missing keys"):
        load_model(folder)
    (folder / "config.json").write_text(json.dumps({**config, "quantization_config": {"bits": 4}}))
    with pytest.raises(ConfigError, match="quantised weights cannot be trained"):
        load_model(folder)
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "vit", "architectures": ["ViTModel"]}))
    with pytest.raises((ConfigError, DataError), match=r"ViT|vit|causal"):
        load_model(folder)
