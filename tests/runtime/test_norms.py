"""RMS norms in one kernel: what is replaced, and that nothing changes but rounding."""

from __future__ import annotations

import pytest
import torch
from hub_cases import FAMILIES, hub_model
from torch import nn
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from assay.runtime.kernels.norms import fuse_norms
from assay.runtime.learner.hub_decoder import HubDecoder
from assay.runtime.learner.packing import pack_offsets

PLAIN = ("qwen3", "llama", "mistral", "mixtral", "phi3")


class Added(LlamaRMSNorm):
    """Gemma's: its weight is a difference from one."""

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return super().forward(hidden_states) / self.weight * (1.0 + self.weight)


class Coarser(LlamaRMSNorm):
    """Another epsilon than it says."""

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        wide = hidden_states.float()
        return self.weight * (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 2e-6)).to(hidden_states.dtype)


class GatedRMSNorm(LlamaRMSNorm):
    def forward(self, hidden_states: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        return super().forward(hidden_states) * gate


Added.__name__, Coarser.__name__ = "AddedRMSNorm", "CoarserRMSNorm"


@pytest.mark.parametrize("kind", [Added, Coarser, GatedRMSNorm, nn.LayerNorm])
def test_norms_that_compute_something_else_stay_as_they_are(kind: type[nn.Module]) -> None:
    part = kind(16)
    assert fuse_norms(nn.Sequential(part)) == 0 and "forward" not in vars(part)


@pytest.mark.parametrize("weight", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("states", [torch.float32, torch.bfloat16])
def test_a_fused_norm_gives_the_same_numbers_type_and_gradients(weight: torch.dtype, states: torch.dtype) -> None:
    made: dict[bool, list[torch.Tensor]] = {}
    for fused in (False, True):
        part = LlamaRMSNorm(16).to(weight)
        x = torch.randn(5, 16, generator=torch.Generator().manual_seed(1)).to(states).requires_grad_()
        with torch.no_grad():
            part.weight.copy_(torch.linspace(-1, 2, 16))
        if fused:
            assert fuse_norms(nn.Sequential(part)) == 1
        out = part(x)
        (out.float() * torch.linspace(-1, 1, 80).view(5, 16)).sum().backward()
        made[fused] = [out.detach(), x.grad, part.weight.grad]
    bound = 1e-5 if weight == states == torch.float32 else 2**-5
    for mine, theirs in zip(made[True], made[False], strict=True):
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
        assert float((mine.float() - theirs.float()).abs().max()) < bound


@pytest.mark.parametrize("family", [f for f in FAMILIES if f in (*PLAIN, "gemma2", "gpt2")])
def test_a_decoder_with_fused_norms_is_the_same_decoder(family: str) -> None:
    model = hub_model(family)
    plain, fused = HubDecoder(model), HubDecoder(model, fused_norms=True)
    norms = [part for part in fused.module.modules() if type(part).__name__.endswith("RMSNorm")]
    assert all(("forward" in vars(part)) == (family in PLAIN) for part in norms) and (len(norms) > 4) == (family != "gpt2")
    assert not any("forward" in vars(part) for part in plain.module.modules() if type(part).__name__.endswith("RMSNorm"))
    ids, packing = torch.arange(2, 22), pack_offsets(torch.tensor([0, 7, 20]).numpy())
    gradients: list[torch.Tensor] = []
    for decoder in (plain, fused):
        decoder.columns(ids, packing, torch.tensor([3, 5, 9, 19]))[0].sum().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in decoder.trainable_parameters().values() if p.grad is not None]))
    assert torch.allclose(plain.hidden_states(ids, packing), fused.hidden_states(ids, packing), atol=2e-5)
    assert float((gradients[0] - gradients[1]).norm()) < 1e-5 * float(gradients[0].norm())
