"""What is known of a step's rows that the policy did not sample: how many there are, and how the policy meets their tokens.

Learning from others' tokens is safe as long as the policy gives them some probability: an unlikely token has a large gradient,
and one that has become much likelier within a step is what a clip range would have stopped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch
from assay.core.plan import Plan
from assay.core.sample import STREAMS

if TYPE_CHECKING:
    from assay.core.protocols import PassObserver

__all__ = ["SourceObserver", "has_others", "of_trust", "source_counts", "source_metrics", "with_entropy"]

UNLIKELY = math.log(0.1)
"""Below this log-probability a token counts as unlikely."""
RANGE = 0.2
"""How far from 1 a token's ratio may be before it counts as moved."""

_ON_POLICY = STREAMS.index("on_policy")
_NAMES = ("tokens", "logprob", "unlikely", "entropy", "entropies", "ratios", "moved", "own_logprob", "own_tokens", "ratio")


@dataclass(frozen=True, slots=True)
class _Sums:
    """``[10]`` sums over tokens, in the order of ``_NAMES``."""

    values: NDArray[np.float64]

    def merge(self, other: _Sums) -> _Sums:
        return _Sums(self.values + other.values)


class SourceObserver:
    """Watches the gradient passes of a step for tokens of rows that the policy did not sample, beside another observer.

    Implements `assay.core.protocols.PassObserver`.

    Args:
        beside: hears the same; None for none.
    """

    def __init__(self, beside: PassObserver | None) -> None:
        self._beside = beside
        self._sums = _Sums(np.zeros(len(_NAMES)))

    def observe(self, batch: Batch, live: Mapping[str, Any]) -> None:
        """Sums over the tokens of a micro-batch."""
        from assay.runtime.kernels.typed import array_of

        if self._beside is not None:
            self._beside.observe(batch, live)
        mask = np.asarray(batch.token("mask"), np.bool_)
        others = mask & np.repeat(batch.rows["stream"] != _ON_POLICY, batch.lengths)
        logp = np.asarray(array_of(live["logp_new"].detach().float()), np.float64)
        theirs, own = logp[others], logp[mask & ~others]
        found = dict.fromkeys(_NAMES, 0.0)
        found |= {"tokens": float(len(theirs)), "logprob": float(theirs.sum()), "unlikely": float((theirs < UNLIKELY).sum())}
        found |= {"own_tokens": float(len(own)), "own_logprob": float(own.sum())}
        if "entropy" in live:
            entropy = np.asarray(array_of(live["entropy"].detach().float()), np.float64)[others]
            found |= {"entropy": float(entropy.sum()), "entropies": float(len(entropy))}
        if "logp_old" in batch.tokens:
            ratio = np.exp(np.clip(theirs - np.asarray(batch.token("logp_old"), np.float64)[others], -20, 20))
            known = np.isfinite(ratio)
            found |= {"ratios": float(known.sum()), "moved": float((np.abs(ratio[known] - 1) > RANGE).sum())}
            found["ratio"] = float(ratio[known].sum())
        self._sums = self._sums.merge(_Sums(np.array([found[name] for name in _NAMES])))

    def exchange(self, reduce: Callable[[Mapping[str, Any]], Mapping[str, Any]], counts: bool) -> None:
        """As `assay.core.protocols.PassObserver.exchange`."""
        if self._beside is not None:
            self._beside.exchange(reduce, counts)
        own = self._sums if counts else _Sums(np.zeros(len(_NAMES)))
        self._sums = reduce({"tokens of given rows": own})["tokens of given rows"]

    @property
    def sums(self) -> _Sums:
        """What was observed."""
        return self._sums


def source_metrics(observers: Sequence[SourceObserver]) -> dict[str, float]:
    """Means over the tokens that the policy did not sample, at every update: ``sources/logprob``, in nats, beside
    ``sources/own_logprob`` of its own; ``sources/unlikely``, the share to which it gives less than 0.1; ``sources/entropy``, its
    entropy there, in nats; ``sources/ratio``, their mean ratio to the old policy, and ``sources/moved``, the share whose ratio is
    further than 0.2 from 1, where there are old probabilities. Nothing where there were no such tokens.
    """
    total = sum((o.sums.values for o in observers), np.zeros(len(_NAMES)))
    s: dict[str, float] = dict(zip(_NAMES, total.tolist(), strict=True))
    pairs = {
        "logprob": ("logprob", "tokens"),
        "unlikely": ("unlikely", "tokens"),
        "own_logprob": ("own_logprob", "own_tokens"),
        "entropy": ("entropy", "entropies"),
        "moved": ("moved", "ratios"),
        "ratio": ("ratio", "ratios"),
    }
    return {f"sources/{name}": s[of] / s[by] for name, (of, by) in pairs.items() if s["tokens"] and s[by]}


def of_trust(stats: Mapping[str, float]) -> dict[str, float]:
    """An update's numbers, with what the trust regions did to tokens that the policy did not sample as shares of these.

    ``sources/clipped``: the share of them beyond the region's border, from which nothing is learned; where there is no border
    ``sources/gradient_weight``, the mean ``g`` of ``- A g grad logp``. Both are of `assay.objective.PolicyGradient` terms, which
    report them over all their tokens as ``TERM/clip_others`` and ``TERM/weight_others`` beside ``TERM/others``.

    >>> of_trust({"policy/others": 0.5, "policy/clip_others": 0.125, "loss/policy": 2.0})
    {'loss/policy': 2.0, 'sources/clipped': 0.25}
    """
    shares = {word: sum(v for name, v in stats.items() if name.endswith(f"/{word}")) for word in _OF_TERMS}
    kept = {name: v for name, v in stats.items() if name.rpartition("/")[2] not in _OF_TERMS}
    there = {name.rpartition("/")[2] for name in stats}
    pairs = {"sources/clipped": "clip_others", "sources/gradient_weight": "weight_others"}
    return kept | {new: shares[of] / shares["others"] for new, of in pairs.items() if of in there and shares["others"]}


_OF_TERMS = ("others", "clip_others", "weight_others")


def has_others(batch: Batch) -> bool:
    """Whether a batch has rows that the policy did not sample."""
    return bool((batch.rows["stream"] != _ON_POLICY).any())


def with_entropy(plan: Plan) -> Plan:
    """The plan, with entropies among what the gradient pass computes."""
    return plan if "entropy" in plan.live else replace(plan, live=(*plan.live, "entropy"))


def source_counts(batch: Batch) -> dict[str, float]:
    """``sources/STREAM``: rows of each stream but the policy's own, and ``sources/share``, that of their tokens among all that
    carry loss.

    >>> from assay.core.batch import pack
    >>> from assay.testing import graded_group
    >>> from assay_tasks import SortDigits
    >>> source_counts(pack([graded_group(SortDigits().task("sort", 3, "train", 0), [1.0, 0.0])]))
    {'sources/share': 0.0}
    """
    stream, mask = batch.rows["stream"], np.asarray(batch.token("mask"), np.bool_)
    others = np.repeat(stream != _ON_POLICY, batch.lengths)
    counts = {f"sources/{name}": float((stream == n).sum()) for n, name in enumerate(STREAMS) if n != _ON_POLICY}
    return {k: v for k, v in counts.items() if v} | {"sources/share": float((mask & others).sum() / mask.sum())}
