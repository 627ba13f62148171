"""What a run's own curves say is wrong: rules to sentences, each with the run's numbers and steps and what to do next."""

from __future__ import annotations

from collections.abc import Iterable

from assay.measure.findings import Finding, Rule, Severity
from assay.measure.history import History
from assay.measure.rules_check import RewardHacking
from assay.measure.rules_heldout import CurriculumStuck, HeldOutDropped, Overfitting, SuspectVerifier
from assay.measure.rules_help import OnlyWithHelp
from assay.measure.rules_machinery import (
    EngineMismatch,
    GraderHangs,
    RisingFaults,
    SilentRewards,
    UnprovenWeights,
    UntrainedWeights,
)
from assay.measure.rules_policy import (
    EntropyCollapse,
    EntropyExplosion,
    FormatFailure,
    LengthTruncation,
    NoSignal,
    NotFinite,
    StalledSteps,
)
from assay.measure.rules_rate import CONSEQUENCES, LearningRateTooHigh
from assay.measure.rules_reward import FROM_NOISE, PartialCredit, RandomWeights
from assay.measure.rules_tools import ToolErrors, UnusedTools

__all__ = ["RULES", "diagnose"]

RULES: tuple[Rule, ...] = (
    NotFinite(),
    LearningRateTooHigh(),
    RandomWeights(),
    UnprovenWeights(),
    UntrainedWeights(),
    SilentRewards(),
    EngineMismatch(),
    RewardHacking(),
    Overfitting(),
    SuspectVerifier(),
    PartialCredit(),
    HeldOutDropped(),
    RisingFaults(),
    GraderHangs(),
    NoSignal(),
    OnlyWithHelp(),
    EntropyCollapse(),
    EntropyExplosion(),
    LengthTruncation(),
    FormatFailure(),
    CurriculumStuck(),
    StalledSteps(),
    ToolErrors(),
    UnusedTools(),
)
"""Every rule with its default thresholds, most telling first."""


def diagnose(history: History, rules: Iterable[Rule] = RULES) -> tuple[Finding, ...]:
    """What the rules find in the reinforcement-learning part of a run, alarms first. What follows from a learning rate that
    destroyed the policy, or from weights that were never trained, is left out.

    Args:
        history: all metrics of the run.
        rules: what to look for; `dataclasses.replace` changes a threshold.

    >>> from assay.runs import MetricLine
    >>> lines = [MetricLine(step=s, stage="rl", metrics={"length/truncated": 0.4, "proof/state": 1.0}) for s in range(1, 9)]
    >>> [f.rule for f in diagnose(History.of(lines))]
    ['LengthTruncation']
    """
    part = history.learning()
    found = [finding for rule in rules if (finding := rule(part))]
    if any(finding.rule == "LearningRateTooHigh" for finding in found):
        found = [finding for finding in found if finding.rule not in CONSEQUENCES]
    if any(finding.rule == "RandomWeights" for finding in found):
        found = [finding for finding in found if finding.rule not in FROM_NOISE]
    order = list(Severity)
    return tuple(sorted(found, key=lambda f: order.index(f.severity)))
