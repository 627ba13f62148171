"""Long answers: thirty million fresh weights that write their working out, and are told whether its last line is right."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from assay.core.errors import UnknownNameError
from assay.core.rollout import Sampling
from assay.guide import SuccessVariance
from assay.lab.cells import Cell
from assay.lab.controls import RandomReward, Rewarded
from assay.objective.loss.aggregate import Token
from assay.objective.methods import grpo
from assay.runtime.engine.settings import EngineSpec, InProcess, Native
from assay.runtime.settings import AdamW, DecoderShape, LearnerSettings, LearningRateSchedule
from assay.runtime.vllm.settings import VllmSettings
from assay.train.models import Built, Scratch
from assay.train.reinforce import Reinforce
from assay.train.run import Evaluation, Run
from assay.train.stages import WarmUp
from assay_tasks.small.generations import Generations

__all__ = ["ENGINES", "PRACTISED", "SHAPE", "SHOWN", "traces", "traces_base", "traces_cell"]

SHAPE = DecoderShape(
    hidden_size=640,
    num_layers=6,
    num_heads=10,
    num_kv_heads=10,
    head_dim=64,
    intermediate_size=1792,
    max_positions=320,
    tied=False,
)
"""30.5M weights. The head is not tied: vLLM on a CPU cannot renew a head that is."""

SHOWN, PRACTISED = (2, 4, 6, 8, 10, 12), (6, 8, 10, 12)
"""Rows of working that the base is shown, and those that RL practises: answers of 107 to 215 tokens."""

STEPS = 100
"""Of the base: it then answers about a third; ten steps more and it has learned all there is."""

ENGINES = {"native": Native(), "in-process": InProcess(), "vllm": VllmSettings(url="http://127.0.0.1:8123")}
"""What samples, by the name of its cell in the study."""


def traces_base(seed: int = 0) -> Run:
    """30.5M fresh parameters, shown the oracle's working for 100 steps of 16 texts on a CPU (6 CPU-minutes).

    The stage ends on purpose while the loss still falls steeply, with about a third of the answers right.
    """
    return Run(
        name="base-traces",
        seed=seed,
        model=Scratch(shape=SHAPE, alphabet=Generations().alphabet, seed=seed),
        tasks=Generations(levels=SHOWN),
        stages=(
            WarmUp(
                steps=STEPS,
                batch=16,
                demonstrations=0,
                noise=0.0,
                learner=LearnerSettings(optimizer=AdamW(lr=1e-3), schedule=LearningRateSchedule(warmup=10), precision="bf16"),
            ),
        ),
        sampling=Sampling(max_new_tokens=230),
        evaluation=Evaluation(every=0, final_per_level=8, kl_to_base=False),
        checkpoint_every=20,
    )


def traces(seed: int = 0) -> Run:
    """GRPO on working of 6 to 12 lines with 30.5M weights on a CPU: 64 answers of up to 215 tokens a step, about 30 CPU-seconds.

    2.6 GiB by `assay explain`; a process was seen to take 2.8 GB. Two steps a minute on a quiet core.
    """
    return Run(
        name="traces",
        seed=seed,
        model=Built(run=traces_base(seed)),
        tasks=Generations(levels=PRACTISED),
        stages=(
            Reinforce(
                steps=12,
                groups=8,
                group_size=8,
                objective=replace(grpo(kl=0.0), aggregate=Token()),
                curriculum=SuccessVariance(floor=0.1),
                learner=LearnerSettings(optimizer=AdamW(lr=1e-4), schedule=LearningRateSchedule(warmup=2)),
            ),
        ),
        sampling=Sampling(max_new_tokens=230),
        evaluation=Evaluation(every=0, final_per_level=32, kl_to_base=False),
        checkpoint_every=5,
    )


def traces_cell(kind: str, seed: int, steps: int | None = None) -> Cell:
    """A cell of the study: the recipe with an engine named, or under a reward that must not teach.

    Args:
        kind: ``native``, ``in-process``, ``vllm``, or ``random``: a coin toss per rollout, sampled by the native engine.
        seed: of run and base.
        steps: fewer or more than the recipe's own.

    Raises:
        UnknownNameError: no such cell.
    """
    if kind not in (*ENGINES, "random"):
        raise UnknownNameError("cell", kind, (*ENGINES, "random"))
    run, truth = traces(seed), Generations(levels=PRACTISED)
    stage = cast(Reinforce, run.stages[0])
    quiet = Evaluation(every=0, final_per_level=1, kl_to_base=False)  # the cell itself is judged afterwards
    engine: EngineSpec = ENGINES.get(kind, Native())
    run = replace(
        run, name=f"traces-{kind}", engine=engine, stages=(replace(stage, steps=steps or stage.steps),), evaluation=quiet
    )
    if kind == "random":
        run = replace(run, tasks=Rewarded(source=run.tasks, scorer=RandomReward(seed)))
    return Cell(run=run, truth=truth, per_level=32)
