"""Any causal language model of transformers as a decoder that trains: packed rows in, hidden states out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from assay.core.errors import ConfigError
from assay.core.seeds import generator
from assay.runtime.kernels.compile import compile_layers
from assay.runtime.kernels.norms import fuse_norms
from assay.runtime.kernels.ops import unpad_rows
from assay.runtime.kernels.ragged_attention import suits
from assay.runtime.kernels.row_attention import ROWS
from assay.runtime.kernels.typed import split, tensor_of
from assay.runtime.learner.causal import Causal, copy_in
from assay.runtime.learner.hub_routing import routers_of
from assay.runtime.learner.lm_head import LmHead
from assay.runtime.learner.packing import Packing, pack_offsets
from assay.runtime.learner.routing_replay import RoutingReplay
from assay.runtime.models.finite import check_weights
from assay.runtime.models.hub_model import HubModel
from assay.runtime.settings import HubShape

__all__ = ["HubDecoder"]

PROBED = (9, 5, 9, 2)
"""Lengths of the rows with which a decoder is probed."""
WINDOWED = 512
"""Widest window of attention beyond which a probed row reaches."""
CLOSE = {torch.float32: 1e-4, torch.bfloat16: 0.1}
"""Largest difference of logits, in units of their spread, that is rounding: a decoder of 1.7 billion float32 weights on a GPU
reaches 1.1e-5 between a row alone and a row that is padded; one that sees tokens behind a row differs by 1e-2 and more."""
ALIKE = 0.05
"""Root mean square by which the states of two kernels may differ in bfloat16, in units of their size."""


class HubDecoder(Causal):
    """A module of transformers behind the interface of `Causal`.

    Rows are concatenated, without padding, where the model's attention can be taken over
    (`assay.runtime.kernels.row_attention`); a probe at the start shows that this gives what each row gives alone. Where it does
    not, rows of nearly equal length run as rectangles, with
    the model's own attention, and ``note`` says so.

    Args:
        model: weights, and the adapter to train, if any.
        dtype: of the weights that an adapter leaves frozen; what learns is float32.
        device: where it lies.
        checkpointing: compute the layers again in the backward pass.
        replay_routing: of a mixture of experts, send tokens where the engine sent them, as far as rows say that.
        fused_norms: RMS norms in one kernel each (`assay.runtime.kernels.norms`); on CUDA when None.
        compile: compile the layers (`assay.runtime.kernels.compile`).

    Attributes:
        concatenated: whether rows are.

    Raises:
        DataError: a weight holds NaN or an infinity.
        ConfigError: neither way gives what a row gives alone, the head makes logits in a way that is not known here, there is no
            routing that could be replayed, or layers that cannot be compiled.
    """

    def __init__(
        self,
        model: HubModel,
        *,
        dtype: torch.dtype = torch.float32,
        device: str = "cpu",
        checkpointing: bool = False,
        replay_routing: bool = False,
        fused_norms: bool | None = None,
        compile: bool = False,
    ) -> None:
        super().__init__()
        self._shape = model.shape
        self.module: Any = model.module(dtype if model.adapter else torch.float32, device)
        if fused_norms or (fused_norms is None and device == "cuda"):
            fuse_norms(self.module)
        self._kind: str = self.module.config._attn_implementation
        self.concatenated, self._ragged, self._note = False, False, ""
        self._scale, self._cap = _head_constants(self.module.config)
        with torch.no_grad():
            self._probe()
        if checkpointing:
            _checkpoint(self.module)
        routed = self.concatenated and bool(routers_of(self.module))
        if replay_routing and not routed:
            raise ConfigError(
                f"LearnerSettings.replay_routing: {self._shape.architecture} "
                + ("has no experts" if self.concatenated else f"cannot be told: {self._note}")
                + "; leave it out"
            )
        self._replay = RoutingReplay(self.module, force=replay_routing) if routed else None
        if compile and (routed or not self.concatenated or not compile_layers(self.module)):
            why = "its routers are looked at while they compute" if routed else self._note or "its layers are not known"
            raise ConfigError(f"LearnerSettings.compile: {self._shape.architecture} is not compiled: {why}; leave it out")

    @property
    def replay(self) -> RoutingReplay | None:
        """Of a mixture of experts whose rows are concatenated."""
        return self._replay

    @property
    def shape(self) -> HubShape:
        """Sizes."""
        return self._shape

    @property
    def ragged(self) -> bool:
        """A device with the kernel, and a probe under autocast in which it gave what rectangles give."""
        return self._ragged

    @property
    def note(self) -> str:
        """Why rows are not concatenated; empty where they are."""
        return self._note

    @property
    def head(self) -> LmHead:
        """What gives logits."""
        layer = self.module.get_output_embeddings()
        return LmHead(layer.weight, getattr(layer, "bias", None), self._scale, self._cap)

    @property
    def embedding(self) -> Tensor:
        """What ids are looked up in."""
        return self.module.get_input_embeddings().weight

    def trainable_parameters(self) -> dict[str, nn.Parameter]:
        """The adapter's weights, or all."""
        return {name: p for name, p in self.module.named_parameters() if p.requires_grad}

    def weights(self) -> dict[str, Tensor]:
        """All weights, learned or not."""
        return dict(self.module.named_parameters())

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Copies trained weights in, as `Causal.load_tensors` says."""
        copy_in(self.trainable_parameters(), tensors, self._shape.architecture, ConfigError)

    def hidden_states(self, ids: Tensor, packing: Packing, wanted: Tensor | None = None) -> Tensor:
        """Hidden states after the final norm, in float32, as `Causal.hidden_states` says."""
        found = (self._concatenate_rows if self.concatenated else self._rectangles)(ids, packing)
        if wanted is not None and packing.share is not None:
            wanted = wanted - packing.share.own(len(ids)).start
        return (found if wanted is None else unpad_rows(found, wanted)).float()

    def _concatenate_rows(self, ids: Tensor, packing: Packing) -> Tensor:
        self.module.config._attn_implementation = ROWS
        own = slice(None) if packing.share is None else packing.share.own(len(ids))
        if packing.experts is not None:
            packing = replace(packing, experts=packing.experts[own])
        return self._body(ids[own][None], packing.positions[own][None], rows=packing)[0]

    def _rectangles(self, ids: Tensor, packing: Packing) -> Tensor:
        """A padding token stands behind its row, where no token of a causal model looks."""
        self.module.config._attn_implementation = self._kind
        cells = ids if packing.pad is None else ids[packing.pad]
        parts: list[Tensor] = []
        for part, (rows, length) in zip(split(cells, packing.cells), packing.buckets, strict=True):
            places = torch.arange(length, device=ids.device).expand(rows, length)
            parts.append(self._body(part.view(rows, length), places).flatten(0, 1))
        out = parts[0] if len(parts) == 1 else torch.cat(parts)
        return out if packing.unpad is None else unpad_rows(out, packing.unpad)

    def _body(self, ids: Tensor, positions: Tensor, **others: Any) -> Tensor:
        module = self.module.base_model
        if module is self.module:  # Llama 4 calls it by another name than the one under which it keeps it
            module = module.model
        return module(input_ids=ids, position_ids=positions, use_cache=False, **others).last_hidden_state

    # ---- the probe

    def _probe(self) -> None:
        """Chooses how rows run, and sees that the head's logits are the module's own."""
        ids, offsets = self._probe_rows()
        alone = [self._alone(ids[a:b]) for a, b in pairwise(offsets.tolist())]
        packing = pack_offsets(offsets).to(ids.device)
        states = torch.cat([states for states, _ in alone])
        own, mine = torch.cat([logits for _, logits in alone]).float(), self.head.logits(states.float())
        close, spread = CLOSE[next(iter(self.module.parameters())).dtype], float(own.std()) or 1.0
        if not float((own - mine).abs().max()) <= 10 * close * spread:
            check_weights(self.module.named_parameters(), self._shape.architecture)  # or else they are to blame
            raise ConfigError(
                f"{self._shape.architecture}: its logits are not its head's weight, bias, scale and soft cap of its last states "
                f"(they differ by {float((own - mine).abs().max()):.3g}); assay cannot train it"
            )

        def gap(way: Callable[[Tensor, Packing], Tensor]) -> float:
            return float((self.head.logits(way(ids, packing).float()) - mine).abs().max()) / spread

        try:
            apart = gap(self._concatenate_rows)
            self._note = f"rows side by side differ from rows alone by {apart:.2g} of the logits' spread"
            self.concatenated = apart <= close
        except Exception as error:  # whatever a model's own code says of a keyword or a missing mask
            self._note = f"its attention cannot be taken over ({type(error).__name__})"
        if self.concatenated:
            self._note = ""
            self._ragged = suits(ids.device, self._shape.head_dim) and self._unpadded_is_alike(ids, packing)
            return
        apart = gap(self._rectangles)
        if not apart <= close:
            raise ConfigError(
                f"{self._shape.architecture}: tokens behind a row change what it gives, by {apart:.2g} of the logits' spread; it "
                "is no causal model, or keeps no row apart, and assay cannot train it"
            )

    def _unpadded_is_alike(self, ids: Tensor, packing: Packing) -> bool:
        """Whether rows as they are give what rectangles give, both in bfloat16 products."""
        try:
            with torch.autocast(ids.device.type, torch.bfloat16):
                one, other = (self._concatenate_rows(ids, p).float() for p in (packing.without_padding(), packing))
        except Exception:  # whatever a kernel says of sizes that it does not take, or a layer that needs its scores
            return False
        return float((one - other).square().mean()) <= ALIKE**2 * float(other.square().mean())

    def _probe_rows(self) -> tuple[Tensor, np.ndarray[Any, np.dtype[np.int64]]]:
        window = int(getattr(self.module.config.get_text_config(), "sliding_window", None) or 0)
        beyond = (window + 3,) if 0 < window <= WINDOWED else ()
        lengths = [min(n, self._shape.max_positions) for n in (*PROBED, *beyond)]
        drawn = generator("row-probe", 0).integers(0, self._shape.vocab_size, sum(lengths))
        return tensor_of(drawn).to(self.device), np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    def _alone(self, row: Tensor) -> tuple[Tensor, Tensor]:
        """``[L, hidden]`` states and ``[L, V]`` logits of a row by the module as it is."""
        self.module.config._attn_implementation = self._kind
        places = torch.arange(len(row), device=row.device)[None]
        found = self.module(input_ids=row[None], position_ids=places, use_cache=False)
        return self._body(row[None], places)[0], found.logits[0]


def _head_constants(config: Any) -> tuple[float, float]:
    """Scale and soft cap of the logits, as the families that have them call these."""
    text = config.get_text_config()
    scale = float(getattr(text, "logit_scale", None) or 1.0)  # Cohere
    if getattr(text, "logits_scaling", None):  # Granite
        scale /= float(text.logits_scaling)
    return scale, float(getattr(text, "final_logit_softcapping", None) or 0.0)  # Gemma 2


def _checkpoint(module: nn.Module) -> None:
    """Lets each layer compute itself again in the backward pass, which transformers ties to training mode: theirs alone."""
    from transformers.modeling_layers import GradientCheckpointingLayer

    owner = cast(Any, module)
    owner.activation_checkpointing_enable({"use_reentrant": False})
    for part in module.modules():
        if isinstance(part, GradientCheckpointingLayer):
            part.training = True
