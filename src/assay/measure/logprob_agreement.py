"""How far sampler and learner are apart on the tokens that the sampler drew: two implementations of one policy, on the same
weights.

Three log-probabilities are kept apart: ``logp_engine``, what the sampler drew from; the learner's own of the same tokens at the
same weights; and that of later weights, which is no matter of this page.
"""

from __future__ import annotations

from math import isfinite

import numpy as np
from numpy.typing import ArrayLike, NDArray

from assay.core.batch import Batch
from assay.core.errors import DataError
from assay.core.sample import STREAMS

__all__ = ["MISMATCH_BARS", "MOST_RATIO", "agreement", "comparable", "kish"]

MISMATCH_BARS = {"float32": 1e-6, "bfloat16": 5e-3}
"""Largest k3, in nats per token, that rounding explains, by the coarser type of the two sides. On small models whose weights are
exaggerated it is at most 1e-10 where both are float32; where one is bfloat16, 1e-5 to 2e-3 in dense families and 4e-3 in mixtures
of experts whose routing is replayed (``docs/evidence/mismatch.md``)."""

MOST_RATIO = 5.0
"""Largest factor between the two probabilities of a single token that is left unsaid."""


def comparable(batch: Batch, version: int) -> NDArray[np.bool_]:
    """``[N]`` loss tokens that the policy itself sampled under the weights ``version``, and is taught behind the same prompt: on
    them, and on no others, a gap to the learner at these weights is a mismatch.

    A replayed row is of older weights, as are the first tokens of one that went on under new ones, whose later tokens read keys
    and values of before (`assay.core.protocols.SwapMode.KEEP`). An expert's row has no sampler, and one that is learned from
    under another prompt (`Context.score_context`) has another distribution. Where no row says what sampled it, or ``version`` is
    -1, all weights count as the same.

    Args:
        batch: rows.
        version: of the learner's weights.
    """
    rows = batch.rows["stream"] == STREAMS.index("on_policy")
    if "reposed" in batch.rows:
        rows = rows & ~np.asarray(batch.rows["reposed"], np.bool_)
    here = np.asarray(batch.token("mask"), np.bool_) & np.repeat(rows, batch.lengths)
    if version < 0 or "weight_version" not in batch.tokens:
        return here
    other = here & (np.asarray(batch.token("weight_version")) != version)
    # behind a token of other weights stand their keys and values: what follows in the row is of neither
    seen = np.concatenate([[0], np.cumsum(other)])
    starts = np.cumsum(batch.lengths) - batch.lengths
    return here & (seen[1:] == np.repeat(seen[starts], batch.lengths))


def agreement(engine: ArrayLike, learner: ArrayLike, rollout: ArrayLike) -> dict[str, float]:
    """The numbers of ``metrics.jsonl`` on how far the two are apart; none where there is no token.

    With ``d = learner - engine`` and ``w = exp(d)``, over tokens: ``engine/mismatch_k1`` and ``engine/mismatch_k3``, two
    estimates of KL(engine || learner) in nats per token; ``engine/mismatch_abs``, the mean of ``|d|``; ``engine/max_ratio``, the
    largest factor in either direction; ``engine/ess``, Kish's effective share of the tokens under the weights ``w``, and
    ``engine/ess_rollouts`` of the rollouts under the products of theirs.

    Args:
        engine: ``[M]`` log-probabilities under which the tokens were drawn.
        learner: ``[M]`` the learner's own, at the same weights.
        rollout: ``[M]`` which rollout a token is of.

    Raises:
        DataError: lengths differ.

    >>> found = agreement([-1.0, -1.0], [-1.0, -1.0 - np.log(2)], [0, 1])
    >>> {name: round(value, 4) for name, value in found.items()}
    ... # doctest: +NORMALIZE_WHITESPACE
    {'engine/mismatch_k1': 0.3466, 'engine/mismatch_k3': 0.0966, 'engine/mismatch_abs': 0.3466, 'engine/max_ratio': 2.0,
     'engine/ess': 0.9, 'engine/ess_rollouts': 0.9}
    """
    drawn, own, owner = np.asarray(engine, np.float64), np.asarray(learner, np.float64), np.asarray(rollout)
    if not drawn.shape == own.shape == owner.shape:
        raise DataError(f"agreement: {drawn.shape}, {own.shape} and {owner.shape} tokens; give one of each per token")
    if not len(drawn):
        return {}
    gap = own - drawn
    products = np.asarray(np.bincount(np.unique(owner, return_inverse=True)[1], weights=gap), np.float64)
    worst = float(np.abs(gap).max())
    out = {
        "engine/mismatch_k1": float(-gap.mean()),
        "engine/mismatch_k3": float(np.mean(np.expm1(np.minimum(gap, 700.0)) - gap)),
        "engine/mismatch_abs": float(np.abs(gap).mean()),
        "engine/max_ratio": float(np.exp(min(worst, 700.0))),
        "engine/ess": kish(gap),
        "engine/ess_rollouts": kish(products),
    }
    return {name: value for name, value in out.items() if isfinite(value)}


def kish(log_weights: NDArray[np.float64]) -> float:
    """``(sum w)^2 / (N sum w^2)`` of weights given by their logarithms, ``[N]``, at least one."""
    w = np.exp(log_weights - log_weights.max())
    return float(w.sum() ** 2 / (len(w) * (w**2).sum()))
