"""Proximal policy optimisation: its batches, with generalised advantages, and its losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from assay.core import ConfigError, generator
from assay_control.lazy_torch import to_tensor, torch
from assay_control.parts.base import Drawer, Log, Noise, Phase, TransitionBatch
from assay_control.parts.buffer import Buffer
from assay_control.parts.sources import gather
from assay_control.records import Array, Transitions

if TYPE_CHECKING:
    from torch import Tensor

    from assay_control.parts.nets import Nets

__all__ = ["AdvantageReturn", "ClippedRatio", "LastRollout", "OnPolicyRounds", "generalised_advantages"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OnPolicyRounds:
    """A round of ``collect`` steps of each copy, then ``epochs`` over its rows in ``parts`` batches, in one step of the loop.

    Attributes:
        collect: steps of each copy.
        epochs: passes over the rows.
        parts: batches of a pass.
    """

    collect: int = 128
    epochs: int = 10
    parts: int = 4

    def __post_init__(self) -> None:
        if min(self.collect, self.epochs, self.parts) < 1:
            raise ConfigError(
                f"OnPolicyRounds(collect={self.collect}, epochs={self.epochs}, parts={self.parts}): use whole numbers from 1 up"
            )

    def phase(self, step: int) -> Phase:
        """As `Schedule.phase`."""
        del step
        return Phase(collect=self.collect, updates=self.epochs * self.parts, online=True)


def generalised_advantages(
    reward: Array, value: Array, next_value: Array, terminal: Array, done: Array, discount: float, decay: float
) -> Array:
    """``A_t = δ_t + γλ (1 - done_t) A_{t+1}`` with ``δ_t = r_t + γ (1 - terminal_t) V(s_{t+1}) - V(s_t)``, over ``[T, n]`` steps.

    A cut at the horizon ends the sum but bootstraps. Source: Schulman et al. 2015, arXiv 1506.02438.

    >>> one = np.ones((2, 1))
    >>> generalised_advantages(one, 0 * one, 0 * one, one > 2, one > 2, 0.5, 1.0)[:, 0].tolist()
    [1.5, 1.0]
    """
    delta = reward + discount * np.where(terminal, 0.0, next_value) - value
    out = np.empty_like(delta)
    later = np.zeros(delta.shape[1])
    for t in range(len(delta) - 1, -1, -1):
        later = delta[t] + discount * decay * np.where(done[t], 0.0, later)
        out[t] = later
    return out


class _Rollout:
    """The rows of the last round, permuted afresh for each pass."""

    def __init__(self, source: LastRollout, buffer: Buffer, seed: int) -> None:
        self._source, self._buffer, self._seed = source, buffer, seed
        self._advantage: Array = np.zeros(0, np.float32)
        self._return: Array = np.zeros(0, np.float32)

    def prepare(self, nets: Nets, discount: float) -> None:
        """As `Drawer.prepare`: advantages and returns of the rows that were collected."""
        arrays, copies, n = self._buffer.arrays, self._source.copies, len(self._buffer)
        with torch.no_grad():
            value, after = (nets.v(to_tensor(arrays[k][:n])).numpy() for k in ("observation", "next_observation"))
        shaped: list[Array] = [
            x[:n].reshape(-1, copies) for x in (arrays["reward"], value, after, arrays["terminal"], arrays["done"])
        ]
        advantage = generalised_advantages(*shaped, discount=discount, decay=self._source.decay).reshape(-1)
        self._return = (advantage + value).astype(np.float32)
        self._advantage = advantage.astype(np.float32)

    def draw(self, count: int) -> TransitionBatch:
        """As `Drawer.draw`."""
        n, batch = len(self._buffer), self._source.batch
        epoch, part = divmod(count, n // batch)
        order = generator("control/rollout", self._seed, index=epoch).permutation(n)
        index = order[part * batch : (part + 1) * batch]
        rows = gather(self._buffer, index)
        rows.columns = {
            **rows.columns,
            "advantage": to_tensor(self._advantage[index]),
            "return": to_tensor(self._return[index]),
        }
        return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRollout:
    """The rows of the last round alone, with generalised advantages.

    Attributes:
        batch: rows of a batch.
        copies: of the world that were acted in; the method's.
        decay: λ of the advantages.
    """

    batch: int = 64
    copies: int = 8
    decay: float = 0.95

    def __post_init__(self) -> None:
        if min(self.batch, self.copies) < 1 or not 0 <= self.decay <= 1:
            raise ConfigError(
                f"LastRollout(batch={self.batch}, copies={self.copies}, decay={self.decay}): use sizes >= 1, decay in [0, 1]"
            )

    def open(self, data: Transitions | None, buffer: Buffer | None, seed: int) -> Drawer:
        """As `Source.open`."""
        assert buffer is not None
        return _Rollout(self, buffer, seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedRatio:
    """``-mean min(ρ A, clip(ρ, 1 ± ε) A)`` less an entropy bonus, with ``ρ = π(a|s) / π_old(a|s)`` and normalised advantages.

    Source: Schulman et al. 2017, arXiv 1707.06347.

    Attributes:
        clip: ε.
        entropy: weight of the bonus, whose estimate is ``-log π(a|s)`` of the drawn actions.
    """

    clip: float = 0.2
    entropy: float = 0.0

    def __post_init__(self) -> None:
        if self.clip <= 0 or self.entropy < 0:
            raise ConfigError(f"ClippedRatio(clip={self.clip}, entropy={self.entropy}): use clip > 0 and entropy >= 0")

    def __call__(self, rows: TransitionBatch, nets: Nets, target: Tensor | None, noise: Noise, log: Log | None) -> Tensor:
        """A scalar."""
        del target, noise
        logp = nets.log_prob(rows.observation, rows.action)
        ratio = (logp - rows.columns["log_prob"]).exp()
        a = rows.columns["advantage"]
        a = (a - a.mean()) / (a.std() + 1e-8)
        gain = torch.minimum(ratio * a, ratio.clamp(1 - self.clip, 1 + self.clip) * a)
        if log is not None:
            log["pi/clipped"], log["entropy"] = ((ratio - 1).abs() > self.clip).float().mean(), -logp.detach().mean()
        loss = -gain.mean()
        return loss + self.entropy * (ratio.detach() * logp).mean() if self.entropy else loss


@dataclass(frozen=True, slots=True)
class AdvantageReturn:
    """What PPO's value is fitted to: the advantage of the round plus the value at its collection."""

    def __call__(self, rows: TransitionBatch, nets: Nets, noise: Noise, discount: float) -> Tensor:
        """``[B]``."""
        del nets, noise, discount
        return rows.columns["return"]
