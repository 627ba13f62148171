"""Masks from how far two policies differ on a batch: per token or rollout by a divergence, or over the batch by its second
moment.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.errors import ConfigError, UnknownNameError
from assay.core.plan import Scope
from assay.objective.loss.mismatch import log_mismatch
from assay.objective.loss.units import columns_of, pool, scope_of
from assay.objective.loss.weights import TokenWeight
from assay.objective.reducers import F, Lowest, Partials

__all__ = ["Reject", "SecondMoment"]

_INF = float("inf")
_MEASURES = ("ratio", "k1", "k2", "k3", "tv", "kl")
_OVER = ("token", "sequence_mean", "sequence_sum", "sequence_any", "turn_mean", "turn_sum", "turn_any")
_RULES = ("drop", "cap")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject(TokenWeight):
    """Leaves out tokens, rollouts or turns on which trainer and sampler differ too much; a mask that corrects nothing.

    With ``l = logp_old - logp_engine``: ``ratio`` is ``exp(l)``, ``k1 = -l``, ``k2 = l^2 / 2``, ``k3 = exp(l) - 1 - l``, whose
    expectations under the sampler are KL(sampler||trainer) (k2 nearly); ``tv`` is ``|p - q|`` and ``kl`` the divergence of "this
    token or another", both from the sampled token's probabilities alone. Denominators still count what is left out.

    Attributes:
        measure: which.
        over: ``token``; a rollout's or turn's ``mean`` or ``sum`` (of a ratio: geometric mean or product); ``any``: the whole
            rollout or turn goes when one token is out.
        low, high: the band that is kept.

    >>> from assay.objective.loss.mismatch_reject import Reject
    >>> Reject(measure="ratio", over="sequence_any", low=1e-4, high=100.0).corrects
    False
    """

    measure: str = "k3"
    over: str = "sequence_mean"
    low: float = -_INF
    high: float = _INF

    def __post_init__(self) -> None:
        if self.measure not in _MEASURES:
            raise UnknownNameError("measure of Reject", self.measure, _MEASURES)
        if self.over not in _OVER:
            raise UnknownNameError("unit of Reject", self.over, _OVER)
        same = 1.0 if self.measure == "ratio" else 0.0
        if not self.low <= same <= self.high or (self.low, self.high) == (-_INF, _INF):
            raise ConfigError(
                f"Reject(measure={self.measure!r}, low={self.low}, high={self.high}): equal policies give {same}, which the band "
                "must hold, and it must leave something out"
            )

    @property
    def needs(self) -> tuple[str, ...]:
        """Log-probabilities of trainer and sampler; ``call`` for turns."""
        return ("logp_old", "logp_engine", *columns_of(self.over))

    @property
    def scope(self) -> Scope:
        """A token or a rollout."""
        return scope_of(self.over)

    def clip_mask(self, batch: Batch) -> NDArray[np.bool_]:
        """What is left out."""
        return self.weigh(batch, {}) == 0

    def weigh(self, batch: Batch, stats: Partials) -> F:
        """1 where kept, else 0."""
        each = self._each(batch)
        if self.over.endswith("any"):
            return (pool(batch, (~self._inside(each)).astype(np.float64), self.over) == 0).astype(np.float64)
        whole = each if self.over == "token" else pool(batch, each, self.over)
        return self._inside(whole).astype(np.float64)

    def _inside(self, values: F) -> NDArray[np.bool_]:
        values = np.exp(np.clip(values, -20.0, 20.0)) if self.measure == "ratio" else values
        return (values >= self.low) & (values <= self.high)

    def _each(self, batch: Batch) -> F:
        """``[N]`` the measure per token; of a ratio its logarithm, so that means and sums are geometric."""
        gap = np.clip(log_mismatch(batch), -20.0, 20.0)
        if self.measure in ("ratio", "k1"):
            return gap if self.measure == "ratio" else -gap
        if self.measure in ("k2", "k3"):
            return gap**2 / 2 if self.measure == "k2" else np.expm1(gap) - gap
        mask = np.asarray(batch.token("mask"), np.bool_)
        logp, logq = (np.where(mask, batch.token(f"logp_{a}").astype(np.float64), -1.0) for a in ("old", "engine"))
        if self.measure == "tv":
            return np.abs(np.exp(logp) - np.exp(logq))
        rest_p, rest_q = (np.maximum(-np.expm1(x), 1e-8) for x in (logp, logq))
        return np.exp(logq) * (logq - logp) + rest_q * np.log(rest_q / rest_p)


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondMoment(TokenWeight):
    """M2PO's mask: leaves out the tokens with the largest ``d^2``, ``d = logp_OF - logp_ANCHOR``, so that its mean over the
    optimiser batch stays within a budget. While that holds anyway nothing is left out, however large one ratio.

    ``drop``: the mean is that of the tokens kept. ``cap``: those left out still count, with the largest ``d^2`` that is kept, as
    if clipped there (the released code). Equal values go together.

    Attributes:
        budget: largest mean of ``d^2``.
        of: ``now`` (once more before each optimiser step) or ``old``.
        anchor: the policy compared with.
        harmful: only tokens that the step moves further away count and go: ``A d > 0``.
        rule: ``drop`` or ``cap``.
        free: ratios ``exp(d)`` in this band are never left out.
    """

    budget: float = 0.04
    of: str = "now"
    anchor: str = "old"
    harmful: bool = True
    rule: str = "drop"
    free: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        if self.rule not in _RULES:
            raise UnknownNameError("rule of SecondMoment", self.rule, _RULES)
        if not self.budget > 0:
            raise ConfigError(f"SecondMoment.budget={self.budget}; use a positive number, e.g. 0.04")
        if not 0 <= self.free[0] <= 1 <= self.free[1]:
            raise ConfigError(f"SecondMoment.free={self.free}: the band must hold the ratio 1")
        if self.of == self.anchor:
            raise ConfigError(f"SecondMoment(of={self.of!r}, anchor={self.anchor!r}): a policy does not differ from itself")

    @property
    def needs(self) -> tuple[str, ...]:
        """Log-probabilities of both policies."""
        return (f"logp_{self.of}", f"logp_{self.anchor}")

    def local(self, batch: Batch) -> Partials:
        """Every ``d^2`` that counts, in order."""
        gap, counts = self._gap(batch)
        return {"squares": Lowest.of(gap[counts] ** 2, sys.maxsize)}

    def weigh(self, batch: Batch, stats: Partials) -> F:
        """1 where kept, else 0."""
        gap, counts = self._gap(batch)
        most = self._most(stats["squares"].rows[:, 0])
        low, high = self.free
        ratio = np.exp(np.clip(gap, -20.0, 20.0))
        return np.where(counts & (gap**2 > most) & ((ratio < low) | (ratio > high)), 0.0, 1.0)

    def _gap(self, batch: Batch) -> tuple[F, NDArray[np.bool_]]:
        """``[N]`` ``d``, and which tokens count."""
        mask = np.asarray(batch.token("mask"), np.bool_)
        gap = np.where(mask, batch.token(f"logp_{self.of}").astype(np.float64) - batch.token(f"logp_{self.anchor}"), 0.0)
        return gap, mask & (gap * batch.token("advantage") > 0) if self.harmful else mask

    def _most(self, squares: F) -> float:
        """The largest value that is kept; below all where none is."""
        n = len(squares)
        sums, count = np.cumsum(squares), np.arange(1, n + 1)
        mean = sums / count if self.rule == "drop" else (sums + squares * (n - count)) / max(n, 1)
        last = np.append(squares[1:] != squares[:-1], True) if n else np.zeros(0, np.bool_)
        kept = squares[last & (mean <= self.budget * (1 + 1e-12))]
        return float(kept.max(initial=-1.0))
