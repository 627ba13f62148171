"""AdamW by the compiled library: PyTorch's steps, the same bits on any number of threads, one form of state."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from assay.runtime.compiled import build as builds
from assay.runtime.learner.optim import AdamWOptimizer
from assay.runtime.settings import AdamW

SHAPES = st.lists(
    st.one_of(st.tuples(st.integers(1, 70)), st.tuples(st.integers(1, 40), st.integers(1, 40))), min_size=1, max_size=5
)


def named(shapes, seed, without=()):
    """Parameters of such shapes with gradients of different sizes; those at ``without`` have none."""
    generator = torch.Generator().manual_seed(seed)
    out = {f"{i}": nn.Parameter(torch.randn(shape, generator=generator)) for i, shape in enumerate(shapes)}
    for i, parameter in enumerate(out.values()):
        parameter.grad = None if i in without else torch.randn(parameter.shape, generator=generator) * 10.0 ** (2 * i - 4)
    return out


def off(found, truth):
    return float((found.detach().double() - truth.detach().double()).abs().max() / truth.detach().abs().max().clamp_min(1e-9))


@settings(max_examples=40)
@given(
    shapes=SHAPES,
    how=st.builds(
        AdamW,
        lr=st.sampled_from([1e-3, 0.1]),
        beta1=st.sampled_from([0.0, 0.4, 0.9]),
        beta2=st.sampled_from([0.0, 0.95, 0.999]),
        weight_decay=st.sampled_from([0.0, 0.3]),
        eps=st.sampled_from([1e-12, 1e-3]),
    ),
    seed=st.integers(0, 99),
    without=st.sets(st.integers(0, 4)),
)
def test_any_shapes_move_as_with_pytorch(shapes, how, seed, without):
    made = [named(shapes, seed, without) for _ in range(2)]
    both = [AdamWOptimizer(how, parameters, kernel) for parameters, kernel in zip(made, (True, False), strict=True)]
    for factor in (1.0, 0.5, 0.25):
        for optimizer in both:
            optimizer.step(factor)
    ours, theirs = (o.tensors() for o in both)
    assert list(ours) == list(theirs)
    for name, tensor in ours.items():
        assert tensor.shape == theirs[name].shape and tensor.dtype == theirs[name].dtype
        assert off(tensor, theirs[name]) < 1e-6, name
    assert all(off(made[0][n], made[1][n]) < 1e-6 for n in made[0])


def test_bits_do_not_depend_on_threads():
    before, found = torch.get_num_threads(), []
    for threads in (1, 3):
        torch.set_num_threads(threads)
        parameters = named([(1100, 1000), (7,), (300, 20)], 0)
        optimizer = AdamWOptimizer(AdamW(weight_decay=0.1), parameters, kernel=True)
        optimizer.step(1.0)
        optimizer.step(1.0)
        found.append([*parameters.values(), *optimizer.tensors().values()])
    torch.set_num_threads(before)
    assert all(map(torch.equal, *found))


@pytest.mark.parametrize("first", [True, False])
def test_either_path_goes_on_from_the_others_state(first):
    both = []
    for kernels in ((first, not first), (first, first)):
        parameters = named([(12, 8), (8,)], 0)
        begun, goes_on = (AdamWOptimizer(AdamW(lr=0.1), parameters, k) for k in kernels)
        begun.step(1.0)
        goes_on.load_tensors({n: t.clone() for n, t in begun.tensors().items()})
        goes_on.step(0.5)
        assert {t.item() for n, t in goes_on.tensors().items() if n.startswith("step/")} == {2.0}
        both.append([*parameters.values(), *goes_on.tensors().values()])
    assert all(off(a, b) < 1e-6 for a, b in zip(*both, strict=True))


def test_one_tensor_of_another_type_leaves_all_to_pytorch():
    parameters = named([(5, 8), (6,)], 0)
    assert AdamWOptimizer(AdamW(), parameters, kernel=True)._library is builds.kernel()
    parameters["1"] = nn.Parameter(parameters["1"].detach().double())
    assert AdamWOptimizer(AdamW(), parameters, kernel=True)._library is None
    assert AdamWOptimizer(AdamW(), named([(5, 8)], 0))._library is None
