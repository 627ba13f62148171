"""Measure what an objective costs: the share of a step's CPU time beyond a bare ``-(A * logp).sum()`` on the same rows.

Runs the quickstart's steps (32 prompts x 8 attempts, one update) from fresh weights under coin-toss rewards, so that every group
has a signal. Each rollout batch is learned from twice, in alternating order: by the method's program, and by a bare loss that is
given the same advantages, rows and passes. The objective's cost is its credit chain plus the difference of the two: preparation,
aggregation, loss, its gradient and its numbers for the report. Passes that it asks for (a reference, old log-probabilities,
values) are work that any code for the method does, and stand in both. Prints one JSON line per method: medians over the steps.

    OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE python benchmarks/objective_overhead.py --steps 20
"""

import argparse
import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import median
from time import process_time
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from assay.core import Batch, LossProgram, Plan
from assay.lab import RandomReward, Rewarded, describe_machine, load_average
from assay.objective import build_method
from assay.recipes import quickstart
from assay.runtime import DecoderShape, ValueHead, set_threads
from assay.train import Reinforce, ReinforceRunner, Run, Scratch, collect_groups, load_source, open_stage
from assay.verify import ScoringPool

METHODS = ("grpo", "dapo", "gspo", "cispo", "ppo", "kl_cov", "rloo")
BAR = 0.05
WARM = 3


@dataclass(frozen=True)
class Bare:
    """The least that a loss can do: advantages are there, rows are known, nothing is reported."""

    rows: NDArray[np.bool_]

    def credit(self, batch: Batch) -> Batch:
        return batch

    def prepare(self, batch: Batch) -> Batch:
        return batch

    def active(self, batch: Batch) -> NDArray[np.bool_]:
        return self.rows

    def micro(self, batch: Batch, live: Mapping[str, Any]) -> tuple[Any, Mapping[str, float]]:
        weights = batch.token("advantage") * batch.token("mask") / -batch.counts.tokens
        return (live["logp_new"].new_tensor(weights) * live["logp_new"]).sum(), {}


def measured_run(method: str) -> Run:
    quick = quickstart(0)
    objective = build_method(method)
    heads = tuple(ValueHead(name=name) for t in objective.losses for name in t.heads)
    stage = cast(Reinforce, quick.stages[0])
    stage = replace(stage, objective=objective, learner=replace(stage.learner, heads=heads))
    source = Rewarded(source=quick.tasks, scorer=RandomReward())
    return replace(quick, model=Scratch(shape=DecoderShape()), tasks=source, stages=(stage,), prove_weights=False)


async def measured_step(s: ReinforceRunner, number: int) -> dict[str, float]:
    """CPU seconds of one step's parts."""
    begin = process_time()
    groups = (await collect_groups(s)).kept
    batch = s.stage.composer.compose(groups, None, s.parts.step)
    assert batch is not None
    batch = s.parts.annotate(batch)
    before = process_time()
    batch = s.parts.program.credit(batch)
    credit = process_time() - before
    passes = [f for f in s.parts.plan.forwards if f.when == "step"]
    filled = s.parts.learner.annotate(batch, *passes) if passes else batch
    bare = Bare(s.parts.program.active(s.parts.program.prepare(filled)))
    plan: Plan = s.parts.plan
    seconds: dict[str, float] = {}
    losses: list[tuple[str, LossProgram]] = [("method", s.parts.program), ("bare", bare)]
    for name, loss in losses[:: 1 if number % 2 else -1]:
        start = process_time()
        s.parts.learner.step(batch, plan, loss)
        seconds[name] = process_time() - start
    after = process_time()
    await s.parts.publish()
    s.parts.step += 1
    whole = before - begin + credit + seconds["method"] + process_time() - after
    return {"step": whole, "credit": credit, "loss": seconds["method"] - seconds["bare"]}


async def measure_method(method: str, steps: int) -> dict[str, object]:
    run = measured_run(method)
    model = load_source(run.model, lambda run, folder: folder)
    with ScoringPool(run.tasks.verifier(), run.reward_deadline) as pool:
        session = open_stage(run, run.stages[0], model, pool, 0)
        assert isinstance(session, ReinforceRunner)
        await session.parts.engine.swap(session.parts.learner.publish())
        rows = [await measured_step(session, n) for n in range(WARM + steps)][WARM:]
    parts = {name: median(r[name] for r in rows) for name in ("step", "credit", "loss")}
    share = median((r["credit"] + r["loss"]) / r["step"] for r in rows)
    ms = {name: round(1e3 * value, 2) for name, value in parts.items()}
    return {"method": method, "steps": steps, "cpu_ms": ms, "share": round(share, 4), "met": share <= BAR}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--steps", type=int, default=20)
    given = parser.parse_args()
    set_threads(1)
    for method in given.methods:
        print(
            json.dumps(
                {**asyncio.run(measure_method(method, given.steps)), "machine": describe_machine(), "load": load_average()}
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
