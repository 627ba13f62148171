"""Terms of methods that learn from an expert, from offline data or from a co-trained reward model beside their own rollouts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from assay.core.batch import Batch
from assay.core.errors import ConfigError, DataError
from assay.core.plan import Scope
from assay.objective.credit.paths import path_of
from assay.objective.loss.aggregate import Aggregation, SeqMean
from assay.objective.loss.base import LossTerm, View
from assay.objective.loss.select import metric_of
from assay.objective.loss.units import pool_detached
from assay.objective.loss.weights import TokenWeight
from assay.objective.reducers import F, Partials, Reducer

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Calibrated", "Confidence", "OutcomeMean", "PrefixScore"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated(LossTerm):
    """CalibRL's term: ``|A| leaky_relu(-y (logp_new - logp_expert))``, ``y`` = 1 for a correct rollout and -1 for a wrong one.

    It lifts the tokens of correct rollouts above what the policy gives the expert's answer at the same place, and pushes those of
    wrong ones below; what is there already is only pulled back with the slope. ``logp_expert`` and ``expert_here`` (0 past the
    end of the expert's answer: such tokens are left out) come from `assay.objective.credit.expert.AlignExpert`, or with the rows.

    Attributes:
        slope: of the side where nothing is wrong.
        threshold: task metric from which a rollout is correct.
    """

    coef: float = 0.1
    slope: float = 0.5
    threshold: float = 0.5
    label: str = "calibrated"

    def __post_init__(self) -> None:
        LossTerm.__post_init__(self)
        if not 0 <= self.slope <= 1:
            raise ConfigError(f"Calibrated.slope={self.slope} is a share of the full slope; use a number in [0, 1]")

    @property
    def sparse(self) -> bool:
        """Rollouts without advantage, or without an expert, have no weight."""
        return True

    @property
    def needs(self) -> tuple[str, ...]:
        """The advantage, and the expert's columns."""
        return ("advantage", "logp_expert", "expert_here")

    @property
    def reward(self) -> bool:
        """Advantage and label."""
        return True

    def prepare(self, batch: Batch, share: F, reducer: Reducer) -> Mapping[str, F]:
        """Weights with ``|A|``, 0 where there is no expert; ``label`` is ``y``."""
        here = (share != 0) & (np.asarray(batch.token("expert_here")) != 0)
        size = np.abs(np.asarray(batch.token("advantage"), np.float64))
        label = np.where(metric_of(batch) >= self.threshold - 1e-9, 1.0, -1.0)
        return {"weight": np.where(here, share * size, 0.0), "label": np.repeat(label[batch.rows["rollout"]], batch.lengths)}

    def apply(self, view: View) -> Tensor:
        """``[n]`` losses, without ``|A|``."""
        from torch.nn.functional import leaky_relu

        return leaky_relu(-view.own("label") * view.log_ratio("expert"), self.slope)

    def report(self, view: View) -> Mapping[str, Tensor]:
        """``ahead``: share of the tokens on the right side of the expert's."""
        ahead = view.own("label") * view.log_ratio("expert") > 0
        return {"ahead": ahead.to(view.live("logp_new").dtype)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Confidence(TokenWeight):
    """The policy's own probability of the token now, detached, and at least ``floor``: ``max(p, floor)`` (GOLD).

    Attributes:
        floor: least weight.
    """

    floor: float = field(default=0.1, kw_only=False)

    def __post_init__(self) -> None:
        if not 0 <= self.floor < 1:
            raise ConfigError(f"Confidence.floor={self.floor} is a least probability; use a number in [0, 1)")

    @property
    def needs(self) -> tuple[str, ...]:
        """Current log-probabilities."""
        return ("logp_now",)

    def weigh(self, batch: Batch, stats: Partials) -> F:
        """``[N]`` weights."""
        logp = np.where(batch.token("mask"), np.asarray(batch.token("logp_now"), np.float64), 0.0)
        return np.maximum(np.exp(np.minimum(logp, 0.0)), self.floor)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixScore(TokenWeight):
    """Weights from a token reward model (OREAL): ``clip((p - threshold) / (1 - threshold), 0, 1)`` with ``p`` the model's belief,
    up to this token, that the rollout is correct: the sigmoid of the mean of its scores so far.

    Attributes:
        column: token column with the scores, as logits.
        wrong: weigh by the belief that the rollout is *wrong*, ``1 - p`` in place of ``p``: for wrong rollouts.
        threshold: belief up to which a token weighs nothing.
    """

    column: str = "token_score_old"
    wrong: bool = False
    threshold: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.threshold < 1:
            raise ConfigError(f"PrefixScore.threshold={self.threshold} is a belief; use a number in [0, 1)")

    @property
    def needs(self) -> tuple[str, ...]:
        """The scores."""
        return (self.column,)

    @property
    def scope(self) -> Scope:
        """A rollout's own tokens."""
        return Scope.SEQUENCE

    def weigh(self, batch: Batch, stats: Partials) -> F:
        """``[N]`` weights."""
        path = path_of(batch)
        scores = np.asarray(batch.token(self.column), np.float64)[path.at]
        total = np.cumsum(np.append(0.0, scores))
        mean = (total[1:] - total[path.start[path.owner]]) / (path.place + 1)
        belief = 1.0 / (1.0 + np.exp(np.clip(mean if self.wrong else -mean, -700.0, 700.0)))
        return path.spread(np.clip((belief - self.threshold) / (1 - self.threshold), 0.0, 1.0), int(batch.offsets[-1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeMean(LossTerm):
    """Teaches a head to tell the outcome by its mean over the rollout's tokens (OREAL's token reward model): binary cross-entropy
    of ``sigmoid(mean_t score_t)`` with the label, mean over rollouts.

    Attributes:
        head: live column of the head, a scalar (`assay.runtime.ValueHead`).
        threshold: task metric from which the label is 1.
    """

    head: str = "token_score"
    threshold: float = 0.5
    aggregate: Aggregation | None = field(default_factory=SeqMean)
    label: str = "outcome_mean"

    def __post_init__(self) -> None:
        LossTerm.__post_init__(self)
        if not isinstance(self.aggregate, SeqMean):
            raise ConfigError(
                f"OutcomeMean(aggregate={self.aggregate}): its loss is one number per rollout, spread over the rollout's tokens; "
                "use SeqMean()"
            )

    @property
    def scope(self) -> Scope:
        """All rows of a rollout."""
        return Scope.SEQUENCE

    @property
    def live(self) -> tuple[str, ...]:
        """The head's column."""
        return ("logp_new", self.head)

    @property
    def heads(self) -> Mapping[str, tuple[str, int, float, float]]:
        """A scalar head."""
        return {self.head: ("scalar", 1, 0.0, 0.0)}

    @property
    def reward(self) -> bool:
        """Labels are outcomes."""
        return True

    def prepare(self, batch: Batch, share: F, reducer: Reducer) -> Mapping[str, F]:
        """The aggregation's weights, and the labels."""
        right = (metric_of(batch) >= self.threshold - 1e-9).astype(np.float64)
        return {"weight": share, "label": np.repeat(right[batch.rows["rollout"]], batch.lengths)}

    def apply(self, view: View) -> Tensor:
        """``[n]`` the rollout's loss at each of its tokens, with the slope of the mean at each token's own score."""
        from torch.nn.functional import binary_cross_entropy_with_logits as bce

        own, label = view.live(self.head), view.own("label")
        if own.dim() > 1:
            raise DataError(
                f"{self.label!r} reads one score per token, the learner's head {self.head!r} gives {own.shape[1]}: use "
                f"ValueHead(name={self.head!r})"
            )
        mean = pool_detached(view, lambda v: v.live(self.head), "sequence_mean")
        return bce(mean, label, reduction="none") + (mean.sigmoid() - label) * (own - own.detach())

    def report(self, view: View) -> Mapping[str, Tensor]:
        """``right``: share of the tokens whose rollout the head tells right."""
        mean = pool_detached(view, lambda v: v.live(self.head), "sequence_mean")
        return {"right": ((mean > 0) == (view.own("label") > 0)).to(mean.dtype)}
