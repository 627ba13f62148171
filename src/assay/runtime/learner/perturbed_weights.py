"""Weights that are visibly others in every tensor, for a while: for the proof of an engine that cannot be looked into."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.core.rollout import Ids
from assay.core.seeds import generator
from assay.runtime.kernels.typed import tensor_of
from assay.runtime.learner.causal import Causal

__all__ = ["disturb_weights", "effects"]

SPREAD = 0.5
"""Noise on a tensor, in units of its own root mean square."""
LEAST = 0.1
"""And at the least: a bias or an adapter that is all zeros must become visible too."""

Score = Callable[[Sequence[Ids]], list[NDArray[np.float32]]]


def _noise(name: str, tensor: Tensor) -> Tensor:
    draw = generator("rehearsal", 0, name).standard_normal(tuple(tensor.shape), dtype=np.float32)
    size = max(SPREAD * float(tensor.float().square().mean().sqrt()), LEAST if not bool(tensor.any()) else 0.0)
    return tensor_of(draw).to(tensor.device, tensor.dtype) * size


@contextmanager
def disturb_weights(policy: Causal) -> Generator[dict[str, Tensor]]:
    """Inside, each trained tensor carries noise of its own; behind it all are bit for bit as before. Gives copies of what they
    were.
    """
    parameters = policy.trainable_parameters()
    kept = {name: p.detach().clone() for name, p in parameters.items()}
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.add_(policy.own(name, _noise(name, policy.whole(name, parameter.detach()))))
    try:
        yield kept
    finally:
        with torch.no_grad():
            for name, parameter in parameters.items():
                parameter.copy_(kept[name])


def effects(
    parameters: Mapping[str, Tensor], kept: Mapping[str, Tensor], score: Score, rows: Sequence[Ids]
) -> dict[str, NDArray[np.float32]]:
    """By how much the log-probability of each token of ``rows`` changes, the first of each row left out, when one tensor alone
    is as it was: what would be seen, had it not arrived.
    """
    whole = score(rows)
    out: dict[str, NDArray[np.float32]] = {}
    for name, parameter in parameters.items():
        noisy = parameter.detach().clone()
        with torch.no_grad():
            parameter.copy_(kept[name])
        without = score(rows)
        with torch.no_grad():
            parameter.copy_(noisy)
        out[name] = np.concatenate([b[1:] - a[1:] for a, b in zip(whole, without, strict=True)])
    return out
