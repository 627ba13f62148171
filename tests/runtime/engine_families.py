"""Tiny random models of many families, and what the engine for them is compared with."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from engine_reference import request

VOCABULARY, CONTEXT = 128, 96


def configs():
    """One of two layers per family; windows of 8 to 12 tokens where a family has them."""
    from transformers import (
        Gemma2Config,
        Gemma3TextConfig,
        GemmaConfig,
        GPT2Config,
        GPTNeoXConfig,
        LlamaConfig,
        MistralConfig,
        MixtralConfig,
        Phi3Config,
        PhiConfig,
        Qwen3Config,
        Qwen3MoeConfig,
    )

    many = {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": CONTEXT,
        "initializer_range": 0.15,
        "pad_token_id": 0,
        "bos_token_id": None,
        "eos_token_id": None,
    }
    grouped = {**many, "num_key_value_heads": 2}
    one = {**many, "num_key_value_heads": 1, "head_dim": 8}
    mixed = {**one, "layer_types": ["sliding_attention", "full_attention"]}
    return {
        "qwen3": lambda: Qwen3Config(**grouped, head_dim=16),
        "llama": lambda: LlamaConfig(**grouped),
        "gemma": lambda: GemmaConfig(**one),
        "gemma2": lambda: Gemma2Config(**mixed, sliding_window=8, query_pre_attn_scalar=8, attn_logit_softcapping=5.0),
        "gemma3": lambda: Gemma3TextConfig(**mixed, sliding_window=12, query_pre_attn_scalar=8),
        "mistral": lambda: MistralConfig(**grouped, sliding_window=9),
        "gpt2": lambda: GPT2Config(
            vocab_size=VOCABULARY,
            n_embd=32,
            n_layer=2,
            n_head=4,
            n_positions=CONTEXT,
            initializer_range=0.15,
            bos_token_id=None,
            eos_token_id=None,
        ),
        "phi": lambda: PhiConfig(**many),
        "phi3": lambda: Phi3Config(**grouped, sliding_window=10),
        "neox": lambda: GPTNeoXConfig(**many),
        "mixtral": lambda: MixtralConfig(**grouped, num_local_experts=4),
        "qwen3moe": lambda: Qwen3MoeConfig(
            **grouped, head_dim=16, moe_intermediate_size=16, num_experts=4, num_experts_per_tok=2
        ),
    }


FAMILIES = (
    "qwen3",
    "llama",
    "gemma",
    "gemma2",
    "gemma3",
    "mistral",
    "gpt2",
    "phi",
    "phi3",
    "neox",
    "mixtral",
    "qwen3moe",
)


def build(config, seed=0, **options):
    """A random model in evaluation mode; the same for the same seed."""
    from transformers import AutoModelForCausalLM

    torch.manual_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return AutoModelForCausalLM.from_config(config, **options).eval()


def family(name, seed=0, **options):
    return build(configs()[name](), seed, **options)


def arrays(module, names=None):
    """Copies of the parameters, as a learner would publish them."""
    return {n: p.detach().float().numpy().copy() for n, p in module.named_parameters() if names is None or n in names}


def ragged(n=10, first=0, **sampling):
    """Requests of several lengths, in pairs that share a prompt; the longest leave every window."""
    rng = np.random.default_rng(3)
    prompts = [rng.integers(3, VOCABULARY, int(rng.integers(2, 20))) for _ in range(n // 2)]
    return [request(first + i, prompts[i // 2], **{"max_new_tokens": 6 + 3 * (i % 5), **sampling}) for i in range(n)]


@torch.no_grad()
def forced(module, row) -> np.ndarray:
    """Log-probabilities of a row's tokens behind the first, by one plain pass."""
    ids = torch.tensor([list(map(int, row))])
    return module(ids, use_cache=False).logits[0, :-1].float().log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0].numpy()


def gap(module, req, completion) -> float:
    """Largest difference between a completion's log-probabilities and those of a plain pass."""
    wanted = forced(module, [*req.prompt, *completion.ids])[len(req.prompt) - 1 :]
    return float(np.abs(wanted - completion.logp_engine).max())
