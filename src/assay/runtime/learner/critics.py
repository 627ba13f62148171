"""What critics are made of: linear heads, and trunks below them, each with target weights, a gradient and an optimiser."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from assay.core.seeds import generator
from assay.runtime.kernels.typed import split, tensor_of
from assay.runtime.learner.anchor_models import decoder_of
from assay.runtime.learner.causal import Causal
from assay.runtime.learner.optim import Optimizer, build_optimizer
from assay.runtime.learner.packing import Packing
from assay.runtime.models.model import Model
from assay.runtime.settings import AdamW, LearnerSettings, Muon, Trunk, ValueHead

if TYPE_CHECKING:
    from assay.runtime.models.hub_model import HubModel

__all__ = ["LinearHead", "States", "TrainedPart", "TrunkPart", "flat_gradient", "states"]

States = tuple[Tensor, Tensor]
"""``[M, hidden]`` twice: the states in which some tokens are chosen, and those behind them."""


def states(decoder: Causal, ids: Tensor, packing: Packing, where: Tensor, behind: bool) -> States:
    """Hidden states before and behind the tokens ``where [M]``; both the former unless ``behind`` asks for the latter."""
    if not behind:
        before = decoder.hidden_states(ids, packing, where - 1)
        return before, before
    both = torch.cat([where - 1, where])
    wanted, place = cast("tuple[Tensor, Tensor]", cast(Any, torch).unique(both, return_inverse=True))
    found = decoder.hidden_states(ids, packing, wanted)
    return found.index_select(0, place[: len(where)]), found.index_select(0, place[len(where) :])


def flat_gradient(parameters: Iterable[torch.nn.Parameter]) -> Tensor:
    """One buffer whose slices are the parameters' gradients: norm, clipping and clearing are one call each."""
    given = list(parameters)
    flat = torch.zeros(sum(p.numel() for p in given), device=given[0].device if given else None)
    for parameter, part in zip(given, split(flat, [p.numel() for p in given]), strict=True):
        parameter.grad = part.view(parameter.shape)
    return flat


class TrainedPart(ABC):
    """What moves by itself beside the policy: weights, target weights, gradient, optimiser.

    Args:
        settings: name, period, share of the target weights.
        parameters: name to weights.
        target: name to target weights; empty without any.
        optimizer: how it moves.
        kernel: as in `build_optimizer`.
    """

    def __init__(
        self,
        settings: ValueHead | Trunk,
        parameters: Mapping[str, torch.nn.Parameter],
        target: Mapping[str, Tensor],
        optimizer: AdamW | Muon,
        kernel: bool = False,
    ) -> None:
        self.name, self.period, self.tau = settings.name, settings.period, settings.tau
        self.parameters, self.target, self.moves_by = dict(parameters), dict(target), optimizer
        self._kernel = kernel
        self.gradient = flat_gradient(self.parameters.values())
        self.optimizer = self.fresh()

    @property
    @abstractmethod
    def meaning(self) -> list[object]:
        """What another part must be alike in to take its weights."""

    @property
    def facts(self) -> list[object]:
        """What a checkpoint's part must be alike in."""
        return [*self.meaning, type(self.moves_by).__name__, bool(self.tau)]

    def fresh(self) -> Optimizer:
        """An optimiser of its weights that has not stepped yet."""
        return build_optimizer(self.moves_by, self.parameters, self._kernel)

    @torch.no_grad()
    def step(self, factor: float) -> None:
        """Moves it, and its target weights after it."""
        self.optimizer.step(factor)
        for name, target in self.target.items():
            target.lerp_(self.parameters[name], self.tau)

    @torch.no_grad()
    def take(self, parameters: Mapping[str, Tensor], target: Mapping[str, Tensor]) -> None:
        """Copies weights, and target weights where there are any, in."""
        for key, parameter in self.parameters.items():
            parameter.copy_(parameters[key])
        for key, mine in self.target.items():
            mine.copy_(target.get(key, parameters[key]))


class LinearHead(TrainedPart):
    """A linear map of hidden states, on the device where these are."""

    def __init__(self, settings: ValueHead, width: int, others: AdamW, device: str = "cpu") -> None:
        self.settings = settings
        draw = generator("value-head", 0, settings.name).standard_normal((settings.outputs, width), dtype=np.float32)
        spread = np.float32(settings.init / np.sqrt(width))
        weights = {
            "weight": torch.nn.Parameter(tensor_of(draw * spread).to(device)),
            "bias": torch.nn.Parameter(torch.zeros(settings.outputs, device=device)),
        }
        target = {n: p.detach().clone() for n, p in weights.items()} if settings.tau else {}
        super().__init__(settings, weights, target, settings.optimizer or others)

    @property
    def meaning(self) -> list[object]:
        """Form, range, and what it reads."""
        return [*self.settings.spec, self.settings.behind, self.settings.trunk]

    def outputs(self, found: States, weights: Mapping[str, Tensor]) -> Tensor:
        """``[M, k]`` in fp32."""
        hidden = found[1 if self.settings.behind else 0]
        with torch.autocast(hidden.device.type, enabled=False):
            hidden = (hidden.detach() if self.settings.detach else hidden).float()
            return functional.linear(hidden, weights["weight"], weights["bias"])

    def values(self, outputs: Tensor) -> Tensor:
        """``[M]`` what outputs ``[M, k]`` stand for."""
        s = self.settings
        if s.form == "scalar":
            return outputs[:, 0]
        if s.form == "bernoulli":
            return s.low + (s.high - s.low) * outputs[:, 0].sigmoid()
        margin = (s.high - s.low) / s.outputs / 2 if s.form == "hl_gauss" else 0.0
        return outputs.softmax(1) @ torch.linspace(s.low + margin, s.high - margin, s.outputs, device=outputs.device)


class TrunkPart(TrainedPart):
    """A model below heads: it begins as a copy of the policy."""

    def __init__(self, settings: Trunk, start: Model | HubModel, learner: LearnerSettings) -> None:
        self.settings, others = settings, learner.optimizer
        whole = replace(learner, adapter=None)
        self._now = decoder_of(start, whole)
        # what it ends in reads its states and nothing else, so a logits layer of its own would be dead weight
        weights = {n: p for n, p in self._now.trainable_parameters().items() if n not in self._now.logits_only}
        self._then = decoder_of(start, whole).requires_grad_(False) if settings.tau else self._now
        target = {n: p.detach() for n, p in self._then.weights().items() if n in weights} if settings.tau else {}
        super().__init__(settings, weights, target, settings.optimizer or others, learner.kernel)

    @property
    def meaning(self) -> list[object]:
        """Its kind: the shape is the policy's."""
        return ["trunk"]

    def decoder(self, target: bool) -> Causal:
        """The one with the present weights, or with the target weights where it has any."""
        return self._then if target else self._now
