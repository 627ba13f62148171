"""The networks of a run, and what they are asked: values of actions, actions of observations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from assay.core import ConfigError
from assay_control.lazy_torch import torch
from assay_control.networks import Network
from assay_control.parts.base import Composition, Noise
from assay_control.records import Array, Choices, Space

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Nets"]

LOW, HIGH = -20.0, 2.0
"""Between which a log deviation is kept (Haarnoja et al. 2018)."""


class Nets:
    """The networks of a method for one world.

    Args:
        method: its composition.
        observation: numbers in an observation.
        space: of actions.
        seed: of the run.
    """

    def __init__(self, method: Composition, observation: int, space: Space, seed: int) -> None:
        size, choices = (space.count, True) if isinstance(space, Choices) else (space.size, False)
        self.space, self.size = space, size
        self.networks: dict[str, Network] = {
            name: net.build(observation, size, choices, seed, name) for name, net in method.nets.items()
        }
        if "pi" not in self.networks and not choices:
            raise ConfigError("a method for actions that are vectors needs a network 'pi' that acts")

    def __getitem__(self, name: str) -> Network:
        return self.networks[name]

    # ---- values ------------------------------------------------------------------------------------------------------

    def q(self, observation: Tensor, action: Tensor, averaged: bool = False, fixed: bool = False) -> Tensor:
        """``[N, B]`` values of actions; with choices, of those that ``action [B]`` names."""
        net = self.networks["q"]
        if isinstance(self.space, Choices):
            return net(observation, averaged, fixed).gather(2, action.expand(net.net.ensemble, -1).unsqueeze(2)).squeeze(2)
        return net(torch.cat([observation, action], -1), averaged, fixed).squeeze(-1)

    def least_q(
        self, observation: Tensor, action: Tensor, averaged: bool = False, fixed: bool = False, quantile: float = 0.0
    ) -> Tensor:
        """``[B]`` the least of the members' values, or a quantile of them."""
        q = self.q(observation, action, averaged, fixed)
        return q.quantile(quantile, dim=0) if quantile else q.amin(0)

    def all_q(self, observation: Tensor, averaged: bool = False) -> Tensor:
        """``[B, count]`` mean over members of the values of all choices."""
        return self.networks["q"](observation, averaged).mean(0)

    def v(self, observation: Tensor, averaged: bool = False) -> Tensor:
        """``[B]`` value of observations."""
        return self.networks["v"](observation, averaged)[0, :, 0]

    def alpha(self, fixed: bool = False) -> Tensor:
        """``[1]`` SAC's temperature; with ``fixed`` without gradient."""
        return self.networks["alpha"].numbers(fixed).exp()

    # ---- policy ------------------------------------------------------------------------------------------------------

    def mean(self, observation: Tensor, averaged: bool = False) -> Tensor:
        """``[B, A]`` the action without noise, or ``[B]`` the likeliest choice."""
        if "pi" not in self.networks:
            return self.all_q(observation, averaged).argmax(-1)
        out = self.networks["pi"](observation, averaged)[0]
        if isinstance(self.space, Choices):
            return out.argmax(-1)
        return torch.tanh(out[:, : self.size])

    def sample(self, observation: Tensor, noise: Noise, repeats: int = 1) -> tuple[Tensor, Tensor]:
        """Drawn actions and their log-probabilities, through which the policy can learn.

        Args:
            observation: ``[B, O]``.
            noise: to draw with.
            repeats: of each observation.

        Returns:
            Actions, which a policy of outputs ``normal`` may draw beyond the ends of the space (a world cuts them), and
            log-probabilities: ``[B, A]`` and ``[B]``, or ``[repeats, B, ...]`` of each where ``repeats`` is above 1.
        """
        pi = self.networks["pi"]
        out = pi(observation)[0]
        lead = (repeats,) if repeats > 1 else ()
        if isinstance(self.space, Choices):
            logp = torch.log_softmax(out, -1)
            gumbel = -torch.log(-torch.log(noise.uniform(*lead, *out.shape).clamp(1e-12, 1 - 1e-7)))
            drawn = (logp + gumbel).argmax(-1)
            return drawn, logp.expand(*lead, *logp.shape).gather(-1, drawn.unsqueeze(-1)).squeeze(-1)
        if pi.net.outputs == "action":
            raise ConfigError("a network 'pi' that gives one action has no density; let its outputs be 'gaussian' or 'normal'")
        mean, log_std = out[:, : self.size], out[:, self.size :].clamp(LOW, HIGH)
        if pi.net.outputs == "normal":
            action = torch.tanh(mean) + log_std.exp() * noise.normal(*lead, *mean.shape)
            return action, _normal(action, torch.tanh(mean), log_std)
        raw = mean + log_std.exp() * noise.normal(*lead, *mean.shape)
        return torch.tanh(raw), _squash_density(raw, mean, log_std)

    def log_prob(self, observation: Tensor, action: Tensor) -> Tensor:
        """``[B]`` log-probability of given actions."""
        pi = self.networks["pi"]
        out = pi(observation)[0]
        if isinstance(self.space, Choices):
            return torch.log_softmax(out, -1).gather(-1, action.unsqueeze(-1)).squeeze(-1)
        mean, log_std = out[:, : self.size], out[:, self.size :].clamp(LOW, HIGH)
        if pi.net.outputs == "normal":
            return _normal(action, torch.tanh(mean), log_std)
        # inverse of the squashing; the data's actions at the ends have no finite one
        return _squash_density(torch.atanh(action.clamp(-1 + 1e-6, 1 - 1e-6)), mean, log_std)

    def normal(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """``[B, A]`` mean and deviation of the policy's normal distribution, before squashing."""
        out = self.networks["pi"](observation)[0]
        return out[:, : self.size], out[:, self.size :].clamp(LOW, HIGH).exp()

    # ---- state -------------------------------------------------------------------------------------------------------

    def average(self) -> None:
        """Moves all averaged copies."""
        for network in self.networks.values():
            network.average()

    def state(self) -> dict[str, Array]:
        """All arrays, by ``network/name``."""
        return {f"{name}/{key}": value for name, net in self.networks.items() for key, value in net.state().items()}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Goes on from a `state`."""
        for name, net in self.networks.items():
            net.restore({key.partition("/")[2]: value for key, value in state.items() if key.startswith(f"{name}/")})


def _normal(x: Tensor, mean: Tensor, log_std: Tensor) -> Tensor:
    return (-0.5 * ((x - mean) / log_std.exp()) ** 2 - log_std - 0.5 * math.log(2 * math.pi)).sum(-1)


def _squash_density(raw: Tensor, mean: Tensor, log_std: Tensor) -> Tensor:
    """Log-density of ``tanh(raw)``: that of ``raw`` less ``log(1 - tanh(raw)^2)``, in a form that does not overflow."""
    return _normal(raw, mean, log_std) - (2 * (math.log(2) - raw - torch.nn.functional.softplus(-2 * raw))).sum(-1)
