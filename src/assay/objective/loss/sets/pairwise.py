"""Losses on the pairs of a group: which pairs, with what labels, and how they are averaged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.core.errors import ConfigError, DataError, UnknownNameError
from assay.core.plan import Forward
from assay.objective.loss.sets.base import Scored, SetLoss, groups_of
from assay.objective.loss.sets.confidence import CONFIDENCE
from assay.objective.loss.sets.links import Link
from assay.objective.loss.sets.shapes import LogisticGap, PairShape

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["PAIRS", "Pairs", "Pairwise", "pairs_of"]

PAIRS = ("all", "extreme")
_OVER = ("pairs", "groups")
_LABELS = ("hard", "probability", "bradley_terry")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairs:
    """The ``p`` pairs of a rank.

    Attributes:
        better, worse: ``[p]`` elements.
        size: ``[p]`` pairs of the pair's group.
    """

    better: Tensor
    worse: Tensor
    size: Tensor


def pairs_of(scored: Scored, pairs: str = "all", ties: bool = False) -> Pairs:
    """The pairs of rollouts of one group, the one with the greater reward first.

    Args:
        scored: the rollouts.
        pairs: ``all``, or ``extreme``: only the best and the worst of a group, the first ones among equals.
        ties: with ``all``: pairs of equal rewards too, the first rollout first.
    """
    import torch

    found: list[tuple[Tensor, Tensor]] = []
    for members in groups_of(scored.group):
        reward = scored.reward[members]
        if pairs == "extreme":
            first, last = reward.argmax(), reward.argmin()
            if reward[first] > reward[last]:
                found.append((members[first, None], members[last, None]))
            continue
        wins = reward[:, None] > reward[None, :]
        if ties:
            wins = wins | (reward[:, None] == reward[None, :]).triu(1)
        i, j = wins.nonzero(as_tuple=True)
        found.append((members[i], members[j]))
    size = [scored.group.new_full((len(i),), len(i)) for i, _ in found]
    none = scored.group[:0]
    better, worse = ([pair[side] for pair in found] for side in (0, 1))
    return Pairs(better=torch.cat([none, *better]), worse=torch.cat([none, *worse]), size=torch.cat([none, *size]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairwise(SetLoss):
    """The mean of a pair's loss over pairs of rollouts with different rewards: DPO and its relatives.

    A pair needs both of its rollouts in the batch: what a filter dropped or a verifier failed on is in none. Groups without a
    pair add nothing, to the divisor neither.

    With a soft label ``P`` that the first rollout is the better one, a pair's loss is ``P loss(i, j) + (1 - P) loss(j, i)``.

    Attributes:
        shape: loss of one pair.
        pairs: ``all`` pairs of a group, or only the ``extreme`` one, best and worst.
        over: ``pairs`` weigh alike, or ``groups`` do, whatever their number of pairs.
        label: ``hard``: 1; ``probability``: ``(1 + R_i - R_j) / 2``, which is p where the rewards of a pair are p and 1 - p;
            ``bradley_terry``: ``sigmoid(R_i - R_j)``.
        ties: pairs of equal rewards count too, with ``P = 1/2``.
        smoothing: chance e that a label is wrong, in [0, 1/2): ``P (1 - 2e) + e`` (conservative DPO).
        robust: takes that chance out of the label instead: ``(P - e) / (1 - 2e)`` (robust DPO).
        link: transform of the scores; None for the scores themselves.
        confident: a pair's loss is multiplied by how likely the policy is to write both answers, per token (WPO); without
            gradient, and not in the divisor.
    """

    shape: PairShape = field(default_factory=LogisticGap)
    pairs: str = "all"
    over: str = "pairs"
    label: str = "hard"
    ties: bool = False
    smoothing: float = 0.0
    robust: bool = False
    link: Link | None = None
    confident: bool = False

    def __post_init__(self) -> None:
        for kind, value, known in (("pairs", self.pairs, PAIRS), ("over", self.over, _OVER), ("label", self.label, _LABELS)):
            if value not in known:
                raise UnknownNameError(kind, value, known)
        if self.ties and self.pairs == "extreme":
            raise ConfigError("Pairwise(pairs='extreme', ties=True): the best and the worst of a tie are none; use pairs='all'")
        if not 0 <= self.smoothing < 0.5:
            raise ConfigError(f"Pairwise.smoothing={self.smoothing}; use a chance in [0, 0.5)")
        if self.robust and not self.smoothing:
            raise ConfigError("Pairwise(robust=True) corrects for wrong labels; say with smoothing=... how many there are")

    @property
    def min_group(self) -> int:
        """A pair."""
        return 2

    @property
    def forwards(self) -> tuple[Forward, ...]:
        """The confidence's."""
        return (CONFIDENCE,) if self.confident else ()

    @property
    def tells(self) -> tuple[str, ...]:
        """How the policy ranks the pairs, the mean gap of their scores, and both means."""
        return ("accuracy", "margin", "better", "worse")

    def total(self, scored: Scored) -> tuple[Tensor, float]:
        """Sum over the pairs, and their number; or over the groups, and theirs."""
        found = pairs_of(scored, self.pairs, self.ties)
        score = scored.score if self.link is None else self.link.of(scored.score)
        up, down = score[found.better], score[found.worse]
        label = self._label(scored, found)
        loss = label * self.shape.loss(up, down)
        if bool((label != 1).any()):
            loss = loss + (1 - label) * self.shape.loss(down, up)
        weight = self._weight(found, loss)
        certain = scored.confidence[found.better] * scored.confidence[found.worse]
        return (weight * certain * loss).sum(), float(weight.sum())

    def _weight(self, found: Pairs, like: Tensor) -> Tensor:
        """``[p]`` weight of each pair."""
        size = found.size.to(like.dtype)
        return 1 / size if self.over == "groups" else size * 0 + 1

    def _label(self, scored: Scored, found: Pairs) -> Tensor:
        """``[p]`` probability that the first rollout is the better one."""
        gap = scored.reward[found.better] - scored.reward[found.worse]
        if self.label == "hard":
            label = gap.new_ones(len(gap)).where(gap > 0, 0.5)
        elif self.label == "bradley_terry":
            label = gap.sigmoid()
        elif bool((gap > 1).any()):
            raise DataError(
                f"two rollouts of a group have rewards {float(gap.max())} apart, which is no probability of preference; scale "
                "the rewards into [0, 1], or use label='bradley_terry'"
            )
        else:
            label = (1 + gap) / 2
        e = self.smoothing
        return (label - e) / (1 - 2 * e) if self.robust else label * (1 - 2 * e) + e

    def numbers(self, scored: Scored) -> Mapping[str, float]:
        """``accuracy``, ``margin``, ``better``, ``worse``."""
        found = pairs_of(scored, self.pairs, self.ties)
        up, down = scored.score[found.better], scored.score[found.worse]
        weight = self._weight(found, up)
        told = {"accuracy": (up > down).to(up.dtype), "margin": up - down, "better": up, "worse": down}
        return {name: float((weight * values).sum()) for name, values in told.items()}
