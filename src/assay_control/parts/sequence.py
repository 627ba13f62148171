"""Losses and acting of policies that read a sequence of what was seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from assay.core import ConfigError
from assay_control.lazy_torch import to_tensor, torch
from assay_control.parts.base import Log, Noise, TransitionBatch
from assay_control.parts.transformer import Transformer
from assay_control.records import Array, Transitions

if TYPE_CHECKING:
    from torch import Tensor

    from assay_control.parts.nets import Nets

__all__ = ["ActForReturn", "SequenceClone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceClone:
    """``mean |π(R, s, a) - a|²`` over the steps of segments, or ``-log π`` of choices; with forecasts also what follows.

    ``L = L_a + w_s |ŝ' - s'|² + w_R (R̂' - R')²``. Source: Chen et al. 2021, arXiv 2106.01345; the further losses after
    multi-objective decision transformers, whose weights are not known.

    Attributes:
        states: weight of the next observation.
        returns: weight of the next return to go.
    """

    states: float = 0.0
    returns: float = 0.0

    def __post_init__(self) -> None:
        if min(self.states, self.returns) < 0:
            raise ConfigError(f"SequenceClone(states={self.states}, returns={self.returns}): use weights of 0 or more")

    def __call__(self, rows: TransitionBatch, nets: Nets, target: Tensor | None, noise: Noise, log: Log | None) -> Tensor:
        """A scalar."""
        del target, noise
        net, real = cast("Transformer", nets["pi"]), rows.columns["real"]
        at_observation, at_action = net.read(rows.to_go, rows.observation, rows.action, real)
        made = net.act(at_observation)[real]
        if net.choices:
            loss = torch.nn.functional.cross_entropy(made, rows.action[real])
        else:
            loss = (made - rows.action[real]).square().sum(-1).mean()
        if log is not None:
            log["pi/clone"] = loss.detach()
        if self.states or self.returns:
            follows, returned = net.forecast(at_action)
            states = (follows - rows.next_observation)[real].square().mean()
            returns = (returned - (rows.to_go - rows.reward))[real].square().mean()
            if log is not None:
                log["pi/next"], log["pi/return"] = states.detach(), returns.detach()
            loss = loss + self.states * states + self.returns * returns
        return loss


@dataclass(frozen=True, slots=True, kw_only=True)
class ActForReturn:
    """Acts as a sequence that is to get a return: ``R_{t+1} = R_t - r_t``, the newest ``context`` steps in view.

    Source: Chen et al. 2021, arXiv 2106.01345.

    Attributes:
        wanted: return to ask for, in units of the world's reward; the best of the data where None.
        reward: factor of rewards, that of the method.
    """

    wanted: float | None = None
    reward: float = 1.0

    def begin(self, nets: Nets, count: int, data: Transitions | None) -> _Prompted:
        """As `Actor.begin`."""
        if self.wanted is None and data is None:
            raise ConfigError("ActForReturn.wanted is None, and there is no data whose best return it could be; give a number")
        best = self.wanted * self.reward if self.wanted is not None else float(cast("Transitions", data).returns().max())
        return _Prompted(cast("Transformer", nets["pi"]), count, best, self.reward)


class _Prompted:
    """The sequences of ``count`` episodes."""

    def __init__(self, net: Transformer, count: int, best: float, factor: float) -> None:
        self._net, self._best, self._factor = net, best, factor
        self._to_go = np.full((count, 1), best, np.float32)
        self._seen: list[Array] = []
        self._done: list[Array] = []
        self._length = np.zeros(count, np.int64)

    def act(self, observation: Tensor) -> Tensor:
        """As `EpisodeMemory.act`."""
        net, context = self._net, self._net.spec.context
        seen = [*self._seen, observation.numpy()][-context:]
        blank = np.zeros_like(self._done[-1]) if self._done else self._blank(len(observation))
        acted = [*self._done, blank][-context:]
        self._seen = seen
        steps = len(seen)
        # steps of the episode before are none of this one
        real = np.arange(steps)[None] >= steps - 1 - self._length[:, None]
        observed, done = (to_tensor(np.stack(x, 1)) for x in (seen, acted))
        at, _ = net.read(to_tensor(self._to_go[:, -steps:].copy()), observed, done, to_tensor(real))
        made = net.act(at[:, -1])
        return made.argmax(-1) if net.choices else made

    def _blank(self, count: int) -> Array:
        return np.zeros(count, np.int64) if self._net.choices else np.zeros((count, self._net.size), np.float32)

    def observe(self, action: Array, reward: Array, done: Array) -> None:
        """As `EpisodeMemory.observe`."""
        context = self._net.spec.context
        self._done = [*self._done, action.astype(self._blank(1).dtype)][-(context - 1) :] if context > 1 else []
        self._seen = self._seen[-(context - 1) :] if context > 1 else []
        left = self._to_go[:, -1] - self._factor * reward.astype(np.float32)
        self._length = np.where(done, 0, np.minimum(self._length + 1, context - 1))
        self._to_go = np.column_stack([self._to_go, np.where(done, self._best, left)])[:, -context:].astype(np.float32)
