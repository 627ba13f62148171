import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from assay.core.errors import ConfigError
from assay.runtime.learner.decoder import Decoder
from assay.runtime.learner.packing import pack_offsets
from assay.runtime.settings import DecoderShape

LENGTHS = [5, 17, 6, 40, 17, 1, 3, 60]
OFFSETS = np.concatenate([[0], np.cumsum(LENGTHS)]).astype(np.int64)


def pair(kind, tied, kv_heads):
    """A transformers model with random weights, and our decoder with the same."""
    qwen = kind == "qwen3"
    shape = DecoderShape(
        vocab_size=40,
        hidden_size=48,
        num_layers=3,
        num_heads=4,
        num_kv_heads=kv_heads,
        head_dim=16,
        intermediate_size=80,
        max_positions=64,
        rope_theta=1e6 if qwen else 10000.0,
        tied=tied,
        qk_norm=qwen,
    )
    from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM

    config = (Qwen3Config if qwen else LlamaConfig)(
        vocab_size=40,
        hidden_size=48,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=kv_heads,
        head_dim=16,
        intermediate_size=80,
        max_position_embeddings=64,
        rms_norm_eps=1e-6,
        tie_word_embeddings=tied,
        rope_parameters={"rope_type": "default", "rope_theta": shape.rope_theta},
        attention_bias=False,
    )
    theirs = (Qwen3ForCausalLM if qwen else LlamaForCausalLM)(config).float().eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in theirs.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, parameter.shape[1] ** -0.5, generator=generator)
            else:
                parameter.uniform_(0.5, 1.5, generator=generator)
    ours = Decoder(shape)
    state = {n: t for n, t in theirs.state_dict().items() if not (tied and n == "lm_head.weight")}
    ours.load_tensors(state)
    return theirs, ours, state


@pytest.mark.parametrize(("kind", "tied", "kv_heads"), [("qwen3", True, 2), ("llama", False, 4), ("llama", True, 1)])
def test_logits_and_gradients_equal_transformers(kind, tied, kv_heads):
    theirs, ours, state = pair(kind, tied, kv_heads)
    assert set(ours.state_dict()) == set(state)
    ids = torch.randint(0, 40, (int(OFFSETS[-1]),), generator=torch.Generator().manual_seed(1))
    mine = ours.logits(ids, OFFSETS)
    rows = [theirs(ids[a:b][None]).logits[0] for a, b in pairwise(OFFSETS)]
    reference = torch.cat(rows)
    assert (mine - reference).abs().max() < 1e-5
    weight = torch.randn(mine.shape, generator=torch.Generator().manual_seed(2))
    (mine * weight).sum().backward()
    (reference * weight).sum().backward()
    wanted = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        scale = wanted[name].grad.abs().max()
        assert (parameter.grad - wanted[name].grad).abs().max() < 2e-5 * scale, name


def test_columns_equal_the_log_softmax_of_logits_one_token_earlier():
    _, ours, _ = pair("qwen3", True, 2)
    ids = torch.randint(0, 40, (int(OFFSETS[-1]),), generator=torch.Generator().manual_seed(1))
    first = np.zeros(int(OFFSETS[-1]), bool)
    first[OFFSETS[:-1]] = True
    where = torch.from_numpy(np.flatnonzero(~first & (np.arange(len(first)) % 3 > 0)))
    logp, entropy = ours.columns(ids, pack_offsets(OFFSETS), where, True)
    table = torch.log_softmax(ours.logits(ids, OFFSETS), 1)
    assert torch.allclose(logp, table[where - 1, ids[where]], atol=2e-6)
    assert torch.allclose(entropy, -(table.exp() * table).sum(1)[where - 1], atol=5e-6)


def test_a_decoder_without_layers_by_hand():
    # One-hot embeddings of width 4 have root mean square 1/2, so the normalised state is 2 at the token's own place: one logit is
    # 2 and the others are 0.
    decoder = Decoder(DecoderShape(vocab_size=4, hidden_size=4, num_layers=0, norm_eps=0.0))
    decoder.load_tensors({"model.embed_tokens.weight": torch.eye(4), "model.norm.weight": torch.ones(4)})
    logp, entropy = decoder.columns(torch.tensor([1, 1, 3]), pack_offsets(np.array([0, 3])), torch.tensor([1, 2]), True)
    total = math.log(math.exp(2) + 3)
    assert logp.tolist() == pytest.approx([2 - total, -total], abs=1e-6)
    share = math.exp(2 - total)
    assert entropy.tolist() == pytest.approx([share * (total - 2) + (1 - share) * total] * 2, abs=1e-6)


def test_rows_do_not_see_each_other_and_tokens_do_not_see_the_future():
    _, ours, _ = pair("qwen3", True, 2)
    ids = torch.randint(0, 40, (int(OFFSETS[-1]),), generator=torch.Generator().manual_seed(1))
    changed = ids.clone()
    changed[30] = (changed[30] + 1) % 40  # inside the fourth row, [28, 68)
    before, after = ours.logits(ids, OFFSETS), ours.logits(changed, OFFSETS)
    touched = (before - after).abs().amax(1) > 0
    assert not touched[:30].any()
    assert not touched[68:].any()
    assert touched[30:68].all()


def test_foreign_weights_are_refused_by_name():
    _, ours, state = pair("qwen3", True, 2)
    with pytest.raises(ConfigError, match=r"model.norm.weight is missing"):
        ours.load_tensors({n: t for n, t in state.items() if n != "model.norm.weight"})
    with pytest.raises(ConfigError, match=r"bias is of shape \(2,\), the shape asks for no such tensor"):
        ours.load_tensors({**state, "bias": torch.zeros(2)})
    with pytest.raises(ConfigError, match=r"model.norm.weight is of shape \(3,\), the shape asks for shape \(48,\)"):
        ours.load_tensors({**state, "model.norm.weight": torch.ones(3)})


def test_building_a_decoder_leaves_the_global_generator_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    Decoder(DecoderShape())
    assert torch.equal(before, torch.get_rng_state())
