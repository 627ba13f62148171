import pytest
import torch
from torch import nn

from assay.core.errors import CheckpointError
from assay.runtime.learner.optim import AdamWOptimizer, MuonOptimizer, build_optimizer, newton_schulz
from assay.runtime.settings import AdamW, Muon

LAYER = "model.layers.0.mlp.up_proj.weight"


def parameters(seed=0):
    g = torch.Generator().manual_seed(seed)
    matrices = ["model.embed_tokens.weight", LAYER, "model.layers.1.mlp.up_proj.weight"]
    shapes = {**dict.fromkeys(matrices, (6, 4)), "model.norm.weight": (4,)}
    out = {name: nn.Parameter(torch.randn(shape, generator=g)) for name, shape in shapes.items()}
    for parameter in out.values():
        parameter.grad = torch.randn(parameter.shape, generator=g)
    return out


def test_first_adamw_step_moves_by_the_rate_in_the_sign_of_the_gradient():
    named = parameters()
    before = {n: p.detach().clone() for n, p in named.items()}
    AdamWOptimizer(AdamW(lr=0.1, eps=1e-12), named).step(0.5)
    for name, parameter in named.items():
        assert torch.allclose(parameter, before[name] - 0.05 * parameter.grad.sign(), atol=1e-5)


def test_weight_decay_spares_norm_scales():
    named = parameters()
    before = {n: p.detach().clone() for n, p in named.items()}
    for parameter in named.values():
        parameter.grad.zero_()
    AdamWOptimizer(AdamW(lr=0.1, weight_decay=0.5), named).step(1.0)
    assert torch.allclose(named[LAYER], before[LAYER] * 0.95)
    assert torch.equal(named["model.norm.weight"], before["model.norm.weight"])


def test_newton_schulz_brings_singular_values_near_one_and_keeps_directions():
    g = torch.Generator().manual_seed(0)
    for shape in ((3, 8, 5), (2, 5, 8), (2, 6, 6)):
        x = torch.randn(shape, generator=g)
        y = newton_schulz(x)
        u, _, v = torch.linalg.svd(x, full_matrices=False)
        inner = u.mT @ y @ v.mT
        diagonal = inner.diagonal(dim1=-2, dim2=-1)
        assert ((diagonal > 0.6) & (diagonal < 1.2)).all()
        assert (inner - torch.diag_embed(diagonal)).abs().max() < 1e-4
    assert newton_schulz(torch.zeros(1, 3, 3)).abs().max() == 0


def test_newton_schulz_of_one_number_by_hand():
    # x = 1 goes through f(x) = 3.4445 x - 4.775 x^3 + 2.0315 x^5 five times
    x = 1.0
    for _ in range(5):
        x = 3.4445 * x - 4.7750 * x**3 + 2.0315 * x**5
    assert newton_schulz(torch.tensor([[[7.0]]])).item() == pytest.approx(x, rel=1e-5)


@pytest.mark.parametrize("nesterov", [True, False])
def test_first_muon_step_by_its_definition(nesterov):
    named = parameters()
    before = {n: p.detach().clone() for n, p in named.items()}
    settings = Muon(lr=0.02, momentum=0.9, nesterov=nesterov, weight_decay=0.1, others=AdamW(lr=0.01, eps=1e-12))
    MuonOptimizer(settings, named).step(1.0)
    gradient = named[LAYER].grad
    momentum = 0.1 * gradient
    direction = newton_schulz((gradient * 0.1 + momentum * 0.9 if nesterov else momentum)[None])[0]
    wanted = before[LAYER] * (1 - 0.02 * 0.1) - 0.02 * (6 / 4) ** 0.5 * direction
    assert torch.allclose(named[LAYER], wanted, atol=1e-5)
    for name in ("model.embed_tokens.weight", "model.norm.weight"):  # AdamW's
        assert torch.allclose(named[name], before[name] - 0.01 * named[name].grad.sign(), atol=1e-5)


@pytest.mark.parametrize("settings", [AdamW(), AdamW(weight_decay=0.1), Muon()])
def test_restored_state_continues_bit_for_bit(settings):
    named = parameters()
    optimizer = build_optimizer(settings, named)
    optimizer.step(1.0)
    saved = {n: t.clone() for n, t in optimizer.tensors().items()}
    copies = {n: nn.Parameter(p.detach().clone()) for n, p in named.items()}
    for name, parameter in copies.items():
        parameter.grad = named[name].grad.clone()
    other = build_optimizer(settings, copies)
    other.load_tensors(saved)
    for opt in (optimizer, other):
        opt.step(0.5)
        opt.step(0.25)
    assert all(torch.equal(named[n], copies[n]) for n in named)
    assert {n: t.tolist() for n, t in optimizer.tensors().items()} == {n: t.tolist() for n, t in other.tensors().items()}


@pytest.mark.parametrize("settings", [AdamW(), Muon()])
def test_foreign_state_is_refused_and_changes_nothing(settings):
    optimizer = build_optimizer(settings, parameters())
    optimizer.step(1.0)
    saved = {n: t.clone() for n, t in optimizer.tensors().items()}
    first = sorted(saved)[0]
    for foreign in (
        {n: t for n, t in saved.items() if n != first},
        {**saved, "momentum/else": torch.zeros(2)},
        {**saved, first: torch.zeros(1, 2, 3)},
        {**saved, first: saved[first].double()},
    ):
        with pytest.raises(CheckpointError, match="state: "):
            optimizer.load_tensors(foreign)
        assert all(torch.equal(t, saved[n]) for n, t in optimizer.tensors().items())


@pytest.mark.parametrize("device", ["meta", "cpu"])
def test_momenta_lie_where_the_weights_are_that_they_move(device):
    """Before the first step, after it, and restored from tensors of another device."""
    named = parameters()
    for name in (n for n in named if ".mlp." in n):
        gradient = named[name].grad.to(device)
        named[name] = nn.Parameter(named[name].detach().to(device))
        named[name].grad = gradient
    made = MuonOptimizer(Muon(), named)
    made.step(1.0)
    assert {m.device.type for m in made.momenta.values()} == {device}
    saved = {n: torch.zeros(t.shape) for n, t in made.tensors().items()}
    made.load_tensors(saved)
    assert {m.device.type for m in made.momenta.values()} == {device}
