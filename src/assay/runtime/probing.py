"""What a model's inside says of a text: token vectors, and gradients of a block of its weights."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from assay.core.errors import DataError, UnknownNameError
from assay.core.rollout import Ids
from assay.runtime.decoder import Decoder
from assay.runtime.model import Model
from assay.runtime.packing import pack_offsets
from assay.runtime.typed import array_of, tensor_of

__all__ = ["Prober"]

Floats = NDArray[np.float32]


class Prober:
    """A model that is looked into; it is never changed.

    Args:
        model: its weights are copied.
        block: weight whose gradients are taken, by its name in the last layer.

    Raises:
        UnknownNameError: the last layer has no such weight.
        DataError: the model has no layer.
    """

    def __init__(self, model: Model, block: str = "mlp.down_proj") -> None:
        layers = model.shape.num_layers
        if not layers:
            raise DataError("a model without layers has no token vectors to look at")
        place = f"model.layers.{layers - 1}."
        known = [n.removeprefix(place).removesuffix(".weight") for n in model.tensors if n.startswith(place)]
        if block not in known:
            raise UnknownNameError("weight of the last layer", block, known)
        self._decoder = Decoder(model.shape)
        self._decoder.load_tensors(model.tensors)
        self._decoder.requires_grad_(False)
        self._weight = dict(self._decoder.named_parameters())[f"{place}{block}.weight"]

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
        """
        caught: list[Tensor] = []

        def keep(_: Any, inputs: tuple[Tensor, ...]) -> None:
            caught.append(inputs[0])

        last = cast("Any", self._decoder.model.layers[-1])
        handle = last.mlp.register_forward_pre_hook(keep)
        try:
            with torch.no_grad():
                self._decoder.hidden(*self._packed(ids))
        finally:
            handle.remove()
        return array_of(caught[0])

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
        ids, packing = self._packed(np.concatenate([prompt, answer]))
        self._weight.requires_grad_(True)
        try:
            where = torch.arange(len(prompt) - 1, len(ids) - 1)
            logits = self._decoder.head.logits(self._decoder.hidden(ids, packing, where))
            said = functional.log_softmax(logits, -1).gather(1, ids[len(prompt) :].unsqueeze(1)).sum()
            (found,) = torch.autograd.grad(said, [self._weight])
        finally:
            self._weight.requires_grad_(False)
        return array_of(found)

    def _packed(self, ids: Ids) -> tuple[Tensor, Any]:
        most = self._decoder.shape.max_positions
        if not 0 < len(ids) <= most:
            raise DataError(f"a text of {len(ids)} tokens; the model reads 1 to {most}")
        return tensor_of(np.asarray(ids).astype(np.int64)), pack_offsets(np.array([0, len(ids)], np.int64))
