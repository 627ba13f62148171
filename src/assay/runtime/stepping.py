"""What a running batch asks of a model: passes over prompts, steps by one token per row, slots for keys and values, weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from assay.core.columns import Array
from assay.core.manifest import Manifest
from assay.core.rollout import Ids
from assay.runtime.slots import ColumnKind

__all__ = ["P", "Prefilled", "Served", "SlotStore", "Steps"]


class Prefilled(Protocol):
    """Prompts that passed through the model: ``[n, vocabulary]`` float32 logits behind each, and what `Steps.kinds` names: of the
    token that comes next, ``[n, ...]``, and of each prompt's own tokens, ``[P, ...]``.
    """

    @property
    def logits(self) -> torch.Tensor: ...

    @property
    def columns(self) -> Mapping[str, Array]: ...

    @property
    def prompts(self) -> Mapping[str, Sequence[Array]]: ...


P = TypeVar("P", bound=Prefilled)
_Given = TypeVar("_Given", bound=Prefilled, contravariant=True)


class SlotStore(Protocol[_Given]):
    """Keys and values by slot."""

    def reserve(self, slots: int, length: int, used: int) -> None:
        """Makes room for ``slots`` rows of ``length`` tokens, keeping the first ``used`` rows."""
        ...

    def place(self, prefill: _Given, rows: NDArray[np.int64], slots: NDArray[np.int64]) -> None:
        """Copies prompts ``rows`` of a prefill to ``slots``."""
        ...

    def move(self, source: NDArray[np.int64], target: NDArray[np.int64], length: int) -> None:
        """Copies the first ``length`` tokens of rows ``source`` over rows ``target``."""
        ...


class Steps(Protocol[P]):
    """A decode path: a model's forward passes over weights and a cache that are its own.

    Attributes:
        kinds: further token columns that it tells of each token beside its logits; empty for none.
    """

    kinds: Mapping[str, ColumnKind]

    @property
    def cache(self) -> SlotStore[P]: ...

    def prefill(self, prompts: Sequence[Ids]) -> P:
        """Whole prompts in one pass."""
        ...

    def step(self, tokens: NDArray[np.int64], positions: NDArray[np.int64]) -> torch.Tensor:
        """One token more in each of the first ``B`` rows, at its own position; ``[B, vocabulary]`` float32 logits behind it."""
        ...

    def told(self) -> Mapping[str, Array]:
        """``[B, ...]`` per name of `kinds`, of the last `step`."""
        ...

    def score(self, rows: Sequence[Ids]) -> list[NDArray[np.float32]]:
        """Log-probability at temperature 1 of each token given those before it; 0 for the first of a row."""
        ...


class Served(Protocol):
    """The weights that a decode path multiplies with."""

    def verified(self, manifest: Manifest) -> Mapping[str, Array]:
        """A manifest's arrays, checked to fit; EngineError says why they do not."""
        ...

    def load(self, arrays: Mapping[str, Array]) -> None:
        """Copies verified arrays into the served ones."""
        ...

    def digests(self) -> dict[str, str]:
        """Digest of each served array."""
        ...
