"""The compiled head: PyTorch's log-probabilities, entropies and gradients, the same bits in any company and on any threads."""

from __future__ import annotations

import math
import platform

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.runtime import DecoderShape
from assay.runtime.compiled import build as builds
from assay.runtime.compiled.head import LARGEST, compiled_columns
from assay.runtime.learner.decoder import Decoder
from assay.runtime.learner.lm_head import LmHead, head_columns
from assay.runtime.learner.packing import pack_offsets


def inputs(seed, positions, hidden, vocabulary, spread=1.0):
    generator = torch.Generator().manual_seed(seed)
    states = torch.randn(positions, hidden, generator=generator)
    weight = spread * hidden**-0.5 * torch.randn(vocabulary, hidden, generator=generator)
    targets = torch.randint(0, vocabulary, (positions,), generator=generator)
    return states, weight, targets, torch.randn(2, positions, generator=generator)


def columns(library, given, entropy=True, dtype=torch.float32, learn=(True, True)):
    """Log-probabilities, entropies, and the gradients by states and weight of a sum of both."""
    states, weight, targets, by = given
    states, weight = (t.detach().clone().to(dtype).requires_grad_(on) for t, on in zip((states, weight), learn, strict=True))
    logp, spread = head_columns(states, LmHead(weight, library=library), targets, entropy)
    loss = (logp * by[0].to(dtype)).sum()
    (loss + (spread * by[1].to(dtype)).sum() if entropy else loss).backward()
    return logp.detach(), spread.detach(), states.grad, weight.grad


def off(found, truth):
    return float((found.double() - truth).abs().max() / truth.abs().max().clamp_min(1e-9)) if len(truth) else 0.0


@settings(max_examples=40)
@given(
    seed=st.integers(0, 99),
    positions=st.sampled_from([1, 2, 95, 97, 300]),
    hidden=st.integers(1, 70),
    vocabulary=st.integers(2, 200),
    spread=st.sampled_from([0.0, 1.0, 12.0]),
    entropy=st.booleans(),
)
def test_any_sizes_give_the_columns_and_gradients_of_pytorch(seed, positions, hidden, vocabulary, spread, entropy):
    given_ = inputs(seed, positions, hidden, vocabulary, spread)
    found = columns(builds.kernel(), given_, entropy)
    theirs = columns(None, given_, entropy)
    truth = columns(None, given_, entropy, torch.float64)
    for ours, other, right in zip(found, theirs, truth, strict=True):
        assert ours.shape == other.shape
        # A gradient by states adds up multiples of large weights that nearly cancel, each rounded.
        assert off(ours, right) < 5e-6 * max(1, spread / 3) + 4 * off(other, right)


def test_numbers_by_hand():
    """Logits 0, log 2 and log 5: probabilities of 1, 2 and 5 eighths."""
    states, weight = torch.ones(1, 1, requires_grad=True), torch.tensor([[0.0], [math.log(2)], [math.log(5)]], requires_grad=True)
    logp, spread = compiled_columns(builds.build(), states, weight, torch.tensor([1]), entropy=True)
    p = np.array([1, 2, 5]) / 8
    assert logp.item() == pytest.approx(math.log(0.25), abs=1e-6)
    assert spread.item() == pytest.approx(-(p * np.log(p)).sum(), abs=1e-6)
    (by_logp,) = torch.autograd.grad(logp.sum(), weight, retain_graph=True)
    assert by_logp[:, 0].tolist() == pytest.approx([-0.125, 0.75, -0.625], abs=1e-6)
    (by_spread,) = torch.autograd.grad(spread.sum(), weight)
    assert by_spread[:, 0].tolist() == pytest.approx((-p * (np.log(p) + spread.item())).tolist(), abs=1e-6)


def test_logits_far_apart():
    """The chosen token almost certain, or out of reach of float32's exponential."""
    weight = torch.tensor([[300.0], [0.0], [-300.0]])
    logp, spread = compiled_columns(builds.build(), torch.ones(3, 1), weight, torch.arange(3), entropy=True)
    assert logp.tolist() == [0.0, -300.0, -600.0]
    assert spread.abs().max() < 1e-30


def test_a_position_that_is_not_finite_is_alone():
    given_ = inputs(0, 300, 20, 50)
    fine = columns(builds.kernel(), given_)
    given_[0][7, 3] = float("nan")
    found = columns(builds.kernel(), given_)
    for a, b in zip(fine[:3], found[:3], strict=True):
        assert b[7].isnan().all()
        assert torch.equal(a[:7], b[:7]) and torch.equal(a[8:], b[8:])


def test_bits_do_not_depend_on_threads():
    given_, before, found = inputs(0, 3000, 96, 500), torch.get_num_threads(), []
    for threads in (1, 3):
        torch.set_num_threads(threads)
        found.append(columns(builds.kernel(), given_))
    torch.set_num_threads(before)
    assert all(map(torch.equal, *found))


def test_positions_do_not_depend_on_the_others():
    states, weight, targets, by = inputs(0, 200, 30, 98)
    together = columns(builds.kernel(), (states, weight, targets, by))
    for i in (0, 95, 96, 199):
        alone = columns(builds.kernel(), (states[i : i + 1], weight, targets[i : i + 1], by[:, i : i + 1]))
        assert all(torch.equal(a[0], b[i]) for a, b in zip(alone[:3], together[:3], strict=True))


@pytest.mark.parametrize("learn", [(True, False), (False, True)])
def test_what_does_not_learn_gets_no_gradient(learn):
    given_ = inputs(0, 30, 8, 9)
    both, found = columns(builds.kernel(), given_), columns(builds.kernel(), given_, learn=learn)
    for gradient, whole, on in zip(found[2:], both[2:], learn, strict=True):
        assert torch.equal(gradient, whole) if on else gradient is None


def test_of_two_columns_one_may_go_unused():
    states, weight, targets, by = inputs(0, 30, 8, 9)
    for used in (0, 1):
        found = []
        for library in (builds.kernel(), None):
            ours = states.clone().requires_grad_()
            (head_columns(ours, LmHead(weight, library=library), targets, True)[used] * by[0]).sum().backward()
            found.append(ours.grad)
        assert off(found[0], found[1].double()) < 1e-5


def test_an_id_that_is_none_of_the_vocabularys_is_refused():
    states, weight, targets, _ = inputs(0, 30, 8, 9)
    for wrong in (-1, 9):
        targets[3] = wrong
        with pytest.raises(IndexError, match="an id is none of the vocabulary's 9"):
            compiled_columns(builds.build(), states, weight, targets)


def test_no_positions_are_no_numbers():
    states, weight, targets, by = inputs(0, 0, 8, 9)
    logp, spread, by_states, by_weight = columns(builds.kernel(), (states, weight, targets, by))
    assert len(logp) == len(spread) == len(by_states) == 0
    assert by_weight.shape == weight.shape and not by_weight.any()


def test_what_it_cannot_is_left_to_pytorch(monkeypatch):
    calls = []
    monkeypatch.setattr("assay.runtime.learner.lm_head.compiled_columns", lambda *given: calls.append(given) or (None, None))
    states, weight, targets, _ = inputs(0, 3, 2, LARGEST + 1)
    library = builds.build()
    some, ids = weight[:9], targets % 9
    head_columns(states, LmHead(weight, library=library), targets)
    head_columns(states, LmHead(some, bias=torch.zeros(9), library=library), ids)
    head_columns(states, LmHead(some, cap=30.0, library=library), ids)
    head_columns(states, LmHead(some, half=True, library=library), ids)
    head_columns(states.double(), LmHead(some.double(), library=library), ids)
    assert not calls
    head_columns(states, LmHead(some, library=library), ids)
    assert len(calls) == 1


@pytest.mark.parametrize("tied", [True, False])
def test_a_decoder_computes_by_it_unless_told_not_to(monkeypatch, tied):
    shape = DecoderShape(vocab_size=12, hidden_size=16, num_layers=1, tied=tied)
    assert Decoder(shape, kernel=False).head.library is None
    compiled, calls = Decoder(shape, kernel=True), []
    monkeypatch.setattr(
        "assay.runtime.learner.lm_head.compiled_columns", lambda *given: calls.append(given) or compiled_columns(*given)
    )
    compiled.columns(torch.tensor([1, 2, 3]), pack_offsets(np.array([0, 3])), torch.tensor([1, 2]))
    assert len(calls) == 1


@pytest.mark.prove
@pytest.mark.skipif(platform.machine() != "x86_64", reason="names instruction sets of x86-64")
@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v2"])
def test_other_instruction_sets_give_the_same_up_to_rounding(tmp_path, monkeypatch, level):
    given_ = inputs(0, 300, 96, 98)
    wanted = columns(builds.kernel(), given_)
    monkeypatch.setenv("ASSAY_CXXFLAGS", f"-march={level}")
    found = columns(builds.build(tmp_path), given_)
    gap = max(off(a, b.double()) for a, b in zip(found, wanted, strict=True))
    assert gap < 1e-5
    assert gap > 0 or level == "x86-64-v3"  # which may be this processor's own
