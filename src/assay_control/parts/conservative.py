"""Critics that are pessimistic about actions outside the data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.core import ConfigError
from assay_control.lazy_torch import torch
from assay_control.parts.base import Log, Noise, TransitionBatch

if TYPE_CHECKING:
    from torch import Tensor

    from assay_control.parts.nets import Nets

__all__ = ["Conservative", "ConservativeChoices"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conservative:
    """CQL(H): ``weight · Σ_i mean(logsumexp_a(Q_i(s, a) - log p(a)) - Q_i(s, a_data))`` over drawn actions.

    A third of the actions is drawn evenly, a third by the policy at ``s``, a third by the policy at ``s'``; each is corrected by
    the density that it was drawn with, so that the sum estimates an integral over all actions. With ``floor`` the policy's
    actions are worth at least the data's return (Cal-QL), so what is learned is calibrated for going on online.

    Source: Kumar et al. 2020, arXiv 2006.04779; Nakamoto et al. 2023, arXiv 2303.05479 (``floor``).

    Attributes:
        weight: of the term (5 and 10 are in use).
        actions: drawn from each of the three.
        floor: whether values of the policy's actions are raised to the data's return to go.

    Raises:
        ConfigError: a negative weight, or no action.
    """

    weight: float = 5.0
    actions: int = 10
    floor: bool = False

    def __post_init__(self) -> None:
        if self.weight < 0 or self.actions < 1:
            raise ConfigError(
                f"Conservative(weight={self.weight}, actions={self.actions}): use weight >= 0 and an action or more"
            )

    def __call__(self, rows: TransitionBatch, nets: Nets, noise: Noise, log: Log | None) -> Tensor:
        """A scalar."""
        n, size = self.actions, len(rows)
        with torch.no_grad():
            even = 2 * noise.uniform(n, size, nets.size) - 1
            here, logp_here = (t.view(n, size, -1) for t in nets.sample(rows.observation, noise, n))
            after, logp_after = (t.view(n, size, -1) for t in nets.sample(rows.next_observation, noise, n))
        actions = torch.cat([even, here, after])
        density = torch.cat([torch.full((n, size), -nets.size * math.log(2)), logp_here[..., 0], logp_after[..., 0]])
        observation = rows.observation.expand(3 * n, *rows.observation.shape).reshape(-1, rows.observation.shape[-1])
        q = nets.q(observation, actions.reshape(-1, nets.size)).view(-1, 3 * n, size)
        if self.floor:
            floored = torch.maximum(q[:, n:], rows.to_go)
            if log is not None:
                log["q/floored"] = (q[:, n:] < rows.to_go).float().mean()
            q = torch.cat([q[:, :n], floored], 1)
        data = nets.q(rows.observation, rows.action)
        gap = spread(q, density) - data
        if log is not None:
            log["q/gap"] = gap.detach().mean()
        return self.weight * gap.mean(-1).sum()


def spread(q: Tensor, density: Tensor) -> Tensor:
    """``[N, B]`` ``log mean_a exp(Q(a) - log p(a))`` of ``[N, n, B]`` values: the logarithm of the integral of ``e^Q``.

    >>> round(float(spread(torch.tensor([[[1.0], [2.0], [3.0]]]), torch.full((3, 1), -math.log(2)))), 4)
    3.0021
    """
    return (q - density).logsumexp(1) - math.log(q.shape[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class ConservativeChoices:
    """CQL for choices: ``weight · Σ_i mean(logsumexp_a Q_i(s, a) - Q_i(s, a_data))``.

    Source: Kumar et al. 2020, arXiv 2006.04779.

    Attributes:
        weight: of the term.
    """

    weight: float = 1.0

    def __call__(self, rows: TransitionBatch, nets: Nets, noise: Noise, log: Log | None) -> Tensor:
        """A scalar."""
        del noise
        gap = nets["q"](rows.observation).logsumexp(-1) - nets.q(rows.observation, rows.action)
        if log is not None:
            log["q/gap"] = gap.detach().mean()
        return self.weight * gap.mean(-1).sum()
