import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from assay.runtime import kernels
from assay.runtime.kernels import head_columns, rms_norm, rotate


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


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(kernels, "HEAD_ELEMENTS", 14)
    monkeypatch.setattr(kernels, "HEAD_ROWS", 1)


@pytest.mark.usefixtures("small_chunks")
def test_head_columns_equal_plain_softmax_over_several_chunks():
    hidden, weight = normal(9, 4), normal(7, 4, seed=1)
    targets = torch.tensor([0, 6, 1, 1, 2, 3, 4, 5, 6])
    logp, entropy = head_columns(hidden, weight, targets, True)
    table = torch.log_softmax(hidden @ weight.T, 1)
    assert torch.allclose(logp, table.gather(1, targets[:, None])[:, 0], atol=1e-12)
    assert torch.allclose(entropy, -(table.exp() * table).sum(1), atol=1e-12)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("used", ["logp", "entropy", "both"])
def test_head_gradients_are_right(used):
    targets = torch.tensor([0, 2, 2, 1, 4])

    def pick(hidden, weight):
        logp, entropy = head_columns(hidden, weight, targets, used != "logp")
        if used == "both":
            return logp * 2 + entropy**2
        return logp if used == "logp" else entropy

    assert torch.autograd.gradcheck(pick, (normal(5, 3), normal(6, 3, seed=1)))


def test_no_tokens_no_gradient():
    hidden, weight = normal(0, 3), normal(6, 3)
    logp, entropy = head_columns(hidden, weight, torch.zeros(0, dtype=torch.int64))
    (logp.sum() + entropy.sum()).backward()
    assert weight.grad.abs().sum() == 0


class Largest(TorchDispatchMode):
    """Remembers the most elements of any tensor that an operation made, weight-sized ones apart."""

    def __init__(self, ignore):
        super().__init__()
        self.ignore, self.elements = ignore, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, tuple | list) else [out]:
            if isinstance(tensor, torch.Tensor) and tuple(tensor.shape) not in self.ignore:
                self.elements = max(self.elements, tensor.numel())
        return out


def test_logits_of_all_tokens_never_exist_at_once(monkeypatch):
    monkeypatch.setattr(kernels, "HEAD_ELEMENTS", 64 * 500)
    tokens, vocabulary, width = 1000, 500, 8
    hidden, weight = normal(tokens, width), normal(vocabulary, width)
    with Largest(ignore={(vocabulary, width), (width, vocabulary)}) as largest:
        logp, entropy = head_columns(hidden, weight, torch.arange(tokens) % vocabulary, True)
        (logp.sum() + entropy.sum()).backward()
    assert largest.elements == 64 * vocabulary
