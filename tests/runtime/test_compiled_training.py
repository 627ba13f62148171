"""The compiled passes: PyTorch's states and gradients, the same bits on any number of threads, and memory that goes back."""

from __future__ import annotations

import gc
import platform
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.core.batch import pack_rows
from assay.core.plan import Plan
from assay.core.rollout import ids_of
from assay.core.sample import supervised_sample
from assay.runtime import DecoderShape, LearnerSettings, TorchLearner, char_tokenizer, init_model
from assay.runtime.compiled import build as builds
from assay.runtime.learner.batching import micro_batches
from assay.runtime.learner.decoder import Decoder
from assay.runtime.learner.packing import pack_offsets

SHAPE = DecoderShape(vocab_size=12, hidden_size=40, num_layers=2, num_heads=4, num_kv_heads=2, head_dim=10, intermediate_size=50)


@pytest.fixture
def threads():
    """Sets torch's threads, and puts the number back."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def pair(shape, seed=0):
    """Two decoders of the same random weights, compiled and not."""
    generator = torch.Generator().manual_seed(seed)
    both = Decoder(shape, kernel=True), Decoder(shape)
    with torch.no_grad():
        for name, weight in both[1].named_parameters():
            if weight.dim() > 1:
                weight.normal_(0, weight.shape[1] ** -0.5, generator=generator)
            else:
                weight.uniform_(0.5, 1.5, generator=generator)
            both[0].get_parameter(name).data.copy_(weight)
    return both


def rows_of(seed, vocabulary, n=12, longest=40):
    """Ids and offsets of rows of which some begin alike, some are equal, and one is the beginning of another."""
    rng = np.random.default_rng(seed)
    rows = [rng.integers(0, vocabulary, rng.integers(1, longest)) for _ in range(n)]
    for i in range(n // 2):
        kept = rows[i][: rng.integers(1, len(rows[i]) + 1)]
        rows.append(np.concatenate([kept, rng.integers(0, vocabulary, rng.integers(0, 9))]))
    rng.shuffle(rows)
    offsets = np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64)
    return torch.from_numpy(np.concatenate(rows).astype(np.int64)), offsets


def gradients(decoder, ids, offsets, wanted, weight):
    decoder.zero_grad()
    states = decoder.hidden_states(ids, pack_offsets(offsets), wanted)
    (states * weight).sum().backward()
    return states.detach(), {n: p.grad for n, p in decoder.named_parameters() if p.grad is not None}


SHAPES = st.builds(
    lambda heads, **sizes: DecoderShape(num_heads=heads[0], num_kv_heads=heads[1], **sizes),
    heads=st.sampled_from([(1, 1), (3, 3), (4, 2), (6, 1), (6, 3)]),
    vocab_size=st.integers(2, 30),
    hidden_size=st.integers(8, 70),  # a norm over less may leave differences of nearly equal numbers
    num_layers=st.integers(0, 3),
    head_dim=st.sampled_from([2, 6, 8, 16, 20, 32, 36]),
    intermediate_size=st.integers(1, 80),
    qk_norm=st.booleans(),
    tied=st.booleans(),
    rope_theta=st.sampled_from([1e4, 1e6]),
    rope_pairs=st.sampled_from([None, 1]),
)


@settings(max_examples=25)
@given(shape=SHAPES, seed=st.integers(0, 99), every=st.booleans())
def test_any_shape_gives_the_states_and_gradients_of_pytorch(shape, seed, every):
    compiled, plain = pair(shape, seed)
    exact = pair(shape, seed)[1].double()
    ids, offsets = rows_of(seed, shape.vocab_size)
    rng = np.random.default_rng(seed)
    wanted = None if every else torch.from_numpy(np.sort(rng.permutation(len(ids))[: len(ids) // 2]))
    weight = torch.from_numpy(rng.standard_normal((len(ids) if every else len(wanted), shape.hidden_size)).astype(np.float32))
    states, found = gradients(compiled, ids, offsets, wanted, weight)
    theirs, expected = gradients(plain, ids, offsets, wanted, weight)
    truth, right = gradients(exact, ids, offsets, wanted, weight.double())
    assert found.keys() == expected.keys()
    assert off(states, truth) < 1e-5 + 4 * off(theirs, truth)
    for name in found:
        assert off(found[name], right[name]) < 1e-5 + 4 * off(expected[name], right[name]), name


@pytest.mark.prove
@pytest.mark.skipif(platform.machine() != "x86_64", reason="names instruction sets of x86-64")
@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v2"])
def test_other_instruction_sets_give_the_same_up_to_rounding(tmp_path, monkeypatch, level):
    wanted, (ids, offsets) = pair(SHAPE)[0], rows_of(1, 12, n=60)
    monkeypatch.setenv("ASSAY_CXXFLAGS", f"-march={level}")
    library = builds.build(tmp_path)
    monkeypatch.setattr(builds, "kernel", lambda: library)
    found = pair(SHAPE)[0]
    weight = torch.randn(len(ids), SHAPE.hidden_size, generator=torch.Generator().manual_seed(0))
    (states, a), (theirs, b) = (gradients(d, ids, offsets, None, weight) for d in (found, wanted))
    gap = off(states, theirs.double())
    assert gap < 1e-5
    assert gap > 0 or level == "x86-64-v3"  # which may be this processor's own
    assert max(off(a[n], b[n].double()) for n in a) < 2e-5


def off(found, truth):
    return float((found.double() - truth).abs().max() / truth.abs().max().clamp_min(1e-9))


def test_bits_do_not_depend_on_threads(threads):
    compiled, _ = pair(SHAPE)
    ids, offsets = rows_of(1, 12, n=400)
    weight = torch.randn(len(ids), SHAPE.hidden_size, generator=torch.Generator().manual_seed(0))
    threads(1)
    states, found = gradients(compiled, ids, offsets, None, weight)
    kept = {n: g.clone() for n, g in found.items()}
    threads(3)
    again, found = gradients(compiled, ids, offsets, None, weight)
    assert torch.equal(states, again)
    assert all(torch.equal(kept[n], found[n]) for n in kept)


@pytest.mark.prove
@pytest.mark.skipif(platform.machine() != "x86_64", reason="names instruction sets of x86-64")
@pytest.mark.parametrize("processor", ["znver3", "haswell"])
def test_states_do_not_depend_on_the_other_rows_where_the_compiler_tunes_for(processor, tmp_path, monkeypatch):
    monkeypatch.setenv("ASSAY_CXXFLAGS", f"-march=x86-64-v3 -mtune={processor}")
    library = builds.build(tmp_path)
    monkeypatch.setattr(builds, "kernel", lambda: library)
    test_states_do_not_depend_on_the_other_rows()


def test_states_do_not_depend_on_the_other_rows():
    compiled, _ = pair(SHAPE)
    ids, offsets = rows_of(2, 3, n=60)
    together = compiled.hidden_states(ids, pack_offsets(offsets)).detach()
    for a, b in pairwise(offsets):
        alone = compiled.hidden_states(ids[a:b], pack_offsets(np.array([0, b - a])), torch.arange(b - a)).detach()
        assert torch.equal(alone, together[a:b])


def test_what_rows_begin_with_is_computed_once():
    compiled, _ = pair(SHAPE)
    rows = [[1, 2, 3, 4], [1, 2, 3, 5, 6], [1, 2, 3, 4], [1, 2], [7]]  # 1 2 3 4, 5 6 behind 3, and 7
    offsets = np.concatenate([[0], np.cumsum([len(r) for r in rows])])
    ids = torch.tensor(np.concatenate(rows))
    compiled.hidden_states(ids, pack_offsets(offsets))
    assert compiled._passes.nodes == 7


def test_long_rows_stand_by_themselves():
    shape = replace(SHAPE, max_positions=1200)
    compiled, plain = pair(shape)
    offsets = np.array([0, 1100, 1103, 2203])
    ids = torch.randint(0, 12, (2203,), generator=torch.Generator().manual_seed(0))
    ids[1103:1600] = ids[:497]
    weight = torch.randn(2203, shape.hidden_size, generator=torch.Generator().manual_seed(1))
    (states, found), (theirs, expected) = (gradients(d, ids, offsets, None, weight) for d in (compiled, plain))
    assert off(states, theirs.double()) < 2e-5
    assert max(off(found[n], expected[n].double()) for n in found) < 5e-5


def test_a_gradient_is_by_the_weights_of_its_own_pass():
    compiled, plain = pair(SHAPE)
    ids, offsets = rows_of(3, 12)
    packing = pack_offsets(offsets)
    expected = plain.hidden_states(ids, packing).square().sum()
    expected.backward()
    found = compiled.hidden_states(ids, packing).square().sum()
    with torch.no_grad():
        compiled.hidden_states(ids, packing)  # packs weights that no backward pass can read
    found.backward()
    for (name, a), b in zip(compiled.named_parameters(), plain.parameters(), strict=True):
        if b.grad is not None:
            assert off(a.grad, b.grad.double()) < 1e-5, name
    changed = compiled.hidden_states(ids, packing).sum()
    with torch.no_grad():
        compiled.model.norm.weight.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        changed.backward()


def test_a_gradient_is_by_the_weights_of_its_own_pass_whatever_was_packed_since():
    compiled, other = pair(SHAPE)[0], pair(SHAPE, seed=1)[0]
    ids, offsets = rows_of(3, 12)
    packing, alone = pack_offsets(offsets), pair(SHAPE)[0]
    alone.hidden_states(ids, packing).square().sum().backward()
    own, others = (list(d.model.parameters()) for d in (compiled, other))
    found = compiled.hidden_states(ids, packing).square().sum()
    compiled._passes.hidden_states(others, ids, packing)  # packed for both passes
    with torch.no_grad():
        compiled._passes.hidden_states(own, ids, packing)  # and for one
    found.backward()
    for (name, a), b in zip(compiled.named_parameters(), alone.parameters(), strict=True):
        assert torch.equal(a.grad, b.grad), name


@given(st.integers(0, 2**32), st.booleans())
@settings(max_examples=25)
def test_weights_that_stay_are_packed_once_and_any_changed_bit_is_seen(seed, keep):
    rng = np.random.default_rng(seed)
    compiled = pair(SHAPE)[0]
    compiled.requires_grad_(keep)
    ids, offsets = rows_of(seed, 12, n=4)
    packing = pack_offsets(offsets)
    assert torch.equal(compiled.hidden_states(ids, packing), compiled.hidden_states(ids, packing))
    packed = compiled._passes._loaded
    weight = list(compiled.model.parameters())[rng.integers(len(list(compiled.model.parameters())))]
    bits = weight.detach().numpy().reshape(-1).view(np.uint32)  # as an optimiser's step in C++ writes: PyTorch counts no change
    bits[rng.integers(len(bits))] ^= np.uint32(1 << rng.integers(0, 30))
    fresh = Decoder(SHAPE, kernel=True).requires_grad_(keep)
    fresh.load_state_dict(compiled.state_dict())
    assert torch.equal(compiled.hidden_states(ids, packing), fresh.hidden_states(ids, packing))
    assert compiled._passes._loaded == fresh._passes._loaded != packed


def test_only_weights_that_learn_get_a_gradient():
    compiled, _ = pair(SHAPE)
    compiled.requires_grad_(False)
    ids, offsets = rows_of(4, 12)
    assert not compiled.hidden_states(ids, pack_offsets(offsets)).requires_grad
    compiled.model.norm.weight.requires_grad_(True)
    compiled.hidden_states(ids, pack_offsets(offsets)).sum().backward()
    assert [n for n, p in compiled.named_parameters() if p.grad is not None] == ["model.norm.weight"]


def test_autocast_and_other_types_are_left_to_pytorch():
    compiled, _ = pair(SHAPE)
    ids, offsets = rows_of(5, 12)
    assert compiled.shares
    with torch.autocast("cpu", torch.bfloat16):
        assert not compiled.shares
    exact = compiled.double()
    assert exact.hidden_states(ids, pack_offsets(offsets)).dtype == torch.float64


def test_what_would_read_beyond_an_array_is_refused():
    compiled, _ = pair(SHAPE)
    packing = pack_offsets(np.array([0, 3]))
    with pytest.raises(IndexError, match="ids reach from 1 to 12; there are 12"):
        compiled.hidden_states(torch.tensor([1, 2, 12]), packing)
    with pytest.raises(IndexError, match="wanted tokens reach from -1 to 2; there are 3"):
        compiled.hidden_states(torch.tensor([1, 2, 3]), packing, torch.tensor([-1, 2]))
    long = pack_offsets(np.array([0, 129]))
    with pytest.raises(IndexError, match="a row has 129 tokens, the shape 128 positions"):
        compiled.hidden_states(torch.zeros(129, dtype=torch.int64), long)


def test_a_tape_goes_with_its_graph(monkeypatch):
    compiled, _ = pair(SHAPE)
    passes, gone = compiled._passes, []
    forget = passes.functions.assay_train_forget
    monkeypatch.setattr(passes, "functions", Watched(passes.functions, gone, forget))
    ids, offsets = rows_of(6, 12)
    states = compiled.hidden_states(ids, pack_offsets(offsets))
    assert not gone
    del states
    gc.collect()
    assert len(gone) == 1


class Watched:
    """A library that notes which tapes are freed."""

    def __init__(self, library, gone, forget):
        self._functions, self._gone, self._forget = library, gone, forget

    def __getattr__(self, name):
        return getattr(self._functions, name)

    def assay_train_forget(self, pointer):
        self._gone.append(pointer)
        self._forget(pointer)


# ---- a learner ---------------------------------------------------------------------------------------------------------------


class Likelihood:
    """Negative log-likelihood and a share of the entropy."""

    def prepare(self, batch):
        return batch

    def active(self, batch):
        return np.ones(len(batch), np.bool_)

    def micro(self, batch, live):
        return (-live["logp_new"] + 0.1 * live["entropy"])[torch.from_numpy(batch.token("mask"))].sum() / batch.counts.tokens, {}


def batch_of(groups=6, size=4):
    rng = np.random.default_rng(0)
    made = []
    for g in range(groups):
        prompt = rng.integers(2, 12, 3 + g)
        for _ in range(size):
            made.append(
                (
                    len(made),
                    supervised_sample(
                        str(len(made)), [(ids_of(prompt), False), (ids_of(rng.integers(2, 12, rng.integers(1, 9))), True)]
                    ),
                )
            )
    return pack_rows(made, {"group": np.repeat(np.arange(groups), size)})


def test_a_learner_steps_as_with_pytorch_and_counts_no_padding():
    model = init_model(DecoderShape(vocab_size=14), char_tokenizer("0123456789ab"), seed=0, init="fan_in")
    learners = [TorchLearner(model, LearnerSettings(kernel=kernel, micro_tokens=100), total_steps=9) for kernel in (True, False)]
    plan = Plan(live=("logp_new", "entropy"))
    for _ in range(3):
        ours, theirs = (learner.step(batch_of(), plan, Likelihood()).metrics for learner in learners)
        assert ours["loss/total"] == pytest.approx(theirs["loss/total"], rel=1e-5)
        assert ours["grad/norm"] == pytest.approx(theirs["grad/norm"], rel=1e-4)
        assert ours["waste/attention_padding"] == 0.0 < theirs["waste/attention_padding"]
    for (name, a), b in zip(learners[0].weights().items(), learners[1].weights().values(), strict=True):
        assert float((a - b).abs().max()) < 2e-4, name


def test_rows_of_a_group_stand_together_where_beginnings_are_shared():
    batch = batch_of()
    parts = micro_batches(batch, 100, together=True)
    assert sorted(np.concatenate(parts).tolist()) == list(range(24))
    assert all(int(batch.lengths[part].sum()) <= 100 for part in parts)
    groups = [set(batch.per_row("group")[part].tolist()) for part in parts]
    assert sum(map(len, groups)) < sum(len(set(batch.per_row("group")[part].tolist())) for part in micro_batches(batch, 100))
    assert sum(map(len, groups)) <= 6 + len(parts) - 1  # a group is cut only where a micro-batch ends


def test_without_a_compiler_it_is_pytorchs(monkeypatch):
    monkeypatch.setattr(builds, "_load_library", lambda: builds.BuildError("no C++ compiler"))
    builds._warn.cache_clear()
    with pytest.warns(RuntimeWarning, match="computing with PyTorch"):
        assert not Decoder(SHAPE, kernel=True).shares
    builds._warn.cache_clear()
