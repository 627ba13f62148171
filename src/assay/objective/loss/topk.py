"""Distillation by more than the sampled token: a teacher's most likely tokens, or any divergence over the whole vocabulary."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.core.errors import ConfigError, UnknownNameError
from assay.core.vocab import VocabStat
from assay.objective.loss.base import View
from assay.objective.loss.vocab import OUTSIDE
from assay.objective.loss.vocab_divergence import ModelStat
from assay.objective.loss.vocab_terms import StatLoss

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Distill", "SparseDivergence", "TopKModel", "TopKTeacher"]

_DIRECTIONS = ("forward", "reverse", "mixed", "jsd")
_RESTS = ("ignore", "tail", "renormalise", "outside")
_INF = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseDivergence:
    """A divergence between two distributions that are known at a few tokens: ``s`` the student's, ``t`` the teacher's
    probabilities.

    Attributes:
        direction: ``forward``: ``sum t log(t/s)``. ``reverse``: ``sum s log(s/t)``. ``mixed``: ``weight`` times the first plus
            the rest of the second. ``jsd``: ``weight KL(t||m) + (1 - weight) KL(s||m)``, ``m = weight t + (1 - weight) s``.
        weight: of the teacher's side; only for ``mixed`` and ``jsd``.
        rest: what becomes of all other tokens. ``ignore``: nothing; the sum may be negative. ``tail``: they are one token more.
            ``renormalise``: the few are made to add up to 1. ``outside``: the teacher gives each of them ``exp(outside)``; only
            where the student's side is summed over, ``reverse`` and ``mixed``.
        floor: least log-probability of either at the few (verl: -10).
        outside: only for ``rest="outside"`` (NeMo-RL: -100).
    """

    direction: str = "forward"
    weight: float = 0.5
    rest: str = "ignore"
    floor: float = -_INF
    outside: float = -100.0

    def __post_init__(self) -> None:
        if self.direction not in _DIRECTIONS:
            raise UnknownNameError("direction of a divergence", self.direction, _DIRECTIONS)
        if self.rest not in _RESTS:
            raise UnknownNameError("rest of a distribution", self.rest, _RESTS)
        if not 0 < self.weight < 1:
            raise ConfigError(
                f"SparseDivergence.weight={self.weight}: at 0 and 1 it is 'forward' or 'reverse'; use a number between"
            )
        if self.rest == "outside" and self.direction not in ("reverse", "mixed"):
            raise ConfigError(
                f"SparseDivergence({self.direction!r}, rest='outside') has no use for the student's other tokens; use 'tail'"
            )
        if not self.floor < 0 or not -_INF < self.outside < 0:
            raise ConfigError(f"SparseDivergence(floor={self.floor}, outside={self.outside}): log-probabilities are negative")

    def of(self, logp: Tensor, student: Tensor, teacher: Tensor, known: Tensor) -> Tensor:
        """``[c]`` divergences.

        Args:
            logp: ``[c, V]`` the student's whole distribution.
            student, teacher: ``[c, k]`` log-probabilities at the few.
            known: ``[c, k]`` which of the few are there.
        """
        rest = self._tail_divergence(logp, student, known) if self.rest == "outside" else None
        s, t = student.clamp(min=self.floor), teacher.clamp(min=self.floor)
        if self.rest in ("tail", "renormalise"):
            s, t, known = self._complete_tail(s, t, known)
        value = self._sum_known(s, t, known)
        if rest is None:
            return value
        return value + (rest if self.direction == "reverse" else (1 - self.weight) * rest)

    def _sum_known(self, s: Tensor, t: Tensor, known: Tensor) -> Tensor:
        if self.direction == "forward":
            return _sum(t.exp() * (t - s), known)
        if self.direction == "reverse":
            return _sum(s.exp() * (s - t), known)
        w = self.weight
        if self.direction == "mixed":
            return _sum(w * t.exp() * (t - s) + (1 - w) * s.exp() * (s - t), known)
        m = (t + math.log(w)).logaddexp(s + math.log1p(-w))
        return _sum(w * t.exp() * (t - m) + (1 - w) * s.exp() * (s - m), known)

    def _complete_tail(self, s: Tensor, t: Tensor, known: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        import torch

        masses = [x.masked_fill(~known, OUTSIDE).logsumexp(1, keepdim=True) for x in (s, t)]  # finite where none is known
        if self.rest == "renormalise":
            return (s - masses[0]).masked_fill(~known, 0.0), (t - masses[1]).masked_fill(~known, 0.0), known
        tails = [(-m.clamp(max=-1e-7).expm1()).log() for m in masses]
        here = torch.ones_like(known[:, :1])
        return torch.cat([s, tails[0]], 1), torch.cat([t, tails[1]], 1), torch.cat([known, here], 1)

    def _tail_divergence(self, logp: Tensor, student: Tensor, known: Tensor) -> Tensor:
        """``[c]`` ``sum s (log s - outside)`` over the other tokens."""
        each = (logp.exp() * (logp - self.outside)).sum(1)
        return each - _sum(student.exp() * (student - self.outside), known)


def _sum(each: Tensor, known: Tensor) -> Tensor:
    return each.masked_fill(~known, 0.0).sum(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopKTeacher(VocabStat):
    """A divergence from a teacher's few most likely tokens, which rows or sampler bring as ids and log-probabilities per
    position.

    Attributes:
        ids: token column ``[tokens, k]`` with the ids; -1 where there are fewer.
        logps: token column ``[tokens, k]`` with their log-probabilities.
        sparse: which divergence.
    """

    ids: str = "teacher_ids"
    logps: str = "teacher_logps"
    sparse: SparseDivergence = field(default_factory=SparseDivergence)

    @property
    def kind(self) -> str:
        """``topk_DIRECTION``."""
        return f"topk_{self.sparse.direction}"

    @property
    def needs(self) -> tuple[str, ...]:
        """Both columns."""
        return (self.ids, self.logps)

    @property
    def lists(self) -> tuple[str, ...]:
        """Both columns."""
        return (self.ids, self.logps)

    def of(self, logp: Tensor, ids: Tensor, others: Mapping[str, Tensor], columns: Mapping[str, Tensor]) -> Tensor:
        """``[c]`` divergences."""
        at, teacher = (columns[n].reshape(len(logp), -1) for n in (self.ids, self.logps))
        known = at >= 0
        student = logp.gather(1, at.clamp(min=0).long())
        return self.sparse.of(logp, student, teacher.to(logp.dtype), known)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopKModel(ModelStat):
    """A divergence from another model at the ``k`` most likely tokens of the policy, or of that model.

    Attributes:
        k: how many.
        support: whose most likely tokens: ``policy`` (self-distillation) or ``model``. The choice carries no gradient.
        sparse: which divergence.
    """

    model: str = field(default="teacher", kw_only=False)
    k: int = 100
    support: str = "model"
    sparse: SparseDivergence = field(default_factory=SparseDivergence)

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ConfigError(f"TopKModel.k={self.k}; compare at one token or more, e.g. 100")
        if self.support not in ("policy", "model"):
            raise UnknownNameError("support of a divergence", self.support, ("policy", "model"))

    @property
    def kind(self) -> str:
        """``topk_DIRECTION_MODEL``."""
        return f"topk_{self.sparse.direction}_{self.model}"

    def of(self, logp: Tensor, ids: Tensor, others: Mapping[str, Tensor], columns: Mapping[str, Tensor]) -> Tensor:
        """``[c]`` divergences."""
        other = others[self.model]
        at = (logp if self.support == "policy" else other).detach().topk(min(self.k, logp.shape[1]), 1).indices
        return self.sparse.of(logp, logp.gather(1, at), other.gather(1, at), at >= 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Distill(StatLoss):
    """A divergence from a teacher that needs more than the sampled token, within bounds and corrected for who drew the rows.

    Attributes:
        stat: which: `TopKTeacher`, `TopKModel`, `assay.objective.loss.vocab_divergence.Jsd` (GKD), ...
        low, high: bounds of a token's divergence; beyond them there is no gradient (verl: 0 and 10, for a divergence over a few
            tokens may be negative).
        correct: multiply by ``min(pi / pi_CORRECT, cap)``, detached, for rows that an earlier policy drew (SDFT: ``old``); not
            when None.
        cap: of that ratio.
    """

    stat: VocabStat = field(default_factory=TopKTeacher, kw_only=False)
    low: float = -_INF
    high: float = _INF
    correct: str | None = None
    cap: float = 2.0

    def __post_init__(self) -> None:
        StatLoss.__post_init__(self)
        if not self.low < self.high or not self.low <= 0:
            raise ConfigError(
                f"Distill(low={self.low}, high={self.high}): equality is 0 and must lie inside; use low <= 0 < high"
            )
        if not self.cap > 0:
            raise ConfigError(f"Distill.cap={self.cap} leaves nothing; use a positive ratio (SDFT: 2)")

    @property
    def needs(self) -> tuple[str, ...]:
        """What the statistic reads."""
        return self.stat.needs

    @property
    def anchors(self) -> tuple[str, ...]:
        """Who drew the rows, where that is corrected."""
        return () if self.correct is None else (self.correct,)

    def apply(self, view: View) -> Tensor:
        """``[n]`` divergences."""
        value = view.live(self.stat.name).clamp(self.low, self.high)
        if self.correct is None:
            return value
        return value * view.log_ratio(self.correct).exp().clamp(max=self.cap).detach()
