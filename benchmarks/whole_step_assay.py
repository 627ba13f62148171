"""assay's side of `whole_step.py`: the steps of a run by `assay.train.train`, as a user has them, and their profile.

python benchmarks/whole_step_assay.py WORK.json FOLDER
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch

from assay.core import Sampling
from assay.guide import Uniform
from assay.objective import grpo
from assay.runtime import AdamW, LearnerSettings, Native, load_model
from assay.tasks import Rows
from assay.train import Evaluation, Folder, Reinforce, Run, StepResult, model_folder, open_stage, train
from assay.verify import ScoringPool
from paced import Pace, Work, pay_attempt

EPS = 1e-4
"""What TRL adds to a group's standard deviation."""
NEVER = (1 << 20,)
"""A stop token that no vocabulary here has: every attempt goes on to its last token."""


def reward(prompt: str, completion: str, row: Mapping[str, Any]) -> float:
    """`pay_attempt` as `Rows` calls it."""
    return pay_attempt(completion, row["mixed"])


def rows_of(work: Work) -> list[dict[str, Any]]:
    """The prompts, and one more that is held out, on which the run is evaluated before its first step and behind its last."""
    rows = [{"prompt": p, "mixed": m} for p, m in zip(work.prompts, work.mixed, strict=True)]
    length, number = len(work.prompts[0]), 0
    while True:
        more = {"prompt": format(number, "b").rjust(length, "="), "mixed": False}
        if Rows([*rows, more], reward=reward).size("rows", 1, "test"):
            return [*rows, more]
        number += 1


def run_of(work: Work) -> Run:
    """GRPO without a reference, one update a step; the loss is TRL's ``grpo``."""
    learner = LearnerSettings(optimizer=AdamW(lr=work.lr), clip_norm=1.0, anchors=())
    return Run(
        name="whole-step",
        model=Folder(work.model),
        tasks=Rows(rows_of(work), reward=reward),
        stages=(
            Reinforce(
                steps=work.steps + 1,
                groups=len(work.prompts),
                group_size=work.group_size,
                curriculum=Uniform(),
                objective=grpo(kl=0.0, eps=EPS),
                learner=learner,
            ),
        ),
        sampling=Sampling(max_new_tokens=work.new, stop_ids=NEVER),
        evaluation=Evaluation(every=0, final_per_level=1, kl_to_base=False),
        threads=work.threads,
        checkpoint_every=10**6,
        engine=Native(recall=work.recall),
    )


def first_step(run: Run, work: Work) -> tuple[list[float], float]:
    """Makes the run's first step in a session of its own: writes its attempts and its gradient, returns the rewards, sorted, and
    the gradient's norm.
    """
    torch.set_num_threads(work.threads)
    with ScoringPool(run.tasks.verifier(), run.reward_deadline, workers=run.reward_workers) as pool:
        model = load_model(model_folder(Path(work.model)))
        session = open_stage(replace(run, prove_weights=False), run.stages[0], model, pool, 0)

        async def once() -> StepResult:
            await session.parts.serve()
            return await session.step()

        found = asyncio.run(once())
        torch.save({n: p.grad for n, p in cast(Any, session.parts.learner).parameters.items()}, work.gradient("assay"))
    rollouts = {
        " ".join(map(str, g.rollouts[0].calls[0].prefix.tolist())): [r.calls[0].completion.ids.tolist() for r in g.rollouts]
        for g in found.groups
    }
    work.attempts_file.write_text(json.dumps(rollouts), encoding="utf-8")
    return sorted(s.primary for g in found.groups for s in g.scores), found.metrics["grad/norm"]


class Told:
    """A tracker that tells of each step and waits for the word to make the next."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """The step's numbers have been written; before the first come those of the evaluation."""
        parts, wall = (
            {k.removeprefix(f"time/{p}/"): v for k, v in metrics.items() if k.startswith(f"time/{p}/")}
            for p in ("profile_cpu", "profile")
        )
        kept = {
            k: metrics[k]
            for k in ("loss/total", "grad/norm", "rows/computed", "tokens/sampled", "time/tokens_recalled", "proof/state")
            if k in metrics
        }
        self.pace.tell(**(self.pace.measure_spent() if step else {"ready": True}), parts=parts, parts_wall=wall, metrics=kept)

    def close(self) -> None:
        """Nothing is held."""


def main(work: Work, folder: Path) -> None:
    """Tells of the first step's attempts, then trains as long as it is told to go on."""
    pace, run = Pace(), run_of(work)
    rewards, norm = first_step(run, work)
    pace.tell(rewards=rewards, norm=norm)
    train(run, folder, progress=False, watch=lambda run, folder, first: [Told(pace)], profile=True)


if __name__ == "__main__":
    main(Work.read(sys.argv[1]), Path(sys.argv[2]))
