"""Training metrics, each a pure function of records or arrays.

A metric that has nothing to measure is NaN, never 0, and the two collectors at the end leave it out: a number in
``metrics.jsonl`` was measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite, nan

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.core.batch import Batch, Counts
from assay.core.errors import DataError
from assay.core.group import Group
from assay.core.rollout import Stop
from assay.core.sample import STREAMS
from assay.core.score import Fault, Score
from assay.measure.help_metrics import help_metrics
from assay.measure.logprob_agreement import agreement, comparable, kish

__all__ = [
    "batch_metrics",
    "component_mean",
    "divergences",
    "effective_sample_size",
    "fault_rates",
    "filtered_share",
    "group_metrics",
    "length_stats",
    "max_ratio",
    "reward_stats",
    "signal_fraction",
    "throughput",
    "truncated_share",
]

Floats = NDArray[np.float64]


# ---- of graded groups -------------------------------------------------------------------------------------------------


def reward_stats(groups: Sequence[Group]) -> dict[str, float]:
    """``reward/mean`` and ``reward/std`` (population) of the primary metric over valid rollouts, and the mean of each component.

    Faulty rollouts count nowhere: a missing verdict is not a 0. Components stand as ``reward/component/NAME``, over the valid
    rollouts that carry them.
    """
    values = np.array([v for g in groups for v in g.values])
    valid = [s.components for s in _scores(groups) if s.valid]
    out = {"reward/mean": float(values.mean()) if len(values) else nan, "reward/std": float(values.std()) if len(values) else nan}
    for name in sorted({n for components in valid for n in components}):
        out[f"reward/component/{name}"] = _mean([components[name] for components in valid if name in components])
    return out


def component_mean(groups: Sequence[Group], name: str) -> float:
    """Mean of a score component over the valid rollouts that carry it; that of ``format`` is the format rate."""
    return _mean([s.components[name] for s in _scores(groups) if s.valid and name in s.components])


def signal_fraction(groups: Sequence[Group]) -> float:
    """Share of groups whose valid rollouts differ in their primary metric; the others teach a group baseline nothing."""
    return _mean([float(g.informative) for g in groups])


def truncated_share(groups: Sequence[Group]) -> float:
    """Share of rollouts that were cut off at the length limit (stop ``length``)."""
    return _mean([float(r.stop == Stop.LENGTH) for g in groups for r in g.rollouts])


def fault_rates(groups: Sequence[Group]) -> dict[str, float]:
    """Shares of rollouts by fault.

    ``fault/rate`` is what was lost to no doing of the model (``fault/verifier`` + ``fault/infra``); ``fault/policy`` is the
    model's own and scores the floor. ``fault/rate/ARM`` is given for arms with such faults, since a broken task hides in a good
    average.
    """
    by_arm: dict[str, Counter[Fault]] = {}
    for group in groups:
        by_arm.setdefault(group.task.arm, Counter()).update([s.fault for s in group.scores])
    every = sum(by_arm.values(), Counter[Fault]())
    shares = {f: every[f] / every.total() if every else nan for f in (Fault.POLICY, Fault.VERIFIER, Fault.INFRA)}
    out = {"fault/rate": shares[Fault.VERIFIER] + shares[Fault.INFRA]} | {f"fault/{f.value}": s for f, s in shares.items()}
    for arm, of_arm in sorted(by_arm.items()):
        lost = of_arm[Fault.VERIFIER] + of_arm[Fault.INFRA]
        if lost:
            out[f"fault/rate/{arm}"] = lost / of_arm.total()
    return out


def length_stats(groups: Sequence[Group]) -> dict[str, float]:
    """``length/mean``, ``length/max`` of sampled tokens per rollout, and the means over right and wrong ones apart.

    "Right" is a primary metric of at least 1; the two means show whether answers grow because length pays.
    """
    pairs = [(float(r.length), s.primary if s.valid else nan) for g in groups for r, s in zip(g.rollouts, g.scores, strict=True)]
    lengths = [n for n, _ in pairs]
    right = [n for n, value in pairs if value >= 1]
    wrong = [n for n, value in pairs if value < 1]
    return {
        "length/mean": _mean(lengths),
        "length/max": max(lengths, default=nan),
        "length/mean_right": _mean(right),
        "length/mean_wrong": _mean(wrong),
    }


# ---- of token columns -------------------------------------------------------------------------------------------------


def divergences(sampled: ArrayLike, other: ArrayLike, mask: ArrayLike) -> dict[str, float]:
    """Two unbiased estimates of KL(sampled || other) per token, in nats, from tokens drawn under ``sampled``.

    With ``r = exp(other - sampled)``: ``k1 = -log r`` (may be negative) and ``k3 = r - 1 - log r`` (never negative, less noise).

    Args:
        sampled: ``[N]`` log-probabilities under the distribution that drew the tokens.
        other: ``[N]`` log-probabilities of the same tokens under the other one.
        mask: ``[N]`` tokens to count.

    Raises:
        DataError: shapes differ.

    Source: Schulman 2020, "Approximating KL divergence".

    >>> {k: round(v, 6) for k, v in divergences([0.0, -1.0], [0.0, -1.0 - np.log(2)], [False, True]).items()}
    {'k1': 0.693147, 'k3': 0.193147}
    """
    log_r = _mask_values(other, mask) - _mask_values(sampled, mask)
    return {"k1": _mean(-log_r), "k3": _mean(np.expm1(log_r) - log_r)}


def max_ratio(sampled: ArrayLike, other: ArrayLike, mask: ArrayLike) -> float:
    """Largest factor, in either direction, between the probabilities that two models give a token: ``exp(max |difference|)``.

    >>> round(max_ratio([0.0, -1.0, -2.0], [0.0, -1.5, -1.0], [True, True, True]), 4)
    2.7183
    """
    gaps = np.abs(_mask_values(other, mask) - _mask_values(sampled, mask))
    return float(np.exp(gaps.max())) if len(gaps) else nan


def effective_sample_size(log_weights: ArrayLike, mask: ArrayLike) -> float:
    """Effective share of the samples under importance weights: ``(sum w)^2 / (N sum w^2)``, in (0, 1]; 1 for equal weights.

    Source: Kish 1965.

    >>> effective_sample_size([0.0, 0.0], [True, True]), round(effective_sample_size([0.0, np.log(3)], [True, True]), 6)
    (1.0, 0.8)
    """
    x = _mask_values(log_weights, mask)
    if not len(x):
        return nan
    return kish(x)


# ---- of work ----------------------------------------------------------------------------------------------------------


def filtered_share(drawn: Counts, kept: Counts) -> float:
    """Share of the drawn rows that filters removed from the batch; NaN where nothing was drawn.

    Args:
        drawn: counts before filtering.
        kept: counts of the optimiser batch.

    Raises:
        DataError: more rows kept than drawn.

    >>> from assay.core import Counts
    >>> filtered_share(Counts(100, 10, 10, 5), Counts(80, 8, 8, 4))
    0.2
    """
    if kept.rows > drawn.rows:
        raise DataError(f"{kept.rows} rows kept of only {drawn.rows} drawn")
    return (drawn.rows - kept.rows) / drawn.rows if drawn.rows else nan


def throughput(count: float, seconds: float) -> float:
    """Units per second; NaN when no time has passed.

    >>> throughput(300, 1.5)
    200.0
    """
    return count / seconds if seconds > 0 else nan


# ---- collectors: the names of metrics.jsonl ---------------------------------------------------------------------------


GROUP_METRICS = (
    "reward/mean",
    "reward/std",
    "signal/fraction",
    "length/mean",
    "length/max",
    "length/mean_right",
    "length/mean_wrong",
    "length/truncated",
    "fault/rate",
    "fault/policy",
    "fault/verifier",
    "fault/infra",
    "format/rate",
    "rollouts/sampled",
)
"""Names that `group_metrics` gives of any family; a step lacks one that nothing could be measured for."""


def group_metrics(groups: Sequence[Group]) -> dict[str, float]:
    """Every metric of graded groups under its name in ``metrics.jsonl``: ``reward/...``, ``signal/fraction``, ``length/...``,
    ``fault/...``, ``format/rate`` (the mean of the component ``format``), ``rollouts/sampled``, ``tokens/sampled``,
    ``entropy/mean`` where the engine recorded it, and ``help/...`` where a guidance helped (`help_metrics`). What nothing could
    be measured for is left out.
    """
    out = reward_stats(groups) | length_stats(groups) | fault_rates(groups) | help_metrics(groups)
    out |= {
        "signal/fraction": signal_fraction(groups),
        "length/truncated": truncated_share(groups),
        "format/rate": component_mean(groups, "format"),
        "rollouts/sampled": float(sum(len(g.rollouts) for g in groups)),
        "tokens/sampled": float(sum(r.length for g in groups for r in g.rollouts)),
        "entropy/mean": _engine_entropy(groups),
    }
    return _drop_missing(out)


def batch_metrics(batch: Batch) -> dict[str, float]:
    """Metrics of an optimiser batch: ``waste/rows_filtered``, ``tokens/trained``; with both log-probability columns also
    `agreement` of ``logp_engine`` and ``logp_old`` where that is the learner's, over the tokens that are `comparable`, and
    ``ess`` of the importance weights between them, of tokens of any age; with ``logp_ref`` also ``kl/base_train`` (k3 of
    ``logp_engine`` against it); with ``staleness`` also ``policy/age``, its mean over the loss tokens that a policy of ours
    sampled, in updates.

    Args:
        batch: with the columns that the plan's forward passes filled.
    """
    stream = np.repeat(batch.rows["stream"], batch.lengths)
    mask = batch.token("mask") & (stream == STREAMS.index("on_policy"))  # a replayed row's gap is no mismatch
    out = {
        "waste/rows_filtered": filtered_share(batch.drawn, batch.counts),
        "tokens/trained": float(batch.counts.tokens),
    }
    if "staleness" in batch.tokens:
        sampled = batch.token("mask") & np.isin(stream, [STREAMS.index(s) for s in ("on_policy", "replay")])
        out["policy/age"] = _mean(np.asarray(batch.token("staleness"))[sampled])
    if "logp_engine" in batch.tokens and "logp_old" in batch.tokens and batch.tokens["logp_old"].producer != "engine":
        engine, old = batch.token("logp_engine"), batch.token("logp_old")
        same = comparable(batch, batch.tokens["logp_old"].version)
        out |= agreement(engine[same], old[same], batch.rows["rollout"][batch.row_of_token[same]])
        out["ess"] = effective_sample_size(np.asarray(old, np.float64) - engine, mask)
    if "logp_engine" in batch.tokens and "logp_ref" in batch.tokens:
        out["kl/base_train"] = divergences(batch.token("logp_engine"), batch.token("logp_ref"), mask)["k3"]
    return _drop_missing(out)


def _drop_missing(metrics: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if isfinite(value)}


def _engine_entropy(groups: Sequence[Group]) -> float:
    parts = [
        c.completion.columns["entropy"].values
        for g in groups
        for r in g.rollouts
        for c in r.calls
        if "entropy" in c.completion.columns
    ]
    return _mean(np.concatenate(parts)) if parts else nan


def _scores(groups: Sequence[Group]) -> Iterable[Score]:
    return (s for g in groups for s in g.scores)


def _mask_values(values: ArrayLike, mask: ArrayLike) -> Floats:
    x, keep = np.asarray(values, np.float64), np.asarray(mask, np.bool_)
    if x.shape != keep.shape:
        raise DataError(f"a token column of shape {x.shape} cannot be masked by one of shape {keep.shape}")
    return x[keep]


def _mean(values: ArrayLike) -> float:
    x = np.asarray(values, np.float64)
    return float(x.mean()) if x.size else nan
