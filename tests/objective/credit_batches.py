"""Graded batches with tool output between a rollout's tokens, and the laws for terms that read columns of the rollouts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from objective_batches import plain

import assay.testing.objective as testing
from assay.core.batch import Batch, pack_rows
from assay.core.columns import TokenColumn
from assay.core.sample import Sample
from assay.core.seeds import generator
from assay.objective import CreditTerm, Objective, Scalarise, SeqSum
from assay.objective.credit.base import Credit


def near(values: object, expected: object, tolerance: float = 5e-5) -> None:
    """Asserts that numbers are those expected, each within an absolute tolerance."""
    np.testing.assert_allclose(np.asarray(values, float), np.asarray(expected, float), rtol=0, atol=tolerance)


def chains(
    rewards: Sequence[float],
    masks: Sequence[Sequence[int]],
    groups: Sequence[int] | None = None,
    *,
    columns: Mapping[str, Sequence[Sequence[float]]] | None = None,
    valid: Sequence[bool] | None = None,
    **rollouts: Sequence[Any],
) -> Batch:
    """One row per attempt: a context token, then as many as ``masks`` says, each with its loss mask and its ``columns``.

    A rollout with an empty mask has no row.
    """
    count = len(rewards)
    ok = list(valid) if valid is not None else [True] * count
    table: dict[str, Any] = {
        "group": np.array(groups if groups is not None else [0] * count, np.int64),
        "components/correct": np.array(rewards, np.float64),
        "valid": np.array(ok),
        "length": np.array([sum(m) for m in masks]),
        "truncated": np.zeros(count, bool),
    }
    table |= {name: np.array(values) for name, values in rollouts.items()}
    rows: list[tuple[int, Sample]] = []
    for i, mask in enumerate(masks):
        if not ok[i] or not mask:
            continue
        made = {}
        for name, values in (columns or {}).items():
            made[name] = TokenColumn(name, np.concatenate([[0.0], np.asarray(values[i], np.float64)]), "test")
        ids = np.arange(len(mask) + 1, dtype=np.int32)
        if "ids" in made:
            ids = made.pop("ids").values.astype(np.int32)
        loss = np.concatenate([[False], np.asarray(mask, bool)])
        rows.append((i, Sample(rollout=str(i), ids=ids, mask=loss, columns=made)))
    return pack_rows(rows, table)


def after(batch: Batch, *chain: CreditTerm, scalarise: Scalarise | None = None, state: dict[int, Any] | None = None) -> Credit:
    """The record after a chain, on one process."""
    record = (scalarise or Scalarise()).start(batch)
    for i, term in enumerate(chain):
        stats = term.local(record)
        record = term.apply(record, stats, (state or {}).get(i, term.init()))
    return record


def per_attempt(batch: Batch, record: Credit) -> list[list[float]]:
    """Advantages at each rollout's loss tokens, rollout by rollout."""
    values, owner, mask = record.per_token(), record.owner, batch.token("mask")
    return [values[mask & (owner == i)].tolist() for i in range(len(record.reward))]


def tokens(batch: Batch, *chain: CreditTerm) -> list[list[float]]:
    """Advantages at each rollout's loss tokens after a chain."""
    return per_attempt(batch, after(batch, *chain))


def flat(batch: Batch, *chain: CreditTerm) -> list[float]:
    """`tokens`, rollouts behind one another."""
    return [x for rollout in tokens(batch, *chain) for x in rollout]


def around(*chain: CreditTerm, brings: tuple[str, ...] = ()) -> Objective:
    """The smallest objective with a chain."""
    return Objective(credit=chain, policy=plain(), aggregate=SeqSum(), brings=brings)


COLUMNS: dict[str, Any] = {
    "greedy": lambda rng, n: rng.random(n),
    "role": lambda rng, n: rng.integers(0, 2, n),
    "peers": lambda rng, n: rng.integers(0, 2, n),
    "prompt": lambda rng, n: rng.integers(0, 3, n),
    "pass_rate": lambda rng, n: rng.random(n),
    "lag": lambda rng, n: rng.integers(0, 4, n),
    "turns": lambda rng, n: rng.integers(1, 4, n),
    "win": lambda rng, n: rng.random(n),
    "loss": lambda rng, n: rng.random(n),
    "difficulty": lambda rng, n: rng.random(n),
    "hardness": lambda rng, n: rng.random(n),
    "responsiveness": lambda rng, n: rng.random(n),
    "prompt_confidence": lambda rng, n: rng.random(n),
    "extra": lambda rng, n: rng.normal(size=n),
}


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random batches have the columns of the rollouts that credit terms read."""
    narrow = testing.random_batch

    def random_batch(seed: int, *given: Any, **named: Any) -> Batch:
        batch = narrow(seed, *given, **named)
        rng = generator("tests/wide", seed)
        made = {name: draw(rng, len(batch.rollout("group"))) for name, draw in COLUMNS.items()}
        return replace(batch, rollouts={**made, **batch.rollouts})

    monkeypatch.setattr(testing, "random_batch", random_batch)
