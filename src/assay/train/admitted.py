"""A composer that leaves out the groups that a scorer did not admit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from assay.core.batch import Batch, pack
from assay.core.group import Group
from assay.core.protocols import BatchComposer, Replay
from assay.guide import Compose

__all__ = ["Admitted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """Composes the groups of which some rollout's ``column`` is above 0, or has none.

    ``Batch.drawn`` counts all groups of the step.

    Attributes:
        column: of the scores (`Score.columns`).
        composer: makes the batch of what is left.
    """

    column: str = "admitted"
    composer: BatchComposer = field(default_factory=Compose)

    def compose(self, groups: Sequence[Group], replay: Replay | None, step: int, experts: Sequence[Group] = ()) -> Batch | None:
        """The batch of a step, or None when no group is left to learn from."""
        kept = [g for g in groups if any(x.columns.get(self.column, 1.0) > 0.0 for x in g.scores)]
        batch = self.composer.compose(kept, replay, step, experts)
        if batch is None or len(kept) == len(groups):
            return batch
        return replace(batch, drawn=pack(groups).counts)
