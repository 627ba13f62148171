"""Does every method train? What each asks of the loop, and the cells that answer."""

from __future__ import annotations

from collections.abc import Mapping

from assay.objective import Objective, ScoreLoss
from assay.objective.methods import methods
from assay.train import models_of, updates_of

__all__ = [
    "CONTROLS",
    "EXPERTS",
    "KINDS",
    "LONGER",
    "MAKER",
    "READS",
    "SEED",
    "SETTINGS",
    "STEPS",
    "TEACHER",
    "cells",
    "kind_of",
    "objective_of",
]

MAKER = "evidence.cells.methods:method_cell"
"""Makes the cells: each method's name, and the controls."""

SEED, STEPS = 0, 40

CONTROLS = ("random_grpo", "random_rloo")
"""Methods under a coin toss for a reward, which must not train."""

KINDS: Mapping[str, str] = {
    "plain": "One optimiser step a batch",
    "ratio": "Two optimiser steps a batch, with a ratio between them",
    "critic": "With value heads",
    "scores": "Scores of rollouts, pairs and groups",
    "columns": "With columns of rollouts or tokens",
    "expert": "With an expert's answers",
    "stored": "On stored answers",
    "teacher": "With a teacher",
    "self": "Taught by itself",
}
"""Kinds in the order of the page: what a method asks of the loop."""

BROUGHT: Mapping[str, tuple[str, str]] = {
    "a2po": ("columns", "`optimal_value` from the base's accuracy at the prompt's level"),
    "a_lol": (
        "stored",
        "`value_ref` is the base's accuracy at the prompt's level; `eps=0.2`: with ratios up to 1.9 it found no change; 80 steps",
    ),
    "dph_rl": (
        "stored",
        "right answers to prompts of 3 to 5 digits, which the base masters, stand beside the rollouts as the base's own; "
        "`stored=False`: a pass of the reference scores them",
    ),
    "grpo_process": ("columns", "`process_reward`: a share for each character that is right at its place; a step is a character"),
    "grpo_s": ("columns", "`hardness` is the group's failures, `responsiveness` 0"),
    "gui_g1": ("columns", "`difficulty` is the level"),
    "hierarchical_grpo": ("columns", "`peers` are the halves of a group"),
    "pairwise_rl": ("columns", "`win` and `loss` against the right answer: 1/2 and 1/2 for a right rollout, else 0 and 1"),
    "r_gold": ("stored", ""),
    "rae": ("columns", "`role` is the level"),
    "reseek": ("columns", "`judge_reward` is 0: nothing is looked up here, so nothing is judged"),
    "weighted_bc": ("stored", ""),
}
"""Methods for which the study brings something, by kind, and what."""

NOTES: Mapping[str, str] = {
    "archer": "two critics of turns on a model of their own, as its authors have it, which learns at 1e-3, 40 steps before the "
    "policy; that follows at 3e-5: at the study's 3e-4 it runs ahead of them, to answers that they think right and that are not. "
    "160 steps. On the policy's own states critics learn which prompts are hard, not which answers are right, and it falls",
    "b_coder": "`alpha=0.01` and values with target weights: at its default worth a nat is worth a whole right answer; "
    "the head learns at 3e-3, 15 steps before the policy; 80 steps",
    "constrained": "no thresholds are given, so no multiplier acts: this trains its main component alone",
    "discopop": "`tau=1`: at its default of 0.05 the loss rises with the margin where policy and reference are one (its slope "
    "there is `(1 - log 2) / (4 tau) - 3/4`, +0.78), which parts pairs the wrong way: 0.283 after 40 steps",
    "echo": "the family's answers stand in for those of an environment",
    "entropy_only": "reads no reward",
    "gigpo": "a rollout is one turn, so that every step has the prompt for its state",
    "kd_topk": "the teacher's 8 most likely tokens (`k=8`), not a column of the user's own",
    "grpo_passk": "128 prompts x 2 rollouts: it learns from groups with a lone right answer, which are rare among groups of 8",
    "nlpo": "the mask policy is a copy of the policy, taken anew every 10 optimiser steps",
    "nll": "a supervised stage on the family's answers, all levels, 64 a step",
    "pf_ppo": '`rule="max_min"`: under rewards of 0 and 1 its default filter leaves right rollouts alone',
    "sdft": "the 8 most likely tokens behind the solution (`k=8`), not a column of the user's own; base and teacher are those "
    "of `sdpo`",
    "sdpo": "from a base that has also read prompts behind their solution, on all levels; as that base it is its own teacher, "
    "with weights that stay. With averaged ones (`Ema(decay=0.99)`) it rises to 0.67 by step 20 and falls back, with its present "
    "weights it falls at once",
    "vapo": "`adaptive=2`: at its default, made for thousands of tokens, `lam` would be 0 for answers of ten; the "
    "head learns at 3e-3, 20 optimiser steps before the policy",
}
"""What else is to be known of a method here."""

EXPERTS = ("b_coder", "calib_rl", "echo", "rl_plus", "visurf")
"""Methods beside whose rollouts the family's own answer stands, one more rollout of each group in the stream `expert`."""

READS = ("sdft", "sdpo")
"""Methods that start from a base which has read prompts behind their solution (`evidence.cells.methods.reader`)."""

SETTINGS: Mapping[str, Mapping[str, object]] = {
    "a_lol": {"eps": 0.2},
    "b_coder": {"alpha": 0.01, "values": "values_target"},
    "discopop": {"tau": 1.0},
    "dph_rl": {"stored": False},
    "kd_topk": {"k": 8},
    "pf_ppo": {"rule": "max_min"},
    "sdft": {"k": 8},
    "vapo": {"adaptive": 2.0},
}
"""Settings that are not the defaults; `NOTES` says why."""

LONGER: Mapping[str, int] = {"a_lol": 80, "archer": 160, "b_coder": 80}
"""Steps of methods for which the study's are too few."""

TEACHER = "grpo"
"""The cell whose result is the teacher."""


def objective_of(name: str) -> Objective:
    """A method's composition as the study trains it."""
    return methods()[name].objective(**SETTINGS.get(name, {}))


def kind_of(name: str, objective: Objective) -> str:
    """What a method asks of the loop, one of `KINDS`.

    >>> from assay.objective.methods import ppo
    >>> kind_of("ppo", ppo())
    'critic'
    """
    if name in BROUGHT:
        return BROUGHT[name][0]
    if name in EXPERTS:
        return "expert"
    for model, kind in (("teacher", "teacher"), ("privileged", "self")):
        if model in models_of(objective):
            return kind
    if {"greedy", "state", "prompt_confidence"} & {*objective.plan(2).rollout_columns, *objective.plan(2).columns}:
        return "columns"
    if any(t.heads for t in objective.losses):
        return "critic"
    if isinstance(objective.policy, ScoreLoss):
        return "scores"
    return "ratio" if updates_of(objective) == 2 else "plain"


def cells() -> list[tuple[str, int, int | None]]:
    """All cells of the study, the teacher's first."""
    return [(name, SEED, LONGER.get(name)) for name in (TEACHER, *CONTROLS, *(n for n in methods() if n != TEACHER))]
