"""A model of the same family as another, with few and random weights: for trying how a run goes, not what it reaches."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import torch
from transformers import AutoModelForCausalLM

from assay.core.errors import ConfigError
from assay.runtime.models.hf import save_model
from assay.runtime.models.hub_model import HubModel, hub_config
from assay.runtime.text.tokenizer import HubTokenizer, char_tokenizer

__all__ = ["reduced_config", "write_reduced"]

MARK = "assay_random_init"
"""Field of ``config.json`` that says so."""
CONTEXT = 1024
_SMALL: Mapping[str, int] = {
    "hidden_size": 64,
    "n_embd": 64,
    "d_model": 64,
    "num_hidden_layers": 2,
    "n_layer": 2,
    "num_layers": 2,
    "num_attention_heads": 4,
    "n_head": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 128,
    "n_inner": 128,
    "moe_intermediate_size": 64,
    "max_position_embeddings": CONTEXT,
    "n_positions": CONTEXT,
    "n_ctx": CONTEXT,
    "num_experts": 4,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "hidden_size_per_layer_input": 16,
    "query_pre_attn_scalar": 16,
    "sliding_window": 64,
    "max_window_layers": 2,
}
_DROPPED = ("layer_types", "rope_scaling", "quantization_config", "auto_map", "architectures")
"""Fields that go by the number of layers or the old context, or that the family fills in."""


def reduced_config(config: Mapping[str, Any], vocabulary: int) -> dict[str, Any]:
    """A config of the same family and small sizes; what is no size stays as it is.

    Args:
        config: ``config.json`` of the family.
        vocabulary: ids of the tokenizer.

    Raises:
        ConfigError: it names no family.

    >>> small = reduced_config({"model_type": "qwen3", "hidden_size": 4096, "num_hidden_layers": 36, "rms_norm_eps": 1e-6}, 99)
    >>> small["hidden_size"], small["num_hidden_layers"], small["rms_norm_eps"], small["vocab_size"]
    (64, 2, 1e-06, 99)
    """
    if not config.get("model_type"):
        raise ConfigError(f"a config with the fields {sorted(config)[:6]} names no family ('model_type')")
    kept = {name: value for name, value in config.items() if name not in _DROPPED}
    small = {name: size for name, size in _SMALL.items() if isinstance(kept.get(name), int)}
    ends = {"vocab_size": vocabulary, "eos_token_id": 1, "pad_token_id": 0, "bos_token_id": None}
    return {**kept, **small, **ends, MARK: True}


def write_reduced(config: Mapping[str, Any], folder: Path, seed: int = 0, alphabet: str = "") -> None:
    """Writes a folder with such a model and a character tokenizer.

    Args:
        config: ``config.json`` of the family.
        folder: new.
        seed: of the weights.
        alphabet: characters that the tokenizer must know, beside printable ASCII.

    Raises:
        ConfigError: transformers does not know the family.
    """
    printable = [*map(chr, range(32, 127)), "\n"]
    tokenizer: HubTokenizer = char_tokenizer("".join(dict.fromkeys([*printable, *sorted(alphabet)])))
    small = hub_config(reduced_config(config, tokenizer.size))
    with cast(Any, torch.random).fork_rng(devices=[]):
        torch.manual_seed(seed)  # type: ignore[reportUnknownMemberType]
        made: Any = cast(Any, AutoModelForCausalLM).from_config(small, dtype=torch.float32)
    told = {**json.loads(made.config.to_json_string(use_diff=False)), "architectures": [type(made).__name__]}
    tensors = {name: parameter.detach() for name, parameter in made.named_parameters()}
    save_model(HubModel(config=told, tensors=tensors, tokenizer=tokenizer), folder)
