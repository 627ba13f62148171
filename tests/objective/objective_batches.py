"""Tiny graded batches whose numbers fit on paper."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from assay.core.batch import Batch, pack_rows
from assay.core.columns import TokenColumn
from assay.core.sample import Sample
from assay.objective import Objective, PolicyGradient, Ratio, SeqSum
from assay.testing.objective import RanksOutcome, evaluate


def tiny(
    rewards: Sequence[float],
    groups: Sequence[int] | None = None,
    lengths: Sequence[int] | None = None,
    *,
    valid: Sequence[bool] | None = None,
    streams: Sequence[str] | None = None,
    columns: Mapping[str, Any] | None = None,
    **rollouts: Sequence[Any],
) -> Batch:
    """One row per attempt: a context token, then ``lengths`` loss tokens.

    ``columns`` hold one value for all tokens, or one per *loss* token in order. Faulty rollouts have no row.
    """
    count = len(rewards)
    lengths = list(lengths or [1] * count)
    ok = np.array(valid if valid is not None else [True] * count)
    table: dict[str, Any] = {
        "group": np.array(groups if groups is not None else [0] * count, np.int64),
        "components/correct": np.array(rewards, np.float64),
        "valid": ok,
        "length": np.array(lengths),
        "truncated": np.zeros(count, bool),
    }
    table |= {name: np.array(values) for name, values in rollouts.items()}
    rows: list[tuple[int, Sample]] = []
    at = 0
    for i in np.flatnonzero(ok):
        n = lengths[i]
        mask = np.arange(n + 1) > 0
        made = {}
        for name, values in (columns or {}).items():
            full = np.zeros(n + 1)
            full[1:] = values if np.isscalar(values) else np.asarray(values, float)[at : at + n]
            made[name] = TokenColumn(name, full, "test")
        at += n
        stream = streams[i] if streams else "on_policy"
        rows.append(
            (int(i), Sample(rollout=str(i), ids=np.arange(n + 1, dtype=np.int32), mask=mask, columns=made, stream=stream))
        )
    return pack_rows(rows, table)


def spread(batch: Batch, values: Sequence[float] | float) -> np.ndarray:
    """``[N]`` values at the loss tokens, 0 elsewhere."""
    out = np.zeros(int(batch.offsets[-1]))
    out[batch.token("mask")] = values
    return out


def run(objective: Objective, batch: Batch, logp: Sequence[float] | float = -1.0, **live: Any) -> RanksOutcome:
    """Loss and gradients with log-probabilities (and other live columns) at the loss tokens."""
    tensors = {"logp_new": spread(batch, logp)} | {k: spread(batch, v) for k, v in live.items()}
    return evaluate(objective.compile(), batch, tensors)


def slopes(objective: Objective, batch: Batch, logp: Sequence[float] | float = -1.0) -> np.ndarray:
    """Gradient with respect to ``logp_new`` at the loss tokens."""
    return run(objective, batch, logp).gradients["logp_new"][batch.token("mask")]


def advantages(batch: Batch, *credit: Any, **kwargs: Any) -> np.ndarray:
    """``[R]`` advantages after a credit chain."""
    objective = Objective(credit=credit, policy=plain(), aggregate=SeqSum(), **kwargs)
    return objective.compile().credit(batch).rollout("advantage")


def plain() -> PolicyGradient:
    """The policy gradient with ``g = 1``."""
    return PolicyGradient(ratio=Ratio("none"), trust=None)
