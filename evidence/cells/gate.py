"""The cells of the quickstart's learning gate."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from assay.core import UnknownNameError
from assay.lab import Cell, FormatOnly, Inverted, RandomReward, Rewarded
from assay.recipes import base, quickstart
from assay.runtime import LearnerSettings, LearningRateSchedule, Muon
from assay.train import Evaluation, Reinforce, Run, WarmUp
from assay_tasks import SortDigits

__all__ = ["CONTROLS", "MAKER", "quickstart_cell"]

MAKER = "evidence.cells.gate:quickstart_cell"
"""Makes the cells: ``rl`` and the controls, each at any seed."""

CONTROLS = ("random", "format", "inverted", "longer")
"""What must not learn."""


def quickstart_cell(kind: str, seed: int, steps: int | None = None) -> Cell:
    """``rl``, the quickstart itself, or a control from the same base.

    ``random``, ``format`` and ``inverted`` are the quickstart under another reward; ``longer`` is the base's supervised stage
    once more, on the same pool of traces, at half its learning rate.

    Args:
        kind: which.
        seed: of run and base.
        steps: fewer or more than the recipe's own.

    Raises:
        UnknownNameError: no such cell.
    """
    if kind not in ("rl", *CONTROLS):
        raise UnknownNameError("cell", kind, ("rl", *CONTROLS))
    run, truth = quickstart(seed), SortDigits()
    stage = cast(Reinforce, run.stages[0])
    stage = stage if steps is None else replace(stage, steps=steps)
    if kind == "rl":
        return Cell(run=replace(run, stages=(stage,)), truth=truth)
    # the run's own evaluation would use the wrong reward: the cell is judged afterwards, by the truth
    quiet = replace(run, name=f"{run.name}-{kind}", evaluation=Evaluation(every=0, final_per_level=1))
    if kind == "longer":
        return Cell(run=replace(quiet, stages=(_longer(seed, steps),)), truth=truth)
    judge = truth.verifier()
    scorer = {"random": RandomReward(seed), "format": FormatOnly(judge), "inverted": Inverted(judge)}[kind]
    changed: Run = replace(quiet, tasks=Rewarded(source=truth, scorer=scorer), stages=(stage,))
    return Cell(run=changed, truth=truth)


def _longer(seed: int, steps: int | None) -> WarmUp:
    shown = cast(WarmUp, base(seed).stages[0])
    learner = LearnerSettings(optimizer=Muon(lr=2e-3), schedule=LearningRateSchedule(kind="linear"))
    return replace(shown, steps=steps or shown.steps, gate=0.0, learner=learner)
