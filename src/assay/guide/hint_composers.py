"""Composers of plain and hinted rollouts of one task: wrong hinted ones give way to plain ones, or all weigh by difficulty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from assay.core.batch import Batch
from assay.core.errors import ConfigError
from assay.core.group import Group
from assay.core.protocols import BatchComposer, Replay
from assay.core.rollout import Rollout
from assay.core.score import ROW_WEIGHT
from assay.guide.compose import Compose
from assay.guide.rethink import RewrittenAnswers

__all__ = ["DifficultyWeights", "PlainFailures", "packer_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainFailures:
    """Of a group with plain and hinted rollouts the right hinted ones, and plain wrong ones in place of the hinted wrong ones.

    For `assay.guide.GuideHint` with ``fill=True``, which poses hinted rollouts within the group that failed. Of ``n`` hinted
    rollouts, ``k`` of them right, a batch has these ``k`` and the first ``n - k`` plain failures. Groups of one kind alone stay.

    Source: Guide-GRPO (arXiv 2506.13923), an option of its code.

    Attributes:
        inner: makes the batch.
    """

    inner: Compose = field(default_factory=Compose)

    def compose(self, groups: Sequence[Group], replay: Replay | None, step: int, experts: Sequence[Group] = ()) -> Batch | None:
        """The batch of a step, or None when no row with a loss token is left."""
        return self.inner.compose([self.fill_group(group) for group in groups], replay, step, experts)

    def fill_group(self, group: Group) -> Group:
        """The group as it is learned from; faults and hinted failures that nothing can replace are left in."""
        hinted = [i for i, r in enumerate(group.rollouts) if r.context.score_messages is not None]
        plain = [i for i in range(len(group.rollouts)) if i not in set(hinted)]
        if not hinted or not plain:
            return group
        wrong = [i for i in hinted if group.scores[i].valid and not group.scores[i].primary > 0.0]
        failed = [i for i in plain if group.scores[i].valid and not group.scores[i].primary > 0.0][: len(wrong)]
        kept = sorted({*hinted} - {*wrong[: len(failed)]} | {*failed})
        return replace(group, rollouts=tuple(group.rollouts[i] for i in kept), scores=tuple(group.scores[i] for i in kept))


@dataclass(frozen=True, slots=True, kw_only=True)
class DifficultyWeights:
    """ADHint's difficulty posterior: plain successes count more the harder a task is, hinted failures the easier it is.

    With ``d = 1 -`` the mean success of a task's plain and hinted rollouts together, a plain rollout above the mean of its group
    weighs ``1 + strength d``, a hinted one below the mean of its own ``1 + strength (1 - d)``, and all others 1. Advantages are
    those of each group by itself; the weight multiplies the loss of the row. Tasks without hinted rollouts weigh 1.

    Source: ADHint (arXiv 2512.13095), in part. UNSURE: the formula; this one follows its description.

    Attributes:
        strength: of the weights; at 0 all are 1.
        inner: makes the batch.

    Raises:
        ConfigError: a strength below 0.
    """

    strength: float = 1.0
    inner: Compose = field(default_factory=Compose)

    def __post_init__(self) -> None:
        if not 0.0 <= self.strength < float("inf"):
            raise ConfigError(f"DifficultyWeights.strength={self.strength}; use a finite number of at least 0")

    def compose(self, groups: Sequence[Group], replay: Replay | None, step: int, experts: Sequence[Group] = ()) -> Batch | None:
        """The batch of a step with a weight for each row, or None when no row with a loss token is left."""
        batch = self.inner.compose(groups, replay, step, experts)
        if batch is None:
            return None
        found = self.weights(groups)
        weights = np.array([found.get(str(name), 1.0) for name in batch.rollout("id")], np.float64)
        return batch.with_rollouts(**{ROW_WEIGHT: weights})

    def weights(self, groups: Sequence[Group]) -> dict[str, float]:
        """Rollout to weight, of tasks with plain and hinted rollouts."""
        tasks: dict[str, list[Group]] = {}
        for group in groups:
            tasks.setdefault(group.task.id, []).append(group)
        return {name: w for of in tasks.values() for name, w in self._of_task(of).items()}

    def _of_task(self, groups: Sequence[Group]) -> dict[str, float]:
        kinds = {_hinted(r) for g in groups for r in g.rollouts}
        values = [v for g in groups for v in g.values]
        if len(kinds) < 2 or not values:
            return {}
        d = 1.0 - min(1.0, max(0.0, sum(values) / len(values)))
        out: dict[str, float] = {}
        for group in (g for g in groups if g.values):
            mean = sum(group.values) / len(group.values)
            for rollout, score in zip(group.rollouts, group.scores, strict=True):
                if not score.valid:
                    continue
                if _hinted(rollout):
                    out[rollout.id] = 1.0 + self.strength * (1.0 - d) * (score.primary < mean)
                else:
                    out[rollout.id] = 1.0 + self.strength * d * (score.primary > mean)
        return out


def packer_of(composer: BatchComposer) -> Compose | None:
    """What packs the batch of a composer, where that is `Compose`: itself, or the one within another."""
    within = composer.inner if isinstance(composer, DifficultyWeights | PlainFailures | RewrittenAnswers) else composer
    return within if isinstance(within, Compose) else None


def _hinted(rollout: Rollout) -> bool:
    return rollout.context.tag != "plain"
