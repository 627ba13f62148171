"""What each of two processes computes for `test_ranks` (`main`); `computed` is also the whole's."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from two_ranks import kept, rank_of_two

from assay.core.batch import Batch
from assay.core.columns import TokenColumn
from assay.core.errors import RankError
from assay.core.sample import STREAMS
from assay.objective import Lowest, Moments, Objective, ScoreLoss, Sum
from assay.objective.loss.weights import TokenWeight
from assay.objective.loss.wrap import unwrap
from assay.objective.methods import methods
from assay.objective.reducers import F, Local, Partials, Reducer
from assay.runtime import Collectives
from assay.testing.objective import evaluate, head_widths, random_batch, random_live, shard

SEEDS = (0, 1)
GROUPS, SIZE = 4, 6


@dataclass(frozen=True, slots=True)
class Kept:
    """A reducer that keeps what it gave: the same bytes on every rank, or ranks drift apart."""

    inner: Reducer
    given: list[bytes] = field(default_factory=list[bytes])

    def reduce(self, partials: Partials) -> Partials:
        merged = self.inner.reduce(partials)
        self.given.append(pickle.dumps(sorted(merged.items(), key=lambda x: x[0])))
        return merged


def streams_of(objective: Objective) -> NDArray[np.int8]:
    """``[SIZE]`` a stream for each rollout of a group, so that every part has rows: one of each stream that a part names, the
    rest on policy; where no loss reads those, all alike.
    """
    named = {s for t in (*objective.losses, *objective.credit) for s in t.streams} | set(objective.scalarise.streams)
    others = [s for s in STREAMS if s in named and s != "on_policy"]
    rest = "on_policy" if any("on_policy" in (t.streams or STREAMS) for t in objective.losses) else others[0]
    return np.array([STREAMS.index(s) for s in (others + [rest] * SIZE)[:SIZE]], np.int8)


def batch_of(objective: Objective, seed: int) -> tuple[Batch, dict[str, F]]:
    """A seeded batch of the laws, with rows of all streams that matter, tokens numbered, and its live columns."""
    plan = objective.plan()
    columns = ("logp_engine", *plan.columns, *(f.column for f in plan.forwards))
    rollouts = [name for term in (*objective.credit, *objective.losses) for name in term.rollout_columns]
    batch = random_batch(seed, columns, groups=GROUPS, size=SIZE, rollout_columns=rollouts)
    stream = streams_of(objective)[np.asarray(batch.rows["rollout"]) % SIZE]
    number = TokenColumn("number", np.arange(int(batch.offsets[-1])))
    batch = replace(batch, rows={**batch.rows, "stream": stream}).with_tokens(number)
    return batch, random_live(batch, plan.live, seed, head_widths(objective))


def computed(objective: Objective, reducer: Reducer, groups: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Credit, prepare, loss and gradient of two batches after one another, of the rollouts of ``groups``."""
    program = objective.compile(reducer=reducer)
    for seed in SEEDS:
        whole, live = batch_of(objective, seed)
        part = shard(whole, groups)
        here = np.asarray(part.token("number"), np.int64)
        credited = program.credit(part)
        outcome = evaluate(program, credited, {name: values[here] for name, values in live.items()})
        yield {
            "number": here,
            "advantage": credited.token("advantage") if "advantage" in credited.tokens else np.zeros(len(here)),
            "loss": outcome.loss,
            "gradients": dict(outcome.gradients),
            "metrics": dict(outcome.metrics),
            "state": program.state_dict(),
        }


def one_of_each_kind() -> list[str]:
    """Of the methods whose parts that reduce or compare sets are alike, the first."""
    first: dict[frozenset[str], str] = {}
    for name, method in methods().items():
        objective = method.objective()
        losses = [unwrap(term) for term in objective.losses]
        weights = [w for term in losses for w in getattr(term, "weights", ()) if isinstance(w, TokenWeight)]
        parts = [p for p in (*objective.credit, *losses, *weights) if p.reduces]
        sets = [term.phi for term in losses if isinstance(term, ScoreLoss)]
        first.setdefault(frozenset(type(p).__name__ for p in (*parts, *sets)), name)
    return list(first.values())


def everything(names: Sequence[str], reducer: Reducer, groups: Sequence[int]) -> dict[str, Any]:
    """`computed` for each of these methods, and under ``NAME/merged`` what the reducer gave."""
    out: dict[str, Any] = {}
    for name in names:
        kept = Kept(reducer)
        out[name] = list(computed(methods()[name].objective(), kept, groups))
        out[f"{name}/merged"] = kept.given
    return out


def partials(rank: int) -> dict[str, Any]:
    """One of each kind of statistic; rank 1 names them in another order."""
    rng = np.random.default_rng(rank)
    made = {
        "smallest": Lowest.of(rng.normal(size=(50, 2)), 7),
        "largest": Lowest.of(-rng.normal(size=3 - rank), 4),  # fewer than asked for, and unequally many
        "counts": Sum(rng.integers(0, 9, 3 + rank).astype(np.float64)),
        "moments": Moments.of(rng.normal(size=30) * 1e-3 + 1e6, rng.integers(0, 3 + rank, 30), 3 + rank),
        "none": Moments.of(np.zeros(0), size=0),
    }
    return made if rank == 0 else dict(reversed(made.items()))


def half(rank: int) -> range:
    """The groups of a rank."""
    return range(GROUPS)[rank * GROUPS // 2 :][: GROUPS // 2]


def refused(ranks: Collectives, asked: Mapping[str, Any]) -> str:
    try:
        ranks.reduce(asked)
    except RankError as error:
        return str(error)
    return "nothing was refused"


def main(rank: int, folder: Path, names: Sequence[str]) -> None:
    with rank_of_two(rank, folder) as store:
        ranks, one = Collectives(), Sum(np.ones(1))
        out = everything(names, ranks, half(rank))
        out["kinds"] = {name: pickle.dumps(value) for name, value in ranks.reduce(partials(rank)).items()}
        out["other names"] = refused(ranks, {"credit/0/mean": one, ["policy/low", "policy/high"][rank]: one})
        out["no names"] = refused(ranks, {} if rank else {"report/kl": one})
        hasty = dist.new_group([0, 1], timeout=timedelta(seconds=5))
        assert isinstance(hasty, dist.ProcessGroup)
        lone = torch.ones(1)
        if rank == 0:  # the other one hangs: it goes on when this one has given up
            out["late"] = refused(Collectives(hasty), {"policy/low": one})
            try:
                Collectives(hasty).add(lone, "gradient of the policy")
            except RankError as error:
                out["late gradient"] = str(error)
            store.set("told", "yes")
        else:
            store.wait(["told"])
        kept(rank, folder, out)


def whole(names: Sequence[str]) -> dict[str, Any]:
    return everything(names, Local(), range(GROUPS))
