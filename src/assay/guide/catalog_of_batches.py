"""The parts in `assay.guide.catalog` that make a batch: screens, filters, refill, replay, composers and schedules."""

from __future__ import annotations

from assay.guide.guide_record import Guide

__all__ = ["BATCHES"]

BATCHES = (
    Guide(
        name="SkipSolved",
        kind="screen",
        source="The Reasoning Boundary Paradox (arXiv 2510.02230)",
        observes="the policy's greedy answer to each drawn task",
        needs="sampling in the learner's process",
        status="unsure",
    ),
    Guide(name="Mixed", kind="filter", source="DAPO (arXiv 2503.14476)", observes="the rewards of a group"),
    Guide(
        name="SuccessWindow",
        kind="filter",
        source="Online difficulty filtering (arXiv 2504.03380)",
        observes="the success of a group",
        status="unsure",
    ),
    Guide(
        name="Admitted",
        kind="filter",
        source="RLPR (arXiv 2506.18254)",
        observes="what the stage's scorer decided of a group",
        needs="a scorer that admits groups; without one all are kept",
    ),
    Guide(
        name="ResampleOnCorrect",
        kind="filter",
        source="rStar2-Agent (arXiv 2508.20722)",
        observes="success and tool errors of each rollout",
        needs="a group size above its keep",
    ),
    Guide(
        name="Refill",
        kind="refill",
        source="DAPO (arXiv 2503.14476), CodeV-R1 (arXiv 2505.24183)",
        observes="how many groups the filter kept",
        needs="a filter",
        status="unsure",
        example="--stages.0.filter.kind Mixed",
    ),
    Guide(
        name="Recent",
        kind="replay",
        source="",
        observes="which groups had a signal",
        needs="an objective with a ratio, and a share in the composer",
        status="own",
        example="--stages.0.composer.replay_share 0.25 --stages.0.objective grpo",
    ),
    Guide(
        name="DeferredReplay",
        kind="replay",
        source="RoRecomp (arXiv 2509.25958)",
        observes="nothing",
        needs="a composer that learns from a part of each group",
        example="--stages.0.composer.kind Recompose --stages.0.objective grpo",
    ),
    Guide(name="Compose", kind="composer", source="", observes="which groups had a signal", status="own"),
    Guide(
        name="PlainFailures",
        kind="composer",
        source="Guide-GRPO (arXiv 2506.13923)",
        observes="success of plain and of hinted rollouts of a group",
        needs="hinted rollouts in the group that failed: GuideHint with fill",
        example="--stages.0.guidance.kind GuideHint --stages.0.guidance.text '{prompt}{hint}' --stages.0.guidance.fill True "
        "--stages.0.objective guide_grpo",
    ),
    Guide(
        name="RewrittenAnswers",
        kind="composer",
        source="Cog-Rethinker (arXiv 2510.15979)",
        observes="success of the later stages of Rethink",
        needs="Rethink with imitate, and an objective that learns from experts",
        example="--stages.0.guidance.kind Rethink --stages.0.guidance.imitate True --stages.0.guidance.decompose '{prompt}>' "
        "--stages.0.guidance.reflect '{prompt}{answer}>' --stages.0.objective visurf",
    ),
    Guide(
        name="DifficultyWeights",
        kind="composer",
        source="ADHint (arXiv 2512.13095)",
        observes="success of a task's plain and hinted rollouts",
        needs="a guidance with both kinds, such as AdHint or Pope",
        status="unsure",
        example="--stages.0.guidance.kind AdHint",
    ),
    Guide(
        name="Recompose",
        kind="composer",
        source="RoRecomp (arXiv 2509.25958)",
        observes="length and success of each rollout",
        needs="a replay of groups that wait",
        status="unsure",
        example="--stages.0.replay.kind DeferredReplay --stages.0.objective grpo",
    ),
    Guide(
        name="Piecewise",
        kind="schedule",
        source="",
        observes="the number of the step",
        status="own",
        example="@.points 0 0.9 2 1.0",
    ),
    Guide(
        name="Ramp", kind="schedule", source="", observes="the number of the step", status="own", example="@.points 0 0.9 2 1.0"
    ),
    Guide(
        name="WhenFlat",
        kind="schedule",
        source="MiroMind-M1 (arXiv 2507.14683)",
        observes="whether a metric of the step still grows",
        status="unsure",
        example="@.metric length/mean @.values 0.9 1.0",
    ),
    Guide(
        name="WhenReached",
        kind="schedule",
        source="",
        observes="a metric of the step or of its evaluation",
        status="own",
        example="@.metric reward/mean @.at_least 0.5 @.values 0.9 1.0",
    ),
)
"""In the order in which they are listed."""
