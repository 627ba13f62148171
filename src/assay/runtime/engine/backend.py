"""What a running batch asks of a model: passes over prompts, tokens for the running rows, weights.

A `Runner` draws tokens itself, one or several for each row at a time. `SteppedRunner` makes one of a decode path that gives
logits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from assay.core.columns import Array
from assay.core.manifest import Manifest
from assay.core.rollout import Ids
from assay.runtime.engine.draw import draw
from assay.runtime.engine.sequences import ColumnKind, SlotTable
from assay.runtime.kernels.typed import tensor_of

__all__ = ["P", "Prefilled", "Runner", "Served", "SlotStore", "StepOutcome", "SteppedRunner", "Steps"]


class Prefilled(Protocol):
    """Prompts that passed through the model, and what `Runner.kinds` names of each prompt's own tokens, ``[P, ...]``."""

    @property
    def prompts(self) -> Mapping[str, Sequence[Array]]: ...


P = TypeVar("P", bound=Prefilled)


class StepOutcome(NamedTuple):
    """What happened to the ``n`` running rows: which met a stop id or text, which reached their length (``[n]`` each), how many
    steps by one token were computed, and how many tokens passed through the model.
    """

    done: NDArray[np.bool_]
    cut: NDArray[np.bool_]
    steps: int
    tokens: int


class Runner(Protocol[P]):
    """A model that samples for the running rows.

    Attributes:
        kinds: further token columns that it tells of each token; empty for none.
    """

    kinds: Mapping[str, ColumnKind]

    def prefill(self, prompts: Sequence[Ids]) -> P:
        """Whole prompts in one pass."""
        ...

    def join(self, prompts: Sequence[tuple[P, int]], first: int, length: int) -> None:
        """Rows ``first`` and following go on from prompts, each a prefill and the place in it; none will be longer than
        ``length`` tokens, its prompt included.
        """
        ...

    def advance(self, table: SlotTable) -> StepOutcome:
        """One token or more for each row of the table, which is told of them."""
        ...

    def keep(self, rows: int, source: NDArray[np.int64], target: NDArray[np.int64], length: int) -> None:
        """The first ``rows`` go on, the others are over; of these, rows ``source``, of ``length`` tokens at most, are rows
        ``target`` from now on.
        """
        ...

    def score(self, rows: Sequence[Ids]) -> list[NDArray[np.float32]]:
        """Log-probability at temperature 1 of each token given those before it; 0 for the first of a row."""
        ...


class Logits(Prefilled, Protocol):
    """Prompts with ``[n, vocabulary]`` float32 logits behind each, and what `Steps.kinds` names of the token that comes next,
    ``[n, ...]``.
    """

    @property
    def logits(self) -> torch.Tensor: ...

    @property
    def columns(self) -> Mapping[str, Array]: ...


L = TypeVar("L", bound=Logits)
_Given = TypeVar("_Given", bound=Logits, contravariant=True)


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


class Steps(Protocol[L]):
    """A decode path: a model's forward passes over weights and a cache that are its own.

    Attributes:
        kinds: further token columns that it tells of each token beside its logits; empty for none.
    """

    kinds: Mapping[str, ColumnKind]

    @property
    def cache(self) -> SlotStore[L]: ...

    def prefill(self, prompts: Sequence[Ids]) -> L:
        """Whole prompts in one pass."""
        ...

    def step(self, tokens: NDArray[np.int64], positions: NDArray[np.int64]) -> torch.Tensor:
        """One token more in each of the first ``B`` rows, at its own position; ``[B, vocabulary]`` float32 logits behind it."""
        ...

    def extras(self) -> Mapping[str, Array]:
        """``[B, ...]`` per name of `kinds`, of the last `step`."""
        ...

    def score(self, rows: Sequence[Ids]) -> list[NDArray[np.float32]]:
        """Log-probability at temperature 1 of each token given those before it; 0 for the first of a row."""
        ...


class SteppedRunner(Generic[L]):
    """A `Runner` of a decode path: one step, then one draw, for all rows at once."""

    def __init__(self, path: Steps[L]) -> None:
        self.kinds = path.kinds
        self._path = path
        self._fresh: list[tuple[L, int]] = []  # prompts of the rows that joined behind the last step
        self._length = 0

    def prefill(self, prompts: Sequence[Ids]) -> L:
        """As `Runner.prefill`."""
        return self._path.prefill(prompts)

    def join(self, prompts: Sequence[tuple[L, int]], first: int, length: int) -> None:
        """As `Runner.join`."""
        self._fresh += prompts
        self._length = max(self._length, length)

    def advance(self, table: SlotTable) -> StepOutcome:
        """As `Runner.advance`."""
        parts, told = list[torch.Tensor](), list[Mapping[str, Array]]()
        fresh, length, self._fresh, self._length = self._fresh, self._length, [], 0
        n = len(table) - len(fresh)
        if n:
            parts.append(self._path.step(table.token[:n], table.position[:n]))
            told.append(self._path.extras())
        if fresh:
            self._path.cache.reserve(len(table), length, n)  # behind the step, which may write into slots that are free
            for prefill, rows, at in _by_pass(fresh):
                self._path.cache.place(prefill, rows, n + at)
            logits, first = self._first(fresh)
            parts.append(logits)
            told.append(first)
        drawn = draw(parts[0] if len(parts) == 1 else torch.cat(parts), table.draws())
        done, cut = table.record(drawn, {name: np.concatenate([t[name] for t in told]) for name in self.kinds})
        return StepOutcome(done, cut, 1, n)

    def _first(self, fresh: Sequence[tuple[L, int]]) -> tuple[torch.Tensor, dict[str, Array]]:
        """``[n, vocabulary]`` logits behind prompts, and what else is told of the tokens that come next."""
        like = fresh[0][0].logits
        logits = like.new_empty(len(fresh), like.shape[1])
        told = {name: np.empty((len(fresh), *kind.trailing), kind.dtype) for name, kind in self.kinds.items()}
        for prefill, rows, at in _by_pass(fresh):
            logits[tensor_of(at)] = prefill.logits[tensor_of(rows)]
            for name, values in told.items():
                values[at] = prefill.columns[name][rows]
        return logits, told

    def keep(self, rows: int, source: NDArray[np.int64], target: NDArray[np.int64], length: int) -> None:
        """As `Runner.keep`."""
        if len(source):
            self._path.cache.move(source, target, length)

    def score(self, rows: Sequence[Ids]) -> list[NDArray[np.float32]]:
        """As `Runner.score`."""
        return self._path.score(rows)


def _by_pass(prompts: Sequence[tuple[L, int]]) -> list[tuple[L, NDArray[np.int64], NDArray[np.int64]]]:
    """Each prefill with the places that are asked of it, and where in ``prompts`` they stand."""
    found: dict[int, list[int]] = {}
    for i, (prefill, _) in enumerate(prompts):
        found.setdefault(id(prefill), []).append(i)
    return [(prompts[at[0]][0], np.array([prompts[i][1] for i in at], np.int64), np.array(at, np.int64)) for at in found.values()]


class Served(Protocol):
    """The weights that a decode path multiplies with."""

    def verify_manifest(self, manifest: Manifest) -> Mapping[str, Array]:
        """A manifest's arrays, checked to fit; EngineError says why they do not."""
        ...

    def load(self, arrays: Mapping[str, Array]) -> None:
        """Copies verified arrays into the served ones."""
        ...

    def digests(self) -> dict[str, str]:
        """Digest of each served array."""
        ...
