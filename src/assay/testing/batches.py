"""Small random batches for checks of objectives, and the same batch cut another way: over ranks, or in more rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from assay.core.batch import Batch, Counts
from assay.core.columns import Array, TokenColumn
from assay.core.seeds import generator
from assay.core.util.renamed import refuse_old_keywords
from assay.objective.objective import Objective
from assay.objective.reducers import F

__all__ = ["head_widths", "random_batch", "random_live", "shard", "split_rows"]


@refuse_old_keywords({"attempts": "rollout_columns"})
def random_batch(
    seed: int, columns: Sequence[str] = (), groups: int = 3, size: int = 4, rollout_columns: Sequence[str] = ()
) -> Batch:
    """A small graded batch: rows of 2 to 7 tokens, rewards of few values, one faulty rollout, tool tokens outside the mask.

    Args:
        seed: everything derives from it.
        columns: further token columns: ``logp_*`` get log-probabilities, ``entropy*`` positive numbers, others any.
        groups, size: groups and rollouts per group.
        rollout_columns: further columns of the rollouts, each 0, 0.5 or 1: keys as well as shares.

    Returns:
        ``groups * size`` rollouts, one of them faulty and without rows; arrays are read-only.
    """
    rng = generator("testing/batch", seed)
    total = groups * size
    faulty = int(rng.integers(total))
    owner = np.array([i for i in range(total) if i != faulty], np.int64)
    lengths = rng.integers(2, 8, len(owner))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    n = int(offsets[-1])
    mask = rng.random(n) < 0.8
    mask[offsets[1:] - 1] = True
    mask[offsets[:-1]] = False
    tokens = {"ids": rng.integers(0, 32, n).astype(np.int32), "mask": mask}
    tokens |= {name: _column(name, n, rng) for name in dict.fromkeys(columns)}
    reward = rng.integers(0, 3, total) / 2.0
    reward[rng.integers(groups) * size :][:size] = 1.0  # one group without variance
    per_attempt = np.zeros(total, np.int64)
    np.add.at(per_attempt, np.repeat(owner, lengths), mask)
    table: dict[str, Array] = {
        "group": np.repeat(np.arange(groups), size),
        "valid": np.arange(total) != faulty,
        "length": per_attempt,
        "truncated": rng.random(total) < 0.2,
        "tokens": per_attempt,
        "components/correct": reward,
    }
    extra = {name: rng.integers(0, 3, total) / 2.0 for name in dict.fromkeys(rollout_columns)}
    table = {**extra, **table}
    rows: dict[str, Array] = {"rollout": owner, "stream": np.zeros(len(owner), np.int8)}
    for array in (*tokens.values(), *table.values(), *rows.values()):
        array.setflags(write=False)
    prompts = len(np.unique(table["group"][owner]))
    counts = Counts(int(mask.sum()), len(owner), len(owner), prompts)
    return Batch(
        offsets=offsets,
        tokens={k: TokenColumn(k, v, "testing") for k, v in tokens.items()},
        rows=rows,
        rollouts=table,
        counts=counts,
        drawn=replace(counts, tokens=counts.tokens + 5, rows=counts.rows + 2, rollouts=counts.rollouts + 2),
    )


def _column(name: str, n: int, rng: np.random.Generator) -> F:
    values = rng.normal(size=n)
    if name.startswith("logp"):
        return -np.abs(values) - 0.05
    return np.abs(values) if name.startswith("entropy") else values


def random_live(batch: Batch, names: Sequence[str], seed: int, widths: Mapping[str, int] | None = None) -> dict[str, F]:
    """``[N]`` values of the live columns, as `evaluate` takes them; ``[N, k]`` of those with a width ``k`` above 1."""
    rng = generator("testing/live", seed)
    n, widths = int(batch.offsets[-1]), widths or {}
    return {m: _column(m, n, rng) if widths.get(m, 1) == 1 else rng.normal(size=(n, widths[m])) for m in names}


def head_widths(objective: Objective) -> dict[str, int]:
    """Outputs per token of the heads that an objective fits, by name."""
    return {name: form[1] for t in objective.losses for name, form in t.heads.items()}


def shard(batch: Batch, groups: Sequence[int]) -> Batch:
    """One rank's part: the rollouts and rows of some groups, with group numbers and counts of the whole."""
    table = np.isin(batch.rollout("group"), groups)
    part = batch.micro(np.flatnonzero(table[batch.rows["rollout"]]))
    position = np.cumsum(table) - 1
    rows = {**part.rows, "rollout": position[part.rows["rollout"]]}
    return replace(part, rows=rows, rollouts={k: v[table] for k, v in batch.rollouts.items()})


def split_rows(batch: Batch, seed: int) -> tuple[Batch, NDArray[np.int64]]:
    """The same rollouts, some in two rows: the second row holds the first one's tokens as context.

    Returns:
        The batch, and ``[N']`` for each of its tokens the token of ``batch`` that it copies.
    """
    rng = generator("testing/split", seed)
    twice = (rng.random(len(batch)) < 0.5) & (batch.part_lengths() > 1)
    index = np.repeat(np.arange(len(batch)), np.where(twice, 2, 1))
    part = batch.with_tokens(TokenColumn("source", np.arange(int(batch.offsets[-1])))).micro(index)
    mask = np.array(part.token("mask"))
    for row in np.flatnonzero(np.diff(index, prepend=-1) == 0):  # second rows
        first, start, end = part.offsets[row - 1], part.offsets[row], part.offsets[row + 1]
        loss = np.flatnonzero(mask[start:end])
        cut = int(loss[rng.integers(1, len(loss))])
        mask[first + cut : start] = False
        mask[start : start + cut] = False
    more = len(index) - len(batch)
    made = replace(
        part.with_tokens(TokenColumn("mask", mask, "testing")),
        counts=replace(part.counts, rows=part.counts.rows + more),
        drawn=replace(part.drawn, rows=part.drawn.rows + more),
    )
    return made, np.asarray(made.token("source"), np.int64)
