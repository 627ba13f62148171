"""The laws on batches that hold several streams and columns of the rollouts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from assay.core.batch import Batch
from assay.core.sample import STREAMS
from assay.objective import Objective
from assay.testing import objective as laws


def check_mixed(
    patch: pytest.MonkeyPatch,
    objective: Objective,
    streams: Sequence[str] = ("on_policy",),
    attempts: Mapping[str, Sequence[Any]] | None = None,
    seeds: Sequence[int] = range(3),
) -> None:
    """`check_objective` on batches whose rollouts stand in ``streams`` by turns and have the columns ``attempts``, by turns too.

    At least one of them must teach something.
    """
    plain = laws.random_batch
    taught = False

    def mixed(seed: int, columns: Sequence[str] = (), groups: int = 3, size: int = 4, **more: Any) -> Batch:
        batch = plain(seed, columns, groups, size, **more)
        rollout = np.asarray(batch.rows["rollout"])
        stream = np.array([STREAMS.index(s) for s in streams], np.int8)[rollout % len(streams)]
        made = {n: np.array(v)[np.arange(groups * size) % len(v)] for n, v in (attempts or {}).items()}
        return replace(batch, rows={**batch.rows, "stream": stream}).with_rollouts(**made)

    plan = objective.plan()
    columns = (*plan.columns, *(f.column for f in plan.forwards))
    read = [n for t in objective.credit for n in t.rollout_columns]
    for seed in seeds:
        live = laws.random_live(mixed(seed), plan.live, seed)
        outcome = laws.evaluate(objective.compile(), mixed(seed, columns, rollout_columns=read), live)
        taught = taught or any(bool(np.any(g)) for g in outcome.gradients.values())
    assert taught
    patch.setattr(laws, "random_batch", mixed)
    laws.check_objective(objective, seeds)
    patch.undo()
