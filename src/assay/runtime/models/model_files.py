"""Files of a model folder in Hugging Face format: their names, a decoder's config, JSON read with errors that name the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay.core.errors import DataError
from assay.core.util.jsonl import parsed_json
from assay.runtime.settings import DecoderShape

__all__ = ["CONFIG", "GENERATION", "INDEX", "STILL", "SUPPORTED", "WEIGHTS", "config_of", "read_json", "weight_map"]

WEIGHTS, INDEX, CONFIG, GENERATION = "model.safetensors", "model.safetensors.index.json", "config.json", "generation_config.json"


STILL = 1e30
"""A factor of LongRoPE by which a frequency is divided: no position turns such a pair by as much as a rounding error."""


SUPPORTED = {"Qwen3ForCausalLM": "qwen3", "LlamaForCausalLM": "llama"}


def config_of(shape: DecoderShape) -> dict[str, Any]:
    """``config.json`` of a decoder, with the rotary base both as older and as newer readers look for it."""
    architecture = "Qwen3ForCausalLM" if shape.qk_norm else "LlamaForCausalLM"
    return {
        "architectures": [architecture],
        "model_type": SUPPORTED[architecture],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "dtype": "float32",
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "hidden_size": shape.hidden_size,
        "initializer_range": 0.02,
        "intermediate_size": shape.intermediate_size,
        "max_position_embeddings": shape.max_positions,
        "num_attention_heads": shape.num_heads,
        "num_hidden_layers": shape.num_layers,
        "num_key_value_heads": shape.num_kv_heads,
        "rms_norm_eps": shape.norm_eps,
        "rope_parameters": _rope_of(shape),
        "rope_theta": shape.rope_theta,
        "tie_word_embeddings": shape.tied,
        "vocab_size": shape.vocab_size,
    }


def _rope_of(shape: DecoderShape) -> dict[str, Any]:
    """``rope_parameters``: pairs that do not turn are told as LongRoPE, with a factor that leaves their frequency nothing."""
    if shape.rope_pairs is None:
        return {"rope_theta": shape.rope_theta, "rope_type": "default"}
    factors = [1.0] * shape.rope_pairs + [STILL] * (shape.head_dim // 2 - shape.rope_pairs)
    return {
        "rope_theta": shape.rope_theta,
        "rope_type": "longrope",
        "short_factor": factors,
        "long_factor": factors,
        "attention_factor": 1.0,
        "factor": 1.0,
        "original_max_position_embeddings": shape.max_positions,
    }


def read_json(path: Path) -> dict[str, Any]:
    """What a JSON file of a model folder holds; DataError where it is missing or damaged."""
    if not path.is_file():
        raise DataError(f"{path.parent} has no {path.name}; a model folder holds {CONFIG}, {WEIGHTS} and tokenizer.json")
    return parsed_json(path)


def weight_map(path: Path) -> dict[str, str]:
    """Which file holds which tensor, as an index of shards says.

    Raises:
        DataError: it is missing, damaged, or says no such thing.
    """
    found: Any = read_json(path).get("weight_map")
    if not isinstance(found, dict) or not found:
        raise DataError(f"{path} has no 'weight_map' that says which file holds which tensor; copy it again from its source")
    return found  # pyright: ignore[reportUnknownVariableType]
