"""One token per row from logits: temperature, truncation, and the inverse of the cumulative distribution at a given uniform."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from assay.core.rollout import Ids, ids_of
from assay.runtime.kernels.typed import tensor_of

__all__ = ["Drawn", "Draws", "draw"]


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """How each of ``B`` rows draws.

    Attributes:
        temperature: ``[B]`` float32; 0 takes the most likely token, the lowest id among equals.
        top_k: ``[B]`` int64, 0 for all.
        top_p: ``[B]`` float64, 1 for all.
        uniform: ``[B]`` float64 in [0, 1).
        min_p: ``[B]`` float64, 0 for all; None for all rows 0.
        kept: ``[B]`` whose supports are told; None for none.
    """

    temperature: NDArray[np.float32]
    top_k: NDArray[np.int64]
    top_p: NDArray[np.float64]
    uniform: NDArray[np.float64]
    min_p: NDArray[np.float64] | None = None
    kept: NDArray[np.bool_] | None = None

    @property
    def least(self) -> NDArray[np.float64]:
        """``[B]`` `min_p`, 0 where there is none."""
        return np.zeros(len(self.top_p)) if self.min_p is None else self.min_p


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """``[B]`` ids (int64), log-probabilities and entropies in nats (float32), all under the distribution that was sampled.

    At temperature 0 that distribution is one point: log-probability and entropy are 0.

    Attributes:
        support: by row, of those that were to be told: the ids that could be drawn, ascending.
    """

    ids: NDArray[np.int64]
    logp: NDArray[np.float32]
    entropy: NDArray[np.float32]
    support: Mapping[int, Ids] = field(default_factory=dict[int, Ids])


@torch.inference_mode()
def draw(logits: torch.Tensor, how: Draws) -> Drawn:
    """Draws from ``[B, vocabulary]`` logits, on the device where they are.

    Token ``i`` is drawn when the uniform lies in ``[cdf[i - 1], cdf[i])``, ids in ascending order, sums in float64. Truncation
    is applied after the temperature, min-p first, then top-k, then top-p, and the rest is renormalised.
    """
    at = logits.device
    greedy = how.temperature == 0.0
    if not np.all(how.temperature == 1.0):
        logits = logits / tensor_of(np.where(greedy, np.float32(1.0), how.temperature)).to(at)[:, None]
    cut = (how.top_k > 0) | (how.top_p < 1.0) | (how.least > 0.0)
    truncated = bool(cut.any())
    if truncated:
        logits = _truncate(logits, how)
    support = _support(logits, how.kept) if truncated and how.kept is not None else {}
    logp = logits.log_softmax(-1)
    p = logp.exp()
    cdf = p.cumsum(-1, dtype=torch.float64)
    total = cdf[:, -1:]
    # below the total even after rounding, so that no token without probability is ever reached
    point = torch.minimum(tensor_of(how.uniform).to(at)[:, None] * total, torch.nextafter(total, torch.zeros_like(total)))
    ids = torch.searchsorted(cdf, point, right=True).clamp_(max=logits.shape[-1] - 1)
    chosen = logp.gather(1, ids)[:, 0].cpu().numpy()
    if truncated:
        logp = logp.masked_fill(p == 0.0, 0.0)  # 0 log 0 = 0
    entropy = p.mul_(logp).sum(-1).neg_().cpu().numpy()
    found = ids[:, 0].cpu().numpy()
    if greedy.any():
        found = np.where(greedy, logits.argmax(-1).cpu().numpy(), found)
        finite = np.isfinite(entropy)
        chosen = np.where(greedy & finite, np.float32(0.0), chosen)
        entropy = np.where(greedy & finite, np.float32(0.0), entropy)
    return Drawn(found, chosen, entropy, support)


def _support(logits: torch.Tensor, kept: NDArray[np.bool_]) -> dict[int, Ids]:
    """The ids with a finite logit of some rows."""
    rows = np.flatnonzero(kept)
    row, ids = (logits[tensor_of(rows).to(logits.device)] > float("-inf")).nonzero().cpu().numpy().T
    ends = np.cumsum(np.bincount(row, minlength=len(rows)))[:-1]
    return {int(at): ids_of(part) for at, part in zip(rows, np.split(ids, ends), strict=True)}


def _truncate(logits: torch.Tensor, how: Draws) -> torch.Tensor:
    """Logits with -inf outside each row's support: those of at least ``min_p`` of the largest's probability, of these the
    ``top_k`` largest, then the fewest that reach ``top_p``.
    """
    size, at = logits.shape[-1], logits.device
    ordered, order = logits.sort(dim=-1, descending=True, stable=True)
    k = tensor_of(np.where(how.top_k > 0, how.top_k, size)).to(at)[:, None]
    outside = torch.arange(size, device=at) >= k
    if how.least.any():
        with np.errstate(divide="ignore"):  # log 0 is -inf: nothing is below
            below = tensor_of(np.log(how.least)).to(at)[:, None]
        outside = outside | (ordered.double() < ordered[:, :1].double() + below)
    mass = ordered.double().masked_fill(outside, float("-inf")).softmax(-1)
    before = mass.cumsum(-1) - mass
    outside |= before >= tensor_of(how.top_p).to(at)[:, None]
    outside[:, 0] = False
    return logits.masked_fill(torch.empty_like(outside).scatter_(1, order, outside), float("-inf"))
