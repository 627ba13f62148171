"""Whose parts a learner's tensors are: from what lies on this rank to whole tensors and back."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from assay.runtime.learner.causal import Causal

__all__ = ["Layout"]

Parts = Mapping[str, Mapping[str, Tensor]]
Whole = dict[str, dict[str, Tensor]]


class Layout:
    """How the tensors of `TorchLearner.tensors` lie: those of an optimiser as the weights that it moves, those of an anchor as
    its own weights; critics are whole on every rank. On a single process everything is.

    Args:
        policy: of the learner.
        anchors: by name.
    """

    def __init__(self, policy: Causal, anchors: Mapping[str, Causal]) -> None:
        self._policy, self._anchors = policy, anchors

    def shard(self, parts: Parts) -> Whole:
        """Each tensor as one that knows where its other parts are."""
        return {part: {n: self._like(part, n, t, "shard") for n, t in tensors.items()} for part, tensors in parts.items()}

    def whole(self, part: str, name: str, tensor: Tensor) -> Tensor:
        """All of a tensor; a collective."""
        return self._like(part, name, tensor, "whole")

    def own(self, parts: Parts) -> Whole:
        """What of whole tensors is this rank's."""
        return {part: {n: self._like(part, n, t, "own") for n, t in tensors.items()} for part, tensors in parts.items()}

    def allocate(self, part: str, name: str, shape: tuple[int, ...]) -> Tensor:
        """An empty tensor of a whole shape, that lies as the one of that name does."""
        owner = self._owner(part, name)
        if owner is None or not shape:
            return torch.empty(shape)
        decoder, weight = owner
        whole = torch.zeros(1).expand(shape)  # no memory: only what is this rank's becomes real
        return decoder.shard(weight, decoder.own(weight, whole).clone())

    def _like(self, part: str, name: str, tensor: Tensor, how: str) -> Tensor:
        owner = self._owner(part, name)
        return tensor if owner is None or not tensor.dim() else getattr(owner[0], how)(owner[1], tensor)

    def _owner(self, part: str, name: str) -> tuple[Causal, str] | None:
        """The decoder, and the weight of it, as which a tensor lies; None for what every rank has whole."""
        before, _, weight = name.partition("/")
        if part == "weights" and name in self._policy.trainable_parameters():
            return self._policy, name
        if part == "optimizer" and weight in self._policy.trainable_parameters():
            return self._policy, weight
        return (self._anchors[before], weight) if part == "anchors" and before in self._anchors else None
