"""Tensors that are said to be trained and never get a gradient."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from assay.runtime.kernels.typed import array_of

if TYPE_CHECKING:
    from assay.runtime.distributed.collectives import Collectives

__all__ = ["SIGNAL_STEPS", "GradientWatch"]

SIGNAL_STEPS = 8
"""Updates with a gradient after which a tensor without one counts as untrained: an adapter's A has none before B has moved."""


class GradientWatch:
    """Follows which tensors have had a gradient of exactly 0 at every update that moved others.

    An update counts where the whole gradient is not 0 and the weights move by it: a step whose answers all earned the same says
    nothing of any tensor.

    Args:
        names: of all that is trained.
        ranks: processes that each hold parts of the tensors; None for a single one.

    >>> watch = GradientWatch(["a", "b"])
    >>> for _ in range(SIGNAL_STEPS):
    ...     watch.look({"a": torch.ones(2), "b": torch.zeros(2)})
    >>> watch.untrained
    ('b',)
    """

    def __init__(self, names: Iterable[str], ranks: Collectives | None = None) -> None:
        self._silent, self._steps, self._ranks = list(names), 0, ranks

    @property
    def untrained(self) -> tuple[str, ...]:
        """Names of those tensors, once there were enough updates."""
        return tuple(self._silent) if self._steps >= SIGNAL_STEPS else ()

    def look(self, gradients: Mapping[str, Tensor | None]) -> None:
        """Counts an update by the gradients, this rank's, that moved the weights."""
        self._steps = min(self._steps + 1, SIGNAL_STEPS)
        if not self._silent:
            return
        found = {name: g for name in self._silent if (g := gradients.get(name)) is not None}
        some = array_of(torch.stack([g.any() for g in found.values()])) if found else ()
        heard = dict.fromkeys(self._silent, 0.0) | dict(zip(found, map(float, some), strict=True))
        if self._ranks is not None:
            heard = self._ranks.totals(heard)
        self._silent = [name for name in self._silent if not heard[name]]

    def state_dict(self) -> dict[str, Any]:
        """JSON-able; empty before the first update."""
        return {"steps": self._steps, "silent": list(self._silent)} if self._steps else {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores `state_dict`; from an empty one it begins anew."""
        if state:
            self._steps, self._silent = int(state["steps"]), list(map(str, state["silent"]))
