"""Statistics and gradients of several processes: an objective on several ranks computes what it computes on one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch.distributed as dist
from torch import Tensor

from assay.core.errors import RankError
from assay.runtime.typed import add_up, gather_objects

__all__ = ["Ranks"]


@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """The ranks of a process group, each with its part of a batch: merges equally named partial statistics, as the reducer that
    an objective is compiled with, and adds up gradients for a learner.

    Every rank hears of all partials and merges them in the order of the ranks, so that all hold the same bits. Partials travel
    as pickles between the processes of one run. The group moves tensors of the CPU, as ``gloo`` does, and its timeout is how
    long a rank waits for the others.

    Attributes:
        group: whose ranks; those of ``torch.distributed.init_process_group`` when None.

    >>> import numpy as np
    >>> import torch.distributed as dist
    >>> from assay.objective import Sum, grpo
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)  # here: a single rank
    >>> program = grpo().compile(reducer=Ranks())
    >>> Ranks().reduce({"report/kl": Sum(np.array([2.0]))})["report/kl"].values.tolist()
    [2.0]
    >>> dist.destroy_process_group()
    """

    group: dist.ProcessGroup | None = None

    def reduce(self, partials: Mapping[str, Any]) -> Mapping[str, Any]:
        """The same names, each merged over the ranks: anything that pickles and has ``merge(other)``.

        Raises:
            RankError: the ranks ask for different statistics, or one did not answer in time; every rank that waits hears of it.
        """
        everybody = self._gathered(dict(partials), _names(partials))
        self._check_names(everybody)
        return {name: _merged([of_rank[name] for of_rank in everybody]) for name in partials}

    def totals(self, numbers: Mapping[str, float]) -> dict[str, float]:
        """Each number added up over the ranks that have it; the same on all of them.

        Raises:
            RankError: a rank did not answer in time.
        """
        everybody = self._gathered(dict(numbers), "numbers of the step")
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

    def _gathered(self, own: dict[str, Any], what: str) -> list[dict[str, Any]]:
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


def _merged(parts: Sequence[Any]) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = total.merge(part)
    return total


def _names(partials: Mapping[str, Any] | Sequence[str]) -> str:
    return ", ".join(repr(name) for name in sorted(partials)) or "nothing"


def _first_line(error: RuntimeError) -> str:
    return str(error).strip().partition("\n")[0][:200]
