"""A small causal transformer over returns to go, observations and actions, as one flat buffer like the other networks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.core import ConfigError, generator
from assay_control.lazy_torch import to_tensor, torch
from assay_control.networks import Net, Network
from assay_control.records import Array

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["SequenceNet", "Transformer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceNet:
    """A decoder over tokens ``(R_t, s_t, a_t)``, declared.

    Source: Chen et al. 2021, arXiv 2106.01345, whose network this is, without dropout: ``h + attention(norm(h))``, then
    ``h + mlp(norm(h))``, and heads that read the token of ``s_t`` for the action, that of ``a_t`` for what follows.

    Attributes:
        width: of a token.
        layers: of attention.
        heads: of attention; divides ``width``.
        context: steps that are seen.
        lr: Adam's learning rate.
        warmup: updates over which it rises from 0.
        clip: largest norm of the gradient; 0 for none.
        forecasts: whether there are heads for the next observation and the next return to go.

    Raises:
        ConfigError: a number out of its range.
    """

    width: int = 64
    layers: int = 2
    heads: int = 1
    context: int = 20
    lr: float = 1e-3
    warmup: int = 100
    clip: float = 0.25
    forecasts: bool = False

    def __post_init__(self) -> None:
        if min(self.width, self.layers, self.heads, self.context) < 1 or self.width % self.heads:
            raise ConfigError(
                f"SequenceNet(width={self.width}, layers={self.layers}, heads={self.heads}, context={self.context}): use whole "
                "numbers from 1 up, and heads that divide width"
            )
        if self.lr <= 0 or self.warmup < 0 or self.clip < 0:
            raise ConfigError(f"SequenceNet(lr={self.lr}, warmup={self.warmup}, clip={self.clip}): use a positive lr")

    def build(self, observation: int, action: int, choices: bool, seed: int, name: str) -> Transformer:
        """As `Net.build`."""
        return Transformer(self, observation, action, choices, seed, name)


class Transformer(Network):
    """The network of a `SequenceNet`, with Adam's moments.

    Args:
        spec: its declaration.
        observation: numbers in an observation.
        action: numbers in an action, or how many choices there are.
        choices: whether actions are choices.
        seed, name: of its start.
    """

    def __init__(self, spec: SequenceNet, observation: int, action: int, choices: bool, seed: int, name: str) -> None:
        self.spec, self.choices, self.size = spec, choices, action
        self.net = Net(outputs="choices" if choices else "action", lr=spec.lr, clip=spec.clip)
        self.name, self.updates = name, 0
        self.adopt(*_layout(spec, observation, action), seed=seed)

    def adopt(self, names: Sequence[str], shapes: Sequence[tuple[int, ...]], seed: int) -> None:
        """Lays parameters of these shapes into one buffer: weights even in ``±1/sqrt(inputs)``, gains 1, offsets 0."""
        rng = generator("control/network", seed, self.name)
        parts: list[Array] = []
        for name, shape in zip(names, shapes, strict=True):
            size = math.prod(shape)
            if name.endswith(("/gain", "/offset")):
                parts.append(np.full(size, float(name.endswith("/gain"))))
            else:
                parts.append(rng.uniform(-1, 1, size) / math.sqrt(shape[0] if len(shape) > 1 else 64))
        self.flat = to_tensor(np.concatenate(parts).astype(np.float32))
        self._shapes, self._norms = list(shapes), []
        self.parameters = [p.requires_grad_() for p in self._views(self.flat)]
        self.averaged, self._averaged_views = self.flat, self._views(self.flat)
        self.moment, self.square = torch.zeros_like(self.flat), torch.zeros_like(self.flat)
        self._fixed = [p.detach() for p in self.parameters]
        self._named = dict(zip(names, self.parameters, strict=True))

    def rate(self) -> float:
        """The learning rate now: it rises over ``warmup`` updates."""
        return self.spec.lr * min(1.0, self.updates / max(1, self.spec.warmup))

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return torch.nn.functional.linear(x, self._named[f"{name}/weight"].T, self._named[f"{name}/bias"])

    def _norm(self, x: Tensor, name: str) -> Tensor:
        return torch.nn.functional.layer_norm(
            x, x.shape[-1:], self._named[f"{name}/gain"], self._named[f"{name}/offset"], eps=1e-5
        )

    def read(self, to_go: Tensor, observation: Tensor, action: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """Tokens after the last layer.

        Args:
            to_go: ``[B, K]`` returns to go.
            observation: ``[B, K, O]``.
            action: ``[B, K, A]``, or ``[B, K]`` choices.
            real: ``[B, K]`` bool; False where a segment was filled up before its begin.

        Returns:
            ``[B, K, W]`` at the observations, and at the actions.
        """
        batch, steps = to_go.shape
        given = torch.nn.functional.one_hot(action, self.size).float() if self.choices else action
        place = self._named["place/weight"][:steps]
        parts = [
            self._linear(to_go.unsqueeze(-1), "to_go"),
            self._linear(observation, "observation"),
            self._linear(given, "action"),
        ]
        h = self._norm(torch.stack([p + place for p in parts], 2).view(batch, 3 * steps, -1), "first")
        seen = real.repeat_interleave(3, 1)
        causal = torch.ones(3 * steps, 3 * steps, dtype=torch.bool).tril()
        # a token that was filled in sees itself, so that no row of the softmax is empty
        mask = (causal & seen[:, None, :]) | torch.eye(3 * steps, dtype=torch.bool)
        for layer in range(self.spec.layers):
            h = h + self._attention(self._norm(h, f"{layer}/before"), mask.unsqueeze(1), layer)
            inner = torch.nn.functional.gelu(self._linear(self._norm(h, f"{layer}/between"), f"{layer}/up"))
            h = h + self._linear(inner, f"{layer}/down")
        h = self._norm(h, "last").view(batch, steps, 3, -1)
        return h[:, :, 1], h[:, :, 2]

    def _attention(self, x: Tensor, mask: Tensor, layer: int) -> Tensor:
        batch, length, width = x.shape
        split: Any = self._linear(x, f"{layer}/qkv").view(batch, length, 3, self.spec.heads, -1).permute(2, 0, 3, 1, 4)
        out = torch.nn.functional.scaled_dot_product_attention(split[0], split[1], split[2], attn_mask=mask)
        return self._linear(out.transpose(1, 2).reshape(batch, length, width), f"{layer}/mix")

    def act(self, at_observation: Tensor) -> Tensor:
        """``[..., A]`` actions in [-1, 1], or logits of choices, of tokens at observations."""
        out = self._linear(at_observation, "act")
        return out if self.choices else torch.tanh(out)

    def forecast(self, at_action: Tensor) -> tuple[Tensor, Tensor]:
        """``[..., O]`` the next observation and ``[...]`` the next return to go, of tokens at actions."""
        return self._linear(at_action, "next"), self._linear(at_action, "return").squeeze(-1)


def _layout(spec: SequenceNet, observation: int, action: int) -> tuple[list[str], list[tuple[int, ...]]]:
    """Names and shapes of all parameters, in their order."""
    w = spec.width
    linear = {"to_go": (1, w), "observation": (observation, w), "action": (action, w), "act": (w, action)}
    if spec.forecasts:
        linear |= {"next": (w, observation), "return": (w, 1)}
    for i in range(spec.layers):
        linear |= {f"{i}/qkv": (w, 3 * w), f"{i}/mix": (w, w), f"{i}/up": (w, 4 * w), f"{i}/down": (4 * w, w)}
    out: dict[str, tuple[int, ...]] = {"place/weight": (spec.context, w)}
    for name, shape in linear.items():
        out |= {f"{name}/weight": shape, f"{name}/bias": (shape[1],)}
    for name in ("first", "last", *(f"{i}/{n}" for i in range(spec.layers) for n in ("before", "between"))):
        out |= {f"{name}/gain": (w,), f"{name}/offset": (w,)}
    return list(out), list(out.values())
