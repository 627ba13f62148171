"""A small random model of each family, as a user would bring a big one."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import torch

from assay.runtime.models.hub_model import HubModel
from assay.runtime.text.tokenizer import HubTokenizer, char_tokenizer

VOCABULARY = 112
_SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 160,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "bos_token_id": None,
}
_SHARED = {**_SIZES, "num_key_value_heads": 2}
_WIDE = {**_SHARED, "head_dim": 16}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen3": ("qwen3", _WIDE),
    "llama": ("llama", _SHARED),
    "gemma": ("gemma", {**_WIDE, "num_key_value_heads": 1}),
    "gemma2": ("gemma2", {**_WIDE, "sliding_window": 8, "final_logit_softcapping": 8.0, "attn_logit_softcapping": 5.0}),
    "gemma3": ("gemma3_text", {**_WIDE, "sliding_window": 8}),
    "mistral": ("mistral", {**_SHARED, "sliding_window": 8}),
    "gpt2": ("gpt2", {"vocab_size": VOCABULARY, "n_embd": 48, "n_layer": 2, "n_head": 4, "n_positions": 160, "eos_token_id": 1}),
    "phi": ("phi", _SIZES),
    "gpt_neox": ("gpt_neox", _SIZES),
    "cohere": ("cohere", {**_SHARED, "logit_scale": 0.5}),
    "mixtral": ("mixtral", {**_SHARED, "num_local_experts": 4, "num_experts_per_tok": 2}),
    "qwen3_moe": ("qwen3_moe", {**_WIDE, "moe_intermediate_size": 32, "num_experts": 4, "num_experts_per_tok": 2}),
}
DENSE = ("qwen3", "gemma2", "gpt2", "phi")
"""Families that differ most, for what need not be seen with all."""


def tokenizer() -> HubTokenizer:
    return char_tokenizer("".join(map(chr, range(32, 127))) + "\n")


@cache
def hub_model(family: str, seed: int = 0) -> HubModel:
    """Random weights, twice as spread as transformers draws them: a model whose distributions are far from uniform."""
    from transformers import AutoConfig, AutoModelForCausalLM

    kind, options = FAMILIES[family]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        module: Any = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **options))
    config = {**module.config.to_dict(), "architectures": [type(module).__name__]}
    tensors = {name: p.detach() * (2.0 if p.dim() > 1 else 1.0) for name, p in module.named_parameters()}
    return HubModel(config=config, tensors=tensors, tokenizer=tokenizer())


@cache
def exaggerated(family: str, spread: float = 0.15) -> HubModel:
    """Matrices of standard deviation ``spread``: a model that rounding disturbs visibly."""
    model, noise = hub_model(family), torch.Generator().manual_seed(0)
    drawn = {n: torch.randn(t.shape, generator=noise) * spread if t.dim() > 1 else t for n, t in model.tensors.items()}
    return replace(model, tensors=drawn)
