"""Networks as functions over one flat buffer each: ensembles as one batched product, and an optimiser of ten operations.

A network's parameters are views of one buffer, so that Adam and Polyak averaging are a handful of operations whatever its depth;
an ensemble of ``N`` members is the same code with a leading axis. At the sizes of control the cost of an update is that of
starting operations, not of multiplying.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.core import ConfigError, generator
from assay.core.fields import later
from assay_control.lazy_torch import to_tensor, torch
from assay_control.records import Array

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Net", "Network", "Scalar"]

ACTIVATIONS = ("relu", "tanh", "silu")
OUTPUTS = ("value", "action", "gaussian", "normal", "choices", "model")


@dataclass(frozen=True, slots=True, kw_only=True)
class Net:
    """A multi-layer perceptron, declared.

    Attributes:
        inputs: what it reads: ``observation``, or ``observation action``.
        outputs: numbers it gives: ``value`` (one), ``action`` (one per coordinate), ``gaussian`` (mean and log deviation of
            each), ``normal`` (a mean of each, with log deviations that are the same for all observations), ``choices`` (one per
            action), ``model`` (mean and log deviation of each change of the observation and of the reward, and whether the
            episode ends). What a policy gives is ``choices`` in a world of choices, whatever stands here.
        width: of a hidden layer.
        depth: hidden layers.
        ensemble: members, trained beside each other from different starts.
        layer_norm: whether each hidden layer is normalised before its activation.
        activation: ``relu``, ``tanh`` or ``silu``.
        target: rate of the averaged copy that targets are computed with; 0 for no copy.
        lr: Adam's learning rate.
        cosine: steps over which the learning rate falls to 0 along a half cosine; 0 keeps it.
        clip: largest norm of the gradient; 0 for none.
        last: factor on the initial weights of the last layer.
        project: whether after each step the weights of each hidden layer are brought back to their norm at the start,
            ``W <- W ρ / |W|`` (Normalise-and-Project: Lyle et al. 2024, arXiv 2407.01800). With ``layer_norm`` that changes no
            output, and keeps the effective learning rate from falling as weights grow.

    Raises:
        ConfigError: a number out of its range, or an unknown word.
    """

    inputs: str = "observation"
    outputs: str = "value"
    width: int = 256
    depth: int = 2
    ensemble: int = 1
    layer_norm: bool = False
    activation: str = "relu"
    target: float = 0.0
    lr: float = 3e-4
    cosine: int = 0
    clip: float = 0.0
    last: float = 1.0
    project: bool = later(False)

    def __post_init__(self) -> None:
        if self.inputs not in ("observation", "observation action"):
            raise ConfigError(f"Net.inputs={self.inputs!r}; use 'observation' or 'observation action'")
        if self.outputs not in OUTPUTS:
            raise ConfigError(f"Net.outputs={self.outputs!r}; use one of {', '.join(OUTPUTS)}")
        if self.activation not in ACTIVATIONS:
            raise ConfigError(f"Net.activation={self.activation!r}; use one of {', '.join(ACTIVATIONS)}")
        if min(self.width, self.depth, self.ensemble) < 1:
            raise ConfigError(
                f"Net(width={self.width}, depth={self.depth}, ensemble={self.ensemble}): use whole numbers, at least 1"
            )
        if self.project and not self.layer_norm:
            raise ConfigError("Net.project needs layer_norm: without it the size of weights is part of what the network computes")
        if not 0 <= self.target <= 1 or self.lr <= 0 or self.clip < 0 or self.cosine < 0:
            raise ConfigError(
                f"Net(target={self.target}, lr={self.lr}, clip={self.clip}, cosine={self.cosine}): use a target rate in [0, 1], "
                "a positive lr, and no negative number"
            )

    def build(self, observation: int, action: int, choices: bool, seed: int, name: str) -> Network:
        """The network for a world.

        Args:
            observation: numbers in an observation.
            action: numbers in an action, or how many choices there are.
            choices: whether actions are choices.
            seed: of the run.
            name: of the network, by which its start is drawn.

        Raises:
            ConfigError: it reads actions, and they are choices.
        """
        if choices and self.inputs != "observation":
            raise ConfigError(
                f"network {name!r} reads actions that are vectors, and this world has {action} choices: use a method that can "
                "choose, such as bc, awr, dqn or ppo"
            )
        if choices and self.outputs in ("action", "gaussian", "normal"):  # a policy of choices gives logits
            return replace(self, outputs="choices").build(observation, action, choices, seed, name)
        size = observation + (action if self.inputs != "observation" else 0)
        out = {"value": 1, "gaussian": 2 * action, "model": 2 * observation + 3}.get(self.outputs, action)
        return Network(self, (size, *(self.width,) * self.depth, out), seed, name)


class Network:
    """A network that is being trained: parameters, their averaged copy, and Adam's moments, each one flat buffer.

    Args:
        net: its declaration.
        sizes: of input, hidden layers, output.
        seed, name: of its start: uniform in ``±1/sqrt(inputs)`` as PyTorch's linear layers.
    """

    def __init__(self, net: Net, sizes: tuple[int, ...], seed: int, name: str) -> None:
        self.net, self.name = net, name
        self.updates = 0
        values = _start(net, sizes, seed, name)
        self.flat = to_tensor(values)
        self._shapes = _shapes(net, sizes)
        self.parameters = [p.requires_grad_() for p in self._views(self.flat)]
        self.averaged = self.flat.clone() if net.target else self.flat
        self._averaged_views = self._views(self.averaged)
        self.moment, self.square = torch.zeros_like(self.flat), torch.zeros_like(self.flat)
        self._fixed = [p.detach() for p in self.parameters]
        self._norms: list[Tensor] = [norm_of(p) for p in self._hidden_weights()] if net.project else []

    def _views(self, flat: Tensor) -> list[Tensor]:
        views: list[Tensor] = []
        at = 0
        for shape in self._shapes:
            size = math.prod(shape)
            views.append(flat[at : at + size].view(shape))
            at += size
        return views

    def __call__(self, inputs: Tensor, averaged: bool = False, fixed: bool = False) -> Tensor:
        """``[N, B, out]`` of ``[B, in]`` or ``[N, B, in]`` inputs.

        Args:
            inputs: to read.
            averaged: whether the averaged copy answers.
            fixed: whether its parameters get no gradient, as when another network learns through it.
        """
        weights = self._averaged_views if averaged else self._fixed if fixed else self.parameters
        many, norm, shared = self.net.ensemble > 1, self.net.layer_norm, self.net.outputs == "normal"
        count = len(self._shapes) - shared
        step = 4 if norm else 2
        h = inputs.expand(self.net.ensemble, *inputs.shape[-2:]) if many else inputs
        for at in range(0, count, step):
            h = torch.baddbmm(weights[at + 1], h, weights[at]) if many else torch.addmm(weights[at + 1], h, weights[at])
            if at + 2 >= count:
                break
            if norm:
                h = torch.nn.functional.layer_norm(h, h.shape[-1:], eps=1e-5) * weights[at + 2] + weights[at + 3]
            h = getattr(torch, self.net.activation)(h) if self.net.activation != "silu" else torch.nn.functional.silu(h)
        if shared:
            h = torch.cat([h, weights[-1].expand_as(h)], -1)
        return h if many else h.unsqueeze(0)

    def numbers(self, fixed: bool = False) -> Tensor:
        """All parameters in a row: what a `Scalar` is; with ``fixed`` without gradient."""
        return (self._fixed if fixed else self.parameters)[0]

    def descend(self, loss: Tensor) -> Tensor:
        """One step of Adam on the parameters of this network alone.

        Returns:
            The norm of the gradient before any clipping, a tensor.
        """
        gradients: Any = torch.autograd.grad(loss, self.parameters, allow_unused=True)
        held = zip(gradients, self.parameters, strict=True)
        flat = torch.cat([torch.zeros(p.numel()) if g is None else g.reshape(-1) for g, p in held])
        norm = flat.square().sum().sqrt()
        if self.net.clip:
            flat = flat * (self.net.clip / (norm + 1e-6)).clamp(max=1.0)
        self.apply(flat)
        return norm

    def apply(self, gradient: Tensor) -> None:
        """Adam's step for a flat gradient (Kingma and Ba 2015: decays .9 and .999, epsilon 1e-8)."""
        self.updates += 1
        k = self.updates
        with torch.no_grad():
            self.moment.lerp_(gradient, 0.1)
            self.square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
            root = self.square.sqrt().div_(math.sqrt(1 - 0.999**k)).add_(1e-8)
            self.flat.addcdiv_(self.moment, root, value=-self.rate() / (1 - 0.9**k))
            for held, norm in zip(self._hidden_weights() if self._norms else (), self._norms, strict=True):
                held.mul_(norm / norm_of(held))

    def _hidden_weights(self) -> list[Tensor]:
        """Weights of the layers that are normalised: all but the last."""
        return self._fixed[: 4 * self.net.depth : 4]

    def rate(self) -> float:
        """The learning rate now."""
        if not self.net.cosine:
            return self.net.lr
        share = min(self.updates, self.net.cosine) / self.net.cosine
        return self.net.lr * 0.5 * (1 + math.cos(math.pi * share))

    def average(self) -> None:
        """Moves the averaged copy towards the parameters by the declared rate."""
        if self.net.target:
            with torch.no_grad():
                self.averaged.lerp_(self.flat, self.net.target)

    def restart(self, meta: Tensor, rate: float) -> None:
        """Moves ``meta`` by ``rate`` of the way to the parameters, which go on from there with fresh moments.

        Args:
            meta: of the size of ``flat``; changed.
            rate: 1 takes all of the way.
        """
        with torch.no_grad():
            meta.lerp_(self.flat, rate)
            self.flat.copy_(meta)
            if rate < 1:
                self.moment.zero_()
                self.square.zero_()
                self.updates = 0

    def state(self) -> dict[str, Array]:
        """All that a resume needs."""
        own = {"flat": self.flat, "moment": self.moment, "square": self.square}
        if self.net.target:
            own["averaged"] = self.averaged
        return {**{k: v.detach().numpy().copy() for k, v in own.items()}, "updates": np.array(self.updates)}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Goes on from a `state`.

        Raises:
            ConfigError: it is of a network of another size.
        """
        if state["flat"].shape != tuple(self.flat.shape):
            raise ConfigError(f"network {self.name!r} has {self.flat.numel()} parameters, the checkpoint {state['flat'].size}")
        with torch.no_grad():
            for name in ("flat", "moment", "square", *(("averaged",) if self.net.target else ())):
                getattr(self, name).copy_(to_tensor(np.array(state[name])))
        self.updates = int(state["updates"])


def norm_of(weights: Tensor) -> Tensor:
    """Frobenius norm of a matrix, of each of an ensemble: ``[]`` or ``[N, 1, 1]``.

    >>> float(norm_of(torch.tensor([[3.0, 4.0]])))
    5.0
    """
    return weights.square().sum((-2, -1), keepdim=weights.ndim > 2).sqrt()


def _shapes(net: Net, sizes: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Of all parameters in their order: per layer weight, bias and, where it is normalised, gain and offset."""
    n = net.ensemble
    out: list[tuple[int, ...]] = []
    for i, (a, b) in enumerate(pairwise(sizes)):
        out += [(n, a, b), (n, 1, b)] if n > 1 else [(a, b), (b,)]
        if net.layer_norm and i < len(sizes) - 2:
            out += [(n, 1, b)] * 2 if n > 1 else [(b,)] * 2
    if net.outputs == "normal":
        out.append((n, 1, sizes[-1]) if n > 1 else (sizes[-1],))
    return out


def _start(net: Net, sizes: tuple[int, ...], seed: int, name: str) -> Array:
    rng = generator("control/network", seed, name)
    parts: list[Any] = []
    for i, (a, b) in enumerate(pairwise(sizes)):
        last = i == len(sizes) - 2
        bound = (net.last if last else 1.0) / math.sqrt(a)
        parts += [rng.uniform(-bound, bound, net.ensemble * a * b), rng.uniform(-bound, bound, net.ensemble * b)]
        if net.layer_norm and not last:
            parts += [np.ones(net.ensemble * b), np.zeros(net.ensemble * b)]
    if net.outputs == "normal":
        parts.append(np.zeros(net.ensemble * sizes[-1]))
    return np.concatenate(parts).astype(np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """One or a few trained numbers, such as the logarithm of a temperature.

    Attributes:
        start: where they begin.
        per_action: whether there is one for each coordinate of an action.
        lr: Adam's learning rate.
    """

    start: float = 0.0
    per_action: bool = False
    lr: float = 3e-4

    def build(self, observation: int, action: int, choices: bool, seed: int, name: str) -> Network:
        """As `Net.build`."""
        del observation, choices, seed
        return _Numbers(self, action if self.per_action else 1, name)


class _Numbers(Network):
    """A network without inputs: its parameters are what it gives."""

    def __init__(self, scalar: Scalar, size: int, name: str) -> None:
        self.net, self.name, self.updates = Net(lr=scalar.lr), name, 0
        self._norms = []
        self.flat = torch.full((size,), scalar.start)
        self._shapes = [(size,)]
        self.parameters = [p.requires_grad_() for p in self._views(self.flat)]
        self.averaged, self._averaged_views = self.flat, self._views(self.flat)
        self.moment, self.square = torch.zeros_like(self.flat), torch.zeros_like(self.flat)
        self._fixed = [p.detach() for p in self.parameters]
