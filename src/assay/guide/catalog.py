"""Every curriculum, guidance, filter and schedule of assay: where it was published, what it observes, what a run needs for it.

One line per part; `assay guides` lists them, and a test fails when a part of the package is missing here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from assay.core.errors import UnknownNameError
from assay.guide.catalog_of_batches import BATCHES
from assay.guide.guide_record import Guide

__all__ = ["guides"]

_HINTS = "--stages.0.guidance.text '{prompt}{hint}'"
_BOTH = "--stages.0.guidance.text '{prompt}{solution}'"
_SUCCESS = "mean success of each cell"

_ALL = (
    Guide(name="Uniform", kind="curriculum", source="", observes="nothing", status="own"),
    Guide(name="SuccessVariance", kind="curriculum", source="", observes=_SUCCESS, status="own"),
    Guide(name="Frontier", kind="curriculum", source="", observes=f"{_SUCCESS}, and its best so far", status="own"),
    Guide(
        name="Balanced",
        kind="curriculum",
        source="",
        observes="as the rule within it",
        needs="parts: arms or families that share evenly",
        status="own",
        example="@.parts all sort",
    ),
    Guide(
        name="Sec",
        kind="curriculum",
        source="Self-Evolving Curriculum (arXiv 2505.14970)",
        observes="mean absolute advantage of each group",
        needs="an objective with advantages",
        status="unsure",
    ),
    Guide(
        name="Dump",
        kind="curriculum",
        source="DUMP (arXiv 2504.09710)",
        observes="the last absolute advantages of each cell, and how many there were",
        needs="an objective with advantages",
    ),
    Guide(name="RuleReasoner", kind="curriculum", source="RuleReasoner (arXiv 2506.08672)", observes=_SUCCESS),
    Guide(
        name="Exp3",
        kind="curriculum",
        source="Automated Curriculum Learning for Neural Networks (arXiv 1704.03003)",
        observes="variance of success of each group, over the probability of its draw",
    ),
    Guide(
        name="Scaler",
        kind="curriculum",
        source="SCALER (arXiv 2601.04809)",
        observes="accuracy of each active arm, batch by batch",
        needs="arms whose levels rise in difficulty",
        status="unsure",
    ),
    Guide(
        name="AlpGmm",
        kind="curriculum",
        source="ALP-GMM (arXiv 1910.07224)",
        observes="how far success is from that of the nearest group before",
    ),
    Guide(
        name="Again",
        kind="curriculum",
        source="Meta-ACL (arXiv 2011.08463)",
        observes="as AlpGmm, and the fits of earlier runs",
        needs="earlier runs with AlpGmm on the same arms and levels",
        status="unsure",
        example="@.classroom runs/earlier-1 runs/earlier-2",
    ),
    Guide(
        name="Promoted",
        kind="curriculum",
        source="SATURN (arXiv 2505.16368)",
        observes="held-out accuracy of the level that is practised",
        needs="held-out evaluations during the stage (Evaluation.every)",
    ),
    Guide(
        name="HistoryRows",
        kind="row curriculum",
        source="LIMR (arXiv 2502.11886); 1-shot RLVR (arXiv 2504.20571)",
        observes="success of each row in its first epochs",
    ),
    Guide(
        name="Bell",
        kind="row curriculum",
        source="GAIN-RL (arXiv 2506.02281)",
        observes="accuracy of each batch",
        status="unsure",
    ),
    Guide(
        name="HardFocus",
        kind="row curriculum",
        source="DRIVE (arXiv 2511.06307)",
        observes="success of each row in the phase that ends",
        status="unsure",
    ),
    Guide(
        name="Retrospective",
        kind="row curriculum",
        source="QwenLong-L1 (arXiv 2505.17667)",
        observes="success of each row in its own phase",
        needs="levels that are lengths, or rise as they do",
    ),
    Guide(
        name="Rounds",
        kind="row curriculum",
        source="Vision-G1 (arXiv 2508.12680)",
        observes="success of each row at the beginning of a round",
        status="unsure",
    ),
    Guide(
        name="PromptPair",
        kind="row curriculum",
        source="Beyond Variance (arXiv 2602.03452)",
        observes="success of each row while rows are tried",
        needs="its objective: --stages.0.objective w_grpo",
        status="unsure",
    ),
    Guide(
        name="PromptValue",
        kind="row curriculum",
        source="Prompt Curriculum Learning (arXiv 2510.01135)",
        observes="the text of prompts, and success of those drawn",
        status="unsure",
    ),
    Guide(name="InOrder", kind="index policy", source="", observes="nothing", status="own"),
    Guide(name="FirstTasks", kind="index policy", source="1-shot RLVR (arXiv 2504.20571)", observes="nothing"),
    Guide(name="Plain", kind="guidance", source="", observes="nothing", status="own"),
    Guide(
        name="Prefix",
        kind="guidance",
        source="DR-PO (arXiv 2404.08495); POPE (arXiv 2601.18779); PrefixRL (arXiv 2601.18795)",
        observes="nothing",
        needs="tasks with a solution or an answer as text",
    ),
    Guide(
        name="ShuffledEvents",
        kind="guidance",
        source="TimeHC-RL (arXiv 2505.24500)",
        observes="nothing",
        needs="prompts that list events, assay.scorers.TemporalBonus; filter=Admitted() leaves the twin out",
    ),
    Guide(
        name="StartStates",
        kind="guidance",
        source="Snapshot Reinforcement Learning (2024)",
        observes="nothing",
        needs="tasks that bring states of a trajectory, such as Heaps, and turns for an episode",
        status="unsure",
        example="--tasks.kind Heaps --tasks.levels 2 3 4 --max-turns 24",
    ),
    Guide(
        name="Privileged",
        kind="guidance",
        source="",
        observes="nothing",
        needs="tasks with a solution, an anchor with privileged=True and a method that reads it, as sdpo",
        status="own",
        example=f"{_BOTH} --stages.0.objective sdpo",
    ),
    Guide(
        name="Ghpo",
        kind="guidance",
        source="GHPO (arXiv 2507.10628)",
        observes="the groups of the task in this step",
        needs="tasks with a solution",
        status="unsure",
        example=_HINTS,
    ),
    Guide(
        name="Seele",
        kind="guidance",
        source="SEELE (arXiv 2509.06923)",
        observes="success of each round's rollouts behind its prefix",
        needs="tasks with a solution",
        example="--stages.0.group_size 4",
    ),
    Guide(
        name="Pope",
        kind="guidance",
        source="POPE (arXiv 2601.18779)",
        observes="whether guided rollouts of the task succeed, and with which share of its solution they last did",
        needs="tasks with a solution",
        status="unsure",
        example="--stages.0.guidance.text ''",
    ),
    Guide(
        name="AdHint",
        kind="guidance",
        source="ADHint (arXiv 2512.13095)",
        observes="success of the task's plain rollouts in this step",
        needs="tasks with a solution",
        status="unsure",
    ),
    Guide(
        name="GuideHint",
        kind="guidance",
        source="Guide-GRPO (arXiv 2506.13923)",
        observes="whether every rollout of the task failed in this step",
        needs="tasks with a hint or a solution, and its objective: --stages.0.objective guide_grpo",
        example=f"{_HINTS} --stages.0.objective guide_grpo",
    ),
    Guide(
        name="Rethink",
        kind="guidance",
        source="Cog-Rethinker (arXiv 2510.15979)",
        observes="the groups of the task in this step, and a wrong answer of theirs",
        needs="a model that follows requests; its prompts say what to do",
        status="unsure",
        example="@.decompose '{prompt}>' @.reflect '{prompt}{answer}>'",
    ),
    Guide(
        name="Quarters",
        kind="guidance",
        source="Beyond Accuracy (SPARKLE, 2025)",
        observes="nothing",
        needs="tasks with a solution",
        example="@.unit ''",
    ),
    Guide(
        name="DataReset",
        kind="guidance",
        source="Dataset Reset Policy Optimization (arXiv 2404.08495)",
        observes="nothing",
        needs="preferred answers to the tasks that are trained on, in a file",
        example="@.data pairs.jsonl",
    ),
    Guide(
        name="TracePrefix",
        kind="guidance",
        source="PrefixRL (arXiv 2601.18795)",
        observes="nothing",
        needs="right answers to the tasks that are trained on, as 'assay distill' writes them",
        example="@.traces traces.jsonl",
    ),
)


@cache
def guides() -> Mapping[str, Guide]:
    """All parts by name, kind by kind.

    >>> guides()["Dump"].observes
    'the last absolute advantages of each cell, and how many there were'
    """
    return {guide.name: guide for guide in (*_ALL, *BATCHES)}


def guide_named(name: str) -> Guide:
    """A part by its name, upper and lower case alike.

    Raises:
        UnknownNameError: there is none; says the nearest.
    """
    found = {known.lower(): guide for known, guide in guides().items()}
    if name.lower() not in found:
        raise UnknownNameError("guide", name, guides())
    return found[name.lower()]
