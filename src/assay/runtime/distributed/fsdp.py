"""A decoder whose weights lie in parts on several ranks, by FSDP2: each layer is whole only while it computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from transformers.modeling_layers import GradientCheckpointingLayer

from assay.core.errors import CheckpointError, ConfigError
from assay.core.vocab import VocabStat
from assay.runtime.kernels.typed import local_of
from assay.runtime.learner.causal import Causal, copy_in
from assay.runtime.learner.hub_decoder import HubDecoder
from assay.runtime.learner.lm_head import LmHead
from assay.runtime.learner.packing import Packing
from assay.runtime.settings import HubShape

if TYPE_CHECKING:
    from assay.runtime.distributed.collectives import Collectives
    from assay.runtime.learner.routing_replay import RoutingReplay

__all__ = ["Sharded"]

T = TypeVar("T")


class _Root(nn.Module):
    """What FSDP2 takes for the model: inside its forward pass embedding, last norm and head are whole, whatever is computed."""

    def __init__(self, decoder: HubDecoder) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, work: Callable[..., Any], *given: Any) -> Any:
        return work(*given)


def _check_share(decoder: HubDecoder, size: int) -> None:
    config = decoder.module.config.get_text_config()
    heads = {int(getattr(config, name)) for name in ("num_attention_heads", "num_key_value_heads") if getattr(config, name, None)}
    if any(number % size for number in heads):
        raise ConfigError(
            f"Run.mesh.context={size}: {decoder.shape.architecture} has {' and '.join(map(str, sorted(heads)))} heads for keys "
            "and queries, which do not go into as many equal parts; use a divisor"
        )
    if not decoder.concatenated:
        raise ConfigError(
            f"Run.mesh.context={size}: the attention of {decoder.shape.architecture} cannot be shared ({decoder.note}); use "
            "Mesh(data=...)"
        )


class Sharded(Causal):
    """A `HubDecoder` in parts, behind the interface of `Causal`.

    Every rank makes one of the same weights, and calls it as often and in the same order as the others: each pass is a
    collective. `trained` and `weights` give this rank's parts, on which an optimiser that treats each number alike steps as on
    the whole; `whole` and `own` go from parts to whole tensors and back.

    Args:
        decoder: is cut up; no longer used by itself.
        ranks: all of them, those of the default process group.

    Raises:
        ConfigError: ranks share tokens, and the attention cannot be shared among as many.
    """

    def __init__(self, decoder: HubDecoder, ranks: Collectives) -> None:
        super().__init__()
        if ranks.share is not None:
            _check_share(decoder, ranks.share.size)
        self._decoder = (decoder,)  # in a tuple: the root alone owns it
        learns = set(decoder.trainable_parameters())
        mesh = init_device_mesh(decoder.device.type, (ranks.size,))
        root = _Root(decoder)
        for part in root.modules():
            if isinstance(part, GradientCheckpointingLayer):
                fully_shard(part, mesh=mesh)
        fully_shard(root, mesh=mesh)
        for part in root.modules():
            if isinstance(part, FSDPModule):  # gradients are added up: the losses of the ranks' rows are shares of one loss
                part.set_gradient_divide_factor(1.0)
                part.set_force_sum_reduction_for_comms(True)
        self._root: Any = root
        self._inside = False
        named = cast("dict[str, DTensor]", decoder.weights())
        self._parts = {name: nn.Parameter(local_of(p), requires_grad=False) for name, p in named.items()}
        self._whole = named
        self._trained = {name: part for name, part in self._parts.items() if name in learns}

    @property
    def shape(self) -> HubShape:
        """Sizes."""
        return self._decoder[0].shape

    @property
    def note(self) -> str:
        """Why rows are not concatenated; empty where they are."""
        return self._decoder[0].note

    @property
    def ragged(self) -> bool:
        """As `Causal.ragged`."""
        return self._decoder[0].ragged

    @property
    def replay(self) -> RoutingReplay | None:
        """As `Causal.replay`."""
        return self._decoder[0].replay

    @property
    def device(self) -> torch.device:
        """Where this rank computes."""
        return self._decoder[0].device

    @property
    def head(self) -> LmHead:
        """What gives logits; gathered from all ranks outside a pass."""
        head = self._decoder[0].head
        if self._inside:
            return head
        weight, bias = (None if part is None else cast(DTensor, part).full_tensor() for part in (head.weight, head.bias))
        return LmHead(cast(Tensor, weight), bias, head.scale, head.cap)

    @property
    def embedding(self) -> Tensor:
        """What ids are looked up in, whole."""
        return cast(DTensor, self._decoder[0].embedding).full_tensor()

    def trainable_parameters(self) -> dict[str, nn.Parameter]:
        """Parts of what learns, this rank's."""
        return self._trained

    def weights(self) -> dict[str, Tensor]:
        """Parts of all weights, this rank's."""
        return dict(self._parts)

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Copies this rank's parts of whole weights in."""
        whole = {name: self._whole[name] for name in self._trained}
        sizes = {name: torch.empty(t.shape, device="meta") for name, t in whole.items()}
        copy_in(sizes, {n: torch.empty(t.shape, device="meta") for n, t in tensors.items()}, self.shape.architecture, ConfigError)
        with torch.no_grad():
            for name, part in self._trained.items():
                part.copy_(self.own(name, tensors[name]))

    # ---- parts and wholes

    def whole(self, name: str, part: Tensor) -> Tensor:
        """As `Causal.whole`; a collective."""
        return self.shard(name, part).full_tensor()

    def shard(self, name: str, part: Tensor) -> DTensor:
        """As `Causal.shard`."""
        like = self._whole[name]
        return DTensor.from_local(
            part.detach(), like.device_mesh, like.placements, run_check=False, shape=like.shape, stride=like.stride()
        )

    def own(self, name: str, whole: Tensor) -> Tensor:
        """As `Causal.own`.

        Raises:
            CheckpointError: the tensor is of another shape.
        """
        like = self._whole[name]
        if whole.shape != like.shape:
            raise CheckpointError(
                f"{name!r} has shape {tuple(whole.shape)}, needed is {tuple(like.shape)}: it is another model's"
            )
        return local_of(distribute_tensor(whole.to(like.device), like.device_mesh, like.placements, src_data_rank=None))

    # ---- gradients

    def clear(self) -> None:
        """No gradient."""
        for name, part in self._trained.items():
            part.grad = None
            self._whole[name].grad = None

    def collect(self) -> None:
        """Hands the gradients that the passes left, added up over the ranks, to this rank's parts."""
        for name, part in self._trained.items():
            found = self._whole[name].grad
            part.grad = torch.zeros_like(part) if found is None else local_of(cast(DTensor, found))

    # ---- passes

    def within(self, work: Callable[..., T], *given: Any) -> T:
        """As `Causal.within`: a collective."""
        if self._inside:
            return work(*given)
        self._inside = True
        try:
            return self._root(work, *given)
        finally:
            self._inside = False
            if not torch.is_grad_enabled():  # no backward pass will come and put the parts back
                self._root.reshard()

    def hidden_states(self, ids: Tensor, packing: Packing, wanted: Tensor | None = None) -> Tensor:
        """Hidden states after the final norm, as `Causal.hidden_states` says."""
        return self.within(self._decoder[0].hidden_states, ids, packing, wanted)

    def columns(self, ids: Tensor, packing: Packing, where: Tensor, entropy: bool = False) -> tuple[Tensor, Tensor]:
        """As `Causal.columns`."""
        return self.within(self._decoder[0].columns, ids, packing, where, entropy)

    def statistics(
        self,
        ids: Tensor,
        packing: Packing,
        where: Tensor,
        stats: Sequence[VocabStat],
        models: Mapping[str, Causal],
        columns: Mapping[str, Tensor],
        hidden: Tensor | None = None,
        rows: Mapping[str, tuple[Tensor, Packing, Tensor]] | None = None,
    ) -> tuple[Tensor, ...]:
        """As `Causal.statistics`."""
        return self.within(super().statistics, ids, packing, where, stats, models, columns, hidden, rows)
