"""Rows as they are: which heads and devices, and what the kernel is told, against a plain computation in its place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hub_cases import hub_model
from hypothesis import given
from hypothesis import strategies as st
from learner_cases import Weighted, random_batch

import assay.runtime.learner.hub_decoder as hub_decoder
from assay.core.errors import ConfigError
from assay.core.plan import Plan
from assay.runtime.kernels import ragged_attention as ragged
from assay.runtime.learner.learner import TorchLearner
from assay.runtime.learner.packing import pack_offsets
from assay.runtime.settings import LearnerSettings

PLAIN = LearnerSettings(precision="bf16", clip_norm=0.0, micro_tokens=80)
calls: list[dict[str, Any]] = []


def plainly(q, k, v, cu_seq_q, cu_seq_k, max_q, max_k, *, scale=None, window_size=(-1, -1), enable_gqa=False):
    """`varlen_attn` by its documentation, a row and a head at a time; rows end where ``cu_seq`` says."""
    calls.append({"window": window_size, "gqa": enable_gqa, "kinds": {q.dtype, k.dtype, v.dtype}})
    assert cu_seq_q.dtype == torch.int32
    assert torch.equal(cu_seq_q, cu_seq_k)
    assert max_q == max_k == int(cu_seq_q.diff().max())
    assert enable_gqa == (q.shape[1] != k.shape[1])
    left, right = window_size
    share, out = q.shape[1] // k.shape[1], []
    for a, b in zip(cu_seq_q[:-1].tolist(), cu_seq_q[1:].tolist(), strict=True):
        place = torch.arange(b - a)
        ahead = place[None, :] - place[:, None]  # key before query is negative
        seen = (ahead <= right) & (ahead >= (-left if left >= 0 else -(b - a)))
        heads = []
        for h in range(q.shape[1]):
            scores = q[a:b, h].float() @ k[a:b, h // share].float().T * (scale or 1 / math.sqrt(q.shape[2]))
            heads.append(scores.masked_fill(~seen, -torch.inf).softmax(-1) @ v[a:b, h // share].float())
        out.append(torch.stack(heads, 1))
    return torch.cat(out).to(q.dtype)


@pytest.fixture
def there(monkeypatch):
    """A device with a kernel: this one, with the plain computation for it."""
    calls.clear()
    monkeypatch.setattr(ragged, "kernel", lambda: plainly)
    monkeypatch.setattr(hub_decoder, "suits", lambda device, head_dim: True)


def test_devices_and_heads_that_the_kernel_serves(monkeypatch):
    capability = [(9, 0)]
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability[0])
    monkeypatch.setattr(ragged, "kernel", lambda: plainly)
    cuda = torch.device("cuda")
    assert [ragged.suits(cuda, d) for d in (64, 128, 256, 320, 100)] == [True, True, True, False, False]
    assert not ragged.suits(torch.device("cpu"), 128)
    capability[0] = (7, 5)
    assert not ragged.suits(cuda, 128)
    capability[0] = (8, 0)
    assert ragged.suits(cuda, 128)
    monkeypatch.setattr(ragged, "kernel", lambda: None)
    assert not ragged.suits(cuda, 128)


def test_only_a_kernel_with_all_that_is_needed_is_taken(monkeypatch):
    from torch.nn.attention import varlen

    assert ragged.kernel() is varlen.varlen_attn
    monkeypatch.setattr(varlen, "varlen_attn", lambda query, key, value, is_causal=False: query)
    assert ragged.kernel() is None
    monkeypatch.delattr(varlen, "varlen_attn")
    assert ragged.kernel() is None


@given(lengths=st.lists(st.integers(1, 40), min_size=1, max_size=12))
def test_ends_are_those_of_the_rows(lengths):
    packing = pack_offsets(np.concatenate([[0], np.cumsum(lengths)]))
    assert packing.ends.tolist() == [0, *np.cumsum(lengths).tolist()]
    assert packing.ends.dtype == torch.int32
    assert packing.longest == max(lengths)
    assert packing.without_padding().ragged
    assert packing.without_padding().useful == 1.0


def learned(family, settings=PLAIN):
    made = TorchLearner(hub_model(family), settings, total_steps=10)
    metrics = made.step(random_batch(6), Plan(live=("logp_new", "entropy")), Weighted(bonus=0.1)).metrics
    return made, metrics, made.gradient.buffer.clone()


@pytest.mark.slow
@pytest.mark.parametrize("family", ["qwen3", "mistral", "gemma3", "gpt2"])
def test_gradients_are_those_of_rectangles(family, there, monkeypatch):
    """Shared key heads, windows that begin at the same token, another scale: in bfloat16 up to its rounding."""
    made, metrics, found = learned(family)
    assert made.policy.ragged
    assert calls
    assert metrics["waste/attention_padding"] == 0.0
    assert all(call["kinds"] == {torch.bfloat16} for call in calls)
    windows = {call["window"] for call in calls}
    assert windows == {"qwen3": {(-1, 0)}, "gpt2": {(-1, 0)}, "mistral": {(7, 0)}, "gemma3": {(7, 0)}}[family]
    monkeypatch.setattr(hub_decoder, "suits", lambda device, head_dim: False)
    calls.clear()
    other, padded, wanted = learned(family)
    assert not other.policy.ragged
    assert not calls
    assert padded["waste/attention_padding"] > 0.0
    assert float((found - wanted).norm()) < 0.03 * float(wanted.norm())
    assert metrics["loss/total"] == pytest.approx(padded["loss/total"], abs=2e-3)


def test_float32_passes_stay_on_rectangles(there):
    """A learner in float32, and scores, which are float32 in any precision."""
    made, metrics, _ = learned("qwen3", LearnerSettings(clip_norm=0.0, micro_tokens=80))
    count = len(calls)
    assert made.policy.ragged
    assert metrics["waste/attention_padding"] > 0.0
    made = TorchLearner(hub_model("qwen3"), PLAIN, total_steps=1)
    probed = len(calls) - count
    made.score([np.arange(2, 9, dtype=np.int32), np.arange(3, 30, dtype=np.int32)])
    assert len(calls) == count + probed


def test_a_kernel_that_gives_something_else_is_not_used(there, monkeypatch):
    """Off by one token, or one that raises; and a model whose attention does more than a kernel can."""
    monkeypatch.setattr(ragged, "kernel", lambda: lambda *a, window_size, **k: plainly(*a, window_size=(-1, 1), **k))
    assert not TorchLearner(hub_model("qwen3"), PLAIN, total_steps=1).policy.ragged
    monkeypatch.setattr(ragged, "kernel", lambda: None)
    assert not TorchLearner(hub_model("qwen3"), PLAIN, total_steps=1).policy.ragged
    monkeypatch.setattr(ragged, "kernel", lambda: plainly)
    assert not TorchLearner(hub_model("gemma2"), PLAIN, total_steps=1).policy.ragged
    q = torch.zeros(3, 2, 8)
    with pytest.raises(ConfigError, match=r"no kernel for torch.float32 on cpu"):
        ragged.attend(q, q, q, pack_offsets(np.array([0, 3])))
