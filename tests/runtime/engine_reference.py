"""What the engine is compared with: transformers on the same weights, and a sampler written as plainly as possible."""

from __future__ import annotations

import asyncio
import contextlib
import io
from pathlib import Path

import numpy as np
import torch

from assay.core.protocols import Request
from assay.core.rollout import Sampling, ids_of
from assay.core.seeds import uniforms
from assay.runtime.models.hf import load_model
from assay.runtime.text.tokenizer import ChatTemplate, char_tokenizer

ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzS> "


def hub_model(kind="qwen3", *, seed=0, tied=True, kv_heads=2, layers=2, std=0.25, **more):
    """A small random model made by transformers, with weights large enough for peaked and varied distributions."""
    from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(seed)
    sizes = dict(
        vocab_size=len(ALPHABET) + 2,
        hidden_size=32,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=kv_heads,
        head_dim=16,
        intermediate_size=48,
        max_position_embeddings=64,
        tie_word_embeddings=tied,
        initializer_range=std,
        bos_token_id=None,
        eos_token_id=1,
        pad_token_id=0,
        **more,
    )
    model = Qwen3ForCausalLM(Qwen3Config(**sizes)) if kind == "qwen3" else LlamaForCausalLM(LlamaConfig(**sizes))
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "norm" in name:
                p.uniform_(0.7, 1.3)
    return model.float().eval()


def write(model, folder: Path, **options) -> Path:
    """transformers' save_pretrained, with a character tokenizer beside it."""
    with contextlib.redirect_stderr(io.StringIO()):
        model.save_pretrained(folder, **options)
    char_tokenizer(ALPHABET, ChatTemplate()).save(folder)
    return folder


def pair(folder: Path, *args, **kwargs):
    """The same weights as (transformers model, assay Model)."""
    hub = hub_model(*args, **kwargs)
    return hub, load_model(write(hub, folder))


def request(key, prompt, *, seed=None, first=0, **sampling):
    return Request(
        id=str(key),
        prompt=ids_of(prompt),
        seed=int(key) if seed is None else seed,
        first=first,
        sampling=Sampling(**{"max_new_tokens": 4, **sampling}),
    )


def run(engine, requests):
    async def go():
        return await asyncio.gather(*(engine.generate(r) for r in requests))

    return asyncio.run(go())


@torch.no_grad()
def next_logits(hub, ids) -> np.ndarray:
    return hub(torch.tensor([list(map(int, ids))])).logits[0, -1].double().numpy()


def support(logits: np.ndarray, sampling: Sampling) -> np.ndarray:
    """Probabilities after temperature, top-k, top-p, in float64."""
    if sampling.temperature == 0.0:
        return np.eye(len(logits))[int(logits.argmax())]
    p = np.exp(logits / sampling.temperature - np.max(logits / sampling.temperature))
    p /= p.sum()
    order = [i for i in sorted(range(len(p)), key=lambda i: (-p[i], i)) if p[i] >= sampling.min_p * p.max()]
    kept = order[: sampling.top_k] if sampling.top_k else order
    mass, nucleus = 0.0, []
    for i in kept:
        if nucleus and mass >= sampling.top_p * p[kept].sum():
            break
        nucleus.append(i)
        mass += p[i]
    out = np.zeros_like(p)
    out[nucleus] = p[nucleus]
    return out / out.sum()


def reference(hub, req: Request):
    """Tokens, log-probabilities, entropies, and the distance of each uniform from the nearest edge of its distribution."""
    ids, out = list(map(int, req.prompt)), []
    noise = uniforms(np.array([req.seed], np.uint64), req.first, req.sampling.max_new_tokens)[0]
    for u in noise:
        p = support(next_logits(hub, ids), req.sampling)
        cdf = np.cumsum(p)
        token = min(int(np.searchsorted(cdf, u, side="right")), int(np.flatnonzero(p).max()))
        entropy = -sum(x * np.log(x) for x in p if x > 0)
        out.append((token, np.log(p[token]), entropy, np.abs(cdf - u).min()))
        ids.append(token)
        if token in req.sampling.stop_ids:
            break
    return out


def agree(hub, req: Request, completion) -> int:
    """Asserts that a completion is the reference's, up to the first uniform on an edge; returns the tokens compared."""
    wanted = reference(hub, req)
    bound = 1e-5 / min(1.0, req.sampling.temperature or 1.0)  # rounding of the logits is divided by the temperature
    for i, (token, logp, entropy, distance) in enumerate(wanted):
        if distance < bound:
            return i
        assert int(completion.ids[i]) == token, f"token {i} of request {req.id}"
        assert abs(completion.logp_engine[i] - logp) <= bound
        assert abs(completion.columns["entropy"].values[i] - entropy) <= bound
    assert len(completion.ids) == len(wanted)
    return len(wanted)


@torch.no_grad()
def teacher_forced(hub, row) -> np.ndarray:
    ids = torch.tensor([list(map(int, row))])
    logp = hub(ids).logits[0, :-1].double().log_softmax(-1)
    return logp.gather(1, ids[0, 1:, None])[:, 0].numpy()
