"""Statistics and gradients of several processes: an objective on several ranks computes what it computes on one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import torch.distributed as dist
from torch import Tensor

from assay.core.errors import AssayError, RankError
from assay.runtime.kernels.typed import add_up, gather_objects, group_of

if TYPE_CHECKING:
    from assay.runtime.distributed.context_parallel import Share

__all__ = ["Collectives", "shared_by"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Collectives:
    """The ranks of a process group. Where each has a part of a batch, it merges equally named partial statistics, as the reducer
    that an objective is compiled with. Where each has the whole batch and a part of the weights, it deals out micro-batches for
    a learner.

    Every rank hears of all partials and merges them in the order of the ranks, so that all hold the same bits. Partials travel
    as pickles between the processes of one run. The group moves tensors of the CPU, as ``gloo`` does, and its timeout is how
    long a rank waits for the others.

    Attributes:
        group: whose ranks; those of ``torch.distributed.init_process_group`` when None.
        share: those of them that share the tokens of a micro-batch with this one; None where it has them all.

    >>> import numpy as np
    >>> import torch.distributed as dist
    >>> from assay.objective import Sum, grpo
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # here: a single rank
    >>> program = grpo().compile(reducer=Collectives())
    >>> Collectives().reduce({"report/kl": Sum(np.array([2.0]))})["report/kl"].values.tolist()
    [2.0]
    >>> dist.destroy_process_group()
    """

    group: dist.ProcessGroup | None = None
    share: Share | None = None

    @property
    def index(self) -> int:
        """Which rank, counted from 0."""
        return dist.get_rank(self.group)

    @property
    def size(self) -> int:
        """How many there are."""
        return dist.get_world_size(self.group)

    @property
    def counts(self) -> bool:
        """Whether what this rank found counts: of those that share tokens, all of which find the same, the first's does."""
        return self.share is None or self.share.index == 0

    def split_parts(self, parts: Sequence[T]) -> Iterator[tuple[int, T, bool]]:
        """The parts of a batch that this rank computes, with their places: every n-th of n ranks, or sets of ranks that share
        tokens. All get equally many, since each pass is a collective: where the parts run out another is computed that does not
        count (False).
        """
        each = self.share.size if self.share else 1
        for first in range(0, len(parts), self.size // each):
            place = first + self.index // each
            counts = place < len(parts)
            yield (place, parts[place], True) if counts else (len(parts) - 1, parts[-1], counts)

    def agree(self, error: AssayError | None) -> None:
        """Raises on every rank what was found on one, the first of them.

        Raises:
            AssayError: ``error`` of this rank or another.
            RankError: a rank did not answer in time.
        """
        everybody = self._gather_all({} if error is None else {"error": error}, "errors of the step")
        for of_rank in everybody:
            if "error" in of_rank:
                raise of_rank["error"]

    def reduce(self, partials: Mapping[str, Any]) -> Mapping[str, Any]:
        """The same names, each merged over the ranks: anything that pickles and has ``merge(other)``.

        Raises:
            RankError: the ranks ask for different statistics, or one did not answer in time; every rank that waits hears of it.
        """
        everybody = self._gather_all(dict(partials), _names(partials))
        self._check_names(everybody)
        return {name: _merge_parts([of_rank[name] for of_rank in everybody]) for name in partials}

    def totals(self, numbers: Mapping[str, float]) -> dict[str, float]:
        """Each number added up over the ranks that have it; the same on all of them.

        Raises:
            RankError: a rank did not answer in time.
        """
        everybody = self._gather_all(dict(numbers), "numbers of the step")
        names = dict.fromkeys(name for of_rank in everybody for name in of_rank)
        return {name: sum(of_rank.get(name, 0.0) for of_rank in everybody) for name in names}

    def add(self, tensor: Tensor, what: str = "tensor") -> None:
        """Adds up a tensor over the ranks, in place; the same bits on all of them.

        Raises:
            RankError: a rank did not answer in time; names ``what``.
        """
        try:
            add_up(tensor, self.group)
        except RuntimeError as error:
            raise self._alone(what, error) from error

    def _gather_all(self, own: dict[str, Any], what: str) -> list[dict[str, Any]]:
        everybody: list[dict[str, Any]] = [{}] * dist.get_world_size(self.group)
        try:
            gather_objects(everybody, own, self.group)
        except RuntimeError as error:
            raise self._alone(what, error) from error
        return everybody

    def _alone(self, what: str, error: RuntimeError) -> RankError:
        return RankError(
            f"rank {dist.get_rank(self.group)} waited for the other ranks' {what} in vain ({_first_line(error)}): one of them "
            "ended, hangs or is slow; look for its error, or give the process group a longer timeout"
        )

    def _check_names(self, everybody: Sequence[Mapping[str, Any]]) -> None:
        for other in range(1, len(everybody)):
            if only := everybody[0].keys() ^ everybody[other].keys():
                here, there = ([n for n in everybody[r] if n in only] for r in (0, other))
                raise RankError(
                    f"the ranks ask for different statistics: rank 0 alone for {_names(here)}, rank {other} alone for "
                    f"{_names(there)}; every rank must run the same objective on its part of the same batch"
                )


def shared_by(size: int) -> Share | None:
    """Of the ranks of the default process group those that share tokens with this one, ``size`` next to each other; None for 1.
    Every rank must ask.
    """
    if size == 1:
        return None
    from assay.runtime.distributed.context_parallel import Share

    found: Share | None = None
    for first in range(0, dist.get_world_size(), size):
        members = list(range(first, first + size))
        group = group_of(members)
        if dist.get_rank() in members:
            found = Share(group, dist.get_rank() - first, size)
    return found


def _merge_parts(parts: Sequence[Any]) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = total.merge(part)
    return total


def _names(partials: Mapping[str, Any] | Sequence[str]) -> str:
    return ", ".join(repr(name) for name in sorted(partials)) or "nothing"


def _first_line(error: RuntimeError) -> str:
    return str(error).strip().partition("\n")[0][:200]
