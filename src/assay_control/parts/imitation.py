"""Imitation without rewards, and values under errors that are not normal."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from assay.core import ConfigError, generator
from assay_control.lazy_torch import torch
from assay_control.parts.base import Drawer, Log, Noise, TransitionBatch
from assay_control.parts.buffer import Buffer
from assay_control.parts.sources import RowsAt, need_data
from assay_control.records import Transitions

if TYPE_CHECKING:
    from torch import Tensor

    from assay_control.parts.nets import Nets

__all__ = ["ContrastiveQ", "ExpertHalf", "GeneralisedGaussian", "ShapeFit", "inverse_variance_weights"]


class _Expert:
    def __init__(self, data: Transitions, source: ExpertHalf, seed: int) -> None:
        self._rows, self._batch, self._seed = RowsAt(data), source.batch, seed
        expert = data.episode >= len(data.first) - source.expert
        self._expert, self._count = np.flatnonzero(expert), len(data)

    def draw(self, count: int) -> TransitionBatch:
        """As `Drawer.draw`: rows of the expert first."""
        u = generator("control/batch", self._seed, index=count).random(self._batch)
        half = self._batch // 2
        own = self._expert[(u[:half] * len(self._expert)).astype(np.int64)]
        return self._rows(np.concatenate([own, (u[half:] * self._count).astype(np.int64)]))

    def prepare(self, nets: Nets, discount: float) -> None:
        """Nothing: the data set stays as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertHalf:
    """Half of each batch from the expert's episodes, which are the last of the data set; half from all of it.

    Attributes:
        batch: rows of a batch; an even number.
        expert: how many episodes at the end are the expert's.
    """

    batch: int = 256
    expert: int = 10

    def __post_init__(self) -> None:
        if self.batch < 2 or self.batch % 2 or self.expert < 1:
            raise ConfigError(f"ExpertHalf(batch={self.batch}, expert={self.expert}): use an even number, and an episode or more")

    def open(self, data: Transitions | None, buffer: Buffer | None, seed: int) -> Drawer:
        """As `Source.open`.

        Raises:
            ConfigError: there are no data, or fewer episodes than ``expert``.
        """
        rows = need_data(data, self)
        if self.expert > len(rows.first):
            raise ConfigError(f"ExpertHalf.expert={self.expert}, but the data set has {len(rows.first)} episodes")
        return _Expert(rows, self, seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContrastiveQ:
    """ReCOIL's critic: high on the expert's pairs, low on the policy's, and consistent with itself over the mixture.

    ``(1 - w) (E_D Q(s, π(s)) - E_E Q(s, a)) + w E_mix (γ V(s') - Q(s, a))² + anchor (E_E (Q - top)²)``; the reward is never read,
    and there is no discriminator. ``D`` is the second half of a batch of `ExpertHalf`. Source: Sikchi et al. 2023, arXiv
    2302.08560, with the coefficients of a third party's code (w .8, top 200): the paper's are not known.

    Attributes:
        balance: w.
        discount: γ.
        top: value that the expert's pairs are drawn to, so that values do not run away.
        anchor: weight of that.
    """

    balance: float = 0.8
    discount: float = 0.99
    top: float = 200.0
    anchor: float = 0.2

    def __post_init__(self) -> None:
        if not 0 < self.balance < 1 or self.anchor < 0:
            raise ConfigError(
                f"ContrastiveQ(balance={self.balance}, anchor={self.anchor}): use a share, and a weight of 0 or more"
            )

    def __call__(self, rows: TransitionBatch, nets: Nets, target: Tensor | None, noise: Noise, log: Log | None) -> Tensor:
        """A scalar."""
        del target
        half = len(rows) // 2
        with torch.no_grad():
            ahead = nets.v(rows.next_observation).masked_fill(rows.terminal, 0.0)
            drawn = nets.sample(rows.observation[half:], noise)[0].clamp(-1, 1)
        q = nets.q(rows.observation, rows.action)
        apart = nets.q(rows.observation[half:], drawn).mean(-1) - q[:, :half].mean(-1)
        bellman = (self.discount * ahead - q).square().mean(-1)
        anchor = (q[:, :half] - self.top).square().mean(-1)
        if log is not None:
            log["q/expert"], log["q/mean"] = q[:, :half].detach().mean(), q.detach().mean()
        return ((1 - self.balance) * apart + self.balance * bellman + self.anchor * anchor).sum()


# ---- generalised normal errors ------------------------------------------------------------------------------------------


def generalised_gaussian_nll(error: Tensor, beta: Tensor, form: str) -> Tensor:
    """``-log p(δ)`` of a generalised normal of scale 1: ``|δ|^β - log(β / 2) + log Γ(1 / β)`` (``power``).

    ``linear`` is what the released code of the paper has: ``|δ| β - log β + log Γ(1 / β)``, whose fit is a median.

    >>> [round(float(generalised_gaussian_nll(torch.tensor(0.5), torch.tensor(2.0), f)), 3) for f in ("linear", "power")]
    [0.879, 0.822]
    """
    size = error.abs()
    if form == "linear":
        return size * beta - beta.log() + torch.lgamma(1 / beta)
    return size.clamp(min=1e-6) ** beta - (beta / 2).log() + torch.lgamma(1 / beta)


def inverse_variance_weights(error: Tensor, size: float = 16.0) -> Tensor:
    """``[B]`` weights by the variance of ``[N, B]`` errors over the ensemble, corrected for kurtosis, that sum to ``B``.

    ``v = Var(δ) / (κ / N + (N + 1) / (N - 1))`` with κ the unbiased excess, ``w ∝ 1 / (v + ξ)``, and ξ the least with which
    ``(Σ w)² / Σ w²`` is at least ``size`` (or all rows). After generalised-Gaussian TD errors (2024).

    >>> inverse_variance_weights(torch.tensor([[1.0, 1.0], [2.0, 2.0], [4.0, 4.0], [5.0, 5.0], [8.0, 8.0]])).tolist()
    [1.0, 1.0]
    """
    v = corrected_variance(error)
    wanted = min(size, float(v.shape[0]))
    low, high = 0.0, 1.0
    while _effective(v, high) < wanted - 1e-6 and high < 1e12:
        high *= 4
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if _effective(v, middle) >= wanted - 1e-6 else (middle, high)
    w = 1 / (v + high)
    return w * (len(w) / w.sum())


def _effective(v: Tensor, xi: float) -> float:
    w = 1 / (v + xi + 1e-12)
    return float(w.sum().square() / w.square().sum())


def corrected_variance(error: Tensor) -> Tensor:
    """``[B]`` of ``[N, B]``.

    >>> round(float(corrected_variance(torch.tensor([[1.0], [2.0], [4.0], [5.0], [8.0]]))), 3)
    4.072
    """
    n = error.shape[0]
    centred = error - error.mean(0)
    var = centred.square().sum(0) / (n - 1)
    if n < 4:
        return var
    fourth = (centred**4).sum(0) / var.clamp(min=1e-12) ** 2
    excess = n * (n + 1) / ((n - 1) * (n - 2) * (n - 3)) * fourth - 3 * (n - 1) ** 2 / ((n - 2) * (n - 3))
    # the numerator is the variance of the sample itself, as in the released code
    return (n - 1) / n * var / (excess / n + (n + 1) / (n - 1)).clamp(min=1e-3)


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralisedGaussian:
    """A critic's loss under errors whose tails are learned: ``mean w β-weighted |δ|^β + mse mean w δ²``.

    ``δ = Q(s, a) - y``; β is ``softplus`` of a network ``shape``, and is held fixed here. Rows count by β over its mean and by
    the inverse of the ensemble's variance (`inverse_variance_weights`). After generalised-Gaussian TD errors (2024); with
    ``form`` ``linear`` as in its released code. The shape has a network of its own, where the paper has a second head.

    Attributes:
        form: ``power`` or ``linear``.
        mse: weight of the squares.

    Raises:
        ConfigError: another form.
    """

    form: str = "power"
    mse: float = 0.1

    def __post_init__(self) -> None:
        if self.form not in ("power", "linear") or self.mse < 0:
            raise ConfigError(
                f"GeneralisedGaussian(form={self.form!r}, mse={self.mse}): use 'power' or 'linear', and a weight >= 0"
            )

    def __call__(self, rows: TransitionBatch, nets: Nets, target: Tensor | None, noise: Noise, log: Log | None) -> Tensor:
        """A scalar."""
        del noise
        assert target is not None
        error = nets.q(rows.observation, rows.action) - target
        with torch.no_grad():
            beta = shape_of(rows, nets)
            weight = inverse_variance_weights(error) if error.shape[0] > 1 else torch.ones(len(rows))
        if log is not None:
            log["q/shape"], log["q/mean"] = beta.mean(), target.mean()
        nll = generalised_gaussian_nll(error, beta, self.form) * (beta / beta.mean())
        return (weight * (nll + self.mse * error.square())).mean(-1).sum()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeFit:
    """The loss of ``shape``: ``mean -log p(δ; β(s, a))`` of the critics' errors, which are held fixed.

    Attributes:
        form: ``power`` or ``linear``, that of the critic.
    """

    form: str = "power"

    def __call__(self, rows: TransitionBatch, nets: Nets, target: Tensor | None, noise: Noise, log: Log | None) -> Tensor:
        """A scalar."""
        del noise, log
        assert target is not None
        with torch.no_grad():
            error = nets.q(rows.observation, rows.action) - target
        return generalised_gaussian_nll(error, shape_of(rows, nets), self.form).mean()


def shape_of(rows: TransitionBatch, nets: Nets) -> Tensor:
    """``[1, B]`` β of each pair: above 0, 1 for exponential and 2 for normal tails."""
    out = nets["shape"](torch.cat([rows.observation, rows.action], -1))[..., 0]
    return torch.nn.functional.softplus(out + math.log(math.e**2 - 1)) + 0.1
