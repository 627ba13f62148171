"""Models of a world: ensembles that are fitted to transitions, and batches that they imagine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from assay.core import ConfigError
from assay_control.lazy_torch import torch
from assay_control.parts.base import Log, Noise, TransitionBatch

if TYPE_CHECKING:
    from torch import Tensor

    from assay_control.parts.nets import Nets

__all__ = ["ImaginedRows", "ModelLikelihood", "ValueGradientModel", "model_outputs"]

LOW, HIGH = -5.0, 1.0
"""Between which the log deviations of a model are kept."""


def model_outputs(rows: TransitionBatch, nets: Nets, observation: Tensor, action: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What the members of ``model`` expect of ``[n, O]`` observations and ``[n, A]`` actions.

    Returns:
        ``[N, n, O + 1]`` means and log deviations of the change of the observation and of the reward, ``[N, n]`` logits of an
        end.
    """
    size = rows.observation.shape[-1] + 1
    out = nets["model"](torch.cat([observation, action], -1))
    spread = HIGH - torch.nn.functional.softplus(HIGH - out[..., size : 2 * size])
    return out[..., :size], LOW + torch.nn.functional.softplus(spread - LOW), out[..., -1]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLikelihood:
    """``mean_i -log N((Δs, r); μ_i(s, a), σ_i(s, a)²)``, and the cross-entropy of ends.

    Source: Chua et al. 2018, arXiv 1805.12114, as MOPO uses it (Yu et al. 2020, arXiv 2005.13239); each member sees every row.
    """

    def __call__(self, rows: TransitionBatch, nets: Nets, target: Tensor | None, noise: Noise, log: Log | None) -> Tensor:
        """A scalar."""
        del target, noise
        mean, spread, ends = model_outputs(rows, nets, rows.observation, rows.action)
        error = mean - _truth(rows)
        likelihood = (0.5 * (error / spread.exp()) ** 2 + spread).sum(-1).mean(-1)
        if log is not None:
            log["model/nll"], log["model/error"] = likelihood.detach().mean(), error.detach().square().mean()
        return likelihood.sum() + _ends(ends, rows)


def _truth(rows: TransitionBatch) -> Tensor:
    """``[B, O + 1]`` change of the observation, and reward."""
    return torch.cat([rows.next_observation - rows.observation, rows.reward.unsqueeze(-1)], -1)


def _ends(logits: Tensor, rows: TransitionBatch) -> Tensor:
    truth = rows.terminal.float().expand(logits.shape)
    return torch.nn.functional.binary_cross_entropy_with_logits(logits, truth, reduction="none").mean(-1).sum()


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueGradientModel:
    """VaGraM's loss of a model: ``mean Σ_j (∂_j V(s') (ŝ'_j - s'_j))² + (r̂ - r)²``.

    Errors count as far as they move values.

    The gradient is that of the critics' mean at the true next state and the policy's action there; it is cut at its ``bound``
    quantile over the batch. Source: Voelcker et al. 2022, arXiv 2204.01464 (in whose code the cut is never reached).

    Attributes:
        bound: quantile of the gradients' norms at which they are cut.
    """

    bound: float = 0.95

    def __post_init__(self) -> None:
        if not 0 < self.bound <= 1:
            raise ConfigError(f"ValueGradientModel.bound={self.bound}; use a quantile above 0 and up to 1")

    def __call__(self, rows: TransitionBatch, nets: Nets, target: Tensor | None, noise: Noise, log: Log | None) -> Tensor:
        """A scalar."""
        del target, noise
        mean, spread, ends = model_outputs(rows, nets, rows.observation, rows.action)
        error = mean - _truth(rows)
        weighted = self.weigh(self.gradient(rows, nets), error[..., :-1]) + error[..., -1].square()
        # deviations are still those of the model's own errors, for the rows that it imagines
        known = (0.5 * (error.detach() / spread.exp()) ** 2 + spread).sum(-1)
        if log is not None:
            log["model/value_error"], log["model/error"] = weighted.detach().mean(), error.detach().square().mean()
            log["model/nll"] = known.detach().mean()
        return (weighted + known).mean(-1).sum() + _ends(ends, rows)

    def gradient(self, rows: TransitionBatch, nets: Nets) -> Tensor:
        """``[B, O]`` of the value at the true next states, cut."""
        follows = rows.next_observation.detach().clone().requires_grad_()
        with torch.enable_grad():
            action = nets.mean(rows.next_observation).detach()
            (gradient,) = torch.autograd.grad(nets.q(follows, action, fixed=True).mean(0).sum(), follows)
        norm = gradient.square().sum(-1, keepdim=True).sqrt()
        return gradient * (norm.quantile(self.bound) / (norm + 1e-12)).clamp(max=1.0)

    def weigh(self, gradient: Tensor, error: Tensor) -> Tensor:
        """Of each row.

        >>> float(ValueGradientModel().weigh(torch.tensor([1.0, 2.0]), torch.tensor([0.5, -0.25])))
        0.5
        """
        return (gradient * error).square().sum(-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImaginedRows:
    """Replaces rows of a batch by ones that the model imagines: up to ``steps`` steps of the policy from the rows' states.

    ``r̃ = r̂ - penalty · max_i |σ_i(s, a)|`` (MOPO; with ``penalty`` 0 MBPO: Janner et al. 2019, arXiv 1906.08253). Each imagined
    row is one step of its own branch, at a depth that is drawn evenly; a branch that the model ends goes no further. They are
    imagined afresh for each batch, so no buffer of them is kept. Source: Yu et al. 2020, arXiv 2005.13239.

    Attributes:
        share: of the rows that are imagined.
        steps: greatest depth of a branch.
        penalty: λ of the paper, on the greatest norm of the members' deviations.
        since: number of the first update that has them.

    Raises:
        ConfigError: no share, or a number out of its range.
    """

    share: float = 0.5
    steps: int = 1
    penalty: float = 0.0
    since: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1 or self.steps < 1 or self.penalty < 0 or self.since < 0:
            raise ConfigError(
                f"ImaginedRows(share={self.share}, steps={self.steps}, penalty={self.penalty}, since={self.since}): "
                "use a share, a "
                "step or more, and no negative number"
            )

    def __call__(self, rows: TransitionBatch, nets: Nets, noise: Noise, count: int) -> TransitionBatch:
        """The batch of update ``count``, imagined rows first."""
        n = int(self.share * len(rows))
        if not n or count < self.since:
            return rows
        with torch.no_grad():
            made = self._branches(rows, nets, noise, n)
        real = {k: getattr(rows, k) for k in ("observation", "action", "reward", "next_observation", "terminal")}
        joined = {k: torch.cat([made[k], v[n:]]) for k, v in real.items()}
        stream, to_go = rows.stream.clone(), rows.to_go.clone()
        stream[:n], to_go[:n] = 2, 0.0
        return replace(rows, **joined, stream=stream, to_go=to_go, columns={})

    def _branches(self, rows: TransitionBatch, nets: Nets, noise: Noise, n: int) -> dict[str, Tensor]:
        depth = (noise.uniform(n) * self.steps).long()
        at = rows.observation[:n]
        kept: dict[str, Tensor] = {}
        open_ = torch.ones(n, dtype=torch.bool)
        for step in range(self.steps):
            action = nets.sample(at, noise)[0].clamp(-1, 1)
            after, reward, ended = self.step(rows, nets, noise, at, action)
            made = {"observation": at, "action": action, "reward": reward, "next_observation": after, "terminal": ended}
            for name, value in made.items():
                use = open_.view(-1, *(1,) * (value.ndim - 1))
                kept[name] = torch.where(use, value, kept[name]) if name in kept else value
            open_ = open_ & (depth > step) & ~ended
            at = after
        return kept

    def step(self, rows: TransitionBatch, nets: Nets, noise: Noise, at: Tensor, action: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """One step of the model: a member for each row, drawn with its noise."""
        mean, spread, ends = model_outputs(rows, nets, at, action)
        member = (noise.uniform(len(at)) * len(mean)).long()
        place = torch.arange(len(at))
        drawn = mean[member, place] + spread[member, place].exp() * noise.normal(*mean.shape[1:])
        reward = drawn[:, -1]
        if self.penalty:
            reward = reward - self.penalty * spread.exp().square().sum(-1).sqrt().amax(0)
        return at + drawn[:, :-1], reward, ends[member, place] > 0
