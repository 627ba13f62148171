"""What a loss term is: a per-token loss on the tokens it acts on, and the weights with which they enter the sum."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.columns import Array
from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.plan import Forward, Scope
from assay.core.protocols import State
from assay.core.sample import STREAMS
from assay.core.util.renamed import refuse_renamed
from assay.core.vocab import VocabStat
from assay.objective.loss.aggregate import Aggregation
from assay.objective.reducers import F, Partials, Reducer

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["LossTerm", "View"]


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """What a term sees of a micro-batch: only the ``n`` tokens that carry weight for it, in order.

    Attributes:
        batch: the micro-batch.
        tensors: live tensors over all ``N`` tokens.
        index: ``[n]`` positions of the term's tokens.
        name: the term's name, under which its own columns stand.
        fresh: the batch is used for one update, so the policy at its start *is* the current one.
    """

    batch: Batch
    tensors: Mapping[str, Any]
    index: NDArray[np.int64]
    name: str
    fresh: bool = False

    def at(self, index: NDArray[np.int64]) -> View:
        """The view of other tokens."""
        return replace(self, index=index)

    def indices(self, values: NDArray[np.int64]) -> Tensor:
        """Integers as an index tensor on the device of ``logp_new``."""
        import torch

        return torch.as_tensor(values, dtype=torch.long, device=self.tensors["logp_new"].device)

    def live(self, name: str) -> Tensor:
        """``[n]`` tensor with gradient: ``logp_new``, and what else the plan's ``live`` names.

        Raises:
            DataError: the learner did not compute it.
        """
        if name not in self.tensors:
            raise DataError(f"term {self.name!r} needs the live column {name!r}; the learner computed {sorted(self.tensors)}")
        return self.tensors[name][self.indices(self.index)]

    def tensor(self, values: Array) -> Tensor:
        """Values without gradient, in the precision and on the device of ``logp_new``."""
        return self.tensors["logp_new"].new_tensor(values)

    def column(self, name: str) -> Tensor:
        """``[n]`` values of a batch column, without gradient."""
        return self.tensor(self.batch.token(name)[self.index])

    def own(self, key: str) -> Tensor:
        """``[n]`` values of a column that the term's ``prepare`` made."""
        return self.column(f"{self.name}/{key}")

    def logp(self, anchor: str) -> Tensor:
        """``[n]`` log-probabilities under ``old``, ``engine``, ``ref``, ..., without gradient.

        The old policy of a replayed rollout is the one that sampled it: there ``old`` reads ``logp_engine``.
        """
        if anchor != "old":
            return self.column(f"logp_{anchor}")
        old = self.live("logp_new").detach() if self.fresh else self.column("logp_old")
        replayed = np.repeat(self.batch.rows["stream"] == STREAMS.index("replay"), self.batch.lengths)[self.index]
        return old.where(self.tensor(replayed) == 0, self.column("logp_engine")) if replayed.any() else old

    def log_ratio(self, anchor: str) -> Tensor:
        """``[n]`` ``logp_new - logp_ANCHOR``, clamped to +-20 so that its exponential stays finite."""
        return (self.live("logp_new") - self.logp(anchor)).clamp(-20.0, 20.0)

    def per_rollout(self, name: str) -> Tensor:
        """``[n]`` a rollout column, read at each token's rollout."""
        owner = np.repeat(self.batch.rows["rollout"], self.batch.lengths)[self.index]
        return self.tensor(np.asarray(self.batch.rollout(name), np.float64)[owner])


@dataclass(frozen=True, slots=True, kw_only=True)
class LossTerm(ABC):
    """Base of all loss terms; a subclass says what its loss per token is (`apply`) and overrides what else differs.

    Attributes:
        coef: factor of the whole term.
        streams: rows that it acts on; all when empty.
        aggregate: how its tokens are averaged; the objective's way when None.
        label: name in the report; the class's name in small letters when empty.
    """

    coef: float = 1.0
    streams: tuple[str, ...] = ("on_policy", "replay")
    aggregate: Aggregation | None = None
    label: str = ""

    def __init_subclass__(cls) -> None:
        super(LossTerm, cls).__init_subclass__()
        refuse_renamed(cls, {"attempts": "rollout_columns"})

    def __post_init__(self) -> None:
        for stream in self.streams:
            if stream not in STREAMS:
                raise UnknownNameError("stream", stream, STREAMS)
        if not self.coef or not abs(self.coef) < float("inf"):
            raise ConfigError(
                f"{type(self).__name__}.coef={self.coef} does nothing or breaks the loss; use a finite number or leave the "
                f"term out"
            )

    @property
    def name(self) -> str:
        """Name in the report and of its columns."""
        return self.label or type(self).__name__.lower()

    @property
    def scope(self) -> Scope:
        """What one call of `apply` must see whole; micro-batches keep it together."""
        return Scope.TOKEN

    @property
    def terminal(self) -> bool:
        """Whether it teaches the policy from rewards; at most one such term per stream."""
        return False

    @property
    def sparse(self) -> bool:
        """Whether it leaves rows without weight, so that these may skip the gradient pass."""
        return False

    @property
    def needs(self) -> tuple[str, ...]:
        """Batch columns that `prepare` or `apply` read."""
        return ()

    @property
    def anchors(self) -> tuple[str, ...]:
        """Policies whose log-probabilities `apply` reads through `View.logp`."""
        return ()

    @property
    def rollout_columns(self) -> tuple[str, ...]:
        """Columns of the rollouts that it reads."""
        return ()

    @property
    def live(self) -> tuple[str, ...]:
        """Columns that the gradient pass must compute."""
        return ("logp_new",)

    @property
    def stats(self) -> tuple[VocabStat, ...]:
        """Statistics of the current policy over the vocabulary that the gradient pass must compute; `live` has their names."""
        return ()

    @property
    def forwards(self) -> tuple[Forward, ...]:
        """Passes without gradient that fill columns of `needs` whose names do not say how."""
        return ()

    @property
    def heads(self) -> Mapping[str, tuple[str, int, float, float]]:
        """Value heads whose outputs stand in `live`, each with what it must be: form, outputs per token, range."""
        return {}

    @property
    def reward(self) -> bool:
        """Whether it reads rewards or advantages, so that the credit chain must run."""
        return False

    def check(self) -> None:  # noqa: B027
        """Raises PlanError when its own parts make no sense together."""

    @property
    def min_group(self) -> int:
        """Rollouts that a group must have."""
        return 1

    @property
    def averages(self) -> bool:
        """Whether an aggregation says how its tokens are averaged; False where it brings its own denominator."""
        return True

    @property
    def grouped(self) -> bool:
        """Whether it compares the rollouts of a group."""
        return False

    @property
    def reduces(self) -> bool:
        """Whether it has statistics that cross ranks: `local` moves a state, or `prepare` asks its reducer for something."""
        return bool(self.init()) and type(self).local is not LossTerm.local

    @property
    def reports(self) -> bool:
        """Whether it has numbers of its own for the report."""
        return type(self).report is not LossTerm.report

    def init(self) -> State:
        """The state of a new run."""
        return {}

    def local(self, batch: Batch) -> Partials:
        """Partial statistics that move the state, of the rows of the term's streams in a rollout batch (maybe none)."""
        return {}

    def advance(self, state: State, stats: Partials) -> State:
        """The state after a rollout batch with these statistics: the batch itself is still learned from under ``state``."""
        return state

    def factor(self, state: State) -> float:
        """The factor in force under a state."""
        return self.coef

    def prepare(self, batch: Batch, share: F, reducer: Reducer) -> Mapping[str, F]:
        """Whole-batch work without gradient, before each optimiser step.

        Args:
            batch: the optimiser batch.
            share: ``[N]`` the aggregation's weights.
            reducer: merges statistics over ranks; a term that uses it says so in `reduces`.

        Returns:
            Token columns ``[N]``; always ``weight``, which multiplies the per-token loss (`factor` is applied to it afterwards).
        """
        return {"weight": share}

    @abstractmethod
    def apply(self, view: View) -> Tensor:
        """``[n]`` loss of each token."""

    def total(self, view: View) -> Tensor:
        """The micro-batch's share of the term, a scalar."""
        return (view.own("weight") * self.apply(view)).sum()

    def report(self, view: View) -> Mapping[str, Tensor]:
        """Per-token numbers ``[n]`` for the report, averaged over all tokens of the optimiser batch that the term acts on."""
        return {}
