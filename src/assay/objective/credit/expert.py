"""What an expert's rollout at the same prompt tells about the policy's own: its log-probabilities by place, and its reward."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from assay.core.errors import DataError
from assay.core.plan import Scope
from assay.core.protocols import State
from assay.core.sample import STREAMS
from assay.objective.credit.base import Credit, CreditTerm
from assay.objective.credit.paths import Path
from assay.objective.credit.stats import Gathered, Largest, peers
from assay.objective.reducers import Moments, Partials

__all__ = ["AlignExpert", "SmoothExpert"]


def _of_stream(credit: Credit, stream: str) -> NDArray[np.bool_]:
    """``[R]`` graded rollouts with rows of a stream."""
    out = np.zeros(len(credit.reward), np.bool_)
    out[credit.batch.rows["rollout"][credit.batch.rows["stream"] == STREAMS.index(stream)]] = True
    return out & (credit.keep > 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignExpert(CreditTerm):
    """Writes beside each token what the policy gives the expert's answer to the same prompt *at the same place* (CalibRL).

    It makes ``logp_expert``, the log-probability of the expert's ``n``-th token at the ``n``-th token of a rollout, and
    ``expert_here``, 1 where the expert's answer has such a token and 0 past its end or without an expert. Places are compared,
    not contents. A prompt has one expert rollout at most, of the stream ``expert``; it may stand on another rank.

    Attributes:
        column: token column with the log-probabilities.
    """

    column: str = "logp_old"

    @property
    def needs(self) -> tuple[str, ...]:
        """The log-probabilities."""
        return (self.column,)

    @property
    def streams(self) -> tuple[str, ...]:
        """Streams that it reads beside those of the statistics."""
        return ("expert",)

    @property
    def makes(self) -> tuple[str, ...]:
        """Both columns."""
        return ("logp_expert", "expert_here")

    @property
    def scope(self) -> Scope:
        """A group."""
        return Scope.GROUP

    def local(self, credit: Credit) -> Partials:
        """Group, place and log-probability of the expert's tokens."""
        path = Path.of(credit)
        mine = _of_stream(credit, "expert")[path.owner]
        logp = np.asarray(credit.batch.token(self.column), np.float64)[path.at]
        rows = np.stack([credit.group[path.owner], path.place, logp], axis=1)[mine]
        return {"expert": Gathered(np.asarray(rows, np.float64))}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Adds the columns.

        Raises:
            DataError: a prompt has two expert rollouts.
        """
        path = Path.of(credit)
        rows = stats["expert"].rows
        rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
        width = int(max(path.place.max(initial=0), rows[:, 1].max(initial=0))) + 1
        keys = (rows[:, 0] * width + rows[:, 1]).astype(np.int64)
        twice = np.flatnonzero(keys[1:] == keys[:-1])
        if len(twice):
            raise DataError(
                f"the prompt of group {int(rows[twice[0], 0])} has two expert rollouts, and AlignExpert compares with one: keep "
                "one"
            )
        wanted = credit.group[path.owner] * width + path.place
        at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        found = keys[at] == wanted if len(keys) else np.zeros(len(wanted), np.bool_)
        logp = np.where(found, rows[at, 2], 0.0) if len(keys) else np.zeros(len(wanted))
        total = len(credit.owner)
        made = {"logp_expert": path.spread(logp, total), "expert_here": path.spread(found.astype(np.float64), total)}
        return replace(credit, columns={**credit.columns, **made})


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothExpert(CreditTerm):
    """Takes the lead from an expert's rollout where the policy needs it no more (ViSurf): once an own rollout at the prompt is as
    good, the expert's reward becomes the mean of the own ones, so that a group baseline gives it no advantage.

    Own rollouts are those of the streams ``on_policy`` and ``replay``.
    """

    kind: ClassVar[str] = "shape"

    @property
    def streams(self) -> tuple[str, ...]:
        """Streams that it reads beside those of the statistics."""
        return ("expert",)

    @property
    def scope(self) -> Scope:
        """A group."""
        return Scope.GROUP

    def local(self, credit: Credit) -> Partials:
        """Mean and best reward of each group's own rollouts."""
        own = replace(credit, counted=credit.counted & ~_of_stream(credit, "expert"))
        here = own.counted
        best = Largest.of(credit.reward[here], credit.group[here], credit.groups, 1)
        return {"own": peers(own, credit.reward), "best": best}

    def apply(self, credit: Credit, stats: Partials, state: State) -> Credit:
        """Replaces the reward of experts that are no better."""
        m: Moments = stats["own"]
        no_better = stats["best"].values[credit.group, 0] >= credit.reward - 1e-12
        smooth = _of_stream(credit, "expert") & no_better
        told = credit.with_metrics(credit_smoothed=float(smooth.sum()))
        return told.with_reward(np.where(smooth, m.mean[credit.group], credit.reward))
