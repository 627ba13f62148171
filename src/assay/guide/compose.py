"""Graded groups to one optimiser batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from assay.core.batch import Batch, pack
from assay.core.errors import ConfigError
from assay.core.group import Group
from assay.core.protocols import Replay

__all__ = ["Compose"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compose:
    """Packs the groups of a step; may drop groups without signal and mix in replayed ones.

    Attributes:
        drop_zero_signal: leave out groups of the step whose valid rollouts all have the same primary value. ``Batch.counts``
            then counts what was kept and ``Batch.drawn`` what was drawn; the objective's aggregation names the one that it
            divides by.
        replay_share: share of the groups in the batch that come from the replay, in [0, 1); their rows have stream ``replay``.

    Raises:
        ConfigError: a share out of range.
    """

    drop_zero_signal: bool = False
    replay_share: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.replay_share < 1.0:
            raise ConfigError(f"Compose.replay_share must be in [0, 1), got {self.replay_share}")

    def compose(self, groups: Sequence[Group], replay: Replay | None, step: int, experts: Sequence[Group] = ()) -> Batch | None:
        """The batch of a step, or None when no row with a loss token is left.

        Expert rollouts stand in the group of their key, in the stream ``expert``; those of groups that were left out go too.

        Raises:
            ConfigError: ``replay_share`` is set and there is no replay.
        """
        kept = [g for g in groups if g.informative] if self.drop_zero_signal else list(groups)
        old = self._replayed(kept, groups, replay)
        if not any(map(_trainable, [*kept, *old])):
            return None
        batch = _packed(kept, old, experts)
        if len(kept) < len(groups):
            batch = replace(batch, drawn=_packed(groups, old, experts).counts)
        return batch

    def _replayed(self, kept: Sequence[Group], groups: Sequence[Group], replay: Replay | None) -> list[Group]:
        if not self.replay_share:
            return []
        if replay is None:
            raise ConfigError(
                f"Compose.replay_share is {self.replay_share} but the run has no replay; give it one, as Recent(...)"
            )
        wanted = round(len(kept) * self.replay_share / (1.0 - self.replay_share))
        # The replay may hold this step's groups already; a rollout must not stand in a batch twice.
        fresh = {g.key for g in groups}
        return [g for g in replay.sample(wanted + len(groups)) if g.key not in fresh][:wanted]


def _trainable(group: Group) -> bool:
    """Whether a valid rollout has a token that the policy sampled."""
    pairs = zip(group.rollouts, group.scores, strict=True)
    return any(s.valid and any(c.policy == "policy" and len(c.completion.ids) for c in r.calls) for r, s in pairs)


def _packed(fresh: Sequence[Group], old: Sequence[Group], experts: Sequence[Group]) -> Batch:
    """Groups of this step, replayed ones, and in the former's places what experts did there."""
    place = {g.key: i for i, g in enumerate(fresh)}
    beside = [g for g in experts if g.key in place]
    batch = pack([*fresh, *old, *beside])
    if not old and not beside:
        return batch
    owner = [*range(len(fresh) + len(old)), *(place[g.key] for g in beside)]
    streams = ["on_policy"] * len(fresh) + ["replay"] * len(old) + ["expert"] * len(beside)
    return batch.merge_groups(owner, streams)
