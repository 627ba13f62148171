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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import cast

from assay.clients import Judge
from assay.core import RolloutGroup, Sampling, Score, ScoreContext, StatelessScorer
from assay.lab import RandomReward, Rewarded
from assay.recipes import quickstart
from assay.runtime import DecoderShape, Native
from assay.scorers import Criterion, Rubric, RubricJudge
from assay.testing import JudgeServer
from assay.train import Evaluation, Reinforce, Run, Scratch, train

SHAPE = DecoderShape(
    hidden_size=256, num_layers=6, num_heads=8, num_kv_heads=8, head_dim=32, intermediate_size=704, max_positions=640
)
WARM = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Together(RubricJudge):
    """Waits for all groups."""

    @property
    def by_group(self) -> bool:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Coin(StatelessScorer):
    """Rewards by the task's own verifier, which is a coin here; asks no judge."""

    async def score(self, groups: Sequence[RolloutGroup], ctx: ScoreContext) -> Sequence[Sequence[Score]]:
        found = await ctx.verify(groups)
        return [[Score(components={"reward": s.primary}) for s in scores] for scores in found]

    def floor(self, ctx: ScoreContext) -> Mapping[str, float]:
        return {"reward": 0.0}


def measured_run(scorer: StatelessScorer, url: str, steps: int, tokens: int) -> Run:
    quick = quickstart(0)
    stage = replace(cast(Reinforce, quick.stages[0]), steps=WARM + steps, groups=8, group_size=8, reward=scorer)
    return replace(
        quick,
        model=Scratch(shape=SHAPE),
        tasks=Rewarded(source=quick.tasks, scorer=RandomReward()),
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--judge-seconds", type=float, default=1.0)
    given = parser.parse_args()

    def reply(messages: object) -> str:
        time.sleep(given.judge_seconds)
        return '{"fine": 1}'

    rubric = Rubric(criteria=(Criterion(name="fine", text="Is it fine?"),))
    scorers = {"by group": RubricJudge(rubric=rubric), "together": Together(rubric=rubric), "no judge": Coin()}
    with JudgeServer(reply) as server:
        seconds = {n: median(step_seconds(measured_run(s, server.url, given.steps, given.tokens))) for n, s in scorers.items()}
    bare = seconds["no judge"]
    costs = {name: round(value / bare - 1, 4) for name, value in seconds.items() if name != "no judge"}
    print(json.dumps({"seconds": {n: round(v, 3) for n, v in seconds.items()}, "cost": costs, "rollouts": 64, **vars(given)}))


if __name__ == "__main__":
    main()
