"""Measure what a slow judge costs a step: scored group by group while others are sampled, and all groups after the last.

Steps of reinforcement from fresh weights. A server judges their rollouts, 64 at once, and takes ``--judge-seconds`` for each.
Three runs: judged group by group, judged together at the end, and not judged at all. Prints one JSON line: medians over
steps of the seconds of a step, and the share of a step without judge that either way costs.

    OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE python benchmarks/judge_overlap.py --steps 5
"""

import argparse
import json
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import cast

from assay.clients import Judge
from assay.core import RolloutGroup, Sampling, Score, ScoreContext, StatelessScorer
from assay.recipes import quickstart
from assay.runtime import DecoderShape, Native
from assay.scorers import Criterion, Rubric, RubricJudge
from assay.testing import JudgeServer
from assay.train import Evaluation, Reinforce, Run, Scratch, train

WARM = 1


def shape_of(width: int) -> DecoderShape:
    return DecoderShape(
        hidden_size=width,
        num_layers=6,
        num_heads=width // 32,
        num_kv_heads=width // 32,
        head_dim=32,
        intermediate_size=11 * width // 4,
        max_positions=640,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Together(RubricJudge):
    """Waits for all groups."""

    @property
    def by_group(self) -> bool:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(StatelessScorer):
    """Rewards as the judge does, always the same, so that the weights and the lengths of answers stay as they are."""

    async def score(self, groups: Sequence[RolloutGroup], ctx: ScoreContext) -> Sequence[Sequence[Score]]:
        return [[Score(components={"reward": 1.0}) for _ in g.rollouts] for g in groups]

    def floor(self, ctx: ScoreContext) -> Mapping[str, float]:
        return {"reward": 0.0}


def measured_run(scorer: StatelessScorer, url: str, steps: int, tokens: int, width: int, groups: int) -> Run:
    quick = quickstart(0)
    stage = replace(cast(Reinforce, quick.stages[0]), steps=WARM + steps, groups=groups, group_size=8, reward=scorer)
    return replace(
        quick,
        model=Scratch(shape=shape_of(width)),
        stages=(stage,),
        sampling=Sampling(max_new_tokens=tokens),
        engine=Native(max_batch=16),
        judges=(Judge(url=url, model="judge", concurrency=64),),
        evaluation=Evaluation(every=0, final_per_level=1),
        checkpoint_every=WARM + steps,
    )


def step_seconds(run: Run) -> list[float]:
    with tempfile.TemporaryDirectory() as place:
        train(run, Path(place) / "run", progress=False)
        lines = (Path(place) / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    metrics = [cast(dict[str, float], json.loads(line)["metrics"]) for line in lines]
    return [m["time/step"] for m in metrics if "time/step" in m][WARM:]


def serve(seconds: float, tell: Connection) -> None:
    """A judge that takes its time, until this process is ended."""

    def reply(messages: object) -> str:
        time.sleep(seconds)
        return '{"fine": 1}'

    with JudgeServer(reply) as server:
        tell.send(server.url)
        time.sleep(1e6)


@contextmanager
def server_elsewhere(seconds: float) -> Generator[str]:
    """Address of a judge in a process of its own: one in this process would take the interpreter from the engine."""
    here, there = Pipe()
    process = get_context("spawn").Process(target=serve, args=(seconds, there), daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        process.terminate()
        process.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--groups", type=int, default=8, help="of 8 rollouts each; with 8 all are judged at once")
    parser.add_argument("--width", type=int, default=256, help="of the model; a step takes about 2 s at 256, 7 s at 512")
    parser.add_argument("--judge-seconds", type=float, default=1.0)
    given = parser.parse_args()

    rubric = Rubric(criteria=(Criterion(name="fine", text="Is it fine?"),))
    scorers = {"by group": RubricJudge(rubric=rubric), "together": Together(rubric=rubric), "no judge": Constant()}
    with server_elsewhere(given.judge_seconds) as url:
        seconds = {
            n: median(step_seconds(measured_run(s, url, given.steps, given.tokens, given.width, given.groups)))
            for n, s in scorers.items()
        }
    bare = seconds["no judge"]
    costs = {name: round(value / bare - 1, 4) for name, value in seconds.items() if name != "no judge"}
    print(
        json.dumps(
            {"seconds": {n: round(v, 3) for n, v in seconds.items()}, "cost": costs, "rollouts": 8 * given.groups, **vars(given)}
        )
    )


if __name__ == "__main__":
    main()
