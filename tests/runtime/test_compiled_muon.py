"""Muon by the compiled library: PyTorch's steps up to rounding, the same bits on any number of threads, one form of state."""

from __future__ import annotations

import platform
import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from assay.runtime.compiled import build as builds
from assay.runtime.learner.optim import MuonOptimizer, newton_schulz
from assay.runtime.settings import AdamW, Muon

SIZES = st.lists(st.tuples(st.integers(1, 150), st.integers(1, 150)), min_size=1, max_size=4)


def named(sizes, seed, without=()):
    """Parameters of such sizes with gradients, some of them of low rank; those at ``without`` have none."""
    generator = torch.Generator().manual_seed(seed)
    out = {}
    for i, (rows, columns) in enumerate(sizes):
        out[f"model.layers.{i}.weight"] = parameter = nn.Parameter(torch.randn(rows, columns, generator=generator))
        gradient = torch.randn(rows, columns, generator=generator)
        if i % 2:
            gradient = torch.randn(rows, 2, generator=generator) @ torch.randn(2, columns, generator=generator)
        parameter.grad = None if i in without else gradient * 10.0 ** (i - 2)
    out["model.norm.weight"] = nn.Parameter(torch.ones(4))  # AdamW's
    out["model.norm.weight"].grad = torch.zeros(4)
    return out


def hidden(parameters):
    return {n: p for n, p in parameters.items() if "layers" in n}


def momenta_of(parameters, seed):
    generator = torch.Generator().manual_seed(seed)
    return {f"momentum/{n}": 0.1 * torch.randn(p.shape, generator=generator) for n, p in hidden(parameters).items()}


def exact(how, parameter, momentum):
    """What a step makes of both, in float64, by the definition."""
    weight, momentum = parameter.detach().double(), momentum.double()
    gradient = torch.zeros_like(weight) if parameter.grad is None else parameter.grad.double()
    momentum = how.momentum * momentum + (1 - how.momentum) * gradient
    move = how.momentum * momentum + (1 - how.momentum) * gradient if how.nesterov else momentum
    scale = how.lr * max(1.0, weight.shape[0] / weight.shape[1]) ** 0.5
    return weight * (1 - how.lr * how.weight_decay) - scale * newton_schulz(move[None])[0], momentum


def off(found, truth):
    return float((found.detach().double() - truth).abs().max() / truth.abs().max().clamp_min(1e-9))


MUON = st.builds(
    Muon,
    lr=st.sampled_from([0.01, 1.0]),
    momentum=st.sampled_from([0.0, 0.3, 0.95]),
    nesterov=st.booleans(),
    weight_decay=st.sampled_from([0.0, 0.1]),
)


@settings(max_examples=40)
@given(sizes=SIZES, how=MUON, seed=st.integers(0, 99), without=st.sets(st.integers(0, 3)))
def test_any_shapes_move_as_with_pytorch(sizes, how, seed, without):
    made = [named(sizes, seed, without) for _ in range(2)]
    optimizers = [MuonOptimizer(how, parameters, kernel) for parameters, kernel in zip(made, (True, False), strict=True)]
    start = momenta_of(made[0], seed)
    truth = {n: exact(how, p, start[f"momentum/{n}"]) for n, p in hidden(made[0]).items()}
    for optimizer in optimizers:
        optimizer.load_tensors(start)
        optimizer.step(1.0)
    ours, theirs = (o.tensors() for o in optimizers)
    for n, (weight, momentum) in truth.items():
        assert off(made[0][n], weight) < 2e-6 + 4 * off(made[1][n], weight), n
        assert off(ours[f"momentum/{n}"], momentum) < 1e-6 + 2 * off(theirs[f"momentum/{n}"], momentum), n


def test_a_matrix_of_zeros_stays_where_it_is():
    parameters = named([(5, 8)], 0)
    parameters["model.layers.0.weight"].grad.zero_()
    before = {n: p.detach().clone() for n, p in parameters.items()}
    MuonOptimizer(Muon(), parameters, kernel=True).step(1.0)
    assert all(torch.equal(parameters[n], before[n]) for n in before)


def test_a_matrix_that_is_not_finite_is_no_longer_and_moves_no_other():
    parameters, others = named([(5, 8), (40, 8)], 0), named([(5, 8), (40, 8)], 0)
    first, second = hidden(parameters)
    parameters[first].grad[0, 0] = float("nan")
    for each in (parameters, others):
        MuonOptimizer(Muon(), each, kernel=True).step(1.0)
    assert parameters[first].isnan().all()
    assert torch.equal(parameters[second], others[second])


def stepped(parameters, steps=2):
    optimizer = MuonOptimizer(Muon(weight_decay=0.1), parameters, kernel=True)
    for _ in range(steps):
        optimizer.step(1.0)
    return [p.detach().clone() for p in hidden(parameters).values()] + list(optimizer.tensors().values())


def test_bits_do_not_depend_on_threads():
    sizes, before = [(96, 96), (96, 96), (250, 96), (33, 7), (96, 250), (1, 40)], torch.get_num_threads()
    found = []
    for threads in (1, 3):
        torch.set_num_threads(threads)
        found.append(stepped(named(sizes, 0)))
    torch.set_num_threads(before)
    assert all(map(torch.equal, *found))


def test_bits_do_not_depend_on_the_other_matrices():
    sizes = [(96, 96), (250, 100), (33, 7), (7, 33)]
    together = stepped(named(sizes, 0))
    for i, name in enumerate(hidden(named(sizes, 0))):
        alone = {n: p for n, p in named(sizes, 0).items() if n in (name, "model.norm.weight")}
        assert torch.equal(stepped(alone)[0], together[i])


@pytest.mark.parametrize("first", [True, False])
def test_either_path_goes_on_from_the_others_state(first):
    """Embedding and norm are AdamW's on both."""
    both = []
    for kernels in ((first, not first), (first, first)):
        parameters = named([(12, 8), (12, 8), (8, 20)], 0)
        parameters["model.embed_tokens.weight"] = nn.Parameter(torch.ones(9, 8))
        parameters["model.embed_tokens.weight"].grad = torch.ones(9, 8)
        begun, goes_on = (MuonOptimizer(Muon(others=AdamW(lr=0.1)), parameters, k) for k in kernels)
        begun.step(1.0)
        goes_on.load_tensors({n: t.clone() for n, t in begun.tensors().items()})
        goes_on.step(0.5)
        both.append([*parameters.values(), *goes_on.tensors().values()])
    assert all(off(a, b.detach().double()) < 1e-5 for a, b in zip(*both, strict=True))


def test_other_types_are_left_to_pytorch():
    for other in (lambda t: t.bfloat16(), lambda t: t.T, lambda t: t.to("meta")):
        parameters = named([(5, 8), (6, 7)], 0)
        assert MuonOptimizer(Muon(), parameters, kernel=True)._library is not None
        parameters["model.layers.1.weight"] = nn.Parameter(other(parameters["model.layers.1.weight"].detach()))
        assert MuonOptimizer(Muon(), parameters, kernel=True)._library is None


def test_without_a_compiler_it_is_pytorchs(monkeypatch):
    monkeypatch.setattr(builds, "_load_library", lambda: builds.BuildError("no C++ compiler"))
    builds._warn.cache_clear()
    ours, theirs = named([(5, 8)], 0), named([(5, 8)], 0)
    with pytest.warns(RuntimeWarning, match="computing with PyTorch"):
        MuonOptimizer(Muon(), ours, kernel=True).step(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MuonOptimizer(Muon(), theirs, kernel=False).step(1.0)
    assert all(torch.equal(a, b) for a, b in zip(ours.values(), theirs.values(), strict=True))
    builds._warn.cache_clear()


@pytest.mark.prove
@pytest.mark.skipif(platform.machine() != "x86_64", reason="names instruction sets of x86-64")
@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v2"])
def test_other_instruction_sets_give_the_same_up_to_rounding(tmp_path, monkeypatch, level):
    sizes = [(96, 96), (250, 96), (33, 7), (96, 250)]
    wanted = stepped(named(sizes, 0))
    monkeypatch.setenv("ASSAY_CXXFLAGS", f"-march={level}")
    library = builds.build(tmp_path)
    monkeypatch.setattr(builds, "kernel", lambda: library)
    found = stepped(named(sizes, 0))
    assert max(off(a, b.double()) for a, b in zip(found, wanted, strict=True)) < 1e-5
