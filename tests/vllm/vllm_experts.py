"""Tiny random mixtures of experts, and the numbers that they give."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from vllm_servers import CONTEXT, LETTERS

from assay.runtime import char_tokenizer
from assay.runtime.models.hub_model import HubModel

_SIZES: dict[str, Any] = {
    "hidden_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": CONTEXT,
    "tie_word_embeddings": False,
    "num_experts_per_tok": 2,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "bos_token_id": None,
}
FAMILIES: dict[str, dict[str, Any]] = {
    # 48 is no multiple of 32: a CPU kernel pads these experts
    "qwen3_moe": {**_SIZES, "intermediate_size": 96, "moe_intermediate_size": 48, "num_experts": 8},
    "mixtral": {**_SIZES, "intermediate_size": 96, "num_local_experts": 4},
}


def mixture(family: str) -> HubModel:
    """Random weights, spread so far that answers differ visibly from one set of weights to the next."""
    from transformers import AutoConfig, AutoModelForCausalLM

    tokenizer = char_tokenizer(LETTERS)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = AutoConfig.for_model(family, vocab_size=tokenizer.size, **FAMILIES[family])
        module: Any = AutoModelForCausalLM.from_config(config)
    tensors = {n: p.detach() * (4.0 if p.dim() > 1 else 1.0) for n, p in module.named_parameters()}
    said = {**module.config.to_dict(), "architectures": [type(module).__name__]}
    return HubModel(config=said, tensors=tensors, tokenizer=tokenizer)


@torch.no_grad()
def exact(model: HubModel, arrays: Any, texts: Any) -> list[np.ndarray]:
    """Log-probabilities of texts under arrays by transformers in float32, ``[tokens]`` each with 0 first."""
    tensors = {name: torch.from_numpy(np.asarray(array)) for name, array in arrays.items()}
    module: Any = model.with_trained(tensors, None).module()
    found = []
    for text in texts:
        ids = torch.from_numpy(np.asarray(text, np.int64))
        logits = module(input_ids=ids[None]).logits[0, :-1].double()
        told = logits.log_softmax(-1).gather(1, ids[1:, None])[:, 0].numpy()
        found.append(np.concatenate([[0.0], told]).astype(np.float32))
    return found
