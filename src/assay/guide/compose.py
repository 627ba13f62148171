"""Graded groups to one optimiser batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from assay.core.batch import Batch, pack
from assay.core.errors import ConfigError
from assay.core.fields import later
from assay.core.group import Group
from assay.core.protocols import BatchComposer, Replay
from assay.core.rollout import Completion, Rollout, Span, Stop, ids_of

__all__ = ["Compose", "Recompose", "replays_apart"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compose:
    """Packs the groups of a step; may drop groups without signal and mix in replayed ones.

    Attributes:
        drop_zero_signal: leave out groups of the step whose valid rollouts all have the same primary value. ``Batch.counts``
            then counts what was kept and ``Batch.drawn`` what was drawn; the objective's aggregation names the one that it
            divides by.
        learn_forced: the tokens that a guidance forced at the beginning of an answer stand in the group too, as a row of the
            stream ``expert`` for each rollout. It has the rollout's reward and advantage, and enters no statistic. A term such as
            ``Nll(streams=("expert",))`` learns from it (SEELE, arXiv 2509.06923); with ``by="advantage"`` only where the rollout
            did better than its group (ADHint's selective masks, arXiv 2512.13095).
        replay_share: share of the groups in the batch that come from the replay, in [0, 1); their rows have stream ``replay``.

    Raises:
        ConfigError: a share out of range.
    """

    drop_zero_signal: bool = False
    replay_share: float = 0.0
    learn_forced: bool = later(False)

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
        old = self._replay_groups(kept, groups, replay)
        if not any(map(_trainable, [*kept, *old])):
            return None
        beside = [*experts, *(map(forced_rows, groups) if self.learn_forced else ())]
        batch = _pack_batch(kept, old, beside)
        if len(kept) < len(groups):
            batch = replace(batch, drawn=_pack_batch(groups, old, beside).counts)
        return batch

    def _replay_groups(self, kept: Sequence[Group], groups: Sequence[Group], replay: Replay | None) -> list[Group]:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Recompose:
    """RoRecomp: learns from the shortest right and the longest wrong rollouts of each group, and from the others later.

    Of the ``c`` right rollouts of a group the ``ceil(share c)`` shortest are learned from now, of its ``w`` wrong ones the
    ``ceil(share w)`` longest. The others wait in the replay, a `DeferredReplay`: when it is full its oldest groups join a batch,
    in the stream ``replay``, with just those rollouts. So each rollout is learned from once, and answers become shorter because
    the short right ones come in batches of their own. Advantages are those of the whole group, at both times: rewards of
    rollouts that are not learned from stay in its statistics. With ``share=1`` a batch is that of plain RL.

    With ``apart`` what comes back has an optimiser update of its own, behind that of the step: the paper's compensation batch.

    Source: RoRecomp (arXiv 2509.25958). UNSURE: its share, the size of its buffer, the probability of a compensation batch
    (`DeferredReplay.chance`), and that advantages are of the whole group.

    Attributes:
        share: of right and of wrong rollouts that are learned from at once, in (0, 1].
        by: what is short: ``tokens``, or ``calls`` of tools, as for agents.
        apart: what was put off comes in an update of its own, which counts in the learning rate's schedule, instead of in the
            same one.

    Raises:
        ConfigError: a share out of range, or another word.
    """

    share: float = 0.5
    by: Literal["tokens", "calls"] = "tokens"
    apart: bool = later(False)

    def __post_init__(self) -> None:
        if not 0.0 < self.share <= 1.0 or self.by not in ("tokens", "calls"):
            raise ConfigError(f"Recompose.share={self.share} must be in (0, 1], and .by={self.by!r} 'tokens' or 'calls'")

    def compose(self, groups: Sequence[Group], replay: Replay | None, step: int, experts: Sequence[Group] = ()) -> Batch | None:
        """The batch of a step, or None when no row with a loss token is left.

        Raises:
            ConfigError: there is no replay for the rollouts that are not learned from at once.
        """
        if replay is None:
            raise ConfigError(
                "Recompose has no replay, and would lose what it does not learn from at once; give replay=DeferredReplay()"
            )
        now = [_learning(group, self.priority(group)) for group in groups]
        late = [_learning(g, frozenset(range(len(g.rollouts))) - self.priority(g)) for g in replay.sample(len(groups))]
        late = [group for group in late if _trainable(group)]
        if not any(map(_trainable, [*now, *late])):
            return None
        return replace(_pack_batch(now, late, experts), drawn=_pack_batch(groups, late, experts).counts)

    def priority(self, group: Group) -> frozenset[int]:
        """Which rollouts of a group are learned from at once."""
        sizes = [r.length if self.by == "tokens" else sum(len(c.results) for c in r.calls) for r in group.rollouts]
        valid = [i for i, score in enumerate(group.scores) if score.valid]
        right = sorted((i for i in valid if group.scores[i].primary >= 0.5), key=lambda i: (sizes[i], i))
        wrong = sorted((i for i in valid if group.scores[i].primary < 0.5), key=lambda i: (-sizes[i], i))
        return frozenset(i for of in (right, wrong) for i in of[: math.ceil(self.share * len(of) - 1e-9)])


def replays_apart(composer: BatchComposer) -> bool:
    """Whether what a composer takes from the replay has an optimiser update of its own.

    >>> replays_apart(Compose()), replays_apart(Recompose(apart=True))
    (False, True)
    """
    return isinstance(composer, Recompose) and composer.apart


def forced_rows(group: Group) -> Group:
    """The group's forced beginnings as if its rollouts had said just them: same key, scores and order, nothing else.

    A rollout whose prompt and forced ids are ``x + h`` becomes one of prefix ``x`` and completion ``h``. No sampler drew ``h``:
    ``logp_engine`` is NaN, so that a term that reads it there fails. Rollouts without forced ids are left out.
    """
    pairs = [(r, s) for r, s in zip(group.rollouts, group.scores, strict=True) if r.calls and r.calls[0].forced]
    rollouts, scores = tuple(_said_forced(r) for r, _ in pairs), tuple(s for _, s in pairs)
    return replace(group, rollouts=rollouts, scores=scores)


def _said_forced(rollout: Rollout) -> Rollout:
    call = rollout.calls[0]
    n, old = call.forced, call.completion
    version = old.spans[0].version if old.spans else 0
    completion = Completion(
        ids=ids_of(call.prefix[-n:]),
        logp_engine=np.full(n, np.nan, np.float32),
        spans=(Span(version, 0, n),),
        stop=Stop.DONE,
        sampling=replace(old.sampling.whole, temperature=1.0),
    )
    score, privileged = (None if ids is None else ids[:-n] for ids in (call.score_prefix, call.privileged_prefix))
    said = replace(
        call,
        prefix=call.prefix[:-n],
        completion=completion,
        results=(),
        score_prefix=score,
        privileged_prefix=privileged,
        forced=0,
    )
    return replace(rollout, id=f"{rollout.id}/forced", calls=(said,))


WITHHELD = "withheld"
"""Policy of calls that are not learned from in a batch: packing gives loss to those of ``policy`` alone."""


def _learning(group: Group, chosen: frozenset[int]) -> Group:
    """The group with all its rewards, of which only some rollouts are learned from."""
    rollouts = [
        r if i in chosen else replace(r, calls=tuple(replace(c, policy=WITHHELD) for c in r.calls))
        for i, r in enumerate(group.rollouts)
    ]
    return replace(group, rollouts=tuple(rollouts))


def _trainable(group: Group) -> bool:
    """Whether a valid rollout has a token that the policy sampled."""
    pairs = zip(group.rollouts, group.scores, strict=True)
    return any(s.valid and any(c.policy == "policy" and len(c.completion.ids) for c in r.calls) for r, s in pairs)


def _pack_batch(fresh: Sequence[Group], old: Sequence[Group], experts: Sequence[Group]) -> Batch:
    """Groups of this step, replayed ones, and in the former's places what experts did there."""
    place = {g.key: i for i, g in enumerate(fresh)}
    beside = [g for g in experts if g.key in place and g.rollouts]
    batch = pack([*fresh, *old, *beside])
    if not old and not beside:
        return batch
    owner = [*range(len(fresh) + len(old)), *(place[g.key] for g in beside)]
    streams = ["on_policy"] * len(fresh) + ["replay"] * len(old) + ["expert"] * len(beside)
    return batch.merge_groups(owner, streams)
