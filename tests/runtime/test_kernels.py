import math

import pytest
import torch

from assay.runtime.kernels.ops import rms_norm, rotate


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, dtype=torch.float64, grad=True, seed=0):
    return torch.randn(*shape, dtype=dtype, generator=generator(seed)).requires_grad_(grad)


def test_rms_norm_by_hand():
    # mean of squares of (3, 4) is 12.5
    y = rms_norm(torch.tensor([[3.0, 4.0]]), torch.tensor([1.0, 10.0]), 0.0)
    assert y[0].tolist() == pytest.approx([3 / math.sqrt(12.5), 40 / math.sqrt(12.5)])


def test_rms_norm_gradient_is_right():
    assert torch.autograd.gradcheck(lambda x, w: rms_norm(x, w, 1e-3), (normal(5, 2, 6), normal(6, seed=1)))


def test_rms_norm_of_bf16_is_computed_in_fp32():
    x = normal(4, 8, dtype=torch.bfloat16)
    y = rms_norm(x, torch.ones(8), 1e-6)
    assert y.dtype == torch.float32
    assert torch.equal(y, rms_norm(x.float(), torch.ones(8), 1e-6))
    y.sum().backward()
    assert x.grad.dtype == torch.bfloat16


def test_rotate_by_hand_and_keeps_length():
    angle = torch.tensor([0.0, math.pi / 2])
    cos = torch.cat([angle.cos()[:, None]] * 2, 1)[:, None]
    sin = torch.cat([-angle.sin()[:, None], angle.sin()[:, None]], 1)[:, None]
    x = torch.tensor([[[1.0, 2.0]], [[1.0, 2.0]]])
    y = rotate(x, cos, sin)
    assert y[0, 0].tolist() == [1.0, 2.0]
    assert y[1, 0].tolist() == pytest.approx([-2.0, 1.0], abs=1e-6)  # a quarter turn of (1, 2)


def test_rotate_gradient_is_right():
    angle = torch.rand(3, 1, 2, dtype=torch.float64, generator=generator())
    cos = torch.cat([angle.cos(), angle.cos()], 2)
    sin = torch.cat([-angle.sin(), angle.sin()], 2)
    assert torch.autograd.gradcheck(lambda x: rotate(x, cos, sin), (normal(3, 2, 4),))
