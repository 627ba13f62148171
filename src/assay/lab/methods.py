"""Does every method train? What each asks of the loop, and the cells that answer."""

from __future__ import annotations

from collections.abc import Mapping

from assay.objective.loss.score import ScoreLoss
from assay.objective.methods import methods
from assay.objective.objective import Objective

__all__ = ["CONTROLS", "KINDS", "MAKER", "SEED", "STEPS", "cells", "kind_of", "updates_of", "without"]

MAKER = "assay.recipes.methods:method_cell"
"""Makes the cells: each method's name, and the controls."""

SEED, STEPS = 0, 40

CONTROLS = ("random_grpo", "random_rloo")
"""Methods under a coin toss for a reward, which must not train."""

KINDS: Mapping[str, str] = {
    "plain": "One optimiser step a batch",
    "ratio": "Two optimiser steps a batch, with a ratio between them",
    "critic": "With value heads",
    "scores": "Scores of attempts, pairs and groups",
    "columns": "With columns of attempts or tokens",
    "expert": "With an expert's answers",
    "stored": "On stored answers",
    "teacher": "With a teacher",
    "other": "Not served by the loop",
}
"""Kinds in the order of the page: what a method asks of the loop."""

BROUGHT: Mapping[str, tuple[str, str]] = {
    "a2po": ("columns", "`optimal_value` from the base's accuracy at the prompt's level"),
    "a_lol": ("stored", "`value_ref` is the base's accuracy at the prompt's level"),
    "b_coder": ("expert", ""),
    "calib_rl": ("expert", ""),
    "gigpo": ("columns", "an attempt is one turn, so that every step has the prompt for its state"),
    "grpo_process": ("columns", "`process_reward`: a share for each character that is right at its place; a step is a character"),
    "grpo_s": ("columns", "`hardness` is the group's failures, `responsiveness` 0"),
    "gui_g1": ("columns", "`difficulty` is the level"),
    "hierarchical_grpo": ("columns", "`peers` are the halves of a group"),
    "pairwise_rl": ("columns", "`win` and `loss` against the right answer: 1/2 and 1/2 for a right attempt, else 0 and 1"),
    "r_gold": ("stored", ""),
    "rae": ("columns", "`role` is the level"),
    "rl_plus": ("expert", ""),
    "visurf": ("expert", ""),
    "weighted_bc": ("stored", ""),
}
"""Methods for which the study brings something, by kind, and what."""

NOTES: Mapping[str, str] = {
    "archer": "critics apart from the policy's trunk",
    "dph_rl": "without stored answers of the base: its divergence is silent",
    "echo": "without answers of an environment: their likelihood is silent",
    "entropy_only": "reads no reward",
    "nll": "a supervised stage on the family's answers, all levels, 64 a step",
}
"""What else is to be known of a method here."""

MISSING: Mapping[str, str] = {
    "kd_topk": "needs the teacher's most likely tokens at each place (`teacher_ids`, `teacher_logps`)",
    "nlpo": "needs a policy that masks (`mask`) beside the one that learns",
    "progrpo": "needs the policy's confidence in the prompt's own tokens (`prompt_confidence`), which no pass of the loop gives",
    "remax": "needs a greedy attempt at each prompt (`greedy`) beside the sampled ones",
    "sdft": "needs the policy's most likely tokens behind another context (`privileged_ids`, `privileged_logps`)",
    "sdpo": "needs the policy's log-probabilities behind another context (`logp_privileged`)",
}
"""What neither loop nor study can bring."""


def kind_of(name: str, objective: Objective) -> str:
    """What a method asks of the loop, one of `KINDS`.

    >>> from assay.objective.methods import ppo
    >>> kind_of("ppo", ppo())
    'critic'
    """
    if name in MISSING:
        return "other"
    if name in BROUGHT:
        return BROUGHT[name][0]
    plan = objective.plan(2)
    if "teacher" in {*(f.model for f in plan.forwards), *(m for s in plan.vocab for m in s.models)}:
        return "teacher"
    if any(t.heads for t in objective.losses):
        return "critic"
    if isinstance(objective.policy, ScoreLoss):
        return "scores"
    return "ratio" if updates_of(objective) == 2 else "plain"


def updates_of(objective: Objective) -> int:
    """Optimiser steps per rollout batch: two where a loss compares with the policy that drew, which the second step can then tell
    from the present one.

    >>> from assay.objective.methods import grpo, opo
    >>> updates_of(grpo()), updates_of(opo())
    (2, 1)
    """
    if isinstance(objective.policy, ScoreLoss):
        return 1
    anchors = {a for t in objective.losses for a in t.anchors}
    read = {n for t in objective.losses for n in t.needs if n.startswith("logp_") and n.endswith("_old")}
    return 2 if read or anchors & {"old", "engine"} else 1


def without(name: str) -> str:
    """Why a method is not run; empty for one that is."""
    if name in MISSING:
        return MISSING[name]
    teacher = name not in CONTROLS and kind_of(name, methods()[name].objective()) == "teacher"
    return "needs a teacher (`teacher`) beside the policy" if teacher else ""


def cells() -> list[tuple[str, int, int | None]]:
    """All cells of the study."""
    return [(name, SEED, None) for name in (*CONTROLS, *methods()) if not without(name)]
