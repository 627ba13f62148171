"""What a model says of texts: the same as its engine, and as its own logits."""

import asyncio

import numpy as np
import pytest
import torch
from hub_cases import hub_model

from assay.core import Request, Sampling
from assay.core.errors import DataError
from assay.core.rollout import ids_of
from assay.runtime import DecoderShape, NativeEngine, char_tokenizer, init_model
from assay.runtime.learner.decoder import Decoder
from assay.runtime.models.hub_model import Adapter
from assay.runtime.models.likelihood import LikelihoodReader
from assay.runtime.settings import Lora

MODEL = init_model(
    DecoderShape(
        vocab_size=14,
        hidden_size=32,
        num_layers=2,
        num_heads=2,
        num_kv_heads=1,
        head_dim=16,
        intermediate_size=64,
        max_positions=24,
    ),
    char_tokenizer("0123456789S>"),
    seed=3,
)
ROWS = [MODEL.tokenizer.encode(text) for text in ("S31>13", "S2", "S98765>56789", "0>0")]


def test_a_reading_is_what_the_logits_say():
    decoder = Decoder(MODEL.shape)
    decoder.load_tensors(MODEL.tensors)
    for row, found in zip(ROWS, LikelihoodReader(MODEL).read(ROWS), strict=True):
        with torch.no_grad():
            logits = decoder.logits(torch.tensor(row.astype(np.int64)), np.array([0, len(row)]))
        logs = torch.log_softmax(logits[:-1].double(), -1).numpy()
        np.testing.assert_allclose(found.logp, logs[np.arange(len(row) - 1), row[1:]], atol=1e-5)
        np.testing.assert_allclose(found.entropy, -(np.exp(logs) * logs).sum(-1), atol=1e-5)
        assert len(found.logp) == len(found.entropy) == len(row) - 1


def test_texts_are_read_alone_whoever_they_pass_through_with():
    together, apart = LikelihoodReader(MODEL).read(ROWS), LikelihoodReader(MODEL, most=7).read(ROWS)
    for a, b in zip(together, apart, strict=True):
        np.testing.assert_allclose(a.logp, b.logp, atol=1e-5)
        np.testing.assert_allclose(a.entropy, b.entropy, atol=1e-5)
    assert LikelihoodReader(MODEL).read([]) == []


def test_a_reading_is_what_the_engine_sampled_from():
    prompt = MODEL.tokenizer.encode("S42>")

    async def sample():
        return await NativeEngine(MODEL).generate(Request(id="a", prompt=prompt, seed=5, sampling=Sampling(max_new_tokens=8)))

    completion = asyncio.run(sample())
    (found,) = LikelihoodReader(MODEL).read([ids_of(np.concatenate([prompt, completion.ids]))])
    np.testing.assert_allclose(found.logp[len(prompt) - 1 :], completion.logp_engine, atol=1e-4)
    np.testing.assert_allclose(found.entropy[len(prompt) - 1 :], completion.columns["entropy"].values, atol=1e-4)


@pytest.mark.parametrize(
    ("row", "says"), [([3], "has 1 tokens; the model reads 2 to 24"), ([3] * 25, "has 25 tokens"), ([3, 14], "ids from 3 to 14")]
)
def test_what_cannot_be_read(row, says):
    with pytest.raises(DataError, match=f"text 1 .*{says}"):
        LikelihoodReader(MODEL).read([ROWS[0], ids_of(row)])


def with_adapter(family):
    """A model of transformers beside an adapter that does something."""
    model = hub_model(family).with_adapter(Lora(rank=2))
    noise = torch.Generator().manual_seed(0)
    tensors = {name: 0.3 * torch.randn(t.shape, generator=noise) for name, t in model.adapter.tensors.items()}
    return model.with_trained(tensors, model.adapter.settings)


@pytest.mark.parametrize("family", ["gpt2", "gemma2", "llama with an adapter"])
def test_any_model_is_read_as_its_own_logits_say(family):
    model = with_adapter("llama") if family.endswith("adapter") else hub_model(family)
    assert isinstance(model.adapter, Adapter) == family.endswith("adapter")
    rows, module = [model.tokenizer.encode(text) for text in ("S31>13", "S2", "what is 9+9?")], model.module()
    for row, found in zip(rows, LikelihoodReader(model).read(rows), strict=True):
        with torch.no_grad():
            logits = module(torch.tensor(row.astype(np.int64))[None]).logits[0]
        logs = torch.log_softmax(logits[:-1].double(), -1).numpy()
        np.testing.assert_allclose(found.logp, logs[np.arange(len(row) - 1), row[1:]], atol=2e-5)
        np.testing.assert_allclose(found.entropy, -(np.exp(logs) * logs).sum(-1), atol=2e-5)
