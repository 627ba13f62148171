"""Model folders: transformers loads what assay saves, assay loads what transformers saves, and bad folders say what is wrong."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from engine_reference import ALPHABET, hub_model, teacher_forced, write
from safetensors.torch import load_file, save_file

import assay.runtime.models.hf as hf
from assay.core.errors import ConfigError, DataError, StorageError
from assay.runtime.engine.decode import DecodePath
from assay.runtime.engine.weights import ServedWeights
from assay.runtime.models.hf import load_decoder, load_model, save_model
from assay.runtime.models.model import Model, init_model, parameter_shapes, with_arrays
from assay.runtime.settings import DecoderShape
from assay.runtime.text.tokenizer import char_tokenizer

SMALL = DecoderShape(vocab_size=45, hidden_size=32, num_layers=2, num_heads=4, num_kv_heads=2, head_dim=16, intermediate_size=40)
SHAPES = {
    "qwen3 tied": SMALL,
    "qwen3": replace(SMALL, num_heads=2, head_dim=8, tied=False),
    "llama": replace(SMALL, num_kv_heads=1, tied=False, qk_norm=False, rope_theta=777.0, norm_eps=1e-4, max_positions=33),
    "qwen3, some pairs still": replace(SMALL, rope_pairs=2),
    "llama, all pairs still": replace(SMALL, num_kv_heads=1, qk_norm=False, rope_pairs=0),
    "llama tied": replace(SMALL, vocab_size=41, hidden_size=24, num_heads=3, num_kv_heads=3, head_dim=8, qk_norm=False),
}


LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 1.0,
    "short_factor": [1.0, 1e30],
    "long_factor": [1.0, 1e30],
    "attention_factor": 1.0,
}


def logp(model: Model, row) -> np.ndarray:
    return DecodePath(ServedWeights(model.shape, model.tensors), 1).score([np.array(row, np.int32)])[0][1:]


@pytest.mark.parametrize("name", SHAPES)
def test_transformers_loads_what_assay_saves(tmp_path, name):
    shape = SHAPES[name]
    model = init_model(shape, char_tokenizer(ALPHABET), 3, init="fan_in")
    save_model(model, tmp_path / "deep" / "m")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    hub, info = AutoModelForCausalLM.from_pretrained(tmp_path / "deep" / "m", output_loading_info=True)
    assert not any(info[k] for k in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert type(hub).__name__ == ("Qwen3ForCausalLM" if shape.qk_norm else "LlamaForCausalLM")
    assert sum(p.numel() for p in hub.parameters()) == shape.parameters
    row = np.arange(2, 33) % 41
    assert np.abs(teacher_forced(hub.eval(), row) - logp(model, row)).max() <= 1e-5
    assert (
        AutoTokenizer.from_pretrained(tmp_path / "deep" / "m")("S12> ")["input_ids"] == model.tokenizer.encode("S12> ").tolist()
    )
    assert hub.generation_config.eos_token_id == 1
    again = load_model(tmp_path / "deep" / "m")
    assert again.shape == shape
    assert all(torch.equal(again.tensors[n], t) for n, t in model.tensors.items())
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["m"]  # no leftovers


@pytest.mark.parametrize(("kind", "tied"), [("qwen3", True), ("qwen3", False), ("llama", True), ("llama", False)])
@pytest.mark.parametrize("shards", [False, True])
def test_assay_loads_what_transformers_saves(tmp_path, kind, tied, shards):
    hub = hub_model(kind, tied=tied, rope_theta=3000.0, rms_norm_eps=1e-5)
    folder = write(hub, tmp_path / "m", **({"max_shard_size": "20KB"} if shards else {}))
    assert (folder / "model.safetensors.index.json").exists() == shards
    model = load_model(folder)
    assert (model.shape.rope_theta, model.shape.norm_eps, model.shape.tied) == (3000.0, 1e-5, tied)
    row = np.arange(2, 40)
    assert np.abs(teacher_forced(hub, row) - logp(model, row)).max() <= 1e-5


def test_a_loaded_model_does_not_hang_on_its_file(tmp_path):
    folder = write(hub_model(), tmp_path / "m")
    model, weights = load_model(folder), folder / "model.safetensors"
    with weights.open("r+b") as file:
        file.write(bytes(weights.stat().st_size))
    assert all(t.any() for t in model.tensors.values())


def test_half_precision_weights_become_float32(tmp_path):
    hub = hub_model().to(torch.bfloat16)
    model = load_model(write(hub, tmp_path / "m"))
    for name, tensor in model.tensors.items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, hub.state_dict()[name].float())


def edit(folder, **changes):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    for name, value in changes.items():
        config.pop(name, None)
        if value is not None:
            config[name] = value
    path.write_text(json.dumps(config))


def test_older_configs_are_read(tmp_path):
    """The rotary base beside the other fields, an empty scaling, no dtype, and defaults left out."""
    hub = hub_model("llama", kv_heads=4, rope_theta=3000.0)
    folder = write(hub, tmp_path / "m")
    edit(
        folder,
        rope_parameters=None,
        rope_theta=3000.0,
        rope_scaling=None,
        num_key_value_heads=None,
        architectures=None,
        dtype=None,
    )
    row = np.arange(2, 40)
    assert np.abs(teacher_forced(hub, row) - logp(load_model(folder), row)).max() <= 1e-5
    edit(folder, head_dim=None)
    with pytest.raises(DataError, match=r"'model.layers.0.self_attn.q_proj.weight' has shape \(64, 32\).* needs \(32, 32\)"):
        load_model(folder)  # the default is hidden_size / heads


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return write(hub_model(), tmp_path_factory.mktemp("hf") / "m")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"architectures": ["GPT2LMHeadModel"]}, "GPT2LMHeadModel is not supported; assay's decoder reads Qwen3For"),
        ({"architectures": None, "model_type": "gemma3"}, "gemma3 is not supported"),
        ({"architectures": None, "model_type": None}, "no architecture is not supported"),
        ({"attention_bias": True}, "attention_bias"),
        ({"mlp_bias": True}, "mlp_bias"),
        ({"rope_parameters": {"rope_type": "yarn", "rope_theta": 1.0}}, "yarn"),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "linear"),
        ({"rope_parameters": LONGROPE | {"short_factor": [1.0, 2.0]}}, "longrope"),
        ({"rope_parameters": LONGROPE | {"long_factor": [1.0, 1.0]}}, "longrope"),
        ({"rope_parameters": LONGROPE | {"short_factor": [1e30, 1.0], "long_factor": [1e30, 1.0]}}, "longrope"),
        ({"rope_parameters": LONGROPE | {"attention_factor": 1.2}}, "longrope"),
        ({"rope_parameters": LONGROPE | {"rope_type": "yarn"}}, "yarn"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
        ({"hidden_act": "gelu"}, "hidden_act='gelu'"),
        ({"use_sliding_window": True}, "sliding-window"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "sliding-window"),
        ({"quantization_config": {"bits": 4}}, "quantization_config"),
    ],
)
def test_unsupported_options_are_named(tmp_path, whole, changes, words):
    folder = shutil.copytree(whole, tmp_path / "m")
    edit(folder, **changes)
    with pytest.raises(ConfigError, match=words):
        load_decoder(folder)


def test_missing_and_damaged_files_are_named(tmp_path, whole):
    with pytest.raises(DataError, match="is no model folder"):
        load_model(tmp_path / "nowhere")
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        folder = shutil.copytree(whole, tmp_path / name)
        (folder / name).unlink()
        with pytest.raises(DataError, match=f"{name}"):
            load_model(folder)
    folder = shutil.copytree(whole, tmp_path / "m")
    weights = folder / "model.safetensors"
    data = weights.read_bytes()
    for size in (len(data) - 100, 9, 0):
        weights.write_bytes(data[:size])
        with pytest.raises(DataError, match=r"model.safetensors is truncated or damaged .* copy it again"):
            load_model(folder)
    edit(folder, hidden_size=None)
    with pytest.raises(DataError, match="no whole number 'hidden_size'"):
        load_model(folder)
    (folder / "config.json").write_text("{,")
    with pytest.raises(DataError, match=r"config.json is no JSON"):
        load_model(folder)


def test_a_missing_shard_is_named(tmp_path):
    folder = write(hub_model(), tmp_path / "m", max_shard_size="20KB")
    shard = sorted(folder.glob("model-*.safetensors"))[1]
    shard.unlink()
    with pytest.raises(DataError, match=f"names {shard.name}, which is missing"):
        load_model(folder)


def test_tensors_that_do_not_fit_are_named(tmp_path, whole):
    folder = shutil.copytree(whole, tmp_path / "m")
    weights = folder / "model.safetensors"
    tensors = load_file(weights)
    name = "model.layers.1.mlp.up_proj.weight"
    cases = [
        ({n: t for n, t in tensors.items() if n != name}, f"lacks {name}; a Qwen3 decoder of 2 layers"),
        ({**tensors, "model.layers.0.self_attn.q_proj.bias": torch.zeros(64)}, "has model.layers.0.self_attn.q_proj.bias"),
        ({**tensors, name: tensors[name].T.contiguous()}, r"has shape \(32, 48\)"),
    ]
    for bad, words in cases:
        weights.unlink()
        save_file(bad, weights, metadata={"format": "pt"})
        with pytest.raises(DataError, match=words):
            load_model(folder)
    weights.unlink()
    save_file({**tensors, "lm_head.weight": torch.zeros(2), "model.rotary_emb.inv_freq": torch.zeros(2)}, weights)
    assert load_model(folder).tensors.keys() == parameter_shapes(load_model(folder).shape).keys()  # a tied head is the embedding


def test_saving_never_writes_over_anything(tmp_path, monkeypatch):
    model = init_model(SHAPES["llama"], char_tokenizer(ALPHABET), 0)
    (tmp_path / "empty").mkdir()
    save_model(model, tmp_path / "empty")
    with pytest.raises(ConfigError, match="exists already"):
        save_model(model, tmp_path / "empty")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ConfigError, match="exists already"):
        save_model(model, tmp_path / "file")

    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(hf, "save_file", full)
    with pytest.raises(StorageError, match="No space left on device; free some space"):
        save_model(model, tmp_path / "other")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["empty", "file"]


def test_initial_weights_depend_on_seed_and_name_alone():
    tokenizer = char_tokenizer(ALPHABET)
    shape = DecoderShape(vocab_size=41, hidden_size=64, num_layers=2, intermediate_size=200)
    a, b, c = (init_model(shape, tokenizer, s) for s in (1, 1, 2))
    assert all(torch.equal(a.tensors[n], b.tensors[n]) for n in a.tensors)
    assert not torch.equal(a.tensors["model.embed_tokens.weight"], c.tensors["model.embed_tokens.weight"])
    assert a.tensors["model.layers.0.input_layernorm.weight"].eq(1.0).all()
    up, down = (a.tensors[f"model.layers.1.mlp.{n}_proj.weight"] for n in ("up", "down"))
    assert up.std() == pytest.approx(0.02, rel=0.03)
    assert down.std() == pytest.approx(0.01, rel=0.03)  # 0.02 / sqrt(2 * 2)
    wide = init_model(shape, tokenizer, 1, init="fan_in").tensors
    assert wide["model.layers.1.mlp.down_proj.weight"].std() == pytest.approx(200**-0.5, rel=0.03)
    assert wide["model.embed_tokens.weight"].std() == pytest.approx(0.02, rel=0.03)


def test_models_that_contradict_themselves_are_refused():
    tokenizer = char_tokenizer(ALPHABET)
    with pytest.raises(ConfigError, match=r"has 41 ids but DecoderShape.vocab_size=40"):
        init_model(DecoderShape(vocab_size=40), tokenizer, 0)
    with pytest.raises(ConfigError, match="init='xavier'"):
        init_model(DecoderShape(vocab_size=41), tokenizer, 0, init="xavier")
    model = init_model(DecoderShape(vocab_size=41), tokenizer, 0)
    arrays = {n: t.numpy() + 1 for n, t in model.tensors.items()}
    assert all(torch.equal(t, model.tensors[n] + 1) for n, t in with_arrays(model, arrays).tensors.items())
    halves = {n: t.half() for n, t in model.tensors.items()}
    with pytest.raises(DataError, match=r"is torch.float16; a Model holds float32"):
        Model(shape=model.shape, tensors=halves, tokenizer=tokenizer)
