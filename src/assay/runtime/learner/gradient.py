"""The gradient of what learns, in one piece or in the parts of several ranks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from assay.runtime.kernels.typed import l2_norm
from assay.runtime.learner.causal import Causal
from assay.runtime.learner.critics import flat_gradient

if TYPE_CHECKING:
    from assay.runtime.distributed.collectives import Collectives
    from assay.runtime.distributed.fsdp import Sharded

__all__ = ["Gradient", "gradient_of"]


class Gradient(Protocol):
    """What the passes of a step leave at the parameters."""

    def clear(self) -> None:
        """Zeros."""
        ...

    def collect(self) -> None:
        """Behind the last pass: what an optimiser reads stands at the parameters."""
        ...

    def norm(self) -> float:
        """Of all of it, on all ranks."""
        ...

    def scale(self, factor: float) -> None:
        """Makes it ``factor`` times as long."""
        ...


class _Flat:
    """One buffer whose slices are the parameters' gradients."""

    def __init__(self, policy: Causal) -> None:
        self.buffer: Tensor = flat_gradient(policy.trainable_parameters().values())

    def clear(self) -> None:
        self.buffer.zero_()

    def collect(self) -> None:
        pass

    def norm(self) -> float:
        return float(l2_norm(self.buffer))

    def scale(self, factor: float) -> None:
        self.buffer.mul_(factor)


class _Parts:
    """The parts of one rank, each added up over the ranks as the passes go."""

    def __init__(self, policy: Sharded, ranks: Collectives) -> None:
        self._policy, self._ranks = policy, ranks

    def clear(self) -> None:
        self._policy.clear()

    def collect(self) -> None:
        self._policy.collect()

    def norm(self) -> float:
        squares = sum(float(l2_norm(g)) ** 2 for g in self._grads())
        return math.sqrt(self._ranks.totals({"squares": squares})["squares"])

    def scale(self, factor: float) -> None:
        torch._foreach_mul_(self._grads(), factor)  # type: ignore[reportPrivateUsage]

    def _grads(self) -> list[Tensor]:
        return [p.grad for p in self._policy.trainable_parameters().values() if p.grad is not None]


def gradient_of(policy: Causal, ranks: Collectives | None) -> Gradient:
    """The gradient of a policy's trained weights."""
    if ranks is None:
        return _Flat(policy)
    from assay.runtime.distributed.fsdp import Sharded

    assert isinstance(policy, Sharded), "on several ranks a policy lies in parts"
    return _Parts(policy, ranks)
