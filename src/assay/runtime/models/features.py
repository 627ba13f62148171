"""What a model's inside says of a text: token vectors, and gradients of a block of its weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.rollout import Ids
from assay.runtime.kernels.typed import array_of, tensor_of
from assay.runtime.learner.anchor_models import decoder_of
from assay.runtime.learner.packing import pack_offsets
from assay.runtime.models.any_model import AnyModel
from assay.runtime.settings import LearnerSettings

__all__ = ["Prober"]

Floats = NDArray[np.float32]


class Prober:
    """A model that is looked into; it is never changed. An adapter counts as part of the weights.

    Args:
        model: its weights are copied.
        block: weight whose gradients are taken, by its name in the last layer; None: the last matrix of that layer's MLP, which
            is ``mlp.down_proj`` of a Llama and ``mlp.c_proj`` of a GPT-2.

    Attributes:
        block: its name.

    Raises:
        UnknownNameError: the last layer has no such weight.
        DataError: the model has no layer.
        ConfigError: a model that no learner could train, or whose layers cannot be told; says which.
    """

    def __init__(self, model: AnyModel, block: str | None = None) -> None:
        if not model.shape.num_layers:
            raise DataError("a model without layers has no token vectors to look at")
        plain = LearnerSettings(kernel=False)  # modules are called; an adapter that is not asked for becomes part of the weights
        self._decoder = decoder_of(model, plain)
        self._decoder.requires_grad_(False)
        self._whose = str(getattr(model.shape, "architecture", "assay's decoder"))
        self._last = self._last_layer(model.shape.num_layers)
        known = {n.removesuffix(".weight"): p for n, p in self._last.named_parameters()}
        self.block = block or next(n for n in reversed(known) if n.startswith(f"{self._mlp()[0]}.") and known[n].dim() > 1)
        if self.block not in known:
            raise UnknownNameError("weight of the last layer", self.block, known)
        self._weight = known[self.block]

    def _last_layer(self, layers: int) -> nn.Module:
        """Of the list that holds as many layers as the config says."""
        for part in self._decoder.modules():
            if isinstance(part, nn.ModuleList) and len(part) == layers:
                return part[-1]
        raise ConfigError(f"{self._whose}: no list of {layers} layers in it, so that its last one cannot be told")

    def _mlp(self) -> tuple[str, nn.Module]:
        """The last layer's MLP, by its name: the last of its parts that hold more than one matrix."""
        parts = [(n, p) for n, p in self._last.named_children() if sum(w.dim() > 1 for w in p.parameters()) > 1]
        if len(parts) < 2:  # attention alone: the matrices of the MLP lie in the layer itself
            raise ConfigError(f"{self._whose}: the MLP of its last layer is no part of its own; its vectors cannot be taken")
        return parts[-1]

    @property
    def weight(self) -> Floats:
        """The block itself."""
        return array_of(self._weight).copy()

    def vectors(self, ids: Ids) -> Floats:
        """What enters the last layer's MLP, behind its norm.

        Args:
            ids: ``[tokens]``.

        Returns:
            ``[tokens, hidden]``.

        Raises:
            DataError: no tokens, or more than the model has positions.
            ConfigError: a family whose last layer has no MLP of its own.
        """
        caught: list[Tensor] = []

        def keep(_: Any, inputs: tuple[Tensor, ...]) -> None:
            caught.append(inputs[0])

        handle = self._mlp()[1].register_forward_pre_hook(keep)
        try:
            with torch.no_grad():
                self._decoder.hidden_states(*self._pack_ids(ids))
        finally:
            handle.remove()
        return array_of(caught[0].reshape(len(ids), -1))

    def gradient(self, prompt: Ids, answer: Ids) -> Floats:
        """Gradient of the answer's log-likelihood behind the prompt, by the block.

        Args:
            prompt: ``[tokens]``, one at least.
            answer: ``[tokens]``, one at least.

        Returns:
            as the block: of the sum over the answer's tokens.

        Raises:
            DataError: nothing to predict, nothing before it, or more tokens than the model has positions.
        """
        if not len(prompt) or not len(answer):
            raise DataError(f"a prompt of {len(prompt)} and an answer of {len(answer)} tokens; give at least one of each")
        ids, packing = self._pack_ids(np.concatenate([prompt, answer]))
        self._weight.requires_grad_(True)
        try:
            said = self._decoder.columns(ids, packing, torch.arange(len(prompt), len(ids), device=ids.device))[0].sum()
            (found,) = torch.autograd.grad(said, [self._weight])
        finally:
            self._weight.requires_grad_(False)
        return array_of(found)

    def _pack_ids(self, ids: Ids) -> tuple[Tensor, Any]:
        most = self._decoder.shape.max_positions
        if not 0 < len(ids) <= most:
            raise DataError(f"a text of {len(ids)} tokens; the model reads 1 to {most}")
        device = self._decoder.device
        return tensor_of(np.asarray(ids).astype(np.int64)).to(device), pack_offsets(np.array([0, len(ids)], np.int64)).to(device)
